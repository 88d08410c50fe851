"""What the metrics take: labels, sets of labels, weights and scores, checked and brought into one form."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import gen_batches

__all__ = [
    "FloatArray",
    "IntArray",
    "LabelSets",
    "ListedSets",
    "SetPair",
    "average",
    "check_lengths",
    "check_same_kind",
    "class_columns",
    "contains",
    "listed_labels",
    "read_classes",
    "read_confidence",
    "read_items",
    "read_labels",
    "read_scores",
    "read_sets",
    "read_truth",
    "read_weights",
    "rounding",
    "row_blocks",
    "sets_over",
    "sums",
]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_NUMBERS = "biuf"
_INT64 = np.iinfo(np.int64)
_BOOLEANS = {bool, np.bool_}
_COLLECTIONS = (set, frozenset, tuple, list, np.ndarray)
_KINDS = ("strings", "integers", "booleans")
_EXACT = 2**53  # floats from here on do not tell neighbouring integers apart
_BLOCK = 2**21  # scores looked at in one piece, so that scratch stays small beside the scores themselves


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Which of ``width`` labels each of ``n`` items has: sorted keys ``item * width + label``, none of them twice."""

    n: int
    width: int
    keys: IntArray

    @property
    def rows(self) -> IntArray:
        """Item of each key."""
        return self.keys // self.width

    @property
    def columns(self) -> IntArray:
        """Label of each key."""
        return self.keys % self.width


class ListedSets(NamedTuple):
    """The labels that ``n`` items have, as they were listed: the item of each label, rising, and the label."""

    n: int
    rows: IntArray
    labels: npt.NDArray[Any]

    def over(self, width: int, columns: IntArray) -> LabelSets:
        """Make sets over ``width`` labels from the column of each label."""
        return LabelSets(self.n, width, np.unique(self.rows * width + columns))


class SetPair(NamedTuple):
    """True and predicted sets of the same items, over the same labels."""

    true: LabelSets
    predicted: LabelSets

    def common(self) -> IntArray:
        """Keys of the labels that are both true and predicted."""
        keys = self.true.keys
        return keys[contains(self.predicted.keys, keys)]

    def different(self) -> IntArray:
        """Keys of the labels that are either true or predicted but not both."""
        return np.setxor1d(self.true.keys, self.predicted.keys, assume_unique=True)


def contains(keys: IntArray, wanted: IntArray) -> npt.NDArray[np.bool_]:
    """Find which of the wanted keys are among the sorted ones."""
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=bool)
    found: npt.NDArray[np.bool_] = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
    return found


def sums(places: npt.NDArray[Any], values: npt.NDArray[Any], length: int) -> FloatArray:
    """Sum of the values at each place."""
    return np.bincount(places, weights=values, minlength=length).astype(np.float64, copy=False)


def read_labels(name: str, y: Any, *, mixed: bool = False) -> npt.NDArray[Any] | LabelSets:
    """Read a label for each item as a typed array, or sets of labels if ``y`` is an indicator matrix.

    Strings and numbers together are refused, or with ``mixed`` kept apart in an object array. Integers fit into int64.
    """
    if isinstance(y, str | bytes) or np.isscalar(y) or y is None:
        raise ValueError(f"{name} must be an array of labels or an indicator matrix, got {y!r}")
    if sp.issparse(y):
        return _sets_of_matrix(name, y)
    try:
        labels = np.asarray(y)
    except ValueError:
        labels = np.empty((0, 0, 0))  # items of different lengths, refused below
    if labels.ndim == 2:
        if labels.dtype.kind not in _NUMBERS:
            raise ValueError(
                f"{name} is two-dimensional, so it must be an indicator matrix of 0 and 1, got {labels.dtype} values; "
                f"one label per item is a one-dimensional array"
            )
        if len(labels) == 0:
            raise ValueError(f"{name} is empty, at least one item is needed")
        return _sets_of_matrix(name, sp.csr_array(labels))
    if labels.ndim != 1:
        raise ValueError(
            f"{name} must be one label or one list of labels per item, or an indicator matrix, got something of other "
            f"dimensions"
        )
    if len(labels) == 0:
        raise ValueError(f"{name} is empty, at least one item is needed")
    if labels.dtype.kind in "Uiuf" and not hasattr(y, "dtype"):
        # NumPy writes the numbers of a mixed list as strings, and its booleans as numbers; those are other labels.
        kinds = set(map(type, y))
        if (labels.dtype.kind == "U" and not all(issubclass(kind, str) for kind in kinds)) or kinds & _BOOLEANS:
            labels = np.array(y, dtype=object)
    if labels.dtype.kind == "T":
        return labels.astype(str)
    if labels.dtype.kind == "O":
        return _typed(name, labels, mixed=mixed)
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            row = int(np.flatnonzero(~np.isfinite(labels))[0])
            raise ValueError(f"{name}[{row}] is {labels[row]}, expected a label")
        row = int(np.abs(labels).argmax())
        if float(abs(labels[row])) >= _EXACT:
            raise ValueError(
                f"{name}[{row}] is {labels[row].item()!r}, but floats of this size do not tell integers apart; "
                f"give the labels as integers or strings"
            )
    if labels.dtype.kind not in "U" + _NUMBERS:
        raise ValueError(f"{name} has values of type {labels.dtype}, expected strings or integers")
    if labels.dtype == np.uint64:
        if labels.max() > _INT64.max:
            raise _too_large(name, labels)
        return labels.astype(np.int64)
    return labels


def read_items(name: str, y: Any, *, mixed: bool = False) -> npt.NDArray[Any] | LabelSets | ListedSets:
    """Read labels as :func:`read_labels` does, or lists of labels: a list, tuple or set of names for each item.

    Lists of the same length, two or more, that have nothing but 0 and 1 are an indicator matrix.
    """
    plain = isinstance(y, str | bytes) or np.isscalar(y) or y is None or len(getattr(y, "shape", (0,))) != 1
    if plain or getattr(y, "dtype", np.dtype(object)) != np.dtype(object):
        return read_labels(name, y, mixed=mixed)
    listed = list(y)
    if not listed or not all(isinstance(each, _COLLECTIONS) and getattr(each, "ndim", 1) == 1 for each in listed):
        return read_labels(name, y, mixed=mixed)
    lengths = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    flat = list(chain.from_iterable(listed))
    if any(isinstance(label, _COLLECTIONS) for label in flat):
        raise ValueError(f"{name} must be one list of labels per item, got lists of lists")
    if lengths[0] > 0 and (lengths == lengths[0]).all() and _is_indicator(listed, flat):
        return read_labels(name, listed, mixed=mixed)
    labels = read_labels(name, flat, mixed=mixed) if flat else np.empty(0, dtype=str)
    assert isinstance(labels, np.ndarray)
    return ListedSets(len(listed), np.repeat(np.arange(len(listed)), lengths), labels)


def _is_indicator(listed: list[Any], flat: list[Any]) -> bool:
    """Whether collections of the same length are rows of an indicator matrix."""
    if any(isinstance(each, set | frozenset) for each in listed):
        return False
    values = np.asarray(flat)
    if values.dtype.kind == "f":
        return True
    # As sets, rows of two or more numbers 0 and 1 would repeat labels, or all be the same.
    return len(listed[0]) > 1 and values.dtype.kind in _NUMBERS and bool(np.isin(values, (0, 1)).all())


def _too_large(name: str, labels: npt.NDArray[Any]) -> ValueError:
    culprit = next(label for label in labels.tolist() if not _INT64.min <= label <= _INT64.max)
    return ValueError(f"{name} has the integer {culprit}, which does not fit into 64 bits with a sign; use strings")


def _typed(name: str, labels: npt.NDArray[Any], *, mixed: bool) -> npt.NDArray[Any]:
    """Turn the labels of an object array into strings or integers."""
    kinds = set(map(type, labels))
    strings = {kind for kind in kinds if issubclass(kind, str)}
    booleans = kinds & _BOOLEANS
    integers = {kind for kind in kinds if issubclass(kind, Integral)} - booleans
    others = kinds - strings - integers - booleans
    if others:
        if any(issubclass(kind, list | tuple | set | frozenset | np.ndarray) for kind in others):
            raise ValueError(
                f"{name} has several labels where one is expected, or items of which some are lists and others are not"
            )
        row, label = next((row, label) for row, label in enumerate(labels) if type(label) in others)
        raise ValueError(f"{name}[{row}] is {label!r}, expected a string or an integer")
    if kinds == strings:
        return labels.astype(str)
    if kinds == booleans:
        return labels.astype(np.bool_)
    if kinds == integers:
        try:
            return labels.astype(np.int64)
        except OverflowError:
            raise _too_large(name, labels) from None
    if mixed and not booleans:
        return labels
    found: list[set[type]] = [strings, integers, booleans]
    mix = [(word, some) for word, some in zip(_KINDS, found, strict=True) if some]
    examples = [repr(next(label for label in labels if type(label) in some)) for _, some in mix]
    raise ValueError(
        f"{name} mixes {' and '.join(word for word, _ in mix)}, such as {' and '.join(examples)}; "
        f"labels must be of one kind"
    )


def _sets_of_matrix(name: str, matrix: Any) -> LabelSets:
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} is empty, got an indicator matrix of shape {matrix.shape}")
    matrix = matrix.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's matrix stays as it is
        matrix.sum_duplicates()
    on = matrix.data != 0
    if not (matrix.data[on] == 1).all():
        culprit = matrix.data[on & (matrix.data != 1)][0]
        raise ValueError(f"{name} must be an indicator matrix of 0 and 1, got the value {culprit}")
    n, width = map(int, matrix.shape)
    rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(matrix.indptr))
    return LabelSets(n, width, (rows * width + matrix.indices)[on])


def read_sets(y_true: Any, y_pred: Any, classes: Any = None) -> tuple[SetPair, npt.NDArray[Any] | None]:
    """Read truth and prediction as sets over the same labels, and these labels.

    They are the classes or, for None, those that occur; of indicator matrices they are not known and None.
    """
    true, predicted = (listed_labels(read_items(name, y)) for name, y in (("y_true", y_true), ("y_pred", y_pred)))
    names = None if classes is None else read_classes(classes)
    if isinstance(true, ListedSets) and isinstance(predicted, ListedSets):
        check_lengths(true.n, predicted.n)
        names = _names_of(true, predicted) if names is None else names
    pair = SetPair(sets_over("y_true", true, names), sets_over("y_pred", predicted, names))
    if (pair.true.n, pair.true.width) != (pair.predicted.n, pair.predicted.width):
        raise ValueError(
            f"y_true has shape ({pair.true.n}, {pair.true.width}) but y_pred has ({pair.predicted.n}, "
            f"{pair.predicted.width}); rows and columns must be the same items and labels"
        )
    return pair, names


def listed_labels(items: npt.NDArray[Any] | LabelSets | ListedSets) -> LabelSets | ListedSets:
    """One label per item as a list of one."""
    return ListedSets(len(items), np.arange(len(items)), items) if isinstance(items, np.ndarray) else items


def _names_of(true: ListedSets, predicted: ListedSets) -> npt.NDArray[Any]:
    """Return the labels that occur."""
    if len(true.labels) == 0 or len(predicted.labels) == 0:
        return np.unique(max(true.labels, predicted.labels, key=len))
    check_same_kind("y_true", true.labels, "y_pred", predicted.labels)
    return np.unique(np.concatenate([true.labels, predicted.labels]))


def sets_over(
    name: str, items: npt.NDArray[Any] | LabelSets | ListedSets, classes: npt.NDArray[Any] | None
) -> LabelSets:
    """Turn items into sets of columns, those of an indicator matrix or the places of the labels among the classes."""
    items = listed_labels(items)
    if isinstance(items, LabelSets):
        if classes is not None and items.width != len(classes):
            raise ValueError(f"{name} has {items.width} columns but there are {len(classes)} classes")
        return items
    if classes is None:
        raise ValueError(
            f"{name} lists labels by name, so classes is needed, the names of the columns; without it, truth and "
            f"predictions must be both one label per item or both lists of labels or both indicator matrices"
        )
    if len(items.labels) == 0:
        return LabelSets(items.n, len(classes), np.empty(0, dtype=np.int64))
    return items.over(len(classes), class_columns(name, items.labels, classes))


def check_same_kind(name: str, labels: npt.NDArray[Any], other: str, others: npt.NDArray[Any]) -> None:
    """Refuse to compare strings with numbers, and integers with floats that cannot tell them apart."""
    if (labels.dtype.kind == "U") != (others.dtype.kind == "U"):
        raise ValueError(
            f"{name} has labels such as {labels.flat[0].item()!r} and {other} such as {others.flat[0].item()!r}; "
            f"both must be strings or both numbers"
        )
    for one, several, against in ((name, labels, others), (other, others, labels)):
        if several.dtype.kind in "iu" and against.dtype.kind == "f":
            largest = max(int(several.max()), int(several.min()), key=abs)
            if abs(largest) >= _EXACT:
                rest = other if one == name else name
                raise ValueError(
                    f"{one} has the integer {largest}, but {rest} has floats, which do not tell integers of this size "
                    f"apart; give both as integers or both as strings"
                )


def check_lengths(n_true: int, n_predicted: int) -> None:
    """Refuse truth and prediction of different numbers of items."""
    if n_true != n_predicted:
        raise ValueError(f"y_true has {n_true} items but y_pred has {n_predicted}")


def read_weights(sample_weight: Any, n: int) -> FloatArray:
    """Read the weights of the items, all one for None."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one per item") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({n},): one weight per item")
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight has NaN or infinite values")
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weights.min()}")
    total = weights.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"sample_weight must have a positive and finite sum, got {total}")
    return weights


def average(values: npt.NDArray[Any], weights: FloatArray) -> float:
    """Compute a weighted mean in which items without weight do not count, whatever their value."""
    counted = weights > 0
    return float(np.average(values[counted], weights=weights[counted]))


def read_classes(classes: Any) -> npt.NDArray[Any]:
    """Read the names of the columns, which must differ."""
    names = read_labels("classes", classes)
    if isinstance(names, LabelSets):
        raise ValueError("classes must be one-dimensional: the names of the columns of proba")
    different, counts = np.unique(names, return_counts=True)
    if len(different) < len(names):
        raise ValueError(f"classes names {different[counts > 1][0].item()!r} more than once")
    return names


def read_scores(
    name: str, scores: Any, classes: npt.NDArray[Any] | None, *, probabilities: bool = False
) -> npt.NDArray[Any]:
    """Read a number for each item and class, without NaN; with ``probabilities``, between 0 and 1."""
    if sp.issparse(scores):
        raise ValueError(f"{name} is a sparse matrix; the score of every class is needed, as a dense array")
    try:
        matrix = np.asarray(scores)
        if matrix.dtype not in (np.float64, np.float32):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one row per item and one column per class") from None
    if matrix.ndim != 2 or (classes is not None and matrix.shape[1] != len(classes)):
        columns = "one column per class" if classes is None else f"{len(classes)} columns, as many as classes"
        raise ValueError(f"{name} has shape {matrix.shape}, expected one row per item and {columns}")
    if matrix.size == 0:
        raise ValueError(f"{name} is empty, at least one item is needed")
    low, high = matrix.min(), matrix.max()
    if np.isnan(low):
        row, column = np.argwhere(np.isnan(matrix))[0]
        which = f"column {column}" if classes is None else f"class {classes[column].item()!r}"
        raise ValueError(f"{name} has NaN values, the first in row {row} for {which}")
    slack = rounding(matrix)
    if probabilities and (low < -slack or high > 1 + slack):
        raise ValueError(f"{name} must be probabilities between 0 and 1, got values from {low} to {high}")
    return matrix


def read_confidence(confidence: Any) -> FloatArray:
    """Read one number for each item, without NaN."""
    try:
        scores = np.asarray(confidence, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("confidence must be numbers, one per item") from None
    if scores.ndim != 1:
        raise ValueError(f"confidence has shape {scores.shape}, expected one number per item")
    if len(scores) == 0:
        raise ValueError("confidence is empty, at least one item is needed")
    if np.isnan(scores).any():
        raise ValueError(f"confidence has NaN values, the first at {np.flatnonzero(np.isnan(scores))[0]}")
    return scores


def rounding(matrix: npt.NDArray[Any]) -> float:
    """How far a sum of probabilities may be from one, for their precision."""
    return 1e-3 if matrix.dtype == np.float32 else 1e-5


def class_columns(name: str, labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> IntArray:
    """Find the column of each label."""
    check_same_kind(name, labels, "classes", classes)
    if (labels.dtype.kind == "b") != (classes.dtype.kind == "b"):
        raise ValueError(
            f"{name} has labels such as {labels[0].item()!r} and classes such as {classes[0].item()!r}; "
            f"booleans are not numbers of classes, so make both the same kind"
        )
    order = np.argsort(classes, kind="stable")
    columns: IntArray = order[np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)]
    unknown = classes[columns] != labels
    if unknown.any():
        names = np.unique(labels[unknown])[:5].tolist()
        raise ValueError(f"{name} has labels that are not in classes: {', '.join(map(repr, names))}")
    return columns


def read_truth(y_true: Any, classes: npt.NDArray[Any] | None, scores: Any, argument: str = "proba") -> LabelSets:
    """Read the true classes of each item as sets of columns of the scores."""
    true = sets_over("y_true", read_items("y_true", y_true), classes)
    if true.n != scores.shape[0]:
        raise ValueError(f"y_true has {true.n} items but {argument} has {scores.shape[0]} rows")
    if true.width != scores.shape[1]:
        raise ValueError(f"y_true has {true.width} columns but {argument} has {scores.shape[1]}")
    return true


def row_blocks(matrix: npt.NDArray[Any], columns: int = 0) -> Iterator[slice]:
    """Yield slices of rows that hold a bounded number of entries each, even if rows are given ``columns`` columns."""
    yield from gen_batches(len(matrix), max(1, _BLOCK // max(columns, matrix.shape[1])))
