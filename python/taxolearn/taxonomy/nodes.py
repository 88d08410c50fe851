"""Names and parents of nodes: what a name may be, which node has it, and trees from what the user has, in order.

Every builder (``nodes_from_...``) returns names and parents in the order in which nodes were given; the class puts them
into canonical form. A ``Place`` says where the i-th entry came from, so that errors can point at ``paths[3]`` or at a
line of a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from taxolearn.taxonomy.unknown_names import hint_at_known

if TYPE_CHECKING:
    from taxolearn.taxonomy.tree import Taxonomy

__all__ = [
    "Integers",
    "Name",
    "Nodes",
    "Place",
    "add_own_leaves",
    "as_list",
    "canonical_order",
    "check_name",
    "check_names",
    "check_nodes",
    "check_parents",
    "check_root",
    "check_separator",
    "common_depths",
    "cycle_text",
    "depths_of",
    "find_cycle",
    "find_nodes",
    "group_names",
    "is_one_name",
    "leaf_ranges",
    "make_groups",
    "nodes_from_edges",
    "nodes_from_labels",
    "nodes_from_paths",
    "shown",
    "typed_classes",
]

Name: TypeAlias = str | int
Integers: TypeAlias = npt.NDArray[np.int64]
Place: TypeAlias = Callable[[int], str]

_INT64 = np.iinfo(np.int64)
_TYINGS = ("shared", "level", "subtree", "node")


class Nodes(NamedTuple):
    """Names and parents of the nodes of a tree; -1 is the parent of its root."""

    names: list[Name]
    parents: list[int]


# -- Names ------------------------------------------------------------------------------------------------------------


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


def shown(names: Iterable[object], *, most: int = 5) -> str:
    """A few of the names, for errors."""
    listed = list(names)
    more = f", ... ({len(listed)} in all)" if len(listed) > most else ""
    return ", ".join(repr(name) for name in listed[:most]) + more


def find_nodes(numbers_of: Mapping[Name, int], names: Any, argument: str, *, structure: str = "taxonomy") -> Integers:
    """Numbers of the nodes with these names; errors call the names ``argument``, and what has them ``structure``."""
    entries = as_list(names, argument)
    if not {bool, np.bool_}.isdisjoint(map(type, entries)):
        raise ValueError(
            f"{argument}: not in the {structure}: booleans; names are strings or integers, so make them one of these"
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
        hint = hint_at_known(names, numbers_of, structure)
        raise ValueError(f"{argument}: not in the {structure}: {shown(names)}{hint}")
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


# -- Nodes from what the user has -------------------------------------------------------------------------------------


def check_separator(separator: object) -> str:
    """The separator, if it is a string with something in it."""
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator is {separator!r}, expected a string of one or more characters, such as '/'")
    return separator


def nodes_from_paths(paths: Iterable[Any], *, separator: str | None, root: Name, place: Place) -> Nodes:
    """One node for every component, or with a separator for every joined prefix, of the paths."""
    names: list[Name] = [root]
    parents = [-1]
    given = [-1]  # the path that brought the node
    ends: dict[int, int] = {}  # nodes at which a path ends, and the first path that does
    number: dict[Any, int] = {root: 0} if separator is None else {}
    for i, path in enumerate(paths):
        if isinstance(path, str | bytes) or not hasattr(path, "__iter__"):
            raise TypeError(f"{place(i)} is {path!r}, expected a sequence of names; from_labels takes joined paths")
        node = 0
        for component in path:
            part = component if type(component) is str and component else check_name(component, place(i))
            key = part if separator is None else (node, str(part))
            child = number.get(key)
            if child is None:
                name = part if separator is None else _joined(names[node] if node else None, part, separator, place(i))
                if name == root:
                    raise ValueError(f"{place(i)}: {name!r} is the name of the root; pass another root=")
                child = number[key] = len(names)
                names.append(name)
                parents.append(node)
                given.append(i)
            elif parents[child] != node:
                _refuse_second_parent(names, parents, child, node, place(i))
            node = child
        if node == 0:
            raise ValueError(f"{place(i)} is empty, expected at least one name")
        ends.setdefault(node, i)
    if len(names) == 1:
        raise ValueError("there are no paths, expected at least one")
    inner = set(parents)
    own = {node: i for node, i in ends.items() if node in inner}
    if not own:
        return Nodes(names, parents)
    names, parents = add_own_leaves(Nodes(names, parents), list(own), "/" if separator is None else separator)
    order = np.argsort(given + list(own.values()), kind="stable").tolist()
    place_of = {old: new for new, old in enumerate(order)}
    place_of[-1] = -1
    return Nodes([names[old] for old in order], [place_of[parents[old]] for old in order])


def _joined(prefix: Name | None, part: Name, separator: str, place: str) -> str:
    if separator in str(part):
        raise ValueError(f"{place}: the name {part!r} contains the separator {separator!r}; pass another separator=")
    return str(part) if prefix is None else f"{prefix}{separator}{part}"


def _refuse_second_parent(names: list[Name], parents: list[int], child: int, parent: int, place: str) -> None:
    if child == 0:
        raise ValueError(f"{place}: {names[0]!r} is the name of the root; pass another root=")
    raise ValueError(
        f"{place}: {names[child]!r} lies below {names[parents[child]]!r} and below {names[parent]!r}, but names "
        "must be unique; pass separator= to from_paths, so that names become joined prefixes"
    )


def add_own_leaves(nodes: Nodes, owners: Iterable[int], separator: str) -> Nodes:
    """A leaf with the name of each owner below it, at the end of the nodes; the owner gets the name "name/*"."""
    names, parents = list(nodes.names), list(nodes.parents)
    known = set(names)
    for owner in owners:
        label = names[owner]
        renamed = f"{label}{separator}*"
        if renamed in known:
            raise ValueError(
                f"the label {label!r} lies on an inner node, which would be renamed to {renamed!r} to make place for a "
                "leaf of its own, but there is a node of that name; rename that node"
            )
        known.add(renamed)
        names[owner] = renamed
        names.append(label)
        parents.append(owner)
    return Nodes(names, parents)


def nodes_from_labels(labels: Any, *, separator: str, root: Name) -> Nodes:
    """One node for every prefix of the labels."""
    entries = as_list(labels, "labels")
    for label in entries:
        if not isinstance(label, str):
            raise TypeError(
                f"labels: got {label!r} of type {type(label).__name__}, expected strings such as 'A{separator}01'; "
                "other names go through from_paths or from_edges"
            )
    distinct = list(dict.fromkeys(entries))
    paths = []
    for label in distinct:
        parts = label.split(separator)
        if not all(parts):
            raise ValueError(f"labels: {label!r} has an empty part between its separators {separator!r}")
        paths.append(parts)
    if not paths:
        raise ValueError("labels is empty, expected at least one label")
    return nodes_from_paths(paths, separator=separator, root=root, place=lambda i: f"label {distinct[i]!r}")


def nodes_from_edges(edges: Iterable[Any], *, root: Name | None, place: Place) -> Nodes:
    """Nodes in the order in which they first come as a child, after the root."""
    parent_of: dict[Name, Name] = {}
    given: dict[Name, int] = {}
    parents_met: dict[Name, None] = {}
    for i, edge in enumerate(edges):
        if isinstance(edge, str | bytes) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise ValueError(f"{place(i)} is {edge!r}, expected a pair (parent, child)")
        parent, child = (name if type(name) is str and name else check_name(name, place(i)) for name in edge)
        if parent == child:
            raise ValueError(f"{place(i)}: {child!r} is its own parent")
        known = parent_of.setdefault(child, parent)
        if known != parent:
            raise ValueError(
                f"{place(i)}: {child!r} has two parents, {known!r} ({place(given[child])}) and {parent!r}; "
                "a taxonomy is a tree"
            )
        given.setdefault(child, i)
        parents_met[parent] = None
    if not parent_of:
        raise ValueError("there are no edges, expected at least one")
    tops = [name for name in parents_met if name not in parent_of]
    if root is not None and tops != [root]:
        if root in parent_of or root in parents_met:
            raise ValueError(f"root is {root!r}, which is a node already; pass a new name")
        for top in tops:
            parent_of[top] = root
        names: list[Name] = [root, *parent_of]
    else:
        names = [*tops, *parent_of]
    number = {name: i for i, name in enumerate(names)}
    parents = [number[parent_of[name]] if name in parent_of else -1 for name in names]
    cycle = find_cycle(parents)
    if cycle:
        edge_place = place(given[names[cycle[1]]])
        raise ValueError(f"{edge_place}: the nodes {cycle_text(names, cycle)} form a cycle; a taxonomy is a tree")
    if root is None and len(tops) > 1:
        raise ValueError(
            f"{len(tops)} nodes have no parent: {shown(tops)}; "
            "pass root= to from_edges, with the name of a new node to put above them"
        )
    return Nodes(names, parents)


# -- Parents, and their order -----------------------------------------------------------------------------------------


def check_parents(parents: npt.ArrayLike) -> Integers:
    """Parents as 64-bit integers, with -1 for every root."""
    array = np.asarray(parents)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"parents has shape {array.shape} and type {array.dtype}, expected one dimension of integers")
    if len(array) < 2:
        raise ValueError(f"parents has {len(array)} nodes, expected at least a root and one class below it")
    wrong = np.flatnonzero((array < -1) | (array >= len(array)))
    if len(wrong) > 0:
        raise ValueError(
            f"parents[{wrong[0]}] is {array[wrong[0]]}, expected a node from 0 to {len(array) - 1}, or -1 for the root"
        )
    checked = array.astype(np.int64)
    checked[checked == np.arange(len(checked))] = -1
    return checked


def check_names(names: Sequence[Name] | None, n_nodes: int) -> list[Name]:
    """As many distinct names as there are nodes."""
    if names is None:
        return list(range(n_nodes))
    given = as_list(names, "names")
    if len(given) != n_nodes:
        raise ValueError(f"names has {len(given)} entries, parents has {n_nodes}")
    checked = [name if type(name) is str and name else check_name(name, f"names[{i}]") for i, name in enumerate(given)]
    if len(set(checked)) < n_nodes:
        first: dict[Name, int] = {}
        for i, name in enumerate(checked):
            if first.setdefault(name, i) != i:
                raise ValueError(f"names[{first[name]}] and names[{i}] are both {name!r}; names must be unique")
    return checked


def check_root(parents: Integers, names: list[Name]) -> None:
    """Refuse parents with several roots, or none."""
    tops = np.flatnonzero(parents == -1)
    if len(tops) > 1:
        raise ValueError(f"{len(tops)} nodes have no parent: {shown(names[i] for i in tops)}; a tree has one root")
    if len(tops) == 0:
        raise ValueError(f"parents: the nodes {cycle_text(names, find_cycle(parents.tolist()))} form a cycle")


def find_cycle(parents: Sequence[int]) -> list[int]:
    """Nodes of one cycle from parent to child, the first one again at the end; empty if there is none."""
    seen_from = [-1] * len(parents)
    for start in range(len(parents)):
        node = start
        while node >= 0 and seen_from[node] < 0:
            seen_from[node] = start
            node = parents[node]
        if node >= 0 and seen_from[node] == start:
            upwards = [node]
            while parents[upwards[-1]] != node:
                upwards.append(parents[upwards[-1]])
            first = upwards.index(min(upwards)) + 1  # so that the first node given comes second, as the child it was
            upwards = upwards[first:] + upwards[:first]
            return [upwards[0], *upwards[::-1]]
    return []


def cycle_text(names: Sequence[Name], cycle: Sequence[int]) -> str:
    """A cycle as "a -> b -> a", long ones with their middle left out."""
    texts = [str(names[node]) for node in cycle]
    if len(texts) > 12:
        texts = [*texts[:6], "...", *texts[-5:]]
    return " -> ".join(texts)


def canonical_order(parents: Integers, names: Sequence[Name]) -> tuple[Integers, int]:
    """Numbers of the given nodes in canonical order, and how many of them are inner nodes.

    One depth-first walk, where every node's leaf children come before its inner children and siblings otherwise keep
    their order: first the inner nodes as it meets them, then the leaves as it meets them.
    """
    n_children = np.bincount(parents[parents >= 0], minlength=len(parents))
    is_inner = n_children > 0
    n_inner_children = np.bincount(parents[is_inner & (parents >= 0)], minlength=len(parents))
    children = np.lexsort((is_inner, parents)).tolist()  # stable; the root comes first
    ends = 1 + np.cumsum(n_children)
    begin, middle, end = (bound.tolist() for bound in (ends - n_children, ends - n_inner_children, ends))
    inner: list[int] = []
    leaves: list[int] = []
    stack = [children[0]]
    while stack:
        node = stack.pop()
        inner.append(node)
        leaves += children[begin[node] : middle[node]]
        stack += reversed(children[middle[node] : end[node]])
    if len(inner) + len(leaves) < len(parents):
        raise ValueError(f"parents: the nodes {cycle_text(names, find_cycle(parents.tolist()))} form a cycle")
    return np.array(inner + leaves, dtype=np.int64), len(inner)


def typed_classes(names: list[Name]) -> npt.NDArray[Any]:
    """Names of the leaves as an array of strings or of integers."""
    strings = sum(isinstance(name, str) for name in names)
    if 0 < strings < len(names):
        string = next(name for name in names if isinstance(name, str))
        integer = next(name for name in names if isinstance(name, int))
        raise ValueError(
            f"the classes are strings and integers, such as {string!r} and {integer!r}; "
            "give all of them as strings, or all as integers"
        )
    classes = np.array(names, dtype=str if strings else np.int64)
    if classes.tolist() != names:
        culprit = next(name for name, kept in zip(names, classes.tolist(), strict=True) if name != kept)
        raise ValueError(f"the class {culprit!r} ends in a null character, which arrays do not keep; rename it")
    return classes


def depths_of(parents: Integers, n_inner: int) -> Integers:
    """Of a tree in canonical order."""
    depths = [0]
    for parent in parents[1:n_inner].tolist():
        depths.append(depths[parent] + 1)
    inner = np.array(depths, dtype=np.int64)
    return np.concatenate([inner, inner[parents[n_inner:]] + 1])


def leaf_ranges(parents: Integers, n_inner: int) -> tuple[Integers, Integers]:
    """Of a tree in canonical order: the leaves below an inner node begin with its own, and end with its subtree's."""
    own = np.bincount(parents[n_inner:], minlength=n_inner)
    below = own.tolist()
    for node, parent in zip(range(n_inner - 1, 0, -1), parents[n_inner - 1 : 0 : -1].tolist(), strict=True):
        below[parent] += below[node]
    begin = np.cumsum(own) - own
    leaves = np.arange(len(parents) - n_inner)
    return np.concatenate([begin, leaves]), np.concatenate([begin + below, leaves + 1])


# -- Groups, and nodes that lie above ---------------------------------------------------------------------------------


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
