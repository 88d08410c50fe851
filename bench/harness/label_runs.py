"""Whole jobs with several labels per row: done by a model in this process, timed and scored."""

import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bench.harness.cases import Cases
from bench.harness.environments import interpreter
from bench.harness.isolated import isolated
from bench.harness.memory import growth, megabytes, reset_peak
from bench.harness.report import machine
from bench.harness.whole_jobs import NOT_TAKEN, Measure, run_cases
from bench.libraries.contracts import LabelAnswer, LabelModel
from bench.problems.label_jobs import LabelJob

Score = Callable[[LabelJob, LabelAnswer, LabelModel], dict[str, Any]]

SHOWN = {
    "seconds_shown": "seconds",
    "predict_seconds": "of these predictions",
    "processor_shown": "processor s",
    "megabytes": "peak MB",
    "setting": "chosen",
    "zeros": "zeros",
    "status": "status",
}
MEASURING = (
    "Seconds are those of the whole job: features, tuning, fit and predictions of the test rows, without reading "
    "files; processor seconds are those of all threads, and depend less on what else the machine does. Peak MB: "
    "resident memory of the same beyond data and libraries. Every model has a process of its own; > is one that was "
    "given up."
)


def do_label_jobs(splits: Sequence[LabelJob], entry: LabelModel, n_threads: int, score: Score) -> dict[str, Any]:
    """Do the job of each split in this process; scores and seconds are means over the splits, lists those of the first.

    ``spread`` has the standard deviations of scores where there are several splits.
    """
    if not entry.takes(splits[0]):
        return {"status": NOT_TAKEN}
    answers = [_do_split(job, entry, n_threads, score) for job in splits]
    first = answers[0] | {"description": splits[0].description, "versions": machine()["versions"]}
    if len(answers) == 1:
        return first
    values = {
        name: np.array([answer[name] for answer in answers], dtype=np.float64)
        for name, value in first.items()
        if isinstance(value, float)
    }
    spread = {name: float(each.std(ddof=1)) for name, each in values.items()}
    return first | {name: float(each.mean()) for name, each in values.items()} | {"spread": spread}


def _do_split(job: LabelJob, entry: LabelModel, n_threads: int, score: Score) -> dict[str, Any]:
    fit = entry.make(job, n_threads)
    before = reset_peak()
    wall, processor = time.perf_counter(), time.process_time()
    fitted = fit()
    fit_seconds = time.perf_counter() - wall
    answer = fitted.answer(job.X_test)
    facts = {
        "setting": fitted.setting,
        "seconds": time.perf_counter() - wall,
        "predict_seconds": time.perf_counter() - wall - fit_seconds,
        "processor_seconds": time.process_time() - processor,
        "megabytes": megabytes(growth(before)),
    }
    return facts | score(job, answer, entry) | answer.facts


def run_label_cases(options: Namespace, cases: Cases, measure: Measure, models: Mapping[str, LabelModel]) -> None:
    """Let the chosen models do the chosen jobs, each in a process of its own and in the environment that it needs."""

    def work(arguments: dict[str, Any]) -> dict[str, Any]:
        where = interpreter(options.folder, models[arguments["model"]].environment)
        return isolated(measure, arguments, options.threads, options.limit, where)

    run_cases(options, cases, measure, work)
