"""Metrics of the scores or probabilities of all classes."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from taxolearn.metrics.inputs import (
    FloatArray,
    LabelSets,
    average,
    read_classes,
    read_scores,
    read_truth,
    read_weights,
    rounding,
    row_blocks,
)
from taxolearn.validation import check_number

__all__ = ["log_loss", "log_losses", "precision_at_k", "reciprocal_rank"]


def log_loss(
    y_true: Any, proba: Any = None, *, classes: Any, log_proba: Any = None, sample_weight: Any = None
) -> float:
    """Mean negative logarithm of the probability of the true class.

    Nothing is clipped: a true class of probability 0 makes the loss infinite. Probabilities below the smallest number
    keep their logarithm if it is given as ``log_proba``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true classes. An indicator matrix with one class per row works as well.
    proba : array-like of shape (n, n_classes), default=None
        Probabilities; rows sum to one.
    log_proba : array-like of shape (n, n_classes), default=None
        Logarithms of the probabilities, instead of ``proba``.
    classes, sample_weight
        See :mod:`taxolearn.metrics`.

    Examples
    --------
    >>> from taxolearn.metrics import log_loss
    >>> log_loss(["a", "b"], [[0.5, 0.5], [0.75, 0.25]], classes=["a", "b"])
    1.0397207708399179
    >>> log_loss(["a"], log_proba=[[-1000.0, 0.0]], classes=["a", "b"])
    1000.0
    """
    losses = log_losses(y_true, proba, classes=classes, log_proba=log_proba)
    return average(losses, read_weights(sample_weight, len(losses)))


def log_losses(y_true: Any, proba: Any = None, *, classes: Any, log_proba: Any = None) -> FloatArray:
    """Negative logarithm of the probability of each item's true class.

    Parameters
    ----------
    y_true, proba, classes, log_proba
        As in :func:`log_loss`.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from taxolearn.metrics import log_losses
    >>> log_losses(["a", "b"], [[0.5, 0.5], [0.75, 0.25]], classes=["a", "b"])
    array([0.69314718, 1.38629436])
    """
    if (proba is None) == (log_proba is None):
        raise ValueError("the log loss needs either proba or log_proba, and not both")
    names = read_classes(classes)
    logs = proba is None
    argument = "log_proba" if logs else "proba"
    scores = read_scores(argument, log_proba if logs else proba, names, probabilities=not logs)
    true = read_truth(y_true, names, scores, argument)
    if len(true.keys) != true.n or (true.rows != np.arange(true.n)).any():
        raise ValueError("y_true must have one class in each row; the log loss is not made for sets of labels")
    if logs and scores.max() == np.inf:
        raise ValueError("log_proba has infinite values; logarithms of probabilities are at most 0")
    for block in row_blocks(scores):
        part = scores[block]
        sums = np.exp(logsumexp(part, axis=1)) if logs else part.sum(axis=1, dtype=np.float64)
        wrong = np.flatnonzero(~(np.abs(sums - 1) <= rounding(scores)))
        if len(wrong) > 0:
            raise ValueError(
                f"{argument}: the probabilities of row {block.start + wrong[0]} sum to {sums[wrong[0]]:.6g}, expected 1"
            )
    found = scores[true.rows, true.columns].astype(np.float64)
    if not logs:
        with np.errstate(divide="ignore"):
            found = np.log(np.maximum(found, 0.0))
    return 0.0 - found  # no negative zero


def reciprocal_rank(y_true: Any, proba: Any, *, classes: Any, sample_weight: Any = None) -> float:
    """Mean of one over the rank of the true class, called precision by Seeger (2008), 6.1.

    The class with the largest score has rank 1. Ties count against the classifier: the rank is the number of classes
    whose score is at least that of the true one, so scores that are all equal earn 1 / n_classes and nothing more.

    Parameters
    ----------
    y_true : array-like of shape (n,), or sparse or dense indicator matrix of shape (n, n_classes)
        The true classes. Of several, the best ranked counts, and the others are not in its way.
    proba : array-like of shape (n, n_classes)
        Probabilities or any other scores; only their order matters.
    classes, sample_weight
        See :mod:`taxolearn.metrics`.

    Examples
    --------
    >>> from taxolearn.metrics import reciprocal_rank
    >>> reciprocal_rank(["b", "b"], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], classes=["a", "b", "c"])
    0.75
    """
    scores, true, weights = _read(y_true, proba, classes, sample_weight)
    rows = true.rows
    starts = np.searchsorted(rows, np.arange(true.n))
    if len(rows) < true.n or (rows[np.minimum(starts, len(rows) - 1)] != np.arange(true.n)).any():
        raise ValueError("y_true has rows without a label, which have no rank; leave them out")
    values = scores[rows, true.columns]
    best = np.maximum.reduceat(values, starts)
    ranks = 1 - np.bincount(rows, weights=values == best[rows], minlength=true.n)
    for block in row_blocks(scores):
        ranks[block] += np.count_nonzero(scores[block] >= best[block, np.newaxis], axis=1)
    return average(1 / ranks, weights)


def precision_at_k(y_true: Any, proba: Any, *, classes: Any, k: int = 1, sample_weight: Any = None) -> float:
    """Mean fraction of true classes among the k with the largest scores.

    Ties at the k-th place count against the classifier: of classes with the same score, the wrong ones come first. An
    item with fewer than k true classes cannot reach 1.

    Parameters
    ----------
    y_true, classes, sample_weight
        See :mod:`taxolearn.metrics`.
    proba : array-like of shape (n, n_classes)
        As in :func:`reciprocal_rank`.
    k : int, default=1
        Number of classes looked at.

    Examples
    --------
    >>> from taxolearn.metrics import precision_at_k
    >>> precision_at_k([[1, 1, 0], [0, 0, 1]], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], classes=["a", "b", "c"], k=2)
    0.25
    """
    scores, true, weights = _read(y_true, proba, classes, sample_weight)
    check_number("k", k, least=1, integer=True)
    n_classes = scores.shape[1]
    if k > n_classes:
        raise ValueError(f"k must be at most the number of classes, {n_classes}, got {k}")
    last = np.empty(true.n, dtype=scores.dtype)  # the k-th largest score
    places, tied = np.empty(true.n), np.empty(true.n)  # of the k places those left for the classes that have it
    for block in row_blocks(scores):
        part = scores[block]
        last[block] = np.partition(part, n_classes - k, axis=1)[:, n_classes - k]
        places[block] = k - np.count_nonzero(part > last[block, np.newaxis], axis=1)
        tied[block] = np.count_nonzero(part == last[block, np.newaxis], axis=1)
    rows = true.rows
    values = scores[rows, true.columns]
    sure = np.bincount(rows, weights=values > last[rows], minlength=true.n)
    tied_true = np.bincount(rows, weights=values == last[rows], minlength=true.n)
    hits = sure + np.maximum(0, places - (tied - tied_true))
    return average(hits / k, weights)


def _read(y_true: Any, proba: Any, classes: Any, sample_weight: Any) -> tuple[npt.NDArray[Any], LabelSets, FloatArray]:
    names = read_classes(classes)
    scores = read_scores("proba", proba, names)
    true = read_truth(y_true, names, scores)
    return scores, true, read_weights(sample_weight, true.n)
