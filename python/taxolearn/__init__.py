"""Classification into large, structured sets of classes, with honest probabilities."""

from importlib.metadata import version

from taxolearn import datasets, decisions, features, kernels, metrics, model_selection
from taxolearn.klr import ExpectationResult, FitResult, KernelLogisticClassifier, LearningResult
from taxolearn.learned_coupling import LearnedCoupling
from taxolearn.model_files import load, read_report, save
from taxolearn.pruning import prune
from taxolearn.taxonomy import Taxonomy

__all__ = [
    "ExpectationResult",
    "FitResult",
    "KernelLogisticClassifier",
    "LearnedCoupling",
    "LearningResult",
    "Taxonomy",
    "__version__",
    "datasets",
    "decisions",
    "features",
    "kernels",
    "load",
    "metrics",
    "model_selection",
    "prune",
    "read_report",
    "save",
]

__version__ = version("taxolearn")
