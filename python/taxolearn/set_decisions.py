"""Decisions on sets of labels: from a probability of each label to the set that is best on average.

All functions take probabilities of shape (n_samples, n_labels). Under a tree they must be consistent, which
``LabelTree.raise_parents`` sees to: no label is more probable than the one above it. Then every set here is closed
upwards: it holds what is above its labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice

__all__ = ["SET_LOSSES", "LabelGraph", "LabelTree", "best_sets", "best_thresholds"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

SET_LOSSES = ("hamming", "f1", "hierarchical", "zero-one")
"""Names of the losses that sets can be chosen for."""
_LEAST_MASS = 1e-13  # expected number of labels that is left out of a sum
_LEAST_F1 = 0.1  # on held-out rows, of a label that gets a threshold of its own
_DEVIATIONS = 9.0  # of a number of labels, beyond which its probability is nothing
_BATCH = 2**22  # numbers of an array


@dataclass(frozen=True)
class _Level:
    """Labels of one depth, those of the same parent side by side from ``starts`` on."""

    labels: Integers
    starts: Integers
    parents: Integers  # one for each of the starts


class LabelTree:
    """Which labels lie below which, for arrays whose columns are the labels."""

    def __init__(self, taxonomy: Taxonomy, classes: npt.NDArray[Any]) -> None:
        nodes = np.atleast_1d(taxonomy.index(classes.tolist(), argument="classes"))
        place = np.full(taxonomy.n_nodes, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        self.parents: Integers = place[taxonomy.parents[nodes]]
        """Column of the label above each; -1 where that is the root."""
        self.depths: Integers = taxonomy.depths[nodes]
        self._levels = [
            self._level(np.flatnonzero(self.depths == depth)) for depth in range(int(self.depths.max()), 1, -1)
        ]

    def _level(self, labels: Integers) -> _Level:
        labels = labels[np.argsort(self.parents[labels], kind="stable")]
        parents, starts = np.unique(self.parents[labels], return_index=True)
        return _Level(labels, starts, parents)

    def raise_parents(self, values: Floats) -> Floats:
        """Raise every label to the largest value below it, in place."""
        for level in self._levels:
            largest = np.maximum.reduceat(values[:, level.labels], level.starts, axis=1)
            values[:, level.parents] = np.maximum(values[:, level.parents], largest)
        return values

    def choose(self, without: Floats, own: Floats) -> Booleans:
        """The closed sets of least cost, where a label adds costs only if the one above it is chosen.

        Then it adds ``without`` if it is left out, along with all that is below, and ``own`` if it is chosen, plus what
        the labels right below it add. ``own`` is overwritten.
        """
        for level in self._levels:
            least = np.minimum(without[:, level.labels], own[:, level.labels])
            own[:, level.parents] += np.add.reduceat(least, level.starts, axis=1)
        chosen = own < without
        for level in reversed(self._levels):
            chosen[:, level.labels] &= chosen[:, self.parents[level.labels]]
        return chosen

    def above(self, proba: Floats) -> Floats:
        """The probability of the label above each, 1 below the root."""
        return np.where(self.parents >= 0, proba[:, self.parents], 1.0)


class LabelGraph:
    """Which labels lie right below which in a directed graph without cycles, for arrays whose columns are labels."""

    def __init__(self, graph: ClassGraph, classes: npt.NDArray[Any]) -> None:
        place = np.full(graph.n_nodes, -1, dtype=np.int64)
        place[np.atleast_1d(graph.index(classes.tolist(), argument="classes"))] = np.arange(len(classes))
        edges = place[graph.edges]
        edges = edges[(edges >= 0).all(axis=1)]
        self.depths: Integers = np.zeros(len(classes), dtype=np.int64)
        """Edges of the longest way down to each label."""
        while True:
            deeper = self.depths.copy()
            np.maximum.at(deeper, edges[:, 1], self.depths[edges[:, 0]] + 1)
            if np.array_equal(deeper, self.depths):
                break
            self.depths = deeper
        self._levels = [
            self._level(edges[self.depths[edges[:, 1]] == depth])
            for depth in range(int(self.depths.max(initial=0)), 0, -1)
        ]

    @staticmethod
    def _level(edges: Integers) -> _Level:
        edges = edges[np.argsort(edges[:, 0], kind="stable")]
        parents, starts = np.unique(edges[:, 0], return_index=True)
        return _Level(edges[:, 1], starts, parents)

    def raise_parents(self, values: Floats) -> Floats:
        """Raise every label to the largest value below it, in place."""
        for level in self._levels:
            largest = np.maximum.reduceat(values[:, level.labels], level.starts, axis=1)
            values[:, level.parents] = np.maximum(values[:, level.parents], largest)
        return values


def best_sets(proba: Floats, loss: str, tree: LabelTree | LabelGraph | None = None) -> Booleans:
    """The set of least expected loss for each row.

    Parameters
    ----------
    proba : array of shape (n_samples, n_labels)
        Probabilities; with a tree, consistent ones.
    loss : {"hamming", "f1", "hierarchical", "zero-one"}
        - "hamming": the number of wrong labels. The set holds what is more probable than not.
        - "f1": 1 minus the F1 of the set, which is 1 where both it and the truth are empty. Labels count as
          independent, so the best set holds the k most probable ones for some k, all of which are compared in time
          quadratic in the largest k that may be best (Ye, Chai, Lee, Chieu, ICML 2012).
        - "hierarchical": the number of labels that are wrong while all above them are right (Cesa-Bianchi, Gentile,
          Zaniboni, JMLR 7, 2006); by one sweep over the tree.
        - "zero-one": 1 unless the set is right as a whole. Labels count as independent given the one above them; in
          a graph just as independent.
    tree : LabelTree or LabelGraph, optional
        What is above what; "hierarchical" needs a tree.

    Returns
    -------
    ndarray of bool, shape (n_samples, n_labels)
        Which labels each set has.
    """
    check_choice("loss", loss, SET_LOSSES)
    if loss == "f1":
        return _best_f1(proba, tree)
    if loss == "hierarchical":
        if not isinstance(tree, LabelTree):
            raise ValueError('loss="hierarchical" needs a taxonomy; give one (for an estimator: before fit)')
        return tree.choose(proba, tree.above(proba) - proba)
    if loss == "zero-one" and isinstance(tree, LabelTree):
        above = tree.above(proba)
        given = np.divide(proba, above, out=np.zeros_like(proba), where=above > 0)
        with np.errstate(divide="ignore"):
            return tree.choose(-np.log1p(-given), -np.log(given))
    return np.asarray(proba > 0.5)


def _best_f1(proba: Floats, tree: LabelTree | LabelGraph | None) -> Booleans:
    # Of equal probabilities the higher label comes first, so that the first k are closed upwards.
    columns = np.arange(proba.shape[1]) if tree is None else np.argsort(tree.depths, kind="stable")
    order = columns[np.argsort(-proba[:, columns], axis=1, kind="stable")]
    p = np.take_along_axis(proba, order, axis=1)
    most = _largest_size(p)
    rows = max(1, _BATCH // (most + 1) ** 2)
    sizes = np.concatenate([expected_f1(p[i : i + rows], most).argmax(axis=1) for i in range(0, len(p), rows)])
    out = np.zeros(proba.shape, dtype=np.bool_)
    np.put_along_axis(out, order, np.arange(p.shape[1]) < sizes[:, None], axis=1)
    return out


def _largest_size(p: Floats) -> int:
    """No set of the most probable labels, p falling along rows, can be best if it is larger."""
    mean = np.cumsum(p, axis=1)
    of_one = 2 * p[:, 0] / (2 + mean[:, -1] - p[:, 0])  # at least that of the first label alone, by Jensen
    reached = np.maximum(of_one, np.prod(1 - p, axis=1))
    # At most that of a set that has all that is right, by Jensen again.
    bound = 2 * mean / (np.arange(1, p.shape[1] + 1) + mean)
    possible = np.flatnonzero((bound >= reached[:, None]).any(axis=0))
    return int(possible[-1]) + 1 if len(possible) > 0 else 0


def expected_f1(p: Floats, most: int) -> Floats:
    """Expected F1 of the sets of the first 0, 1, ..., ``most`` labels, where labels are independent.

    With S the number of right labels among those after the first k, and h that among the first k, it is the mean of
    2 h / (k + h + S). ``s[a - 1]`` below is the mean of 1 / (a + S), for which k - 1 follows from k.
    """
    n, width = p.shape
    out = np.empty((n, most + 1))
    out[:, 0] = np.prod(1 - p, axis=1)
    if most == 0:
        return out
    heads = [np.ones((n, 1))]
    for k in range(most):
        heads.append(_add_label(np.pad(heads[-1], ((0, 0), (0, 1))), p[:, k]))
    rest = p[:, most:]
    largest = float(rest.sum(axis=1).max(initial=0.0))
    support = int(min(width - most, np.ceil(largest + _DEVIATIONS * np.sqrt(largest) + 2 * _DEVIATIONS)))
    tail = np.zeros((n, support + 1))
    tail[:, 0] = 1.0
    left = np.cumsum(rest[:, ::-1], axis=1)[:, ::-1].max(axis=0, initial=0.0)
    for k in range(int((left > _LEAST_MASS).sum())):
        tail = _add_label(tail, rest[:, k])
    numbers = np.arange(1, 2 * most + 1)[None, :] + np.arange(support + 1)[:, None]
    s = tail @ (1.0 / numbers)
    for k in range(most, 0, -1):
        h = np.arange(1, k + 1)
        out[:, k] = (2 * h * heads[k][:, 1:] * s[:, k : 2 * k]).sum(axis=1)
        at = p[:, k - 1 : k]
        s = at * s[:, 1:] + (1 - at) * s[:, :-1]
    return out


def _add_label(distribution: Floats, p: Floats) -> Floats:
    """The distribution of a number of labels with one more; what does not fit is lost."""
    out = distribution * (1 - p[:, None])
    out[:, 1:] += distribution[:, :-1] * p[:, None]
    return out


def best_thresholds(proba: Floats, truth: Any) -> Floats:
    """For each label the threshold of largest F1 on rows that the model has not seen ("s-cut"; Yang, SIGIR 2001).

    Parameters
    ----------
    proba : array of shape (n_samples, n_labels)
        Probabilities.
    truth : sparse matrix of shape (n_samples, n_labels)
        The indicator of their labels.

    Returns
    -------
    ndarray of shape (n_labels,)
        A label is answered where its probability is above its threshold; 0.5 for labels that no row has, and for those
        whose largest F1 is below 0.1: the threshold of a label that is hardly ever found would be passed by half of
        all rows.
    """
    columns = sp.csc_array(truth)
    out = np.full(proba.shape[1], 0.5)
    for label in range(proba.shape[1]):
        positive = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
        if len(positive) == 0:
            continue
        is_right = np.zeros(len(proba))
        is_right[positive] = 1.0
        order = np.argsort(-proba[:, label], kind="stable")
        p = np.append(proba[order, label], 0.0)
        f1 = 2 * np.cumsum(is_right[order]) / (np.arange(1, len(order) + 1) + len(positive))
        f1[p[:-1] == p[1:]] = 0.0  # no threshold parts equal ones
        best = int(f1.argmax())
        if f1[best] >= _LEAST_F1:
            out[label] = 0.5 * (p[best] + p[best + 1])
    return out
