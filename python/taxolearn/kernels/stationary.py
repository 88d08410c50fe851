"""Kernels of distances between rows, with one length scale or one per feature."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from taxolearn import _core
from taxolearn.kernels.leaf import Leaf, Number, check_length_scale, check_positive

__all__ = ["RBF", "Matern", "RationalQuadratic"]

_MATERN_FORMS = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}


@dataclass(frozen=True, repr=False)
class _Stationary(Leaf):
    """A function of the distance ``r^2 = sum_d (x_d - x'_d)^2 / length_scale_d^2``."""

    _names: ClassVar[tuple[str, ...]] = ("length_scale", "variance")

    @property
    @abstractmethod
    def length_scale(self) -> Number: ...

    @property
    @abstractmethod
    def _form(self) -> str:
        """The name of the function in the core."""

    def _check_value(self, owner: str, name: str, value: object) -> Number:
        if name == "length_scale":
            return check_length_scale(owner, value)
        return super()._check_value(owner, name, value)

    def check_reads(self, X: Any) -> None:
        super().check_reads(X)
        if isinstance(self.length_scale, tuple) and len(self.length_scale) != X.shape[1]:
            raise ValueError(
                f"{type(self).__name__}: length_scale has {len(self.length_scale)} values, X has {X.shape[1]} "
                "features; give one number, or one per feature"
            )

    def to_core(self) -> _core.Kernel:
        scales = np.atleast_1d(np.array(self.length_scale))
        return _core.StationaryKernel(self._form, scales, self.variance, getattr(self, "alpha", 1.0))


@dataclass(frozen=True, repr=False)
class RBF(_Stationary):
    """The squared exponential kernel ``variance * exp(-r^2 / 2)``, also called Gaussian.

    ``r^2 = sum_d (x_d - x'_d)^2 / length_scale_d^2``.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1.0
        Distance over which functions change: one number, or one per feature.
    variance : float, default=1.0
        Variance of the functions.
    bounds : mapping from names of parameters to pairs (low, high), optional
        Where to search for a parameter that is learned. By default from 1e-5 to 1e5, widened to hold the value.
    fixed : bool, str or sequence of str, default=False
        Names of the parameters that are not learned; True for all.

    Examples
    --------
    >>> from taxolearn.kernels import RBF
    >>> RBF([1, 10], fixed="variance")
    RBF(length_scale=(1.0, 10.0), variance=1.0, fixed='variance')
    >>> RBF(2.0)([[0.0], [2.0]]).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """

    length_scale: Any = 1.0
    variance: float = 1.0

    _form = "rbf"


@dataclass(frozen=True, repr=False)
class Matern(_Stationary):
    """The Matern kernel of smoothness ``nu``, for functions rougher than those of ``RBF``.

    ``variance * exp(-r)`` for 1/2, ``variance * (1 + a) exp(-a)`` with ``a = sqrt(3) r`` for 3/2 and
    ``variance * (1 + a + a^2 / 3) exp(-a)`` with ``a = sqrt(5) r`` for 5/2; ``r`` as in ``RBF``.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1.0
        Distance over which functions change: one number, or one per feature.
    nu : {0.5, 1.5, 2.5}, default=2.5
        Smoothness. Not learned.
    variance : float, default=1.0
        Variance of the functions.
    bounds, fixed
        As in ``RBF``.
    """

    length_scale: Any = 1.0
    nu: float = 2.5
    variance: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        nu = check_positive("Matern: nu", self.nu)
        if nu not in _MATERN_FORMS:
            raise ValueError(f"Matern: nu is {self.nu}, expected 0.5, 1.5 or 2.5")
        self._set("nu", nu)

    @property
    def _form(self) -> str:
        return _MATERN_FORMS[self.nu]


@dataclass(frozen=True, repr=False)
class RationalQuadratic(_Stationary):
    """The rational quadratic kernel ``variance * (1 + r^2 / (2 alpha))^-alpha``, a mixture of ``RBF`` kernels.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1.0
        Distance over which functions change: one number, or one per feature; ``r`` as in ``RBF``.
    alpha : float, default=1.0
        The smaller, the more the length scales of the mixture differ.
    variance : float, default=1.0
        Variance of the functions.
    bounds, fixed
        As in ``RBF``.
    """

    length_scale: Any = 1.0
    alpha: float = 1.0
    variance: float = 1.0

    _names = ("length_scale", "alpha", "variance")
    _form = "rational_quadratic"
