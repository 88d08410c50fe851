"""The top-down classifier: a softmax at every inner node, against products of flat models; trees made of clusters."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from trees import random_taxonomy

import taxolearn
from taxolearn import CrossValidation, KernelLogisticClassifier, Taxonomy, TopDownClassifier
from taxolearn.estimators.top_down_tuning import fit_temperature, temperature_loss
from taxolearn.kernels import Linear

LABELS = ["a/1", "a/2/x", "a/2/y", "a/3", "b/1", "b/2", "c"]
TREE = Taxonomy.from_labels([*LABELS, "a/4", "d/only"])
VARIANCE = 0.7


def problem(n=240, d=6, seed=0, *, sparse=False):
    rng = np.random.default_rng(seed)
    y = np.repeat(LABELS, -(-n // len(LABELS)))[rng.permutation(n)]
    centres = dict(zip(LABELS, rng.standard_normal((len(LABELS), d)), strict=True))
    X = np.array([centres[label] for label in y]) + rng.standard_normal((n, d))
    if sparse:
        return sp.csr_matrix(X * (rng.random(X.shape) < 0.4)), y
    return X, y


def classifier(taxonomy=TREE, **options):
    return TopDownClassifier(taxonomy, **{"variance": VARIANCE, "tuning": None, "tol": 1e-10} | options)


def flat(**options):
    return KernelLogisticClassifier(Linear(VARIANCE), tuning=None, tol=1e-10, **options)


def by_hand(X, at, tree, *, inputs=None, weights=None):
    """Log probabilities of the leaves as a product of flat models, each fitted to the rows below its node."""
    inputs = X if inputs is None else inputs
    above = [[tree.names[0], *tree.path(name)] for name in at]
    log_p = {tree.names[0]: np.zeros(inputs.shape[0])}
    for name in tree.names[: tree.n_inner]:
        children = tree.children(name)
        rows = [i for i, path in enumerate(above) if name in path[:-1]]
        if len(children) == 1 or not rows:
            log_p |= {child: log_p[name] - np.log(len(children)) for child in children}
            continue
        y = [path[path.index(name) + 1] for path in (above[i] for i in rows)]
        star = Taxonomy.from_edges([("all", child) for child in children])  # has children without rows, too
        model = flat(taxonomy=star, coupling="independent")
        model.fit(X[rows], y, None if weights is None else weights[rows])
        part = model.predict_log_proba(inputs)
        log_p |= {child: log_p[name] + part[:, k] for k, child in enumerate(model.classes_.tolist())}
    return np.stack([log_p[label] for label in sorted(tree.classes.tolist())], axis=1)


# The variance that suits the data depends on the number of rows, so weights are not repetitions there.
@parametrize_with_checks(
    [TopDownClassifier(variance=1.0, tuning=None, tol=1e-15), TopDownClassifier(variance=1.0, tuning=None)]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


class TestModel:
    @pytest.mark.parametrize("sparse", [False, True])
    def test_is_a_product_of_flat_models(self, sparse):
        X, y = problem(sparse=sparse)
        model = classifier().fit(X, y)
        np.testing.assert_allclose(model.predict_log_proba(X), by_hand(X, y, TREE), atol=1e-6)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
        assert set(model.node_results_) == {"root", "a", "a/2", "b"}
        assert model.result_.nodes == 4
        assert model.result_.status == "converged"
        assert model.result_.relative_gap == max(each.relative_gap for each in model.node_results_.values()) <= 1e-10

    @pytest.mark.parametrize("seed", range(6))
    def test_trees_of_any_shape(self, seed):
        tree = random_taxonomy(seed, n_nodes=25)
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 3)), rng.choice(tree.classes, 60)
        log_p = classifier(tree).fit(X, y).predict_log_proba(X)
        np.testing.assert_allclose(log_p, by_hand(X, y, tree), atol=1e-6)

    @pytest.mark.parametrize("n_classes", [2, 5])
    @pytest.mark.parametrize("sparse", [False, True])
    def test_without_a_tree_it_is_the_flat_model(self, n_classes, sparse):
        X, y = problem(sparse=sparse)
        keep = np.isin(y, LABELS[:n_classes])
        X, y = X[keep], y[keep]
        model, other = classifier(None).fit(X, y), flat().fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-7)
        assert list(model.node_results_) == ["root"]
        assert model.taxonomy_ is None

    def test_only_children_and_nodes_without_rows(self):
        X, y = problem()
        model = classifier().fit(X, y)
        nodes = dict(zip(TREE.names.tolist(), model.predict_node_proba(X).T, strict=True))
        np.testing.assert_allclose(nodes["d"], nodes["d/only"])
        assert (nodes["d"] > 0).all()
        assert (nodes["a/4"] > 0).all()
        assert nodes["a/4"].mean() < nodes["a/3"].mean()

    def test_children_of_a_node_without_rows_share_evenly(self):
        tree = Taxonomy.from_labels([*LABELS, "e/1", "e/2"])
        X, y = problem()
        p = classifier(tree).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(p[:, -2], p[:, -1])

    def test_inner_labels_below_have_a_part_above_only(self):
        X, y = problem()
        y = np.where(np.arange(len(y)) % 3 == 0, [label.rpartition("/")[0] or label for label in y], y)
        log_p = classifier().fit(X, y).predict_log_proba(X)
        np.testing.assert_allclose(log_p, by_hand(X, y, TREE), atol=1e-6)

    def test_inner_labels_as_classes_of_their_own(self):
        X, y = problem()
        y = np.where(np.arange(len(y)) % 3 == 0, [label.rpartition("/")[0] or label for label in y], y)
        model = classifier(labels="own").fit(X, y)
        tree = TREE.with_classes(np.unique(y))
        assert model.taxonomy_ == tree
        np.testing.assert_allclose(model.predict_log_proba(X), by_hand(X, y, tree), atol=1e-6)

    def test_rows_without_a_label_or_at_the_root_have_no_influence(self):
        X, y = problem()
        some = y.astype(object)
        some[:30], some[30:60] = None, "root"
        log_p = classifier(variance=VARIANCE).fit(X, some.tolist()).predict_log_proba(X)
        np.testing.assert_allclose(log_p, classifier().fit(X[60:], y[60:]).predict_log_proba(X), atol=1e-8)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_weights_are_repetitions(self, sparse):
        X, y = problem(sparse=sparse)
        weights = np.random.default_rng(1).integers(0, 4, len(y))
        rows = np.repeat(np.arange(len(y)), weights)
        a, b = classifier(tol=1e-13).fit(X, y, weights), classifier(tol=1e-13).fit(X[rows], y[rows])
        np.testing.assert_allclose(a.predict_log_proba(X), b.predict_log_proba(X), atol=1e-5)

    def test_class_weight(self):
        X, y = problem()
        a = classifier(class_weight={"b/1": 3.0}).fit(X, y).predict_log_proba(X)
        b = classifier().fit(X, y, np.where(y == "b/1", 3.0, 1.0)).predict_log_proba(X)
        np.testing.assert_allclose(a, b, atol=1e-9)

    def test_order_of_classes_does_not_matter(self):
        X, y = problem()
        edges = TREE.to_edges()
        other = Taxonomy.from_edges([edges[k] for k in np.random.default_rng(0).permutation(len(edges))])
        a, b = classifier(tuning="cv").fit(X, y), classifier(other, tuning="cv").fit(X, y)
        np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-5)

    @pytest.mark.parametrize("tuning", [None, "cv"])
    def test_number_of_jobs_does_not_matter(self, tuning):
        X, y = problem(sparse=True)
        expected = classifier(tuning=tuning).fit(X, y)
        for n_jobs in (1, 2, 3):
            model = classifier(tuning=tuning, n_jobs=n_jobs).fit(X, y)
            np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-12)
            assert model.hyperparameters_ == expected.hyperparameters_

    def test_temperature_divides_the_functions_of_its_level(self):
        X, y = problem()
        cold, warm = classifier().fit(X, y), classifier(temperature=(1.0, 2.0, 1.0)).fit(X, y)
        a, b = (dict(zip(TREE.names.tolist(), m.predict_node_proba(X).T, strict=True)) for m in (cold, warm))
        np.testing.assert_allclose(a["b"], b["b"])
        odds = [np.log(p["b/1"] / p["b/2"]) for p in (a, b)]
        np.testing.assert_allclose(odds[0], 2 * odds[1])


class TestAnswers:
    @pytest.mark.parametrize("sparse", [False, True])
    def test_top_classes_are_those_of_all(self, sparse):
        X, y = problem(sparse=sparse)
        model = classifier().fit(X, y)
        p = model.predict_proba(X)
        labels, found = model.top_classes(X, 4)
        order = np.argsort(-p, axis=1, kind="stable")[:, :4]
        np.testing.assert_array_equal(labels, model.classes_[order])
        np.testing.assert_allclose(found, np.take_along_axis(p, order, axis=1))
        for k in (4, 100):
            exact, whole = model.top_classes(X, k), model.top_classes(X, k, beam=50)
            np.testing.assert_array_equal(exact[0], whole[0])
            np.testing.assert_allclose(exact[1], whole[1], atol=1e-12)

    def test_narrow_beam(self):
        X, y = problem()
        model = classifier().fit(X, y)
        labels, found = model.top_classes(X, 9, beam=1)
        columns = np.searchsorted(model.classes_, labels)
        p = np.take_along_axis(model.predict_proba(X), columns, axis=1)
        np.testing.assert_allclose(found[found > 0], p[found > 0])
        assert all(len(set(row)) == 9 for row in labels.tolist())

    def test_decisions_and_score(self):
        X, y = problem()
        model = classifier().fit(X, y)
        np.testing.assert_array_equal(model.decide(X), model.predict(X))
        assert set(model.decide(X, confidence=0.99)) <= set(TREE.names)
        assert model.score(X, y) == np.mean(model.predict(X) == y) > 0.5

    @pytest.mark.parametrize("sparse", [False, True])
    def test_explanations_add_up(self, sparse):
        X, y = problem(sparse=sparse)
        model = classifier(intercept_variance=0.0).fit(X, y)
        nodes = dict(zip(TREE.names.tolist(), model.predict_node_proba(X).T, strict=True))
        for row, steps in enumerate(model.explain(X[:5], y[:5], top=3)):
            assert [step.node for step in steps] == TREE.path(y[row])
            for step in steps:
                within = nodes[step.node][row] / nodes[TREE.parent(step.node)][row]
                assert step.probability == pytest.approx(within)

    def test_flat_explanation_is_that_of_the_flat_model(self):
        X, y = problem()
        a, b = (m.explain(X[:3], top=2) for m in (classifier(None).fit(X, y), flat().fit(X, y)))
        assert [s.node for (s,) in a] == [s.node for (s,) in b]
        np.testing.assert_allclose(
            [s.contributions[0][1] for (s,) in a], [s.contributions[0][1] for (s,) in b], rtol=1e-5
        )


class TestTuning:
    @pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
    def test_temperature_is_the_optimum_of_scipy(self, scale):
        rng = np.random.default_rng(0)
        held = []
        for n, k in ((40, 3), (25, 7)):
            u = scale * rng.standard_normal((n, k))
            y = (u + rng.gumbel(size=u.shape)).argmax(axis=1).astype(np.int32)
            y = np.where(rng.random(n) < 0.2, 0, y).astype(np.int32)
            held.append((u, y, rng.random(n) + 0.5))
        t, value = fit_temperature(held)

        def loss(t):
            z = [u / np.exp(t) for u, _, _ in held]
            rows = [w @ (logsumexp(z, axis=1) - z[np.arange(len(y)), y]) for z, (_, y, w) in zip(z, held, strict=True)]
            return sum(rows) + 0.5 * t**2

        assert value == pytest.approx(loss(t)) == pytest.approx(temperature_loss(held, t))
        assert t == pytest.approx(minimize_scalar(loss, bounds=(-6, 6), method="bounded").x, abs=1e-4)

    def test_learned_values_beat_those_it_starts_from(self):
        X, y = problem(600)
        X_test, y_test = problem(600)[0] + 0.1, y
        wrong = classifier(variance=1000.0).fit(X[::2], y[::2])
        learned = classifier(variance=1000.0, tuning="cv").fit(X[::2], y[::2])
        k = np.searchsorted(learned.classes_, y_test[1::2])
        losses = [-m.predict_log_proba(X_test[1::2])[np.arange(300), k].mean() for m in (wrong, learned)]
        assert losses[1] < losses[0]
        assert len(learned.hyperparameters_.variances) == TREE.height
        assert learned.hyperparameters_.to_dict()["intercept_variance"] == 1.0

    def test_tuned_is_an_unfitted_copy_that_fits_the_same_model(self):
        X, y = problem()
        model = TopDownClassifier(TREE, tol=1e-10)
        copied = model.tuned(X, y)
        assert copied.tuning is None
        assert not hasattr(copied, "classes_")
        assert model.tuning == "cv"
        np.testing.assert_allclose(copied.fit(X, y).predict_proba(X), model.fit(X, y).predict_proba(X))
        assert clone(copied).variance == model.hyperparameters_.variances
        folds = np.arange(len(y)) % 4
        assert model.tuned(X, y, None, folds).variance == model.tuned(X, y, folds=folds).variance

    def test_limits(self):
        X, y = problem()
        quick = TopDownClassifier(TREE, variance=3.0, tuning=CrossValidation(3, time_limit=0.0)).fit(X, y)
        assert quick.hyperparameters_.variances == (3.0,) * TREE.height
        TopDownClassifier(TREE, tuning=CrossValidation(2, subset=0.5)).fit(X, y)
        TopDownClassifier(TREE).set_params(tuning__folds=2).fit(X, y)


class TestFiles:
    @pytest.mark.parametrize("taxonomy", [None, TREE])
    @pytest.mark.parametrize("sparse", [False, True])
    def test_saved_and_loaded(self, tmp_path, taxonomy, sparse):
        X, y = problem(sparse=sparse, d=40)
        model = classifier(taxonomy, tuning="cv").fit(X, y)
        for dtype, atol in (("float64", 1e-14), ("float32", 1e-5)):
            taxolearn.save(model, tmp_path / "model.taxo", dtype=dtype)
            loaded = taxolearn.load(tmp_path / "model.taxo")
            np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=atol)
        assert loaded.hyperparameters_ == model.hyperparameters_
        assert loaded.result_ == model.result_
        assert loaded.node_results_ == model.node_results_
        assert loaded.get_params()["tol"] == model.tol
        np.testing.assert_array_equal(loaded.top_classes(X, 2, beam=9)[0], loaded.top_classes(X, 2)[0])
        assert taxolearn.read_report(tmp_path / "model.taxo")["functions"] == "top-down"


class TestBadInput:
    def test_labels(self):
        X, y = problem()
        with pytest.raises(ValueError, match="nowhere"):
            classifier().fit(X, np.where(np.arange(len(y)) == 3, "nowhere", y))
        with pytest.raises(ValueError, match="one class only"):
            classifier(None).fit(X, ["a"] * len(y))
        with pytest.raises(ValueError, match="KernelLogisticClassifier"):
            classifier().fit(X, [{"a/1", "c"}, *y[1:]])
        with pytest.raises(ValueError, match="KernelLogisticClassifier"):
            classifier(None).fit(X, np.full((len(X), 3), 1 / 3))

    def test_inputs(self):
        X, y = problem()
        with pytest.raises(ValueError, match="0 sample"):
            classifier().fit(X[:0], y[:0])
        X[0, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            classifier().fit(X, y)

    def test_parameters(self):
        X, y = problem()
        for options, message in (
            ({"variance": 0.0}, "variance must be"),
            ({"variance": (1.0, 2.0)}, "expected a number, or one for each of the 3 levels"),
            ({"temperature": -1.0}, "temperature must be"),
            ({"tol": 0.0}, "tol must be"),
            ({"tuning": "grid"}, "tuning is 'grid'"),
            ({"labels": "above"}, "labels is 'above'"),
        ):
            with pytest.raises(ValueError, match=message):
                classifier(**options).fit(X, y)
        with pytest.raises(TypeError, match="taxonomy must be"):
            TopDownClassifier("tree").fit(X, y)

    def test_unconverged_fits_warn(self):
        X, y = problem()
        with pytest.warns(ConvergenceWarning, match="of 4 nodes did not converge, the worst is"):
            model = classifier(max_iter=1).fit(X, y)
        assert model.result_.status == "max_iter"


class TestClusters:
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize(("n_classes", "branching"), [(5, 16), (16, 16), (17, 16), (50, 4), (200, 16), (27, 3)])
    def test_balanced_tree_of_all_labels(self, sparse, n_classes, branching):
        rng = np.random.default_rng(0)
        y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 300)]
        X = rng.standard_normal((len(y), 10))
        X = sp.csr_matrix(np.maximum(X, 0)) if sparse else X
        tree = Taxonomy.from_clusters(X, y, branching=branching)
        assert sorted(tree.classes.tolist()) == list(range(n_classes))
        counts = np.bincount(tree.parents[1:], minlength=tree.n_inner)[: tree.n_inner]
        assert counts.max() <= branching
        assert counts.min() >= min(2, n_classes)
        assert tree.height <= np.ceil(np.log(n_classes) / np.log(branching) - 1e-9)
        assert tree == Taxonomy.from_clusters(X, y, branching=branching)

    def test_finds_groups(self):
        rng = np.random.default_rng(0)
        groups = 5 * np.eye(4)
        y = np.tile(np.arange(12), 20)
        X = groups[y % 4] + rng.standard_normal((len(y), 4))
        tree = Taxonomy.from_clusters(X, y, branching=4)
        for name in tree.children("root"):
            assert len({int(leaf) % 4 for leaf in tree.leaves(name)}) == 1

    def test_names_do_not_collide(self):
        y = ["root", "cluster 1", "cluster 2", "x"] * 2
        tree = Taxonomy.from_clusters(np.random.default_rng(0).standard_normal((8, 3)), y, branching=2)
        assert sorted(tree.classes) == sorted(set(y))

    def test_equal_rows_and_bad_branching(self):
        tree = Taxonomy.from_clusters(np.ones((9, 2)), np.arange(9), branching=3)
        assert tree.n_classes == 9
        with pytest.raises(ValueError, match="branching"):
            Taxonomy.from_clusters(np.ones((9, 2)), np.arange(9), branching=1)
