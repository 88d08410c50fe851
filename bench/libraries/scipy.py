"""SciPy: L-BFGS-B."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize, sparse

from bench.libraries.contracts import MOST_ITERATIONS, PAIRS, Solver, SolverEntry, Task, Weights
from bench.problems.data import Floats


def solver(task: Task, product: Callable[[Any, Any], Any] = lambda matrix, array: matrix @ array) -> Solver:
    """L-BFGS-B; ``product`` multiplies Z and Z' by arrays."""
    Z, labels = task.scaled(), task.labels()
    transposed = sparse.csr_matrix(Z.T) if sparse.issparse(Z) else Z.T
    shape = (Z.shape[1], int(labels.max()) + 1)
    truth = np.arange(Z.shape[0]), labels

    def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(shape)
        u = product(Z, W)
        u -= u.max(axis=1, keepdims=True)
        right = float(u[truth].sum())
        np.exp(u, out=u)
        sums = u.sum(axis=1, keepdims=True)
        u /= sums
        u[truth] -= 1.0
        gradient = product(transposed, u)
        gradient += W
        return float(np.log(sums).sum()) - right + 0.5 * float(flat @ flat), gradient.ravel()

    def fit(tol: float) -> Weights:
        options = {
            "gtol": tol,
            "ftol": 0.0,
            "maxcor": PAIRS,
            "maxiter": MOST_ITERATIONS,
            "maxfun": 2 * MOST_ITERATIONS,
        }
        start = np.zeros(shape[0] * shape[1])
        found = optimize.minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
        return Weights(found.x.reshape(shape), int(found.nit))

    return task.solver(fit)


SOLVERS = {"scipy L-BFGS-B": SolverEntry(solver)}
