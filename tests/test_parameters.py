"""Parameters as scikit-learn sees them: few, nested, cloned, searched; and what a fitted model tells of its own."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.gaussian_process import kernels as process_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxolearn import (
    CrossValidation,
    Hyperparameters,
    Independent,
    KernelLogisticClassifier,
    LearnedCoupling,
    PartialLabels,
    Solver,
    Taxonomy,
    Tree,
)
from taxolearn.files.version1 import upgrade_hyperparameters, upgrade_parameters
from taxolearn.kernels import RBF, Function, Linear, PerClass
from taxolearn.kernels.argument import start_kernel

TREE = Taxonomy.from_labels(["a/x", "a/y", "b"])


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_the_constructor_is_short():
    parameters = inspect.signature(KernelLogisticClassifier).parameters
    assert next(iter(parameters)) == "kernel"
    assert len(parameters) <= 16


class TestNested:
    def test_all_parts_are_listed(self):
        model = KernelLogisticClassifier(
            RBF(2.0) + 3.0 * Linear(),
            coupling=LearnedCoupling(2, base=Tree("node")),
            tuning=CrossValidation(7),
            labels=PartialLabels("own"),
            solver=Solver("ncg"),
        )
        parameters = model.get_params()
        assert parameters["kernel__0__length_scale"] == 2.0
        assert parameters["kernel__1__variance"] == 3.0
        assert parameters["coupling__base__tying"] == "node"
        assert parameters["tuning__folds"] == 7
        assert parameters["labels__inner"] == "own"
        assert parameters["solver__method"] == "ncg"
        assert clone(model).get_params().keys() == parameters.keys()
        assert clone(model).kernel is model.kernel

    def test_kernels_are_replaced_and_stay_as_they_were(self):
        kernel = RBF(2.0) + 3.0 * Linear()
        model, twin = (KernelLogisticClassifier(kernel) for _ in range(2))
        model.set_params(kernel__0__length_scale=5.0, kernel__1__variance=7.0)
        assert model.kernel == RBF(5.0) + 7.0 * Linear()
        assert twin.kernel == kernel == RBF(2.0) + 3.0 * Linear()
        assert KernelLogisticClassifier(RBF()).set_params(kernel=Linear(), kernel__variance=3.0).kernel == Linear(3.0)
        own = KernelLogisticClassifier(PerClass(RBF(2.0))).set_params(kernel__kernel__variance=4.0)
        assert own.kernel == PerClass(RBF(2.0, 4.0))
        function = KernelLogisticClassifier(Function(process_kernels.RBF(2.0)))
        assert function.set_params(kernel__function__length_scale=3.0).kernel.function.length_scale == 3.0

    def test_values_are_not_shared_after_a_change(self):
        solver = Solver()
        first, second = (KernelLogisticClassifier(solver=solver) for _ in range(2))
        first.set_params(solver__precision="double")
        assert (first.solver.precision, second.solver.precision, solver.precision) == ("double", "auto", "auto")

    def test_short_names_become_the_values_they_mean(self):
        model = KernelLogisticClassifier(solver="ncg", labels="own", taxonomy=TREE)
        model.set_params(tuning__folds=3, solver__precision="double", labels__tol=0.1, coupling__tying="node")
        assert model.tuning.folds == 3
        assert (model.solver.method, model.solver.precision) == ("ncg", "double")
        assert (model.labels.inner, model.labels.tol) == ("own", 0.1)
        assert isinstance(model.coupling, Tree)
        assert model.coupling.tying == "node"
        assert isinstance(KernelLogisticClassifier().set_params(coupling__tying="node").coupling, Independent)

    @pytest.mark.parametrize(
        ("model", "change", "match"),
        [
            (KernelLogisticClassifier(), {"kernel__variance": 1.0}, "kernel is 'linear', which has no parameter"),
            (KernelLogisticClassifier(tuning=None), {"tuning__folds": 3}, "tuning is None, which has no parameter"),
            (
                KernelLogisticClassifier(RBF()),
                {"kernel__width": 1.0},
                r"RBF has no .* 'width'; it has .*'length_scale'",
            ),
            (KernelLogisticClassifier(RBF() * Linear()), {"kernel__2__variance": 1.0}, "Product has no parameter '2'"),
            (KernelLogisticClassifier(RBF()), {"kernel__variance": -1.0}, "RBF: variance must be finite and above 0"),
            (KernelLogisticClassifier(), {"speed": 3}, "Invalid parameter 'speed'"),
            (KernelLogisticClassifier(), {"speed__more": 3}, "Invalid parameter 'speed'"),
        ],
    )
    def test_errors(self, model, change, match):
        with pytest.raises(ValueError, match=match):
            model.set_params(**change)

    def test_grids(self, iris):
        model = make_pipeline(StandardScaler(), KernelLogisticClassifier(RBF(variance=10.0), tuning=None))
        grid = {
            "kernellogisticclassifier__kernel__length_scale": [0.01, 1.0, 100.0],
            "kernellogisticclassifier__solver__method": ["lbfgs", "exact"],
        }
        search = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(*iris)
        assert search.best_estimator_[-1].kernel == RBF(1.0, 10.0)
        scores = search.cv_results_["mean_test_score"].reshape(3, 2)
        assert_allclose(scores[:, 0], scores[:, 1], rtol=1e-3)
        assert scores.max() > scores.min() + 0.5


class TestNamesOfKernels:
    @pytest.mark.parametrize("name", ["linear", "rbf", "cosine"])
    def test_a_name_means_the_same_kernel_learned_or_not(self, iris, name):
        X, y = iris
        expected = start_kernel(name, X)
        fixed = KernelLogisticClassifier(name, tuning=None).fit(X, y)
        assert fixed.hyperparameters_.kernel == expected
        learned = KernelLogisticClassifier(name, tuning=CrossValidation(time_limit=0.0)).fit(X, y)
        assert learned.hyperparameters_ == fixed.hyperparameters_
        assert_allclose(learned.predict_proba(X), fixed.predict_proba(X), atol=1e-6)

    def test_linear_is_the_default(self, iris):
        assert KernelLogisticClassifier().kernel == "linear"
        with pytest.raises(TypeError, match=r"kernel must be one of taxolearn.kernels, a name or a callable.*NoneType"):
            KernelLogisticClassifier(None, tuning=None).fit(*iris)


class TestHyperparameters:
    def test_one_kernel(self, iris):
        found = KernelLogisticClassifier(Linear(2.0), intercept_variance=0.5, tuning=None).fit(*iris).hyperparameters_
        assert isinstance(found, Hyperparameters)
        assert (found.kernel, found.kernels, found.intercept_variance) == (Linear(2.0), {}, 0.5)
        assert (found.variances, found.loadings) == ({}, None)
        assert found.to_dict() == {"kernel": Linear(2.0), "intercept_variance": 0.5, "temperature": 1.0}
        assert "intercept_variance=0.5" in repr(found)
        with pytest.raises(AttributeError):
            found.kernel = RBF()

    def test_kernels_groups_and_loadings(self, iris):
        X, y = iris
        labels = np.array(["a/x", "a/y", "b"])[y]
        tree = KernelLogisticClassifier(taxonomy=TREE, coupling=Tree(variances=[2.0, 3.0]), tuning=None).fit(X, labels)
        assert tree.hyperparameters_.variances == {"level 1": 2.0, "level 2": 3.0}
        own = KernelLogisticClassifier(PerClass(RBF(2.0)), tuning=None).fit(X, y).hyperparameters_
        assert own.kernel is None
        assert own.kernels == dict.fromkeys(range(3), RBF(2.0))
        B = np.arange(6.0).reshape(3, 2)
        shared = KernelLogisticClassifier(coupling=LearnedCoupling(B=B), tuning=None).fit(X, y).hyperparameters_
        assert_array_equal(shared.loadings, B)
        assert shared == Hyperparameters(shared.kernel, 1.0, loadings=B)
        assert shared != Hyperparameters(shared.kernel, 1.0, loadings=B + 1)
        assert shared != Hyperparameters(shared.kernel, 1.0)


class TestWarmStart:
    def test_models_are_compared_by_all_their_numbers(self, iris):
        """Long arrays are shortened where they are printed, so their text tells no difference in the middle."""
        X, y = iris
        start = np.ones(2000)
        other = start.copy()
        other[1000] = 3.0
        assert repr(start) == repr(other)
        X = np.hstack([X, np.zeros((len(X), 1996))])
        tuning = CrossValidation(3, max_evaluations=3)

        def first_value(scales):
            model = KernelLogisticClassifier(Function(Scaled(start)), tuning=tuning, warm_start=True, n_threads=1)
            with pytest.warns(match="max_evaluations"):
                model.fit(X, y)
            model.kernel = Function(Scaled(scales))
            with pytest.warns(match="max_evaluations"):
                model.fit(X, y)
            return model.cv_result_.start

        learned, cold = first_value(start), first_value(other)
        assert np.abs(learned).max() > 0.01  # it goes on
        assert_allclose(cold, 0.0, atol=1e-12)  # another kernel starts where it was given


class Scaled:
    """A kernel with an array for a parameter, as scikit-learn would have it."""

    def __init__(self, scales):
        self.scales = scales

    def get_params(self, deep=True):
        return {"scales": self.scales}

    def __call__(self, X, Y):
        return (X * self.scales) @ (Y * self.scales).T

    def __repr__(self):
        return f"Scaled({self.scales!r})"


class TestVersion1:
    def test_parameters_have_new_names(self):
        old = {
            "kernel": None,
            "taxonomy": TREE,
            "coupling": "identity",
            "tying": "subtree",
            "variances": 2.0,
            "sigma2": 3.0,
            "hyperparameters": "cv",
            "cv": 4,
            "cv_samples": 10,
            "learn_sigma2": False,
            "inner_labels": "own",
            "em_rounds": 7,
            "method": "ncg",
            "state": "weights",
            "algorithm": "tiled",
            "tol": 0.1,
        }
        model = KernelLogisticClassifier(**upgrade_parameters(old))
        assert (model.kernel, model.intercept_variance, model.tol) == ("linear", 3.0, 0.1)
        assert isinstance(model.coupling, Independent)
        assert (model.coupling.tying, model.coupling.variances) == ("subtree", 2.0)
        assert (model.tuning.folds, model.tuning.subset, model.tuning.learn_intercept_variance) == (4, 10, False)
        assert (model.labels.inner, model.labels.max_rounds) == ("own", 7)
        assert (model.solver.method, model.solver.space, model.solver.products) == ("ncg", "weights", "tiled")

    @pytest.mark.parametrize(
        ("old", "coupling"),
        [
            ({}, "auto"),
            ({"coupling": "tree"}, "tree"),
            ({"coupling": "identity"}, "independent"),
            ({"taxonomy": TREE, "tying": "node"}, Tree("node")),
            ({"coupling": LearnedCoupling(2, base="none")}, LearnedCoupling(2, base=None)),
            (
                {"taxonomy": TREE, "tying": "node", "coupling": LearnedCoupling(2)},
                LearnedCoupling(2, base=Tree("node")),
            ),
        ],
    )
    def test_couplings(self, old, coupling):
        assert repr(upgrade_parameters(old)["coupling"]) == repr(coupling)

    def test_fixed_hyperparameters(self):
        new = upgrade_parameters({"kernel": None, "hyperparameters": "fixed"})
        assert (new["kernel"], new["tuning"]) == (Linear(), None)
        found = Hyperparameters(**upgrade_hyperparameters({"kernel": Linear(), "sigma2": 2.0, "variance": 1.0}))
        assert found == Hyperparameters(Linear(), 2.0)
