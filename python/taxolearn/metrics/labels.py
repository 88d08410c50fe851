"""Metrics in which labels are just right or wrong."""

from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.metrics.inputs import (
    IntArray,
    LabelSets,
    NodePair,
    average,
    check_same_kind,
    read_labels,
    read_nodes,
    read_sets,
    read_weights,
    sums,
)
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice

__all__ = ["accuracy", "f1", "wrong_items", "zero_one_loss"]


def accuracy(y_true: Any, y_pred: Any, *, taxonomy: Taxonomy | None = None, sample_weight: Any = None) -> float:
    """Fraction of items whose label, or whole set of labels, is predicted exactly.

    The parameters are described in :mod:`taxolearn.metrics`.

    Examples
    --------
    >>> from taxolearn.metrics import accuracy
    >>> accuracy(["a", "b", "c", "c"], ["a", "b", "b", "c"])
    0.75
    """
    wrong = wrong_items(y_true, y_pred, taxonomy)
    return average(~wrong, read_weights(sample_weight, len(wrong)))


def zero_one_loss(y_true: Any, y_pred: Any, *, taxonomy: Taxonomy | None = None, sample_weight: Any = None) -> float:
    """Fraction of items whose label, or whole set of labels, is not predicted exactly (Rousu et al. 2006, 2.1).

    The parameters are described in :mod:`taxolearn.metrics`.

    Examples
    --------
    >>> from taxolearn.metrics import zero_one_loss
    >>> zero_one_loss([[1, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 1, 0]])
    0.5
    """
    wrong = wrong_items(y_true, y_pred, taxonomy)
    return average(wrong, read_weights(sample_weight, len(wrong)))


def wrong_items(y_true: Any, y_pred: Any, taxonomy: Taxonomy | None) -> npt.NDArray[np.bool_]:
    """Find the items whose truth and prediction differ."""
    pair = read_sets(y_true, y_pred)[0] if taxonomy is None else read_nodes(y_true, y_pred, taxonomy, close=False)
    if isinstance(pair, NodePair):
        return np.asarray(pair.true != pair.predicted)
    wrong = np.zeros(pair.true.n, dtype=bool)
    wrong[pair.different() // pair.true.width] = True
    return wrong


def f1(y_true: Any, y_pred: Any, *, average: str, labels: Any = None, sample_weight: Any = None) -> float:
    """F1 over all decisions ("micro") or the mean of the classes' F1 ("macro"), as in Gopal and Yang (2015), 5.3.

    With the counts TP, FP and FN of a class, or their sums over the classes, F1 = 2 TP / (2 TP + FP + FN). With one
    label per item micro-F1 over all classes is the accuracy.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        See :mod:`taxolearn.metrics`.
    average : {"micro", "macro"}
        Whether items or classes have the same weight.
    labels : array-like, default=None
        The classes to count: names, or column numbers of indicator matrices. None takes those that occur in
        ``y_true`` or ``y_pred`` (with a positive weight). A class that is named here and occurs in neither has F1 = 0,
        so naming all classes of a taxonomy gives the macro-F1 of a test set in which some are missing.

    Returns
    -------
    float
        NaN if no label occurs at all.

    Examples
    --------
    >>> from taxolearn.metrics import f1
    >>> f1(["a", "a", "b", "b"], ["a", "a", "b", "a"], average="macro")
    0.7333333333333334
    >>> f1(["a", "a", "b", "b"], ["a", "a", "b", "a"], average="macro", labels=["a", "b", "c"])
    0.48888888888888893
    """
    check_choice("average", average, ("micro", "macro"))
    pair, names = read_sets(y_true, y_pred)
    n, width = pair.true.n, pair.true.width
    weights = read_weights(sample_weight, n)
    hit, true, predicted = (
        sums(keys % width, weights[keys // width], width)
        for keys in (pair.common(), pair.true.keys, pair.predicted.keys)
    )
    both, total = 2 * hit, true + predicted  # 2 TP and 2 TP + FP + FN
    if labels is None:
        chosen = np.flatnonzero(total > 0)
        n_labels = len(chosen)
    else:
        chosen, n_labels = _chosen_labels(labels, names, width)
    if average == "micro":
        both, total, n_labels = both[chosen].sum(keepdims=True), total[chosen].sum(keepdims=True), 1
    else:
        both, total = both[chosen], total[chosen]
    if n_labels == 0 or (average == "micro" and total[0] == 0):
        return float("nan")
    return float(np.divide(both, total, out=np.zeros_like(both), where=total > 0).sum() / n_labels)


def _chosen_labels(labels: Any, names: npt.NDArray[Any] | None, width: int) -> tuple[IntArray, int]:
    """Return the columns of the named labels that occur, and the number of all that are named."""
    wanted = read_labels("labels", labels)
    if isinstance(wanted, LabelSets):
        raise ValueError("labels must be one-dimensional")
    n_labels = len(wanted)
    wanted = np.unique(wanted)
    if len(wanted) < n_labels:
        raise ValueError("labels names a label more than once")
    if names is None:
        if wanted.dtype.kind not in "iu" or wanted[0] < 0 or wanted[-1] >= width:
            raise ValueError(f"labels must be column numbers from 0 to {width - 1}, as y_true is an indicator matrix")
        return wanted.astype(np.int64), n_labels
    check_same_kind("labels", wanted, "y_true", names)
    return np.flatnonzero(np.isin(names, wanted)), n_labels
