"""What learning hyperparameters leaves behind: every evaluation, and how the search ended."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Evaluation", "LearningResult", "projected_step"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation of an objective.

    Attributes
    ----------
    theta : float64 array of shape (m,)
        Logarithms of the hyperparameters.
    value : float
        The criterion: a sum over the held-out rows.
    gradient : float64 array of shape (m,) or None
        Its derivatives by ``theta``.
    converged : bool
        Whether the fits inside reached their tolerance; if not, the evaluation failed.
    gap : float
        Largest certified relative gap of these fits.
    products : int
        Kernel products they took.
    seconds : float
        Time they took.
    tolerance : float
        The tolerance they were asked for; written by the learner.
    """

    theta: Array
    value: float
    gradient: Array | None
    converged: bool
    gap: float
    products: int
    seconds: float
    tolerance: float = np.nan


@dataclass(frozen=True, eq=False, repr=False)
class LearningResult:
    """How the hyperparameters were learned.

    Attributes
    ----------
    status : str
        "converged", "max_evaluations", "time_limit", "interrupted" (Ctrl-C), "stalled" (no lower value was found along
        the last direction), "failed" (not even the start could be evaluated) or "no_parameters".
    message : str
        The same in a sentence.
    names : tuple of str
        Names of the hyperparameters.
    start : float64 array of shape (m,)
        Logarithms of the start values.
    bounds : float64 array of shape (m, 2)
        Logarithms of the bounds.
    n_held_out : float
        Number of held-out rows, weights counted: what sums are divided by to give means.
    evaluations : tuple of Evaluation
        All evaluations in their order.
    best : int or None
        Index of the one with the lowest value, None if there is none.
    is_log : bool array of shape (m,) or None
        Which parameters are on log scale, None for all. Others, the loadings of a ``LearnedCoupling``, stand for
        themselves wherever this says logarithms.
    """

    status: str
    message: str
    names: tuple[str, ...]
    start: Array
    bounds: Array
    n_held_out: float
    evaluations: tuple[Evaluation, ...]
    best: int | None
    is_log: NDArray[np.bool_] | None = None

    @property
    def theta(self) -> Array:
        """Logarithms of the best hyperparameters; without any evaluation, of the start values."""
        return self.start if self.best is None else self.evaluations[self.best].theta

    @property
    def values(self) -> Array:
        """Mean log loss of each evaluation, shape (k,). Those of failed ones mean nothing."""
        means: Array = self._column("value") / self.n_held_out
        return means

    @property
    def thetas(self) -> Array:
        """Logarithms of the hyperparameters of each evaluation, shape (k, m)."""
        return self._column("theta").reshape(len(self.evaluations), len(self.names))

    @property
    def gradient_norms(self) -> Array:
        """Largest derivative of the mean log loss at each evaluation, shape (k,).

        A derivative that leads to a bound counts no more than the distance to it.
        """
        gradients = self._column("gradient").reshape(self.thetas.shape) / self.n_held_out
        norms: Array = np.abs(projected_step(self.thetas, gradients, self.bounds)).max(axis=1, initial=0.0)
        return norms

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each evaluation succeeded, shape (k,)."""
        return np.array([evaluation.converged for evaluation in self.evaluations], dtype=bool)

    @property
    def gaps(self) -> Array:
        """Largest relative gap of the fits of each evaluation, shape (k,)."""
        return self._column("gap")

    @property
    def products(self) -> NDArray[np.int64]:
        """Kernel products of each evaluation, shape (k,)."""
        return self._column("products").astype(np.int64)

    @property
    def seconds(self) -> Array:
        """Time of each evaluation, shape (k,)."""
        return self._column("seconds")

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, strings and lists."""
        columns = ("values", "thetas", "gradient_norms", "converged", "gaps", "products", "seconds")
        return {
            "status": self.status,
            "message": self.message,
            "names": list(self.names),
            "start": self.start.tolist(),
            "bounds": self.bounds.tolist(),
            "n_held_out": self.n_held_out,
            "best": self.best,
            **{name: getattr(self, name).tolist() for name in columns},
        }

    def __repr__(self) -> str:
        failures = np.count_nonzero(~self.converged)
        effort = f"{len(self.evaluations)} evaluations ({failures} failed), {self.seconds.sum():.1f} s"
        lines = [f"LearningResult: {self.status}, {effort}", self.message]
        if self.best is not None:
            ends = [int(np.argmax(self.converged)), self.best]
            lines.append(f"{'':<32} {'start':>12} {'best':>12}")
            rows = [("mean log loss", *self.values[ends]), ("gradient", *self.gradient_norms[ends])]
            is_log = np.True_ if self.is_log is None else self.is_log
            shown = [np.where(is_log, np.exp(theta), theta) for theta in (self.start, self.theta)]
            rows += zip(self.names, *shown, strict=True)
            lines += [f"{name:<32} {before:>12.6g} {after:>12.6g}" for name, before, after in rows[:12]]
            if len(rows) > 12:
                lines.append(f"and {len(rows) - 12} parameters more")
        return "\n".join(lines)

    def _column(self, name: str) -> Array:
        return np.array([getattr(evaluation, name) for evaluation in self.evaluations], dtype=np.float64)


def projected_step(theta: Array, gradient: Array, bounds: Array) -> Array:
    """The step along the negative gradient, cut off at the bounds."""
    return np.clip(theta - gradient, *bounds.T) - theta
