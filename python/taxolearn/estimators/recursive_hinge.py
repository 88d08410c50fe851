"""Recursive regularization with hinge losses: one fit, and its variances by cross-validation along a warm path."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from taxolearn.estimators.label_calibration import fit_class_temperature, fit_label_calibration, label_log_loss
from taxolearn.estimators.recursive_variances import as_graph, as_variances, structure_of, tied_with_root
from taxolearn.fitting.recursive import NodePrecision, RecursiveFit, fit_recursive
from taxolearn.progress import ProgressCallback, fit_progress, learning_progress
from taxolearn.targets import LabelSets, Targets, class_weights, row_weights
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.tuning.cross_validation import CrossValidation, TuningData, choose_rows
from taxolearn.tuning.search import Evaluation, LearningResult
from taxolearn.validation import check_number, check_threads

if TYPE_CHECKING:
    from taxolearn.estimators.recursive import RecursiveRegularizationClassifier

__all__ = ["HingeLearning", "HingeProblem", "fit_hinge_problem"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_FACTOR = 4.0  # from one value of a variance to the next
_FIRST = 1 / 16  # of the inverse mean squared length of the rows: where the path begins
_PATIENCE = 2  # values without gain after which the path ends
_LEAST_GAIN = 1e-3  # of the loss, relative
_LARGEST_LOSS = 0.01  # relative, after which the path ends at once: fits with larger variances take longer
_LARGEST = np.log(1e8)  # of a variance, and of its inverse
_MOST_GROUPS = 12  # whose variances are moved one by one
_TOLERANCE = 1e-2  # relative gap of the fits to folds
_PREDICTORS = 2**24  # of held-out rows that are kept
_MESSAGES = {
    "converged": f"variances were tried in steps of a factor of {_FACTOR:g}, {{}} in all",
    "max_evaluations": "stopped after max_evaluations={}",
    "time_limit": "stopped by the time limit after {} evaluations",
    "interrupted": "stopped by Ctrl-C after {} evaluations",
}


@dataclass(frozen=True)
class HingeProblem:
    """What is fitted, for any variances; labels are in the core's order."""

    X: Any
    sets: LabelSets
    targets: Targets
    parents: npt.NDArray[np.int64] | None
    graph: NodePrecision | None  # instead of a tree
    groups: npt.NDArray[np.int64] | None  # of the nodes, the root's too
    names: list[str]  # of the groups
    loss: str
    bias: float
    weights: Floats | None
    positive_weights: Floats | None
    max_iter: int
    seed: int
    n_threads: int

    @classmethod
    def of(cls, model: RecursiveRegularizationClassifier, X: Any, targets: Targets, sample_weight: Any) -> HingeProblem:
        """Check the arguments of the estimator that make it."""
        taxonomy = targets.taxonomy
        sets = targets.sets
        if sets is None:
            sets = LabelSets(targets.labels, np.arange(len(targets.labels) + 1, dtype=np.int64), targets.n_classes)
        positive = None
        if model.class_weight is not None:
            counts = sets.counts()
            positive = np.where(counts > 0, class_weights(targets, model.class_weight, counts), 1.0)
        groups, names = (None, [""]) if taxonomy is None else tied_with_root(taxonomy, model.tying)
        return cls(
            X=X,
            sets=sets,
            targets=targets,
            parents=None if taxonomy is None else taxonomy.parents,
            graph=_precision(model, targets),
            groups=groups,
            names=names,
            loss=model.loss,
            bias=float(np.sqrt(check_number("intercept_variance", model.intercept_variance, least=0))),
            weights=row_weights(targets, sample_weight, None, X),
            positive_weights=positive,
            max_iter=check_number("max_iter", model.max_iter, least=1, integer=True),
            seed=int(check_random_state(model.random_state).randint(2**31 - 1)),
            n_threads=check_threads(model.n_threads),
        )

    def variances(self, C: Any) -> Floats:
        """Logarithms of the variances of all groups that the estimator's argument means."""
        if C is None:
            return np.full(len(self.names), -np.log(_mean_square(self.X)))
        return np.log(as_variances(C, self.names, has_tree=self.groups is not None))

    def fit(
        self,
        logs: Floats,
        tol: float,
        rows: Rows | None = None,
        start: sp.csr_array | None = None,
        progress: ProgressCallback | None = None,
    ) -> RecursiveFit:
        """The fit to some rows, or all."""
        X, sets, weights = self.X, self.sets, self.weights
        if rows is not None:
            X, sets, weights = X[rows], sets.take(rows), None if weights is None else weights[rows]
        scale = float(np.mean(logs))
        return fit_recursive(
            X,
            sets.offsets,
            sets.labels,
            sets.n_labels,
            parents=self.parents,
            graph=self.graph,
            variances=None if self.groups is None else np.exp(logs - scale)[self.groups],
            loss=self.loss,
            C=float(np.exp(scale)),
            bias=self.bias,
            sample_weight=weights,
            positive_weights=self.positive_weights,
            tol=tol,
            max_iter=self.max_iter,
            random_state=self.seed,
            start=start,
            n_threads=self.n_threads,
            progress=progress,
        )

    def start_of(self, duals: sp.csr_array | None) -> sp.csr_array | None:
        """Dual variables of an earlier fit, if they suit; rows that came since are at the end and begin with zero."""
        n_classes, n = self.sets.n_labels, len(self.sets)
        if duals is None or duals.shape[0] != n_classes or duals.shape[1] > n:
            return None
        return sp.csr_array((duals.data, duals.indices, duals.indptr), shape=(n_classes, n))


def _precision(model: RecursiveRegularizationClassifier, targets: Targets) -> NodePrecision | None:
    """The prior of the graph that the argument ``taxonomy`` may be."""
    if not isinstance(structure_of(model.taxonomy), ClassGraph):
        return None
    precision = as_graph(model.taxonomy).precision(targets.in_core_order)
    return NodePrecision(precision.matrix(), precision.classes)


def _mean_square(X: Any) -> float:
    total = float(X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij", X, X, dtype=np.float64))
    return total / X.shape[0] if total > 0 else 1.0


@dataclass(frozen=True)
class _Tried:
    """Variances, what held-out rows say of them, and where fits with others begin."""

    evaluation: Evaluation
    duals: list[sp.csr_array]
    predictors: Floats  # of held-out rows of the first partition
    rows: Rows  # which these are


@dataclass(frozen=True)
class HingeLearning:
    """Logarithms of the best variances, how they were found, and predictors of held-out rows."""

    logs: Floats
    temperature: float
    result: LearningResult
    predictors: Floats
    rows: Rows


def learn_variances(
    problem: HingeProblem, model: RecursiveRegularizationClassifier, tuning: CrossValidation
) -> HingeLearning:
    """Find the variances with the least calibrated log loss of held-out rows.

    One factor of all variances grows along a path, on which each fold begins with the dual variables it had before, as
    long as the loss falls. Then, unless ``search="scale"``, variances of single groups are tried a step up and down.
    """
    tuning.check()
    if tuning.checkpoint is not None:
        raise ValueError(f"checkpoint is {tuning.checkpoint!r}, but hinge losses have none; leave it out")
    search = _Search(problem, model, tuning)
    start = problem.variances(model.C)
    if model.C is None:
        start = start + np.log(_FIRST)
    with learning_progress(int(model.verbose), 1.0, tuning.max_evaluations, tuning.time_limit) as progress:
        status = search.run(start, tuning, progress)
    best = search.best
    assert best is not None
    result = LearningResult(
        status=status,
        message=_MESSAGES[status].format(len(search.done)),
        names=tuple(f"C[{name}]" if name else "C" for name in problem.names),
        start=start,
        bounds=np.tile([-_LARGEST, _LARGEST], (len(start), 1)),
        n_held_out=search.n_held_out,
        evaluations=tuple(search.done),
        best=next(k for k, each in enumerate(search.done) if each is best.evaluation),
    )
    if status == "max_evaluations":
        warnings.warn(f"Learning hyperparameters: {result.message}.", ConvergenceWarning, stacklevel=5)
    found = best.evaluation
    return HingeLearning(found.theta, found.temperature, result, best.predictors, best.rows)


class _EndError(Exception):
    """Says why the search is over."""


class _Search:
    """Values that were tried, and the best of them."""

    def __init__(
        self, problem: HingeProblem, model: RecursiveRegularizationClassifier, tuning: CrossValidation
    ) -> None:
        self._problem = problem
        self._random = check_random_state(model.random_state)
        targets = problem.targets
        rows = choose_rows(targets.labels, tuning.subset, self._random)
        self._rows = np.arange(len(problem.sets)) if rows is None else rows
        labels = targets.labels[self._rows]
        data = TuningData(
            problem.X, problem.sets, labels, targets.in_core_order, targets.taxonomy, problem.weights, rows
        )
        self._partitions = data.partitions(tuning, self._random)
        most = max(1, _PREDICTORS // problem.sets.n_labels)
        self._scored = [self._choose(np.flatnonzero(folds >= 0), most) for folds in self._partitions]
        weights = np.ones(len(problem.sets)) if problem.weights is None else problem.weights
        self.n_held_out = float(np.mean([weights[self._rows[rows]].sum() for rows in self._scored]))
        if self.n_held_out == 0:
            raise ValueError("sample_weight is zero for all rows that are held out; give them weight, or other folds")
        self._weights = None if problem.weights is None else problem.weights
        self._given = None
        if not tuning.learn_temperature:
            self._given = float(model.temperature), float(model.offset)
        self.done: list[Evaluation] = []
        self.best: _Tried | None = None

    def _choose(self, rows: Rows, most: int) -> Rows:
        """Some of the rows, if there are too many to keep all their predictors."""
        return rows if len(rows) <= most else np.sort(self._random.choice(rows, most, replace=False))

    def run(self, start: Floats, tuning: CrossValidation, progress: Callable[..., None] | None) -> str:
        """Search, and say how it ended."""
        begin = time.perf_counter()
        deadline = np.inf if tuning.time_limit is None else begin + tuning.time_limit

        def attempt(logs: Floats) -> bool:
            if self.best is not None and len(self.done) >= tuning.max_evaluations:
                raise _EndError("max_evaluations")
            if self.best is not None and time.perf_counter() >= deadline:
                raise _EndError("time_limit")
            is_better = self._try(logs)
            if progress is not None:
                assert self.best is not None
                means = [each.value / self.n_held_out for each in (self.done[-1], self.best.evaluation)]
                progress(len(self.done), *means, np.nan, time.perf_counter() - begin)
            return is_better

        try:
            self._along_path(start, attempt)
            if tuning.search != "scale" and 1 < len(start) <= _MOST_GROUPS:
                self._by_group(len(start), attempt)
        except _EndError as end:
            return str(end)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            return "interrupted"
        return "converged"

    def _along_path(self, start: Floats, attempt: Callable[[Floats], bool]) -> None:
        attempt(start)
        for direction in (1, -1):
            failures, step = 0, 0
            while failures < _PATIENCE:
                step += direction
                logs = start + step * np.log(_FACTOR)
                if np.abs(logs).max() > _LARGEST:
                    break
                failures = 0 if attempt(logs) else failures + self._weight_of_failure()
            assert self.best is not None
            if direction * float((self.best.evaluation.theta - start)[0]) > 0:
                break

    def _weight_of_failure(self) -> int:
        assert self.best is not None
        return _PATIENCE if self.done[-1].value > (1 + _LARGEST_LOSS) * self.best.evaluation.value else 1

    def _by_group(self, count: int, attempt: Callable[[Floats], bool]) -> None:
        for group in range(count):
            for direction in (1, -1):
                assert self.best is not None
                logs = self.best.evaluation.theta.copy()
                logs[group] += direction * np.log(_FACTOR)
                if abs(logs[group]) <= _LARGEST and attempt(logs):
                    break

    def _try(self, logs: Floats) -> bool:
        """Evaluate, and say whether it is the best so far."""
        begin = time.perf_counter()
        duals: list[sp.csr_array] = []
        starts = None if self.best is None else self.best.duals
        value, passes, gap, converged = 0.0, 0.0, 0.0, True
        log_temperatures = []
        first: Floats | None = None
        for folds, scored in zip(self._partitions, self._scored, strict=True):
            u = np.empty((len(scored), self._problem.sets.n_labels))
            for fold in range(int(folds.max()) + 1):
                fit = self._problem.fit(
                    logs, _TOLERANCE, self._rows[folds != fold], None if starts is None else starts[len(duals)]
                )
                duals.append(fit.duals)
                inside = folds[scored] == fold
                rows = self._problem.X[self._rows[scored[inside]]]
                u[inside] = fit.predictor().scores(rows, n_threads=self._problem.n_threads)
                passes, gap = passes + fit.passes, max(gap, fit.relative_gap)
                converged = converged and fit.status == "converged"
            temperature, loss = self._loss(u, self._rows[scored])
            value += loss / len(self._partitions)
            log_temperatures.append(np.log(temperature))
            first = u if first is None else first
        assert first is not None
        found = Evaluation(
            theta=logs,
            value=value,
            gradient=None,
            converged=converged,
            gap=gap,
            products=round(passes),
            seconds=time.perf_counter() - begin,
            tolerance=_TOLERANCE,
            temperature=float(np.exp(np.mean(log_temperatures))),
        )
        self.done.append(found)
        if self.best is not None and not value < (1 - _LEAST_GAIN) * self.best.evaluation.value:
            return False
        self.best = _Tried(found, duals, first, self._rows[self._scored[0]])
        return True

    def _loss(self, u: Floats, rows: Rows) -> tuple[float, float]:
        """The best temperature of held-out rows, and their log loss there."""
        weights = None if self._weights is None else self._weights[rows]
        targets = self._problem.targets
        if targets.sets is None:
            return fit_class_temperature(u, targets.labels[rows], weights, self._given and self._given[0])
        truth = targets.sets.take(rows).matrix()
        temperature, offset = self._given or fit_label_calibration(u, truth, weights)
        return temperature, label_log_loss(u, truth, weights, temperature, offset)


def fit_hinge_problem(
    model: RecursiveRegularizationClassifier, problem: HingeProblem, tuning: CrossValidation | None, tol: float
) -> tuple[RecursiveFit, Floats, HingeLearning | None]:
    """Learn variances if that is asked for, and fit to all rows: the fit, logarithms of variances, what was learned."""
    learned = None if tuning is None else learn_variances(problem, model, tuning)
    logs = problem.variances(model.C) if learned is None else learned.logs
    start = problem.start_of(getattr(model, "_duals", None)) if model.warm_start else None
    with fit_progress(int(model.verbose), tol) as progress:
        fit = problem.fit(logs, tol, start=start, progress=progress)
    return fit, logs, learned
