"""Random trees, and hierarchical logistic regression in a few lines of NumPy, to hold the library against."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr, log_softmax, softmax

from taxolearn import Taxonomy


def random_taxonomy(seed, n_nodes=None, reach=None):
    """A tree of any shape: a node hangs below one of the `reach` nodes before it, so 1 makes a chain, many a bush."""
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(2, 201)) if n_nodes is None else n_nodes
    reach = int(rng.choice([1, 2, 5, 20, 200])) if reach is None else reach
    parents = [-1] + [int(k - 1 - rng.integers(min(reach, k))) for k in range(1, n_nodes)]
    return Taxonomy.from_parents(parents)


def paths(taxonomy):
    """Phi (classes x nodes): 1 where a node is the leaf or above it, the root included."""
    phi = np.zeros((taxonomy.n_classes, taxonomy.n_nodes))
    for c in range(taxonomy.n_classes):
        node = taxonomy.n_inner + c
        while node >= 0:
            phi[c, node] = 1
            node = taxonomy.parents[node]
    return phi


def half_path(taxonomy, a, b):
    """Half the length of the path between two nodes."""
    up_a, up_b = set(), set()
    for node, up in ((a, up_a), (b, up_b)):
        while node > 0:
            up.add(node)
            node = taxonomy.parents[node]
    return len(up_a ^ up_b) / 2


class Hierarchical:
    """Phi(w) = sum_i s_i (logsumexp(u_i) - u_i[y_i]) + |w|^2 / 2 with w = (W, b), u = X W R^T + sigma 1 b^T.

    R = Phi diag(sqrt(v)), v the variance of every node (the kernel's multiplied in); y holds leaf indices.
    """

    def __init__(self, X, y, taxonomy, v, sigma2, weights=None):
        self.X, self.y = np.asarray(X, dtype=float), y
        self.R = (paths(taxonomy) * np.sqrt(v))[:, 1:]
        self.sigma = np.sqrt(sigma2)
        self.s = np.ones(len(y)) if weights is None else weights
        self.target = np.eye(len(self.R))[y]

    def functions(self, w):
        """(coef, intercept) of the classes, in the order of the taxonomy."""
        n_roots = self.R.shape[1]
        W = w[: self.X.shape[1] * n_roots].reshape(-1, n_roots)
        return self.R @ W.T, self.sigma * w[W.size :]

    def value_and_gradient(self, w):
        coef, intercept = self.functions(w)
        log_p = log_softmax(self.X @ coef.T + intercept, axis=1)
        residual = self.s[:, None] * (np.exp(log_p) - self.target)
        value = -self.s @ (self.target * log_p).sum(axis=1) + w @ w / 2
        gradient = np.concatenate([(self.X.T @ residual @ self.R).ravel(), self.sigma * residual.sum(axis=0)])
        return value, w + gradient

    def optimum(self):
        start = np.zeros(self.X.shape[1] * self.R.shape[1] + len(self.R))
        options = {"maxiter": 10000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-9}
        return minimize(self.value_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x

    def dual(self, coef, intercept):
        """A lower bound of the minimum, from the probabilities of these class functions."""
        p = softmax(self.X @ coef.T + intercept, axis=1)
        alpha = self.s[:, None] * (self.target - p)
        square = ((self.X.T @ alpha @ self.R) ** 2).sum() + self.sigma**2 * (alpha.sum(axis=0) ** 2).sum()
        return self.s @ entr(p).sum(axis=1) - square / 2
