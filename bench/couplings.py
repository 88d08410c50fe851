"""What the tree adds to a product: seconds per kernel product inside a fit, flat and with the tree, in turns."""

from typing import Any

import numpy as np

from bench.figures import Bar
from bench.report import Result
from bench.taxonomies import TREES
from bench.timing import Timing
from taxolearn import Taxonomy, _core

_COLUMNS = {
    "problem": "data",
    "library": "model",
    "case": "precision",
    "state": "state",
    "milliseconds": "ms a product",
    "least": "least",
    "most": "most",
    "ratio": "to flat",
}


_NOTE = (
    "Time that a fit spends on its products, divided by their number: median, least and most. Flat and tree take "
    "turns; the ratio is the median over the rounds."
)


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


def run(*, repeats: int, n_threads: int, quick: bool) -> Result:
    """Ratios of seconds per product, medians over rounds of fits of a few iterations."""
    result = Result(
        suite="coupling",
        title="Cost of a kernel product: flat and with the tree",
        columns=_COLUMNS,
        figure=Bar(key="ratio", label="time of a product, relative to flat", text="{:.3f}"),
        settings={"threads": n_threads, "repeats": repeats, "quick": quick},
        notes=[_NOTE],
    )
    for name, X, y, taxonomy in _problems(quick):
        targets = taxonomy.leaf_index(y).astype(np.int32)
        tree = _core.TreeCoupling(_core.Taxonomy(taxonomy.parents), np.ones(taxonomy.n_nodes))
        for precision in ("single", "double"):
            seconds: dict[str, list[float]] = {"flat": [], "taxolearn, tree": []}
            state = ""
            for _ in range(repeats):
                for model, coupling in zip(seconds, (None, tree), strict=True):
                    fit = _core.fit_linear(
                        X=X,
                        targets=targets,
                        n_classes=taxonomy.n_classes,
                        coupling=coupling,
                        variance=1.0,
                        sigma2=0.01,
                        tol=1e-14,
                        max_iter=5 if taxonomy.n_classes > 100 else 30,
                        precision=precision,
                        n_threads=n_threads,
                    )
                    seconds[model].append(fit["timings"]["products"] / (fit["iterations"] + 1))
                    state = fit["state"]
            for model, values in seconds.items():
                timing = Timing(float(np.median(values)), min(values), max(values), repeats)
                result.rows.append(
                    {
                        "problem": name,
                        "library": model,
                        "case": precision,
                        "state": state,
                        "milliseconds": 1e3 * timing.median,
                        "least": 1e3 * timing.least,
                        "most": 1e3 * timing.most,
                        "ratio": float(np.median(np.divide(values, seconds["flat"]))),
                    }
                )
    return result
