"""Variants of a tree, as nodes to make another tree from: parts, codes, no chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from taxolearn.taxonomy.nodes import Integers, Name, Nodes

if TYPE_CHECKING:
    from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["encoded_nodes", "part_above", "without_chains"]


def part_above(tree: Taxonomy, positions: Integers) -> Nodes:
    """The nodes that lie above some classes, given by their positions, and these."""
    kept_below = np.concatenate([[0], np.cumsum(np.isin(np.arange(tree.n_classes), positions))])
    kept = np.flatnonzero(kept_below[tree.leaf_end] > kept_below[tree.leaf_begin])
    number = np.full(tree.n_nodes, -1)
    number[kept] = np.arange(len(kept))
    parents = number[tree.parents[kept]]
    parents[0] = -1
    return Nodes(tree.names[kept].tolist(), parents.tolist())


def encoded_nodes(tree: Taxonomy) -> Nodes:
    """The nodes with the classes renamed to 0, 1, 2 and so on in sorted order; inner nodes are named by strings."""
    codes: npt.NDArray[np.intp] = np.empty(tree.n_classes, dtype=np.intp)
    codes[np.argsort(tree.classes, kind="stable")] = np.arange(tree.n_classes)
    inner: list[Name] = [str(name) for name in tree.names[: tree.n_inner]]
    taken = set[Name]()
    for k in range(len(inner)):
        while inner[k] in taken:  # of the names 1 and "1" one gets a star
            inner[k] = f"{inner[k]}*"
        taken.add(inner[k])
    return Nodes([*inner, *codes.tolist()], tree.parents.tolist())


def without_chains(tree: Taxonomy) -> tuple[Nodes, list[int]]:
    """The nodes but inner ones with a single child; also, for each node of the tree, the one that stands for it."""
    n_children = np.bincount(tree.parents[1:], minlength=tree.n_nodes).tolist()
    has_leaf = np.isin(np.arange(tree.n_inner), tree.parents[tree.n_inner :]).tolist()
    parents = tree.parents.tolist()
    # An only child that is an inner node comes right after its parent. So the chain at the root is 0 .. top.
    top = 0
    while n_children[top] == 1 and not has_leaf[top]:
        top += 1
    stands = [0] * (top + 1) + list(range(top + 1, tree.n_nodes))
    for node in range(tree.n_inner - 1, top, -1):
        if n_children[node] == 1:
            stands[node] = stands[tree.n_inner + int(tree.leaf_begin[node]) if has_leaf[node] else node + 1]
    # The first node that stays, going upwards.
    above = list(range(tree.n_nodes))
    for node in range(1, tree.n_inner):
        if stands[node] != node:
            above[node] = above[parents[node]]
    kept = [node for node in range(tree.n_nodes) if stands[node] == node]
    number = {node: i for i, node in enumerate(kept)}
    return Nodes(tree.names[kept].tolist(), [-1, *(number[above[parents[node]]] for node in kept[1:])]), stands
