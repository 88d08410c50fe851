"""Pools and rows that may be of several classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from taxolearn import KernelLogisticClassifier, NaiveBayesClassifier, PoolClassifier, Taxonomy, TopDownClassifier

LEAVES = np.array(["a/x", "a/y", "b/x", "b/y"])
TREE = Taxonomy.from_labels(LEAVES)
CERTAIN, MORE = 80, 60


@pytest.fixture(scope="module")
def data():
    """Counts; the first rows have a class, others the node above it."""
    generator = np.random.default_rng(0)
    numbers = generator.integers(4, size=CERTAIN + MORE)
    rates = 4 * np.random.default_rng(1).dirichlet(np.full(12, 0.3), 4)
    X = sp.csr_matrix(generator.poisson(rates[numbers]).astype(float))
    y = [name if row < CERTAIN else name[0] for row, name in enumerate(LEAVES[numbers].tolist())]
    return X, y


def softmax(**options):
    return KernelLogisticClassifier(taxonomy=TREE, tuning=None, tol=1e-6, **options)


@pytest.mark.parametrize("form", [sp.csr_matrix, lambda X: X.toarray() - 1.0], ids=["sparse", "dense"])
def test_softmax_is_fitted_to_all_rows(data, form):
    X, y = form(data[0]), data[1]
    pool = PoolClassifier([("softmax", softmax())], taxonomy=TREE).fit(X, y)
    Z = X if pool.mean_ is None else (X - pool.mean_) / pool.scale_
    alone = clone(pool.experts_["softmax"]).fit(Z, y)
    np.testing.assert_allclose(pool.experts_["softmax"].predict_proba(Z), alone.predict_proba(Z), atol=1e-4)
    fewer = clone(alone).fit(Z[:CERTAIN], y[:CERTAIN])
    assert np.abs(fewer.predict_proba(Z) - alone.predict_proba(Z)).max() > 0.01, "the other rows matter"


def test_top_down_is_fitted_to_all_rows(data):
    X, y = data
    expert = TopDownClassifier(TREE, tuning=None, tol=1e-8)
    pool = PoolClassifier([("top-down", expert)], taxonomy=TREE).fit(X, y)
    alone = clone(pool.experts_["top-down"]).fit(X, y)
    np.testing.assert_allclose(pool.experts_["top-down"].predict_proba(X), alone.predict_proba(X), atol=1e-5)
    fewer = clone(alone).fit(X[:CERTAIN], y[:CERTAIN])
    assert np.abs(fewer.predict_proba(X) - alone.predict_proba(X)).max() > 0.01, "the other rows matter"


def test_other_experts_are_fitted_to_rows_with_a_class(data):
    X, y = data
    bayes = NaiveBayesClassifier(smoothing=0.5, temperature=1.0, taxonomy=TREE)
    independent = KernelLogisticClassifier(loss="independent", taxonomy=TREE, tuning=None, tol=1e-6)
    pool = PoolClassifier([("bayes", bayes), ("independent", independent)], taxonomy=TREE).fit(X, y)
    for name, expert in pool.experts_.items():
        alone = clone(expert).fit(X[:CERTAIN], y[:CERTAIN])
        np.testing.assert_allclose(expert.predict_proba(X), alone.predict_proba(X), atol=1e-5, err_msg=name)


def test_choice_and_weights_are_those_of_rows_with_a_class(data):
    X, y = data
    everything = PoolClassifier(taxonomy=TREE).fit(X, y)
    certain = PoolClassifier(taxonomy=TREE).fit(X[:CERTAIN], y[:CERTAIN])
    assert everything.weights_ == certain.weights_
    assert everything.temperatures_ == certain.temperatures_
    assert everything.cv_log_loss_ == certain.cv_log_loss_


def test_more_rows_at_inner_nodes_help():
    """Few rows with a class and many at inner nodes: the upper level is known better."""
    losses = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        rates = 3 * generator.dirichlet(np.full(20, 0.5), 4)
        numbers = generator.integers(4, size=900)
        X = sp.csr_matrix(generator.poisson(rates[numbers]).astype(float))
        y = [name if row < 40 else name[0] for row, name in enumerate(LEAVES[numbers].tolist())]
        for last in (40, 500):
            pool = PoolClassifier(taxonomy=TREE).fit(X[:last], y[:last])
            log_p = pool.predict_log_proba(X[500:])
            losses.append(-log_p[np.arange(400), numbers[500:]].mean())
    few, many = np.reshape(losses, (-1, 2)).T
    assert many.mean() < few.mean()


def test_sets_of_classes_without_a_tree(data):
    X, y = data
    sets = [name if row < CERTAIN else {"a/x", "b/y"} for row, name in enumerate(y)]
    expert = KernelLogisticClassifier(tuning=None, tol=1e-6)
    pool = PoolClassifier([("softmax", expert)]).fit(X, sets)
    alone = clone(pool.experts_["softmax"]).fit(X, sets)
    np.testing.assert_allclose(pool.experts_["softmax"].predict_proba(X), alone.predict_proba(X), atol=1e-4)


def test_top_down_leaves_out_sets_that_are_no_node(data):
    X, y = data
    sets = [name if row < CERTAIN else ["a/x", "b/y"] for row, name in enumerate(y)]
    expert = TopDownClassifier(TREE, tuning=None, tol=1e-8)
    pool = PoolClassifier([("top-down", expert)], taxonomy=TREE).fit(X, sets)
    alone = clone(pool.experts_["top-down"]).fit(X[:CERTAIN], y[:CERTAIN])
    np.testing.assert_allclose(pool.experts_["top-down"].predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_missing_labels_have_no_influence(data):
    X, y = data
    missing = [name if row < CERTAIN else None for row, name in enumerate(y)]
    pool = PoolClassifier(taxonomy=TREE).fit(X, missing)
    without = PoolClassifier(taxonomy=TREE).fit(X[:CERTAIN], y[:CERTAIN])
    np.testing.assert_allclose(pool.predict_proba(X), without.predict_proba(X), atol=1e-9)


def test_weights_of_uncertain_rows(data):
    X, y = data
    weights = np.r_[np.ones(CERTAIN), np.zeros(MORE)]
    pool = PoolClassifier(taxonomy=TREE).fit(X, y, sample_weight=weights)
    without = PoolClassifier(taxonomy=TREE).fit(X[:CERTAIN], y[:CERTAIN])
    np.testing.assert_allclose(pool.predict_proba(X), without.predict_proba(X), atol=1e-9)
    heavy = PoolClassifier([("softmax", softmax())], taxonomy=TREE).fit(X, y, np.r_[np.ones(CERTAIN), np.full(MORE, 2)])
    alone = clone(heavy.experts_["softmax"]).fit(X, y, np.r_[np.ones(CERTAIN), np.full(MORE, 2)])
    np.testing.assert_allclose(heavy.experts_["softmax"].predict_proba(X), alone.predict_proba(X), atol=1e-4)


def test_refit_takes_them_too(data):
    X, y = data
    pool = PoolClassifier([("softmax", softmax())], taxonomy=TREE).fit(X[:CERTAIN], y[:CERTAIN]).refit(X, y)
    anew = PoolClassifier([("softmax", softmax())], taxonomy=TREE).fit(X, y)
    np.testing.assert_allclose(
        pool.experts_["softmax"].predict_proba(X), anew.experts_["softmax"].predict_proba(X), atol=1e-6
    )


def test_three_rows():
    pool = PoolClassifier().fit(np.eye(3), ["a", {"a", "b"}, "b"])
    assert pool.classes_.tolist() == ["a", "b"]
    np.testing.assert_allclose(pool.predict_proba(np.eye(3)).sum(axis=1), 1.0)


def test_errors(data):
    X, y = data
    with pytest.raises(ValueError, match="y has no row with just one class"):
        PoolClassifier(taxonomy=TREE).fit(X[CERTAIN:], y[CERTAIN:])
    with pytest.raises(ValueError, match="y has probabilities of classes, which PoolClassifier cannot use"):
        PoolClassifier(taxonomy=TREE).fit(X, np.full((X.shape[0], 4), 0.25))
