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
from taxolearn.report.set_scores import AT
from taxolearn.set_decisions import SET_LOSSES
from taxolearn.taxonomy.graph import ClassGraph

__all__ = [
    "SetAnswers",
    "rarest_labels",
    "read_label_cells",
    "score_rows",
    "sets_like",
    "unknown_label_remarks",
]


# -- Labels -----------------------------------------------------------------------------------------------------------


def read_label_cells(options: LabelOptions, batch: Batch, path: str) -> Labels:
    """The labels of all rows, tuples that may be empty, and the tree that they make or that a file has.

    Labels may lie on any node of the tree, so ``--inner-labels`` has nothing to say.
    """
    cells = batch.labels.tolist()
    flat = [(label, line) for cell, line in zip(cells, batch.lines, strict=True) for label in cell]
    if not flat:
        raise CommandError(f"{path}: no row has a label", BAD_DATA)
    if batch.graph is not None and options.taxonomy is None and not options.flat:
        return _labels_of_graph(batch, batch.graph)
    names, lines = (list(each) for each in zip(*flat, strict=True))
    single = replace(batch, X={}, labels=np.array(names), kept={}, lines=lines)
    found = read_labels(replace(options, inner_labels="below"), single, path, 1)
    are_numbers = found.taxonomy is not None and found.taxonomy.classes.dtype.kind != "U"

    def name_of(label: str) -> Any:
        name = tidy_path(label, found.separator)
        return int(name) if are_numbers else name

    named = _as_cells([tuple(dict.fromkeys(map(name_of, cell))) for cell in cells])
    notes = [note for note in found.notes if "inner node" not in note]
    notes += _notes_on_empty(cells)
    if max(map(len, cells)) == 1:
        notes.append("no row has more than one label; is --label-separator right, or --label meant?")
    return Labels(named, found.taxonomy, found.separator, np.ones(len(cells), dtype=np.int64), notes)


def _labels_of_graph(batch: Batch, graph: ClassGraph) -> Labels:
    """Labels whose graph is in the file, by which they imply those above them."""
    note = (
        f"labels make a graph of {graph.n_nodes:,} labels and {graph.n_edges:,} edges, in which they lean on their "
        "neighbours and imply those above them (--flat ignores it)"
    )
    cells = batch.labels.tolist()
    notes = [note, *_notes_on_empty(cells)]
    return Labels(batch.labels, None, None, np.ones(len(cells), dtype=np.int64), notes, graph)


def _notes_on_empty(cells: list[Any]) -> list[str]:
    without = sum(not cell for cell in cells)
    return [f"{without:,} of {len(cells):,} rows have no label at all, which the model learns too"] if without else []


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
        *(
            (f"precision of the first {k}" if k > 1 else "first label right", f"{scores[f'precision_at_{k}']:.2%}")
            for k in AT
            if f"precision_at_{k}" in scores
        ),
        *((f"nDCG of the first {k}", f"{scores[f'ndcg_at_{k}']:.2%}") for k in AT if f"ndcg_at_{k}" in scores),
        ("log loss per row, all labels", figure(scores["log_loss"])),
        ("AU(PRC), all labels pooled", f"{scores['pooled_area']:.4f}"),
        ("calibration error", f"{scores['calibration_error']:.3%}"),
        ("labels per row", f"{scores['true_labels_per_row']:.2f}, answered {scores['labels_per_row']:.2f}"),
    ]


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
        self,
        model: Any,
        separator: str,
        *,
        top: int,
        loss: str | None,
        threshold: float | None,
        thresholds: str | None,
        nodes: bool,
    ) -> None:
        self._model = model
        self._classifier = model.steps[-1][1]
        self._separator = separator
        self._loss, self._thresholds = loss, thresholds if threshold is None else threshold
        self._top = 0 if top == 1 else min(top, len(self._classifier.label_form_.columns))
        if nodes:
            raise CommandError("--nodes is for one label per row, and the model has several", USAGE)
        if loss is not None and loss not in SET_LOSSES:
            raise CommandError(
                f"--loss {loss} is for one label per row; for several choose {', '.join(SET_LOSSES)}", USAGE
            )
        if loss == "hierarchical" and self._classifier.taxonomy_ is None:
            raise CommandError("--loss hierarchical needs a tree, and the model was trained without one", USAGE)
        if sum([top > 1, loss is not None, threshold is not None, thresholds is not None]) > 1:
            raise CommandError("--top, --loss, --threshold and --thresholds cannot be combined", USAGE)
        if thresholds == "s-cut" and self._classifier.thresholds_ is None:
            raise CommandError(
                "--thresholds s-cut needs thresholds learned in training, and the model was trained with --variance",
                USAGE,
            )
        self.names = ["labels"]
        if self._top:
            self.names = [f"{name}_{k}" for k in range(1, self._top + 1) for name in ("label", "probability")]

    def of(self, X: Any) -> list[list[Any]]:
        """Classify a batch, and return the columns of its answers."""
        X = self._model[:-1].transform(X) if len(self._model.steps) > 1 else X
        if self._top:
            labels, proba = self._classifier.top_classes(X, self._top)
            return [column for k in range(self._top) for column in (labels[:, k].tolist(), proba[:, k].tolist())]
        sets = self._classifier.decide(X, self._loss, thresholds=self._thresholds)
        return [[self._separator.join(map(str, row)) for row in sets]]
