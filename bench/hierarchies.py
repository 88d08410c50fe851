"""Flat against hierarchical models: scores on test data, time and products of fits to a certified gap.

Variances are chosen on a small grid by the log likelihood of a fifth of the training rows, held out, and after them the
variance of the intercepts; then the model is fitted to all rows. In the terms of Seeger (2008, 6.1) "flat" is F1, with
one variance, and "tree" is H1, with a variance per level, here variance * ratio^(level - 1).
"""

import time
from itertools import product, starmap
from typing import Any, NamedTuple

import numpy as np

from bench.figures import Bar
from bench.report import Result
from bench.taxonomies import TREES, TreeData
from taxolearn import KernelLogisticClassifier, decisions, metrics
from taxolearn.kernels import Linear

SIGMAS2 = (0.01, 0.1, 1.0, 10.0, 100.0)
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
    "sigma2": "sigma2",
    "accuracy": "acc %",
    "prec": "prec %",
    "taxo": "taxo",
    "taxo_argmax": "taxo [0-1]",
    "parent": "pacc %",
    "parent_argmax": "pacc [0-1] %",
    "micro_f1": "micro-F1 %",
    "macro_f1": "macro-F1 %",
    "log_loss": "log loss",
    "calibration": "ECE %",
    "seconds": "s",
    "products": "products",
    "gap": "gap",
}
SCORES = (
    "acc, prec (mean reciprocal rank of the truth), micro- and macro-F1 (over the classes of the test set) are those "
    "of the most probable class. taxo (half the path to the truth) and pacc (the parent is right) are those of the "
    "decision of least expected loss; [0-1] marks the most probable class instead. ECE: expected calibration error."
)
_CHOICE = (
    "Variances were chosen by the log likelihood of a fifth of the training rows that was held out, by fits to a gap "
    f"of {ROUGH_GAP:g}, from the grids in bench/hierarchies.py. Seconds and products are those of the final fit."
)


class Choice(NamedTuple):
    """Variance of the first level, factor from level to level, variance of the intercepts."""

    variance: float
    ratio: float = 1.0
    sigma2: float = 1.0


def _model(data: TreeData, tree: bool, choice: Choice, gap: float, n_threads: int) -> Any:
    return KernelLogisticClassifier(
        Linear(variance=choice.variance),
        taxonomy=data.taxonomy,
        coupling="tree" if tree else "identity",
        variances=choice.ratio ** np.arange(data.taxonomy.height) if tree else None,
        sigma2=choice.sigma2,
        tol=gap,
        max_iter=5000,
        n_threads=n_threads,
        hyperparameters="fixed",
    )


Grid = tuple[tuple[float, ...], tuple[float, ...]]


def _choose(data: TreeData, tree: bool, grid: Grid, n_threads: int) -> Choice:
    """The choice of the highest held-out log likelihood."""
    order = np.random.default_rng(0).permutation(data.X.shape[0])
    held_out, rest = np.split(order, [len(order) // 5])

    def loss(choice: Choice) -> float:
        model = _model(data, tree, choice, ROUGH_GAP, n_threads).fit(data.X[rest], data.y[rest])
        log_proba = model.predict_log_proba(data.X[held_out])
        value = metrics.log_loss(data.y[held_out], log_proba=log_proba, classes=model.classes_)
        print(f"  {data.name}, {'tree' if tree else 'flat'}, {choice}: {value:.4f}", flush=True)
        return value

    variances, ratios = grid
    best = min(starmap(Choice, product(variances, ratios if tree else (1.0,))), key=loss)
    return min((best._replace(sigma2=sigma2) for sigma2 in SIGMAS2), key=loss)


def scores(data: TreeData, model: Any) -> dict[str, float]:
    """Those of the papers, on the test set."""
    truth, tree = data.y_test, model.taxonomy_
    log_proba = model.predict_log_proba(data.X_test)
    proba = np.exp(log_proba)
    top = model.classes_[proba.argmax(axis=1)]
    by_loss = {
        loss: decisions.decide(proba, classes=model.classes_, taxonomy=tree, loss=loss) for loss in ("taxo", "parent")
    }
    return {
        "accuracy": 100 * metrics.accuracy(truth, top),
        "prec": 100 * metrics.reciprocal_rank(truth, proba, classes=model.classes_),
        "taxo": metrics.taxo_loss(truth, by_loss["taxo"], taxonomy=tree),
        "taxo_argmax": metrics.taxo_loss(truth, top, taxonomy=tree),
        "parent": 100 * metrics.parent_accuracy(truth, by_loss["parent"], taxonomy=tree),
        "parent_argmax": 100 * metrics.parent_accuracy(truth, top, taxonomy=tree),
        "micro_f1": 100 * metrics.f1(truth, top, average="micro"),
        "macro_f1": 100 * metrics.f1(truth, top, average="macro", labels=np.unique(truth)),
        "log_loss": metrics.log_loss(truth, log_proba=log_proba, classes=model.classes_),
        "calibration": 100 * metrics.expected_calibration_error(truth, proba, classes=model.classes_),
    }


def run(*, data: list[str], gap: float, n_threads: int, quick: bool) -> Result:
    """Flat and tree on each data set."""
    result = Result(
        suite="hierarchy",
        title="Flat and hierarchical models",
        columns=_COLUMNS,
        figure=Bar(key="log_loss", label="log loss on test data", text="{:.3f}"),
        settings={"gap": gap, "threads": n_threads, "quick": quick},
        notes=[SCORES, _CHOICE],
    )
    for name in data:
        problem = TREES[name]()
        result.notes.append(problem.description + ".")
        for tree in (False, True):
            grid = ((GRIDS[name][0][1],), (1.0,)) if quick else GRIDS[name]
            choice = _choose(problem, tree, grid, n_threads)
            start = time.perf_counter()
            model = _model(problem, tree, choice, gap, n_threads).fit(problem.X, problem.y)
            seconds = time.perf_counter() - start
            levels = choice.variance * choice.ratio ** np.arange(problem.taxonomy.height if tree else 1)
            result.rows.append(
                {
                    "problem": problem.name,
                    "library": "taxolearn, tree" if tree else "flat",
                    "variances": ", ".join(f"{value:.3g}" for value in levels),
                    "sigma2": choice.sigma2,
                    **scores(problem, model),
                    "seconds": seconds,
                    "products": model.result_.products,
                    "gap": model.result_.relative_gap,
                    "status": model.result_.status,
                    "timings": model.result_.timings,
                }
            )
            print(result.rows[-1], flush=True)
    return result
