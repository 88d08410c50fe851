"""``taxolearn report``: a page that shows how good a model is on labelled rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taxolearn.blocks import Blocks
from taxolearn.cli.inputs import LINES, Batch, DataFile, Schema, read_batches, reading
from taxolearn.cli.labels import labels_like
from taxolearn.cli.main import (
    USAGE,
    Command,
    CommandError,
    Page,
    check_output,
    chunk_option,
    json_option,
    model_argument,
    option,
    options_of,
    output_option,
    threads_option,
    writing,
)
from taxolearn.cli.models import load_model, read_model_report, training_of, training_remarks
from taxolearn.cli.several_labels import sets_like
from taxolearn.raw_files import replaced
from taxolearn.report.description import explained_by
from taxolearn.report.findings import Findings, Rows, collect_findings
from taxolearn.report.page import current_date, render
from taxolearn.report.set_findings import SetFindings, SetRows, collect_set_findings

__all__ = ["COMMAND", "ReportOptions", "run"]


@dataclass(frozen=True)
class ReportOptions:
    """Arguments of the command."""

    model: str = model_argument()
    data: DataFile = options_of(DataFile)
    output: str = output_option("HTML", "page to write")
    title: str | None = option("--title", help="headline of the page (default: the names of both files)")
    id: str | None = option(
        "--id", metavar="COLUMN", help="column with the names of the rows (default: their numbers in the file)"
    )
    chunk: int = chunk_option()
    threads: int | None = threads_option()
    json: bool = json_option()


def run(options: ReportOptions) -> None:
    """Predict, collect the findings, write the page."""
    page = Page(options.json)
    try:
        written_on = current_date()
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None
    check_output(options.output, options.model, options.data.path)
    model, schema = load_model(options.model, options.threads)
    if options.id is not None and not schema.is_table:
        raise CommandError("--id is for tables: a matrix has no column with names of rows", USAGE)
    title = options.title or f"{Path(options.model).name} on {Path(options.data.path).name}"
    with page.stage(f"Predicting {options.data.path}") as count:
        keep = [] if options.id is None else [options.id]
        batches = read_batches(options.data, schema, rows=options.chunk, keep=keep)
        id_name = options.id or ("line" if options.data.kind in LINES else "row")
        with reading(options.data.path):
            report = read_model_report(options.model)
            training = training_of(report)
            trained = training.get("rows")
            trained = trained if isinstance(trained, int) and trained > 0 else None
            facts = [
                ("features", f"{report['features']:,}"),
                *([] if trained is None else [("training rows", f"{trained:,}")]),
                *((f"share of {name} in the answers", f"{share:.1%}") for name, share in _shares(training).items()),
            ]
            classifier = model.steps[-1][1]
            findings: Findings | SetFindings
            if schema.label_separator is None:
                of_one = _rows(model, schema, batches, options.data.path, count)
                findings = collect_findings(classifier, of_one, title, facts, id_name=id_name, training_rows=trained)
            else:
                of_sets = _set_rows(model, schema, batches, options.data.path, count)
                findings = collect_set_findings(classifier, of_sets, title, facts, id_name=id_name)
    remarks = training_remarks(report, options.data.path, findings.rows)
    findings = replace(findings, warnings=remarks)
    text = render(findings, written_on=written_on).encode("utf-8", "replace")
    with writing(options.output), replaced(Path(options.output), "report") as file:
        file.write(text)
    figures = {"report": options.output, "size_bytes": len(text), "rows": findings.rows, "remarks": remarks}
    page.result(figures, title=f"Report written to {options.output}", rows=findings.lines(), remarks=remarks)


def _shares(training: Any) -> dict[str, float]:
    """How much each kind of features contributes, as far as the model file says so."""
    shares = training.get("shares")
    is_known = isinstance(shares, dict) and all(isinstance(share, float) for share in shares.values())
    return shares if is_known else {}


def _rows(
    model: Any, schema: Schema, batches: Iterator[Batch], path: str, count: Callable[[int], None]
) -> Iterator[Rows]:
    classifier = model.steps[-1][1]
    for batch, X, explain in _transformed(model, batches, path):
        labels = labels_like(classifier.classes_, batch, path)
        yield Rows(labels, classifier.predict_log_proba(X), _texts(batch, schema), _ids(batch), explain)
        count(len(batch))


def _set_rows(
    model: Any, schema: Schema, batches: Iterator[Batch], path: str, count: Callable[[int], None]
) -> Iterator[SetRows]:
    """The same for several labels per row."""
    classifier = model.steps[-1][1]
    for batch, X, explain in _transformed(model, batches, path):
        labels = sets_like(classifier.classes_, batch, path)
        yield SetRows(labels, classifier.predict_proba(X), _texts(batch, schema), _ids(batch), explain)
        count(len(batch))


def _transformed(model: Any, batches: Iterator[Batch], path: str) -> Iterator[tuple[Batch, Any, Any]]:
    """Batches with what the classifier sees of them, and the function that explains answers, or None."""
    classifier = model.steps[-1][1]
    names = model[0].get_feature_names_out() if len(model.steps) > 1 else None
    for batch in batches:
        with reading(path, batch.lines):
            X = model[:-1].transform(batch.X) if len(model.steps) > 1 else batch.X
        explain = None
        if explained_by(classifier)[0]:

            def explain(rows: list[int], nodes: list[Any], X: Any = X) -> Any:
                named = names
                if isinstance(X, Blocks) and names is not None:
                    named = {block: names[columns] for block, _, columns in X.parts()}
                return classifier.explain(X[rows], nodes, feature_names=named)

        yield batch, X, explain


def _ids(batch: Batch) -> list[str]:
    named = next(iter(batch.kept.values()), batch.lines)
    return ["" if name is None else str(name) for name in named]


def _texts(batch: Batch, schema: Schema) -> list[str]:
    """What the rows of a table say, for a reader; nothing for those of a matrix."""
    if not schema.is_table:
        return [""] * len(batch)
    texts = schema.text or schema.embed or schema.sequences
    shown = texts or [*schema.numeric, *schema.dates, *schema.categorical, *schema.embedding_columns[:3]]
    rows = zip(*(batch.X[name] for name in shown), strict=True)
    if texts:
        return [" · ".join(str(value) for value in row if value) for row in rows]
    return [", ".join(f"{name} {value}" for name, value in zip(shown, row, strict=True)) for row in rows]


COMMAND = Command(
    ReportOptions,
    run,
    "Write one HTML file about a model on labelled rows, for any browser and without a network: the tree with scores, "
    "confusions, what happens if the least sure rows are set aside, whether probabilities can be believed, and the "
    "worst mistakes with their reasons.",
)
