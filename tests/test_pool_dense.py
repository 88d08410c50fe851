"""Dense inputs of a pool: which scale their columns get, and when there are radial kernels."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from taxolearn import PoolClassifier
from taxolearn.estimators.pooling.dense import choose_scaling, radial_experts

COMMON = {"n_threads": 1, "random_state": 0}


def scaling(X, y, weights=None):
    return choose_scaling(X, y, weights, **COMMON)


def digits(n=600):
    """Pixels, some of them constant and some nearly so."""
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


def test_columns_in_different_units_are_standardized():
    X, y = load_wine(return_X_y=True)
    mean, scale = scaling(X, y)
    np.testing.assert_allclose(mean, X.mean(axis=0))
    np.testing.assert_allclose(scale, X.std(axis=0))


def test_pixels_keep_their_relative_scales():
    X, y = digits()
    deviation = X.std(axis=0)
    varying = deviation > 0
    assert deviation[varying].max() > 20 * deviation[varying].min()  # else the test says little
    assert not varying.all()
    mean, scale = scaling(X, y)
    np.testing.assert_allclose(mean, X.mean(axis=0))
    np.testing.assert_allclose(scale[varying], np.sqrt(np.mean(deviation[varying] ** 2)))
    np.testing.assert_array_equal(scale[~varying], 1.0)


def test_the_scale_is_chosen_by_the_loss():
    """The same numbers: a common scale is right if the small columns are noise, and wrong if only they matter."""
    generator = np.random.default_rng(0)
    large, small = generator.normal(size=(400, 2)), 0.01 * generator.normal(size=(400, 20))
    X = np.hstack([large, small])
    common = scaling(X, (large.sum(axis=1) > 0).astype(int))[1]
    assert np.ptp(common) == 0
    own = scaling(X, (small[:, :2].sum(axis=1) > 0).astype(int))[1]
    np.testing.assert_allclose(own, X.std(axis=0))


def test_constant_columns_are_left_as_they_are():
    X, y = load_wine(return_X_y=True)
    wide = np.hstack([X, np.zeros((len(y), 1)), np.full((len(y), 1), 1e9), np.full((len(y), 1), 0.1)])
    mean, scale = scaling(wide, y)
    np.testing.assert_allclose(scale[:13], X.std(axis=0))
    np.testing.assert_array_equal(scale[13:], 1.0)
    np.testing.assert_allclose((wide - mean)[:, 13:], 0.0, atol=1e-6)
    np.testing.assert_array_equal(scaling(np.ones((50, 3)), np.arange(50) % 2)[1], 1.0)


def test_weights_count_as_rows():
    X, y = load_wine(return_X_y=True)
    times = np.random.default_rng(0).integers(0, 3, size=len(y))
    for given, repeated in zip(
        scaling(X, y, times.astype(float)), scaling(np.repeat(X, times, axis=0), np.repeat(y, times)), strict=True
    ):
        np.testing.assert_allclose(given, repeated)


@pytest.mark.parametrize("rows", [slice(0, 20), slice(0, 0, 1)], ids=["few rows", "one class"])
def test_columns_are_standardized_where_nothing_can_be_compared(rows):
    X, y = digits(20 if rows.stop else 200)
    y = y if rows.stop else np.zeros(200, dtype=int)
    deviation = X.std(axis=0)
    np.testing.assert_allclose(scaling(X, y)[1], np.where(deviation > 0, deviation, 1.0))


def test_single_precision_is_no_other_choice():
    X, y = digits()
    assert len(np.unique(scaling(X.astype(np.float32), y)[1])) == 2
    assert len(np.unique(scaling(X, y)[1])) == 2


def test_a_pool_uses_the_scale():
    X, y = digits(300)
    model = PoolClassifier().fit(X, y)
    for given, expected in zip((model.mean_, model.scale_), scaling(X, y), strict=True):
        np.testing.assert_allclose(given, expected)
    assert model.score(*digits()) > 0.9


@pytest.mark.parametrize(
    ("rows", "columns", "n_candidates"),
    [
        (999, 60, 1),
        (1000, 60, 2),
        (1000, 61, 1),
        (1000, 1, 1),
        (1000, 2, 2),
        (100, 1000, 1),
        (100, 1001, 0),
        (25_000, 2, 2),
        (25_001, 2, 2),
        (300_000, 2, 2),
        (300_001, 2, 0),
    ],
)
def test_limits_of_radial_kernels(rows, columns, n_candidates):
    X = np.random.default_rng(0).normal(size=(rows, columns))
    candidates = radial_experts(X, 3, tol=1e-3, **COMMON)
    assert len(candidates) == n_candidates
    if candidates:
        assert candidates[0].kernel == "rbf"
        assert candidates[0].tol == 1e-3
    if n_candidates == 2:
        lengths = candidates[1].kernel.length_scale
        np.testing.assert_allclose(lengths, np.full(columns, np.sqrt(X.var(axis=0).sum())))


@pytest.mark.parametrize(("rows", "rank"), [(25_000, None), (25_001, 1000), (100_001, 400)])
def test_many_rows_have_kernels_of_low_rank(rows, rank):
    solver = radial_experts(np.ones((rows, 2)), 3, **COMMON)[0].solver
    assert solver == "auto" if rank is None else (solver.products, solver.rank) == ("low_rank", rank)


@pytest.mark.parametrize(("rows", "most"), [(10_000, 200), (50_000, 400)])
def test_many_classes_have_no_radial_kernel(rows, most):
    X = np.ones((rows, 2))
    assert radial_experts(X, most, **COMMON)
    assert not radial_experts(X, most + 1, **COMMON)


@pytest.mark.parametrize("factor", [1e-300, 1e154, 1e300])
def test_huge_and_tiny_columns(factor):
    X, y = load_wine(return_X_y=True)
    X[:, 3] *= factor
    assert PoolClassifier().fit(X, y).score(X, y) > 0.9
