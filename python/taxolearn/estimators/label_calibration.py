"""From predictors of labels to calibrated probabilities: a temperature and an offset, by rows that were held out."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit

__all__ = ["fit_label_calibration"]

Floats = npt.NDArray[np.float64]

_LARGEST_LOG = 3.0  # of the temperature
_LARGEST_SHIFT = 20.0  # of the logarithms of odds


def fit_label_calibration(u: Floats, truth: Any, weights: Floats | None = None) -> tuple[float, float]:
    """The temperature ``T`` and the offset ``o`` of ``p = 1 / (1 + exp(-(u + o) / T))``, the same for all labels.

    The prior shrinks what features say for a label, but hardly its intercept, which for a rare label is far below zero;
    dividing both by the same number cannot mend that. Minimizes the log loss of all labels plus standard Gaussian
    priors of ``log T`` and ``o / T``, which keep them near 0 where there are few rows.

    Parameters
    ----------
    u : array of shape (n_samples, n_labels)
        Predictors of rows that the model was not fitted to.
    truth : sparse matrix of shape (n_samples, n_labels)
        The indicator of their labels.
    weights : array of shape (n_samples,), optional
        Weights of the rows.
    """
    matrix = sp.coo_array(truth)
    row_weights = np.ones(len(u)) if weights is None else weights
    of_label = row_weights[matrix.row]
    linear = -float(of_label @ u[matrix.row, matrix.col]), -float(of_label.sum())

    def loss(x: Floats) -> tuple[float, Floats]:
        scale, shift = np.exp(-x[0]), x[1]
        v = scale * u + shift
        p = row_weights[:, None] * expit(v)
        value = float(row_weights @ np.logaddexp(0.0, v).sum(axis=1)) + scale * linear[0] + shift * linear[1]
        by_scale = float(np.vdot(p, u)) + linear[0]
        gradient = np.array([-scale * by_scale + x[0], float(p.sum()) + linear[1] + x[1]])
        return value + 0.5 * float(x @ x), gradient

    bounds = [(-_LARGEST_LOG, _LARGEST_LOG), (-_LARGEST_SHIFT, _LARGEST_SHIFT)]
    log_temperature, shift = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds).x
    temperature = float(np.exp(log_temperature))
    return temperature, float(shift) * temperature
