"""The lowest cross-validated log loss against time, ours against searches that only see values.

All minimize the mean log loss of the rows of the same 5 folds over variances of linear models: one of the flat model,
or one per subtree of the tree (H2). Grid search and Optuna's tree of Parzen estimators use scikit-learn's
LogisticRegression, whose C is the variance, or our own fits with given variances. A grid over several variances would
have thousands of points, so there it has one common variance.
"""

import importlib
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score

from bench.harness.figures import Traces
from bench.harness.learning import learning_facts, partition, tuning
from bench.harness.options import add_resumable, known_cases, names
from bench.harness.report import Result
from bench.libraries.contracts import LEAST_PROBABILITY
from bench.libraries.scikit_learn import LogisticRegressionWithPrior
from bench.problems.data import Floats
from bench.problems.trees import OF_WORDS, TreeData
from taxolearn import KernelLogisticClassifier, Tree
from taxolearn.kernels import Linear

HELP = "learning against grid search and Optuna"
START = 5.0
RANGE = (0.05, 5000.0)
N_GRID = 11  # half a power of ten apart
CLOSE = 1.005  # a loss this many times another is as good
WORTH = 1.001  # a fall of the loss by this factor is worth a point in the figure
PROBLEMS = {"news20, flat": ("news20", "flat"), "clinc150, H2": ("clinc150", "tree")}
SEARCHES = {
    "flat": (
        "taxolearn, learned",
        "GridSearchCV, LogisticRegression",
        "GridSearchCV, fits of taxolearn",
        "Optuna, LogisticRegression",
        "Optuna, fits of taxolearn",
    ),
    "tree": ("taxolearn, learned", "GridSearchCV, fits of taxolearn", "Optuna, fits of taxolearn"),
}
_OURS = "taxolearn, learned"
_INTERCEPT_VARIANCE = 1.0  # as in LogisticRegressionWithPrior
_SEARCH_TOL = 1e-4  # of our fits inside of searches

_NOTE = (
    f"Variances from {RANGE[0]:g} to {RANGE[1]:g}; a grid has {N_GRID} of them, in increasing order. Learning starts "
    f"from {START:g}. The intercept variance {_INTERCEPT_VARIANCE:g} is not learned. "
    "LogisticRegression (lbfgs) has the same objective, by a "
    "constant feature, and tol=1e-5: by default it stops early. Searches with it run two folds at a time, "
    "each on one core; ours run one at a time, "
    f"on two threads, to a gap of {_SEARCH_TOL:g}. Probabilities of classes that a fit has not seen, and those below "
    f"{LEAST_PROBABILITY:g}, count as {LEAST_PROBABILITY:g}. The test log loss of the best variances so far is from "
    "fits to all rows that are not timed."
)
_EQUAL = (
    '"At our time" is the lowest CV log loss that a search had found when learning had ended; "s to our loss" is when '
    f"it had one within {100 * (CLOSE - 1):.2g} % of ours, and the ratio is to our own time to such a loss."
)
_COLUMNS = {
    "problem": "problem",
    "library": "search",
    "parameters": "parameters",
    "evaluations": "evaluations",
    "seconds": "s in all",
    "cv_loss": "best CV log loss",
    "test_loss": "its test log loss",
    "at_our_time": "at our time",
    "seconds_to_ours": "s to our loss",
    "ratio": "ratio",
    "status": "status",
}


def _load(problem: str, quick: bool) -> TreeData:
    data = OF_WORDS[PROBLEMS[problem][0]]()
    return data.first_rows(500) if quick else data


class Contest:
    """A problem with its folds, and models of it with given variances."""

    def __init__(self, problem: str, quick: bool, n_threads: int) -> None:
        self.kind = PROBLEMS[problem][1]
        self.grid: Floats = np.geomspace(*RANGE, 3 if quick else N_GRID)
        self.data = _load(problem, quick)
        self.fold_of = partition(self.data.y, 0)
        self.classes = np.sort(self.data.taxonomy.classes)
        self.n_threads = n_threads
        self.n_variances = 1 if self.kind == "flat" else len(self.data.taxonomy.groups("subtree")[1])

    def model(self, variances: Any, tol: float = 1e-6) -> Any:
        """Ours with given variances, or the starts of those to be learned."""
        model = KernelLogisticClassifier(
            Linear(), intercept_variance=_INTERCEPT_VARIANCE, tuning=None, tol=tol, n_threads=self.n_threads
        )
        if self.kind == "flat":
            return model.set_params(kernel=Linear(float(np.ravel(variances)[0])))
        return model.set_params(taxonomy=self.data.taxonomy, coupling=Tree("subtree", variances=variances))

    def test_loss(self, model: Any) -> float:
        """Log loss on the test rows after a fit to all training rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = clone(model).fit(self.data.X, self.data.y)
        return mean_log_loss(fitted, self.data.X_test, self.data.y_test, self.classes)


def mean_log_loss(model: Any, X: Any, y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> float:
    """Mean log loss, also where the model has not seen all classes."""
    log_proba: Floats = np.full((X.shape[0], len(classes)), np.log(LEAST_PROBABILITY))
    columns = np.searchsorted(classes, model.classes_)
    with np.errstate(divide="ignore"):
        log_proba[:, columns] = np.maximum(model.predict_log_proba(X), np.log(LEAST_PROBABILITY))
    return -float(np.mean(log_proba[np.arange(len(y)), np.searchsorted(classes, y)]))


def score(model: Any, X: Any, y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> dict[str, float]:
    """For GridSearchCV: the negative loss, the rows that it is a mean of, and when it was known."""
    return {"loss": -mean_log_loss(model, X, y, classes), "rows": len(y), "when": time.time()}


def loss_alone(model: Any, X: Any, y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> float:
    """For cross_val_score: the negative sum of the losses of the rows."""
    return -len(y) * mean_log_loss(model, X, y, classes)


Trace = tuple[list[float], list[float], list[Any]]  # seconds, CV losses and variances, in the order of time


def _learned(contest: Contest, limit: float, quick: bool) -> tuple[Trace, dict[str, Any]]:
    learning = tuning(quick, folds=contest.fold_of, time_limit=limit)
    model = contest.model(START).set_params(tuning=learning, random_state=0)
    begin = time.perf_counter()
    model.fit(contest.data.X, contest.data.y)
    whole = time.perf_counter() - begin
    facts = learning_facts(model)
    trace = model.cv_result_
    setup = max(0.0, whole - facts["final_seconds"] - facts["learning_seconds"])
    values = [value if good else np.inf for value, good in zip(trace.values.tolist(), trace.converged, strict=True)]
    times = (setup + np.cumsum(trace.seconds)).tolist()
    return (times, values, np.exp(trace.thetas).tolist()), {
        "final_seconds": facts["final_seconds"],
        "status": trace.status,
    }


def _grid(contest: Contest, model: Any, name: str, values: list[Any], n_jobs: int) -> Trace:
    search = GridSearchCV(
        model,
        {name: values},
        scoring=partial(score, classes=contest.classes),
        cv=PredefinedSplit(contest.fold_of),
        refit=False,
        n_jobs=n_jobs,
        error_score="raise",
    )
    begin = time.time()
    search.fit(contest.data.X, contest.data.y)
    found = search.cv_results_
    folds = range(int(contest.fold_of.max()) + 1)
    of_fold = {key: np.array([found[f"split{fold}_test_{key}"] for fold in folds]) for key in ("loss", "rows", "when")}
    losses = -(of_fold["loss"] * of_fold["rows"]).sum(axis=0) / of_fold["rows"].sum(axis=0)
    times = of_fold["when"].max(axis=0) - begin  # when the last of its folds was done
    order = np.argsort(times)
    return times[order].tolist(), losses[order].tolist(), [[float(contest.grid[k])] for k in order]


def _optuna(
    contest: Contest, model: Callable[[list[float]], Any], n_variances: int, n_jobs: int, limit: float
) -> Trace:
    optuna = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    times: list[float] = []
    begin = time.perf_counter()

    def objective(trial: Any) -> float:
        variances = [trial.suggest_float(f"variance {k}", *RANGE, log=True) for k in range(n_variances)]
        sums = cross_val_score(
            model(variances),
            contest.data.X,
            contest.data.y,
            scoring=partial(loss_alone, classes=contest.classes),
            cv=PredefinedSplit(contest.fold_of),
            n_jobs=n_jobs,
            error_score="raise",
        )
        times.append(time.perf_counter() - begin)
        return -float(sums.sum()) / np.count_nonzero(contest.fold_of >= 0)

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, timeout=limit)
    return times, [trial.value for trial in study.trials], [list(trial.params.values()) for trial in study.trials]


def _logistic_regression(variances: list[float]) -> Any:
    return LogisticRegressionWithPrior(C=variances[0], fit_intercept=False, tol=1e-5, max_iter=2000)


def measure(problem: str, search: str, limit: float, quick: bool, n_threads: int) -> dict[str, Any]:
    """One search in this process; what it found by when, and the test losses of its best variances so far."""
    contest = Contest(problem, quick, n_threads)
    is_sklearn = search.endswith("LogisticRegression")
    n_jobs = n_threads if is_sklearn else 1
    model: Callable[[list[float]], Any] = (
        _logistic_regression if is_sklearn else partial(contest.model, tol=_SEARCH_TOL)
    )
    facts: dict[str, Any] = {"status": "done"}
    n_variances = contest.n_variances
    with warnings.catch_warnings(), parallel_config("loky", inner_max_num_threads=1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        if search == _OURS:
            trace, facts = _learned(contest, limit, quick)
        elif search.startswith("GridSearchCV"):
            n_variances = 1
            name, values = "C", contest.grid.tolist()
            if not is_sklearn and contest.kind == "flat":
                name, values = "kernel", [Linear(v) for v in values]
            elif not is_sklearn:
                name = "coupling__variances"
            trace = _grid(contest, model([START]), name, values, n_jobs)
        else:
            trace = _optuna(contest, model, n_variances, n_jobs, limit)
            facts["status"] = f"stopped after {limit:g} s"
        times, losses, variances = trace
        kept = _improvements(losses)
        tests = [contest.test_loss(model(_spread(variances[k], contest.n_variances))) for k in kept]
    ends = [float(np.min(losses[: k + 1])) for k in range(len(losses))]
    return facts | {
        "description": contest.data.description,
        "parameters": n_variances,
        "evaluations": len(losses),
        "seconds": times[-1],
        "cv_loss": ends[-1],
        "test_loss": tests[-1],
        "variances": variances[kept[-1]],
        "times": times,
        "losses": [loss if np.isfinite(loss) else None for loss in losses],
        "trace": {
            "seconds": [times[k] for k in kept] + [times[-1]],
            "cv": [losses[k] for k in kept] + [ends[-1]],
            "test": [*tests, tests[-1]],
        },
    }


def _spread(variances: list[float], count: int) -> list[float]:
    """Repeat a single variance for all groups."""
    return variances if len(variances) == count else variances * count


def _improvements(losses: list[float]) -> list[int]:
    """Where the lowest loss so far falls by a thousandth at least, and the lowest of all."""
    kept: list[int] = []
    for k, loss in enumerate(losses):
        if np.isfinite(loss) and (not kept or WORTH * loss < losses[kept[-1]]):
            kept.append(k)
    best = int(np.argmin(losses))
    return kept if kept[-1] == best else [*kept, best]


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--only", type=names, default=["news20", "clinc150"], help="which data sets")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of searches without an end")


def run(options: Namespace) -> list[Result]:
    """Run all searches on every problem."""
    result = Result.of(
        options,
        title="Lowest log loss against time",
        columns=_COLUMNS,
        figure=Traces({"cv": "CV log loss, best so far", "test": "test log loss"}),
        notes=[_NOTE, _EQUAL],
    )
    cases = known_cases(options)
    for problem in (name for name, (data, _) in PROBLEMS.items() if data in options.only):
        rows: list[dict[str, Any]] = []
        for search in SEARCHES[PROBLEMS[problem][1]]:
            if search.startswith("Optuna") and find_spec("optuna") is None:
                result.add_note("Optuna is not installed: it was left out.")
                continue
            arguments = {"problem": problem, "search": search, "limit": options.limit, "quick": options.quick}
            answer = cases.run(f"{problem}, {search}", measure, arguments, options.threads)
            result.describe(answer)
            rows.append({"problem": problem, "library": search, **answer})
        _compare(rows)
        result.rows += [row for row in rows if "trace" in row]
        result.notes += [f"{row['library']} on {problem}: {row['status']}." for row in rows if "trace" not in row]
    return [result]


def _compare(rows: list[dict[str, Any]]) -> None:
    """Compare the searches at equal time and at equal loss."""
    ours = next((row for row in rows if row["library"] == _OURS and "trace" in row), None)
    if ours is None:
        return

    def reached(row: dict[str, Any]) -> float | None:
        pairs = zip(row["times"], row["losses"], strict=True)
        return next((at for at, loss in pairs if loss is not None and loss <= CLOSE * ours["cv_loss"]), None)

    our_time = reached(ours)
    for row in rows:
        if "trace" not in row:
            continue
        early = [
            loss
            for at, loss in zip(row["times"], row["losses"], strict=True)
            if at <= ours["seconds"] and loss is not None
        ]
        row["at_our_time"] = min(early, default=None)
        row["seconds_to_ours"] = reached(row)
        if row["seconds_to_ours"] is not None and our_time is not None:
            row["ratio"] = row["seconds_to_ours"] / our_time
