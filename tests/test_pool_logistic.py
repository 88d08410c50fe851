"""Logistic experts of a pool: their scores against plain fits, the choice between radial kernels, and deadlines."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from cv_models import TAXONOMY, problem
from sklearn.base import clone

from taxolearn import CrossValidation, KernelLogisticClassifier, Solver
from taxolearn.estimators.pooling.dense import radial_experts
from taxolearn.estimators.pooling.logistic import OutOfTimeError, best_of, score_logistic

SCALE = CrossValidation(search="scale")
TUNINGS = {"scale": SCALE, "gradient": CrossValidation(max_evaluations=4), "none": None}


def expert(**options):
    defaults = {"tol": 1e-12, "max_iter": 5000, "solver": Solver(precision="double"), "n_threads": 1}
    return KernelLogisticClassifier(**(defaults | options))


def out_of_fold(estimator, X, y, weights, fold_of, rows, classes):
    """Log probabilities of plain fits to the other folds."""
    out = np.empty((len(y), len(classes)))
    for fold in range(fold_of.max() + 1):
        held = fold_of == fold
        fit = clone(estimator).fit(X[~held], y[~held], None if weights is None else weights[~held])
        assert np.array_equal(fit.classes_, classes)
        out[held] = fit.predict_log_proba(X[held])
    return out[rows]


@pytest.fixture
def exact_fits(monkeypatch):
    monkeypatch.setattr("taxolearn.tuning.scale._TOLERANCE", 1e-12)


@pytest.mark.usefixtures("exact_fits")
@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("loss", ["softmax", "independent"])
@pytest.mark.parametrize("options", [{}, {"taxonomy": TAXONOMY}, {"kernel": "rbf"}], ids=["flat", "tree", "rbf"])
def test_scores_are_the_experts_own(options, loss, tuning):
    X, y = problem(n=60)
    classes = np.sort(TAXONOMY.classes) if "taxonomy" in options else np.unique(y)
    weights = np.random.default_rng(0).random(60) + 0.5
    fold_of = (np.arange(60) % 4 - 1).astype(np.int32)
    rows = np.flatnonzero(fold_of >= 0)[5:40][::-1]
    estimator = expert(loss=loss, tuning=TUNINGS[tuning], temperature=0.7, **options)
    found = score_logistic(estimator, X, y, classes, weights, fold_of, rows)
    assert found.estimator.tuning is None
    assert (found.estimator.temperature == 0.7) == (tuning == "none")
    expected = out_of_fold(found.estimator, X, y, weights, fold_of, rows, classes)
    np.testing.assert_allclose(found.scores, expected, atol=5e-4)
    np.testing.assert_allclose(np.exp(found.scores).sum(axis=1), 1.0)
    assert found.fit_seconds > 0


@pytest.mark.usefixtures("exact_fits")
def test_hyperparameters_from_a_subset(monkeypatch):
    """Where there are many rows, some choose hyperparameters; all are scored."""
    monkeypatch.setattr("taxolearn.estimators.pooling.logistic._LEAST_ROWS", 40)
    monkeypatch.setattr("taxolearn.estimators.pooling.logistic._WORK", 1.0)
    X, y = problem(n=120)
    X = sp.csr_matrix(X)
    fold_of = (np.arange(120) % 3).astype(np.int32)
    found = score_logistic(expert(tuning=SCALE), X, y, np.unique(y), None, fold_of, np.arange(120))
    expected = out_of_fold(found.estimator, X, y, None, fold_of, np.arange(120), np.unique(y))
    np.testing.assert_allclose(found.scores, expected, atol=5e-4)


def many_rows(matters, n=1500):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, 8))
    if matters:
        y = (np.sin(2 * X[:, 3]) + 0.2 * generator.normal(size=n) > 0).astype(int)
    else:
        y = generator.integers(3, size=n)
    return X, y


@pytest.mark.parametrize("matters", [False, True], ids=["noise", "one feature of eight"])
def test_own_length_scales_only_where_they_help(matters):
    X, y = many_rows(matters)
    candidates = radial_experts(X, 3, tol=1e-3, n_threads=None, random_state=0)
    assert len(candidates) == 2
    best = best_of(candidates, X, y, None)
    assert best.tuning is None
    lengths = np.asarray(best.kernel.length_scale)
    if matters:
        assert lengths.shape == (8,)
        assert lengths.argmin() == 3
        assert np.delete(lengths, 3).min() > 2 * lengths[3]
    else:
        assert lengths.size == 1


def test_a_deadline_leaves_the_first_candidate():
    X, y = many_rows(True, n=1000)
    candidates = radial_experts(X, 3, tol=1e-3, n_threads=None, random_state=0)
    best = best_of(candidates, X, y, None, deadline=time.perf_counter())
    assert best.tuning is None
    assert np.asarray(best.kernel.length_scale).size == 1


@pytest.mark.parametrize("tuning", [SCALE, None], ids=["scale", "none"])
@pytest.mark.parametrize("loss", ["softmax", "independent"])
def test_no_scores_after_the_deadline(loss, tuning):
    X, y = problem(n=60)
    fold_of = (np.arange(60) % 3).astype(np.int32)
    estimator = expert(loss=loss, tuning=tuning)
    with pytest.raises(OutOfTimeError):
        score_logistic(estimator, X, y, np.unique(y), None, fold_of, np.arange(60), deadline=time.perf_counter() - 1.0)
