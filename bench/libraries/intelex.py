"""scikit-learn-intelex: LogisticRegression of oneDAL."""

import importlib
from dataclasses import replace

from bench.libraries import scikit_learn
from bench.libraries.contracts import Solver, SolverEntry, Task


def solver(task: Task) -> Solver:
    """The same as scikit-learn's, but for its tolerances."""
    estimator = importlib.import_module("sklearnex.linear_model").LogisticRegression
    made = scikit_learn.solver(task, "lbfgs", estimator=estimator)
    return replace(made, tolerances=tuple(1e4 * tol for tol in made.tolerances))  # it stops by another quantity


SOLVERS = {"scikit-learn-intelex lbfgs": SolverEntry(solver, sparse=False)}
