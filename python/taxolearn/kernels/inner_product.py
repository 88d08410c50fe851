"""Kernels of inner products: linear, cosine and polynomial."""

from __future__ import annotations

from dataclasses import dataclass

from taxolearn import _core
from taxolearn.kernels.leaf import Leaf, Number
from taxolearn.validation import check_number

__all__ = ["Cosine", "Linear", "Polynomial"]


@dataclass(frozen=True, repr=False)
class Linear(Leaf):
    """The linear kernel ``variance * x · x'``.

    Parameters
    ----------
    variance : float, default=1.0
        Prior variance of every weight. Larger values fit the data more closely; with scikit-learn's
        ``LogisticRegression`` it corresponds to ``C``.
    bounds : mapping from names of parameters to pairs (low, high), optional
        Where to search for a parameter that is learned. By default from 1e-5 to 1e5, widened to hold the value.
    fixed : bool, str or sequence of str, default=False
        Names of the parameters that are not learned; True for all.

    Examples
    --------
    >>> from taxolearn.kernels import Linear
    >>> Linear(variance=5)
    Linear(variance=5.0)
    """

    variance: float = 1.0

    _core_kernel = _core.LinearKernel


@dataclass(frozen=True, repr=False)
class Cosine(Leaf):
    """The cosine of the angle between two rows, ``variance * x · x' / (|x| |x'|)``; 0 where a row is 0.

    Parameters
    ----------
    variance : float, default=1.0
        Value for equal rows.
    bounds, fixed
        As in ``Linear``.
    """

    variance: float = 1.0

    _core_kernel = _core.CosineKernel


@dataclass(frozen=True, repr=False)
class Polynomial(Leaf):
    """The polynomial kernel ``variance * (scale * x · x' + offset)^degree``.

    Parameters
    ----------
    degree : int, default=2
        At least 1. Not learned.
    scale : float, default=1.0
        Factor of the inner product.
    offset : float, default=1.0
        At least 0; larger values give more weight to the lower degrees. An offset of 0 stays 0: it counts as fixed.
    variance : float, default=1.0
        Factor of the whole.
    bounds, fixed
        As in ``Linear``.
    """

    degree: int = 2
    scale: float = 1.0
    offset: float = 1.0
    variance: float = 1.0

    _names = ("scale", "offset", "variance")
    _core_kernel = _core.PolynomialKernel

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("degree", check_number("Polynomial: degree", self.degree, least=1, integer=True))

    def _check_value(self, owner: str, name: str, value: object) -> Number:
        return float(check_number(f"{owner}: {name}", value, least=0, strict=name != "offset"))
