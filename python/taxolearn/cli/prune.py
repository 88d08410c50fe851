"""``taxolearn prune``: a smaller model, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import taxolearn
from taxolearn.cli.inputs import DataFile, read_whole, reading
from taxolearn.cli.labels import labels_like
from taxolearn.cli.main import (
    USAGE,
    Command,
    CommandError,
    Page,
    above_zero,
    check_output,
    figure,
    fraction,
    json_option,
    model_argument,
    option,
    options_of,
    output_option,
    size_text,
    threads_option,
    writing,
)
from taxolearn.cli.models import load_model, read_model_report, training_remarks, unknown_remarks
from taxolearn.cli.several_labels import sets_like, unknown_label_remarks
from taxolearn.estimators.prune import is_linear
from taxolearn.readers.tables import CHUNK_ROWS
from taxolearn.report.scores import RunningScores
from taxolearn.report.set_scores import RunningSetScores

__all__ = ["COMMAND", "PruneOptions", "run"]

# Doublings of what may be saved; below a half a file does not get smaller.
_SHARES = tuple(1 - 0.5**k for k in range(1, 11))


@dataclass(frozen=True)
class PruneOptions:
    """Arguments of the command."""

    model: str = model_argument()
    data: DataFile = options_of(DataFile)
    output: str = output_option("MODEL", "smaller model file to write")
    rise: float = option(
        "--rise",
        type=above_zero,
        default=1e-3,
        metavar="R",
        help="relative rise of the log loss to allow (default: %(default)s)",
    )
    share: float | None = option(
        "--share", type=fraction, metavar="S", help="leave out this share of the weights, whatever it costs"
    )
    threads: int | None = threads_option()
    json: bool = json_option()


def run(options: PruneOptions) -> None:
    """Leave out as many weights as the data allow."""
    page = Page(options.json)
    check_output(options.output, options.model, options.data.path)
    model, schema = load_model(options.model, options.threads)
    if not is_linear(model.steps[-1][1]):
        raise CommandError(
            f"{options.model}: the model is not linear, so it has no weights to leave out; train it with --model "
            "softmax",
            USAGE,
        )
    with page.stage(f"Reading {options.data.path}"):
        batch = read_whole(options.data, schema)
        with reading(options.data.path, batch.lines):
            X = model[:-1].transform(batch.X) if len(model.steps) > 1 else batch.X
    whole = model.steps[-1][1]
    of_sets = schema.label_separator is not None
    labels: Any = (sets_like if of_sets else labels_like)(whole.classes_, batch, options.data.path)

    def scores(classifier: Any) -> dict[str, Any]:
        if of_sets:
            running_sets = RunningSetScores(classifier)
            for begin in range(0, X.shape[0], CHUNK_ROWS):
                rows = slice(begin, begin + CHUNK_ROWS)
                with reading(options.data.path):
                    proba = classifier.predict_proba(X[rows])
                running_sets.add(labels[rows], proba)
            return running_sets.summary()
        running = RunningScores(classifier)
        for begin in range(0, X.shape[0], CHUNK_ROWS):
            rows = slice(begin, begin + CHUNK_ROWS)
            with reading(options.data.path):
                log_proba = classifier.predict_log_proba(X[rows])
            running.add(labels[rows], log_proba)
        return running.summary()

    with page.stage("Leaving out weights"):
        before = scores(whole)
        if before["log_loss"] is None:
            raise CommandError(
                f"{options.data.path}: no row has a class that the model knows, so nothing can be compared; the first "
                f"label is {before['unknown_class']!r}"
            )
        found = None
        for share in _SHARES if options.share is None else (options.share,):
            classifier = taxolearn.prune(whole, share)
            after = scores(classifier)
            if options.share is None and after["log_loss"] > before["log_loss"] * (1 + options.rise):
                break
            found = share, classifier, after
    if found is None:
        raise CommandError(
            f"{options.model}: without half of its weights the log loss on {options.data.path} rises by more than "
            f"{options.rise:.2%}; allow more by --rise, or choose the --share of weights to leave out",
            USAGE,
        )
    share, classifier, after = found
    size = Path(options.model).stat().st_size
    name = "micro_f1" if of_sets else "accuracy"
    names = (name, "log_loss", "calibration_error")
    statement = {
        "data": Path(options.data.path).name,
        "rows": before["rows"],
        "share": share,
        "before": {name: before[name] for name in names},
        "after": {name: after[name] for name in names},
    }
    model.steps[-1] = (model.steps[-1][0], classifier)
    report = read_model_report(options.model)
    remarks = training_remarks(report, options.data.path, before["rows"])
    if of_sets:
        remarks += unknown_label_remarks(before)
    else:
        known = before["rows"] - before["rows_of_unknown_classes"]
        remarks += unknown_remarks(before, f"log loss and calibration error are those of the other {known:,}")
    with writing(options.output):
        taxolearn.save(model, options.output, report=report["report"] | {"pruning": statement})
    small = Path(options.output).stat().st_size
    if small >= size:
        remarks.append("the file did not get smaller: weights that stay are stored with their place")
    page.result(
        {"model": options.output, "size_before": size, "size_bytes": small, **statement, "remarks": remarks},
        title=f"Model written to {options.output}",
        rows=[
            ("weights left out", f"{share:.2%}"),
            ("size of the file", f"{size_text(size)}, now {size_text(small)}"),
            (
                f"{'micro F1' if of_sets else 'accuracy'} on {before['rows']:,} rows",
                f"{before[name]:.2%}, now {after[name]:.2%}",
            ),
            ("log loss", f"{figure(before['log_loss'])}, now {figure(after['log_loss'])}"),
            ("calibration error", f"{before['calibration_error']:.2%}, now {after['calibration_error']:.2%}"),
        ],
        remarks=remarks,
    )


COMMAND = Command(
    PruneOptions,
    run,
    "Leave out the smallest weights of a linear model: as many as possible while the log loss hardly rises on the "
    "labelled rows of a file, which had better not be those of the training.",
)
