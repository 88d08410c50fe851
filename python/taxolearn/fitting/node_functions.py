"""Linear functions of classes with sparse weights, stored as what each node of a tree adds to those of its parent."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.fitting.functions import LinearFunctions, linked
from taxolearn.fitting.recursive import RecursiveFit, node_weights

__all__ = ["NodeFunctions", "functions_of"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BYTES_PER_WEIGHT = 12  # of a sparse matrix; of a dense one it is 8


@dataclass(frozen=True, eq=False)
class NodeFunctions:
    """``u(x) = coef x + intercept``, where ``coef`` is sparse.

    Attributes
    ----------
    weights : csr_array of shape (n_nodes, n_features)
        What each node adds to the weights of its parent; without a tree, nodes are the classes.
    intercepts : ndarray of shape (n_nodes,)
        The same for the intercepts.
    parents : ndarray of shape (n_nodes,) or None
        Number of each node's parent, -1 for a root. Leaves, which come last, are the classes in the core's order.
    order : ndarray of shape (n_classes,)
        From the core's order of classes to ours.
    link, temperature
        How predictors become probabilities.
    """

    weights: Any
    intercepts: Floats
    parents: Integers | None
    order: npt.NDArray[np.intp]
    link: str = "softmax"
    temperature: float = 1.0

    @property
    def n_features(self) -> int:
        return int(self.weights.shape[1])

    @property
    def coef(self) -> sp.csr_array:
        """Weights of the classes, a sparse array of shape (n_classes, n_features)."""
        if self.parents is None:
            return sp.csr_array(self.weights[self.order])
        return sp.csr_array(self._paths() @ self.weights)

    @property
    def intercept(self) -> Floats:
        """Intercepts of the classes."""
        if self.parents is None:
            return self.intercepts[self.order]
        out: Floats = self._paths() @ self.intercepts
        return out

    def with_link(self, link: str, temperature: float) -> "NodeFunctions":
        """The same functions, from which probabilities come in another way."""
        return replace(self, link=link, temperature=temperature)

    def shifted(self, offset: float) -> "NodeFunctions":
        """With a number added to all predictors."""
        is_top = np.ones(len(self.intercepts)) if self.parents is None else (self.parents < 0).astype(np.float64)
        return replace(self, intercepts=self.intercepts + offset * is_top)

    def output(self, X: Any, output: str, n_threads: int) -> Floats:
        """Predictors of checked inputs, probabilities ("probability") or their logarithms ("log_probability")."""
        u = node_weights(self.weights, self.intercepts, self.parents).scores(X, n_threads=n_threads)
        if not np.array_equal(self.order, np.arange(len(self.order))):
            u = u[:, self.order]
        return linked(u, output, self.link, self.temperature)

    def top(self, X: Any, k: int, n_threads: int) -> tuple[npt.NDArray[np.intp], Floats]:
        """Numbers of the k classes with the largest predictors in each row, and these; without all of a row's."""
        found, values = node_weights(self.weights, self.intercepts, self.parents).top(X, k, n_threads=n_threads)
        ours: npt.NDArray[np.intp] = np.argsort(self.order)[found]
        return ours, values

    def _paths(self) -> sp.csr_array:
        """1 for the nodes on the path to each class."""
        assert self.parents is not None
        n_nodes, n_classes = len(self.parents), len(self.order)
        rows, columns = [], []
        below, at = np.arange(n_classes), n_nodes - n_classes + self.order.astype(np.int64)
        while len(at) > 0:
            rows.append(below)
            columns.append(at)
            at = self.parents[at]
            below, at = below[at >= 0], at[at >= 0]
        place = (np.concatenate(rows), np.concatenate(columns))
        return sp.csr_array((np.ones(len(place[0])), place), shape=(n_classes, n_nodes))


def functions_of(fit: RecursiveFit, order: npt.NDArray[np.intp]) -> LinearFunctions | NodeFunctions:
    """The functions of a fit, in whichever form is smaller."""
    sparse = NodeFunctions(fit.weights, fit.intercepts, fit.parents, order)
    if _BYTES_PER_WEIGHT * fit.weights.nnz < 8 * len(order) * fit.weights.shape[1]:
        return sparse
    return LinearFunctions(sparse.coef.toarray(), sparse.intercept)
