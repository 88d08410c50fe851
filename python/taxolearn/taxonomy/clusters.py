"""A tree made from data: balanced, spherical k-means of the means of classes, again and again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state, check_X_y

from taxolearn.taxonomy.nodes import Integers, Name, Nodes, check_name
from taxolearn.validation import check_number

__all__ = ["nodes_from_clusters"]

Floats = npt.NDArray[np.float64]

_ROUNDS = 10


def nodes_from_clusters(X: Any, y: Any, *, branching: int, random_state: Any) -> Nodes:
    """The nodes of the tree, as ``Taxonomy.from_clusters`` describes it."""
    branching = check_number("branching", branching, least=2, integer=True)
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
    labels, index = np.unique(y, return_inverse=True)
    leaves = [check_name(label, "y") for label in labels.tolist()]
    random = check_random_state(random_state)
    means = _means(X, index, len(leaves))
    taken = {*leaves}
    names: list[Name] = [_free("root", taken)]
    parents = [-1]
    count = 0
    waiting: list[tuple[int, Integers]] = [(0, np.arange(len(leaves)))]
    while waiting:
        node, members = waiting.pop(0)
        if len(members) <= branching:
            names += [leaves[k] for k in members.tolist()]
            parents += [node] * len(members)
            continue
        for group in _split(means[members], branching, random):
            count += 1
            names.append(_free(f"cluster {count}", taken))
            parents.append(node)
            waiting.append((len(names) - 1, members[group]))
    return Nodes(names, parents)


def _free(name: str, taken: set[Name]) -> str:
    """The name, with stars where it is taken."""
    while name in taken:
        name += "*"
    taken.add(name)
    return name


def _means(X: Any, index: npt.NDArray[np.intp], n_classes: int) -> Any:
    """Directions of the means of the classes: rows of length 1, or 0."""
    n = len(index)
    members = sp.csr_matrix((np.ones(n), (index, np.arange(n))), shape=(n_classes, n))
    return _normalize(members @ X)


def _normalize(rows: Any) -> Any:
    if sp.issparse(rows):
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return (sp.diags(1 / np.where(lengths > 0, lengths, 1.0)) @ rows).tocsr()
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.where(lengths > 0, lengths, 1.0)[:, None]


def _split(rows: Any, branching: int, random: np.random.RandomState) -> list[Integers]:
    """Groups of the rows whose sizes differ by at most one, ordered by their first rows."""
    n = rows.shape[0]
    depth = math.ceil(round(math.log(n) / math.log(branching), 9))
    n_groups = min(branching, math.ceil(round(n ** (1 / depth), 9)))
    centres = rows[_first_centres(rows, n_groups, random)]
    groups = np.full(n, -1)
    for _ in range(_ROUNDS):
        product = rows @ centres.T
        new = _assign(np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64))
        if np.array_equal(new, groups):
            break
        groups = new
        members = sp.csr_matrix((np.ones(n), (groups, np.arange(n))), shape=(n_groups, n))
        centres = _normalize(members @ rows)
    found = [np.flatnonzero(groups == g) for g in range(n_groups)]
    return sorted(found, key=lambda group: int(group[0]))


def _first_centres(rows: Any, n_groups: int, random: np.random.RandomState) -> list[int]:
    """Rows that are far from each other: each is drawn by its squared distance to the nearest one so far."""
    n = rows.shape[0]
    chosen = [int(random.randint(n))]
    distance = np.full(n, np.inf)
    while len(chosen) < n_groups:
        product = rows @ rows[[chosen[-1]]].T
        cosine = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64)[:, 0]
        distance = np.minimum(distance, np.maximum(1.0 - cosine, 0.0))
        distance[chosen] = 0.0
        total = distance.sum()
        if total <= 0:
            chosen += np.setdiff1d(np.arange(n), chosen)[: n_groups - len(chosen)].tolist()
            break
        chosen.append(int(np.searchsorted(np.cumsum(distance), random.uniform() * total, side="right").clip(0, n - 1)))
    return chosen


def _assign(similarity: Floats) -> Integers:
    """Each row to the most similar group that has room, those that would lose most by another one first."""
    n, n_groups = similarity.shape
    order = np.argsort(-similarity, axis=1, kind="stable")
    best = np.take_along_axis(similarity, order[:, :2], axis=1)
    regret = best[:, 0] - best[:, 1]
    room = np.full(n_groups, n // n_groups)
    larger = n % n_groups  # groups that may have one more
    out = np.empty(n, dtype=np.int64)
    for row in np.argsort(-regret, kind="stable").tolist():
        for group in order[row].tolist():
            if room[group] > 0:
                room[group] -= 1
            elif room[group] == 0 and larger > 0:
                room[group] -= 1
                larger -= 1
            else:
                continue
            out[row] = group
            break
    return out
