"""Recursive regularization on graphs: against plain minimization, consistent along the graph, in files."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse.csgraph import laplacian

from taxolearn import ClassGraph, CrossValidation, Graph, RecursiveRegularizationClassifier, load, save
from taxolearn.set_decisions import LabelGraph
from taxolearn.targets import nodes_above, read_label_sets

pandas = pytest.importorskip("pandas")

EDGES = [("top", "a"), ("top", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("other", "d")]
DAG = ClassGraph.from_edges(EDGES)
RING = ClassGraph.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("d", "z")], directed=False)
NODES = ["a", "b", "c", "d", "other", "top"]


def rows(graph, n=150, d=4, seed=0):
    """Inputs and label sets of which neighbours are alike."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    names = sorted(graph.names.tolist())
    has = X @ rng.normal(size=(d, len(names))) + rng.normal(size=(n, len(names))) > 1.5
    return X, [[names[k] for k in np.flatnonzero(row)] for row in has]


def closed(graph, sets):
    return [set().union(*({label, *graph.ancestors(label)} for label in row)) for row in sets]


def precision_of(prior):
    """Q over the nodes of the directed graph, in sorted order."""
    value = prior if isinstance(prior, Graph) else Graph(prior)
    weights = np.zeros((6, 6))
    place = np.argsort(np.argsort(DAG.names.astype(str)))
    given = np.ones(len(DAG.edges)) if value.weights is None else value.weights
    for (first, second), weight in zip(DAG.edges, given, strict=True):
        weights[place[first], place[second]] = weights[place[second], place[first]] = weight
    return laplacian(weights) + value.ridge * np.eye(6)


@pytest.mark.parametrize("prior", [DAG, Graph(DAG, ridge=0.3), Graph(DAG, weights=np.arange(1.0, 7.0))])
def test_the_minimum_on_a_directed_graph(prior):
    X, y = rows(DAG, n=60)
    model = RecursiveRegularizationClassifier(prior, C=0.8, intercept_variance=0.0, tuning=None, tol=1e-9).fit(X, y)
    Q = precision_of(prior) / 0.8
    sign = np.where([[node in row for node in NODES] for row in closed(DAG, y)], 1.0, -1.0)

    def objective(flat):
        W = flat.reshape(6, -1)
        margin = sign * (X @ W.T)
        slope = -sign / (1 + np.exp(margin))
        return np.logaddexp(0, -margin).sum() + 0.5 * np.vdot(W, Q @ W), (slope.T @ X + Q @ W).ravel()

    found = minimize(objective, np.zeros(24), jac=True, method="L-BFGS-B", tol=1e-14)
    assert model.classes_.tolist() == NODES
    assert model.result_.objective == pytest.approx(found.fun, rel=1e-6)
    np.testing.assert_allclose(model.coef_, found.x.reshape(6, -1), atol=2e-4)


@pytest.mark.parametrize("prior", [DAG, Graph(DAG, ridge=0.3, weights=np.arange(1.0, 7.0))])
def test_the_minimum_of_squared_hinge_losses(prior):
    X, y = rows(DAG, n=60)
    model = RecursiveRegularizationClassifier(prior, loss="squared_hinge", C=0.8, tuning=None, tol=1e-9).fit(X, y)
    Q = precision_of(prior)
    Z = np.column_stack([X, np.ones(len(X))])
    sign = np.where([[node in row for node in NODES] for row in closed(DAG, y)], 1.0, -1.0)

    def objective(flat):
        W = flat.reshape(6, -1)
        slack = np.maximum(0, 1 - sign * (Z @ W.T))
        return 0.8 * (slack**2).sum() + 0.5 * np.vdot(W, Q @ W), (-1.6 * (sign * slack).T @ Z + Q @ W).ravel()

    found = minimize(objective, np.zeros(30), jac=True, method="L-BFGS-B", tol=1e-14)
    W = found.x.reshape(6, -1)
    np.testing.assert_allclose(model.coef_, W[:, :-1], atol=1e-4)
    np.testing.assert_allclose(model.intercept_, W[:, -1], atol=1e-4)


@pytest.mark.parametrize("graph", [DAG, RING])
def test_hinge_losses_on_graphs_learn_and_are_kept(graph, tmp_path):
    X, y = rows(graph)
    model = RecursiveRegularizationClassifier(Graph(graph, ridge=0.2), loss="hinge").fit(X, y)
    assert model.result_.relative_gap <= 1e-3
    assert model.hyperparameters_.ridge == 0.2
    assert model.score(X, y) > 0.3
    proba = model.predict_proba(X)
    if graph is DAG:
        for parent, child in EDGES:
            assert (proba[:, NODES.index(child)] <= proba[:, NODES.index(parent)]).all()
    assert proba.min() > 0
    assert proba.max() < 1
    save(model, tmp_path / "model.taxo")
    np.testing.assert_allclose(load(tmp_path / "model.taxo").predict_proba(X), proba, atol=1e-6)  # single precision
    again = model.refit(X, y)
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=0.05)


@pytest.mark.parametrize("form", ["lists", "indicator", "frame"])
def test_labels_imply_those_above(form):
    X, y = rows(DAG)
    matrix = np.array([[node in row for node in NODES] for row in closed(DAG, y)]).astype(int)
    given = {"lists": y, "indicator": matrix, "frame": pandas.DataFrame(matrix, columns=NODES)}[form]
    model = RecursiveRegularizationClassifier(DAG, C=1.0, tuning=None).fit(X, given)
    assert model.graph_ == DAG
    assert model.taxonomy_ is None
    proba = model.predict_proba(X)
    for parent, child in EDGES:
        assert (proba[:, NODES.index(child)] <= proba[:, NODES.index(parent)]).all()
    answers = model.decide(X, thresholds=0.2)
    if form == "lists":
        full = closed(DAG, answers)
        assert full == [{NODES[k] for k in np.flatnonzero(row)} for row in proba > 0.2]
        assert len(model.explain(X[:3])) == 3
    else:
        np.testing.assert_array_equal(np.asarray(answers), proba > 0.2)
    for loss in ("hamming", "f1", "zero-one"):
        chosen = model.decide(X, loss)
        if form == "indicator":
            for parent, child in EDGES:
                assert (chosen[:, NODES.index(child)] <= chosen[:, NODES.index(parent)]).all()
    with pytest.raises(ValueError, match="needs a taxonomy"):
        model.decide(X, "hierarchical")
    assert 0 <= model.score(X, given) <= 1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12))
def test_raised_values_are_the_largest_below(seed, count):
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for j in range(count) for i in range(j) if rng.uniform() < 0.3]
    names = rng.permutation(count)
    graph = ClassGraph(names.tolist(), np.array(pairs).reshape(-1, 2).astype(int))
    values = rng.normal(size=(5, count))
    classes = np.sort(names)
    expected = values.copy()
    for column, name in enumerate(classes.tolist()):
        expected[:, column] = values[:, [column, *np.searchsorted(classes, graph.descendants(name))]].max(axis=1)
    np.testing.assert_array_equal(LabelGraph(graph, classes).raise_parents(values), expected)
    above = nodes_above(graph, classes).toarray()
    for column, name in enumerate(classes.tolist()):
        assert set(classes[above[column] > 0].tolist()) == {name, *graph.ancestors(name)}


def test_undirected_graphs_may_have_cycles_and_nodes_without_rows():
    X, y = rows(RING)
    y = [[label for label in row if label != "z"] for row in y]
    model = RecursiveRegularizationClassifier(Graph(RING, dummy_nodes=True), C=1.0, tuning=None).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    plain = RecursiveRegularizationClassifier(RING, C=1.0, tuning=None).fit(X, y)
    assert not np.allclose(plain.coef_, model.coef_)
    assert all(isinstance(row, tuple) for row in plain.predict(X))
    one = np.array([row[0] if row else "a" for row in y])
    single = RecursiveRegularizationClassifier(RING, C=1.0, tuning=None).fit(X, one)
    assert set(single.predict(X)) <= set("abcd")


@pytest.mark.parametrize("graph", [DAG, RING], ids=["directed", "undirected"])
def test_the_ridge_is_learned_and_kept(graph, tmp_path):
    X, y = rows(graph)
    tuning = CrossValidation(2, max_evaluations=20)
    model = RecursiveRegularizationClassifier(graph, tuning=tuning, tol=1e-5).fit(X, y)
    assert model.hyperparameters_.ridge != 0.1
    assert isinstance(model.C_, float)
    save(model, tmp_path / "model.taxo", dtype="float64")
    again = load(tmp_path / "model.taxo")
    assert again.graph_ == graph
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.predict(X) == model.predict(X)
    ridge, before = model.hyperparameters_.ridge, model.predict_proba(X)
    again.refit(X, y)
    assert again.hyperparameters_.ridge == pytest.approx(ridge)
    assert again.taxonomy == graph
    np.testing.assert_allclose(again.predict_proba(X), before, atol=1e-3)


def test_what_does_not_fit():
    X, y = rows(DAG)
    model = RecursiveRegularizationClassifier(DAG, C=1.0, tuning=None)
    with pytest.raises(ValueError, match=r"tip.*top"):
        model.fit(X, [["tip"], *y[1:]])
    with pytest.raises(ValueError, match="5 columns, expected 6, one for each node of the graph"):
        model.fit(X, np.ones((150, 5), dtype=int))
    with pytest.raises(TypeError, match="ClassGraph, Graph or None"):
        RecursiveRegularizationClassifier(Graph("top")).fit(X, y)
    with pytest.raises(ValueError, match="nope"):
        RecursiveRegularizationClassifier(RING, C=1.0, tuning=None).fit(X, np.where(X[:, 0] > 0, "a", "nope"))
    matrix = sp.csr_array((read_label_sets(y, DAG)[0].matrix() > 0).astype(int))
    assert model.fit(X, matrix).predict(X).shape == (150, 6)
