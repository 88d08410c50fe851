"""Classifiers that are fitted to other rows: what they have learned stays. Pools have tests of their own."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from taxolearn import (
    CentroidClassifier,
    CrossValidation,
    Independent,
    KernelLogisticClassifier,
    LearnedCoupling,
    NaiveBayesClassifier,
    PoolClassifier,
    Taxonomy,
    TopDownClassifier,
    Tree,
    load,
    save,
)

X, NUMBERS = load_iris(return_X_y=True)
Y = np.array(["a/b", "a/c", "d/e"])[NUMBERS]
TREE = Taxonomy.from_labels(Y)
SOME = np.arange(len(Y)) % 3 > 0
FEW = CrossValidation(3, max_evaluations=4)
MODELS = {
    "linear": KernelLogisticClassifier(tuning=FEW),
    "rbf": KernelLogisticClassifier("rbf", tuning=FEW),
    "start values": KernelLogisticClassifier("rbf", tuning=None),
    "scale": KernelLogisticClassifier(tuning=CrossValidation(search="scale")),
    "independent": KernelLogisticClassifier(loss="independent", tuning=FEW),
    "tree": KernelLogisticClassifier(taxonomy=TREE, tuning=FEW),
    "nodes": KernelLogisticClassifier(taxonomy=TREE, coupling=Tree("node"), tuning=FEW),
    "flat in a tree": KernelLogisticClassifier(taxonomy=TREE, coupling=Independent("node"), tuning=FEW),
    "loadings": KernelLogisticClassifier(taxonomy=TREE, coupling=LearnedCoupling(1), tuning=FEW),
    "loadings alone": KernelLogisticClassifier(coupling=LearnedCoupling(3, base=None), tuning=FEW),
    "kernels": KernelLogisticClassifier({"a/b": "linear", "a/c": "rbf", "d/e": "linear"}, tuning=FEW),
    "top-down": TopDownClassifier(TREE),
    "naive Bayes": NaiveBayesClassifier(),
    "centroid": CentroidClassifier(),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(name, rows=SOME):
    return clone(MODELS[name]).fit(X[rows], Y[rows])


def learned(model):
    """What was learned, as text."""
    if isinstance(model, NaiveBayesClassifier):
        return model.smoothing_, model.temperature_
    if isinstance(model, CentroidClassifier):
        return model.temperature_
    return str(model.hyperparameters_.to_dict())


def by_hand(model):
    """An unfitted copy that is given what the model has learned."""
    if isinstance(model, NaiveBayesClassifier):
        return NaiveBayesClassifier(model.smoothing_, temperature=model.temperature_)
    if isinstance(model, CentroidClassifier):
        return CentroidClassifier(model.temperature_)
    table = model.hyperparameters_
    if isinstance(model, TopDownClassifier):
        return clone(model).set_params(variance=table.variances, temperature=table.temperatures, tuning=None)
    coupling, values = model.coupling, np.array(list(table.variances.values()))
    if isinstance(coupling, LearnedCoupling):
        base = None if coupling.base is None else Tree(variances=values)
        coupling = LearnedCoupling(B=table.loadings, base=base)
    elif len(values):
        kind = Independent if isinstance(coupling, Independent) else Tree
        coupling = kind(getattr(coupling, "tying", "level"), variances=values)
    given = {"intercept_variance": table.intercept_variance, "temperature": table.temperature, "coupling": coupling}
    return clone(model).set_params(kernel=table.kernels or table.kernel, tuning=None, **given)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_rows_give_the_same_model(name):
    model = fitted(name)
    arguments, known, before = str(model.get_params()), learned(model), model.predict_log_proba(X)
    record = getattr(model, "cv_result_", None)
    assert model.refit(X[SOME], Y[SOME]) is model
    np.testing.assert_allclose(model.predict_log_proba(X), before, rtol=1e-9, atol=1e-9)
    assert (str(model.get_params()), learned(model)) == (arguments, known)
    assert getattr(model, "cv_result_", None) is record


@pytest.mark.parametrize("name", MODELS)
def test_other_rows_are_fitted_with_what_was_learned(name):
    model = fitted(name)
    known, before = learned(model), model.predict_log_proba(X)
    expected = by_hand(model).fit(X, Y)
    model.refit(X, Y)
    np.testing.assert_allclose(model.predict_log_proba(X), expected.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    assert learned(model) == known
    assert not np.allclose(model.predict_log_proba(X), before, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["linear", "top-down", "naive Bayes", "centroid"])
def test_rows_have_weights(name):
    weights = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    model = fitted(name)
    expected = by_hand(model).fit(X, Y, weights).predict_log_proba(X)
    np.testing.assert_allclose(model.refit(X, Y, weights).predict_log_proba(X), expected, rtol=1e-9, atol=1e-9)
    assert not np.allclose(model.refit(X, Y).predict_log_proba(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["linear", "independent", "naive Bayes", "centroid"])
def test_other_classes_and_features(name):
    rows = Y != "a/c"
    model = fitted(name, rows)
    wide = sp.csr_matrix(np.hstack([X, X[:, :1] ** 2]))
    known = learned(model)
    model.refit(wide, Y)
    assert (model.classes_.tolist(), model.n_features_in_, learned(model)) == (["a/b", "a/c", "d/e"], 5, known)
    assert model.predict_proba(wide).shape == (len(Y), 3)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (KernelLogisticClassifier(coupling=LearnedCoupling(1), tuning=FEW), np.where(Y == "a/c", "a/x", Y)),
        (KernelLogisticClassifier(taxonomy=TREE, coupling=Tree("node"), labels="own", tuning=FEW), None),
    ],
    ids=["loadings", "nodes"],
)
def test_what_belongs_to_single_classes_is_not_given_to_others(model, y):
    if y is None:  # rows at an inner node, and then at another one
        inner = np.arange(len(Y)) % 5 == 0
        first, y = np.where(inner, "a", Y), np.where(inner, "d", Y)
    else:
        first = Y
    model.fit(X, first)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="refit: y has other classes, and variances or loadings were learned"):
        model.refit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("name", ["linear", "top-down", "naive Bayes", "centroid"])
def test_an_error_changes_nothing(name):
    with pytest.raises(NotFittedError):
        clone(MODELS[name]).refit(X, Y)
    model = fitted(name)
    before, state = model.predict_proba(X), str(vars(model))
    broken = X.copy()
    broken[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.refit(np.hstack([broken, broken]), Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert str(vars(model)) == state


@pytest.mark.parametrize(
    "name", ["linear", "rbf", "independent", "nodes", "loadings", "kernels", "top-down", "naive Bayes", "centroid"]
)
def test_loaded_models_can_be_fitted_again(name, tmp_path):
    model = fitted(name)
    save(model, tmp_path / "m.taxo", dtype="float64")
    loaded = load(tmp_path / "m.taxo")
    known = learned(loaded)
    expected = model.refit(X, Y).predict_log_proba(X)
    np.testing.assert_allclose(loaded.refit(X, Y).predict_log_proba(X), expected, rtol=1e-12, atol=1e-12)
    assert learned(loaded) == known


def test_a_warm_start_begins_at_the_last_fit():
    model = KernelLogisticClassifier(tuning=FEW, warm_start=True).fit(X, Y)
    assert model.n_iter_ > 0
    record = model.cv_result_
    assert model.refit(X, Y).n_iter_ == 0
    again = model.fit(X, Y).cv_result_  # learning, too, begins where it was
    np.testing.assert_array_equal(again.start, record.theta)


@pytest.mark.parametrize("name", ["linear", "kernels", "nodes", "loadings", "loadings alone"])
def test_a_tuned_copy_becomes_the_same_model(name):
    tuned = clone(MODELS[name]).tuned(X[SOME], Y[SOME])
    assert tuned.tuning is None
    expected = fitted(name).predict_log_proba(X)
    np.testing.assert_allclose(tuned.fit(X[SOME], Y[SOME]).predict_log_proba(X), expected, rtol=1e-9, atol=1e-9)


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_learning_that_is_part_of_something_else(interrupted):
    with pytest.raises(KeyboardInterrupt):
        KernelLogisticClassifier("rbf", tuning=CrossValidation(search=interrupted.search)).tuned(X, Y)
    assert interrupted.evaluations == 2


def test_ctrl_c_ends_a_pool_while_an_expert_learns(interrupted):
    with pytest.raises(KeyboardInterrupt):
        PoolClassifier().fit(X, Y)
    assert interrupted.evaluations == 2


def test_a_fit_alone_continues_with_what_it_has(interrupted):
    model = KernelLogisticClassifier("rbf", tuning=CrossValidation(search=interrupted.search)).fit(X, Y)
    assert (model.cv_result_.status, model.cv_result_.best, interrupted.evaluations) == ("interrupted", 0, 2)
