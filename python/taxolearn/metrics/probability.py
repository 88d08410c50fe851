"""Metrics of the probabilities of all classes."""

from typing import Any

import numpy as np
from scipy.special import logsumexp

from taxolearn.metrics.inputs import (
    FloatArray,
    average,
    read_classes,
    read_scores,
    read_truth,
    read_weights,
    rounding,
    row_blocks,
)

__all__ = ["log_loss", "log_losses"]


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
