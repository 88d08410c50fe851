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

_MANY_ROWS = 10_000  # from which on one of the folds is enough
_LARGEST_GROUP = 0.05  # share of the rows that equal ones may have, to be held out together


def pool_folds(X: Any, numbers: Integers, n_classes: int, folds: Any, random: np.random.RandomState) -> Folds:
    """The fold in which each row is held out, -1 for never. Folds that are given stay as they are.

    A number makes stratified folds, which differ from those that hyperparameters are learned by: the only row of a
    class is held out like the others, so that a pool learns how often new rows are of classes hardly known. Equal
    rows are held out together, or else what is held out would have been seen. Of many rows one fold is held out, since
    its rows tell enough.
    """
    fold_of = make_folds(numbers, n_classes, folds, random, argument="folds")
    if not isinstance(folds, (int, np.integer)):
        return fold_of
    n_folds = int(fold_of.max()) + 1
    single = np.flatnonzero(fold_of < 0)
    fold_of[single] = (random.permutation(len(single)) + random.randint(n_folds)) % n_folds
    group = _groups(X)
    sizes = np.bincount(group)
    first = np.full(len(sizes), -1, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    is_moved = (sizes > 1) & (sizes <= _LARGEST_GROUP * len(group))
    joined = np.where(is_moved[group], fold_of[first[group]], fold_of)
    if len(np.unique(joined)) == n_folds:
        fold_of = joined.astype(np.int32)
    if len(numbers) >= _MANY_ROWS:
        fold_of[fold_of > 0] = -1
    return fold_of


def _groups(X: Any) -> Integers:
    """A number for each row, the same for equal ones."""
    seen: dict[bytes, int] = {}
    if sp.issparse(X):
        indices, data, ends = X.indices, X.data, X.indptr.tolist()
        keys = (indices[begin:end].tobytes() + data[begin:end].tobytes() for begin, end in pairwise(ends))
    else:
        keys = (row.tobytes() for row in np.ascontiguousarray(X))
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
