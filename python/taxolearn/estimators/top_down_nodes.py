"""A softmax at every inner node of a tree: where its children are stored, how nodes are fitted, how they predict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import gen_batches

from taxolearn import _core
from taxolearn.blocks import Blocks, n_stored
from taxolearn.fitting.fit import FitResult, Solver

__all__ = [
    "Branches",
    "LinearPriors",
    "NodeFit",
    "NodeRows",
    "NodeWeights",
    "compress",
    "fit_nodes",
    "fit_rows",
    "rows_by_level",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BATCH = 2**22  # predictors of a block of rows
_LARGE = 2**22  # entries times children of a node that is worth several threads
_DENSE = 0.4  # share of weights that are not zero above which they are stored with the zeros


@dataclass(frozen=True)
class Branches:
    """The nodes below the root, sorted so that siblings are side by side, and levels one after the other.

    Every node below the root has a function, which is compared with those of its siblings. Functions have this order;
    nodes have that of the taxonomy.
    """

    parents: Integers
    depths: Integers

    @staticmethod
    def flat(n_classes: int) -> Branches:
        """A root with the classes as its children."""
        parents, depths = np.zeros(n_classes + 1, dtype=np.int64), np.ones(n_classes + 1, dtype=np.int64)
        parents[0], depths[0] = -1, 0
        return Branches(parents, depths)

    @property
    def n_functions(self) -> int:
        return len(self.parents) - 1

    @property
    def n_levels(self) -> int:
        """Depths at which there are inner nodes."""
        return int(self.depths.max())

    @cached_property
    def nodes(self) -> Integers:
        """The node of each function."""
        below = np.arange(1, len(self.parents))
        order: Integers = below[np.lexsort((below, self.parents[below], self.depths[below]))]
        return order

    @cached_property
    def place(self) -> Integers:
        """The function of each node, -1 for the root."""
        out = np.full(len(self.parents), -1, dtype=np.int64)
        out[self.nodes] = np.arange(self.n_functions)
        return out

    @cached_property
    def above(self) -> Integers:
        """The function of the parent of each function's node, -1 where that is the root."""
        above: Integers = self.place[self.parents[self.nodes]]
        return above

    @cached_property
    def counts(self) -> Integers:
        """Number of children of each node."""
        return np.bincount(self.parents[1:], minlength=len(self.parents)).astype(np.int64)

    @cached_property
    def first(self) -> Integers:
        """The first child of each node, as a function; -1 for leaves."""
        out = np.full(len(self.parents), -1, dtype=np.int64)
        functions = np.arange(self.n_functions)[::-1]
        out[self.parents[self.nodes[functions]]] = functions
        return out

    @cached_property
    def leaves(self) -> Integers:
        """Functions of the leaves, in the order of the nodes."""
        leaves: Integers = self.place[self.counts == 0]
        return leaves

    @cached_property
    def level_begin(self) -> Integers:
        """Functions of level d are those from ``level_begin[d]`` to ``level_begin[d + 1]``."""
        begin: Integers = np.searchsorted(self.depths[self.nodes], np.arange(1, self.n_levels + 2)).astype(np.int64)
        return begin

    @cached_property
    def groups(self) -> list[Integers]:
        """For each level the beginnings of groups of siblings."""
        new = np.r_[True, np.diff(self.parents[self.nodes]) != 0]
        begin = self.level_begin
        return [begin[d] + np.flatnonzero(new[begin[d] : begin[d + 1]]) for d in range(self.n_levels)]

    def log_probabilities(self, u: Floats) -> Floats:
        """Turn predictors of the functions, one row per data point, into log probabilities of their nodes, in place."""
        for d, starts in enumerate(self.groups):
            part = slice(self.level_begin[d], self.level_begin[d + 1])
            local = starts - self.level_begin[d]
            sizes = np.diff(np.r_[starts, self.level_begin[d + 1]])
            level = u[:, part]
            level -= np.repeat(np.maximum.reduceat(level, local, axis=1), sizes, axis=1)
            level -= np.repeat(np.log(np.add.reduceat(np.exp(level), local, axis=1)), sizes, axis=1)
            if d > 0:
                level += u[:, self.above[part]]
        return u


@dataclass(frozen=True)
class NodeRows:
    """The rows of one inner node and which of its children they belong to."""

    node: int
    rows: npt.NDArray[np.intp]
    targets: npt.NDArray[np.int32]


def rows_by_level(branches: Branches, at: Integers) -> list[list[NodeRows]]:
    """For each level the nodes with rows and at least two children.

    ``at`` is the node of each row, a leaf or an inner one, below which nothing is known of the row; -1 for no node.
    """
    path = np.full((branches.n_levels + 1, len(at)), -1, dtype=np.int64)
    rows, node = np.flatnonzero(at >= 0), at[at >= 0]
    while len(rows) > 0:
        path[branches.depths[node], rows] = node
        going = node > 0
        rows, node = rows[going], branches.parents[node[going]]
    levels = []
    for d in range(branches.n_levels):
        rows = np.flatnonzero(path[d + 1] >= 0)
        parent, child = path[d, rows], path[d + 1, rows]
        order = np.argsort(parent, kind="stable")
        rows, parent, child = rows[order], parent[order], child[order]
        targets = (branches.place[child] - branches.first[parent]).astype(np.int32)
        begins = np.flatnonzero(np.r_[True, np.diff(parent) != 0]) if len(rows) else np.empty(0, dtype=np.int64)
        ends = np.r_[begins[1:], len(rows)]
        levels.append(
            [
                NodeRows(int(parent[a]), rows[a:b], targets[a:b])
                for a, b in zip(begins.tolist(), ends.tolist(), strict=False)
                if branches.counts[parent[a]] > 1
            ]
        )
    return levels


@dataclass(frozen=True)
class NodeFit:
    """Weights by features and children; ``columns`` are the features that occur, None for all."""

    node: int
    columns: Integers | None
    weights: npt.NDArray[Any]
    intercepts: Floats
    result: FitResult


def compress(X: Any, rows: npt.NDArray[np.intp]) -> tuple[Any, Integers | None]:
    """Some rows, of sparse matrices without the columns that they do not have; and the columns that are left.

    One column always stays. None stands for all of them.
    """
    if isinstance(X, Blocks):
        matrices, kept = {}, []
        for name, matrix, place in X.parts():
            matrices[name], columns = compress(matrix, rows)
            kept.append(place.start + (np.arange(matrix.shape[1]) if columns is None else columns))
        return Blocks(matrices), np.concatenate(kept)
    part = X[rows]
    if not sp.issparse(part):
        return part, None
    columns, indices = np.unique(part.indices, return_inverse=True)
    columns = columns.astype(np.int64) if len(columns) > 0 else np.zeros(1, dtype=np.int64)
    shape = (part.shape[0], len(columns))
    matrix = sp.csr_matrix((part.data, indices.astype(part.indptr.dtype), part.indptr), shape=shape, copy=False)
    return matrix, columns


def fit_rows(
    X: Any,
    targets: npt.NDArray[np.int32],
    weights: Floats | None,
    n_children: int,
    prior: _core.Prior,
    settings: _core.FitSettings,
    n_threads: int,
) -> _core.FitResult:
    """The softmax of one node. A child without rows is a class like the others."""
    likelihood = _core.Softmax(targets, n_children, weights)
    result = _core.fit(X=X, likelihood=likelihood, prior=prior, settings=settings, n_threads=n_threads)
    if not np.isfinite(result.objective):
        raise ValueError("variance is too large for these inputs, whose products overflow: scale the features")
    return result


@dataclass(frozen=True)
class LinearPriors:
    """Priors of the functions of siblings, which are independent.

    Attributes
    ----------
    intercept_variance : float
        Prior variance of the intercepts.
    block_variances : tuple of float or None
        Where inputs are blocks, a factor of the variance for each.
    """

    intercept_variance: float
    block_variances: tuple[float, ...] | None = None

    def __call__(self, variance: float) -> _core.Prior:
        if self.block_variances is None:
            kernel = _core.LinearKernel(variance)
        else:
            kernel = _core.BlockKernel([_core.LinearKernel(variance * factor) for factor in self.block_variances])
        return _core.Prior(kernels=[kernel], intercept_variance=self.intercept_variance)


def fit_nodes(
    X: Any,
    weights: Floats | None,
    branches: Branches,
    levels: Sequence[Sequence[NodeRows]],
    variances: Sequence[float],
    prior_of: LinearPriors,
    tol: float,
    max_iter: int,
    *,
    n_jobs: int | None,
    n_threads: int,
) -> list[NodeFit]:
    """Fit all nodes with rows and at least two children, in the order of the levels."""
    settings = Solver().fit_settings(tol, max_iter)
    priors = [prior_of(variance) for variance in variances]
    tasks = [(d, part) for d, parts in enumerate(levels) for part in parts]
    per_row = max(1.0, n_stored(X) / X.shape[0])
    costs = np.array([len(part.rows) * per_row * branches.counts[part.node] for _, part in tasks])

    def fit(k: int, threads: int) -> NodeFit:
        d, part = tasks[k]
        inputs, columns = compress(X, part.rows)
        own = None if weights is None else weights[part.rows]
        n_children = int(branches.counts[part.node])
        result = fit_rows(inputs, part.targets, own, n_children, priors[d], settings, threads)
        values = result.take_weights().astype(X.dtype, copy=False)
        return NodeFit(part.node, columns, values, np.array(result.intercepts), FitResult.from_core(result))

    fits: list[NodeFit | None] = [None] * len(tasks)
    workers = n_threads if n_jobs is None else joblib.effective_n_jobs(n_jobs)
    alone = np.flatnonzero(costs > _LARGE) if n_jobs is None or workers == 1 else np.empty(0, dtype=np.intp)
    for k in alone.tolist():
        fits[k] = fit(k, n_threads)
    small = np.setdiff1d(np.arange(len(tasks)), alone)
    if len(small) > 0:

        def fit_group(group: Integers) -> list[NodeFit]:
            return [fit(k, 1) for k in group.tolist()]

        groups = _group(small, costs, workers)
        parallel = joblib.Parallel(n_jobs=workers, prefer="threads")
        done = parallel(joblib.delayed(fit_group)(group) for group in groups)
        for group, found in zip(groups, done, strict=True):
            for k, each in zip(group.tolist(), found, strict=True):
                fits[k] = each
    return [each for each in fits if each is not None]


def _group(tasks: Integers, costs: Floats, workers: int) -> list[Integers]:
    """The tasks in groups of about equal cost, several for each worker, the costly ones first."""
    order = tasks[np.argsort(-costs[tasks], kind="stable")]
    share = costs[order].sum() / (8 * workers) + 1e-9
    numbers = np.floor((np.cumsum(costs[order]) - costs[order]) / share).astype(np.int64)
    return np.split(order, np.flatnonzero(np.diff(numbers)) + 1)


@dataclass(frozen=True)
class TopDownResult:
    """How the fits of all nodes went.

    Attributes
    ----------
    status : str
        "converged" if all fits did, else "max_iter" (some stopped early) or "stalled" (the limit of the arithmetic).
    nodes : int
        Nodes that were fitted: those with rows and at least two children.
    iterations, products : int
        Iterations of the solver and products with kernel matrices, of all nodes together.
    objective, gap : float
        Sums over the nodes. The sum of the objectives is above its minimum by at most the sum of the gaps.
    relative_gap : float
        The largest of all nodes.
    worst : str, int or None
        The node that has it.
    seconds : float
        Time of all fits, without that of learning hyperparameters.
    """

    status: str
    nodes: int
    iterations: int
    products: int
    objective: float
    gap: float
    relative_gap: float
    worst: Any
    seconds: float

    @classmethod
    def of(cls, results: Mapping[Any, FitResult], seconds: float) -> TopDownResult:
        """Sum up."""
        statuses = {each.status for each in results.values()}
        status = next((each for each in ("max_iter", "stalled") if each in statuses), "converged")
        # A node that did not converge is worse than any that did.
        worst = max(
            results, key=lambda name: (results[name].status != "converged", results[name].relative_gap), default=None
        )
        return cls(
            status=status,
            nodes=len(results),
            iterations=sum(each.iterations for each in results.values()),
            products=sum(each.products for each in results.values()),
            objective=float(sum(each.objective for each in results.values())),
            gap=float(sum(each.gap for each in results.values())),
            relative_gap=max((each.relative_gap for each in results.values()), default=0.0),
            worst=worst,
            seconds=seconds,
        )


@dataclass(frozen=True)
class NodeWeights:
    """Weights of all functions, divided by the temperatures of their levels.

    Attributes
    ----------
    weights : array or CSR matrix of shape (n_features, n_functions)
        By features, so that a prediction reads the rows of the features it has.
    intercepts : ndarray of shape (n_functions,)
        Intercepts.
    """

    weights: Any
    intercepts: Floats

    @staticmethod
    def of(
        fits: Sequence[NodeFit], branches: Branches, temperatures: Sequence[float], n_features: int, dtype: Any
    ) -> NodeWeights:
        """Put the fits of the nodes together."""
        fits = sorted(fits, key=lambda each: int(branches.first[each.node]))
        intercepts = np.zeros(branches.n_functions)
        entries = np.zeros(n_features, dtype=np.int64)
        for each in fits:
            entries[slice(None) if each.columns is None else each.columns] += each.weights.shape[1]
        total = int(entries.sum())
        is_dense = total >= _DENSE * n_features * branches.n_functions
        if is_dense:
            dense = np.zeros((n_features, branches.n_functions), dtype=dtype)
        else:
            index = np.int32 if max(total, branches.n_functions) < 2**31 else np.int64
            indptr = np.concatenate([[0], np.cumsum(entries)])
            data, indices, free = np.empty(total, dtype=dtype), np.empty(total, dtype=index), indptr[:-1].copy()
        for each in fits:
            n = each.weights.shape[1]
            begin, temperature = int(branches.first[each.node]), temperatures[int(branches.depths[each.node])]
            columns = np.arange(n_features) if each.columns is None else each.columns
            values = each.weights if temperature == 1.0 else each.weights / np.asarray(temperature, dtype=dtype)
            intercepts[begin : begin + n] = each.intercepts / temperature
            if is_dense:
                dense[columns, begin : begin + n] = values
            else:
                places = free[columns, None] + np.arange(n)
                data[places] = values
                indices[places] = np.arange(begin, begin + n)
                free[columns] += n
        if is_dense:
            return NodeWeights(dense, intercepts)
        shape = (n_features, branches.n_functions)
        return NodeWeights(sp.csr_matrix((data, indices, indptr.astype(index)), shape=shape, copy=False), intercepts)

    def predictors(self, X: Any, n_threads: int) -> Floats:
        """Functions at the rows: shape (n_samples, n_functions)."""
        if not sp.issparse(self.weights):
            return _core.predict_linear(
                X=X,
                weights=self.weights,
                intercepts=self.intercepts,
                link=_core.Link.none,
                output=_core.Output.predictor,
                n_threads=n_threads,
            )
        return _product(X, self.weights) + self.intercepts

    def blocks(self, X: Any, branches: Branches, n_threads: int) -> Iterator[tuple[slice, Floats]]:
        """Log probabilities of the nodes of all functions, for some rows after the other."""
        for rows in gen_batches(X.shape[0], max(1, _BATCH // branches.n_functions)):
            yield rows, branches.log_probabilities(self.predictors(X[rows], n_threads))


def _product(X: Any, weights: Any) -> Floats:
    if isinstance(X, Blocks):
        return np.asarray(X @ weights, dtype=np.float64)
    # In the type of the weights, which are larger than some rows.
    out = X.astype(weights.dtype, copy=False) @ weights
    return np.asarray(out.toarray() if sp.issparse(out) else out, dtype=np.float64)
