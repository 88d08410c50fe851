"""Kernel matrices that the user has computed."""

from __future__ import annotations

from dataclasses import dataclass

from taxolearn import _core
from taxolearn.kernels.leaf import Leaf

__all__ = ["Precomputed"]


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

    is_precomputed = True
    _core_kernel = _core.PrecomputedKernel
