"""The tree of classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from taxolearn.taxonomy.change import encoded_nodes, part_above, without_chains
from taxolearn.taxonomy.clusters import nodes_from_clusters
from taxolearn.taxonomy.columns import nodes_from_columns
from taxolearn.taxonomy.drawing import plot_tree, text_of
from taxolearn.taxonomy.files import read_nodes
from taxolearn.taxonomy.networkx import nodes_from_networkx, to_digraph
from taxolearn.taxonomy.nodes import (
    Integers,
    Name,
    Nodes,
    add_own_leaves,
    canonical_order,
    check_name,
    check_names,
    check_parents,
    check_root,
    check_separator,
    common_depths,
    depths_of,
    find_nodes,
    is_one_name,
    leaf_ranges,
    make_groups,
    nodes_from_edges,
    nodes_from_labels,
    nodes_from_paths,
    shown,
    typed_classes,
)

__all__ = ["Taxonomy"]


class Taxonomy:
    """An immutable rooted tree whose leaves are the classes. Names in, names out.

    Most users call one of ``from_labels``, ``from_paths``, ``from_columns``, ``from_edges``, ``from_parents``,
    ``from_networkx``, ``from_file`` and ``from_clusters``.

    Nodes are numbered in canonical order. One depth-first walk visits, at every inner node, its leaf children before
    its inner children; otherwise siblings keep the order in which they were given. The inner nodes come first, as the
    walk meets them, then the leaves, as the walk meets them. So node 0 is the root, parents come before their
    children, all leaves below a node are consecutive, and class k is node ``n_inner + k``.

    Parameters
    ----------
    parents : array-like of int
        Number of each node's parent; -1, or the node's own number, for the root.
    names : sequence of str or int, optional
        Unique names of the nodes, by default 0, 1, 2 and so on.
    separator : str, default="/"
        What stands before the star where an inner node is renamed (see ``with_classes``).

    Attributes
    ----------
    n_nodes, n_inner, n_classes : int
        Number of all nodes, of inner nodes with the root, and of leaves.
    names : ndarray of object, shape (n_nodes,)
        Names of the nodes, each a str or an int.
    classes : ndarray of str or int64, shape (n_classes,)
        Names of the leaves.
    parents : ndarray of int64, shape (n_nodes,)
        Number of each node's parent, -1 for the root.
    depths : ndarray of int64, shape (n_nodes,)
        Number of edges up to the root.
    leaf_begin, leaf_end : ndarray of int64, shape (n_nodes,)
        The classes at or below node p are ``classes[leaf_begin[p]:leaf_end[p]]``.
    height : int
        Largest depth.
    separator : str
        As given.

    Examples
    --------
    >>> from taxolearn import Taxonomy
    >>> taxonomy = Taxonomy.from_labels(["animal/cat", "animal/dog", "plant"])
    >>> taxonomy
    Taxonomy(3 classes, 2 inner nodes, height 2)
    >>> print(taxonomy)
    root
    ├── plant
    └── animal
        ├── animal/cat
        └── animal/dog
    """

    n_nodes: int
    n_inner: int
    n_classes: int
    names: npt.NDArray[np.object_]
    classes: npt.NDArray[Any]
    parents: Integers
    depths: Integers
    leaf_begin: Integers
    leaf_end: Integers
    height: int
    separator: str
    _numbers: dict[Name, int]

    def __init__(self, parents: npt.ArrayLike, names: Sequence[Name] | None = None, *, separator: str = "/") -> None:
        given_parents = check_parents(parents)
        n_nodes = len(given_parents)
        given_names = check_names(names, n_nodes)
        check_root(given_parents, given_names)
        order, n_inner = canonical_order(given_parents, given_names)

        number = np.empty(n_nodes, dtype=np.int64)
        number[order] = np.arange(n_nodes)
        canonical_parents = number[given_parents[order]]
        canonical_parents[0] = -1
        node_names = np.empty(n_nodes, dtype=object)
        node_names[:] = [given_names[node] for node in order.tolist()]
        leaf_begin, leaf_end = leaf_ranges(canonical_parents, n_inner)
        depths = depths_of(canonical_parents, n_inner)
        vars(self).update(
            n_nodes=n_nodes,
            n_inner=n_inner,
            n_classes=n_nodes - n_inner,
            names=node_names,
            classes=typed_classes(node_names[n_inner:].tolist()),
            parents=canonical_parents,
            depths=depths,
            leaf_begin=leaf_begin,
            leaf_end=leaf_end,
            height=int(depths.max()),
            separator=check_separator(separator),
            _numbers={name: p for p, name in enumerate(node_names.tolist())},
        )
        for array in (self.names, self.classes, self.parents, self.depths, self.leaf_begin, self.leaf_end):
            array.flags.writeable = False

    # -- Making one ---------------------------------------------------------------------------------------------------

    @classmethod
    def from_parents(
        cls, parents: npt.ArrayLike, names: Sequence[Name] | None = None, *, separator: str = "/"
    ) -> Taxonomy:
        """From the number of each node's parent, -1 or the node's own number for the root.

        Names are those of the nodes in the same order, by default 0, 1, 2 and so on.
        """
        return cls(parents, names, separator=separator)

    @classmethod
    def from_paths(
        cls, paths: Iterable[Sequence[Name]], *, separator: str | None = None, root: Name = "root"
    ) -> Taxonomy:
        """From paths, each a sequence of names from below the root to a class.

        Without a separator the components are the names of the nodes, and must be unique in the tree. With one, the
        names are the joined prefixes, such as "A" and "A/01". A path that is the beginning of another one ends in a
        leaf of its own (see ``with_classes``).
        """
        if separator is not None:
            check_separator(separator)
        if isinstance(paths, str | bytes):
            raise TypeError(f"paths is {paths!r}, expected a sequence of sequences of names")
        root = check_name(root, "root")
        nodes = nodes_from_paths(paths, separator=separator, root=root, place=lambda i: f"paths[{i}]")
        return cls._of(nodes, "/" if separator is None else separator)

    @classmethod
    def from_labels(cls, labels: Any, *, separator: str = "/", root: Name = "root") -> Taxonomy:
        """From labels that are joined paths, such as "A/01/B"; repeated ones are fine, so ``y`` itself will do.

        The classes are the labels, the inner nodes their prefixes. A label that is the prefix of another one gets a
        leaf of its own (see ``with_classes``).
        """
        nodes = nodes_from_labels(labels, separator=check_separator(separator), root=check_name(root, "root"))
        return cls._of(nodes, separator)

    @classmethod
    def from_columns(cls, table: Any, *, separator: str | None = None, root: Name = "root") -> Taxonomy:
        """From a data frame or 2-d array with one column per level, the highest level first.

        Missing values (None, NaN, "") at the end of a row make a shorter path. Names are formed as by ``from_paths``.
        """
        if separator is not None:
            check_separator(separator)
        nodes = nodes_from_columns(table, separator=separator, root=check_name(root, "root"))
        return cls._of(nodes, "/" if separator is None else separator)

    @classmethod
    def from_edges(cls, edges: Iterable[Sequence[Name]], *, root: Name | None = None) -> Taxonomy:
        """From (parent, child) pairs, or a table with these two columns. The root is the one node without a parent.

        If ``root`` is given, a new node of that name is put above all nodes without a parent. (Nothing is done if it
        names the only one of these.)
        """
        root = None if root is None else check_name(root, "root")
        pairs: Any = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
        pairs = pairs.tolist() if isinstance(pairs, np.ndarray) else pairs
        return cls._of(nodes_from_edges(pairs, root=root, place=lambda i: f"edges[{i}]"))

    @classmethod
    def from_networkx(cls, graph: Any) -> Taxonomy:
        """From a directed graph of networkx whose edges go from parent to child."""
        return cls._of(nodes_from_networkx(graph))

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        encoding: str = "utf-8",
    ) -> Taxonomy:
        """From a file, which may be compressed by gzip.

        Parameters
        ----------
        path : path-like
            The file.
        format : {"paths", "edges", "adjacency", "newick", "json"}, optional
            - "paths": on each line the names from the root down to a class. The first column is the root if all
              lines share it; otherwise a root is put above.
            - "edges": on each line a parent and a child.
            - "adjacency": on each line a parent and all its children.
            - "newick": nested parentheses, "((cat,dog)animal,plant);". Lengths and comments are ignored, inner nodes
              without a name are called "node 1" and so on.
            - "json": nested ``{"name": ..., "children": [...]}``, or nested objects and lists such as
              ``{"animal": ["cat", "dog"], "plant": []}``. A single outermost key is the root.

            By default the name's ending (.json, .nwk, .newick) or the first character identifies JSON and Newick. Other
            files are read in each of the three ways that give a valid tree, where an adjacency list has to give each
            parent one line; if these trees differ, or there is none, ``format`` has to be given.
        encoding : str, default="utf-8"
            How characters are encoded.

        Notes
        -----
        Columns are separated by tabs if there is a tab in the file, else by spaces. Empty lines are skipped. If all
        names in the file are integers written in the usual way, they become integers, so that they match labels. In
        JSON numbers are integers and strings, among them all keys, are strings.
        """
        return cls._of(read_nodes(path, format=format, encoding=encoding))

    @classmethod
    def from_clusters(cls, X: Any, y: Any, *, branching: int = 16, random_state: Any = 0) -> Taxonomy:
        """From data, where there is no tree: classes whose rows are alike come together.

        The means of the classes, by their directions, are divided by k-means into groups of equal size, these again,
        and so on until a group has at most ``branching`` classes. Rows are best scaled to about the same length.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array or list of shape (n_samples,)
            Labels, strings or integers, which become the leaves.
        branching : int, default=16
            Largest number of children of a node, at least 2.
        random_state : int, RandomState instance or None, default=0
            Of the first centres.

        Examples
        --------
        >>> from taxolearn import Taxonomy
        >>> X = [[1.0, 0.1], [0.1, 1.0], [0.9, 0.0], [0.0, 0.8]]
        >>> print(Taxonomy.from_clusters(X, ["cat", "oak", "dog", "elm"], branching=2))
        root
        ├── cluster 1
        │   ├── cat
        │   └── dog
        └── cluster 2
            ├── elm
            └── oak
        """
        return cls._of(nodes_from_clusters(X, y, branching=branching, random_state=random_state))

    @classmethod
    def _of(cls, nodes: Nodes, separator: str = "/") -> Taxonomy:
        return cls(np.array(nodes.parents, dtype=np.int64), nodes.names, separator=separator)

    # -- Lookups ------------------------------------------------------------------------------------------------------

    def index(self, names: Any, *, argument: str = "names") -> Any:
        """Numbers of the nodes with these names: an int for one name, an int64 array for several.

        ``argument`` is how errors call the names.
        """
        numbers = self._find(names, argument)
        return int(numbers[0]) if is_one_name(names) else numbers

    def leaf_index(self, labels: Any, *, argument: str = "labels") -> Any:
        """Positions of the labels in ``classes``: an int for one label, an int64 array for several.

        ``argument`` is how errors call the labels.
        """
        positions = self._find(labels, argument) - self.n_inner
        inner = np.flatnonzero(positions < 0)
        if len(inner) > 0:
            names = dict.fromkeys(self.names[positions[inner] + self.n_inner].tolist())
            raise ValueError(
                f"{argument}: {shown(names)} {'are' if len(names) > 1 else 'is'} no leaf of the taxonomy but inner; "
                f"with_classes({argument}) makes a taxonomy in which such labels have leaves of their own"
            )
        return int(positions[0]) if is_one_name(labels) else positions

    def path(self, name: Name) -> list[Name]:
        """Names from below the root down to the node."""
        node = self._node(name)
        path = []
        while node > 0:
            path.append(self.names[node])
            node = int(self.parents[node])
        return path[::-1]

    def parent(self, name: Name) -> Name | None:
        """Name of the parent, None for the root."""
        node = self._node(name)
        return None if node == 0 else self.names[self.parents[node]]

    def children(self, name: Name) -> list[Name]:
        """Names of the children in the order of the nodes: inner ones, then leaves."""
        return list(self.names[np.flatnonzero(self.parents == self._node(name))])

    def leaves(self, name: Name) -> npt.NDArray[Any]:
        """Names of the classes at or below the node."""
        node = self._node(name)
        return self.classes[self.leaf_begin[node] : self.leaf_end[node]]

    def common_depth(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Any:
        """Depths of the lowest common ancestors of two arrays of node numbers, which are broadcast."""
        return common_depths(self, a, b)

    def groups(self, tying: str | npt.ArrayLike) -> tuple[Integers, list[str]]:
        """Which nodes share a parameter.

        Parameters
        ----------
        tying : {"shared", "level", "subtree", "node"} or array-like of int, shape (n_nodes,)
            One group for all; one for each depth; one for each child of the root with what lies below it; one for
            each node. Or the groups themselves, 0 to k - 1 without holes; the root's entry is ignored.

        Returns
        -------
        groups : ndarray of int64, shape (n_nodes,)
            Group of each node, -1 for the root.
        names : list of str
            Names of the groups, all different.
        """
        return make_groups(self, tying)

    def _node(self, name: Any) -> int:
        if not is_one_name(name):
            raise TypeError(f"name is {name!r}, expected the name of one node")
        return int(self._find(name, "name")[0])

    def _find(self, names: Any, argument: str) -> Integers:
        return find_nodes(self._numbers, names, argument)

    # -- Other forms --------------------------------------------------------------------------------------------------

    def to_edges(self) -> list[tuple[Name, Name]]:
        """Names of parent and child for every node below the root; ``from_edges`` makes the same taxonomy of them."""
        return list(zip(self.names[self.parents[1:]].tolist(), self.names[1:].tolist(), strict=True))

    def to_networkx(self) -> Any:
        """A ``networkx.DiGraph`` with edges from parent to child. Needs the package networkx."""
        return to_digraph(self.names.tolist(), self.to_edges())

    def to_text(
        self,
        max_lines: int = 60,
        max_children: int | None = None,
        values: npt.ArrayLike | None = None,
        *,
        least: float | None = None,
        notes: Mapping[Name, str] | None = None,
        ascii_only: bool = False,
    ) -> str:
        """The tree as text.

        Parameters
        ----------
        max_lines : int, default=60
            Long trees are abbreviated to at most this many lines.
        max_children : int, optional
            At most so many children are shown of a node.
        values : array-like of shape (n_nodes,), optional
            Numbers to print after the names, each with a bar: as percentages if all lie between 0 and 1. Where
            children have to be left out, those of largest value are shown.
        least : float, optional
            Nodes of smaller value are left out without a word, unless they or a node below them have a note.
        notes : mapping of node names to str, optional
            What to print at the end of a node's line.
        ascii_only : bool, default=False
            Whether to draw with ASCII characters only; others in names are escaped.
        """
        options: dict[str, Any] = {"values": values, "least": least, "notes": notes, "ascii_only": ascii_only}
        return text_of(self, max_lines=max_lines, max_children=max_children, **options)

    def plot(
        self, ax: Any = None, *, max_leaves: int = 300, values: npt.ArrayLike | None = None, cmap: str = "viridis"
    ) -> Any:
        """A drawing of the tree, the root to the left. Needs the package matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw, by default on a new figure of fitting size.
        max_leaves : int, default=300
            A tree with more classes is cut at the depth where it fits, and says so.
        values : array-like of shape (n_nodes,), optional
            Numbers that colour the nodes.
        cmap : str, default="viridis"
            The colours for values.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        return plot_tree(self, ax, max_leaves=max_leaves, values=values, cmap=cmap)

    # -- Changing -----------------------------------------------------------------------------------------------------

    def with_classes(self, labels: Any, *, argument: str = "labels") -> Taxonomy:
        """A taxonomy in which every label is a leaf; this one, if all are already.

        A label that lies on an inner node gets a leaf of its own below it. The leaf takes the label as its name, and
        the inner node is renamed to "label/*": anything below the label. ``argument`` is how errors call the labels.
        """
        numbers = np.unique(self._find(labels, argument))
        owners = numbers[numbers < self.n_inner].tolist()
        if not owners:
            return self
        nodes = Nodes(self.names.tolist(), self.parents.tolist())
        return self._of(add_own_leaves(nodes, owners, self.separator), self.separator)

    def restrict(self, labels: Any) -> Taxonomy:
        """The part of the tree that lies above the given classes."""
        positions = np.unique(np.atleast_1d(self.leaf_index(labels)))
        if len(positions) == 0:
            raise ValueError("labels is empty, expected at least one class to keep")
        if len(positions) == self.n_classes:
            return self
        return self._of(part_above(self, positions), self.separator)

    def encode(self, labels: Any) -> tuple[Taxonomy, Integers]:
        """The part of the tree above the given classes with these numbered, and the labels as such numbers.

        For tools of scikit-learn that replace labels by the numbers 0 to k - 1 before they call ``fit``, among them
        ``cross_val_predict(method="predict_proba")``, ``StackingClassifier`` and ``CalibratedClassifierCV``. Labels
        that are these numbers already stay as they are. Every class that is to be known must be among the labels.

        Returns
        -------
        taxonomy : Taxonomy
            The tree whose classes are 0 to k - 1, in the order of ``np.unique(labels)``. Inner nodes keep their names,
            as strings.
        codes : ndarray of int64, shape (n_samples,)
            ``np.unique(labels)[codes]`` are the labels.

        Examples
        --------
        >>> from taxolearn import Taxonomy
        >>> tree, codes = Taxonomy.from_labels(["a/cat", "a/dog", "plant"]).encode(["plant", "a/cat", "plant"])
        >>> codes
        array([1, 0, 1])
        >>> tree.path(0)
        ['a', 0]
        """
        part = self.restrict(labels)
        order = np.argsort(part.classes, kind="stable")
        codes = np.argsort(order, kind="stable")[np.atleast_1d(part.leaf_index(labels))]
        return self._of(encoded_nodes(part), self.separator), codes.astype(np.int64)

    def prune(self) -> tuple[Taxonomy, Integers]:
        """The tree without inner nodes that have a single child.

        Of a chain of such nodes its lowest one survives, so that leaves always do. A chain that begins at the root
        becomes the new root, under the root's name.

        Returns
        -------
        taxonomy : Taxonomy
            The pruned tree.
        where : ndarray of int64, shape (n_nodes,)
            For each node of this tree the node of the pruned tree that stands for it: the same classes lie below both.
        """
        nodes, stands = without_chains(self)
        pruned = self._of(nodes, self.separator)
        return pruned, pruned._find(self.names[stands], "names")

    # -- Python's own protocols ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.n_nodes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        if self.separator != other.separator or not np.array_equal(self.parents, other.parents):
            return False
        return self is other or self.names.tolist() == other.names.tolist()

    def __hash__(self) -> int:
        return hash((self.parents.tobytes(), tuple(self.names), self.separator))

    def __repr__(self) -> str:
        classes = f"{self.n_classes} class{'es' * (self.n_classes != 1)}"
        inner = f"{self.n_inner} inner node{'s' * (self.n_inner != 1)}"
        return f"Taxonomy({classes}, {inner}, height {self.height})"

    def __str__(self) -> str:
        return self.to_text()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Taxonomy cannot be changed, so {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Taxonomy cannot be changed, so {name!r} cannot be deleted")

    def __copy__(self) -> Taxonomy:
        return self

    def __deepcopy__(self, memo: object) -> Taxonomy:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"parents": self.parents, "names": self.names.tolist(), "separator": self.separator}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Taxonomy.__init__(self, **state)
