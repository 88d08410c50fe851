"""Second part of suite ``peers``: accuracy and log loss against time of tuned classifiers of several libraries."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from bench.cases import Cases
from bench.environments import Environments
from bench.figures import Axes, Points
from bench.model_libraries import CLASSIFIERS, Labels, Rows
from bench.problems import Floats
from bench.report import Result
from bench.taxonomies import TREES

DATA = ("news20", "clinc150", "onet")
_FLOOR = 1e-9
_QUICK_ROWS = 1000
_COLUMNS = {
    "problem": "data",
    "library": "model",
    "setting": "chosen",
    "accuracy": "acc %",
    "log_loss": "log loss",
    "mean_sum": "sum of probabilities",
    "seconds": "fit s",
    "predict_seconds": "predict s",
    "tuning_seconds": "tuning s",
    "tried": "settings tried",
    "status": "status",
}
_TUNING_NOTE = (
    "Settings (bench/model_libraries.py) were chosen by the log loss of the same fifth of the training rows, held out; "
    "tuning seconds are those of all fits and predictions for that. Then one fit to all rows, and one prediction of "
    "all test rows. Fits of taxolearn are to its default gap of 1e-6; other libraries have their default tolerances."
)
_SCORES_NOTE = (
    "acc is that of the most probable class. Probabilities that do not sum to one, whose mean sum is shown, are "
    f"divided by their sum for the log loss; those below {_FLOOR:g} count as {_FLOOR:g}."
)
_TREES_NOTE = (
    "The tree of the classes is used by taxolearn, tree, and hiclass; napkinXC and PECOS make trees of their own. "
    "Probabilities of hiclass are products of those of its local classifiers. "
    "PECOS has the solver L2R_LR_DUAL and products of sigmoids, and its beam is as wide as there are classes."
)


def _scores(proba: Floats, truth: Labels) -> dict[str, float]:
    """``truth`` is -1 for classes that no training row has: a wrong answer, left out of the log loss."""
    sums = proba.sum(axis=1)
    known = truth >= 0
    likelihoods = proba[known, truth[known]] / np.maximum(sums[known], _FLOOR)
    return {
        "accuracy": 100 * float(np.mean(proba.argmax(axis=1) == truth)),
        "log_loss": -float(np.mean(np.log(np.maximum(likelihoods, _FLOOR)))),
        "mean_sum": float(sums.mean()),
    }


def measure(data: str, model: str, quick: bool, n_threads: int) -> dict[str, Any]:
    """Tune, fit and score in this process."""
    problem = TREES[data]()
    problem = problem.first_rows(_QUICK_ROWS) if quick else problem
    classifier = CLASSIFIERS[model]
    classes, y = np.unique(problem.y, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(y))
    held_out, rest = np.split(order, [len(order) // 5])
    rows = Rows(problem, classes, problem.X, y, n_threads)

    def loss(setting: dict[str, float]) -> float:
        predict = classifier.fit(replace(rows, X=rows.X[rest], y=y[rest]), **setting)
        return _scores(predict(rows.X[held_out]), y[held_out])["log_loss"]

    grid = classifier.grid[2:4] if quick else classifier.grid
    begin = time.perf_counter()
    chosen = min(grid, key=loss)
    tuned = time.perf_counter()
    predict = classifier.fit(rows, **chosen)
    fitted = time.perf_counter()
    proba = predict(problem.X_test)
    done = time.perf_counter()
    places = np.minimum(np.searchsorted(classes, problem.y_test), len(classes) - 1)
    truth = np.where(classes[places] == problem.y_test, places, -1)
    return {
        "description": problem.description,
        "problem": problem.name,
        "setting": ", ".join(f"{name} {value:.3g}" for name, value in chosen.items()),
        **_scores(proba, truth),
        "seconds": fitted - tuned,
        "predict_seconds": done - fitted,
        "tuning_seconds": tuned - begin,
        "tried": len(grid),
    }


def run(
    *,
    data: list[str],
    models: list[str],
    limit: float,
    environments: Environments,
    machine: dict[str, Any],
    cases: Cases,
    n_threads: int,
    quick: bool,
) -> Result:
    """All models on all data sets, each in a process of its own that may take ``limit`` seconds."""
    result = Result(
        suite="peers_models",
        title="Tuned classifiers of several libraries: scores and time",
        columns=_COLUMNS,
        figure=Points(Axes("seconds", "seconds of the fit", "log_loss", "log loss on test data")),
        settings={"threads": n_threads, "limit": f"{limit:g} s"},
        notes=[_TUNING_NOTE, _SCORES_NOTE, _TREES_NOTE],
        machine=machine,
    )
    for name in data:
        for model in models:
            python = environments.pecos if CLASSIFIERS[model].pecos else environments.most
            arguments = {"data": name, "model": model, "quick": quick}
            answer = cases.run(
                f"{name}, {model}", "bench.peer_models:measure", arguments, n_threads, limit, python=python
            )
            result.rows.append({"problem": name, "library": model} | answer)
            described = f"{answer['description']}." if "description" in answer else None
            if described and described not in result.notes:
                result.notes.append(described)
    return result
