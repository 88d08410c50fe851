"""Metrics in which rare labels count more, since people miss them when they label (Jain et al. 2016)."""

from typing import Any

import numpy as np

from taxolearn.metrics.inputs import FloatArray, read_classes, read_items, read_weights, sets_over, sums
from taxolearn.metrics.ranking import discounts, read_ranks
from taxolearn.validation import check_number

__all__ = ["label_propensities", "propensity_scored_ndcg_at_k", "propensity_scored_precision_at_k"]


def label_propensities(
    y_train: Any, *, classes: Any = None, A: float = 0.55, B: float = 1.5, sample_weight: Any = None
) -> FloatArray:
    """Estimate how likely it is that an item which should have a label was given it (Jain, Prabhu and Varma 2016).

    With N training items, N_l of which have the label l, the propensity is 1 / (1 + C exp(-A log(N_l + B))), where
    C = (log N - 1) (B + 1)^A. Rare labels have small ones.

    Parameters
    ----------
    y_train : indicator matrix of shape (n, n_labels), or lists of labels
        Labels of the training items, not those of the test items.
    classes : array-like of shape (n_labels,), default=None
        Names of the labels, in the order of the columns of the scores; lists of labels need it.
    A, B : float, default=0.55 and 1.5
        Constants of the model. The extreme classification repository has 0.5 and 0.4 for sets made of Wikipedia, 0.6
        and 2.6 for those of Amazon, and these for all others.
    sample_weight : array-like of shape (n,), default=None
        How often each item counts.

    Returns
    -------
    ndarray of shape (n_labels,)
        Propensities, in (0, 1] from three items on.

    Examples
    --------
    >>> from taxolearn.metrics import label_propensities
    >>> label_propensities([["a"], ["a", "b"], ["a"], ["a"]], classes=["a", "b"]).round(3)
    array([0.8  , 0.721])
    """
    A = check_number("A", A, least=0)
    B = check_number("B", B, least=0, strict=True)
    train = sets_over("y_train", read_items("y_train", y_train), None if classes is None else read_classes(classes))
    weights = read_weights(sample_weight, train.n)
    total, counts = weights.sum(), sums(train.columns, weights[train.rows], train.width)
    if total < np.e:
        raise ValueError(f"y_train has {total:g} items, the model of propensities needs at least three")
    scale = (np.log(total) - 1) * (B + 1) ** A
    return np.asarray(1 / (1 + scale * (counts + B) ** -A))


def propensity_scored_precision_at_k(
    y_true: Any, proba: Any, propensities: Any, *, classes: Any = None, k: int = 1, sample_weight: Any = None
) -> float:
    """Precision at k with a gain of 1 / propensity for each label, over the best that can be had (Jain et al. 2016).

    The sum over items of 1 / p_l of the true labels l up to rank k, divided by the same sum for the best order: the
    normalized form of the extreme classification repository. Ties count against the classifier.

    Parameters
    ----------
    y_true, proba, classes, k, sample_weight
        As in :func:`precision_at_k`.
    propensities : array-like of shape (n_labels,)
        Made by :func:`label_propensities` from the training items.

    Returns
    -------
    float
        NaN if no item has a label.

    Examples
    --------
    >>> from taxolearn.metrics import propensity_scored_precision_at_k
    >>> propensity_scored_precision_at_k([[1, 1, 0]], [[0.9, 0.1, 0.2]], [0.5, 0.25, 0.5], k=1)
    0.5
    """
    return _over_the_best(y_true, proba, propensities, classes, k, sample_weight, discount=False)


def propensity_scored_ndcg_at_k(
    y_true: Any, proba: Any, propensities: Any, *, classes: Any = None, k: int = 1, sample_weight: Any = None
) -> float:
    """Discounted gain at k with a gain of 1 / propensity for each label, over the best one (Jain et al. 2016).

    The sum over items of 1 / (p_l log2(1 + rank)) of the true labels l up to rank k, divided by the same sum for the
    best order, as the scripts of the extreme classification repository compute it. (Its library pyxclib divides each
    item's gain by that of its number of labels first, which gives other figures.) Ties count against the classifier.

    Parameters
    ----------
    y_true, proba, propensities, classes, k, sample_weight
        As in :func:`propensity_scored_precision_at_k`.

    Examples
    --------
    >>> from taxolearn.metrics import propensity_scored_ndcg_at_k
    >>> propensity_scored_ndcg_at_k([[1, 1, 0]], [[0.9, 0.1, 0.2]], [0.5, 0.25, 0.5], k=1)
    0.5
    """
    return _over_the_best(y_true, proba, propensities, classes, k, sample_weight, discount=True)


def _over_the_best(
    y_true: Any, proba: Any, propensities: Any, classes: Any, k: int, sample_weight: Any, *, discount: bool
) -> float:
    gains = _read_gains(propensities)
    ranks, weights = read_ranks(y_true, proba, classes, k, sample_weight, gains)
    rows, columns = ranks.true.rows, ranks.true.columns
    best = np.empty(len(rows))
    order = np.lexsort((-gains[columns], rows))
    best[order] = np.arange(len(rows)) - np.searchsorted(rows, rows) + 1
    found, possible = (
        float(np.sum(weights[rows] * gains[columns] * (discounts(rank, k) if discount else rank <= k)))
        for rank in (ranks.rank, best)
    )
    return found / possible if possible > 0 else float("nan")


def _read_gains(propensities: Any) -> FloatArray:
    try:
        chances = np.asarray(propensities, dtype=np.float64)
    except (TypeError, ValueError):
        chances = np.empty((0, 0))
    if chances.ndim != 1 or not ((chances > 0) & (chances <= 1)).all():
        raise ValueError("propensities must be numbers above 0 and up to 1, one for each label")
    return 1 / chances
