"""Rows of which a set of classes is known, a node of the taxonomy above the class, or nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.targets.base import AllowedSets, Integers, Targets, flat_classes, nothing_known
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["entries_of", "one_column", "read_sets"]

_SETS = (set, frozenset, list, tuple, np.ndarray)  # the last is what tables make of a column of lists
_UNLABELLED = "None, NaN or pandas.NA stands for an unlabelled row"


def _is_missing(entry: Any) -> bool:
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, (float, np.floating)) and bool(np.isnan(entry))


def one_column(y: Any) -> Any:
    """A table of one column as that column, and other things that NumPy can read as arrays."""
    if isinstance(y, (list, tuple)):
        return y
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1 and not hasattr(y, "tocsr"):
        return np.asarray(y)[:, 0]
    return np.asarray(y) if hasattr(y, "__array__") and not hasattr(y, "dtype") else y


def entries_of(y: Any, taxonomy: Taxonomy | None) -> list[Any] | None:
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


def _members(entry: Any, row: int) -> tuple[Any, ...]:
    """Labels of one row, without repetition; empty for none."""
    if _is_missing(entry):
        return ()
    if not isinstance(entry, _SETS):
        return (_plain(entry, row),)
    if len(entry) == 0:
        raise ValueError(f"y: row {row} is an empty set, which allows no class; {_UNLABELLED}")
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


def read_sets(entries: list[Any], taxonomy: Taxonomy | None, inner: str) -> Targets:
    members = [_members(entry, row) for row, entry in enumerate(entries)]
    distinct = dict.fromkeys(label for labels in members for label in labels)
    if not distinct:
        raise nothing_known(entries)
    if taxonomy is None:
        classes, position = flat_classes(distinct)
        order = np.arange(len(classes))
        ranges = {label: (position[label], position[label] + 1) for label in distinct}
    else:
        names = list(distinct)
        if inner == "own":
            taxonomy = taxonomy.with_classes(names, argument="y")
        nodes = np.atleast_1d(taxonomy.index(names, argument="y"))
        begins, ends = taxonomy.leaf_begin[nodes].tolist(), taxonomy.leaf_end[nodes].tolist()
        ranges = dict(zip(names, zip(begins, ends, strict=True), strict=True))
        order = np.argsort(taxonomy.classes, kind="stable")
        classes = taxonomy.classes[order]
    labels, allowed, unlabelled = _collect(members, ranges, len(classes))
    if len(unlabelled) == len(labels):
        raise nothing_known(entries)
    return Targets(classes, taxonomy, order, labels, allowed, unlabelled)


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
