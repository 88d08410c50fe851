"""The accuracy of a fitted linear model, computed alike for every library, in NumPy and double precision.

With Z = [sqrt(v) X, sqrt(sigma2) 1] (n x (d + 1)), scaled weights W ((d + 1) x C), predictors u = Z W and pi the
row-wise softmax of u, all libraries minimize

    Phi(W) = sum_i (logsumexp(u_i) - u_i[y_i]) + 1/2 |W|^2.

The dual value at alpha = y - pi, which is always feasible, is D = sum_i H(pi_i) - 1/2 |Z^T alpha|^2 <= min Phi, and so

    Phi(W) - min Phi <= Phi(W) - D = 1/2 |W + Z^T (pi - y)|^2,

half the square of the gradient: no difference of large numbers, exact to rounding however small it is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

Floats = npt.NDArray[np.float64]

_ROWS = 4096  # the n x C arrays are made in blocks of rows


@dataclass(frozen=True)
class Certificate:
    """``objective`` is above its minimum by at most ``gap``; ``relative_gap`` is gap / objective."""

    objective: float
    gap: float

    @property
    def relative_gap(self) -> float:
        return self.gap / self.objective


def certify(X: Any, labels: npt.NDArray[np.int64], coef: Floats, intercept: Floats, v: float, s2: float) -> Certificate:
    """Certify ``u(x) = coef x + intercept`` (C x d and C) with prior variances ``v`` of weights, ``s2`` of intercepts.

    ``labels`` are class numbers 0 .. C - 1.
    """
    coef = np.asarray(coef, dtype=np.float64)
    intercept = np.asarray(intercept, dtype=np.float64)
    loss = 0.0
    gradient = np.zeros_like(coef.T)
    intercept_gradient = np.zeros_like(intercept)
    for first in range(0, X.shape[0], _ROWS):
        rows = X[first : first + _ROWS]
        u = rows @ coef.T + intercept
        here = np.arange(len(u)), labels[first : first + _ROWS]
        log_sums = logsumexp(u, axis=1)
        loss += float(log_sums.sum() - u[here].sum())
        residual = np.exp(u - log_sums[:, None])
        residual[here] -= 1.0
        gradient += rows.T @ residual
        intercept_gradient += residual.sum(axis=0)
    scaled = coef.T / np.sqrt(v), intercept / np.sqrt(s2)
    objective = loss + 0.5 * sum(float(np.sum(part**2)) for part in scaled)
    first_order = scaled[0] + np.sqrt(v) * gradient, scaled[1] + np.sqrt(s2) * intercept_gradient
    return Certificate(objective, 0.5 * sum(float(np.sum(part**2)) for part in first_order))
