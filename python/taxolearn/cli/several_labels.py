"""Several labels per row at the command line: cells that hold them, scores of label sets, and answers to be written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn.cli.inputs import Batch, tidy_path
from taxolearn.cli.labels import LabelOptions, Labels, read_labels
from taxolearn.cli.main import BAD_DATA, USAGE, CommandError, figure
from taxolearn.set_decisions import SET_LOSSES
from taxolearn.targets import nodes_above, read_label_sets

__all__ = [
    "RunningSetScores",
    "SetAnswers",
    "rarest_labels",
    "read_label_cells",
    "score_rows",
    "sets_like",
    "unknown_label_remarks",
]

_AT = (1, 3, 5)  # numbers of labels of which the precision is told


# -- Labels -----------------------------------------------------------------------------------------------------------


def read_label_cells(options: LabelOptions, batch: Batch, path: str) -> Labels:
    """The labels of all rows, tuples that may be empty, and the tree that they make or that a file has.

    Labels may lie on any node of the tree, so ``--inner-labels`` has nothing to say.
    """
    cells = batch.labels.tolist()
    flat = [(label, line) for cell, line in zip(cells, batch.lines, strict=True) for label in cell]
    if not flat:
        raise CommandError(f"{path}: no row has a label", BAD_DATA)
    names, lines = (list(each) for each in zip(*flat, strict=True))
    single = replace(batch, X={}, labels=np.array(names), kept={}, lines=lines)
    found = read_labels(replace(options, inner_labels="below"), single, path, 1)
    are_numbers = found.taxonomy is not None and found.taxonomy.classes.dtype.kind != "U"

    def name_of(label: str) -> Any:
        name = tidy_path(label, found.separator)
        return int(name) if are_numbers else name

    named = _as_cells([tuple(dict.fromkeys(map(name_of, cell))) for cell in cells])
    notes = [note for note in found.notes if "inner node" not in note]
    without = sum(not cell for cell in cells)
    if without:
        notes.append(f"{without:,} of {len(cells):,} rows have no label at all, which the model learns too")
    if max(map(len, cells)) == 1:
        notes.append("no row has more than one label; is --label-separator right, or --label meant?")
    return Labels(named, found.taxonomy, found.separator, np.ones(len(cells), dtype=np.int64), notes)


def _as_cells(sets: list[tuple[Any, ...]]) -> NDArray[Any]:
    """An array of objects that are tuples."""
    out = np.empty(len(sets), dtype=object)
    out[:] = sets
    return out


def rarest_labels(cells: NDArray[Any]) -> NDArray[Any]:
    """Of each row the label that has the fewest rows; empty where there is none."""
    counts = Counter(label for cell in cells for label in cell)
    return np.array([str(min(cell, key=counts.__getitem__)) if cell else "" for cell in cells])


def sets_like(classes: NDArray[Any], batch: Batch, path: str) -> list[tuple[Any, ...]]:
    """Labels of a batch with the type of a model's classes."""
    if classes.dtype.kind == "U":
        return list(batch.labels)
    for line, cell in zip(batch.lines, batch.labels, strict=True):
        for label in cell:
            if not label.lstrip("-").isdecimal():
                raise CommandError(f"{path}, line {line}: the label is {label!r}, expected a number as in training")
    return [tuple(map(int, cell)) for cell in batch.labels]


# -- Scores -----------------------------------------------------------------------------------------------------------


class RunningSetScores:
    """Scores of a classifier of several labels on rows that come in parts.

    Truth and answers count with all labels above theirs that can be written. A label that the model does not know is
    one that it misses.
    """

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        self._known = set(classifier.classes_.tolist())
        tree = classifier.taxonomy_
        self._above = None if tree is None else nodes_above(tree, classifier.classes_)
        self._form = replace(classifier.label_form_, kind="sparse", library="", is_closed=True)
        width = len(self._form.columns)
        self._right, self._wrong, self._missed = (np.zeros(width, dtype=np.int64) for _ in range(3))
        self._rows = self._exact = self._unknown = 0
        self._unknown_label: Any = None
        self._hits = dict.fromkeys(_AT, 0.0)
        self._loss = 0.0

    def add(self, labels: Any, X: Any) -> None:
        """Score rows of transformed inputs."""
        model, form = self._classifier, self._form
        sets = [tuple(label for label in cell if label in self._known) for cell in labels]
        unknown = np.array([len(cell) - len(kept) for cell, kept in zip(labels, sets, strict=True)])
        if unknown.any() and self._unknown_label is None:
            self._unknown_label = next(label for cell in labels for label in cell if label not in self._known)
        closed = read_label_sets([*sets, ()], model.taxonomy_, model.classes_)[0].matrix()[:-1]
        proba = model.predict_proba(X)[:, form.columns]
        truth = form.write(closed, model.classes_, self._above).toarray() > 0
        chosen = proba > 0.5
        self._right += (truth & chosen).sum(axis=0)
        self._wrong += (~truth & chosen).sum(axis=0)
        self._missed += (truth & ~chosen).sum(axis=0)
        self._exact += int(((truth == chosen).all(axis=1) & (unknown == 0)).sum())
        self._unknown += int(unknown.sum())
        self._rows += len(proba)
        order = np.argsort(-proba, axis=1, kind="stable")[:, : max(_AT)]
        hits = np.take_along_axis(truth, order, axis=1)
        for k in _AT:
            self._hits[k] += float(hits[:, :k].sum()) / k
        tiny = np.finfo(np.float64).tiny
        self._loss -= float(np.log(np.maximum(np.where(truth, proba, 1 - proba), tiny)).sum())

    def summary(self) -> dict[str, Any]:
        """All figures; rates are between 0 and 1."""
        right, wrong, missed = self._right, self._wrong, self._missed
        occurs = right + missed > 0
        f1 = 2 * right / np.maximum(2 * right + wrong + missed, 1)
        all_missed = int(missed.sum()) + self._unknown
        errors = int(wrong.sum()) + all_missed
        total = max(1, 2 * int(right.sum()) + errors)
        return {
            "rows": self._rows,
            "labels": int(occurs.sum()),
            "micro_f1": 2 * int(right.sum()) / total,
            "macro_f1": float(f1[occurs].mean()) if occurs.any() else None,
            "hamming_loss": errors / (self._rows * len(right)),
            "subset_accuracy": self._exact / self._rows,
            **{f"precision_at_{k}": self._hits[k] / self._rows for k in _AT},
            "log_loss": self._loss / self._rows,
            "unknown_labels": self._unknown,
            "unknown_label": self._unknown_label,
        }


def score_rows(scores: dict[str, Any]) -> list[tuple[str, str]]:
    """What is printed of a summary."""
    return [
        ("micro F1", f"{scores['micro_f1']:.2%}"),
        (
            f"macro F1 of the {scores['labels']:,} labels there",
            "-" if scores["macro_f1"] is None else f"{scores['macro_f1']:.2%}",
        ),
        ("rows with all labels right", f"{scores['subset_accuracy']:.2%}"),
        ("labels wrong (Hamming loss)", f"{scores['hamming_loss']:.3%}"),
        *((f"precision of the first {k}" if k > 1 else "first label right", _at(scores, k)) for k in _AT),
        ("log loss per row, all labels", figure(scores["log_loss"])),
    ]


def _at(scores: dict[str, Any], k: int) -> str:
    return f"{scores[f'precision_at_{k}']:.2%}"


def unknown_label_remarks(scores: dict[str, Any]) -> list[str]:
    """Say so if labels occurred that the model does not know."""
    if not scores["unknown_labels"]:
        return []
    found = f"{scores['unknown_labels']:,} labels are unknown to the model, such as {scores['unknown_label']!r}"
    return [f"{found}; they count as missed"]


# -- Answers ----------------------------------------------------------------------------------------------------------


class SetAnswers:
    """The columns of the output of ``predict``."""

    def __init__(
        self, model: Any, separator: str, *, top: int, loss: str | None, threshold: float | None, nodes: bool
    ) -> None:
        self._model = model
        self._classifier = model.steps[-1][1]
        self._separator = separator
        self._loss, self._threshold = loss, threshold
        self._top = 0 if top == 1 else min(top, len(self._classifier.label_form_.columns))
        if nodes:
            raise CommandError("--nodes is for one label per row, and the model has several", USAGE)
        if loss is not None and loss not in SET_LOSSES:
            raise CommandError(
                f"--loss {loss} is for one label per row; for several choose {', '.join(SET_LOSSES)}", USAGE
            )
        if loss == "hierarchical" and self._classifier.taxonomy_ is None:
            raise CommandError("--loss hierarchical needs a tree, and the model was trained without one", USAGE)
        if sum([top > 1, loss is not None, threshold is not None]) > 1:
            raise CommandError("--top, --loss and --threshold cannot be combined", USAGE)
        self.names = ["labels"]
        if self._top:
            self.names = [f"{name}_{k}" for k in range(1, self._top + 1) for name in ("label", "probability")]

    def of(self, X: Any) -> list[list[Any]]:
        """Classify a batch, and return the columns of its answers."""
        X = self._model[:-1].transform(X) if len(self._model.steps) > 1 else X
        if self._top:
            labels, proba = self._classifier.top_classes(X, self._top)
            return [column for k in range(self._top) for column in (labels[:, k].tolist(), proba[:, k].tolist())]
        sets = self._classifier.decide(X, self._loss, thresholds=self._threshold)
        return [[self._separator.join(map(str, row)) for row in sets]]
