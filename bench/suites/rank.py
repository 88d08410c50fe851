"""What an approximation of a given rank costs in error and time, against Nystroem's features."""

from argparse import ArgumentParser, Namespace
from typing import Any

from bench.harness.figures import Axes, Lines
from bench.harness.options import add_common, names, whole_numbers
from bench.harness.rbf_fits import COLUMNS, run_alone
from bench.harness.report import Result
from bench.problems.rbf import PUBLISHED, VALUES, Values, load

HELP = "error of low rank, against Nystroem"

_NOTE = (
    "Every fit runs in a process of its own, in turns; ours to a gap of 1e-4, LogisticRegression with its default "
    "tolerance, C = v and at most 2000 iterations. The full model stores the matrix; its level is dotted, and the star "
    "is at its time. Values of the kernels are those of the suite `kernels`."
)
_ERROR, _LOSS = ("error", "test error, %"), ("log_loss", "test log loss")
_RANK, _SECONDS = ("rank", "rank"), ("all_seconds", "seconds of fit and prediction")


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--data", type=names, default=list(VALUES), help="which data sets")
    parser.add_argument("--ranks", type=whole_numbers, default=[50, 100, 200, 500, 1000, 2000])
    parser.add_argument("--limit", type=float, default=120.0, help="give a model up when it takes longer (s)")


def run(options: Namespace) -> list[Result]:
    """The full model, then both approximations at every rank."""
    result = Result.of(
        options,
        title="Low rank: error and log loss against rank and time",
        columns={"problem": "data", "rank": "rank"} | COLUMNS,
        figure=Lines(tuple(Axes(*x, *y, log="xy") for y in (_ERROR, _LOSS) for x in (_RANK, _SECONDS))),
        notes=[_NOTE, PUBLISHED],
    )
    for name in options.data:
        values = VALUES[name]
        result.notes.append(f"{load(name, options.quick).description}: {values}.")

        def add(
            library: str, model: str, rank: int | None, more: Any, data: str = name, values: Values = values
        ) -> None:
            row = run_alone(data, model, values, options.threads, more, quick=options.quick, limit=options.limit)
            print(f"  {data}, {library}, rank {rank}: {row}", flush=True)
            result.rows.append({"problem": data, "library": library, "rank": rank, "level": rank is None, **row})

        add("taxolearn, full", "taxolearn", None, {"products": "gram"})
        for rank in [rank for rank in options.ranks if not options.quick or rank <= 200]:
            add("taxolearn, low rank", "taxolearn", rank, {"rank": rank})
            add("Nystroem + LogisticRegression", "Nystroem", rank, {"rank": rank})
    return [result]
