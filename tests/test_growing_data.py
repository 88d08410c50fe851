"""Fits that go on from earlier ones when rows, classes or leaves of the tree come to the data."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from trees import paths

import taxolearn
from taxolearn import CrossValidation, KernelLogisticClassifier, Solver, Taxonomy, Tree
from taxolearn.fitting.warm_start import _numbered, _row_keys
from taxolearn.kernels import RBF, Linear

LABELS = ["a/x", "a/y", "b/x", "b/y", "c"]
TREE = Taxonomy.from_labels(LABELS)
LARGER = Taxonomy.from_labels([*LABELS, "b/z"])
TIGHT = {"tol": 1e-12, "solver": Solver(precision="double")}
WAYS = [
    (Linear(1.0), {"solver": Solver(space="weights")}),
    (Linear(1.0), {"solver": Solver(space="coefficients")}),
    (Linear(1.0), {"solver": Solver(space="coefficients", method="ncg")}),
    (RBF(2.0, 3.0), {}),
    (RBF(2.0, 3.0), {"solver": Solver(rank=50)}),
]


def problem(n=200, d=5, labels=LABELS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    u = X @ rng.standard_normal((d, len(labels))) * 1.5 + rng.gumbel(size=(n, len(labels)))
    return X, np.array(labels)[u.argmax(axis=1)]


def model(kernel, **parameters):
    return KernelLogisticClassifier(kernel, tuning=None, n_threads=1, **parameters)


class TestMoreRows:
    @pytest.mark.parametrize(("kernel", "way"), WAYS)
    @pytest.mark.parametrize("coupling", ["independent", "tree"])
    def test_the_same_model_in_fewer_products(self, kernel, way, coupling):
        X, y = problem(400)
        order = np.random.default_rng(1).permutation(400)  # rows are known by what they hold, not by their place
        shared = {"taxonomy": TREE, "coupling": coupling, **TIGHT, **way}
        cold = model(kernel, **shared).fit(X[order], y[order])
        warm = model(kernel, warm_start=True, **shared).fit(X[:390], y[:390]).fit(X[order], y[order])
        np.testing.assert_allclose(warm.predict_proba(X), cold.predict_proba(X), atol=1e-4 if "rank" in way else 1e-5)
        if "rank" not in way:  # other rows have other pivots
            assert warm.result_.products < cold.result_.products

    @pytest.mark.parametrize(("kernel", "way"), WAYS)
    def test_the_same_rows_again_take_no_iteration(self, kernel, way):
        X, y = problem()
        fitted = model(kernel, taxonomy=TREE, warm_start=True, **way).fit(X, y)
        first = fitted.n_iter_
        assert fitted.fit(X, y).n_iter_ == 0 < first

    def test_fewer_rows_and_other_values(self):
        X, y = problem()
        for change in (
            {"kernel": Linear(3.0)},
            {"intercept_variance": 0.0},
            {"coupling": Tree(variances=[0.0, 1.0])},
            {"coupling": "independent"},
        ):
            for state in ("weights", "coefficients"):
                fitted = model(
                    Linear(1.0),
                    taxonomy=TREE,
                    warm_start=True,
                    tol=1e-12,
                    solver=Solver(precision="double", space=state),
                ).fit(X, y)
                fitted.set_params(**change).fit(X[:150], y[:150])
                cold = clone(fitted).set_params(warm_start=False).fit(X[:150], y[:150])
                np.testing.assert_allclose(fitted.predict_proba(X), cold.predict_proba(X), atol=1e-5)

    def test_other_rows_start_from_what_is_predicted(self):
        X, y = problem()
        other = problem(seed=3)
        fitted = model(RBF(2.0), warm_start=True, **TIGHT).fit(X, y).fit(*other)
        np.testing.assert_allclose(
            fitted.predict_proba(X), model(RBF(2.0), **TIGHT).fit(*other).predict_proba(X), atol=1e-5
        )

    def test_rows_are_known_by_their_content(self):
        X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
        keys = _row_keys(X)
        assert keys[0] == keys[2] != keys[1]
        assert [k for _, k in _numbered(keys)] == [0, 0, 1]
        wide = sp.csr_array(X)
        narrow = wide.copy()
        narrow.indices = narrow.indices.astype(np.int32)
        wide.indices = wide.indices.astype(np.int64)
        np.testing.assert_array_equal(_row_keys(wide), _row_keys(narrow))

    def test_nothing_is_kept_unasked(self):
        X, y = problem()
        assert not hasattr(model(Linear(1.0)).fit(X, y), "_ending")
        warm = model(Linear(1.0), warm_start=True).fit(X, y)
        again = pickle.loads(pickle.dumps(warm))
        assert again.fit(X, y).n_iter_ == 0

    def test_a_loaded_model_starts_from_what_it_predicts(self, tmp_path):
        X, y = problem()
        fitted = model(RBF(2.0), warm_start=True).fit(X, y)
        taxolearn.save(fitted, tmp_path / "model.taxo", dtype="float64")
        loaded = taxolearn.load(tmp_path / "model.taxo")
        assert 2 * loaded.fit(X, y).n_iter_ <= fitted.n_iter_

    def test_uncertain_rows(self):
        X, y = problem()
        targets = [label if i % 3 else {label, "c"} for i, label in enumerate(y.tolist())]
        fitted = model(Linear(1.0), warm_start=True).fit(X[:190], targets[:190])
        before = fitted.em_result_
        fitted.fit(X, targets)
        assert fitted.em_result_.products < before.products
        cold = model(Linear(1.0)).fit(X, targets)
        assert fitted.em_result_.bounds[-1] == pytest.approx(cold.em_result_.bounds[-1], rel=1e-3)

    def test_a_tenth_more_of_the_newsgroups(self, news20):
        """Measured at variances 5 and 50, flat and tree, gaps 1e-4 and 1e-6: 63 to 75 % of the products."""
        order = np.random.default_rng(0).permutation(len(news20.y))
        X, y = news20.X[order], news20.y[order]
        old = int(len(y) / 1.1)
        settings = {"tuning": None, "tol": 1e-4, "n_threads": 2}
        cold = KernelLogisticClassifier(Linear(5.0), **settings).fit(X, y).result_
        warm = KernelLogisticClassifier(Linear(5.0), warm_start=True, **settings).fit(X[:old], y[:old])
        assert warm.fit(X, y).result_.products <= 0.75 * cold.products
        assert warm.result_.relative_gap <= 1e-4


class TestLearning:
    def test_it_begins_with_what_was_learned(self):
        X, y = problem(400)
        settings = {"taxonomy": TREE, "n_threads": 1}
        cold = KernelLogisticClassifier(**settings).fit(X, y)
        warm = KernelLogisticClassifier(warm_start=True, **settings).fit(X[:360], y[:360])
        known = dict(zip(warm.cv_result_.names, warm.cv_result_.theta, strict=True))
        warm.fit(X, y)
        result = warm.cv_result_
        np.testing.assert_array_equal(result.start, [known[name] for name in result.names])
        assert result.products.sum() < cold.cv_result_.products.sum()
        assert result.values[result.best] <= cold.cv_result_.values[cold.cv_result_.best] + 1e-3

    @pytest.mark.parametrize(
        ("change", "X_then"),
        [
            ({}, lambda X: 100 * X),
            ({}, lambda X: X[:, :3]),
            ({"kernel": RBF(30.0)}, lambda X: X),
            ({"intercept_variance": 5.0}, lambda X: X),
        ],
        ids=["other scale", "other features", "other kernel", "other start"],
    )
    def test_another_problem_begins_anew(self, change, X_then):
        X, y = problem(200)
        warm = KernelLogisticClassifier("rbf", warm_start=True, n_threads=1).fit(X, y)
        warm.set_params(**change).fit(X_then(X), y)
        cold = clone(warm).fit(X_then(X), y)
        np.testing.assert_array_equal(warm.cv_result_.start, cold.cv_result_.start)

    def test_a_part_that_the_user_has_changed_is_another_one(self):
        X, y = problem(200)
        warm = KernelLogisticClassifier(taxonomy=TREE, coupling=Tree(), warm_start=True, n_threads=1).fit(X, y)
        warm.coupling.variances = 3.0
        warm.fit(X, y)
        np.testing.assert_array_equal(warm.cv_result_.start, clone(warm).fit(X, y).cv_result_.start)

    def test_a_checkpoint_of_another_start_is_refused(self, tmp_path):
        X, y = problem(200)
        path = tmp_path / "checkpoint"
        warm = KernelLogisticClassifier(warm_start=True, n_threads=1).fit(X, y)
        KernelLogisticClassifier(n_threads=1, tuning=CrossValidation(checkpoint=path)).fit(X, y)
        with pytest.raises(ValueError, match="belongs to another problem"):
            warm.set_params(tuning__checkpoint=path).fit(X, y)


class TestNewClasses:
    @pytest.mark.parametrize(("kernel", "way"), WAYS[:4])
    @pytest.mark.parametrize("coupling", ["independent", "tree"])
    def test_a_new_leaf_with_examples(self, kernel, way, coupling):
        X, y = problem(300, labels=[*LABELS, "b/z"])
        known = y != "b/z"
        shared = {"coupling": coupling, "warm_start": True, **TIGHT, **way}
        warm = model(kernel, taxonomy=TREE, **shared).fit(X[known], y[known])
        warm.set_params(taxonomy=LARGER).fit(X, y)
        cold = model(kernel, taxonomy=LARGER, **shared).fit(X, y)
        assert warm.classes_.tolist() == cold.classes_.tolist()
        np.testing.assert_allclose(warm.predict_proba(X), cold.predict_proba(X), atol=1e-5)

    @pytest.mark.parametrize("space", ["weights", "coefficients"])
    def test_it_starts_from_the_function_of_its_parent(self, space):
        """Seen with no iteration at all: the new leaf has the sum of the functions above it."""
        X, y = problem()
        fitted = (
            model(Linear(1.0), taxonomy=TREE, warm_start=True, intercept_variance=0.0, **TIGHT)
            .set_params(solver__space=space)
            .fit(X, y)
        )
        before = dict(zip(fitted.classes_, fitted.coef_, strict=True))
        alike = np.linalg.lstsq(*self.nodes(before), rcond=None)[0]  # of least norm, as the prior has it
        fitted.set_params(taxonomy=LARGER, max_iter=0)
        with pytest.warns(ConvergenceWarning, match="stopped after 0 iterations"):
            fitted.fit(X, y)
        after = dict(zip(fitted.classes_, fitted.coef_, strict=True))
        parent = alike[TREE.index("b") - 1]
        scale = (after["a/x"] @ before["a/x"]) / (before["a/x"] @ before["a/x"])  # the start is scaled as a whole
        np.testing.assert_allclose(after["b/z"], scale * parent, atol=1e-4)
        np.testing.assert_allclose(after["b/y"], scale * before["b/y"], atol=1e-4)
        assert np.linalg.norm(parent) > 0.1

    @staticmethod
    def nodes(coef):
        """Classes as sums over nodes, and the functions of the classes, in the order of the tree."""
        return paths(TREE)[:, 1:], np.array([coef[name] for name in TREE.classes])

    def test_a_new_class_of_a_flat_model_starts_from_zero(self):
        X, y = problem(300, labels=[*LABELS, "b/z"])
        known = y != "b/z"
        warm = model(Linear(1.0), warm_start=True, **TIGHT).fit(X[known], y[known])
        first = warm.result_.products
        warm.fit(X, y)
        np.testing.assert_allclose(warm.coef_, model(Linear(1.0), **TIGHT).fit(X, y).coef_, atol=1e-5)
        assert warm.result_.products <= 2 * first


class TestClassesWithoutExamples:
    def test_the_tree_knows_where_they_belong(self):
        """Among rows of its siblings an unseen class is far more probable than elsewhere, which is not so without."""
        data = taxolearn.datasets.make_hierarchy(1200, branching=(3, 4), random_state=0)
        X, y = np.asarray(data.X), data.y
        unseen = data.taxonomy.classes[0]
        siblings = np.setdiff1d(data.taxonomy.leaves(data.taxonomy.parent(unseen)), [unseen])
        train = (np.arange(len(y)) < 600) & (y != unseen)
        shares = {}
        for coupling in ("tree", "independent"):
            fitted = model(Linear(1.0), taxonomy=data.taxonomy, coupling=coupling).fit(X[train], y[train])
            column = fitted.classes_.tolist().index(unseen)
            proba = fitted.predict_proba(X[600:])[:, column]
            own, near = y[600:] == unseen, np.isin(y[600:], siblings)
            shares[coupling] = [proba[rows].mean() for rows in (own, near, ~(own | near))]
        assert shares["tree"][0] > shares["tree"][1] > 3 * shares["tree"][2]
        assert shares["tree"][0] > 2 * shares["independent"][0]
