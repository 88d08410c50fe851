"""Warm starts: where a fit ended, in terms of rows and names, and where one with more of them begins.

A solver's point is either the dual coefficients (a row of the data and a class each) or the weights of independent
functions (a feature and a function each; under a tree functions belong to nodes). What the new problem has too is
carried over, by the content of rows and by names. The rest is zero, and that is more than nothing under a tree: the
function of a class is the sum of those of the nodes above it, so a new leaf begins with the function of its parent.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.blocks import Blocks
from taxolearn.fitting.fit import Problem
from taxolearn.kernels.per_block import PerBlock

__all__ = ["SolverPoint", "transfer"]

Floats = npt.NDArray[np.float64]

_LEAST_SHARE = 0.5  # of the rows that must have been there before


@dataclass(frozen=True)
class SolverPoint:
    """Where a fit ended.

    Attributes
    ----------
    space : str
        "coefficients" or "weights".
    values : ndarray
        Coefficients (rows x classes), or the independent functions themselves (features x functions).
    rows : ndarray of int64
        A key of every row, for coefficients.
    names : list
        Of the columns.
    intercepts : dict
        Of the classes, where weights are kept.
    """

    space: str
    values: Floats
    rows: npt.NDArray[np.int64]
    names: list[Any]
    intercepts: dict[Any, float]

    @classmethod
    def of(cls, problem: Problem, space: str, point: Floats) -> "SolverPoint | None":
        """What a later fit needs of the point that this one came to.

        None for weights on learned loadings and on graphs: these change.
        """
        classes = problem.classes_in_core_order()
        if space == "coefficients":
            return cls(space, point.reshape(-1, problem.n_classes), _row_keys(problem.X), classes, {})
        if not problem.class_kernels.coupling.has_functions:
            return None
        scales = _scales(problem)
        weights = point[: -problem.n_classes].reshape(-1, len(scales)) * scales * _feature_scales(problem)
        intercepts = np.sqrt(problem.intercept_variance) * point[-problem.n_classes :]
        of_classes = dict(zip(classes, intercepts, strict=True))
        return cls(space, weights, np.empty(0, dtype=np.int64), list(problem.function_names), of_classes)


def transfer(last: SolverPoint, problem: Problem, space: str) -> Floats | None:
    """The point to begin at, None if there is too little to carry over."""
    if last.space != space:
        return None
    if space == "coefficients":
        return _transfer_coefficients(last, problem)
    if not problem.class_kernels.coupling.has_functions:
        return None
    scales = _scales(problem)
    if last.values.shape[0] != problem.X.shape[1]:
        return None
    weights = np.zeros((problem.X.shape[1], len(scales)))
    old, new = _common(last.names, list(problem.function_names))
    usable = scales[new] > 0
    weights[:, new[usable]] = last.values[:, old[usable]] / scales[new[usable]] / _feature_scales(problem)
    intercepts = np.array([last.intercepts.get(name, 0.0) for name in problem.classes_in_core_order()])
    variance = problem.intercept_variance
    intercepts = intercepts / np.sqrt(variance) if variance > 0 else np.zeros(len(intercepts))
    return np.concatenate([weights.ravel(), intercepts]) if len(new) > 0 else None


def _transfer_coefficients(last: SolverPoint, problem: Problem) -> Floats | None:
    keys = _row_keys(problem.X)
    # The k-th of equal rows meets the k-th of before.
    old_rows, new_rows = _common(_numbered(last.rows), _numbered(keys))
    old, new = _common(last.names, problem.classes_in_core_order())
    if len(new_rows) < _LEAST_SHARE * len(keys) or len(new) == 0:
        return None
    point = np.zeros((len(keys), problem.n_classes))
    point[np.ix_(new_rows, new)] = last.values[np.ix_(old_rows, old)]
    return point.ravel()


def _scales(problem: Problem) -> Floats:
    """Standard deviations of the independent functions: weights times these are the functions themselves."""
    (kernel,) = problem.class_kernels.kernels
    variances = problem.class_kernels.coupling.function_variances(len(problem.function_names))
    return np.sqrt(kernel.split()[0] * variances)


def _feature_scales(problem: Problem) -> Any:
    """What features are multiplied with besides, shape (n_features, 1): variances of blocks, relative to the first."""
    (kernel,) = problem.class_kernels.kernels
    if not isinstance(kernel, PerBlock):
        return 1.0
    relative = [np.sqrt(part.total_variance / kernel.total_variance) for part in kernel.parts]
    return np.repeat(relative, [matrix.shape[1] for matrix in problem.X.matrices])[:, None]


def _common(old: list[Any], new: list[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Places of the names that are in both."""
    place = {name: k for k, name in enumerate(old)}
    pairs = [(place[name], k) for k, name in enumerate(new) if name in place]
    both = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _numbered(keys: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Every key with how many like it came before."""
    seen: dict[int, int] = {}
    out = []
    for key in keys.tolist():
        seen[key] = seen.get(key, -1) + 1
        out.append((key, seen[key]))
    return out


def _row_keys(X: Any) -> npt.NDArray[np.int64]:
    """A number for the content of every row."""
    keys = np.empty(X.shape[0], dtype=np.int64)
    matrices = X.matrices if isinstance(X, Blocks) else (X,)
    for i in range(X.shape[0]):
        content = b"".join(_content(matrix, i) for matrix in matrices)
        keys[i] = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little", signed=True)
    return keys


def _content(X: Any, row: int) -> bytes:
    if not sp.issparse(X):
        return bytes(X[row].tobytes())
    part = slice(X.indptr[row], X.indptr[row + 1])
    return bytes(X.indices[part].astype(np.int64).tobytes() + X.data[part].tobytes())
