"""One RBF kernel on satimage and USPS, our models and those that a user might pick instead."""

import statistics
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from typing import Any

from bench.harness import rbf_fits
from bench.harness.figures import Axes, Points
from bench.harness.options import add_common, names
from bench.harness.rbf_fits import run_alone
from bench.harness.report import Result
from bench.libraries.contracts import LEAST_PROBABILITY
from bench.problems.rbf import PUBLISHED, VALUES, Values, load

HELP = "RBF models against those of other libraries"

# The w that the paper starts from, 2 / (sum of the variances of the features); for it, another held-out fifth prefers
# the largest of v = 30 ... 10,000.
START = {"USPS": replace(VALUES["USPS"], w=0.0165, variance=10000.0)}
FEWER_ROWS = 1000  # for who does not come to an end with all

_CHOICE = (
    "w, v and intercept variance of satimage, and that of USPS, are given. A held-out fifth of the training rows "
    "chose w and v of USPS (log loss of ours), C (error) and the "
    "calibration (log loss) of the SVM, and the variance of gpytorch's functions (log loss), whose targets have a "
    "scale of their own; `--choose` repeats the choice. "
    "All else has the same w, v and intercept variance, but for the row "
    '"w of the paper": w = 0.0165, from the variances of the features, and v = 10,000, the largest and best of those '
    "tried on another held-out fifth."
)
_MEASURING = (
    "Every fit runs in a process of its own, in turns, in which threads without work sleep. Peak MB: resident memory "
    "of fit and prediction beyond data and libraries. "
    f"Probabilities below {LEAST_PROBABILITY:g} count as that in the log loss. GaussianProcessClassifier is "
    "one against rest, by Laplace's approximation; gpytorch is an exact process on Dirichlet parameters, all classes "
    "in a batch, single precision. SVC: six fits, five of them for the calibration, two at a time."
)


def _competitors(data: str, values: Values, rank: int) -> list[tuple[str, str, Values, dict[str, Any]]]:
    """Names in the table, models of bench.libraries.RBF_MODELS, their values and options."""
    competitors: list[tuple[str, str, dict[str, Any]]] = [
        ("taxolearn, stored", "taxolearn", {"products": "gram"}),
        ("taxolearn, own kernels", "taxolearn", {"products": "gram", "own": True}),
        ("taxolearn, tiled", "taxolearn", {"products": "tiled"}),
        (f"taxolearn, rank {rank}", "taxolearn", {"rank": rank}),
        (f"Nystroem {rank} + LogisticRegression", "Nystroem", {"rank": rank}),
        ("SVC, calibrated", "SVC", {}),
        ("gpytorch, Dirichlet", "gpytorch", {}),
        ("GaussianProcessClassifier", "GaussianProcessClassifier", {}),
    ]
    out = [(name, model, values, options) for name, model, options in competitors]
    if data in START:
        out.insert(1, ("taxolearn, w of the paper", "taxolearn", START[data], {"products": "gram"}))
    return out


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser, repeats=1)
    parser.add_argument("--data", type=names, default=list(VALUES), help="which data sets")
    parser.add_argument("--rank", type=int, default=1000, help="rank of the approximations")
    parser.add_argument("--limit", type=float, default=300.0, help="give a model up when it takes longer (s)")
    parser.add_argument("--choose", action="store_true", help="choose values on held-out rows first, for minutes")


def run(options: Namespace) -> list[Result]:
    """Fit every model ``repeats`` times, those of others that reach the limit once."""
    result = Result.of(
        options,
        title="One RBF kernel: test log loss against time",
        columns={"problem": "data"} | rbf_fits.COLUMNS,
        figure=Points(Axes("all_seconds", "seconds of fit and prediction", "log_loss", "test log loss", log="xy")),
        notes=[PUBLISHED, _CHOICE, _MEASURING],
    )
    for name in options.data:
        values = choose_values(name, options.threads, options.quick) if options.choose else VALUES[name]
        result.notes.append(f"{load(name, options.quick).description}: {values}.")
        result.rows += _compare(name, values, options)
    return [result]


def _compare(data: str, values: Values, options: Namespace) -> list[dict[str, Any]]:
    runs: dict[str, list[dict[str, Any]]] = {}
    rank = min(options.rank, 200) if options.quick else options.rank
    for turn in range(options.repeats):
        for name, model, of_model, more in _competitors(data, values, rank):
            if model == "gpytorch" and find_spec("gpytorch") is None:
                runs[name] = [{"status": "not installed"}]
                continue
            if turn > 0 and "seconds" not in runs[name][0]:
                continue
            attempt = run_alone(data, model, of_model, options.threads, more, quick=options.quick, limit=options.limit)
            _check(name, attempt)
            print(f"  {data}, {name}: {attempt}", flush=True)
            runs.setdefault(name, []).append(attempt)
            if turn == 0 and attempt["status"].startswith("gave up"):
                part = run_alone(data, model, of_model, options.threads, more, part=FEWER_ROWS, limit=options.limit)
                runs[f"{name}, {FEWER_ROWS} rows"] = [part]
                print(f"  {data}, {name}, {FEWER_ROWS} rows: {part}", flush=True)
    return [{"problem": data, "library": name, **_summary(attempts)} for name, attempts in runs.items()]


def _check(name: str, attempt: dict[str, Any]) -> None:
    """Stop if ours fails; a failure of another library is a result."""
    if name.startswith("taxolearn") and attempt["status"] != "converged":
        raise RuntimeError(f"{name}: {attempt['status']}")


def _summary(attempts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last attempt, with medians of times and memory."""
    row = dict(attempts[-1])
    for key in ("seconds", "predict_seconds", "all_seconds", "megabytes"):
        if row.get(key) is not None:
            row[key] = statistics.median(attempt[key] for attempt in attempts)
            row[f"{key}_of_all"] = [attempt[key] for attempt in attempts]
    return row


def choose_values(data: str, n_threads: int, quick: bool) -> Values:
    """The values that do best on a fifth of the training rows, held out; those of our kernel on satimage are given."""

    def best(model: str, candidates: list[Values], key: str, **options: Any) -> Values:
        scores = []
        for values in candidates:
            row = run_alone(data, model, values, n_threads, options, quick=quick, part="held out")
            scores.append(row[key])
            print(f"  {data}, {model}, {values}: held-out {key} {row[key]:.4f}", flush=True)
        return candidates[scores.index(min(scores))]

    values = VALUES[data]
    if data == "USPS":
        grid = [replace(values, w=w, variance=v) for w, v in product((0.0165, 0.022, 0.03), (100.0, 300.0, 1e3))]
        values = best("taxolearn", grid, "log_loss", gap=1e-3)
    values = best("SVC", [replace(values, penalty=penalty) for penalty in (1.0, 3.0, 10.0, 30.0)], "error")
    values = best("SVC", [replace(values, calibration=name) for name in ("sigmoid", "temperature")], "log_loss")
    if find_spec("gpytorch") is None:
        return values
    return best("gpytorch", [replace(values, dirichlet=v) for v in (0.25, 1.0, 4.0, 16.0)], "log_loss")
