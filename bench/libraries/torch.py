"""torch: LBFGS with sparse products that are made differentiable by hand."""

import importlib
from functools import partial
from typing import Any

from scipy import sparse

from bench.libraries.contracts import MOST_ITERATIONS, PAIRS, Solver, SolverEntry, Task, Weights


def solver(task: Task, dtype: str) -> Solver:
    """LBFGS in the given precision."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(task.n_threads)
    Z = task.scaled().astype(dtype)
    labels = torch.from_numpy(task.labels())
    shape = (Z.shape[1], int(labels.max()) + 1)

    def tensor(matrix: Any) -> Any:
        if not sparse.issparse(matrix):
            return torch.from_numpy(matrix)
        matrix = sparse.csr_matrix(matrix)
        parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(*parts, size=matrix.shape)

    forward, backward = tensor(Z), tensor(Z.T)

    class Product(torch.autograd.Function):  # type: ignore[misc,name-defined,unused-ignore]
        """Z W, and Z' times the derivative on the way back."""

        @staticmethod
        def forward(_: Any, W: Any) -> Any:
            return forward @ W

        @staticmethod
        def backward(_: Any, derivative: Any) -> Any:
            return backward @ derivative

    def fit(tol: float) -> Weights:
        W = torch.zeros(shape, dtype=getattr(torch, dtype), requires_grad=True)
        optimizer = torch.optim.LBFGS(
            [W],
            max_iter=MOST_ITERATIONS,
            max_eval=2 * MOST_ITERATIONS,
            tolerance_grad=tol,
            tolerance_change=0.0,
            history_size=PAIRS,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Any:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(Product.apply(W), labels, reduction="sum")
            value = loss + 0.5 * torch.dot(W.view(-1), W.view(-1))
            value.backward()
            return value

        optimizer.step(closure)
        return Weights(W.detach().numpy(), int(optimizer.state[W]["n_iter"]))

    return task.solver(fit)


SOLVERS = {
    "torch LBFGS": SolverEntry(partial(solver, dtype="float64")),
    "torch LBFGS float32": SolverEntry(partial(solver, dtype="float32")),
}
