"""Whole jobs, from texts or columns to probabilities: the pool, its experts, and what users of other libraries do.

One more rival is one more entry in a table ``JOB_MODELS`` of a module in bench/libraries; nothing else changes. The
table has every case that is known; ``--only`` and ``--models`` choose which are run.
"""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from functools import cache, partial
from itertools import count, product, takewhile
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness.cases import Cases
from bench.harness.environments import Environments, setup
from bench.harness.figures import Axes, Marks, is_ours
from bench.harness.isolated import address, isolated
from bench.harness.job_scores import COLUMNS, NOTE, job_scores
from bench.harness.memory import growth, megabytes, reset_peak
from bench.harness.options import add_folder, add_resumable, names
from bench.harness.report import Result, machine
from bench.libraries import JOB_MODELS
from bench.problems.jobs import JOBS, read_docstrings, write_docstrings

HELP = "whole jobs: the pool and its experts against what users of other libraries do"
_QUICK_ROWS = 600
_COLUMNS = {
    "problem": "job",
    "library": "model",
    **COLUMNS,
    "seconds_shown": "seconds",
    "processor_shown": "processor s",
    "rounds": "rounds",
    "megabytes": "peak MB",
    "setting": "chosen",
    "zeros": "zeros",
    "status": "status",
}
_MEASURING = (
    "Seconds are those of the whole job: features, tuning and fit, without reading files and without predictions; "
    "processor seconds are those of all threads, and depend less on what else the machine does. Of several rounds, in "
    "which models take turns, seconds are medians. Peak MB: resident "
    "memory of the same beyond data and libraries. Every model has a process of its own; > is one that was given up. "
    "An expert of the pool has the seconds of its tuning and of its fits in the folds, without features and last fit, "
    "and the answers of its last fit at its own temperature."
)
_NOT_TAKEN = "takes no such inputs"


def measure(job: str, model: str, quick: bool, n_threads: int, docstrings: str, turn: int = 0) -> dict[str, Any]:
    """Do a whole job in this process, then score it; the file of ``docstrings`` is the same in all environments.

    Answers of different turns differ in the time that they took.
    """
    entry = JOB_MODELS[model]
    problem = read_docstrings(Path(docstrings)) if job == "docstrings" else JOBS[job]()
    problem = problem.first_rows(_QUICK_ROWS) if quick else problem
    if not entry.takes(problem):
        return {"status": _NOT_TAKEN}
    fit = entry.make(problem, n_threads)
    before = reset_peak()
    wall, processor = time.perf_counter(), time.process_time()
    fitted = fit()
    facts = {
        "setting": fitted.setting,
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
        "megabytes": megabytes(growth(before)),
    }
    whole, *parts = (
        answer.facts
        | ({} if answer.log_proba is None else job_scores(problem, answer.log_proba, answer.classes))
        | ({"part": answer.part} if answer.part else {})
        for answer in fitted.answers(problem.X_test)
    )
    return {"description": problem.description, **facts, **whole, "parts": parts, "versions": machine()["versions"]}


def _models(text: str) -> list[str]:
    """Parse names separated by semicolons; "ours" and "rivals" are groups."""
    groups = {"ours": [name for name in JOB_MODELS if is_ours({"library": name})]}
    groups["rivals"] = [name for name in JOB_MODELS if name not in groups["ours"]]
    chosen = [name for part in text.split(";") for name in groups.get(part, [part])]
    if unknown := set(chosen) - set(JOB_MODELS):
        raise ArgumentTypeError(
            f"{', '.join(sorted(unknown))}; expected ours, rivals, or some of {'; '.join(JOB_MODELS)}"
        )
    return chosen


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    add_folder(parser)
    parser.add_argument("--only", type=names, default=list(JOBS), help="which jobs to run, in this order")
    parser.add_argument(
        "--models", type=_models, default=list(JOB_MODELS), help="which to run, separated by ;, also ours and rivals"
    )
    parser.add_argument("--rounds", type=int, default=1, help="how often each model does each job")
    parser.add_argument("--limit", type=float, default=300.0, help="give a model up, reading files included (s)")


def run(options: Namespace) -> list[Result]:
    """Run the chosen models on the chosen jobs, each in a process of its own; show all that are known.

    ``--fresh`` forgets the chosen ones alone. Those that were given up run again if the limit is higher now. Rivals run
    in the environments of ``setup``, which is called when the first of them has to run, ours in this one.
    """
    cases = Cases(options.output / f"{options.suite}.cases.jsonl")
    environments = cache(partial(setup, options.folder))
    docstrings = options.folder.resolve() / "docstrings.json"
    write_docstrings(docstrings)
    for turn, job, model in product(range(options.rounds), options.only, options.models):
        arguments = _arguments(options, job, model, turn)
        if options.fresh or _bound(cases.known(measure, arguments)) < options.limit - 1:
            cases.forget(measure, **arguments)

        def work(arguments: dict[str, Any] = arguments) -> dict[str, Any]:
            python = _python(arguments["model"], environments)
            given = arguments | {"docstrings": str(docstrings)}
            return isolated(measure, given, options.threads, options.limit, python)

        cases.keep(f"{job}, {model}", address(measure), arguments, work)
    return [_result(options, cases)]


def _arguments(options: Namespace, job: str, model: str, turn: int) -> dict[str, Any]:
    first = {"job": job, "model": model, "quick": options.quick, "n_threads": options.threads}
    return first | ({"turn": turn} if turn else {})


def _known(options: Namespace, cases: Cases, job: str, model: str) -> dict[str, Any] | None:
    """The answer of the first turn, with the median seconds of all that are known."""
    answers = takewhile(bool, (cases.known(measure, _arguments(options, job, model, turn)) for turn in count()))
    first, *others = [*answers] or [None]
    if first is None or "seconds" not in first:
        return first
    ended = [first, *(each for each in others if "seconds" in each)]
    medians = {name: median(each[name] for each in ended) for name in ("seconds", "processor_seconds")}
    return first | medians | {"rounds": len(ended)}


def _python(model: str, environments: Any) -> str | Path:
    if is_ours({"library": model}):
        return sys.executable
    found: Environments = environments()
    return found.pecos if JOB_MODELS[model].pecos else found.most


def _result(options: Namespace, cases: Cases) -> Result:
    result = Result.of(
        options,
        title="Whole jobs: log loss and time of the pool, its experts, and other libraries",
        columns=_COLUMNS,
        figure=Marks(Axes("seconds", "seconds of the whole job", "relative_loss", "log loss / least"), most=2.0),
        notes=[_MEASURING, NOTE, *(f"{name}: {entry.tuning}." for name, entry in JOB_MODELS.items())],
    )
    versions: dict[str, str] = {}
    for job in JOBS:
        rows: list[dict[str, Any]] = []
        for model in JOB_MODELS:
            answer = _known(options, cases, job, model)
            if answer is None or answer.get("status") == _NOT_TAKEN:
                continue
            versions = answer.get("versions", {}) | versions
            rows += _rows(job, model, answer)
            if "description" in answer:
                unseen = answer["unseen"]
                result.add_note(f"{job}: {answer['description']}; {unseen} test rows of classes without training rows.")
        least = min((row["log_loss"] for row in rows if "log_loss" in row), default=1.0)
        for row in rows:
            if "log_loss" in row:
                row["relative_loss"] = row["log_loss"] / least
        result.rows += rows
    result.machine["versions"] = versions | result.machine["versions"]
    return result


def _rows(job: str, model: str, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for the model, and one for each of its parts."""
    facts = {key: value for key, value in answer.items() if key not in ("description", "versions", "parts")}
    rows = [facts | {"problem": job, "library": model}]
    library = model.partition(",")[0]
    rows += [part | {"problem": job, "library": f"{library}, {part['part']}"} for part in answer.get("parts", ())]
    for row in rows:
        if "seconds" in row:
            row["seconds_shown"] = row["seconds"]
            row["processor_shown"] = row.get("processor_seconds")
        elif (bound := _bound(row)) < inf:
            row["bound"] = bound
            row["seconds_shown"] = f"> {row['bound']:.0f}"
            row["processor_shown"] = f"> {row['processor_seconds']:.0f}"
    return rows


def _bound(answer: dict[str, Any] | None) -> float:
    """Seconds after which a model was given up, without end for others."""
    status = str((answer or {}).get("status"))
    return float(status.split()[-2]) if status.startswith("gave up after") else inf
