"""The rows that a pool holds out: copies of rows, single rows of a class, given folds and many rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from taxolearn.estimators.pooling.folds import held_out_weights, pool_folds

FORMS = {"dense": np.asarray, "sparse": sp.csr_matrix}


def folds_of(X, y, folds=3, seed=0):
    return pool_folds(X, y, int(y.max()) + 1, folds, np.random.RandomState(seed))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_copies_are_held_out_together(form, seed):
    generator = np.random.default_rng(seed)
    group = generator.permutation(np.repeat(np.arange(60), 3))
    X = generator.poisson(1.0, (60, 12)).astype(float)
    X[:, 0] = np.arange(60)  # no two are the same
    y = generator.integers(4, size=60)[group]
    fold_of = folds_of(FORMS[form](X[group]), y, seed=seed)
    for k in range(60):
        assert len(set(fold_of[group == k])) == 1
    assert set(fold_of) == {0, 1, 2}
    assert np.bincount(fold_of).min() > 20


def test_equal_rows_of_different_classes_are_no_copies():
    """Texts that may mean either class occur among new rows as well, beside ones that were seen."""
    X, y = np.repeat(np.arange(60.0), 3)[:, None], np.tile(np.arange(3), 60)
    fold_of = folds_of(X, y).reshape(60, 3)
    assert (fold_of.min(axis=1) < fold_of.max(axis=1)).any()


def test_dense_and_sparse_rows_have_the_same_folds():
    X = np.random.default_rng(0).poisson(0.3, (200, 4)).astype(float)
    y = np.arange(200) % 3
    assert np.array_equal(folds_of(X, y), folds_of(sp.csr_matrix(X), y))


@pytest.mark.parametrize("n_single", [1, 2, 7])
def test_the_only_row_of_a_class_is_held_out(n_single):
    y = np.concatenate([np.arange(60) % 3, 3 + np.arange(n_single)])
    fold_of = folds_of(np.random.default_rng(0).normal(size=(len(y), 2)), y)
    assert (fold_of >= 0).all()
    sizes = np.bincount(fold_of[60:], minlength=3)
    assert sizes.max() - sizes.min() <= 1


def test_pairs_stand_for_single_rows():
    """Where there are pairs, single rows are not held out, and the rows of pairs count as much as all of these."""
    y = np.concatenate([np.arange(60) % 3, 3 + np.arange(20), 23 + np.arange(10) // 2])
    fold_of = folds_of(np.random.default_rng(0).normal(size=(len(y), 2)), y)
    assert (fold_of[60:80] == -1).all()
    assert (fold_of[80:] >= 0).all()
    weights = held_out_weights(y, fold_of)
    assert (weights[:80] == 1).all()
    assert weights[80:].sum() == pytest.approx(20)


@pytest.mark.parametrize(("n_single", "n_pairs", "weight"), [(20, 4, 2.5), (20, 2, 5.0), (20, 1, 1.0), (4, 20, 1.0)])
def test_pairs_count_within_limits(n_single, n_pairs, weight):
    y = np.concatenate([np.zeros(30, dtype=int), 1 + np.arange(n_single), 1 + n_single + np.arange(2 * n_pairs) // 2])
    fold_of = folds_of(np.random.default_rng(0).normal(size=(len(y), 2)), y)
    assert held_out_weights(y, fold_of)[-1] == pytest.approx(weight)
    assert (fold_of[30 : 30 + n_single] >= 0).all() == (n_pairs == 1), "too few pairs for so many single rows"


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_equal_to_many_stay_where_they_are(form):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.repeat([0, 1], 100)
    different = folds_of(X, y)
    X[:11] = 0.0  # more than 5 % of them
    assert np.array_equal(folds_of(FORMS[form](X), y), different)
    X[:10], X[10] = 0.0, 1.0
    fewer = folds_of(FORMS[form](X), y)
    assert len(set(fewer[:10])) == 1
    assert np.array_equal(fewer[10:], different[10:])


def test_folds_are_not_joined_into_fewer(monkeypatch):
    monkeypatch.setattr("taxolearn.estimators.pooling.folds._LARGEST_GROUP", 1.0)
    assert set(folds_of(np.ones((30, 2)), np.arange(30) % 2)) == {0, 1, 2}


def test_given_folds_stay():
    X, y = np.ones((40, 2)), np.concatenate([np.arange(38) % 2, [2, 3]])
    given = np.arange(40) % 5 - 1
    assert np.array_equal(folds_of(X, y, given), given)
    by_splitter = folds_of(X, y, KFold(4))
    assert np.array_equal(by_splitter, np.arange(40) // 10)
    many = np.arange(12_000) % 4
    assert np.array_equal(folds_of(np.ones((12_000, 1)), np.arange(12_000) % 2, many), many)


@pytest.mark.parametrize(("n", "is_many"), [(9_999, False), (10_000, True)])
@pytest.mark.parametrize("form", FORMS)
def test_one_fold_of_many_rows(n, is_many, form):
    X = np.arange(2.0 * n).reshape(n, 2)
    fold_of = folds_of(FORMS[form](X), np.arange(n) % 5)
    held = np.mean(fold_of >= 0)
    assert set(fold_of) == ({-1, 0} if is_many else {0, 1, 2})
    assert held == pytest.approx(1 / 5 if is_many else 1.0, abs=0.01)


@pytest.mark.parametrize(("n", "n_classes", "is_many"), [(4_000, 250, True), (4_000, 249, False), (3_999, 400, False)])
def test_one_fold_of_fewer_rows_of_many_classes(n, n_classes, is_many):
    folds = pool_folds(np.arange(float(n))[:, None], np.arange(n) % n_classes, n_classes, 3, np.random.RandomState(0))
    assert (set(folds.tolist()) == {-1, 0}) == is_many


def test_same_seed_same_folds():
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 4
    assert np.array_equal(folds_of(X, y, seed=3), folds_of(X, y, seed=3))
    assert not np.array_equal(folds_of(X, y, seed=3), folds_of(X, y, seed=4))
