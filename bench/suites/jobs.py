"""Whole jobs, from texts or columns to probabilities: the pool, its experts, and what users of other libraries do.

One more rival is one more entry in a table ``JOB_MODELS`` of a module in bench/libraries; nothing else changes. The
table has every case that is known; ``--only`` and ``--models`` choose which are run.
"""

import sys
from argparse import ArgumentParser, Namespace
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench.harness.cases import Cases
from bench.harness.environments import Environments, setup
from bench.harness.figures import is_ours
from bench.harness.isolated import isolated
from bench.harness.job_scores import NOTE
from bench.harness.options import add_folder
from bench.harness.report import Result
from bench.harness.whole_jobs import MEASURING, add_choices, do_job, result_of_jobs, run_cases
from bench.libraries import JOB_MODELS
from bench.problems.jobs import JOBS, QUICK_ROWS, read_docstrings, write_docstrings

HELP = "whole jobs: the pool and its experts against what users of other libraries do"
_EXPERTS = (
    "An expert of the pool has the seconds of its tuning and of its fits in the folds, without features and last fit, "
    "and the answers of its last fit at its own temperature."
)


def measure(job: str, model: str, quick: bool, n_threads: int, docstrings: str, turn: int = 0) -> dict[str, Any]:
    """Do a whole job in this process, then score it; the file of ``docstrings`` is the same in all environments.

    Answers of different turns differ in the time that they took.
    """
    problem = read_docstrings(Path(docstrings)) if job == "docstrings" else JOBS[job]()
    return do_job(problem.first_rows(QUICK_ROWS) if quick else problem, JOB_MODELS[model], n_threads)


def add_arguments(parser: ArgumentParser) -> None:
    add_choices(parser, JOBS, JOB_MODELS, limit=300.0)
    add_folder(parser)


def run(options: Namespace) -> list[Result]:
    """Run the chosen models on the chosen jobs, each in a process of its own; show all that are known.

    Rivals run in the environments of ``setup``, which is called when the first of them has to run, ours in this one.
    """
    cases = Cases(options.output / f"{options.suite}.cases.jsonl")
    environments = cache(partial(setup, options.folder))
    docstrings = options.folder.resolve() / "docstrings.json"
    write_docstrings(docstrings)

    def work(arguments: dict[str, Any]) -> dict[str, Any]:
        python = _python(arguments["model"], environments)
        return isolated(measure, arguments | {"docstrings": str(docstrings)}, options.threads, options.limit, python)

    run_cases(options, cases, measure, work)
    title = "Whole jobs: log loss and time of the pool, its experts, and other libraries"
    notes = [f"{MEASURING} {_EXPERTS}", NOTE]
    return [result_of_jobs(options, cases, measure, JOBS, JOB_MODELS, title=title, notes=notes)]


def _python(model: str, environments: Any) -> str | Path:
    if is_ours({"library": model}):
        return sys.executable
    found: Environments = environments()
    return found.pecos if JOB_MODELS[model].pecos else found.most
