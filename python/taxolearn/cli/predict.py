"""``taxolearn predict``: answers for the rows of a file, written as they are read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from taxolearn import decisions
from taxolearn.cli.inputs import LINES, DataFile, format_of, read_batches, reading
from taxolearn.cli.main import (
    USAGE,
    Command,
    CommandError,
    Page,
    check_output,
    chunk_option,
    figure,
    fraction,
    json_option,
    model_argument,
    option,
    options_of,
    positive,
    threads_option,
    writing,
)
from taxolearn.cli.models import load_model
from taxolearn.cli.several_labels import SetAnswers
from taxolearn.raw_files import replaced
from taxolearn.set_decisions import SET_LOSSES

__all__ = ["COMMAND", "PredictOptions", "run"]

_ROUNDING = ".6g"


@dataclass(frozen=True)
class PredictOptions:
    """Arguments of the command."""

    model: str = model_argument()
    data: DataFile = options_of(DataFile)
    output: str | None = option(
        "-o", "--output", metavar="FILE", help="file to write, .csv, .tsv or .jsonl, also with .gz"
    )
    output_format: str | None = option(
        "--output-format", choices=LINES, help="format to write, if the name does not tell (default: csv)"
    )
    top: int = option(
        "--top", type=positive, default=1, metavar="K", help="answer with the K most probable classes (default: 1)"
    )
    loss: str | None = option(
        "--loss",
        choices=tuple(dict.fromkeys((*decisions.LOSSES, *SET_LOSSES))),
        help=f"answer with the class of least expected loss: {', '.join(decisions.LOSSES)} (default: "
        f"{decisions.LOSSES[0]}, the most probable class); or with the set of labels: {', '.join(SET_LOSSES)} "
        f"(default: {SET_LOSSES[0]}, the labels more probable than not)",
    )
    threshold: float | None = option(
        "--threshold",
        type=fraction,
        metavar="P",
        help="answer with the deepest node of the tree whose probability is at least P; for several labels per row, "
        "with those above P",
    )
    thresholds: str | None = option(
        "--thresholds",
        choices=("fixed", "s-cut"),
        help="for several labels per row: answer with labels above 0.5, or above thresholds of their own that had the "
        "largest F1 on rows held out in training",
    )
    nodes: bool = option(
        "--nodes", action="store_true", help="add the path to the answer, with the probability of each node"
    )
    keep: list[str] = option(
        "--keep", action="append", default=[], metavar="COLUMN", help="copy this column; may be repeated"
    )
    chunk: int = chunk_option()
    threads: int | None = threads_option()
    json: bool = json_option("with -o, print the results as one JSON object and nothing else")


def run(options: PredictOptions) -> None:
    """Predict chunk by chunk; memory does not grow with the file."""
    begin = time.perf_counter()
    is_file = options.output not in (None, "-")
    if options.json and not is_file:
        raise CommandError("--json prints figures where the answers would go; name a file for the answers by -o", USAGE)
    if is_file:
        check_output(str(options.output), options.model, options.data.path)
    page = Page(options.json)
    model, schema = load_model(options.model, options.threads)
    answers: _Answers | SetAnswers
    if schema.label_separator is None:
        if options.thresholds is not None:
            raise CommandError("--thresholds is for several labels per row, and the model has one", USAGE)
        answers = _Answers(model, options)
    else:
        answers = SetAnswers(
            model,
            schema.label_separator,
            top=options.top,
            loss=options.loss,
            threshold=options.threshold,
            thresholds=options.thresholds,
            nodes=options.nodes,
        )
    taken = [name for name in options.keep if name in answers.names]
    if taken:
        raise CommandError(f"--keep {taken[0]}: the answers have a column of this name too; rename yours", USAGE)
    batches = read_batches(
        options.data,
        schema,
        rows=options.chunk,
        with_labels=False,
        keep=options.keep,
    )
    first = next(batches, None)  # what is wrong from the beginning leaves no header behind
    rows = 0
    with (
        page.stage(f"Predicting {options.data.path}") as count,
        _writer(options, [*options.keep, *answers.names]) as write,
    ):
        for batch in chain([] if first is None else [first], batches):
            with reading(options.data.path, batch.lines):
                columns = answers.of(batch.X)
            write([*batch.kept.values(), *columns])
            count(len(batch))
            rows += len(batch)
    if is_file:
        seconds = time.perf_counter() - begin
        page.result(
            {"answers": options.output, "rows": rows, "seconds": round(seconds, 3)},
            title=f"Answers written to {options.output}",
            rows=[("rows", figure(rows)), ("rows per second", figure(round(rows / seconds)))],
        )


class _Answers:
    """The columns of the output."""

    def __init__(self, model: Any, options: PredictOptions) -> None:
        self._model = model
        self._classifier = model.steps[-1][1]
        self._options = options
        self._loss = options.loss or decisions.LOSSES[0]
        if self._loss not in decisions.LOSSES:
            known = ", ".join(decisions.LOSSES)
            raise CommandError(f"--loss {self._loss} is for several labels per row; for one choose {known}", USAGE)
        self._tree = self._classifier.taxonomy_
        self._top = min(options.top, len(self._classifier.classes_))
        if self._tree is None and (options.nodes or self._loss != decisions.LOSSES[0]):
            asked = "--nodes" if options.nodes else f"--loss {self._loss}"
            raise CommandError(f"{asked} needs a tree, and {options.model} was trained without one", USAGE)
        if options.threshold is not None and (options.top > 1 or self._loss != decisions.LOSSES[0]):
            raise CommandError("--threshold cannot be combined with --top or --loss", USAGE)
        if options.top > 1 and self._loss != decisions.LOSSES[0]:
            raise CommandError("--top lists the most probable classes; it cannot be combined with --loss", USAGE)
        self.names = ["label", "probability"]
        if options.top > 1:
            self.names = [f"{name}_{k}" for k in range(1, self._top + 1) for name in ("label", "probability")]
        if options.nodes:
            self.names += [
                f"{name}_{k}" for k in range(1, self._tree.height + 1) for name in ("node", "node_probability")
            ]

    def of(self, X: Any) -> list[list[Any]]:
        """Classify a batch, and return the columns of its answers."""
        options, classes = self._options, self._classifier.classes_
        proba = self._model.predict_proba(X)
        rows = np.arange(len(proba))
        if options.threshold is not None:
            answers, likely = self._confident(proba)
            columns = [answers.tolist(), likely]
        elif self._loss != decisions.LOSSES[0]:
            answers = decisions.decide(proba, classes=classes, taxonomy=self._tree, loss=self._loss)
            place = np.searchsorted(classes, answers)
            columns = [answers.tolist(), proba[rows, place].tolist()]
        else:
            columns = []
            best = _most_probable(proba, self._top)
            for place in best.T:
                columns += [classes[place].tolist(), proba[rows, place].tolist()]
            answers = classes[best[:, 0]]
        if options.nodes:
            columns += self._levels(proba, answers)
        return columns

    def _node_proba(self, proba: Any) -> Any:
        return decisions.node_proba(proba, classes=self._classifier.classes_, taxonomy=self._tree)

    def _confident(self, proba: Any) -> tuple[Any, list[float]]:
        """Find the deepest node that is probable enough; without a tree the class, or None."""
        threshold, classes = self._options.threshold, self._classifier.classes_
        if self._tree is None:
            best = proba.argmax(axis=1)
            likely = proba[np.arange(len(proba)), best]
            return np.where(likely >= threshold, classes[best].astype(object), None), likely.tolist()
        answers = decisions.decide(proba, classes=classes, taxonomy=self._tree, confidence=threshold)
        nodes = self._tree.index(answers)
        return answers, self._node_proba(proba)[np.arange(len(proba)), nodes].tolist()

    def _levels(self, proba: Any, answers: Any) -> list[list[Any]]:
        """The path to the answer, with the probability of every node on it."""
        of_nodes = self._node_proba(proba)
        columns: list[list[Any]] = [[] for _ in range(2 * self._tree.height)]
        for row, answer in enumerate(answers.tolist()):
            path = self._tree.path(answer)
            for level in range(self._tree.height):
                inside = level < len(path)
                columns[2 * level].append(path[level] if inside else None)
                columns[2 * level + 1].append(float(of_nodes[row, self._tree.index(path[level])]) if inside else None)
        return columns


def _most_probable(proba: Any, count: int) -> Any:
    """Find the ``count`` most probable classes of each row, the most probable first."""
    if count == 1:
        return proba.argmax(axis=1)[:, None]
    best = np.argpartition(-proba, count - 1, axis=1)[:, :count]
    return np.take_along_axis(best, np.argsort(-np.take_along_axis(proba, best, 1), 1, kind="stable"), 1)


@contextmanager
def _writer(options: PredictOptions, names: list[str]) -> Iterator[Any]:
    """Yield a function that writes columns."""
    kind = options.output_format or _output_format(options.output)
    with _target(options.output) as file:
        if kind == "jsonl":

            def write(columns: list[list[Any]]) -> None:
                for row in zip(*columns, strict=True):
                    values = {name: _number(value) for name, value in zip(names, row, strict=True)}
                    file.write(json.dumps(values, ensure_ascii=False) + "\n")

        else:
            rows = csv.writer(file, delimiter="," if kind == "csv" else "\t", lineterminator="\n")
            rows.writerow(names)

            def write(columns: list[list[Any]]) -> None:
                shown = [[_shown(value) for value in column] for column in columns]
                rows.writerows(zip(*shown, strict=True))

        yield write
        file.flush()


def _output_format(path: str | None) -> str:
    """The format by the ending of the name: CSV, if it has none."""
    if path is None or not Path(path).suffix:
        return "csv"
    kind = format_of(path)
    if kind not in LINES:
        raise CommandError(f"{path}: answers are written as {', '.join(LINES)}; choose one by --output-format", USAGE)
    return kind


@contextmanager
def _target(path: str | None) -> Iterator[IO[str]]:
    """Open the standard output, or a file that appears when it is complete."""
    if path is None or path == "-":
        if _speaks_utf8(sys.stdout):
            yield sys.stdout
            return
        sys.stdout.flush()
        wrapped = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="")
        try:
            yield wrapped
        finally:
            wrapped.detach()
        return
    with writing(path), _opened(Path(path)) as raw:
        binary: Any = gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) if path.endswith(".gz") else raw
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="", write_through=True)
        yield text
        text.flush()
        text.detach()
        if binary is not raw:
            binary.close()


def _opened(path: Path) -> Any:
    """Open devices and pipes as they are; files appear when they are complete."""
    is_special = path.exists() and not path.is_file() and not path.is_dir()
    return path.open("wb") if is_special else replaced(path, "predict")


def _speaks_utf8(stream: Any) -> bool:
    """Whether a stream writes UTF-8, or has no bytes below it to write to."""
    return not hasattr(stream, "buffer") or (stream.encoding or "").lower().replace("-", "") == "utf8"


def _number(value: Any) -> Any:
    return float(format(value, _ROUNDING)) if isinstance(value, float) else value


def _shown(value: Any) -> Any:
    if value is None:
        return ""
    return format(value, _ROUNDING) if isinstance(value, float) else value


COMMAND = Command(
    PredictOptions,
    run,
    "Classify the rows of a file. They are read, classified and written in chunks, so memory does not grow with the "
    "file. Without -o the answers go to the standard output.",
)
