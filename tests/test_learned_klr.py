"""The estimator that learns its hyperparameters."""

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxolearn import CrossValidation, KernelLogisticClassifier, Taxonomy, Tree, datasets
from taxolearn.kernels import RBF, Linear, PerClass, Precomputed
from taxolearn.model_selection import CrossValidationObjective

_FOLDS_DIFFER = "rows that are repeated or removed make other folds, and so other hyperparameters"


@pytest.fixture(scope="module")
def rings():
    """Two classes inside one another and a third beside them: no line parts them."""
    random = np.random.default_rng(0)
    angle, radius = random.uniform(0, 2 * np.pi, 90), np.repeat([1.0, 3.0, 1.0], 30)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + 0.3 * random.standard_normal((90, 2))
    X[60:] += 6.0
    return X, np.repeat(["inner", "outer", "beside"], 30)


@pytest.fixture(scope="module")
def tree():
    return datasets.make_hierarchy(150, branching=(2, 3), random_state=0)


@parametrize_with_checks(
    [KernelLogisticClassifier(tuning=CrossValidation(folds=2, max_evaluations=4, learn_intercept_variance=False))],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": _FOLDS_DIFFER,
        "check_sample_weight_equivalence_on_sparse_data": _FOLDS_DIFFER,
    },
)
@pytest.mark.filterwarnings("ignore:Learning hyperparameters. stopped after max_evaluations")
@pytest.mark.filterwarnings("ignore:The fit cannot get closer")
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_learning_finds_what_any_start_would(rings):
    X, y = rings
    tuning = CrossValidation(deviation=None, learn_temperature=False)
    kernels = ("rbf", RBF(0.7, variance=3.0))
    models = [KernelLogisticClassifier(kernel, tuning=tuning).fit(X, y) for kernel in kernels]
    losses = [model.cv_result_.values[model.cv_result_.best] for model in models]
    assert models[0].cv_result_.status == "converged"
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert losses[0] < 0.7 * models[0].cv_result_.values[0]
    kernel = models[0].hyperparameters_.kernel
    assert isinstance(kernel, RBF)
    assert models[0].expansions_[0].kernel == kernel
    assert models[0].result_.status == "converged"


def test_the_final_fit_has_the_learned_hyperparameters(tree):
    model = KernelLogisticClassifier(taxonomy=tree.taxonomy, tol=1e-10).fit(tree.X, tree.y)
    learned = model.hyperparameters_
    assert list(learned.variances) == ["level 1", "level 2"]
    given = KernelLogisticClassifier(
        learned.kernel,
        taxonomy=tree.taxonomy,
        intercept_variance=learned.intercept_variance,
        tuning=None,
        tol=1e-10,
        coupling=Tree(variances=list(learned.variances.values())),
    ).fit(tree.X, tree.y)
    np.testing.assert_allclose(model.coef_, given.coef_, rtol=1e-4, atol=1e-6)
    assert given.cv_result_ is None


def test_the_gradient_vanishes_at_what_was_learned(tree):
    model = KernelLogisticClassifier(taxonomy=tree.taxonomy, random_state=3, coupling=Tree(tying="subtree")).fit(
        tree.X, tree.y
    )
    trace = model.cv_result_
    objective = CrossValidationObjective(model, tree.X, tree.y)
    assert objective.names == trace.names
    value, gradient = objective.value_and_gradient(trace.theta)
    assert value / objective.n_held_out == pytest.approx(trace.values[trace.best], rel=1e-4)
    inside = (trace.theta > objective.bounds[:, 0]) & (trace.theta < objective.bounds[:, 1])
    assert np.abs(gradient[inside] / objective.n_held_out).max() < 2e-3


def test_a_seed_makes_the_same_folds_with_and_without_a_taxonomy(tree):
    names = np.array([f"{'zyxwvu'[k]}{k}" for k in range(6)])  # not in the order of the tree
    taxonomy = Taxonomy.from_paths([["a" if k < 3 else "b", name] for k, name in enumerate(names.tolist())])
    y = names[np.unique(tree.y, return_inverse=True)[1]]
    flat, hierarchical = (
        CrossValidationObjective(KernelLogisticClassifier(taxonomy=each, random_state=5), tree.X, y)
        for each in (None, taxonomy)
    )
    np.testing.assert_array_equal(flat.partitions[0], hierarchical.partitions[0])
    model = KernelLogisticClassifier(
        taxonomy=taxonomy, random_state=5, tuning=CrossValidation(max_evaluations=100)
    ).fit(tree.X, y)
    first = hierarchical.evaluate(hierarchical.theta, 1e-6).value / hierarchical.n_held_out
    assert model.cv_result_.values[0] == pytest.approx(first, rel=1e-4)


def test_one_kernel_per_class(rings):
    X, y = rings
    model = KernelLogisticClassifier(
        PerClass("rbf"), tuning=CrossValidation(learn_intercept_variance=False, max_evaluations=200)
    ).fit(X, y)
    kernels = model.hyperparameters_.kernels
    assert set(kernels) == {"inner", "outer", "beside"}
    assert len(model.cv_result_.names) == 6
    assert len(set(kernels.values())) == 3


def test_one_against_rest(rings):
    X, y = rings
    model = OneVsRestClassifier(
        KernelLogisticClassifier("rbf", tuning=CrossValidation(learn_intercept_variance=False))
    ).fit(X, y)
    assert model.score(X, y) > 0.9
    assert all(len(each.cv_result_.names) == 2 for each in model.estimators_)


def test_what_is_fixed_stays(rings):
    X, y = rings
    model = KernelLogisticClassifier(
        RBF(2.0, variance=3.0, fixed="length_scale"), tuning=CrossValidation(learn_intercept_variance=False)
    ).fit(X, y)
    assert model.cv_result_.names == ("kernel.variance",)
    assert model.hyperparameters_.kernel.length_scale == 2.0
    assert model.hyperparameters_.intercept_variance == 1.0
    model = KernelLogisticClassifier(
        RBF(2.0, variance=3.0, fixed=True), tuning=CrossValidation(learn_intercept_variance=False)
    ).fit(X, y)
    assert model.cv_result_.status == "no_parameters"
    assert model.hyperparameters_.kernel == RBF(2.0, variance=3.0, fixed=True)


def test_folds_of_any_kind(rings):
    X, y = rings
    for cv in (3, KFold(3, shuffle=True, random_state=0), np.arange(90) % 3):
        assert KernelLogisticClassifier("rbf", tuning=CrossValidation(folds=cv)).fit(X, y).score(X, y) > 0.9
    mean = KernelLogisticClassifier("rbf", tuning=CrossValidation(folds=3, repeats=3)).fit(X, y)
    assert mean.cv_result_.n_held_out == 90


def test_a_subset_serves_for_learning(rings):
    X, y = rings
    y = y.astype(object)
    y[0] = "rare"  # not in the subset
    model = KernelLogisticClassifier("rbf", tuning=CrossValidation(subset=45, learn_intercept_variance=False)).fit(X, y)
    assert model.cv_result_.n_held_out in (44.0, 45.0)
    assert model.classes_.tolist() == ["beside", "inner", "outer", "rare"]
    assert model.expansions_[0].basis.shape == X.shape
    share = KernelLogisticClassifier("rbf", tuning=CrossValidation(subset=0.5, learn_intercept_variance=False)).fit(
        X, y
    )
    assert share.hyperparameters_ == model.hyperparameters_


def test_the_same_seed_gives_the_same_model(rings):
    X, y = rings
    first, second = (KernelLogisticClassifier("rbf", random_state=7).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.cv_result_.thetas, second.cv_result_.thetas)
    other = KernelLogisticClassifier("rbf", random_state=8).fit(X, y)
    assert not np.array_equal(first.cv_result_.theta, other.cv_result_.theta)


def test_a_kernel_matrix(rings):
    X, y = rings
    K = RBF(1.0)(X)
    for subset in (None, 60):
        model = KernelLogisticClassifier(
            Precomputed(), tuning=CrossValidation(subset=subset, learn_intercept_variance=False)
        ).fit(K, y)
        assert model.cv_result_.names == ("kernel.variance",)
        assert model.hyperparameters_.kernel.variance > 1.0


def test_running_out_of_evaluations_warns(rings):
    X, y = rings
    with pytest.warns(ConvergenceWarning, match="stopped after max_evaluations=2"):
        model = KernelLogisticClassifier("rbf", tuning=CrossValidation(max_evaluations=2)).fit(X, y)
    assert len(model.cv_result_.evaluations) == 2


def test_a_time_limit_ends_learning(rings):
    X, y = rings
    model = KernelLogisticClassifier("rbf", tuning=CrossValidation(time_limit=0.0)).fit(X, y)
    assert model.cv_result_.status == "time_limit"
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tuning": "learn"}, "tuning is 'learn', expected \"cv\", a CrossValidation"),
        ({"kernel": "rfb"}, "kernel is 'rfb', expected a kernel or one of 'linear', 'rbf'"),
        ({"tuning": CrossValidation(folds=1)}, "folds is 1, expected at least 2 folds"),
        ({"tuning": CrossValidation(subset=1)}, "subset must be finite and at least 2, got 1"),
        ({"tuning": CrossValidation(subset=3)}, "subset=3 leaves 3 rows, no two of the same class"),
        ({"tuning": CrossValidation(checkpoint=5)}, "checkpoint must be a path or None, got 5"),
        ({"tuning": CrossValidation(checkpoint=".")}, "checkpoint: cannot read .*choose another path"),
        ({"tuning": CrossValidation(max_evaluations=0)}, "max_evaluations must be finite and at least 1, got 0"),
        ({"tuning": CrossValidation(time_limit=-1.0)}, "time_limit must be finite and at least 0"),
    ],
)
def test_bad_arguments(rings, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KernelLogisticClassifier(**options).fit(*rings)


def test_every_class_once():
    with pytest.raises(ValueError, match=r"no class with two rows.*tuning=None"):
        KernelLogisticClassifier().fit(np.eye(3), ["a", "b", "c"])


def test_a_checkpoint_ends_where_one_run_would(rings, tmp_path):
    X, y = rings
    whole = KernelLogisticClassifier("rbf").fit(X, y)
    path = tmp_path / "learning.npz"
    with pytest.warns(ConvergenceWarning):
        KernelLogisticClassifier("rbf", tuning=CrossValidation(checkpoint=path, max_evaluations=3)).fit(X, y)
    model = KernelLogisticClassifier("rbf", tuning=CrossValidation(checkpoint=path)).fit(X, y)
    np.testing.assert_array_equal(model.cv_result_.thetas, whole.cv_result_.thetas)
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ValueError, match=r"learning\.npz"):
        clone(model).fit(X + 1.0, y)


_KILLED = """
    import sys
    import numpy as np
    from taxolearn import CrossValidation, KernelLogisticClassifier, Tree, datasets

    data = datasets.make_hierarchy(400, branching=(3, 4), random_state=1)
    print("ready", flush=True)
    tuning = CrossValidation(checkpoint=sys.argv[1])
    model = KernelLogisticClassifier(taxonomy=data.taxonomy, coupling=Tree("node"), tuning=tuning, n_threads=1)
    print(model.fit(data.X, data.y).cv_result_.theta.tobytes().hex())
"""


def test_a_killed_run_goes_on(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(_KILLED)]
    whole = subprocess.run([*command, tmp_path / "whole.npz"], check=True, capture_output=True, text=True).stdout
    random = np.random.default_rng(0)
    kills = 0
    for _ in range(3):
        process = subprocess.Popen([*command, tmp_path / "killed.npz"], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(random.uniform(0.02, 0.4))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert kills > 0
    end = subprocess.run([*command, tmp_path / "killed.npz"], check=True, capture_output=True, text=True).stdout
    assert end == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed.npz", "whole.npz"]


def test_ctrl_c_gives_the_best_so_far(rings, monkeypatch):
    X, y = rings
    evaluate = CrossValidationObjective.evaluate

    def interrupted(self, theta, tol, progress=None):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(theta)
        return evaluate(self, theta, tol, progress)

    seen: list[object] = []
    monkeypatch.setattr(CrossValidationObjective, "evaluate", interrupted)
    model = KernelLogisticClassifier("rbf").fit(X, y)
    assert model.cv_result_.status == "interrupted"
    assert len(model.cv_result_.evaluations) == 3
    assert model.score(X, y) > 0.5


def test_a_linear_kernel_of_another_scale_is_found():
    X, y = load_iris(return_X_y=True)
    models = [
        KernelLogisticClassifier(intercept_variance=0.0, tuning=CrossValidation(learn_intercept_variance=False)).fit(
            scale * X, y
        )
        for scale in (1.0, 1e3)
    ]
    assert all(isinstance(model.hyperparameters_.kernel, Linear) for model in models)
    first, second = (model.hyperparameters_.kernel.variance for model in models)
    assert first == pytest.approx(1e6 * second, rel=0.05)
