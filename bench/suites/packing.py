"""Products with symmetric matrices: our packed store, full squares, and BLAS on one triangle."""

import gc
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas

from bench.harness import memory
from bench.harness.figures import Bar
from bench.harness.isolated import isolated
from bench.harness.options import add_common
from bench.harness.report import Result
from bench.harness.testing_module import load
from bench.harness.timing import interleave
from taxolearn.kernels import RBF

HELP = "products with symmetric matrices"


def _stores() -> dict[str, Any]:
    testing = load()
    return {"single": testing.KernelMatricesSingle, "double": testing.KernelMatricesDouble}


_TYPES = {"single": np.float32, "double": np.float64}
_TOLERANCE = {"single": 1e-5, "double": 1e-12}
_FEATURES = 20

PACKED, FULL, TRIANGLE = "taxolearn, packed", "NumPy @, full square", "SciPy symm, one triangle"

_NOTE = (
    "RBF kernels on random rows, with length scales of their own; a round of own kernels is one product of one column "
    "with each. 2 n² flops per column. GB/s: the entries that a product needs (half a square but for NumPy) over its "
    "time. MB: of the store as it says and, in a process of its own, by how much the resident memory grew. SciPy's "
    "routines (symv for one column, symm for more) read one triangle of a full square. Deviation: largest "
    "difference from products in float64 with matrices that NumPy computed in float64, relative to the largest entry."
)
_COLUMNS = {
    "problem": "problem",
    "library": "library",
    "case": "precision",
    "milliseconds": "ms per round (median)",
    "least": "min",
    "most": "max",
    "ratio": "time over full square",
    "gflops": "GFlop/s",
    "bandwidth": "GB/s",
    "megabytes": "MB",
    "measured_megabytes": "MB measured",
    "deviation": "relative deviation",
}

Matrix = npt.NDArray[Any]


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser, repeats=11)


def run(options: Namespace) -> list[Result]:
    """Own kernels with a column each, and one kernel with many columns, of the sizes of satimage and USPS."""
    result = Result.of(
        options,
        title="Products with symmetric matrices, packed and not",
        columns=_COLUMNS,
        figure=Bar("milliseconds", "ms per round of products (median)", "{:.1f}"),
        notes=[_NOTE],
    )
    sizes = ((600, 3), (900, 4)) if options.quick else ((4435, 6), (7291, 10))
    for n, classes in sizes:
        for kernels, columns in ((classes, 1), (1, classes), (1, 100)):
            for precision in _stores() if n < 7000 else ("single",):
                sized = {"n": n, "kernels": kernels, "precision": precision, "n_threads": options.threads}
                compared = sized | {"columns": columns, "repeats": options.repeats}
                times = isolated(compare, compared, options.threads)
                if "rows" not in times:
                    raise RuntimeError(times["status"])
                grown = {
                    kind: isolated(growth, sized | {"kind": kind}, options.threads).get("megabytes")
                    for kind in ("packed", "full")
                }
                for row in times["rows"]:
                    row["measured_megabytes"] = grown["packed" if row["library"] == PACKED else "full"]
                    result.rows.append(row)
                    print("  " + ", ".join(f"{key} {row[key]}" for key in _COLUMNS), flush=True)
    return [result]


def _kernels(count: int) -> list[RBF]:
    return [RBF(4.0 + 0.2 * k) for k in range(count)]


def _rows(n: int) -> npt.NDArray[np.float64]:
    """Random rows, exact in single precision, so that all compute the same kernels."""
    return np.random.default_rng(0).standard_normal((n, _FEATURES)).astype(np.float32).astype(np.float64)


def _store(n: int, kernels: int, precision: str, n_threads: int) -> Any:
    return _stores()[precision](
        [kernel.to_core() for kernel in _kernels(kernels)],
        _rows(n),
        algorithm="gram",
        memory_limit=1e12,
        n_threads=n_threads,
    )


def _square(kernel: RBF, X: npt.NDArray[np.float64], out: Matrix) -> None:
    """exp(-|x - x'|^2 / (2 l^2)) in blocks of rows, so that no second square is needed."""
    norms = (X**2).sum(axis=1)
    for first in range(0, len(X), 512):
        part = slice(first, first + 512)
        squares = np.maximum(norms[part, None] + norms - 2 * X[part] @ X.T, 0.0)
        out[part] = np.exp(-0.5 * squares / float(kernel.length_scale) ** 2)


def _squares(n: int, kernels: int, precision: str) -> list[Matrix]:
    X = _rows(n)
    squares = [np.empty((n, n), dtype=_TYPES[precision]) for _ in range(kernels)]
    for kernel, out in zip(_kernels(kernels), squares, strict=True):
        _square(kernel, X, out)
    return squares


def growth(kind: str, n: int, kernels: int, precision: str, n_threads: int) -> dict[str, Any]:
    """Measure by how many MB the resident memory of this process grows when it makes a store."""
    small: Any = _store(64, 1, precision, n_threads) if kind == "packed" else _squares(64, 1, precision)
    gc.collect()
    before = memory.resident("VmRSS")
    large: Any = _store(n, kernels, precision, n_threads) if kind == "packed" else _squares(n, kernels, precision)
    gc.collect()
    grown = memory.growth(before, "VmRSS")
    del small, large
    return {"status": "done", "megabytes": memory.megabytes(grown)}


def compare(n: int, kernels: int, columns: int, precision: str, repeats: int, n_threads: int) -> dict[str, Any]:
    """Time the products in turns, and check their answers: rows of the table."""
    packed, squares = _store(n, kernels, precision, n_threads), _squares(n, kernels, precision)
    random = np.random.default_rng(1)
    exact = [random.standard_normal((n, columns)) for _ in range(kernels)]
    S = [values.astype(_TYPES[precision]) for values in exact]
    by_columns = [np.asfortranarray(values) for values in S]
    symv, symm = (blas.ssymv, blas.ssymm) if precision == "single" else (blas.dsymv, blas.dsymm)

    def triangle(K: Matrix, values: Matrix) -> Any:
        if columns == 1:
            return symv(1.0, K.T, values[:, 0], lower=1)[:, None]
        return symm(1.0, K.T, values, lower=1)

    work: dict[str, Callable[[], list[Matrix]]] = {
        PACKED: lambda: [packed.apply(values, kernel=k) for k, values in enumerate(S)],
        FULL: lambda: [K @ values for K, values in zip(squares, S, strict=True)],
        TRIANGLE: lambda: [triangle(K, values) for K, values in zip(squares, by_columns, strict=True)],
    }
    interleave(work, 1)  # to warm up
    times, answers = interleave(work, repeats, pause=0.1)
    bytes_of = {PACKED: packed.bytes, FULL: sum(K.nbytes for K in squares), TRIANGLE: sum(K.nbytes for K in squares)}
    deviations = _deviations(n, kernels, exact, answers, _TOLERANCE[precision])
    what = f"{kernels} own kernels, 1 column each" if kernels > 1 else f"1 kernel, {columns} columns"
    rows = []
    for name, timing in times.items():
        entries = kernels * n * (n if name == FULL else (n + 1) / 2)
        rows.append(
            {
                "problem": f"n = {n:,}: {what}",
                "library": name,
                "case": precision,
                "milliseconds": 1e3 * timing.median,
                "least": 1e3 * timing.least,
                "most": 1e3 * timing.most,
                "repeats": timing.repeats,
                "ratio": timing.median / times[FULL].median,
                "gflops": 2e-9 * kernels * columns * n**2 / timing.median,
                "bandwidth": 1e-9 * entries * np.dtype(_TYPES[precision]).itemsize / timing.median,
                "megabytes": bytes_of[name] / 1e6,
                "deviation": deviations[name],
            }
        )
    return {"status": "done", "rows": rows}


def _deviations(
    n: int, kernels: int, S: list[Matrix], answers: dict[str, list[Matrix]], tolerance: float
) -> dict[str, float]:
    """Largest differences from the products in double precision; an answer that is wrong stops the benchmark."""
    X, K = _rows(n), np.empty((n, n))
    largest: dict[str, float] = dict.fromkeys(answers, 0.0)
    for k, kernel in enumerate(_kernels(kernels)):
        _square(kernel, X, K)
        reference = K @ S[k]
        for name, products in answers.items():
            difference = float(np.abs(products[k] - reference).max() / np.abs(reference).max())
            largest[name] = max(largest[name], difference)
    for name, value in largest.items():
        if value > tolerance:
            raise RuntimeError(f"{name}: wrong answer, deviation {value:.1e}")
    return largest
