"""The core of label embeddings: against dense algebra, and its own laws."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from taxolearn import Blocks
from taxolearn.fitting.embedding import fit_embedding


def random_problem(seed, n=120, d=10, n_classes=7, labels_per_row=None):
    """Inputs with means of their own that tell something of the classes, and the indicator of the labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(0, 1, d) + rng.standard_normal(d)
    if labels_per_row is None:
        Y = np.eye(n_classes)[rng.integers(n_classes, size=n)]
    else:
        Y = (rng.random((n, n_classes)) < labels_per_row / n_classes).astype(float)
    return X + Y @ rng.standard_normal((n_classes, d)) * 2, Y


def fit(X, Y, **given):
    labels = sp.csr_array(Y)
    return fit_embedding(X, labels.indptr, labels.indices, Y.shape[1], **({"ridge": 0.1, "tol": 1e-10} | given))


def dense(X, Y, ridge, *, center=True, weights=None):
    """H with the ridge, B, and both matrices centred."""
    w = np.ones(len(X)) if weights is None else weights
    if center:
        X, Y = X - np.average(X, axis=0, weights=w), Y - np.average(Y, axis=0, weights=w)
    H = X.T @ (w[:, None] * X)
    return H + ridge * np.trace(H) / len(H) * np.eye(len(H)), X.T @ (w[:, None] * Y), X, Y


def principal_angles(A, B):
    """The largest one, in radians."""
    cosines = np.linalg.svd(np.linalg.qr(A)[0].T @ np.linalg.qr(B)[0])[1]
    return np.arccos(np.clip(cosines.min(), -1, 1))


def largest(S, k):
    values, vectors = np.linalg.eigh(S)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


# -- Against dense algebra --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("labels_per_row", [None, 1.5])
def test_span_of_the_largest_eigenvectors(labels_per_row, ridge, center):
    X, Y = random_problem(0, labels_per_row=labels_per_row)
    H, B, _, _ = dense(X, Y, ridge, center=center)
    values, vectors = largest(B.T @ np.linalg.solve(H, B), 3)
    found = fit(X, Y, n_components=3, ridge=ridge, center=center, oversampling=2, rounds=40)
    assert principal_angles(found.components, vectors) < 1e-6
    np.testing.assert_allclose(found.values, values, rtol=1e-8)
    np.testing.assert_allclose(found.components.T @ found.components, np.eye(3), atol=1e-12)


def test_angle_falls_with_the_rounds_as_the_spectrum_decays():
    """Subspace iteration: by the ratio of the first eigenvalue that is left out to the last one wanted, each round."""
    X, Y = random_problem(1, n=400, d=30, n_classes=25)
    H, B, _, _ = dense(X, Y, 0.1)
    values, vectors = largest(B.T @ np.linalg.solve(H, B), 8)
    angles = np.array(
        [
            principal_angles(fit(X, Y, n_components=4, oversampling=3, rounds=r).components, vectors[:, :4])
            for r in (1, 6)
        ]
    )
    ratio = values[7] / values[3]
    assert 1e-7 < angles[1] < 3.0 * angles[0] * ratio**5
    assert ratio < 0.9


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_rank_constrained_optimum(ridge):
    """Equation 1: |Y - X W|^2 + ridge |W|^2 over W of rank k, by the truncated projection of the augmented problem."""
    X, Y = random_problem(2)
    _, _, Xc, Yc = dense(X, Y, ridge)
    penalty = ridge * np.trace(Xc.T @ Xc) / Xc.shape[1]
    augmented = np.vstack([Xc, np.sqrt(penalty) * np.eye(Xc.shape[1])])
    target = np.vstack([Yc, np.zeros((Xc.shape[1], Y.shape[1]))])
    U, s, Vt = np.linalg.svd(augmented @ np.linalg.lstsq(augmented, target, rcond=None)[0])
    best = ((target - (U[:, :3] * s[:3]) @ Vt[:3]) ** 2).sum()
    found = fit(X, Y, n_components=3, ridge=ridge, rounds=30)
    W = found.weights @ found.components.T
    value = ((Yc - Xc @ W) ** 2).sum() + penalty * (W**2).sum()
    assert best * (1 - 1e-12) <= value <= best * (1 + 1e-6)


@pytest.mark.parametrize("n_classes", [6, 14])
def test_all_directions_are_the_unconstrained_ridge_regression(n_classes):
    X, Y = random_problem(3, n_classes=n_classes)
    H, B, _, _ = dense(X, Y, 0.2)
    found = fit(X, Y, n_components=14, ridge=0.2)
    assert found.components.shape[1] == min(n_classes - 1, X.shape[1])
    np.testing.assert_allclose(found.weights @ found.components.T, np.linalg.solve(H, B), atol=1e-8)


@pytest.mark.parametrize("method", ["rembrandt", "plst", "random"])
def test_regression_of_the_embedding(method):
    X, Y = random_problem(4, labels_per_row=1.3)
    H, B, Xc, Yc = dense(X, Y, 0.5)
    found = fit(X, Y, n_components=4, method=method, ridge=0.5)
    W = np.linalg.solve(H, B @ found.components)
    np.testing.assert_allclose(found.weights, W, atol=1e-9)
    np.testing.assert_allclose(found.intercepts, Y.mean(0) @ found.components - X.mean(0) @ W, atol=1e-9)
    Z = X @ W + found.intercepts
    np.testing.assert_allclose(found.mean, Z.mean(0), atol=1e-9)
    np.testing.assert_allclose(found.moments, np.cov(Z.T, bias=True), atol=1e-9)
    penalty = 0.5 * np.trace(Xc.T @ Xc) / Xc.shape[1]
    objective = ((Yc @ found.components - Xc @ W) ** 2).sum() + penalty * (W**2).sum()
    np.testing.assert_allclose(found.objective, objective, rtol=1e-10)


def test_principal_label_space():
    X, Y = random_problem(5, labels_per_row=2.0)
    Yc = Y - Y.mean(0)
    values, vectors = largest(Yc.T @ Yc, 3)
    found = fit(X, Y, n_components=3, method="plst", rounds=60, oversampling=2)
    assert principal_angles(found.components, vectors) < 1e-6
    np.testing.assert_allclose(found.values, values, rtol=1e-8)


def test_principal_components_of_the_inputs():
    X, Y = random_problem(6)
    Xc = X - X.mean(0)
    values, vectors = largest(Xc.T @ Xc, 3)
    found = fit(X, Y, n_components=3, method="pca", rounds=60, oversampling=2)
    assert principal_angles(found.weights, vectors) < 1e-6
    np.testing.assert_allclose(found.values, values, rtol=1e-8)
    np.testing.assert_allclose(found.intercepts, -X.mean(0) @ found.weights, atol=1e-10)


# -- Certificate ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_gap_bounds_what_is_missing(max_iter):
    X, Y = random_problem(7, n=300, d=200, n_classes=30)
    H, B, Xc, Yc = dense(X, Y, 0.1)
    found = fit(X, Y, n_components=3, oversampling=2, max_iter=max_iter)
    assert not found.is_converged
    V, W = found.components, found.weights
    penalty = 0.1 * np.trace(Xc.T @ Xc) / Xc.shape[1]

    def objective(W):
        return ((Yc @ V - Xc @ W) ** 2).sum() + penalty * (W**2).sum()

    missing = objective(W) - objective(np.linalg.solve(H, B @ V))
    assert 0 < missing <= found.gap * (1 + 1e-9)
    np.testing.assert_allclose(found.objective, objective(W), rtol=1e-9)
    np.testing.assert_allclose(
        found.residuals, np.linalg.norm(B @ V - H @ W, axis=0) / np.linalg.norm(B @ V, axis=0), rtol=1e-9
    )


def test_without_a_ridge_there_is_no_bound():
    X, Y = random_problem(8)
    assert fit(X, Y, n_components=2, ridge=0.0, tol=1e-2).gap == np.inf


@pytest.mark.parametrize("d", [3, 60])
def test_all_columns_share_their_directions(d):
    """d unknowns and s right-hand sides take about d / s products, so fewer for all together than for one alone."""
    X, Y = random_problem(9, n=500, d=d, n_classes=40)
    found = fit(X, Y, n_components=20, oversampling=0, rounds=0, tol=1e-8)
    assert found.is_converged
    assert found.iterations <= 2 * (-(-d // 20) + 2)


# -- Forms of the inputs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rembrandt", "plst", "random", "pca"])
@pytest.mark.parametrize("ridge", [None, 0.1])
def test_sparse_blocks_and_dense_agree(method, ridge):
    X, Y = random_problem(10)
    X[np.abs(X) < 1.5] = 0.0
    given = {"n_components": 3, "method": method, "ridge": ridge, "rounds": 8}
    found = fit(X, Y, **given)
    for other in (sp.csr_matrix(X), Blocks({"a": X[:, :4], "b": sp.csr_matrix(X[:, 4:])}), np.ascontiguousarray(X)):
        again = fit(other, Y, **given)
        np.testing.assert_allclose(
            again.weights @ again.components.T if method != "pca" else again.weights,
            found.weights @ found.components.T if method != "pca" else found.weights,
            atol=1e-7,
        )
        np.testing.assert_allclose(again.path_errors, found.path_errors, rtol=1e-6)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_mean_shift_is_that_of_centred_inputs(is_sparse):
    X, Y = random_problem(11)
    X[np.abs(X) < 1.0] = 0.0
    found = fit(sp.csr_matrix(X) if is_sparse else X, Y, n_components=3)
    centred = fit(X - X.mean(0), Y, n_components=3)
    np.testing.assert_allclose(found.components, centred.components, atol=1e-8)
    np.testing.assert_allclose(found.weights, centred.weights, atol=1e-8)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.sampled_from(["rembrandt", "plst", "random", "pca"]))
def test_weights_are_repetitions(seed, method):
    rng = np.random.default_rng(seed)
    X, Y = random_problem(seed, n=40, d=5, n_classes=4, labels_per_row=1.2)
    repetitions = rng.integers(0, 3, size=len(X))
    repeated = np.repeat(np.arange(len(X)), repetitions)
    given = {"n_components": 2, "method": method, "rounds": 5, "oversampling": 10}
    weighted = fit(X, Y, sample_weight=repetitions.astype(float), **given)
    again = fit(X[repeated], Y[repeated], **given)
    np.testing.assert_allclose(weighted.values, again.values, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(weighted.weights @ weighted.weights.T, again.weights @ again.weights.T, atol=1e-7)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_scales_of_all_inputs_do_not_matter(seed):
    """The ridge is relative, so X times a number gives the same predictions."""
    X, Y = random_problem(seed, n=50, d=6, n_classes=5)
    one, other = (fit(c * X, Y, n_components=3, rounds=6) for c in (1.0, 1000.0))
    np.testing.assert_allclose(1000.0 * other.weights @ other.components.T, one.weights @ one.components.T, atol=1e-6)


def test_threads_change_nothing():
    X, Y = random_problem(12, n=3000, d=40, n_classes=50)
    for method in ("rembrandt", "plst", "random", "pca"):
        one, two = (fit(X, Y, n_components=5, method=method, ridge=None, n_threads=t) for t in (1, 2))
        for name in ("components", "weights", "moments", "path_errors", "values"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_seeds_reproduce():
    X, Y = random_problem(13, n_classes=30)
    first, again, other = (fit(X, Y, n_components=4, oversampling=2, random_state=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(first.components, again.components)
    assert np.abs(first.components - other.components).max() > 1e-6


def test_single_precision():
    X, Y = random_problem(14)
    exact = fit(X.astype(np.float32), Y, n_components=3, rounds=8)
    found = fit(X.astype(np.float32), Y, n_components=3, rounds=8, tol=1e-4, single_precision=True)
    assert found.is_converged
    assert found.residuals.max() < 1e-3
    np.testing.assert_allclose(
        found.weights @ found.components.T, exact.weights @ exact.components.T, atol=1e-4 * np.abs(exact.weights).max()
    )


def test_classes_without_rows_are_at_zero():
    X, Y = random_problem(15)
    Y = np.column_stack([np.zeros(len(Y)), Y, np.zeros(len(Y))])
    found = fit(X, Y, n_components=3)
    np.testing.assert_allclose(found.components[[0, -1]], 0.0, atol=1e-12)


@pytest.mark.parametrize("values", [np.ones((20, 3)), np.zeros((20, 3))])
def test_constant_inputs_predict_the_mean(values):
    Y = np.eye(4)[np.arange(20) % 4]
    for ridge in (0.0, 0.1, None):
        found = fit(values, Y, n_components=2, ridge=ridge)
        assert found.components.shape[1] in (0, 1, 2)
        assert np.isfinite(found.weights).all()


# -- The path of ridges -----------------------------------------------------------------------------------------------


def test_path_is_that_of_explicit_fits():
    """Another division into folds and all labels instead of projections of them: the same curve but for noise."""
    X, Y = random_problem(16, n=900, d=8, n_classes=12)
    found = fit(X, Y, ridge=None)
    errors = np.zeros(len(found.path_ridges))
    for fold in range(5):
        held = np.arange(len(X)) % 5 == fold
        for at, ridge in enumerate(found.path_ridges):
            H, B, _, _ = dense(X[~held], Y[~held], ridge)
            W = np.linalg.solve(H, B)
            residual = Y[held] - Y[~held].mean(0) - (X[held] - X[~held].mean(0)) @ W
            errors[at] += (residual**2).sum() / len(X)
    np.testing.assert_allclose(found.path_errors / found.path_errors[-1], errors / errors[-1], rtol=0.05)
    assert found.ridge in found.path_ridges
    best = found.path_errors.min()
    assert found.path_errors[np.searchsorted(found.path_ridges, found.ridge)] <= 1.0011 * best


def test_noise_asks_for_a_large_ridge():
    rng = np.random.default_rng(17)
    Y = np.eye(5)[rng.integers(5, size=60)]
    assert fit(rng.standard_normal((60, 100)), Y, ridge=None).ridge >= 10.0


# -- What comes in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_components": 0}, "n_components is 0"),
        ({"oversampling": -1}, "oversampling is -1"),
        ({"rounds": -1}, "rounds is -1"),
        ({"tol": 0.0}, "tol is 0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"ridge": np.nan}, "ridge is nan"),
        ({"method": "cca"}, "method"),
        ({"sample_weight": np.zeros(120)}, "sample_weight is zero"),
        ({"sample_weight": np.full(120, -1.0)}, "sample_weight has -1"),
        ({"sample_weight": np.ones(3)}, "sample_weight has 3 elements"),
        ({"n_threads": 0}, "n_threads"),
    ],
)
def test_bad_settings(given, message):
    X, Y = random_problem(18)
    with pytest.raises(ValueError, match=message):
        fit(X, Y, **given)


@pytest.mark.parametrize(
    ("offsets", "labels", "message"),
    [
        ([0, 1, 2], [0, 5], "labels has 5"),
        ([0, 1, 2], [0, -1], "labels has -1"),
        ([0, 2, 1], [0, 1], "falls"),
        ([1, 1, 2], [0, 1], "start at 0"),
        ([0, 1, 4], [0, 1], "ends at 4"),
    ],
)
def test_bad_labels(offsets, labels, message):
    with pytest.raises(ValueError, match=message):
        fit_embedding(np.eye(2), offsets, labels, 3, ridge=0.1)


def test_progress_is_reported_and_can_stop():
    X, Y = random_problem(19, n=300, d=100, n_classes=20)
    seen = []
    fit(X, Y, n_components=2, oversampling=0, progress=lambda *values: seen.append(values))
    assert [values[0] for values in seen] == list(range(1, len(seen) + 1))

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(X, Y, n_components=2, progress=stop)
