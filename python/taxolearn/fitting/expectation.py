"""Expectation maximization: fits to rows of which only a set of classes is known (Seeger 2008, 7.4.2).

With S_i the classes that row i allows, the penalized negative log marginal likelihood

    B(f) = -sum_i w_i log sum_{c in S_i} pi_ic + |f|^2 / 2

is not convex. For any distributions r_i over S_i it lies below the convex function

    Q(f, r) = -sum_i w_i sum_c r_ic log pi_ic + |f|^2 / 2 - sum_i w_i H(r_i),

and touches it where r_i are the responsibilities: the probabilities pi_i, restricted to S_i and renormalized. A round
takes these from the current model, and lowers Q by a few iterations of the solver, from where it stopped in the
round before. So B never rises. The last round is a fit to the certified tolerance.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from taxolearn import _core
from taxolearn.fitting.fit import Fit, Problem, fit_functions
from taxolearn.fitting.functions import ClassFunctions
from taxolearn.progress import ProgressCallback
from taxolearn.targets import AllowedSets, Targets

__all__ = ["ExpectationResult", "RoundCallback", "fit_expectation"]

Floats = npt.NDArray[np.float64]
RoundCallback = Callable[[int, int, float, float], None]  # round, products, bound, relative change

_ITERATIONS = 5  # of the solver in a round
_FIRST_TOLERANCE = 1e-3  # of the fit to labelled rows that rounds begin from
_ROUNDING = 1e-12  # of the bound, relative


@dataclass(frozen=True)
class ExpectationResult:
    """How expectation maximization went.

    Attributes
    ----------
    status : str
        "converged": the bound changed by less than ``PartialLabels.tol``, or "max_rounds".
    rounds : int
        Rounds, the last one, which is a whole fit, included.
    bounds : tuple of float
        Penalized negative log marginal likelihood of the model that rounds began from, unless that was a warm start,
        and after each round.
    products : int
        Products with the kernel matrix in all rounds, and in the fit to labelled rows before them.
    uncertain : int
        Rows that allow more than one class.
    """

    status: str
    rounds: int
    bounds: tuple[float, ...]
    products: int
    uncertain: int


class _Step:
    """Responsibilities and the bound, of rows that allow several classes. Classes are in the order of the core."""

    def __init__(self, problem: Problem, allowed: AllowedSets, n_threads: int) -> None:
        self._allowed = allowed
        self._X = problem.X[allowed.rows]
        self._place = np.argsort(problem.order)
        weights = problem.sample_weight
        self._weights = np.ones(len(allowed.rows)) if weights is None else weights[allowed.rows]
        self._n_threads = n_threads

    def __call__(self, functions: ClassFunctions) -> Floats:
        """Responsibilities under these functions."""
        log_proba = functions.output(self._X, "log_probability", self._n_threads)
        return self._allowed.responsibilities(np.ascontiguousarray(log_proba[:, self._place]))[0]

    def loss(self, functions: ClassFunctions) -> float:
        """The part of these rows in the bound."""
        log_proba = functions.output(self._X, "log_probability", self._n_threads)
        total = self._allowed.responsibilities(np.ascontiguousarray(log_proba[:, self._place]))[1]
        return float(-self._weights @ total)

    def loss_of_nothing(self, n_classes: int) -> float:
        """The same if all classes have the same probability."""
        return float(self._weights @ np.log(n_classes / self._allowed.sizes[self._allowed.of]))

    def entropy(self, given: Floats, now: Floats) -> float:
        """What the objective at given responsibilities is above the bound: their cross entropy with those of now."""
        # A class whose share has become 0 in this arithmetic has a share below the smallest number.
        least = np.finfo(np.float64).tiny
        return float(-self._weights @ xlogy(given, np.maximum(now, least)).sum(axis=1))


def fit_expectation(
    problem: Problem,
    targets: Targets,
    settings: _core.FitSettings,
    products: _core.KernelSettings,
    *,
    tol: float,
    max_rounds: int,
    start: ClassFunctions | None = None,
    point: Floats | None = None,
    n_threads: int = 1,
    progress: ProgressCallback | None = None,
    round_progress: RoundCallback | None = None,
) -> tuple[Fit, ExpectationResult]:
    """Fit where some rows allow several classes; see ``fit_functions`` for the other arguments.

    Rounds begin from ``start``; without one, from a rough fit to the rows with one class, in which the others have
    weight 0; and if there is no such row, from responsibilities that are even over the allowed classes.
    """
    allowed = targets.allowed
    assert allowed is not None, "a fit of certain rows needs no expectations"
    step = _Step(problem, allowed, n_threads)
    shares: Floats = np.asarray(targets.first())
    rough = copy(settings)
    rough.exact_fallback, rough.keep_point = False, True
    functions, bounds, spent = start, [], 0
    if start is None and _has_labels(problem, targets):
        weights = np.ones(len(targets.labels)) if problem.sample_weight is None else problem.sample_weight.copy()
        weights[allowed.rows] = 0.0
        begin = replace(problem, targets=shares, sample_weight=weights)
        loose = copy(rough)
        loose.tol = max(_FIRST_TOLERANCE, settings.tol)
        first = fit_functions(begin, loose, products, point=point, n_threads=n_threads)
        functions, point, spent = first.functions, first.point, first.result.products
        bounds = [first.result.objective + step.loss(functions)]
    elif start is None:
        point = None
        bounds = [step.loss_of_nothing(targets.n_classes)]
    rough.max_iter = min(_ITERATIONS, settings.max_iter)
    given = shares[allowed.rows] if functions is None else step(functions)
    status = "max_rounds"
    rounds = 0
    while rounds < max_rounds - 1 and status != "converged":
        shares[allowed.rows] = given
        problem = replace(problem, targets=shares)
        candidate = fit_functions(problem, rough, products, start=functions, point=point, n_threads=n_threads)
        spent += candidate.result.products
        now = step(candidate.functions)
        bound = candidate.result.objective - step.entropy(given, now)
        change = (bounds[-1] - bound) / abs(bound) if bounds else np.inf
        if change < tol:
            status = "converged"
        if change < -_ROUNDING:  # there was nothing left to gain, and rounding has lost some of it
            break
        rounds += 1
        bounds.append(bound)
        functions, given, point = candidate.functions, now, candidate.point
        if round_progress is not None:
            round_progress(rounds, spent, bound, change)
    shares[allowed.rows] = given
    last = fit_functions(
        replace(problem, targets=shares),
        settings,
        products,
        start=functions,
        point=point,
        n_threads=n_threads,
        progress=progress,
    )
    bounds.append(last.result.objective - step.entropy(given, step(last.functions)))
    report = ExpectationResult(status, rounds + 1, tuple(bounds), spent + last.result.products, len(allowed.rows))
    return last, report


def _has_labels(problem: Problem, targets: Targets) -> bool:
    rows = targets.labelled
    return len(rows) > 0 and (problem.sample_weight is None or bool((problem.sample_weight[rows] > 0).any()))
