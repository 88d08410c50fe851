"""Bad input is answered by an exception that names the argument; odd but valid input by a model."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from taxolearn import KernelLogisticClassifier, Solver, _core
from taxolearn.kernels import Linear

N, D, C = 30, 6, 3
TIGHT = {"tol": 1e-13, "solver": Solver(precision="double")}


def problem():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((N, D)) * (generator.random((N, D)) < 0.6)
    return X, np.arange(N) % C


def fitted():
    return KernelLogisticClassifier(Linear(), tuning=None).fit(*problem())


def assert_same_model(a, b):
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-6)


class TestInputs:
    @pytest.mark.parametrize("kind", [np.array, sp.csr_array, sp.csc_matrix, sp.coo_array])
    @pytest.mark.parametrize(("value", "message"), [(np.nan, "X contains NaN"), (np.inf, "X contains infinity")])
    def test_values_must_be_finite(self, kind, value, message):
        X, y = problem()
        bad = X.copy()
        bad[3, 2] = value
        with pytest.raises(ValueError, match=message):
            KernelLogisticClassifier(Linear(), tuning=None).fit(kind(bad), y)
        with pytest.raises(ValueError, match=message):
            fitted().predict_proba(kind(bad))

    @pytest.mark.parametrize("kind", [np.array, sp.csr_array])
    @pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function"])
    def test_number_of_features_must_be_that_of_fit(self, kind, method):
        X, _ = problem()
        with pytest.raises(ValueError, match="X has 5 features, but KernelLogisticClassifier is expecting 6 features"):
            getattr(fitted(), method)(kind(X[:, :5]))

    @pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function", "score"])
    def test_predicting_needs_a_fit(self, method):
        X, y = problem()
        with pytest.raises(NotFittedError, match="KernelLogisticClassifier"):
            getattr(KernelLogisticClassifier(Linear(), tuning=None), method)(*((X, y) if method == "score" else (X,)))

    @pytest.mark.parametrize("kind", [np.array, sp.csr_array])
    def test_there_must_be_rows(self, kind):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(kind(np.zeros((0, D))), np.zeros(0, dtype=int))

    def test_there_must_be_features(self):
        with pytest.raises(ValueError, match=r"0 feature\(s\)"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(np.zeros((N, 0)), problem()[1])

    def test_inputs_must_be_a_matrix_of_numbers(self):
        X, y = problem()
        with pytest.raises(ValueError, match="2D array"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X[:, 0], y)
        with pytest.raises(ValueError, match="dim"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X[:, :, None], y)
        with pytest.raises(ValueError, match="Complex data"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X + 1j, y)
        with pytest.raises(ValueError, match="could not convert string"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(np.full((N, 2), "word"), y)


class TestLabels:
    def test_there_must_be_two_classes(self):
        X, y = problem()
        with pytest.raises(ValueError, match=r"y has one class only, .*'a'"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, np.full(N, "a"))
        with pytest.raises(ValueError, match="y has one class only"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, np.zeros_like(y))

    def test_length_must_be_that_of_the_inputs(self):
        X, y = problem()
        with pytest.raises(ValueError, match=rf"inconsistent numbers of samples: \[{N}, {N - 1}\]"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, y[1:])

    def test_labels_must_be_classes(self):
        X, y = problem()
        with pytest.raises(ValueError, match="requires y to be passed"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, None)
        with pytest.raises(ValueError, match="y contains infinity"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, np.where(y == 1, np.inf, y))
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, X[:, 0])
        with pytest.raises(ValueError, match="row 0 sums to 2, expected 1"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, 2 * np.eye(C)[y])

    def test_labels_unseen_in_fit_have_no_score(self):
        X, y = problem()
        with pytest.raises(ValueError, match=r"y has labels that fit never saw: \[7\]"):
            fitted().score(X, np.where(y == 0, 7, y))
        model = KernelLogisticClassifier(Linear(), tuning=None).fit(X, np.array(["a", "b", "c"])[y])
        with pytest.raises(ValueError, match=r"y has labels that fit never saw: \['d'\]"):
            model.score(X, np.array(["a", "b", "d"])[y])


class TestWeights:
    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.ones(N - 1), "sample_weight"),
            (np.ones((N, 2)), "[Ss]ample weights must be 1D"),
            (np.r_[np.ones(N - 1), -1.0], "[Nn]egative values in .*sample_weight"),
            (np.r_[np.ones(N - 1), np.nan], "sample_weight contains NaN"),
            (np.r_[np.ones(N - 1), np.inf], "sample_weight contains infinity"),
            (np.zeros(N), "(?i)sample.weight"),
        ],
    )
    def test_sample_weights(self, weights, message):
        with pytest.raises(ValueError, match=message):
            KernelLogisticClassifier(Linear(), tuning=None).fit(*problem(), sample_weight=weights)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ({0: 1.0, 5: 2.0}, r"class_weight names labels that are not in y: \[5\]"),
            ({0: -1.0}, "class_weight must not be negative"),
            ({0: np.nan}, "class_weight is not finite"),
            ({0: 0.0, 1: 0.0, 2: 0.0}, "weight"),
            ("equal", "class_weight"),
        ],
    )
    def test_class_weights(self, weights, message):
        with pytest.raises(ValueError, match=message):
            KernelLogisticClassifier(Linear(), class_weight=weights, tuning=None).fit(*problem())


class TestParameters:
    @pytest.mark.parametrize("variance", [0, -1.0, np.nan, np.inf])
    def test_variance_must_be_positive(self, variance):
        with pytest.raises(ValueError, match="Linear: variance must be finite and above 0"):
            Linear(variance)

    @pytest.mark.parametrize("variance", ["1", None, True, [1.0]])
    def test_variance_must_be_a_number(self, variance):
        with pytest.raises(TypeError, match="Linear: variance must be a number"):
            Linear(variance)

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("intercept_variance", -0.1, ValueError),
            ("intercept_variance", np.nan, ValueError),
            ("intercept_variance", "1", TypeError),
            ("tol", 0.0, ValueError),
            ("tol", -1e-3, ValueError),
            ("tol", np.nan, ValueError),
            ("tol", None, TypeError),
            ("max_iter", -1, ValueError),
            ("max_iter", 2.5, TypeError),
            ("solver", "sgd", ValueError),
            ("solver", 3, ValueError),
            ("tuning", "fixed", ValueError),
            ("labels", "inside", ValueError),
            ("coupling", 1, ValueError),
            ("n_threads", 0, ValueError),
            ("n_threads", -1, ValueError),
            ("n_threads", 1.5, TypeError),
            ("n_threads", "all", TypeError),
            ("kernel", "gauss", ValueError),
            ("kernel", Linear, TypeError),
            ("kernel", 1.0, TypeError),
            ("kernel", None, TypeError),
            ("verbose", "yes", TypeError),
        ],
    )
    def test_parameters_are_checked_by_name(self, name, value, error):
        with pytest.raises(error, match=name):
            KernelLogisticClassifier(**{"kernel": Linear(), "tuning": None} | {name: value}).fit(*problem())

    @pytest.mark.parametrize(
        ("values", "match"),
        [
            ({"method": "sgd"}, "method is 'sgd', expected one of 'auto', 'lbfgs'"),
            ({"space": "primal"}, "space is 'primal', expected one of 'auto', 'coefficients', 'weights'"),
            ({"precision": "half"}, "precision is 'half', expected one of 'auto', 'single', 'double'"),
            ({"products": "fast"}, "products is 'fast', expected one of 'auto', 'gram', 'tiled', 'low_rank'"),
        ],
    )
    def test_solvers_are_checked(self, values, match):
        with pytest.raises(ValueError, match=match):
            KernelLogisticClassifier(tuning=None, solver=Solver(**values)).fit(*problem())

    def test_choices_are_named(self):
        expected = "solver is 'sgd', expected one of 'auto', 'lbfgs', 'ncg', 'newton', 'exact', or a Solver"
        with pytest.raises(ValueError, match=expected):
            KernelLogisticClassifier(Linear(), tuning=None, solver="sgd").fit(*problem())

    @pytest.mark.parametrize("method", ["newton", "exact"])
    def test_newton_does_not_work_on_weights(self, method):
        with pytest.raises(ValueError, match=rf"Solver\(method='{method}'\) works on coefficients; choose space="):
            KernelLogisticClassifier(Linear(), tuning=None, solver=Solver(method, space="weights")).fit(*problem())

    def test_a_failed_fit_leaves_the_old_model(self):
        X, y = problem()
        model = fitted()
        expected = model.decision_function(X)
        with pytest.raises(ValueError, match="tol"):
            model.set_params(tol=-1.0).fit(X, y)
        np.testing.assert_array_equal(model.decision_function(X), expected)


class TestBrokenSparse:
    """CSR matrices whose arrays do not fit together, and those that only look unusual."""

    def broken(self, **changes):
        X = sp.csr_array(problem()[0])
        assert X.has_sorted_indices  # SciPy has made up its mind and will not look again
        for name, (position, value) in changes.items():
            getattr(X, name)[position] = value
        return X

    @pytest.mark.parametrize("column", [D, 10**6, -1])
    def test_column_index_out_of_range(self, column):
        X = self.broken(indices=(4, column))
        with pytest.raises(ValueError, match=f"X: column index {column} in row .* is out of range"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, problem()[1])
        with pytest.raises(ValueError, match=f"X: column index {column} in row .* is out of range"):
            fitted().predict(X)

    def test_falling_indptr(self):
        X = sp.csr_array(problem()[0])
        X.indptr[2] = X.indptr[4]
        with pytest.raises(ValueError, match=r"X: indptr falls from .* at row 2"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, problem()[1])

    @pytest.mark.parametrize("value", [10**9, -(10**9)])
    @pytest.mark.parametrize("known", [True, False])
    def test_indptr_that_points_elsewhere(self, run_python, value, known):
        # In another process: memory that is not there would be read.
        done = run_python(
            """
            import sys
            import numpy as np
            import scipy.sparse as sp
            from taxolearn import KernelLogisticClassifier

            X = sp.csr_array(np.eye(9))
            X.indptr[3] = int(sys.argv[1])
            X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
            if sys.argv[2] == "True":
                X.has_sorted_indices = True
            try:
                KernelLogisticClassifier(tuning=None).fit(X, np.arange(9) % 2)
            except ValueError as error:
                print(error)
            """,
            value,
            known,
        )
        assert done.returncode == 0, done.stderr
        assert "X: indptr" in done.stdout

    @pytest.mark.parametrize("value", [10**9, -(10**9)])
    def test_core_looks_at_indptr_before_it_follows_it(self, run_python, value):
        done = run_python(
            """
            import sys
            import numpy as np
            import scipy.sparse as sp
            from taxolearn import _core

            X = sp.csr_array(np.eye(9))
            X.indptr[3] = int(sys.argv[1])
            try:
                _core.LinearKernel(1.0).matrix(X)
            except ValueError as error:
                print(error)
            """,
            value,
        )
        assert done.returncode == 0, done.stderr
        assert "X: indptr" in done.stdout

    def test_core_refuses_unsorted_indices_where_the_flag_is_stale(self):
        X = self.broken()
        row = slice(X.indptr[0], X.indptr[1])
        assert X.indptr[1] > 1
        X.indices[row] = X.indices[row][::-1].copy()
        assert X.has_sorted_indices
        with pytest.raises(ValueError, match=r"X: column indices of row 0 are not sorted .* call sort_indices"):
            KernelLogisticClassifier(Linear(), tuning=None).fit(X, problem()[1])
        with pytest.raises(ValueError, match="X: column indices of row 0 are not sorted"):
            _core.LinearKernel(1.0).matrix(X)

    def test_unsorted_indices_are_sorted_in_a_copy(self):
        dense, y = problem()
        plain = sp.csr_array(dense)
        order = np.concatenate([np.arange(plain.indptr[i], plain.indptr[i + 1])[::-1] for i in range(N)])
        X = sp.csr_array((plain.data[order], plain.indices[order], plain.indptr), shape=plain.shape)
        assert not X.has_sorted_indices
        data, indices = X.data.copy(), X.indices.copy()
        model = KernelLogisticClassifier(Linear(), **TIGHT, tuning=None).fit(X, y)
        assert_same_model(model, KernelLogisticClassifier(Linear(), **TIGHT, tuning=None).fit(plain, y))
        np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(dense), rtol=1e-12)
        np.testing.assert_array_equal(X.data, data)
        np.testing.assert_array_equal(X.indices, indices)
        assert not X.has_sorted_indices


class TestCore:
    """What the estimator never does, the core refuses too."""

    @staticmethod
    def fit(
        *, targets=None, n_outputs=2, sample_weight=None, variance=1.0, intercept_variance=1.0, start=None, **given
    ):
        targets = np.arange(6, dtype=np.int32) % 2 if targets is None else targets
        return _core.fit(
            X=np.eye(6),
            likelihood=_core.Softmax(targets, n_outputs, sample_weight),
            prior=_core.Prior(kernels=[_core.LinearKernel(variance)], intercept_variance=intercept_variance),
            settings=_core.FitSettings(**given),
            start=_core.FitStart(weights=start),
        )

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"targets": np.zeros(5, dtype=np.int32)}, "X has 6 rows but there are 5 labels"),
            ({"variance": -1.0}, "variance must be positive"),
            ({"intercept_variance": -1.0}, "intercept_variance must be finite and at least 0"),
            ({"tol": np.nan}, "tol must be positive"),
            ({"max_iter": -1}, "max_iter must be at least 0"),
            ({"n_outputs": 1}, "label 1 of row 1 is out of range"),
            ({"start": np.zeros(13)}, "start.weights has 13 elements, expected 14"),
            ({"sample_weight": np.ones(5)}, "sample_weight has 5 elements, expected 6"),
        ],
    )
    def test_fit(self, changes, message):
        with pytest.raises(ValueError, match=message):
            self.fit(**changes)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"intercepts": np.ones(3)}, "intercepts has 3 elements, expected 2"),
            ({"weights": np.ones((5, 2))}, "X has 6 features, expected 5"),
            ({"weights": np.ones((6, 2), order="F")}, "weights must be C-ordered"),
        ],
    )
    def test_predict(self, changes, message):
        arguments = {"X": np.eye(6), "weights": np.ones((6, 2)), "intercepts": np.ones(2)}
        with pytest.raises(ValueError, match=message):
            _core.predict_linear(**arguments | changes, link=_core.Link.softmax, output=_core.Output.probability)

    def test_settings_take_members_of_their_enumerations(self):
        with pytest.raises(TypeError):
            _core.FitSettings(method="lbfgs")

    @pytest.mark.parametrize(
        "call",
        [
            (
                "_core.predict_linear(X=X, weights=np.ones((6, 2)), intercepts=None, link=_core.Link.softmax, "
                "output=_core.Output.predictor)"
            ),
            (
                "_core.fit(X=X, likelihood=_core.Softmax(np.zeros(6, np.int32), 2), settings=_core.FitSettings(), "
                "prior=_core.Prior(kernels=[], intercept_variance=1.0), n_threads=0)"
            ),
        ],
    )
    def test_nothing_ends_the_process(self, run_python, call):
        done = run_python(
            f"""
            import numpy as np
            from taxolearn import _core

            X = np.eye(6)
            try:
                {call}
            except (TypeError, ValueError):
                pass
            """
        )
        assert done.returncode == 0, done.stderr


class TestValid:
    """Odd inputs with a right answer."""

    @pytest.mark.parametrize("kind", [np.array, sp.csr_array])
    @pytest.mark.parametrize("state", ["coefficients", "weights"])
    def test_zero_row_is_predicted_by_the_intercepts(self, kind, state):
        X, y = problem()
        X[4] = 0
        model = KernelLogisticClassifier(Linear(), tuning=None, solver=Solver(space=state)).fit(kind(X), y)
        np.testing.assert_allclose(model.predict_proba(kind(X))[4], softmax_of(model.intercept_), rtol=1e-12)

    @pytest.mark.parametrize("kind", [np.array, sp.csr_array])
    @pytest.mark.parametrize("method", ["lbfgs", "ncg", "newton"])
    @pytest.mark.parametrize("state", ["coefficients", "auto"])
    def test_zero_matrix_gives_the_intercepts_alone(self, kind, method, state):
        y = np.array([0] * 20 + [1] * 7 + [2] * 3)
        model = KernelLogisticClassifier(
            Linear(), intercept_variance=1e4, tol=1e-10, tuning=None, solver=Solver(method=method, space=state)
        )
        model.fit(kind(np.zeros((N, D))), y)
        assert not model.coef_.any()
        np.testing.assert_allclose(model.predict_proba(np.zeros((1, D)))[0], [20 / 30, 7 / 30, 3 / 30], atol=1e-3)

    @pytest.mark.parametrize("state", ["coefficients", "weights"])
    def test_zero_matrix_without_intercepts_gives_equal_probabilities(self, state):
        X, y = np.zeros((N, D)), problem()[1]
        model = KernelLogisticClassifier(Linear(), intercept_variance=0, tuning=None, solver=Solver(space=state)).fit(
            X, y
        )
        np.testing.assert_allclose(model.predict_proba(X), 1 / C)
        assert model.result_.status == "converged"

    @pytest.mark.parametrize("kind", [np.array, sp.csr_array])
    def test_constant_feature_acts_like_an_intercept(self, kind):
        X, y = problem()
        constant = np.hstack([X, np.ones((N, 1))])
        with_feature = KernelLogisticClassifier(Linear(), intercept_variance=0, **TIGHT, tuning=None).fit(
            kind(constant), y
        )
        with_intercept = KernelLogisticClassifier(Linear(), intercept_variance=1, **TIGHT, tuning=None).fit(kind(X), y)
        np.testing.assert_allclose(with_feature.coef_[:, -1], with_intercept.intercept_, atol=1e-6)
        np.testing.assert_allclose(with_feature.predict_proba(constant), with_intercept.predict_proba(X), atol=1e-6)

    @pytest.mark.parametrize("state", ["coefficients", "weights"])
    @pytest.mark.parametrize("method", ["lbfgs", "newton"])
    def test_duplicate_entries_add_up(self, state, method):
        if (method, state) == ("newton", "weights"):
            state = "auto"
        dense, y = problem()
        plain = sp.csr_array(dense)
        halves = np.repeat(plain.data / 2, 2)
        X = sp.csr_array((halves, np.repeat(plain.indices, 2), 2 * plain.indptr), shape=plain.shape)
        assert X.nnz == 2 * plain.nnz
        settings = {**TIGHT, "solver": Solver(method, space=state, precision="double")}
        model = KernelLogisticClassifier(Linear(), **settings, tuning=None).fit(X, y)
        assert_same_model(model, KernelLogisticClassifier(Linear(), **settings, tuning=None).fit(dense, y))
        np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(dense), rtol=1e-12)
        assert X.nnz == 2 * plain.nnz

    def test_explicit_zeros_are_zeros(self):
        dense, y = problem()
        plain = sp.csr_array(dense)
        full = sp.csr_array(np.ones((N, D)))
        full.data[:] = dense.ravel()
        assert full.nnz > plain.nnz
        assert_same_model(
            KernelLogisticClassifier(Linear(), **TIGHT, tuning=None).fit(full, y),
            KernelLogisticClassifier(Linear(), **TIGHT, tuning=None).fit(plain, y),
        )

    def test_class_without_weight_keeps_its_place(self):
        X, y = problem()
        model = KernelLogisticClassifier(Linear(), **TIGHT, tuning=None).fit(X, y, sample_weight=(y != 1).astype(float))
        np.testing.assert_array_equal(model.classes_, [0, 1, 2])
        assert model.predict_proba(X)[:, 1].max() < 0.2

    def test_one_row_per_class(self):
        model = KernelLogisticClassifier(Linear(), tuning=None).fit(np.eye(2), ["a", "b"])
        assert model.predict(np.eye(2)).tolist() == ["a", "b"]

    def test_no_rows_to_predict_are_refused_like_everywhere(self):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            fitted().predict(np.zeros((0, D)))


def softmax_of(u):
    e = np.exp(u - u.max())
    return e / e.sum()
