"""From checked arguments to the core's fit and back: which of its solvers and products a problem gets."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn import _core
from taxolearn.fitting.functions import ClassFunctions, Expansion, KernelFunctions, LinearFunctions, MatrixFunctions
from taxolearn.fitting.memory import check_memory_limit
from taxolearn.kernels.assignment import ClassKernels
from taxolearn.kernels.checks import check_positive_semidefinite
from taxolearn.kernels.functions import Kernel, Linear, Precomputed
from taxolearn.validation import check_choice, check_number

__all__ = ["FitResult", "Problem", "Products", "check_products", "choose_state", "fit_functions", "fit_roughly"]

_ALGORITHMS = ("auto", "gram", "tiled", "low_rank")

# What L-BFGS keeps: ten pairs of vectors with their images, two for the linear kernel, or twenty pairs of weights.
_KERNEL_VECTORS = 42
_LINEAR_VECTORS = 10
_WEIGHT_VECTORS = 42

_PATIENCE = 1000  # iterations that a user must have allowed before another method takes over
_EXACT_WORK = 2e9  # n^3 C up to which it does: seconds


@dataclass(frozen=True)
class FitResult:
    """How a fit went.

    Attributes
    ----------
    status : str
        "converged", "max_iter" (stopped early) or "stalled" (the limit of the arithmetic).
    iterations, products : int
        Iterations of the solver and products with the kernel matrix, those of the certificate included.
    objective : float
        Penalized negative log likelihood at the fitted model.
    gap, relative_gap : float
        Certified in double precision: the objective is above its minimum by at most ``gap``; relative means divided
        by the objective.
    method : str
        The solver: "lbfgs", "ncg", "newton" or "exact".
    algorithm : str
        How products were computed: for the linear kernel "sparse", "dense" or "stored"; else "gram", "tiled" or
        "low_rank".
    reason : str
        Why this method and this algorithm.
    state : str
        What the solver worked on: dual "coefficients" or primal "weights".
    precision : str
        Precision of the last products: "single" or "double".
    kernel_bytes : float
        Memory of the stored kernel matrices, or of the factors that stand for them.
    ranks : tuple of int
        Ranks of the approximations under "low_rank", one per kernel.
    timings : dict
        Seconds by phase: setup, products, likelihood, vectors, certificate, total.
    """

    status: str
    iterations: int
    products: int
    objective: float
    gap: float
    relative_gap: float
    method: str
    algorithm: str
    reason: str
    state: str
    precision: str
    kernel_bytes: float
    ranks: tuple[int, ...]
    timings: dict[str, float]


@dataclass(frozen=True)
class Products:
    """How products with kernel matrices are to be done."""

    algorithm: str
    memory_limit: float
    rank: int | None
    rank_tolerance: float | None

    @property
    def is_approximate(self) -> bool:
        return self.algorithm == "low_rank" or (
            self.algorithm == "auto" and not (self.rank is None and self.rank_tolerance is None)
        )

    @property
    def is_free(self) -> bool:
        """Whether nothing was asked for."""
        return self.algorithm == "auto" and not self.is_approximate

    def arguments(self) -> dict[str, Any]:
        """Of the core. A rank alone is taken as it is, a tolerance alone finds its rank."""
        tolerance = 1e-3 if self.rank is None else 0.0
        return {
            "algorithm": "low_rank" if self.is_approximate else self.algorithm,
            "memory_limit": self.memory_limit,
            "rank": self.rank or 0,
            "rank_tolerance": tolerance if self.rank_tolerance is None else self.rank_tolerance,
        }


def check_products(algorithm: str, memory_limit: Any, rank: Any, rank_tolerance: Any) -> Products:
    """How products with kernel matrices are to be done."""
    algorithm = check_choice("algorithm", algorithm, _ALGORITHMS)
    if rank is not None:
        rank = check_number("rank", rank, least=1, integer=True)
    if rank_tolerance is not None:
        rank_tolerance = check_number("rank_tolerance", rank_tolerance, least=0)
        if rank_tolerance >= 1:
            raise ValueError(f"rank_tolerance is a share of the trace: it must be below 1, got {rank_tolerance}")
    if algorithm in ("gram", "tiled") and not (rank is None and rank_tolerance is None):
        raise ValueError(f'rank and rank_tolerance belong to algorithm="low_rank", got algorithm={algorithm!r}')
    return Products(algorithm, check_memory_limit(memory_limit), rank, rank_tolerance)


@dataclass(frozen=True)
class Problem:
    """Inputs and targets in the core's form, classes in the core's order; ``order`` leads to that of ``classes_``."""

    X: Any
    targets: npt.NDArray[Any]
    n_classes: int
    sample_weight: npt.NDArray[np.float64] | None
    class_kernels: ClassKernels
    order: npt.NDArray[np.intp]
    classes: npt.NDArray[Any]  # in our order
    function_names: list[Any]  # of the independent functions, in the core's order
    start_point: npt.NDArray[np.float64] | None = None  # where an earlier fit with the same inputs ended


def fit_functions(
    problem: Problem, products: Products, start: ClassFunctions | None, settings: dict[str, Any]
) -> tuple[ClassFunctions, FitResult, Any]:
    """Fit, and put together what predicts; also the point that the solver came to, if the settings ask for it.

    Where the method was left open and iterations come to no end on a small problem, exact Newton steps finish it.
    """
    method, reason = _choose_method(problem, products, settings["method"])
    functions, result, point = _fit(problem, products, start, settings | {"method": method}, reason)
    is_open = settings["method"] == "auto" and settings["state"] != "weights" and settings["precision"] != "single"
    is_patient = result.status == "stalled" or settings["max_iter"] >= _PATIENCE
    if result.status == "converged" or not (is_open and is_patient and _is_small(problem, products)):
        return functions, result, point
    reached = f"{method} was at a relative gap of {result.relative_gap:.1e} after {result.iterations} iterations"
    try:
        better, second, end = _fit(
            replace(problem, start_point=None),
            products,
            functions,
            settings | {"method": "exact"},
            f"exact, because {reached}",
        )
    except ValueError:  # rounding has made a covariance indefinite
        return functions, result, point
    if second.status != "converged":
        return functions, result, point
    counts = {name: getattr(result, name) + getattr(second, name) for name in ("iterations", "products")}
    timings = {name: result.timings[name] + seconds for name, seconds in second.timings.items()}
    return better, replace(second, timings=timings, **counts), end


def fit_roughly(
    problem: Problem, products: Products, start: ClassFunctions | None, settings: dict[str, Any]
) -> tuple[ClassFunctions, FitResult, npt.NDArray[np.float64]]:
    """One method and no second thoughts; also the point it came to, for a problem that differs in its targets only."""
    method, reason = _choose_method(problem, products, settings["method"])
    return _fit(problem, products, start, settings | {"method": method, "keep_point": True}, reason)


def choose_state(problem: Problem, products: Products, settings: dict[str, Any]) -> str:
    """What the core will work on, "coefficients" or "weights"."""
    if settings["state"] != "auto":
        return str(settings["state"])
    if settings["method"] in ("newton", "exact") or not _is_linear(problem, products):
        return "coefficients"
    (n, d), C = problem.X.shape, problem.n_classes
    n_factors = problem.class_kernels.coupling.n_factors(len(problem.function_names))
    return "weights" if float(d) * n_factors / n / C < 1.0 else "coefficients"


def _fit(
    problem: Problem, products: Products, start: ClassFunctions | None, settings: dict[str, Any], reason: str
) -> tuple[ClassFunctions, FitResult, Any]:
    """By one method. The last element is None unless the settings ask for the point."""
    kernels = problem.class_kernels.kernels
    settings = settings | {
        "targets": problem.targets,
        "n_classes": problem.n_classes,
        "sample_weight": problem.sample_weight,
        "coupling": problem.class_kernels.coupling.to_core(),
        "start_point": problem.start_point,
    }
    fit = _fit_kernels
    if len(kernels) == 1 and (kernels[0].is_precomputed or not kernels[0].is_native):
        fit = _fit_matrix
    elif _is_linear(problem, products):
        fit = _fit_linear
    if fit is not _fit_linear and settings["state"] == "weights":
        raise ValueError('state="weights" needs the linear kernel and algorithm="auto"; choose state="coefficients"')
    functions, outcome = fit(problem, products, start, settings)
    for name in ("weights", "intercepts", "expansions"):
        outcome.pop(name)
    point = outcome.pop("point", None)
    reason = "; ".join(text for text in (reason, outcome.pop("reason")) if text)
    ranks = tuple(outcome.pop("ranks"))
    result = FitResult(method=settings["method"], reason=reason, ranks=ranks, **outcome)
    if not np.isfinite(result.objective):
        raise ValueError(f"the values of {kernels[0]!r} are too large for these inputs: scale the features")
    return functions, result, point


def _is_linear(problem: Problem, products: Products) -> bool:
    """Whether the features themselves serve for the products."""
    kernels = problem.class_kernels.kernels
    return len(kernels) == 1 and isinstance(kernels[0], Linear) and products.is_free


def _is_small(problem: Problem, products: Products) -> bool:
    """Whether exact Newton steps are a matter of seconds."""
    flat = problem.class_kernels.coupling.is_diagonal
    work = float(problem.X.shape[0]) ** 3 * problem.n_classes
    return flat and work <= _EXACT_WORK and _bytes_of_exact(problem) <= products.memory_limit


def _fit_linear(
    problem: Problem, products: Products, start: ClassFunctions | None, settings: dict[str, Any]
) -> tuple[ClassFunctions, dict[str, Any]]:
    (kernel,) = problem.class_kernels.kernels
    outcome = _core.fit_linear(
        X=problem.X,
        variance=kernel.split()[0],
        start_weights=_start_weights(start, problem),
        **settings,
    )
    weights = outcome["weights"]
    coef = weights.T if _is_sorted(problem.order) else weights.take(problem.order, axis=1).T
    return LinearFunctions(coef, outcome["intercepts"][problem.order]), outcome


def _fit_matrix(
    problem: Problem, products: Products, start: ClassFunctions | None, settings: dict[str, Any]
) -> tuple[ClassFunctions, dict[str, Any]]:
    """With one kernel whose matrix does not come from the core."""
    (kernel,) = problem.class_kernels.kernels
    matrix, variance = _given_matrix(kernel, problem.X, settings["n_threads"])
    outcome = _core.fit_kernels(
        kernels=[_core.PrecomputedKernel(variance)],
        X=matrix,
        start_predictors=_start_predictors(start, problem, settings["n_threads"]),
        **products.arguments(),
        **settings,
    )
    pivots, coefficients = outcome["expansions"][0]
    if outcome["ranks"]:
        spread = np.zeros((problem.X.shape[0], problem.n_classes))
        spread[pivots] = coefficients
        coefficients = spread
    basis = None if kernel.is_precomputed else problem.X.copy()
    expansion = Expansion(kernel, basis, coefficients[:, problem.order], tuple(problem.classes.tolist()))
    return MatrixFunctions([expansion], outcome["intercepts"][problem.order]), outcome


def _fit_kernels(
    problem: Problem, products: Products, start: ClassFunctions | None, settings: dict[str, Any]
) -> tuple[ClassFunctions, dict[str, Any]]:
    kernels, kernel_of = problem.class_kernels.kernels, problem.class_kernels.kernel_of
    for kernel in kernels:
        kernel.check_features(problem.X.shape[1])
    outcome = _core.fit_kernels(
        kernels=[kernel.to_core() for kernel in kernels],
        kernel_of=kernel_of,
        X=problem.X,
        start_predictors=_start_predictors(start, problem, settings["n_threads"]),
        **products.arguments(),
        **settings,
    )
    rows = None if outcome["ranks"] else problem.X.copy()  # what the user does to X later must not change the model
    coupling = problem.class_kernels.coupling
    expansions = []
    for k, (kernel, (pivots, coefficients)) in enumerate(zip(kernels, outcome["expansions"], strict=True)):
        columns = [f for f, own in enumerate(kernel_of) if own == k]
        if kernel_of:
            # Variances of the functions go into the coefficients, so that these tell everything.
            coefficients *= np.sqrt(coupling.function_variances(len(kernel_of))[columns])
            names = tuple(problem.function_names[f] for f in columns)
        else:
            coefficients, names = coefficients[:, problem.order], tuple(problem.classes.tolist())
        basis = problem.X[pivots] if rows is None else rows
        expansions.append(Expansion(kernel, basis, np.ascontiguousarray(coefficients), names))
    intercept = outcome["intercepts"][problem.order]
    return KernelFunctions(expansions, kernel_of, coupling.without_variances(), intercept, problem.order), outcome


def _choose_method(problem: Problem, products: Products, method: str) -> tuple[str, str]:
    """The solver and, where there was a choice, why."""
    n, C = problem.X.shape[0], problem.n_classes
    coupling = problem.class_kernels.coupling
    if method == "exact":
        if not coupling.is_diagonal:
            raise ValueError('method="exact" is for flat models; choose another method, or coupling="identity"')
        bytes_ = _bytes_of_exact(problem)
        if bytes_ > products.memory_limit:
            raise ValueError(
                f'method="exact" needs {bytes_ / 1e6:.3g} MB for {n} rows and {C} classes, more than memory_limit '
                f'({products.memory_limit / 1e6:.3g} MB); choose method="auto", or raise memory_limit'
            )
    if method != "auto":
        return method, f"{method} was asked for"
    bytes_ = _bytes_of_vectors(problem)
    size = f"the vectors of lbfgs take up to {bytes_ / 1e6:.3g} MB"
    if bytes_ > products.memory_limit:
        return "ncg", f"ncg, because {size}, more than memory_limit"
    return "lbfgs", f"lbfgs, because {size}, within memory_limit"


def _bytes_of_exact(problem: Problem) -> float:
    """Memory of the factors, and of a covariance matrix for every class that differs from the others."""
    n, C = float(problem.X.shape[0]), problem.n_classes
    return 8.0 * n * n * (C + 2 + (1 if problem.class_kernels.coupling.variances is None else C))


def _bytes_of_vectors(problem: Problem) -> float:
    """Memory of the pairs that L-BFGS keeps, in double precision: coefficients with their images, or weights."""
    (n, d), C = map(float, problem.X.shape), problem.n_classes
    kernels = problem.class_kernels.kernels
    if len(kernels) > 1 or not isinstance(kernels[0], Linear):
        return 8.0 * _KERNEL_VECTORS * n * C
    return 8.0 * min(_LINEAR_VECTORS * n, _WEIGHT_VECTORS * d) * C


def _is_sorted(order: npt.NDArray[np.intp]) -> bool:
    return bool(np.array_equal(order, np.arange(len(order))))


def _start_weights(start: ClassFunctions | None, problem: Problem) -> npt.NDArray[np.float64] | None:
    """Weights of the last fit in the core's layout, if they fit the new problem."""
    if not isinstance(start, LinearFunctions) or start.coef.shape != (problem.n_classes, problem.X.shape[1]):
        return None
    place = np.argsort(problem.order)
    weights = start.coef.T.toarray() if sp.issparse(start.coef) else start.coef.T
    return np.concatenate([weights[:, place].ravel(), start.intercept[place]])


def _start_predictors(start: ClassFunctions | None, problem: Problem, n_threads: int) -> npt.NDArray[np.float64] | None:
    """Predictors of the last fit at the new rows, in the core's order of classes."""
    if start is None:
        return None
    try:
        u = start.output(problem.X, "predictor", n_threads)
    except (TypeError, ValueError):  # the old kernel cannot read what the new one can
        return None
    return np.ascontiguousarray(u[:, np.argsort(problem.order)]) if np.isfinite(u).all() else None


def _given_matrix(kernel: Kernel, X: Any, n_threads: int) -> tuple[Any, float]:
    """A kernel matrix that does not come from the core, checked, and the variance to multiply it with."""
    if not kernel.is_precomputed:
        matrix = kernel(X, n_threads=n_threads)
        check_positive_semidefinite(matrix, f"the matrix of {kernel!r}", single=True)
        return matrix, 1.0
    if not isinstance(kernel, Precomputed):
        raise TypeError(f"Precomputed cannot be part of another kernel: combine the matrices instead of {kernel!r}")
    if sp.issparse(X):
        raise TypeError("X is sparse, but a Precomputed kernel needs a dense matrix; use X.toarray()")
    check_positive_semidefinite(X, "X")
    return X, kernel.variance
