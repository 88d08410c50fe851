"""Variances of flat and hierarchical linear models learned by cross-validation, beside a grid.

The models are those of Seeger (2008, 6.1). F1 is flat with one variance, F2 flat with one per subtree below the root,
H1 the tree with a variance per level, H2 the tree with one per subtree. All start from variance 5, and the
intercept variance 0.01 is not learned. The grid has one variance for all classes or nodes, and takes the one with the
lowest criterion on the same folds.
"""

import time
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

import numpy as np

from bench.harness import scores
from bench.harness.figures import Bar
from bench.harness.learning import learning_facts, tuning
from bench.harness.options import add_resumable, known_cases, names
from bench.harness.report import Result
from bench.problems.trees import OF_WORDS, TREES, TreeData
from taxolearn import Independent, KernelLogisticClassifier, Tree
from taxolearn.kernels import Linear
from taxolearn.model_selection import CrossValidationObjective

HELP = "variances learned for flat and hierarchical models"
MODELS: dict[str, Tree | Independent] = {
    "F1": Independent("shared"),
    "F2": Independent("subtree"),
    "H1": Tree("level"),
    "H2": Tree("subtree"),
}
GRIDS: dict[str, Tree | Independent] = {"grid, flat": Independent("shared"), "grid, tree": Tree("shared")}
GRID = np.geomspace(0.05, 5e4, 10)
_SAMPLES = {"onet": 4000}  # rows to learn on, where all would take hours
_FACTORS = {"clef": 0.1}  # of features whose rows are far from length 1
START, INTERCEPT_VARIANCE = 5.0, 0.01
_GRID_TOL = 1e-3  # of the fits; the criterion is corrected for what they lack

# Macro- and micro-F1 in percent, Gopal and Yang (2015).
PUBLISHED = {
    "news20": {"BSVM": (82.32, 83.10), "MLR": (81.82, 82.56), "RR-LR": (82.06, 82.86), "HBLR": (81.69, 82.56)},
    "clef": {
        "MLR": (54.76, 80.52),
        "RR-SVM": (53.92, 80.02),
        "RR-LR": (55.83, 80.12),
        "HBLR, M3-map": (59.65, 81.41),
        "HBLR, M3-var": (59.67, 81.61),
    },
}
_COLUMNS = {
    "problem": "data",
    "library": "model",
    "variances": "variances",
    **scores.COLUMNS,
    "over_grid": "beyond grid's %",
    "cv_loss": "CV log loss",
    "calibration": "ECE %",
    "parameters": "parameters",
    "learning_seconds": "learning s",
    "evaluations": "evaluations",
    "failures": "failures",
    "learning_status": "status of learning",
    "final_seconds": "final fit s",
    "gap": "gap",
}
_GRID_NOTE = (
    f"Grid: {len(GRID)} variances from {GRID[0]:g} to {GRID[-1]:g} evenly on log scale, one for all "
    "classes or nodes, by the criterion on the same 5 folds, each started from the one before, until it rises; its "
    'seconds include the gradients, which correct the criterion. "Beyond grid\'s" is by how much the log loss exceeds '
    "that of the grid for the same coupling, on test data; below 0 it is better."
)
_LEARNING_NOTE = (
    "F1: flat, one variance; F2: flat, one per subtree; H1: tree, one per level; H2: tree, one per subtree. All start "
    f"from {START:g}, intercept variance {INTERCEPT_VARIANCE:g}. "
    "Published: Gopal and Yang (2015), whose preprocessing of news20 differs. "
    f"CLEF: features times {_FACTORS['clef']:g}. O*NET: learned on {_SAMPLES['onet']} rows, fitted to all."
)


def _load(name: str, characters: bool, quick: bool) -> TreeData:
    data = (TREES if characters else OF_WORDS)[name]()
    factor = _FACTORS.get(name, 1.0)
    data = replace(data, X=factor * data.X, X_test=factor * data.X_test)
    return data.first_rows(800) if quick else data


def measure_learned(
    data: str, model: str, characters: bool, quick: bool, n_threads: int, time_limit: float
) -> dict[str, Any]:
    """Learn for at most ``time_limit`` seconds, fit and score in this process."""
    problem = _load(data, characters, quick)
    begin = time.perf_counter()
    fitted = KernelLogisticClassifier(
        Linear(START),
        taxonomy=problem.taxonomy,
        coupling=MODELS[model],
        intercept_variance=INTERCEPT_VARIANCE,
        tuning=tuning(quick, subset=_SAMPLES.get(data), time_limit=time_limit),
        random_state=0,
        n_threads=n_threads,
    ).fit(problem.X, problem.y)
    seconds = time.perf_counter() - begin
    facts = learning_facts(fitted)
    # Variances of groups are relative to that of the kernel, which then stays as it is.
    factor = 1.0 if "kernel.variance" in facts["learned"] else START
    values = [factor * value for value in facts["learned"].values()]
    return {
        "description": problem.description,
        "seconds": seconds,
        "variances": _shown(values),
        "all_variances": values,
        **facts,
        **scores.scores(problem, fitted),
    }


def _shown(values: list[float]) -> str:
    if len(values) <= 5:
        return ", ".join(f"{value:.3g}" for value in values)
    return f"{min(values):.3g} to {max(values):.3g}"


def measure_grid(data: str, grid: str, characters: bool, quick: bool, n_threads: int) -> dict[str, Any]:
    """Choose one common variance by the criterion, fit and score in this process."""
    problem = _load(data, characters, quick)
    model = KernelLogisticClassifier(
        Linear(START),
        taxonomy=problem.taxonomy,
        coupling=GRIDS[grid],
        intercept_variance=INTERCEPT_VARIANCE,
        tuning=tuning(quick, subset=_SAMPLES.get(data)),
        random_state=0,
        n_threads=n_threads,
    )
    begin = time.perf_counter()
    objective = CrossValidationObjective(model, problem.X, problem.y)
    losses: list[float] = []
    failures = 0
    for variance in GRID:
        if len(losses) > 1 and losses[-1] > losses[-2]:
            break
        evaluation = objective.evaluate(objective.theta + np.log(variance / START), _GRID_TOL)
        if evaluation.converged:
            objective.accept()
        else:
            failures += 1
        losses.append(evaluation.value / objective.n_held_out if evaluation.converged else float("inf"))
    learning_seconds = time.perf_counter() - begin
    best = int(np.argmin(losses))
    fitted = model.set_params(kernel=Linear(float(GRID[best])), tuning=None).fit(problem.X, problem.y)
    return {
        "description": problem.description,
        "seconds": time.perf_counter() - begin,
        "variances": f"{GRID[best]:.3g}",
        "cv_loss": losses[best],
        "cv_losses": [loss if np.isfinite(loss) else None for loss in losses],
        "parameters": 1,
        "learning_seconds": learning_seconds,
        "evaluations": len(losses),
        "failures": failures,
        "final_seconds": fitted.result_.timings["total"],
        "gap": fitted.result_.relative_gap,
        "status": fitted.result_.status,
        **scores.scores(problem, fitted),
    }


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--only", type=names, default=list(TREES), help="which data sets")
    parser.add_argument("--models", type=names, default=list(MODELS))
    parser.add_argument("--characters", action="store_true", help="texts also by characters, as in the suite hierarchy")
    parser.add_argument("--limit", type=float, default=7200.0, help="give a model up when it takes longer (s)")


def run(options: Namespace) -> list[Result]:
    """Run the grids, then the learned models, on each data set."""
    result = Result.of(
        options,
        title="Variances learned by cross-validation: flat and hierarchical models",
        columns=_COLUMNS,
        figure=Bar("log_loss", "log loss on test data", "{:.3f}"),
        notes=[_LEARNING_NOTE, _GRID_NOTE, scores.NOTE],
    )
    cases = known_cases(options)
    for name in options.only:
        arguments = {"data": name, "characters": options.characters, "quick": options.quick}
        rows: list[dict[str, Any]] = []
        grids: dict[str, float] = {}
        for grid in dict.fromkeys(_grid_of(model) for model in options.models):
            answer = cases.run(f"{name}, {grid}", measure_grid, arguments | {"grid": grid}, options.threads)
            rows.append({"problem": name, "library": grid, "learning_status": answer.get("status"), **answer})
            if "log_loss" in answer:
                grids[grid] = answer["log_loss"]
        for model in options.models:
            answer = cases.run(
                f"{name}, {model}",
                measure_learned,
                arguments | {"model": model},
                options.threads,
                time_limit=options.limit,
            )
            row = {"problem": name, "library": f"taxolearn, {model}", "learning_status": answer.get("status"), **answer}
            best = grids.get(_grid_of(model))
            if best is not None and "log_loss" in row:
                row["over_grid"] = 100 * (row["log_loss"] / best - 1)
            rows.append(row)
        for row in rows:
            result.describe(row)
        result.rows += rows + _published(name)
    return [result]


def _grid_of(model: str) -> str:
    return "grid, tree" if isinstance(MODELS[model], Tree) else "grid, flat"


def _published(name: str) -> list[dict[str, Any]]:
    return [
        {"problem": name, "library": f"{library}, published", "macro_f1": macro, "micro_f1": micro}
        for library, (macro, micro) in PUBLISHED.get(name, {}).items()
    ]
