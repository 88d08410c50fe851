"""Pools of classifiers: weights against other solvers, certificates, what a pool promises, and its corner cases."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxolearn import KernelLogisticClassifier, PoolClassifier, Taxonomy, load, read_report, save
from taxolearn.estimators import fit_pool_weights, fit_temperature
from taxolearn.estimators.pooling.weights import PoolObjective

PLAIN = KernelLogisticClassifier(tuning=None)


def random_scores(seed=0, n=150, n_classes=5, n_experts=4, noise=1.0):
    """Log scores of experts of which the first ones know something."""
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=(n, n_classes)) * 2
    labels = (truth + generator.gumbel(size=truth.shape)).argmax(axis=1)
    scores = [
        log_softmax(truth / (k + 1) + noise * k * generator.normal(size=truth.shape), axis=1) for k in range(n_experts)
    ]
    return scores, labels, generator.random(n) + 0.5


def mixed_with_shares(proba, y):
    """Probabilities with the shares of the classes, half a row added to each, by the rule of succession."""
    shares = (np.bincount(y) + 0.5) / (len(y) + 0.5 * (y.max() + 1))
    return proba + (shares - proba) / (len(y) + 2)


def pool(*experts, **options):
    return PoolClassifier(list(experts) if experts else "auto", **options)


# -- Weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_derivatives_are_finite_differences(seed):
    objective = PoolObjective(*random_scores(seed), penalty=1.5)
    a = np.random.default_rng(seed).random(4)
    loss, gradient, hessian = objective.derivatives(a)
    assert loss == pytest.approx(objective.loss(a), rel=1e-12)
    value = lambda at: objective.penalized(at, objective.loss(at))  # noqa: E731
    assert np.allclose(gradient, approx_fprime(a, value, 1e-6), rtol=1e-4, atol=1e-3)
    numeric = approx_fprime(a, lambda at: objective.derivatives(at)[1], 1e-6)
    assert np.allclose(hessian, numeric, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_are_those_of_another_solver(seed, dtype):
    scores, labels, weights = random_scores(seed)
    scores = [each.astype(dtype) for each in scores]
    result = fit_pool_weights(scores, labels, weights)
    objective = PoolObjective(scores, labels, weights)

    def evaluate(a):
        loss, gradient, _ = objective.derivatives(a)
        return objective.penalized(a, loss), gradient

    other = minimize(
        evaluate, objective.center, jac=True, bounds=[(0, None)] * 4, options={"ftol": 1e-16, "gtol": 1e-11}
    )
    assert result.status == "converged"
    assert np.allclose(result.weights, other.x, atol=1e-6)
    assert result.loss == pytest.approx(objective.loss(other.x) / weights.sum(), abs=1e-9)


@pytest.mark.parametrize("max_iter", [0, 1, 2, 50])
def test_gap_is_a_bound(max_iter):
    scores, labels, weights = random_scores(7)
    best = fit_pool_weights(scores, labels, weights)
    result = fit_pool_weights(scores, labels, weights, max_iter=max_iter)
    objective = PoolObjective(scores, labels, weights)
    excess = objective.penalized(result.weights, objective.loss(result.weights)) - objective.penalized(
        best.weights, objective.loss(best.weights)
    )
    assert excess <= result.gap + 1e-9
    assert best.relative_gap <= 1e-10
    assert (result.status == "converged") == (max_iter == 50)


def test_batches_change_nothing(monkeypatch):
    scores, labels, weights = random_scores(1)
    whole = fit_pool_weights(scores, labels, weights)
    monkeypatch.setattr("taxolearn.estimators.pooling.weights._BATCH", 35)
    assert np.allclose(fit_pool_weights(scores, labels, weights).weights, whole.weights, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    n_classes=st.integers(2, 4),
    n_experts=st.integers(1, 5),
    noise=st.sampled_from([0.0, 1.0, 30.0]),
    penalty=st.sampled_from([1.0, 4.0, 1000.0]),
)
def test_a_pool_is_never_worse_than_its_best_expert(seed, n, n_classes, n_experts, noise, penalty):
    scores, labels, weights = random_scores(seed, n, n_classes, n_experts, noise)
    result = fit_pool_weights(scores, labels, weights, penalty=penalty)
    objective = PoolObjective(scores, labels, weights)
    assert (result.weights >= 0).all()
    assert objective.loss(result.weights) <= min(objective.loss(unit) for unit in np.eye(n_experts))


def test_few_rows_keep_weights_near_equal():
    scores, labels, _ = random_scores(2, n=600)
    few = fit_pool_weights([each[:4] for each in scores], labels[:4], penalty=1000.0)
    assert few.status == "single" or np.allclose(few.weights, 0.25, atol=0.05)
    many = fit_pool_weights(scores, labels)
    assert many.weights[0] > 2 * many.weights[3]


@pytest.mark.parametrize("factor", [0.01, 0.3, 1.0, 5.0, 100.0])
def test_temperature_is_that_of_another_solver(factor):
    scores, labels, weights = random_scores(3)
    u = factor * scores[0]
    objective = PoolObjective([u], labels, weights)
    other = minimize_scalar(
        lambda t: objective.loss(np.exp([-t])) + t * t / 2, bounds=(-8, 8), method="bounded", options={"xatol": 1e-9}
    )
    assert np.log(fit_temperature(u, labels, weights)) == pytest.approx(other.x, abs=1e-5)


def test_wrong_scores():
    scores, labels, _ = random_scores()
    with pytest.raises(ValueError, match="expert 1 are not all finite"):
        fit_pool_weights([scores[0], np.full_like(scores[0], -np.inf)], labels)
    with pytest.raises(ValueError, match="scores have the shapes"):
        fit_pool_weights([scores[0], scores[1][:3]], labels)
    with pytest.raises(ValueError, match="scores is empty"):
        fit_pool_weights([], labels)
    with pytest.raises(ValueError, match="labels must be from 0 to 4"):
        fit_pool_weights(scores, labels + 1)


# -- The estimator ----------------------------------------------------------------------------------------------------


@parametrize_with_checks([pool(PLAIN, GaussianNB()), pool(PLAIN)])
def test_scikit_learn_check(estimator, check):
    if "sample_weight_equivalence" in str(check):
        pytest.skip("folds of rows that are repeated are others")
    check(estimator)


@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_auto_is_as_good_as_its_experts(data):
    X, y = data(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    model = PoolClassifier().fit(X[~test], y[~test])
    assert {row.name for row in model.table_} >= {"naive Bayes", "softmax", "rbf"}
    assert model.cv_log_loss_ <= min(row.log_loss for row in model.table_)
    assert model.pool_result_.relative_gap < 1e-8
    assert log_loss(y[test], model.predict_proba(X[test])) < 0.35
    assert model.score(X[test], y[test]) > 0.9
    assert "softmax" in str(model.table_)
    assert model.explain(X[:2])[0][0].contributions


def test_the_pool_is_the_mixture_it_says():
    X, y = load_iris(return_X_y=True)
    model = pool(("a", PLAIN), ("b", GaussianNB())).fit(X, y)
    Z = (X - model.mean_) / model.scale_
    u = sum(
        model.weights_[name] / model.temperatures_[name] * expert.predict_log_proba(Z)
        for name, expert in model.experts_.items()
    )
    assert np.allclose(model.predict_proba(X), mixed_with_shares(softmax(u, axis=1), y), atol=1e-10)


def test_one_expert_has_a_temperature():
    X, y = load_iris(return_X_y=True)
    model = pool(("only", PLAIN)).fit(X, y)
    Z = (X - model.mean_) / model.scale_
    alone = clone(PLAIN).fit(Z, y)
    assert model.weights_ == {"only": 1.0}
    expected = softmax(alone.predict_log_proba(Z) / model.temperatures_["only"], axis=1)
    assert np.allclose(model.predict_proba(X), mixed_with_shares(expected, y), atol=1e-9)


def test_sparse_inputs_stay_sparse():
    X, y = load_iris(return_X_y=True)
    model = pool(PLAIN, MultinomialNB()).fit(sp.csr_matrix(X), y)
    assert model.mean_ is None
    assert np.allclose(model.predict_proba(sp.csr_matrix(X)), model.predict_proba(X))
    dense = pool(PLAIN, MultinomialNB()).fit(X, y)  # counts are not standardized
    assert np.allclose(dense.predict_proba(sp.csr_matrix(X)), dense.predict_proba(X))


def test_ten_rows():
    X, y = load_iris(return_X_y=True)
    rows = np.arange(0, 150, 15)
    model = PoolClassifier().fit(X[rows], y[rows])
    assert model.score(X, y) > 0.8
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_one_row_per_class():
    model = PoolClassifier().fit(np.eye(4), list("abcd"))
    assert model.pool_result_.status == "equal"
    assert np.isnan(model.cv_log_loss_)
    assert model.predict(np.eye(4)).tolist() == list("abcd")
    half = PoolClassifier().fit(np.eye(4)[[0, 0, 1, 2, 3]], list("aabcd"))
    assert np.isfinite(half.predict_log_proba(np.eye(4))).all()
    pairs = PoolClassifier().fit(np.repeat(np.eye(4), 2, axis=0), list("aabbccdd"))
    assert pairs.predict(np.eye(4)).tolist() == list("abcd")


def test_two_classes_constant_features_and_rows_of_zeros():
    X = np.random.default_rng(0).poisson(1.0, (60, 6)).astype(float)
    y = np.where(X[:, 0] > 0, "yes", "no")
    X[:, 5], X[:, 4] = 1e9, 0.0
    X[:10, :5] = 0.0
    y[:10] = "no"
    for inputs in (X, sp.csr_matrix(X)[:, :5]):
        model = PoolClassifier().fit(inputs, y)
        assert model.decision_function(inputs).shape == (60,)
        assert np.isfinite(model.predict_log_proba(inputs)).all()
        assert model.score(inputs, y) > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_answered_by_the_shares_of_classes(seed):
    generator = np.random.default_rng(seed)
    X, y = generator.normal(size=(600, 8)), generator.choice(3, 600, p=[0.7, 0.2, 0.1])
    model = PoolClassifier().fit(X[:300], y[:300])
    shares = np.bincount(y[:300]) / 300
    assert log_loss(y[300:], model.predict_proba(X[300:])) <= 1.01 * log_loss(y[300:], np.tile(shares, (300, 1)))


def test_wrong_experts_are_replaced_by_the_shares_of_classes():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(300, 4)), generator.choice(3, 300, p=[0.8, 0.15, 0.05])
    model = pool(RandomForestClassifier(5, random_state=0, class_weight="balanced")).fit(X, y)
    assert model.weights_.get("class frequencies", 0) > 0
    assert model.cv_log_loss_ <= model.table_[0].log_loss


def test_zero_probabilities_of_an_expert_do_no_harm():
    X, y = load_wine(return_X_y=True)
    model = pool(RandomForestClassifier(5, random_state=0), LogisticRegression()).fit(X[::2], y[::2])
    assert log_loss(y[1::2], model.predict_proba(X[1::2])) < 0.3


def test_a_tree_and_leaves_without_rows():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a/b", "a/c", "d/e"])
    tree = Taxonomy.from_labels([*names, "d/f"])
    for model in (PoolClassifier(taxonomy=tree), pool(LogisticRegression(), taxonomy=tree)):
        model.fit(X, names[y])
        assert model.classes_.tolist() == ["a/b", "a/c", "d/e", "d/f"]
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert np.allclose(model.predict_node_proba(X)[:, 0], 1.0)
        assert set(model.decide(X, confidence=0.9)) <= set(tree.names)
    with pytest.raises(ValueError, match="z/z"):
        PoolClassifier(taxonomy=tree).fit(X, np.where(y == 0, "z/z", "a/b"))


def test_errors_name_what_is_wrong():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="NaN"):
        PoolClassifier().fit(np.where(X > 7, np.nan, X), y)
    with pytest.raises(ValueError, match="no row with just one class"):
        PoolClassifier().fit(X[:3], [{"a", "c"}, {"a", "b"}, {"b", "c"}])
    with pytest.raises(TypeError, match="lacks predict_proba"):
        pool(LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="experts is 'best'"):
        PoolClassifier("best").fit(X, y)
    with pytest.raises(ValueError, match="experts is empty"):
        PoolClassifier([]).fit(X, y)
    with pytest.raises(ValueError, match="names must differ"):
        pool(("a", PLAIN), ("a", PLAIN)).fit(X, y)
    with pytest.raises(ValueError, match="time_limit"):
        PoolClassifier(time_limit=-1).fit(X, y)


def test_sample_weights_reach_experts_and_weights():
    X, y = load_iris(return_X_y=True)
    heavy = np.where(y == 1, 20.0, 1.0)
    plain, weighted = (pool(PLAIN, GaussianNB()).fit(X, y, w) for w in (None, heavy))
    assert weighted.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean()
    without = y < 2
    zero = pool(PLAIN, GaussianNB()).fit(X, y, without.astype(float))
    fewer = pool(PLAIN, GaussianNB()).fit(X[without], y[without])
    assert zero.predict_proba(X)[:, 2].max() < 0.1
    assert np.array_equal(zero.classes_[zero.predict_proba(X)[:, :2].argmax(axis=1)], fewer.predict(X))


def test_same_seed_same_model():
    X, y = load_wine(return_X_y=True)
    first, second, other = (PoolClassifier(random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert np.array_equal(first.predict_log_proba(X), second.predict_log_proba(X))
    assert first.weights_ == second.weights_ != other.weights_


def test_few_scored_rows(monkeypatch):
    monkeypatch.setattr("taxolearn.estimators.pool._ENTRIES", 3 * 2 * 40)
    X, y = load_iris(return_X_y=True)
    assert pool(PLAIN, GaussianNB()).fit(X, y).score(X, y) > 0.9


def test_without_time_the_first_expert_is_there(capsys):
    X, y = load_iris(return_X_y=True)
    model = PoolClassifier(time_limit=0, verbose=1).fit(X, y)
    assert list(model.experts_) == ["naive Bayes"]
    assert "softmax: skipped" in capsys.readouterr().err
    assert model.score(X, y) > 0.6


def test_light_experts_are_dropped_before_their_last_fit():
    X, y = load_iris(return_X_y=True)
    generator = np.random.default_rng(0)

    class Noise(GaussianNB):
        def predict_log_proba(self, inputs):
            return log_softmax(generator.normal(size=(len(inputs), len(self.classes_))), axis=1)

    model = pool(PLAIN, Noise()).fit(X, y)
    assert list(model.experts_) == ["KernelLogisticClassifier"]
    assert model.table_[1].weight == 0.0


def test_interrupt_passes_through():
    class Interrupted(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise KeyboardInterrupt

    X, y = load_iris(return_X_y=True)
    with pytest.raises(KeyboardInterrupt):
        pool(PLAIN, Interrupted()).fit(X, y)


# -- Files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("is_tree", [False, True])
def test_file_keeps_every_bit(tmp_path, form, is_tree):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a/b", "a/c", "d/e"])
    tree = Taxonomy.from_labels(names) if is_tree else None
    model = PoolClassifier(taxonomy=tree).fit(form(X), names[y])
    save(model, tmp_path / "pool.taxo", dtype="float64")
    again = load(tmp_path / "pool.taxo")
    assert np.array_equal(model.predict_log_proba(form(X)), again.predict_log_proba(form(X)))
    assert again.weights_ == model.weights_
    assert again.table_ == model.table_
    assert again.pool_result_.gap == model.pool_result_.gap
    report = read_report(tmp_path / "pool.taxo")
    assert report["hyperparameters"]["weights"] == model.weights_
    assert report["fit"]["status"] == model.pool_result_.status


def test_file_of_one_row_per_class(tmp_path):
    model = PoolClassifier().fit(np.eye(3), [1, 2, 3])
    save(model, tmp_path / "pool.taxo", dtype="float64")
    assert np.array_equal(load(tmp_path / "pool.taxo").predict_proba(np.eye(3)), model.predict_proba(np.eye(3)))


def test_a_foreign_expert_cannot_be_stored(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = pool(("forest", RandomForestClassifier(20, random_state=0))).fit(X, y)
    with pytest.raises(TypeError, match="the expert 'forest', a RandomForestClassifier"):
        save(model, tmp_path / "pool.taxo")
