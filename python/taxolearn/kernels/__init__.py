"""Covariance functions of the inputs: values with parameters on log scale, shared or per class."""

from taxolearn.kernels.functions import (
    RBF,
    Cosine,
    Function,
    Kernel,
    Linear,
    Matern,
    PerClass,
    PerGroup,
    PerNode,
    Polynomial,
    Precomputed,
    Product,
    RationalQuadratic,
    Sum,
    as_kernel,
)

__all__ = [
    "RBF",
    "Cosine",
    "Function",
    "Kernel",
    "Linear",
    "Matern",
    "PerClass",
    "PerGroup",
    "PerNode",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Sum",
    "as_kernel",
]
