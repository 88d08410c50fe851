"""Classes that come to the tree after the fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from trees import paths, random_taxonomy

import taxolearn
from taxolearn import KernelLogisticClassifier, LearnedCoupling, Taxonomy, Tree, datasets
from taxolearn.estimators.extend import weights_of_leaves
from taxolearn.kernels import RBF, Linear, PerNode

LABELS = ["a/u/1", "a/u/2", "a/v", "b/x", "b/y", "c"]
TREE = Taxonomy.from_labels(LABELS)


def grown(*edges, tree=TREE):
    return Taxonomy.from_edges([*tree.to_edges(), *edges])


def fitted_model(kernel=None, **parameters):
    rng = np.random.default_rng(0)
    y = np.array(LABELS)[np.arange(90) % len(LABELS)]
    centres = rng.standard_normal((len(LABELS), 4))
    X = centres[np.arange(90) % len(LABELS)] + 0.5 * rng.standard_normal((90, 4))
    options = {
        "taxonomy": TREE,
        "tuning": None,
        "n_threads": 1,
        "coupling": Tree(variances=[1.0, 0.5, 0.3]),
    } | parameters
    kernel = Linear(2.0) if kernel is None else kernel
    return KernelLogisticClassifier(kernel, **options).fit(X, y), X, y


def predictors(model, X):
    """Without intercepts, by class."""
    return dict(zip(model.classes_.tolist(), (model.decision_function(X) - model.intercept_).T, strict=True))


def covariances(taxonomy, variances):
    """Of the sums at all nodes, the root left out of them."""
    phi = np.zeros((taxonomy.n_nodes, taxonomy.n_nodes))
    for k in range(1, taxonomy.n_nodes):
        phi[k] = phi[taxonomy.parents[k]]
        phi[k, k] = 1.0
    return (phi * variances) @ phi.T


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_the_mean_given_the_leaves(seed):
    """By a linear system with the covariances of all leaves."""
    taxonomy = random_taxonomy(seed, n_nodes=int(np.random.default_rng(seed).integers(2, 60)))
    variances = np.random.default_rng(seed).uniform(0.2, 3.0, taxonomy.n_nodes)
    covariance = covariances(taxonomy, variances)
    leaves = np.arange(taxonomy.n_inner, taxonomy.n_nodes)
    nodes = np.arange(taxonomy.n_inner)
    expected = np.linalg.solve(covariance[np.ix_(leaves, leaves)], covariance[np.ix_(leaves, nodes)]).T
    np.testing.assert_allclose(weights_of_leaves(taxonomy, variances, nodes).toarray(), expected, atol=1e-9)


def test_groups_that_are_switched_off():
    variances = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])[: TREE.n_nodes]
    weights = weights_of_leaves(TREE, variances, np.array([TREE.index("b")])).toarray()[0]
    assert weights.sum() == pytest.approx(1.0)  # its leaves have its very function
    np.testing.assert_allclose(weights[TREE.leaf_index(["b/x", "b/y"])], 0.5)


@pytest.mark.parametrize(
    "kernel",
    [Linear(2.0), RBF(2.0), lambda A, B: A @ B.T, PerNode(RBF(2.0))],
    ids=["linear", "rbf", "callable", "own kernels"],
)
def test_a_new_leaf_has_the_function_above_it(kernel):
    model, X, _ = fitted_model(kernel, **({"coupling": Tree(variances=None)} if isinstance(kernel, PerNode) else {}))
    larger = grown(("b", "b/z"), ("a/u", "a/u/w"), ("a/u/w", "a/u/w/9"), ("root", "d"))
    after = model.with_taxonomy(larger)
    assert after.classes_.tolist() == sorted([*LABELS, "b/z", "a/u/w/9", "d"])
    assert after.taxonomy_ == larger
    old, new = predictors(model, X), predictors(after, X)
    for label in LABELS:
        np.testing.assert_allclose(new[label], old[label], atol=1e-8)
    levels = np.array([1.0, 1.0, 1.0] if isinstance(kernel, PerNode) else [1.0, 0.5, 0.3])
    covariance = covariances(TREE, np.concatenate([[0.0], levels[TREE.depths[1:] - 1]]))
    leaves = np.arange(TREE.n_inner, TREE.n_nodes)
    of_leaves = np.array([old[name] for name in TREE.classes])
    sums = covariance[:, leaves] @ np.linalg.solve(covariance[np.ix_(leaves, leaves)], of_leaves)
    np.testing.assert_allclose(new["b/z"], sums[TREE.index("b")], atol=1e-6)
    np.testing.assert_allclose(new["a/u/w/9"], sums[TREE.index("a/u")], atol=1e-6)
    np.testing.assert_allclose(new["d"], 0.0, atol=1e-12)
    assert np.abs(new["b/z"]).max() > 0.1
    intercepts = dict(zip(after.classes_.tolist(), after.intercept_, strict=True))
    assert [intercepts[name] for name in ("b/z", "a/u/w/9", "d")] == [0.0, 0.0, 0.0]
    # What was there before keeps its ratios, and nothing happened to the model itself.
    proba = after.predict_proba(X)[:, np.isin(after.classes_, LABELS)]
    np.testing.assert_allclose(proba / proba.sum(axis=1, keepdims=True), model.predict_proba(X), atol=1e-8)
    assert model.classes_.tolist() == LABELS
    assert model.taxonomy is TREE
    nodes = after.predict_node_proba(X)
    np.testing.assert_allclose(nodes[:, larger.index("a/u/w")], nodes[:, larger.index("a/u/w/9")])


def test_the_intercepts_have_mean_zero():
    """So that zero is that of a class of which nothing is known."""
    model, _, _ = fitted_model(tol=1e-12)
    assert model.intercept_.mean() == pytest.approx(0.0, abs=1e-9)
    assert np.abs(model.intercept_).max() > 1e-3


def test_a_class_that_was_split():
    model, X, _ = fitted_model()
    larger = grown(("c", "c/1"), ("c", "c/2"), ("c/2", "c/2/7"))
    after = model.with_taxonomy(larger)
    assert after.classes_.tolist() == ["a/u/1", "a/u/2", "a/v", "b/x", "b/y", "c/1", "c/2/7"]
    proba, before = after.predict_proba(X), model.predict_proba(X)
    np.testing.assert_allclose(proba[:, :5], before[:, :5], atol=1e-12)
    np.testing.assert_allclose(proba[:, 5], before[:, 5] / 2, atol=1e-12)
    np.testing.assert_allclose(proba[:, 6], before[:, 5] / 2, atol=1e-12)


def test_step_by_step():
    model, X, _ = fitted_model()
    first, both = grown(("b", "b/z")), grown(("b", "b/z"), ("b", "b/0"))
    twice = model.with_taxonomy(first).with_taxonomy(both)
    np.testing.assert_allclose(twice.predict_proba(X), model.with_taxonomy(both).predict_proba(X), atol=1e-10)
    same = model.with_taxonomy(TREE)
    np.testing.assert_allclose(same.predict_proba(X), model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(2.0), RBF(2.0), PerNode(RBF(2.0))])
def test_saved_and_fitted_again(tmp_path, kernel):
    model, X, y = fitted_model(kernel, **({"coupling": Tree(variances=None)} if isinstance(kernel, PerNode) else {}))
    larger = grown(("b", "b/z"))
    after = model.with_taxonomy(larger)
    taxolearn.save(after, tmp_path / "model.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "model.taxo")
    np.testing.assert_array_equal(loaded.predict_proba(X), after.predict_proba(X))
    taxolearn.save(model, tmp_path / "old.taxo", dtype="float64")
    grown_later = taxolearn.load(tmp_path / "old.taxo").with_taxonomy(larger)
    np.testing.assert_allclose(grown_later.predict_proba(X), after.predict_proba(X), atol=1e-12)
    y = np.where(np.arange(len(y)) % 9 == 4, "b/z", y)
    again = clone(after).fit(X, y)
    expected = clone(model).set_params(taxonomy=larger).fit(X, y)
    np.testing.assert_allclose(again.predict_proba(X), expected.predict_proba(X), atol=1e-8)


def test_zero_shot_on_made_up_classes():
    """A class that was never seen is found among its siblings by the share of its parent."""
    data = datasets.make_hierarchy(1500, branching=(4, 4), random_state=0)
    X, y, tree = np.asarray(data.X), data.y, data.taxonomy
    unseen = tree.classes[5]
    smaller = tree.restrict([label for label in tree.classes if label != unseen])
    train = (np.arange(len(y)) < 900) & (y != unseen)
    model = KernelLogisticClassifier(Linear(1.0), taxonomy=smaller, tuning=None).fit(X[train], y[train])
    after = model.with_taxonomy(tree)
    share = after.predict_proba(X[900:])[:, after.classes_.tolist().index(unseen)]
    own = y[900:] == unseen
    siblings = np.isin(y[900:], tree.leaves(tree.parent(unseen))) & ~own
    others = ~(own | siblings)
    assert share[own].mean() > share[siblings].mean() > 5 * share[others].mean()
    fitted_with_it = clone(model).set_params(taxonomy=tree).fit(X[train], y[train])
    pushed_down = fitted_with_it.predict_proba(X[900:])[:, fitted_with_it.classes_.tolist().index(unseen)]
    assert share[own].mean() > 2 * pushed_down[own].mean()


class TestErrors:
    def test_trees_that_are_not_larger(self):
        model, _, _ = fitted_model()
        with pytest.raises(ValueError, match=r"taxonomy lacks nodes of the model's tree: \['c'\]"):
            model.with_taxonomy(TREE.restrict(LABELS[:-1]))
        moved = [("root" if child == "a/u" else parent, child) for parent, child in TREE.to_edges()]
        with pytest.raises(ValueError, match=r"'a/u' is below 'root', but below 'a' in the model's tree.*fit anew"):
            model.with_taxonomy(Taxonomy.from_edges(moved))
        between = [("new" if child == "c" else parent, child) for parent, child in TREE.to_edges()]
        with pytest.raises(ValueError, match=r"'c' is below 'new', but below 'root'"):
            model.with_taxonomy(Taxonomy.from_edges([*between, ("root", "new")]))
        with pytest.raises(TypeError, match=r"taxonomy must be a taxolearn.Taxonomy, got list"):
            model.with_taxonomy(TREE.to_edges())

    def test_classes_at_inner_nodes_and_groups_by_number(self):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((60, 3)), np.array([*LABELS, "b"])[np.arange(60) % 7]
        model = KernelLogisticClassifier(Linear(), taxonomy=TREE, tuning=None, labels="own").fit(X, y)
        own = model.taxonomy_
        with pytest.raises(ValueError, match=r"'b' is a class of its own .* inner node 'b/\*'; put new"):
            model.with_taxonomy(grown(("b", "b/z"), tree=own))
        assert "b" in model.with_taxonomy(grown(("b/*", "b/z"), tree=own)).classes_
        numbered, _, _ = fitted_model(coupling=Tree(tying=np.zeros(TREE.n_nodes, dtype=int), variances=None))
        with pytest.raises(ValueError, match=r"tying numbers the \d+ nodes"):
            numbered.with_taxonomy(grown(("b", "b/z")))

    def test_models_that_know_nothing_of_new_classes(self):
        flat, _, _ = fitted_model(taxonomy=None, coupling="auto")
        with pytest.raises(ValueError, match="the classes of this model are independent"):
            flat.with_taxonomy(TREE)
        flat, _, _ = fitted_model(coupling="independent")
        with pytest.raises(ValueError, match="the classes of this model are independent"):
            flat.with_taxonomy(TREE)
        learned, _, _ = fitted_model(coupling=LearnedCoupling(B=np.ones((6, 1))))
        with pytest.raises(ValueError, match="no loadings for new classes"):
            learned.with_taxonomy(TREE)
        with pytest.raises(ValueError, match=r"pruned.*before it is pruned"):
            taxolearn.prune(fitted_model()[0], 0.1).with_taxonomy(TREE)
        with pytest.raises(NotFittedError, match="not fitted"):
            KernelLogisticClassifier(taxonomy=TREE).with_taxonomy(TREE)


def test_paths_agree_with_the_covariances():
    variances = np.random.default_rng(0).uniform(0.1, 1.0, TREE.n_nodes)
    phi = paths(TREE)[:, 1:]
    leaves = np.arange(TREE.n_inner, TREE.n_nodes)
    np.testing.assert_allclose((phi * variances[1:]) @ phi.T, covariances(TREE, variances)[np.ix_(leaves, leaves)])
