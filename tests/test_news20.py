"""20 newsgroups: the certified optimum in few products, and figures known from elsewhere."""

import numpy as np
import oracle
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss

from taxolearn import KernelLogisticClassifier, Solver
from taxolearn.kernels import Linear

pytestmark = pytest.mark.data

SIGMA2 = 0.01


@pytest.fixture(scope="module", params=[(5.0, 40), (50.0, 65)], ids=["v=5", "v=50"])
def fit(request, news20):
    """(variance, most products allowed, fitted model)."""
    variance, products = request.param
    return (
        variance,
        products,
        KernelLogisticClassifier(Linear(variance), intercept_variance=SIGMA2, tuning=None).fit(news20.X, news20.y),
    )


def test_certified_in_few_products(fit):
    _, products, model = fit
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 1e-6
    assert model.result_.products <= products


def test_numpy_proves_the_optimum(fit, news20):
    # A dual value at the model's probabilities bounds the minimum from below, whatever the library says of itself.
    variance, _, model = fit
    y = np.searchsorted(model.classes_, news20.y)
    value = oracle.primal(news20.X, y, model.coef_, model.intercept_, variance, SIGMA2)
    p = softmax(news20.X @ model.coef_.T + model.intercept_, axis=1)
    bound = oracle.dual(news20.X, y, p, variance, SIGMA2)
    assert model.result_.objective == pytest.approx(value, rel=1e-12)
    assert bound <= value <= bound * (1 + 1e-6)


def test_held_out_documents_at_the_larger_variance(fit, news20):
    variance, _, model = fit
    accuracy = model.score(news20.X_test, news20.y_test)
    loss = log_loss(news20.y_test, model.predict_proba(news20.X_test))
    if variance == 50:
        assert accuracy >= 0.815
        assert loss <= 0.73
    else:
        assert accuracy >= 0.80
        assert loss == pytest.approx(0.918, abs=0.01)


def test_both_states_give_the_same_model(news20):
    models = [
        KernelLogisticClassifier(
            Linear(5.0), intercept_variance=SIGMA2, tol=1e-8, tuning=None, solver=Solver(space=state)
        ).fit(news20.X, news20.y)
        for state in ("coefficients", "weights")
    ]
    assert [model.result_.space for model in models] == ["coefficients", "weights"]
    # Weights are within sqrt(2 gap) of the optimum, so predictors are within sqrt(k(x, x)) times that.
    radius = sum(np.sqrt(2 * model.result_.gap) for model in models)
    u, v = (model.decision_function(news20.X_test) for model in models)
    assert np.abs(u - v).max() <= np.sqrt(5.0 + SIGMA2) * radius
    p, q = (model.predict_proba(news20.X_test) for model in models)
    assert np.abs(p - q).max() < 2e-3
    assert np.mean(p.argmax(axis=1) == q.argmax(axis=1)) > 0.999
