"""Kernel logistic regression in a few lines of NumPy, to hold the library against.

With Z = [sqrt(variance) X, sqrt(sigma2) 1] and W the weights in this scale, the primal is
Phi(W) = sum_i s_i (logsumexp(u_i) - u_i[y_i]) + |W|^2 / 2 with u = Z W. For any distributions p_i over the classes,
with alpha_i = s_i (y_i - p_i), the dual D = sum_i s_i H(p_i) - |Z^T alpha|^2 / 2 lies below its minimum.
"""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import entr, log_softmax, logsumexp, softmax


def one_hot(y, n_classes):
    return np.eye(n_classes)[y]


def primal(X, y, coef, intercept, variance, sigma2, weights=None):
    """Phi at the class functions u(x) = coef x + intercept; y holds class indices."""
    weights = np.ones(len(y)) if weights is None else weights
    u = X @ coef.T + intercept
    loss = weights @ (logsumexp(u, axis=1) - u[np.arange(len(y)), y])
    penalty = (coef**2).sum() / variance + ((intercept**2).sum() / sigma2 if sigma2 > 0 else 0.0)
    return loss + penalty / 2


def dual(X, y, p, variance, sigma2, weights=None):
    """D at the distributions p: never above the minimum of Phi."""
    weights = np.ones(len(y)) if weights is None else weights
    alpha = weights[:, None] * (one_hot(y, p.shape[1]) - p)
    square = variance * ((X.T @ alpha) ** 2).sum() + sigma2 * (alpha.sum(axis=0) ** 2).sum()
    return weights @ entr(p).sum(axis=1) - square / 2


def gap(X, y, coef, intercept, variance, sigma2, weights=None):
    """Phi - D at the model's own probabilities."""
    p = softmax(X @ coef.T + intercept, axis=1)
    return primal(X, y, coef, intercept, variance, sigma2, weights) - dual(X, y, p, variance, sigma2, weights)


def optimum(X, y, n_classes, variance, sigma2, weights=None):
    """(coef, intercept) at the minimum of Phi, by SciPy's L-BFGS-B."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    weights = np.ones(len(y)) if weights is None else weights
    Z = np.hstack([np.sqrt(variance) * X, np.full((len(X), 1), np.sqrt(sigma2))])
    target = one_hot(y, n_classes)

    def value_and_gradient(flat):
        W = flat.reshape(Z.shape[1], n_classes)
        log_p = log_softmax(Z @ W, axis=1)
        value = -weights @ (target * log_p).sum(axis=1) + (W**2).sum() / 2
        gradient = Z.T @ (weights[:, None] * (np.exp(log_p) - target)) + W
        return value, gradient.ravel()

    start = np.zeros(Z.shape[1] * n_classes)
    options = {"maxiter": 10000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-9}
    W = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x.reshape(-1, n_classes)
    return np.sqrt(variance) * W[:-1].T, np.sqrt(sigma2) * W[-1]
