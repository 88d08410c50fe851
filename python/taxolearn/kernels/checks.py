"""Whether a matrix from outside can be a kernel matrix."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

__all__ = ["check_positive_semidefinite"]

# Largest difference of mirrored entries, relative to the largest entry.
_ASYMMETRY = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-10}
# An eigenvalue below zero by so much of the largest one may come from entries with seven digits, or from rounding,
# which moves eigenvalues by about sqrt(n) units in the last place of the largest entry; a few times that is allowed.
_NEGATIVE = 1e-6
_UNITS = 4.0
_DENSE = 200  # up to so many rows all eigenvalues are computed
_LEAST_STEPS = 60  # of the Lanczos iteration for more; fewer can settle on zero before they see what is below
_STEPS = 150
_SMALL = 2000  # up to so many rows a second thread would cost more than it gives
_BLOCK = 256  # rows that are looked at together
_SAFE = (1e-15, 1e15)  # largest entries with which the arithmetic stays far from its limits

Matrix = npt.NDArray[Any]


def check_positive_semidefinite(K: Any, name: str, random_state: Any = None, *, single: bool = False) -> None:
    """Raise a ``ValueError`` unless the matrix is square, finite, symmetric and not indefinite.

    The smallest eigenvalue of a large matrix is estimated from above by a few products with it. So the check never
    blames a good matrix, but may miss a negative part that is tiny.

    Parameters
    ----------
    K : array of shape (n, n)
        The matrix, float32 or float64. It is not changed, and copied only if its numbers are extreme.
    name : str
        What to call it.
    random_state : int, RandomState instance or None, default=None
        Seeds the start vector of the estimate; None is the same as 0.
    single : bool, default=False
        Whether entries may come from single precision, whatever their type is now.
    """
    K = np.asarray(K)
    if K.dtype not in _ASYMMETRY:
        K = K.astype(np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} has shape {K.shape}, expected a square matrix")
    largest = _check_finite(K, name)
    if largest < np.finfo(K.dtype).tiny:
        return
    _check_symmetric(K, name, largest, _ASYMMETRY[np.dtype(np.float32) if single else K.dtype])
    scale = 1.0
    if not _SAFE[0] <= largest <= _SAFE[1]:
        scale = largest
        K = K / K.dtype.type(largest)
    with threadpool_limits(1 if len(K) <= _SMALL else None, "blas"):
        low, high = _extreme_eigenvalues(K, 0 if random_state is None else random_state)
    tolerance = max(_NEGATIVE, _UNITS * np.sqrt(len(K)) * float(np.finfo(K.dtype).eps))
    if low < -tolerance * max(high, -low):
        low, high = low * scale, high * scale
        raise ValueError(
            f"{name} is not positive semidefinite: its smallest eigenvalue is about {low:.3g}, its largest {high:.3g}. "
            f"Add at least {-low:.3g} to its diagonal, or set its negative eigenvalues to 0 (numpy.linalg.eigh)"
        )


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))


def _check_finite(K: Matrix, name: str) -> float:
    """The largest magnitude of an entry."""
    largest = 0.0
    for rows in _blocks(len(K)):
        magnitude = np.abs(K[rows])
        if not np.isfinite(magnitude).all():
            i, j = np.argwhere(~np.isfinite(magnitude))[0].tolist()
            i += rows.start
            raise ValueError(f"{name} has the entry {K[i, j]} at ({i}, {j}), expected finite numbers")
        largest = max(largest, float(magnitude.max(initial=0.0)))
    return largest


def _check_symmetric(K: Matrix, name: str, largest: float, allowed: float) -> None:
    worst, place = 0.0, (0, 0)
    for rows in _blocks(len(K)):
        # Half of each, so that the difference of large numbers stays finite.
        difference = np.abs(0.5 * K[rows, rows.start :] - 0.5 * K[rows.start :, rows].T)
        at = int(difference.argmax())
        if difference.flat[at] > worst:
            i, j = divmod(at, difference.shape[1])
            worst, place = float(difference.flat[at]), (rows.start + i, rows.start + j)
    if worst > 0.5 * allowed * largest:
        i, j = place
        raise ValueError(
            f"{name} is not symmetric: entry ({i}, {j}) is {K[i, j]:.9g} and ({j}, {i}) is {K[j, i]:.9g}, a difference "
            f"of {2 * worst:.3g}. If that is rounding, use (K + K.T) / 2"
        )


def _extreme_eigenvalues(K: Matrix, random_state: Any) -> tuple[float, float]:
    """The smallest eigenvalue, or a number above it, and the largest, or a number below it."""
    n = len(K)
    if n <= _DENSE:
        values = np.linalg.eigvalsh(K.astype(np.float64))
        return float(values[0]), float(values[-1])
    # Lanczos iteration with full orthogonalization. Its Ritz values lie between the extreme eigenvalues and approach
    # these first (Parlett 1980).
    basis = np.zeros((_STEPS, n))
    diagonal, beside = np.zeros(_STEPS), np.zeros(_STEPS)
    vector = check_random_state(random_state).standard_normal(n)
    basis[0] = vector / np.linalg.norm(vector)
    for step in range(_STEPS):
        vector = (K @ basis[step].astype(K.dtype)).astype(np.float64)
        diagonal[step] = basis[step] @ vector
        for _ in range(2):
            vector -= basis[: step + 1].T @ (basis[: step + 1] @ vector)
        beside[step] = np.linalg.norm(vector)
        exhausted = beside[step] <= 1e-10 * np.abs(diagonal[: step + 1]).max()
        last = exhausted or step + 1 == _STEPS
        if last or (step >= _LEAST_STEPS and step % 10 == 0):
            off = beside[:step]
            values, vectors = np.linalg.eigh(np.diag(diagonal[: step + 1]) + np.diag(off, 1) + np.diag(off, -1))
            if last or beside[step] * abs(vectors[-1, 0]) <= 0.1 * _NEGATIVE * np.abs(values).max():
                break
        basis[step + 1] = vector / beside[step]
    return float(values[0]), float(values[-1])
