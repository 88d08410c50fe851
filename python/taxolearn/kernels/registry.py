"""The kernels that there are: their names, the values they start from, and those that files can hold.

Whatever lists kernels (the estimator's ``kernel``, the command line, model files) reads it from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taxolearn.kernels.base import Kernel
from taxolearn.kernels.function import Function
from taxolearn.kernels.initial import (
    start_cosine,
    start_linear,
    start_matern,
    start_polynomial,
    start_rational_quadratic,
    start_rbf,
)
from taxolearn.kernels.inner_product import Cosine, Linear, Polynomial
from taxolearn.kernels.leaf import Leaf
from taxolearn.kernels.precomputed import Precomputed
from taxolearn.kernels.stationary import RBF, Matern, RationalQuadratic

__all__ = ["STORABLE", "as_kernel", "kernel_names", "start_kernel"]


@dataclass(frozen=True)
class _Kind:
    """A kernel that can be given by its name.

    Attributes
    ----------
    kernel : type
        The class.
    start : callable
        From checked inputs to the kernel with values that suit them.
    """

    kernel: type[Leaf]
    start: Callable[[Any], Leaf]


_KINDS = {
    "linear": _Kind(Linear, start_linear),
    "rbf": _Kind(RBF, start_rbf),
    "matern": _Kind(Matern, start_matern),
    "rational_quadratic": _Kind(RationalQuadratic, start_rational_quadratic),
    "cosine": _Kind(Cosine, start_cosine),
    "polynomial": _Kind(Polynomial, start_polynomial),
}

# Kernels that model files hold, by the names of their classes.
STORABLE: dict[str, type[Leaf]] = {kind.kernel.__name__: kind.kernel for kind in _KINDS.values()}
STORABLE["Precomputed"] = Precomputed


def kernel_names() -> tuple[str, ...]:
    """Names that stand for kernels."""
    return tuple(_KINDS)


def start_kernel(name: str, X: Any) -> Kernel:
    """The kernel of that name with values that suit the inputs.

    For ``Linear`` and ``Cosine`` the mean of ``k(x, x)`` becomes 5 divided by the root mean square cosine of the angles
    between rows: the sparser the rows, the less they tell about each other, and the larger the variances that learning
    ends with. The mean is 10 for the others, for ``Polynomial`` at rows of root mean square length. A length scale is
    the root of the summed variances of the features, which is the root mean square distance of two rows divided by the
    root of 2. Where inputs are zero, or do not vary, these count as 1.

    Parameters
    ----------
    name : {"linear", "rbf", "matern", "rational_quadratic", "cosine", "polynomial"}
        Which kernel.
    X : array or CSR matrix of shape (n_samples, n_features)
        Checked inputs.
    """
    return _kind(name, "kernel").start(X)


def as_kernel(value: object, name: str = "kernel") -> Kernel:
    """The value, if it is a kernel; "rbf" means ``RBF()`` and so on, a callable its ``Function``."""
    if isinstance(value, str):
        return _kind(value, name).kernel()
    if isinstance(value, Kernel):
        return value
    if isinstance(value, type):
        raise TypeError(f"{name} is the class {value.__name__}, expected a kernel: {value.__name__}(...)")
    if callable(value):
        return Function(value)
    raise TypeError(
        f"{name} must be one of taxolearn.kernels, a name or a callable k(X, Y), got {type(value).__name__}"
    )


def _kind(value: str, name: str) -> _Kind:
    if value not in _KINDS:
        raise ValueError(f"{name} is {value!r}, expected a kernel or one of {', '.join(map(repr, _KINDS))}")
    return _KINDS[value]
