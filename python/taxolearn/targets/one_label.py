"""Rows with one class each, of which y says the class, a set, a node above it, probabilities, or nothing; weights."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_number

if TYPE_CHECKING:
    from taxolearn.targets.label_sets import LabelSets

__all__ = [
    "FOR_SEVERAL",
    "AllowedSets",
    "PartialLabels",
    "Targets",
    "as_labels",
    "check_labels",
    "class_weights",
    "label_targets",
    "read_targets",
    "row_weights",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_INNER = ("below", "own")
_SETS = (set, frozenset, list, tuple, np.ndarray)  # the last is what tables make of a column of lists
_UNLABELLED = "None, NaN or pandas.NA stands for an unlabelled row"
_BATCH = 2**22  # allowed classes whose probabilities are looked at together
_SUM_TOLERANCE = 1e-6  # on the sums of probabilities
FOR_SEVERAL = "RecursiveRegularizationClassifier is for rows that have any number of labels"


class PartialLabels(BaseEstimator):
    """How to read inner nodes as labels, and how rows that allow several classes are fitted.

    Such rows are fitted by expectation maximization: each round weighs the allowed classes by their probabilities and
    continues the fit with these weights.

    Parameters
    ----------
    inner : {"below", "own"}, default="below"
        What the name of an inner node means as a label: "below" that the class is one of those below the node, nobody
        knows which; "own" a class of its own, for which a leaf is added below the node (``Taxonomy.with_classes``).
    tol : float, default=1e-4
        Relative change of the marginal likelihood at which rounds stop.
    max_rounds : int, default=100
        Largest number of rounds.
    """

    def __init__(self, inner: str = "below", *, tol: float = 1e-4, max_rounds: int = 100) -> None:
        self.inner = inner
        self.tol = tol
        self.max_rounds = max_rounds

    def check(self) -> None:
        """Raise an error for values that are out of range."""
        check_choice("inner", self.inner, _INNER)
        check_number("PartialLabels: tol", self.tol, least=0)
        check_number("max_rounds", self.max_rounds, least=1, integer=True)


def as_labels(labels: Any) -> PartialLabels:
    """The checked value that an estimator's argument means."""
    if isinstance(labels, str) and labels in _INNER:
        return PartialLabels(labels)
    if not isinstance(labels, PartialLabels):
        choices = ", ".join(map(repr, _INNER))
        raise ValueError(f"labels is {labels!r}, expected one of {choices}, or a PartialLabels")
    labels.check()
    return labels


@dataclass(frozen=True)
class AllowedSets:
    """Sets of classes, each stored once: row ``rows[k]`` allows ``members[begin[s]:begin[s + 1]]`` with ``s = of[k]``.

    Memory is that of the different sets, so that a million rows with the same parent cost a number each.
    """

    rows: Integers
    of: Integers
    begin: Integers
    members: Integers

    @property
    def sizes(self) -> Integers:
        """Of the sets."""
        return np.diff(self.begin)

    def spread(self, n_classes: int) -> Floats:
        """Uniform over the allowed classes: (rows, classes)."""
        return self.responsibilities(np.zeros((len(self.rows), n_classes)))[0]

    def responsibilities(self, log_proba: Floats) -> tuple[Floats, Floats]:
        """Probabilities given that the class is allowed (Seeger 2008, 7.4.2), and logarithms of those that it is.

        ``log_proba`` has the rows of this object and all classes. It is overwritten, and returned as probabilities.
        """
        total = np.empty(len(self.rows))
        sizes = self.sizes[self.of]
        ends = np.cumsum(sizes)
        first = 0
        while first < len(self.rows):
            done = 0 if first == 0 else ends[first - 1]
            last = max(first + 1, int(np.searchsorted(ends, done + _BATCH, side="right")))
            part = sizes[first:last]
            starts = np.cumsum(part) - part
            row = np.repeat(np.arange(first, last), part)
            offset = np.arange(len(row)) - np.repeat(starts, part)
            column = self.members[np.repeat(self.begin[self.of[first:last]], part) + offset]
            values = log_proba[row, column]
            largest = np.maximum.reduceat(values, starts)
            values = np.exp(values - np.repeat(largest, part))
            sums = np.add.reduceat(values, starts)
            total[first:last] = largest + np.log(sums)
            log_proba[first:last] = 0.0
            log_proba[row, column] = values / np.repeat(sums, part)
            first = last
        return log_proba, total


@dataclass(frozen=True)
class Targets:
    """What is known of every row.

    Attributes
    ----------
    classes : ndarray
        Labels of the model, sorted.
    taxonomy : Taxonomy or None
        With a leaf for each of them.
    order : ndarray of int
        From the order of the core, which is that of the taxonomy, to that of ``classes``.
    labels : ndarray of int32, shape (n_samples,)
        Classes in the order of the core; -1 for rows that have not just one.
    allowed : AllowedSets or None
        Classes of rows that allow several, but not all.
    unlabelled : ndarray of int
        Rows that allow all classes. Their likelihood is 1 whatever the model says, so their weight is 0.
    soft : ndarray of shape (n_samples, n_classes) or None
        Probabilities of the classes, in the order of the core, where these were given; ``labels`` are then those of
        rows with one class of probability 1.
    sets : LabelSets or None
        Labels of rows that have any number of them, in the order of the core, each right whatever the others are;
        ``labels`` are then the rarest one of each row, by which folds are stratified.
    """

    classes: npt.NDArray[Any]
    taxonomy: Taxonomy | None
    order: npt.NDArray[np.intp]
    labels: npt.NDArray[np.int32]
    allowed: AllowedSets | None = None
    unlabelled: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    soft: Floats | None = None
    sets: LabelSets | None = None

    @property
    def is_certain(self) -> bool:
        return self.allowed is None and self.soft is None and len(self.unlabelled) == 0

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def in_core_order(self) -> npt.NDArray[Any]:
        """The classes, as the core numbers them."""
        return self.classes if self.taxonomy is None else self.taxonomy.classes

    @cached_property
    def labelled(self) -> npt.NDArray[np.intp]:
        """Rows with one class."""
        return np.flatnonzero(self.labels >= 0)

    def names(self) -> npt.NDArray[Any]:
        """Labels of the rows with one class."""
        names: npt.NDArray[Any] = self.in_core_order[self.labels[self.labelled]]
        return names

    def exchangeable(self) -> list[Any]:
        """Labels of the first classes that rows allow together only, none alone: nothing tells these apart."""
        if self.allowed is None:
            return []
        of_class: list[list[int]] = [[] for _ in range(self.n_classes)]
        for k in range(len(self.allowed.sizes)):
            for c in self.allowed.members[self.allowed.begin[k] : self.allowed.begin[k + 1]].tolist():
                of_class[c].append(k)
        alike: dict[tuple[int, ...], list[int]] = {}
        for c in np.setdiff1d(np.arange(self.n_classes), self.labels).tolist():
            alike.setdefault(tuple(of_class[c]), []).append(c)
        for sets, classes in alike.items():
            if sets and len(classes) > 1:
                return list(self.in_core_order[classes].tolist())
        return []

    def first(self) -> Any:
        """Targets in the core's form. Rows that allow several classes are spread evenly over them."""
        if self.sets is not None:
            return self.sets
        if self.soft is not None:
            return self.soft
        if self.allowed is None:
            return np.maximum(self.labels, 0)
        out = np.zeros((len(self.labels), self.n_classes))
        out[self.labelled, self.labels[self.labelled]] = 1.0
        out[self.unlabelled, 0] = 1.0
        out[self.allowed.rows] = self.allowed.spread(self.n_classes)
        return out


def read_targets(y: Any, taxonomy: Taxonomy | None, inner: str) -> Targets | None:
    """Targets of rows that may have less, or more, than one label; None if ``y`` holds plain labels only.

    Parameters
    ----------
    y : array, list, series or data frame
        As ``KernelLogisticClassifier.fit`` takes it.
    taxonomy : Taxonomy or None
        The tree of classes.
    inner : {"below", "own"}
        What the name of an inner node means.
    """
    shape = getattr(y, "shape", None)
    if hasattr(y, "tocsr"):
        raise TypeError(
            f"y is a sparse matrix of shape {tuple(y.shape)}, expected labels, or a dense array of probabilities. "
            f"{FOR_SEVERAL}"
        )
    if shape is not None and len(shape) == 2 and shape[1] > 1:
        return _read_probabilities(y, taxonomy)
    entries = _entries_of(_one_column(y), taxonomy if inner == "below" else None)
    return None if entries is None else _read_sets(entries, taxonomy, inner)


def label_targets(y: Any, taxonomy: Taxonomy | None, inner: str) -> Targets:
    """Targets of rows with one label each, as scikit-learn checks them."""
    seen, indices = check_labels(y, least=2 if taxonomy is None else 1)
    if taxonomy is None:
        return Targets(seen, None, np.arange(len(seen)), indices)
    if inner == "own":
        taxonomy = taxonomy.with_classes(seen, argument="y")
    order = np.argsort(taxonomy.classes, kind="stable")
    labels = taxonomy.leaf_index(seen, argument="y")[indices].astype(np.int32)
    return Targets(taxonomy.classes[order], taxonomy, order, labels)


def check_labels(y: Any, *, least: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """The classes, at least so many, in sorted order, and the index of each label among them."""
    y = column_or_1d(y, warn=True)
    with warnings.catch_warnings():
        # Many classes with few examples each are no sign of a regression problem here.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        check_classification_targets(y)
    classes, indices = np.unique(y, return_inverse=True)
    if len(classes) < least:
        raise ValueError(f"y has one class only, {classes.tolist()[0]!r}; at least two classes are needed")
    return classes, indices.astype(np.int32)


def _flat_classes(labels: Iterable[Any]) -> tuple[npt.NDArray[Any], dict[Any, int]]:
    """The classes in sorted order, and the place of each label among them."""
    listed = list(labels)
    kinds = {"strings" if isinstance(label, str) else "numbers" for label in listed}
    if len(kinds) > 1:
        raise TypeError(f"y has labels that are strings and labels that are numbers: {listed[:5]}; make them all one")
    classes, indices = check_labels(np.array(listed), least=2)
    return classes, dict(zip(listed, indices.tolist(), strict=True))


def _nothing_known(entries: list[Any]) -> ValueError:
    lists = any(isinstance(entry, (list, tuple)) for entry in entries)
    hint = ". Lists are sets of labels here; give probabilities of classes as a NumPy array" if lists else ""
    return ValueError(
        f"y says nothing: all {len(entries)} rows are unlabelled or allow every class; label some of them, with at "
        f"least two classes{hint}"
    )


# -- Sets of labels ---------------------------------------------------------------------------------------------------


def _is_missing(entry: Any) -> bool:
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, (float, np.floating)) and bool(np.isnan(entry))


def _one_column(y: Any) -> Any:
    """A table of one column as that column, and other things that NumPy can read as arrays."""
    if isinstance(y, (list, tuple)):
        return y
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        return np.asarray(y)[:, 0]
    return np.asarray(y) if hasattr(y, "__array__") and not hasattr(y, "dtype") else y


def _entries_of(y: Any, taxonomy: Taxonomy | None) -> list[Any] | None:
    """Entries of y if one of them is missing, a set, or an inner node of the taxonomy; else None."""
    if isinstance(y, (list, tuple)):
        entries = list(y)
    else:
        if not hasattr(y, "dtype") or getattr(y, "ndim", 1) != 1:
            return None
        if _is_whole(y) and (taxonomy is None or not _names_inner(np.unique(y).tolist(), taxonomy)):
            return None
        entries = list(y.to_list() if hasattr(y, "to_list") else y.tolist() if hasattr(y, "tolist") else y)
    if any(isinstance(entry, _SETS) or _is_missing(entry) for entry in entries):
        return entries
    return entries if taxonomy is not None and _names_inner(entries, taxonomy) else None


def _names_inner(labels: Iterable[Any], taxonomy: Taxonomy) -> bool:
    inner = set(taxonomy.names[: taxonomy.n_inner])
    return any(isinstance(label, Hashable) and label in inner for label in labels)


def _is_whole(y: Any) -> bool:
    """Whether it takes no look at the entries to see that none is missing, or a set."""
    if not isinstance(y, np.ndarray):
        return False
    return y.dtype.kind in "biuUSV" or (y.dtype.kind == "f" and not bool(np.isnan(y).any()))


def _read_sets(entries: list[Any], taxonomy: Taxonomy | None, inner: str) -> Targets:
    """Targets of rows of which a set of classes is known, a node above the class, or nothing."""
    members = [_members(entry, row) for row, entry in enumerate(entries)]
    distinct = dict.fromkeys(label for labels in members for label in labels)
    if not distinct:
        raise _nothing_known(entries)
    if taxonomy is None:
        classes, position = _flat_classes(distinct)
        order = np.arange(len(classes))
        ranges = {label: (position[label], position[label] + 1) for label in distinct}
    else:
        names = list(distinct)
        if inner == "own":
            taxonomy = taxonomy.with_classes(names, argument="y")
        nodes = np.atleast_1d(taxonomy.index(names, argument="y"))
        if inner == "below":
            _warn_of_ancestors(members, dict(zip(names, nodes.tolist(), strict=True)), taxonomy)
        begins, ends = taxonomy.leaf_begin[nodes].tolist(), taxonomy.leaf_end[nodes].tolist()
        ranges = dict(zip(names, zip(begins, ends, strict=True), strict=True))
        order = np.argsort(taxonomy.classes, kind="stable")
        classes = taxonomy.classes[order]
    labels, allowed, unlabelled = _collect(members, ranges, len(classes))
    if len(unlabelled) == len(labels):
        raise _nothing_known(entries)
    return Targets(classes, taxonomy, order, labels, allowed, unlabelled)


def _warn_of_ancestors(members: list[tuple[Any, ...]], node_of: Mapping[Any, int], taxonomy: Taxonomy) -> None:
    """Where every set holds all nodes above its labels, these are sets of labels that are all right."""
    parents = taxonomy.parents
    row_of_pair = -1
    for row, labels in enumerate(members):
        nodes = {node_of[label] for label in labels}
        above = {int(parents[node]) for node in nodes} - {-1, 0}
        if not above <= nodes:
            return
        if above and row_of_pair < 0:
            row_of_pair = row
    if row_of_pair >= 0:
        warnings.warn(
            f"y: every row names all nodes above its labels, such as row {row_of_pair}, {members[row_of_pair]}. A list "
            f"means here that one of its labels is right, nobody knows which. {FOR_SEVERAL}",
            UserWarning,
            stacklevel=4,
        )


def _members(entry: Any, row: int) -> tuple[Any, ...]:
    """Labels of one row, without repetition; empty for none."""
    if _is_missing(entry):
        return ()
    if not isinstance(entry, _SETS):
        return (_plain(entry, row),)
    if len(entry) == 0:
        raise ValueError(f"y: row {row} is an empty set, which allows no class; {_UNLABELLED}. {FOR_SEVERAL}")
    if any(map(_is_missing, entry)):
        raise ValueError(f"y: row {row} is {entry!r}, a set with a missing member; {_UNLABELLED}, instead of the set")
    return tuple(dict.fromkeys(_plain(member, row, entry) for member in entry))


def _plain(label: Any, row: int, entry: Any = None) -> Any:
    """The label as a value of Python."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, _SETS) or not isinstance(label, Hashable):
        raise TypeError(f"y: row {row} is {entry!r}, whose member {label!r} is no label; expected strings or integers")
    if entry is not None and isinstance(label, float):
        raise TypeError(
            f"y: row {row} is {entry!r}, a set of labels, but {label!r} is neither a string nor an integer; give "
            "probabilities of classes as a NumPy array of shape (n_samples, n_classes) or a data frame"
        )
    return label


def _collect(
    members: list[tuple[Any, ...]], ranges: Mapping[Any, tuple[int, int]], n_classes: int
) -> tuple[npt.NDArray[np.int32], AllowedSets | None, Integers]:
    """Classes of rows that allow one, the sets of those that allow more, and rows that allow all."""
    labels = np.full(len(members), -1, dtype=np.int32)
    sets: dict[tuple[int, ...], int] = {}
    known: dict[frozenset[Any], tuple[int, ...]] = {frozenset(): tuple(range(n_classes))}
    rows: list[int] = []
    of: list[int] = []
    unlabelled = []
    for row, names in enumerate(members):
        key = frozenset(names)
        if key not in known:
            known[key] = tuple(sorted({c for name in key for c in range(*ranges[name])}))
        allowed = known[key]
        if len(allowed) == 1:
            labels[row] = allowed[0]
        elif len(allowed) == n_classes:
            unlabelled.append(row)
        else:
            rows.append(row)
            of.append(sets.setdefault(allowed, len(sets)))
    free = np.array(unlabelled, dtype=np.int64)
    if not rows:
        return labels, None, free
    begin = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    flat = np.fromiter((c for allowed in sets for c in allowed), dtype=np.int64, count=int(begin[-1]))
    return labels, AllowedSets(np.array(rows, dtype=np.int64), np.array(of, dtype=np.int64), begin, flat), free


# -- Probabilities ----------------------------------------------------------------------------------------------------


def _read_probabilities(y: Any, taxonomy: Taxonomy | None) -> Targets:
    """Targets of rows with probabilities of the classes."""
    names = list(y.columns) if hasattr(y, "columns") else None
    try:
        values = np.array(y, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(
            f"y has shape {tuple(y.shape)}, which means probabilities of classes, but its values are no numbers; "
            "expected one column of labels, or numbers from 0 to 1 that sum to 1 in every row"
        ) from None
    unlabelled = np.flatnonzero(np.isnan(values).all(axis=1))
    if len(unlabelled) == len(values):
        raise _nothing_known(values.tolist())
    values[unlabelled] = 1.0 / values.shape[1]
    _check_probabilities(values)
    leaves = None if taxonomy is None else np.sort(taxonomy.classes)
    if names is None and leaves is not None and len(leaves) != values.shape[1]:
        raise ValueError(
            f"y has {values.shape[1]} columns of probabilities, expected {len(leaves)}: one for each leaf of the "
            "taxonomy, sorted as in classes_; a data frame may name fewer of them"
        )
    if taxonomy is None or leaves is None:
        listed = list(range(values.shape[1])) if names is None else names
        classes, place = _flat_classes(_check_unique(listed))
        order = np.arange(len(classes))
        columns = [place[name] for name in listed]
    else:
        order = np.argsort(taxonomy.classes, kind="stable")
        classes = taxonomy.classes[order]
        listed = classes.tolist() if names is None else _check_unique(names)
        columns = np.atleast_1d(taxonomy.leaf_index(listed, argument="columns of y")).tolist()
    soft = np.zeros((len(values), len(classes)))
    soft[:, columns] = values
    labels = np.where(soft.max(axis=1) == 1.0, soft.argmax(axis=1), -1).astype(np.int32)
    return Targets(classes, taxonomy, order, labels, unlabelled=unlabelled, soft=soft)


def _check_unique(names: list[Any]) -> list[Any]:
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"y has more than one column named {repeated[0]!r}; each class has one column")
    return names


def _check_probabilities(values: Floats) -> None:
    """Scale what is within rounding of a distribution to one; raise an error for the rest."""
    what = f"y has shape {values.shape}, which means probabilities of classes"
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)).all(axis=1))
    if len(wrong) > 0:
        row = int(wrong[0])
        raise ValueError(
            f"{what}, but row {row} has the value {values[row][~(values[row] >= 0) | ~np.isfinite(values[row])][0]}; "
            "expected numbers from 0 to 1, or NaN in all columns of an unlabelled row"
        )
    sums = values.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > _SUM_TOLERANCE)
    if len(wrong) > 0:
        row = int(wrong[0])
        if ((values == 0) | (values == 1)).all():
            raise ValueError(
                f"y has shape {values.shape} and holds 0 and 1 only, but {sums[row]:g} ones in row {row}: this looks "
                f"like several labels per row, of which a classifier of one class cannot learn. {FOR_SEVERAL}"
            )
        raise ValueError(f"{what}, but row {row} sums to {sums[row]:.6g}, expected 1; divide each row by its sum")
    off = np.flatnonzero(sums != 1.0)
    values[off] /= sums[off, None]


# -- Weights ----------------------------------------------------------------------------------------------------------


def row_weights(
    targets: Targets, sample_weight: Any, class_weight: Mapping[Any, float] | str | None, X: Any
) -> Floats | None:
    """Weights of the rows, with those of their classes multiplied in; None if all are one.

    A row that is not certain has the mean of the weights of its allowed classes, or that by its probabilities; a row
    with several labels has the mean of theirs, one without any has 1.
    "balanced" counts rows in the same way.
    """
    if sample_weight is None and class_weight is None and len(targets.unlabelled) == 0:
        return None
    weights: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True)
    weights[targets.unlabelled] = 0.0
    if class_weight is not None and targets.sets is not None:
        weights *= targets.sets.row_means(class_weights(targets, class_weight, targets.sets.counts()))
    elif class_weight is not None:
        first = targets.first()
        if first.ndim == 1:
            counts = np.bincount(targets.labels[targets.labelled], minlength=targets.n_classes).astype(np.float64)
            weights *= class_weights(targets, class_weight, counts)[first]
        else:
            is_known = np.ones(len(weights))
            is_known[targets.unlabelled] = 0.0
            weights *= first @ class_weights(targets, class_weight, is_known @ first)
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight times class_weight is not finite")
    if not (weights > 0).any():
        raise ValueError("sample_weight is zero in all rows with a label; at least one needs a positive weight")
    return np.ascontiguousarray(weights)


def class_weights(targets: Targets, class_weight: Any, counts: Floats) -> Floats:
    """Weights of the classes in the order of the core."""
    names = targets.in_core_order.tolist()
    if isinstance(class_weight, Mapping):
        unknown = sorted(set(class_weight) - set(names), key=str)
        if unknown:
            raise ValueError(f"class_weight names labels that are not in y: {unknown[:5]}")
        factors = np.array([class_weight.get(name, 1.0) for name in names], dtype=np.float64)
        if (factors < 0).any():
            raise ValueError(f"class_weight must not be negative, got {factors.min()}")
        return factors
    if not isinstance(class_weight, str) or class_weight != "balanced":
        raise ValueError(f"class_weight is {class_weight!r}, expected a dict, 'balanced' or None")
    seen = counts > 0
    out = np.zeros(len(counts))
    out[seen] = counts.sum() / (seen.sum() * counts[seen])
    return out
