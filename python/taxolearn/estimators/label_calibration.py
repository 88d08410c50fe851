"""From predictors to calibrated probabilities: a temperature, and for several labels an offset, by held-out rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logsumexp

__all__ = ["fit_class_temperature", "fit_label_calibration", "label_log_loss"]

Floats = npt.NDArray[np.float64]

_LARGEST_LOG = 8.0  # of the temperature
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


def label_log_loss(u: Floats, truth: Any, weights: Floats | None, temperature: float, offset: float) -> float:
    """The log loss of all labels at a temperature and an offset, arguments as in ``fit_label_calibration``."""
    matrix = sp.coo_array(truth)
    row_weights = np.ones(len(u)) if weights is None else weights
    v = (u + offset) / temperature
    right = float(row_weights[matrix.row] @ v[matrix.row, matrix.col])
    return float(row_weights @ np.logaddexp(0.0, v).sum(axis=1)) - right


def fit_class_temperature(
    u: Floats, labels: npt.NDArray[Any], weights: Floats | None = None, given: float | None = None
) -> tuple[float, float]:
    """The temperature ``T`` of ``p = softmax(u / T)`` for rows with one class each, and the log loss there.

    Minimizes the log loss plus a standard Gaussian prior of ``log T``, unless the temperature is given.

    Parameters
    ----------
    u : array of shape (n_samples, n_classes)
        Predictors of rows that the model was not fitted to.
    labels : array of int of shape (n_samples,)
        Columns of the right classes.
    weights : array of shape (n_samples,), optional
        Weights of the rows.
    given : float, optional
        The temperature, if it is not to be found.
    """
    row_weights = np.ones(len(u)) if weights is None else weights
    margins = u - u[np.arange(len(u)), labels][:, None]

    def loss(log_temperature: float) -> float:
        return float(row_weights @ logsumexp(margins * np.exp(-log_temperature), axis=1))

    if given is not None:
        return given, loss(float(np.log(given)))
    found = minimize_scalar(
        lambda t: loss(t) + 0.5 * t * t, bounds=(-_LARGEST_LOG, _LARGEST_LOG), method="bounded", options={"xatol": 1e-4}
    ).x
    return float(np.exp(found)), loss(found)
