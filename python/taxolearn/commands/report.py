"""``taxolearn report``: a page that shows how good a model is on labelled rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taxolearn._atomic import replaced
from taxolearn.commands.errors import BAD_DATA, CommandError, writing
from taxolearn.commands.inputs import Batch, Schema, find_format, read_batches, reading
from taxolearn.commands.models import load_model, read_model_report
from taxolearn.commands.output import Page, check_output
from taxolearn.report.findings import Rows, gather
from taxolearn.report.page import render

__all__ = ["ReportOptions", "run"]


@dataclass(frozen=True)
class ReportOptions:
    """Arguments of the command."""

    model: str
    data: str
    output: str
    title: str | None
    format: str | None
    encoding: str
    threads: int | None
    chunk: int


def run(options: ReportOptions) -> None:
    """Predict, find out, write the page."""
    page = Page(as_json=False)
    check_output(options.output)
    model, schema = load_model(options.model, options.threads)
    kind = find_format(options.data, options.format)
    title = options.title or f"{Path(options.model).name} on {Path(options.data).name}"
    with page.stage(f"Reading {options.data}"):
        batches = read_batches(options.data, kind, schema, encoding=options.encoding, rows=options.chunk)
        with reading(options.data):
            try:
                findings = gather(model.steps[-1][1], _rows(model, schema, batches), title, _facts(options.model))
            except ValueError as error:
                raise CommandError(f"{options.data}: {error}", BAD_DATA) from None
    text = render(findings).encode("utf-8", "replace")
    with writing(options.output), replaced(Path(options.output), "report") as file:
        file.write(text)
    page.result({}, title=f"Report written to {options.output}", rows=findings.summary)


def _rows(model: Any, schema: Schema, batches: Iterator[Batch]) -> Iterator[Rows]:
    classifier = model.steps[-1][1]
    names = model[0].get_feature_names_out() if len(model.steps) > 1 else None
    for batch in batches:
        X = model[:-1].transform(batch.X) if len(model.steps) > 1 else batch.X
        labels = batch.labels
        if classifier.classes_.dtype.kind == "U" and labels.dtype.kind != "U":
            labels = labels.astype(str)
        explain = None
        if hasattr(classifier, "coef_"):

            def explain(rows: list[int], nodes: list[Any], X: Any = X) -> Any:
                return classifier.explain(X[rows], nodes, feature_names=names)

        yield Rows(labels, classifier.predict_proba(X), _texts(batch, schema), explain)


def _texts(batch: Batch, schema: Schema) -> list[str]:
    """What a reader recognises the rows by."""
    if not schema.is_table:
        return [f"row {line}" for line in batch.lines]
    shown = schema.text or schema.numeric
    columns = [batch.X[name] for name in shown]
    if schema.text:
        return [" · ".join(str(value) for value in row if value) for row in zip(*columns, strict=True)]
    return [
        f"line {line}: " + ", ".join(f"{name} {value}" for name, value in zip(shown, row, strict=True))
        for line, row in zip(batch.lines, zip(*columns, strict=True), strict=True)
    ]


def _facts(path: str) -> list[tuple[str, str]]:
    """Of the training."""
    report = read_model_report(path)
    training = report["report"].get("training", {})
    out = [("features", f"{report['features']:,}")]
    if isinstance(training, dict):
        if isinstance(training.get("rows"), int):
            out.append(("training rows", f"{training['rows']:,}"))
        if isinstance(training.get("cv_log_loss"), float):
            out.append(("log loss in cross-validation", f"{training['cv_log_loss']:.3f}"))
    return out
