"""Directed acyclic and undirected graphs of classes."""

import copy
import gzip
import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from taxolearn import ClassGraph, Taxonomy

DIAMOND = [("top", "a"), ("top", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
OBO = """format-version: 1.2
! a comment

[Term]
id: X:1
name: top

[Term]
id: X:2
is_a: X:1 ! top
relationship: part_of X:4 {source="somebody"} ! other
relationship: regulates X:3

[Term]
id: X:3
is_a: X:1
is_obsolete: true

[Term]
id: X:4
is_a: X:1

[Typedef]
id: part_of
is_a: X:1
"""


@st.composite
def graphs(draw, directed=None):
    """Any graph: with cycles or without, of several components, with nodes that have no edge."""
    n_nodes = draw(st.integers(1, 12))
    directed = draw(st.booleans()) if directed is None else directed
    node = st.integers(0, n_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=25))
    if directed:  # parents come first in some order
        pairs = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    order = draw(st.permutations(range(n_nodes)))
    return ClassGraph([f"n{k}" for k in range(n_nodes)], [(order[a], order[b]) for a, b in pairs], directed=directed)


def test_a_small_dag():
    graph = ClassGraph.from_edges(DIAMOND)
    assert graph.names.tolist() == ["top", "a", "b", "c", "d"]
    assert (graph.n_nodes, graph.n_edges, len(graph)) == (5, 5, 5)
    assert (graph.roots, graph.leaves) == (["top"], ["d"])
    assert (graph.parents("c"), graph.children("top"), graph.neighbors("c")) == (
        ["a", "b"],
        ["a", "b"],
        ["a", "b", "d"],
    )
    assert graph.ancestors("c") == ["top", "a", "b"]
    assert graph.descendants("a") == ["c", "d"]
    assert repr(graph) == "ClassGraph(5 nodes, 5 edges, directed)"
    assert not graph.is_tree
    assert graph.to_edges() == sorted(DIAMOND, key=lambda pair: [graph.index(name) for name in pair])


def test_an_undirected_graph_may_have_cycles_loops_and_repeated_edges():
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"), ("c", "c")]
    graph = ClassGraph.from_edges(edges, names=["alone"], directed=False)
    assert graph.edges.tolist() == [[1, 2], [1, 3], [2, 3]]
    assert graph.components().tolist() == [0, 1, 1, 1]
    assert graph.neighbors("alone") == []
    for what in ("roots", "leaves"):
        with pytest.raises(ValueError, match=f"{what}: the graph is undirected"):
            getattr(graph, what)
    for what in ("parents", "children", "ancestors", "descendants"):
        with pytest.raises(ValueError, match="undirected"):
            getattr(graph, what)("a")
    with pytest.raises(ValueError, match="undirected"):
        graph.to_taxonomy()


def test_equality_hash_copies_and_immutability():
    graph = ClassGraph.from_edges(DIAMOND)
    again = ClassGraph.from_edges([*DIAMOND, DIAMOND[0]])
    assert graph == again
    assert hash(graph) == hash(again)
    assert graph != ClassGraph.from_edges(DIAMOND, directed=False)
    assert graph != ClassGraph.from_edges(DIAMOND[:-1])
    assert graph != "graph"
    assert copy.deepcopy(graph) is copy.copy(graph) is graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    with pytest.raises(AttributeError, match="cannot be changed"):
        graph.names = []
    with pytest.raises(AttributeError, match="cannot be changed"):
        del graph.names
    with pytest.raises(ValueError, match="read-only"):
        graph.edges[0, 0] = 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"edges": [("a", "b"), ("b", "c"), ("c", "a")]},
            ValueError,
            "c -> a -> b -> c form a cycle; .*directed=False",
        ),
        ({"edges": [("a", "b"), ("b", "b")]}, ValueError, r"edges\[1\]: 'b' is its own parent"),
        ({"edges": [("a", "b", "c")]}, ValueError, r"edges\[0\] is .*expected a pair"),
        ({"edges": ["ab"]}, ValueError, r"edges\[0\] is 'ab', expected a pair"),
        ({"edges": [("a", 1.5)]}, TypeError, r"edges\[0\]: names are strings or integers"),
        ({"edges": [("a", "")]}, ValueError, r"edges\[0\]: a name is empty"),
        ({"edges": [], "names": ["a", "a"]}, ValueError, r"names\[0\] and names\[1\] are both 'a'"),
        ({"edges": []}, ValueError, "names is empty"),
        ({"edges": [("a", "b")], "directed": "yes"}, TypeError, "directed is 'yes'"),
    ],
)
def test_bad_edges(arguments, error, message):
    with pytest.raises(error, match=message):
        ClassGraph.from_edges(**arguments)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 2]], r"edges\[0\] has the node 2, expected 0 to 1"),
        ([[0, -1]], r"edges\[0\] has the node -1"),
        ([0, 1], r"edges has shape \(2,\)"),
        ([[0.0, 1.0]], "type float64"),
    ],
)
def test_bad_numbers_of_nodes(edges, message):
    with pytest.raises(ValueError, match=message):
        ClassGraph(["a", "b"], edges)


def test_unknown_names_are_named_with_a_close_one():
    graph = ClassGraph.from_edges(DIAMOND)
    with pytest.raises(ValueError, match="y: not in the graph: 'tpo'; is 'top' meant"):
        graph.index(["a", "tpo"], argument="y")
    with pytest.raises(ValueError, match="the graph's names are strings such as 'd', these are integers"):
        graph.index([3])
    with pytest.raises(ValueError, match="not in the graph: 'x'"):
        ClassGraph(["alone"], []).index("x")
    with pytest.raises(TypeError, match="expected the name of one node"):
        graph.parents(["a"])


def test_trees_there_and_back():
    tree = Taxonomy.from_labels(["a/b", "a/c", "d"])
    graph = ClassGraph.from_taxonomy(tree)
    assert graph.is_tree
    assert graph.to_taxonomy() == tree
    assert ClassGraph.from_edges(DIAMOND[:3]).is_tree
    with pytest.raises(ValueError, match="'c' has two parents"):
        ClassGraph.from_edges(DIAMOND).to_taxonomy()
    with pytest.raises(ValueError, match="nodes without edges: 'alone'"):
        ClassGraph.from_edges([("a", "b")], names=["alone"]).to_taxonomy()
    with pytest.raises(TypeError, match=r"taxolearn\.Taxonomy"):
        ClassGraph.from_taxonomy("tree")


def test_part_of_a_graph():
    graph = ClassGraph.from_edges(DIAMOND)
    part = graph.subgraph(["c", "a", "top"])
    assert part.names.tolist() == ["c", "a", "top"]
    assert sorted(part.to_edges()) == [("a", "c"), ("top", "a")]
    with pytest.raises(ValueError, match="twice"):
        graph.subgraph(["a", "a"])
    with pytest.raises(ValueError, match="not in the graph: 'x'"):
        graph.subgraph(["x"])


def test_separated_nodes_are_no_neighbours():
    graph = ClassGraph.from_edges(DIAMOND)
    apart = graph.separated(["a", "c", "d"])
    assert apart.names.tolist() == [*graph.names.tolist(), "a | c", "c | d"]
    assert not apart.directed
    assert apart.neighbors("c") == ["b", "a | c", "c | d"]
    assert graph.separated(["a", "b"]).edges.tolist() == graph.edges.tolist()


def test_obo(tmp_path):
    plain, zipped = tmp_path / "x.obo", tmp_path / "x.obo.gz"
    plain.write_text(OBO)
    zipped.write_bytes(gzip.compress(OBO.encode()))
    graph = ClassGraph.from_obo(plain)
    assert graph == ClassGraph.from_obo(zipped)
    assert graph.names.tolist() == ["X:1", "X:2", "X:4"]
    assert sorted(graph.to_edges()) == [("X:1", "X:2"), ("X:1", "X:4"), ("X:4", "X:2")]
    assert sorted(ClassGraph.from_obo(plain, relations=["is_a"]).to_edges()) == [("X:1", "X:2"), ("X:1", "X:4")]
    with pytest.raises(TypeError, match="relations is 'is_a'"):
        ClassGraph.from_obo(plain, relations="is_a")
    (tmp_path / "other").write_text("a b\n")
    with pytest.raises(ValueError, match="there are no terms"):
        ClassGraph.from_obo(tmp_path / "other")
    (tmp_path / "other").write_text("[Term]\nname: x\n")
    with pytest.raises(ValueError, match="a term has no id"):
        ClassGraph.from_obo(tmp_path / "other")


def test_networkx_refuses_other_things():
    with pytest.raises(TypeError, match="graph is of type list"):
        ClassGraph.from_networkx([])


def test_drawing():
    graph = ClassGraph.from_edges(DIAMOND)
    text = "top\n|-- b\n`-- a\n    `-- c  also below b\n        `-- d"
    assert graph.to_text(ascii_only=True) == text
    assert str(ClassGraph(["alone"], [])) == "alone"
    triangle = ClassGraph.from_edges([("a", "b"), ("b", "c"), ("a", "c"), ("graph", "x")], directed=False)
    assert str(triangle).splitlines()[0] == "graph*"
    assert "also next to b" in str(triangle)


def test_figure(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = ClassGraph.from_edges(DIAMOND).plot()
    dashed = axes.collections[1]
    assert len(dashed.get_segments()) == 1
    axes.figure.savefig(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").stat().st_size > 0
    with pytest.raises(ValueError, match="one node only"):
        ClassGraph(["alone"], []).plot()


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_networkx_says_the_same(graph):
    there = graph.to_networkx()
    assert ClassGraph.from_networkx(there) == graph
    assert there.is_directed() == graph.directed
    undirected = there.to_undirected()
    assert graph.components().max() + 1 == nx.number_connected_components(undirected)
    assert graph.is_tree == (nx.is_arborescence(there) if graph.directed else nx.is_tree(there))
    for name in graph.names.tolist():
        assert set(graph.neighbors(name)) == set(undirected.neighbors(name))
        if graph.directed:
            assert set(graph.ancestors(name)) == nx.ancestors(there, name)
            assert set(graph.descendants(name)) == nx.descendants(there, name)
    assert len(str(graph).splitlines()) >= graph.n_nodes


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_neighbours_have_different_colours(graph):
    colors = graph.coloring()
    assert (colors[graph.edges[:, 0]] != colors[graph.edges[:, 1]]).all()
    degrees = np.bincount(graph.edges.ravel(), minlength=graph.n_nodes)
    assert colors.min() >= 0
    assert colors.max() <= degrees.max()


@settings(deadline=None, max_examples=60)
@given(graphs(directed=True), st.integers(0, 2**32 - 1))
def test_label_sets_closed_upwards(graph, seed):
    labels = np.random.default_rng(seed).random((7, graph.n_nodes)) < 0.2
    closed = graph.closed_upwards(sp.csr_matrix(labels))
    assert closed.dtype == np.bool_
    names = graph.names
    for row, have in zip(closed.toarray(), labels, strict=True):
        expected = set(names[have]).union(*(graph.ancestors(name) for name in names[have]))
        assert set(names[row]) == expected
    assert (graph.closed_upwards(closed) != closed).nnz == 0
    assert (graph.closed_upwards(labels.astype(np.float32)) != closed).nnz == 0


def test_label_sets_of_another_graph_are_refused():
    with pytest.raises(ValueError, match="labels has 3 columns, expected 5"):
        ClassGraph.from_edges(DIAMOND).closed_upwards(np.ones((2, 3)))


def test_gene_ontology(data_file):
    with gzip.open(data_file("hmc/cellcycle_GO.train.arff.gz"), "rt") as file:
        line = next(line for line in file if line.lower().startswith("@attribute class"))
    graph = ClassGraph.from_edges([pair.split("/") for pair in line.split()[-1].split(",")])
    parents = np.bincount(graph.edges[:, 1], minlength=graph.n_nodes)
    assert (graph.n_nodes, int((parents > 1).sum()), graph.roots) == (4126, 1477, ["root"])
    closed = graph.closed_upwards(sp.identity(graph.n_nodes, format="csr"))
    some = graph.index("GO0008574")
    assert set(graph.names[closed[[some]].indices]) == {"GO0008574", *graph.ancestors("GO0008574")}
