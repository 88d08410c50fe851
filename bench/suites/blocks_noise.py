"""A block that says nothing, beside the words of clinc150: what it costs, and which variance it gets."""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from bench.harness.figures import Bar
from bench.harness.job_scores import job_scores
from bench.harness.options import add_resumable, known_cases, whole_numbers
from bench.harness.report import Result
from bench.problems.jobs import JOBS
from taxolearn import Blocks, KernelLogisticClassifier
from taxolearn.features import TableFeatures

HELP = "a block of noise beside words: log loss with and without it, and its learned variance"
_NOISE = 1000  # columns
_BOUND = 1.01  # times the log loss without noise
_NOTE = (
    f"The noise is {_NOISE} columns of independent Gaussian numbers, whose squares sum to about 1 in a row, as those "
    "of words and of characters do: so variances can be compared. All hyperparameters are learned, by the defaults of "
    "KernelLogisticClassifier with the tree of clinc150."
)


def measure(rows: int, inputs: str, n_threads: int) -> dict[str, Any]:
    """Learn from the first rows of a random order, and score the test rows."""
    problem = JOBS["clinc150"]().first_rows(rows)
    table = TableFeatures(output="blocks", n_threads=n_threads)
    X, X_test = table.fit_transform(problem.X), table.transform(problem.X_test)
    if inputs != "words":
        random = np.random.default_rng(0)
        X, X_test = (_with_noise(part, random) for part in (X, X_test))
    model = KernelLogisticClassifier(taxonomy=problem.taxonomy, tol=1e-5, n_threads=n_threads).fit(X, problem.y)
    kernel = model.hyperparameters_.kernel
    scores = job_scores(problem, model.predict_log_proba(X_test), model.classes_)
    return scores | {f"variance of {name}": kernel[name].variance for name in X.names}


def _with_noise(X: Blocks, random: np.random.Generator) -> Blocks:
    noise = random.standard_normal((len(X), _NOISE)).astype(np.float32) / np.float32(np.sqrt(_NOISE))
    return Blocks({**dict(X.items()), "noise": noise})


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--rows", type=whole_numbers, default=[400, 1500, 15000], help="numbers of training rows")


def run(options: Namespace) -> list[Result]:
    """Learn with and without noise; the exit code is 1 if noise costs more than it may."""
    cases = known_cases(options)
    result = Result.of(
        options,
        title="A block of noise beside words",
        columns={
            "problem": "training rows",
            "library": "blocks",
            "log_loss": "log loss",
            "relative_loss": "over that without noise",
            "accuracy": "acc %",
            **{f"variance of {name}": f"variance of {name}" for name in ("words", "characters", "noise")},
        },
        figure=Bar("log_loss", "test log loss", "{:.4f}"),
        notes=[_NOTE],
    )
    for rows in [400] if options.quick else options.rows:
        found = [
            {"problem": f"clinc150, {rows} rows", "library": inputs}
            | cases.run(f"{rows} rows, {inputs}", measure, {"rows": rows, "inputs": inputs}, options.threads)
            for inputs in ("words", "words and noise")
        ]
        for row in found:
            row["relative_loss"] = row["log_loss"] / found[0]["log_loss"]
        result.exit_code |= int(found[1]["relative_loss"] > _BOUND)
        result.rows += found
    return [result]
