"""What the tree adds to a product inside a fit, and to a whole fit: flat and with the tree, in turns."""

import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench.harness.figures import Bar
from bench.harness.options import add_common
from bench.harness.report import Result
from bench.problems.trees import TREES
from taxolearn import FitResult, KernelLogisticClassifier, Solver, Taxonomy
from taxolearn.kernels import Linear

HELP = "cost of a product and a fit, flat and with the tree"
_COLUMNS = {
    "problem": "data",
    "library": "model",
    "case": "time of",
    "space": "space",
    "iterations": "iterations",
    "milliseconds": "ms",
    "least": "least",
    "most": "most",
    "ratio": "to flat",
}
_ABOUT_TIMES = (
    "Products: the time that a fit of a few iterations spends on them, divided by their number. Fits: seconds to a "
    "certified gap of 1e-6. Median, least and most; flat and tree take turns, and the ratio is the median over the "
    "rounds."
)
_ABOUT_FITS = (
    "Whole fits have variance v for every node of the tree, and flat the variance that the functions of the classes "
    "then have on average, so that both models may fit the data as closely."
)
_VARIANCES = {"news20": (5.0, 50.0), "CLEF": (0.1, 1.0)}  # of whole fits
_MODELS = {"flat": "independent", "taxolearn, tree": "tree"}  # and their couplings


def _made_up_tree(n_classes: int) -> Taxonomy:
    """Three levels; 1,000 classes have 320 nodes above them, as section B of the patent codes has."""
    return Taxonomy.from_paths((f"a{k // 50}", f"b{k // 10}-{k % 10 // 4}", f"c{k}") for k in range(n_classes))


def _problems(quick: bool) -> list[tuple[str, Any, Any, Taxonomy]]:
    news, clef = TREES["news20"](), TREES["clef"]()
    tree = _made_up_tree(200 if quick else 1000)
    labels = np.random.default_rng(0).choice(tree.classes, size=news.X.shape[0])
    return [
        ("news20", news.X, news.y, news.taxonomy),
        ("CLEF", clef.X, clef.y, clef.taxonomy),
        (f"news20, made-up tree of {tree.n_classes} classes, {tree.n_nodes - 1} nodes", news.X, labels, tree),
    ]


def _turns(
    name: str,
    case: str,
    fits: Mapping[str, Callable[[], FitResult]],
    seconds_of: Callable[[FitResult], float],
    repeats: int,
) -> list[dict[str, Any]]:
    """Let fits take turns, and return their rows."""
    rounds = [{model: fit() for model, fit in fits.items()} for _ in range(repeats)]
    seconds = {model: [seconds_of(of[model]) for of in rounds] for model in fits}
    return [
        {
            "problem": name,
            "library": model,
            "case": case,
            "space": rounds[-1][model].space,
            "iterations": rounds[-1][model].iterations,
            "milliseconds": 1e3 * float(np.median(values)),
            "least": 1e3 * min(values),
            "most": 1e3 * max(values),
            "ratio": float(np.median(np.divide(values, seconds["flat"]))),
        }
        for model, values in seconds.items()
    ]


def _fit(X: Any, y: Any, taxonomy: Taxonomy, n_threads: int, coupling: str, variance: float, **given: Any) -> FitResult:
    model = KernelLogisticClassifier(
        Linear(variance),
        taxonomy=taxonomy,
        coupling=coupling,
        intercept_variance=0.01,
        tuning=None,
        n_threads=n_threads,
        **given,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that end early on purpose
        return model.fit(X, y).result_


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser, repeats=11)


def run(options: Namespace) -> list[Result]:
    """Time products and fits, flat and with the tree."""
    result = Result.of(
        options,
        title="Cost of the tree: kernel products and whole fits",
        columns=_COLUMNS,
        figure=Bar(key="ratio", label="time relative to flat", text="{:.3f}"),
        notes=[_ABOUT_TIMES, _ABOUT_FITS],
    )
    for name, X, y, taxonomy in _problems(options.quick):
        fit = partial(_fit, X, y, taxonomy, options.threads)
        few = {"tol": 1e-14, "max_iter": 5 if taxonomy.n_classes > 100 else 30}
        for precision in ("single", "double"):
            solver = Solver(precision=precision)
            fits = {model: partial(fit, coupling, 1.0, solver=solver, **few) for model, coupling in _MODELS.items()}
            result.rows += _turns(
                name,
                f"a product, {precision}",
                fits,
                lambda found: found.timings["products"] / (found.iterations + 1),
                options.repeats,
            )
        for v in _VARIANCES.get(name, ()):
            # Unit variances add up along the path.
            scale = float(np.mean(taxonomy.depths[taxonomy.index(taxonomy.classes)]))
            fits = {
                model: partial(fit, coupling, v * (scale if model == "flat" else 1.0), tol=1e-6)
                for model, coupling in _MODELS.items()
            }
            case = f"a fit, v = {v:g} (flat {v * scale:.3g})"
            result.rows += _turns(name, case, fits, lambda found: found.timings["total"], options.repeats)
    return [result]
