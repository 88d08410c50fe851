"""What the tree adds to a product inside a fit, and to a whole fit: flat and with the tree, in turns."""

from typing import Any

import numpy as np

from bench.figures import Bar
from bench.report import Result
from bench.taxonomies import TREES
from taxolearn import Taxonomy, _core

_COLUMNS = {
    "problem": "data",
    "library": "model",
    "case": "time of",
    "state": "state",
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
_MODELS = ("flat", "taxolearn, tree")


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


def _row(name: str, model: str, case: str, fit: Any, seconds: dict[str, list[float]]) -> dict[str, Any]:
    values = seconds[model]
    return {
        "problem": name,
        "library": model,
        "case": case,
        "state": fit["state"],
        "iterations": fit["iterations"],
        "milliseconds": 1e3 * float(np.median(values)),
        "least": 1e3 * min(values),
        "most": 1e3 * max(values),
        "ratio": float(np.median(np.divide(values, seconds["flat"]))),
    }


def run(*, repeats: int, n_threads: int, quick: bool) -> Result:
    """Ratios of seconds, medians over rounds."""
    result = Result(
        suite="coupling",
        title="Cost of the tree: kernel products and whole fits",
        columns=_COLUMNS,
        figure=Bar(key="ratio", label="time relative to flat", text="{:.3f}"),
        settings={"threads": n_threads, "repeats": repeats, "quick": quick},
        notes=[_ABOUT_TIMES, _ABOUT_FITS],
    )
    for name, X, y, taxonomy in _problems(quick):
        targets = taxonomy.leaf_index(y).astype(np.int32)
        tree = _core.TreeCoupling(_core.Taxonomy(taxonomy.parents), np.ones(taxonomy.n_nodes))
        common: dict[str, Any] = {
            "X": X,
            "targets": targets,
            "n_classes": taxonomy.n_classes,
            "sigma2": 0.01,
            "n_threads": n_threads,
        }
        few: dict[str, Any] = {"tol": 1e-14, "max_iter": 5 if taxonomy.n_classes > 100 else 30, "variance": 1.0}
        for precision in ("single", "double"):
            seconds: dict[str, list[float]] = {model: [] for model in _MODELS}
            for _ in range(repeats):
                for model, coupling in zip(_MODELS, (None, tree), strict=True):
                    fit = _core.fit_linear(**common, **few, coupling=coupling, precision=precision)
                    seconds[model].append(fit["timings"]["products"] / (fit["iterations"] + 1))
            result.rows += [_row(name, model, f"a product, {precision}", fit, seconds) for model in _MODELS]
        for v in _VARIANCES.get(name, ()):
            # Unit variances add up along the path.
            scale = float(np.mean(taxonomy.depths[taxonomy.index(taxonomy.classes)]))
            fits: dict[str, Any] = {}
            seconds = {model: [] for model in _MODELS}
            for _ in range(repeats):
                for model, coupling, variance in zip(_MODELS, (None, tree), (v * scale, v), strict=True):
                    fits[model] = _core.fit_linear(**common, coupling=coupling, variance=variance, tol=1e-6)
                    seconds[model].append(fits[model]["timings"]["total"])
            case = f"a fit, v = {v:g} (flat {v * scale:.3g})"
            result.rows += [_row(name, model, case, fits[model], seconds) for model in _MODELS]
    return result
