"""taxolearn, as it takes part beside the others."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from bench.libraries.contracts import VALUES, Classifier, FitRBF, FittedRBF, Predict, Rows, Solver, SolverEntry, Task
from bench.problems.data import Data
from bench.problems.rbf import Values
from taxolearn import KernelLogisticClassifier, Taxonomy, Tree
from taxolearn import Solver as KernelSolver
from taxolearn.kernels import Linear, PerClass

_INTERCEPT_VARIANCE = 1.0  # of classifiers


def solver(task: Task, method: str = "lbfgs") -> Solver:
    """The flat linear model; its tolerance is the relative gap."""

    def fit(tol: float) -> Any:
        model = KernelLogisticClassifier(
            Linear(task.v),
            intercept_variance=task.intercept_variance,
            tuning=None,
            tol=tol,
            solver=method,
            n_threads=task.n_threads,
        )
        return model.fit(task.data.X, task.data.y)

    return Solver(fit, lambda model: (model.coef_, model.intercept_), (task.gap, task.gap / 2))


def level_tree(taxonomy: Taxonomy, ratio: float) -> Tree:
    """A tree whose variances change by a factor from level to level."""
    return Tree(variances=ratio ** np.arange(taxonomy.height))


def classifier(rows: Rows, tree: bool, variance: float, ratio: float = 1.0) -> Predict:
    """A flat model, or one with variances that change by ``ratio`` from level to level of the tree."""
    model = KernelLogisticClassifier(
        Linear(variance),
        taxonomy=rows.data.taxonomy,
        coupling=level_tree(rows.data.taxonomy, ratio) if tree else "independent",
        intercept_variance=_INTERCEPT_VARIANCE,
        tuning=None,
        n_threads=rows.n_threads,
    )
    model.fit(rows.X, rows.classes[rows.y])
    columns = np.searchsorted(rows.classes, model.classes_)
    seen = np.isin(model.classes_, rows.classes)  # the tree may have classes without any row
    return lambda X: rows.spread(columns[seen], model.predict_proba(X)[:, seen])


def rbf_model(
    data: Data, values: Values, n_threads: int, own: bool = False, gap: float = 1e-4, **solver: Any
) -> FitRBF:
    """One kernel for all classes, or ``own`` ones; the rest are arguments of ``Solver``."""
    kernel = PerClass(values.kernel) if own else values.kernel

    def fit() -> FittedRBF:
        model = KernelLogisticClassifier(
            kernel,
            intercept_variance=values.intercept_variance,
            tuning=None,
            tol=gap,
            solver=KernelSolver(**solver),
            n_threads=n_threads,
        )
        result = model.fit(data.X, data.y).result_
        facts = {
            "products": result.products,
            "gap": result.relative_gap,
            "kernel_megabytes": result.kernel_bytes / 1e6,
            "algorithm": result.algorithm,
            "reason": result.reason,
            "precision": result.precision,
            "timings": result.timings,
            "status": result.status,
        }
        return FittedRBF(model.predict_log_proba, model.classes_, facts)

    return fit


SOLVERS = {"taxolearn": SolverEntry(solver)}
CLASSIFIERS = {
    "taxolearn, tree": Classifier(
        partial(classifier, tree=True),
        tuple({"variance": value, "ratio": ratio} for value, ratio in product(VALUES, (1 / 3, 1.0))),
    ),
    "taxolearn, flat": Classifier(partial(classifier, tree=False), tuple({"variance": value} for value in VALUES)),
}
RBF_MODELS = {"taxolearn": rbf_model}
