"""Groups of nodes that share a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from taxolearn.taxonomy.build import Integers, group_names

if TYPE_CHECKING:
    from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["make_groups"]

_TYINGS = ("shared", "level", "subtree", "node")


def make_groups(tree: Taxonomy, tying: str | npt.ArrayLike) -> tuple[Integers, list[str]]:
    """The group of every node, -1 for the root, and the names of the groups; see ``Taxonomy.groups``."""
    if not isinstance(tying, str):
        groups = _check_groups(tree, tying)
        names = [f"group {k}" for k in range(int(groups.max()) + 1)]
    elif tying == "shared":
        groups, names = np.zeros(tree.n_nodes, dtype=np.int64), ["shared"]
    elif tying == "level":
        groups, names = tree.depths - 1, [f"level {depth}" for depth in range(1, tree.height + 1)]
    elif tying == "subtree":
        tops = np.flatnonzero(tree.parents == 0)
        groups, names = _subtrees(tree, tops), group_names(tree.names[tops].tolist())
    elif tying == "node":
        groups, names = np.arange(tree.n_nodes) - 1, group_names(tree.names[1:].tolist())
    else:
        raise ValueError(f"tying is {tying!r}, expected one of {', '.join(map(repr, _TYINGS))} or an integer array")
    groups[0] = -1
    return groups, names


def _subtrees(tree: Taxonomy, tops: Integers) -> Integers:
    groups = np.empty(tree.n_nodes, dtype=np.int64)
    groups[tops] = np.arange(len(tops))
    # A subtree's leaves are consecutive, and so are its inner nodes (with its top as the first).
    by_leaf = tops[np.argsort(tree.leaf_begin[tops])]
    groups[tree.n_inner :] = np.repeat(groups[by_leaf], tree.leaf_end[by_leaf] - tree.leaf_begin[by_leaf])
    inner = tops[tops < tree.n_inner]
    groups[1 : tree.n_inner] = np.repeat(groups[inner], np.diff(inner, append=tree.n_inner))
    return groups


def _check_groups(tree: Taxonomy, tying: npt.ArrayLike) -> Integers:
    groups = np.array(tying)
    if groups.shape != (tree.n_nodes,) or groups.dtype.kind not in "iu":
        raise ValueError(
            f"tying is an array of shape {groups.shape} and type {groups.dtype}, expected {tree.n_nodes} integers, "
            "one for each node; labels on inner nodes add leaves, taxonomy.with_classes(y) gives the tree to number"
        )
    groups = groups.astype(np.int64)
    if groups[1:].min() < 0:
        raise ValueError(f"tying has the group {groups[1:].min()}, expected groups from 0 on")
    if groups[1:].max() >= tree.n_nodes - 1:
        raise ValueError(f"tying has the group {groups[1:].max()} for only {tree.n_nodes - 1} nodes below the root")
    empty = np.flatnonzero(np.bincount(groups[1:]) == 0)
    if len(empty) > 0:
        raise ValueError(f"tying has groups up to {groups[1:].max()} but none of its nodes is in group {empty[0]}")
    groups[0] = -1
    return groups
