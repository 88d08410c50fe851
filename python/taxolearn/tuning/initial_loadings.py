"""Where the loadings of a learned coupling start: at the classes that a flat model confuses."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from taxolearn import _core
from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.fitting.fit import Problem, fit_functions
from taxolearn.kernels.argument import assign_kernels
from taxolearn.kernels.base import Kernel
from taxolearn.tuning.cross_validation import TuningData

__all__ = ["confusion", "confusion_loadings", "leading_loadings"]

Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-2  # of the fits: which classes get confused shows early
_MAX_ITERATIONS = 200
_DIGITS = 9  # beyond which the order of sums would show


def confusion_loadings(
    data: TuningData,
    fold_of: npt.NDArray[np.int32],
    kernel: Any,
    intercept_variance: float,
    products: _core.KernelSettings,
    rank: int,
    n_threads: int,
) -> Floats:
    """Loadings of unit norm, from flat fits to the rows outside of each fold.

    Parameters
    ----------
    data : TuningData
        Rows, labels and weights.
    fold_of : array of shape (n_samples,)
        The fold in which each row is held out, or -1.
    kernel
        As in ``assign_kernels``.
    intercept_variance, products, n_threads
        Of the fits.
    rank : int
        Number of columns.
    """
    X, weights, n_classes = data.X, data.weights, len(data.classes)
    flat = assign_kernels(kernel, None, data.classes, ClassCoupling())
    is_pairwise = isinstance(kernel, Kernel) and kernel.is_precomputed
    settings = _core.FitSettings(
        method=_core.Method.lbfgs, tol=_TOLERANCE, max_iter=_MAX_ITERATIONS, memory_limit=products.memory_limit
    )
    proba = np.zeros((len(fold_of), n_classes))
    for fold in range(int(fold_of.max()) + 1):
        inside, outside = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        problem = Problem(
            X=np.ascontiguousarray(X[np.ix_(outside, outside)]) if is_pairwise else X[outside],
            targets=data.targets[outside],
            sample_weight=None if weights is None else weights[outside],
            class_kernels=flat,
            intercept_variance=intercept_variance,
            order=np.arange(n_classes),
            classes=data.classes,
            function_names=data.classes.tolist(),
        )
        functions = fit_functions(problem, settings, products, n_threads=n_threads).functions
        rows = np.ascontiguousarray(X[np.ix_(inside, outside)]) if is_pairwise else X[inside]
        proba[inside] = functions.output(rows, "probability", n_threads)
    held = np.flatnonzero(fold_of >= 0)
    of_rows = np.ones(len(held)) if weights is None else weights[held]
    return leading_loadings(confusion(proba[held], of_rows), rank)


def confusion(proba: Floats, weights: Floats) -> Floats:
    """How many rows of one class would be taken for another, if labels were drawn from the probabilities: (C, C).

    The true labels of the rows are the ones that the criterion is about to be computed from. Loadings that start from
    them would know part of the answer, all of it where classes have a row or two.
    """
    out: Floats = (weights[:, None] * proba).T @ proba
    return out


def leading_loadings(confused: Floats, rank: int) -> Floats:
    """Loadings ``B`` of norm 1 of which ``B B'`` is closest to how classes get confused.

    How often a class is right says nothing about its relatives, so the diagonal is left out, and what is left is
    divided by the square roots of its sums: ``A``, whose eigenvalues are between -1 and 1. The leading eigenvectors of
    ``(I + A) / 2`` are those of spectral clustering; but for the constant, which all classes would share and softmax
    does not see. Of each, the largest entry is positive.
    """
    affinity = confused.copy()
    np.fill_diagonal(affinity, 0.0)
    sums = affinity.sum(axis=1)
    roots = np.sqrt(np.where(sums > 0, sums, 1.0))
    similar = 0.5 * (np.eye(len(sums)) + affinity / roots / roots[:, None])
    similar = similar - similar.mean(axis=0)
    similar -= similar.mean(axis=1)[:, None]
    n = len(sums)
    values, vectors = eigh(0.5 * (similar + similar.T), subset_by_index=(n - rank, n - 1))
    loadings = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    largest = np.abs(loadings).argmax(axis=0)
    loadings = loadings * np.where(loadings[largest, np.arange(rank)] < 0, -1.0, 1.0)
    out: Floats = np.round(loadings / np.linalg.norm(loadings), _DIGITS)
    return out
