"""What the metrics take: labels, sets of labels, weights and scores, checked and brought into one form."""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import gen_batches

from taxolearn.taxonomy.tree import Taxonomy

__all__ = [
    "FloatArray",
    "IntArray",
    "LabelSets",
    "NodePair",
    "SetPair",
    "average",
    "check_same_kind",
    "class_columns",
    "contains",
    "read_classes",
    "read_confidence",
    "read_labels",
    "read_nodes",
    "read_scores",
    "read_sets",
    "read_taxonomy",
    "read_truth",
    "read_weights",
    "rounding",
    "row_blocks",
    "sums",
]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_NUMBERS = "biuf"
_INT64 = np.iinfo(np.int64)
_BOOLEANS = {bool, np.bool_}
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


class NodePair(NamedTuple):
    """True and predicted node of the same items."""

    true: IntArray
    predicted: IntArray


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
            f"{name} must be one label per item or an indicator matrix; lists of labels become one by "
            f"sklearn.preprocessing.MultiLabelBinarizer(classes=..., sparse_output=True)"
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
                f"{name} has items with several labels; make it an indicator matrix by "
                f"sklearn.preprocessing.MultiLabelBinarizer(classes=..., sparse_output=True)"
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


def read_sets(y_true: Any, y_pred: Any) -> tuple[SetPair, npt.NDArray[Any] | None]:
    """Read truth and prediction as sets over the same labels, and these labels, or None for indicator matrices."""
    true, predicted = read_labels("y_true", y_true), read_labels("y_pred", y_pred)
    if isinstance(true, LabelSets) and isinstance(predicted, LabelSets):
        if (true.n, true.width) != (predicted.n, predicted.width):
            raise ValueError(
                f"y_true has shape ({true.n}, {true.width}) but y_pred has ({predicted.n}, {predicted.width}); "
                f"rows and columns must be the same items and labels"
            )
        return SetPair(true, predicted), None
    if isinstance(true, LabelSets) or isinstance(predicted, LabelSets):
        raise ValueError("y_true and y_pred must be both one label per item or both indicator matrices")
    _check_lengths(len(true), len(predicted))
    check_same_kind("y_true", true, "y_pred", predicted)
    names, codes = np.unique(np.concatenate([true, predicted]), return_inverse=True)
    keys = np.tile(np.arange(len(true)) * len(names), 2) + codes.reshape(-1)
    return SetPair(*(LabelSets(len(true), len(names), part) for part in np.split(keys, 2))), names


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


def _check_lengths(n_true: int, n_predicted: int) -> None:
    if n_true != n_predicted:
        raise ValueError(f"y_true has {n_true} items but y_pred has {n_predicted}")


def read_taxonomy(taxonomy: Any) -> Taxonomy:
    """Return the taxonomy, or refuse what is none."""
    if not isinstance(taxonomy, Taxonomy):
        raise ValueError(f"taxonomy must be a taxolearn.Taxonomy, got {type(taxonomy).__name__}")
    return taxonomy


def read_nodes(y_true: Any, y_pred: Any, taxonomy: Taxonomy, *, close: bool) -> NodePair | SetPair:
    """Read truth and prediction as node numbers if both have one label per item, else as sets of nodes but the root.

    A label and an indicator of classes stand for whole paths. An indicator of nodes is taken as it stands, or with
    ``close`` gets the ancestors of its nodes.
    """
    read_taxonomy(taxonomy)
    parts: list[IntArray | LabelSets] = []
    for name, y in (("y_true", y_true), ("y_pred", y_pred)):
        labels = read_labels(name, y, mixed=True)
        if isinstance(labels, LabelSets):
            if labels.width not in (taxonomy.n_nodes, taxonomy.n_classes):
                raise ValueError(
                    f"{name} has {labels.width} columns, expected {taxonomy.n_nodes} (the nodes of the taxonomy) or "
                    f"{taxonomy.n_classes} (its classes)"
                )
            parts.append(labels)
        else:
            parts.append(np.asarray(taxonomy.index(labels, argument=name), dtype=np.int64))
    true, predicted = parts
    _check_lengths(*(part.n if isinstance(part, LabelSets) else len(part) for part in parts))
    if isinstance(true, np.ndarray) and isinstance(predicted, np.ndarray):
        return NodePair(true, predicted)
    return SetPair(*(_node_sets(part, taxonomy, close=close) for part in parts))


def _node_sets(part: IntArray | LabelSets, taxonomy: Taxonomy, *, close: bool) -> LabelSets:
    if isinstance(part, LabelSets):
        n, rows, nodes = part.n, part.rows, part.columns
        if part.width != taxonomy.n_nodes:
            nodes = nodes + taxonomy.n_inner
            close = True
    else:
        n, rows, nodes, close = len(part), np.arange(len(part)), part, True
    below = nodes > 0
    rows, nodes = rows[below], nodes[below]
    keys = rows * taxonomy.n_nodes + nodes
    if not close:
        return LabelSets(n, taxonomy.n_nodes, keys)
    parts = [keys]
    while len(nodes) > 0:
        nodes = taxonomy.parents[nodes]
        below = nodes > 0
        rows, nodes = rows[below], nodes[below]
        parts.append(rows * taxonomy.n_nodes + nodes)
    keys = np.sort(np.concatenate(parts))  # paths meet, so some come twice
    return LabelSets(n, taxonomy.n_nodes, keys[np.diff(keys, prepend=-1) > 0])


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


def read_scores(name: str, scores: Any, classes: npt.NDArray[Any], *, probabilities: bool = False) -> npt.NDArray[Any]:
    """Read a number for each item and class, without NaN; with ``probabilities``, between 0 and 1."""
    if sp.issparse(scores):
        raise ValueError(f"{name} is a sparse matrix; the score of every class is needed, as a dense array")
    try:
        matrix = np.asarray(scores)
        if matrix.dtype not in (np.float64, np.float32):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one row per item and one column per class") from None
    if matrix.ndim != 2 or matrix.shape[1] != len(classes):
        raise ValueError(
            f"{name} has shape {matrix.shape}, expected one row per item and {len(classes)} columns, as many as classes"
        )
    if len(matrix) == 0:
        raise ValueError(f"{name} is empty, at least one item is needed")
    low, high = matrix.min(), matrix.max()
    if np.isnan(low):
        row, column = np.argwhere(np.isnan(matrix))[0]
        raise ValueError(f"{name} has NaN values, the first in row {row} for class {classes[column].item()!r}")
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


def read_truth(y_true: Any, classes: npt.NDArray[Any], scores: npt.NDArray[Any], argument: str = "proba") -> LabelSets:
    """Read the true classes of each item as sets of columns."""
    true = read_labels("y_true", y_true)
    if isinstance(true, LabelSets):
        if true.width != len(classes):
            raise ValueError(f"y_true has {true.width} columns but there are {len(classes)} classes")
    else:
        columns = class_columns("y_true", true, classes)
        true = LabelSets(len(true), len(classes), np.arange(len(true)) * len(classes) + columns)
    if true.n != len(scores):
        raise ValueError(f"y_true has {true.n} items but {argument} has {len(scores)} rows")
    return true


def row_blocks(matrix: npt.NDArray[Any], columns: int = 0) -> Iterator[slice]:
    """Yield slices of rows that hold a bounded number of entries each, even if rows are given ``columns`` columns."""
    yield from gen_batches(len(matrix), max(1, _BLOCK // max(columns, matrix.shape[1])))
