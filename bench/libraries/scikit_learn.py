"""scikit-learn: LogisticRegression, models with an RBF kernel, and what its users take for whole jobs.

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
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from bench.harness.job_scores import columns_of, mean_loss
from bench.libraries.contracts import (
    FitJob,
    FitLabels,
    FitRBF,
    FittedJob,
    FittedLabels,
    FittedRBF,
    JobModel,
    LabelAnswer,
    LabelModel,
    Model,
    Predict,
    Rows,
    Solver,
    SolverEntry,
    Task,
    chosen_by_a_tenth,
    logarithms,
    one_answer,
)
from bench.problems.data import Data, Floats
from bench.problems.features import is_long_text, sparse_table_features, usual_features
from bench.problems.jobs import Job, held_out_tenth
from bench.problems.label_jobs import LabelJob
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


_PENALTIES = (0.1, 1.0, 10.0)
_TABLE_PENALTIES = (1.0, 10.0, 100.0)
_RATES = (0.1, 0.05)
_FOLDS = 3
_MOST_ROUNDS = 1000  # of boosting
_PATIENCE = 10  # rounds without a gain, as by default


def _in_threads(n_threads: int) -> Any:
    """Jobs are threads of this process, so that their memory and processor time are those of the fit."""
    import joblib

    return joblib.parallel_config("threading", n_jobs=n_threads)


def linear_svc(job: Job, n_threads: int, word_pairs: bool = False) -> FitJob:
    """A support vector machine, C by cross-validated accuracy, with calibrated probabilities.

    ``CalibratedClassifierCV`` refuses classes with fewer rows than folds. Then probabilities are the softmax of the
    decision values, divided by a temperature that a machine fitted to nine tenths of the rows has on the last one.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    def run() -> FittedJob:
        features = usual_features(job, word_pairs)
        with _in_threads(n_threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of iterations, and of classes with fewer rows than folds
            X = features.fit_transform(job.X)
            search = GridSearchCV(LinearSVC(), {"C": _PENALTIES}, cv=_FOLDS, refit=False).fit(X, job.y)
            machine = LinearSVC(**search.best_params_)
            setting = f"C {search.best_params_['C']:g}"
            if np.unique(job.y, return_counts=True)[1].min() >= _FOLDS:
                calibrated = CalibratedClassifierCV(machine, method="sigmoid", cv=_FOLDS).fit(X, job.y)
                return one_answer(job, features, calibrated.predict_proba, calibrated.classes_, setting)
            held_out, rest = held_out_tenth(job.y)
            machine.fit(X[rest], job.y[rest])
            columns = columns_of(job.y[held_out], machine.classes_)
            temperature = _temperature(machine.decision_function(X[held_out]), columns)
            machine.fit(X, job.y)

        def proba(X: Any) -> Floats:
            probabilities: Floats = softmax(machine.decision_function(X) / temperature, axis=1)
            return probabilities

        return one_answer(job, features, proba, machine.classes_, f"{setting}, temperature {temperature:.2g}")

    return run


def _temperature(scores: Floats, columns: Any) -> float:
    """By which scores are divided so that their softmax has the least log loss."""

    def loss(log_temperature: float) -> float:
        return mean_loss(log_softmax(scores / np.exp(log_temperature), axis=1), columns)

    return float(np.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x))


def _log_likelihood(model: Any, X: Any, y: Any) -> float:
    """What "neg_log_loss" means, also for a fold in which some class has no row."""
    return -mean_loss(logarithms(model.predict_proba(X)), columns_of(y, model.classes_))


def logistic_cv(
    job: Job, n_threads: int, features_of: Callable[[Job], Any] = usual_features, penalties: int = 5
) -> FitJob:
    """LogisticRegressionCV: some values of C, three folds, log loss."""
    from sklearn.linear_model import LogisticRegressionCV

    def run() -> FittedJob:
        features = features_of(job)
        with _in_threads(n_threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as above
            X = features.fit_transform(job.X)
            model = LogisticRegressionCV(Cs=penalties, cv=_FOLDS, scoring=_log_likelihood, max_iter=200)
            model.fit(X, job.y)
        return one_answer(job, features, model.predict_proba, model.classes_, f"C {np.ravel(model.C_)[0]:g}")

    return run


def logistic(rows: Rows, C: float) -> Predict:
    """LogisticRegression with at most 200 iterations."""
    with _in_threads(rows.n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=C, max_iter=200).fit(rows.X, rows.y)
    return lambda X: rows.spread(model.classes_, model.predict_proba(X))


def boosted_trees(job: Job, n_threads: int) -> FitJob:
    """Stop by a held-out tenth, and take the better rate; the model is not fitted to that tenth afterwards."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    def run() -> FittedJob:
        held_out, rest = held_out_tenth(job.y)
        tenth = {"X_val": job.X[held_out], "y_val": job.y[held_out]}
        models = [
            HistGradientBoostingClassifier(
                learning_rate=rate, max_iter=_MOST_ROUNDS, early_stopping=True, n_iter_no_change=_PATIENCE
            ).fit(job.X[rest], job.y[rest], **tenth)
            for rate in _RATES
        ]
        best = max(models, key=lambda model: np.max(model.validation_score_))
        setting = f"learning_rate {best.learning_rate:g}, {best.n_iter_} rounds"
        return one_answer(job, None, best.predict_proba, best.classes_, setting)

    return run


def forest(job: LabelJob, n_threads: int) -> FitLabels:
    """Trees that predict all labels at once: those of a classifier, whose impurity is twice the variance."""
    from sklearn.ensemble import RandomForestRegressor

    def run() -> FittedLabels:
        model = RandomForestRegressor(
            _TREES, max_features="sqrt", min_samples_leaf=_ROWS_OF_LEAF, n_jobs=n_threads, random_state=0
        )
        model.fit(job.X, job.Y.toarray())
        return FittedLabels(lambda X: LabelAnswer(model.predict(X)))

    return run


_TREES, _ROWS_OF_LEAF = 50, 3
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
_SVC_TUNING = (
    "tf-idf or standardized columns; C of 0.1, 1, 10 by the accuracy of 3 folds; then CalibratedClassifierCV, 3 folds, "
    "sigmoid, or, where a class has fewer than 3 rows, a fit to all rows and the softmax of its decision values, whose "
    "temperature is chosen on a held-out tenth"
)
JOB_MODELS = {
    "LinearSVC": JobModel(linear_svc, _SVC_TUNING),
    "LinearSVC (word pairs)": JobModel(
        partial(linear_svc, word_pairs=True), "the same with pairs of words as well, for long texts", is_long_text
    ),
    "LogisticRegressionCV": JobModel(
        logistic_cv, "tf-idf or standardized columns; Cs=5, 3 folds, log loss, lbfgs with at most 200 iterations"
    ),
    "HistGradientBoosting": JobModel(
        boosted_trees,
        f"learning_rate of 0.1, 0.05; rounds, at most {_MOST_ROUNDS}, and rate by the log loss of a held-out tenth, "
        f"after {_PATIENCE} rounds without a gain; no fit to all rows",
        takes=lambda job: not job.is_sparse,
    ),
}
EMBEDDING_MODELS = {
    "LogisticRegressionCV on embedding": JobModel(
        partial(logistic_cv, features_of=lambda _: FunctionTransformer(attrgetter("embedding")), penalties=10),
        "the embeddings as they are; Cs=10, 3 folds, log loss, lbfgs with at most 200 iterations",
        embeds=True,
    )
}
TABLE_MODELS = {
    "LogisticRegression": JobModel(
        chosen_by_a_tenth(logistic, _TABLE_PENALTIES, (), lambda _: sparse_table_features()),
        "tf-idf of the title, scaled numbers with flags of missing ones, indicators of categories and parts of dates; "
        "C of 1, 10, 100 by the log loss of a held-out tenth, lbfgs with at most 200 iterations",
    )
}
GENE_MODELS = {
    "RandomForest": LabelModel(
        forest, f"{_TREES} trees for all labels together, as Clus-Ens has, leaves of at least {_ROWS_OF_LEAF} rows"
    )
}
