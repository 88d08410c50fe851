"""``taxolearn evaluate``: how good a model is on labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taxolearn import decisions, metrics
from taxolearn.cli.errors import BAD_DATA, CommandError
from taxolearn.cli.inputs import DataFile, read_batches, reading
from taxolearn.cli.models import load_model
from taxolearn.cli.output import Page, figure

__all__ = ["EvaluateOptions", "Gathered", "run"]

_TOP = 5
_REJECTED = 0.1
_BINS = 15


@dataclass(frozen=True)
class EvaluateOptions:
    """Arguments of the command."""

    model: str
    data: DataFile
    threads: int | None
    chunk: int
    json: bool


def run(options: EvaluateOptions) -> None:
    """Predict chunk by chunk, then score."""
    page = Page(options.json)
    model, schema = load_model(options.model, options.threads)
    with page.stage(f"Predicting {options.data.path}") as count:
        gathered = Gathered(model.steps[-1][1])
        for batch in read_batches(options.data, schema, rows=options.chunk):
            with reading(options.data.path, batch.lines):
                gathered.add(batch.labels, model.predict_log_proba(batch.X), options.data.path, batch.lines)
            count(len(batch))
    if gathered.rows == 0:
        raise CommandError(f"{options.data.path}: the file has no rows", BAD_DATA)
    figures = gathered.scores()
    rows = [
        ("rows", figure(figures["rows"])),
        ("accuracy", _percent(figures["accuracy"])),
        ("right class among the first five", _percent(figures["top5_accuracy"])),
        ("macro F1", _percent(figures["macro_f1"])),
        ("log loss", figure(figures["log_loss"])),
        ("calibration error", _percent(figures["calibration_error"])),
        (f"error when the least sure {_REJECTED:.0%} are set aside", _percent(figures["error_at_10_percent_reject"])),
    ]
    if figures["taxo_loss"] is not None:
        rows += [
            ("taxo-loss, most probable class", figure(figures["taxo_loss"])),
            ("taxo-loss, --loss taxo", figure(figures["taxo_loss_decided"])),
            ("accuracy of the parent", _percent(figures["parent_accuracy"])),
        ]
    remarks = []
    if figures["rows_of_unknown_classes"]:
        remarks.append(
            f"{figures['rows_of_unknown_classes']} rows have classes that the model does not know, or inner nodes for "
            "labels; they count as errors in accuracies and F1, and are left out of all other figures"
        )
    page.result(
        {"model": options.model, "data": options.data.path, **figures},
        title="On these rows",
        rows=rows,
        remarks=remarks,
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


class Gathered:
    """What scores need to know of every row: a few numbers, whatever the number of classes."""

    def __init__(self, classifier: Any) -> None:
        self._classes = classifier.classes_
        self._tree = classifier.taxonomy_
        self._parts: list[dict[str, Any]] = []
        self.rows = 0

    def add(self, labels: Any, log_proba: Any, path: str, lines: list[int]) -> None:
        classes = self._classes
        if classes.dtype.kind in "iuf" and labels.dtype.kind == "U":
            labels = _as_numbers(labels, path, lines)
        elif classes.dtype.kind == "U" and labels.dtype.kind != "U":
            labels = labels.astype(str)
        place = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        is_known = classes[place] == labels
        rows = np.arange(len(labels))
        true = log_proba[rows, place]
        proba = np.exp(log_proba)
        best = proba.argmax(axis=1)
        part = {
            "truth": labels,
            "answer": classes[best],
            "known": is_known,
            "loss": np.where(is_known, -true, np.nan),
            "confidence": proba[rows, best],
            "in_top": is_known & ((log_proba > true[:, None]).sum(axis=1) < _TOP),
        }
        if self._tree is not None:
            part["decided"] = decisions.decide(proba, classes=classes, taxonomy=self._tree, loss="taxo")
        self._parts.append(part)
        self.rows += len(labels)

    def scores(self) -> dict[str, Any]:
        whole = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        truth, answer, known = whole["truth"], whole["answer"], whole["known"]
        curve = metrics.error_reject_curve(truth, answer, whole["confidence"])
        out = {
            "rows": self.rows,
            "rows_of_unknown_classes": int((~known).sum()),
            "accuracy": float(np.mean(truth == answer)),
            "top5_accuracy": float(np.mean(whole["in_top"])),
            "macro_f1": metrics.f1(truth, answer, average="macro", labels=np.unique(truth)),
            "log_loss": float(np.mean(whole["loss"][known])) if known.any() else None,
            "calibration_error": _calibration(whole["confidence"][known], (truth == answer)[known]),
            "error_at_10_percent_reject": float(curve.error[curve.rejected <= _REJECTED][-1]),
            "taxo_loss": None,
            "taxo_loss_decided": None,
            "parent_accuracy": None,
        }
        if self._tree is not None and known.any():
            tree = self._tree
            out |= {
                "taxo_loss": metrics.taxo_loss(truth[known], answer[known], taxonomy=tree),
                "taxo_loss_decided": metrics.taxo_loss(truth[known], whole["decided"][known], taxonomy=tree),
                "parent_accuracy": metrics.parent_accuracy(truth[known], answer[known], taxonomy=tree),
            }
        return out


def _as_numbers(labels: Any, path: str, lines: list[int]) -> Any:
    for line, label in zip(lines, labels.tolist(), strict=True):
        if not label.lstrip("-").isdecimal():
            raise CommandError(f"{path}, line {line}: the label is {label!r}, expected a number as in training")
    return labels.astype(np.int64)


def _calibration(confidence: Any, hits: Any) -> float | None:
    """Mean distance of confidence and accuracy over bins of equal size."""
    if len(confidence) == 0:
        return None
    parts = np.array_split(np.argsort(confidence, kind="stable"), min(_BINS, len(confidence)))
    return float(sum(abs(hits[part].sum() - confidence[part].sum()) for part in parts) / len(confidence))
