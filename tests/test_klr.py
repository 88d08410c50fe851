"""The estimator: scikit-learn's law, the optimum by other means, invariances, and what a model is."""

import pickle
import warnings

import numpy as np
import oracle
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.special import expit, log_softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxolearn import FitResult, KernelLogisticClassifier, Solver
from taxolearn.kernels import Linear

VARIANCE, SIGMA2 = 0.8, 2.5
METHODS = ["lbfgs", "ncg", "newton"]
WAYS = [
    ("lbfgs", "coefficients"),
    ("lbfgs", "weights"),
    ("ncg", "coefficients"),
    ("ncg", "weights"),
    ("newton", "coefficients"),
]
TIGHT = {"tol": 1e-13, "solver": Solver(precision="double")}


def problem(n=90, d=7, n_classes=4, seed=0, density=0.6):
    """Dense inputs with many zeros, and noisy labels of every class."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d)) * (generator.random((n, d)) < density)
    u = X @ generator.standard_normal((d, n_classes)) * 1.5 + generator.gumbel(size=(n, n_classes))
    y = u.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def classifier(**parameters):
    return KernelLogisticClassifier(
        **{"kernel": Linear(VARIANCE), "intercept_variance": SIGMA2, **parameters}, tuning=None
    )


def radius(model):
    """How far the weights may be from the optimum, in the norm of the prior: |W - W*|^2 / 2 <= gap."""
    return np.sqrt(2 * max(model.result_.gap, 0))


def assert_same_model(a, b, X, atol=1e-6):
    np.testing.assert_array_equal(a.classes_, b.classes_)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=atol)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=atol)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=atol)


def assert_identical(a, b):
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    assert a.result_.objective == b.result_.objective
    assert a.result_.gap == b.result_.gap
    assert a.n_iter_ == b.n_iter_


# Newton's steps are few and large: only at a tiny gap do weights of rows equal repetitions to the checks' tolerance.
@parametrize_with_checks(
    [
        KernelLogisticClassifier(Linear(), tuning=None),
        KernelLogisticClassifier(Linear(), tol=1e-17, tuning=None),
        KernelLogisticClassifier(Linear(), tuning=None, solver=Solver(space="coefficients")),
        KernelLogisticClassifier(Linear(), tuning=None, solver="ncg"),
        KernelLogisticClassifier(Linear(), tuning=None, solver=Solver(method="ncg", space="coefficients")),
        KernelLogisticClassifier(Linear(), tol=1e-13, tuning=None, solver="newton"),
    ],
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


class TestOptimum:
    """The fit against independent computations of the same problem."""

    @pytest.mark.parametrize(("method", "state"), WAYS)
    @pytest.mark.parametrize("precision", ["single", "double"])
    @pytest.mark.parametrize("sigma2", [0.0, SIGMA2])
    def test_objective_and_gap_are_those_of_numpy(self, method, state, precision, sigma2):
        X, y = problem()
        model = classifier(
            intercept_variance=sigma2, tol=1e-4, solver=Solver(method=method, space=state, precision=precision)
        ).fit(X, y)
        arguments = (X, y, model.coef_, model.intercept_, VARIANCE, sigma2)
        assert model.result_.objective == pytest.approx(oracle.primal(*arguments), rel=1e-12)
        assert model.result_.gap == pytest.approx(oracle.gap(*arguments), rel=1e-6, abs=1e-10)
        assert model.result_.relative_gap == model.result_.gap / model.result_.objective <= 1e-4
        assert model.result_.status == "converged"
        if sigma2 == 0:
            assert not model.intercept_.any()

    @pytest.mark.parametrize(("method", "state"), WAYS)
    def test_model_is_the_optimum_of_scipy(self, method, state):
        X, y = problem()
        coef, intercept = oracle.optimum(X, y, 4, VARIANCE, SIGMA2)
        model = classifier(tol=1e-13, solver=Solver(precision="double", method=method, space=state)).fit(X, y)
        best = oracle.primal(X, y, coef, intercept, VARIANCE, SIGMA2)
        assert model.result_.objective == pytest.approx(best, rel=1e-10)
        np.testing.assert_allclose(model.coef_, coef, atol=1e-5)
        np.testing.assert_allclose(model.intercept_, intercept, atol=1e-5)

    @pytest.mark.parametrize("variance", [1e-12, 1.0, 1e12])
    def test_weights_converge_at_any_variance(self, variance):
        generator = np.random.default_rng(0)
        X, y = generator.normal(size=(3000, 5)), generator.integers(4, size=3000)
        model = classifier(kernel=Linear(variance), intercept_variance=1.0, solver=Solver(space="weights")).fit(X, y)
        assert model.result_.status == "converged"

    def test_gap_bounds_the_distance_to_the_optimum(self):
        X, y = problem()
        coef, intercept = oracle.optimum(X, y, 4, VARIANCE, SIGMA2)
        best = oracle.primal(X, y, coef, intercept, VARIANCE, SIGMA2)
        for iterations in range(6):
            with pytest.warns(ConvergenceWarning):
                model = classifier(max_iter=iterations, tol=1e-12).fit(X, y)
            assert 0 < model.result_.objective - best <= model.result_.gap
            square = ((model.coef_ - coef) ** 2).sum() / VARIANCE + ((model.intercept_ - intercept) ** 2).sum() / SIGMA2
            assert 0 < np.sqrt(square) <= radius(model)

    @pytest.mark.parametrize("variance", [0.01, 1.0, 30.0])
    @pytest.mark.parametrize("sigma2", [0.01, 4.0])
    def test_model_is_that_of_logistic_regression(self, variance, sigma2):
        X, y = problem()
        column = np.full((len(X), 1), np.sqrt(sigma2 / variance))
        other = LogisticRegression(C=variance, fit_intercept=False, solver="newton-cg", tol=1e-12, max_iter=1000)
        other.fit(np.hstack([X, column]), y)
        model = KernelLogisticClassifier(Linear(variance), intercept_variance=sigma2, **TIGHT, tuning=None).fit(X, y)
        np.testing.assert_allclose(model.coef_, other.coef_[:, :-1], atol=2e-5)
        np.testing.assert_allclose(model.intercept_, other.coef_[:, -1] * column[0], atol=2e-5)

    def test_weighted_objective_and_optimum(self):
        X, y = problem()
        weights = np.random.default_rng(3).random(len(y)) * 3
        coef, intercept = oracle.optimum(X, y, 4, VARIANCE, SIGMA2, weights)
        model = classifier(**TIGHT).fit(X, y, weights)
        expected = oracle.primal(X, y, model.coef_, model.intercept_, VARIANCE, SIGMA2, weights)
        assert model.result_.objective == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(model.coef_, coef, atol=1e-5)
        np.testing.assert_allclose(model.intercept_, intercept, atol=1e-5)


class TestInvariance:
    """What must not matter to the model."""

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    @pytest.mark.parametrize(("method", "state"), WAYS)
    def test_state_and_method(self, kind, method, state):
        X, y = problem()
        X = sp.csr_array(X) if kind == "sparse" else X
        model = classifier(tol=1e-13, solver=Solver(precision="double", method=method, space=state)).fit(X, y)
        assert model.result_.space == state
        assert_same_model(model, classifier(**TIGHT).fit(X, y), X)

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    @pytest.mark.parametrize("state", ["coefficients", "weights"])
    def test_precision(self, kind, state):
        X, y = problem(n=300, d=20)
        single = classifier(solver=Solver(space=state, precision="single")).fit(
            sp.csr_array(X) if kind == "sparse" else X, y
        )
        double = classifier(tol=1e-13, solver=Solver(precision="double", space=state)).fit(X, y)
        assert (single.result_.precision, double.result_.precision) == ("single", "double")
        assert single.result_.relative_gap <= 1e-6
        scale = np.sqrt(VARIANCE * (X**2).sum(axis=1) + SIGMA2)[:, None]
        difference = np.abs(single.decision_function(X) - double.decision_function(X))
        assert (difference <= scale * (radius(single) + radius(double))).all()

    def test_automatic_precision_goes_on_in_double_where_single_ends(self):
        X, y = problem(n=2600, d=40, n_classes=40)
        model = classifier(tol=1e-13).fit(X, y)
        assert len(X) * X.shape[1] * 40 > 4e6
        assert model.result_.status == "converged"
        assert model.result_.precision == "double"
        assert classifier(tol=1e-3).fit(X, y).result_.precision == "single"
        with pytest.warns(ConvergenceWarning, match='cannot get closer .* Solver.precision="auto"'):
            assert classifier(tol=1e-14, solver=Solver(precision="single")).fit(X, y).result_.status == "stalled"

    @pytest.mark.parametrize("state", ["coefficients", "weights"])
    def test_form_of_the_inputs(self, state):
        X, y = problem()
        model = classifier(tol=1e-13, solver=Solver(precision="double", space=state)).fit(X, y)
        frozen = X.copy()
        frozen.flags.writeable = False
        forms = [
            X.tolist(),
            np.asfortranarray(X),
            frozen,
            np.repeat(X, 2, axis=0)[::2],
            pd.DataFrame(X),
            pl.DataFrame(X),
        ]
        for form in forms:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                assert_same_model(
                    classifier(tol=1e-13, solver=Solver(precision="double", space=state)).fit(form, y), model, X
                )

    @pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
    @pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
    def test_form_of_sparse_inputs(self, form, container):
        X, y = problem()
        model = classifier(**TIGHT).fit(X, y)
        sparse = container(X).asformat(form)
        assert_same_model(classifier(**TIGHT).fit(sparse, y), model, sparse)

    @pytest.mark.parametrize("indices", [np.int32, np.int64])
    @pytest.mark.parametrize("indptr", [np.int32, np.int64])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_types_of_sparse_inputs(self, indices, indptr, dtype):
        X, y = problem()
        X = X.astype(np.float32)  # so that all types hold the same numbers
        sparse = sp.csr_array(X.astype(dtype))
        sparse.indices, sparse.indptr = sparse.indices.astype(indices), sparse.indptr.astype(indptr)
        for array in (sparse.data, sparse.indices, sparse.indptr):
            array.flags.writeable = False
        model = classifier(**TIGHT).fit(sparse, y)
        assert_same_model(model, classifier(**TIGHT).fit(X.astype(float), y), sparse)
        assert sparse.indices.dtype == indices
        assert sparse.indptr.dtype == indptr

    @pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, bool])
    def test_types_of_dense_inputs(self, dtype):
        X, y = problem()
        X = np.abs(np.round(2 * X)).astype(dtype)
        assert_same_model(classifier(**TIGHT).fit(X, y), classifier(**TIGHT).fit(X.astype(float), y), X)

    @pytest.mark.parametrize(("method", "state"), WAYS)
    def test_order_of_the_classes(self, method, state):
        X, y = problem()
        permutation = np.array([2, 0, 3, 1])
        model = classifier(tol=1e-13, solver=Solver(precision="double", method=method, space=state)).fit(X, y)
        permuted = classifier(tol=1e-13, solver=Solver(precision="double", method=method, space=state)).fit(
            X, permutation[y]
        )
        np.testing.assert_allclose(permuted.coef_[permutation], model.coef_, atol=1e-6)
        np.testing.assert_allclose(permuted.intercept_[permutation], model.intercept_, atol=1e-6)
        np.testing.assert_array_equal(permuted.predict(X), permutation[model.predict(X)])

    def test_order_of_the_rows(self):
        X, y = problem()
        order = np.random.default_rng(5).permutation(len(y))
        assert_same_model(classifier(**TIGHT).fit(X[order], y[order]), classifier(**TIGHT).fit(X, y), X)

    @pytest.mark.parametrize(("method", "state"), WAYS)
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_weights_are_repetitions(self, method, state, kind):
        X, y = problem()
        X = sp.csr_array(X) if kind == "sparse" else X
        repeats = np.random.default_rng(4).integers(0, 4, len(y))
        rows = np.repeat(np.arange(len(y)), repeats)
        weighted = classifier(tol=1e-13, solver=Solver(precision="double", method=method, space=state)).fit(
            X, y, sample_weight=repeats
        )
        repeated = classifier(tol=1e-13, solver=Solver(precision="double", method=method, space=state)).fit(
            X[rows], y[rows]
        )
        assert_same_model(weighted, repeated, X)

    def test_two_classes_are_binary_logistic_regression(self):
        # Binary regression has one weight vector w = w_1 - w_0, so its prior variance is twice that of a class.
        X, y = problem(n_classes=2)
        column = np.full((len(X), 1), np.sqrt(SIGMA2 / VARIANCE))
        other = LogisticRegression(C=2 * VARIANCE, fit_intercept=False, solver="newton-cg", tol=1e-12)
        other.fit(np.hstack([X, column]), y)
        model = classifier(**TIGHT).fit(X, y)
        np.testing.assert_allclose(model.coef_[1] - model.coef_[0], other.coef_[0, :-1], atol=2e-5)
        np.testing.assert_allclose(model.coef_[0], -model.coef_[1], atol=2e-6)
        scores = model.decision_function(X)
        assert scores.shape == (len(X),)
        np.testing.assert_allclose(scores, other.decision_function(np.hstack([X, column])), atol=1e-4)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(scores), rtol=1e-12)

    def test_class_weights_are_sample_weights(self):
        X, y = problem()
        given = {0: 2.0, 1: 0.5, 3: 3.0}
        rows = np.array([2.0, 0.5, 1.0, 3.0])[y]
        model = classifier(class_weight=given, **TIGHT).fit(X, y)
        assert_same_model(model, classifier(**TIGHT).fit(X, y, rows), X)
        extra = np.random.default_rng(6).random(len(y))
        model = classifier(class_weight=given, **TIGHT).fit(X, y, extra)
        assert_same_model(model, classifier(**TIGHT).fit(X, y, rows * extra), X)

    def test_balanced_class_weights_are_inverse_frequencies(self):
        X, y = problem()
        rows = (len(y) / (4 * np.bincount(y)))[y]
        balanced = classifier(class_weight="balanced", **TIGHT).fit(X, y)
        assert_same_model(balanced, classifier(**TIGHT).fit(X, y, rows), X)

    @pytest.mark.parametrize("labels", [["dog", "cat", "ape", "eel"], [2.0, -1.0, 7.0, 5.0]])
    def test_names_of_the_classes(self, labels):
        X, y = problem()
        names = np.array(labels)
        model = classifier(**TIGHT).fit(X, names[y])
        np.testing.assert_array_equal(model.classes_, np.sort(names))
        assert model.classes_.dtype == names.dtype
        plain = classifier(**TIGHT).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X)[:, np.argsort(names)], atol=1e-6)
        assert model.score(X, names[y]) == np.mean(plain.predict(X) == y)

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    @pytest.mark.parametrize(("method", "state"), WAYS)
    @pytest.mark.parametrize(("n_classes", "precision"), [(2, "double"), (5, "double"), (5, "single")])
    def test_number_of_threads(self, kind, method, state, n_classes, precision):
        X, y = problem(n=1500, d=30, n_classes=n_classes)
        X = sp.csr_array(X) if kind == "sparse" else X
        settings = {"tol": 1e-4, "solver": Solver(method=method, space=state, precision=precision)}
        one, two = (classifier(n_threads=n_threads, **settings).fit(X, y) for n_threads in (1, 2))
        assert_identical(one, two)
        np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))

    def test_repeated_fits_are_identical(self):
        X, y = problem(n=2500, d=30)
        assert_identical(classifier(n_threads=2).fit(X, y), classifier(n_threads=2).fit(X, y))


class TestPrediction:
    def test_answers_agree_with_each_other(self):
        X, y = problem()
        model = classifier().fit(X, y)
        u = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), u, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(model.predict_log_proba(X), log_softmax(u, axis=1), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(model.predict_proba(X), np.exp(log_softmax(u, axis=1)), rtol=1e-12)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-14)
        np.testing.assert_array_equal(model.predict(X), u.argmax(axis=1))
        assert model.score(X, y) == np.mean(u.argmax(axis=1) == y) > 0.5

    def test_log_probabilities_are_exact_where_probabilities_underflow(self):
        X, y = problem()
        model = classifier().fit(X, y)
        far = 1e5 * X
        log_p = model.predict_log_proba(far)
        assert model.predict_proba(far).min() < 1e-300
        assert log_p.min() < -1e4
        expected = log_softmax(far @ model.coef_.T + model.intercept_, axis=1)
        np.testing.assert_allclose(log_p, expected, rtol=1e-12, atol=1e-9)

    @pytest.mark.parametrize("method", ["decision_function", "predict_proba", "predict_log_proba"])
    def test_answers_do_not_depend_on_memory_addresses(self, method):
        X, y = problem()
        model = classifier().fit(X, y)
        answers = [getattr(model, method)(X) for _ in range(32)]  # all kept, so that none takes another's place
        assert len({answer.tobytes() for answer in answers}) == 1

    def test_inputs_may_take_another_form_than_in_fit(self):
        X, y = problem()
        model = classifier().fit(sp.csr_array(X), y)
        expected = model.predict_proba(X)
        for form in (np.asfortranarray(X), sp.csc_matrix(X), sp.coo_array(X), X.tolist()):
            np.testing.assert_allclose(model.predict_proba(form), expected, rtol=1e-12)
        np.testing.assert_allclose(model.predict_proba(X.astype(np.float32)), expected, atol=1e-5)

    def test_iris(self):
        X, y = load_iris(return_X_y=True)
        assert KernelLogisticClassifier(Linear(), tuning=None).fit(X, y).score(X, y) > 0.95


class TestWarmStart:
    @pytest.mark.parametrize(("method", "state"), WAYS)
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_same_data_again_takes_few_iterations(self, method, state, kind):
        X, y = problem()
        X = sp.csr_array(X) if kind == "sparse" else X
        model = classifier(warm_start=True, solver=Solver(method=method, space=state)).fit(X, y)
        first = model.n_iter_
        model.fit(X, y)
        # Weights are taken over as they are; coefficients are guessed from the residuals of the old predictions.
        assert model.n_iter_ <= (0 if model.result_.space == "weights" else 3) < first
        assert model.result_.status == "converged"

    @pytest.mark.parametrize("state", ["coefficients", "weights"])
    @pytest.mark.parametrize(
        "change", [{"kernel": Linear(2.0)}, {"intercept_variance": 0.0}, {"solver__method": "ncg"}]
    )
    def test_other_parameters_lead_to_their_own_optimum(self, state, change):
        X, y = problem()
        model = (
            classifier(warm_start=True, tol=1e-13, solver=Solver(precision="double", space=state))
            .fit(X, y)
            .set_params(**change)
            .fit(X, y)
        )
        cold = classifier(tol=1e-13, solver=Solver(precision="double", space=state)).set_params(**change).fit(X, y)
        assert_same_model(model, cold, X)

    def test_other_rows_lead_to_their_own_optimum(self):
        X, y = problem()
        model = classifier(warm_start=True, **TIGHT).fit(X, y).fit(X[:60], y[:60])
        assert_same_model(model, classifier(**TIGHT).fit(X[:60], y[:60]), X)

    def test_other_classes_start_cold(self):
        X, y = problem()
        model = classifier(warm_start=True).fit(X, y)
        assert_identical(model.fit(X, y + 9), classifier().fit(X, y + 9))

    def test_changed_classes_lead_to_their_own_optimum(self):
        X, y = problem()
        for changed in (y + 1, np.minimum(y, 2)):
            model = classifier(warm_start=True, **TIGHT).fit(X, y)
            assert_same_model(model.fit(X, changed), classifier(**TIGHT).fit(X, changed), X)

    def test_changed_features_start_cold(self):
        X, y = problem()
        model = classifier(warm_start=True).fit(X, y)
        assert_identical(model.fit(X[:, :4], y), classifier().fit(X[:, :4], y))

    def test_without_it_every_fit_starts_cold(self):
        X, y = problem()
        model = classifier().fit(X, y)
        iterations = model.n_iter_
        assert model.fit(X, y).n_iter_ == iterations > 2


class TestModel:
    """An estimator among others, and a fitted model as a thing to keep."""

    def test_fitted_attributes(self):
        X, y = problem()
        model = classifier().fit(X, y)
        assert model.coef_.shape == (4, 7)
        assert model.intercept_.shape == (4,)
        assert model.coef_.dtype == model.intercept_.dtype == np.float64
        np.testing.assert_array_equal(model.classes_, [0, 1, 2, 3])
        assert model.n_features_in_ == 7
        assert not hasattr(model, "feature_names_in_")
        result = model.result_
        assert isinstance(result, FitResult)
        assert model.n_iter_ == result.iterations > 0
        assert result.products >= result.iterations
        assert set(result.timings) == {"setup", "products", "likelihood", "vectors", "certificate", "total"}
        assert all(0 <= seconds <= result.timings["total"] for seconds in result.timings.values())

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_feature_names_are_kept_and_checked(self, frame):
        X, y = problem()
        names = [f"feature {j}" for j in range(7)]
        table = frame(dict(zip(names, X.T, strict=True)))
        if not hasattr(StandardScaler().fit(table), "feature_names_in_"):
            pytest.skip(f"this scikit-learn does not see the names in a {frame.__module__} frame")
        model = classifier().fit(table, y)
        np.testing.assert_array_equal(model.feature_names_in_, names)
        np.testing.assert_array_equal(model.predict(table), classifier().fit(X, y).predict(X))
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame(dict(zip(names[::-1], X.T, strict=True))))

    @pytest.mark.parametrize("series", [pd.Series, pl.Series])
    def test_labels_may_come_from_a_data_frame(self, series):
        X, y = problem()
        names = np.array(["a", "b", "c", "d"])[y]
        model = classifier().fit(X, series(names))
        np.testing.assert_array_equal(model.predict(X), classifier().fit(X, names).predict(X))

    def test_clone_has_the_parameters_and_no_fit(self):
        X, y = problem()
        model = classifier(class_weight={0: 2.0}, max_iter=77, solver="ncg").fit(X, y)
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "coef_")
        assert_identical(copy.fit(X, y), model)

    def test_pickle_round_trip(self):
        X, y = problem()
        model = classifier().fit(X, np.array(["a", "b", "c", "d"])[y])
        copy = pickle.loads(pickle.dumps(model))
        assert copy.get_params() == model.get_params()
        assert copy.result_ == model.result_
        assert_identical(copy, model)
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))

    @pytest.mark.parametrize("state", ["coefficients", "weights"])
    def test_model_does_not_keep_the_training_set(self, state):
        X, y = problem(n=5000, d=60)
        model = classifier(solver=Solver(space=state)).fit(X, y)
        size = len(pickle.dumps(model))
        assert model.coef_.nbytes <= size < model.coef_.nbytes + 5000 < X.nbytes / 100

    def test_fit_does_not_change_its_inputs(self):
        X, y = problem()
        sparse, weights = sp.csr_array(X), np.ones(len(y))
        arrays = (X, y, weights, sparse.data, sparse.indices, sparse.indptr)
        before = [array.copy() for array in arrays]
        classifier(class_weight="balanced").fit(X, y, weights).predict_proba(X)
        classifier(class_weight="balanced").fit(sparse, y, weights).predict_proba(sparse)
        for array, copy in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, copy)

    def test_pipeline_of_texts(self):
        texts = ["red apple", "green apple", "fast car", "slow car", "old red car", "sweet green apple"]
        labels = ["fruit", "fruit", "vehicle", "vehicle", "vehicle", "fruit"]
        pipeline = make_pipeline(TfidfVectorizer(), classifier(kernel=Linear(10.0)))
        pipeline.fit(texts, labels)
        assert pipeline.predict(["a red apple", "a red car"]).tolist() == ["fruit", "vehicle"]
        assert pipeline.score(texts, labels) == 1

    def test_search_over_kernels(self):
        X, y = problem(n=200)
        kernels = [Linear(1e-6), Linear(1.0)]
        search = GridSearchCV(classifier(), {"kernel": kernels}, scoring="neg_log_loss", cv=3).fit(X, y)
        assert search.best_params_ == {"kernel": Linear(1.0)}
        assert search.cv_results_["param_kernel"].tolist() == kernels
        assert search.cv_results_["mean_test_score"][1] > search.cv_results_["mean_test_score"][0] + 0.1
        assert search.best_estimator_.kernel == Linear(1.0)

    def test_early_end_warns_with_parameter_and_gap(self):
        X, y = problem()
        with pytest.warns(ConvergenceWarning) as caught:
            model = classifier(max_iter=1).fit(X, y)
        assert model.result_.status == "max_iter"
        assert model.n_iter_ == 1
        text = str(caught[0].message)
        assert "max_iter (now 1)" in text
        assert f"{model.result_.relative_gap:.1e}" in text
        assert "tol=1e-06" in text
        assert caught[0].filename == __file__
        assert model.predict_proba(X).shape == (len(X), 4)
