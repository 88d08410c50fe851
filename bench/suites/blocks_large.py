"""A million rows of a sparse and a dense block: memory beyond the inputs, and seconds of an iteration."""

import time
import warnings
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench.harness.figures import Bar
from bench.harness.memory import growth, megabytes, reset_peak
from bench.harness.options import add_resumable, known_cases, whole_numbers
from bench.harness.report import Result
from bench.problems.synthetic import made_up_blocks
from taxolearn import KernelLogisticClassifier, Solver
from taxolearn.kernels import Linear

HELP = "a million rows of a sparse and a dense block: memory and seconds an iteration"
_PER_ROW, _FEATURES, _EMBEDDING, _CLASSES = 30, 200_000, 384, 20
_QUICK_ROWS = 20_000
_NOTE = (
    f"Rows have {_PER_ROW} of {_FEATURES:,} sparse features and {_EMBEDDING} dense ones, all in single precision, and "
    f"one of {_CLASSES} classes. The variances are given and the iterations few. Peak MB: resident memory of the fit "
    "beyond inputs and libraries; the sparse block as an array would take {:,.0f} MB. Seconds of an iteration leave "
    "out the setup of the fit. Fits of either block alone say what each of them takes."
)


def measure(rows: int, inputs: str, space: str, iterations: int, n_threads: int) -> dict[str, Any]:
    """Fit a few iterations in this process."""
    X, y = made_up_blocks(rows, _CLASSES, _PER_ROW, _FEATURES, _EMBEDDING, seed=0)
    chosen = X if inputs == "both" else X[inputs]
    del X
    parts = chosen.matrices if inputs == "both" else (chosen,)
    size = sum(
        part.nbytes if isinstance(part, np.ndarray) else part.data.nbytes + part.indices.nbytes for part in parts
    )
    kernel = {name: Linear(10.0) for name in chosen.names} if inputs == "both" else Linear(10.0)
    model = KernelLogisticClassifier(
        kernel, tuning=None, max_iter=iterations, tol=1e-12, solver=Solver(space=space), n_threads=n_threads
    )
    before = reset_peak()
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(chosen, y)
    result = model.result_
    return {
        "seconds": time.perf_counter() - begin,
        "iteration_seconds": (result.timings["total"] - result.timings["setup"]) / max(result.iterations, 1),
        "setup_seconds": result.timings["setup"],
        "iterations": result.iterations,
        "products": result.products,
        "input_megabytes": size / 1e6,
        "megabytes": megabytes(growth(before)),
        "algorithm": result.algorithm,
        "precision": result.precision,
    }


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--rows", type=whole_numbers, default=[100_000, 1_000_000])
    parser.add_argument("--iterations", type=int, default=8, help="of the solver")


def run(options: Namespace) -> list[Result]:
    """Fit both blocks, and each alone, every fit in a process of its own."""
    cases = known_cases(options)
    rows = [_QUICK_ROWS] if options.quick else options.rows
    result = Result.of(
        options,
        title="A sparse and a dense block of many rows",
        columns={
            "problem": "rows",
            "library": "inputs",
            "input_megabytes": "MB of the inputs",
            "megabytes": "peak MB beyond",
            "iteration_seconds": "s an iteration",
            "setup_seconds": "s of the setup",
            "seconds": "s in all",
            "iterations": "iterations",
            "products": "products",
            "algorithm": "products by",
            "precision": "precision",
            "status": "status",
        },
        figure=Bar("iteration_seconds", "seconds an iteration", "{:.2f}"),
        notes=[_NOTE.format(4e-6 * max(rows) * _FEATURES)],
    )
    for count in rows:
        for inputs, space in (
            ("both", "weights"),
            ("both", "coefficients"),
            ("words", "weights"),
            ("embedding", "weights"),
        ):
            arguments = {"rows": count, "inputs": inputs, "space": space, "iterations": options.iterations}
            answer = cases.run(f"{count:,} rows, {inputs}, {space}", measure, arguments, options.threads)
            title = f"{inputs if inputs != 'both' else 'words and embedding'}, by {space}"
            result.rows.append({"problem": f"{count:,} rows", "library": title} | answer)
    return [result]
