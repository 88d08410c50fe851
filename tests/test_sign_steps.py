"""Steps by the signs of derivatives: on functions whose minimum is known, and in the default learning of trees."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from test_recursive import TREE, make_rows

from taxolearn import CrossValidation, RecursiveRegularizationClassifier
from taxolearn.estimators.recursive_variances import as_recursive_tuning
from taxolearn.tuning.search import Evaluation
from taxolearn.tuning.sign_steps import step_by_signs
from taxolearn.tuning.steps import learn_in_steps

STEP = float(np.log(4))
SHORTEST = float(np.log(1.5))


class Bowl:
    """A quadratic function about ``middle`` that counts its evaluations and may fail, take long or be interrupted."""

    n_held_out = 10.0
    partitions = (np.arange(10) % 2,)

    def __init__(self, middle, curvature=1.0, *, fails=(), products=lambda theta: 1, interrupted=None):
        self.middle = np.asarray(middle, dtype=float)
        self.curvature = np.broadcast_to(curvature, self.middle.shape)
        self.names = tuple(f"variances[{k}]" for k in range(len(self.middle)))
        self.theta = np.zeros(len(self.middle))
        self.bounds = np.tile([-11.5, 11.5], (len(self.middle), 1))
        self.is_log = np.ones(len(self.middle), dtype=bool)
        self.fails, self.products, self.interrupted = fails, products, interrupted
        self.points = []

    def value(self, theta):
        return 10 + float(self.curvature @ (theta - self.middle) ** 2)

    def evaluate(self, theta, tol, progress=None):
        self.points.append(theta)
        if len(self.points) == self.interrupted:
            raise KeyboardInterrupt
        usable = len(self.points) not in self.fails
        gradient = 2 * self.curvature * (theta - self.middle)
        return Evaluation(theta, self.value(theta), gradient, usable, tol, self.products(theta), 0.0)

    def evaluate_held_out(self, theta, tol, progress=None):
        return self.evaluate(theta, tol), np.zeros((10, 2))

    def accept(self):
        pass


def learn(bowl, **options):
    return learn_in_steps(bowl, bowl.theta, CrossValidation(2, search="steps", **options), None)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-8, 8), min_size=1, max_size=6),
    st.floats(1e-3, 10),
    st.integers(1, 12),
    st.sets(st.integers(2, 12), max_size=3),
)
def test_never_worse_than_the_start_and_never_more_than_allowed(middle, curvature, most, fails):
    bowl = Bowl(middle, curvature, fails=fails)
    found = step_by_signs(bowl, first_step=STEP, max_evaluations=most)
    assert len(found.evaluations) == len(bowl.points) <= most
    assert bowl.value(found.theta) <= bowl.value(bowl.theta)
    usable = [each.value for each in found.evaluations if each.converged]
    assert found.evaluations[found.best].value == min(usable)
    for before, after in zip(bowl.points, bowl.points[1:], strict=False):
        assert np.abs(after - before).max() <= 2 * STEP + 1e-9  # at most back from a failed step and away again


def test_the_minimum_is_found_whatever_the_sizes_of_derivatives():
    bowl = Bowl([2.0, -2.0, 2.0], [1.0, 1000.0, 10.0])
    found = step_by_signs(bowl, first_step=STEP, max_evaluations=100)
    assert found.status == "converged"
    assert np.abs(found.theta - bowl.middle).max() < np.log(2)


def test_what_promises_nothing_stays():
    bowl = Bowl([3.0, 3.0], [1.0, 1e-9])
    found = step_by_signs(bowl, first_step=STEP, max_evaluations=20, least_promise=1e-3)
    assert found.theta[1] == 0
    assert abs(found.theta[0] - 3) < 1
    still = Bowl([3.0, 3.0], 1e-9)
    assert len(step_by_signs(still, first_step=STEP, max_evaluations=20, least_promise=1e-3).evaluations) == 1


def test_points_with_slow_fits_are_left():
    bowl = Bowl([5.0], products=lambda theta: 1000 if theta[0] > 2 else 1)
    found = step_by_signs(bowl, first_step=STEP, max_evaluations=50, most_products=400)
    assert 0 < found.theta[0] <= 2
    assert max(point[0] for point in bowl.points) > 2


def test_a_failed_start_is_told():
    found = step_by_signs(Bowl([5.0], fails={1}), first_step=STEP, max_evaluations=50)
    assert (found.status, found.best, len(found.evaluations)) == ("failed", 0, 1)


def test_no_point_after_the_deadline(monkeypatch):
    bowl = Bowl([100.0])
    monkeypatch.setattr("taxolearn.tuning.sign_steps.time", SimpleNamespace(perf_counter=lambda: len(bowl.points)))
    found = step_by_signs(bowl, first_step=STEP, max_evaluations=50, deadline=2.5)
    assert (found.status, len(found.evaluations)) == ("time_limit", 3)


@pytest.mark.parametrize("number", range(2, 8))
def test_ctrl_c_keeps_the_best(number):
    bowl = Bowl([-2.5, 1.0], interrupted=number)
    result = learn(bowl)
    assert result.status == "interrupted"
    assert result.values[result.best] == pytest.approx(np.min(result.values))
    assert bowl.value(result.theta) <= bowl.value(bowl.theta)


def test_ctrl_c_before_anything_is_known():
    with pytest.raises(KeyboardInterrupt):
        learn(Bowl([1.0], interrupted=1))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-8, 8), min_size=2, max_size=6), st.integers(1, 30))
def test_a_factor_first_and_then_a_few_steps(middle, most):
    bowl = Bowl(middle)
    result = learn(bowl, max_evaluations=most)
    assert len(result.evaluations) == len(bowl.points) <= most
    assert bowl.value(result.theta) <= bowl.value(bowl.theta)
    assert result.status in ("converged", "max_evaluations")
    factor = learn_in_steps(Bowl(middle), bowl.theta, CrossValidation(2, search="scale", max_evaluations=most), None)
    assert bowl.value(result.theta) <= bowl.value(factor.theta)


# -- In the classifier ------------------------------------------------------------------------------------------------


def test_a_tree_learns_in_steps_by_default():
    X, Y = make_rows(n=150)
    model = RecursiveRegularizationClassifier(TREE).fit(X, Y)
    values = model.cv_result_.values
    assert values[model.cv_result_.best] <= values[0] * (1 + 1e-3)  # within the tolerance of the fits
    assert model.cv_result_.status == "converged"
    assert len(values) < 20
    again = RecursiveRegularizationClassifier(TREE).fit(X, Y)
    assert again.C_ == model.C_
    gradient = RecursiveRegularizationClassifier(TREE, tuning=CrossValidation()).fit(X, Y).cv_result_
    assert values[model.cv_result_.best] <= gradient.values[gradient.best] * 1.02


def test_limits_of_learning():
    X, Y = make_rows(n=150)
    tuning = CrossValidation(2, search="steps", max_evaluations=4)
    with pytest.warns(ConvergenceWarning, match="max_evaluations=4"):
        short = RecursiveRegularizationClassifier(TREE, tuning=tuning).fit(X, Y)
    assert len(short.cv_result_.values) == 4
    tuning = CrossValidation(2, search="steps", time_limit=0)
    assert RecursiveRegularizationClassifier(TREE, tuning=tuning).fit(X, Y).cv_result_.status == "time_limit"
    with pytest.raises(ValueError, match='search="steps" is too short'):
        RecursiveRegularizationClassifier(TREE, tuning=CrossValidation(search="steps", checkpoint="file")).fit(X, Y)


@pytest.mark.parametrize(
    ("n", "n_labels", "subset"), [(100, 50, None), (3000, 100, None), (12_000, 10, None), (2500, 500, 1000)]
)
def test_many_rows_and_labels_limit_what_is_learned_from(n, n_labels, subset):
    model = RecursiveRegularizationClassifier(TREE)
    targets = SimpleNamespace(labels=np.random.default_rng(0).integers(-1, n_labels, size=n), n_classes=n_labels)
    tuning = as_recursive_tuning(model, targets)
    assert tuning.subset == subset
    if n == 100:
        assert tuning.folds == 5
    else:
        assert set(tuning.folds) == {-1, 0}
        assert np.mean(tuning.folds == 0) == pytest.approx(0.2, abs=0.01)
        np.testing.assert_array_equal(tuning.folds, as_recursive_tuning(model, targets).folds)
    given = CrossValidation(3)
    assert as_recursive_tuning(RecursiveRegularizationClassifier(TREE, tuning=given), targets) is given
    assert as_recursive_tuning(RecursiveRegularizationClassifier(tuning="cv"), targets).folds == 5
