"""The tree of classes, against definitions written out with dictionaries and recursion."""

import copy
import pickle
import re
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from taxolearn.taxonomy import Taxonomy

SEEDS = range(40)


def random_parents(seed):
    """Parents and names of a random tree: bushy, deep or flat, its nodes in any order."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    reach = rng.choice([1, 3, n])  # how far back a parent may lie: short makes the tree deep
    back = rng.choice([1, 2, n])  # how many of the first nodes are parents at all: few makes it flat
    parents = np.full(n, -1)
    for p in range(1, n):
        parents[p] = rng.integers(max(0, p - reach), p) if seed % 2 else rng.integers(0, min(p, back))
    number = rng.permutation(n)
    shuffled = np.full(n, -1)
    shuffled[number[1:]] = number[parents[1:]]
    names = [f"n{p}" for p in rng.permutation(n)] if seed % 3 else rng.permutation(1000)[:n].tolist()
    return shuffled, names


def tree_of(parents, names):
    """Root and a dictionary from names to the names of the children, in the given order."""
    children = {name: [] for name in names}
    root = None
    for name, parent in zip(names, parents, strict=True):
        if parent < 0:
            root = name
        else:
            children[names[parent]].append(name)
    return root, children


def walk(root, children):
    """Inner nodes and leaves in canonical order, by recursion."""
    inner, leaves = [], []

    def visit(name):
        inner.append(name)
        leaves.extend(child for child in children[name] if not children[child])
        for child in children[name]:
            if children[child]:
                visit(child)

    visit(root)
    return inner, leaves


def ancestors(taxonomy, name):
    """The node and all above it, the root last."""
    line = [name]
    while (name := taxonomy.parent(name)) is not None:
        line.append(name)
    return line


def leaf_set(taxonomy, p):
    return set(taxonomy.classes[taxonomy.leaf_begin[p] : taxonomy.leaf_end[p]].tolist())


@pytest.fixture(params=SEEDS)
def taxonomy(request):
    parents, names = random_parents(request.param)
    return Taxonomy.from_parents(parents, names)


def sample():
    return Taxonomy.from_labels(["animal/cat", "animal/dog", "plant/tree/oak", "stone"])


class TestCanonicalForm:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_order_is_that_of_the_walk(self, seed):
        parents, names = random_parents(seed)
        taxonomy = Taxonomy.from_parents(parents, names)
        root, children = tree_of(parents, names)
        inner, leaves = walk(root, children)
        assert taxonomy.names.tolist() == inner + leaves
        assert taxonomy.classes.tolist() == leaves
        assert (taxonomy.n_nodes, taxonomy.n_inner, taxonomy.n_classes) == (len(names), len(inner), len(leaves))
        for name in names:
            assert sorted(map(str, taxonomy.children(name))) == sorted(map(str, children[name]))
            assert all(taxonomy.parent(child) == name for child in children[name])
        assert taxonomy.parent(root) is None

    def test_laws(self, taxonomy):
        nodes = np.arange(taxonomy.n_nodes)
        assert taxonomy.parents[0] == -1
        assert (taxonomy.parents[1:] < nodes[1:]).all()
        assert set(taxonomy.parents[1:]) == set(range(taxonomy.n_inner))
        for p in range(taxonomy.n_inner):
            own = np.flatnonzero(taxonomy.parents[taxonomy.n_inner :] == p)
            assert (np.diff(own) == 1).all()
        assert (taxonomy.leaf_begin[taxonomy.n_inner :] == np.arange(taxonomy.n_classes)).all()
        assert (taxonomy.leaf_end[taxonomy.n_inner :] == np.arange(taxonomy.n_classes) + 1).all()
        assert taxonomy.height == taxonomy.depths.max()

    def test_depths_and_ranges(self, taxonomy):
        for p, name in enumerate(taxonomy.names):
            assert taxonomy.depths[p] == len(ancestors(taxonomy, name)) - 1
            below = {leaf for leaf in taxonomy.classes.tolist() if name in ancestors(taxonomy, leaf)}
            assert leaf_set(taxonomy, p) == below
            assert set(taxonomy.leaves(name).tolist()) == below
            assert taxonomy.path(name) == ancestors(taxonomy, name)[-2::-1]

    def test_canonical_form_of_it_is_itself(self, taxonomy):
        assert Taxonomy(taxonomy.parents, taxonomy.names) == taxonomy

    def test_types(self):
        strings, integers = sample(), Taxonomy.from_parents([-1, 0, 0])
        assert strings.classes.dtype.kind == "U"
        assert integers.classes.dtype == np.int64
        assert {type(name) for name in integers.names} == {int}
        assert {type(name) for name in Taxonomy.from_edges(np.array([[5, 6], [5, 7]])).names} == {int}
        for name in ("parents", "depths", "leaf_begin", "leaf_end"):
            assert getattr(strings, name).dtype == np.int64

    def test_leaves_before_inner_children(self):
        taxonomy = Taxonomy.from_edges([("r", "a"), ("a", "x"), ("r", "b"), ("a", "c"), ("c", "z"), ("a", "y")])
        assert taxonomy.names.tolist() == ["r", "a", "c", "b", "x", "y", "z"]

    def test_cannot_be_changed(self):
        taxonomy = sample()
        with pytest.raises(AttributeError, match="height"):
            taxonomy.height = 3
        with pytest.raises(AttributeError, match="height"):
            del taxonomy.height
        for name in ("names", "classes", "parents", "depths", "leaf_begin", "leaf_end"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(taxonomy, name)[0] = 0


class TestLookups:
    def test_index(self, taxonomy):
        names = taxonomy.names.tolist()
        np.testing.assert_array_equal(taxonomy.index(names[::-1]), np.arange(len(names))[::-1])
        assert [taxonomy.index(name) for name in names] == list(range(len(names)))
        np.testing.assert_array_equal(taxonomy.leaf_index(taxonomy.classes), np.arange(taxonomy.n_classes))
        assert taxonomy.leaf_index(taxonomy.classes[-1]) == taxonomy.n_classes - 1

    def test_index_kinds(self):
        pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
        taxonomy = sample()
        labels = ["stone", "animal/cat"]
        for kind in (list, tuple, np.array, pandas.Series, polars.Series, lambda x: np.array(x, dtype=object), iter):
            found = taxonomy.leaf_index(kind(labels))
            assert found.dtype == np.int64
            assert taxonomy.classes[found].tolist() == labels
        assert taxonomy.index([]).dtype == np.int64
        assert taxonomy.index(np.array("stone")) == taxonomy.index(np.str_("stone")) == taxonomy.index("stone")

    def test_unknown(self):
        taxonomy = sample()
        with pytest.raises(ValueError, match=r"labels: not in the taxonomy: 'animal/dgo'; is 'animal/dog' meant"):
            taxonomy.leaf_index(["animal/cat", "animal/dgo"])
        with pytest.raises(ValueError, match=r"'x0', 'x1', 'x2', 'x3', 'x4', \.\.\. \(9 in all\)"):
            taxonomy.index([f"x{i}" for i in range(9)] * 2)
        for strange in (None, float("nan"), b"stone", True):
            with pytest.raises(ValueError, match="not in the taxonomy"):
                taxonomy.index(strange)
        with pytest.raises(TypeError, match=r"\['stone'\] of type list is no name"):
            taxonomy.index([["stone"]])
        with pytest.raises(ValueError, match=r"shape \(1, 1\)"):
            taxonomy.index(np.array([["stone"]]))
        with pytest.raises(TypeError, match="one node"):
            taxonomy.path(["stone"])

    def test_other_type_of_name(self):
        strings = r"names are strings such as {}, these are integers \(where .* labels, Taxonomy\.encode helps\)$"
        integers = "names are integers such as {}, these are strings$"
        for paths, unknown, message in [
            ([[1], [2]], "2", integers.format(2)),
            ([[1], [2]], ["rood", "x"], integers.format(2)),  # the root's name does not count
            ([["1"], ["2"]], 1, strings.format("'1'")),
            ([["a"], ["b"]], np.array([7, 8]), strings.format("'b'")),
            ([["1"], ["2"]], [7, "x"], "7, 'x'$"),
            ([["a", 1], ["a", 2]], "2", r"is 2 meant\? \(the taxonomy has it as an integer\)"),
            ([["1", 4], ["1", 5]], 1, r"is '1' meant\? \(the taxonomy has it as a string\)"),
        ]:
            with pytest.raises(ValueError, match=f"not in the taxonomy: .*{message}"):
                Taxonomy.from_paths(paths).index(unknown)

    def test_booleans_are_no_names(self):
        taxonomy = Taxonomy.from_parents([-1, 0, 0])
        for labels in (True, np.True_, np.array(True), [True, 2], np.array([True, False]), [np.False_]):
            for method in (taxonomy.index, taxonomy.leaf_index, taxonomy.with_classes):
                with pytest.raises(ValueError, match="y: not in the taxonomy: booleans; names are strings or integers"):
                    method(labels, argument="y")
        with pytest.raises(ValueError, match="name: not in the taxonomy: booleans"):
            taxonomy.path(True)
        assert taxonomy.index(1) == 1

    def test_errors_name_the_argument(self):
        taxonomy = sample()
        for method, default in (
            (taxonomy.index, "names"),
            (taxonomy.leaf_index, "labels"),
            (taxonomy.with_classes, "labels"),
        ):
            with pytest.raises(ValueError, match=f"^{default}: not in the taxonomy: 'x'"):
                method(["x"])
            with pytest.raises(ValueError, match=r"^y_test: not in the taxonomy: 'x'"):
                method(["x"], argument="y_test")
        with pytest.raises(ValueError, match=r"^y_test: 'animal' is no leaf .*with_classes\(y_test\)"):
            taxonomy.leaf_index("animal", argument="y_test")

    def test_inner_label(self):
        with pytest.raises(ValueError, match=r"'animal' is no leaf .*with_classes"):
            sample().leaf_index(["stone", "animal"])

    def test_common_depth(self, taxonomy):
        names = taxonomy.names.tolist()
        nodes = np.arange(len(names))
        expected = [[len(set(ancestors(taxonomy, a)) & set(ancestors(taxonomy, b))) - 1 for b in names] for a in names]
        found = taxonomy.common_depth(nodes[:, None], nodes)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
        assert taxonomy.common_depth(0, len(names) - 1) == 0
        assert taxonomy.common_depth([], []).shape == (0,)

    def test_common_depth_refuses(self):
        with pytest.raises(ValueError, match="a has the node number -1"):
            sample().common_depth([-1], [0])
        with pytest.raises(ValueError, match="b has the node number 8, expected 0 to 7"):
            sample().common_depth([0], [8])
        with pytest.raises(TypeError, match="index"):
            sample().common_depth(["stone"], [0])

    def test_groups(self, taxonomy):
        names = taxonomy.names.tolist()
        for tying, group_of in {
            "shared": lambda name: "shared",
            "level": lambda name: f"level {len(ancestors(taxonomy, name)) - 1}",
            "subtree": lambda name: str(ancestors(taxonomy, name)[-2]),
            "node": str,
        }.items():
            groups, group_names = taxonomy.groups(tying)
            assert groups.dtype == np.int64
            assert groups[0] == -1
            assert [group_names[k] for k in groups[1:]] == [group_of(name) for name in names[1:]]
            assert set(groups[1:]) == set(range(len(group_names)))
        assert taxonomy.groups("subtree")[1] == [str(name) for name in taxonomy.children(names[0])]
        np.testing.assert_array_equal(taxonomy.groups("node")[0], np.arange(len(names)) - 1)

    @pytest.mark.parametrize("tying", ["node", "subtree"])
    def test_groups_that_print_alike(self, tying):
        taxonomy = Taxonomy.from_edges([("r", 1), ("r", "1"), ("r", "a"), (1, 5), ("1", 6), ("a", 7)])
        names = taxonomy.groups(tying)[1]
        assert len(set(names)) == len(names) == (6 if tying == "node" else 3)
        assert {"1", "'1'", "a"} <= set(names)
        tricky = Taxonomy.from_edges([("r", 1), ("r", "1"), ("r", "'1'"), (1, 5), ("1", 6), ("'1'", 7)])
        assert len(set(tricky.groups(tying)[1])) == len(names)

    def test_own_groups(self):
        taxonomy = sample()
        given = np.array([7, 1, 0, 1, 2, 2, 0, 1])
        groups, names = taxonomy.groups(given)
        assert groups.tolist() == [-1, 1, 0, 1, 2, 2, 0, 1]
        assert names == ["group 0", "group 1", "group 2"]
        assert given[0] == 7
        for wrong, message in [
            ([0, 1, 2], r"shape \(3,\).*expected 8 integers.*labels on inner nodes.*taxonomy\.with_classes\(y\)"),
            ([0.0] * 8, "float64"),
            ([0, 0, 0, 2, 2, 2, 2, 2], "none of its nodes is in group 1"),
            ([0, -1, 0, 0, 0, 0, 0, 0], "group -1"),
            ([0, 10**15, 0, 0, 0, 0, 0, 0], "group 1000000000000000 for only 7 nodes"),
            ("leaf", "'shared', 'level', 'subtree', 'node'"),
        ]:
            with pytest.raises(ValueError, match=message):
                taxonomy.groups(wrong)


class TestMaking:
    def test_labels(self):
        y = ["b/2", "a", "b/1", "b/2", "a"]
        taxonomy = Taxonomy.from_labels(y)
        assert taxonomy.to_edges() == [("root", "b"), ("root", "a"), ("b", "b/2"), ("b", "b/1")]
        assert Taxonomy.from_labels(np.array(y)) == taxonomy
        assert Taxonomy.from_paths([label.split("/") for label in y], separator="/") == taxonomy
        assert Taxonomy.from_labels("a.b", separator=".", root="top").names.tolist() == ["top", "a", "a.b"]

    @pytest.mark.parametrize("label", ["A//B", "/A", "A/", ""])
    def test_labels_with_empty_parts(self, label):
        with pytest.raises(ValueError, match=repr(label)):
            Taxonomy.from_labels(["B/C", label])

    def test_labels_refused(self):
        with pytest.raises(TypeError, match="got 3 of type int"):
            Taxonomy.from_labels([3, 4])
        with pytest.raises(TypeError, match="of type list"):
            Taxonomy.from_labels([["A", "B"]])
        with pytest.raises(ValueError, match="labels is empty"):
            Taxonomy.from_labels([])
        with pytest.raises(ValueError, match=r"label 'root/x': 'root' is the name of the root; pass another root="):
            Taxonomy.from_labels(["root/x", "y"])
        with pytest.raises(ValueError, match="separator is ''"):
            Taxonomy.from_labels(["a"], separator="")

    def test_paths(self):
        taxonomy = Taxonomy.from_paths([("a", "x"), ("b",), ("a", "y"), ("a", "x")])
        assert taxonomy.to_edges() == [("root", "a"), ("root", "b"), ("a", "x"), ("a", "y")]
        assert Taxonomy.from_paths(iter([(1, 2), (1, 3)]), separator=".").classes.tolist() == ["1.2", "1.3"]
        assert Taxonomy.from_paths([np.array([1, 2]), np.array([1, 3])]).classes.tolist() == [2, 3]

    @pytest.mark.parametrize(
        ("paths", "error", "message"),
        [
            ([("a", "x"), ("b", "x")], ValueError, r"paths\[1\]: 'x' lies below 'a' and below 'b'.*separator="),
            ([("a", "b", "a")], ValueError, r"paths\[0\]: 'a' lies below 'root' and below 'b'"),
            ([("a", "root")], ValueError, "'root' is the name of the root; pass another root="),
            ([("a",), ()], ValueError, r"paths\[1\] is empty"),
            ([], ValueError, "no paths"),
            ([("a", "")], ValueError, r"paths\[0\]: a name is empty"),
            (["a/b"], TypeError, r"paths\[0\] is 'a/b'.*from_labels"),
            ("ab", TypeError, "paths is 'ab'"),
            ([5], TypeError, r"paths\[0\] is 5"),
            ([("a", None)], TypeError, "None of type NoneType"),
            ([("a", 1.5)], TypeError, "1.5 of type float"),
            ([("a", True)], TypeError, "True of type bool"),
            ([("a", ["b"])], TypeError, "of type list"),
            ([("a", 2**63)], ValueError, "64 bits"),
            ([("a", "x"), ("a", 1)], ValueError, "strings and integers, such as 'x' and 1"),
            ([("x\0",)], ValueError, "null character"),
        ],
    )
    def test_paths_refused(self, paths, error, message):
        with pytest.raises(error, match=message):
            Taxonomy.from_paths(paths)

    def test_joined_paths_refused(self):
        with pytest.raises(ValueError, match=r"'x/y' contains the separator '/'"):
            Taxonomy.from_paths([("x/y",)], separator="/")

    def test_columns(self):
        pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
        rows = [["a", "x", "1"], ["a", "y", None], ["b", None, None], ["a", "x", "1"]]
        expected = Taxonomy.from_paths([("a", "x", "1"), ("a", "y"), ("b",)])
        columns = list("lmn")
        for table in (
            np.array(rows, dtype=object),
            rows,
            pandas.DataFrame(rows, columns=columns),
            pandas.DataFrame(rows, columns=columns).astype("category"),
            pandas.DataFrame(rows, columns=columns, dtype="string"),
            polars.DataFrame(rows, schema=columns, orient="row"),
            np.array([[value or "" for value in row] for row in rows]),
        ):
            assert Taxonomy.from_columns(table) == expected
        joined = Taxonomy.from_columns([["a", "x"], ["b", "x"]], separator="/")
        assert joined.classes.tolist() == ["a/x", "b/x"]

    def test_integer_columns_with_missing_values(self):
        pandas = pytest.importorskip("pandas")
        table = pandas.DataFrame({"l": [1, 2], "m": [10, None]})
        assert Taxonomy.from_columns(table).classes.tolist() == [2, 10]
        assert Taxonomy.from_columns(np.array([[1, 10], [2, np.nan]])).classes.tolist() == [2, 10]

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ([["a", "b"], ["a", None], [None, "c"]], "table row 2 begins with a missing value"),
            ([["a", "b", "c"], ["a", "", "d"]], "table row 1 has a missing value before its end"),
            (["a", "b"], "1 dimension,"),
            ([["a", "x"], ["a", "y"], ["a", "x"], ["b", "x"]], "table row 3: 'x' lies below"),
            (np.empty((0, 2), dtype=object), "no rows"),
        ],
    )
    def test_columns_refused(self, table, message):
        with pytest.raises(ValueError, match=message):
            Taxonomy.from_columns(table)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_edges_in_any_order(self, seed):
        parents, names = random_parents(seed)
        edges = [(names[parent], name) for name, parent in zip(names, parents, strict=True) if parent >= 0]
        assert Taxonomy.from_edges(edges + edges[:2]) == Taxonomy.from_parents(parents, names)

    def test_edges_round_trip(self, taxonomy):
        assert Taxonomy.from_edges(taxonomy.to_edges()) == taxonomy

    def test_edges_of_a_table(self):
        pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
        columns = {"parent": ["r", "r"], "child": ["a", "b"]}
        expected = Taxonomy.from_edges([("r", "a"), ("r", "b")])
        assert Taxonomy.from_edges(pandas.DataFrame(columns)) == expected
        assert Taxonomy.from_edges(polars.DataFrame(columns)) == expected

    def test_edges_with_a_new_root(self):
        edges = [("a", "x"), ("b", "y")]
        assert Taxonomy.from_edges(edges, root="r").to_edges() == [("r", "a"), ("r", "b"), ("a", "x"), ("b", "y")]
        assert Taxonomy.from_edges(edges[:1], root="a") == Taxonomy.from_edges(edges[:1])
        assert Taxonomy.from_edges(edges[:1], root="r").path("x") == ["a", "x"]
        for taken in ("a", "x"):
            with pytest.raises(ValueError, match=f"root is '{taken}', which is a node already"):
                Taxonomy.from_edges(edges, root=taken)

    @pytest.mark.parametrize(
        ("edges", "message"),
        [
            ([("a", "b"), ("b", "a")], r"edges\[0\]: the nodes a -> b -> a form a cycle"),
            ([("r", "s"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")], "a -> b -> c -> a form a cycle"),
            ([("r", "a"), ("a", "a")], r"edges\[1\]: 'a' is its own parent"),
            (
                [("r", "a"), ("r", "b"), ("a", "x"), ("b", "x")],
                r"edges\[3\]: 'x' has two parents, 'a' \(edges\[2\]\) and 'b'",
            ),
            ([("a", "b"), ("c", "d")], r"2 nodes have no parent: 'a', 'c'; pass root= to from_edges"),
            ([("a", "b", "c")], r"edges\[0\] is \('a', 'b', 'c'\), expected a pair"),
            (["ab"], "expected a pair"),
            ([], "no edges"),
        ],
    )
    def test_edges_refused(self, edges, message):
        with pytest.raises(ValueError, match=message):
            Taxonomy.from_edges(edges)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_cycles_are_found(self, seed):
        parents, names = random_parents(seed)
        names = [str(name) for name in names]
        rng = np.random.default_rng(seed)
        # A node that is moved below one of its own descendants takes a cycle with it.
        node = int(rng.choice(np.flatnonzero(parents >= 0)))
        descendants = [node]
        for descendant in descendants:
            descendants += np.flatnonzero(parents == descendant).tolist()
        parents[node] = rng.choice(descendants)
        if parents[node] == node:
            return
        edges = [(names[parent], name) for name, parent in zip(names, parents, strict=True) if parent >= 0]
        for make in (lambda: Taxonomy.from_parents(parents, names), lambda: Taxonomy.from_edges(edges)):
            with pytest.raises(ValueError, match="form a cycle") as caught:
                make()
            cycle = str(caught.value).split("the nodes ")[1].split(" form a cycle")[0].split(" -> ")
            assert cycle[0] == cycle[-1]
            if "..." not in cycle:
                assert set(pairwise(cycle)) <= set(edges)
                assert names[node] in cycle

    def test_parents(self):
        assert Taxonomy.from_parents([0, 0, 0]) == Taxonomy.from_parents([-1, 0, 0])
        assert Taxonomy.from_parents(np.array([1, 1], dtype=np.uint8)).names.tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("parents", "names", "message"),
        [
            ([1, 2, 0], None, "form a cycle"),
            ([-1, 0, 3, 2], None, "3 -> 2 -> 3 form a cycle"),
            ([-1, -1, 0], ["a", "b", "c"], "2 nodes have no parent: 'a', 'b'"),
            ([-1, 5], None, r"parents\[1\] is 5, expected a node from 0 to 1"),
            ([-2, 0], None, r"parents\[0\] is -2"),
            ([-1], None, "at least a root and one class"),
            ([], None, "expected"),
            ([-1.0, 0.0], None, "float64"),
            ([[-1, 0]], None, r"shape \(1, 2\)"),
            ([-1, 0, 0], ["a", "b"], "names has 2 entries, parents has 3"),
            ([-1, 0, 0], ["a", "b", "a"], r"names\[0\] and names\[2\] are both 'a'"),
            ([-1, 0], ["a", ""], r"names\[1\]: a name is empty"),
        ],
    )
    def test_parents_refused(self, parents, names, message):
        with pytest.raises(ValueError, match=message):
            Taxonomy.from_parents(parents, names)

    def test_networkx(self):
        nx = pytest.importorskip("networkx")
        taxonomy = sample()
        graph = taxonomy.to_networkx()
        assert nx.is_arborescence(graph)
        assert Taxonomy.from_networkx(graph) == taxonomy
        with pytest.raises(ValueError, match="undirected"):
            Taxonomy.from_networkx(graph.to_undirected())
        with pytest.raises(TypeError, match="type list"):
            Taxonomy.from_networkx([("a", "b")])
        graph.add_node("alone")
        with pytest.raises(ValueError, match="nodes without edges: 'alone'"):
            Taxonomy.from_networkx(graph)

    @pytest.mark.parametrize(("package", "method"), [("networkx", "to_networkx"), ("matplotlib", "plot")])
    def test_optional_packages(self, monkeypatch, package, method):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(ImportError, match=f"pip install {package}"):
            getattr(sample(), method)()


class TestOwnLeaves:
    def test_a_label_that_is_the_prefix_of_another(self):
        taxonomy = Taxonomy.from_labels(["a/x", "a", "b", "a/y"])
        assert taxonomy.to_edges() == [
            ("root", "a/*"), ("root", "b"), ("a/*", "a/x"), ("a/*", "a"), ("a/*", "a/y"),
        ]  # fmt: skip
        assert Taxonomy.from_paths([("a", "x"), ("a",)]).path("a") == ["a/*", "a"]
        integers = Taxonomy.from_paths([(1, 2), (1,)])
        assert integers.path(1) == ["1/*", 1]
        assert integers.classes.tolist() == [2, 1]
        assert Taxonomy.from_labels(["a.x", "a"], separator=".").path("a") == ["a.*", "a"]

    def test_with_classes(self, taxonomy):
        rng = np.random.default_rng(taxonomy.n_nodes)
        labels = rng.permutation(taxonomy.names)[: rng.integers(1, taxonomy.n_nodes + 1)]
        labels = [label for label in labels if isinstance(label, type(taxonomy.classes.tolist()[0]))]
        grown = taxonomy.with_classes(labels)
        owners = [name for name in taxonomy.names[: taxonomy.n_inner] if name in labels]
        renamed = {name: f"{name}/*" if name in owners else name for name in taxonomy.names}
        edges = {(renamed[parent], renamed[child]) for parent, child in taxonomy.to_edges()}
        assert set(grown.to_edges()) == edges | {(renamed[name], name) for name in owners}
        assert (grown.leaf_index(labels) >= 0).all()
        assert grown.with_classes(labels) is grown
        assert taxonomy.with_classes(taxonomy.classes) is taxonomy

    def test_separator_is_kept(self):
        taxonomy = Taxonomy.from_labels(["a.b.c", "a.b.d", "e"], separator=".")
        for tree in (taxonomy, taxonomy.prune()[0].restrict(["a.b.c", "a.b.d"]), pickle.loads(pickle.dumps(taxonomy))):
            assert tree.with_classes(["a.b"]).parent("a.b") == "a.b.*"

    def test_refused(self):
        taxonomy = Taxonomy.from_labels(["a/*", "a/b"])
        with pytest.raises(ValueError, match=r"renamed to 'a/\*'.*there is a node of that name"):
            taxonomy.with_classes(["a"])
        with pytest.raises(ValueError, match=r"renamed to 'a/\*'"):
            Taxonomy.from_labels(["a/*", "a"])
        with pytest.raises(ValueError, match="not in the taxonomy: 'c'"):
            taxonomy.with_classes(["c"])


class TestChanging:
    def test_restrict(self, taxonomy):
        rng = np.random.default_rng(taxonomy.n_nodes)
        labels = rng.permutation(taxonomy.classes)[: rng.integers(1, taxonomy.n_classes + 1)].tolist()
        part = taxonomy.restrict(labels)
        assert set(part.classes.tolist()) == set(labels)
        assert all(part.path(label) == taxonomy.path(label) for label in labels)
        assert set(part.names) == {name for label in labels for name in ancestors(taxonomy, label)}
        assert part.names.tolist() == [name for name in taxonomy.names if name in set(part.names)]
        assert taxonomy.restrict(taxonomy.classes) == taxonomy

    def test_restrict_refused(self):
        with pytest.raises(ValueError, match="labels is empty"):
            sample().restrict([])
        with pytest.raises(ValueError, match="with_classes"):
            sample().restrict(["animal"])

    def test_prune(self, taxonomy):
        pruned, where = taxonomy.prune()
        assert where.shape == (taxonomy.n_nodes,)
        assert where.dtype == np.int64
        for p in range(taxonomy.n_nodes):
            assert leaf_set(pruned, where[p]) == leaf_set(taxonomy, p)
        assert set(pruned.classes.tolist()) == set(taxonomy.classes.tolist())
        assert where[0] == 0
        assert pruned.names[0] == taxonomy.names[0]
        n_children = np.bincount(pruned.parents[1:], minlength=pruned.n_nodes)
        assert (n_children[1 : pruned.n_inner] > 1).all()
        assert n_children[0] > 1 or pruned.n_nodes == 2
        # Nodes that stay keep their names, and their order from above.
        for name in pruned.names:
            assert pruned.index(name) == where[taxonomy.index(name)]
            assert ancestors(pruned, name) == [a for a in ancestors(taxonomy, name) if a in set(pruned.names)]
        again, same = pruned.prune()
        assert again == pruned
        np.testing.assert_array_equal(same, np.arange(pruned.n_nodes))

    def test_prune_chains(self):
        taxonomy = Taxonomy.from_paths([("a", "b", "c", "d", "x"), ("a", "b", "e", "y"), ("a", "b", "e", "z")])
        pruned, where = taxonomy.prune()
        assert pruned.to_edges() == [("root", "e"), ("root", "x"), ("e", "y"), ("e", "z")]
        stands = {name: pruned.names[where[p]] for p, name in enumerate(taxonomy.names)}
        assert stands == {
            "root": "root", "a": "root", "b": "root", "c": "x", "d": "x", "x": "x", "e": "e", "y": "y", "z": "z",
        }  # fmt: skip
        pruned, where = Taxonomy.from_paths([("a", "b", "x")]).prune()
        assert pruned.names.tolist() == ["root", "x"]
        assert where.tolist() == [0, 0, 0, 1]


class TestProtocols:
    def test_equality(self, taxonomy):
        same = Taxonomy.from_edges(taxonomy.to_edges())
        assert same == taxonomy
        assert hash(same) == hash(taxonomy)
        dotted = Taxonomy.from_parents(taxonomy.parents, taxonomy.names.tolist(), separator=".")
        assert dotted != taxonomy  # with_classes would give its nodes other names
        assert hash(dotted) != hash(taxonomy)
        assert len(taxonomy) == taxonomy.n_nodes
        renamed = taxonomy.names.copy()
        renamed[0] = "another"
        assert Taxonomy(taxonomy.parents, renamed) != taxonomy
        assert taxonomy != "a string"

    def test_shape_matters(self):
        assert Taxonomy([-1, 0, 1, 1]) != Taxonomy([-1, 0, 0, 1])
        assert Taxonomy([-1, 0, 0], ["r", "a", "b"]) != Taxonomy([-1, 0, 0], ["r", "b", "a"])

    def test_copies(self, taxonomy):
        for other in (pickle.loads(pickle.dumps(taxonomy)), copy.copy(taxonomy), copy.deepcopy([taxonomy])[0]):
            assert other == taxonomy
            assert not other.parents.flags.writeable
            np.testing.assert_array_equal(other.leaf_end, taxonomy.leaf_end)

    def test_clone(self):
        class Estimator(BaseEstimator):
            def __init__(self, taxonomy=None):
                self.taxonomy = taxonomy

        assert clone(Estimator(sample())).taxonomy == sample()

    def test_repr(self):
        assert repr(sample()) == "Taxonomy(4 classes, 4 inner nodes, height 3)"
        assert repr(Taxonomy([-1, 0])) == "Taxonomy(1 class, 1 inner node, height 1)"


class TestDrawing:
    def test_whole_tree(self):
        expected = ["root", "├── stone", "├── animal", "│   ├── animal/cat", "│   └── animal/dog"]
        expected += ["└── plant", "    └── plant/tree", "        └── plant/tree/oak"]
        assert str(sample()).splitlines() == expected

    def test_never_too_long(self, taxonomy):
        for max_lines in (3, 4, 7, 12, 25, 60, 100):
            for max_children in (None, 1, 4):
                lines = taxonomy.to_text(max_lines, max_children).splitlines()
                assert len(lines) <= max_lines
                if max_children is None and max_lines == 100:
                    assert sorted(line.split("─ ")[-1] for line in lines) == sorted(map(str, taxonomy.names))

    def test_abbreviated(self):
        taxonomy = Taxonomy.from_labels([f"{a}/{b}" for a in "abc" for b in range(100)] + [f"z{i}" for i in range(50)])
        expected = ["root", *(f"├── z{i}" for i in range(5))]
        for name in "abc":
            expected += [f"├── {name}", f"│   ├── {name}/0", f"│   ├── {name}/1", "│   └── ... 98 more"]
        assert taxonomy.to_text(20).splitlines() == [*expected, "└── ... 45 more"]
        expected = ["root", "├── z0", "├── a (100 classes)", "└── ... 51 more (249 classes)"]
        assert taxonomy.to_text(5).splitlines() == expected
        flat = Taxonomy.from_labels([f"c{i}" for i in range(40)]).to_text(max_children=3)
        assert flat.splitlines() == ["root", "├── c0", "├── c1", "├── c2", "└── ... 37 more"]

    def test_values(self):
        taxonomy = Taxonomy.from_labels([f"c{i}" for i in range(40)])
        values = np.zeros(41)
        values[0], values[1 + 30], values[1 + 7] = 1.0, 0.75, 0.25
        text = taxonomy.to_text(max_children=2, values=values)
        assert [line.split()[1] for line in text.splitlines()[1:3]] == ["c7", "c30"]
        assert "25.0 %" in text
        assert "75.0 %" in text
        assert "-3" in taxonomy.to_text(values=np.full(41, -3.0))
        taxonomy.to_text(values=np.full(41, np.nan))
        with pytest.raises(ValueError, match=r"values has shape \(3,\), expected \(41,\)"):
            taxonomy.to_text(values=[1, 2, 3])
        with pytest.raises(ValueError, match="max_lines is 1"):
            taxonomy.to_text(1)

    def test_small_values_left_out(self):
        taxonomy = sample()
        names = taxonomy.names.tolist()
        values = dict.fromkeys(names, 0.0)
        values |= {"root": 1.0, "stone": 0.25, "animal": 0.75, "animal/cat": 0.03, "animal/dog": 0.02}
        numbers = [values[name] for name in names]
        lines = taxonomy.to_text(values=numbers, least=0.1).splitlines()
        assert [line[:22].rstrip() for line in lines] == ["root", "├── stone", "└── animal (2 classes)"]
        notes = {"plant/tree": "here", "stone": "and here"}
        lines = taxonomy.to_text(values=numbers, least=0.1, notes=notes, ascii_only=True).splitlines()
        assert lines == [
            "root                          ############ 100.0 %",
            "|-- stone                     ###.........  25.0 %  and here",
            "|-- animal (2 classes)        #########...  75.0 %",
            "`-- plant                     ............   0.0 %",
            "    `-- plant/tree (1 class)  ............   0.0 %  here",
        ]
        assert taxonomy.to_text(values=numbers, least=0.0) == taxonomy.to_text(values=numbers)
        with pytest.raises(ValueError, match=r"least is 0\.1, but there are no values"):
            taxonomy.to_text(least=0.1)
        with pytest.raises(ValueError, match="notes: not in the taxonomy: 'plnt'"):
            taxonomy.to_text(notes={"plnt": ""})

    def test_least_is_a_filter(self, taxonomy):
        values = np.random.default_rng(0).random(taxonomy.n_classes)
        totals = np.array([values[a:b].sum() for a, b in zip(taxonomy.leaf_begin, taxonomy.leaf_end, strict=True)])
        totals /= totals[0]
        lines = taxonomy.to_text(1000, values=totals, least=0.1).splitlines()
        shown = [re.sub(r" \(\d+ class(es)?\)$", "", re.split("  +[█·]", line)[0]).split("─ ")[-1] for line in lines]
        assert sorted(name.strip() for name in shown) == sorted(map(str, taxonomy.names[totals >= 0.1]))

    def test_ascii(self):
        taxonomy = Taxonomy.from_paths([("ä", "x"), ("ä", "y"), ("█",)])
        text = taxonomy.to_text(values=np.linspace(1, 0, 5), ascii_only=True, notes={"x": "→"})
        assert text.isascii()
        assert r"\xe4" in text
        assert r"\u2192" in text
        lines = text.splitlines()
        assert len({line.index("%") for line in lines}) == 1  # escapes do not upset the columns

    def test_notes_without_values(self):
        lines = sample().to_text(notes={"animal/dog": "woof"}).splitlines()
        assert lines[4] == "│   └── animal/dog  woof"
        assert [line for line in lines if "woof" in line] == [lines[4]]

    def test_strange_names(self):
        text = str(Taxonomy.from_paths([("a\nb", "x" * 500)]))
        assert len(text.splitlines()) == 3
        assert max(map(len, text.splitlines())) < 80

    def test_plot(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        from matplotlib import pyplot as plt

        taxonomy = Taxonomy.from_labels([f"{a}/{b}" for a in "abc" for b in range(100)] + ["$x_1^$"])
        try:
            for options, n_texts, note in [
                ({}, 5, "301 classes, drawn down to depth 1 of 2"),
                ({"max_leaves": 301}, 305, "301 classes"),
                ({"max_leaves": 2}, 3, "the first 2 of 4 nodes below the root"),
                ({"values": np.linspace(0, 1, taxonomy.n_nodes)}, 5, "301 classes"),
            ]:
                ax = taxonomy.plot(**options)
                assert len(ax.texts) == n_texts
                assert note in ax.get_title(loc="left")
            assert sample().plot(ax=ax) is ax
            ax.figure.canvas.draw()
            deep = Taxonomy(np.arange(1000) - 1).plot()
            assert "drawn down to depth 20 of 999" in deep.get_title(loc="left")
            with pytest.raises(ValueError, match="max_leaves is 0"):
                taxonomy.plot(max_leaves=0)
        finally:
            plt.close("all")


class TestSize:
    def test_deep_chain(self):
        n = 100_000
        taxonomy = Taxonomy.from_parents(np.arange(n) - 1)
        assert taxonomy.height == n - 1
        assert taxonomy == Taxonomy.from_paths([range(1, n)], root=0) == Taxonomy.from_edges(taxonomy.to_edges())
        assert len(taxonomy.path(n - 1)) == n - 1
        assert taxonomy.common_depth(n - 1, n - 2) == n - 2
        pruned, where = taxonomy.prune()
        assert pruned.names.tolist() == [0, n - 1]
        assert where.sum() == 1
        assert len(str(taxonomy).splitlines()) <= 60
        assert pickle.loads(pickle.dumps(taxonomy)) == taxonomy
        with pytest.raises(ValueError, match=r"0 -> 1 -> .*\.\.\..* form a cycle"):
            Taxonomy.from_edges([*taxonomy.to_edges(), (n - 1, 0)])

    def test_many_classes(self):
        labels = [f"{i // 5000}/{i // 100}/{i // 4}/{i}" for i in range(100_000)]
        taxonomy = Taxonomy.from_labels(labels)
        assert (taxonomy.n_classes, taxonomy.n_inner) == (100_000, 1 + 20 + 1000 + 25_000)
        assert taxonomy == Taxonomy.from_paths([label.split("/") for label in labels], separator="/")
        assert taxonomy == Taxonomy.from_edges(taxonomy.to_edges())
        np.testing.assert_array_equal(taxonomy.leaf_index(labels), np.arange(100_000))
        assert len(str(taxonomy).splitlines()) <= 60
