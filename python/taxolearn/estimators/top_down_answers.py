"""What a fitted top-down classifier answers: the best classes, exactly or by a beam, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import gen_batches

from taxolearn.estimators.explain import NodeExplanation, explain_rows
from taxolearn.estimators.top_down_nodes import Branches, NodeWeights
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["beam_search", "best_classes", "explain_nodes"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CANDIDATES = 2**21  # nodes of a block of rows that a beam looks at


def best_classes(
    functions: NodeWeights, branches: Branches, columns: Integers, X: Any, k: int, n_threads: int
) -> tuple[npt.NDArray[np.intp], Floats]:
    """The k most probable classes of each row, and their log probabilities. ``columns`` has the classes' functions."""
    best = np.empty((X.shape[0], k), dtype=np.intp)
    values = np.empty((X.shape[0], k))
    for rows, log_p in functions.blocks(X, branches, n_threads):
        leaves = log_p[:, columns]
        if k < leaves.shape[1]:
            found = np.sort(np.argpartition(-leaves, k - 1, axis=1)[:, :k], axis=1)
        else:
            found = np.broadcast_to(np.arange(k), (len(leaves), k))
        order = np.argsort(-np.take_along_axis(leaves, found, axis=1), axis=1, kind="stable")
        best[rows] = np.take_along_axis(found, order, axis=1)
        values[rows] = np.take_along_axis(leaves, best[rows], axis=1)
    return best, values


def beam_search(
    functions: NodeWeights, branches: Branches, columns: Integers, X: Any, k: int, beam: int
) -> tuple[npt.NDArray[np.intp], Floats]:
    """The same, among the classes below the most probable nodes of each level, so many of them for each row."""
    # Siblings are side by side, so their functions are a slice of the weights by functions.
    weights = functions.weights.T.tocsr() if sp.issparse(functions.weights) else functions.weights.T
    class_of = np.full(branches.n_functions, -1, dtype=np.int64)
    class_of[columns] = np.arange(len(columns))
    best = np.empty((X.shape[0], k), dtype=np.intp)
    values = np.full((X.shape[0], k), -np.inf)
    width = beam * int(branches.counts.max())
    for rows in gen_batches(X.shape[0], max(1, _CANDIDATES // width)):
        part = X[rows]
        row, classes, log_p = _leaves_of(part, weights, functions.intercepts, branches, class_of, beam)
        rank = _ranks(row, -log_p, classes)
        chosen = rank < k
        some = np.full((part.shape[0], k), -1, dtype=np.intp)
        some[row[chosen], rank[chosen]] = classes[chosen]
        values[rows][row[chosen], rank[chosen]] = log_p[chosen]
        for i in np.flatnonzero((some < 0).any(axis=1)).tolist():
            known = some[i][some[i] >= 0]
            others = np.setdiff1d(np.arange(min(len(columns), 2 * k)), known)
            some[i, len(known) :] = others[: k - len(known)]
        best[rows] = some
    return best, values


def _leaves_of(
    X: Any, weights: Any, intercepts: Floats, branches: Branches, class_of: Integers, beam: int
) -> tuple[Integers, Integers, Floats]:
    """Rows, classes and log probabilities that the beam finds."""
    row = np.arange(X.shape[0])
    node, log_p = np.zeros(len(row), dtype=np.int64), np.zeros(len(row))
    found: list[tuple[Integers, Integers, Floats]] = []
    while len(row) > 0:
        order = np.argsort(node, kind="stable")
        row, node, log_p = row[order], node[order], log_p[order]
        ends = np.r_[np.flatnonzero(np.diff(node)) + 1, len(node)].tolist()
        below = []
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            first, n = int(branches.first[node[begin]]), int(branches.counts[node[begin]])
            children, own = slice(first, first + n), row[begin:end]
            u = X[own] @ weights[children].T
            u = np.asarray(u.toarray() if sp.issparse(u) else u, dtype=np.float64) + intercepts[children]
            u -= u.max(axis=1, keepdims=True)
            u -= np.log(np.exp(u).sum(axis=1, keepdims=True))
            u += log_p[begin:end, None]
            below.append((np.repeat(own, n), np.tile(np.arange(first, first + n), len(own)), u.ravel()))
        row, function, log_p = (np.concatenate(part) for part in zip(*below, strict=True))
        is_leaf = class_of[function] >= 0
        found.append((row[is_leaf], class_of[function[is_leaf]], log_p[is_leaf]))
        row, node, log_p = row[~is_leaf], branches.nodes[function[~is_leaf]], log_p[~is_leaf]
        kept = _ranks(row, -log_p, node) < beam
        row, node, log_p = row[kept], node[kept], log_p[kept]
    rows, classes, values = (np.concatenate(part) for part in zip(*found, strict=True))
    return rows, classes, values


def _ranks(row: Integers, value: Floats, tie: Integers) -> Integers:
    """Place of each entry among those of its row, the least value first."""
    order = np.lexsort((tie, value, row))
    begins = np.flatnonzero(np.r_[True, np.diff(row[order]) != 0]) if len(row) else np.empty(0, dtype=np.int64)
    sizes = np.diff(np.r_[begins, len(row)])
    out = np.empty(len(row), dtype=np.int64)
    out[order] = np.arange(len(row)) - np.repeat(begins, sizes)
    return out


def explain_nodes(
    functions: NodeWeights,
    branches: Branches,
    classes: npt.NDArray[Any],
    taxonomy: Taxonomy | None,
    X: Any,
    node: Any,
    *,
    top: int,
    feature_names: Sequence[Any] | None,
) -> list[list[NodeExplanation]]:
    """For each row every node on the path, each against its siblings as in a flat model of these."""
    targets: list[Any] = [node] * X.shape[0] if isinstance(node, (str, int, np.generic)) else list(node)
    if len(targets) != X.shape[0]:
        raise ValueError(
            f"node has {len(targets)} elements, expected one name, or one for each of the {X.shape[0]} rows"
        )
    weights = functions.weights.T.tocsr() if sp.issparse(functions.weights) else functions.weights.T
    if taxonomy is None:
        u = functions.predictors(X, 1)
        return explain_rows(X, weights, u, classes, None, targets, top=top, feature_names=feature_names)
    out: list[list[NodeExplanation]] = []
    for row, target in enumerate(targets):
        x = X[row : row + 1]
        steps = []
        for name in taxonomy.path(target):
            place = int(taxonomy.index(name))
            first, n = (int(of[branches.parents[place]]) for of in (branches.first, branches.counts))
            part = weights[first : first + n]
            u = x @ part.T
            u = (
                np.asarray(u.toarray() if sp.issparse(u) else u, dtype=np.float64)
                + functions.intercepts[first : first + n]
            )
            siblings = np.empty(n, dtype=object)
            siblings[:] = taxonomy.names[branches.nodes[first : first + n]]
            ((step,),) = explain_rows(x, part, u, siblings, None, [name], top=top, feature_names=feature_names)
            steps.append(step)
        out.append(steps)
    return out
