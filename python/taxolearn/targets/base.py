"""What is known of the classes of rows, in the form that fits take: a class, a set of them, or probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_labels

__all__ = ["AllowedSets", "Floats", "Integers", "Targets", "flat_classes", "nothing_known"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BATCH = 2**22  # allowed classes whose probabilities are looked at together


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
    """

    classes: npt.NDArray[Any]
    taxonomy: Taxonomy | None
    order: npt.NDArray[np.intp]
    labels: npt.NDArray[np.int32]
    allowed: AllowedSets | None = None
    unlabelled: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    soft: Floats | None = None

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

    def first(self) -> Floats | npt.NDArray[np.int32]:
        """Targets in the core's form. Rows that allow several classes are spread evenly over them."""
        if self.soft is not None:
            return self.soft
        if self.allowed is None:
            return np.maximum(self.labels, 0)
        out = np.zeros((len(self.labels), self.n_classes))
        out[self.labelled, self.labels[self.labelled]] = 1.0
        out[self.unlabelled, 0] = 1.0
        out[self.allowed.rows] = self.allowed.spread(self.n_classes)
        return out


def nothing_known(entries: list[Any]) -> ValueError:
    lists = any(isinstance(entry, (list, tuple)) for entry in entries)
    hint = ". Lists are sets of labels here; give probabilities of classes as a NumPy array" if lists else ""
    return ValueError(
        f"y tells nothing: all {len(entries)} rows are unlabelled or allow every class; label some of them, with at "
        f"least two classes{hint}"
    )


def flat_classes(labels: Iterable[Any]) -> tuple[npt.NDArray[Any], dict[Any, int]]:
    """The classes in sorted order, and the place of each label among them."""
    listed = list(labels)
    kinds = {"strings" if isinstance(label, str) else "numbers" for label in listed}
    if len(kinds) > 1:
        raise TypeError(f"y has labels that are strings and labels that are numbers: {listed[:5]}; make them all one")
    classes, indices = check_labels(np.array(listed), least=2)
    return classes, dict(zip(listed, indices.tolist(), strict=True))
