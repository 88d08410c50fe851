"""Metrics in which labels are just right or wrong."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.metrics.hierarchy import PrecisionRecallF
from taxolearn.metrics.inputs import (
    FloatArray,
    IntArray,
    LabelSets,
    average,
    check_same_kind,
    read_labels,
    read_sets,
    read_weights,
    sums,
)
from taxolearn.metrics.nodes import NodePair, read_nodes
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_number

__all__ = ["accuracy", "f1", "hamming_loss", "precision_recall_f", "wrong_items", "zero_one_loss"]

_AVERAGES = ("micro", "macro", "examples")


def accuracy(y_true: Any, y_pred: Any, *, taxonomy: Taxonomy | None = None, sample_weight: Any = None) -> float:
    """Fraction of items whose label, or whole set of labels, is predicted exactly (subset accuracy).

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
    absent = math.nan if labels is None or average == "micro" else 0.0
    scores = precision_recall_f(
        y_true, y_pred, average=average, labels=labels, undefined=absent, sample_weight=sample_weight
    )
    return scores.f


def precision_recall_f(
    y_true: Any,
    y_pred: Any,
    *,
    average: str,
    labels: Any = None,
    undefined: float = 0.0,
    beta: float = 1.0,
    classes: Any = None,
    sample_weight: Any = None,
) -> PrecisionRecallF:
    """Precision, recall and F over sets of labels: of all decisions, or the mean over labels or over items.

    With the counts TP, FP and FN of a label, of an item, or of all decisions, precision is TP / (TP + FP), recall
    TP / (TP + FN) and F ``(1 + beta**2) TP / ((1 + beta**2) TP + FP + beta**2 FN)``.

    Papers treat labels without a true item in different ways, and macro averages depend on it. By default all labels
    count, and a ratio 0 / 0 is 0, so a label that no item has can only lower the mean. ``labels="true"`` counts the
    labels that some item has. ``undefined=1.0`` rewards predicting nothing where there is nothing; NaN leaves out what
    is undefined. Some papers have a macro-F that is the harmonic mean of the macro averages of precision and recall,
    not the mean of F (Opitz and Burst 2019); it follows from those two.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        See :mod:`taxolearn.metrics`.
    average : {"micro", "macro", "examples"}
        Counts are summed over all labels and items ("micro"), or there is a score for each label ("macro") or each item
        ("examples") and these are averaged.
    labels : "true" or array-like, default=None
        The labels to count: those that occur in ``y_true`` (with a positive weight), or these names, or column numbers
        if ``y_true`` is an indicator matrix and there are no ``classes``. None takes all.
    undefined : {0.0, 1.0, nan}, default=0.0
        What a ratio 0 / 0 is. NaN is left out of averages.
    beta : float, default=1.0
        How much more recall counts than precision.
    classes : array-like of shape (n_labels,), default=None
        Names of all labels, in the order of the columns of indicator matrices. None takes the columns, or for lists of
        labels those that occur.

    Returns
    -------
    PrecisionRecallF
        Named tuple (precision, recall, f).

    Examples
    --------
    >>> from taxolearn.metrics import precision_recall_f
    >>> true, predicted = [["a", "b"], ["a"], []], [["a"], ["a"], ["b"]]
    >>> precision_recall_f(true, predicted, average="macro")
    PrecisionRecallF(precision=0.5, recall=0.5, f=0.5)
    >>> precision_recall_f(true, predicted, average="examples")
    PrecisionRecallF(precision=0.6666666666666666, recall=0.5, f=0.5555555555555555)
    """
    check_choice("average", average, _AVERAGES)
    square = check_number("beta", beta, least=0, strict=True) ** 2
    if isinstance(undefined, bool) or not (undefined in (0, 1) or undefined != undefined):
        raise ValueError(f"undefined must be 0.0, 1.0 or nan, got {undefined!r}")
    pair, names = read_sets(y_true, y_pred, classes)
    n, width = pair.true.n, pair.true.width
    weights = read_weights(sample_weight, n)
    parts = [pair.common(), pair.true.keys, pair.predicted.keys]
    absent = 0  # labels that are named but occur nowhere
    if isinstance(labels, str):
        check_choice("labels", labels, ("true",))
        chosen = np.flatnonzero(_label_sums(pair.true.keys, weights, width) > 0)
    elif labels is None:
        chosen = np.arange(width)
    else:
        chosen, n_labels = _chosen_labels(labels, names, width)
        absent = n_labels - len(chosen)
    if average == "examples":
        counted = np.zeros(width, dtype=bool)
        counted[chosen] = True
        both, true, predicted = (
            np.bincount(keys[counted[keys % width]] // width, minlength=n).astype(np.float64) for keys in parts
        )
    else:
        both, true, predicted = (
            np.append(_label_sums(keys, weights, width)[chosen], np.zeros(absent)) for keys in parts
        )
        weights = np.ones(len(both))
        if average == "micro":
            both, true, predicted, weights = (np.array([part.sum()]) for part in (both, true, predicted, np.ones(1)))
    ratios = ((both, predicted), (both, true), ((1 + square) * both, square * true + predicted))
    return PrecisionRecallF(*(_mean_ratio(over, under, undefined, weights) for over, under in ratios))


def _label_sums(keys: IntArray, weights: FloatArray, width: int) -> FloatArray:
    return sums(keys % width, weights[keys // width], width)


def _mean_ratio(over: FloatArray, under: FloatArray, undefined: float, weights: FloatArray) -> float:
    ratios = np.divide(over, under, out=np.full_like(over, undefined), where=under > 0)
    counted = ~np.isnan(ratios) & (weights > 0)
    return float(np.average(ratios[counted], weights=weights[counted])) if counted.any() else math.nan


def hamming_loss(y_true: Any, y_pred: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Fraction of wrong decisions: the symmetric difference of each item's sets over the number of labels, averaged.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        See :mod:`taxolearn.metrics`.
    classes : array-like of shape (n_labels,), default=None
        As in :func:`precision_recall_f`; the loss depends on the number of labels, so lists of labels need it.

    Examples
    --------
    >>> from taxolearn.metrics import hamming_loss
    >>> hamming_loss([["a", "b"], []], [["a"], ["b"]], classes=["a", "b", "c", "d"])
    0.25
    """
    pair, names = read_sets(y_true, y_pred, classes)
    if names is not None and classes is None:
        raise ValueError("classes is needed, since y_true and y_pred may lack some labels; or give indicator matrices")
    losses = np.bincount(pair.different() // pair.true.width, minlength=pair.true.n) / pair.true.width
    return average(losses, read_weights(sample_weight, len(losses)))


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
