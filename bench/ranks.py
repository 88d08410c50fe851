"""Suite ``rank``: what an approximation of a given rank costs in error and time, against Nystroem's features."""

from typing import Any

from bench.figures import Axes, Lines
from bench.kernel_fits import PUBLISHED, VALUES
from bench.kernel_models import Values, load, run_alone
from bench.report import Result

_NOTE = (
    "Every fit runs in a process of its own, in turns; ours to a gap of 1e-4, LogisticRegression with its default "
    "tolerance, C = v and at most 2000 iterations. The full model stores the matrix; its level is dotted, and the star "
    "is at its time. Values of the kernels are those of the suite `kernels`."
)
_COLUMNS = {
    "problem": "data",
    "library": "model",
    "rank": "rank",
    "error": "test error %",
    "log_loss": "test log loss",
    "seconds": "fit s",
    "predict_seconds": "predict s",
    "megabytes": "peak MB",
    "products": "products",
    "iterations": "iterations",
    "gap": "certified gap",
    "status": "status",
}
_ERROR, _LOSS = ("error", "test error, %"), ("log_loss", "test log loss")
_RANK, _SECONDS = ("rank", "rank"), ("all_seconds", "seconds of fit and prediction")


def run(*, data: list[str], ranks: list[int], limit: float, n_threads: int, quick: bool) -> Result:
    """The full model, then both approximations at every rank."""
    result = Result(
        suite="rank",
        title="Low rank: error and log loss against rank and time",
        columns=_COLUMNS,
        figure=Lines(tuple(Axes(*x, *y, log="xy") for y in (_ERROR, _LOSS) for x in (_RANK, _SECONDS))),
        settings={"threads": n_threads, "quick": quick},
        notes=[_NOTE, PUBLISHED],
    )
    for name in data:
        values = VALUES[name]
        result.notes.append(f"{load(name, quick).description}: {values}.")

        def add(
            library: str, model: str, rank: int | None, options: Any, data: str = name, values: Values = values
        ) -> None:
            row = run_alone(data, model, values, n_threads, options, quick=quick, limit=limit)
            print(f"  {data}, {library}, rank {rank}: {row}", flush=True)
            result.rows.append({"problem": data, "library": library, "rank": rank, "level": rank is None, **row})

        add("taxolearn, full", "taxolearn", None, {"algorithm": "gram"})
        for rank in [rank for rank in ranks if not quick or rank <= 200]:
            add("taxolearn, low rank", "taxolearn", rank, {"rank": rank})
            add("Nystroem + LogisticRegression", "Nystroem", rank, {"rank": rank})
    return result
