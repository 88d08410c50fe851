"""``taxolearn evaluate``: how good a model is on labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taxolearn.cli.inputs import DataFile, Schema, read_batches, reading
from taxolearn.cli.labels import labels_like
from taxolearn.cli.main import (
    BAD_DATA,
    Command,
    CommandError,
    Page,
    chunk_option,
    figure,
    json_option,
    model_argument,
    options_of,
    threads_option,
)
from taxolearn.cli.models import load_model, read_model_report, training_remarks, unknown_remarks
from taxolearn.cli.several_labels import score_rows, sets_like, unknown_label_remarks
from taxolearn.report.scores import REJECTED, TOP, RunningScores
from taxolearn.report.set_scores import RunningSetScores

__all__ = ["COMMAND", "EvaluateOptions", "run"]


@dataclass(frozen=True)
class EvaluateOptions:
    """Arguments of the command."""

    model: str = model_argument()
    data: DataFile = options_of(DataFile)
    chunk: int = chunk_option()
    threads: int | None = threads_option()
    json: bool = json_option()


def run(options: EvaluateOptions) -> None:
    """Predict chunk by chunk, then score."""
    page = Page(options.json)
    model, schema = load_model(options.model, options.threads)
    if schema.label_separator is not None:
        _evaluate_sets(options, page, model, schema)
        return
    with page.stage(f"Predicting {options.data.path}") as count:
        classifier = model.steps[-1][1]
        scores, rows_read = RunningScores(classifier), 0
        for batch in read_batches(options.data, schema, rows=options.chunk):
            with reading(options.data.path, batch.lines):
                labels = labels_like(classifier.classes_, batch, options.data.path)
                scores.add(labels, model.predict_log_proba(batch.X))
            count(len(batch))
            rows_read += len(batch)
    if rows_read == 0:
        raise CommandError(f"{options.data.path}: the file has no rows", BAD_DATA)
    figures = scores.summary()
    rows = [
        ("rows", figure(figures["rows"])),
        ("accuracy", _percent(figures["accuracy"])),
        (f"right class among the first {TOP}", _percent(figures[f"top{TOP}_accuracy"])),
        ("macro F1", _percent(figures["macro_f1"])),
        ("log loss", figure(figures["log_loss"])),
        ("calibration error", _percent(figures["calibration_error"])),
        (f"error when the least sure {REJECTED:.0%} are set aside", _percent(figures["error_at_10_percent_reject"])),
    ]
    if figures["taxo_loss"] is not None:
        rows += [
            ("taxo-loss, most probable class", figure(figures["taxo_loss"])),
            ("taxo-loss, --loss taxo", figure(figures["taxo_loss_decided"])),
            ("accuracy of the parent", _percent(figures["parent_accuracy"])),
        ]
    remarks = [
        *training_remarks(read_model_report(options.model), options.data.path, rows_read),
        *unknown_remarks(
            figures,
            "such rows count as errors in accuracies, F1 and when rejecting, and are left out of all other figures",
        ),
    ]
    page.result(
        {"model": options.model, "data": options.data.path, **figures, "remarks": remarks},
        title="On these rows",
        rows=rows,
        remarks=remarks,
    )


def _evaluate_sets(options: EvaluateOptions, page: Page, model: Any, schema: Schema) -> None:
    """The same for several labels per row."""
    classifier = model.steps[-1][1]
    scores, rows_read = RunningSetScores(classifier), 0
    with page.stage(f"Predicting {options.data.path}") as count:
        for batch in read_batches(options.data, schema, rows=options.chunk):
            with reading(options.data.path, batch.lines):
                X = model[:-1].transform(batch.X) if len(model.steps) > 1 else batch.X
                scores.add(sets_like(classifier.classes_, batch, options.data.path), classifier.predict_proba(X))
            count(len(batch))
            rows_read += len(batch)
    if rows_read == 0:
        raise CommandError(f"{options.data.path}: the file has no rows", BAD_DATA)
    figures = scores.summary()
    remarks = [
        *training_remarks(read_model_report(options.model), options.data.path, rows_read),
        *unknown_label_remarks(figures),
    ]
    page.result(
        {"model": options.model, "data": options.data.path, **figures, "remarks": remarks},
        title="On these rows",
        rows=[("rows", figure(figures["rows"])), *score_rows(figures)],
        remarks=remarks,
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


COMMAND = Command(EvaluateOptions, run, "Score a model on the labelled rows of a file.")
