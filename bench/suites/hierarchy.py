"""Flat against hierarchical models: scores on test data, time and products of fits to a certified gap.

Variances are chosen on a small grid by the log likelihood of a fifth of the training rows, held out, and after them the
variance of the intercepts; then the model is fitted to all rows. In the terms of Seeger (2008, 6.1) "flat" is F1, with
one variance, and "tree" is H1, with a variance per level, here variance * ratio^(level - 1).
"""

import time
from argparse import ArgumentParser, Namespace
from itertools import product, starmap
from typing import Any, NamedTuple

import numpy as np

from bench.harness import scores
from bench.harness.figures import Bar
from bench.harness.options import add_common, names
from bench.harness.report import Result
from bench.libraries.ours import level_tree
from bench.problems.data import held_out_fifth
from bench.problems.trees import TREES, TreeData
from taxolearn import KernelLogisticClassifier, metrics
from taxolearn.kernels import Linear

HELP = "scores of flat and hierarchical models"
INTERCEPT_VARIANCES = (0.01, 0.1, 1.0, 10.0, 100.0)
ROUGH_GAP = 1e-3  # of the fits that choose
# Variances of the first level, and factors from level to level.
GRIDS = {
    "news20": ((50.0, 200.0, 800.0), (1 / 3, 1.0, 3.0)),
    "clef": ((0.003, 0.01, 0.03, 0.1, 0.3), (1 / 3, 1.0, 3.0)),
    "clinc150": ((320.0, 1280.0, 5120.0), (1 / 3, 1.0, 3.0)),
    "lshtc": ((500.0, 5000.0, 50000.0), (1 / 3, 1.0, 3.0)),
    "onet": ((20.0, 100.0), (1 / 3, 1.0)),
}
_COLUMNS = {
    "problem": "data",
    "library": "model",
    "variances": "variances by level",
    "intercept_variance": "intercept variance",
    **scores.COLUMNS,
    "calibration": "ECE %",
    "seconds": "s",
    "products": "products",
    "gap": "gap",
}
_CHOICE = (
    "Variances were chosen by the log likelihood of a fifth of the training rows that was held out, by fits to a gap "
    f"of {ROUGH_GAP:g}, from the grids in bench/suites/hierarchy.py. Seconds and products are those of the final fit."
)


class Choice(NamedTuple):
    """Variance of the first level, factor from level to level, variance of the intercepts."""

    variance: float
    ratio: float = 1.0
    intercept_variance: float = 1.0


def _model(data: TreeData, tree: bool, choice: Choice, gap: float, n_threads: int) -> Any:
    return KernelLogisticClassifier(
        Linear(variance=choice.variance),
        taxonomy=data.taxonomy,
        coupling=level_tree(data.taxonomy, choice.ratio) if tree else "independent",
        intercept_variance=choice.intercept_variance,
        tuning=None,
        tol=gap,
        max_iter=5000,
        n_threads=n_threads,
    )


Grid = tuple[tuple[float, ...], tuple[float, ...]]


def _choose(data: TreeData, tree: bool, grid: Grid, n_threads: int) -> Choice:
    """Find the choice with the highest held-out log likelihood."""
    held_out, rest = held_out_fifth(data.X.shape[0])

    def loss(choice: Choice) -> float:
        model = _model(data, tree, choice, ROUGH_GAP, n_threads).fit(data.X[rest], data.y[rest])
        log_proba = model.predict_log_proba(data.X[held_out])
        value = metrics.log_loss(data.y[held_out], log_proba=log_proba, classes=model.classes_)
        print(f"  {data.name}, {'tree' if tree else 'flat'}, {choice}: {value:.4f}", flush=True)
        return value

    variances, ratios = grid
    best = min(starmap(Choice, product(variances, ratios if tree else (1.0,))), key=loss)
    return min((best._replace(intercept_variance=value) for value in INTERCEPT_VARIANCES), key=loss)


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--data", type=names, default=list(TREES), help="which data sets")
    parser.add_argument("--gap", type=float, default=1e-6)


def run(options: Namespace) -> list[Result]:
    """Choose and fit flat and hierarchical models on each data set."""
    result = Result.of(
        options,
        title="Flat and hierarchical models",
        columns=_COLUMNS,
        figure=Bar(key="log_loss", label="log loss on test data", text="{:.3f}"),
        notes=[scores.NOTE, _CHOICE],
    )
    for name in options.data:
        problem = TREES[name]()
        result.notes.append(problem.description + ".")
        for tree in (False, True):
            grid = ((GRIDS[name][0][1],), (1.0,)) if options.quick else GRIDS[name]
            choice = _choose(problem, tree, grid, options.threads)
            start = time.perf_counter()
            model = _model(problem, tree, choice, options.gap, options.threads).fit(problem.X, problem.y)
            seconds = time.perf_counter() - start
            levels = choice.variance * choice.ratio ** np.arange(problem.taxonomy.height if tree else 1)
            result.rows.append(
                {
                    "problem": problem.name,
                    "library": "taxolearn, tree" if tree else "flat",
                    "variances": ", ".join(f"{value:.3g}" for value in levels),
                    "intercept_variance": choice.intercept_variance,
                    **scores.scores(problem, model),
                    "seconds": seconds,
                    "products": model.result_.products,
                    "gap": model.result_.relative_gap,
                    "status": model.result_.status,
                    "timings": model.result_.timings,
                }
            )
            print(result.rows[-1], flush=True)
    return [result]
