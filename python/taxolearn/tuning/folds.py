"""Folds for cross-validation, with rare classes in mind."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

__all__ = ["make_folds"]

Integers = npt.NDArray[np.int64]
Folds = npt.NDArray[np.int32]


def make_folds(
    indices: npt.ArrayLike,
    n_classes: int,
    cv: Any,
    random_state: Any = None,
    groups: npt.ArrayLike | None = None,
    *,
    argument: str = "cv",
) -> Folds:
    """The fold in which each row is held out; -1 for rows that are always trained on.

    A number of folds makes them stratified. The rows of each class are shuffled and dealt round the folds, each class
    beginning where the last one stopped: every class is spread as evenly as can be, and the sizes of folds differ by
    at most one. Classes with fewer rows than folds are in some folds only. The row of a class that has no other is
    never held out: its loss would say nothing about the kernel, only that the class was never seen. If there are fewer
    rows than folds, there are fewer folds.

    Folds that are given by the user are taken as they are, whatever classes they leave out.

    Parameters
    ----------
    indices : array of int of shape (n_samples,)
        Classes.
    n_classes : int
        Number of classes, seen or not.
    cv : int, splitter of scikit-learn, iterable of pairs (train, test), or array of int of shape (n_samples,)
        Number of folds, at least 2; or the folds. A row may be held out once at most, and each fold must train on all
        rows that it does not hold out. An array has the fold of every row, -1 for none.
    random_state : int, RandomState instance or None, default=None
        Of the shuffling. Not used for folds that are given.
    groups : array of shape (n_samples,), default=None
        Rows of one group stay together: they are dealt as one, largest groups first, each to the smallest fold. A
        splitter gets them.
    argument : str, default="cv"
        What messages call ``cv``.

    Returns
    -------
    int32 array of shape (n_samples,)
        Folds from 0 on, without holes.
    """
    indices = np.asarray(indices, dtype=np.int64)
    members = _check_groups(groups, len(indices))
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"{argument} is {cv}, expected at least 2 folds")
        counts = np.bincount(indices, minlength=n_classes)
        rows = np.flatnonzero(counts[indices] > 1)
        if len(rows) == 0:
            raise ValueError(
                "y has no class with two rows, so none can be held out to learn hyperparameters; "
                "choose their values, with tuning=None (on the command line: --variance)"
            )
        random = check_random_state(random_state)
        fold_of = np.full(len(indices), -1, dtype=np.int64)
        if members is None:
            fold_of[rows] = _deal(indices[rows], int(cv), random)
        else:
            fold_of[rows] = _deal_groups(members[rows], int(cv), random)
    elif hasattr(cv, "split") and not isinstance(cv, (str, bytes)):
        fold_of = _from_pairs(cv.split(np.zeros((len(indices), 1)), indices, groups), len(indices), argument)
    else:
        fold_of = _from_given(cv, len(indices), argument)
    return _check_folds(fold_of, argument)


def _check_groups(groups: npt.ArrayLike | None, n: int) -> Integers | None:
    if groups is None:
        return None
    members = np.asarray(groups)
    if members.shape != (n,):
        raise ValueError(f"groups has shape {members.shape}, expected ({n},): the group of every row")
    numbers: Integers = np.unique(members, return_inverse=True)[1]
    return numbers


def _deal(classes: Integers, n_folds: int, random: np.random.RandomState) -> Integers:
    shuffled = random.permutation(len(classes))
    order = shuffled[np.argsort(classes[shuffled], kind="stable")]
    folds = np.empty(len(classes), dtype=np.int64)
    folds[order] = np.arange(len(classes)) % min(n_folds, len(classes))
    return folds


def _deal_groups(members: Integers, n_folds: int, random: np.random.RandomState) -> Integers:
    sizes = np.bincount(members)
    present = random.permutation(np.flatnonzero(sizes))
    if len(present) < 2:
        raise ValueError("groups puts all rows that can be held out into one group; at least two are needed")
    totals = np.zeros(min(n_folds, len(present)), dtype=np.int64)
    fold_of_group = np.full(len(sizes), -1, dtype=np.int64)
    for group in present[np.argsort(-sizes[present], kind="stable")].tolist():
        fold = int(totals.argmin())
        fold_of_group[group] = fold
        totals[fold] += sizes[group]
    return fold_of_group[members]


def _from_given(cv: Any, n: int, argument: str) -> Integers:
    """Folds from an array of them, or from pairs."""
    expected = (
        f"{argument} must be a number of folds, a splitter, pairs (train, test) of row numbers, or the fold of each of "
        f"the {n} rows"
    )
    if isinstance(cv, (str, bytes, bool)) or not isinstance(cv, Iterable):
        raise TypeError(f"{expected}, got {type(cv).__name__}")
    items = cv if isinstance(cv, np.ndarray) else list(cv)
    if len(items) > 0 and all(map(_is_pair, items)):
        return _from_pairs(items, n, argument)
    try:
        folds = np.asarray(items)
    except ValueError:
        raise ValueError(f"{expected}; these numbers have no common shape") from None
    if folds.shape != (n,) or folds.dtype.kind not in "iu":
        raise ValueError(f"{expected}; got an array of shape {folds.shape} and type {folds.dtype}")
    return folds.astype(np.int64)


def _is_pair(item: Any) -> bool:
    return isinstance(item, (tuple, list)) and len(item) == 2 and all(hasattr(part, "__len__") for part in item)


def _from_pairs(pairs: Iterable[Any], n: int, argument: str) -> Integers:
    fold_of = np.full(n, -1, dtype=np.int64)
    for fold, (train, test) in enumerate(pairs):
        trained, held = (_as_mask(rows, n, argument) for rows in (train, test))
        if (held & (fold_of >= 0)).any():
            row = int(np.flatnonzero(held & (fold_of >= 0))[0])
            raise ValueError(
                f"{argument} holds out row {row} more than once, in folds {fold_of[row]} and {fold}; for several "
                "partitions of the rows give a number of folds and n_partitions"
            )
        if not np.array_equal(trained, ~held):
            row = int(np.flatnonzero(trained == held)[0])
            what = "both trains on it and holds it out" if held[row] else "neither trains on it nor holds it out"
            raise ValueError(
                f"{argument}: row {row}: fold {fold} {what}; expected to train on all rows that are not held out"
            )
        fold_of[held] = fold
    return fold_of


def _as_mask(rows: Any, n: int, argument: str) -> npt.NDArray[np.bool_]:
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size > 0):
        raise ValueError(
            f"{argument} must have pairs of arrays of row numbers, got an array of shape {numbers.shape} and type "
            f"{numbers.dtype}"
        )
    numbers = numbers.astype(np.int64)
    wrong = numbers[(numbers < 0) | (numbers >= n)]
    if len(wrong) > 0:
        raise ValueError(f"{argument} has the row number {wrong[0]}, expected 0 to {n - 1}")
    mask = np.zeros(n, dtype=np.bool_)
    mask[numbers] = True
    return mask


def _check_folds(fold_of: Integers, argument: str) -> Folds:
    """Without holes, if every fold leaves something to train on."""
    if fold_of.min(initial=0) < -1:
        raise ValueError(f"{argument} has the fold {fold_of.min()}, expected -1 (never held out) or folds from 0 on")
    used, numbers = np.unique(fold_of, return_inverse=True)
    has_rest = len(used) > 0 and used[0] == -1
    n_folds = len(used) - has_rest
    if n_folds == 0:
        raise ValueError(f"{argument} holds out no row at all; at least one fold is needed")
    if n_folds == 1 and not has_rest:
        raise ValueError(f"{argument} holds out all rows in one fold, so none is left to train on; give more folds")
    return (numbers.reshape(fold_of.shape) - has_rest).astype(np.int32)
