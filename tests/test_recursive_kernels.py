"""Recursive regularization with kernels: functions of rows in place of weights of features."""

import numpy as np
import pytest

from taxolearn import (
    Blocks,
    ClassGraph,
    CrossValidation,
    KernelLogisticClassifier,
    RecursiveRegularizationClassifier,
    Taxonomy,
    Tree,
    load,
    prune,
    save,
)
from taxolearn.kernels import RBF, Linear, Precomputed
from taxolearn.report.description import describe, explained_by

TREE = Taxonomy.from_labels(["a/b", "a/c", "d/e", "f"])
NAMES = ["a/b", "a/c", "d/e", "f"]
PAIRS = ClassGraph.from_edges([("a/b", "a/c"), ("d/e", "f")], directed=False)
KERNEL = RBF(1.5, variance=4.0)


def make_rows(n=90, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    u = np.column_stack([X[:, 0] * X[:, 1], X[:, 1] ** 2 - 1, X[:, 2], -X[:, 0]]) + 0.3 * rng.normal(size=(n, 4))
    return X, (u > 0.2).astype(int)


def as_lists(Y):
    return [[NAMES[k] for k in np.flatnonzero(row)] for row in Y]


def test_each_label_is_the_function_of_a_class_against_the_rest():
    """Without intercepts, two classes with losses of their own are a label and its opposite."""
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(kernel=KERNEL, intercept_variance=0.5, tuning=None, tol=1e-9).fit(X, Y)
    for k in range(4):
        one = KernelLogisticClassifier(KERNEL, loss="independent", intercept_variance=0.5, tuning=None, tol=1e-9)
        one.fit(X, Y[:, k])
        u = one.decision_function(X)  # that of the label minus that of the others, which is its opposite
        np.testing.assert_allclose(model.decision_function(X)[:, k], u / 2, atol=1e-4)


def test_one_label_per_row_is_kernel_logistic_regression_with_independent_losses():
    X, Y = make_rows()
    y = np.array(NAMES)[Y.argmax(axis=1)]
    model = RecursiveRegularizationClassifier(TREE, kernel=KERNEL, C=0.8, tuning=None, temperature=1.3).fit(X, y)
    other = KernelLogisticClassifier(
        RBF(1.5, variance=1.0),
        loss="independent",
        taxonomy=TREE,
        coupling=Tree("level", variances=0.8, root_variance=0.8),
        tuning=None,
        temperature=1.3,
    ).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


def test_labels_of_a_tree_against_the_kernel_matrix():
    """The tree's prior is a matrix over labels, so that a kernel model is a linear one in the root of the kernel."""
    X, Y = make_rows(60)
    y = as_lists(Y)
    values, vectors = np.linalg.eigh(KERNEL(X) / KERNEL.variance)
    features = vectors * np.sqrt(np.maximum(values, 0))  # rows whose products are the kernel
    groups = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, y).C_
    options = {"C": np.linspace(0.5, 1.5, len(groups)), "tuning": None, "tol": 1e-9}
    model = RecursiveRegularizationClassifier(TREE, kernel=KERNEL, **options).fit(X, y)
    linear = RecursiveRegularizationClassifier(TREE, **options).fit(features, y)
    assert model.result_.objective == pytest.approx(linear.result_.objective, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(features), atol=1e-4)
    np.testing.assert_allclose(list(model.C_.values()), options["C"], rtol=1e-12)
    assert (model.predict_node_proba(X)[:, 1:] <= model.predict_node_proba(X)[:, TREE.parents[1:]]).all()


def test_rbf_finds_labels_that_no_linear_model_can():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(300, 2))
    Y = np.column_stack([X[:, 0] * X[:, 1] > 0, (X**2).sum(axis=1) < 0.6]).astype(int)
    rbf = RecursiveRegularizationClassifier(kernel="rbf").fit(X[:200], Y[:200])
    linear = RecursiveRegularizationClassifier().fit(X[:200], Y[:200])
    assert (rbf.predict(X[200:]) == Y[200:]).mean() > 0.9
    assert (linear.predict(X[200:]) == Y[200:]).mean() < 0.75
    start = rbf.cv_result_.start[rbf.cv_result_.names.index("kernel.length_scale")]
    assert np.log(rbf.hyperparameters_.kernel.length_scale) != pytest.approx(start, abs=0.02)
    assert pytest.approx(rbf.hyperparameters_.kernel.variance) == rbf.C_


@pytest.mark.parametrize("taxonomy", [None, TREE, PAIRS], ids=["flat", "tree", "graph"])
def test_the_linear_kernel_is_the_linear_model(taxonomy):
    X, Y = make_rows()
    y = as_lists(Y)
    plain = RecursiveRegularizationClassifier(taxonomy, C=0.7, tuning=None).fit(X, y)
    for kernel in (Linear(), Linear(5.0)):
        same = RecursiveRegularizationClassifier(taxonomy, kernel=kernel, C=0.7, tuning=None).fit(X, y)
        np.testing.assert_allclose(same.coef_, plain.coef_, atol=1e-9)
        assert pytest.approx(plain.C_) == same.C_
    if taxonomy is None:
        own = RecursiveRegularizationClassifier(kernel=Linear(0.7), tuning=None).fit(X, y)
        np.testing.assert_array_equal(own.coef_, plain.coef_)


def test_a_precomputed_kernel_is_that_of_its_rows():
    X, Y = make_rows()
    matrix = RBF(1.5)(X)
    model = RecursiveRegularizationClassifier(kernel=Precomputed(4.0), tuning=None, tol=1e-9).fit(
        matrix[:60, :60], Y[:60]
    )
    other = RecursiveRegularizationClassifier(kernel=KERNEL, tuning=None, tol=1e-9).fit(X[:60], Y[:60])
    np.testing.assert_allclose(model.predict_proba(matrix[60:, :60]), other.predict_proba(X[60:]), atol=1e-5)


def test_blocks_have_the_kernel_each():
    X, Y = make_rows()
    blocks = Blocks({"one": X[:, :1], "rest": X[:, 1:]})
    model = RecursiveRegularizationClassifier(kernel="rbf", C={"one": 2.0, "rest": 3.0}, tuning=None).fit(blocks, Y)
    assert pytest.approx({"one": 2.0, "rest": 3.0}) == model.C_
    same = RecursiveRegularizationClassifier(kernel="rbf", C=2.0, tuning=None).fit(blocks, Y)
    assert pytest.approx({"one": 2.0, "rest": 2.0}) == same.C_
    with pytest.raises(ValueError, match=r"C has variances for 'one', expected the names of blocks: 'one', 'rest'"):
        RecursiveRegularizationClassifier(kernel="rbf", C={"one": 2.0}, tuning=None).fit(blocks, Y)


@pytest.mark.parametrize("taxonomy", [None, TREE])
@pytest.mark.parametrize("kernel", [KERNEL, KERNEL + Linear(0.5)], ids=["rbf", "sum"])
def test_files_hold_the_model(taxonomy, kernel, tmp_path):
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(
        taxonomy, kernel=kernel, tuning=CrossValidation(2, max_evaluations=3), offset=0.1
    )
    with pytest.warns(UserWarning, match="stopped after max_evaluations"):
        model.fit(X, as_lists(Y))
    save(model, tmp_path / "m.taxo", dtype="float64")
    back = load(tmp_path / "m.taxo")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.predict(X) == model.predict(X)
    assert back.kernel == kernel
    assert back.C_ == model.C_
    assert back.decide(X, thresholds="s-cut") == model.decide(X, thresholds="s-cut")


def test_refit_and_warm_start_keep_what_was_learned():
    X, Y = make_rows()
    tuning = CrossValidation(2, max_evaluations=4, learn_temperature=True)
    model = RecursiveRegularizationClassifier(kernel="rbf", tuning=tuning, warm_start=True, tol=1e-11)
    with pytest.warns(UserWarning, match="stopped after max_evaluations"):
        model.fit(X[:70], Y[:70])
    learned, offset = model.hyperparameters_, model.offset_
    model.refit(X, Y)
    assert model.hyperparameters_ == learned
    assert model.offset_ == offset
    assert model.kernel == "rbf"
    fresh = RecursiveRegularizationClassifier(
        C=learned, tuning=None, offset=offset, temperature=learned.temperature, tol=1e-11
    )
    np.testing.assert_allclose(fresh.fit(X, Y).predict_proba(X), model.predict_proba(X), atol=1e-3)
    again = RecursiveRegularizationClassifier(kernel=KERNEL, tuning=None, warm_start=True).fit(X[:70], Y[:70])
    again.fit(X[:70], Y[:70])
    assert again.n_iter_ <= 1


def test_what_only_linear_models_have_is_refused():
    X, Y = make_rows()
    model = RecursiveRegularizationClassifier(kernel=KERNEL, tuning=None).fit(X, Y)
    with pytest.raises(AttributeError, match=r"coef_ are weights of features, which a model with the kernel RBF"):
        _ = model.coef_
    assert not hasattr(model, "coef_")
    assert model.intercept_.shape == (4,)
    with pytest.raises(ValueError, match="explain needs a linear model"):
        model.explain(X[:2])
    single = RecursiveRegularizationClassifier(kernel=KERNEL, tuning=None).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="explain needs a linear model"):
        single.explain(X[:2])
    with pytest.raises(ValueError, match="not linear, so it has no weights of features to leave out, but coefficients"):
        prune(model, 0.5)
    assert explained_by(model) == (False, "")
    assert "by the likeness of rows" in describe(model).sentences[0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kernel": "gauss"}, ValueError, "kernel is 'gauss', expected a kernel or one of 'linear', 'rbf'"),
        ({"kernel": 3}, TypeError, "kernel must be one of taxolearn.kernels, a name or a callable"),
        ({"kernel": RBF}, TypeError, "kernel is the class RBF"),
        ({"kernel": {"a": "rbf"}}, TypeError, "kernel must be one of taxolearn.kernels"),
        ({"kernel": "rbf", "loss": "hinge"}, ValueError, "kernel is 'rbf', but loss='hinge' is for linear models"),
        ({"kernel": Linear(), "loss": "squared_hinge"}, ValueError, 'leave kernel at "linear", or choose loss="logi'),
        ({"kernel": "rbf", "C": -1.0}, ValueError, "C must be"),
        ({"kernel": "rbf", "C": {"a": 1.0}}, ValueError, "expected the names of blocks: none: X is one matrix"),
    ],
)
def test_bad_values_are_named(options, error, words):
    X, Y = make_rows(30)
    with pytest.raises(error, match=words):
        RecursiveRegularizationClassifier(**{"tuning": None} | options).fit(X, Y)


def test_parameters_of_the_kernel_can_be_set():
    model = RecursiveRegularizationClassifier(kernel=KERNEL).set_params(kernel__length_scale=3.0)
    assert model.kernel == RBF(3.0, variance=4.0)
