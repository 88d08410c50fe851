"""Kernels with values that suit the data: for learning to start from, or to use as they are."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from taxolearn.kernels.inner_product import Cosine, Linear, Polynomial
from taxolearn.kernels.stationary import RBF, Matern, RationalQuadratic

__all__ = [
    "start_cosine",
    "start_linear",
    "start_matern",
    "start_polynomial",
    "start_rational_quadratic",
    "start_rbf",
]

_LINEAR_SCALE = 5.0  # of the kernel between two rows; of one row with itself in Seeger (2008)
_LEAST_COSINE = 0.01  # rows that have nothing in common count as if they had this
_SAMPLE = 512  # rows whose angles are looked at
_SCALE = 10.0  # mean of the diagonal of kernels that bend
_USUAL = (1e-3, 1e3)  # values for which the default bounds leave room
_ROOM = 1e5  # factor to each side that other values get
_EXTREME = 1e100
_ROUNDING = 1e-24  # share of the squared values
_BLOCK = 2**22  # elements of X that are copied at once


def start_linear(X: Any) -> Linear:
    """With a variance by the length of the rows and the angles between them."""
    variance = _LINEAR_SCALE / _usual_cosine(X) / _positive(_mean_square(X))
    return Linear(variance, bounds=_bounds("variance", variance))


def start_cosine(X: Any) -> Cosine:
    """With a variance by the angles between rows."""
    return Cosine(_LINEAR_SCALE / _usual_cosine(X))


def start_polynomial(X: Any) -> Polynomial:
    """Of degree 2, with a scale by the length of the rows."""
    degree, scale = 2, 1.0 / _positive(_mean_square(X))
    return Polynomial(degree, scale, 1.0, _SCALE / 2**degree, bounds=_bounds("scale", scale))


def start_rbf(X: Any) -> RBF:
    """With a length scale by the distances of the rows."""
    return RBF(**_stationary(X))


def start_matern(X: Any) -> Matern:
    """With a length scale by the distances of the rows."""
    return Matern(**_stationary(X))


def start_rational_quadratic(X: Any) -> RationalQuadratic:
    """With a length scale by the distances of the rows."""
    return RationalQuadratic(**_stationary(X))


def _stationary(X: Any) -> dict[str, Any]:
    length_scale = _positive(math.sqrt(_total_variance(X)))
    return {
        "length_scale": length_scale,
        "variance": _SCALE,
        "bounds": _bounds("length_scale", length_scale),
    }


def _positive(number: float) -> float:
    """The number within reason, 1 for zero."""
    return float(np.clip(number, 1.0 / _EXTREME, _EXTREME)) if number > 0 else 1.0


def _usual_cosine(X: Any) -> float:
    """Root mean square of the cosines of the angles between rows, at least 0.01; 1 if no two rows have a direction."""
    some = X[np.unique(np.linspace(0, X.shape[0] - 1, min(_SAMPLE, X.shape[0])).astype(np.intp))]
    rows = normalize(some.astype(np.float64) / (abs(some).max() or 1.0))
    square = np.square(Linear().to_core().matrix(rows))  # by the core, on one thread: NumPy would take all
    n = float(np.trace(square))  # rows that are not zero
    if n < 2:
        return 1.0
    return float(np.sqrt(np.clip((square.sum() - n) / (n * (n - 1)), _LEAST_COSINE**2, 1.0)))


def _bounds(name: str, value: float) -> dict[str, tuple[float, float]]:
    return {} if _USUAL[0] <= value <= _USUAL[1] else {name: (value / _ROOM, value * _ROOM)}


def _mean_square(X: Any, centre: Any = 0.0) -> float:
    """Mean of the squared distances of the rows from a centre; for a sparse matrix, from zero."""
    values = X.data if sp.issparse(X) else X
    scale = float(np.abs(values).max(initial=0.0))  # without it squares might be infinite
    if scale == 0:
        return 0.0
    total = 0.0
    for rows in gen_batches(values.shape[0], max(1, _BLOCK // max(1, values[:1].size))):
        total += float(np.square((values[rows].astype(np.float64) - centre) / scale).sum())
    return total / float(X.shape[0]) * scale * scale


def _total_variance(X: Any) -> float:
    """Sum of the variances of the features; 0 if rounding is all there is."""
    centre = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if sp.issparse(X):
        # What is not stored is as far from the mean as that is from zero.
        stored = np.bincount(X.indices, minlength=X.shape[1])
        squares = np.square(X.data.astype(np.float64) - centre[X.indices]).sum()
        variance = float(squares + (X.shape[0] - stored) @ np.square(centre)) / float(X.shape[0])
    else:
        variance = _mean_square(X, centre)
    return variance if variance > _ROUNDING * _mean_square(X) else 0.0
