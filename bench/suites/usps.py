"""Own RBF kernels per class, learned by cross-validation on 2,000 rows of USPS, as in Seeger (2008, 6.3)."""

import statistics
import time
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from bench.harness.figures import Spread
from bench.harness.learning import learning_facts, scores_on_test, tuning
from bench.harness.options import add_resumable, known_cases
from bench.harness.report import Result
from bench.problems.data import usps
from taxolearn import KernelLogisticClassifier
from taxolearn.kernels import RBF, PerClass

HELP = "own kernels learned on 2,000 rows of USPS"
START, INTERCEPT_VARIANCE = RBF(length_scale=0.0166**-0.5, variance=10.0), 4.0

_NOTE = (
    "Own kernels per class, start w = 0.0166 and v = 10, intercept variance 4; 5 folds of 2,000 random training rows, "
    "other ones in each run; final fit on all. Published: 4.77 ± 0.18 % (five runs). w = 1 / length_scale^2."
)


def measure(seed: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """Learn on random rows, fit to all, in this process."""
    data = usps(quick)
    model = KernelLogisticClassifier(
        PerClass(START),
        intercept_variance=INTERCEPT_VARIANCE,
        tuning=tuning(quick, subset=300 if quick else 2000),
        random_state=seed,
        n_threads=n_threads,
    )
    begin = time.perf_counter()
    model.fit(data.X, data.y)
    seconds = time.perf_counter() - begin
    log_proba = model.predict_log_proba(data.X_test)
    return learning_facts(model) | {
        "seconds": seconds,
        "classes": model.classes_.tolist(),
        **scores_on_test(data.y_test, model.classes_, np.exp(log_proba), log_proba),
    }


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--runs", type=int, default=5)


def run(options: Namespace) -> list[Result]:
    """Run once per seed, and report how far apart the runs come out."""
    result = Result.of(
        options,
        title="USPS: own kernels learned on 2,000 rows",
        columns={
            "library": "run",
            "error": "test error %",
            "error_deviation": "±",
            "log_loss": "test log loss",
            "cv_loss": "CV log loss",
            "learning_seconds": "learning s",
            "evaluations": "evaluations",
            "failures": "failures",
            "learning_status": "status of learning",
            "final_seconds": "final fit s",
            "products": "its products",
            "gap": "certified gap",
            "status": "status",
        },
        figure=Spread(("length_scale", "variance")),
        settings={"data": usps(options.quick).description},
        notes=[_NOTE],
    )
    cases = known_cases(options)
    for seed in range(options.runs):
        arguments = {"seed": seed, "quick": options.quick}
        answer = cases.run(f"run {seed}", measure, arguments, options.threads)
        if "error" in answer:
            result.rows.append({"problem": "USPS", "library": f"taxolearn, seed {seed}", **answer})
    if result.rows:
        result.notes += _spread(result.rows)
        result.rows.append(_mean_of_runs(result.rows))
    return [result]


def _mean_of_runs(rows: list[dict[str, Any]]) -> dict[str, Any]:
    averaged = ("error", "log_loss", "cv_loss", "learning_seconds", "evaluations", "failures", "final_seconds")
    return {
        "problem": "USPS",
        "library": f"mean of {len(rows)}",
        **{name: statistics.fmean(row[name] for row in rows) for name in averaged},
        "error_deviation": statistics.stdev(row["error"] for row in rows) if len(rows) > 1 else None,
    }


def _spread(rows: list[dict[str, Any]]) -> list[str]:
    """Least and largest value of every learned parameter over the runs."""
    lines = []
    for kind in ("length_scale", "variance"):
        by_class = {label: [row["learned"][f"kernels[{label}].{kind}"] for row in rows] for label in rows[0]["classes"]}
        parts = [f"{label}: {min(found):.3g} to {max(found):.3g}" for label, found in by_class.items()]
        factors = [max(found) / min(found) for found in by_class.values()]
        everything = [value for found in by_class.values() for value in found]
        overall = max(everything) / min(everything)
        lines.append(
            f"{kind} by class: {'; '.join(parts)}. Over runs a class's differ by a factor of "
            f"{statistics.median(factors):.2g} (median), over classes and runs by {overall:.2g}."
        )
    return lines
