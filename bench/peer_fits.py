"""Suite ``peers``: time to a certified relative duality gap on the same objective, taxolearn against many libraries.

For every problem and prior variance v, each library has a process of its own, which reads the prepared data. First the
loosest tolerance that reaches the gap is looked for, which is not timed. Then the processes take turns, one fit a
round; those that wait sleep.
"""

import math
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.cases import Cases
from bench.figures import Ratios
from bench.memory import isolated
from bench.peer_problems import PROBLEMS
from bench.peer_solvers import OURS, PEERS
from bench.report import Result
from bench.workers import FailedError, LateError, Worker

_REFINEMENTS = 2  # tolerances tried between the last that was too loose and the first that was not
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
    "computed by the same NumPy code for all (bench/certify.py), for every answer that was timed, and the largest is "
    "shown. Objectives are equal (bench/libraries.py, bench/peer_solvers.py)."
)
_TURNS_NOTE = (
    "Libraries have processes of their own, which take turns fit by fit. A library is given up when a fit with the "
    "loosest tolerance that may be enough takes too long; then > stands before the seconds that it was given, and "
    "before the ratio that follows."
)
_OTHERS_NOTE = (
    "liblinear, hiclass, napkinXC and PECOS fit other models, which cannot have this certificate: see peers_models."
)


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


@dataclass
class Contest:
    """One problem at one variance: the processes of the libraries, started when they are needed."""

    setting: dict[str, Any]  # arguments of every Competitor
    python: str | Path
    workers: dict[str, Worker] = field(default_factory=dict)

    def worker(self, library: str) -> Worker:
        if library not in self.workers:
            made = Worker(
                "bench.peer_solvers:Competitor",
                self.setting | {"library": library},
                self.setting["n_threads"],
                self.python,
            )
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


def calibrate(attempt: Callable[[float], str], tolerances: list[float]) -> tuple[float | None, str]:
    """The loosest tolerance that is enough, and how the search ended.

    An attempt is "enough", "too loose", or "late"; as is the end, where None stands for no tolerance.
    """
    looser: float | None = None
    end, tol = "too loose", math.nan
    for tol in tolerances:
        end = attempt(tol)
        if end != "too loose":
            break
        looser = tol
    best = tol if end == "enough" else None
    if end == "too loose" or looser is None:
        return best, end
    for _ in range(_REFINEMENTS):
        between = float(f"{math.sqrt(looser * tol):.3g}")
        outcome = attempt(between)
        if outcome == "too loose":
            looser = between
        else:
            tol = between
            best = between if outcome == "enough" else best
        if outcome == "late":
            break
    return best, "late" if best is None else "enough"


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
    """Timed fits in turns: facts by library."""
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


def compare(
    problem: str,
    v: float,
    facts: dict[str, Any],
    libraries: list[str],
    gap: float,
    limits: Limits,
    cases: Cases,
    **more: Any,
) -> list[dict[str, Any]]:
    """Rows of all libraries that take the problem, at one variance. ``more`` is folder, python, n_threads, quick."""
    setting = {
        "problem": problem,
        "v": v,
        "sigma2": PROBLEMS[problem].sigma2,
        "gap": gap,
        "n_threads": more["n_threads"],
    }
    names = [name for name in PEERS if name in libraries and PEERS[name].takes(facts["sparse"], facts["weights"])]
    key = setting | {"quick": more["quick"]}
    calibrations: dict[str, dict[str, Any]] = {}
    with _contest(setting | {"folder": more["folder"]}, more["python"]) as contest:
        limit = None if OURS in names else limits.most  # ours, which comes first, has all the time
        for name in names:
            calibrations[name] = cases.keep(
                f"{facts['name']}, v = {v:g}, {name}",
                "calibration",
                key | {"library": name, "limits": [limits.times, limits.least, limits.most]},
                partial(_calibrated, contest, name, gap, limit),
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
    return [_row(facts["name"], v, name, calibrations[name] | timed.get(name, {}), ours, gap) for name in names]


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


def run(
    *,
    problems: list[str],
    libraries: list[str],
    gap: float,
    limits: Limits,
    python: str | Path,
    machine: dict[str, Any],
    cases: Cases,
    n_threads: int,
    quick: bool,
) -> Result:
    """All problems at all of their variances; ``python`` is the interpreter with the libraries."""
    result = Result(
        suite="peers",
        title=f"Time to a relative duality gap of {gap:g}, many libraries",
        columns=_COLUMNS,
        figure=Ratios("ratio", "v", "times as long as taxolearn"),
        settings={
            "threads": n_threads,
            "rounds": limits.repeats,
            "patience": f"{limits.times:g} times ours, from {limits.least:g} to {limits.most:g} s",
        },
        notes=[_TOLERANCE_NOTE, _TURNS_NOTE, _OTHERS_NOTE],
        machine=machine,
    )
    for problem in problems:
        with tempfile.TemporaryDirectory() as folder:
            facts = isolated(
                "bench.peer_problems:write_problem",
                {"name": problem, "folder": folder, "quick": quick},
                n_threads,
                python=python,
            )
            if "status" in facts:
                print(f"  {problem}: {facts['status']}", flush=True)
                result.notes.append(f"{problem} was left out: its data could not be read.")
                continue
            result.notes.append(f"{facts['description']}, sigma2 {PROBLEMS[problem].sigma2:g}.")
            more = {"folder": folder, "python": python, "n_threads": n_threads, "quick": quick}
            variances = PROBLEMS[problem].variances
            for v in variances[1:2] if quick else variances:
                result.rows += compare(problem, v, facts, libraries, gap, limits, cases, **more)
    return result
