"""Rows with any number of labels, by an indicator matrix or a list of sets: read, closed upwards, and written back."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.targets.one_label import Targets
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.nodes import shown
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["LabelForm", "LabelSets", "closed_sets", "is_label_sets", "nodes_above", "read_label_sets", "set_targets"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SETS = (set, frozenset, list, tuple, np.ndarray)
_FORMS = ("dense", "sparse", "frame", "tuples", "sets")
_FRAMES = ("pandas", "polars")  # libraries whose data frames answers can be written in


@dataclass(frozen=True)
class LabelSets:
    """Labels of all rows: row i has ``labels[offsets[i]:offsets[i + 1]]``, in increasing order."""

    labels: npt.NDArray[np.int32]
    offsets: Integers
    n_labels: int

    @classmethod
    def of(cls, matrix: Any) -> LabelSets:
        """The sets that an indicator, a CSR matrix of ones, stands for."""
        matrix = matrix.sorted_indices()
        return cls(matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64), int(matrix.shape[1]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def matrix(self) -> sp.csr_array:
        """The indicator, of shape (n_samples, n_labels)."""
        shape = (len(self), self.n_labels)
        return sp.csr_array((np.ones(len(self.labels), dtype=np.int8), self.labels, self.offsets), shape=shape)

    def counts(self) -> Floats:
        """The number of rows of each label."""
        return np.bincount(self.labels, minlength=self.n_labels).astype(np.float64)

    def row_means(self, values: Floats) -> Floats:
        """Means of the labels' values over the labels of each row; 1 for a row without labels."""
        sizes = np.diff(self.offsets)
        sums = np.concatenate([[0.0], np.cumsum(values[self.labels])])
        means = np.ones(len(self))
        np.divide(sums[self.offsets[1:]] - sums[self.offsets[:-1]], sizes, out=means, where=sizes > 0)
        return means

    def rarest(self) -> npt.NDArray[np.int32]:
        """The label of each row that has the fewest rows, the first of these; -1 where there is none."""
        ranks = np.empty(self.n_labels, dtype=np.int64)
        order = np.argsort(self.counts(), kind="stable")
        ranks[order] = np.arange(self.n_labels)
        out = np.full(len(self), -1, dtype=np.int32)
        has = np.flatnonzero(np.diff(self.offsets) > 0)
        if len(has) > 0:
            out[has] = order[np.minimum.reduceat(ranks[self.labels], self.offsets[has])]
        return out

    def take(self, rows: npt.NDArray[np.intp]) -> LabelSets:
        """The sets of some rows."""
        return LabelSets.of(self.matrix()[rows])


@dataclass(frozen=True)
class LabelForm:
    """How sets of labels were written, so that answers can be written in the same way.

    Attributes
    ----------
    kind : {"dense", "sparse", "frame", "tuples", "sets"}
        An indicator, or a list of tuples (also for lists and arrays) or of sets.
    columns : ndarray of int
        Labels that answers may have, as places in ``classes_``: the columns of an indicator in their order, or all
        leaves and the inner nodes that were named.
    is_closed : bool
        Whether a row that has a label had those above it as well, if these can be written; else an answer leaves out
        all labels that others of its labels imply.
    library : str
        Of a data frame.
    """

    kind: str
    columns: Integers
    is_closed: bool = True
    library: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _FORMS or (self.kind == "frame") != (self.library in _FRAMES):
            raise ValueError(f"unknown form of label sets: {self.kind!r} {self.library!r}")

    def restricted(self, matrix: Any, above: Any) -> Any:
        """The indicator of what can be written of sets that are closed upwards, a CSR matrix over all classes."""
        keep = np.zeros(matrix.shape[1], dtype=np.int8)
        keep[self.columns] = 1
        matrix = sp.csr_array(matrix * keep[None, :])
        matrix.eliminate_zeros()
        if self.is_closed or above is None:
            return matrix
        implied = (matrix @ (above - sp.eye_array(above.shape[0], dtype=np.int8, format="csr"))).astype(bool)
        left = sp.csr_array(matrix.astype(np.int8) - matrix.multiply(implied).astype(np.int8))
        left.eliminate_zeros()
        return left

    def write(self, matrix: Any, classes: npt.NDArray[Any], above: Any) -> Any:
        """Answers, a CSR indicator over the classes that is closed upwards, in this form."""
        matrix = self.restricted(matrix, above)
        if self.kind in ("tuples", "sets"):
            names = classes.tolist()
            rows = np.split(matrix.sorted_indices().indices, matrix.indptr[1:-1])
            make = tuple if self.kind == "tuples" else set
            return [make(names[k] for k in row.tolist()) for row in rows]
        chosen = sp.csr_array(sp.csc_array(matrix)[:, self.columns], dtype=np.int64)
        if self.kind == "sparse":
            return chosen
        values = chosen.toarray()
        if self.kind == "dense":
            return values
        names = classes[self.columns].tolist()
        frame = import_module(self.library).DataFrame
        return frame({name: values[:, k] for k, name in enumerate(names)})


def is_label_sets(y: Any) -> bool:
    """Whether y means any number of labels per row, not one."""
    if hasattr(y, "tocsr"):
        return True
    if isinstance(y, (list, tuple)):
        return any(isinstance(entry, _SETS) for entry in y)
    shape = getattr(y, "shape", None)
    if shape is not None and len(shape) == 2:
        return bool(shape[1] > 1)
    if shape is not None and len(shape) == 1 and getattr(y, "dtype", None) is not None:
        return getattr(y.dtype, "kind", "O") == "O" and any(isinstance(entry, _SETS) for entry in y)
    return False


def read_label_sets(
    y: Any,
    taxonomy: Taxonomy | ClassGraph | None,
    classes: npt.NDArray[Any] | None = None,
    *,
    columns: Integers | None = None,
) -> tuple[LabelSets, npt.NDArray[Any], LabelForm]:
    """Labels of the rows, closed upwards; all labels in sorted order; and how they were written.

    Parameters
    ----------
    y : array, sparse matrix, data frame, list or series
        An indicator matrix of 0 and 1, or sets, lists, tuples or arrays of labels, which may be empty. The columns of
        an indicator are named by a data frame; else they are the labels 0, 1, 2 and so on, or under a taxonomy its
        leaves or all its nodes but the root, sorted. Lists of the same length, at least two, that hold 0 and 1 only are
        the rows of an indicator.
    taxonomy : Taxonomy, ClassGraph or None
        Of the labels, which may be any of its nodes, but for the root of a taxonomy. In a directed graph they imply
        those above them.
    classes : array, optional
        The labels of a fitted model, in sorted order, where y is to be compared with its answers.
    columns : array of int, optional
        Labels that columns without names stand for, as places in ``classes``.

    Returns
    -------
    sets : LabelSets
        Places in the classes.
    classes : ndarray
        Under a taxonomy all its nodes but the root, in a directed graph all; in an undirected one those that y has.
    form : LabelForm
        How y is written.
    """
    known = classes
    if taxonomy is not None and known is None and not _is_undirected(taxonomy):
        known = np.sort(_node_names(taxonomy))
    if _is_indicator(y):
        matrix, names, kind, library = _read_indicator(y)
        if names is None:
            names = _column_names(matrix.shape[1], taxonomy, classes, columns)
        if known is None:
            known = np.sort(_as_array(names))
        places = _find(names, known, taxonomy, "columns of y")
        listed = places
        if classes is None:
            _warn_of_absent(matrix, names)
    else:
        kind, library = _kind_of_sets(y), ""
        indptr, labels = _read_sets(y)
        distinct = list(dict.fromkeys(labels))
        if known is None:
            known = np.sort(_as_array(distinct))
        places = _find(distinct, known, taxonomy, "y")
        place_of = dict(zip(distinct, range(len(distinct)), strict=True))
        indices = np.array([place_of[label] for label in labels], dtype=np.int64)
        shape = (len(indptr) - 1, len(distinct))
        matrix = sp.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=shape)
        listed = np.union1d(_lowest(taxonomy, known), places)
    if matrix.nnz == 0 and classes is None:
        raise ValueError(
            f"y says nothing: none of its {matrix.shape[0]} rows has a label; at least one label of one row is needed"
        )
    rename = sp.csr_array(
        (np.ones(len(places), dtype=np.int8), (np.arange(len(places)), places)), shape=(len(places), len(known))
    )
    spread = sp.csr_array(matrix @ rename, dtype=np.int8)
    if taxonomy is None:
        return LabelSets.of(spread), known, LabelForm(kind, listed, library=library)
    closed = closed_sets(spread, nodes_above(taxonomy, known))
    in_columns = np.isin(closed.indices, listed).sum()
    form = LabelForm(kind, listed, bool(in_columns == spread.nnz), library)
    return LabelSets.of(closed), known, form


def nodes_above(taxonomy: Taxonomy | ClassGraph, classes: npt.NDArray[Any]) -> sp.csr_array:
    """Entry (i, j) is 1 where label j is label i or a node above it, the root of a taxonomy left out."""
    if isinstance(taxonomy, ClassGraph):
        if not taxonomy.directed:
            return sp.eye_array(len(classes), dtype=np.int8, format="csr")
        nodes = np.atleast_1d(taxonomy.index(classes.tolist()))
        above = taxonomy.closed_upwards(sp.eye_array(taxonomy.n_nodes, format="csr"))
        return sp.csr_array(sp.csc_array(above[nodes])[:, nodes], dtype=np.int8)
    nodes = np.atleast_1d(taxonomy.index(classes.tolist()))
    place = np.full(taxonomy.n_nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    rows, columns, at = [], [], nodes
    below = np.arange(len(nodes))
    while len(at) > 0:
        rows.append(below)
        columns.append(place[at])
        at = taxonomy.parents[at]
        below, at = below[at > 0], at[at > 0]
    pair = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array((np.ones(len(pair[0]), dtype=np.int8), pair), shape=(len(nodes), len(nodes)))


def closed_sets(matrix: Any, above: Any) -> sp.csr_array:
    """The indicator with the labels above all labels added; ``above`` None is for labels without a tree."""
    matrix = sp.csr_array(matrix, dtype=np.int64)
    closed = matrix if above is None else sp.csr_array(matrix @ above.astype(np.int64))
    closed.eliminate_zeros()
    closed.data = np.ones(closed.nnz, dtype=np.int8)
    return closed


def set_targets(sets: LabelSets, classes: npt.NDArray[Any], taxonomy: Taxonomy | ClassGraph | None) -> Targets:
    """Targets of a fit in which every label is a class: under a tree, inner nodes get leaves of their own."""
    if not isinstance(taxonomy, Taxonomy):
        return Targets(classes, None, np.arange(len(classes)), sets.rarest(), sets=sets)
    with_leaves = taxonomy.with_classes(classes.tolist(), argument="y")
    order = np.argsort(with_leaves.classes, kind="stable")
    in_core = LabelSets.of(sp.csr_array(sp.csc_array(sets.matrix())[:, np.argsort(order)]))
    return Targets(classes, with_leaves, order, in_core.rarest(), sets=in_core)


# -- Indicators -------------------------------------------------------------------------------------------------------


def _is_indicator(y: Any) -> bool:
    if hasattr(y, "tocsr") or len(getattr(y, "shape", ())) == 2:
        return True
    # Rows of two or more numbers 0 and 1 cannot be meant as sets: these would repeat labels, or all be the same.
    if not isinstance(y, (list, tuple)) or not all(isinstance(row, (list, tuple, np.ndarray)) for row in y):
        return False
    widths = {len(row) for row in y}
    return len(widths) == 1 and widths.pop() > 1 and all(_is_bit(value) for row in y for value in row)


def _is_bit(value: Any) -> bool:
    return isinstance(value, (int, np.integer, np.bool_)) and value in (0, 1)


def _read_indicator(y: Any) -> tuple[sp.csr_array, list[Any] | None, str, str]:
    """The matrix with its ones only, the names of its columns, and its form."""
    if hasattr(y, "tocsr"):
        if y.ndim != 2:
            raise ValueError(f"y has shape {tuple(y.shape)}, expected an indicator of shape (n_samples, n_labels)")
        matrix, kind = sp.csr_array(y), "sparse"
    else:
        kind = "frame" if hasattr(y, "columns") else "dense"
        array = np.asarray(y)
        if array.dtype.kind not in "biuf":
            array = _as_numbers(array)
        _check_bits(array)
        matrix = sp.csr_array(array)
    library = type(y).__module__.partition(".")[0] if kind == "frame" else ""
    if library not in _FRAMES:
        kind, library = ("dense" if kind == "frame" else kind), ""
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise ValueError(f"y is an indicator of shape {tuple(matrix.shape)}, expected at least one row and one label")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    wrong = np.flatnonzero((matrix.data != 0) & (matrix.data != 1))
    if len(wrong) > 0:
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        raise _not_a_bit(row, int(matrix.indices[wrong[0]]), matrix.data[wrong[0]])
    matrix = sp.csr_array(matrix, dtype=np.int8, copy=True)
    matrix.eliminate_zeros()
    names = None
    if hasattr(y, "columns"):
        names = list(y.columns)
        repeated = next((name for name, count in Counter(names).items() if count > 1), None)
        if repeated is not None:
            raise ValueError(f"y has more than one column named {repeated!r}; each label has one column")
    return matrix, names, kind, library


def _check_bits(array: npt.NDArray[Any]) -> None:
    wrong = np.argwhere((array != 0) & (array != 1))
    if len(wrong) > 0:
        row, column = wrong[0].tolist()
        raise _not_a_bit(row, column, array[row, column])


def _as_numbers(array: npt.NDArray[Any]) -> Floats:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y has shape {array.shape}, which means an indicator of 0 and 1, but its values are no numbers; sets of "
            "labels are a list of lists, or a column of them"
        ) from None


def _not_a_bit(row: int, column: int, value: Any) -> ValueError:
    number = value.item() if isinstance(value, np.generic) else value
    what = "NaN: leave rows out of which nothing is known" if number != number else f"{number!r}"
    return ValueError(
        f"y is an indicator of labels, which holds 0 and 1 only, but row {row}, column {column} is {what}"
    )


def _column_names(
    width: int, taxonomy: Taxonomy | ClassGraph | None, classes: npt.NDArray[Any] | None, columns: Integers | None
) -> list[Any]:
    """What columns without names stand for."""
    if classes is not None and columns is not None and len(columns) == width:
        return list(classes[columns].tolist())
    if taxonomy is None:
        if classes is not None and len(classes) != width:
            raise ValueError(f"y has {width} columns, expected {len(classes)}: one for each label of the model")
        return list(range(width)) if classes is None else list(classes.tolist())
    nodes = np.sort(_node_names(taxonomy))
    if isinstance(taxonomy, ClassGraph):
        if width == len(nodes):
            return list(nodes.tolist())
        raise ValueError(
            f"y has {width} columns, expected {len(nodes)}, one for each node of the graph, sorted by name; the "
            "columns of a data frame may be any of these"
        )
    if width == taxonomy.n_classes:
        return list(np.sort(taxonomy.classes).tolist())
    if width == len(nodes):
        return list(nodes.tolist())
    raise ValueError(
        f"y has {width} columns, expected {taxonomy.n_classes}, one for each leaf of the taxonomy, or "
        f"{taxonomy.n_nodes - 1}, one for each node but the root, both sorted by name; the columns of a data frame may "
        "be any of these"
    )


def _warn_of_absent(matrix: sp.csr_array, names: list[Any]) -> None:
    absent = np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]) == 0).tolist()
    if absent and len(absent) < len(names):
        warnings.warn(
            f"y: no row has the label {shown(names[k] for k in absent)}; the model learns that such labels are rare",
            UserWarning,
            stacklevel=4,
        )


# -- Lists of sets ----------------------------------------------------------------------------------------------------


def _kind_of_sets(y: Any) -> str:
    return "sets" if any(isinstance(entry, (set, frozenset)) for entry in y) else "tuples"


def _read_sets(y: Any) -> tuple[Integers, list[Any]]:
    """Ends of the rows, and labels of all rows, none twice in a row."""
    labels: list[Any] = []
    ends = [0]
    for row, entry in enumerate(y):
        if isinstance(entry, _SETS):
            members = entry.ravel().tolist() if isinstance(entry, np.ndarray) else entry
            labels += dict.fromkeys(_label(member, row, entry) for member in members)
        else:
            labels.append(_label(entry, row, entry))
        ends.append(len(labels))
    if len(ends) == 1:
        raise ValueError("y is empty, expected a set of labels for each row")
    return np.array(ends, dtype=np.int64), labels


def _label(label: Any, row: int, entry: Any) -> Any:
    label = label.item() if isinstance(label, np.generic) else label
    if label is None or type(label).__name__ in ("NAType", "NaTType") or label != label:
        raise ValueError(
            f"y: row {row} is {entry!r}: a label is missing; an empty set stands for a row without any label, and rows "
            "of which nothing is known are left out"
        )
    if isinstance(label, (bool, float)) or not isinstance(label, Hashable) or isinstance(label, tuple):
        raise TypeError(f"y: row {row} is {entry!r}, but {label!r} is no label; expected strings or integers")
    return label


# -- Names ------------------------------------------------------------------------------------------------------------


def _node_names(taxonomy: Taxonomy | ClassGraph) -> npt.NDArray[Any]:
    """Of the nodes that may be labels."""
    return _as_array(taxonomy.names[0 if isinstance(taxonomy, ClassGraph) else 1 :].tolist())


def _is_undirected(taxonomy: Taxonomy | ClassGraph) -> bool:
    return isinstance(taxonomy, ClassGraph) and not taxonomy.directed


def _lowest(taxonomy: Taxonomy | ClassGraph | None, known: npt.NDArray[Any]) -> Integers:
    """Labels that imply no others, as places in the known ones."""
    if taxonomy is None or _is_undirected(taxonomy):
        return np.arange(len(known))
    leaves = taxonomy.leaves if isinstance(taxonomy, ClassGraph) else taxonomy.classes.tolist()
    return np.searchsorted(known, np.sort(_as_array(leaves)))


def _as_array(names: list[Any]) -> npt.NDArray[Any]:
    """Names as an array of strings or of integers."""
    if not names:
        raise ValueError("y says nothing: no row has a label; at least one label of one row is needed")
    strings = [name for name in names if isinstance(name, str)]
    if 0 < len(strings) < len(names):
        other = next(name for name in names if not isinstance(name, str))
        raise TypeError(
            f"labels are strings and numbers, such as {strings[0]!r} and {other!r}; give all of them as strings, or "
            "all as integers"
        )
    return np.array(names, dtype=str if strings else np.int64)


def _find(names: list[Any], known: npt.NDArray[Any], taxonomy: Taxonomy | ClassGraph | None, argument: str) -> Integers:
    """Places of the names among the known ones."""
    if taxonomy is not None:
        numbers = np.atleast_1d(taxonomy.index(names, argument=argument))
        if isinstance(taxonomy, Taxonomy) and (numbers == 0).any():
            raise ValueError(
                f"{argument}: {taxonomy.names[0]!r} is the root of the taxonomy, which every row belongs to"
            )
        names = taxonomy.names[numbers].tolist()
    place_of = {name: place for place, name in enumerate(known.tolist())}
    unknown = [name for name in names if name not in place_of]
    if unknown:
        raise ValueError(f"{argument}: labels that the model does not know: {shown(unknown)}")
    return np.array([place_of[name] for name in names], dtype=np.int64)
