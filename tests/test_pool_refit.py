"""Pools that are fitted to other rows, and pools in a second: what is kept, and what is skipped."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from taxolearn import KernelLogisticClassifier, PoolClassifier, Taxonomy, load, save

FORMS = {"dense": np.asarray, "sparse": sp.csr_matrix}
NAMES = np.array(["a/b", "a/c", "d/e"])
TREE = Taxonomy.from_labels(NAMES)


def state(model):
    return model.weights_, model.temperatures_, list(model.experts_), list(model.table_), model.cv_log_loss_


@pytest.mark.parametrize("tree", [None, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("form", FORMS)
def test_same_rows_same_predictions(form, tree):
    X, y = load_iris(return_X_y=True)
    X = FORMS[form](X)
    model = PoolClassifier(taxonomy=tree).fit(X, NAMES[y])
    before, known = model.predict_log_proba(X), state(model)
    assert model.refit(X, NAMES[y]) is model
    np.testing.assert_array_equal(model.predict_log_proba(X), before)
    assert state(model) == known


def test_weights_of_rows_are_those_of_fit():
    X, y = load_wine(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    model = PoolClassifier([KernelLogisticClassifier(tuning=None), GaussianNB()]).fit(X, y, weights)
    before = model.predict_log_proba(X)
    np.testing.assert_array_equal(model.refit(X, y, weights).predict_log_proba(X), before)
    assert not np.array_equal(model.refit(X, y).predict_log_proba(X), before)


@pytest.mark.parametrize("form", FORMS)
def test_more_rows_keep_what_was_chosen(form):
    X, y = load_wine(return_X_y=True)
    part = np.arange(len(y)) % 3 > 0
    model = PoolClassifier().fit(FORMS[form](X[part]), y[part])
    before, known = model.predict_proba(FORMS[form](X)), state(model)
    arguments = {name: expert.get_params() for name, expert in model.experts_.items()}
    mean = None if model.mean_ is None else model.mean_.copy()
    model.refit(FORMS[form](X), y)
    assert state(model) == known
    assert str({name: expert.get_params() for name, expert in model.experts_.items()}) == str(arguments)
    assert mean is None or np.array_equal(model.mean_, mean)
    after = model.predict_proba(FORMS[form](X))
    own = np.arange(len(y))[~part], y[~part]
    assert np.log(after[own]).mean() > np.log(before[own]).mean()  # it has seen these rows now


def test_new_classes_and_features():
    X, y = load_iris(return_X_y=True)
    known = y < 2
    model = PoolClassifier().fit(sp.csr_matrix(X[known]), y[known])
    wide = sp.csr_matrix(np.hstack([X, X[:, :1] ** 2]))
    model.refit(wide, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 5
    assert model.score(wide, y) > 0.8


def test_other_features_of_dense_inputs_are_an_error_that_changes_nothing():
    X, y = load_iris(return_X_y=True)
    model = PoolClassifier().fit(X, y)
    before = model.predict_log_proba(X)
    for inputs in (X[:, :3], sp.csr_matrix(np.hstack([X, X]))):
        with pytest.raises(ValueError, match=f"X has {inputs.shape[1]} features, expected the 4 that fit has seen"):
            model.refit(inputs, y)
    np.testing.assert_array_equal(model.predict_log_proba(X), before)
    with pytest.raises(NotFittedError):
        PoolClassifier().refit(X, y)


def test_refit_where_there_is_nothing_to_learn():
    X, y = np.random.default_rng(0).normal(size=(300, 4)), np.arange(300) % 3
    model = PoolClassifier().fit(X[:150], y[:150])
    assert list(model.weights_) == ["class frequencies"]
    more = model.refit(X[:200], np.zeros(200, dtype=int) + (np.arange(200) > 150))
    np.testing.assert_allclose(more.predict_proba(X)[:, 0], 151.5 / 201)
    single = PoolClassifier().fit(np.eye(4), list("abcd"))
    single.refit(np.repeat(np.eye(4), 2, axis=0), list("aabbccdd"))
    assert single.predict(np.eye(4)).tolist() == list("abcd")


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    X, y = load_wine(return_X_y=True)
    model = PoolClassifier().fit(X[::2], y[::2])
    save(model, tmp_path / "pool.taxo", dtype="float64")
    again = load(tmp_path / "pool.taxo").refit(X, y)
    np.testing.assert_allclose(again.predict_log_proba(X), model.refit(X, y).predict_log_proba(X), atol=1e-9)


@pytest.mark.parametrize("time_limit", [0, 0.1, 1])
@pytest.mark.parametrize("form", FORMS)
def test_little_time_is_enough_for_a_usable_model(form, time_limit, capsys):
    generator = np.random.default_rng(0)
    n, d = 3000, 40 if form == "dense" else 2000
    y = generator.integers(6, size=n)
    rates = 0.05 * generator.gamma(0.5, size=(6, d))
    X = generator.poisson(rates[y]).astype(float) if form == "sparse" else generator.normal(rates[y] * 40, 1.0)
    X = FORMS[form](X)
    model = PoolClassifier(time_limit=time_limit, verbose=1).fit(X[:2500], y[:2500])
    assert model.score(X[2500:], y[2500:]) > 0.7
    assert np.isfinite(model.predict_log_proba(X)).all()
    tried = [row.name for row in model.table_]
    assert set(model.experts_) <= set(tried)
    expected = (
        ["softmax", "independent", "rbf"] if form == "dense" else ["naive Bayes", "centroid", "softmax", "independent"]
    )
    said = [line.split(":")[0] for line in capsys.readouterr().err.splitlines() if "no time is left" in line]
    assert [name for name in expected if name not in tried] == said
    assert time_limit > 0 or len(tried) == 1
