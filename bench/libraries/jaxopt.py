"""jaxopt: L-BFGS, as a solver and, with an implicit backward pass, as a criterion with its derivative."""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bench.libraries.contracts import MOST_ITERATIONS, PAIRS, Solver, SolverEntry, Task, Weights

PRODUCTS = ("BCOO", "SciPy")
_HISTORY = 5  # of L-BFGS; 10 pairs take a few iterations less, and more time


def is_installed() -> bool:
    """Whether jax and jaxopt are there."""
    return all(find_spec(name) is not None for name in ("jax", "jaxopt"))


def solver(task: Task) -> Solver:
    """L-BFGS; sparse products are SciPy's, through callbacks, which are faster than those of jax."""
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
        solver = jaxopt.LBFGS(objective, tol=tol, maxiter=MOST_ITERATIONS, history_size=PAIRS)
        return solver.run(start)

    run = jax.jit(solve)

    def fit(tol: float) -> Weights:
        W, state = jax.block_until_ready(run(jnp.zeros(shape), tol))
        return Weights(np.asarray(W), int(state.iter_num))

    return task.solver(fit)


@dataclass(frozen=True)
class Tolerances:
    """Bounds on the norm of a fit's gradient, and on the relative residual of a linear system."""

    fit: float
    system: float


@dataclass
class Outcome:
    """Criterion, its derivative by log v, seconds, and the fitted weights of every fold, to start from."""

    value: float
    gradient: float
    seconds: float
    iterations: int
    starts: list[Any]


class ImplicitCriterion:
    """The criterion for fixed folds and its derivative by automatic differentiation.

    The model is the flat linear one of bench/harness/certify.py. In scaled weights W (d x C) and intercepts b (C), with
    u = sqrt(v) X W + sqrt(sigma2) b, the fit of fold k minimizes

        sum over the other folds' rows of (logsumexp(u_i) - u_i[y_i]) + |W|^2 / 2 + |b|^2 / 2,

    and the criterion is the negative log likelihood of the rows of fold k, summed over k. Its derivative by log v goes
    through ``jaxopt.LBFGS(implicit_diff=True)``, whose linear systems are solved by conjugate gradients. All is in
    single precision, jax's default. Products with the sparse X are those of ``jax.experimental.sparse`` (BCOO), or
    SciPy's through a callback, which are faster on processors; X' is stored too. Tried, and slower: rows padded to few
    lengths, ``segment_sum``, the dense kernel matrix, other line searches, nonlinear CG, and SciPy's L-BFGS-B for the
    fits.
    The first call of ``evaluate`` compiles.
    """

    def __init__(
        self,
        X: Any,
        labels: npt.NDArray[Any],
        fold_of: npt.NDArray[Any],
        intercept_variance: float,
        product: str,
        max_iter: int,
    ) -> None:
        self._jax, self._jaxopt = (importlib.import_module(name) for name in ("jax", "jaxopt"))
        self._jnp = self._jax.numpy
        X = sparse.csr_matrix(X, dtype=np.float32)
        X = X[:, np.unique(X.indices)]  # a word that no row has has no weights
        self._shapes = ((X.shape[1], int(labels.max()) + 1), (int(labels.max()) + 1,))
        self._truth = self._jnp.asarray(labels)[:, None]
        self._masks = [
            tuple(self._jnp.asarray(mask, dtype="float32") for mask in (fold_of != fold, fold_of == fold))
            for fold in range(int(fold_of.max()) + 1)
        ]
        self._sigma = float(np.sqrt(intercept_variance))
        self._max_iter = max_iter
        self._matrices, self._multiply = self._products(X, product)
        self._value_and_gradient = self._jax.jit(self._jax.value_and_grad(self._held_out, has_aux=True))

    def _products(self, X: Any, product: str) -> tuple[Any, Callable[[Any, Any], Any]]:
        """Two arguments for each product, and the product: differentiable, by products with X' and X again.

        BCOO matrices are arguments, since the compiler tries to evaluate what it can of constants.
        """
        jax = self._jax
        X_and_transpose = (X, sparse.csr_matrix(X.T))
        matrices: Any = (0, 1)
        if product == "BCOO":
            bcoo = importlib.import_module("jax.experimental.sparse").BCOO
            matrices = tuple(bcoo.from_scipy_sparse(matrix) for matrix in X_and_transpose)

        def plain(k: int, matrices: Any, W: Any) -> Any:
            if product == "BCOO":
                return matrices[k] @ W
            matrix = X_and_transpose[k]
            shape = jax.ShapeDtypeStruct((matrix.shape[0], W.shape[1]), W.dtype)
            return jax.pure_callback(lambda array: matrix @ np.asarray(array), shape, W)

        forward, backward = (jax.custom_vjp(partial(plain, k)) for k in (0, 1))
        forward.defvjp(
            lambda matrices, W: (forward(matrices, W), matrices),
            lambda matrices, R: (None, backward(matrices, R)),
        )
        backward.defvjp(
            lambda matrices, R: (backward(matrices, R), matrices),
            lambda matrices, W: (None, forward(matrices, W)),
        )
        return matrices, forward

    def _losses(self, params: Any, log_v: Any, matrices: Any) -> Any:
        W, b = params
        u = self._jnp.exp(0.5 * log_v) * self._multiply(matrices, W) + self._sigma * b
        right = self._jnp.take_along_axis(u, self._truth, axis=1)[:, 0]
        return self._jax.scipy.special.logsumexp(u, axis=1) - right

    def _objective(self, params: Any, log_v: Any, mask: Any, matrices: Any) -> Any:
        penalty = sum(0.5 * self._jnp.vdot(part, part) for part in params)
        return self._jnp.vdot(mask, self._losses(params, log_v, matrices)) + penalty

    def _held_out(self, log_v: Any, start: Any, masks: Any, matrices: Any, tolerances: Any) -> Any:
        """The loss of a fold's rows; also weights and iterations of the fit to the others."""
        solve = partial(self._jaxopt.linear_solve.solve_cg, tol=tolerances[1], maxiter=self._max_iter)
        solver = self._jaxopt.LBFGS(
            self._objective,
            maxiter=self._max_iter,
            tol=tolerances[0],
            history_size=_HISTORY,
            implicit_diff=True,
            implicit_diff_solve=solve,
        )
        train, test = masks
        params, state = solver.run(start, log_v, train, matrices)
        return self._jnp.vdot(test, self._losses(params, log_v, matrices)), (params, state.iter_num)

    def evaluate(self, log_v: float, tolerances: Tolerances, starts: list[Any] | None = None) -> Outcome:
        """The criterion at ``log_v``, each fold started from the weights given, else from 0."""
        zero = tuple(self._jnp.zeros(shape, dtype="float32") for shape in self._shapes)
        given = tuple(self._jnp.float32(value) for value in (tolerances.fit, tolerances.system))
        begin = time.perf_counter()
        answers = []
        for fold, masks in enumerate(self._masks):
            start = zero if starts is None else starts[fold]
            answer = self._value_and_gradient(self._jnp.float32(log_v), start, masks, self._matrices, given)
            answers.append(self._jax.block_until_ready(answer))
        seconds = time.perf_counter() - begin
        return Outcome(
            value=sum(float(value) for (value, _), _ in answers),
            gradient=sum(float(gradient) for _, gradient in answers),
            seconds=seconds,
            iterations=sum(int(iterations) for (_, (_, iterations)), _ in answers),
            starts=[params for (_, (params, _)), _ in answers],
        )


SOLVERS = {"jaxopt LBFGS": SolverEntry(solver)}
