"""Recursive regularization with hinge losses (Gopal and Yang 2015, section 4) by the core."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn import _core
from taxolearn.progress import ProgressCallback
from taxolearn.validation import check_choice, check_number

__all__ = ["NodePrecision", "RecursiveFit", "RecursiveResult", "fit_recursive", "node_weights"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_LOSSES = tuple(_core.Hinge.__members__)
_METHODS = tuple(_core.RecursiveMethod.__members__)


@dataclass(frozen=True, eq=False)
class NodePrecision:
    """The prior precision Q of functions on the nodes of a graph, and which of these are the classes.

    Attributes
    ----------
    matrix : sparse array of shape (n_nodes, n_nodes)
        Symmetric and positive definite: a Laplacian with a ridge, say. Two nodes with an element other than zero are
        neighbours.
    nodes : array of int of shape (n_classes,)
        The node of every class. Other nodes have no data, and are summed out.
    """

    matrix: Any
    nodes: npt.ArrayLike

    def to_core(self) -> tuple[Integers, npt.NDArray[np.int32], Floats, npt.NDArray[np.int32]]:
        """Offsets, columns and values row by row, and the nodes."""
        matrix = sp.csr_array(self.matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"graph: the matrix has shape {matrix.shape}, expected a square one")
        matrix.sum_duplicates()
        nodes = np.asarray(self.nodes)
        if nodes.ndim != 1 or not np.issubdtype(nodes.dtype, np.integer):
            raise ValueError(f"graph: nodes has shape {nodes.shape} and type {nodes.dtype}, expected integers in a row")
        return (*_as_columns(matrix), np.ascontiguousarray(nodes, dtype=np.int32))


@dataclass(frozen=True)
class RecursiveFit:
    """What recursive regularization found, and how good it is.

    Attributes
    ----------
    weights : csr_array of shape (n_nodes, n_features)
        What each node adds to the weights of its parent, ``w_n - w_parent(n)``; without a tree, nodes are classes, and
        these are their weights.
    intercepts : ndarray of shape (n_nodes,)
        The same for the intercepts.
    parents : ndarray of shape (n_nodes,) or None
        Number of each node's parent, as given.
    duals : csr_array of shape (n_classes, n_samples)
        Dual variables, from which another fit of the same rows may start.
    status : str
        "converged", "max_iter" (stopped early) or "stalled" (the limit of the arithmetic).
    iterations : int
        Sweeps over all classes.
    passes : float
        Visits of a row for a class, divided by their number: the work, in passes over all rows and classes.
    objective, gap, relative_gap : float
        The objective at these weights is above its minimum by at most ``gap``, certified in double precision;
        ``relative_gap`` is ``gap`` divided by the objective.
    seconds : float
        Time of the fit.
    dropped : float
        Share of the squared norm of all weights that is missing as they were below the threshold. ``objective`` and
        ``gap`` are those of all weights.
    """

    weights: sp.csr_array
    intercepts: Floats
    parents: Integers | None
    duals: sp.csr_array
    status: str
    iterations: int
    passes: float
    objective: float
    gap: float
    relative_gap: float
    seconds: float
    dropped: float

    def predictor(self) -> _core.NodeWeights:
        """The weights in the form that scores rows: ``scores(X)``, or ``top(X, k)`` where classes are many."""
        return node_weights(self.weights, self.intercepts, self.parents)


@dataclass(frozen=True)
class RecursiveResult:
    """How a fit with hinge losses went.

    Attributes
    ----------
    status : str
        "converged", "max_iter" (stopped early) or "stalled" (the limit of the arithmetic).
    iterations : int
        Sweeps over all classes.
    passes : float
        The work, in passes over all rows and classes.
    objective : float
        The penalized sum of the losses at the fitted model.
    gap, relative_gap : float
        Certified in double precision: the objective is above its minimum by at most ``gap``; ``relative_gap`` is
        ``gap`` divided by the objective.
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

    @classmethod
    def of(cls, fit: RecursiveFit, C: float) -> "RecursiveResult":
        """That of a fit by the core, whose objective has the losses multiplied by C."""
        return cls(
            status=fit.status,
            iterations=fit.iterations,
            passes=fit.passes,
            objective=fit.objective / C,
            gap=fit.gap / C,
            relative_gap=fit.relative_gap,
            seconds=fit.seconds,
        )


def node_weights(weights: Any, intercepts: Floats, parents: Integers | None) -> _core.NodeWeights:
    """What nodes add to their parents', rows of a sparse matrix, in the form in which the core scores rows."""
    by_feature = weights.T.tocsr()
    matrix = sp.csr_array(
        (
            by_feature.data.astype(np.float64, copy=False),
            by_feature.indices.astype(np.int64),
            by_feature.indptr.astype(np.int64),
        ),
        shape=by_feature.shape,
    )
    return _core.NodeWeights(
        weights=matrix, intercepts=np.asarray(intercepts, dtype=np.float64), parents=_as_list(parents)
    )


def fit_recursive(
    X: Any,
    label_offsets: npt.ArrayLike,
    labels: npt.ArrayLike,
    n_classes: int,
    *,
    parents: npt.ArrayLike | None = None,
    graph: NodePrecision | None = None,
    variances: Sequence[float] | Floats | None = None,
    loss: str = "hinge",
    C: float = 1.0,
    bias: float = 1.0,
    sample_weight: Floats | None = None,
    positive_weights: Sequence[float] | Floats | None = None,
    negative_weights: Sequence[float] | Floats | None = None,
    method: str = "joint",
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: int = 0,
    start: sp.csr_array | None = None,
    threshold: float = 0.0,
    n_threads: int = 1,
    progress: ProgressCallback | None = None,
) -> RecursiveFit:
    """Minimize ``sum_n |w_n - w_parent(n)|^2 / (2 v_n) + sum_il C_il loss(y_il w_l . x_i)`` over all nodes n.

    Leaf l is a label of row i (``y_il = 1``) or not (``y_il = -1``). On a graph the first term is
    ``1/2 sum_nm Q_nm w_n . w_m``. Without a tree or a graph every class stands alone, as in liblinear.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Inputs in the core's form (see ``taxolearn.validation``).
    label_offsets, labels : array of int
        Row i has the classes ``labels[label_offsets[i]:label_offsets[i + 1]]``, of which there may be none.
    n_classes : int
        Number of classes.
    parents : array of int, optional
        ``Taxonomy.parents``; classes are its leaves. By default there is no tree.
    graph : NodePrecision, optional
        A graph instead of a tree.
    variances : sequence of float, optional
        v_n of each node, by default 1. A graph has none.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``max(0, 1 - y u)``, or its square.
    C : float, default=1.0
        C_il is this times the weight of the row and that of the class.
    bias : float, default=1.0
        Value of one more feature, whose weights are the intercepts. They are regularized like all others, the less the
        larger the value. 0 means no intercepts.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows.
    positive_weights, negative_weights : sequence of float, optional
        Weights of each class for rows with this label, and for rows without.
    method : {"joint", "alternating"}, default="joint"
        Ascent of the dual of the whole problem, or the paper's alternation between nodes of different colours: odd and
        even levels of a tree.
    tol : float, default=1e-3
        Largest relative duality gap of the whole problem.
    max_iter : int, default=1000
        Largest number of sweeps over all classes.
    random_state : int, default=0
        Of the order of rows.
    start : csr_array of shape (n_classes, n_samples), optional
        Dual variables of a fit of the same rows, say with a smaller C.
    threshold : float, default=0.0
        Weights smaller than this are left out.
    n_threads : int, default=1
        Threads. The answer does not depend on their number.
    progress : callable, optional
        Called after every sweep.
    """
    n, d = X.shape
    if parents is not None and graph is not None:
        raise ValueError("parents and graph are both given, expected at most one of them")
    threshold = check_number("threshold", threshold, least=0)
    tree = None if parents is None else np.asarray(parents, dtype=np.int64)
    result = _core.fit_recursive(
        X=X,
        label_offsets=np.ascontiguousarray(label_offsets, dtype=np.int64),
        labels=np.ascontiguousarray(labels, dtype=np.int32),
        n_classes=n_classes,
        parents=_as_list(tree),
        graph=None if graph is None else graph.to_core(),
        variances=_as_floats(variances),
        loss=_core.Hinge[check_choice("loss", loss, _LOSSES)],
        C=C,
        bias=bias,
        sample_weight=sample_weight,
        positive_weights=_as_floats(positive_weights),
        negative_weights=_as_floats(negative_weights),
        settings=_core.RecursiveSettings(
            method=_core.RecursiveMethod[check_choice("method", method, _METHODS)],
            tol=tol,
            max_iter=max_iter,
            seed=random_state,
        ),
        start=None if start is None else _as_columns(start),
        n_threads=n_threads,
        progress=progress,
    )
    offsets, features, values = result.take_weights()
    weights = sp.csr_array((values, features, offsets), shape=(len(offsets) - 1, d + 1))
    offsets, rows, values = result.take_duals()
    kept, dropped = _without_small(weights[:, :d], threshold)
    return RecursiveFit(
        weights=kept,
        intercepts=bias * weights[:, [d]].toarray().ravel(),
        parents=tree,
        duals=sp.csr_array((values, rows, offsets), shape=(n_classes, n)),
        status=result.status.name,
        iterations=result.iterations,
        passes=result.passes,
        objective=result.objective,
        gap=result.gap,
        relative_gap=result.relative_gap,
        seconds=result.seconds,
        dropped=dropped,
    )


def _without_small(weights: sp.csr_array, threshold: float) -> tuple[sp.csr_array, float]:
    """The elements of at least this size, and the share of the others in the squared norm."""
    small = np.abs(weights.data) < threshold
    squares = np.square(weights.data)
    dropped = float(squares[small].sum() / squares.sum()) if small.any() else 0.0
    weights.data[small] = 0.0
    weights.eliminate_zeros()
    return weights, dropped


def _as_list(parents: Integers | None) -> list[int] | None:
    return None if parents is None else list(parents.tolist())


def _as_floats(values: Sequence[float] | Floats | None) -> list[float]:
    return [] if values is None else [float(value) for value in values]


def _as_columns(matrix: sp.csr_array) -> tuple[Integers, npt.NDArray[np.int32], Floats]:
    rows = matrix.sorted_indices()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64)
