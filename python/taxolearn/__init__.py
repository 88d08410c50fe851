"""Classification into large, structured sets of classes, with honest probabilities."""

from importlib.metadata import version

from taxolearn import datasets, kernels
from taxolearn.klr import FitResult, KernelLogisticClassifier

__all__ = ["FitResult", "KernelLogisticClassifier", "__version__", "datasets", "kernels"]

__version__ = version("taxolearn")
