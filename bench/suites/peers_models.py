"""Accuracy and log loss against time of tuned classifiers of several libraries; these are different models.

One more library is one more module in bench/libraries, with its models in a table ``CLASSIFIERS``; nothing else
changes.
"""

import time
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

import numpy as np

from bench.harness.environments import setup
from bench.harness.figures import Axes, Points
from bench.harness.options import add_folder, add_resumable, known_cases, names
from bench.harness.report import Result
from bench.libraries import CLASSIFIERS
from bench.libraries.contracts import Labels, Rows
from bench.problems.data import Floats, held_out_fifth
from bench.problems.trees import TREES

HELP = "tuned classifiers of many libraries"
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
    "Settings (bench/libraries) were chosen by the log loss of the same fifth of the training rows, held out; "
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
    held_out, rest = held_out_fifth(len(y))
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


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    add_folder(parser)
    parser.add_argument("--only", type=names, default=list(DATA), help="which data sets")
    parser.add_argument("--models", type=lambda text: text.split(";"), default=list(CLASSIFIERS), help="separated by ;")
    parser.add_argument("--limit", type=float, default=1800.0, help="give a model up, tuning included (s)")


def run(options: Namespace) -> list[Result]:
    """All models on all data sets, each in a process of its own."""
    environments = setup(options.folder)
    result = Result.of(
        options,
        title="Tuned classifiers of several libraries: scores and time",
        columns=_COLUMNS,
        figure=Points(Axes("seconds", "seconds of the fit", "log_loss", "log loss on test data")),
        notes=[_TUNING_NOTE, _SCORES_NOTE, _TREES_NOTE],
        machine=environments.machine(),
    )
    cases = known_cases(options)
    for name in options.only:
        for model in options.models:
            python = environments.pecos if CLASSIFIERS[model].pecos else environments.most
            arguments = {"data": name, "model": model, "quick": options.quick}
            title = f"{name}, {model}"
            answer = cases.run(title, measure, arguments, options.threads, options.limit, python=python)
            result.rows.append({"problem": name, "library": model} | answer)
            result.describe(answer)
    return [result]
