"""Directed acyclic and undirected graphs of classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from taxolearn.taxonomy.drawing import plot_tree
from taxolearn.taxonomy.graph_drawing import drawn_tree, more_edges, notes_on_edges
from taxolearn.taxonomy.networkx import graph_from_networkx, to_digraph
from taxolearn.taxonomy.nodes import (
    Integers,
    Name,
    as_list,
    check_name,
    cycle_text,
    find_cycle,
    find_nodes,
    is_one_name,
    nodes_from_edges,
    shown,
)
from taxolearn.taxonomy.obo import read_obo
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["ClassGraph"]


class ClassGraph:
    """An immutable graph whose nodes are classes, or stand between them. Names in, names out.

    A directed graph has edges from parents to children and no cycles, like the Gene Ontology; an undirected one joins
    classes that are related. Most users call one of ``from_edges``, ``from_networkx``, ``from_obo`` and
    ``from_taxonomy``. ``taxolearn.Graph`` makes it the prior of a model.

    Parameters
    ----------
    names : sequence of str or int
        Unique names of the nodes.
    edges : array-like of int, shape (n_edges, 2)
        Numbers of the nodes at both ends of each edge, the parent first. Of equal edges one is kept; in undirected
        graphs those in both directions are equal, and an edge from a node to itself, which says nothing, is left out.
    directed : bool, default=True
        Whether edges lead from parents to children; a cycle is then an error.

    Attributes
    ----------
    names : ndarray of object, shape (n_nodes,)
        Names of the nodes, each a str or an int, in the given order.
    edges : ndarray of int64, shape (n_edges, 2)
        Numbers of the nodes at both ends, sorted; of undirected graphs with the smaller one first.
    directed : bool
        As given.
    n_nodes, n_edges : int
        How many there are.

    Examples
    --------
    >>> from taxolearn import ClassGraph
    >>> graph = ClassGraph.from_edges([("top", "a"), ("top", "b"), ("a", "c"), ("b", "c")])
    >>> graph
    ClassGraph(4 nodes, 4 edges, directed)
    >>> graph.parents("c")
    ['a', 'b']
    >>> print(graph)
    top
    ├── b
    └── a
        └── c  also below b
    """

    names: npt.NDArray[np.object_]
    edges: Integers
    directed: bool
    _numbers: dict[Name, int]
    _closure: sp.csr_array | None

    def __init__(self, names: Sequence[Name], edges: npt.ArrayLike, *, directed: bool = True) -> None:
        given = _check_names(names)
        if not isinstance(directed, bool | np.bool_):
            raise TypeError(f"directed is {directed!r}, expected True or False")
        pairs = _check_edges(edges, len(given))
        loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
        if directed and len(loops) > 0:
            raise ValueError(f"edges[{loops[0]}]: {given[pairs[loops[0], 0]]!r} is its own parent; {_UNDIRECTED}")
        pairs = np.delete(pairs, loops, axis=0)
        pairs = np.unique(pairs if directed else np.sort(pairs, axis=1), axis=0)
        node_names = np.empty(len(given), dtype=object)
        node_names[:] = given
        numbers = {name: k for k, name in enumerate(given)}
        vars(self).update(names=node_names, edges=pairs, directed=bool(directed), _numbers=numbers, _closure=None)
        for array in (self.names, self.edges):
            array.flags.writeable = False
        if directed:
            self._refuse_cycles()

    # -- Making one ---------------------------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls, edges: Iterable[Sequence[Name]], *, names: Iterable[Name] | None = None, directed: bool = True
    ) -> ClassGraph:
        """From pairs of names, (parent, child) where the graph is directed, or a table with these two columns.

        Nodes are in the order in which they first come, after ``names``, which may hold nodes without an edge.
        """
        pairs: Any = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
        pairs = pairs.tolist() if isinstance(pairs, np.ndarray) else pairs
        known = [] if names is None else _check_names(names)
        numbers = {name: k for k, name in enumerate(known)}
        found: list[tuple[int, int]] = []
        for i, pair in enumerate(pairs):
            if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
                raise ValueError(f"edges[{i}] is {pair!r}, expected a pair of names")
            first, second = (numbers.setdefault(check_name(name, f"edges[{i}]"), len(numbers)) for name in pair)
            found.append((first, second))
        return cls(list(numbers), np.array(found, dtype=np.int64).reshape(-1, 2), directed=directed)

    @classmethod
    def from_networkx(cls, graph: Any) -> ClassGraph:
        """From a graph of networkx: a directed one has edges from parent to child."""
        names, edges, directed = graph_from_networkx(graph)
        return cls.from_edges(edges, names=names, directed=directed)

    @classmethod
    def from_obo(
        cls, path: str | PathLike[str], *, relations: Sequence[str] = ("is_a", "part_of"), encoding: str = "utf-8"
    ) -> ClassGraph:
        """From the terms of an ontology in a file of the OBO format, which may be compressed by gzip.

        Nodes are the identifiers of the terms that are not obsolete. Edges lead to a term from what it is
        (``is_a``) and from what it has one of the given relationships to.
        """
        names, edges = read_obo(path, relations, encoding)
        return cls.from_edges(edges, names=names)

    @classmethod
    def from_taxonomy(cls, taxonomy: Taxonomy) -> ClassGraph:
        """The nodes and edges of a tree, directed."""
        if not isinstance(taxonomy, Taxonomy):
            raise TypeError(f"taxonomy must be a taxolearn.Taxonomy, got {type(taxonomy).__name__}")
        children = np.arange(1, taxonomy.n_nodes)
        return cls(taxonomy.names.tolist(), np.stack([taxonomy.parents[1:], children], axis=1))

    # -- Lookups ------------------------------------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        return len(self.names)

    @property
    def n_edges(self) -> int:
        return len(self.edges)

    @property
    def roots(self) -> list[Name]:
        """Names of the nodes without a parent."""
        self._need_directions("roots")
        return list(self.names[np.bincount(self.edges[:, 1], minlength=self.n_nodes) == 0])

    @property
    def leaves(self) -> list[Name]:
        """Names of the nodes without a child."""
        self._need_directions("leaves")
        return list(self.names[np.bincount(self.edges[:, 0], minlength=self.n_nodes) == 0])

    @property
    def is_tree(self) -> bool:
        """Whether all nodes are connected and there is one way between any two; ``to_taxonomy`` needs directions."""
        if self.n_edges != self.n_nodes - 1 or self.components().max() > 0:
            return False
        return not self.directed or int(np.bincount(self.edges[:, 1], minlength=self.n_nodes).max()) <= 1

    def index(self, names: Any, *, argument: str = "names") -> Any:
        """Numbers of the nodes with these names: an int for one name, an int64 array for several.

        ``argument`` is how errors call the names.
        """
        numbers = find_nodes(self._numbers, names, argument, structure="graph")
        return int(numbers[0]) if is_one_name(names) else numbers

    def parents(self, name: Name) -> list[Name]:
        """Names of the nodes right above."""
        self._need_directions("parents")
        return list(self.names[self.edges[self.edges[:, 1] == self._node(name), 0]])

    def children(self, name: Name) -> list[Name]:
        """Names of the nodes right below."""
        self._need_directions("children")
        return list(self.names[self.edges[self.edges[:, 0] == self._node(name), 1]])

    def neighbors(self, name: Name) -> list[Name]:
        """Names of the nodes at the other ends of a node's edges, whatever their direction."""
        node = self._node(name)
        ends = np.concatenate([self.edges[self.edges[:, 0] == node, 1], self.edges[self.edges[:, 1] == node, 0]])
        return list(self.names[np.sort(ends)])

    def ancestors(self, name: Name) -> list[Name]:
        """Names of all nodes above."""
        node = self._node(name)
        above = self._ancestors()
        found = above.indices[above.indptr[node] : above.indptr[node + 1]]
        return list(self.names[np.sort(found[found != node])])

    def descendants(self, name: Name) -> list[Name]:
        """Names of all nodes below."""
        node = self._node(name)
        above = self._ancestors()
        rows = np.repeat(np.arange(self.n_nodes), np.diff(above.indptr))[above.indices == node]
        return list(self.names[rows[rows != node]])

    def adjacency(self) -> sp.csr_array:
        """A sparse matrix with a one for every pair of neighbours, whatever the direction."""
        first, second = self.edges.T
        ends = (np.concatenate([first, second]), np.concatenate([second, first]))
        ones = np.ones(2 * self.n_edges, dtype=np.int8)
        return sp.csr_array(sp.coo_array((ones, ends), shape=(self.n_nodes, self.n_nodes)))

    def components(self) -> Integers:
        """The connected component of every node, numbered from 0 on in the order of their first nodes."""
        _, labels = connected_components(self.adjacency(), directed=False)
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        out: Integers = np.argsort(np.argsort(first))[inverse].astype(np.int64)
        return out

    def coloring(self) -> Integers:
        """A colour for every node, from 0 on, so that no two neighbours have the same.

        Nodes with many neighbours choose first, each the lowest colour that is free. So there are at most as many
        colours as the largest number of neighbours plus one; nodes of one colour can be worked on in parallel.
        """
        near = self.adjacency()
        colors = np.full(self.n_nodes, -1, dtype=np.int64)
        for node in np.argsort(-np.diff(near.indptr), kind="stable").tolist():
            taken = set(colors[near.indices[near.indptr[node] : near.indptr[node + 1]]].tolist())
            colors[node] = next(color for color in range(len(taken) + 1) if color not in taken)
        return colors

    def closed_upwards(self, labels: Any) -> sp.csr_array:
        """Label sets with all ancestors of their labels added.

        Parameters
        ----------
        labels : sparse matrix or array of shape (n_samples, n_nodes)
            Nonzero where a row has the label; columns are in the order of ``names``.

        Returns
        -------
        closed : csr_array of bool, shape (n_samples, n_nodes)
        """
        matrix = sp.csr_array(labels)
        if matrix.shape[1] != self.n_nodes:
            raise ValueError(
                f"labels has {matrix.shape[1]} columns, expected {self.n_nodes}, one per node in the order of names"
            )
        closed = sp.csr_array((matrix != 0).astype(np.int32) @ self._ancestors())
        closed.sort_indices()
        return sp.csr_array((np.ones(closed.nnz, dtype=np.bool_), closed.indices, closed.indptr), shape=closed.shape)

    # -- Other graphs and forms ---------------------------------------------------------------------------------------

    def subgraph(self, names: Iterable[Name]) -> ClassGraph:
        """Some of the nodes, in the given order, and the edges between them."""
        kept = np.atleast_1d(self.index(names if is_one_name(names) else list(names)))
        if len(np.unique(kept)) < len(kept):
            raise ValueError("names has a node twice")
        place = np.full(self.n_nodes, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        edges = place[self.edges]
        return ClassGraph(self.names[kept].tolist(), edges[(edges >= 0).all(axis=1)], directed=self.directed)

    def separated(self, names: Iterable[Name]) -> ClassGraph:
        """An undirected graph in which no two of these nodes are neighbours: each edge between two gets a new node.

        So classes lean on nodes without data instead of each other (Gopal, Yang 2015, 5.1). New nodes come last and are
        called "a | b" by the names of both ends.
        """
        is_named = np.zeros(self.n_nodes, dtype=bool)
        is_named[np.atleast_1d(self.index(names if is_one_name(names) else list(names)))] = True
        between = is_named[self.edges].all(axis=1)
        ends = self.edges[between]
        new = self.n_nodes + np.arange(len(ends))
        edges = np.concatenate([self.edges[~between], np.c_[ends[:, 0], new], np.c_[ends[:, 1], new]])
        middles = [f"{first} | {second}" for first, second in self.names[ends].tolist()]
        return ClassGraph([*self.names.tolist(), *middles], edges, directed=False)

    def to_taxonomy(self) -> Taxonomy:
        """The same as a tree; an error says what makes it none."""
        self._need_directions("to_taxonomy")
        nodes = nodes_from_edges(self.to_edges(), root=None, place=lambda i: f"edges[{i}]")
        if len(nodes.names) < self.n_nodes:
            alone = [name for name in self.names.tolist() if name not in set(nodes.names)]
            raise ValueError(f"nodes without edges: {shown(alone)}; a taxonomy is one tree")
        return Taxonomy(nodes.parents, nodes.names)

    def to_edges(self) -> list[tuple[Name, Name]]:
        """Names at both ends of every edge, the parent first."""
        return [(first, second) for first, second in self.names[self.edges].tolist()]

    def to_networkx(self) -> Any:
        """A ``networkx.DiGraph`` with edges from parent to child, or a ``networkx.Graph``. Needs that package."""
        return to_digraph(self.names.tolist(), self.to_edges(), directed=self.directed)

    def to_text(self, max_lines: int = 60, *, ascii_only: bool = False) -> str:
        """The graph as text: each node once, below one of its parents or neighbours, with its other edges as notes.

        Parameters
        ----------
        max_lines : int, default=60
            Long texts are abbreviated to at most this many lines.
        ascii_only : bool, default=False
            Whether to draw with ASCII characters only.
        """
        tree = drawn_tree(self)
        if tree is None:
            return "\n".join(map(str, self.names.tolist()))
        return tree.to_text(max_lines, notes=notes_on_edges(self, tree), ascii_only=ascii_only)

    def plot(self, ax: Any = None, *, max_leaves: int = 300) -> Any:
        """A drawing of the graph as a tree from left to right, with its other edges as thin lines. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw, by default on a new figure of fitting size.
        max_leaves : int, default=300
            A larger graph is cut at the depth where it fits.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        tree = drawn_tree(self)
        if tree is None:
            raise ValueError("the graph has one node only, there is nothing to draw")
        return plot_tree(tree, ax, max_leaves=max_leaves, more_edges=more_edges(self, tree))

    # -- Inside -------------------------------------------------------------------------------------------------------

    def _node(self, name: Any) -> int:
        if not is_one_name(name):
            raise TypeError(f"name is {name!r}, expected the name of one node")
        return int(self.index(name, argument="name"))

    def _need_directions(self, what: str) -> None:
        if not self.directed:
            raise ValueError(f"{what}: the graph is undirected, so nothing is above or below; neighbors has both")

    def _ancestors(self) -> sp.csr_array:
        """Row by row the node itself and all that is above it: paths of length 1, 2, 4 and so on."""
        if self._closure is None:
            self._need_directions("ancestors and descendants")
            shape = (self.n_nodes, self.n_nodes)
            ones = np.ones(self.n_edges, dtype=np.int32)
            step = sp.csr_array(sp.coo_array((ones, (self.edges[:, 1], self.edges[:, 0])), shape=shape))
            closure = sp.csr_array(step + sp.identity(self.n_nodes, dtype=np.int32, format="csr"))
            while True:
                longer = sp.csr_array(closure @ closure)
                longer.data[:] = 1
                if longer.nnz == closure.nnz:
                    break
                closure = longer
            vars(self)["_closure"] = closure
        assert self._closure is not None
        return self._closure

    def _refuse_cycles(self) -> None:
        """Take away nodes without a parent until none is left; what stays has a cycle above it."""
        waiting = np.bincount(self.edges[:, 1], minlength=self.n_nodes)
        order = np.argsort(self.edges[:, 0], kind="stable")
        below = self.edges[order, 1].tolist()
        begin = np.searchsorted(self.edges[order, 0], np.arange(self.n_nodes + 1)).tolist()
        free = np.flatnonzero(waiting == 0).tolist()
        counts = waiting.tolist()
        while free:
            node = free.pop()
            for child in below[begin[node] : begin[node + 1]]:
                counts[child] -= 1
                if counts[child] == 0:
                    free.append(child)
        left = [node for node, count in enumerate(counts) if count > 0]
        if not left:
            return
        above = np.full(self.n_nodes, -1, dtype=np.int64)
        within = self.edges[np.isin(self.edges[:, 0], left)]
        above[within[:, 1]] = within[:, 0]
        cycle = find_cycle(above.tolist())
        raise ValueError(f"the nodes {cycle_text(self.names.tolist(), cycle)} form a cycle; {_UNDIRECTED}")

    # -- Python's own protocols ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.n_nodes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClassGraph):
            return NotImplemented
        if self.directed != other.directed or not np.array_equal(self.edges, other.edges):
            return False
        return self is other or self.names.tolist() == other.names.tolist()

    def __hash__(self) -> int:
        return hash((self.edges.tobytes(), tuple(self.names), self.directed))

    def __repr__(self) -> str:
        nodes = f"{self.n_nodes} node{'s' * (self.n_nodes != 1)}"
        edges = f"{self.n_edges} edge{'s' * (self.n_edges != 1)}"
        return f"ClassGraph({nodes}, {edges}, {'directed' if self.directed else 'undirected'})"

    def __str__(self) -> str:
        return self.to_text()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a ClassGraph cannot be changed, so {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a ClassGraph cannot be changed, so {name!r} cannot be deleted")

    def __copy__(self) -> ClassGraph:
        return self

    def __deepcopy__(self, memo: object) -> ClassGraph:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names.tolist(), "edges": self.edges, "directed": self.directed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ClassGraph.__init__(self, **state)


_UNDIRECTED = "a directed graph of classes has no cycles, directed=False allows them"


def _check_names(names: Iterable[Name]) -> list[Name]:
    given = as_list(names, "names")
    checked = [check_name(name, f"names[{i}]") for i, name in enumerate(given)]
    if not checked:
        raise ValueError("names is empty, expected at least one node")
    first: dict[Name, int] = {}
    for i, name in enumerate(checked):
        if first.setdefault(name, i) != i:
            raise ValueError(f"names[{first[name]}] and names[{i}] are both {name!r}; names must be unique")
    return checked


def _check_edges(edges: npt.ArrayLike, n_nodes: int) -> Integers:
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            f"edges has shape {array.shape} and type {array.dtype}, expected pairs of node numbers; from_edges takes "
            "pairs of names"
        )
    wrong = np.argwhere((array < 0) | (array >= n_nodes))
    if len(wrong) > 0:
        row, column = wrong[0].tolist()
        raise ValueError(f"edges[{row}] has the node {array[row, column]}, expected 0 to {n_nodes - 1}")
    return array.astype(np.int64)
