"""Folds: every class spread, rare classes in mind, and whatever partition a user brings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit, StratifiedKFold

from taxolearn.tuning.cross_validation import make_folds


def counts(y, fold_of, n_classes, n_folds):
    """Rows of each class held out in each fold."""
    return np.array([[((y == c) & (fold_of == fold)).sum() for fold in range(n_folds)] for c in range(n_classes)])


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=8),
    n_folds=st.integers(2, 7),
    seed=st.integers(0, 1000),
)
def test_stratified(sizes, n_folds, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    sizes = np.array(sizes)
    n_held = sizes[sizes > 1].sum()
    if n_held == 0:
        with pytest.raises(ValueError, match="tuning=None"):
            make_folds(y, len(sizes), n_folds, seed)
        return
    fold_of = make_folds(y, len(sizes), n_folds, seed)
    assert fold_of.dtype == np.int32
    assert np.array_equal(np.flatnonzero(fold_of < 0), np.flatnonzero(sizes[y] == 1))
    n_folds = min(n_folds, n_held)
    table = counts(y, fold_of, len(sizes), n_folds)
    assert table.sum() == n_held
    assert np.ptp(table.sum(axis=0)) <= 1
    assert (np.ptp(table, axis=1) <= 1).all()


def test_random_state():
    y = np.repeat(np.arange(4), 25)
    first = make_folds(y, 4, 5, 0)
    assert np.array_equal(first, make_folds(y, 4, 5, 0))
    assert np.array_equal(first, make_folds(y, 4, 5, np.random.RandomState(0)))
    assert not np.array_equal(first, make_folds(y, 4, 5, 1))
    # The rows of a class are dealt at random, not in their order.
    assert len({tuple(make_folds(y, 4, 5, seed)[:25]) for seed in range(5)}) == 5


@pytest.mark.parametrize(
    "splitter", [KFold(4), KFold(3, shuffle=True, random_state=1), StratifiedKFold(3), LeaveOneOut()]
)
def test_splitters(splitter):
    y = np.arange(20) % 3
    fold_of = make_folds(y, 3, splitter)
    pairs = list(splitter.split(np.zeros((20, 1)), y))
    assert fold_of.min() == 0
    for fold, (_, test) in enumerate(pairs):
        assert np.array_equal(np.flatnonzero(fold_of == fold), test)
    # The same as pairs, as a generator, and as lists.
    assert np.array_equal(fold_of, make_folds(y, 3, pairs))
    assert np.array_equal(fold_of, make_folds(y, 3, (pair for pair in pairs)))
    assert np.array_equal(fold_of, make_folds(y, 3, [[train.tolist(), test.tolist()] for train, test in pairs]))
    assert np.array_equal(fold_of, make_folds(y, 3, fold_of))


def test_arrays_are_numbered_without_holes():
    y = np.zeros(6, dtype=int)
    assert make_folds(y, 1, [7, 3, -1, 3, 7, 10]).tolist() == [1, 0, -1, 0, 1, 2]
    assert make_folds(y, 1, np.array([0, 0, 0, -1, -1, -1])).tolist() == [0, 0, 0, -1, -1, -1]


@pytest.mark.parametrize(
    ("cv", "error", "match"),
    [
        (1, ValueError, "cv is 1, expected at least 2"),
        (0, ValueError, "cv is 0"),
        (True, TypeError, "cv must be a number of folds.* got bool"),
        ("5", TypeError, "got str"),
        (2.5, TypeError, "got float"),
        (None, TypeError, "got NoneType"),
        ([0, 1, 0], ValueError, r"fold of each of the 6 rows; got an array of shape \(3,\)"),
        ([0.0, 1.0, 0.0, 1.0, 0.0, 1.0], ValueError, "type float64"),
        ([0, 1, -2, 0, 1, 0], ValueError, "has the fold -2"),
        ([0] * 6, ValueError, "all rows in one fold"),
        ([-1] * 6, ValueError, "holds out no row"),
        ([[1, 2], [3]], ValueError, "no common shape"),
        ([], ValueError, r"shape \(0,\)"),
        (RepeatedKFold(n_splits=2, n_repeats=2), ValueError, "more than once.*repeats"),
        (ShuffleSplit(1, test_size=2, train_size=2), ValueError, "neither trains on it nor holds it out"),
        ([([0, 1, 2, 3, 4, 5], [5])], ValueError, "row 5: fold 0 both trains on it and holds it out"),
        ([([0, 1], [2, 3, 4, 6])], ValueError, "row number 6, expected 0 to 5"),
        ([([0.5, 1], [2, 3, 4, 5])], ValueError, "type float64"),
    ],
)
def test_bad_folds(cv, error, match):
    with pytest.raises(error, match=match):
        make_folds(np.zeros(6, dtype=int), 1, cv)


def test_argument_is_named():
    with pytest.raises(ValueError, match=r"^folds is 1"):
        make_folds(np.zeros(6, dtype=int), 1, 1, argument="folds")
