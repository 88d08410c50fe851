"""Fits with an independent logistic loss for every class, against scikit-learn's one-vs-rest and two-class softmax."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from taxolearn import Taxonomy, _core
from taxolearn.couplings.coupling import ClassCoupling, make_coupling
from taxolearn.fitting.fit import Problem, fit_functions
from taxolearn.kernels import RBF, Linear
from taxolearn.kernels.argument import assign_kernels

VARIANCE, INTERCEPT_VARIANCE = 2.0, 0.5


def make(X, targets, n_classes, *, kernel=None, loss="independent", variances=1.0, taxonomy=None):
    classes = np.arange(n_classes) if taxonomy is None else taxonomy.classes
    coupling = ClassCoupling() if taxonomy is None else make_coupling(taxonomy, "tree", classes)
    return Problem(
        X=X,
        targets=targets,
        sample_weight=None,
        class_kernels=assign_kernels(kernel or Linear(VARIANCE * variances), None, classes, coupling),
        intercept_variance=INTERCEPT_VARIANCE * variances,
        order=np.arange(n_classes),
        classes=classes,
        function_names=(classes if taxonomy is None else taxonomy.names[1:]).tolist(),
        loss=loss,
    )


def fit(problem, tol=1e-8, **given):
    return fit_functions(problem, _core.FitSettings(tol=tol, **given), _core.KernelSettings(), n_threads=2)


def objective(coef, intercept, X, y, c):
    """Of one class against the rest, at given weights."""
    u = X @ coef + intercept
    losses = np.logaddexp(0.0, np.where(y == c, -u, u)).sum()
    return losses + (coef @ coef) / (2 * VARIANCE) + intercept**2 / (2 * INTERCEPT_VARIANCE)


def by_scikit_learn(X, y, c):
    """The least objective of a class against the rest: intercepts are the weight of one more feature."""
    scale = np.sqrt(INTERCEPT_VARIANCE / VARIANCE)
    one = np.full((X.shape[0], 1), scale)
    wide = sp.hstack([X, one]).tocsr() if sp.issparse(X) else np.hstack([X, one])
    model = LogisticRegression(C=VARIANCE, fit_intercept=False, solver="newton-cg", tol=1e-9, max_iter=1000)
    coef = model.fit(wide, y == c).coef_[0]
    return objective(coef[:-1], coef[-1] * scale, X, y, c)


def check_against_scikit_learn(X, y, n_classes, checked):
    done = fit(make(X, y.astype(np.int32), n_classes))
    assert done.result.status == "converged"
    functions = done.functions
    own = [objective(functions.coef[c], functions.intercept[c], X, y, c) for c in range(n_classes)]
    assert sum(own) == pytest.approx(done.result.objective, rel=1e-9)
    for c in checked:
        assert own[c] == pytest.approx(by_scikit_learn(X, y, c), rel=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_flat_fits_are_those_of_scikit_learn(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)), rng.integers(0, 4, size=200)
    check_against_scikit_learn(kind(X), y, 4, range(4))


@pytest.mark.data
def test_flat_fits_on_20_newsgroups(news20):
    check_against_scikit_learn(news20.X, np.unique(news20.y, return_inverse=True)[1], 20, (0, 7, 15))


@pytest.mark.data
def test_flat_fits_on_clef(clef):
    check_against_scikit_learn(clef.X, np.unique(clef.y, return_inverse=True)[1], 63, (0, 30, 62))


@pytest.mark.parametrize("kernel", [None, RBF(1.5)], ids=["linear", "rbf"])
def test_one_column_with_doubled_variances_is_softmax_of_two_classes(kernel):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, size=80).astype(np.int32)
    softmax = fit(make(X, y, 2, loss="softmax", kernel=kernel), tol=1e-12)
    doubled = None if kernel is None else RBF(1.5, variance=2.0)
    column = fit(make(X, y[:, None].astype(np.float64), 1, variances=2.0, kernel=doubled), tol=1e-12)
    u = softmax.functions.output(X, "predictor", 1)
    assert column.result.objective == pytest.approx(softmax.result.objective, rel=1e-10)
    np.testing.assert_allclose(column.functions.output(X, "predictor", 1)[:, 0], u[:, 1] - u[:, 0], atol=1e-5)
    proba = column.functions.output(X, "probability", 1)[:, 0]
    np.testing.assert_allclose(proba, softmax.functions.output(X, "probability", 1)[:, 1], atol=1e-6)


@pytest.mark.parametrize("kernel", [None, RBF(1.0)], ids=["linear", "rbf"])
def test_the_gap_is_certified_under_a_tree(kernel):
    taxonomy = Taxonomy.from_labels(["a/b", "a/c", "d/e", "d/f"])
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    labels = (rng.uniform(size=(60, 4)) < 0.4).astype(np.float64)  # any number of labels per row
    problem = make(X, labels, 4, taxonomy=taxonomy, kernel=kernel)
    best = fit(problem, tol=1e-12).result
    for tol in (1e-2, 1e-4, 1e-6):
        result = fit(problem, tol=tol).result
        assert result.status == "converged"
        assert -1e-9 * best.objective <= result.objective - best.objective <= result.gap * (1 + 1e-6)


def test_log_probabilities_do_not_underflow():
    X = np.array([[1.0], [-1.0]])
    functions = fit(make(X, np.array([0, 1], dtype=np.int32), 2)).functions
    far = np.array([[1e4]])
    u = functions.output(far, "predictor", 1)
    log_proba = functions.output(far, "log_probability", 1)
    np.testing.assert_allclose(log_proba, -np.logaddexp(0.0, -u), rtol=1e-12)
    np.testing.assert_allclose(functions.output(X, "probability", 1), expit(functions.output(X, "predictor", 1)))


@pytest.mark.parametrize("kernel", [_core.LinearKernel(1.0), None], ids=["by its matrix", "by features"])
def test_gradient_of_the_criterion_is_a_finite_difference(kernel):
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(40, 3)), (rng.uniform(size=(40, 3)) < 0.4).astype(np.float64)
    kernels = [] if kernel is None else [kernel]
    products = _core.KernelSettings(
        algorithm=_core.KernelAlgorithm.auto if kernel is None else _core.KernelAlgorithm.gram
    )
    settings = _core.CriterionSettings(tol=1e-10, adjoint_tol=1e-10)
    cv = _core.CrossValidation(
        X=X, likelihood=_core.IndependentLogistic(labels, 3), fold_of=np.arange(40) % 4, n_folds=4
    )

    def evaluate(theta):
        coupling = _core.IndependentCoupling(np.exp(theta[:3]), np.arange(3))
        prior = _core.Prior(kernels=kernels, coupling=coupling, intercept_variance=float(np.exp(theta[3])))
        return cv.evaluate(prior, settings, products)

    theta = np.array([0.3, -0.5, 0.1, 0.2])
    found = evaluate(theta)
    assert found.converged
    gradient = [*found.function_gradient, found.intercept_variance_gradient]
    step = 1e-4 * np.eye(4)
    differences = [(evaluate(theta + e).value - evaluate(theta - e).value) / 2e-4 for e in step]
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-6)
