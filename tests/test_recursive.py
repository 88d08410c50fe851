"""Recursive regularization: one label per row or any number of them, against scikit-learn and plain minimization."""

import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxolearn import (
    Blocks,
    CrossValidation,
    KernelLogisticClassifier,
    RecursiveRegularizationClassifier,
    Taxonomy,
    Tree,
    load,
    read_report,
    save,
)
from taxolearn.estimators.label_calibration import fit_label_calibration
from taxolearn.kernels import Linear

pandas = pytest.importorskip("pandas")

TREE = Taxonomy.from_labels(["a/b", "a/c", "d/e/g", "f"])
NODES = ["a", "a/b", "a/c", "d", "d/e", "d/e/g", "f"]
LEAVES = ["a/b", "a/c", "d/e/g", "f"]


def make_rows(n=120, d=5, width=4, seed=0, shift=0.7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, width)) + rng.normal(size=(n, width)) > shift).astype(int)


def as_lists(Y, names=LEAVES):
    return [[names[k] for k in np.flatnonzero(row)] for row in Y]


@parametrize_with_checks(
    [
        RecursiveRegularizationClassifier(C=1.0, tuning=None),
        RecursiveRegularizationClassifier(tuning=CrossValidation(2, search="scale", max_evaluations=2)),
    ],
    expected_failed_checks=lambda estimator: (
        {}
        if estimator.tuning is None
        else {
            f"check_sample_weight_equivalence_on_{kind}_data": "rows that are repeated or removed make other folds"
            for kind in ("dense", "sparse")
        }
    ),
)
@pytest.mark.filterwarnings("ignore:Learning hyperparameters. stopped after max_evaluations")
def test_scikit_learn_check(estimator, check):
    check(estimator)


# -- The minimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_flat_is_logistic_regression_of_each_label(kind):
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(C=0.7, intercept_variance=0.0, tuning=None, tol=1e-8).fit(kind(X), Y)
    total = 0.0
    for k in range(4):
        one = LogisticRegression(C=0.7, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, Y[:, k])
        np.testing.assert_allclose(model.coef_[k], one.coef_[0], atol=1e-4)
        u = one.decision_function(X)
        total += np.logaddexp(0, np.where(Y[:, k] == 1, -u, u)).sum() + (one.coef_**2).sum() / (2 * 0.7)
    assert model.result_.objective == pytest.approx(total, rel=1e-6)
    assert model.result_.relative_gap <= 1e-8


def least_objective(X, y, taxonomy, variance):
    """By minimization over weights of all nodes, the root's too: those of an inner label are of a leaf below it."""
    nodes = list(taxonomy.names[1:])
    path = {node: taxonomy.path(node) for node in nodes}
    owners = [node for node in nodes if taxonomy.children(node)]
    functions = [*nodes, *((node, "own") for node in owners), "root"]
    place = {name: k for k, name in enumerate(functions)}
    sums = np.zeros((len(nodes), len(functions)))
    for k, node in enumerate(nodes):
        for above in path[node]:
            sums[k, place[above]] = 1
        if node in owners:
            sums[k, place[(node, "own")]] = 1
        sums[k, place["root"]] = 1
    has = np.array([[any(node in path[label] for label in row) for node in nodes] for row in y])
    sign = np.where(has, 1.0, -1.0)

    def objective(flat):
        d = flat.reshape(len(functions), -1)  # differences to the parents
        margin = sign * (X @ (sums @ d).T)
        slope = -sign / (1 + np.exp(margin))
        return np.logaddexp(0, -margin).sum() + (d**2).sum() / (2 * variance), (
            sums.T @ slope.T @ X + d / variance
        ).ravel()

    found = minimize(objective, np.zeros(len(functions) * X.shape[1]), jac=True, method="L-BFGS-B", tol=1e-14)
    weights = sums @ found.x.reshape(len(functions), -1)
    return found.fun, dict(zip(nodes, weights, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_trees_against_plain_minimization(seed):
    rng = np.random.default_rng(seed)
    parents = [-1, *(int(rng.integers(0, k)) for k in range(1, 9))]
    taxonomy = Taxonomy(parents, [f"n{k}" for k in range(9)])
    nodes = list(taxonomy.names[1:])
    X = rng.normal(size=(40, 3))
    y = [list(rng.choice(nodes, size=int(rng.integers(0, 3)), replace=False)) for _ in range(40)]
    model = RecursiveRegularizationClassifier(taxonomy, C=0.8, intercept_variance=0.0, tuning=None, tol=1e-9).fit(X, y)
    least, weights = least_objective(X, y, taxonomy, 0.8)
    assert model.result_.objective == pytest.approx(least, rel=1e-6)
    assert model.classes_.tolist() == sorted(nodes)
    for name, own in zip(model.classes_.tolist(), model.coef_, strict=True):
        np.testing.assert_allclose(own, weights[name], atol=2e-4)


def test_one_label_is_kernel_logistic_regression_with_independent_losses():
    X, Y = make_rows()
    y = np.array(LEAVES)[Y.argmax(axis=1)]
    model = RecursiveRegularizationClassifier(TREE, C=0.8, tuning=None).fit(X, y)
    other = KernelLogisticClassifier(
        taxonomy=TREE,
        loss="independent",
        coupling=Tree("shared", variances=0.8, root_variance="shared"),
        kernel=Linear(1.0),
        tuning=None,
    ).fit(X, y)
    assert not model.is_multilabel_
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X))
    np.testing.assert_allclose(model.predict_node_proba(X), other.predict_node_proba(X))
    np.testing.assert_array_equal(model.decide(X, "taxo"), other.decide(X, "taxo"))
    assert model.score(X, y) == other.score(X, y)
    assert model.explain(X[:3]) == other.explain(X[:3])


@pytest.mark.parametrize("tying", ["shared", "level"])
def test_the_root_has_a_variance_with_the_others_or_of_its_own(tying):
    X, Y = make_rows()
    y = np.array(LEAVES)[Y.argmax(axis=1)]
    C = 0.8 if tying == "shared" else [0.8, 0.3, 1.5, 0.6]
    model = RecursiveRegularizationClassifier(TREE, C=C, tying=tying, tuning=None, tol=1e-9).fit(X, y)
    variances, root = (0.8, 0.8) if tying == "shared" else (C[:-1], C[-1])
    other = KernelLogisticClassifier(
        Linear(1.0),
        taxonomy=TREE,
        loss="independent",
        coupling=Tree(tying, variances=variances, root_variance=root),
        tuning=None,
        tol=1e-9,
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    found = model.C_ if tying == "shared" else list(model.C_.values())
    np.testing.assert_allclose(found, C)
    np.testing.assert_allclose(model.refit(X, y).coef_, other.coef_, atol=1e-4)
    for wrong, message in (("level", "needs one variance for all nodes"), ("shared", "root_variance is 'all'")):
        coupling = Tree(wrong, root_variance="shared" if wrong == "level" else "all")
        with pytest.raises(ValueError, match=message):
            KernelLogisticClassifier(taxonomy=TREE, loss="independent", coupling=coupling, tuning=None).fit(X, y)


def test_an_integer_weight_is_a_repetition():
    X, Y = make_rows(n=60)
    weights = np.random.default_rng(1).integers(0, 3, size=60)
    options = {"C": 1.0, "tuning": None, "tol": 1e-10}
    weighted = RecursiveRegularizationClassifier(**options).fit(X, Y, sample_weight=weights)
    repeated = RecursiveRegularizationClassifier(**options).fit(
        np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


# -- Answers ----------------------------------------------------------------------------------------------------------


FORMS = {
    "dense": lambda Y: Y,
    "sparse": sp.csr_array,
    "frame": lambda Y: pandas.DataFrame(Y, columns=LEAVES),
    "tuples": lambda Y: [tuple(row) for row in as_lists(Y)],
    "sets": lambda Y: [set(row) for row in as_lists(Y)],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_y_is_that_of_the_answers(form):
    X, Y = make_rows()
    y = FORMS[form](Y)
    model = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, y)
    dense = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, Y).predict(X)
    answers = model.predict(X)
    assert type(answers) is type(y)
    wanted = FORMS[form](dense)
    if form == "sparse":
        assert (answers != wanted).nnz == 0
    elif form == "frame":
        pandas.testing.assert_frame_equal(answers, wanted)
    else:
        assert np.array_equal(answers, wanted) if form == "dense" else answers == wanted
    assert model.score(X, y) == pytest.approx(accuracy_score(Y, dense))
    assert model.predict_proba(X).shape == (len(X), len(NODES))
    assert model.classes_.tolist() == NODES


def test_inner_nodes_as_labels():
    X, Y = make_rows(width=3)
    lowest = as_lists(Y, ["a", "a/b", "f"])
    lowest = [[label for label in row if not (label == "a" and "a/b" in row)] for row in lowest]
    model = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, lowest)
    assert all(not {"a", "a/b"} <= set(row) for row in model.predict(X))
    assert {label for row in model.predict(X) for label in row} >= {"a", "a/b", "f"}
    closed = [sorted({above for label in row for above in TREE.path(label)}) for row in lowest]
    whole = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, closed)
    np.testing.assert_allclose(whole.coef_, model.coef_)
    for row, low in zip(whole.predict(X), model.predict(X), strict=True):
        assert set(row) == {above for label in low for above in TREE.path(label)}
    assert whole.score(X, closed) == model.score(X, lowest)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_no_node_is_more_probable_than_the_one_above(seed, C):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    y = [list(rng.choice(NODES, size=int(rng.integers(0, 4)), replace=False)) for _ in range(29)] + [["f"]]
    model = RecursiveRegularizationClassifier(TREE, C=C, tuning=None, tol=1e-2).fit(X, y)
    proba = model.predict_node_proba(rng.normal(size=(20, 3)) * 5)
    assert (proba[:, 1:] <= proba[:, TREE.parents[1:]]).all()
    assert (proba[:, 0] == 1).all()
    for loss in ("hamming", "f1", "hierarchical", "zero-one"):
        indicator = RecursiveRegularizationClassifier(TREE, C=C, tuning=None, tol=1e-2)
        frame = pandas.DataFrame([[node in set().union(*map(TREE.path, row), []) for node in NODES] for row in y])
        frame.columns = NODES
        with pytest.warns(UserWarning, match="no row has") if not frame.any().all() else nullcontext():
            indicator.fit(X, frame)
        chosen = indicator.decide(X, loss).to_numpy()
        for column, node in enumerate(NODES):
            parent = TREE.parent(node)
            assert parent == "root" or (chosen[:, column] <= chosen[:, NODES.index(parent)]).all()


def test_decisions():
    X, Y = make_rows(n=300)
    model = RecursiveRegularizationClassifier(tuning=CrossValidation(3, search="scale")).fit(X, Y)
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.decide(X), proba > 0.5)
    np.testing.assert_array_equal(model.decide(X, thresholds="fixed"), model.predict(X))
    np.testing.assert_array_equal(model.decide(X, thresholds="s-cut"), proba > model.thresholds_)
    np.testing.assert_array_equal(model.decide(X, thresholds=0.2), proba > 0.2)
    assert model.thresholds_.shape == (4,)
    f1 = model.decide(X, "f1")
    assert f1.sum() > model.predict(X).sum()
    truth, found = Y == 1, f1 == 1
    sizes = truth.sum(axis=1) + found.sum(axis=1)
    of_rows = np.where(sizes == 0, 1.0, 2 * (truth & found).sum(axis=1) / np.maximum(sizes, 1))
    fixed = model.predict(X) == 1
    fixed_sizes = truth.sum(axis=1) + fixed.sum(axis=1)
    of_fixed = np.where(fixed_sizes == 0, 1.0, 2 * (truth & fixed).sum(axis=1) / np.maximum(fixed_sizes, 1))
    assert of_rows.mean() > of_fixed.mean()
    for wrong, message in [
        ({"loss": "f1", "thresholds": "fixed"}, 'goes with thresholds="expected"'),
        ({"loss": "taxo"}, "loss is 'taxo'"),
        ({"loss": "hierarchical"}, "needs a taxonomy"),
        ({"thresholds": "best"}, "thresholds is 'best'"),
        ({"thresholds": 1.5}, "from 0 to below 1"),
        ({"confidence": 0.5}, "one label per row"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.decide(X, **wrong)
    untuned = RecursiveRegularizationClassifier(C=1.0, tuning=None).fit(X, Y)
    with pytest.raises(ValueError, match="needs held-out rows"):
        untuned.decide(X, thresholds="s-cut")


def test_top_classes():
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, Y)
    labels, proba = model.top_classes(X, 2)
    leaves = model.predict_proba(X)[:, [NODES.index(leaf) for leaf in LEAVES]]
    np.testing.assert_array_equal(labels, np.array(LEAVES)[np.argsort(-leaves, axis=1)[:, :2]])
    np.testing.assert_array_equal(proba, -np.sort(-leaves, axis=1)[:, :2])
    assert model.top_classes(X, 99)[0].shape == (len(X), 4)


def test_explanations_add_up_to_the_predictor():
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, Y)
    for row, explained in enumerate(model.explain(X[:20], top=2)):
        assert explained
        for each in explained:
            label = NODES.index(each.node)
            total = sum(part for _, part in each.contributions) + each.rest
            assert total + model.intercept_[label] == pytest.approx(
                model.coef_[label] @ X[row] + model.intercept_[label]
            )
    (path,) = model.explain(X[:1], "d/e/g")
    assert [each.node for each in path] == ["d", "d/e", "d/e/g"]
    with pytest.raises(ValueError, match="root"):
        model.explain(X[:1], "root")


# -- Learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tying", ["shared", "level", "node"])
def test_variances_are_learned(tying):
    X, Y = make_rows(n=150)
    tuning = CrossValidation(3, search="scale" if tying == "shared" else "gradient", max_evaluations=15)
    model = RecursiveRegularizationClassifier(TREE, tying=tying, tuning=tuning)
    model.fit(X, Y)
    assert isinstance(model.C_, float) == (tying == "shared")
    held_out = model.cv_result_.values
    assert min(held_out) < held_out[0] or tying == "shared"
    again = clone(model).set_params(C=model.C_ if tying == "shared" else list(model.C_.values()), tuning=None)
    again.set_params(**{name: getattr(model.hyperparameters_, name) for name in ("intercept_variance", "temperature")})
    again.set_params(offset=model.offset_)
    np.testing.assert_allclose(again.fit(X, Y).predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_learning_continues_from_a_checkpoint(tmp_path):
    X, Y = make_rows()
    file = tmp_path / "learning"
    options = {"tying": "level", "tol": 1e-4}
    stopped = CrossValidation(2, max_evaluations=2, checkpoint=file)
    with pytest.warns(ConvergenceWarning, match="max_evaluations=2"):
        RecursiveRegularizationClassifier(TREE, tuning=stopped, **options).fit(X, Y)
    going_on = CrossValidation(2, max_evaluations=40, checkpoint=file)
    model = RecursiveRegularizationClassifier(TREE, tuning=going_on, **options).fit(X, Y)
    whole = RecursiveRegularizationClassifier(TREE, tuning=CrossValidation(2, max_evaluations=40), **options).fit(X, Y)
    assert model.C_ == whole.C_
    with pytest.raises(ValueError, match="checkpoint"):
        RecursiveRegularizationClassifier(TREE, tuning=going_on, **options).fit(X, Y[::-1])


def test_learning_on_a_subset_of_the_rows():
    X, Y = make_rows(n=200)
    tuning = CrossValidation(3, search="scale", subset=100)
    model = RecursiveRegularizationClassifier(TREE, tuning=tuning).fit(X, Y, sample_weight=np.ones(200))
    assert model.cv_result_.n_held_out <= 100
    assert model.thresholds_.shape == (7,)


def test_tools_of_scikit_learn():
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(C=1.0, tuning=None)
    assert len(cross_val_score(model, X, Y, cv=3, scoring="f1_micro")) == 3
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, sp.csr_array(Y))
    assert search.best_score_ > 0
    assert cross_val_predict(model, X, Y, cv=2, method="predict_proba").shape == Y.shape
    untuned = RecursiveRegularizationClassifier()
    named = make_pipeline(StandardScaler(), untuned).set_params(recursiveregularizationclassifier__tuning__folds=2)
    assert named[-1].tuning.folds == 2
    assert named[-1].tuning.search == "scale"


def test_refit_keeps_what_was_learned():
    X, Y = make_rows(n=200)
    model = RecursiveRegularizationClassifier(TREE, tuning=CrossValidation(3, search="scale")).fit(X[:150], Y[:150])
    C, thresholds, before, offset = model.C_, model.thresholds_, model.coef_, model.offset_
    model.refit(X, Y)
    assert model.offset_ == offset != 0
    assert model.offset == 0
    assert pytest.approx(model.C_) == C
    np.testing.assert_array_equal(model.thresholds_, thresholds)
    assert not np.array_equal(before, model.coef_)
    assert model.cv_result_ is not None
    assert model.C is None
    with pytest.raises(ValueError, match="another number of labels"):
        model.refit(X, np.array(LEAVES)[Y.argmax(axis=1)])


def test_probabilities_of_held_out_rows_are_calibrated():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 6))
    Y = (X @ rng.normal(size=(6, 3)) + rng.logistic(size=(2000, 3)) > 1.0).astype(int)
    model = RecursiveRegularizationClassifier(tuning=CrossValidation(3, search="scale")).fit(X[:1000], Y[:1000])
    p, y = model.predict_proba(X[1000:]).ravel(), Y[1000:].ravel()
    bins = np.minimum((p * 5).astype(int), 4)
    for b in range(5):
        assert y[bins == b].mean() == pytest.approx(p[bins == b].mean(), abs=0.06)


@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_is_the_minimum(weighted):
    rng = np.random.default_rng(5)
    u = rng.normal(size=(300, 4)) - 2
    truth = (rng.uniform(size=u.shape) < 1 / (1 + np.exp(-(2.0 * u + 1.5)))).astype(int)
    weights = rng.integers(0, 3, size=300).astype(float) if weighted else None
    temperature, offset = fit_label_calibration(u, sp.csr_array(truth), weights)

    def loss(log_temperature, shift):
        v = u * np.exp(-log_temperature) + shift
        rows = np.logaddexp(0, np.where(truth == 1, -v, v)).sum(axis=1)
        return (rows if weights is None else weights * rows).sum() + (log_temperature**2 + shift**2) / 2

    found = np.log(temperature), offset / temperature
    around = [loss(found[0] + a, found[1] + b) for a in (-0.01, 0, 0.01) for b in (-0.01, 0, 0.01)]
    assert min(around) == loss(*found)
    assert temperature == pytest.approx(0.5, rel=0.2)
    assert offset / temperature == pytest.approx(1.5, abs=0.4)


def test_an_offset_makes_rare_labels_calibrated():
    """A strong prior leaves predictors of rare labels too low where features speak for them."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1500, 40))
    Y = (X @ rng.normal(size=(40, 6)) / 2 + rng.logistic(size=(1500, 6)) > 5.0).astype(int)
    tuning = CrossValidation(3, search="scale", max_evaluations=1)
    plain = CrossValidation(3, search="scale", max_evaluations=1, learn_temperature=False)
    losses = []
    for each in (tuning, plain):
        model = RecursiveRegularizationClassifier(C=0.01, tuning=each)
        with pytest.warns(ConvergenceWarning):
            p = model.fit(X[:1000], Y[:1000]).predict_proba(X[1000:])
        losses.append(-np.log(np.where(Y[1000:] == 1, p, 1 - p)).sum(axis=1).mean())
        np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict_proba(X) > 0.5)
    assert model.offset_ == 0
    assert losses[0] < losses[1]


def test_same_answer_for_any_number_of_threads():
    X, Y = make_rows()
    one, two = (RecursiveRegularizationClassifier(TREE, n_threads=n).fit(X, Y) for n in (1, 2))
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)


# -- Files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [*FORMS, "one"])
@pytest.mark.parametrize("tying", ["shared", "level"])
def test_files_keep_everything(form, tying, tmp_path):
    X, Y = make_rows()
    y = np.array(LEAVES)[Y.argmax(axis=1)] if form == "one" else FORMS[form](Y)
    tuning = CrossValidation(2, search="scale")
    model = RecursiveRegularizationClassifier(TREE, tying=tying, tuning=tuning, tol=1e-4).fit(X, y)
    save(model, tmp_path / "model.taxo", dtype="float64")
    again = load(tmp_path / "model.taxo")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.C_ == model.C_
    assert again.offset_ == model.offset_
    assert again.is_multilabel_ == model.is_multilabel_ == (form != "one")
    assert str(again.predict(X)) == str(model.predict(X))
    assert again.score(X, y) == model.score(X, y)
    assert again.cv_result_.status == model.cv_result_.status
    if form != "one":
        np.testing.assert_array_equal(again.thresholds_, model.thresholds_)
        again.refit(X, y)
    report = read_report(tmp_path / "model.taxo")
    assert report["several_labels"] == (form != "one")


def test_files_of_others_are_checked(tmp_path):
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, Y)
    for columns in (np.array([0, 99]), np.array([1, 1]), np.array([-1, 0])):
        model.label_form_ = replace(model.label_form_, columns=columns)
        save(model, tmp_path / "model.taxo")
        with pytest.raises(ValueError, match="labels that are no classes"):
            load(tmp_path / "model.taxo")


# -- Blocks and warm starts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taxonomy", [None, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("several", [True, False])
def test_blocks_have_variances_of_their_own(taxonomy, several, tmp_path):
    X, Y = make_rows(n=200)
    blocks = Blocks({"words": sp.csr_array(X[:, :3]), "numbers": X[:, 3:]})
    y = Y if several else np.array(LEAVES)[Y.argmax(axis=1)]
    same = {"words": 0.7, "numbers": 0.7}
    split = RecursiveRegularizationClassifier(taxonomy, C=same, tuning=None, tying="shared", tol=1e-9).fit(blocks, y)
    whole = RecursiveRegularizationClassifier(taxonomy, C=0.7, tuning=None, tying="shared", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(split.predict_proba(blocks), whole.predict_proba(X), atol=1e-5)
    assert pytest.approx(same) == split.C_
    tuning = CrossValidation(2, max_evaluations=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RecursiveRegularizationClassifier(taxonomy, tuning=tuning, tol=1e-4).fit(blocks, y)
    first = model.C_ if taxonomy is None else model.C_["level 1"]
    assert first["words"] != first["numbers"]
    assert isinstance(model.explain(blocks[:2])[0][0].contributions[0][0], tuple)
    save(model, tmp_path / "model.taxo", dtype="float64")
    again = load(tmp_path / "model.taxo")
    np.testing.assert_array_equal(again.predict_proba(blocks), model.predict_proba(blocks))
    assert again.C_ == model.C_
    again.refit(blocks, y)
    assert str(again.C_) == str(model.C_)
    with pytest.raises(TypeError, match="takes one matrix"):
        RecursiveRegularizationClassifier(taxonomy, loss="hinge").fit(blocks, y)


def test_a_warm_start_takes_fewer_products():
    X, Y = make_rows(n=300)
    model = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None, warm_start=True, tol=1e-8).fit(X[:290], Y[:290])
    cold = clone(model).fit(X, Y)
    model.fit(X, Y)
    assert model.result_.products < cold.result_.products
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-3)
    model.fit(X[:, :3], Y)
    assert model.coef_.shape == (7, 3)


# -- Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "huber"}, "loss is 'huber', expected one of 'logistic'"),
        ({"C": 0.0}, "C must be finite and above 0"),
        ({"C": [1.0, 2.0, 3.0, 4.0, 5.0], "taxonomy": TREE, "tying": "level"}, r"C has shape \(5,\), expected \(4,\)"),
        ({"tying": "all"}, "tying is 'all'"),
        ({"tol": -1.0}, "tol must be"),
        ({"tuning": "grid"}, "tuning is 'grid'"),
    ],
)
def test_arguments(options, message):
    X, Y = make_rows()
    with pytest.raises(ValueError, match=message):
        RecursiveRegularizationClassifier(**{"tuning": None, **options}).fit(X, Y)


def test_rows_that_do_not_fit():
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(C=1.0, tuning=None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X[:-1], Y)
    with pytest.raises(ValueError, match="row 3, column 1 is 7"):
        model.fit(X, np.where(np.arange(480).reshape(120, 4) == 13, 7, Y))
    with pytest.raises(ValueError, match="rows without a label"):
        model.fit(X[:3], ["a", None, "b"])
    with pytest.raises(TypeError, match="taxonomy must be"):
        RecursiveRegularizationClassifier("tree").fit(X, Y)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="3 columns, expected 4"):
        model.score(X, Y[:, :3])
    with pytest.raises(ValueError, match="119 rows, but X has 120"):
        model.score(X, Y[:-1])
    with pytest.raises(ValueError, match="X has 4 features"):
        model.predict(X[:, :4])


def test_labels_that_are_always_or_never_there():
    X, Y = make_rows()
    Y[:, 0], Y[:, 1] = 1, 0
    with pytest.warns(UserWarning, match="no row has the label 1"):
        model = RecursiveRegularizationClassifier(tuning=CrossValidation(3, search="scale")).fit(X, Y)
    proba = model.predict_proba(X)
    assert proba[:, 0].min() > 0.9
    assert proba[:, 1].max() < 0.1
    assert model.thresholds_[1] == 0.5


def test_one_column_and_single_precision():
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(C=1.0, tuning=None)
    proba = model.fit(X, sp.csr_array(Y[:, :1])).predict_proba(X)
    assert proba.shape == (120, 1)
    wide = sp.csr_array(X.astype(np.float32))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(model.fit(wide, sp.csr_array(Y[:, :1])).predict_proba(wide), proba, atol=1e-4)
