"""The nearest centre: the answers of a slow oracle for any form of inputs, and a temperature that is chosen."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxolearn import CentroidClassifier, PoolClassifier, Taxonomy, load, prune, read_report, save
from taxolearn.estimators.centroid import row_lengths
from taxolearn.estimators.class_sums import class_products
from taxolearn.estimators.pool import linear_expert
from taxolearn.estimators.pooling.experts import default_experts, named_experts
from taxolearn.estimators.pooling.inputs import Inputs, Scaling
from taxolearn.files.container import read_container, write_container
from taxolearn.tuning.cross_validation import make_folds

FORMS = {"dense": np.asarray, "matrix": sp.csr_matrix, "array": sp.csr_array, "csc": sp.csc_matrix}


def rows(n=240, d=60, n_classes=5, seed=0):
    """Rows of several classes, most features zero, of either sign; the last row has zeros only."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(n_classes, d))
    y = generator.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    X = (centres[y] + 2 * generator.normal(size=(n, d))) * (generator.random((n, d)) < 0.3)
    X[-1] = 0
    return X, y


def cosine(a, b):
    length = np.linalg.norm(a) * np.linalg.norm(b)
    return a @ b / length if length > 0 else 0.0


def oracle(X, y, weights, test, classes):
    """Cosines of every row and every centre, one by one."""
    centres = np.zeros((len(classes), X.shape[1]))
    for row, label, weight in zip(X, y, weights, strict=True):
        if np.any(row):
            centres[list(classes).index(label)] += weight * row / np.linalg.norm(row)
    return np.array([[cosine(row, centre) for centre in centres] for row in test])


@parametrize_with_checks([CentroidClassifier(0.1), CentroidClassifier()])
def test_scikit_learn_check(estimator, check):
    if "sample_weight_equivalence" in str(check) and estimator.temperature is None:
        pytest.skip("folds of rows that are repeated are others")
    check(estimator)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_answers_are_those_of_the_oracle(form, dtype):
    X, y = rows()
    X = X.astype(dtype)
    weights = np.random.default_rng(1).random(len(y))
    model = CentroidClassifier(0.07).fit(FORMS[form](X), y, weights)
    expected = log_softmax(oracle(X, y, weights, X, range(5)) / 0.07, axis=1)
    tolerance = 1e-9 if dtype is np.float64 else 1e-4
    for inputs in (FORMS[form](X), X, sp.csr_matrix(X)):  # a model takes either, whatever it was fitted to
        np.testing.assert_allclose(model.predict_log_proba(inputs), expected, atol=tolerance)
        np.testing.assert_allclose(model.predict_proba(inputs), np.exp(expected), atol=tolerance)
    assert sp.issparse(model.centroids_) == (form != "dense")
    centroids = model.centroids_.toarray() if sp.issparse(model.centroids_) else model.centroids_
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1.0)
    np.testing.assert_allclose(model.predict_proba(X[-1:]), 0.2)


@pytest.mark.parametrize("form", ["dense", "matrix"])
@pytest.mark.parametrize("sizes", [(0.5, 2.0), (1e-200, 1e200)])
def test_lengths_of_rows_do_not_matter(form, sizes):
    X, y = rows()
    factors = np.exp(np.random.default_rng(2).uniform(*np.log(sizes), (len(y), 1)))
    plain, scaled = (CentroidClassifier().fit(FORMS[form](each), y) for each in (X, X * factors))
    assert scaled.temperature_ == pytest.approx(plain.temperature_, rel=1e-9)
    np.testing.assert_allclose(
        scaled.predict_log_proba(FORMS[form](X * factors)), plain.predict_log_proba(FORMS[form](X)), atol=1e-9
    )


def test_entries_of_one_place_count_together():
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    np.testing.assert_allclose(row_lengths(X), 5.0)
    assert X.nnz == 3


def test_weights_are_repetitions():
    X, y = rows()
    times = np.random.default_rng(2).integers(0, 3, len(y))
    times[:5] = 1
    a = CentroidClassifier(0.1).fit(X, y, times)
    b = CentroidClassifier(0.1).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(a.predict_log_proba(X), b.predict_log_proba(X), atol=1e-12)


def test_the_temperature_is_the_best_for_rows_held_out():
    X, y = rows()
    weights = np.random.default_rng(3).random(len(y))
    folds = make_folds(y, 5, 3, 0)
    cosines = np.empty((len(y), 5))
    for fold in range(3):
        train = folds != fold
        cosines[~train] = oracle(X[train], y[train], weights[train], X[~train], range(5))

    def loss(t):
        scores = log_softmax(cosines / np.exp(t), axis=1)[np.arange(len(y)), y]
        return -weights @ scores + 0.5 * (t - np.log(0.05)) ** 2

    best = np.exp(minimize_scalar(loss, bounds=(-7, 3), method="bounded", options={"xatol": 1e-8}).x)
    assert CentroidClassifier().fit(X, y, weights).temperature_ == pytest.approx(best, rel=1e-4)
    copy = CentroidClassifier().tuned(X, y, weights, folds)
    assert copy.temperature == pytest.approx(best, rel=1e-4)
    assert not hasattr(copy, "classes_")
    other = CentroidClassifier().tuned(X, y, weights, make_folds(y, 5, 3, 1)).temperature
    assert 0.5 < other / best < 2
    assert other != copy.temperature


def test_many_scores_are_computed_in_parts(monkeypatch):
    X, y = rows()
    model = CentroidClassifier(0.1).fit(sp.csr_matrix(X), y)
    whole = model.predict_log_proba(sp.csr_matrix(X))
    monkeypatch.setattr("taxolearn.estimators.class_sums._BATCH", 35)  # seven rows
    np.testing.assert_array_equal(model.predict_log_proba(sp.csr_matrix(X)), whole)
    np.testing.assert_allclose(class_products(X, model.centroids_), X @ model.centroids_.toarray().T, atol=1e-12)


def test_a_tree_changes_no_answer_and_unseen_leaves_have_cosine_zero():
    X, y = rows(n_classes=3)
    names = np.array(["a/b", "a/c", "d/e"])[y]
    tree = Taxonomy.from_labels([*names, "d/f"])
    model = CentroidClassifier(taxonomy=tree).fit(X, names)
    assert model.classes_.tolist() == ["a/b", "a/c", "d/e", "d/f"]
    np.testing.assert_array_equal(model.decision_function(X)[:, 3], 0.0)
    flat = CentroidClassifier(model.temperature_).fit(X, names)
    np.testing.assert_allclose(model.decision_function(X)[:, :3], flat.decision_function(X), atol=1e-12)
    nodes = model.predict_node_proba(X)
    np.testing.assert_allclose(nodes[:, 0], 1.0)
    p = model.predict_proba(X)
    np.testing.assert_allclose(nodes[:, tree.index("a")], p[:, 0] + p[:, 1])


@pytest.mark.parametrize("form", ["dense", "matrix"])
def test_one_row_per_class(form):
    model = CentroidClassifier().fit(FORMS[form](np.eye(4)), list("abcd"))
    assert model.temperature_ == 0.05
    assert model.predict(np.eye(4)).tolist() == list("abcd")
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 4))), 0.25)


@pytest.mark.parametrize("form", ["dense", "matrix"])
def test_explanation_adds_up(form):
    X, y = rows()
    few = y < 2
    model = CentroidClassifier(0.2).fit(FORMS[form](X[few]), y[few])
    (part,) = model.explain(FORMS[form](X[:1]), 1, top=3)[0]
    assert len(part.contributions) == 3
    u = model.decision_function(X[:1])[0]
    assert sum(value for _, value in part.contributions) + part.rest == pytest.approx(u)
    assert part.probability == pytest.approx(model.predict_proba(X[:1])[0, 1])
    feature, value = part.contributions[0]
    centroids = model.centroids_.toarray() if sp.issparse(model.centroids_) else model.centroids_
    expected = X[0, feature] / np.linalg.norm(X[0]) * (centroids[1, feature] - centroids[0, feature]) / 0.2
    assert value == pytest.approx(expected)


def test_explanation_of_several_classes_is_the_derivative():
    """Along the row itself, as if its length counted."""
    X, y = rows()
    model = CentroidClassifier(0.2).fit(X, y)
    u = model.decision_function(X[:1])[0]

    def odds(factor):
        p = np.exp(log_softmax(factor * u))
        return np.log(p[2] / (1 - p[2]))

    (part,) = model.explain(X[:1], 2, top=100)[0]
    assert sum(value for _, value in part.contributions) == pytest.approx((odds(1.001) - odds(0.999)) / 0.002, rel=1e-4)


def test_errors():
    X, y = rows()
    with pytest.raises(ValueError, match="temperature must be finite and above 0"):
        CentroidClassifier(0.0).fit(X, y)
    with pytest.raises(ValueError, match="which CentroidClassifier cannot use"):
        CentroidClassifier().fit(X[:3], ["a", None, "b"])
    with pytest.raises(TypeError, match=r"taxonomy must be a taxolearn\.Taxonomy or None, got str"):
        CentroidClassifier(taxonomy="a").fit(X, y)
    with pytest.raises(NotFittedError):
        CentroidClassifier().explain(X)


# -- Files and pruning ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "matrix"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 0.0), ("float32", 1e-5)])
def test_saved_and_loaded(tmp_path, form, dtype, tolerance):
    X, y = rows()
    X = FORMS[form](X)
    model = CentroidClassifier().fit(X, y)
    save(model, tmp_path / "model.taxo", dtype=dtype)
    again = load(tmp_path / "model.taxo")
    np.testing.assert_allclose(again.predict_log_proba(X), model.predict_log_proba(X), rtol=0, atol=tolerance)
    assert (again.centroids_.dtype, sp.issparse(again.centroids_)) == (dtype, form == "matrix")
    assert again.get_params() == model.get_params()
    report = read_report(tmp_path / "model.taxo")
    assert (report["functions"], report["hyperparameters"]) == ("nearest centre", {"temperature": model.temperature_})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.0}, "not positive"),
        ({"temperature": "hot"}, "cannot use"),
        ({"features": 59}, "another number of features than weights"),
        ({"centroids": {"dense": "no such array"}}, "cannot use"),
    ],
)
def test_malformed_files_are_refused(tmp_path, change, message):
    X, y = rows()
    path = tmp_path / "model.taxo"
    save(CentroidClassifier().fit(X, y), path)
    container = read_container(path)
    arrays = {name: np.array(array) for name, array in container.arrays.items()}
    container.content["classifier"].update(change)
    write_container(path, container.content, arrays)
    with pytest.raises(ValueError, match=message):
        load(path)


@pytest.mark.parametrize("form", ["dense", "matrix"])
def test_pruned(form):
    X, y = rows()
    X = FORMS[form](X)
    model = CentroidClassifier().fit(X, y)
    np.testing.assert_allclose(prune(model, 0.0).predict_log_proba(X), model.predict_log_proba(X), atol=1e-12)
    small = prune(model, 0.8)
    assert small.centroids_.nnz == 60  # of 300
    dense = model.centroids_.toarray() if sp.issparse(model.centroids_) else model.centroids_
    kept = np.where(np.abs(dense) >= np.sort(np.abs(dense), axis=None)[-60], dense, 0.0)
    np.testing.assert_array_equal(small.centroids_.toarray(), kept)


# -- In pools ---------------------------------------------------------------------------------------------------------


def test_an_expert_of_sparse_pools():
    X = sp.csr_matrix(np.abs(rows()[0]))

    def names(inputs, tree=None):
        return [name for name, _ in default_experts(Inputs.of(inputs, Scaling(None, None)), 5, tree).experts]

    assert names(X)[:3] == ["naive Bayes", "centroid", "softmax"]
    assert names(-X)[:2] == ["centroid", "softmax"]
    assert "centroid" not in names(X.toarray())
    logistic = PoolClassifier()  # stands for what takes long
    listed = named_experts([("slow", logistic), ("centre", CentroidClassifier())])
    assert [name for name, _ in listed] == ["centre", "slow"]


def test_large_flat_problems_keep_the_softmax(monkeypatch):
    """The nearest centre does not stand in for it."""
    monkeypatch.setattr("taxolearn.estimators.pooling.experts._JOINT_WORK", 0)
    X = sp.csr_matrix(np.abs(rows()[0]))
    tree = Taxonomy.from_labels(["a/b", "a/c", "d/e", "d/f", "d/g"])
    assert "softmax" in dict(default_experts(Inputs.of(X, Scaling(None, None)), 5, None).experts)
    assert "softmax" in dict(default_experts(Inputs.of(-X, Scaling(None, None)), 5, tree).experts)
    assert "softmax" not in dict(default_experts(Inputs.of(X, Scaling(None, None)), 5, tree).experts)


def test_a_pool_is_explained_by_it(tmp_path):
    X, y = rows()
    X = sp.csr_matrix(X)
    pool = PoolClassifier([("centre", CentroidClassifier())]).fit(X, y)
    assert linear_expert(pool) == "centre"
    assert pool.explain(X[:1])[0][0].contributions == pool.experts_["centre"].explain(X[:1])[0][0].contributions
    save(pool, tmp_path / "pool.taxo", dtype="float64")
    np.testing.assert_array_equal(load(tmp_path / "pool.taxo").predict_proba(X), pool.predict_proba(X))
