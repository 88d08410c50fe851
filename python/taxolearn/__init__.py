"""Classification into large, structured sets of classes, with honest probabilities."""

from importlib.metadata import version

from taxolearn import datasets, decisions, features, kernels, metrics, model_selection
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.estimators.kernel_logistic import ExpectationResult, FitResult, KernelLogisticClassifier, LearningResult
from taxolearn.estimators.prune import prune
from taxolearn.files.models import load, read_report, save
from taxolearn.taxonomy.tree import Taxonomy

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
