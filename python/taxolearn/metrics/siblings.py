"""How well points that stand for classes agree with a hierarchy that they were not made from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["sibling_fraction"]

_BATCH = 2**24  # cosines that are computed together


def sibling_fraction(points: Any, classes: Any, *, taxonomy: Taxonomy | ClassGraph) -> float:
    """Share of classes whose nearest other class, by the cosine, is a sibling (Mineiro, Karampatziakis 2015, table 4).

    Parameters
    ----------
    points : array of shape (n_classes, k)
        A point for each class, such as ``LabelEmbedding.class_points()``. A class at zero has no nearest one.
    classes : sequence of length n_classes
        Their names.
    taxonomy : Taxonomy or ClassGraph
        Siblings have a parent in common; in a graph of classes they may have several.

    Examples
    --------
    >>> from taxolearn import Taxonomy
    >>> from taxolearn.metrics import sibling_fraction
    >>> taxonomy = Taxonomy.from_labels(["A/1", "A/2", "B/1"])
    >>> round(sibling_fraction([[1, 0], [2, 1], [0, 1]], ["A/1", "A/2", "B/1"], taxonomy=taxonomy), 3)
    0.667
    """
    points = np.asarray(points, dtype=np.float64)
    names = np.asarray(classes).tolist()
    if points.ndim != 2 or len(points) != len(names) or not np.isfinite(points).all():
        raise ValueError(
            f"points has shape {points.shape} for {len(names)} classes, expected a row of finite numbers for each class"
        )
    if len(names) < 2:
        raise ValueError(f"classes has {len(names)} names, expected at least two: one alone has no nearest one")
    parents = _parents(names, taxonomy)
    lengths = np.linalg.norm(points, axis=1)
    units = points / np.where(lengths > 0, lengths, 1.0)[:, None]
    nearest = np.zeros(len(units), dtype=np.int64)
    step = max(1, _BATCH // len(units))
    for first in range(0, len(units), step):
        cosines = units[first : first + step] @ units.T
        own = np.arange(len(cosines))
        cosines[own, first + own] = -np.inf
        cosines[:, lengths == 0] = -np.inf
        nearest[first : first + step] = cosines.argmax(axis=1)
    are_siblings = np.asarray(parents.multiply(parents[nearest]).sum(axis=1)).ravel() > 0
    return float((are_siblings & (lengths > 0) & (lengths[nearest] > 0)).mean())


def _parents(names: list[Any], taxonomy: Taxonomy | ClassGraph) -> sp.csr_array:
    """The indicator of classes' parents."""
    nodes: npt.NDArray[np.int64] = np.asarray(taxonomy.index(names, argument="classes"))
    if isinstance(taxonomy, Taxonomy):
        has = np.flatnonzero(taxonomy.parents[nodes] >= 0)
        pairs = (has, taxonomy.parents[nodes[has]])
        return sp.csr_array((np.ones(len(has)), pairs), shape=(len(names), taxonomy.n_nodes))
    if not taxonomy.directed:
        raise ValueError("taxonomy is an undirected graph, which has no parents; give a Taxonomy or a directed graph")
    upward = sp.csr_array(
        (np.ones(len(taxonomy.edges)), (taxonomy.edges[:, 1], taxonomy.edges[:, 0])),
        shape=(taxonomy.n_nodes, taxonomy.n_nodes),
    )
    return sp.csr_array(upward[nodes])
