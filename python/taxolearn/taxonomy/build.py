"""From what the user has (paths, labels, edges, columns, parents) to a parent array with names, in canonical order.

Every builder returns names and parents in the order in which nodes were given; the class puts them into canonical form.
A ``Place`` says where the i-th entry came from, so that errors can point at ``paths[3]`` or at a line of a file.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from taxolearn.taxonomy.change import add_own_leaves
from taxolearn.taxonomy.lookup import Integers, Name, Nodes, as_list, check_name, shown

Place: TypeAlias = Callable[[int], str]


def check_separator(separator: object) -> str:
    """The separator, if it is a string with something in it."""
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator is {separator!r}, expected a string of one or more characters, such as '/'")
    return separator


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


def nodes_from_columns(table: Any, *, separator: str | None, root: Name) -> Nodes:
    """The rows of a table as paths, each one ending where its missing values begin."""
    if hasattr(table, "get_columns"):  # polars
        rows: list[Any] = list(zip(*(column.to_list() for column in table.get_columns()), strict=True))
    elif hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2:  # pandas
        rows = list(zip(*(table.iloc[:, j].tolist() for j in range(table.shape[1])), strict=True))
    else:
        array = table if isinstance(table, np.ndarray) else np.array(table, dtype=object)
        if array.ndim != 2:
            raise ValueError(
                f"table has {array.ndim} dimension{'s' * (array.ndim != 1)}, expected a data frame or a 2-d array "
                "with one column per level"
            )
        rows = list(map(tuple, array.tolist()))
    first_row: dict[tuple[Any, ...], int] = {}
    for i, row in enumerate(rows):
        first_row.setdefault(_path_of_row(row, i), i)
    if not first_row:
        raise ValueError("table has no rows, expected at least one")
    places = list(first_row.values())
    return nodes_from_paths(first_row, separator=separator, root=root, place=lambda i: f"table row {places[i]}")


def _path_of_row(row: Sequence[Any], i: int) -> tuple[Any, ...]:
    missing = [_is_missing(value) for value in row]
    length = missing.index(True) if any(missing) else len(row)
    if length == 0:
        raise ValueError(f"table row {i} begins with a missing value: {row!r}")
    if not all(missing[length:]):
        raise ValueError(f"table row {i} has a missing value before its end: {row!r}")
    # Integers come as floats from columns in which some values are missing.
    return tuple(int(value) if isinstance(value, float) and value.is_integer() else value for value in row[:length])


def _is_missing(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return not value
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


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
