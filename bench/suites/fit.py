"""Time to a certified relative duality gap, taxolearn against scikit-learn, on the same objective."""

import time
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from bench.harness.calibrate import calibrate
from bench.harness.figures import Bar
from bench.harness.options import add_common, numbers
from bench.harness.report import Result
from bench.harness.timing import interleave
from bench.libraries import ours, scikit_learn
from bench.libraries.contracts import Solver, Task
from bench.problems.data import news20

HELP = "time to a duality gap, against scikit-learn"
_INTERCEPT_VARIANCE = 0.01

_NOTE = (
    "Each library runs with the loosest tolerance of a decreasing list whose answer has the gap; the gap is computed "
    "by the same NumPy code for all (bench/harness/certify.py). Runs are interleaved in one process."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser, repeats=5)
    parser.add_argument("--variances", type=numbers, default=[5.0, 50.0], help="prior variances of the weights")
    parser.add_argument("--gap", type=float, default=1e-6, help="relative duality gap that every answer must have")
    parser.add_argument("--limit", type=float, default=20.0, help="give a library up when one fit takes longer (s)")


def run(options: Namespace) -> list[Result]:
    """Calibrate, time and certify every library at every variance ``v``."""
    data = news20(options.quick)
    result = Result.of(
        options,
        title=f"Time to a relative duality gap of {options.gap:g}",
        columns={
            "problem": "problem",
            "library": "library",
            "seconds": "s (median)",
            "least": "min",
            "most": "max",
            "ratio": "ratio to fastest rival",
            "tol": "its tol",
            "iterations": "iterations",
            "relative_gap": "certified gap",
            "objective": "objective",
            "error": "test error %",
        },
        figure=Bar("seconds", "seconds to the gap (median)", "{:.2f}"),
        settings={"intercept_variance": _INTERCEPT_VARIANCE, "data": data.description},
        notes=[_NOTE],
    )
    for v in options.variances:
        task = Task(data, v, _INTERCEPT_VARIANCE, options.gap, options.threads)
        result.rows += _compare(task, options.repeats, options.limit)
    return [result]


def _compare(task: Task, repeats: int, limit: float) -> list[dict[str, Any]]:
    solvers = {f"taxolearn {method}": ours.solver(task, method) for method in ("lbfgs", "ncg")}
    rivals = {f"scikit-learn {method}": scikit_learn.solver(task, method) for method in ("saga", "newton-cg", "lbfgs")}
    rivals["scikit-learn saga float32"] = scikit_learn.solver(task, "saga", np.float32)
    solvers |= rivals
    tolerances = {name: _calibrate(name, solver, task, limit) for name, solver in solvers.items()}
    work = {
        name: (lambda solver=solvers[name], tol=tol: solver.fit(tol))
        for name, tol in tolerances.items()
        if tol is not None
    }
    times, answers = interleave(work, repeats)
    fastest = min((times[name].median for name in rivals if name in times), default=None)
    rows: list[dict[str, Any]] = []
    for name, solver in solvers.items():
        row: dict[str, Any] = {"problem": f"{task.data.name}, v = {task.v:g}", "library": name, "tol": tolerances[name]}
        if name in times:
            row |= times[name].as_dict() | task.certificate(solver.model(answers[name]))
            row["iterations"] = int(np.max(answers[name].n_iter_))
            row["ratio"] = None if fastest is None else times[name].median / fastest
            if row["relative_gap"] > task.gap:
                raise RuntimeError(f"{name}: the timed answer has a gap of {row['relative_gap']:.1e}")
        rows.append(row)
    return rows


def _calibrate(name: str, solver: Solver, task: Task, limit: float) -> float | None:
    """The loosest tolerance that reaches the gap; None if none does, or not within ``limit`` seconds per fit."""

    def attempt(tol: float) -> str:
        start = time.perf_counter()
        fitted = solver.fit(tol)
        seconds = time.perf_counter() - start
        reached = task.certificate(solver.model(fitted))["relative_gap"]
        print(f"  v = {task.v:g}, {name}, tol {tol:g}: gap {reached:.1e} in {seconds:.2f} s", flush=True)
        if reached <= task.gap:
            return "enough"
        return "late" if seconds > limit else "too loose"

    return calibrate(attempt, list(solver.tolerances))[0]
