"""Classification into large, structured sets of classes, with honest probabilities."""

from importlib.metadata import version

from taxolearn import datasets, decisions, kernels, metrics
from taxolearn.klr import FitResult, KernelLogisticClassifier
from taxolearn.taxonomy import Taxonomy

__all__ = [
    "FitResult",
    "KernelLogisticClassifier",
    "Taxonomy",
    "__version__",
    "datasets",
    "decisions",
    "kernels",
    "metrics",
]

__version__ = version("taxolearn")
