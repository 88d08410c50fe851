"""Suite ``fit``: time to a certified relative duality gap, taxolearn against scikit-learn, on the same objective."""

import time
from typing import Any

import numpy as np

from bench.certify import Certificate, certify
from bench.figures import Bar
from bench.libraries import Library, libraries
from bench.problems import Data, news20
from bench.report import Result
from bench.timing import interleave

_SIGMA2 = 0.01

_NOTE = (
    "Each library runs with the loosest tolerance of a decreasing list whose answer has the gap; the gap is computed "
    "by the same NumPy code for all (bench/certify.py). Runs are interleaved in one process."
)


def run(*, variances: list[float], gap: float, repeats: int, n_threads: int, limit: float, quick: bool) -> Result:
    """Calibrate, time and certify every library at every variance ``v``."""
    data = news20(quick)
    result = Result(
        suite="fit",
        title=f"Time to a relative duality gap of {gap:g}",
        columns={
            "problem": "problem",
            "library": "library",
            "seconds": "s (median)",
            "least": "min",
            "most": "max",
            "ratio": "ratio to fastest rival",
            "tol": "its tol",
            "iterations": "iterations",
            "relative_gap": "certified gap",
            "objective": "objective",
            "error": "test error %",
        },
        figure=Bar("seconds", "seconds to the gap (median)", "{:.2f}"),
        settings={"threads": n_threads, "repeats": repeats, "sigma2": _SIGMA2, "data": data.description},
        notes=[_NOTE],
    )
    for v in variances:
        result.rows += _compare(data, v, gap, repeats, n_threads, limit)
    return result


def _compare(data: Data, v: float, gap: float, repeats: int, n_threads: int, limit: float) -> list[dict[str, Any]]:
    competitors = libraries(data, v, _SIGMA2, gap, n_threads)
    problem = f"{data.name}, v = {v:g}"
    tolerances = {library.name: _calibrate(library, data, v, gap, limit) for library in competitors}
    taking_part = {library.name: library for library in competitors if tolerances[library.name] is not None}
    work = {
        name: (lambda library=library, tol=tolerances[name]: library.fit(tol)) for name, library in taking_part.items()
    }
    times, answers = interleave(work, repeats)
    rivals = [times[name].median for name, library in taking_part.items() if not library.ours]
    rows: list[dict[str, Any]] = []
    for library in competitors:
        row: dict[str, Any] = {"problem": problem, "library": library.name, "tol": tolerances[library.name]}
        if library.name in times:
            fitted = answers[library.name]
            certificate = _certificate(library, fitted, data, v)
            if certificate.relative_gap > gap:
                raise RuntimeError(f"{library.name}: the timed answer has a gap of {certificate.relative_gap:.1e}")
            row |= times[library.name].as_dict() | {
                "ratio": times[library.name].median / min(rivals) if rivals else None,
                "iterations": int(np.max(fitted.n_iter_)),
                "objective": certificate.objective,
                "relative_gap": certificate.relative_gap,
                "error": 100 * _test_error(library, fitted, data),
            }
        rows.append(row)
    return rows


def _calibrate(library: Library, data: Data, v: float, gap: float, limit: float) -> float | None:
    """The loosest tolerance that reaches the gap; None if none does, or not within ``limit`` seconds a fit."""

    def attempt(tol: float) -> tuple[bool, float]:
        start = time.perf_counter()
        fitted = library.fit(tol)
        seconds = time.perf_counter() - start
        reached = _certificate(library, fitted, data, v).relative_gap
        print(f"  v = {v:g}, {library.name}, tol {tol:g}: gap {reached:.1e} in {seconds:.2f} s", flush=True)
        return reached <= gap, seconds

    looser: float | None = None
    for tol in library.tolerances:
        good, seconds = attempt(tol)
        if good and looser is not None:  # a rival may be stopped between two entries of the list
            between = float(f"{(tol * looser) ** 0.5:.2g}")
            return between if attempt(between)[0] else tol
        if good:
            return tol
        if seconds > limit:
            return None
        looser = tol
    return None


def _certificate(library: Library, fitted: Any, data: Data, v: float) -> Certificate:
    coef, intercept = library.model(fitted)
    return certify(data.X, np.searchsorted(fitted.classes_, data.y), coef, intercept, v, _SIGMA2)


def _test_error(library: Library, fitted: Any, data: Data) -> float:
    coef, intercept = library.model(fitted)
    predicted = fitted.classes_[(data.X_test @ coef.T + intercept).argmax(axis=1)]
    return float(np.mean(predicted != data.y_test))
