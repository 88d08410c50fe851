"""The hierarchical model: against NumPy, its laws, and what a user may do with it."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from trees import Hierarchical, random_taxonomy

from taxolearn import Independent, KernelLogisticClassifier, Solver, Taxonomy, Tree
from taxolearn.kernels import Linear

LABELS = ["a/x", "a/y", "a/z", "b/x", "b/y", "c"]


def problem(seed=0, n=80, d=6, labels=LABELS):
    """Points around centres that lie close together for siblings."""
    rng = np.random.default_rng(seed)
    taxonomy = Taxonomy.from_labels(labels)
    centres = {name: rng.standard_normal(d) for name in taxonomy.names}
    y = rng.choice(labels, size=n)
    X = np.array([centres[label.split("/")[0]] + 0.7 * centres[label] + rng.standard_normal(d) for label in y])
    return X, y, taxonomy


def model(**options):
    return KernelLogisticClassifier(
        Linear(variance=0.7), **{"intercept_variance": 0.5, "tol": 1e-9} | options, tuning=None
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("method", "state"),
    [("lbfgs", "weights"), ("lbfgs", "coefficients"), ("ncg", "weights"), ("ncg", "coefficients"), ("newton", "auto")],
)
def test_minimum_and_certificate(method, state, sparse):
    X, y, taxonomy = problem()
    weights = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    variances = np.array([2.0, 0.5])
    fitted = model(taxonomy=taxonomy, coupling=Tree(variances=variances), solver=Solver(method=method, space=state))
    fitted.fit(sp.csr_array(X) if sparse else X, y, sample_weight=weights)
    v = 0.7 * variances[taxonomy.depths - 1]
    oracle = Hierarchical(X, taxonomy.leaf_index(y), taxonomy, v, 0.5, weights)
    best = oracle.optimum()
    minimum = oracle.value_and_gradient(best)[0]
    assert fitted.result_.status == "converged"
    assert minimum - 1e-9 <= fitted.result_.objective <= minimum + fitted.result_.gap + 1e-7
    coef, intercept = oracle.functions(best)
    order = taxonomy.leaf_index(fitted.classes_)
    assert np.allclose(fitted.coef_, coef[order], atol=1e-3)
    assert np.allclose(fitted.intercept_, intercept[order], atol=1e-3)
    # The certificate is the distance to a true lower bound.
    place = np.argsort(order)
    bound = oracle.dual(fitted.coef_[place], fitted.intercept_[place])
    assert fitted.result_.objective - bound == pytest.approx(fitted.result_.gap, abs=1e-9 * minimum)


@pytest.mark.parametrize("seed", range(5))
def test_random_trees(seed):
    taxonomy = random_taxonomy(seed, n_nodes=25, reach=6)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 5))
    y = rng.choice(taxonomy.classes[: 1 + taxonomy.n_classes // 2], size=60)  # the other classes are never seen
    v = rng.gamma(1.0, size=taxonomy.n_nodes - 1)
    fitted = model(taxonomy=taxonomy, coupling=Tree(tying="node", variances=v)).fit(X, y)
    oracle = Hierarchical(X, taxonomy.leaf_index(y), taxonomy, 0.7 * np.concatenate([[0.0], v]), 0.5)
    minimum = oracle.value_and_gradient(oracle.optimum())[0]
    assert minimum - 1e-9 <= fitted.result_.objective <= minimum + fitted.result_.gap + 1e-7
    assert np.array_equal(fitted.classes_, np.sort(taxonomy.classes))


def test_no_inner_variance_is_the_flat_model():
    X, y, taxonomy = problem(labels=[label for label in LABELS if "/" in label])
    flat = model().fit(X, y)
    tree = model(taxonomy=taxonomy, coupling=Tree(variances=[0.0, 1.0])).fit(X, y)
    identity = model(taxonomy=taxonomy, coupling="independent").fit(X, y)
    scaled = model(taxonomy=taxonomy, coupling=Independent(tying="subtree", variances=[1.0, 1.0])).fit(X, y)
    for other in (tree, identity, scaled):
        assert np.allclose(flat.predict_proba(X), other.predict_proba(X), atol=1e-4)
    assert identity.result_.objective == flat.result_.objective


def test_identity_with_variances_of_classes():
    """Two subtrees with variances of their own are the flat model on features scaled class by class."""
    X, y, taxonomy = problem()
    fitted = model(taxonomy=taxonomy, coupling=Independent(tying="subtree", variances=[1.0, 2.0, 3.0])).fit(X, y)
    groups, names = taxonomy.groups("subtree")
    v = np.where(np.arange(taxonomy.n_nodes) >= taxonomy.n_inner, 0.7 * np.array([1.0, 2.0, 3.0])[groups], 0.0)
    oracle = Hierarchical(X, taxonomy.leaf_index(y), taxonomy, v, 0.5)
    minimum = oracle.value_and_gradient(oracle.optimum())[0]
    assert fitted.result_.objective == pytest.approx(minimum, rel=1e-8)
    assert fitted.hyperparameters_.variances == dict(zip(names, [1.0, 2.0, 3.0], strict=True))


def test_names_and_order_of_the_tree_do_not_matter():
    X, y, taxonomy = problem()
    expected = model(taxonomy=taxonomy).fit(X, y)
    shuffled = Taxonomy.from_labels(LABELS[::-1])
    other = model(taxonomy=shuffled).fit(X, y)
    assert np.array_equal(expected.classes_, other.classes_)
    assert np.allclose(expected.predict_proba(X), other.predict_proba(X), atol=1e-4)
    renamed = {label: f"{9 - k}" for k, label in enumerate(LABELS)}
    paths = [[*label.split("/")[:-1], renamed[label]] for label in LABELS]
    third = model(taxonomy=Taxonomy.from_paths(paths)).fit(X, [renamed[label] for label in y])
    place = [third.classes_.tolist().index(renamed[label]) for label in expected.classes_]
    assert np.allclose(expected.predict_proba(X), third.predict_proba(X)[:, place], atol=1e-4)


def test_unseen_classes_learn_from_their_relatives():
    X, y, taxonomy = problem(n=300)
    seen = y != "a/z"
    fitted = model(taxonomy=taxonomy).fit(X[seen], y[seen])
    assert "a/z" in fitted.classes_
    proba = fitted.predict_proba(X)
    column = fitted.classes_.tolist().index("a/z")
    near = np.char.startswith(y, "a/")
    assert proba[near, column].mean() > 2 * proba[~near, column].mean()


def test_labels_on_inner_nodes_have_leaves_of_their_own():
    taxonomy = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "a1"), ("a", "a2")])
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "a1", "a2"] * 10)
    X = rng.standard_normal((40, 3)) + 3 * np.eye(4)[:, :3][np.arange(40) % 4]
    fitted = model(taxonomy=taxonomy, labels="own").fit(X, y)
    assert fitted.classes_.tolist() == ["a", "a1", "a2", "b"]
    assert fitted.taxonomy_.path("a") == ["a/*", "a"]
    assert fitted.score(X, y) > 0.7
    nodes = fitted.predict_node_proba(X)
    of = dict(zip(fitted.taxonomy_.names, nodes.T, strict=True))
    assert np.allclose(of["a/*"], of["a"] + of["a1"] + of["a2"])
    assert taxonomy.n_classes == 3  # what the user gave is as it was


def test_node_probabilities_and_decisions():
    X, y, taxonomy = problem()
    fitted = model(taxonomy=taxonomy, n_threads=2).fit(X, y)
    nodes = fitted.predict_node_proba(X)
    assert nodes.shape == (80, taxonomy.n_nodes)
    assert np.allclose(nodes[:, 0], 1.0)
    proba = fitted.predict_proba(X)
    for p, name in enumerate(taxonomy.names):
        below = np.isin(fitted.classes_, taxonomy.leaves(name))
        assert np.allclose(nodes[:, p], proba[:, below].sum(axis=1))
    assert np.array_equal(fitted.decide(X), fitted.predict(X))
    assert set(fitted.decide(X, "taxo")) <= set(LABELS)
    assert set(fitted.decide(X, confidence=0.9)) - set(LABELS)
    assert np.array_equal(fitted.decide(X, 1.0 - np.eye(6)), fitted.predict(X))
    always_c = np.ones((6, 6))
    always_c[:, 5] = 0.0
    assert set(fitted.decide(X, always_c)) == {"c"}


def test_decisions_in_blocks(monkeypatch):
    X, y, taxonomy = problem()
    fitted = model(taxonomy=taxonomy).fit(X, y)
    whole = {loss: fitted.decide(X, loss) for loss in ("zero-one", "taxo", "parent")}
    monkeypatch.setattr("taxolearn.estimators.base._BATCH", 50)
    for loss, expected in whole.items():
        assert np.array_equal(fitted.decide(sp.csr_array(X), loss), expected)


def test_flat_models_decide_too():
    X, y, _ = problem()
    fitted = model().fit(X, y)
    assert fitted.taxonomy_ is None
    assert np.array_equal(fitted.decide(X), fitted.predict(X))
    with pytest.raises(ValueError, match="needs a taxonomy"):
        fitted.decide(X, "taxo")
    with pytest.raises(ValueError, match="fitted without a taxonomy"):
        fitted.predict_node_proba(X)


def test_integer_labels():
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy.from_edges([(0, 10), (0, 20), (10, 11), (10, 12), (20, 21), (20, 22)])
    y = rng.choice([11, 12, 21, 22], size=50)
    fitted = model(taxonomy=taxonomy).fit(rng.standard_normal((50, 3)), y)
    assert fitted.classes_.dtype == np.int64
    assert fitted.predict(np.zeros((1, 3))).dtype == np.int64
    with pytest.raises(ValueError, match=r"y: not in the taxonomy.* integers such as 11, these are strings"):
        model(taxonomy=taxonomy).fit(rng.standard_normal((50, 3)), y.astype(str))


def test_warm_start_and_threads():
    X, y, taxonomy = problem(n=400)
    for state in ("weights", "coefficients"):
        cold = model(taxonomy=taxonomy, n_threads=1, solver=Solver(space=state)).fit(X, y)
        two = model(taxonomy=taxonomy, n_threads=2, solver=Solver(space=state)).fit(X, y)
        assert np.array_equal(cold.coef_, two.coef_)
        warm = model(taxonomy=taxonomy, warm_start=True, tol=1e-6, solver=Solver(space=state)).fit(X, y)
        first = warm.n_iter_
        assert 2 * warm.fit(X, y).n_iter_ <= first


def test_scikit_learn_takes_it_everywhere():
    X, y, taxonomy = problem(n=200)
    estimator = KernelLogisticClassifier(Linear(), taxonomy=taxonomy, coupling=Tree(), tuning=None)
    assert clone(estimator).taxonomy == taxonomy
    pipeline = make_pipeline(StandardScaler(), estimator)
    search = GridSearchCV(
        pipeline, {"kernellogisticclassifier__coupling__variances": [[1.0, 0.1], [0.1, 1.0]]}, cv=3
    ).fit(X, y)
    fitted = search.best_estimator_[-1]
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert np.array_equal(twin.predict_node_proba(X), fitted.predict_node_proba(X))
    # A class may be missing from a fold: the taxonomy keeps its column.
    assert estimator.fit(X[y != "c"], y[y != "c"]).predict_proba(X).shape == (200, 6)


def test_class_weights_count_the_classes_seen():
    X, y, taxonomy = problem(n=200)
    keep = y != "c"
    balanced = model(taxonomy=taxonomy, class_weight="balanced").fit(X[keep], y[keep])
    counts = {label: (y[keep] == label).sum() for label in LABELS[:-1]}
    weights = {label: keep.sum() / (5 * count) for label, count in counts.items()}
    by_hand = model(taxonomy=taxonomy, class_weight=weights | {"c": 7.0}).fit(X[keep], y[keep])
    assert np.array_equal(balanced.coef_, by_hand.coef_)
    with pytest.raises(ValueError, match=r"class_weight names labels that are not in y: \['d'\]"):
        model(taxonomy=taxonomy, class_weight=weights | {"d": 7.0}).fit(X[keep], y[keep])


def test_one_seen_class_is_enough_with_a_tree():
    X, y, taxonomy = problem()
    keep = y == "a/x"
    fitted = model(taxonomy=taxonomy).fit(X[keep], y[keep])
    assert (fitted.predict(X[keep]) == "a/x").all()
    with pytest.raises(ValueError, match="one class only"):
        model().fit(X[keep], y[keep])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"taxonomy": "tree.txt"}, TypeError, r"taxonomy must be a taxolearn.Taxonomy or None, got str"),
        ({"taxonomy": None, "coupling": "tree"}, ValueError, "needs a taxonomy"),
        ({"coupling": "full"}, ValueError, "coupling is 'full'"),
        ({"coupling": Tree(tying="depth")}, ValueError, "tying"),
        ({"coupling": Tree(variances=[1.0, 2.0, 3.0])}, ValueError, r"variances has shape \(3,\)"),
        ({"coupling": Tree(variances="large")}, ValueError, "variances is 'large', expected a number or 2 of them"),
        ({"coupling": np.eye(3)}, ValueError, "coupling is"),
        ({"taxonomy": Taxonomy.from_labels(["a/x", "a/y"])}, ValueError, "b/x"),
    ],
)
def test_bad_arguments(options, error, message):
    X, y, taxonomy = problem()
    with pytest.raises(error, match=message):
        model(**({"taxonomy": taxonomy} | options)).fit(X, y)
