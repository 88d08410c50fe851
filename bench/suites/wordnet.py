"""The hypernym of a noun from its gloss, among more than ten thousand classes on all levels of a tree."""

import time
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from bench.harness.environments import interpreter
from bench.harness.figures import Bar
from bench.harness.job_scores import columns_of
from bench.harness.memory import growth, megabytes, reset_peak
from bench.harness.options import add_folder, add_resumable, known_cases, whole_numbers
from bench.harness.report import Result, machine
from bench.libraries import TOP_MODELS
from bench.libraries.contracts import Rows
from bench.problems.jobs import held_out_tenth
from bench.problems.wordnet import wordnet

HELP = "hypernyms of glosses: more than ten thousand classes"
_QUICK_ROWS = 3000
_ANSWERS = 5
_LEAST_ROWS = (2, 1)  # nouns of a class
_COLUMNS = {
    "problem": "classes",
    "library": "model",
    "accuracy": "acc %",
    "in_top": f"among {_ANSWERS} best %",
    "seconds": "seconds",
    "processor_seconds": "processor s",
    "predict_seconds": "predict s",
    "megabytes": "peak MB",
    "setting": "chosen",
    "status": "status",
}
_NOTE = (
    "Classes are the first hypernyms of nouns, all of them or those of at least two nouns. The tree is that of first "
    "hypernyms, and a class on an inner node has a leaf of its own below it; napkinXC and PECOS make trees of their "
    "own. Features are tf-idf weights of words that occur twice, the same for all. Seconds are those of features, "
    "tuning and fit; peak MB is resident memory of the same and of the predictions, beyond data and libraries. "
    "Top-down has its defaults, so it learns variances and temperatures of each level. RR-SVM has one variance C = 1 "
    "for all nodes, not tuned, and ends at a certified relative gap of 1e-2. napkinXC and PECOS have C of 1, 10, 100 "
    "by the accuracy on a held-out tenth, and a fit to all rows; PECOS has the solver L2R_LR_DUAL and a beam of 10. "
    "Every model has a process of its own."
)


def measure(model: str, quick: bool, n_threads: int, least_rows: int) -> dict[str, Any]:
    """Features, tuning, fit and predictions in this process."""
    job, entry = wordnet(least_rows), TOP_MODELS[model]
    job = job.first_rows(_QUICK_ROWS) if quick else job
    classes, y = np.unique(job.y, return_inverse=True)
    before = reset_peak()
    begin, processor = time.perf_counter(), time.process_time()
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    rows = Rows(job, classes, vectorizer.fit_transform(job.X), y, n_threads)
    held_out, rest = held_out_tenth(y)

    def error(setting: dict[str, float]) -> float:
        predict = entry.fit(replace(rows, X=rows.X[rest], y=y[rest]), **setting)
        return float(np.mean(predict(rows.X[held_out], 1)[:, 0] != y[held_out]))

    chosen = min(entry.grid, key=error) if len(entry.grid) > 1 else entry.grid[0]
    predict = entry.fit(rows, **chosen)
    fitted, used = time.perf_counter(), time.process_time() - processor
    best = predict(vectorizer.transform(job.X_test), _ANSWERS)
    done = time.perf_counter()
    is_right = best == columns_of(job.y_test, classes)[:, None]
    return {
        "description": job.description,
        "setting": ", ".join(f"{name} {value:g}" for name, value in chosen.items()),
        "accuracy": 100 * float(is_right[:, 0].mean()),
        "in_top": 100 * float(is_right.any(axis=1).mean()),
        "seconds": fitted - begin,
        "processor_seconds": used,
        "predict_seconds": done - fitted,
        "megabytes": megabytes(growth(before)),
        "versions": machine()["versions"],
    }


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    add_folder(parser)
    parser.add_argument("--models", type=lambda text: text.split(";"), default=list(TOP_MODELS), help="separated by ;")
    parser.add_argument("--least-rows", type=whole_numbers, default=list(_LEAST_ROWS), help="nouns that a class has")
    parser.add_argument("--limit", type=float, default=1800.0, help="give a model up, tuning included (s)")


def run(options: Namespace) -> list[Result]:
    """Run the chosen models, each in a process of its own and in the environment that it needs; show all known."""
    cases = known_cases(options)
    result = Result.of(
        options,
        title="Hypernyms of glosses: very many classes",
        columns=_COLUMNS,
        figure=Bar("in_top", f"truth among the {_ANSWERS} best %", "{:.1f}"),
        notes=[_NOTE],
    )
    for least, model in product(options.least_rows, options.models):
        where = interpreter(options.folder, TOP_MODELS[model].environment)
        arguments = _arguments(options, least, model)
        cases.run(f"{least} or more nouns, {model}", measure, arguments, options.threads, options.limit, python=where)
    for least, model in product(_LEAST_ROWS, TOP_MODELS):
        answer = cases.known(measure, _arguments(options, least, model) | {"n_threads": options.threads})
        if answer is None:
            continue
        answer = dict(answer)
        result.machine["versions"] = answer.pop("versions", {}) | result.machine["versions"]
        result.rows.append({"problem": f"hypernyms of {least} or more", "library": model} | answer)
        result.describe(answer)
    return [result]


def _arguments(options: Namespace, least_rows: int, model: str) -> dict[str, Any]:
    return {"model": model, "quick": options.quick, "least_rows": least_rows}
