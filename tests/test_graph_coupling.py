"""Classes on a graph: the coupling against dense algebra, the fit against SciPy, and trees as a special case."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from pages import run_page
from scipy.optimize import minimize
from sklearn.base import clone

from taxolearn import (
    ClassGraph,
    CrossValidation,
    Graph,
    KernelLogisticClassifier,
    LearnedCoupling,
    Solver,
    Taxonomy,
    Tree,
    _core,
    load,
    save,
)
from taxolearn.couplings.coupling import make_coupling
from taxolearn.kernels import RBF, Linear
from taxolearn.model_selection import CrossValidationObjective
from taxolearn.tuning.checkpoint import fingerprint

EDGES = [("top", "a"), ("top", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("b", "e")]
GRAPH = ClassGraph.from_edges(EDGES)
TREE = Taxonomy.from_edges(
    [("r", "p"), ("r", "q"), ("p", "a"), ("p", "b"), ("q", "c"), ("q", "s"), ("s", "d"), ("s", "e")]
)


def rows(n=90, labels="abcde", seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(list(labels))[rng.integers(0, len(labels), n)]
    means = rng.normal(size=(len(labels), 4))
    return means[[labels.index(label) for label in y]] + rng.normal(size=(n, 4)), y


def dense_precision(graph, ridges, weights=None):
    Q = np.diag(np.broadcast_to(np.asarray(ridges, dtype=float), graph.n_nodes))
    weights = np.ones(graph.n_edges) if weights is None else weights
    for (i, j), weight in zip(graph.edges.tolist(), weights, strict=True):
        difference = np.zeros(graph.n_nodes)
        difference[[i, j]] = 1, -1
        Q += weight * np.outer(difference, difference)
    return Q


def covariance(coupling):
    return coupling.apply(np.eye(coupling.classes))


def model(coupling, **arguments):
    return KernelLogisticClassifier(**{"coupling": coupling, "tuning": None, "tol": 1e-11} | arguments)


# -- The coupling itself ----------------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    """A graph of any shape with weights, anchors and classes."""
    n_nodes = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    edges = rng.integers(0, n_nodes, (draw(st.integers(0, 60)), 2))
    graph = ClassGraph(list(range(n_nodes)), edges, directed=False)
    weights = rng.uniform(0.2, 3.0, graph.n_edges)
    anchors = None if draw(st.booleans()) else np.unique(graph.components(), return_index=True)[1].tolist()
    n_classes = draw(st.integers(1, n_nodes))
    return Graph(graph, ridge=0.3, anchors=anchors, weights=weights), rng.permutation(n_nodes)[:n_classes], rng


@settings(deadline=None, max_examples=80)
@given(problems())
def test_covariance_factors_and_gradient_of_any_graph(problem):
    value, classes, rng = problem
    precision = value.precision(classes)
    core = precision.to_core(1.7)

    def dense(log_ridge=0.0):
        Q = dense_precision(value.graph, 0.3 * np.exp(log_ridge) * precision.anchored, value.weights)
        return 1.7 * np.linalg.inv(Q)[np.ix_(classes, classes)]

    G = dense()
    E, H = rng.normal(size=(2, 37, len(classes)))
    assert_allclose(core.apply(E), E @ G, rtol=1e-10, atol=1e-11)
    assert_allclose(core.apply(E, n_threads=2), core.apply(E), rtol=0)
    assert_allclose(core.apply(E.astype(np.float32)), E @ G, rtol=1e-3, atol=1e-3)
    assert_allclose(core.diag(), np.diag(G), rtol=1e-11)
    R = core.from_factors(np.eye(core.factors)).T
    assert_allclose(R @ R.T, G, rtol=1e-10, atol=1e-11)
    assert_allclose(core.to_factors(E), E @ R, rtol=1e-10, atol=1e-11)
    by_ridge = (dense(1e-5) - dense(-1e-5)) / 2e-5
    expected = [np.sum(E @ G * H), np.sum(E @ by_ridge * H)]
    assert_allclose(core.bilinear_grad(E, H), expected, rtol=1e-6, atol=1e-5)


def test_few_classes_of_a_large_graph_have_a_stored_covariance():
    chain = ClassGraph(list(range(500)), [(k, k + 1) for k in range(499)])
    few, all_ = (Graph(chain).precision(np.arange(n)).to_core() for n in (20, 500))
    assert few.is_stored
    assert few.factors == 20
    assert not all_.is_stored
    assert all_.factors == 500
    assert all_.entries == 999  # a tree has no fill-in
    assert_allclose(covariance(few), covariance(all_)[:20, :20], rtol=1e-11)


@pytest.mark.parametrize("root_variance", [1.0, 0.2, 40.0])
def test_the_edges_of_a_tree_give_the_tree(root_variance):
    classes = TREE.classes
    graph = Graph(ClassGraph.from_taxonomy(TREE), ridge=1 / root_variance, anchors=["r"])
    on_graph = make_coupling(None, graph, classes).to_core()
    with_root = make_coupling(TREE, Tree("shared", root_variance=root_variance)).to_core()
    without = make_coupling(TREE, Tree("shared")).to_core()
    assert_allclose(covariance(with_root), covariance(without) + root_variance, rtol=1e-12)
    assert_allclose(covariance(on_graph), covariance(with_root), rtol=1e-12)


def test_variances_of_nodes_are_weights_of_edges():
    variances = np.array([2.0, 0.3, 1.5])
    tree = make_coupling(TREE, Tree("level", variances=variances, root_variance=4.0)).to_core()
    graph = ClassGraph.from_taxonomy(TREE)
    depths = TREE.depths[[TREE.index(child) for _, child in graph.to_edges()]]
    value = Graph(graph, ridge=0.25, anchors="r", weights=1 / variances[depths - 1])
    assert_allclose(covariance(make_coupling(None, value, TREE.classes).to_core()), covariance(tree), rtol=1e-12)


def test_dummy_nodes_are_half_weights():
    graph = ClassGraph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "x")], directed=False)
    classes = np.array(["a", "b", "c", "d"])
    ours = Graph(graph, ridge=0.2, dummy_nodes=True).precision(classes).to_core()
    apart = graph.separated(classes)
    ridges = np.where(np.arange(apart.n_nodes) < graph.n_nodes, 0.2, 0.0)
    G = np.linalg.inv(dense_precision(apart, ridges))[:4, :4]
    assert_allclose(covariance(ours), G, rtol=1e-12)
    assert np.abs(covariance(Graph(graph, ridge=0.2).precision(classes).to_core()) - G).max() > 0.01


# -- Fits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["softmax", "independent"])
def test_fit_is_the_minimum_of_the_dense_objective(loss):
    X, y = rows()
    Q = dense_precision(GRAPH, 0.4)
    nodes = GRAPH.index(list("abcde"))
    Y = (y[:, None] == np.array(list("abcde"))).astype(float)
    d, N, C = X.shape[1], GRAPH.n_nodes, 5

    def objective(point):  # functions of all nodes, also those that are no classes
        W, b = point[: d * N].reshape(d, N), point[d * N :]
        u = X @ W[:, nodes] + b
        if loss == "softmax":
            shift = u - u.max(axis=1, keepdims=True)
            p = np.exp(shift) / np.exp(shift).sum(axis=1, keepdims=True)
            value = -np.sum(Y * np.log(p))
        else:
            p = 1 / (1 + np.exp(-u))
            value = -np.sum(Y * np.log(p) + (1 - Y) * np.log1p(-p))
        residual = p - Y
        by_W = W @ Q / 2.0
        by_W[:, nodes] += X.T @ residual
        gradient = np.concatenate([by_W.ravel(), b / 1.5 + residual.sum(axis=0)])
        return value + np.sum(W * (W @ Q)) / 4.0 + b @ b / 3.0, gradient

    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(objective, np.zeros(d * N + C), jac=True, method="L-BFGS-B", options=options)
    for space in ("weights", "coefficients"):
        solver = Solver(space=space)
        fit = model(Graph(GRAPH, ridge=0.4), kernel=Linear(2.0), loss=loss, intercept_variance=1.5, solver=solver)
        fit.fit(X, y)
        assert fit.result_.space == space
        assert_allclose(fit.result_.objective, found.fun, rtol=1e-8)
        assert_allclose(fit.coef_, found.x[: d * N].reshape(d, N)[:, nodes].T, atol=2e-4)
        assert_allclose(fit.intercept_, found.x[d * N :], atol=2e-4)


@pytest.mark.parametrize("loss", ["softmax", "independent"])
@pytest.mark.parametrize("kernel", [Linear(1.3), RBF(1.5, 2.0)])
def test_a_tree_as_a_graph_gives_the_same_probabilities(loss, kernel):
    X, y = rows(60)
    graph = Graph(ClassGraph.from_taxonomy(TREE), ridge=0.5, anchors=TREE.names[:1])
    arguments = {"kernel": kernel, "loss": loss, "tol": 1e-12}
    on_graph = model(graph, **arguments).fit(X, y)
    with_root = model(Tree("shared", root_variance=2.0), taxonomy=TREE, **arguments).fit(X, y)
    without = model(Tree("shared"), taxonomy=TREE, **arguments).fit(X, y)
    assert_allclose(on_graph.predict_proba(X), with_root.predict_proba(X), rtol=0, atol=1e-6)
    difference = np.abs(on_graph.predict_proba(X) - without.predict_proba(X)).max()
    assert difference < 1e-6 if loss == "softmax" else difference > 1e-4


def test_two_thread_counts():
    X, y = rows(200)
    one, two = (model(Graph(GRAPH), kernel=RBF(2.0), n_threads=n).fit(X, y).predict_proba(X) for n in (1, 2))
    assert_allclose(one, two, atol=1e-8)


def test_classes_may_be_leaves_of_a_taxonomy_too():
    X, y = rows()
    leaves = Taxonomy.from_paths([("x", "a"), ("x", "b"), ("z", "c"), ("z", "d"), ("z", "e")])
    both, alone = (model(Graph(GRAPH), taxonomy=taxonomy).fit(X, y) for taxonomy in (leaves, None))
    assert_allclose(both.predict_proba(X), alone.predict_proba(X), atol=1e-7)
    assert_allclose(both.predict_node_proba(X)[:, 0], 1.0)


# -- Learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["softmax", "independent"])
@pytest.mark.parametrize(
    ("kernel", "solver"),
    [(Linear(), Solver(space="weights")), (Linear(), Solver(space="coefficients")), (RBF(1.5), Solver())],
    ids=["weights", "coefficients", "rbf"],
)
def test_gradient_of_the_criterion(loss, kernel, solver):
    X, y = rows(50)
    solver = clone(solver).set_params(precision="double")
    objective = CrossValidationObjective(model(Graph(GRAPH), kernel=kernel, loss=loss, solver=solver), X, y)
    assert objective.names[-2:] == ("coupling.ridge", "intercept_variance")
    assert_allclose(np.exp(objective.theta[-2]), 0.1)
    theta = objective.theta + np.linspace(-0.3, 0.4, len(objective.theta))
    gradient = objective.value_and_gradient(theta, tol=1e-12)[1]
    for k, name in enumerate(objective.names):
        step = 1e-3 * np.eye(len(theta))[k]
        above, below = (objective.value(theta + sign * step, tol=1e-12) for sign in (1, -1))
        assert_allclose(gradient[k], (above - below) / 2e-3, rtol=1e-4, atol=1e-4, err_msg=name)


def test_gradient_by_the_variance_of_the_root():
    X, y = rows(50)
    coupling = Tree("level", root_variance=0.7)
    arguments = {"kernel": Linear(), "loss": "independent", "taxonomy": TREE, "solver": Solver(precision="double")}
    objective = CrossValidationObjective(model(coupling, **arguments), X, y)
    assert objective.names == (
        *(f"variances[{name}]" for name in ("level 1", "level 2", "level 3", "root")),
        "intercept_variance",
    )
    theta = objective.theta
    gradient = objective.value_and_gradient(theta, tol=1e-12)[1]
    step = 1e-3 * np.eye(len(theta))[3]
    above, below = (objective.value(theta + sign * step, tol=1e-12) for sign in (1, -1))
    assert abs(gradient[3]) > 1e-4
    assert_allclose(gradient[3], (above - below) / 2e-3, rtol=1e-3, atol=1e-5)


def test_learned_ridge_and_its_way_back_to_arguments(tmp_path):
    X, y = rows(120)
    tuning = CrossValidation(folds=3)
    learned = KernelLogisticClassifier(coupling=Graph(GRAPH), loss="independent", tuning=tuning).fit(X, y)
    assert learned.hyperparameters_.ridge != 0.1
    assert "ridge=" in repr(learned.hyperparameters_)
    assert learned.cv_result_.names == ("kernel.variance", "coupling.ridge", "intercept_variance")
    again = learned.tuned(X, y)
    assert again.coupling.ridge == learned.hyperparameters_.ridge
    assert again.coupling.graph is GRAPH
    assert_allclose(again.fit(X, y).predict_proba(X), learned.predict_proba(X), atol=1e-5)
    refitted = learned.refit(X[:100], y[:100])
    assert refitted.hyperparameters_.ridge == learned.hyperparameters_.ridge
    save(learned, tmp_path / "m.taxo")
    loaded = load(tmp_path / "m.taxo")
    assert loaded.hyperparameters_ == learned.hyperparameters_
    assert loaded.coupling.graph == GRAPH
    assert loaded.coupling.get_params()["ridge"] == 0.1
    assert_allclose(loaded.predict_proba(X), learned.predict_proba(X), atol=1e-5)


def test_learned_variance_of_the_root_and_its_way_back_to_arguments():
    X, y = rows(120)
    tuning = CrossValidation(folds=3)
    coupling = Tree(root_variance=1.0)
    learned = KernelLogisticClassifier(taxonomy=TREE, coupling=coupling, loss="independent", tuning=tuning).fit(X, y)
    assert list(learned.hyperparameters_.variances) == ["level 1", "level 2", "level 3", "root"]
    again = learned.tuned(X, y)
    assert again.coupling.root_variance == learned.hyperparameters_.variances["root"] != 1.0
    assert_allclose(again.fit(X, y).predict_proba(X), learned.predict_proba(X), atol=1e-5)


def test_kernels_of_their_own_with_a_root(tmp_path):
    X, y = rows(60)
    names = TREE.names.tolist()
    kernels = {name: RBF(1.0 + k) for k, name in enumerate(names)}
    own = model(Tree("shared", root_variance=2.0), kernel=kernels, loss="independent", taxonomy=TREE).fit(X, y)
    save(own, tmp_path / "m.taxo")
    assert_allclose(load(tmp_path / "m.taxo").predict_proba(X), own.predict_proba(X), atol=1e-5)
    alike = model(Tree("shared", root_variance=2.0), kernel=RBF(1.0), loss="independent", taxonomy=TREE).fit(X, y)
    same = {name: RBF(1.0) for name in names}
    again = model(Tree("shared", root_variance=2.0), kernel=same, loss="independent", taxonomy=TREE).fit(X, y)
    assert_allclose(again.predict_proba(X), alike.predict_proba(X), atol=1e-7)


def test_warm_starts():
    X, y = rows(120)
    warm = model(Graph(GRAPH), warm_start=True)
    first = warm.fit(X, y).result_.iterations
    assert warm.fit(X, y).result_.iterations < first
    with_root = model(Tree(root_variance=1.0), taxonomy=TREE, loss="independent", warm_start=True)
    first = with_root.fit(X, y).result_.iterations
    assert with_root.fit(X, y).result_.iterations < first


def test_checkpoints_tell_graphs_apart():
    other = ClassGraph.from_edges([*EDGES[:-1], ("a", "e")])
    assert repr(other) == repr(GRAPH)
    assert fingerprint(Graph(GRAPH)) != fingerprint(Graph(other))
    assert fingerprint(Graph(GRAPH)) == fingerprint(Graph(ClassGraph.from_edges(EDGES)))


# -- Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coupling", "error", "message"),
    [
        (Graph("graph"), TypeError, r"graph must be a taxolearn\.ClassGraph, got str"),
        (Graph(ClassGraph.from_edges([("a", "bb")])), ValueError, "y: not in the graph: 'b', 'c', 'd', 'e'"),
        (Graph(GRAPH.subgraph(["top", "a", "b", "c", "d"])), ValueError, "y: not in the graph: 'e'"),
        (Graph(ClassGraph.from_edges([(1, 2)])), ValueError, "names are integers such as 2, these are strings"),
        (Graph(GRAPH, ridge=0), ValueError, "ridge must be finite and above 0, got 0"),
        (Graph(GRAPH, ridge=np.nan), ValueError, "ridge must be finite"),
        (Graph(GRAPH, ridge="1"), TypeError, "ridge must be a number"),
        (Graph(GRAPH, weights=[1.0]), ValueError, r"weights has shape \(1,\), expected \(6,\)"),
        (Graph(GRAPH, weights=[1, 1, 1, 1, 1, -1]), ValueError, r"weights\[5\] is -1"),
        (Graph(GRAPH, weights=[1, 1, np.inf, 1, 1, 1]), ValueError, r"weights\[2\] is inf"),
        (Graph(GRAPH, weights="one"), ValueError, "weights must be an array of numbers"),
        (Graph(GRAPH, anchors=["tpo"]), ValueError, "anchors: not in the graph: 'tpo'; is 'top' meant"),
        (Graph(GRAPH, dummy_nodes="yes"), TypeError, "dummy_nodes is 'yes'"),
        (LearnedCoupling(2, base=Graph(GRAPH)), ValueError, "base is .* expected one of .*Tree, Independent or None"),
    ],
)
@pytest.mark.parametrize("tuning", [None, "cv"])
def test_bad_arguments(coupling, error, message, tuning):
    X, y = rows(40)
    with pytest.raises(error, match=message):
        KernelLogisticClassifier(coupling=coupling, tuning=tuning).fit(X, y)


def test_every_component_needs_an_anchor():
    X, y = rows(40)
    graph = ClassGraph.from_edges(EDGES, names=["alone"])
    with pytest.raises(ValueError, match="anchors: none is connected with 'alone'; name one node in each of the 2"):
        model(Graph(graph, anchors=["top"])).fit(X, y)


@pytest.mark.parametrize("root_variance", [0, -1.0, np.inf])
def test_bad_variances_of_the_root(root_variance):
    X, y = rows(40)
    with pytest.raises(ValueError, match="root_variance must be finite and above 0"):
        model(Tree(root_variance=root_variance), taxonomy=TREE).fit(X, y)


def test_what_does_not_go_together_is_told():
    X, y = rows(40)
    with pytest.raises(ValueError, match="under a Graph these share functions"):
        model(Graph(GRAPH), kernel=[RBF()] * 5).fit(X, y)
    with pytest.raises(ValueError, match="flat models"):
        model(Graph(GRAPH), solver="exact").fit(X, y)
    grown = Taxonomy.from_edges([*TREE.to_edges(), ("p", "new")])
    with pytest.raises(ValueError, match="a Graph says nothing of the nodes of a tree"):
        model(Graph(GRAPH), taxonomy=Taxonomy.from_labels(list("abcde"))).fit(X, y).with_taxonomy(grown)
    with pytest.raises(ValueError, match="root_variance=None"):
        model(Tree(root_variance=1.0), taxonomy=TREE).fit(X, y).with_taxonomy(grown)


def test_clones_and_parameters():
    estimator = KernelLogisticClassifier(coupling=Graph(GRAPH, ridge=0.3))
    copy = clone(estimator).set_params(coupling__ridge=0.7)
    assert copy.coupling.ridge == 0.7
    assert copy.coupling.graph is GRAPH
    assert estimator.coupling.ridge == 0.3
    assert "ridge=0.3" in repr(estimator)


def test_core_refuses_what_is_no_graph():
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="no node that is connected with node 0 has a ridge"):
        _core.GraphCoupling(one, one + 1, np.ones(1), np.zeros(2), one)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _core.GraphCoupling(one[:0], one[:0], np.ones(0), np.ones(1), one).apply(np.ones((1, 1))) == 1.0


def test_page_on_graphs():
    assert run_page("graphs.md") == 4
