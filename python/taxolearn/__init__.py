"""Classification into large, structured sets of classes, with honest probabilities."""

from importlib.metadata import version

from taxolearn import datasets, decisions, kernels, metrics, model_selection
from taxolearn.klr import FitResult, KernelLogisticClassifier, LearningResult
from taxolearn.taxonomy import Taxonomy

__all__ = [
    "FitResult",
    "KernelLogisticClassifier",
    "LearningResult",
    "Taxonomy",
    "__version__",
    "datasets",
    "decisions",
    "kernels",
    "metrics",
    "model_selection",
]

__version__ = version("taxolearn")
