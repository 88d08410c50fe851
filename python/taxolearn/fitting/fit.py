"""One fit by the core: what is fitted, how (the estimator's argument ``solver``), how it went, and what it leaves."""

import os
import re
from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from taxolearn import _core
from taxolearn.fitting.functions import ClassFunctions, Expansion, KernelFunctions, LinearFunctions, MatrixFunctions
from taxolearn.kernels.argument import ClassKernels
from taxolearn.kernels.base import Kernel
from taxolearn.kernels.checks import check_positive_semidefinite
from taxolearn.kernels.precomputed import Precomputed
from taxolearn.progress import ProgressCallback
from taxolearn.targets import LabelSets
from taxolearn.validation import check_choice, check_number

__all__ = [
    "Fit",
    "FitResult",
    "Problem",
    "Solver",
    "as_solver",
    "chosen_space",
    "fit_functions",
    "kernel_values",
    "make_likelihood",
]

Floats = npt.NDArray[np.float64]
# The losses that a model may have: their likelihood in the core, and the link from predictors to probabilities.
_LOSSES = {
    "softmax": (_core.Softmax, _core.Link.softmax),
    "independent": (_core.IndependentLogistic, _core.Link.logistic),
}
_METHODS = tuple(_core.Method.__members__)
_SPACES = tuple(_core.Space.__members__)
_PRECISIONS = tuple(_core.Precision.__members__)
_PRODUCTS = tuple(_core.KernelAlgorithm.__members__)
_DUAL = ("newton", "exact")  # methods that work on coefficients only
_UNITS = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SHARE = 0.5  # of the machine's memory, where nothing is said
_UNKNOWN = 4e9  # bytes, where the machine says nothing
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def make_likelihood(loss: str, targets: Any, n_classes: int, sample_weight: Floats | None) -> _core.Likelihood:
    """The loss of that name, of all rows; classes are in the core's order. Label sets have the loss "independent"."""
    make, _ = _LOSSES[loss]
    if isinstance(targets, LabelSets):
        return _core.IndependentLogisticOfSets(targets.labels, targets.offsets, n_classes, sample_weight)
    return make(targets, n_classes, sample_weight)


@dataclass(frozen=True)
class Problem:
    """Inputs, targets and prior in the core's form.

    Classes are in the core's order; ``order`` leads from there to that of ``classes``.
    """

    X: Any
    targets: Any  # int32 classes, a float64 matrix of probabilities, or LabelSets
    sample_weight: npt.NDArray[np.float64] | None
    class_kernels: ClassKernels
    intercept_variance: float
    order: npt.NDArray[np.intp]
    classes: npt.NDArray[Any]  # sorted
    function_names: list[Any]  # of the independent functions, in the core's order
    loss: str = "softmax"

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def likelihood(self) -> _core.Likelihood:
        """The loss of all rows."""
        return make_likelihood(self.loss, self.targets, self.n_classes, self.sample_weight)

    @property
    def link(self) -> str:
        """How predictors become probabilities."""
        return _LOSSES[self.loss][1].name

    def prior(self, kernels: list[_core.Kernel]) -> _core.Prior:
        """The prior of the class functions, with these kernels of the core in place of our own."""
        return _core.Prior(
            kernels=kernels,
            kernel_of=self.class_kernels.kernel_of,
            coupling=self.class_kernels.coupling.to_core(),
            intercept_variance=self.intercept_variance,
        )

    def classes_in_core_order(self) -> list[Any]:
        names = np.empty_like(self.classes)
        names[self.order] = self.classes
        return list(names.tolist())


@dataclass(frozen=True)
class FitResult:
    """How a fit went.

    Attributes
    ----------
    status : str
        "converged", "max_iter" (stopped early) or "stalled" (the limit of the arithmetic).
    iterations, products : int
        Iterations of the solver and products with the kernel matrix, including those of the certificate.
    objective : float
        Penalized negative log likelihood at the fitted model.
    gap, relative_gap : float
        Certified in double precision: the objective is above its minimum by at most ``gap``; ``relative_gap`` is
        ``gap`` divided by the objective.
    method : str
        The solver: "lbfgs", "ncg", "newton" or "exact".
    algorithm : str
        How products were computed: "sparse", "dense", "blocks" or "stored" for the linear kernel, else "gram", "tiled"
        or "low_rank".
    reason : str
        Why this method and this algorithm were chosen.
    space : str
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
    space: str
    precision: str
    kernel_bytes: float
    ranks: tuple[int, ...]
    timings: dict[str, float]

    @classmethod
    def from_core(cls, result: _core.FitResult) -> "FitResult":
        phases = ("setup", "products", "likelihood", "vectors", "certificate", "total")
        return cls(
            status=result.status.name,
            iterations=result.iterations,
            products=result.products,
            objective=result.objective,
            gap=result.gap,
            relative_gap=result.relative_gap,
            method=result.method.name,
            algorithm=result.algorithm,
            reason=result.reason,
            space=result.space.name,
            precision=result.precision.name,
            kernel_bytes=result.kernel_bytes,
            ranks=tuple(result.ranks),
            timings={phase: getattr(result.timings, phase) for phase in phases},
        )


@dataclass(frozen=True)
class Fit:
    """What a fit leaves: functions that predict, its report, and the solver's last point if the settings keep it."""

    functions: ClassFunctions
    result: FitResult
    point: Floats | None


def fit_functions(
    problem: Problem,
    settings: _core.FitSettings,
    products: _core.KernelSettings,
    *,
    start: ClassFunctions | None = None,
    point: Floats | None = None,
    n_threads: int = 1,
    progress: ProgressCallback | None = None,
) -> Fit:
    """Fit, and put together what predicts.

    Parameters
    ----------
    problem : Problem
        What to fit.
    settings : _core.FitSettings
        How it is solved.
    products : _core.KernelSettings
        How products with kernel matrices are done.
    start : ClassFunctions, optional
        Functions of an earlier fit to begin from, where they suit the problem.
    point : array, optional
        Where the solver of an earlier fit with the same inputs, coupling and space ended; it goes before ``start``.
    n_threads : int, default=1
        Threads.
    progress : callable, optional
        Called after every iteration.
    """
    X, kernels = core_inputs(problem, n_threads)
    prior = problem.prior(kernels)
    by_features = _core.uses_features(prior, products)
    result = _core.fit(
        X=X,
        likelihood=problem.likelihood(),
        prior=prior,
        settings=settings,
        kernels=products,
        start=_core.FitStart(
            weights=_start_weights(start, problem) if by_features else None,
            predictors=None if by_features else _start_predictors(start, problem, n_threads),
            point=point,
        ),
        n_threads=n_threads,
        progress=progress,
    )
    if not np.isfinite(result.objective):
        raise ValueError(
            f"the values of {problem.class_kernels.kernels[0]!r} are too large for these inputs: scale the features"
        )
    last = result.take_point() if settings.keep_point else None
    report = FitResult.from_core(result)
    if by_features:
        return Fit(_linear_functions(problem, result), report, last)
    functions = _matrix_functions if X is not problem.X or _is_matrix(problem) else _kernel_functions
    return Fit(functions(problem, result), report, last)


def chosen_space(problem: Problem, settings: _core.FitSettings, products: _core.KernelSettings) -> str:
    """What the core will work on, "coefficients" or "weights"."""
    if _is_matrix(problem):
        return "coefficients"
    prior = problem.prior([kernel.to_core() for kernel in problem.class_kernels.kernels])
    plan = _core.plan(X=problem.X, likelihood=problem.likelihood(), prior=prior, settings=settings, kernels=products)
    return plan.space.name


def core_inputs(problem: Problem, n_threads: int) -> tuple[Any, list[_core.Kernel]]:
    """Inputs and kernels as the core takes them: a kernel that it does not know becomes a matrix."""
    kernels = problem.class_kernels.kernels
    if _is_matrix(problem):
        matrix, variance = kernel_values(kernels[0], problem.X, n_threads)
        return matrix, [_core.PrecomputedKernel(variance)]
    for kernel in kernels:
        kernel.check_reads(problem.X)
    return problem.X, [kernel.to_core() for kernel in kernels]


def kernel_values(kernel: Kernel, X: Any, n_threads: int) -> tuple[Any, float]:
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


def _is_matrix(problem: Problem) -> bool:
    """Whether the kernel's values come from outside of the core."""
    kernels = problem.class_kernels.kernels
    return len(kernels) == 1 and (kernels[0].is_precomputed or not kernels[0].is_native)


def _linear_functions(problem: Problem, result: _core.FitResult) -> LinearFunctions:
    weights, order = result.take_weights(), problem.order
    is_sorted = np.array_equal(order, np.arange(len(order)))
    coef = weights.T if is_sorted else weights.take(order, axis=1).T
    return LinearFunctions(coef, result.intercepts[order], problem.link)


def _matrix_functions(problem: Problem, result: _core.FitResult) -> MatrixFunctions:
    """With one kernel whose matrix does not come from the core."""
    (kernel,) = problem.class_kernels.kernels
    ((pivots, coefficients, _),) = result.take_expansions()
    if result.ranks:
        spread = np.zeros((problem.X.shape[0], problem.n_classes))
        spread[pivots] = coefficients
        coefficients = spread
    basis = None if kernel.is_precomputed else problem.X.copy()
    expansion = Expansion(kernel, basis, coefficients[:, problem.order], tuple(problem.classes.tolist()))
    return MatrixFunctions([expansion], result.intercepts[problem.order], problem.link)


def _kernel_functions(problem: Problem, result: _core.FitResult) -> KernelFunctions:
    kernels, kernel_of = problem.class_kernels.kernels, problem.class_kernels.kernel_of
    coupling = problem.class_kernels.coupling
    rows = None if result.ranks else problem.X.copy()  # what the user does to X later must not change the model
    expansions = []
    for k, (kernel, (pivots, coefficients, weights)) in enumerate(zip(kernels, result.take_expansions(), strict=True)):
        columns = [f for f, own in enumerate(kernel_of) if own == k]
        names = tuple(problem.function_names[f] for f in columns) if kernel_of else tuple(problem.classes.tolist())
        basis = problem.X[pivots] if rows is None else rows
        expansion = Expansion(kernel, basis, coefficients, names, weights if len(weights) > 0 else None)
        if kernel_of:
            # Variances of the functions go into the coefficients, so that these say everything.
            deviations = np.sqrt(coupling.function_variances(len(kernel_of))[columns])
            expansions.append(expansion.with_columns(partial(np.multiply, deviations), names))
        else:
            expansions.append(expansion.with_columns(lambda values: values[:, problem.order], names))
    intercept = result.intercepts[problem.order]
    plain = coupling.without_variances()
    return KernelFunctions(expansions, kernel_of, plain, intercept, problem.order, problem.link)


def _start_weights(start: ClassFunctions | None, problem: Problem) -> Floats | None:
    """Weights of the last fit in the core's layout, if they suit the new problem."""
    if not isinstance(start, LinearFunctions) or start.coef.shape != (problem.n_classes, problem.X.shape[1]):
        return None
    place = np.argsort(problem.order)
    weights = start.coef.T.toarray() if sp.issparse(start.coef) else start.coef.T
    return np.concatenate([weights[:, place].ravel(), start.intercept[place]])


def _start_predictors(start: ClassFunctions | None, problem: Problem, n_threads: int) -> Floats | None:
    """Predictors of the last fit at the new rows, in the core's order of classes."""
    if start is None:
        return None
    try:
        u = start.output(problem.X, "predictor", n_threads)
    except (TypeError, ValueError):  # the old kernel cannot read what the new one can
        return None
    return np.ascontiguousarray(u[:, np.argsort(problem.order)]) if np.isfinite(u).all() else None


class Solver(BaseEstimator):
    """How a fit is computed: ``solver=Solver("ncg", precision="double")``. All ways lead to the same model.

    Only ``products="low_rank"``, or a rank, makes it an approximation.

    Parameters
    ----------
    method : {"auto", "lbfgs", "ncg", "newton", "exact"}, default="auto"
        Limited-memory BFGS; nonlinear conjugate gradients, which needs the least memory; Newton steps by linear
        conjugate gradients, slower, as a cross-check; or Newton steps by Cholesky factors, for flat models, in time
        O(n_classes n_samples^3). "auto" is "lbfgs" where its vectors fit into ``memory_limit``, else "ncg", and "exact"
        where these do not converge on a small flat problem. ``result_.reason`` says what was chosen and why.
    space : {"auto", "coefficients", "weights"}, default="auto"
        Work on dual coefficients (one per row and class) or on primal weights (one per feature and class, or node);
        "auto" takes the smaller. Both give the same model. Weights exist for the linear kernel only.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the products with the inputs. "auto" uses single precision for large problems and changes to double
        when the certificate asks for it. The certificate is always in double precision.
    products : {"auto", "gram", "tiled", "low_rank"}, default="auto"
        How to multiply with kernel matrices. "gram" stores them; "tiled" computes their entries anew for each product
        and needs next to no memory; "low_rank" approximates them by an incomplete Cholesky factorization. "auto" is
        "gram" where it fits into ``memory_limit``, else "tiled", and "low_rank" if a rank or its tolerance is given.
        For the linear kernel it uses the features themselves.
    rank : int, default=None
        Largest rank of the approximation by "low_rank".
    rank_tolerance : float, default=None
        Share of the trace of the kernel matrix at which to stop raising the rank; None means 0 where a rank is given,
        else 0.001.
    memory_limit : float or str, default=None
        Bytes, or a text like "8 GB", that kernel matrices may take; None means half of the machine's memory.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        space: str = "auto",
        precision: str = "auto",
        products: str = "auto",
        rank: int | None = None,
        rank_tolerance: float | None = None,
        memory_limit: float | str | None = None,
    ) -> None:
        self.method = method
        self.space = space
        self.precision = precision
        self.products = products
        self.rank = rank
        self.rank_tolerance = rank_tolerance
        self.memory_limit = memory_limit

    def check(self) -> None:
        """Raise an error for settings that do not exist or do not go together."""
        check_choice("method", self.method, _METHODS)
        check_choice("space", self.space, _SPACES)
        check_choice("precision", self.precision, _PRECISIONS)
        check_choice("products", self.products, _PRODUCTS)
        if self.space == "weights" and self.method in _DUAL:
            raise ValueError(
                f'Solver(method={self.method!r}) works on coefficients; choose space="coefficients" or "auto", got '
                '"weights"'
            )
        if self.rank is not None:
            check_number("rank", self.rank, least=1, integer=True)
        if self.rank_tolerance is not None:
            tolerance = check_number("rank_tolerance", self.rank_tolerance, least=0)
            if tolerance >= 1:
                raise ValueError(f"rank_tolerance is a share of the trace: it must be below 1, got {tolerance}")
        if self.products in ("gram", "tiled") and not (self.rank is None and self.rank_tolerance is None):
            raise ValueError(f'rank and rank_tolerance belong to products="low_rank", got products={self.products!r}')

    def kernel_settings(self) -> _core.KernelSettings:
        """How products with kernel matrices are done, in the core's form."""
        return _core.KernelSettings(
            algorithm=_core.KernelAlgorithm[self.products],
            memory_limit=check_memory_limit(self.memory_limit),
            rank=self.rank,
            rank_tolerance=self.rank_tolerance,
        )

    def fit_settings(self, tol: float, max_iter: int, *, keep_point: bool = False) -> _core.FitSettings:
        """How a fit is done, in the core's form."""
        return _core.FitSettings(
            method=_core.Method[self.method],
            space=_core.Space[self.space],
            precision=_core.Precision[self.precision],
            tol=tol,
            max_iter=max_iter,
            memory_limit=check_memory_limit(self.memory_limit),
            keep_point=keep_point,
        )


def as_solver(solver: Any) -> Solver:
    """The checked value that an estimator's argument means: a solver, or the name of a method."""
    if isinstance(solver, str) and solver in _METHODS:
        return Solver(solver)
    if not isinstance(solver, Solver):
        choices = ", ".join(map(repr, _METHODS))
        raise ValueError(f"solver is {solver!r}, expected one of {choices}, or a Solver")
    solver.check()
    return solver


def check_memory_limit(limit: object) -> float:
    """Bytes from a number of them or a text like "8 GB"; None means half of the memory this process may use."""
    if limit is None:
        return _SHARE * _available()
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kKmMgGtT]?[bB])\s*", limit)
        if found is None:
            raise ValueError(f'memory_limit is {limit!r}, expected a number of bytes or a text like "8 GB"')
        return float(found[1]) * _UNITS[found[2].upper()]
    if isinstance(limit, bool) or not isinstance(limit, Real):
        raise TypeError(f'memory_limit must be a number of bytes or a text like "8 GB", got {type(limit).__name__}')
    bytes_ = float(limit)
    if not 0 <= bytes_ < float("inf"):
        raise ValueError(f"memory_limit must be finite and at least 0, got {limit!r}")
    return bytes_


def _available() -> float:
    """The machine's memory, or what a container grants of it. It does not depend on what else is running."""
    try:
        physical = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN
    return min(physical, *map(_limit, _GROUP_LIMITS))


def _limit(path: str) -> float:
    try:
        return float(Path(path).read_text())
    except (OSError, ValueError):  # no such group, or "max"
        return float("inf")
