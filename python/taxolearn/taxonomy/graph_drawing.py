"""A graph as a tree to be drawn: each node once, and the edges that the tree leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from taxolearn.taxonomy.nodes import Integers, Name
from taxolearn.taxonomy.tree import Taxonomy

if TYPE_CHECKING:
    from taxolearn.taxonomy.graph import ClassGraph

__all__ = ["drawn_tree", "more_edges", "notes_on_edges"]

_MOST_NOTED = 3


def drawn_tree(graph: ClassGraph) -> Taxonomy | None:
    """Each node below the first of its parents, or in undirected graphs below the neighbour that is met first.

    Several trees get a node above them. None for a single node.
    """
    if graph.n_nodes == 1:
        return None
    parents = _first_parents(graph) if graph.directed else _first_neighbours(graph)
    names = graph.names.tolist()
    tops = np.flatnonzero(parents < 0)
    if len(tops) > 1:
        above = "graph"
        while above in names:
            above += "*"
        parents, names = np.append(np.where(parents < 0, graph.n_nodes, parents), -1), [*names, above]
    return Taxonomy(parents, names)


def _first_parents(graph: ClassGraph) -> Integers:
    parents = np.full(graph.n_nodes, -1, dtype=np.int64)
    parents[graph.edges[::-1, 1]] = graph.edges[::-1, 0]
    return parents


def _first_neighbours(graph: ClassGraph) -> Integers:
    parents = np.full(graph.n_nodes, -1, dtype=np.int64)
    near = graph.adjacency()
    _, starts = np.unique(graph.components(), return_index=True)
    for start in starts.tolist():
        _, before = breadth_first_order(near, start, directed=False)
        found = before >= 0
        parents[found] = before[found]
    return parents


def more_edges(graph: ClassGraph, tree: Taxonomy) -> Integers:
    """Edges that the tree leaves out, as pairs of its nodes."""
    if graph.n_edges == 0:
        return np.empty((0, 2), dtype=np.int64)
    first, second = tree.index(graph.names)[graph.edges].T
    is_drawn = (tree.parents[second] == first) | (tree.parents[first] == second)
    left_out: Integers = np.stack([first, second], axis=1)[~is_drawn]
    return left_out


def notes_on_edges(graph: ClassGraph, tree: Taxonomy) -> dict[Name, str]:
    """What the tree leaves out, in words."""
    others: dict[Name, list[str]] = {}
    for first, second in more_edges(graph, tree).tolist():
        others.setdefault(tree.names[second], []).append(str(tree.names[first]))
    what = "also below" if graph.directed else "also next to"
    return {
        name: f"{what} {', '.join(each[:_MOST_NOTED])}{', ...' * (len(each) > _MOST_NOTED)}"
        for name, each in others.items()
    }
