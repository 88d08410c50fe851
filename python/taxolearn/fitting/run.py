"""One fit by the core, and the class functions that it leaves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn import _core
from taxolearn.fitting.functions import ClassFunctions, Expansion, KernelFunctions, LinearFunctions, MatrixFunctions
from taxolearn.fitting.problem import FitResult, Problem
from taxolearn.kernels.base import Kernel
from taxolearn.kernels.checks import check_positive_semidefinite
from taxolearn.kernels.precomputed import Precomputed
from taxolearn.progress import ProgressCallback

__all__ = ["Fit", "chosen_space", "fit_functions", "kernel_values"]

Floats = npt.NDArray[np.float64]


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
        kernel.check_features(problem.X.shape[1])
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
    ((pivots, coefficients),) = result.take_expansions()
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
    for k, (kernel, (pivots, coefficients)) in enumerate(zip(kernels, result.take_expansions(), strict=True)):
        columns = [f for f, own in enumerate(kernel_of) if own == k]
        if kernel_of:
            # Variances of the functions go into the coefficients, so that these tell everything.
            coefficients *= np.sqrt(coupling.function_variances(len(kernel_of))[columns])
            names = tuple(problem.function_names[f] for f in columns)
        else:
            coefficients, names = coefficients[:, problem.order], tuple(problem.classes.tolist())
        basis = problem.X[pivots] if rows is None else rows
        expansions.append(Expansion(kernel, basis, np.ascontiguousarray(coefficients), names))
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
