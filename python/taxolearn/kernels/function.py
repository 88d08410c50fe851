"""Kernels that are Python functions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from taxolearn import _core
from taxolearn.kernels.base import Floats, Kernel, Parameter
from taxolearn.kernels.leaf import Leaf, exact_log

__all__ = ["Function"]

_DIAGONAL_BLOCK = 64  # rows of a function's matrix of which only the diagonal is kept


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

    is_native = False

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

    def to_core(self) -> _core.Kernel:
        raise TypeError(f"{self!r} is evaluated in Python, the core does not know it; see is_native")

    def parameters(self) -> list[Parameter]:
        return [*self._own_parameters(), *super().parameters()]

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

    def with_logs(self, logs: Sequence[float]) -> Kernel:
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
