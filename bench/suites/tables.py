"""A table with texts, numbers, categories and dates: blocks and pools against one matrix and other libraries.

One more model is one more entry in a table ``TABLE_MODELS`` of a module in bench/libraries. The table has every case
that is known; ``--models`` chooses which are run.
"""

import sys
from argparse import ArgumentParser, Namespace
from functools import cache, partial
from typing import Any

from bench.harness.cases import Cases
from bench.harness.environments import setup
from bench.harness.figures import is_ours
from bench.harness.isolated import isolated
from bench.harness.job_scores import NOTE, job_scores
from bench.harness.options import add_folder
from bench.harness.report import Result
from bench.harness.whole_jobs import MEASURING, add_choices, do_job, result_of_jobs, run_cases
from bench.libraries import TABLE_MODELS
from bench.problems.catalogue import Catalogue

HELP = "a table of texts, numbers, categories and dates: blocks against one matrix and other libraries"
_JOBS = {"catalogue": (40_000, 10_000)}  # rows for training and test
_QUICK = (3_000, 1_000)
_TRUTH = (
    "The catalogue is made up (bench/problems/catalogue.py), so its true probabilities are known: on the test rows "
    "they have a log loss of {log_loss:.4f} and an accuracy of {accuracy:.2f} %."
)


def measure(job: str, model: str, quick: bool, n_threads: int, turn: int = 0) -> dict[str, Any]:
    """Do a whole job in this process, then score it."""
    problem = Catalogue().job(*(_QUICK if quick else _JOBS[job]))
    return do_job(problem, TABLE_MODELS[model], n_threads)


def add_arguments(parser: ArgumentParser) -> None:
    add_choices(parser, _JOBS, TABLE_MODELS, limit=1200.0)
    add_folder(parser)


def run(options: Namespace) -> list[Result]:
    """Run the chosen models, each in a process of its own, ours in this environment; show all that are known."""
    cases = Cases(options.output / f"{options.suite}.cases.jsonl")
    environments = cache(partial(setup, options.folder))

    def work(arguments: dict[str, Any]) -> dict[str, Any]:
        python = sys.executable if is_ours({"library": arguments["model"]}) else environments().most
        return isolated(measure, arguments, options.threads, options.limit, python)

    run_cases(options, cases, measure, work)
    made, sizes = Catalogue(), _QUICK if options.quick else _JOBS["catalogue"]
    truth = job_scores(made.job(*sizes), made.true_log_proba(sizes[1]), made.names)
    notes = [MEASURING, _TRUTH.format(**truth), NOTE]
    title = "A made-up catalogue of products: log loss and time"
    return [result_of_jobs(options, cases, measure, _JOBS, TABLE_MODELS, title=title, notes=notes)]
