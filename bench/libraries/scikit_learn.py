"""scikit-learn: LogisticRegression, and models with an RBF kernel.

LogisticRegression has no prior on its intercept, so there the intercept is one more feature, the constant
sqrt(sigma2 / v), with ``fit_intercept=False`` and ``C=v``:

    v loss + |w|^2 / 2 + a^2 / 2   is, with b = a sqrt(sigma2 / v), v times   loss + |w|^2 / (2 v) + b^2 / (2 sigma2).

RBF models get the same length scale and, where they have one, the same variance v of the functions and sigma2 of the
intercepts. With features phi(x) of Nystroem, phi(x)' phi(x') = exp(-gamma |x - x'|^2) nearly, so a logistic regression
on them with ``C=v`` has the objective of our low rank but for its intercepts, which have no prior. The Gaussian
process classifier has no intercepts: a constant kernel of variance sigma2 takes their place.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from bench.libraries.contracts import FitRBF, FittedRBF, Model, Solver, SolverEntry, Task, logarithms
from bench.problems.data import Data
from bench.problems.rbf import Values

_DECREASING = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(1, 23))


def solver(task: Task, method: str, dtype: Any = np.float64, estimator: Any = LogisticRegression) -> Solver:
    """LogisticRegression, or an estimator that is used alike, on augmented inputs."""
    X = task.augmented().astype(dtype)

    def fit(tol: float) -> Any:
        model = estimator(C=task.v, solver=method, tol=tol, fit_intercept=False, max_iter=2000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X, task.data.y)

    def read(model: Any) -> Model:
        coef = model.coef_.astype(np.float64)
        return coef[:, :-1], coef[:, -1] * np.sqrt(task.intercept_variance / task.v)

    return Solver(fit, read, _DECREASING)


class LogisticRegressionWithPrior(LogisticRegression):  # type: ignore[misc,unused-ignore]
    """Logistic regression whose intercepts, as weights of one more feature, have a prior of variance 1."""

    def _with_constant(self, X: Any) -> Any:
        constant = np.full((X.shape[0], 1), np.sqrt(1.0 / self.C))
        return sparse.hstack([X, constant], format="csr")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return super().fit(self._with_constant(X), y, sample_weight)

    def decision_function(self, X: Any) -> Any:
        return super().decision_function(self._with_constant(X))


def _fit(model: Any, data: Data, n_iter: Callable[[Any], Any] | None = None) -> FitRBF:
    def fit() -> FittedRBF:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(data.X, data.y)
        facts: dict[str, Any] = {"status": caught[0].category.__name__ if caught else "converged"}
        if n_iter is not None:
            facts["iterations"] = int(np.max(n_iter(model)))
        return FittedRBF(lambda X: logarithms(model.predict_proba(X)), model.classes_, facts)

    return fit


def nystroem(data: Data, values: Values, n_threads: int, rank: int) -> FitRBF:
    """Logistic regression on features of a given rank."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    features = Nystroem(gamma=values.w / 2, n_components=min(rank, len(data.y)), random_state=0)
    model = make_pipeline(features, LogisticRegression(C=values.variance, max_iter=2000))
    return _fit(model, data, lambda fitted: fitted[-1].n_iter_)


def svc(data: Data, values: Values, n_threads: int) -> FitRBF:
    """A support vector machine with calibrated probabilities."""
    import joblib
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    machine = SVC(C=values.penalty, gamma=values.w / 2, cache_size=1000)
    fit = _fit(CalibratedClassifierCV(machine, ensemble=False, method=values.calibration, n_jobs=n_threads), data)

    def in_threads() -> FittedRBF:  # of one process, so that its memory is that of the fit
        with joblib.parallel_config("threading"):
            return fit()

    return in_threads


def gaussian_process(data: Data, values: Values, n_threads: int) -> FitRBF:
    """Gaussian processes, one against the rest, by Laplace's approximation."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    kernel = ConstantKernel(values.variance) * RBF(values.w**-0.5) + ConstantKernel(values.intercept_variance)
    return _fit(GaussianProcessClassifier(kernel, optimizer=None, multi_class="one_vs_rest"), data)


_MOST_WEIGHTS = 10_000  # for a solver that stores and factors the matrix of second derivatives
SOLVERS = {
    "scikit-learn lbfgs": SolverEntry(partial(solver, method="lbfgs")),
    "scikit-learn newton-cg": SolverEntry(partial(solver, method="newton-cg")),
    "scikit-learn newton-cholesky": SolverEntry(
        partial(solver, method="newton-cholesky"), sparse=False, most_weights=_MOST_WEIGHTS
    ),
    "scikit-learn saga": SolverEntry(partial(solver, method="saga")),
    "scikit-learn saga float32": SolverEntry(partial(solver, method="saga", dtype=np.float32)),
}
RBF_MODELS = {"Nystroem": nystroem, "SVC": svc, "GaussianProcessClassifier": gaussian_process}
