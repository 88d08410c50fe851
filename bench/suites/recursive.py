"""Hinge losses: one class against the rest beside LinearSVC at the same gap, what a tree costs, and how cost grows."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.svm import LinearSVC

from bench.harness.figures import Bar
from bench.harness.options import add_common
from bench.harness.report import Result
from bench.problems.data import data_directory, news20
from taxolearn import Taxonomy
from taxolearn.fitting.recursive import RecursiveFit, fit_recursive

HELP = "hinge losses, flat and recursive, against LinearSVC"

Integers = npt.NDArray[np.int64]
_LOSSES = ("hinge", "squared_hinge")
_GAP = 1e-3
_TOLERANCES = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)  # LinearSVC's; the loosest that reaches the gap is timed
_NOTE = (
    "Relative gap: ours is certified, P - D over P; LinearSVC's, which has no certificate, is that of its objective to "
    f"the best known lower bound. Every answer that is timed is below {_GAP}. LinearSVC has one thread, one fit per "
    "class, dual=True, and the loosest tolerance that reaches the gap, found beforehand. Processor seconds count all "
    "threads, and ratios are of these, to the flat model on one thread: other work on the machine disturbs them less."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser, repeats=3)


def run(options: Namespace) -> list[Result]:
    """Time both losses on both collections, then made-up parts of one of them for the exponents."""
    result = Result.of(
        options,
        title="Recursive regularization with hinge losses",
        columns={
            "problem": "problem",
            "library": "model",
            "processor_seconds": "processor s",
            "seconds": "s",
            "ratio": "ratio",
            "gap": "relative gap",
            "passes": "passes",
        },
        figure=Bar("processor_seconds", "processor s", "{:.2f}"),
        settings={"gap": _GAP, "C": 1.0},
        notes=[_NOTE],
    )
    problems = [_news20(options.quick), _rcv1(1000 if options.quick else 6000)]
    for name, X, Y, parents in problems:
        for loss in _LOSSES:
            result.rows += _compare(f"{name}, {loss}", X, Y, parents, loss, options)
    result.notes.append(_exponents(*problems[-1][1:], options))
    return [result]


def _news20(quick: bool) -> tuple[str, Any, Any, Integers]:
    data = news20(quick)
    with np.load(data_directory() / "news20" / "news20_rennie_vocab_counts.npz") as file:
        groups = [str(group) for group in file["groups"]]
    taxonomy = Taxonomy.from_labels(groups, separator=".")
    numbers = np.unique(data.y, return_inverse=True)[1]
    columns = taxonomy.leaf_index(groups)[numbers]
    rows = np.arange(len(columns))
    Y = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(rows), taxonomy.n_classes))
    return "news20", data.X, Y, taxonomy.parents


def _rcv1(count: int) -> tuple[str, Any, Any, Integers]:
    """Some rows of RCV1; topics that have topics below them become leaves of their own."""
    with np.load(data_directory() / "rcv1" / "rcv1_30k_clean.npz") as file:
        X = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        Y = np.unpackbits(file["Y"], axis=1)[:, : len(file["labels"])]
        names, parents = file["labels"].tolist(), file["parents"].tolist()
    above = set(parents)
    edges = [*zip(parents, names, strict=True), *((name, f"{name}/own") for name in names if name in above)]
    taxonomy = Taxonomy.from_edges(edges)
    places = taxonomy.leaf_index([f"{name}/own" if name in above else name for name in names])
    rows = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:count])
    return f"RCV1 ({count} rows)", X[rows], sparse.csr_array(Y[rows][:, np.argsort(places)]), taxonomy.parents


def _fit(X: Any, Y: Any, loss: str, parents: Integers | None, threads: int, tol: float = _GAP) -> RecursiveFit:
    return fit_recursive(X, Y.indptr, Y.indices, Y.shape[1], parents=parents, loss=loss, tol=tol, n_threads=threads)


def _linear_svc(X: Any, Y: Any, loss: str, tol: float) -> tuple[Any, Any]:
    """Weights and intercepts, class after class; one without rows, or with all, is a constant."""
    coef, intercept = np.zeros((Y.shape[1], X.shape[1])), np.zeros(Y.shape[1])
    labels = Y.toarray() > 0
    for c in range(Y.shape[1]):
        y = labels[:, c]
        if y.all() or not y.any():
            continue
        model = LinearSVC(loss=loss, dual=True, tol=tol, max_iter=5000, random_state=0).fit(X, y)
        coef[c], intercept[c] = model.coef_[0], model.intercept_[0]
    return coef, intercept


def _flat_objective(X: Any, Y: Any, loss: str, coef: Any, intercept: Any) -> float:
    u = X @ coef.T + intercept
    slack = np.maximum(0.0, 1.0 - np.where(Y.toarray() > 0, u, -u))
    losses = slack if loss == "hinge" else slack**2
    return float(0.5 * (coef**2).sum() + 0.5 * (intercept**2).sum() + losses.sum())


def _in_turns(work: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, dict[str, float]]:
    """Median processor and wall-clock seconds."""
    clocks: dict[str, Callable[[], float]] = {"processor_seconds": time.process_time, "seconds": time.perf_counter}
    taken: dict[str, dict[str, list[float]]] = {name: {clock: [] for clock in clocks} for name in work}
    for _ in range(repeats):
        for name, do in work.items():
            begin = {clock: read() for clock, read in clocks.items()}
            do()
            for clock, read in clocks.items():
                taken[name][clock].append(read() - begin[clock])
    return {name: {clock: median(values) for clock, values in own.items()} for name, own in taken.items()}


def _compare(problem: str, X: Any, Y: Any, parents: Integers, loss: str, options: Namespace) -> list[dict[str, Any]]:
    has_rows = np.flatnonzero(Y.sum(axis=0) > 0)
    some = sparse.csr_array(sparse.csr_array(Y)[:, has_rows])  # LinearSVC cannot fit a class without rows
    best = _fit(X, some, loss, None, options.threads, 1e-5)
    bound = best.objective - best.gap
    for tol in _TOLERANCES:
        theirs = _flat_objective(X, some, loss, *_linear_svc(X, some, loss, tol)) / bound - 1
        if theirs <= _GAP:
            break
    flat, tree = _fit(X, some, loss, None, 1), _fit(X, Y, loss, parents, 1)
    many = f"taxolearn, flat, {options.threads} threads"
    work: dict[str, Callable[[], Any]] = {
        "taxolearn, flat, 1 thread": lambda: _fit(X, some, loss, None, 1),
        many: lambda: _fit(X, some, loss, None, options.threads),
        f"LinearSVC (tol={tol})": lambda: _linear_svc(X, some, loss, tol),
        "taxolearn, tree": lambda: _fit(X, Y, loss, parents, options.threads),
    }
    times = _in_turns(work, options.repeats)
    base = times["taxolearn, flat, 1 thread"]["processor_seconds"]
    gaps = dict(zip(work, (flat.relative_gap, flat.relative_gap, theirs, tree.relative_gap), strict=True))
    passes = dict(zip(work, (flat.passes, flat.passes, None, tree.passes), strict=True))
    return [
        {"problem": problem, "library": name, "gap": gaps[name], "passes": passes[name]}
        | own
        | {"ratio": own["processor_seconds"] / base}
        for name, own in times.items()
    ]


def _exponents(X: Any, Y: Any, parents: Integers, options: Namespace) -> str:
    """How time per pass of the flat model grows with classes and with nonzeros, between a half and all of them."""
    del parents
    Y = sparse.csr_array(Y)
    half = sparse.csr_array(Y[:, : Y.shape[1] // 2])
    n = X.shape[0] // 2
    cases = {"all": (X, Y), "half of the classes": (X, half), "half of the rows": (X[:n], sparse.csr_array(Y[:n]))}
    work = {name: lambda x=x, y=y: _fit(x, y, "squared_hinge", None, 1) for name, (x, y) in cases.items()}
    seconds = {name: own["processor_seconds"] for name, own in _in_turns(work, options.repeats).items()}
    passes = {name: do().passes for name, do in work.items()}
    whole = seconds["all"] / passes["all"]
    classes, nonzeros = (
        np.log(whole / (seconds[name] / passes[name])) / np.log(size)
        for name, size in (
            ("half of the classes", Y.shape[1] / half.shape[1]),
            ("half of the rows", X.nnz / X[:n].nnz),
        )
    )
    return f"Exponents of the processor seconds of a pass, RCV1: {classes:.2f} in classes, {nonzeros:.2f} in nonzeros."
