"""Trees and graphs of classes as graphs of the package networkx."""

from typing import Any

from taxolearn.taxonomy.nodes import Name, Nodes, nodes_from_edges, shown

__all__ = ["graph_from_networkx", "nodes_from_networkx", "to_digraph"]


def nodes_from_networkx(graph: Any) -> Nodes:
    """The nodes of a directed graph whose edges go from parent to child."""
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise TypeError(f"graph is of type {type(graph).__name__}, expected a networkx.DiGraph")
    if not graph.is_directed():
        raise ValueError("graph is undirected, expected a networkx.DiGraph whose edges go from parent to child")
    alone = [node for node in graph.nodes if graph.degree(node) == 0]
    if alone:
        raise ValueError(f"graph has nodes without edges: {shown(alone)}; a taxonomy is one tree")
    return nodes_from_edges(list(graph.edges()), root=None, place=lambda i: f"edge {i} of graph")


def graph_from_networkx(graph: Any) -> tuple[list[Any], list[tuple[Any, Any]], bool]:
    """Nodes and edges of a graph, and whether it is directed."""
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise TypeError(f"graph is of type {type(graph).__name__}, expected a networkx.DiGraph or networkx.Graph")
    return list(graph.nodes), list(graph.edges()), bool(graph.is_directed())


def to_digraph(names: list[Name], edges: list[tuple[Name, Name]], *, directed: bool = True) -> Any:
    """A ``networkx.DiGraph`` with edges from parent to child, or a ``networkx.Graph``."""
    try:
        import networkx as nx
    except ImportError as error:
        raise ImportError("to_networkx needs the package networkx: pip install networkx") from error
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(edges)
    return graph
