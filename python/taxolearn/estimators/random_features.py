"""Random features of dense points: cosines whose products are a radial kernel (Rahimi, Recht 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from taxolearn.validation import check_choice, check_number

__all__ = ["RandomFeatures", "best_bandwidth", "check_random_features"]

Floats = npt.NDArray[np.float64]

_FREQUENCIES = ("gaussian", "cauchy")
_MOST_CLASSES, _MOST_ROWS = 100, 1200  # that a bandwidth is chosen by
_FACTORS = 2.0 ** np.arange(-4, 3)  # of the median distance
_RIDGES = 10.0 ** np.arange(-4, 2)


@dataclass(frozen=True)
class RandomFeatures:
    """``phi(z) = sqrt(2 / m) cos(z F / bandwidth + shift)``, in single precision.

    With Gaussian frequencies F, products approximate ``exp(-|z - z'|^2 / (2 bandwidth^2))``; with Cauchy ones
    ``exp(-|z - z'|_1 / bandwidth)``.
    """

    frequencies: npt.NDArray[np.float32]
    shift: npt.NDArray[np.float32]
    bandwidth: float

    @classmethod
    def draw(cls, kind: str, count: int, n_inputs: int, bandwidth: float, random: Any) -> RandomFeatures:
        """Frequencies of this kind."""
        shape = (n_inputs, count)
        frequencies = random.standard_normal(shape) if kind == "gaussian" else random.standard_cauchy(shape)
        shift = random.uniform(0.0, 2.0 * np.pi, count)
        return cls(frequencies.astype(np.float32), shift.astype(np.float32), bandwidth)

    def transform(self, Z: Floats) -> npt.NDArray[np.float32]:
        """The features of points, of shape (n, m)."""
        # A few Cauchy frequencies are so large that the argument needs double precision.
        angles = (Z / self.bandwidth) @ self.frequencies.astype(np.float64) + self.shift
        return np.asarray(np.sqrt(2.0 / len(self.shift)) * np.cos(angles), dtype=np.float32)


def check_random_features(value: Any) -> tuple[str, int] | None:
    """The kind and the number of features, or None."""
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f'random_features must be None or a pair like ("gaussian", 4000), got {value!r}')
    kind = check_choice("random_features[0]", value[0], _FREQUENCIES)
    return kind, check_number("random_features[1]", value[1], least=1, integer=True)


def best_bandwidth(kind: str, Z: Floats, labels: npt.NDArray[Any], random: Any) -> float:
    """The bandwidth of the least squared error of labels that are left out one at a time.

    Kernel ridge regression of indicators on a sample of rows of some classes, in closed form for a path of ridges:
    with the kernel matrix K and ``A = (K + ridge)^-1``, the error of row i is ``(A Y)_i / A_ii``.
    """
    rows = _sample(labels, random)
    Z, Y = Z[rows], (labels[rows][:, None] == np.unique(labels[rows])[None, :]).astype(np.float64)
    Y -= Y.mean(axis=0)
    distances = cdist(Z, Z, "sqeuclidean" if kind == "gaussian" else "cityblock")
    typical = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
    if kind == "gaussian":
        typical = float(np.sqrt(typical))
    errors = []
    for factor in _FACTORS:
        h = factor * typical
        values, vectors = np.linalg.eigh(np.exp(-distances / (2 * h * h) if kind == "gaussian" else -distances / h))
        projected = vectors.T @ Y
        best = np.inf
        for ridge in _RIDGES:
            inverse = 1.0 / (np.maximum(values, 0.0) + ridge)
            left_out = (vectors @ (inverse[:, None] * projected)) / ((vectors**2) @ inverse)[:, None]
            best = min(best, float((left_out**2).sum()))
        errors.append(best)
    return float(_FACTORS[int(np.argmin(errors))] * typical)


def _sample(labels: npt.NDArray[Any], random: Any) -> npt.NDArray[np.intp]:
    """Rows of some of the classes, at random."""
    classes = np.unique(labels)
    if len(classes) > _MOST_CLASSES:
        classes = random.choice(classes, _MOST_CLASSES, replace=False)
    rows = np.flatnonzero(np.isin(labels, classes))
    return rows if len(rows) <= _MOST_ROWS else np.sort(random.choice(rows, _MOST_ROWS, replace=False))
