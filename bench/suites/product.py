"""The product X (X^T S) with sparse X, the work of a fit, against SciPy, MKL and Eigen."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.harness.figures import Bar
from bench.harness.options import add_common, whole_numbers
from bench.harness.report import Result
from bench.harness.testing_module import load
from bench.harness.timing import interleave
from bench.libraries.mkl import sparse_product
from bench.problems.data import news20

HELP = "X (X'S), sparse X"


def _operators() -> dict[str, Any]:
    testing = load()
    return {"float32": testing.LinearSingle, "float64": testing.LinearDouble}


_PRECISION_FROM_CPP = {"float": "float32", "double": "float64"}

_NOTE = (
    "4 C flops per nonzero. Operators and transposes are made before the clock starts. SciPy's products are serial; "
    "both a lazy and a kept transpose are tried. Deviation: largest difference from SciPy's result in float64, "
    "relative to its largest entry. Eigen's figures come from the C++ harness on the same matrix; its ratio is to "
    "taxolearn's time in that run."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser, repeats=5)
    parser.add_argument("--columns", type=whole_numbers, default=[20, 160, 1000], help="numbers of classes")
    parser.add_argument("--cpp-json", type=Path, help="file of taxolearn_bench --csr --json, for Eigen's figures")


def run(options: Namespace) -> list[Result]:
    """Time every library for every number of columns and precision."""
    data, n_threads = news20(options.quick), options.threads
    result = Result.of(
        options,
        title="X (X'S) with sparse X",
        columns={
            "problem": "problem",
            "library": "library",
            "milliseconds": "ms (median)",
            "gflops": "GFlop/s",
            "ratio": "time over taxolearn's",
            "deviation": "relative deviation",
        },
        figure=Bar("gflops", "GFlop/s", "{:.1f}"),
        settings={"data": data.description},
        notes=[_NOTE],
    )
    from_cpp = _read_cpp(options.cpp_json, data.X.nnz, n_threads) if options.cpp_json else {}
    if options.cpp_json and not from_cpp:
        result.notes.append("Eigen was left out: its file is of another matrix or number of threads.")
    for m in options.columns:
        for precision in _operators():
            result.rows += _compare(data.X, m, precision, options.repeats, n_threads, from_cpp.get((precision, m)))
    return [result]


def _compare(
    X: Any, m: int, precision: str, repeats: int, n_threads: int, eigen: dict[str, Any] | None
) -> list[dict[str, Any]]:
    exact_S = np.random.default_rng(0).standard_normal((X.shape[0], m))
    checked = exact_S[:, : min(m, 20)]
    reference = X @ (X.T @ checked)
    X, S = X.astype(precision), exact_S.astype(precision)
    del exact_S
    work = _competitors(X, S, precision, n_threads)
    interleave(work, 1)  # to warm up
    times, answers = interleave(work, repeats, least_seconds=2.0)
    seconds = {name: timing.as_dict() for name, timing in times.items()}
    slower = max((name for name in times if name.startswith("SciPy")), key=lambda name: times[name].median)
    del seconds[slower]
    if eigen is not None:
        seconds["Eigen (C++ harness)"] = {key: eigen[key] for key in ("seconds", "least", "most", "repeats")}
    rows = []
    for name, timing in seconds.items():
        row = {"problem": f"C = {m}, {precision}", "library": name, "columns": m, "precision": precision, **timing}
        row["milliseconds"] = 1e3 * timing["seconds"]
        row["gflops"] = 4e-9 * X.nnz * m / timing["seconds"]
        row["ratio"] = timing["seconds"] / seconds["taxolearn"]["seconds"]
        if name in answers:
            difference = np.abs(answers[name][:, : checked.shape[1]] - reference).max()
            row["deviation"] = float(difference / np.abs(reference).max())
            if row["deviation"] > (1e-4 if precision == "float32" else 1e-11):
                raise RuntimeError(f"{name}: wrong answer, deviation {row['deviation']:.1e}")
        elif eigen is not None:
            row |= {"deviation": eigen["error"], "ratio": eigen["ratio"]}
        rows.append(row)
    return rows


def _competitors(X: Any, S: npt.NDArray[Any], precision: str, n_threads: int) -> dict[str, Callable[[], Any]]:
    operator = _operators()[precision](X, 1.0, algorithm="sparse", n_threads=n_threads)
    lazy, kept = X.T, X.T.tocsr()
    work: dict[str, Callable[[], Any]] = {
        "taxolearn": lambda: operator.apply(S),
        "SciPy": lambda: X @ (lazy @ S),
        "SciPy, X.T kept by rows": lambda: X @ (kept @ S),
    }
    try:
        mkl = sparse_product()
    except (ImportError, OSError):
        return work
    work["MKL (sparse_dot_mkl)"] = lambda: mkl(X, mkl(kept, S))
    return work


def _read_cpp(path: Path, nonzeros: int, n_threads: int) -> dict[tuple[str, int], dict[str, Any]]:
    """Eigen's cases of a file that ``taxolearn_bench --csr ... --json`` wrote, by precision and columns.

    ``ratio`` is the time over that of taxolearn in the same run.
    """
    content = json.loads(path.read_text())
    if content["problem"]["nonzeros"] != nonzeros:
        return {}
    cases = {
        (_PRECISION_FROM_CPP[case["precision"]], case["columns"], case["variant"]): case
        for case in content["cases"]
        if case["kernel"] == "X (X'S) sparse" and case["threads"] == n_threads
    }
    return {
        (precision, m): case | {"ratio": case["seconds"] / cases[precision, m, "taxolearn"]["seconds"]}
        for (precision, m, variant), case in cases.items()
        if variant == "Eigen"
    }
