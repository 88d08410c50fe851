"""Products with inputs in blocks against the sum of their parts, and against one sparse matrix of all columns."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bench.harness.figures import Bar
from bench.harness.options import add_common, whole_numbers
from bench.harness.report import Result
from bench.harness.testing_module import load
from bench.harness.timing import interleave
from bench.problems.data import news20
from taxolearn import Blocks

HELP = "products with inputs in blocks against the sum of their parts"

_EMBEDDING, _NUMBERS = 384, 20  # columns of the dense blocks
_BOUND = 1.05  # times the sum of the parts that a product may take
_NOTE = (
    "Words are sparse; the other blocks are dense and random, since products take the same time whatever is in them. "
    "The parts are the linear operators of the blocks, each alone, one after the other. One sparse matrix has the "
    "columns of all blocks. Operators are made before the clock starts. Deviation: largest difference from the sum of "
    "the parts, relative to its largest entry."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser, repeats=5)
    parser.add_argument("--columns", type=whole_numbers, default=[20, 160, 1000], help="numbers of classes")


def run(options: Namespace) -> list[Result]:
    """Time all three for every number of columns and precision; the exit code is 1 if blocks take too long."""
    words = news20(options.quick).X.tocsr()
    result = Result.of(
        options,
        title="Products with inputs in blocks",
        columns={
            "problem": "problem",
            "library": "inputs",
            "milliseconds": "ms",
            "ratio": "time over the sum of the parts",
            "deviation": "relative deviation",
        },
        figure=Bar("milliseconds", "ms", "{:.1f}"),
        settings={"blocks": f"words {words.shape[0]} x {words.shape[1]}, {_EMBEDDING} and {_NUMBERS} dense columns"},
        notes=[_NOTE],
    )
    for precision in ("float32", "float64"):
        for m in options.columns:
            rows = _compare(words.astype(precision), precision, m, options)
            result.rows += rows
            result.exit_code |= int(rows[0]["ratio"] > _BOUND)
    return [result]


def _compare(words: Any, precision: str, m: int, options: Namespace) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    n = words.shape[0]
    dense = [rng.standard_normal((n, count)).astype(precision) for count in (_EMBEDDING, _NUMBERS)]
    X = Blocks({"words": words, "embedding": dense[0], "numbers": dense[1]})
    S = rng.standard_normal((n, m)).astype(precision)
    make = {"float32": load().LinearSingle, "float64": load().LinearDouble}[precision]

    def operator(matrix: Any, algorithm: str) -> Any:
        return make(matrix, 1.0, algorithm=algorithm, n_threads=options.threads)

    blocks = operator(X, "blocks")
    parts = [operator(matrix, "sparse" if sparse.issparse(matrix) else "dense") for matrix in X.matrices]
    together = operator(sparse.hstack(X.matrices, format="csr", dtype=precision), "sparse")
    work: dict[str, Callable[[], Any]] = {
        "blocks": lambda: blocks.apply(S),
        "sum of the parts": lambda: [part.apply(S) for part in parts],
        "one sparse matrix": lambda: together.apply(S),
    }
    interleave(work, 1)  # to warm up
    times, answers = interleave(work, options.repeats, least_seconds=2.0)
    expected = np.sum(answers["sum of the parts"], axis=0, dtype=np.float64)
    answers["sum of the parts"] = expected
    rows = []
    for name, timing in times.items():
        deviation = float(np.abs(answers[name] - expected).max() / np.abs(expected).max())
        if deviation > (1e-4 if precision == "float32" else 1e-11):
            raise RuntimeError(f"{name}: wrong answer, deviation {deviation:.1e}")
        row = {"problem": f"C = {m}, {precision}", "library": name, "columns": m, "precision": precision}
        row |= timing.as_dict() | {"milliseconds": 1e3 * timing.median, "deviation": deviation}
        rows.append(row | {"ratio": timing.median / times["sum of the parts"].median})
    return rows
