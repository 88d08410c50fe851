"""What a fit costs as one factor of a made-up problem grows and the others stay, and the largest fit.

Every point is a process of its own. Exponents are slopes of straight lines through the logarithms.
"""

import ctypes
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench.harness.figures import Curves
from bench.harness.learning import partition
from bench.harness.memory import growth, megabytes, reset_peak, resident
from bench.harness.options import add_resumable, known_cases, names
from bench.harness.report import Result
from bench.problems.synthetic import made_up_clusters, made_up_text, made_up_tree
from taxolearn import CrossValidation, KernelLogisticClassifier, Solver, Taxonomy, Tree
from taxolearn.kernels import Linear
from taxolearn.model_selection import CrossValidationObjective

HELP = "cost against rows, classes, nodes, nonzeros, features, threads and hyperparameters"
ITERATIONS = 20  # of the fits whose iterations are timed
NEVER = 1e-14  # a gap that so few iterations do not reach
GAP = 1e-5
EVALUATION_GAP = 1e-4  # of the folds in an evaluation of the criterion
LARGEST_GAP, LARGEST_ITERATIONS = 1e-3, 20
OPTIONS: dict[str, dict[str, Any]] = {
    "text": {"space": "coefficients", "variance": 20.0},
    "dense": {"space": "weights", "variance": 20.0},
}
_INTERCEPT_VARIANCE = 0.01
_PHASES = ("products", "likelihood", "vectors")
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
    "per_row": "nonzeros per row",
    "features": "features d",
    "threads": "threads",
    "variances": "hyperparameters",
}
_COLUMNS = {
    "problem": "varied",
    "library": "problem",
    "value": "value",
    "iteration": "s per iteration",
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
    f"s per iteration: median over fits of {ITERATIONS} iterations in single precision, one product each, and what "
    "of it goes to products, likelihood and vectors; setup comes once. To the gap: one fit, precision as it comes, to "
    f"a relative gap of {GAP:g}. Peak MB: resident memory of the fits beyond their inputs. Exponents stand in the last "
    "row of each curve: of a power of the factor, by least squares over all points and, in parentheses, over the upper "
    "decade."
)
_PROBLEMS_NOTE = (
    "Text: words by Zipf's law, {text[features]} features, {text[per_row]} nonzeros per row, by coefficients. Dense: "
    "overlapping clusters, {dense[features]} features, by weights. Both have {text[rows]} rows and {text[classes]} "
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


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser, repeats=3)
    parser.add_argument("--only", type=names, default=list(FACTORS), help="which factors")
    parser.add_argument("--seed", type=int, default=0, help="of the made-up problems")
    parser.add_argument(
        "--largest", type=float, nargs="?", const=20.0, metavar="GB", help="also the largest fits in so much memory"
    )


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """The power of the value in (value, cost), by least squares on logarithms; None for fewer than two values."""
    if len({value for value, _ in points}) < 2:
        return None
    values, costs = np.log(points).T
    return float(np.polyfit(values, costs, 1)[0])


def exponents(points: Sequence[tuple[float, float]]) -> str | None:
    """Format the exponent over all points and, unless that holds all of them, over the upper decade."""
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


def run(options: Namespace) -> list[Result]:
    """The curves of the factors that are asked for, and perhaps the largest fits."""
    result = Result.of(
        options,
        title="Cost of a fit as the problem grows",
        columns=_COLUMNS,
        figure=Curves(
            {
                "seconds": {"iteration": "an iteration", "seconds": "to the gap"},
                "peak MB beyond inputs": {"megabytes": "memory"},
            }
        ),
        notes=[
            _NOTE,
            _PROBLEMS_NOTE.format(
                text=_base("text", options.quick),
                dense=_base("dense", options.quick),
                evaluated=_evaluated(options.quick),
            ),
        ],
    )
    cases = known_cases(options)

    def measure(
        function: Callable[..., dict[str, Any]],
        problem: dict[str, Any],
        n_threads: int = options.threads,
        **more: Any,
    ) -> dict[str, Any]:
        title = ", ".join(f"{name} {value}" for name, value in (problem | more).items())
        arguments = {"problem": problem, "seed": options.seed} | more
        if function is not measure_largest:
            arguments["repeats"] = options.repeats
        return cases.run(f"{title}, {n_threads} threads", function, arguments, n_threads)

    for factor in options.only:
        for family, points in _curves(factor, measure, options.threads, options.quick).items():
            result.rows += _with_exponents(FACTORS[factor], f"taxolearn, {family}", points)
    if options.largest is not None:
        probes = tuple(rows // (10 if options.quick else 1) for rows in PROBES)
        result.notes.append(_LARGEST_NOTE.format(budget=options.largest, probes=" and ".join(map(str, probes))))
        for family, method in (("text", "lbfgs"), ("text", "ncg"), ("dense", "lbfgs")):
            result.rows.append(_largest(family, method, options.largest, probes, measure, options.quick))
    return [result]


Measure = Callable[..., dict[str, Any]]
Points = list[dict[str, Any]]


def _curves(factor: str, measure: Measure, n_threads: int, quick: bool) -> dict[str, Points]:
    """Points by the name of the problem, each with its value of the factor."""
    if factor == "variances":
        problem = _evaluated(quick)
        counts = sorted({max(1, round(share * problem["nodes"])) for share in _GROUPS})
        return {
            "evaluation": [{"value": count} | measure(measure_evaluation, problem, groups=count) for count in counts]
        }
    if factor == "threads":
        return {
            family: [
                {"value": count} | measure(measure_fit, {"family": family} | _base(family, quick), count)
                for count in range(1, n_threads + 1)
            ]
            for family in BASES
        }
    return {
        family: [
            {"value": value} | measure(measure_fit, {"family": family} | problem)
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
    """Run the fit that fills the memory, after those that show how large it may be."""
    classes = LARGEST_CLASSES // 10 if quick else LARGEST_CLASSES
    problem: dict[str, Any] = {"family": family} | _base(family, quick)
    problem |= {"classes": classes, "nodes": round(NODES_PER_CLASS * classes)}
    row = {"problem": f"largest, {classes} classes", "library": f"taxolearn, {family}, {method}"}
    known = []
    for rows in probes:
        answer = measure(measure_largest, problem | {"rows": rows}, method=method, tol=NEVER, max_iter=ITERATIONS)
        if answer.get("resident") is None:
            return row | {"status": answer["status"]}
        known.append((float(rows), answer["resident"]))
    rows = rows_within(MARGIN * budget * 1e9, known)
    limits = {"method": method, "tol": LARGEST_GAP, "max_iter": LARGEST_ITERATIONS}
    return row | {"value": rows} | measure(measure_largest, problem | {"rows": rows}, **limits)


# -- Points, each in a process of its own ------------------------------------------------------------------------------


def levels(classes: int, nodes: int) -> list[int]:
    """Sizes of the levels of a tree: as many nodes as classes on each, and the rest on the first."""
    full, rest = divmod(nodes, classes)
    return [rest] * (rest > 0) + [classes] * full


def _problem(
    rows: int, classes: int, per_row: int, features: int, nodes: int, seed: int, family: str = "text"
) -> tuple[Any, Any, Taxonomy]:
    """Inputs, labels and their tree."""
    if family == "text":
        X, y = made_up_text(rows, classes, per_row, features, seed)
    else:
        X, y = made_up_clusters(rows, classes, features, seed)
    parents = made_up_tree(levels(classes, nodes))
    return X, y + len(parents) - classes, Taxonomy.from_parents(parents)


def _fit(
    X: Any, y: Any, taxonomy: Taxonomy, family: str, n_threads: int, tol: float, max_iter: int, **solver: Any
) -> Any:
    model = KernelLogisticClassifier(
        Linear(OPTIONS[family]["variance"]),
        taxonomy=taxonomy,
        intercept_variance=_INTERCEPT_VARIANCE,
        tuning=None,
        tol=tol,
        max_iter=max_iter,
        solver=Solver(space=OPTIONS[family]["space"], **solver),
        n_threads=n_threads,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows have iterations and gap
        return model.fit(X, y).result_


def _start_measuring(n_threads: int) -> float | None:
    """Load what a first fit loads and hand free memory back, then reset the peak."""
    KernelLogisticClassifier(tuning=None, n_threads=n_threads).fit(np.eye(5), np.arange(5))
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return reset_peak()


def measure_fit(problem: dict[str, Any], repeats: int, seed: int, n_threads: int) -> dict[str, Any]:
    """Seconds per iteration with their parts, peak memory, and a fit to the gap."""
    X, y, taxonomy = _problem(**problem, seed=seed)
    family = problem["family"]
    before = _start_measuring(n_threads)
    fixed: dict[str, Any] = {"method": "lbfgs", "precision": "single"}
    fits = [_fit(X, y, taxonomy, family, n_threads, NEVER, ITERATIONS, **fixed) for _ in range(repeats)]
    bytes_ = growth(before)
    if any(fit.iterations != ITERATIONS for fit in fits):
        raise RuntimeError(f"fits ended after {[fit.iterations for fit in fits]} iterations, not {ITERATIONS}")
    phases = {name: _median([fit.timings[name] / ITERATIONS for fit in fits]) for name in _PHASES}
    each = [sum(fit.timings[name] for name in _PHASES) / ITERATIONS for fit in fits]
    to_gap = _fit(X, y, taxonomy, family, n_threads, GAP, 5000, method="lbfgs")
    converged = to_gap.status == "converged"
    return phases | {
        "iteration": _median(each),
        "least": min(each),
        "most": max(each),
        "setup": _median([fit.timings["setup"] for fit in fits]),
        "seconds": to_gap.timings["total"] if converged else None,
        "iterations": to_gap.iterations,
        "gap": to_gap.relative_gap,
        "precision": to_gap.precision,
        "megabytes": megabytes(bytes_),
        "bytes": _per_entry(bytes_, problem),
        "nonzeros": X.nnz / X.shape[0] if family == "text" else X.shape[1],
        "status": None if converged else f"gap of {to_gap.relative_gap:.1e}: {to_gap.status}",
    }


def measure_evaluation(problem: dict[str, Any], groups: int, repeats: int, seed: int, n_threads: int) -> dict[str, Any]:
    """An evaluation of the cross-validated criterion with its gradient by the variances of so many groups of nodes."""
    X, y, taxonomy = _problem(**problem, seed=seed)
    before = _start_measuring(n_threads)
    model = KernelLogisticClassifier(
        Linear(OPTIONS["text"]["variance"]),
        taxonomy=taxonomy,
        coupling=Tree(np.arange(taxonomy.n_nodes) % groups),
        intercept_variance=_INTERCEPT_VARIANCE,
        tuning=CrossValidation(partition(y, seed), learn_intercept_variance=False),
        n_threads=n_threads,
    )
    objective = CrossValidationObjective(model, X, y)
    if len(objective.theta) != groups:
        raise RuntimeError(f"the criterion has {len(objective.theta)} parameters, expected {groups}")
    evaluations = [objective.evaluate(objective.theta, EVALUATION_GAP) for _ in range(repeats)]
    bytes_ = growth(before)
    seconds = [evaluation.seconds for evaluation in evaluations]
    products = evaluations[0].products
    return {
        "iteration": _median(seconds) / products,
        "seconds": _median(seconds),
        "least": min(seconds),
        "most": max(seconds),
        "iterations": products,
        "gap": evaluations[0].gap,
        "megabytes": megabytes(bytes_),
        "bytes": _per_entry(bytes_, problem),
        "status": None if evaluations[0].converged else f"gap of {evaluations[0].gap:.1e}",
    }


def measure_largest(
    problem: dict[str, Any], method: str, tol: float, max_iter: int, seed: int, n_threads: int
) -> dict[str, Any]:
    """One fit and all that is resident at its peak, inputs and libraries included."""
    X, y, taxonomy = _problem(**problem, seed=seed)
    _start_measuring(n_threads)
    fit = _fit(X, y, taxonomy, problem["family"], n_threads, tol, max_iter, method=method, precision="single")
    peak = resident("VmHWM")
    parts = {name: fit.timings[name] / fit.iterations for name in _PHASES}
    return parts | {
        "iteration": sum(parts.values()),
        "setup": fit.timings["setup"],
        "seconds": fit.timings["total"],
        "iterations": fit.iterations,
        "resident": peak,
        "megabytes": megabytes(peak),
        "bytes": _per_entry(peak, problem),
        "status": f"{fit.status} at a gap of {fit.relative_gap:.1e}",
    }


def _per_entry(count: float | None, problem: dict[str, Any]) -> float | None:
    """Bytes per row and class."""
    return None if count is None else count / (problem["rows"] * problem["classes"])


def _median(values: list[float]) -> float:
    return float(np.median(values))
