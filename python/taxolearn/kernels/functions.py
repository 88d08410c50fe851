"""Kernels: immutable values that describe a covariance function and its parameters.

All parameters live on log scale with bounds, and can be fixed. Kernels add, multiply and scale:
``RBF(2.0) + 0.1 * Linear()``. The estimator takes one kernel shared by all classes, or ``PerClass``, ``PerNode`` and
``PerGroup`` for kernels of their own.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from taxolearn import _core
from taxolearn.kernels.base import Floats, Kernel, Product, Sum
from taxolearn.kernels.leaf import Leaf, Number
from taxolearn.kernels.parameters import (
    Parameter,
    Table,
    check_length_scale,
    check_positive,
    exact_log,
)
from taxolearn.validation import check_choice, check_number

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

_MATERN_FORMS = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}
_SHARES = ("nothing", "correlation", "equal")
_DIAGONAL_BLOCK = 64  # rows of a function's matrix of which only the diagonal is kept


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

    def to_core(self) -> _core.Kernel:
        return _core.LinearKernel(self.variance)


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

    def to_core(self) -> _core.Kernel:
        return _core.CosineKernel(self.variance)


@dataclass(frozen=True, repr=False)
class Precomputed(Leaf):
    """A kernel matrix in place of features: ``variance * X[i, j]``.

    Fit with the square matrix of the training points, predict with one row per new point: its kernel values with the
    training points.

    Parameters
    ----------
    variance : float, default=1.0
        Factor of the matrix.
    bounds, fixed
        As in ``Linear``.
    """

    variance: float = 1.0

    @property
    def is_precomputed(self) -> bool:
        return True

    def to_core(self) -> _core.Kernel:
        return _core.PrecomputedKernel(self.variance)


@dataclass(frozen=True, repr=False)
class _Stationary(Leaf):
    """A function of the distance ``r^2 = sum_d (x_d - x'_d)^2 / length_scale_d^2``."""

    _names: ClassVar[tuple[str, ...]] = ("length_scale", "variance")

    @property
    @abstractmethod
    def length_scale(self) -> Number: ...

    def _check_value(self, owner: str, name: str, value: object) -> Number:
        if name == "length_scale":
            return check_length_scale(owner, value)
        return check_positive(owner, name, value)

    def check_features(self, n_features: int) -> None:
        if isinstance(self.length_scale, tuple) and len(self.length_scale) != n_features:
            raise ValueError(
                f"{type(self).__name__}: length_scale has {len(self.length_scale)} values, X has {n_features} "
                "features; give one number, or one per feature"
            )

    def _stationary(self, form: str, alpha: float = 1.0) -> _core.Kernel:
        return _core.StationaryKernel(form, np.atleast_1d(np.array(self.length_scale)), self.variance, alpha)


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

    def to_core(self) -> _core.Kernel:
        return self._stationary("rbf")


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
        nu = check_positive("Matern", "nu", self.nu)
        if nu not in _MATERN_FORMS:
            raise ValueError(f"Matern: nu is {self.nu}, expected 0.5, 1.5 or 2.5")
        self._set("nu", nu)

    def to_core(self) -> _core.Kernel:
        return self._stationary(_MATERN_FORMS[self.nu])


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

    def to_core(self) -> _core.Kernel:
        return self._stationary("rational_quadratic", self.alpha)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("degree", check_number("Polynomial: degree", self.degree, least=1, integer=True))

    def _check_value(self, owner: str, name: str, value: object) -> Number:
        return check_positive(owner, name, value, or_zero=name == "offset")

    def to_core(self) -> _core.Kernel:
        return _core.PolynomialKernel(self.degree, self.scale, self.offset, self.variance)


@dataclass(frozen=True, repr=False)
class Function(Leaf):
    """Any function ``k(X, Y)`` that returns a kernel matrix, times a variance.

    Such are the functions of ``sklearn.metrics.pairwise`` and the kernels of ``sklearn.gaussian_process.kernels``. The
    free parameters of the latter become parameters here: they lead ``theta``, with their own bounds, and can be fixed
    together by ``fixed="function"``. Products of matrices are slower than with a kernel of this module.

    Parameters
    ----------
    function : callable
        Takes two arrays of rows, returns the matrix between them: symmetric and positive semidefinite for equal rows.
        It is copied if it has parameters.
    variance : float, default=1.0
        Factor of the matrix.
    bounds : mapping, optional
        Bounds of "variance", as in ``Linear``.
    fixed : bool, str or sequence of str, default=False
        Of "function" and "variance", those that are not learned.

    Examples
    --------
    >>> from sklearn.metrics.pairwise import chi2_kernel
    >>> from taxolearn.kernels import Function
    >>> 2.0 * Function(chi2_kernel)
    Function(chi2_kernel, variance=2.0)
    """

    function: Any
    variance: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.function, Kernel) or not callable(self.function):
            raise TypeError(
                f"Function: function must be a callable k(X, Y) that is no kernel of taxolearn, got {self.function!r}"
            )
        if isinstance(self.function, type):
            raise TypeError(f"Function: function is the class {self.function.__name__}, expected an instance of it")
        super().__post_init__()
        if self._has_theta:
            self._set("function", copy.deepcopy(self.function))

    @property
    def _has_theta(self) -> bool:
        return all(hasattr(self.function, name) for name in ("theta", "bounds", "clone_with_theta"))

    @property
    def _fixable(self) -> tuple[str, ...]:
        return ("function", "variance") if self._has_theta else ("variance",)

    def __hash__(self) -> int:
        try:
            return hash((self.function, self.variance, self.fixed, self.bounds))
        except TypeError:  # scikit-learn's kernels compare by value and have no hash
            return hash((type(self.function), self.variance, self.fixed, self.bounds))

    def __repr__(self) -> str:
        return self._written([self._title, f"variance={self.variance!r}"])

    @property
    def _title(self) -> str:
        # Without a name it cannot be pasted; the brackets keep it from being read as a kernel of this module.
        return getattr(self.function, "__name__", f"<{self.function!r}>")

    @property
    def is_native(self) -> bool:
        return False

    def to_core(self) -> _core.Kernel:
        raise TypeError(f"{self!r} is evaluated in Python, the core does not know it; see is_native")

    def _parameters(self) -> list[Parameter]:
        return [*self._own_parameters(), *super()._parameters()]

    def _own_parameters(self) -> list[Parameter]:
        if not self._has_theta:
            return []
        theta = np.asarray(self.function.theta, dtype=np.float64)
        bounds = np.asarray(self.function.bounds, dtype=np.float64).reshape(-1, 2)
        free = "function" not in self._fixed
        return [
            Parameter(f"function.{name}", log, min(low, log), max(high, log), free)
            for name, log, (low, high) in zip(self._own_names(len(theta)), theta.tolist(), bounds.tolist(), strict=True)
        ]

    def _own_names(self, count: int) -> list[str]:
        names = []
        for hyperparameter in getattr(self.function, "hyperparameters", ()):
            name, elements = hyperparameter.name, hyperparameter.n_elements
            if not hyperparameter.fixed:
                names += [name] if elements == 1 else [f"{name}[{k}]" for k in range(elements)]
        return names if len(names) == count else [f"theta[{k}]" for k in range(count)]

    def _with_logs(self, logs: Sequence[float]) -> Kernel:
        own = len(self._own_parameters())
        function = self.function
        if own > 0 and not np.array_equal(function.theta, logs[:own]):
            function = function.clone_with_theta(np.array(logs[:own]))
        return self._changed(function=function, variance=exact_log(logs[own], self.variance))

    def _check_matrix(self, matrix: Any, shape: tuple[int, ...]) -> Floats:
        matrix = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
        if np.iscomplexobj(matrix):
            raise TypeError(f"{self!r} returned complex numbers, expected real ones")
        checked: Floats = matrix.astype(np.float64, copy=False)
        if checked.shape != shape:
            raise ValueError(f"{self!r} returned an array of shape {checked.shape}, expected {shape}")
        if not np.isfinite(checked).all():
            raise ValueError(f"{self!r} returned values that are not finite")
        return checked

    def _call(self, X: Any, Y: Any) -> Any:
        if self._has_theta and sp.issparse(X):
            raise TypeError(f"X is sparse, but {self!r} needs dense rows; use X.toarray() or another kernel")
        if Y is None:
            return self.function(X) if self._has_theta else self.function(X, X)
        return self.function(X, Y)

    def _matrix(self, X: Any, Y: Any, n_threads: int) -> Floats:
        shape = (X.shape[0], (X if Y is None else Y).shape[0])
        return self.variance * self._check_matrix(self._call(X, Y), shape)

    def _diag(self, X: Any) -> Floats:
        if self._has_theta and hasattr(self.function, "diag") and not sp.issparse(X):
            return self.variance * self._check_matrix(self.function.diag(X), (X.shape[0],))
        starts = range(0, X.shape[0], _DIAGONAL_BLOCK)
        blocks = (self._matrix(X[start : start + _DIAGONAL_BLOCK], None, 1) for start in starts)
        return np.concatenate([block.diagonal() for block in blocks])

    def _gradient(self, X: Any, Q: Floats, n_threads: int) -> Floats:
        by_variance = (Q * self._matrix(X, None, n_threads)).sum()
        own = self._own_parameters()
        if not any(parameter.free for parameter in own):
            return np.array([0.0] * len(own) + [by_variance])
        derivatives = self.function(X, eval_gradient=True)[1]
        derivatives = self._check_matrix(derivatives, (*Q.shape, len(own)))
        return np.append(self.variance * np.tensordot(Q, derivatives, axes=2), by_variance)


_NAMED: dict[str, type[Leaf]] = {
    "linear": Linear,
    "rbf": RBF,
    "matern": Matern,
    "rational_quadratic": RationalQuadratic,
    "cosine": Cosine,
    "polynomial": Polynomial,
}


def as_kernel(value: object, name: str = "kernel") -> Kernel:
    """The value, if it is a kernel; None means ``Linear()``, "rbf" ``RBF()`` and so on, a callable its ``Function``."""
    if value is None:
        return Linear()
    if isinstance(value, str):
        if value not in _NAMED:
            raise ValueError(f"{name} is {value!r}, expected a kernel or one of {', '.join(map(repr, _NAMED))}")
        return _NAMED[value]()
    if isinstance(value, Kernel):
        return value
    if isinstance(value, type):
        raise TypeError(f"{name} is the class {value.__name__}, expected a kernel: {value.__name__}(...)")
    if callable(value):
        return Function(value)
    raise TypeError(f"{name} must be one of taxolearn.kernels or a callable k(X, Y), got {type(value).__name__}")


def _checked(value: object, name: str) -> Kernel | str:
    """The value as a kernel, or the name of one as it is: it may start from the data."""
    kernel = as_kernel(value, name)
    return value if isinstance(value, str) else kernel


@dataclass(frozen=True, repr=False)
class _Own:
    """Kernels of their own for names of some kind."""

    kernel: Any = None
    share: str = field(default="nothing", kw_only=True)

    _kind: ClassVar[tuple[str, str]]

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if isinstance(self.kernel, Mapping):
            if not self.kernel:
                raise ValueError(f"{owner}: the mapping is empty, expected a kernel for every {self._kind[0]}")
            kernels = {name: _checked(kernel, f"{owner}[{name!r}]") for name, kernel in self.kernel.items()}
            object.__setattr__(self, "kernel", Table(kernels))
        else:
            object.__setattr__(self, "kernel", _checked(self.kernel, f"{owner}: kernel"))
        check_choice(f"{owner}: share", self.share, _SHARES)
        if self.share == "correlation" and isinstance(self.kernel, Table):
            self._check_one_correlation()

    def _check_one_correlation(self) -> None:
        (first, kernel), *others = self.kernel.items()
        for name, other in others:
            if as_kernel(other).split()[1] != as_kernel(kernel).split()[1]:
                raise ValueError(
                    f'{type(self).__name__}: share="correlation" needs kernels that differ in their variance alone, '
                    f"but {first!r} has {kernel!r} and {name!r} has {other!r}"
                )

    def __repr__(self) -> str:
        share = "" if self.share == "nothing" else f", share={self.share!r}"
        return f"{type(self).__name__}({self.kernel!r}{share})"

    def assign(self, names: Sequence[Hashable]) -> tuple[list[Kernel], list[int], list[float]]:
        """Kernels for names.

        Returns
        -------
        units : list of Kernel
            The kernels to be stored, of variance 1 (see ``Kernel.split``).
        index : list of int
            Which of them each name has.
        variances : list of float
            The variance of each name.
        """
        if isinstance(self.kernel, Table):
            self._check_known(names)
            parts = [as_kernel(self.kernel[name]).split() for name in names]
        else:
            parts = [as_kernel(self.kernel).split()] * len(names)
        variances = [variance for variance, _ in parts]
        if self.share == "nothing":
            return [unit for _, unit in parts], list(range(len(names))), variances
        places: dict[Kernel, int] = {}
        index = [places.setdefault(unit, len(places)) for _, unit in parts]
        return list(places), index, variances

    def _check_known(self, names: Sequence[Hashable]) -> None:
        wanted = set(names)
        missing = [name for name in names if name not in self.kernel]
        unknown = [name for name in self.kernel if name not in wanted]
        for wrong, problem in ((missing, "has no kernel for"), (unknown, "has kernels for unknown")):
            if wrong:
                shown = ", ".join(map(repr, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
                raise ValueError(f"{type(self).__name__} {problem} {self._kind[len(wrong) > 1]} {shown}")


@dataclass(frozen=True, repr=False)
class PerClass(_Own):
    """Kernels of their own for the classes.

    Parameters
    ----------
    kernel : Kernel, name, callable or mapping from labels to these, default=None
        A single kernel gives every class a copy of its own, a mapping each class its kernel. None means ``Linear()``. A
        name like "rbf" is a kernel whose values are found in the data where they are learned, else the defaults.
    share : {"nothing", "correlation", "equal"}, default="nothing"
        What the classes have in common: "nothing", so that parameters of equal kernels are learned apart;
        "correlation", where only the variances are their own; or "equal", by which kernels that differ in their
        variance alone share their correlation.

    Examples
    --------
    >>> from taxolearn.kernels import RBF, Linear, PerClass
    >>> own = PerClass({"a": RBF(2.0), "b": 3.0 * RBF(2.0), "c": Linear()}, share="equal")
    >>> units, index, variances = own.assign(["a", "b", "c"])
    >>> len(units), index, variances
    (2, [0, 0, 1], [1.0, 3.0, 1.0])
    """

    _kind = ("class", "classes")


@dataclass(frozen=True, repr=False)
class PerNode(_Own):
    """Kernels of their own for the nodes of the taxonomy below the root.

    Parameters
    ----------
    kernel : Kernel, callable or mapping from names of nodes to these, default=None
        As in ``PerClass``.
    share : {"nothing", "correlation", "equal"}, default="nothing"
        As in ``PerClass``.
    """

    _kind = ("node", "nodes")


@dataclass(frozen=True, repr=False)
class PerGroup(_Own):
    """Kernels of their own for the groups of nodes that the estimator's ``tying`` makes.

    Parameters
    ----------
    kernel : Kernel, callable or mapping from names of groups to these, default=None
        As in ``PerClass``.
    share : {"nothing", "correlation", "equal"}, default="nothing"
        As in ``PerClass``.
    """

    _kind = ("group", "groups")
