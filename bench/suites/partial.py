"""A share of the training labels is replaced by their parents in the tree.

Models that keep such rows, as "one of the classes below" (expectation maximization), beside those that drop them and
those that see all labels. Parents are those of the tree, or the lowest nodes with another class below. Variances are
the same for all models: if each learned its own, two effects would mix.
"""

import time
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Any

import numpy as np

from bench.harness.figures import Axes, Lines
from bench.harness.options import add_resumable, known_cases, names, numbers
from bench.harness.report import Result
from bench.problems.trees import OF_WORDS
from taxolearn import KernelLogisticClassifier, Taxonomy, metrics
from taxolearn.kernels import Linear

HELP = "labels of which only the parents are known"
DATA = ("news20", "clinc150", "onet")
SHARES = (0.3, 0.6, 0.9)
VARIANCE, INTERCEPT_VARIANCE, GAP = 30.0, 1.0, 1e-4
_WAYS = {
    "kept": "taxolearn, parents kept",
    "branching": "taxolearn, branching parents kept",
    "dropped": "parents dropped",
    "full": "all labels",
}
_COLUMNS = {
    "problem": "data",
    "library": "model",
    "percent": "parents %",
    "unlabelled": "root %",
    "accuracy": "acc %",
    "log_loss": "log loss",
    "seconds": "s",
    "rounds": "rounds",
    "rounds_status": "status of rounds",
    "products": "products",
    "gap": "gap",
}
_NOTE = (
    f"Linear kernel of variance {VARIANCE:g} on every level of the tree, intercept variance {INTERCEPT_VARIANCE:g}, "
    f"gap {GAP:g}, for all "
    "models; texts by words. The rows whose label became its parent are drawn at random, with the same seed for every "
    "model. A parent with one class below, in a chain of only children, still tells the class; so there is a second "
    "kind, branching parents: the lowest node above that has another class below. Where that is the root, it says "
    "nothing (column root: share of such rows). Accuracy is that of the most probable class on the test set. Products "
    "are those of all rounds."
)


def branching_parent(taxonomy: Taxonomy, label: Any) -> Any:
    """The lowest node above the label that has another class below it."""
    parent: Any = taxonomy.parent(label)
    while len(taxonomy.leaves(parent)) == 1:
        parent = taxonomy.parent(parent)
    return parent


def measure(data: str, way: str, share: float, quick: bool, n_threads: int) -> dict[str, Any]:
    """Fit and score in this process."""
    problem = OF_WORDS[data]()
    problem = problem.first_rows(800) if quick else problem
    hidden = np.random.default_rng(0).random(len(problem.y)) < share
    model = KernelLogisticClassifier(
        Linear(VARIANCE),
        taxonomy=problem.taxonomy,
        intercept_variance=INTERCEPT_VARIANCE,
        tuning=None,
        tol=GAP,
        n_threads=n_threads,
    )
    X, y = problem.X, problem.y.astype(object)
    if way in ("kept", "branching"):
        above = problem.taxonomy.parent if way == "kept" else partial(branching_parent, problem.taxonomy)
        parents = {label: above(label) for label in problem.taxonomy.classes.tolist()}
        y[hidden] = [parents[label] for label in problem.y[hidden].tolist()]
    elif way == "dropped":
        X, y = X[~hidden], y[~hidden]
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begin
    log_proba = model.predict_log_proba(problem.X_test)
    truth, result = problem.y_test, model.em_result_
    return {
        "description": problem.description,
        "unlabelled": None
        if way not in ("kept", "branching")
        else 100 * float(np.mean(y == problem.taxonomy.names[0])),
        "seconds": seconds,
        "accuracy": 100 * metrics.accuracy(truth, model.classes_[log_proba.argmax(axis=1)]),
        "log_loss": metrics.log_loss(truth, log_proba=log_proba, classes=model.classes_),
        "rounds": None if result is None else result.rounds,
        "rounds_status": None if result is None else result.status,
        "products": model.result_.products if result is None else result.products,
        "gap": model.result_.relative_gap,
        "status": model.result_.status,
    }


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--only", type=names, default=list(DATA), help="which data sets")
    parser.add_argument("--shares", type=numbers, default=list(SHARES), help="of labels to replace")


def run(options: Namespace) -> list[Result]:
    """Fit each data set with all labels, then every way at each share."""
    result = Result.of(
        options,
        title="Labels replaced by their parents: kept, dropped, and never replaced",
        columns=_COLUMNS,
        figure=Lines(
            (
                Axes("percent", "labels replaced by their parents, %", "accuracy", "accuracy on test data, %", log=""),
                Axes("percent", "labels replaced by their parents, %", "log_loss", "log loss on test data", log=""),
            )
        ),
        notes=[_NOTE],
    )
    cases = known_cases(options)
    for name in options.only:
        for way, share in [("full", 0.0), *((way, share) for way in list(_WAYS)[:-1] for share in options.shares)]:
            answer = cases.run(
                f"{name}, {way}, {share:g}",
                measure,
                {"data": name, "way": way, "share": share, "quick": options.quick},
                options.threads,
            )
            row = {"problem": name, "library": _WAYS[way], "percent": 100 * share, **answer}
            result.rows.append(row | ({"percent": None, "level": True} if way == "full" else {}))
            result.describe(answer)
    return [result]
