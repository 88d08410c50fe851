"""Nodes by name, and where their paths meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from taxolearn.taxonomy.build import Integers, Name, as_list, hint_at_known, shown

if TYPE_CHECKING:
    from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["check_nodes", "common_depths", "find_nodes", "is_one_name"]


def find_nodes(numbers_of: Mapping[Name, int], names: Any, argument: str) -> Integers:
    """Numbers of the nodes with these names; ``argument`` is how errors call the names."""
    entries = as_list(names, argument)
    if not {bool, np.bool_}.isdisjoint(map(type, entries)):
        raise ValueError(
            f"{argument}: not in the taxonomy: booleans; names are strings or integers, so make them one of these"
        )
    try:
        found = [numbers_of.get(name, -1) for name in entries]
    except TypeError:
        culprit = next(name for name in entries if not isinstance(name, str | int | float))
        raise TypeError(f"{argument}: {culprit!r} of type {type(culprit).__name__} is no name") from None
    numbers = np.array(found, dtype=np.int64)
    unknown = np.flatnonzero(numbers < 0)
    if len(unknown) > 0:
        names = list(dict.fromkeys(entries[i] for i in unknown))
        raise ValueError(f"{argument}: not in the taxonomy: {shown(names)}{hint_at_known(names, numbers_of)}")
    return numbers


def check_nodes(n_nodes: int, argument: str, nodes: npt.ArrayLike) -> Integers:
    """Numbers of nodes as integers; ``argument`` is how errors call them."""
    array = np.asarray(nodes)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{argument} has the type {array.dtype}, expected node numbers; index(names) gives them")
    wrong = array[(array < 0) | (array >= n_nodes)]
    if wrong.size > 0:
        raise ValueError(f"{argument} has the node number {wrong[0]}, expected 0 to {n_nodes - 1}")
    return array.astype(np.int64)


def common_depths(tree: Taxonomy, a: npt.ArrayLike, b: npt.ArrayLike) -> Any:
    """Depths of the lowest common ancestors; see ``Taxonomy.common_depth``."""
    one, other = np.broadcast_arrays(check_nodes(tree.n_nodes, "a", a), check_nodes(tree.n_nodes, "b", b))
    shape, one, other = one.shape, one.ravel(), other.ravel()
    meeting = one.copy()
    apart = np.flatnonzero(one != other)
    one, other = one[apart], other[apart]
    # Parents come before their children, so the later of two nodes is no ancestor of the other one: it can climb.
    while len(apart) > 0:
        one, other = tree.parents[np.maximum(one, other)], np.minimum(one, other)
        met = one == other
        meeting[apart[met]] = one[met]
        apart, one, other = apart[~met], one[~met], other[~met]
    return tree.depths[meeting].reshape(shape)[()]


def is_one_name(names: Any) -> bool:
    """Whether it is a name by itself, not several."""
    return isinstance(names, str | bytes) or not hasattr(names, "__iter__") or getattr(names, "shape", None) == ()
