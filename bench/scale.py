"""Suite ``scale``: what a fit costs as one factor of a made-up problem grows and the others stay, and the largest fit.

Every point is a process of its own. Exponents are slopes of straight lines through the logarithms.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.cases import Cases
from bench.figures import Curves
from bench.report import Result
from bench.scale_fits import EVALUATION_GAP, GAP, ITERATIONS, LARGEST_GAP, LARGEST_ITERATIONS, NEVER

BASES: dict[str, dict[str, int]] = {
    "text": {"rows": 10_000, "classes": 100, "per_row": 50, "features": 20_000},
    "dense": {"rows": 10_000, "classes": 100, "per_row": 0, "features": 100},
}
QUICK_BASES: dict[str, dict[str, int]] = {
    "text": {"rows": 400, "classes": 10, "per_row": 10, "features": 500},
    "dense": {"rows": 400, "classes": 10, "per_row": 0, "features": 20},
}
NODES_PER_CLASS = 1.1  # where their number is not what varies
EVALUATED = {"rows": 3_000, "classes": 200, "per_row": 50, "features": 20_000, "nodes": 300}
QUICK_EVALUATED = {"rows": 300, "classes": 20, "per_row": 10, "features": 500, "nodes": 30}
LARGEST_CLASSES = 1000
PROBES = (10_000, 30_000)  # rows from which the memory of more is foretold
MARGIN = 0.95  # of the memory that is meant to be used

_DECADES = (0.1, 0.3, 1.0, 3.0, 10.0)  # of the base case
_QUICK = (1.0, 2.0)
_NODES = (1.0, 2.0, 4.0, 8.0)  # per class
_GROUPS = (1 / 300, 1 / 100, 1 / 30, 1 / 10, 1 / 3, 1.0)  # per node

FACTORS = {
    "rows": "rows n",
    "classes": "classes C",
    "nodes": "nodes P of the tree",
    "per_row": "nonzeros a row",
    "features": "features d",
    "threads": "threads",
    "variances": "hyperparameters",
}
_COLUMNS = {
    "problem": "varied",
    "library": "problem",
    "value": "value",
    "iteration": "s an iteration",
    "products": "products",
    "likelihood": "likelihood",
    "vectors": "vectors",
    "setup": "setup s",
    "seconds": "s to the gap",
    "iterations": "iterations",
    "megabytes": "peak MB",
    "bytes": "bytes / (n C)",
    "iteration_exponents": "exponent: iteration",
    "seconds_exponents": "to the gap",
    "megabytes_exponents": "memory",
    "status": "remark",
}
_NOTE = (
    f"s an iteration: median over fits of {ITERATIONS} iterations in single precision, one product each, and what "
    "of it goes to products, likelihood and vectors; setup comes once. To the gap: one fit, precision as it comes, to "
    f"a relative gap of {GAP:g}. Peak MB: resident memory of the fits beyond their inputs. Exponents stand in the last "
    "row of each curve: of a power of the factor, by least squares over all points and, in parentheses, over the upper "
    "decade."
)
_PROBLEMS_NOTE = (
    "Text: words by Zipf's law, {text[features]} features, {text[per_row]} nonzeros a row, state coefficients. Dense: "
    "overlapping clusters, {dense[features]} features, state weights. Both have {text[rows]} rows and {text[classes]} "
    "classes in a tree of {text[nodes]} nodes, unless that varies, and are fitted by L-BFGS. Trees with twice as many "
    "nodes as classes and more have chains. Hyperparameters: one cold evaluation of the cross-validated criterion with "
    "its gradient, {evaluated[rows]} texts, {evaluated[classes]} classes, {evaluated[nodes]} nodes that share so many "
    f"variances, folds fitted to a gap of {EVALUATION_GAP:g}; seconds are those of the evaluation, iterations its "
    "products of one fold's size."
)
_LARGEST_NOTE = (
    "Largest: so many rows that the resident memory, inputs included, stays below {budget:g} GB, foretold by fits of "
    f"{{probes}} rows. Its peak MB and bytes are of all that is resident; the fit ends at a gap of "
    f"{LARGEST_GAP:g} or after {LARGEST_ITERATIONS} iterations."
)


def add_arguments(suites: Any, common: argparse.ArgumentParser) -> None:
    """The suite's part of the command line."""
    parser = suites.add_parser(
        "scale",
        parents=[common],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        help="cost against rows, classes, nodes, nonzeros, features, threads and hyperparameters",
    )
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(FACTORS), help="which factors")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the made-up problems")
    parser.add_argument(
        "--largest", type=float, nargs="?", const=20.0, metavar="GB", help="also the largest fits in so much memory"
    )
    parser.add_argument("--fresh", action="store_true", help="forget the cases that are done, and start anew")


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """The power of the value in (value, cost), by least squares on logarithms; None for fewer than two values."""
    if len({value for value, _ in points}) < 2:
        return None
    values, costs = np.log(points).T
    return float(np.polyfit(values, costs, 1)[0])


def exponents(points: Sequence[tuple[float, float]]) -> str | None:
    """Exponents over all points and, where these are not all, over those of the upper decade, to be read."""
    of_all = exponent(points)
    if of_all is None:
        return None
    start = max(value for value, _ in points) / 10 * (1 - 1e-9)  # for rounding
    upper = [point for point in points if point[0] >= start]
    of_upper = exponent(upper) if len(upper) < len(points) else None
    return f"{of_all:.2f}" if of_upper is None else f"{of_all:.2f} ({of_upper:.2f})"


def rows_within(budget: float, points: Sequence[tuple[float, float]]) -> int:
    """How many rows the budget is enough for, when memory is a straight line through (rows, bytes)."""
    rows, bytes_ = np.array(points).T
    slope, offset = np.polyfit(rows, bytes_, 1)
    return int((budget - offset) / slope)


def sizes(family: str, factor: str, quick: bool) -> list[tuple[int, dict[str, int]]]:
    """Values of the factor and the problems that have them."""
    base = _base(family, quick)
    if factor == "nodes":
        values = [round(ratio * base["classes"]) for ratio in (_QUICK if quick else _NODES)]
    else:
        values = [round(ratio * base[factor]) for ratio in (_QUICK if quick else _DECADES)]
    problems = [base | {factor: value} for value in values]
    if factor == "classes":
        problems = [problem | {"nodes": round(NODES_PER_CLASS * problem["classes"])} for problem in problems]
    return list(zip(values, problems, strict=True))


def _base(family: str, quick: bool) -> dict[str, int]:
    base = (QUICK_BASES if quick else BASES)[family]
    return base | {"nodes": round(NODES_PER_CLASS * base["classes"])}


def _evaluated(quick: bool) -> dict[str, int]:
    return QUICK_EVALUATED if quick else EVALUATED


def run(options: argparse.Namespace) -> Result:
    """The curves of the factors that are asked for, and perhaps the largest fits."""
    result = Result(
        suite="scale",
        title="Cost of a fit as the problem grows",
        columns=_COLUMNS,
        figure=Curves(
            {
                "seconds": {"iteration": "an iteration", "seconds": "to the gap"},
                "peak MB beyond inputs": {"megabytes": "memory"},
            }
        ),
        settings={"threads": options.threads, "repeats": options.repeats, "seed": options.seed, "quick": options.quick},
        notes=[
            _NOTE,
            _PROBLEMS_NOTE.format(
                text=_base("text", options.quick),
                dense=_base("dense", options.quick),
                evaluated=_evaluated(options.quick),
            ),
        ],
    )
    cases = Cases(options.output / "scale.cases.jsonl", fresh=options.fresh)

    def measure(function: str, problem: dict[str, Any], n_threads: int = options.threads) -> dict[str, Any]:
        title = ", ".join(f"{name} {value}" for name, value in problem.items())
        arguments = problem | {"seed": options.seed}
        if function != "measure_largest":
            arguments |= {"repeats": options.repeats}
        return cases.run(f"{title}, {n_threads} threads", f"bench.scale_fits:{function}", arguments, n_threads)

    for factor in options.only:
        for family, points in _curves(factor, measure, options.threads, options.quick).items():
            result.rows += _with_exponents(FACTORS[factor], f"taxolearn, {family}", points)
    if options.largest is not None:
        probes = tuple(rows // (10 if options.quick else 1) for rows in PROBES)
        result.notes.append(_LARGEST_NOTE.format(budget=options.largest, probes=" and ".join(map(str, probes))))
        for family, method in (("text", "lbfgs"), ("text", "ncg"), ("dense", "lbfgs")):
            result.rows.append(_largest(family, method, options.largest, probes, measure, options.quick))
    return result


Measure = Callable[..., dict[str, Any]]
Points = list[dict[str, Any]]


def _curves(factor: str, measure: Measure, n_threads: int, quick: bool) -> dict[str, Points]:
    """Points by the name of the problem, each with its value of the factor."""
    if factor == "variances":
        problem = _evaluated(quick)
        counts = sorted({max(1, round(share * problem["nodes"])) for share in _GROUPS})
        return {
            "evaluation": [
                {"value": count} | measure("measure_evaluation", problem | {"groups": count}) for count in counts
            ]
        }
    if factor == "threads":
        return {
            family: [
                {"value": count} | measure("measure_fit", {"family": family} | _base(family, quick), count)
                for count in range(1, n_threads + 1)
            ]
            for family in BASES
        }
    return {
        family: [
            {"value": value} | measure("measure_fit", {"family": family} | problem)
            for value, problem in sizes(family, factor, quick)
        ]
        for family in BASES
        if factor != "per_row" or family == "text"
    }


def _with_exponents(problem: str, library: str, points: Points) -> Points:
    """The rows of a curve, exponents in the last."""
    rows: Points = [{"problem": problem, "library": library} | point for point in points]
    for key in ("iteration", "seconds", "megabytes"):
        known = [(row["value"], row[key]) for row in rows if row.get(key) is not None]
        rows[-1][f"{key}_exponents"] = exponents(known)
    return rows


def _largest(
    family: str, method: str, budget: float, probes: Sequence[int], measure: Measure, quick: bool
) -> dict[str, Any]:
    """The fit that fills the memory, after those that tell how large it is."""
    classes = LARGEST_CLASSES // 10 if quick else LARGEST_CLASSES
    problem: dict[str, Any] = {"family": family, "method": method} | _base(family, quick)
    problem |= {"classes": classes, "nodes": round(NODES_PER_CLASS * classes)}
    row = {"problem": f"largest, {classes} classes", "library": f"taxolearn, {family}, {method}"}
    known = []
    for rows in probes:
        answer = measure("measure_largest", problem | {"rows": rows, "tol": NEVER, "max_iter": ITERATIONS})
        if answer.get("resident") is None:
            return row | {"status": answer["status"]}
        known.append((float(rows), answer["resident"]))
    rows = rows_within(MARGIN * budget * 1e9, known)
    limits = {"tol": LARGEST_GAP, "max_iter": LARGEST_ITERATIONS}
    return row | {"value": rows} | measure("measure_largest", problem | {"rows": rows} | limits)
