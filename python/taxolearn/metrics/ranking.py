"""Metrics of the order in which labels are ranked by their scores.

Ties count against the classifier everywhere: of labels with the same score, the wrong ones come first. With o(l) the
place of a true label l among the true ones of its item and w(l) the number of wrong labels with at least its score, its
rank is w(l) + o(l), so that all of these metrics follow from the true labels alone.
"""

from typing import Any, NamedTuple

import numpy as np

from taxolearn.metrics.inputs import FloatArray, IntArray, LabelSets, average, read_weights, sums
from taxolearn.metrics.score_tables import ScoreTable, read_table_and_truth, standing
from taxolearn.validation import check_number

__all__ = [
    "Ranks",
    "coverage_error",
    "discounts",
    "label_ranking_average_precision",
    "label_ranking_loss",
    "ndcg_at_k",
    "precision_at_k",
    "ranks_of_truth",
    "read_ranks",
    "recall_at_k",
    "reciprocal_rank",
]


class Ranks(NamedTuple):
    """Where the true labels are ranked, in the order of their keys.

    Attributes
    ----------
    true : LabelSets
        The true labels.
    rank : ndarray of float
        From 1; infinite if the label has no score.
    at_least : ndarray of float
        How many labels of the item have at least this score.
    true_at_least : ndarray of float
        How many of these are true.
    """

    true: LabelSets
    rank: FloatArray
    at_least: FloatArray
    true_at_least: FloatArray


def reciprocal_rank(y_true: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Mean of one over the rank of the true class, called precision by Seeger (2008), 6.1.

    The class with the largest score has rank 1. Ties count against the classifier: the rank is the number of classes
    whose score is at least that of the true one, so scores that are all equal earn 1 / n_classes and nothing more.

    Parameters
    ----------
    y_true : array-like of shape (n,), or sparse or dense indicator matrix of shape (n, n_classes)
        The true classes. Of several, the best ranked counts, and the others are not in its way. An item whose classes
        have no score earns 0.
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
    table, true = read_table_and_truth(y_true, proba, classes)
    weights = read_weights(sample_weight, true.n)
    _refuse_empty(true)
    best = np.minimum.reduceat(ranks_of_truth(table, true).rank, np.searchsorted(true.rows, np.arange(true.n)))
    return average(1 / best, weights)


def precision_at_k(y_true: Any, proba: Any, *, classes: Any = None, k: int = 1, sample_weight: Any = None) -> float:
    """Mean fraction of true classes among the k with the largest scores.

    Ties at the k-th place count against the classifier: of classes with the same score, the wrong ones come first. An
    item with fewer than k true classes cannot reach 1.

    Parameters
    ----------
    y_true, classes, sample_weight
        See :mod:`taxolearn.metrics`.
    proba : array-like or sparse matrix of shape (n, n_classes), or pair (columns, scores)
        Probabilities or any other scores; only their order matters. Sparse matrices and pairs hold the best classes of
        each item, as described in :mod:`taxolearn.metrics`.
    k : int, default=1
        Number of classes looked at.

    Examples
    --------
    >>> from taxolearn.metrics import precision_at_k
    >>> precision_at_k([[1, 1, 0], [0, 0, 1]], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], k=2)
    0.25
    """
    ranks, weights = read_ranks(y_true, proba, classes, k, sample_weight)
    return average(_hits(ranks, k) / k, weights)


def recall_at_k(y_true: Any, proba: Any, *, classes: Any = None, k: int = 1, sample_weight: Any = None) -> float:
    """Mean fraction of the true classes that are among the k with the largest scores.

    An item with more than k true classes cannot reach 1. Items without a true class are left out; if all are, the
    result is NaN.

    Parameters
    ----------
    y_true, proba, classes, k, sample_weight
        As in :func:`precision_at_k`.

    Examples
    --------
    >>> from taxolearn.metrics import recall_at_k
    >>> recall_at_k([[1, 1, 0], [0, 0, 1]], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], k=2)
    0.25
    """
    ranks, weights = read_ranks(y_true, proba, classes, k, sample_weight)
    sizes = _sizes(ranks.true)
    counted = (sizes > 0) & (weights > 0)
    return average((_hits(ranks, k) / np.maximum(sizes, 1))[counted], weights[counted]) if counted.any() else np.nan


def ndcg_at_k(y_true: Any, proba: Any, *, classes: Any = None, k: int = 1, sample_weight: Any = None) -> float:
    """Normalized discounted cumulative gain of the k classes with the largest scores (Järvelin and Kekäläinen 2002).

    The gain of an item is the sum of 1 / log2(1 + rank) over the true classes up to rank k, divided by what the best
    order would have: the sum of 1 / log2(1 + r) for r from 1 to min(k, number of true classes). This is the nDCG of the
    extreme classification repository. Items without a true class earn 0.

    Parameters
    ----------
    y_true, proba, classes, k, sample_weight
        As in :func:`precision_at_k`.

    Examples
    --------
    >>> from taxolearn.metrics import ndcg_at_k
    >>> ndcg_at_k([[1, 1, 0], [0, 0, 1]], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], k=3)
    0.7098603945740938
    """
    ranks, weights = read_ranks(y_true, proba, classes, k, sample_weight)
    best = np.concatenate([[1.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])  # an item without a label earns 0 / 1
    gains = sums(ranks.true.rows, discounts(ranks.rank, k), ranks.true.n)
    return average(gains / best[np.minimum(_sizes(ranks.true), k)], weights)


def coverage_error(y_true: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Mean number of labels one has to go down the ranking to meet all true ones (Tsoumakas et al. 2010, 7.2).

    That is the number of labels with at least the score of the lowest true label; some papers subtract 1. Items without
    a true label count 0.

    Parameters
    ----------
    y_true, proba, classes, sample_weight
        As in :func:`precision_at_k`. Classes without a score all come last.

    Examples
    --------
    >>> from taxolearn.metrics import coverage_error
    >>> coverage_error([[1, 1, 0], [0, 0, 1]], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])
    3.0
    """
    ranks, weights = _read_all(y_true, proba, classes, sample_weight)
    depths = np.zeros(ranks.true.n)
    np.maximum.at(depths, ranks.true.rows, ranks.at_least)
    return average(depths, weights)


def label_ranking_loss(y_true: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Mean fraction of the pairs of a true and a wrong label that are ordered wrongly (Tsoumakas et al. 2010, 7.2).

    Equal scores count as wrong. Items for which all labels are true, or none, have no such pair and count 0.

    Parameters
    ----------
    y_true, proba, classes, sample_weight
        As in :func:`coverage_error`.

    Examples
    --------
    >>> from taxolearn.metrics import label_ranking_loss
    >>> label_ranking_loss([[1, 1, 0], [0, 0, 1]], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])
    0.75
    """
    ranks, weights = _read_all(y_true, proba, classes, sample_weight)
    wrong = sums(ranks.true.rows, ranks.at_least - ranks.true_at_least, ranks.true.n)
    sizes = _sizes(ranks.true)
    return average(wrong / np.maximum(sizes * (ranks.true.width - sizes), 1), weights)


def label_ranking_average_precision(
    y_true: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None
) -> float:
    """Mean over the true labels of the fraction of true ones among all ranked as high (Schapire and Singer 2000).

    For each true label, of all labels with at least its score, the fraction that is true; averaged over the true labels
    of an item, then over items. Items without a true label count 1.

    Parameters
    ----------
    y_true, proba, classes, sample_weight
        As in :func:`coverage_error`.

    Examples
    --------
    >>> from taxolearn.metrics import label_ranking_average_precision
    >>> label_ranking_average_precision([[1, 1, 0], [0, 0, 1]], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])
    0.5833333333333333
    """
    ranks, weights = _read_all(y_true, proba, classes, sample_weight)
    sizes = _sizes(ranks.true)
    precision = sums(ranks.true.rows, ranks.true_at_least / ranks.at_least, ranks.true.n)
    return average(np.where(sizes > 0, precision / np.maximum(sizes, 1), 1.0), weights)


def read_ranks(
    y_true: Any, proba: Any, classes: Any, k: int, sample_weight: Any, gains: FloatArray | None = None
) -> tuple[Ranks, FloatArray]:
    """Read scores and truth, rank the truth, and check that there are k labels to look at."""
    check_number("k", k, least=1, integer=True)
    table, true = read_table_and_truth(y_true, proba, classes, k=k)
    if k > true.width:
        raise ValueError(f"k must be at most the number of classes, {true.width}, got {k}")
    if gains is not None and len(gains) != true.width:
        raise ValueError(f"propensities has {len(gains)} numbers, expected {true.width}, one for each label")
    return ranks_of_truth(table, true, gains), read_weights(sample_weight, true.n)


def _read_all(y_true: Any, proba: Any, classes: Any, sample_weight: Any) -> tuple[Ranks, FloatArray]:
    table, true = read_table_and_truth(y_true, proba, classes)
    return ranks_of_truth(table, true), read_weights(sample_weight, true.n)


def ranks_of_truth(table: ScoreTable, true: LabelSets, gains: FloatArray | None = None) -> Ranks:
    """Rank the true labels of each item; of those with the same score, the one with the least gain comes first."""
    found = standing(table, true)
    rows, size = true.rows, len(true.keys)
    # Scores fall along this order of the true labels, and each item's come together.
    order = np.lexsort((np.zeros(size) if gains is None else gains[true.columns], ~found.stored, -found.score, rows))
    starts = np.searchsorted(rows, np.arange(true.n))[rows]  # of the item of each true label
    place = np.empty(size)
    place[order] = np.arange(size) - starts + 1  # starts depends on the item alone, which the order keeps
    # All labels of a tie have as many true ones at least as high as the last of them.
    last = np.ones(size, dtype=bool)
    scores, stored = found.score[order], found.stored[order]
    last[:-1] = (scores[1:] != scores[:-1]) | (stored[1:] != stored[:-1]) | (rows[1:] != rows[:-1])
    ends = np.flatnonzero(last)
    true_at_least = np.empty(size)
    true_at_least[order] = place[order][ends[np.searchsorted(ends, np.arange(size))]]
    wrong = found.at_least - true_at_least
    return Ranks(true, np.where(found.stored, wrong + place, np.inf), found.at_least, true_at_least)


def discounts(rank: FloatArray, k: int) -> FloatArray:
    """Return 1 / log2(1 + rank) up to rank k, and 0 below."""
    return np.where(rank <= k, 1 / np.log2(1 + np.minimum(rank, k)), 0.0)


def _hits(ranks: Ranks, k: int) -> FloatArray:
    return sums(ranks.true.rows, ranks.rank <= k, ranks.true.n)


def _sizes(true: LabelSets) -> IntArray:
    return np.bincount(true.rows, minlength=true.n)


def _refuse_empty(true: LabelSets) -> None:
    if (_sizes(true) == 0).any():
        raise ValueError("y_true has rows without a label, which have no rank; leave them out")
