"""Areas under precision-recall curves of several labels."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from taxolearn.metrics.inputs import FloatArray, IntArray, LabelSets, read_weights, sums
from taxolearn.metrics.score_tables import ScoreTable, Standing, read_table_and_truth, standing
from taxolearn.validation import check_choice

__all__ = ["precision_recall_area"]


def precision_recall_area(
    y_true: Any,
    proba: Any,
    *,
    average: str = "pooled",
    curve: str = "interpolated",
    labels: str = "true",
    classes: Any = None,
    sample_weight: Any = None,
) -> float:
    """Area under the precision-recall curve, AU(PRC): of all decisions together, or the mean over labels.

    A curve has a point (recall, precision) for each threshold on the scores. With "pooled", decisions on all pairs of
    item and label are counted together. Two definitions of the area are in use, and figures of the one cannot be
    compared with figures of the other:

    - "interpolated", as in Clus (Vens et al. 2008): between neighbouring thresholds that have TP and TP' true positives
      and FP and FP' false ones, the curve goes through TP + i and FP + i (FP' - FP) / (TP' - TP) for all whole i (Davis
      and Goadrich 2006), by straight lines of precision over recall; before the first threshold, precision is that of
      the first. Clus leaves out labels without a true item, which is the default of ``labels``.
    - "steps": the sum over thresholds of precision times the increase of recall, which is called average precision, and
      with ``labels="all"`` is the measure of C-HMCNN (Giunchiglia and Lukasiewicz 2020), scikit-learn's
      ``average_precision_score(average="micro")``.

    Parameters
    ----------
    y_true, classes
        See :mod:`taxolearn.metrics`. With a taxonomy, give the indicators of all nodes closed upwards.
    proba : array-like or sparse matrix of shape (n, n_labels), or pair (columns, scores)
        As in :func:`precision_at_k`. What is not stored is the last threshold.
    average : {"pooled", "labels", "weighted"}, default="pooled"
        All decisions together, the mean of the labels' areas, or their mean with the labels' numbers of true items as
        weights.
    curve : {"interpolated", "steps"}, default="interpolated"
        The definition of the area.
    labels : {"true", "all"}, default="true"
        Which labels count: those that some item has, or all. Labels without a true item have the area 0, so averages
        over labels should leave them out.
    sample_weight : array-like of shape (n,), default=None
        Weights of the items, for "steps". The interpolation is one of whole counts and takes none.

    Returns
    -------
    float
        NaN if no item has a label.

    Examples
    --------
    >>> from taxolearn.metrics import precision_recall_area
    >>> true, proba = [[1, 0], [1, 1], [0, 0]], [[0.9, 0.2], [0.6, 0.6], [0.7, 0.1]]
    >>> precision_recall_area(true, proba)
    0.7638888888888888
    >>> precision_recall_area(true, proba, curve="steps", labels="all")
    0.8333333333333334
    >>> precision_recall_area(true, proba, average="labels")
    0.8958333333333333
    """
    check_choice("average", average, ("pooled", "labels", "weighted"))
    check_choice("curve", curve, ("interpolated", "steps"))
    check_choice("labels", labels, ("true", "all"))
    table, true = read_table_and_truth(y_true, proba, classes)
    weights = read_weights(sample_weight, true.n)
    if sample_weight is not None:
        if curve == "interpolated":
            raise ValueError('sample_weight is given, but the interpolated curve takes none; use curve="steps"')
        table, true, weights = _with_weight(table, true, weights)
    frequency = sums(true.columns, weights[true.rows], true.width)
    if not (frequency > 0).any():
        return float("nan")
    if labels == "true":
        table, true = _of_columns(table, true, np.flatnonzero(frequency > 0))
        frequency = frequency[frequency > 0]
    weighted = sample_weight is not None
    if average == "pooled":
        flat, width = _as_one_row(table), true.width
        keys = LabelSets(1, true.n * width, true.keys)
        entries = (lambda places: weights[places // width], weights.sum() * width) if weighted else (None, None)
        return float(_areas(keys, standing(flat, keys, *entries), curve, weights[true.rows])[0])
    across = np.argsort(true.columns, kind="stable")  # by label, then by item
    turned = LabelSets(true.width, true.n, (true.columns * true.n + true.rows)[across])
    items = (lambda rows: weights[rows], weights.sum()) if weighted else (None, None)
    by_label = table.T if isinstance(table, np.ndarray) else table.T.tocsr()
    areas = _areas(turned, standing(by_label, turned, *items), curve, weights[true.rows[across]])
    return float(np.average(areas, weights=None if average == "labels" else frequency))


def _areas(true: LabelSets, found: Standing, curve: str, weights: FloatArray) -> FloatArray:
    """Compute the area of each row of a table, from where its true entries stand; 0 for rows without one."""
    rows = true.rows
    order = np.lexsort((-found.score, ~found.stored, rows))
    at_least, above, scores, stored = (part[order] for part in (found.at_least, found.above, found.score, found.stored))
    first = np.ones(len(rows), dtype=bool)  # of the true entries at one threshold
    first[1:] = (scores[1:] != scores[:-1]) | (stored[1:] != stored[:-1]) | (rows[1:] != rows[:-1])
    starts = np.flatnonzero(first)
    gained = np.add.reduceat(weights[order], starts) if len(starts) > 0 else np.empty(0)
    owners, at_least, above = rows[starts], at_least[starts], above[starts]
    total = sums(owners, gained, true.n)
    reached = np.cumsum(gained)
    before_row = np.concatenate([[0.0], reached])[np.searchsorted(owners, owners)]
    true_after = reached - before_row  # true positives with this threshold, and with the one before
    true_before = true_after - gained
    if curve == "steps":
        parts = gained * true_after / at_least
    else:
        parts = _interpolated(true_before, true_after, above - true_before, at_least - true_after)
    return np.divide(sums(owners, parts, true.n), total, out=np.zeros(true.n), where=total > 0)


def _interpolated(
    true_before: FloatArray, true_after: FloatArray, false_before: FloatArray, false_after: FloatArray
) -> FloatArray:
    """Compute the area of each piece of a curve, in units of one true positive, by trapezoids between whole ones."""
    lengths = (true_after - true_before).astype(np.int64)
    slope = (false_after - false_before) / lengths
    pieces = np.repeat(np.arange(len(lengths)), lengths)
    steps = np.arange(len(pieces)) - np.repeat(np.cumsum(lengths) - lengths, lengths)

    def precision(step: IntArray) -> FloatArray:
        hits = true_before[pieces] + step
        answers = hits + false_before[pieces] + slope[pieces] * step
        begin = 1 / (1 + slope[pieces])  # of the first piece: precision is the same all along
        return np.divide(hits, answers, out=begin, where=answers > 0)

    return sums(pieces, (precision(steps) + precision(steps + 1)) / 2, len(lengths))


def _with_weight(table: ScoreTable, true: LabelSets, weights: FloatArray) -> tuple[ScoreTable, LabelSets, FloatArray]:
    """Leave out the items that have no weight."""
    kept = weights > 0
    places = np.cumsum(kept) - 1
    rows = true.rows[kept[true.rows]]
    keys = places[rows] * true.width + true.columns[kept[true.rows]]
    return table[kept], LabelSets(int(kept.sum()), true.width, keys), weights[kept]


def _of_columns(table: ScoreTable, true: LabelSets, columns: IntArray) -> tuple[ScoreTable, LabelSets]:
    """Leave out all columns but these, which hold the whole truth."""
    if len(columns) == true.width:
        return table, true
    places = np.searchsorted(columns, true.columns)
    return table[:, columns], LabelSets(true.n, len(columns), true.rows * len(columns) + places)


def _as_one_row(table: ScoreTable) -> ScoreTable:
    n, width = table.shape
    if isinstance(table, np.ndarray):
        return table.reshape(1, -1)
    rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(table.indptr))
    return sp.csr_array((table.data, rows * width + table.indices, np.array([0, table.nnz])), shape=(1, n * width))
