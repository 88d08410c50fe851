"""Suite ``large``: 58,000 rows whose kernel matrix exceeds the memory limit, by tiles and by low rank."""

from typing import Any

import numpy as np

from bench.figures import Axes, Points
from bench.kernel_models import Values, load, made_up, run_alone
from bench.report import Result

VALUES = Values(w=0.05, variance=10.0, sigma2=1.0)
_NOTE = (
    "Stored in single precision, one triangle of the matrix would take {:.1f} GB, in double twice that. The true "
    "probabilities have an error of {:.2f} % and a log loss of {:.4f} on the test rows. Every fit runs in a process of "
    "its own; peak MB is beyond data and libraries. {}."
)
_COLUMNS = {
    "library": "model",
    "error": "test error %",
    "log_loss": "test log loss",
    "seconds": "fit s",
    "predict_seconds": "predict s",
    "megabytes": "peak MB",
    "kernel_megabytes": "kernel MB",
    "products": "products",
    "gap": "certified gap",
    "precision": "precision",
    "status": "status",
}


def run(
    *, rows: int, ranks: list[int], gap: float, memory_limit: str, limit: float, n_threads: int, quick: bool
) -> Result:
    """Tiles by ``algorithm="auto"`` under the memory limit, then low rank, ours and Nystroem's."""
    rows, memory_limit = (4000, "10 MB") if quick else (rows, memory_limit)
    name = f"clusters:{rows}"
    data = load(name, quick)
    truth = made_up().log_proba(data.X_test)
    bayes_error = 100 * np.mean(truth.argmax(axis=1) != data.y_test)
    bayes_loss = -np.mean(truth[np.arange(len(truth)), data.y_test])
    result = Result(
        suite="large",
        title=f"{rows:,} rows, RBF kernel, at most {memory_limit} for its matrix",
        columns=_COLUMNS,
        figure=Points(Axes("all_seconds", "seconds of fit and prediction", "log_loss", "test log loss", log="xy")),
        settings={"threads": n_threads, "memory_limit": memory_limit, "data": data.description},
        notes=[_NOTE.format(rows**2 * 2e-9, bayes_error, bayes_loss, VALUES)],
    )
    competitors: list[tuple[str, str, dict[str, Any]]] = [
        (f"taxolearn, rank {rank}", "taxolearn", {"rank": rank, "gap": gap}) for rank in ranks
    ]
    competitors += [(f"Nystroem {ranks[-1]} + LogisticRegression", "Nystroem", {"rank": ranks[-1]})]
    competitors += [("taxolearn, tiled", "taxolearn", {"memory_limit": memory_limit, "gap": gap})]
    for library, model, options in competitors:
        row = run_alone(name, model, VALUES, n_threads, options, limit=limit)
        print(f"  {library}: {row}", flush=True)
        result.rows.append({"problem": data.name, "library": library, **row})
        if "reason" in row:
            result.notes.append(f"{library}: {row['algorithm']}, because {row['reason']}.")
    return result
