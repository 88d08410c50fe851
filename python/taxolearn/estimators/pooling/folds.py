"""The rows that a pool holds out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.blocks import Blocks
from taxolearn.tuning.cross_validation import make_folds

__all__ = ["held_out_weights", "pool_folds"]

Integers = npt.NDArray[np.int64]
Folds = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

_MANY_ROWS = 10_000  # from which on one of the folds is enough
_MANY_SCORES = 1_000_000  # rows times classes from which on fits take long, so that
_QUITE_MANY_ROWS = 4000  # are enough for that
_FIFTHS = 5  # then a fifth of the rows is held out, so that the others are nearly as many as all
_LEAST_PAIRS = 0.2  # rows of pairs, by single row of a class, that are enough to stand for these
_MOST = 5.0  # that a row of a pair counts
_LARGEST_GROUP = 0.05  # share of the rows that equal ones may have, to be held out together


def pool_folds(X: Any, numbers: Integers, n_classes: int, folds: Any, random: np.random.RandomState) -> Folds:
    """The fold in which each row is held out, -1 for never. Folds that are given stay as they are.

    A number makes stratified folds. The only row of a class is held out if there are hardly any pairs: those tell how
    well classes with one row are known, and without them a pool would not learn how often rows are of such. Copies
    of a row are held out together, or else what is held out would have been seen. Of many rows a fifth is held out
    once, which tells enough.
    """
    is_number = isinstance(folds, (int, np.integer))
    takes_long = len(numbers) * n_classes >= _MANY_SCORES
    is_many = is_number and len(numbers) >= (_QUITE_MANY_ROWS if takes_long else _MANY_ROWS)
    given = max(_FIFTHS, int(folds)) if is_many else folds
    fold_of = make_folds(numbers, n_classes, given, random, argument="folds")
    if not is_number:
        return fold_of
    n_folds = int(fold_of.max()) + 1
    single = np.flatnonzero(fold_of < 0)
    if _pairs_for_singles(numbers) < _LEAST_PAIRS:
        fold_of[single] = (random.permutation(len(single)) + random.randint(n_folds)) % n_folds
    group = _groups(X, numbers)
    sizes = np.bincount(group)
    first = np.full(len(sizes), -1, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    is_moved = (sizes > 1) & (sizes <= _LARGEST_GROUP * len(group))
    joined = np.where(is_moved[group], fold_of[first[group]], fold_of)
    if len(np.unique(joined)) == n_folds:
        fold_of = joined.astype(np.int32)
    if is_many:
        fold_of[fold_of > 0] = -1
    return fold_of


def _pairs_for_singles(numbers: Integers) -> float:
    """Rows of classes with two rows, by row of a class that has no other."""
    counts = np.bincount(numbers)
    return 2.0 * int((counts == 2).sum()) / max(1, int((counts == 1).sum()))


def held_out_weights(numbers: Integers, fold_of: Folds) -> Floats:
    """How much each row counts that is held out.

    Where a row of a pair is held out, its class has a single row left. These stand for the classes that have a single
    row when all rows are used, and so they count as much as these, within limits.
    """
    counts = np.bincount(numbers)
    weights = np.ones(len(numbers))
    if not (fold_of[counts[numbers] == 1] >= 0).any():
        weights[counts[numbers] == 2] = np.clip(1.0 / max(_pairs_for_singles(numbers), 1e-9), 1.0, _MOST)
    return weights


def _groups(X: Any, numbers: Integers) -> Integers:
    """A number for each row, the same for equal ones of the same class."""
    seen: dict[tuple[bytes, int], int] = {}
    matrices = X.matrices if isinstance(X, Blocks) else (X,)
    keys = (b"".join(parts) for parts in zip(*map(_row_bytes, matrices), strict=True))
    rows = zip(keys, numbers.tolist(), strict=True)
    return np.array([seen.setdefault(row, len(seen)) for row in rows], dtype=np.int64)


def _row_bytes(X: Any) -> Iterator[bytes]:
    if not sp.issparse(X):
        return (row.tobytes() for row in np.ascontiguousarray(X))
    indices, data = X.indices, X.data
    return (
        b"%d:" % (end - begin) + indices[begin:end].tobytes() + data[begin:end].tobytes()
        for begin, end in pairwise(X.indptr.tolist())
    )
