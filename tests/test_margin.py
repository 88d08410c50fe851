"""Max-margin Markov trees in the core: against SciPy's quadratic programs, brute force, support vector machines."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import SVC, LinearSVC

from taxolearn import _core
from taxolearn.fitting.margin import MARGIN_LOSSES, fit_margin
from taxolearn.kernels import RBF, Linear

testing = pytest.importorskip("taxolearn_testing")

FORESTS = ([-1], [-1, -1], [-1, 0, 0], [-1, -1, 0, 2])


def random_forest(rng, n_nodes):
    tops = int(rng.integers(1, n_nodes + 1))
    return [-1] * tops + [int(rng.integers(0, node)) for node in range(tops, n_nodes)]


def random_sets(rng, parents, n):
    """Indicator of sets that are closed upwards."""
    Y = rng.random((n, len(parents))) < 0.6
    for node, parent in enumerate(parents):
        if parent >= 0:
            Y[:, node] &= Y[:, parent]
    return Y


def fit(X, Y, parents, **given):
    Y = sp.csr_array(np.asarray(Y, dtype=float))
    return fit_margin(X, Y.indptr, Y.indices, parents, **given)


def labelings(n_nodes):
    return np.array(list(product([-1, 1], repeat=n_nodes)))


def edge_features(parents, y):
    """The paper's: one of four numbers per edge is 1. Top nodes have an edge to a root whose label is 1."""
    out = np.zeros((len(parents), 2, 2))
    for node, parent in enumerate(parents):
        above = 1 if parent < 0 or y[parent] > 0 else 0
        out[node, above, int(y[node] > 0)] = 1
    return out.ravel()


def labeling_loss(parents, loss, scales, y, truth):
    wrong = y != truth
    if loss == "zero-one":
        return float(wrong.any())
    if loss == "hamming":
        return float(wrong.sum())
    return float(sum(scales[j] for j, p in enumerate(parents) if wrong[j] and (p < 0 or not wrong[p])))


def quadratic_program(K, Y, parents, loss, scales, costs):
    """Least objective of (1): the dual (2) over all labelings, in dense algebra, in the paper's own features."""
    signs = np.where(Y, 1, -1)
    pseudo = [
        (i, edge_features(parents, own) - edge_features(parents, y), labeling_loss(parents, loss, scales, y, own))
        for i, own in enumerate(signs)
        for y in labelings(len(parents))
        if (y != own).any()
    ]
    rows = np.array([i for i, _, _ in pseudo])
    D = np.array([difference for _, difference, _ in pseudo])
    losses = np.array([each for _, _, each in pseudo])
    Q = (D @ D.T) * K[np.ix_(rows, rows)]
    of_row = np.array([rows == i for i in range(len(Y))], dtype=float)
    done = minimize(
        lambda a: (0.5 * a @ Q @ a - losses @ a, Q @ a - losses),
        np.zeros(len(rows)),
        jac=True,
        bounds=[(0, None)] * len(rows),
        constraints={"type": "ineq", "fun": lambda a: costs - of_row @ a, "jac": lambda a: -of_row},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return -done.fun


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
@pytest.mark.parametrize("parents", FORESTS)
@pytest.mark.parametrize("kernel", [None, RBF(1.5)])
def test_the_objective_is_that_of_a_quadratic_program(loss, parents, kernel):
    rng = np.random.default_rng(len(parents))
    n = 9 if len(parents) < 4 else 6
    X, Y = rng.standard_normal((n, 3)), random_sets(rng, parents, n)
    scales = rng.uniform(0.2, 1.0, len(parents))
    weights = rng.uniform(0.5, 2.0, n)
    found = fit(
        X,
        Y,
        parents,
        loss=loss,
        scales=scales,
        C=0.7,
        bias=0.5,
        kernel=None if kernel is None else kernel.to_core(),
        sample_weight=weights,
        tol=1e-8,
        max_iter=100_000,
    )
    K = (Linear() if kernel is None else kernel)(X, X) + 0.25
    expected = quadratic_program(K, Y, parents, loss, scales, 0.7 * weights)
    assert found.result.objective == pytest.approx(expected, rel=1e-6)
    assert found.result.gap <= 1e-6 * found.result.objective


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n_nodes=st.integers(1, 12), loss=st.sampled_from(MARGIN_LOSSES))
def test_the_best_labeling_is_the_best_of_all(seed, n_nodes, loss):
    rng = np.random.default_rng(seed)
    parents = random_forest(rng, n_nodes)
    truth = np.where(random_sets(rng, parents, 1)[0], 1, -1)
    scales = rng.uniform(0.1, 1.0, n_nodes)
    pairs = [(node, parent) for node, parent in enumerate(parents) if parent >= 0]
    g = rng.standard_normal(n_nodes + len(pairs)) * rng.choice([0.01, 1.0])

    Y = labelings(n_nodes)
    lower, upper = (np.array([pair[k] for pair in pairs], dtype=int) for k in (0, 1))
    scores = np.hstack([Y, Y[:, lower] * Y[:, upper]]) @ g
    losses = np.array([labeling_loss(parents, loss, scales, y, truth) for y in Y])
    found_loss, found = testing.best_labeling(parents, loss, scales.tolist(), g, truth.tolist())
    assert found_loss == pytest.approx(labeling_loss(parents, loss, scales, np.array(found[:n_nodes]), truth))
    assert found_loss + np.array(found) @ g == pytest.approx((losses + scores).max())

    has = Y > 0
    consistent = ~(has[:, lower] & ~has[:, upper]).any(axis=1)
    expected = [
        scores[consistent & has[:, node]].max() - scores[consistent & ~has[:, node]].max() for node in range(n_nodes)
    ]
    marginals = _core.max_marginals(g[None, :], parents)[0]
    np.testing.assert_allclose(marginals, expected, atol=1e-9)
    np.testing.assert_array_equal(marginals > 0, has[consistent][scores[consistent].argmax()])


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
def test_one_edge_is_a_support_vector_machine(loss):
    """``W = (v, -v) / 2`` for a margin v, so ``|W|^2 = |v|^2 / 2``, and C counts twice."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(60) > 0
    peer = LinearSVC(C=1.4, loss="hinge", tol=1e-9, max_iter=1_000_000, fit_intercept=False).fit(X, y)
    found = fit(X, y[:, None], [-1], loss=loss, C=0.7, bias=0.0, tol=1e-9, max_iter=100_000)
    np.testing.assert_allclose(2 * found.weights[:, 0], peer.coef_[0], atol=1e-4)
    margins = np.where(y, 1, -1) * (X @ peer.coef_[0])
    theirs = 0.5 * (0.5 * peer.coef_[0] @ peer.coef_[0] + 1.4 * np.maximum(0, 1 - margins).sum())
    assert found.result.objective == pytest.approx(theirs, rel=1e-6)

    curved = SVC(C=1.4, kernel="rbf", gamma=0.5, tol=1e-9).fit(X, y)
    found = fit(X, y[:, None], [-1], C=0.7, bias=30.0, kernel=RBF(1.0).to_core(), tol=1e-9, max_iter=200_000)
    u = 2 * (RBF(1.0)(X, X) @ found.weights + found.intercepts)[:, 0]
    np.testing.assert_allclose(u, curved.decision_function(X), atol=5e-3)


def test_the_gap_falls_to_what_was_asked():
    rng = np.random.default_rng(1)
    X = sp.random_array((400, 80), density=0.1, rng=rng, format="csr")
    parents = random_forest(rng, 25)
    Y = random_sets(rng, parents, 400)
    exact = fit(X, Y, parents, tol=1e-6, max_iter=10_000).result
    assert exact.status == "converged"
    for tol in (0.3, 1e-2, 1e-4):
        found = fit(X, Y, parents, tol=tol).result
        assert found.status == "converged"
        assert found.relative_gap <= tol
        assert found.objective - exact.objective <= found.gap
        assert found.objective - found.gap <= exact.objective
    stopped = fit(X, Y, parents, tol=1e-6, max_iter=2).result
    assert (stopped.status, stopped.iterations) == ("max_iter", 2)
    assert stopped.objective - stopped.gap <= exact.objective


@pytest.mark.parametrize("kernel", [None, RBF(2.0)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_threads_and_seeds(kernel, is_sparse):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 6)) * (rng.random((200, 6)) < 0.5)
    parents = random_forest(rng, 40)
    Y = random_sets(rng, parents, 200)
    X = sp.csr_array(X) if is_sparse else X
    given = {"kernel": None if kernel is None else kernel.to_core(), "tol": 1e-3}
    one, again, three, other = (
        fit(X, Y, parents, n_threads=threads, random_state=seed, **given)
        for threads, seed in ((1, 0), (1, 0), (3, 0), (1, 1))
    )
    np.testing.assert_array_equal(one.weights, again.weights)
    np.testing.assert_array_equal(one.weights, three.weights)
    assert not np.array_equal(one.weights, other.weights)
    assert other.result.objective == pytest.approx(one.result.objective, rel=1e-3)


def test_a_fit_starts_from_that_of_another_cost():
    rng = np.random.default_rng(3)
    X, parents = rng.standard_normal((150, 20)), [-1, -1, 0, 0, 1, 2]
    Y = random_sets(rng, parents, 150)
    smaller = fit(X, Y, parents, C=0.1)
    cold = fit(X, Y, parents, C=0.13)
    warm = fit(X, Y, parents, C=0.13, start=smaller.duals)
    same = fit(X, Y, parents, C=0.1, start=smaller.duals)
    assert warm.result.passes < cold.result.passes
    assert warm.result.objective == pytest.approx(cold.result.objective, rel=2e-2)
    assert (same.result.status, same.result.passes) == ("converged", 0)
    with pytest.raises(ValueError, match="start has 150 rows, expected 149"):
        fit(X[1:], Y[1:], parents, start=smaller.duals)


def test_weights_of_rows_are_repetitions_and_rows_may_have_none():
    rng = np.random.default_rng(4)
    X, parents = rng.standard_normal((40, 4)), [-1, 0, 0]
    Y = random_sets(rng, parents, 40)
    counts = rng.integers(0, 3, 40)
    weighted = fit(X, Y, parents, sample_weight=counts.astype(float), tol=1e-7, max_iter=10_000)
    repeated = fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0), parents, tol=1e-7, max_iter=10_000)
    assert weighted.result.objective == pytest.approx(repeated.result.objective, rel=1e-6)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-3)


def test_progress_and_interruption():
    rng = np.random.default_rng(5)
    X, parents = rng.standard_normal((60, 4)), [-1, 0]
    Y = random_sets(rng, parents, 60)
    seen = []
    found = fit(X, Y, parents, tol=1e-4, progress=lambda *each: seen.append(each))
    assert len(seen) == found.result.iterations

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(X, Y, parents, tol=1e-4, progress=stop)
