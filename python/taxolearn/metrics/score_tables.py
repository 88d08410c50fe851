"""Tables of scores, dense or with the best labels only, and where the true labels stand in them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.metrics.inputs import (
    FloatArray,
    IntArray,
    LabelSets,
    read_classes,
    read_items,
    read_scores,
    read_truth,
    row_blocks,
)

__all__ = ["ScoreTable", "Standing", "read_table_and_truth", "standing"]

ScoreTable: TypeAlias = npt.NDArray[Any] | sp.csr_array
"""Scores of all labels, or of those that are stored; labels that are not stored come after all that are, in a tie."""


class Standing(NamedTuple):
    """Where each true label of a table stands in its row, in the order of the keys of the truth.

    Attributes
    ----------
    score : ndarray
        Its score, minus infinity if it is not stored.
    stored : ndarray of bool
        Whether it has a score.
    at_least, above : ndarray of float
        How many labels of the row, or what weight of them, has at least this score, and how many have more.
    """

    score: npt.NDArray[Any]
    stored: npt.NDArray[np.bool_]
    at_least: FloatArray
    above: FloatArray


def read_table_and_truth(y_true: Any, proba: Any, classes: Any, *, k: int = 1) -> tuple[ScoreTable, LabelSets]:
    """Read scores and the true labels as sets of their columns.

    Parameters
    ----------
    y_true, proba, classes
        See :mod:`taxolearn.metrics`. Sparse matrices and pairs (columns, scores) hold the best labels of each item.
    k : int, default=1
        How many labels per item a pair must have at least.
    """
    names = None if classes is None else read_classes(classes)
    table: ScoreTable
    if _is_pair(proba):
        width = _width_of(y_true) if names is None else len(names)
        table = _table_of_pair(proba, width, k)
    elif sp.issparse(proba):
        table = _stored_table(proba)
    else:
        table = read_scores("proba", proba, names)
    if names is not None and table.shape[1] != len(names):
        raise ValueError(f"proba has {table.shape[1]} columns but there are {len(names)} classes")
    return table, read_truth(y_true, names, table)


def _is_pair(proba: Any) -> bool:
    """Whether this is two tables, and not one of two rows."""
    try:
        return isinstance(proba, tuple) and len(proba) == 2 and all(np.ndim(part) == 2 for part in proba)
    except ValueError:  # rows of different lengths
        return False


def _width_of(y_true: Any) -> int:
    """Return the number of columns of an indicator matrix."""
    items = read_items("y_true", y_true)
    if not isinstance(items, LabelSets):
        raise ValueError("classes is needed, the names of the columns, since y_true is not an indicator matrix")
    return items.width


def _stored_table(scores: Any) -> sp.csr_array:
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError(f"proba is empty, got a sparse matrix of shape {scores.shape}")
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"proba must be numbers, got {scores.dtype} values")
    table = sp.csr_array(scores)
    if not table.has_canonical_format:
        table = table.copy()  # the caller's matrix stays as it is
        table.sum_duplicates()
    _refuse_nan(table)
    return table


def _table_of_pair(pair: tuple[Any, Any], width: int, k: int) -> sp.csr_array:
    """Make a table of column numbers and scores, both of shape (n, best); -1 marks places that are not taken."""
    columns, values = (np.asarray(part) for part in pair)
    if columns.dtype.kind not in "iu" or columns.shape != values.shape or 0 in columns.shape:
        raise ValueError(
            f"proba must be column numbers and scores of the same shape (n, best labels), got {columns.dtype} of shape "
            f"{columns.shape} and {values.dtype} of shape {values.shape}"
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"proba must have numbers as scores, got {values.dtype} values")
    n, best = columns.shape
    if best < k:
        raise ValueError(f"proba has the best {best} labels of each item, but k={k} needs as many as that")
    if columns.min() < -1 or columns.max() >= width:
        raise ValueError(
            f"proba has column numbers from {columns.min()} to {columns.max()}, expected 0 to {width - 1}, or -1 for no"
            f" label"
        )
    taken = columns >= 0
    rows = np.repeat(np.arange(n, dtype=np.int64), best).reshape(n, best)[taken]
    keys = rows * width + columns[taken]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    twice = np.flatnonzero(np.diff(keys) == 0)
    if len(twice) > 0:
        row, column = divmod(int(keys[twice[0]]), width)
        raise ValueError(f"proba has column {column} twice in row {row}")
    offsets = np.concatenate([[0], np.cumsum(taken.sum(axis=1))])
    table = sp.csr_array((values[taken][order], keys % width, offsets), shape=(n, width))
    _refuse_nan(table)
    return table


def _refuse_nan(table: sp.csr_array) -> None:
    missing = np.flatnonzero(np.isnan(table.data))
    if len(missing) > 0:
        row = int(np.searchsorted(table.indptr, missing[0], side="right")) - 1
        raise ValueError(f"proba has NaN values, the first in row {row} for column {table.indices[missing[0]]}")


def standing(
    table: ScoreTable, true: LabelSets, weight_of: Callable[[IntArray], FloatArray] | None = None, total: Any = None
) -> Standing:
    """Compare the score of each true label with all scores of its row.

    Sorts the rows and looks the true scores up, so that it takes no more memory than one block of rows of a dense
    table, or the stored entries of a sparse one.

    Parameters
    ----------
    table : ScoreTable of shape (n, width)
        The scores.
    true : LabelSets of the same n and width
        The true labels.
    weight_of : callable, default=None
        Weights of columns, given their numbers. None counts columns.
    total : float, default=None
        Weight of all columns.
    """
    size = len(true.keys)
    found = Standing(np.full(size, -np.inf), np.zeros(size, dtype=bool), np.empty(size), np.empty(size))
    total = float(true.width) if weight_of is None else total
    true_rows = true.rows
    begins = np.searchsorted(true.keys, np.arange(true.n + 1) * true.width)
    for rows, values, columns, offsets in _sorted_rows(table, with_columns=weight_of is not None):
        part = slice(begins[rows.start], begins[rows.stop])
        at = true_rows[part] - rows.start
        begin, end = offsets[at], offsets[at + 1]
        score, stored = _scores_at(table, true.keys[part], true.width)
        found.score[part], found.stored[part] = np.where(stored, score, -np.inf), stored
        first, last = _first(values, begin, end, score, strict=False), _first(values, begin, end, score, strict=True)
        first, last = np.where(stored, first, begin), np.where(stored, last, begin)
        if weight_of is None:
            at_least, above = end - first, end - last
        else:
            assert columns is not None
            upto = np.concatenate([[0.0], np.cumsum(weight_of(columns))])
            at_least, above = upto[end] - upto[first], upto[end] - upto[last]
        found.at_least[part] = np.where(stored, at_least, total)
        found.above[part] = above
    return found


def _sorted_rows(
    table: ScoreTable, *, with_columns: bool
) -> Iterator[tuple[slice, npt.NDArray[Any], IntArray | None, IntArray]]:
    """Yield blocks of rows with their scores, rising in each row, their columns if wanted, and where rows begin."""
    width = table.shape[1]
    if isinstance(table, np.ndarray):
        for block in row_blocks(table):
            offsets = np.arange(block.stop - block.start + 1, dtype=np.int64) * width
            part = np.array(table[block], order="C")  # a table that was turned is not
            if with_columns:
                order = np.argsort(part, axis=1)
                yield block, np.take_along_axis(part, order, axis=1).reshape(-1), order.reshape(-1), offsets
            else:
                part.sort(axis=1)
                yield block, part.reshape(-1), None, offsets
        return
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    order = np.lexsort((table.data, rows))
    yield slice(0, table.shape[0]), table.data[order], table.indices[order], table.indptr.astype(np.int64)


def _scores_at(table: ScoreTable, keys: IntArray, width: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Look up scores by their keys ``row * width + column``, and whether they are stored."""
    rows, columns = keys // width, keys % width
    if isinstance(table, np.ndarray):
        return table[rows, columns], np.ones(len(keys), dtype=bool)
    if table.nnz == 0:
        return np.full(len(keys), -np.inf), np.zeros(len(keys), dtype=bool)
    owners = np.repeat(np.arange(table.shape[0], dtype=np.int64), np.diff(table.indptr))
    known = owners * width + table.indices
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return table.data[at], known[at] == keys


def _first(
    values: npt.NDArray[Any], begin: IntArray, end: IntArray, wanted: npt.NDArray[Any], *, strict: bool
) -> IntArray:
    """Find the first place from begin to end whose value is at least (with ``strict``: above) the wanted one."""
    low, high = begin.copy(), end.copy()
    while (low < high).any():
        middle = np.minimum((low + high) // 2, len(values) - 1)
        before = values[middle] <= wanted if strict else values[middle] < wanted
        open_ = low < high
        low, high = np.where(open_ & before, middle + 1, low), np.where(open_ & ~before, middle, high)
    return low
