"""Nodes by name: what a name may be, which node has it, what errors say of unknown ones, and groups of nodes."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from taxolearn.taxonomy.tree import Taxonomy

__all__ = [
    "Integers",
    "Name",
    "Nodes",
    "as_list",
    "check_name",
    "check_nodes",
    "common_depths",
    "find_nodes",
    "group_names",
    "is_one_name",
    "make_groups",
    "shown",
]

Name: TypeAlias = str | int
Integers: TypeAlias = npt.NDArray[np.int64]

_INT64 = np.iinfo(np.int64)
# Beyond this many names the search for the closest one looks at those of similar length only.
_MOST_COMPARED = 5000
_TYINGS = ("shared", "level", "subtree", "node")


class Nodes(NamedTuple):
    """Names and parents of the nodes of a tree; -1 is the parent of its root."""

    names: list[Name]
    parents: list[int]


def check_name(name: object, place: str) -> Name:
    """The name as a Python str or int."""
    if isinstance(name, str):
        if not name:
            raise ValueError(f"{place}: a name is empty")
        return str(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        if not _INT64.min <= name <= _INT64.max:
            raise ValueError(f"{place}: the integer name {name} does not fit into 64 bits; give it as a string")
        return int(name)
    raise TypeError(f"{place}: names are strings or integers, got {name!r} of type {type(name).__name__}")


def as_list(values: Any, argument: str) -> list[Any]:
    """Entries of a list, an array, or the column of a data frame; one string or number counts as one entry."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        return [values]
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) > 1:
        raise ValueError(f"{argument} has shape {tuple(shape)}, expected one dimension")
    if shape == ():
        return [values.item()]
    return list(values.tolist()) if hasattr(values, "tolist") else list(values)


def is_one_name(names: Any) -> bool:
    """Whether it is a name by itself, not several."""
    return isinstance(names, str | bytes) or not hasattr(names, "__iter__") or getattr(names, "shape", None) == ()


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
        raise ValueError(f"{argument}: not in the taxonomy: {shown(names)}{_hint_at_known(names, numbers_of)}")
    return numbers


def shown(names: Iterable[object], *, most: int = 5) -> str:
    """A few of the names, for errors."""
    listed = list(names)
    more = f", ... ({len(listed)} in all)" if len(listed) > most else ""
    return ", ".join(repr(name) for name in listed[:most]) + more


def _hint_at_known(unknown: Sequence[object], known: Collection[Name]) -> str:
    """The end of an error about unknown names: that they are of another kind, or a known name that is close to one."""
    below = list(known)[1:]  # the root may have a name of its own kind
    if all(isinstance(name, str) for name in below) and all(isinstance(name, int | np.integer) for name in unknown):
        example = next((str(name) for name in unknown if str(name) in known), below[-1])
        return (
            f"; the taxonomy's names are strings such as {example!r}, these are integers (where scikit-learn numbers "
            "labels, Taxonomy.encode helps)"
        )
    if all(isinstance(name, int) for name in below) and all(isinstance(name, str) for name in unknown):
        texts = set(unknown)
        example = next((name for name in below if str(name) in texts), below[-1])
        return f"; the taxonomy's names are integers such as {example!r}, these are strings"
    for name in unknown[:5]:
        closest = _closest(name, known)
        if closest is not None:
            hint = f"; is {closest!r} meant" + (f" by {name!r}?" if len(unknown) > 1 else "?")
            if str(closest) == str(name):
                hint += f" (the taxonomy has it as {'a string' if isinstance(closest, str) else 'an integer'})"
            return hint
    return ""


def _closest(name: object, known: Collection[Name]) -> Name | None:
    text = str(name)
    if text in known:
        return text
    if not isinstance(name, str):
        return None
    same = next((other for other in known if not isinstance(other, str) and str(other) == text), None)
    if same is not None:
        return same
    strings = sorted(
        (other for other in known if isinstance(other, str)), key=lambda other: abs(len(other) - len(text))
    )
    matches = difflib.get_close_matches(text, strings[:_MOST_COMPARED], n=1, cutoff=0.4)
    return matches[0] if matches else None


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


def group_names(names: Sequence[Name]) -> list[str]:
    """The names as strings, those that would look alike, such as 1 and "1", as Python writes them."""
    texts = [str(name) for name in names]
    counts = Counter(texts)
    different = [text if counts[text] == 1 else repr(name) for name, text in zip(names, texts, strict=True)]
    return different if len(set(different)) == len(names) else [repr(name) for name in names]
