"""One point of the suite ``scale``: a made-up problem, its fits, their time and memory; in this process."""

import ctypes
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench.learning import partition
from bench.memory import reset_peak, resident
from bench.synthetic import made_up_clusters, made_up_text, made_up_tree
from taxolearn import KernelLogisticClassifier, Taxonomy
from taxolearn.kernels import Linear
from taxolearn.model_selection import CrossValidationObjective

ITERATIONS = 20  # of the fits whose iterations are timed
NEVER = 1e-14  # a gap that so few iterations do not reach
GAP = 1e-5
EVALUATION_GAP = 1e-4  # of the folds in an evaluation of the criterion
LARGEST_GAP, LARGEST_ITERATIONS = 1e-3, 20
OPTIONS: dict[str, dict[str, Any]] = {
    "text": {"state": "coefficients", "variance": 20.0},
    "dense": {"state": "weights", "variance": 20.0},
}
_SIGMA2 = 0.01
_PHASES = ("products", "likelihood", "vectors")


def levels(classes: int, nodes: int) -> list[int]:
    """Sizes of the levels of a tree with so many nodes: as many as classes on each, the rest on the first."""
    full, rest = divmod(nodes, classes)
    return [rest] * (rest > 0) + [classes] * full


def _problem(
    family: str, rows: int, classes: int, per_row: int, features: int, nodes: int, seed: int
) -> tuple[Any, Any, Taxonomy]:
    """Inputs, labels and their tree."""
    if family == "text":
        X, y = made_up_text(rows, classes, per_row, features, seed)
    else:
        X, y = made_up_clusters(rows, classes, features, seed)
    parents = made_up_tree(levels(classes, nodes))
    return X, y + len(parents) - classes, Taxonomy.from_parents(parents)


def _fit(X: Any, y: Any, taxonomy: Taxonomy, family: str, n_threads: int, **options: Any) -> Any:
    model = KernelLogisticClassifier(
        Linear(OPTIONS[family]["variance"]),
        taxonomy=taxonomy,
        sigma2=_SIGMA2,
        hyperparameters="fixed",
        state=OPTIONS[family]["state"],
        n_threads=n_threads,
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows have iterations and gap
        return model.fit(X, y).result_


def _start_measuring(n_threads: int) -> float | None:
    """Have what the first fit loads in memory, and what is free handed back, before its peak starts anew."""
    KernelLogisticClassifier(hyperparameters="fixed", n_threads=n_threads).fit(np.eye(5), np.arange(5))
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return reset_peak()


def measure_fit(
    family: str,
    rows: int,
    classes: int,
    per_row: int,
    features: int,
    nodes: int,
    repeats: int,
    seed: int,
    n_threads: int,
) -> dict[str, Any]:
    """Seconds an iteration with their parts, peak memory, and a fit to the gap."""
    X, y, taxonomy = _problem(family, rows, classes, per_row, features, nodes, seed)
    before = _start_measuring(n_threads)
    fixed = {"method": "lbfgs", "precision": "single", "tol": NEVER, "max_iter": ITERATIONS}
    fits = [_fit(X, y, taxonomy, family, n_threads, **fixed) for _ in range(repeats)]
    peak = resident("VmHWM")
    if any(fit.iterations != ITERATIONS for fit in fits):
        raise RuntimeError(f"fits ended after {[fit.iterations for fit in fits]} iterations, not {ITERATIONS}")
    phases = {name: _median([fit.timings[name] / ITERATIONS for fit in fits]) for name in _PHASES}
    each = [sum(fit.timings[name] for name in _PHASES) / ITERATIONS for fit in fits]
    bytes_ = None if before is None or peak is None else peak - before
    to_gap = _fit(X, y, taxonomy, family, n_threads, method="lbfgs", tol=GAP, max_iter=5000)
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
        "megabytes": None if bytes_ is None else bytes_ / 1e6,
        "bytes": None if bytes_ is None else bytes_ / (rows * classes),
        "nonzeros": X.nnz / rows if family == "text" else features,
        "status": None if converged else f"gap of {to_gap.relative_gap:.1e}: {to_gap.status}",
    }


def measure_evaluation(
    rows: int,
    classes: int,
    per_row: int,
    features: int,
    nodes: int,
    groups: int,
    repeats: int,
    seed: int,
    n_threads: int,
) -> dict[str, Any]:
    """An evaluation of the cross-validated criterion with its gradient by the variances of so many groups of nodes."""
    X, y, taxonomy = _problem("text", rows, classes, per_row, features, nodes, seed)
    before = _start_measuring(n_threads)
    objective = CrossValidationObjective(
        X,
        y,
        Linear(OPTIONS["text"]["variance"]),
        taxonomy,
        partition(y, seed),
        tying=np.arange(taxonomy.n_nodes) % groups,
        sigma2=_SIGMA2,
        learn_sigma2=False,
        n_threads=n_threads,
    )
    if len(objective.theta) != groups:
        raise RuntimeError(f"the criterion has {len(objective.theta)} parameters, expected {groups}")
    evaluations = [objective.evaluate(objective.theta, EVALUATION_GAP) for _ in range(repeats)]
    peak = resident("VmHWM")
    seconds = [evaluation.seconds for evaluation in evaluations]
    products = evaluations[0].products
    bytes_ = None if before is None or peak is None else peak - before
    return {
        "iteration": _median(seconds) / products,
        "seconds": _median(seconds),
        "least": min(seconds),
        "most": max(seconds),
        "iterations": products,
        "gap": evaluations[0].gap,
        "megabytes": None if bytes_ is None else bytes_ / 1e6,
        "bytes": None if bytes_ is None else bytes_ / (rows * classes),
        "status": None if evaluations[0].converged else f"gap of {evaluations[0].gap:.1e}",
    }


def measure_largest(
    family: str,
    method: str,
    rows: int,
    classes: int,
    per_row: int,
    features: int,
    nodes: int,
    tol: float,
    max_iter: int,
    seed: int,
    n_threads: int,
) -> dict[str, Any]:
    """One fit and all that is resident at its peak, inputs and libraries included."""
    X, y, taxonomy = _problem(family, rows, classes, per_row, features, nodes, seed)
    _start_measuring(n_threads)
    fit = _fit(X, y, taxonomy, family, n_threads, method=method, precision="single", tol=tol, max_iter=max_iter)
    peak = resident("VmHWM")
    parts = {name: fit.timings[name] / fit.iterations for name in _PHASES}
    return parts | {
        "iteration": sum(parts.values()),
        "setup": fit.timings["setup"],
        "seconds": fit.timings["total"],
        "iterations": fit.iterations,
        "resident": peak,
        "megabytes": None if peak is None else peak / 1e6,
        "bytes": None if peak is None else peak / (rows * classes),
        "status": f"{fit.status} at a gap of {fit.relative_gap:.1e}",
    }


def _median(values: list[float]) -> float:
    return float(np.median(values))
