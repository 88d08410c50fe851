"""One factor of all variances, tried in steps: against fits to single folds, and the order of steps."""

from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from cv_models import TAXONOMY, problem, shift
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_expit, log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import taxolearn
from taxolearn import CrossValidation, KernelLogisticClassifier, Solver, plotting
from taxolearn.estimators.kernel_logistic import with_hyperparameters
from taxolearn.kernels import RBF, Linear
from taxolearn.model_selection import CrossValidationObjective
from taxolearn.tuning.scale import search_scale
from taxolearn.tuning.search import Evaluation

FACTOR = 4.0
LEAST_GAIN = 1e-3
FORMS = {"flat": {}, "tree": {"taxonomy": TAXONOMY}}
LOSSES = ["softmax", "independent"]


# -- Predictors of held-out rows --------------------------------------------------------------------------------------


def predictors_of_separate_fits(model, X, y, weights, fold_of, classes):
    """Of plain fits to the other folds; zero for rows that no fold holds out."""
    out = np.zeros((len(y), len(classes)))
    for fold in range(fold_of.max() + 1):
        held = fold_of == fold
        fit = clone(model).fit(X[~held], y[~held], weights[~held])
        out[held] = fit.decision_function(X[held])[:, np.searchsorted(fit.classes_, classes)]
    return out


@pytest.mark.parametrize("learned", [True, False], ids=["learned temperature", "given temperature"])
@pytest.mark.parametrize("kernel", [Linear(0.7), RBF(2.0, 3.0)], ids=["linear", "rbf"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_held_out_predictors_are_those_of_separate_fits(form, loss, kernel, learned):
    X, y = problem(n=60)
    weights = np.random.default_rng(1).random(60) + 0.5
    fold_of = np.arange(60) % 4 - 1
    model = KernelLogisticClassifier(
        kernel,
        loss=loss,
        intercept_variance=2.0,
        temperature=0.8,
        tuning=CrossValidation(fold_of, learn_temperature=learned, deviation=1.5),
        solver=Solver(precision="double"),
        tol=1e-12,
        max_iter=5000,
        **FORMS[form],
    )
    objective = CrossValidationObjective(model, X, y, weights)
    theta = shift(objective.theta)
    evaluation, predictors = objective.evaluate_held_out(theta, 1e-12)
    assert evaluation.converged
    assert np.isnan(evaluation.gradient).all()

    plain = with_hyperparameters(model, objective.parameters.table(theta))
    assert plain.tuning is None
    expected = predictors_of_separate_fits(plain, X, y, weights, fold_of, objective.classes)
    np.testing.assert_allclose(predictors, expected, atol=2e-4)
    held = fold_of >= 0
    assert (predictors[~held] == 0).all()
    assert np.abs(predictors[held]).max() > 0.5  # else the test says little

    temperature = evaluation.temperature
    assert (temperature == 0.8) != learned
    scores = log_expit(expected) if loss == "independent" else expected
    log_proba = log_softmax(scores / temperature, axis=1)
    column = {label: c for c, label in enumerate(objective.classes)}
    own = np.array([log_proba[i, column[label]] for i, label in enumerate(y)])
    value = -weights[held] @ own[held] + np.sum((theta - objective.theta) ** 2) / (2 * 1.5**2)
    if learned:
        value += np.log(temperature) ** 2 / 2
    assert evaluation.value == pytest.approx(value, rel=1e-5)
    assert objective.n_held_out == pytest.approx(weights[held].sum())


@pytest.mark.parametrize("form", FORMS)
def test_without_gradient_the_value_is_the_same(form):
    X, y = problem(n=60)
    model = KernelLogisticClassifier(Linear(0.7), solver=Solver(precision="double"), max_iter=5000, **FORMS[form])
    objective = CrossValidationObjective(model, X, y)
    theta = shift(objective.theta)
    with_gradient = objective.evaluate(theta, 1e-11)
    assert objective.evaluate_held_out(theta, 1e-11)[0].value == pytest.approx(with_gradient.value, rel=1e-6)


# -- The order of steps -----------------------------------------------------------------------------------------------


class Landscape:
    """An objective whose value depends on the steps that its first parameter is away from the start."""

    n_held_out = 20.0
    partitions = (np.arange(20) % 2,)

    def __init__(
        self, value, names=("kernel.variance",), bounds=None, fails=(), products=lambda step: 1, temperature=None
    ):
        self.names = names
        self.theta = np.linspace(0.1, 0.5, len(names))
        self.bounds = np.tile([-11.5, 11.5], (len(names), 1)) if bounds is None else np.array(bounds)
        self.is_log = np.ones(len(names), dtype=bool)
        self.value = value
        self.fails = fails
        self.products = products
        self.temperature = temperature or (lambda step: 1 + step)
        self.seen = []
        self.accepted = []

    def evaluate_held_out(self, theta, tol, progress=None):
        step = (theta[0] - self.theta[0]) / np.log(FACTOR)
        self.seen.append(step)
        usable = round(step) not in self.fails
        value, products = self.n_held_out * self.value(step), self.products(round(step))
        found = Evaluation(theta, value, None, usable, tol, products, 0.0, temperature=self.temperature(step))
        return found, np.full((3, 2), step)

    def accept(self):
        self.accepted.append(round(self.seen[-1]))

    @property
    def steps(self):
        return np.round(self.seen, 9).tolist()


@pytest.mark.parametrize(
    ("value", "steps", "best"),
    [
        (lambda s: 1 + s**2, [0, -1, 1], 0),
        (lambda s: 1 + (s + 2) ** 2, [0, -1, -2, -3], -2),
        (lambda s: 1 + (s - 2) ** 2, [0, -1, 1, 2, 3], 2),
        (lambda s: 1 + s / 10, [0, -1, -2, -3, -4, -5], -5),
        (lambda s: 1 - 0.9 * LEAST_GAIN * abs(s), [0, -1, 1], 0),
        (lambda s: 1 - 1.1 * LEAST_GAIN * s, [0, -1, 1, 2, 3, 4], 4),
    ],
    ids=["start", "below", "above", "far below", "no gain", "small gains"],
)
def test_order_of_steps(value, steps, best):
    toy = Landscape(value)
    found = search_scale(toy)
    assert toy.steps == steps
    assert toy.accepted[-1] == best
    assert found.theta == pytest.approx(toy.theta + best * np.log(FACTOR))
    assert found.loss == pytest.approx(value(best))
    assert found.temperature == pytest.approx(1 + best)
    np.testing.assert_allclose(found.predictors, best, atol=1e-12)
    assert len(found.evaluations) == len(steps)
    assert all(each.tolerance == 1e-3 for each in found.evaluations)


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_no_more_evaluations_than_allowed(most):
    toy = Landscape(lambda s: 10 + s)
    assert len(search_scale(toy, max_evaluations=most).evaluations) == most
    toy = Landscape(lambda s: 10 - s)
    assert len(search_scale(toy, max_evaluations=most).evaluations) == most


def test_no_value_is_tried_after_the_deadline(monkeypatch):
    toy = Landscape(lambda s: 10 + s)
    monkeypatch.setattr("taxolearn.tuning.scale.time", SimpleNamespace(perf_counter=lambda: len(toy.seen)))
    search_scale(toy, deadline=2.5)
    assert toy.steps == [0, -1, -2]
    late = Landscape(lambda s: 10 + s)
    assert search_scale(late, deadline=-1.0).loss == 10
    assert late.steps == [0]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("kernel.variance", "kernel.length_scale", "kernels[2].variance"), [-1, 0, -1]),
        (("kernel.words.variance", "kernel.numbers.variance"), [-1, -1]),
        # Variances of blocks, but for that of the first, are relative to those of the groups.
        (("variances[level 1]", "variances[level 2]", "kernel.numbers.variance"), [-1, -1, 0]),
    ],
    ids=["kernels", "blocks", "groups"],
)
def test_only_variances_of_functions_move(names, expected):
    toy = Landscape(lambda s: 1 + (s + 1) ** 2, (*names, "intercept_variance", "loadings[0]"))
    found = search_scale(toy)
    steps = (found.theta - toy.theta) / np.log(FACTOR)
    assert steps.tolist() == pytest.approx([*expected, 0, 0])


def test_without_variances_there_is_one_evaluation():
    nothing = Landscape(lambda s: 1 - s, ("kernel.length_scale", "intercept_variance"))
    assert len(search_scale(nothing).evaluations) == 1


@pytest.mark.parametrize("sign", [-1, 1])
def test_bounds_end_the_search(sign):
    low, high = 0.1 - 1.5 * np.log(FACTOR), 0.1 + 1.5 * np.log(FACTOR)
    toy = Landscape(lambda s: 10 + sign * s, bounds=[[low, high]])
    found = search_scale(toy, max_evaluations=50)
    assert all(low <= each.theta[0] <= high for each in found.evaluations)
    assert found.theta[0] == pytest.approx(low if sign > 0 else high)
    assert len(found.evaluations) < 10
    assert found.as_learning(toy).at_bounds == ("kernel.variance",)


def test_slow_fits_are_left_for_faster_ones_that_are_as_good():
    """Two folds may take 800 products."""
    objective = Landscape(lambda step: 1.0 - 0.01 * step, products=lambda step: 700 + 200 * step)
    assert search_scale(objective).theta is not None
    assert objective.accepted == [0]  # higher ones have the lower loss, but take too long
    objective = Landscape(lambda step: 1.0 - 0.01 * step, products=lambda step: 1000 + 300 * step)
    search_scale(objective)
    assert objective.accepted == [0, -1]


def test_a_start_that_fails_is_left():
    objective = Landscape(lambda step: np.nan if round(step) == 0 else 1.0, fails=(0,))
    assert search_scale(objective).loss == 1.0


def test_fits_that_fail_are_not_taken():
    toy = Landscape(lambda s: 10 + s, fails=(-1,))
    found = search_scale(toy)
    assert toy.steps == [0, -1, 1]
    assert found.loss == 10
    assert found.as_learning(toy).status == "converged"
    nowhere = Landscape(lambda s: 10 + s, fails=range(-9, 9))
    assert search_scale(nowhere).as_learning(nowhere).status == "failed"


def test_what_progress_raises_ends_the_search():
    X, y = problem(n=60)

    def impatient(*_):
        raise TimeoutError

    with pytest.raises(TimeoutError):
        search_scale(CrossValidationObjective(KernelLogisticClassifier(), X, y), progress=impatient)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.floats(0.1, 3.0), min_size=41, max_size=41), most=st.integers(1, 12))
def test_no_evaluation_is_better_than_the_result(values, most):
    toy = Landscape(lambda s: values[round(s) + 20])
    found = search_scale(toy, max_evaluations=most)
    losses = [each.value / toy.n_held_out for each in found.evaluations]
    assert len(losses) <= most
    assert len(set(toy.steps)) == len(toy.steps)
    assert found.loss in losses
    assert (1 - LEAST_GAIN) * found.loss <= min(losses)
    result = found.as_learning(toy)
    assert result.values[result.best] == found.loss
    assert result.theta is found.theta


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("form", FORMS)
def test_result_on_made_up_data(form, seed):
    X, y = problem(n=50, seed=seed)
    kernel = RBF(2.0, 3.0 * 30.0 ** (seed - 2))
    objective = CrossValidationObjective(KernelLogisticClassifier(kernel, **FORMS[form]), X, y)
    found = search_scale(objective)
    low, high = objective.bounds.T
    held = objective.partitions[0] >= 0
    assert (found.predictors[held] != 0).all()
    for each in found.evaluations:
        assert (low <= each.theta).all()
        assert (each.theta <= high).all()
        assert (1 - LEAST_GAIN) * found.loss * objective.n_held_out <= each.value
        for name, start, value in zip(objective.names, objective.theta, each.theta, strict=True):
            assert value == start or (name != "intercept_variance" and "length_scale" not in name)
    column = {label: c for c, label in enumerate(objective.classes)}
    log_proba = log_softmax(found.predictors / found.temperature, axis=1)
    own = np.array([log_proba[i, column[label]] for i, label in enumerate(y)])
    prior = np.sum((found.theta - objective.theta) ** 2) / 8 + np.log(found.temperature) ** 2 / 2
    assert found.loss == pytest.approx((prior - own[held].sum()) / objective.n_held_out, rel=1e-9)
    tight = objective.evaluate_held_out(found.theta, 1e-10)[0]
    assert tight.value / objective.n_held_out == pytest.approx(found.loss, rel=0.01)


# -- In a classifier --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_fit_save_and_load(tmp_path, form, loss, kernel):
    X, y = problem(n=60)
    tuning = CrossValidation(3, search="scale")
    model = KernelLogisticClassifier(kernel, loss=loss, tuning=tuning, random_state=0, **FORMS[form]).fit(X, y)
    assert model.score(X, y) > 0.5
    result = model.cv_result_
    assert result.status == "converged"
    assert 3 <= len(result.evaluations) <= 100
    assert "variances were tried in steps of a factor of 4" in str(result)
    assert model.hyperparameters_.temperature == result.temperature != 1.0
    intercept = result.names.index("intercept_variance")
    assert model.hyperparameters_.intercept_variance == pytest.approx(np.exp(result.start[intercept]))
    assert result.values[result.best] <= result.values[0]

    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.predict_log_proba(X), model.predict_log_proba(X))
    taxolearn.save(model, tmp_path / "m.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "m.taxo")
    np.testing.assert_array_equal(loaded.predict_log_proba(X), model.predict_log_proba(X))
    assert loaded.tuning.search == "scale"
    assert str(loaded.cv_result_) == str(result)
    assert "gradient" not in str(result)
    assert np.isnan(loaded.cv_result_.gradient_norms).all()


def test_tuned_is_what_fit_learns():
    X, y = problem(n=60)
    model = KernelLogisticClassifier("rbf", tuning=CrossValidation(3, search="scale"))
    learned = model.fit(X, y)
    given_values = model.tuned(X, y)
    assert given_values.tuning is None
    assert given_values.fit(X, y).hyperparameters_ == learned.hyperparameters_


def test_the_search_by_gradients_is_not_much_better():
    X, y = problem(n=200)
    scale, gradient = (
        KernelLogisticClassifier("rbf", tuning=CrossValidation(3, search=search), random_state=0).fit(X, y).cv_result_
        for search in ("scale", "gradient")
    )
    assert scale.values[scale.best] <= 1.05 * gradient.values[gradient.best]
    assert len(scale.evaluations) <= 8


@pytest.mark.parametrize(
    ("options", "status"), [({"max_evaluations": 1}, "max_evaluations"), ({"time_limit": 0}, "time_limit")]
)
def test_max_evaluations_and_time_limit_of_a_classifier(options, status):
    X, y = problem(n=60)
    model = KernelLogisticClassifier(tuning=CrossValidation(3, search="scale", **options))
    if status == "max_evaluations":
        with pytest.warns(ConvergenceWarning, match="stopped after max_evaluations=1"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    assert model.cv_result_.status == status
    assert len(model.cv_result_.evaluations) == 1
    np.testing.assert_array_equal(model.cv_result_.theta, model.cv_result_.start)


def test_ctrl_c_keeps_the_best_so_far():
    def value(step):
        if step < -1.5:
            raise KeyboardInterrupt
        return 10 + step

    toy = Landscape(value)
    found = search_scale(toy)
    assert toy.steps == [0, -1, -2]
    assert (found.status, found.loss) == ("interrupted", 9)
    assert found.as_learning(toy).message == "stopped by Ctrl-C after 2 evaluations"
    with pytest.raises(KeyboardInterrupt):
        search_scale(Landscape(lambda _: value(-2)))


def test_statuses():
    falling = Landscape(lambda s: 10 + s)
    assert search_scale(falling, max_evaluations=3).status == "max_evaluations"
    assert search_scale(falling, deadline=-1.0).status == "time_limit"
    assert search_scale(Landscape(lambda s: 10 + abs(s))).status == "converged"
    nothing = Landscape(lambda s: 10 + s, names=("kernel.length_scale",))
    assert search_scale(nothing).status == "converged"


def test_failed_searches_warn():
    X, y = problem(n=60)
    model = KernelLogisticClassifier(tuning=CrossValidation(3, search="scale"), intercept_variance=1e4, max_iter=3)
    model.kernel = Linear(1e5)
    with mock.patch("taxolearn.tuning.learn._LEAST_ITERATIONS", 1), pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert any("the start values could not be evaluated" in str(each.message) for each in caught)
    assert model.cv_result_.status == "failed"


def test_the_search_begins_where_it_is_told():
    toy = Landscape(lambda s: 10 + (s - 3) ** 2)
    found = search_scale(toy, start=toy.theta + 3 * np.log(FACTOR))
    assert toy.steps == [3, 2, 4]
    assert found.loss == 10


@pytest.mark.parametrize(("temperature", "steps"), [(1.3, [0, -1, -2, -3]), (1.05, [0]), (0.5, [0])])
def test_a_start_that_is_near_is_left_only_downwards(temperature, steps):
    toy = Landscape(lambda s: 10 + (s + 2) ** 2, temperature=lambda step: temperature)
    search_scale(toy, is_near=True)
    assert toy.steps == steps


def test_warm_starts_begin_with_what_was_learned():
    X, y = problem(n=60)
    model = KernelLogisticClassifier(Linear(1e-3), tuning=CrossValidation(3, search="scale"), warm_start=True)
    first = model.fit(X, y).cv_result_
    again = model.fit(X, y).cv_result_
    np.testing.assert_array_equal(again.evaluations[0].theta, first.theta)
    assert len(again.evaluations) < len(first.evaluations)


def test_evaluations_are_reported(capsys):
    seen = []
    toy = Landscape(lambda s: 10 + abs(s + 1))
    search_scale(toy, report=lambda *values: seen.append(values))
    assert seen == [(1, 11, 11), (2, 10, 10), (3, 11, 10)]
    X, y = problem(n=60)
    KernelLogisticClassifier(tuning=CrossValidation(3, search="scale"), verbose=2).fit(X, y)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("evaluation")]
    assert len(lines) >= 3
    assert "nan" not in "".join(lines)


def test_trace_of_the_search():
    X, y = problem(n=60)
    model = KernelLogisticClassifier(tuning=CrossValidation(3, search="scale")).fit(X, y)
    loss = plotting.learning_trace(model.cv_result_)
    assert len(loss.lines[0].get_xdata()) == len(model.cv_result_.evaluations)


def test_clear_errors():
    X, y = problem(n=60)
    with pytest.raises(ValueError, match="search is 'grid', expected one of 'gradient', 'scale'"):
        KernelLogisticClassifier(tuning=CrossValidation(search="grid")).fit(X, y)
    with pytest.raises(ValueError, match=r"checkpoint is 'run\.npz', but search=\"scale\" is too short for one"):
        KernelLogisticClassifier(tuning=CrossValidation(search="scale", checkpoint="run.npz")).fit(X, y)
    for options, match in (
        ({"max_evaluations": 0}, "max_evaluations must be finite and at least 1, got 0"),
        ({"time_limit": -1}, r"time_limit must be finite and at least 0\S*, got -1"),
    ):
        with pytest.raises(ValueError, match=match):
            KernelLogisticClassifier(tuning=CrossValidation(search="scale", **options)).fit(X, y)
