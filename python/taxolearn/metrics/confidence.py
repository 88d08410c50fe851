"""Whether confidence can be trusted: error-reject curves and calibration."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from taxolearn.metrics.hierarchy import taxo_losses
from taxolearn.metrics.inputs import (
    FloatArray,
    IntArray,
    LabelSets,
    class_columns,
    read_classes,
    read_confidence,
    read_labels,
    read_scores,
    read_truth,
    read_weights,
    rounding,
    row_blocks,
    sums,
)
from taxolearn.metrics.labels import wrong_items
from taxolearn.metrics.nodes import read_taxonomy
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_number

__all__ = [
    "ErrorRejectCurve",
    "ReliabilityCurve",
    "error_reject_curve",
    "expected_calibration_error",
    "reliability_curve",
    "reliability_of_answers",
]

N_BINS = 10


class ErrorRejectCurve(NamedTuple):
    """Error among the accepted items against the fraction of rejected ones.

    Attributes
    ----------
    rejected : ndarray of float
        Fraction of rejected items, from 0 up. The curve is one of steps: an error holds until the next point, the last
        one up to 1.
    error : ndarray of float
        Mean error of the accepted items.
    threshold : ndarray of float
        Items of at least this confidence are accepted.
    area : float
        Area below the steps from 0 to 1: the mean over all items of the error among those at least as confident.
    """

    rejected: FloatArray
    error: FloatArray
    threshold: FloatArray
    area: float


class ReliabilityCurve(NamedTuple):
    """Observed frequency against predicted probability, by bins that are not empty.

    Attributes
    ----------
    confidence : ndarray of float
        Mean predicted probability in each bin.
    frequency : ndarray of float
        How often it came true.
    weight : ndarray of float
        Weight in each bin.
    lower, upper : ndarray of float
        Bins hold probabilities above ``lower`` up to ``upper``; the first one from 0.
    """

    confidence: FloatArray
    frequency: FloatArray
    weight: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def calibration_error(self) -> float:
        """Mean distance between frequency and confidence, weighted by the bins."""
        return float(np.average(np.abs(self.frequency - self.confidence), weights=self.weight))


class _Predictions(NamedTuple):
    """Probabilities of the same predictions, whether they came true, and their weights."""

    confidence: FloatArray
    hits: npt.NDArray[np.bool_]
    weights: FloatArray


def error_reject_curve(
    y_true: Any, y_pred: Any, confidence: Any, *, taxonomy: Taxonomy | None = None, sample_weight: Any = None
) -> ErrorRejectCurve:
    """Compute how the error falls when the least confident items are left to somebody else.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        See :mod:`taxolearn.metrics`. An item is an error if truth and prediction differ.
    confidence : array-like of shape (n,)
        For example the probability of the prediction. Items of the same confidence are accepted or rejected together.
    taxonomy : Taxonomy, default=None
        If given, the error is half the length of the path between truth and prediction, as in :func:`taxo_loss`, and
        both have one label per item.

    Returns
    -------
    ErrorRejectCurve
        Named tuple (rejected, error, threshold, area).

    Examples
    --------
    >>> from taxolearn.metrics import error_reject_curve
    >>> curve = error_reject_curve(["a", "b", "b", "a"], ["a", "b", "a", "a"], [0.9, 0.8, 0.6, 0.7])
    >>> curve.rejected, curve.error, curve.area
    (array([0.  , 0.25, 0.5 , 0.75]), array([0.25, 0.  , 0.  , 0.  ]), 0.0625)
    """
    errors: npt.NDArray[Any]
    errors = wrong_items(y_true, y_pred, None) if taxonomy is None else taxo_losses(y_true, y_pred, taxonomy)
    weights = read_weights(sample_weight, len(errors))
    scores = read_confidence(confidence)
    if scores.shape != errors.shape:
        raise ValueError(f"confidence has shape {scores.shape}, expected ({len(errors)},): one number per item")
    counted = weights > 0
    threshold, groups = np.unique(-scores[counted], return_inverse=True)
    sizes = sums(groups.reshape(-1), weights[counted], len(threshold))
    mistakes = sums(groups.reshape(-1), weights[counted] * errors[counted], len(threshold))
    accepted = sizes.cumsum()
    error = mistakes.cumsum() / accepted
    shares = sizes / accepted[-1]
    rejected = np.maximum(1 - accepted / accepted[-1], 0.0)
    return ErrorRejectCurve(rejected[::-1], error[::-1], -threshold[::-1], float(error @ shares))


def reliability_curve(
    y_true: Any,
    proba: Any,
    *,
    classes: Any,
    labels: Any = None,
    pairs: Any = None,
    taxonomy: Taxonomy | None = None,
    n_bins: int = N_BINS,
    strategy: str = "uniform",
    sample_weight: Any = None,
) -> ReliabilityCurve:
    """Compute how often predictions of each probability come true.

    By default the predictions are the most probable class of each item and its probability. ``labels`` and ``pairs``
    choose others: the probabilities of certain classes or, with a taxonomy, of nodes, which are the sums over the
    classes below.

    Parameters
    ----------
    y_true, classes, sample_weight
        See :mod:`taxolearn.metrics`.
    proba : array-like of shape (n, n_classes)
        Probabilities. Rows need not sum to one, so that several labels per item can be looked at.
    labels : array-like, default=None
        Look at the probabilities of these classes or nodes in all rows.
    pairs : tuple (rows, labels) of array-likes of the same length, default=None
        Look at the probabilities of these classes or nodes in these rows.
    taxonomy : Taxonomy, default=None
        The tree whose leaves are the classes; lets ``labels`` and ``pairs`` name inner nodes.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width in [0, 1], or of (about) equal weight. Equal probabilities are never parted.

    Returns
    -------
    ReliabilityCurve
        Named tuple (confidence, frequency, weight, lower, upper) of arrays, one entry for each bin that is not empty,
        with the property ``calibration_error``.

    Examples
    --------
    >>> from taxolearn.metrics import reliability_curve
    >>> proba = [[0.75, 0.25], [0.75, 0.25], [0.75, 0.25], [0.25, 0.75]]
    >>> curve = reliability_curve(["a", "a", "b", "b"], proba, classes=["a", "b"], n_bins=2)
    >>> curve.confidence, curve.frequency, curve.weight
    (array([0.75]), array([0.75]), array([4.]))
    """
    check_number("n_bins", n_bins, least=1, integer=True)
    check_choice("strategy", strategy, ("uniform", "quantile"))
    if labels is not None and pairs is not None:
        raise ValueError("labels and pairs cannot be given together")
    names = read_classes(classes)
    scores = read_scores("proba", proba, names, probabilities=True)
    true = read_truth(y_true, names, scores)
    weights = read_weights(sample_weight, true.n)
    order, leaves = _leaf_order(names, taxonomy)
    rows: IntArray | None = np.arange(true.n)
    if labels is None and pairs is None:
        begin = _inverse(order)[scores.argmax(axis=1)]
        end = begin + 1
    else:
        rows, begin, end = _chosen(labels, pairs, names, leaves, taxonomy, true.n)
        if rows is not None and not (weights[rows] > 0).any():
            raise ValueError("sample_weight is zero in all rows of pairs")
    return _binned(_looked_at(true, scores, order, weights, rows, begin, end), n_bins, strategy)


def reliability_of_answers(
    confidence: Any, correct: Any, *, n_bins: int = N_BINS, strategy: str = "uniform", sample_weight: Any = None
) -> ReliabilityCurve:
    """Compute how often answers of each confidence are right, where :func:`reliability_curve` lacks the other classes.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        The probability of each answer.
    correct : array-like of bool, shape (n,)
        Whether the answer is right.
    n_bins, strategy, sample_weight
        As in :func:`reliability_curve`.

    Returns
    -------
    ReliabilityCurve
        The same as from the whole matrix of probabilities, if each answer is the most probable class.

    Examples
    --------
    >>> from taxolearn.metrics import reliability_of_answers
    >>> reliability_of_answers([0.5, 1.0], [True, False]).calibration_error
    0.75
    """
    check_number("n_bins", n_bins, least=1, integer=True)
    check_choice("strategy", strategy, ("uniform", "quantile"))
    found = read_confidence(confidence)
    hits = np.asarray(correct)
    if hits.dtype != np.bool_ or hits.shape != found.shape:
        raise ValueError(f"correct must be {len(found)} booleans, one per item, got {hits.dtype} of shape {hits.shape}")
    if found.min() < -rounding(found) or found.max() > 1 + rounding(found):
        raise ValueError(
            f"confidence must be probabilities between 0 and 1, got values from {found.min()} to {found.max()}"
        )
    weights = read_weights(sample_weight, len(found))
    return _binned([_Predictions(np.clip(found, 0.0, 1.0), hits, weights)], n_bins, strategy)


def expected_calibration_error(
    y_true: Any,
    proba: Any,
    *,
    classes: Any,
    labels: Any = None,
    pairs: Any = None,
    taxonomy: Taxonomy | None = None,
    n_bins: int = N_BINS,
    strategy: str = "uniform",
    sample_weight: Any = None,
) -> float:
    """Mean distance between predicted probability and observed frequency, over the bins of a reliability curve.

    Parameters
    ----------
    y_true, proba, classes, labels, pairs, taxonomy, n_bins, strategy, sample_weight
        As in :func:`reliability_curve`.

    Examples
    --------
    >>> from taxolearn.metrics import expected_calibration_error
    >>> expected_calibration_error(["a", "b"], [[1.0, 0.0], [1.0, 0.0]], classes=["a", "b"])
    0.5
    """
    return reliability_curve(
        y_true,
        proba,
        classes=classes,
        labels=labels,
        pairs=pairs,
        taxonomy=taxonomy,
        n_bins=n_bins,
        strategy=strategy,
        sample_weight=sample_weight,
    ).calibration_error


def _leaf_order(names: npt.NDArray[Any], taxonomy: Taxonomy | None) -> tuple[IntArray, IntArray]:
    """The columns in the order of the leaves, and the leaf of each column in that order."""
    if taxonomy is None:
        leaves = np.arange(len(names), dtype=np.int64)
        return leaves, leaves
    leaves = np.asarray(read_taxonomy(taxonomy).leaf_index(names, argument="classes"), dtype=np.int64)
    order = np.argsort(leaves)
    return order, leaves[order]


def _chosen(
    labels: Any,
    pairs: Any,
    names: npt.NDArray[Any],
    leaves: IntArray,
    taxonomy: Taxonomy | None,
    n: int,
) -> tuple[IntArray | None, IntArray, IntArray]:
    """Find the rows to look at, and for each the ordered columns to sum over, from begin to end.

    The rows are None if these columns are looked at in every row.
    """
    argument = "labels" if pairs is None else "pairs"
    if pairs is not None:
        try:
            rows, labels = pairs
        except (TypeError, ValueError):
            raise ValueError("pairs must be two arrays of the same length: rows and labels") from None
        rows = np.asarray(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) == 0:
            raise ValueError("pairs: rows must be row numbers, at least one")
        if rows.min() < 0 or rows.max() >= n:
            raise ValueError(f"pairs: rows must be from 0 to {n - 1}, got values from {rows.min()} to {rows.max()}")
        rows = rows.astype(np.int64)
    wanted = read_labels(argument, labels, mixed=taxonomy is not None)
    if isinstance(wanted, LabelSets):
        raise ValueError(f"{argument}: labels must be one-dimensional")
    if pairs is not None and len(rows) != len(wanted):
        raise ValueError(f"pairs has {len(rows)} rows but {len(wanted)} labels")
    if taxonomy is None:
        begin = class_columns(argument, wanted, names)
        end = begin + 1
    else:
        nodes = taxonomy.index(wanted, argument=argument)
        begin = np.searchsorted(leaves, taxonomy.leaf_begin[nodes])
        end = np.searchsorted(leaves, taxonomy.leaf_end[nodes])
    return None if pairs is None else rows, begin, end


def _inverse(order: IntArray) -> IntArray:
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def _looked_at(
    true: LabelSets,
    scores: npt.NDArray[Any],
    order: IntArray,
    weights: FloatArray,
    rows: IntArray | None,
    begin: IntArray,
    end: IntArray,
) -> Iterator[_Predictions]:
    """Yield what is predicted for these rows in one piece, or for all rows in pieces of bounded size."""
    first = true.rows * true.width
    keys = np.sort(first + _inverse(order)[true.keys - first])  # the true classes by their ordered columns

    def predictions(block: slice, rows: IntArray, begin: IntArray, end: IntArray) -> _Predictions:
        at = (rows + block.start) * true.width
        hits = np.searchsorted(keys, at + begin) < np.searchsorted(keys, at + end)
        return _Predictions(_range_sums(scores[block], order, rows, begin, end), hits, weights[block][rows])

    if rows is not None:
        yield predictions(slice(0, true.n), rows, begin, end)
        return
    for block in row_blocks(scores, len(begin)):
        n = block.stop - block.start
        yield predictions(block, np.repeat(np.arange(n), len(begin)), np.tile(begin, n), np.tile(end, n))


def _range_sums(
    scores: npt.NDArray[Any], order: IntArray, rows: IntArray, begin: IntArray, end: IntArray
) -> FloatArray:
    """Sum of the scores of each row over its ordered columns."""
    sums = np.zeros(len(rows))
    single = end - begin == 1
    sums[single] = scores[rows[single], order[begin[single]]]
    several = np.flatnonzero(end - begin > 1)
    several = several[np.argsort(rows[several], kind="stable")]
    for block in row_blocks(scores):
        here = several[slice(*np.searchsorted(rows[several], [block.start, block.stop]))]
        if len(here) > 0:
            running = np.zeros((block.stop - block.start, scores.shape[1] + 1))
            np.cumsum(scores[block][:, order], axis=1, dtype=np.float64, out=running[:, 1:])
            at = rows[here] - block.start
            sums[here] = running[at, end[here]] - running[at, begin[here]]
    return np.clip(sums, 0.0, 1.0)


def _binned(pieces: Iterable[_Predictions], n_bins: int, strategy: str) -> ReliabilityCurve:
    edges = np.linspace(0, 1, n_bins + 1)
    if strategy == "quantile":
        whole = _Predictions(*map(np.concatenate, zip(*pieces, strict=True)))
        pieces, confidence, weights = [whole], whole.confidence, whole.weights
        order = np.argsort(confidence, kind="stable")
        shares = weights[order].cumsum()
        shares /= shares[-1]
        # The slack keeps an edge in its place when a share that should equal the quantile is rounded below it.
        places = np.searchsorted(shares, edges[1:-1] - 1e-12)
        edges = np.unique(np.concatenate([[0.0], confidence[order][places], [1.0]]))
    n = len(edges) - 1
    weight, total, hit = np.zeros((3, n))
    for confidence, hits, weights in pieces:
        bins = np.searchsorted(edges[1:-1], confidence, side="left")
        weight += sums(bins, weights, n)
        total += sums(bins, weights * confidence, n)
        hit += sums(bins, weights * hits, n)
    full = weight > 0
    weight = weight[full]
    return ReliabilityCurve(total[full] / weight, hit[full] / weight, weight, edges[:-1][full], edges[1:][full])
