"""Rows with several labels: whole jobs from texts or columns to probabilities, beside what users of other libraries do.

One more rival is one more entry in a table ``LABEL_MODELS`` of a module in bench/libraries; nothing else changes. The
table has every case that is known; ``--only`` and ``--models`` choose which are run. A second
result has how often labels of each probability are right.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

from bench.harness.cases import Cases
from bench.harness.figures import Frequencies
from bench.harness.label_runs import MEASURING, SHOWN, do_label_jobs, run_label_cases
from bench.harness.label_scores import COLUMNS, NOTE, label_scores, reliability
from bench.harness.options import add_folder
from bench.harness.report import Result
from bench.harness.whole_jobs import add_choices, result_of_jobs
from bench.libraries import LABEL_MODELS
from bench.libraries.contracts import LabelAnswer, LabelModel
from bench.problems.jobs import QUICK_ROWS
from bench.problems.label_jobs import LABEL_JOBS, LabelJob

HELP = "several labels per row: whole jobs against what users of other libraries do"
_QUICK_SPLITS = 2
_SPLITS = "bibtex: means over ten splits, seconds of one."
_FREQUENCIES = (
    "All pairs of test row and label, in bins as wide as 1 in logarithms of odds; bins with fewer than 20 pairs are "
    "not drawn. Of bibtex those of the first split."
)


def score(job: LabelJob, answer: LabelAnswer, entry: LabelModel) -> dict[str, Any]:
    """Scores, and the frequency of labels by their probability."""
    scores: dict[str, Any] = label_scores(job, answer.proba, answer.thresholds, is_probability=entry.is_probability)
    if entry.is_probability:
        curve = reliability(job.Y_test, answer.proba)
        scores["reliability"] = {name: values.tolist() for name, values in curve._asdict().items()}
    return scores


def measure(job: str, model: str, quick: bool, n_threads: int, turn: int = 0) -> dict[str, Any]:
    """Do a whole job in this process, then score it; answers of different turns differ in the time that they took."""
    splits = LABEL_JOBS[job]()
    if quick:
        splits = [split.first_rows(QUICK_ROWS) for split in splits[:_QUICK_SPLITS]]
    return do_label_jobs(splits, LABEL_MODELS[model], n_threads, score)


def add_arguments(parser: ArgumentParser) -> None:
    add_choices(parser, LABEL_JOBS, LABEL_MODELS, limit=600.0)
    add_folder(parser)


def run(options: Namespace) -> list[Result]:
    """Run the chosen models on the chosen jobs; show all that are known."""
    cases = Cases(options.output / f"{options.suite}.cases.jsonl")
    run_label_cases(options, cases, measure, LABEL_MODELS)
    title = "Several labels per row: whole jobs of taxolearn and other libraries"
    columns = {"problem": "job", "library": "model", **COLUMNS, "child_above_parent": "child above parent", **SHOWN}
    notes = [MEASURING, NOTE, _SPLITS]
    shown = result_of_jobs(options, cases, measure, LABEL_JOBS, LABEL_MODELS, title=title, notes=notes, columns=columns)
    return [shown, _reliability(options, shown)]


def _reliability(options: Namespace, shown: Result) -> Result:
    """Frequency of labels by their probability, of all cases that are known."""
    result = Result.of(
        options,
        title="How often labels of each probability are right",
        columns={"problem": "job", "library": "model", "calibration": COLUMNS["calibration"]},
        figure=Frequencies(),
        notes=[_FREQUENCIES],
    )
    result.suite += "_reliability"
    result.machine = shown.machine
    result.rows = [
        {key: row[key] for key in ("problem", "library", "calibration")} | row.pop("reliability")
        for row in shown.rows
        if "reliability" in row
    ]
    return result
