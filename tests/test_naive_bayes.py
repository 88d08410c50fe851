"""Naive Bayes: scikit-learn's answers from sparse numbers, and smoothing that is chosen."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxolearn import NaiveBayesClassifier, Taxonomy, load, read_report, save
from taxolearn.tuning.cross_validation import make_folds


def counts(n=240, d=60, n_classes=5, seed=0):
    """Counts of features in rows of several classes."""
    generator = np.random.default_rng(seed)
    rates = 0.05 + 0.1 * generator.gamma(0.3, size=(n_classes, d))
    y = generator.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return generator.poisson(rates[y]).astype(np.float64), y


@parametrize_with_checks([NaiveBayesClassifier(smoothing=1.0), NaiveBayesClassifier()])
def test_scikit_learn_check(estimator, check):
    if "sample_weight_equivalence" in str(check) and estimator.smoothing is None:
        pytest.skip("folds of rows that are repeated are others")
    if "check_decision_proba_consistency" in str(check):
        pytest.skip("its inputs are negative, whatever the tags say")
    check(estimator)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("smoothing", [1e-3, 0.3, 2.0])
def test_answers_are_those_of_scikit_learn(form, smoothing):
    X, y = counts()
    weights = np.random.default_rng(1).random(len(y))
    ours = NaiveBayesClassifier(smoothing=smoothing).fit(form(X), y, weights)
    theirs = MultinomialNB(alpha=smoothing).fit(X, y, weights)
    assert np.allclose(ours.predict_log_proba(form(X)), theirs.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    assert np.array_equal(ours.predict(form(X)), theirs.predict(X))


def test_weights_are_repetitions():
    X, y = counts()
    times = np.random.default_rng(2).integers(0, 3, len(y))
    times[:5] = 1
    a = NaiveBayesClassifier(smoothing=0.5).fit(X, y, times)
    b = NaiveBayesClassifier(smoothing=0.5).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert np.allclose(a.predict_log_proba(X), b.predict_log_proba(X), atol=1e-12)


def test_temperature_divides():
    X, y = counts()
    one, three = (NaiveBayesClassifier(smoothing=0.5, temperature=t).fit(X, y) for t in (1.0, 3.0))
    assert np.allclose(one.decision_function(X), 3 * three.decision_function(X))


def test_chosen_values_are_good():
    X, y = counts(n=400, seed=3)
    test = np.arange(400) % 2 == 0
    X = X * np.random.default_rng(0).integers(1, 8, (400, 1))  # features that are not independent
    chosen = NaiveBayesClassifier().fit(X[~test], y[~test])
    losses = [
        log_loss(y[test], NaiveBayesClassifier(smoothing=a).fit(X[~test], y[~test]).predict_proba(X[test]))
        for a in (0.01, 0.1, 1.0)
    ]
    assert chosen.temperature_ > 1
    assert log_loss(y[test], chosen.predict_proba(X[test])) < min(losses)


def test_tuned_copy_is_what_fit_uses():
    X, y = counts()
    folds = make_folds(y, 5, 3, 0)
    copy = NaiveBayesClassifier().tuned(X, y, None, folds)
    assert not hasattr(copy, "classes_")
    model = NaiveBayesClassifier(random_state=0).fit(X, y)
    assert (copy.smoothing, copy.temperature) == (model.smoothing_, model.temperature_)
    assert np.array_equal(copy.fit(X, y).predict_log_proba(X), model.predict_log_proba(X))


def test_a_class_without_rows_and_nodes():
    X, y = counts(n_classes=3)
    names = np.array(["a/b", "a/c", "d/e"])
    tree = Taxonomy.from_labels([*names, "d/f"])
    model = NaiveBayesClassifier(taxonomy=tree).fit(X, names[y])
    assert model.classes_.tolist() == ["a/b", "a/c", "d/e", "d/f"]
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert np.allclose(model.predict_node_proba(X)[:, 0], 1.0)


def test_one_row_per_class_and_rows_of_zeros():
    model = NaiveBayesClassifier().fit(np.eye(4), list("abcd"))
    assert model.predict(np.eye(4)).tolist() == list("abcd")
    assert np.allclose(model.predict_proba(np.zeros((1, 4))), 0.25)


def test_explanation_adds_up():
    X, y = counts()
    model = NaiveBayesClassifier(smoothing=0.5).fit(X[y < 2], y[y < 2])
    (part,) = model.explain(X[:1], 1, top=100)[0]
    u = model.decision_function(X[:1])[0] - (model.intercept_[1] - model.intercept_[0]) / model.temperature_
    assert sum(value for _, value in part.contributions) + part.rest == pytest.approx(u)


def test_errors():
    X, y = counts()
    with pytest.raises(ValueError, match="X has the value -1"):
        NaiveBayesClassifier().fit(X - 1, y)
    with pytest.raises(ValueError, match="smoothing must be finite and above 0"):
        NaiveBayesClassifier(smoothing=0.0).fit(X, y)
    with pytest.raises(ValueError, match="rows without just one class"):
        NaiveBayesClassifier().fit(X[:3], ["a", None, "b"])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_file_keeps_every_bit(tmp_path, form):
    X, y = counts()
    model = NaiveBayesClassifier().fit(form(X), y)
    save(model, tmp_path / "model.taxo", dtype="float64")
    again = load(tmp_path / "model.taxo")
    assert np.array_equal(model.predict_log_proba(form(X)), again.predict_log_proba(form(X)))
    assert again.get_params() == model.get_params()
    assert read_report(tmp_path / "model.taxo")["hyperparameters"]["smoothing"] == model.smoothing_
