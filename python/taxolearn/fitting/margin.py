"""Max-margin Markov trees (Rousu, Saunders, Szedmak, Shawe-Taylor 2006) by the core."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn import _core
from taxolearn.progress import ProgressCallback
from taxolearn.validation import check_choice

__all__ = ["MARGIN_LOSSES", "LabelingDuals", "MarginFit", "MarginResult", "fit_margin"]

Floats = npt.NDArray[np.float64]

_LOSSES = {
    "zero-one": _core.MarginLoss.zero_one,
    "hamming": _core.MarginLoss.hamming,
    "hierarchical": _core.MarginLoss.hierarchical,
}
MARGIN_LOSSES = tuple(_LOSSES)
"""Names of the losses that margins can be scaled by."""

LabelingDuals = tuple[npt.NDArray[np.int64], Floats, Floats, npt.NDArray[np.int8]]
"""Dual variables: offsets of the rows, and shares, losses and signs of their labelings other than their own."""


@dataclass(frozen=True)
class MarginResult:
    """How a max-margin fit went.

    Attributes
    ----------
    status : str
        "converged", "max_iter" (stopped early) or "stalled" (the limit of the arithmetic).
    iterations : int
        Passes over all rows, or those with large gaps.
    passes : float
        Visits of a row, divided by their number.
    objective, gap, relative_gap : float
        The objective at the fitted weights is above its minimum by at most ``gap``, which was computed for all rows
        from the dual variables alone; ``relative_gap`` is ``gap`` divided by the objective.
    seconds : float
        Time of the fit.
    """

    status: str
    iterations: int
    passes: float
    objective: float
    gap: float
    relative_gap: float
    seconds: float


@dataclass(frozen=True)
class MarginFit:
    """What a max-margin fit found, and how good it is.

    Components are the nodes, then the edges between two nodes, in the order of their lower ends.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_components) or (n_samples, n_components)
        Scores of labelings are sums of ``x @ weights + intercepts``, or ``k(x, X) @ weights + intercepts``, times the
        signs of the nodes, and of the edges the products of the signs at their ends.
    intercepts : ndarray of shape (n_components,)
        The same of the feature that all rows have.
    duals : tuple of arrays
        Dual variables, from which another fit of the same rows may start.
    result : MarginResult
        How the fit went.
    """

    weights: Floats
    intercepts: Floats
    duals: LabelingDuals
    result: MarginResult


def fit_margin(
    X: Any,
    label_offsets: npt.ArrayLike,
    labels: npt.ArrayLike,
    parents: Sequence[int] | npt.NDArray[np.int64],
    *,
    loss: str = "hamming",
    scales: Sequence[float] | Floats | None = None,
    C: float = 1.0,
    bias: float = 1.0,
    kernel: Any = None,
    sample_weight: Floats | None = None,
    memory_limit: float = 4e9,
    tol: float = 1e-2,
    max_iter: int = 10_000,
    random_state: int = 0,
    start: LabelingDuals | None = None,
    n_threads: int = 1,
    progress: ProgressCallback | None = None,
) -> MarginFit:
    """Minimize ``|W|^2 / 2 + sum_i C_i max_y (loss(y_i, y) - W . (phi(x_i, y_i) - phi(x_i, y)))``, equation (1).

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Inputs in the core's form (see ``taxolearn.validation``).
    label_offsets, labels : array of int
        Row i has the nodes ``labels[label_offsets[i]:label_offsets[i + 1]]``, with each one its parents.
    parents : array of int
        Parent of each node; -1 for those at the top, which come first. The others come after their parents.
    loss : {"zero-one", "hamming", "hierarchical"}, default="hamming"
        1 for a wrong labeling; the number of wrong nodes; or the sum of ``scales`` over wrong nodes whose parents are
        right.
    scales : sequence of float, optional
        One per node, by default 1.
    C : float, default=1.0
        C_i is this times the weight of the row.
    bias : float, default=1.0
        Value of one more feature of every row. 0 means no intercepts.
    kernel : core kernel, optional
        By default the product of rows, with weights of the features.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows.
    memory_limit : float, default=4e9
        Bytes that the matrix of a kernel may take; a larger one is computed anew in every pass.
    tol : float, default=1e-2
        Largest relative duality gap.
    max_iter : int, default=10000
        Largest number of passes over all rows, or those with large gaps.
    random_state : int, default=0
        Of the order of rows.
    start : tuple of arrays, optional
        ``duals`` of a fit of the same rows and labels, say with another C.
    n_threads : int, default=1
        Threads. The answer does not depend on their number.
    progress : callable, optional
        Called after every pass.
    """
    found = _core.fit_margin(
        X=X,
        parents=[int(parent) for parent in parents],
        label_offsets=np.ascontiguousarray(label_offsets, dtype=np.int64),
        labels=np.ascontiguousarray(labels, dtype=np.int32),
        loss=_LOSSES[check_choice("loss", loss, MARGIN_LOSSES)],
        scales=[] if scales is None else [float(scale) for scale in scales],
        C=C,
        bias=bias,
        kernel=kernel,
        sample_weight=sample_weight,
        memory_limit=memory_limit,
        tol=tol,
        max_iter=max_iter,
        seed=random_state,
        start=start,
        n_threads=n_threads,
        progress=progress,
    )
    return MarginFit(
        weights=found.take_weights() if kernel is None else found.take_multipliers(),
        intercepts=found.intercepts,
        duals=found.duals(),
        result=MarginResult(
            status=found.status.name,
            iterations=found.iterations,
            passes=found.passes,
            objective=found.objective,
            gap=found.gap,
            relative_gap=found.gap / found.objective if found.objective > 0 else 0.0,
            seconds=found.seconds,
        ),
    )
