"""Time to a certified relative duality gap on the same objective, taxolearn against many libraries.

For every problem and prior variance v, each library has a process of its own, which reads the prepared data. First the
loosest tolerance that reaches the gap is looked for, which is not timed. Then the processes take turns, one fit per
round; those that wait sleep.

One more library is one more module in bench/libraries, with its solvers in a table ``SOLVERS``; nothing else changes.
"""

import math
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.calibrate import calibrate
from bench.harness.cases import Cases
from bench.harness.environments import setup
from bench.harness.figures import Ratios
from bench.harness.isolated import isolated
from bench.harness.options import add_folder, add_resumable, known_cases, names
from bench.harness.report import Result
from bench.harness.workers import FailedError, LateError, Worker
from bench.libraries import OURS, SOLVERS
from bench.libraries.contracts import Task
from bench.problems.prepared import PROBLEMS, read_problem, write_problem

HELP = "many libraries on the same objective"
_AT_ONCE = 1e9  # a tolerance that everything satisfies
_COLUMNS = {
    "problem": "problem",
    "v": "v",
    "library": "library",
    "seconds_shown": "s (median)",
    "least": "min",
    "most": "max",
    "repeats": "fits",
    "ratio_shown": "times as long",
    "iterations": "iterations",
    "tol": "its tol",
    "relative_gap": "certified gap",
    "objective": "objective",
    "error": "test error %",
    "status": "status",
}
_TOLERANCE_NOTE = (
    "Each library runs with the loosest tolerance that reaches the gap, to an eighth of a power of ten; the gap is "
    "computed by the same NumPy code for all (bench/harness/certify.py), for every answer that was timed, and the "
    "largest is shown. Objectives are equal (bench/libraries)."
)
_TURNS_NOTE = (
    "Libraries have processes of their own, which take turns fit by fit. A library is given up when a fit with the "
    "loosest tolerance that may be enough takes too long; then > stands before the seconds that it was given, and "
    "before the ratio that follows."
)
_OTHERS_NOTE = (
    "liblinear, hiclass, napkinXC and PECOS fit other models, which cannot have this certificate: see peers_models."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser, repeats=5)
    add_folder(parser)
    parser.add_argument("--only", type=names, default=list(PROBLEMS), help="which data sets")
    parser.add_argument("--libraries", type=lambda text: text.split(";"), default=list(SOLVERS), help="separated by ;")
    parser.add_argument("--gap", type=float, default=1e-6, help="relative duality gap that every answer must have")
    parser.add_argument("--enough", type=float, default=60.0, help="no more repeats of a library after so many seconds")
    parser.add_argument("--patience", type=float, default=30.0, help="give a fit up after so many times ours")
    parser.add_argument("--least-limit", type=float, default=5.0, help="but not before (s)")
    parser.add_argument("--most-limit", type=float, default=600.0, help="and not later than (s)")


@dataclass(frozen=True)
class Limits:
    """Patience with a fit: ``times`` as long as ours, but from ``least`` to ``most`` seconds.

    A library takes part in ``repeats`` rounds, or until its timed fits have taken ``enough`` seconds together.
    """

    times: float
    least: float
    most: float
    repeats: int
    enough: float

    def after(self, ours: float) -> float:
        return min(max(self.least, self.times * ours), self.most)


class Competitor:
    """A library and a task in a process of their own; see bench.harness.workers."""

    def __init__(
        self, library: str, problem: str, folder: str, v: float, intercept_variance: float, gap: float, n_threads: int
    ) -> None:
        self._task = Task(read_problem(problem, folder), v, intercept_variance, gap, n_threads)
        self._solver = SOLVERS[library].make(self._task)
        self._answer: Any = None

    def warm_up(self) -> None:
        """Load and compile what only a fit needs, by a fit that stops at once."""
        self._solver.fit(_AT_ONCE)

    def tolerances(self) -> list[float]:
        """The tolerances to try, from loose to tight."""
        return list(self._solver.tolerances)

    def fit(self, tol: float) -> dict[str, Any]:
        """Fit, and say how long it took."""
        start = time.perf_counter()
        self._answer = self._solver.fit(tol)
        return {"seconds": time.perf_counter() - start, "iterations": int(np.max(self._answer.n_iter_))}

    def certificate(self) -> dict[str, float]:
        """Objective, gap and test error of the last fit, which is then forgotten: those who wait need no memory."""
        model = self._solver.model(self._answer)
        self._answer = None
        return self._task.certificate(model)


@dataclass
class Contest:
    """One problem at one variance: the processes of the libraries, started when they are needed."""

    setting: dict[str, Any]  # arguments of every Competitor but the library
    python: str | Path
    workers: dict[str, Worker] = field(default_factory=dict)

    def worker(self, library: str) -> Worker:
        if library not in self.workers:
            arguments = self.setting | {"library": library}
            made = Worker(Competitor, arguments, self.setting["n_threads"], self.python)
            self.workers[library] = made
            made.ask("warm_up")
        return self.workers[library]

    def drop(self, library: str) -> None:
        if library in self.workers:
            self.workers.pop(library).stop()

    def fit(self, library: str, tol: float, limit: float | None = None) -> dict[str, Any]:
        """Seconds, iterations and certificate; ``LateError`` after the limit, and the process is gone."""
        try:
            worker = self.worker(library)
            answer: dict[str, Any] = worker.ask("fit", limit, tol=tol)
            answer |= worker.ask("certificate")
        except (LateError, FailedError):
            self.drop(library)
            raise
        return answer


@contextmanager
def _contest(setting: dict[str, Any], python: str | Path) -> Iterator[Contest]:
    contest = Contest(setting, python)
    try:
        yield contest
    finally:
        for library in list(contest.workers):
            contest.drop(library)


def _calibrated(contest: Contest, library: str, gap: float, limit: float | None) -> dict[str, Any]:
    """The tolerance of a library under ``tol``, or why it has none under ``status``."""
    nearest, seconds = math.inf, math.nan

    def attempt(tol: float) -> str:
        nonlocal nearest, seconds
        try:
            answer = contest.fit(library, tol, limit)
        except LateError:
            print(f"    {library}, tol {tol:g}: more than {limit:.1f} s", flush=True)
            return "late"
        nearest, seconds = min(nearest, answer["relative_gap"]), answer["seconds"]
        print(f"    {library}, tol {tol:g}: gap {answer['relative_gap']:.1e} in {seconds:.2f} s", flush=True)
        return "enough" if answer["relative_gap"] <= gap else "too loose"

    try:
        tol, end = calibrate(attempt, contest.worker(library).ask("tolerances"))
    except FailedError as failure:
        contest.drop(library)
        return {"status": f"failed: {failure}"[:100]}
    if tol is not None and library == OURS:
        seconds = contest.fit(library, tol)["seconds"]  # what the patience with others is measured by
    if tol is not None:
        return {"tol": tol, "calibration_seconds": seconds}
    contest.drop(library)
    if end == "late":
        return {"bound": limit, "status": "given up"}
    return {"status": f"gap of {nearest:.1e} at best"}


def _rounds(contest: Contest, tolerances: dict[str, float], limits: Limits) -> dict[str, Any]:
    """Time fits in turns; return facts by library."""
    answers: dict[str, list[dict[str, Any]]] = {library: [] for library in tolerances}
    failed: dict[str, dict[str, Any]] = {}
    for _ in range(limits.repeats):
        for library, tol in tolerances.items():
            if library in failed or sum(answer["seconds"] for answer in answers[library]) >= limits.enough:
                continue
            try:
                if library not in contest.workers:  # calibrated in a run before this one: the first fit is not timed
                    contest.fit(library, tol)
                answers[library].append(contest.fit(library, tol))
            except FailedError as failure:
                failed[library] = {"status": f"failed: {failure}"[:100]}
    return {library: failed.get(library) or _summary(of_library) for library, of_library in answers.items()}


def _summary(answers: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = [answer["seconds"] for answer in answers]
    return answers[-1] | {
        "seconds": statistics.median(seconds),
        "least": min(seconds),
        "most": max(seconds),
        "repeats": len(seconds),
        "relative_gap": max(answer["relative_gap"] for answer in answers),
    }


def _compare(
    problem: str,
    v: float,
    facts: dict[str, Any],
    folder: str,
    python: Path,
    limits: Limits,
    cases: Cases,
    options: Namespace,
) -> list[dict[str, Any]]:
    """Rows of all libraries that take the problem, at one variance."""
    setting = {
        "problem": problem,
        "v": v,
        "intercept_variance": PROBLEMS[problem].intercept_variance,
        "gap": options.gap,
        "n_threads": options.threads,
    }
    chosen = [
        name
        for name, entry in SOLVERS.items()
        if name in options.libraries and entry.takes(facts["sparse"], facts["weights"])
    ]
    key = setting | {"quick": options.quick}
    calibrations: dict[str, dict[str, Any]] = {}
    with _contest(setting | {"folder": folder}, python) as contest:
        limit = None if OURS in chosen else limits.most  # ours, which comes first, has all the time
        for name in chosen:
            calibrations[name] = cases.keep(
                f"{facts['name']}, v = {v:g}, {name}",
                "calibration",
                key | {"library": name, "limits": [limits.times, limits.least, limits.most]},
                partial(_calibrated, contest, name, options.gap, limit),
            )
            if name == OURS:
                limit = limits.after(calibrations[name].get("calibration_seconds", limits.most))
        tolerances = {name: answer["tol"] for name, answer in calibrations.items() if "tol" in answer}
        timed = cases.keep(
            f"{facts['name']}, v = {v:g}, rounds",
            "rounds",
            key | {"tolerances": tolerances, "repeats": limits.repeats, "enough": limits.enough},
            partial(_rounds, contest, tolerances, limits),
        )
    ours = timed.get(OURS, {}).get("seconds")
    return [
        _row(facts["name"], v, name, calibrations[name] | timed.get(name, {}), ours, options.gap) for name in chosen
    ]


def _row(
    problem: str, v: float, library: str, answer: dict[str, Any], ours: float | None, gap: float
) -> dict[str, Any]:
    row = {"problem": problem, "v": v, "library": library} | answer
    seconds = answer.get("seconds", answer.get("bound"))
    if seconds is None:
        return row
    sign = "> " if "bound" in answer else ""
    row["seconds_shown"] = f"{sign}{seconds:.3g}"
    if ours is not None:
        row["ratio"] = seconds / ours
        row["ratio_shown"] = f"{sign}{row['ratio']:.3g}"
    if answer.get("relative_gap", 0.0) > gap:
        row["status"] = "a timed fit missed the gap"
    return row


def run(options: Namespace) -> list[Result]:
    """Compare the libraries on all problems, at all of their variances."""
    environments = setup(options.folder)
    python = environments.most
    limits = Limits(options.patience, options.least_limit, options.most_limit, options.repeats, options.enough)
    result = Result.of(
        options,
        title=f"Time to a relative duality gap of {options.gap:g}, many libraries",
        columns=_COLUMNS,
        figure=Ratios("ratio", "v", "times as long as taxolearn"),
        notes=[_TOLERANCE_NOTE, _TURNS_NOTE, _OTHERS_NOTE],
        machine=environments.machine(),
    )
    cases = known_cases(options)
    for problem in options.only:
        with tempfile.TemporaryDirectory() as folder:
            arguments = {"name": problem, "folder": folder, "quick": options.quick}
            facts = isolated(write_problem, arguments, options.threads, python=python)
            if "status" in facts:
                print(f"  {problem}: {facts['status']}", flush=True)
                result.notes.append(f"{problem} was left out: its data could not be read.")
                continue
            result.notes.append(f"{facts['description']}, intercept variance {PROBLEMS[problem].intercept_variance:g}.")
            variances = PROBLEMS[problem].variances
            for v in variances[1:2] if options.quick else variances:
                result.rows += _compare(problem, v, facts, folder, python, limits, cases, options)
    return [result]
