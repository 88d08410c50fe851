"""Kernels: immutable values that describe a covariance function and its parameters.

All parameters live on log scale with bounds, and can be fixed. Kernels add, multiply and scale:
``RBF(2.0) + 0.1 * Linear()``. The estimator takes one kernel shared by all classes, or ``PerClass``, ``PerNode`` and
``PerGroup`` for kernels of their own. ``PerBlock`` has one for every block of the inputs. ``Subsequence``,
``Spectrum`` and ``WeightedDegree`` compare strings.
"""

from taxolearn.kernels.argument import PerClass, PerGroup, PerNode, as_kernel, kernel_names
from taxolearn.kernels.base import Kernel, Product, Sum
from taxolearn.kernels.function import Function
from taxolearn.kernels.inner_product import Cosine, Linear, Polynomial
from taxolearn.kernels.per_block import PerBlock
from taxolearn.kernels.precomputed import Precomputed
from taxolearn.kernels.stationary import RBF, Matern, RationalQuadratic
from taxolearn.kernels.strings import Spectrum, Subsequence, WeightedDegree

__all__ = [
    "RBF",
    "Cosine",
    "Function",
    "Kernel",
    "Linear",
    "Matern",
    "PerBlock",
    "PerClass",
    "PerGroup",
    "PerNode",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Spectrum",
    "Subsequence",
    "Sum",
    "WeightedDegree",
    "as_kernel",
    "kernel_names",
]
