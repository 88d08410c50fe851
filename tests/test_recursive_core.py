"""Recursive regularization with hinge losses: against liblinear, SciPy's quadratic programs, and its own laws."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from taxolearn import Taxonomy
from taxolearn.fitting.recursive import NodePrecision, fit_recursive

LOSSES = ("hinge", "squared_hinge")


def random_problem(seed, n=30, d=5, n_nodes=8, reach=4, labels_per_row=1.2):
    """Inputs, label sets (indicator) and parents of a random tree; some rows and classes have nothing."""
    rng = np.random.default_rng(seed)
    drawn = [-1, *(k - 1 - int(rng.integers(min(reach, k))) for k in range(1, n_nodes))]
    taxonomy = Taxonomy(np.array(drawn))
    X = rng.standard_normal((n, d))
    Y = rng.random((n, taxonomy.n_classes)) < labels_per_row / taxonomy.n_classes
    return X, Y, taxonomy.parents


def fit(X, Y, parents=None, **given):
    Y = sp.csr_array(np.asarray(Y, dtype=float))
    return fit_recursive(X, Y.indptr, Y.indices, Y.shape[1], parents=parents, **given)


def path_matrix(parents, n_classes):
    """1 where a node is the leaf or above it."""
    if parents is None:
        return np.eye(n_classes)
    paths = np.zeros((n_classes, len(parents)))
    for c in range(n_classes):
        node = len(parents) - n_classes + c
        while node >= 0:
            paths[c, node] = 1
            node = parents[node]
    return paths


def objective(W, X, Y, parents, loss="hinge", C=1.0, bias=1.0, variances=None, sample_weight=None):
    """P of differences W (nodes x (d + 1)), by its definition."""
    v = np.ones(len(W)) if variances is None else np.asarray(variances)
    s = np.ones(len(X)) if sample_weight is None else sample_weight
    u = np.column_stack([X, np.full(len(X), bias)]) @ (path_matrix(parents, Y.shape[1]) @ W).T
    slack = np.maximum(0, 1 - np.where(Y, u, -u))
    losses = slack if loss == "hinge" else slack**2
    return 0.5 * (W**2 / v[:, None]).sum() + C * (s[:, None] * losses).sum()


def differences(found, bias=1.0):
    return np.column_stack([found.weights.toarray(), found.intercepts / bias])


def quadratic_program(X, Y, parents, loss, C, variances, G=None):
    """Least objective, by SciPy on the dual in dense algebra."""
    n, n_classes = Y.shape
    paths = path_matrix(parents, n_classes)
    if G is None:
        G = paths @ np.diag(np.ones(paths.shape[1]) if variances is None else variances) @ paths.T
    Z = np.column_stack([X, np.ones(n)])
    y = np.where(Y, 1.0, -1.0).T.ravel()
    Q = np.kron(G, Z @ Z.T) * np.outer(y, y)
    if loss == "squared_hinge":
        Q += np.eye(len(Q)) / (2 * C)
    bounds = [(0, C if loss == "hinge" else None)] * len(Q)
    done = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1),
        np.zeros(len(Q)),
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return -done.fun


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", [0.0, 1.0, 3.0])
def test_without_a_tree_it_is_liblinear(loss, bias):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.standard_normal((150, 30)) * (rng.random((150, 30)) < 0.3))
    y = rng.integers(20, size=150)
    found = fit(X, np.eye(20, dtype=bool)[y], loss=loss, C=0.5, bias=bias, tol=1e-8)
    peer = LinearSVC(
        loss=loss, C=0.5, tol=1e-8, max_iter=500_000, fit_intercept=bias > 0, intercept_scaling=bias or 1.0
    ).fit(X, y)
    W = np.column_stack([peer.coef_, (peer.intercept_ / bias if bias > 0 else np.zeros(20))])
    theirs = objective(W, X.toarray(), np.eye(20, dtype=bool)[y], None, loss, C=0.5, bias=bias)
    assert found.status == "converged"
    assert found.objective == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(found.weights.toarray(), peer.coef_, atol=2e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n_nodes", "reach"), [(8, 4), (6, 1), (12, 20), (40, 3)])
def test_joint_alternation_and_a_dense_program_agree(loss, n_nodes, reach):
    X, Y, parents = random_problem(3, n=25, n_nodes=n_nodes, reach=reach)
    variances = np.random.default_rng(1).uniform(0.3, 2.0, len(parents))
    expected = quadratic_program(X, Y, parents, loss, 0.2, variances)
    for method in ("joint", "alternating"):
        found = fit(X, Y, parents, loss=loss, C=0.2, variances=variances, method=method, tol=3e-7, max_iter=5000)
        assert found.status == "converged"
        assert found.objective == pytest.approx(expected, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 25),
    n_nodes=st.integers(2, 70),
    reach=st.integers(1, 70),
    density=st.sampled_from([0.0, 1.0, 3.0, 1000.0]),
    loss=st.sampled_from(LOSSES),
    tol=st.sampled_from([0.3, 1e-2, 1e-4]),
)
def test_the_gap_bounds(seed, n, n_nodes, reach, density, loss, tol):
    """Chains, stars, single children, classes and rows without anything, labels everywhere."""
    X, Y, parents = random_problem(seed, n, 3, n_nodes, reach, density)
    found = fit(X, Y, parents, loss=loss, tol=tol, max_iter=200)
    better = fit(X, Y, parents, loss=loss, tol=1e-7, max_iter=500)
    assert found.objective == pytest.approx(objective(differences(found), X, Y, parents, loss), rel=1e-10)
    assert found.gap >= found.objective - better.objective - 1e-9 * found.objective
    assert found.status == "converged"
    assert found.relative_gap <= tol


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_nodes=st.integers(2, 40),
    reach=st.integers(1, 40),
    loss=st.sampled_from(LOSSES),
    is_graph=st.booleans(),
)
def test_the_dual_objective_never_falls(seed, n_nodes, reach, loss, is_graph):
    """P minus the gap, after one sweep, two, ...; what it rises to is the minimum that the alternation finds."""
    X, Y, parents = random_problem(seed, 15, 3, n_nodes, reach)
    given_tree = {"parents": parents}
    if is_graph:
        Q = np.eye(len(parents))
        for node in range(1, len(parents)):
            edge = np.zeros(len(parents))
            edge[[node, parents[node]]] = 1, -1
            Q += np.outer(edge, edge)
        n_classes = Y.shape[1]
        class_nodes = np.arange(len(parents) - n_classes, len(parents))
        given_tree = {"graph": NodePrecision(sp.csr_array(Q), class_nodes)}
    options = {"loss": loss, "tol": 1e-7, "C": 0.3, **given_tree}
    bounds = []
    for sweeps in range(1, 6):
        found = fit(X, Y, max_iter=sweeps, **options)
        bounds.append(found.objective - found.gap)
    assert np.diff(bounds).min() >= -1e-9 * abs(bounds[-1])
    joint = fit(X, Y, max_iter=500, **options)
    other = fit(X, Y, method="alternating", max_iter=5000, **options)
    assert joint.status == other.status == "converged"
    assert joint.objective == pytest.approx(other.objective, rel=1e-6)
    assert bounds[-1] <= joint.objective * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions(loss):
    X, Y, parents = random_problem(5)
    times = np.random.default_rng(2).integers(0, 4, len(X))
    weighted = fit(X, Y, parents, loss=loss, sample_weight=times.astype(float), tol=1e-8)
    repeated = fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0), parents, loss=loss, tol=1e-8)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)
    np.testing.assert_allclose(differences(weighted), differences(repeated), atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_classes(loss):
    """A class of weight p for its own rows and q for others is a problem of its own with these costs."""
    X, Y, _ = random_problem(6)
    both = fit(X, Y, loss=loss, positive_weights=[3.0] * Y.shape[1], negative_weights=[0.5] * Y.shape[1], tol=1e-8)
    for c in range(Y.shape[1]):
        alone = fit(X, Y[:, [c]], loss=loss, sample_weight=np.where(Y[:, c], 3.0, 0.5), tol=1e-8)
        np.testing.assert_allclose(differences(both)[c], differences(alone)[0], atol=1e-3)


def test_permuted_classes_give_permuted_answers():
    X, Y, _ = random_problem(7, n_nodes=30, reach=40)
    order = np.random.default_rng(0).permutation(Y.shape[1])
    star = np.array([-1] + [0] * Y.shape[1])
    one, other = (fit(X, labels, star, tol=1e-9) for labels in (Y, Y[:, order]))
    np.testing.assert_allclose(differences(one)[1:][order], differences(other)[1:], atol=1e-3)


@pytest.mark.parametrize("method", ["joint", "alternating"])
def test_threads_change_nothing(method):
    X, Y, parents = random_problem(8, n=60, n_nodes=150, reach=30)
    one, two = (fit(X, Y, parents, method=method, tol=1e-3, max_iter=5, n_threads=threads) for threads in (1, 2))
    for a, b in ((one.weights, two.weights), (one.duals, two.duals)):
        np.testing.assert_array_equal(a.toarray(), b.toarray())
    assert one.gap == two.gap


@pytest.mark.parametrize("loss", LOSSES)
def test_inputs_of_all_forms_give_the_same(loss):
    X, Y, parents = random_problem(9)
    X = X.astype(np.float32).astype(np.float64)
    expected = fit(X, Y, parents, loss=loss, tol=1e-7)
    read_only = X.copy()
    read_only.flags.writeable = False
    wide = sp.csr_array(X)
    wide = sp.csr_array((wide.data, wide.indices.astype(np.int64), wide.indptr.astype(np.int64)), shape=wide.shape)
    for other in (X.astype(np.float32), read_only, sp.csr_array(X), sp.csr_array(X.astype(np.float32)), wide):
        found = fit(other, Y, parents, loss=loss, tol=1e-7)
        assert found.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_along_a_path(loss):
    X, Y, parents = random_problem(10, n=200, d=10)
    first = fit(X, Y, parents, loss=loss, C=0.1, tol=1e-4)
    again = fit(X, Y, parents, loss=loss, C=0.1, tol=1e-4, start=first.duals)
    assert again.passes < 0.5 * first.passes
    cold, warm = (fit(X, Y, parents, loss=loss, C=0.2, tol=1e-6, start=start) for start in (None, first.duals))
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
    smaller = fit(X, Y, parents, loss=loss, C=0.05, tol=1e-6, start=first.duals)  # beyond its bounds: cut off
    assert smaller.duals.max() <= 0.05 or loss == "squared_hinge"
    assert smaller.status == "converged"


def test_duals_are_feasible_and_give_the_weights():
    X, Y, parents = random_problem(11)
    found = fit(X, Y, parents, C=0.7)
    alpha, Z = found.duals.toarray(), np.column_stack([X, np.ones(len(X))])
    assert alpha.min() >= 0
    assert alpha.max() <= 0.7
    sums = path_matrix(parents, Y.shape[1]).T @ ((alpha * np.where(Y, 1, -1).T) @ Z)
    np.testing.assert_allclose(differences(found), sums, atol=1e-12)


@pytest.mark.parametrize("tree", [True, False])
def test_scores_and_the_best(tree):
    X, Y, parents = random_problem(12, n=300, n_nodes=60, reach=10)
    parents = parents if tree else None
    found = fit(X, Y, parents, max_iter=2, tol=0.1)
    W = path_matrix(parents, Y.shape[1]) @ np.column_stack([found.weights.toarray(), found.intercepts])
    expected = np.column_stack([X, np.ones(len(X))]) @ W.T
    predictor = found.predictor()
    np.testing.assert_allclose(predictor.scores(X, n_threads=2), expected, atol=1e-12)
    classes, scores = predictor.top(sp.csr_array(X), 3, n_threads=2)
    np.testing.assert_array_equal(classes, np.argsort(-expected, axis=1, kind="stable")[:, :3])
    np.testing.assert_allclose(scores, np.take_along_axis(expected, classes, axis=1), atol=1e-12)


def test_interrupted_by_its_callback():
    X, Y, parents = random_problem(13)

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(X, Y, parents, progress=stop)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"C": 0.0}, "C is 0, expected"),
        ({"bias": -1.0}, "bias is -1"),
        ({"tol": 0.0}, "tol is 0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"variances": [1.0]}, "variances has 1 elements, expected 8"),
        ({"variances": [0.0] * 8}, r"variances\[0\] is 0"),
        ({"sample_weight": np.full(30, -1.0)}, r"sample_weight\[0\] is -1"),
        ({"sample_weight": np.ones(3)}, "sample_weight has 3 elements, expected 30"),
        ({"positive_weights": [1.0]}, "positive_weights has 1 elements"),
        ({"loss": "logistic"}, "loss is 'logistic', expected one of"),
        ({"method": "fast"}, "method is 'fast', expected one of"),
    ],
)
def test_bad_arguments(given, message):
    X, Y, parents = random_problem(14)
    with pytest.raises(ValueError, match=message):
        fit(X, Y, parents, **given)


def test_bad_labels_and_starts():
    X, _, _ = random_problem(15, n=3)
    with pytest.raises(ValueError, match="row 1 has the label 2, expected 0 to 1"):
        fit_recursive(X, [0, 1, 2, 2], [0, 2], 2)
    with pytest.raises(ValueError, match="label_offsets has 2 elements, expected 4"):
        fit_recursive(X, [0, 1], [0], 2)
    with pytest.raises(ValueError, match="label_offsets ends at 5 but there are 1"):
        fit_recursive(X, [0, 1, 1, 5], [0], 2)
    with pytest.raises(ValueError, match="the taxonomy has 2 classes, expected 3"):
        fit_recursive(X, [0, 1, 1, 1], [0], 3, parents=[-1, 0, 0])
    with pytest.raises(ValueError, match="start has dual variables of 1 classes, expected 2"):
        fit_recursive(X, [0, 1, 1, 1], [0], 2, start=sp.csr_array(np.ones((1, 3))))
    with pytest.raises(ValueError, match="expected ascending numbers below 3"):
        fit_recursive(X, [0, 1, 1, 1], [0], 2, start=sp.csr_array(np.ones((2, 4))))


def random_graph(seed, n_nodes=12, n_classes=8):
    """A Laplacian with a small ridge, of a graph with cycles; the other nodes have no data."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0.5, 2, (n_nodes, n_nodes)) * (rng.random((n_nodes, n_nodes)) < 0.3), 1)
    weights += weights.T
    Q = np.diag(weights.sum(axis=0) + 0.3) - weights
    return NodePrecision(sp.csr_array(Q), rng.permutation(n_nodes)[:n_classes])


def tree_precision(parents, variances, n_classes):
    """The same prior as the tree's: sum_n |w_n - w_parent(n)|^2 / v_n."""
    differences = np.eye(len(parents))
    for node, parent in enumerate(parents):
        if parent >= 0:
            differences[node, parent] = -1
    Q = differences.T @ np.diag(1 / np.asarray(variances)) @ differences
    return NodePrecision(sp.csr_array(Q), np.arange(len(parents) - n_classes, len(parents)))


def graph_objective(W, X, Y, graph, loss, C):
    """P of the weights of the classes (with intercepts): latent nodes are at their best."""
    G = np.linalg.inv(graph.matrix.toarray())[np.ix_(graph.nodes, graph.nodes)]
    u = np.column_stack([X, np.ones(len(X))]) @ W.T
    slack = np.maximum(0, 1 - np.where(Y, u, -u))
    return 0.5 * np.sum(W * np.linalg.solve(G, W)) + C * (slack if loss == "hinge" else slack**2).sum()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_graph_against_a_dense_program(loss, seed):
    X, Y, _ = random_problem(seed, n=20, n_nodes=30)
    Y = np.column_stack([Y, Y, Y])[:, :8]
    graph = random_graph(seed)
    G = np.linalg.inv(graph.matrix.toarray())[np.ix_(graph.nodes, graph.nodes)]
    expected = quadratic_program(X, Y, None, loss, 0.2, None, G)
    for method in ("joint", "alternating"):
        found = fit(X, Y, graph=graph, loss=loss, C=0.2, method=method, tol=3e-7, max_iter=5000)
        assert found.status == "converged"
        assert found.objective == pytest.approx(expected, rel=1e-6)
        assert found.objective == pytest.approx(graph_objective(differences(found), X, Y, graph, loss, 0.2), rel=1e-9)
        scores = np.column_stack([X, np.ones(len(X))]) @ differences(found).T
        np.testing.assert_allclose(found.predictor().scores(X), scores, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_nodes=st.integers(2, 30),
    reach=st.integers(1, 30),
    loss=st.sampled_from(LOSSES),
    method=st.sampled_from(["joint", "alternating"]),
)
def test_a_tree_is_a_graph(seed, n_nodes, reach, loss, method):
    X, Y, parents = random_problem(seed, 15, 6, n_nodes, reach)
    variances = np.random.default_rng(seed).uniform(0.5, 2.0, len(parents))
    tree = fit(X, Y, parents, variances=variances, loss=loss, C=0.2, tol=1e-6)
    graph = tree_precision(parents, variances, Y.shape[1])
    found = fit(X, Y, graph=graph, loss=loss, C=0.2, method=method, tol=1e-6, max_iter=5000)
    assert found.status == tree.status == "converged"
    assert found.objective == pytest.approx(tree.objective, rel=1.1e-6)
    full = path_matrix(parents, Y.shape[1]) @ differences(tree)
    np.testing.assert_allclose(differences(found), full, atol=5e-2 * (1 + abs(full).max()))


@pytest.mark.parametrize("method", ["joint", "alternating"])
def test_graph_threads_and_warm_start(method):
    X, Y, _ = random_problem(20, n=40, n_nodes=30, reach=40)
    graph = random_graph(3, n_nodes=Y.shape[1] + 5, n_classes=Y.shape[1])
    one, two = (fit(X, Y, graph=graph, method=method, tol=1e-4, max_iter=3000, n_threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one.weights.toarray(), two.weights.toarray())
    np.testing.assert_array_equal(one.duals.toarray(), two.duals.toarray())
    again = fit(X, Y, graph=graph, method=method, tol=1e-4, max_iter=3000, start=one.duals)
    assert again.iterations <= max(2, 0.5 * one.iterations)
    assert again.objective == pytest.approx(one.objective, rel=2e-4)


def test_bad_graphs():
    X, Y, parents = random_problem(14)
    n_classes = Y.shape[1]
    good = np.eye(n_classes)
    with pytest.raises(ValueError, match="parents and graph are both given"):
        fit(X, Y, parents, graph=NodePrecision(sp.csr_array(good), np.arange(n_classes)))
    for matrix, nodes, message in (
        (np.ones((2, 3)), np.arange(n_classes), r"shape \(2, 3\), expected a square one"),
        (good, np.arange(n_classes) + 0.5, "expected integers"),
        (good, np.zeros(n_classes, int), "two classes are node 0"),
        (good, np.arange(n_classes) + 1, f"a class is node {n_classes}"),
        (good, np.arange(n_classes - 1), f"nodes of {n_classes - 1} classes, expected {n_classes}"),
        (good + np.triu(np.ones_like(good), 1), np.arange(n_classes), "expected a symmetric matrix"),
        (good - 2 * np.ones_like(good), np.arange(n_classes), "expected a number above zero"),
        (good + 3 * np.ones_like(good) - 3.5 * good, np.arange(n_classes), "not positive definite"),
        (np.where(good > 0, np.nan, 0), np.arange(n_classes), "expected a finite number"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(X, Y, graph=NodePrecision(sp.csr_array(matrix), nodes))
    with pytest.raises(ValueError, match="variances are given with a graph"):
        fit(X, Y, graph=NodePrecision(sp.csr_array(good), np.arange(n_classes)), variances=[1.0] * n_classes)


def test_small_weights_are_left_out():
    X, Y, parents = random_problem(21)
    whole, part = (fit(X, Y, parents, tol=1e-4, threshold=t) for t in (0.0, 0.3))
    expected = np.where(np.abs(whole.weights.toarray()) < 0.3, 0.0, whole.weights.toarray())
    np.testing.assert_array_equal(part.weights.toarray(), expected)
    assert part.weights.nnz == np.count_nonzero(expected) < whole.weights.nnz
    assert whole.dropped == 0
    assert part.dropped == pytest.approx(1 - (expected**2).sum() / (whole.weights.data**2).sum(), rel=1e-9)
    np.testing.assert_array_equal(part.intercepts, whole.intercepts)
    with pytest.raises(ValueError, match="threshold"):
        fit(X, Y, parents, threshold=-1.0)
