"""The weights of a log-linear pool of classifiers, with a certificate, and temperatures of single ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.utils import gen_batches

from taxolearn.validation import check_number

__all__ = ["PoolObjective", "PoolResult", "fit_pool_weights", "fit_temperature"]

Floats = npt.NDArray[np.float64]

_BATCH = 2**20  # scores of one expert that are looked at together
_MAX_LOG_TEMPERATURE = 12.0
_HALVINGS = 40
_ROUNDING = 1e-13  # of a loss, relatively


@dataclass(frozen=True)
class PoolResult:
    """How the weights of a pool were found.

    Attributes
    ----------
    weights : ndarray of shape (n_experts,)
        Weights of the experts, none negative.
    gap : float
        Proven bound on how far the penalized loss is above its minimum, in nats.
    relative_gap : float
        The same, divided by the penalized loss.
    iterations : int
        Newton steps.
    status : {"converged", "max_iter", "stalled", "single", "equal"}
        "single": one expert alone is as good as any mixture, so it was taken; "equal": there was nothing to fit to.
    loss : float
        Mean log loss of the pool on the scores it was fitted to, without the penalty.
    """

    weights: Floats
    gap: float
    relative_gap: float
    iterations: int
    status: str
    loss: float


class PoolObjective:
    """``sum_i w_i (logsumexp_c(sum_k a_k s_k(i, c)) - sum_k a_k s_k(i, y_i)) + penalty / 2 |a - a0|^2``.

    Parameters
    ----------
    scores : sequence of arrays of shape (n_samples, n_classes)
        Log scores, one array per expert; all finite.
    labels : array of int of shape (n_samples,)
        Columns of the right classes.
    weights : array of shape (n_samples,), optional
        Weights of the rows.
    penalty : float, default=2.0
        In nats, for all rows together: it holds the weights where there are ten rows, and is nothing for thousands.
    """

    def __init__(
        self, scores: Sequence[npt.NDArray[Any]], labels: npt.ArrayLike, weights: Any = None, *, penalty: float = 2.0
    ) -> None:
        if len(scores) == 0:
            raise ValueError("scores is empty; a pool needs at least one expert")
        self.labels = np.asarray(labels, dtype=np.intp)
        n = len(self.labels)
        shape = np.shape(scores[0])
        if len(shape) != 2 or shape[0] != n or any(np.shape(each) != shape for each in scores):
            shapes = ", ".join(str(np.shape(each)) for each in scores)
            raise ValueError(f"scores have the shapes {shapes}, expected one of {n} rows for all of them")
        for k, each in enumerate(scores):
            if not np.isfinite(each).all():
                raise ValueError(f"scores of expert {k} are not all finite")
        if n and not (self.labels.min() >= 0 and self.labels.max() < shape[1]):
            raise ValueError(f"labels must be from 0 to {shape[1] - 1}, got {self.labels.min()} to {self.labels.max()}")
        self.scores = list(scores)
        self.weights = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        if self.weights.shape != (n,):
            raise ValueError(f"weights has the shape {self.weights.shape}, expected ({n},)")
        self.penalty = check_number("penalty", penalty, least=0, strict=True)
        self.center = np.full(len(self.scores), 1.0 / len(self.scores))
        self._rows = max(1, _BATCH // max(1, shape[1]))

    @property
    def n_experts(self) -> int:
        return len(self.scores)

    def penalized(self, a: Floats, loss: float) -> float:
        """The objective where the loss is this."""
        return float(loss + 0.5 * self.penalty * np.sum((a - self.center) ** 2))

    def loss(self, a: Floats) -> float:
        """The loss of all rows, without the penalty."""
        return float(self.weights @ self.losses(a))

    def losses(self, a: Floats) -> Floats:
        """The loss of each row, without its weight."""
        out = np.empty(len(self.labels))
        for rows in gen_batches(len(self.labels), self._rows):
            u = self._mix(a, rows)
            at_label = u[np.arange(len(u)), self.labels[rows]]
            top = u.max(axis=1)
            u -= top[:, None]
            np.exp(u, out=u)
            out[rows] = np.log(u.sum(axis=1)) + top - at_label
        return out

    def derivatives(self, a: Floats) -> tuple[float, Floats, Floats]:
        """Loss without the penalty; gradient and Hessian with it."""
        k = self.n_experts
        loss, gradient, hessian = 0.0, self.penalty * (a - self.center), self.penalty * np.eye(k)
        for rows in gen_batches(len(self.labels), self._rows):
            labels, weights = self.labels[rows], self.weights[rows]
            stack = np.stack([np.asarray(each[rows], dtype=np.float64) for each in self.scores])
            at_label = stack[:, np.arange(len(labels)), labels]
            p = self._mix(a, rows)
            top = p.max(axis=1)
            p -= top[:, None]
            np.exp(p, out=p)
            sums = p.sum(axis=1)
            loss += float(weights @ (np.log(sums) + top - a @ at_label))
            p *= (1.0 / sums)[:, None]
            mean = np.einsum("kic,ic->ki", stack, p)
            gradient = gradient + (mean - at_label) @ weights
            stack -= mean[:, :, None]
            p *= weights[:, None]
            flat = stack.reshape(k, -1)
            hessian = hessian + (flat * p.reshape(1, -1)) @ flat.T
        return loss, gradient, hessian

    def gap(self, a: Floats, gradient: Floats) -> float:
        """Bound on the distance to the minimum: the penalty makes the objective strongly convex."""
        step = np.maximum(0.0, a - gradient / self.penalty) - a
        return float(max(0.0, -(gradient @ step + 0.5 * self.penalty * step @ step)))

    def _mix(self, a: Floats, rows: slice) -> Floats:
        out: Floats = a[0] * np.asarray(self.scores[0][rows], dtype=np.float64)
        for weight, each in zip(a[1:].tolist(), self.scores[1:], strict=True):
            if weight != 0.0:
                out += weight * np.asarray(each[rows], dtype=np.float64)
        return out


def fit_pool_weights(
    scores: Sequence[npt.NDArray[Any]],
    labels: npt.ArrayLike,
    weights: Any = None,
    *,
    penalty: float = 2.0,
    tol: float = 1e-14,
    max_iter: int = 100,
) -> PoolResult:
    """Fit the weights of ``p(c|x) ~ exp(sum_k a_k s_k(c, x))``, none of them negative, by Newton's method.

    The loss of the pool, without the penalty, is never above that of its best expert alone at weight 1: if the
    minimum with the penalty were, that expert is taken.

    Parameters
    ----------
    scores : sequence of arrays of shape (n_samples, n_classes)
        Log scores of rows that the experts were not fitted to.
    labels : array of int of shape (n_samples,)
        Columns of the right classes.
    weights : array of shape (n_samples,), optional
        Weights of the rows.
    penalty : float, default=2.0
        Pull to equal weights, in nats for all rows together.
    tol : float, default=1e-14
        Relative gap at which to stop.
    max_iter : int, default=100
        Largest number of Newton steps.
    """
    objective = PoolObjective(scores, labels, weights, penalty=penalty)
    a = objective.center.copy()
    total = float(objective.weights.sum())
    loss, gradient, hessian = objective.derivatives(a)
    status, iterations = "max_iter", 0
    while True:
        value = objective.penalized(a, loss)
        gap = objective.gap(a, gradient)
        if gap <= tol * max(1.0, value):
            status = "converged"
            break
        if iterations >= max_iter:
            break
        target = _newton_point(a, gradient, hessian)
        found = _search(objective, a, target, value, float(gradient @ (target - a)))
        if found is None:
            status = "stalled"
            break
        a = found
        loss, gradient, hessian = objective.derivatives(a)
        iterations += 1
    loss = objective.loss(a)
    alone = [objective.loss(unit) for unit in np.eye(objective.n_experts)]
    best = int(np.argmin(alone))
    if alone[best] < loss:
        a, loss, status = np.eye(objective.n_experts)[best], alone[best], "single"
        gap = objective.gap(a, objective.derivatives(a)[1])
    value = objective.penalized(a, loss)
    return PoolResult(a, gap, gap / max(value, 1e-300), iterations, status, loss / max(total, 1e-300))


def _newton_point(a: Floats, gradient: Floats, hessian: Floats) -> Floats:
    """Where the quadratic model is least among weights that are not negative."""
    lower = cholesky(hessian, lower=True)
    right = solve_triangular(lower, hessian @ a - gradient, lower=True)
    point: Floats = nnls(lower.T, right)[0]
    return point


def _search(objective: PoolObjective, a: Floats, target: Floats, value: float, slope: float) -> Floats | None:
    """Halve the step until the objective falls enough; None if it does not."""
    step = 1.0
    for _ in range(_HALVINGS):
        trial = a + step * (target - a) if step < 1.0 else target
        if objective.penalized(trial, objective.loss(trial)) <= value + 1e-4 * step * slope + _ROUNDING * abs(value):
            return trial
        step *= 0.5
    return None


def fit_temperature(
    scores: npt.NDArray[Any], labels: npt.ArrayLike, weights: Any = None, *, tol: float = 1e-6
) -> float:
    """The temperature ``T`` of ``p(c|x) ~ exp(s(c, x) / T)``, by Newton's method on ``log T``.

    A standard Gaussian prior of ``log T`` keeps it near 1 where there are few rows.

    Parameters
    ----------
    scores : array of shape (n_samples, n_classes)
        Log scores of rows that the classifier was not fitted to.
    labels : array of int of shape (n_samples,)
        Columns of the right classes.
    weights : array of shape (n_samples,), optional
        Weights of the rows.
    tol : float, default=1e-6
        Newton step of ``log T`` at which to stop.
    """
    # The penalty is as good as none; what is added to the loss is the prior of log T.
    objective = PoolObjective([scores], labels, weights, penalty=1e-12)

    def at(t: float) -> tuple[float, float, float]:
        b = np.array([np.exp(-t)])
        loss, gradient, hessian = objective.derivatives(b)
        slope, curvature = float(b[0] * gradient[0]), float(b[0] ** 2 * hessian[0, 0])
        # The part of the slope is left out where it would bend the model down.
        return loss + 0.5 * t * t, t - slope, 1.0 + curvature + max(0.0, slope)

    t = 0.0
    value, slope, curvature = at(t)
    for _ in range(100):
        step = float(np.clip(-slope / curvature, -2.0, 2.0))
        if abs(step) < tol:
            break
        for _ in range(_HALVINGS):
            trial = float(np.clip(t + step, -_MAX_LOG_TEMPERATURE, _MAX_LOG_TEMPERATURE))
            new = at(trial)
            if new[0] <= value:
                break
            step *= 0.5
        else:
            break
        t, (value, slope, curvature) = trial, new
    return float(np.exp(t))
