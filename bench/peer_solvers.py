"""Solvers of the flat linear objective of certify.py, in many libraries, behind the same function of a tolerance.

scikit-learn gets the inputs that libraries.py describes. The others minimize, over W ((d + 1) x C) from 0,

    Phi(W) = sum_i (logsumexp(u_i) - u_i[y_i]) + 1/2 |W|^2,   u = Z W,   Z = [sqrt(v) X, sqrt(sigma2) 1],

in which the prior is the unit matrix, with ten pairs of vectors in the memory of L-BFGS. Z and, where it is sparse, Z'
are stored by rows.
"""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize, sparse

from bench.certify import certify
from bench.libraries import Library, Model, augmented, mkl_product, scikit_learn, taxolearn
from bench.peer_problems import read_problem
from bench.problems import Data, Floats

OURS = "taxolearn"
_PAIRS = 10
_MOST_ITERATIONS = 5000
_MOST_WEIGHTS = 10_000  # for a solver that stores and factors the matrix of second derivatives
_AT_ONCE = 1e9  # a tolerance that everything satisfies
_GRADIENTS = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(-2, 15))  # tolerances of the gradient of Phi


@dataclass(frozen=True)
class Task:
    """Data, prior variances, and the relative gap to reach."""

    data: Data
    v: float
    sigma2: float
    gap: float
    n_threads: int

    def scaled(self) -> Any:
        """Z (n x (d + 1))."""
        return np.sqrt(self.v) * augmented(self.data, self.v, self.sigma2)

    def labels(self) -> Any:
        """Class numbers (n)."""
        return np.searchsorted(np.unique(self.data.y), self.data.y)

    def read(self, answer: "Weights") -> Model:
        """The model that W stands for."""
        W = np.asarray(answer.W, dtype=np.float64)
        return np.sqrt(self.v) * W[:-1].T, np.sqrt(self.sigma2) * W[-1]

    def library(self, name: str, fit: Callable[[float], "Weights"]) -> Library:
        return Library(name, False, _GRADIENTS, fit, self.read)


@dataclass(frozen=True)
class Weights:
    """W and the number of iterations."""

    W: Any
    n_iter_: int


def _ours(task: Task) -> Library:
    return replace(taxolearn(task.data, task.v, task.sigma2, task.gap, "lbfgs", task.n_threads), name=OURS)


def _scikit_learn(task: Task, solver: str, dtype: Any = np.float64) -> Library:
    X = augmented(task.data, task.v, task.sigma2).astype(dtype)
    return scikit_learn(X, task.data, task.v, task.sigma2, solver)


def _intelex(task: Task) -> Library:
    estimator = importlib.import_module("sklearnex.linear_model").LogisticRegression
    X = augmented(task.data, task.v, task.sigma2)
    made = scikit_learn(X, task.data, task.v, task.sigma2, "lbfgs", estimator=estimator)
    return replace(made, tolerances=tuple(1e4 * tol for tol in made.tolerances))  # it stops by another quantity


def _scipy(task: Task, product: Callable[[Any, Any], Any] = lambda matrix, array: matrix @ array) -> Library:
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
            "maxcor": _PAIRS,
            "maxiter": _MOST_ITERATIONS,
            "maxfun": 2 * _MOST_ITERATIONS,
        }
        start = np.zeros(shape[0] * shape[1])
        found = optimize.minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
        return Weights(found.x.reshape(shape), int(found.nit))

    return task.library("scipy", fit)


def _scipy_mkl(task: Task) -> Library:
    return _scipy(task, mkl_product())


def _torch(task: Task, dtype: str) -> Library:
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
            max_iter=_MOST_ITERATIONS,
            max_eval=2 * _MOST_ITERATIONS,
            tolerance_grad=tol,
            tolerance_change=0.0,
            history_size=_PAIRS,
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

    return task.library("torch", fit)


def _jaxopt(task: Task) -> Library:
    """Sparse products are SciPy's, through callbacks, which are faster than those of jax (see implicit.py)."""
    jax, jaxopt = (importlib.import_module(name) for name in ("jax", "jaxopt"))
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    Z, labels = task.scaled(), task.labels()
    shape = (Z.shape[1], int(labels.max()) + 1)
    truth = jnp.asarray(labels)[:, None]

    def product(matrix: Any) -> Callable[[Any], Any]:
        if not sparse.issparse(matrix):
            stored = jnp.asarray(matrix)
            return lambda array: stored @ array
        result = jax.ShapeDtypeStruct((matrix.shape[0], shape[1]), np.float64)
        return lambda array: jax.pure_callback(lambda given: matrix @ np.asarray(given), result, array)

    forward, backward = product(Z), product(sparse.csr_matrix(Z.T) if sparse.issparse(Z) else Z.T)
    multiply = jax.custom_vjp(forward)
    multiply.defvjp(lambda W: (forward(W), None), lambda _, derivative: (backward(derivative),))

    def objective(W: Any) -> Any:
        u = multiply(W)
        right = jnp.take_along_axis(u, truth, axis=1)[:, 0]
        return jnp.sum(jax.scipy.special.logsumexp(u, axis=1) - right) + 0.5 * jnp.vdot(W, W)

    def solve(start: Any, tol: Any) -> Any:
        solver = jaxopt.LBFGS(objective, tol=tol, maxiter=_MOST_ITERATIONS, history_size=_PAIRS)
        return solver.run(start)

    run = jax.jit(solve)

    def fit(tol: float) -> Weights:
        W, state = jax.block_until_ready(run(jnp.zeros(shape), tol))
        return Weights(np.asarray(W), int(state.iter_num))

    return task.library("jaxopt", fit)


@dataclass(frozen=True)
class Peer:
    """How a library is made, and which problems it takes."""

    make: Callable[[Task], Library]
    sparse: bool = True
    dense: bool = True
    most_weights: int | None = None

    def takes(self, is_sparse: bool, n_weights: int) -> bool:
        allowed = self.sparse if is_sparse else self.dense
        return allowed and (self.most_weights is None or n_weights <= self.most_weights)


PEERS = {
    OURS: Peer(_ours),
    "scikit-learn lbfgs": Peer(partial(_scikit_learn, solver="lbfgs")),
    "scikit-learn newton-cg": Peer(partial(_scikit_learn, solver="newton-cg")),
    "scikit-learn newton-cholesky": Peer(
        partial(_scikit_learn, solver="newton-cholesky"), sparse=False, most_weights=_MOST_WEIGHTS
    ),
    "scikit-learn saga": Peer(partial(_scikit_learn, solver="saga")),
    "scikit-learn saga float32": Peer(partial(_scikit_learn, solver="saga", dtype=np.float32)),
    "scikit-learn-intelex lbfgs": Peer(_intelex, sparse=False),
    "torch LBFGS": Peer(partial(_torch, dtype="float64")),
    "torch LBFGS float32": Peer(partial(_torch, dtype="float32")),
    "jaxopt LBFGS": Peer(_jaxopt),
    "scipy L-BFGS-B": Peer(_scipy),
    "scipy L-BFGS-B, MKL": Peer(_scipy_mkl, dense=False),
}


class Competitor:
    """A library and a task in a process of their own; see workers.py."""

    def __init__(
        self, library: str, problem: str, folder: str, v: float, sigma2: float, gap: float, n_threads: int
    ) -> None:
        self._task = Task(read_problem(problem, folder), v, sigma2, gap, n_threads)
        self._library = PEERS[library].make(self._task)
        self._answer: Any = None

    def warm_up(self) -> None:
        """Load and compile what only a fit does, by one that stops at once."""
        self._library.fit(_AT_ONCE)

    def tolerances(self) -> list[float]:
        return list(self._library.tolerances)

    def fit(self, tol: float) -> dict[str, Any]:
        """Fit, and say how long it took."""
        start = time.perf_counter()
        self._answer = self._library.fit(tol)
        return {"seconds": time.perf_counter() - start, "iterations": int(np.max(self._answer.n_iter_))}

    def certificate(self) -> dict[str, Any]:
        """Objective, gap and test error of the last fit, which is then forgotten: those who wait need no memory."""
        coef, intercept = self._library.model(self._answer)
        self._answer = None
        data, task = self._task.data, self._task
        certificate = certify(data.X, task.labels(), coef, intercept, task.v, task.sigma2)
        predicted = np.unique(data.y)[np.asarray(data.X_test @ coef.T + intercept).argmax(axis=1)]
        return {
            "objective": certificate.objective,
            "relative_gap": certificate.relative_gap,
            "error": 100 * float(np.mean(predicted != data.y_test)),
        }
