"""58,000 rows whose kernel matrix exceeds the memory limit, by tiles and by low rank."""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from bench.harness.figures import Axes, Points
from bench.harness.options import add_common, whole_numbers
from bench.harness.rbf_fits import COLUMNS, run_alone
from bench.harness.report import Result
from bench.problems.rbf import Values, load, made_up

HELP = "a kernel matrix too large to store"

VALUES = Values(w=0.05, variance=10.0, intercept_variance=1.0)
_NOTE = (
    "Stored in single precision, one triangle of the matrix would take {:.1f} GB, in double twice that. The true "
    "probabilities have an error of {:.2f} % and a log loss of {:.4f} on the test rows. Every fit runs in a process of "
    "its own; peak MB is beyond data and libraries. {}."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--rows", type=int, default=58000)
    parser.add_argument("--ranks", type=whole_numbers, default=[500, 1000])
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--memory-limit", default="4 GB", help="for kernel matrices")
    parser.add_argument("--limit", type=float, default=600.0, help="give a model up when it takes longer (s)")


def run(options: Namespace) -> list[Result]:
    """Tiles by ``products="auto"`` under the memory limit, then low rank, ours and Nystroem's."""
    rows, memory_limit = (4000, "10 MB") if options.quick else (options.rows, options.memory_limit)
    name = f"clusters:{rows}"
    data = load(name, options.quick)
    truth = made_up().log_proba(data.X_test)
    bayes_error = 100 * np.mean(truth.argmax(axis=1) != data.y_test)
    bayes_loss = -np.mean(truth[np.arange(len(truth)), data.y_test])
    result = Result.of(
        options,
        title=f"{rows:,} rows, RBF kernel, at most {memory_limit} for its matrix",
        columns=COLUMNS,
        figure=Points(Axes("all_seconds", "seconds of fit and prediction", "log_loss", "test log loss", log="xy")),
        settings={"memory_limit": memory_limit, "data": data.description},
        notes=[_NOTE.format(rows**2 * 2e-9, bayes_error, bayes_loss, VALUES)],
    )
    competitors: list[tuple[str, str, dict[str, Any]]] = [
        (f"taxolearn, rank {rank}", "taxolearn", {"rank": rank, "gap": options.gap}) for rank in options.ranks
    ]
    competitors += [
        (f"Nystroem {rank} + LogisticRegression", "Nystroem", {"rank": rank}) for rank in options.ranks[-1:]
    ]
    competitors += [("taxolearn, tiled", "taxolearn", {"memory_limit": memory_limit, "gap": options.gap})]
    for library, model, more in competitors:
        row = run_alone(name, model, VALUES, options.threads, more, limit=options.limit)
        print(f"  {library}: {row}", flush=True)
        result.rows.append({"problem": data.name, "library": library, **row})
        if "reason" in row:
            result.notes.append(f"{library}: {row['algorithm']}, because {row['reason']}.")
    return [result]
