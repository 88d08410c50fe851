"""Which experts of a pool are worth their fits, and whether the pool knows more than the shares of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from taxolearn.estimators.pooling.weights import PoolObjective, PoolResult, fit_pool_weights

__all__ = ["drop_light", "fit_weights", "is_clearly_better", "mean_loss"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_STANDARD_ERRORS = 2.0  # by which a pool has to be better than the shares of classes
_FEW_ROWS = 10.0  # standard errors more for one row, falling with the root of their number: they were tuned for
_LEAST_GAIN = 1e-3  # of the loss, relative, for which an expert is worth its fit
_LEAST_SHARE = 1e-3  # of the sum of weights, below which an expert is dropped, too
_LEAST_NATS = 0.5  # the same in all
_COMPARED_ROWS = 3000  # that this is found out by


def mean_loss(scores: npt.NDArray[Any], labels: Integers, weights: Floats | None) -> float:
    """Mean log loss of one expert."""
    objective = PoolObjective([scores], labels, weights)
    return objective.loss(np.ones(1)) / float(objective.weights.sum())


def is_clearly_better(
    names: list[str],
    result: PoolResult,
    scores: dict[str, Any],
    frequencies: npt.NDArray[Any],
    labels: Integers,
    weights: Floats | None,
    single: npt.NDArray[np.bool_],
) -> bool:
    """Whether the pool gains more over the shares of classes than chance makes it seem.

    The classes with a single row count as one here. Where such a row is held out, nobody knows its class, and an expert
    that gives much to classes it has never seen would seem to know something.
    """
    pooled = PoolObjective([scores[name] for name in names], labels, weights)
    gains = PoolObjective([frequencies], labels).losses(np.ones(1)) - pooled.losses(result.weights)
    rows = np.flatnonzero(single[labels])
    if len(rows) > 0:
        u = sum(a * scores[name][rows].astype(np.float64) for a, name in zip(result.weights, names, strict=True))
        gains[rows] = _log_share(u, single) - _log_share(frequencies[rows], single)
    share = pooled.weights / pooled.weights.sum()
    mean = float(share @ gains)
    errors = _STANDARD_ERRORS + _FEW_ROWS / np.sqrt(len(labels))
    return bool(mean > errors * np.sqrt(share**2 @ (gains - mean) ** 2))


def _log_share(u: Any, columns: npt.NDArray[np.bool_]) -> Any:
    """Logarithm of the probability of some classes together."""
    return logsumexp(u[:, columns], axis=1) - logsumexp(u, axis=1)


def fit_weights(names: list[str], scores: dict[str, Any], labels: Integers, weights: Floats | None) -> PoolResult:
    if len(names) == 1:
        return PoolResult(np.ones(1), 0.0, 0.0, 0, "single", mean_loss(scores[names[0]], labels, weights))
    return fit_pool_weights([scores[name] for name in names], labels, weights)


def drop_light(
    names: list[str], scores: dict[str, Any], alone: dict[str, float], labels: Integers, weights: Floats | None
) -> tuple[list[str], PoolResult]:
    """Weights of the experts that are worth the time of a fit. The pool stays as good as any expert alone."""
    rows = np.unique(np.linspace(0, len(labels) - 1, min(len(labels), _COMPARED_ROWS)).astype(np.int64))
    some = {name: each[rows] for name, each in scores.items()}
    own = None if weights is None else weights[rows]

    def loss(kept: list[str]) -> float:
        return fit_weights(kept, some, labels[rows], own).loss

    least = loss(names)
    while len(names) > 1:
        without = {name: loss([each for each in names if each != name]) for name in names}
        lightest = min(names, key=without.__getitem__)
        if without[lightest] > least + max(_LEAST_GAIN * least, _LEAST_NATS / len(rows)):
            break
        names = [name for name in names if name != lightest]
    result = fit_weights(names, scores, labels, weights)
    while len(names) > 1 and result.weights.min() < _LEAST_SHARE * result.weights.sum():
        names = [name for k, name in enumerate(names) if k != int(np.argmin(result.weights))]
        result = fit_weights(names, scores, labels, weights)
    best = min(alone, key=alone.__getitem__)
    if alone[best] < result.loss:
        return [best], fit_weights([best], scores, labels, weights)
    return names, result
