"""Rows of which less, or more, is known than one label: sets, inner nodes, nothing, and probabilities."""

import os
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from trees import Hierarchical

import taxolearn
from taxolearn import CrossValidation, KernelLogisticClassifier, PartialLabels, Solver, Taxonomy
from taxolearn.estimators import kernel_logistic
from taxolearn.kernels import RBF, Linear
from taxolearn.targets import AllowedSets, label_targets, read_targets
from taxolearn.tuning.learn import _drawn

TREE = Taxonomy.from_labels(["a/x", "a/y", "b/x", "b/y", "b/z", "c"])
LEAVES = np.sort(TREE.classes)
TIGHT = {"tol": 1e-13, "solver": Solver(precision="double")}


def problem(n=120, seed=0, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    u = X @ rng.standard_normal((d, len(LEAVES))) * 1.5 + rng.gumbel(size=(n, len(LEAVES)))
    y = LEAVES[u.argmax(axis=1)]
    y[: len(LEAVES)] = LEAVES
    return X, y


def blur(y, share, seed=0):
    """Some labels become their parents, sets with a wrong label, or nothing."""
    rng = np.random.default_rng(seed)
    out = y.astype(object)
    for i in np.flatnonzero(rng.random(len(y)) < share).tolist():
        kind = rng.integers(3)
        other = LEAVES[rng.integers(len(LEAVES))]
        out[i] = (y[i].split("/")[0], {y[i], other}, None)[kind]
    return out


def model(kernel=None, **parameters):
    kernel = Linear(0.8) if kernel is None else kernel
    return KernelLogisticClassifier(kernel, tuning=None, n_threads=1, **parameters)


def tree_model(kernel=None, **parameters):
    return model(kernel, taxonomy=TREE, **parameters)


def allowed_mask(entries):
    """The rule, row by row: which of the sorted leaves an entry allows."""
    mask = np.zeros((len(entries), len(LEAVES)), dtype=bool)
    for i, entry in enumerate(entries):
        names = {"root"} if entry is None else entry if isinstance(entry, (set, frozenset, list, tuple)) else {entry}
        for name in names:
            mask[i] |= np.isin(LEAVES, TREE.leaves(name))
    return mask


def assert_same(a, b, X, atol=1e-6):
    np.testing.assert_array_equal(a.classes_, b.classes_)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=atol)


class TestReading:
    def test_every_form_of_a_set_and_of_nothing(self):
        entries = [
            "a/x",
            {"a/x", "c"},
            frozenset(["b"]),
            ["a/y", "b/x"],
            ("b", "b/x"),
            "root",
            None,
            np.nan,
            pd.NA,
            "b",
        ]
        targets = read_targets(entries, TREE, "below")
        expected = allowed_mask([*entries[:6], None, None, None, "b"])
        shares = targets.first()[:, targets.order]
        known = ~expected.all(axis=1)
        np.testing.assert_allclose(shares[known], (expected / expected.sum(axis=1, keepdims=True))[known])
        assert targets.unlabelled.tolist() == np.flatnonzero(~known).tolist() == [5, 6, 7, 8]
        assert targets.labels.tolist() == [TREE.leaf_index("a/x")] + [-1] * 9
        assert len(targets.allowed.sizes) == 3  # b with b/x is b

    @pytest.mark.parametrize(
        "series",
        [
            pd.Series([1, 2, None], dtype="Int64"),
            pd.Series([1.0, 2.0, np.nan]),
            pl.Series([1, 2, None]),
            np.array([1, 2, None], dtype=object),
            np.array([1.0, 2.0, np.nan]),
            [1, 2, None],
        ],
    )
    def test_missing_labels_of_other_libraries(self, series):
        targets = read_targets(series, None, "own")
        assert targets.classes.tolist() == [1, 2]
        assert targets.labels.tolist() == [0, 1, -1]

    @pytest.mark.parametrize("series", [pd.Series(["u", "v", None]), pd.Series(["u", "v", pd.NA], dtype="category")])
    def test_missing_strings(self, series):
        assert read_targets(series, None, "own").labels.tolist() == [0, 1, -1]

    @pytest.mark.parametrize(
        "y",
        [
            np.array([0, 1, 1]),
            np.array(["a", "b", "b"]),
            np.array(["a", "b", "b"], dtype=object),
            ["a", "b", "b"],
            pd.Series(["a", "b", "b"]),
            np.array([[0], [1], [1]]),
        ],
    )
    def test_plain_labels_are_left_to_the_short_way(self, y):
        assert read_targets(y, None, "own") is None

    def test_singletons_are_labels(self):
        targets = read_targets([["u"], {"v"}, "u"], None, "own")
        assert targets.is_certain
        assert targets.labels.tolist() == label_targets(["u", "v", "u"], None, "own").labels.tolist()

    def test_columns_of_lists_in_tables(self):
        frame = pd.DataFrame({"label": [["u", "v"], ["v"], ["w"]]})
        arrays = pl.from_pandas(frame)["label"].to_pandas()
        for column in (frame["label"], arrays):
            targets = read_targets(column, None, "own")
            assert targets.labels.tolist() == [-1, 1, 2]
            assert targets.allowed.members.tolist() == [0, 1]

    def test_inner_labels_mean_below_or_leaves_of_their_own(self):
        X, y = problem()
        y = y.astype(object)
        y[7] = "b"
        below = tree_model().fit(X, y.astype(str))
        assert below.classes_.tolist() == LEAVES.tolist()
        assert below.taxonomy_ == TREE
        assert below.em_result_.uncertain == 1
        own = tree_model(labels="own").fit(X, y.astype(str))
        assert "b" in own.classes_
        assert own.em_result_ is None
        in_a_set = tree_model(labels="own").fit(X, [*y[:-1], {"b", "c"}])
        assert "b" in in_a_set.classes_

    @pytest.mark.parametrize(
        "form",
        [
            list,
            np.array,
            pd.Series,
            pl.Series,
            lambda y: np.array(y, dtype=object),
            lambda y: np.array(y)[:, None],
            lambda y: pd.DataFrame({"label": y}),
        ],
    )
    @pytest.mark.filterwarnings("ignore:A column-vector y was passed")
    def test_inner_labels_are_seen_in_every_form(self, form):
        X, y = problem()
        fitted = tree_model().fit(X, form(["b", *y[1:].tolist()]))
        assert fitted.classes_.tolist() == LEAVES.tolist()
        assert fitted.em_result_.uncertain == 1
        assert tree_model().fit(X, form(y.tolist())).em_result_ is None
        missing = tree_model(**TIGHT).fit(X, form([None, *y[1:].tolist()]))
        assert_same(missing, tree_model(**TIGHT).fit(X[1:], y[1:]), X)

    def test_classes_that_nothing_tells_apart(self):
        X, y = problem()
        coarse = np.where(np.char.startswith(y, "b/"), "b", y)
        below = [name for name in LEAVES if name.startswith("b/")]
        with pytest.warns(UserWarning, match=r"rows allow 'b/x', 'b/y', 'b/z' together only.* labels=\"own\""):
            fitted = tree_model().fit(X, coarse)
        proba = fitted.predict_proba(X)[:, np.isin(LEAVES, below)]
        np.testing.assert_allclose(proba, proba[:, :1].repeat(len(below), axis=1), atol=1e-6)

    def test_a_score_needs_one_class_a_row(self):
        X, y = problem()
        fitted = tree_model().fit(X, y)
        for entry in ("b", None, {"a/x", "c"}):
            with pytest.raises(ValueError, match="rows without just one class"):
                fitted.score(X, [entry, *y[1:]])

    @pytest.mark.parametrize(
        ("y", "error", "message"),
        [
            ([0, 1, set()], ValueError, "row 2 is an empty set.* None, NaN or pandas.NA"),
            ([0, 1, {0, None}], ValueError, "row 2 is .* missing member"),
            ([0, 1, {0, (1, 2)}], TypeError, r"row 2 .* member \(1, 2\) is no label"),
            ([np.array([1.0, 0.0]), [0.0, 1.0]], TypeError, "row 0 .* give probabilities of classes as a NumPy array"),
            ([None, np.nan, None], ValueError, "y says nothing: all 3 rows"),
            ([{0, 1}, None, {1, 0}], ValueError, "y says nothing"),
            ([[0, 1], [1, 0], [0, 1]], ValueError, "Lists are sets of labels.*as a NumPy array"),
            (np.full((3, 2), np.nan), ValueError, "y says nothing"),
            ([0, 0, None], ValueError, "y has one class only"),
            ([0, "a", None], TypeError, "strings and labels that are numbers"),
            (
                np.array([[0.5, 0.6], [0, 1], [1, 0]]),
                ValueError,
                r"y has shape \(3, 2\).* row 0 sums to 1.1, expected 1",
            ),
            (np.array([[1.5, -0.5], [0, 1], [1, 0]]), ValueError, r"row 0 has the value -0.5"),
            (np.array([[1, 0], [np.nan, 1], [1, 0]]), ValueError, r"row 1 has the value nan"),
            (np.array([["a", "b"], ["a", "c"], ["a", "b"]]), ValueError, "its values are no numbers"),
            (pd.DataFrame([[1, 0], [0, 1], [0, 1]], columns=["u", "u"]), ValueError, "more than one column named 'u'"),
        ],
    )
    def test_errors_of_flat_targets(self, y, error, message):
        with pytest.raises(error, match=message):
            model().fit(np.eye(3), y)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (["a/x", "c", {"a/x", "d"}], "y: not in the taxonomy: 'd'"),
            (["a/x", "c", "aa"], "y: not in the taxonomy: 'aa'"),
            (["root", None, "root"], "y says nothing"),
            (np.eye(3)[[0, 1, 2]], "3 columns of probabilities, expected 6: one for each leaf"),
            (pd.DataFrame(np.eye(3), columns=["a/x", "a", "c"]), "columns of y: 'a' is no leaf"),
        ],
    )
    def test_errors_under_a_tree(self, y, message):
        with pytest.raises(ValueError, match=message):
            tree_model().fit(np.eye(3), y)

    def test_errors_of_parameters(self):
        X, y = problem()
        with pytest.raises(ValueError, match="labels is 'inside', expected one of 'below', 'own'"):
            model(labels="inside").fit(X, y)
        with pytest.raises(ValueError, match="tol must be finite and at least 0"):
            model(labels=PartialLabels(tol=-1.0)).fit(X, y)
        with pytest.raises(ValueError, match="max_rounds must be finite and at least 1"):
            model(labels=PartialLabels(max_rounds=0)).fit(X, y)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model().fit(X, [*y[:-2], None])
        with pytest.raises(ValueError, match="class_weight names labels that are not in y"):
            model(class_weight={"d": 2.0}).fit(X, [*y[:-1], None])


class TestProbabilities:
    @pytest.mark.parametrize("kernel", [Linear(0.8), RBF(2.0, 3.0)])
    @pytest.mark.parametrize("is_tree", [False, True])
    def test_one_hot_is_labels(self, kernel, is_tree):
        X, y = problem()
        taxonomy = TREE if is_tree else None
        hard = model(kernel, taxonomy=taxonomy, **TIGHT).fit(X, y)
        one_hot = pd.DataFrame(np.eye(len(LEAVES)), columns=LEAVES, index=LEAVES).loc[y]
        soft = model(kernel, taxonomy=taxonomy, **TIGHT).fit(X, one_hot[LEAVES[::-1]])
        assert_same(hard, soft, X)
        assert soft.em_result_ is None
        assert soft.result_.objective == pytest.approx(hard.result_.objective, rel=1e-10)

    def test_columns(self):
        X, y = problem()
        shares = np.random.default_rng(1).dirichlet(np.ones(len(LEAVES)), len(y))
        by_name = model(taxonomy=TREE).fit(X, pd.DataFrame(shares, columns=LEAVES))
        in_order = model(taxonomy=TREE).fit(X, shares)
        np.testing.assert_array_equal(by_name.coef_, in_order.coef_)
        numbers = model().fit(X, shares)
        assert numbers.classes_.tolist() == list(range(len(LEAVES)))
        fewer = pl.DataFrame({"c": shares[:, 0], "a/x": 1 - shares[:, 0]})
        assert model(taxonomy=TREE).fit(X, fewer).classes_.tolist() == LEAVES.tolist()

    def test_a_model_learns_what_another_one_says(self):
        X, y = problem()
        teacher = model(Linear(5.0)).fit(X, y)
        student = model(Linear(1e6), intercept_variance=1e6).fit(
            X, pd.DataFrame(teacher.predict_proba(X), columns=teacher.classes_)
        )
        assert_same(teacher, student, X, atol=2e-3)

    def test_rows_of_nan_are_unlabelled(self):
        X, y = problem()
        one_hot = (y[:, None] == LEAVES).astype(float)
        one_hot[::4] = np.nan
        known = np.arange(len(y)) % 4 != 0
        assert_same(tree_model(**TIGHT).fit(X, one_hot), tree_model(**TIGHT).fit(X[known], y[known]), X)

    def test_they_are_mixtures_of_weighted_labels(self):
        """A soft row is one row for each class, with the probabilities as weights."""
        X, _ = problem()
        shares = np.random.default_rng(2).dirichlet(np.ones(3), len(X))
        soft = model(**TIGHT).fit(X, shares)
        repeated = model(**TIGHT).fit(np.repeat(X, 3, axis=0), np.tile([0, 1, 2], len(X)), shares.ravel())
        assert_same(soft, repeated, X)


class TestWeights:
    @pytest.mark.parametrize("kind", ["soft", "sets", "tree"])
    def test_integer_weights_are_repetitions(self, kind):
        X, y = problem()
        rng = np.random.default_rng(3)
        weights = rng.integers(0, 4, len(y))
        repeat = np.repeat(np.arange(len(y)), weights)
        if kind == "soft":
            targets, fresh = rng.dirichlet(np.ones(4), len(y)), model
        else:
            targets, fresh = blur(y, 0.5), tree_model if kind == "tree" else model
            if kind == "sets":
                targets[:] = [label if isinstance(label, set) or label in LEAVES else None for label in targets]
        parameters = TIGHT | {"labels": PartialLabels(tol=1e-9, max_rounds=400)}
        weighted = fresh(**parameters).fit(X, targets, weights)
        assert_same(weighted, fresh(**parameters).fit(X[repeat], targets[repeat]), X, atol=2e-4)
        assert np.abs(weighted.predict_proba(X) - fresh(**parameters).fit(X, targets).predict_proba(X)).max() > 1e-2

    def test_weights_of_classes_are_means(self):
        X, y = problem()
        targets = blur(y, 0.5)
        factors = dict(zip(LEAVES.tolist(), [1.0, 2.0, 0.5, 3.0, 1.5, 0.1], strict=True))
        mask = allowed_mask(targets)
        means = (mask * list(factors.values())).sum(axis=1) / mask.sum(axis=1)
        by_class = tree_model(class_weight=factors).fit(X, targets)
        np.testing.assert_allclose(by_class.coef_, tree_model().fit(X, targets, means).coef_, atol=1e-12)

    def test_balanced(self):
        X, y = problem()
        hard = model(class_weight="balanced").fit(X, y)
        one_hot = pd.DataFrame(np.eye(len(LEAVES)), columns=LEAVES, index=LEAVES).loc[y]
        assert_same(hard, model(class_weight="balanced").fit(X, one_hot), X, atol=1e-3)
        with pytest.raises(ValueError, match="class_weight is 'even'"):
            model(class_weight="even").fit(X, one_hot)


def marginal(fitted, X, mask, weights=None):
    """The likelihood's part of the bound, by the fitted probabilities."""
    weights = np.ones(len(mask)) if weights is None else weights
    log_proba = np.where(mask, fitted.predict_log_proba(X), -np.inf)
    return -weights @ logsumexp(log_proba, axis=1)


class TestExpectation:
    @pytest.mark.parametrize("kernel", [Linear(2.0), Linear(100.0), RBF(1.5, 5.0)], ids=str)
    @pytest.mark.parametrize("is_tree", [False, True])
    @pytest.mark.parametrize("seed", range(4))
    def test_the_bound_never_rises(self, kernel, is_tree, seed):
        X, y = problem(n=int(30 + 40 * seed), seed=seed)
        share = (0.2, 0.5, 0.9, 1.0)[seed]
        coupling = "tree" if is_tree else "independent"
        fitted = tree_model(kernel, coupling=coupling, labels=PartialLabels(max_rounds=30, tol=1e-7))
        weights = np.random.default_rng(seed).uniform(0.1, 2, len(y)) if seed % 2 else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.fit(X, blur(y, share, seed), weights)
        bounds = np.array(fitted.em_result_.bounds)
        assert len(bounds) == fitted.em_result_.rounds + 1 > 2
        assert (np.diff(bounds) <= 1e-10 * bounds[1:]).all()
        assert bounds[-1] < bounds[0]

    @pytest.mark.parametrize("state", ["coefficients", "weights"])
    def test_the_bound_is_what_it_is_said_to_be(self, state):
        X, y = problem()
        targets = blur(y, 0.5)
        weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
        fitted = tree_model(
            Linear(0.7), coupling="independent", intercept_variance=2.0, solver=Solver(space=state)
        ).fit(X, targets, weights)
        penalty = (fitted.coef_**2).sum() / 0.7 / 2 + (fitted.intercept_**2).sum() / 2.0 / 2
        expected = marginal(fitted, X, allowed_mask(targets), weights) + penalty
        assert fitted.em_result_.bounds[-1] == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("is_tree", [False, True])
    def test_it_ends_where_the_marginal_likelihood_is_stationary(self, is_tree):
        """Against the gradient of the marginal objective, and against a general optimizer started there."""
        X, y = problem(n=40, d=2)
        targets = blur(y, 0.5)
        settings = TIGHT | {"labels": PartialLabels(tol=1e-13, max_rounds=2000)}
        fitted = tree_model(Linear(1.0), coupling="tree" if is_tree else "independent", **settings).fit(X, targets)
        mask = allowed_mask(targets)[:, np.searchsorted(LEAVES, TREE.classes)]
        oracle = Hierarchical(X, np.zeros(len(y), dtype=int), TREE, np.ones(TREE.n_nodes), 1.0)
        if not is_tree:
            oracle.R = np.eye(TREE.n_classes)

        def value_and_gradient(w):
            coef, intercept = oracle.functions(w)
            log_p = log_softmax(X @ coef.T + intercept, axis=1)
            inside = np.where(mask, log_p, -np.inf)
            total = logsumexp(inside, axis=1)
            residual = np.exp(log_p) - np.exp(inside - total[:, None])
            gradient = np.concatenate([(X.T @ residual @ oracle.R).ravel(), residual.sum(axis=0)])
            return -total.sum() + w @ w / 2, w + gradient

        order = np.searchsorted(fitted.classes_, TREE.classes)
        coef, intercept = fitted.coef_[order], fitted.intercept_[order]
        nodes = np.linalg.lstsq(oracle.R, coef, rcond=None)[0]  # of least norm, as the prior has it
        w = np.concatenate([nodes.T.ravel(), intercept])
        value, gradient = value_and_gradient(w)
        assert value == pytest.approx(fitted.em_result_.bounds[-1], rel=1e-8)
        assert np.abs(gradient).max() < 1e-4
        found = minimize(value_and_gradient, w, jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-10})
        assert value <= found.fun * (1 + 1e-7)
        np.testing.assert_allclose(found.x, w, atol=1e-2)

    @pytest.mark.parametrize("kernel", [Linear(0.8), RBF(2.0, 3.0)])
    @pytest.mark.parametrize("is_tree", [False, True])
    def test_an_unlabelled_row_changes_nothing(self, kernel, is_tree):
        """Its likelihood is 1 whatever the model says: the responsibilities of all classes are their probabilities."""
        X, y = problem()
        rows = np.arange(len(y)) % 3 > 0
        targets = y.astype(object)
        targets[~rows] = None
        fresh = tree_model if is_tree else model
        assert_same(fresh(kernel, **TIGHT).fit(X, targets), fresh(kernel, **TIGHT).fit(X[rows], y[rows]), X, atol=1e-5)
        balanced = [fresh(kernel, class_weight="balanced", **TIGHT) for _ in range(2)]
        assert_same(balanced[0].fit(X, targets), balanced[1].fit(X[rows], y[rows]), X, atol=1e-5)

    @pytest.mark.parametrize("kernel", [Linear(0.8), RBF(2.0, 3.0)])
    def test_rounds_over_all_classes_would_change_nothing_either(self, kernel, monkeypatch):
        """At their end responsibilities equal probabilities, so the residuals of these rows are zero."""
        X, y = problem()
        free = np.arange(0, len(y), 3)
        plain = label_targets(y, None, "own")
        sets = AllowedSets(free, np.zeros(len(free), dtype=int), np.array([0, 6]), np.arange(6))
        labels = plain.labels.copy()
        labels[free] = -1
        monkeypatch.setattr(kernel_logistic, "read_targets", lambda *_: replace(plain, labels=labels, allowed=sets))
        by_rounds = model(kernel, **TIGHT, labels=PartialLabels(tol=1e-14, max_rounds=2000)).fit(X, y)
        monkeypatch.undo()
        assert by_rounds.em_result_.rounds > 3
        kept = np.setdiff1d(np.arange(len(y)), free)
        assert_same(by_rounds, model(kernel, **TIGHT).fit(X[kept], y[kept]), X, atol=1e-4)

    def test_a_parent_changes_something_for_the_better(self):
        rng = np.random.default_rng(0)
        data = taxolearn.datasets.make_hierarchy(600, branching=(3, 4), random_state=0)
        train = np.arange(600) < 300
        hide = rng.random(600) < 0.85
        targets = data.y.astype(object)
        targets[hide] = [data.taxonomy.parent(label) for label in data.y[hide]]
        X, tree = np.asarray(data.X), data.taxonomy
        with_them = model(taxonomy=tree).fit(X[train], targets[train])
        dropped = model(taxonomy=tree).fit(X[train & ~hide], data.y[train & ~hide])
        loss = [
            -each.predict_log_proba(X[~train])[np.arange(300), np.searchsorted(each.classes_, data.y[~train])].mean()
            for each in (with_them, dropped)
        ]
        assert loss[0] < loss[1]

    def test_no_row_has_one_class(self):
        X, y = problem()
        targets = [label.split("/")[0] for label in y]
        targets = [{"c", "a/x"} if label == "c" else label for label in targets]
        with pytest.warns(UserWarning, match="cannot tell these classes apart"):
            fitted = tree_model().fit(X, targets)
        nodes = fitted.predict_node_proba(X)
        tops = TREE.index(["a", "b"])
        answers = np.array(["a", "b"])[nodes[:, tops].argmax(axis=1)]
        known = np.array([label in ("a", "b") for label in targets])
        assert (answers[known] == np.array(targets, dtype=object)[known]).mean() > 0.8

    def test_rounds_run_out(self):
        X, y = problem()
        with pytest.warns(ConvergenceWarning, match="stopped after max_rounds=2 rounds"):
            fitted = tree_model(labels=PartialLabels(max_rounds=2, tol=0.0)).fit(X, blur(y, 0.5))
        assert fitted.em_result_.status == "max_rounds"
        assert fitted.em_result_.rounds == 2
        assert fitted.result_.status == "converged"

    def test_early_rounds_are_short_and_the_last_is_certified(self):
        X, y = problem(n=300)
        fitted = tree_model(tol=1e-9).fit(X, blur(y, 0.5))
        assert fitted.result_.relative_gap <= 1e-9
        result = fitted.em_result_
        assert result.products <= 40 + 12 * result.rounds + fitted.result_.products

    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
    def test_threads_and_sparse_inputs(self, form):
        X, y = problem(n=300)
        X = form(X * (np.abs(X) > 0.5))
        one = tree_model().fit(X, blur(y, 0.5))
        two = tree_model().set_params(n_threads=2).fit(X, blur(y, 0.5))
        np.testing.assert_array_equal(one.coef_, two.coef_)

    def test_precomputed_and_callable_kernels(self):
        X, y = problem()
        targets = [label if i % 2 else {label, "c"} for i, label in enumerate(y.tolist())]
        expected = model(RBF(2.0, 3.0), **TIGHT).fit(X, targets)
        K = RBF(2.0, 3.0)(X)
        given = model(taxolearn.kernels.Precomputed(), **TIGHT).fit(K, targets)
        np.testing.assert_allclose(given.predict_proba(K), expected.predict_proba(X), atol=1e-5)

        def kernel(A, B):
            return RBF(2.0, 3.0)(A, B)

        assert_same(model(kernel, **TIGHT).fit(X, targets), expected, X, atol=1e-5)


class TestHyperparameters:
    def test_they_are_learned_on_rows_with_one_class(self):
        X, y = load_iris(return_X_y=True)
        targets = y.astype(object)
        targets[::3] = [{label, (label + 1) % 3} for label in y[::3]]
        targets[1::30] = None
        certain = np.array([isinstance(label, (int, np.integer)) for label in targets])
        fitted = KernelLogisticClassifier(n_threads=1, tuning=CrossValidation(folds=3)).fit(X, targets)
        expected = KernelLogisticClassifier(n_threads=1, tuning=CrossValidation(folds=3)).fit(X[certain], y[certain])
        assert fitted.hyperparameters_ == expected.hyperparameters_
        assert fitted.em_result_.uncertain == len(y[::3])
        folds = np.arange(len(y)) % 4
        fitted.set_params(tuning__folds=folds, tuning__subset=0.9).fit(X, targets)
        expected.set_params(tuning__folds=folds[certain], tuning__subset=0.9).fit(X[certain], y[certain])
        assert fitted.hyperparameters_ == expected.hyperparameters_

    def test_one_hot_learns_what_labels_learn(self):
        X, y = load_iris(return_X_y=True)
        labels, one_hot = (
            KernelLogisticClassifier(n_threads=1, tuning=CrossValidation(folds=3)).fit(X, t) for t in (y, np.eye(3)[y])
        )
        assert one_hot.hyperparameters_ == labels.hyperparameters_
        np.testing.assert_allclose(one_hot.predict_proba(X), labels.predict_proba(X), atol=1e-6)

    def test_labels_are_drawn_from_probabilities(self):
        X, y = load_iris(return_X_y=True)
        soft = 0.7 * np.eye(3)[y] + 0.1
        soft[::7] = np.nan
        fitted = KernelLogisticClassifier(n_threads=1, tuning=CrossValidation(folds=3)).fit(X, soft)
        again = KernelLogisticClassifier(n_threads=1, tuning=CrossValidation(folds=3)).fit(X, soft)
        assert fitted.hyperparameters_ == again.hyperparameters_
        assert fitted.cv_result_.n_held_out == np.isfinite(soft[:, 0]).sum()
        assert 0.5 < fitted.cv_result_.values.min() < 1.1  # the entropy of a row is 0.64
        targets = read_targets(np.tile([0.2, 0.0, 0.5, 0.3], (20_000, 1)), None, "own")
        shares = np.bincount(_drawn(targets, np.random.RandomState(0)), minlength=4) / 20_000
        np.testing.assert_allclose(shares, [0.2, 0.0, 0.5, 0.3], atol=0.02)

    def test_weights_and_folds_in_every_form(self):
        X, y = load_iris(return_X_y=True)
        targets = y.astype(object)
        targets[::10] = None
        known = np.arange(len(y)) % 10 != 0
        folds = np.arange(len(y)) % 4
        expected = KernelLogisticClassifier(n_threads=1, tuning=CrossValidation(folds=folds[known])).fit(
            X[known], y[known]
        )
        for form in (np.asarray, pd.Series, tuple, list):
            fitted = KernelLogisticClassifier(n_threads=1, tuning=CrossValidation(folds=form(folds))).fit(
                X, targets, 1.0
            )
            assert fitted.hyperparameters_ == expected.hyperparameters_
        with pytest.raises(ValueError, match="sample_weight is zero in all of these"):
            KernelLogisticClassifier().fit(X, [{0, 1}, *y[1:]], np.eye(len(y))[0])

    def test_too_few(self):
        X, y = problem(n=20)
        with pytest.raises(ValueError, match=r'"cv" holds out rows with one label, of which y has 2, .*tuning=None'):
            KernelLogisticClassifier().fit(X, [*y[:2], *([{"a/x", "c"}] * 18)])


def test_it_is_saved_and_loaded(tmp_path):
    X, y = problem()
    fitted = tree_model().fit(X, blur(y, 0.5))
    taxolearn.save(fitted, tmp_path / "model.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "model.taxo")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.em_result_ == fitted.em_result_
    assert loaded.labels == "below"


def test_a_line_for_every_round(capfd):
    X, y = problem()
    fitted = tree_model(verbose=2).fit(X, blur(y, 0.5))
    lines = capfd.readouterr().err.splitlines()
    rounds = [line for line in lines if line.startswith("round")]
    assert len(rounds) == fitted.em_result_.rounds - 1
    assert "bound" in rounds[0]


def test_ctrl_c_leaves_no_half_model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20000, 200))
    targets = [{int(k), int((k + 1) % 20)} if k % 2 else int(k) for k in rng.integers(0, 20, len(X))]
    fitted = model(tol=1e-14, labels=PartialLabels(max_rounds=10000, tol=0.0), solver=Solver(precision="double"))
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(X, targets)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not hasattr(fitted, "coef_")
    assert not hasattr(fitted, "classes_")
