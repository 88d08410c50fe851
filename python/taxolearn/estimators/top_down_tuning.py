"""Hyperparameters of a top-down classifier: a variance and a temperature for each level, learned on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt

from taxolearn.estimators.top_down_nodes import Branches, LinearPriors, NodeRows, compress, fit_rows
from taxolearn.fitting.fit import Solver

__all__ = ["LevelParameters", "fit_temperature", "learn_levels", "temperature_loss"]

Floats = npt.NDArray[np.float64]
Folds = npt.NDArray[np.int32]
Held = tuple[Floats, npt.NDArray[np.int32], Floats]  # predictors, targets and weights of rows that were held out

_FACTOR = 4.0  # from one candidate to the next
_CANDIDATES = 5
_LEAST_GAIN = 1e-3  # of the loss, relative, for which a step is worth its time
_ROWS = 5000  # of a level
_PREDICTORS = 2**24  # of a level
_TOL = 1e-3  # of the fits
_STEPS = 100
_LARGEST = 10.0  # of the logarithm of a temperature


@dataclass(frozen=True)
class LevelParameters:
    """Hyperparameters of a ``TopDownClassifier``.

    Attributes
    ----------
    variances : tuple of float
        Variance of the linear kernel at each level: that of the root first.
    temperatures : tuple of float
        What the functions of each level are divided by.
    intercept_variance : float
        Prior variance of the intercepts.
    block_variances : dict of float
        Factors of the variances, by block; empty where inputs are one matrix.
    """

    variances: tuple[float, ...]
    temperatures: tuple[float, ...]
    intercept_variance: float
    block_variances: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As a dict of numbers and tuples."""
        return asdict(self)


class _Margins:
    """Predictors less those of the right child, for rows with any number of children, one after the other."""

    def __init__(self, held: Sequence[Held]) -> None:
        parts = [u - u[np.arange(len(u)), y, None] for u, y, _ in held]
        self._sizes = np.concatenate([np.full(len(u), u.shape[1]) for u, _, _ in held])
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._values = np.concatenate([part.ravel() for part in parts])
        self._weights = np.concatenate([w for _, _, w in held])

    def loss(self, log_temperature: float) -> tuple[float, float, float]:
        """The total log loss, and its first and second derivative by the inverse temperature."""
        z = self._values * np.exp(-log_temperature)
        largest = np.maximum.reduceat(z, self._starts)
        p = np.exp(z - np.repeat(largest, self._sizes))
        total = np.add.reduceat(p, self._starts)
        mean = np.add.reduceat(p * self._values, self._starts) / total
        square = np.add.reduceat(p * self._values**2, self._starts) / total
        w = self._weights
        return (
            float(w @ (largest + np.log(total))),
            float(w @ mean),
            float(w @ np.maximum(square - mean**2, 0.0)),
        )


def temperature_loss(held: Sequence[Held], log_temperature: float) -> float:
    """Total log loss of held-out rows at this temperature, with its prior: log T is Gaussian with variance 1."""
    return _Margins(held).loss(log_temperature)[0] + 0.5 * log_temperature**2


def fit_temperature(held: Sequence[Held]) -> tuple[float, float]:
    """The logarithm of the best temperature, and ``temperature_loss`` there, by Newton steps."""
    margins = _Margins(held)

    def evaluate(t: float) -> tuple[float, float, float]:
        loss, slope, curvature = margins.loss(t)
        beta = np.exp(-t)
        # Where the loss is not convex in log T, the part that is never negative stands for the second derivative.
        second = beta**2 * curvature + max(beta * slope, 0.0) + 1.0
        return loss + 0.5 * t**2, -beta * slope + t, second

    t = 0.0
    value, slope, second = evaluate(t)
    for _ in range(_STEPS):
        step = float(np.clip(-slope / second, -1.0, 1.0))
        if abs(step) < 1e-9:
            break
        while abs(step) > 1e-12:
            new = evaluate(float(np.clip(t + step, -_LARGEST, _LARGEST)))
            if new[0] <= value + 1e-4 * slope * step:
                break
            step *= 0.5
        else:
            break
        t = float(np.clip(t + step, -_LARGEST, _LARGEST))
        value, slope, second = new
    return t, value


def learn_levels(
    X: Any,
    weights: Floats | None,
    branches: Branches,
    levels: Sequence[Sequence[NodeRows]],
    folds: Folds,
    start: Sequence[float],
    prior_of: LinearPriors,
    max_iter: int,
    *,
    candidates: int = _CANDIDATES,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    n_threads: int = 1,
    random_state: np.random.RandomState,
    report: Callable[[str], None] = lambda line: None,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Learn a variance and a temperature for each level.

    The criterion is the log loss of rows in the fold that holds them out, summed over the nodes of the level, at the
    best temperature. From the start, the variance goes up or down by factors as long as this helps. A level in which no
    row can be held out keeps the start, and the temperature 1.

    Parameters
    ----------
    X, weights, branches, levels, prior_of, max_iter, n_jobs, n_threads
        As ``fit_nodes`` takes them.
    folds : array of int
        The fold in which each row is held out, or -1.
    start : sequence of float
        Variances to begin with.
    candidates : int
        Largest number of variances to try in each level.
    time_limit : float, optional
        Seconds after which no more variances are tried.
    random_state : RandomState
        Of the rows of nodes that are too large.
    report : callable, optional
        Takes a line about each candidate.
    """
    begin = time.monotonic()
    settings = Solver().fit_settings(_TOL, max_iter)
    workers = n_threads if n_jobs is None else joblib.effective_n_jobs(n_jobs)
    variances, temperatures = [], []

    def may_go_on(tried: int) -> bool:
        return tried < candidates and (time_limit is None or time.monotonic() - begin < time_limit)

    with joblib.Parallel(n_jobs=workers, prefer="threads") as parallel:
        for d, parts in enumerate(levels):
            nodes = [_Folded(X, weights, folds, part, branches) for part in _choose(parts, branches, random_state)]
            level = _Level(nodes, start[d], prior_of, settings, parallel)
            best = level.descend(may_go_on) if level.can_be_held_out else 0
            log_temperature, _ = level.tried.get(best, (0.0, 0.0))
            variances.append(level.variance(best))
            temperatures.append(float(np.exp(log_temperature)))
            report(
                f"level {d}: {len(nodes)} nodes, variance {variances[-1]:.3g}, temperature {temperatures[-1]:.3g}, "
                f"{len(level.tried)} candidates, {time.monotonic() - begin:.1f} s"
            )
    return tuple(variances), tuple(temperatures)


class _Level:
    """Candidates for the variance of one level, the start times powers of a factor, with what was found for them."""

    def __init__(
        self, nodes: Sequence[_Folded], start: float, prior_of: LinearPriors, settings: Any, parallel: Any
    ) -> None:
        self._tasks = [(node, fold) for node in nodes for fold in node.folds]
        self._start = start
        self._prior_of = prior_of
        self._settings = settings
        self._parallel = parallel
        self.tried: dict[int, tuple[float, float]] = {}  # by exponent: log temperature, loss

    @property
    def can_be_held_out(self) -> bool:
        return len(self._tasks) > 0

    def variance(self, exponent: int) -> float:
        return float(self._start * _FACTOR**exponent)

    def descend(self, may_go_on: Callable[[int], bool]) -> int:
        """The exponent that steps of one from 0 lead to, down, or else up, as long as they are worth their time."""
        best, least = 0, self._loss(0)
        for step in (-1, 1):
            while may_go_on(len(self.tried)):
                value = self._loss(best + step)
                if not value < (1 - _LEAST_GAIN) * least:
                    break
                best, least = best + step, value
            if best != 0:
                break
        return best

    def _loss(self, exponent: int) -> float:
        prior = self._prior_of(self.variance(exponent))
        jobs = (joblib.delayed(node.held_out)(fold, prior, self._settings) for node, fold in self._tasks)
        self.tried[exponent] = fit_temperature(list(self._parallel(jobs)))
        return self.tried[exponent][1]


def _choose(parts: Sequence[NodeRows], branches: Branches, random_state: np.random.RandomState) -> list[NodeRows]:
    """The largest nodes until there are enough rows; of the last one as many rows as are wanted."""
    chosen: list[NodeRows] = []
    rows = predictors = 0
    for part in sorted(parts, key=lambda each: (-len(each.rows), each.node)):
        n_children = int(branches.counts[part.node])
        n = min(len(part.rows), _ROWS - rows, max(1, (_PREDICTORS - predictors) // n_children))
        if n < len(part.rows) and (n < 2 or chosen):
            break
        if n < len(part.rows):
            keep = np.sort(random_state.permutation(len(part.rows))[:n])
            part = NodeRows(part.node, part.rows[keep], part.targets[keep])
        chosen.append(part)
        rows, predictors = rows + n, predictors + n * n_children
    return chosen


class _Folded:
    """The rows of a node, in folds."""

    def __init__(self, X: Any, weights: Floats | None, folds: Folds, part: NodeRows, branches: Branches) -> None:
        self._X, _ = compress(X, part.rows)
        self._targets = part.targets
        self._weights = np.ones(len(part.rows)) if weights is None else weights[part.rows]
        self._folds = folds[part.rows]
        self._n_children = int(branches.counts[part.node])
        held = np.unique(self._folds[self._folds >= 0])
        self.folds = [int(fold) for fold in held.tolist() if (self._folds != fold).any()]

    def held_out(self, fold: int, prior: Any, settings: Any) -> Held:
        """Predictors of the rows of a fold by a fit to the others."""
        train, test = np.flatnonzero(self._folds != fold), np.flatnonzero(self._folds == fold)
        targets, weights = self._targets, self._weights
        result = fit_rows(self._X[train], targets[train], weights[train], self._n_children, prior, settings, 1)
        u = self._X[test] @ result.take_weights() + result.intercepts
        return np.asarray(u, dtype=np.float64), targets[test], weights[test]
