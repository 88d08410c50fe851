"""Classification into large, structured sets of classes, with honest probabilities."""

from importlib.metadata import version

from taxolearn import kernels
from taxolearn.klr import FitResult, KernelLogisticClassifier

__all__ = ["FitResult", "KernelLogisticClassifier", "__version__", "kernels"]

__version__ = version("taxolearn")
