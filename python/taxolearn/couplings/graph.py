"""Classes that are nodes of a graph: the estimator's argument, and the prior precision that it means."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from taxolearn import _core
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.validation import check_number

__all__ = ["Graph", "GraphPrecision"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Graph(BaseEstimator):
    """Functions of classes are alike where a graph joins them: ``coupling=Graph(graph)``.

    Every node has a function, and a priori the density of all functions is proportional to
    ``exp(-1/2 (sum_edges weight |f_i - f_j|^2 + ridge sum_nodes |f_i|^2))``, with norms that the kernel defines:
    recursive regularization on graphs (Gopal, Yang, ACM TKDD 9, 2015, section 4), made proper by the ridge. Labels are
    names of nodes; the functions of all other nodes are latent. The direction of edges does not matter. ``ridge`` is
    learned along with the kernel's parameters.

    Parameters
    ----------
    graph : ClassGraph
        The graph. All labels must be among its nodes.
    ridge : float, default=0.1
        How strongly the functions themselves are drawn to zero, compared with differences along edges of weight 1.
        With a small one, classes share much even if they are far apart. Learning starts from this value.
    anchors : sequence of names, default=None
        The nodes that have the ridge, at least one in each connected component; None means all. With the root of a tree
        as the only anchor this is ``Tree(tying="shared", root_variance=1 / ridge)``.
    weights : array of shape (n_edges,), default=None
        Positive weights of the edges, in the order of ``graph.edges``; None means 1.
    dummy_nodes : bool, default=False
        Whether a node without data stands on each edge between two classes, so that these lean on it instead of each
        other (5.1 of the paper). That is the same as half the weight, as its function is known given both ends.

    Examples
    --------
    >>> import numpy as np
    >>> from taxolearn import ClassGraph, Graph, KernelLogisticClassifier
    >>> graph = ClassGraph.from_edges([("pet", "cat"), ("pet", "dog"), ("wild", "wolf"), ("dog", "wolf")])
    >>> X, y = np.eye(3), ["cat", "dog", "wolf"]
    >>> model = KernelLogisticClassifier(coupling=Graph(graph, ridge=0.5), tuning=None).fit(X, y)
    >>> model.hyperparameters_.ridge
    0.5
    """

    def __init__(
        self, graph: Any, *, ridge: float = 0.1, anchors: Any = None, weights: Any = None, dummy_nodes: bool = False
    ) -> None:
        self.graph = graph
        self.ridge = ridge
        self.anchors = anchors
        self.weights = weights
        self.dummy_nodes = dummy_nodes

    def precision(self, classes: npt.NDArray[Any]) -> "GraphPrecision":
        """The prior precision, all checked, for these labels."""
        if not isinstance(self.graph, ClassGraph):
            raise TypeError(f"graph must be a taxolearn.ClassGraph, got {type(self.graph).__name__}")
        ridge = check_number("ridge", self.ridge, least=0, strict=True)
        if not isinstance(self.dummy_nodes, bool | np.bool_):
            raise TypeError(f"dummy_nodes is {self.dummy_nodes!r}, expected True or False")
        nodes = self.graph.index(classes, argument="y")
        weights = self._edge_weights()
        if self.dummy_nodes:
            is_class = np.zeros(self.graph.n_nodes, dtype=bool)
            is_class[nodes] = True
            weights = np.where(is_class[self.graph.edges].all(axis=1), 0.5 * weights, weights)
        return GraphPrecision(self.graph.edges, weights, self._anchored(), nodes, ridge)

    def _edge_weights(self) -> Floats:
        n_edges = self.graph.n_edges
        if self.weights is None:
            return np.ones(n_edges)
        try:
            weights = np.array(self.weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"weights must be an array of numbers, got {type(self.weights).__name__}") from None
        if weights.shape != (n_edges,):
            raise ValueError(f"weights has shape {weights.shape}, expected ({n_edges},), one per edge of the graph")
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
        if len(wrong) > 0:
            raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}, expected a finite number above 0")
        return weights

    def _anchored(self) -> Floats:
        """1 for nodes that have the ridge, 0 for others."""
        if self.anchors is None:
            return np.ones(self.graph.n_nodes)
        anchors = np.atleast_1d(self.graph.index(self.anchors, argument="anchors"))
        components = self.graph.components()
        free = np.flatnonzero(~np.isin(components, components[anchors]))
        if len(free) > 0:
            raise ValueError(
                f"anchors: none is connected with {self.graph.names[free[0]]!r}; name one node in each of the "
                f"{components.max() + 1} components of the graph, or leave anchors out"
            )
        out = np.zeros(self.graph.n_nodes)
        out[anchors] = 1.0
        return out


@dataclass(frozen=True, eq=False)
class GraphPrecision:
    """``Q = sum_edges weight (e_i - e_j) (e_i - e_j)' + ridge diag(anchored)``, and the nodes that are classes."""

    edges: Integers
    weights: Floats
    anchored: Floats
    classes: Integers
    ridge: float

    def matrix(self) -> sp.csr_array:
        """Q, of all nodes."""
        first, second = self.edges.T
        n = len(self.anchored)
        joined = sp.csr_array((self.weights, (first, second)), shape=(n, n))
        joined = joined + joined.T
        return sp.csr_array(sp.diags_array(joined.sum(axis=1) + self.ridge * self.anchored) - joined)

    def to_core(self, variance: float = 1.0) -> _core.GraphCoupling:
        """The coupling with the covariance ``variance inv(Q)[classes, classes]``."""
        first, second = (np.ascontiguousarray(ends) for ends in self.edges.T)
        return _core.GraphCoupling(first, second, self.weights, self.ridge * self.anchored, self.classes, variance)
