"""The rows that a pool holds out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.tuning.cross_validation import make_folds

__all__ = ["pool_folds"]

Integers = npt.NDArray[np.int64]
Folds = npt.NDArray[np.int32]

_MANY_ROWS = 10_000  # from which on one of the folds is enough, and
_FIFTHS = 5  # a fifth of the rows, so that the others are nearly as many as all
_LARGEST_GROUP = 0.05  # share of the rows that equal ones may have, to be held out together


def pool_folds(X: Any, numbers: Integers, n_classes: int, folds: Any, random: np.random.RandomState) -> Folds:
    """The fold in which each row is held out, -1 for never. Folds that are given stay as they are.

    A number makes stratified folds, which differ from those that hyperparameters are learned by: the only row of a
    class is held out like the others, so that a pool learns how often new rows are of classes hardly known. Copies
    of a row are held out together, or else what is held out would have been seen. Of many rows a fifth is held out
    once, which tells enough.
    """
    is_number = isinstance(folds, (int, np.integer))
    is_many = is_number and len(numbers) >= _MANY_ROWS
    given = max(_FIFTHS, int(folds)) if is_many else folds
    fold_of = make_folds(numbers, n_classes, given, random, argument="folds")
    if not is_number:
        return fold_of
    n_folds = int(fold_of.max()) + 1
    single = np.flatnonzero(fold_of < 0)
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


def _groups(X: Any, numbers: Integers) -> Integers:
    """A number for each row, the same for equal ones of the same class."""
    seen: dict[tuple[bytes, int], int] = {}
    if sp.issparse(X):
        indices, data, ends = X.indices, X.data, X.indptr.tolist()
        keys = (indices[begin:end].tobytes() + data[begin:end].tobytes() for begin, end in pairwise(ends))
    else:
        keys = (row.tobytes() for row in np.ascontiguousarray(X))
    rows = zip(keys, numbers.tolist(), strict=True)
    return np.array([seen.setdefault(row, len(seen)) for row in rows], dtype=np.int64)
