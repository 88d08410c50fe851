"""Whole jobs, from texts or columns to probabilities: how they are timed and scored, run in parts, and shown."""

import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping
from itertools import count, product, takewhile
from math import inf
from statistics import median
from typing import Any

from bench.harness.cases import Cases
from bench.harness.figures import Axes, Marks, is_ours
from bench.harness.isolated import address
from bench.harness.job_scores import COLUMNS, job_scores
from bench.harness.memory import growth, megabytes, reset_peak
from bench.harness.options import add_resumable, names
from bench.harness.report import Result, machine
from bench.libraries.contracts import JobModel, LabelModel
from bench.problems.jobs import Job

Measure = Callable[..., dict[str, Any]]  # does a job, named by ``job``, with a model, named by ``model``

SHOWN = {
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
MEASURING = (
    "Seconds are those of the whole job: features, tuning and fit, without reading files and without predictions; "
    "processor seconds are those of all threads, and depend less on what else the machine does. Of several rounds, in "
    "which models take turns, seconds are medians. Peak MB: resident "
    "memory of the same beyond data and libraries. Every model has a process of its own; > is one that was given up."
)
NOT_TAKEN = "takes no such inputs"


# -- In the process of a model ----------------------------------------------------------------------------------------


def do_job(problem: Job, entry: JobModel, n_threads: int) -> dict[str, Any]:
    """Do a whole job in this process, then score it."""
    if not entry.takes(problem):
        return {"status": NOT_TAKEN}
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


# -- Options and cases ------------------------------------------------------------------------------------------------


def chosen_models(text: str, models: Iterable[str]) -> list[str]:
    """Parse names separated by semicolons; "ours" and "rivals" are groups."""
    groups = {"ours": [name for name in models if is_ours({"library": name})]}
    groups["rivals"] = [name for name in models if name not in groups["ours"]]
    chosen = [name for part in text.split(";") for name in groups.get(part, [part])]
    if unknown := set(chosen) - set(models):
        raise ArgumentTypeError(f"{', '.join(sorted(unknown))}; expected ours, rivals, or some of {'; '.join(models)}")
    return chosen


def add_choices(parser: ArgumentParser, jobs: Iterable[str], models: Iterable[str], limit: float) -> None:
    """Add the options that say which models do which jobs, how often, and for how long at most."""
    add_resumable(parser)
    parser.add_argument("--only", type=names, default=list(jobs), help="which jobs to run, in this order")
    parser.add_argument(
        "--models",
        type=lambda text: chosen_models(text, models),
        default=list(models),
        help="which to run, separated by ;, also ours and rivals",
    )
    parser.add_argument("--rounds", type=int, default=1, help="how often each model does each job")
    parser.add_argument("--limit", type=float, default=limit, help="give a model up, reading files included (s)")


def run_cases(
    options: Namespace, cases: Cases, measure: Measure, work: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Let the chosen models do the chosen jobs by ``work``, which is given the arguments of ``measure``.

    ``--fresh`` forgets the chosen ones alone. Those that were given up run again if the limit is higher now.
    """
    for turn, job, model in product(range(options.rounds), options.only, options.models):
        arguments = _arguments(options, job, model, turn)
        if options.fresh or _bound(cases.known(measure, arguments)) < options.limit - 1:
            cases.forget(measure, **arguments)
        cases.keep(f"{job}, {model}", address(measure), arguments, lambda arguments=arguments: work(arguments))


def result_of_jobs(
    options: Namespace,
    cases: Cases,
    measure: Measure,
    jobs: Iterable[str],
    models: Mapping[str, JobModel | LabelModel],
    *,
    title: str,
    notes: list[str],
    columns: dict[str, str] | None = None,
) -> Result:
    """Show every case that is known, of all jobs and models."""
    result = Result.of(
        options,
        title=title,
        columns=columns or SHOWN,
        figure=Marks(Axes("seconds", "seconds of the whole job", "relative_loss", "log loss / least"), most=2.0),
        notes=[*notes, *(f"{name}: {entry.tuning}." for name, entry in models.items())],
    )
    versions: dict[str, str] = {}
    for job in jobs:
        rows: list[dict[str, Any]] = []
        for model in models:
            answer = _known(options, cases, measure, job, model)
            if answer is None or answer.get("status") == NOT_TAKEN:
                continue
            versions = answer.get("versions", {}) | versions
            rows += _rows(job, model, answer)
            if "description" in answer:
                unseen = (
                    f"; {answer['unseen']} test rows of classes without training rows" if "unseen" in answer else ""
                )
                result.add_note(f"{job}: {answer['description']}{unseen}.")
        least = min((row["log_loss"] for row in rows if "log_loss" in row), default=1.0)
        for row in rows:
            if "log_loss" in row:
                row["relative_loss"] = row["log_loss"] / least
        result.rows += rows
    result.machine["versions"] = versions | result.machine["versions"]
    return result


def _arguments(options: Namespace, job: str, model: str, turn: int) -> dict[str, Any]:
    first = {"job": job, "model": model, "quick": options.quick, "n_threads": options.threads}
    return first | ({"turn": turn} if turn else {})


def _known(options: Namespace, cases: Cases, measure: Measure, job: str, model: str) -> dict[str, Any] | None:
    """The answer of the first turn, with the median seconds of all that are known."""
    answers = takewhile(bool, (cases.known(measure, _arguments(options, job, model, turn)) for turn in count()))
    first, *others = [*answers] or [None]
    if first is None or "seconds" not in first:
        return first
    ended = [first, *(each for each in others if "seconds" in each)]
    medians = {name: median(each[name] for each in ended) for name in ("seconds", "processor_seconds")}
    return first | medians | {"rounds": len(ended)}


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
