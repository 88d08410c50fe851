"""Temperatures of held-out rows and of predictions, for both losses: against plain formulas and finite differences."""

import numpy as np
import pytest
import scipy.sparse as sp
from cv_models import TAXONOMY, TREE, problem, shift
from scipy.optimize import minimize_scalar
from scipy.special import log_expit, log_softmax
from sklearn.linear_model import LogisticRegression

import taxolearn
from taxolearn import CrossValidation, KernelLogisticClassifier, Solver
from taxolearn.kernels import RBF, Linear
from taxolearn.model_selection import CrossValidationObjective

LOSSES = ["softmax", "independent"]
TIGHT = 1e-11


def classifier(loss="softmax", kernel=None, **options):
    tuning = {name: options.pop(name) for name in ("learn_temperature", "deviation") if name in options}
    defaults = {"intercept_variance": 2.0, "n_threads": 1, "max_iter": 5000, "tol": 1e-11}
    values = {"tuning": CrossValidation(3, **tuning), "solver": Solver(precision="double")}
    return KernelLogisticClassifier(kernel or Linear(0.7), loss=loss, **(defaults | values | options))


def scores(loss, u):
    return log_expit(u) if loss == "independent" else u


def held_out_predictors(model, X, y, fold_of, **values):
    """Of fits to the other folds, one after the other."""
    out = None
    for fold in range(fold_of.max() + 1):
        held = fold_of == fold
        fit = classifier(model.loss, **values).set_params(tuning=None, taxonomy=model.taxonomy).fit(X[~held], y[~held])
        u = fit.decision_function(X[held])
        out = np.empty((len(y), u.shape[1])) if out is None else out
        out[held] = u
    return out, fit.classes_


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", [{}, {"taxonomy": TAXONOMY}], ids=["flat", "tree"])
def test_the_temperature_is_the_best_one_for_held_out_rows(loss, options):
    X, y = problem(n=60)
    model = classifier(loss, deviation=None, **options)
    objective = CrossValidationObjective(model, X, y)
    evaluation = objective.evaluate(objective.theta, TIGHT)
    u, classes = held_out_predictors(model, X, y, objective.partitions[0])
    place = np.searchsorted(classes, y)
    held = objective.partitions[0] >= 0

    def loss_at(log_t):
        log_proba = log_softmax(scores(loss, u) / np.exp(log_t), axis=1)
        return -log_proba[np.arange(len(y)), place][held].sum() + log_t**2 / 2

    best = minimize_scalar(loss_at, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10})
    assert np.log(evaluation.temperature) == pytest.approx(best.x, abs=1e-5)
    assert evaluation.value == pytest.approx(best.fun, rel=1e-6)  # its fits are accurate to the root of their gaps
    assert abs(best.x) > 0.01  # else the test says little


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", [Linear(0.7), RBF(2.0, 3.0)], ids=["linear", "rbf"])
@pytest.mark.parametrize("options", [{}, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("tuning", [{}, {"learn_temperature": False, "temperature": 0.6, "deviation": None}])
def test_gradient(loss, kernel, options, tuning):
    X, y = problem(n=60)
    objective = CrossValidationObjective(classifier(loss, kernel, **(options | tuning)), X, y)
    theta = shift(objective.theta)
    _, gradient = objective.value_and_gradient(theta, TIGHT)
    for k, axis in enumerate(np.eye(len(theta))):
        above, below = (objective.value(theta + step * axis, TIGHT) for step in (1e-4, -1e-4))
        assert abs(gradient[k] - (above - below) / 2e-4) <= 1e-4 * np.abs(gradient).max()


@pytest.mark.parametrize("strategy", ["stacked", "shuffled"])
def test_strategies_agree(strategy):
    X, y = problem(n=60)
    model = classifier(kernel=RBF(2.0, 3.0))
    expected = CrossValidationObjective(model, X, y)
    objective = CrossValidationObjective(model, X, y, strategy=strategy)
    theta = shift(expected.theta)
    assert objective.value(theta, TIGHT) == pytest.approx(expected.value(theta, TIGHT), rel=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", [Linear(0.7), RBF(2.0, 3.0)], ids=["linear", "rbf"])
def test_prediction(loss, kernel, form):
    X, y = problem(n=60)
    X = form(X)
    plain = classifier(loss, kernel, tuning=None).fit(X, y)
    sure = classifier(loss, kernel, tuning=None, temperature=0.4).fit(X, y)
    u = plain.decision_function(X)
    np.testing.assert_array_equal(sure.decision_function(X), u)
    np.testing.assert_array_equal(sure.predict(X), plain.predict(X))
    expected = log_softmax(scores(loss, u) / 0.4, axis=1)
    np.testing.assert_allclose(sure.predict_log_proba(X), expected, atol=1e-11)
    np.testing.assert_allclose(sure.predict_proba(X), np.exp(expected), atol=1e-11)
    assert sure.hyperparameters_.temperature == 0.4


def test_temperature_one_is_the_model_without():
    X, y = problem(n=60)
    tuning = CrossValidation(3, learn_temperature=False, deviation=None, max_evaluations=4)
    with pytest.warns(match="max_evaluations"):
        model = KernelLogisticClassifier(tuning=tuning).fit(X, y)
    assert model.hyperparameters_.temperature == 1.0
    expected = np.exp(log_softmax(model.decision_function(X), axis=1))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_save_and_load(loss, kernel, tmp_path):
    X, y = problem(n=60)
    model = KernelLogisticClassifier(kernel, loss=loss, tuning=CrossValidation(3)).fit(X, y)
    assert model.hyperparameters_.temperature != 1.0
    taxolearn.save(model, tmp_path / "m.taxo", dtype="float64")
    again = taxolearn.load(tmp_path / "m.taxo")
    assert again.loss == loss
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.cv_result_.temperature == model.cv_result_.temperature


def test_sparse_weights_have_loss_and_temperature():
    X, y = problem(n=60)
    model = classifier("independent", tuning=None, temperature=0.5).fit(X, y)
    model.coef_ = sp.csr_array(model.coef_)  # what prune leaves
    expected = log_softmax(log_expit(model.decision_function(X)) / 0.5, axis=1)
    np.testing.assert_allclose(model.predict_log_proba(X), expected, atol=1e-12)


def test_one_against_the_rest():
    """A flat independent fit is one logistic regression per class."""
    X, y = problem(n=80)
    model = classifier("independent", Linear(1.0), tuning=None, intercept_variance=1.0, tol=1e-10).fit(X, y)
    wide = np.hstack([X, np.ones((len(X), 1))])
    for c, label in enumerate(model.classes_):
        rival = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10000).fit(wide, y == label)
        np.testing.assert_allclose(np.append(model.coef_[c], model.intercept_[c]), rival.coef_[0], atol=1e-4)
    assert model.result_.relative_gap <= 1e-10


def test_flat_directions_stay_where_they_are():
    """A prior holds what the data say nothing about: here intercepts, of classes of the same size."""
    X, y = problem(n=60)
    tuning = CrossValidation(3, deviation=0.01)
    model = KernelLogisticClassifier(tuning=tuning).fit(X, y)
    assert model.hyperparameters_.intercept_variance == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"loss": "hinge"}, "loss is 'hinge', expected one of 'softmax', 'independent'"),
        ({"temperature": 0}, "temperature must be finite and above 0, got 0"),
        ({"temperature": np.inf}, "temperature must be finite and above 0, got inf"),
    ],
)
def test_bad_arguments(options, match):
    with pytest.raises(ValueError, match=match):
        KernelLogisticClassifier(**options).fit(*problem(n=20))


def test_rows_that_allow_several_classes_need_softmax():
    X, y = problem(n=20)
    labels = list(y)
    labels[0] = set(y[:3])
    with pytest.raises(ValueError, match='choose loss="softmax"'):
        KernelLogisticClassifier(loss="independent").fit(X, labels)


@pytest.mark.parametrize("options", [{}, {"taxonomy": TAXONOMY}], ids=["flat", "tree"])
def test_tuned_is_what_fit_learns(options):
    X, y = problem(n=60)
    model = KernelLogisticClassifier("rbf", tuning=CrossValidation(3), **options)
    learned = model.fit(X, y)
    given = model.tuned(X, y)
    assert given.tuning is None
    assert given.fit(X, y).hyperparameters_ == learned.hyperparameters_
    np.testing.assert_allclose(given.predict_proba(X), learned.predict_proba(X), rtol=1e-12)
