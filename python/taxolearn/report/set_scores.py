"""Scores of a classifier of several labels on labelled rows that come in parts, for commands and the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import entr, expit, logit

from taxolearn.report.scores import mean_interval, ratio_interval, share_interval
from taxolearn.targets import nodes_above, read_label_sets
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy

__all__ = [
    "AT",
    "RunningSetScores",
    "ScoreHistograms",
    "ScoredSets",
    "SetTally",
    "above_labels",
    "lowest",
    "structure_of",
]

AT = (1, 3, 5)  # numbers of labels of which the precision is told

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]

_STEP = 1 / 16  # of log odds, in histograms of probabilities
_HALF = 256  # cells on each side of probability 0.5
_CELLS = 20  # of the reliability curve


@dataclass(frozen=True)
class ScoredSets:
    """Rows with the labels that they have and those that are more probable than not.

    Attributes
    ----------
    truth, answer : ndarray of bool, shape (n, n_classes)
        Closed upwards under a tree.
    loss : ndarray of shape (n,)
        Log loss, summed over the labels that answers can have.
    unknown : ndarray of int, shape (n,)
        How many labels the model does not know.
    """

    truth: Booleans
    answer: Booleans
    loss: Floats
    unknown: NDArray[np.int64]


class SetTally:
    """Counts of right, wrong and missed labels, by label and by row, for one way to answer."""

    def __init__(self, width: int) -> None:
        self.right, self.wrong, self.missed = (np.zeros(width, dtype=np.int64) for _ in range(3))
        self._rows: list[NDArray[np.int64]] = []

    def add(self, truth: Booleans, answer: Booleans, columns: Any, unknown: Any) -> None:
        """Add rows; by row only the columns count, and labels that the model does not know are missed."""
        self.right += (truth & answer).sum(axis=0)
        self.wrong += (answer & ~truth).sum(axis=0)
        self.missed += (truth & ~answer).sum(axis=0)
        truth, answer = truth[:, columns], answer[:, columns]
        right = (truth & answer).sum(axis=1)
        self._rows.append(np.stack([right, answer.sum(axis=1) - right, truth.sum(axis=1) - right + unknown], axis=1))

    def rows(self) -> NDArray[np.int64]:
        """Right, wrong and missed labels of each row."""
        return np.concatenate(self._rows) if self._rows else np.empty((0, 3), dtype=np.int64)

    def label_f1(self) -> Floats:
        """F1 of each label, 0 where nothing is right."""
        return np.asarray(2 * self.right / np.maximum(2 * self.right + self.wrong + self.missed, 1))

    def summary(self, columns: Any) -> dict[str, Any]:
        """Figures between 0 and 1, but for the labels per row; macro F1 is over the labels that some row has."""
        right, wrong, missed = self.rows().T
        occurs = (self.right + self.missed)[columns] > 0
        sizes = 2 * right + wrong + missed
        micro = float(2 * right.sum() / max(1, sizes.sum()))
        return {
            "micro_f1": micro,
            "micro_f1_interval": ratio_interval(2 * right, sizes),
            "macro_f1": float(self.label_f1()[columns][occurs].mean()) if occurs.any() else None,
            "row_f1": float(np.where(sizes > 0, 2 * right / np.maximum(sizes, 1), 1.0).mean()),
            "hamming_loss": float((wrong + missed).sum() / (len(right) * len(occurs))),
            "subset_accuracy": float((wrong + missed == 0).mean()),
            "labels_per_row": float((right + wrong).mean()),
        }


class RunningSetScores:
    """Collects scores of a classifier of several labels on rows that come in parts.

    Truth and answers count with all labels above theirs that can be written. A label that the model does not know is
    one that it misses.

    Parameters
    ----------
    classifier : classifier with ``classes_``, ``taxonomy_``, ``graph_`` and ``label_form_``
        Fitted.
    """

    def __init__(self, classifier: Any) -> None:
        self.classes: NDArray[Any] = classifier.classes_
        self.columns: NDArray[np.int64] = classifier.label_form_.columns
        self.structure = structure_of(classifier)
        self._known = set(self.classes.tolist())
        self.tally = SetTally(len(self.classes))
        self._unknown = 0
        self._unknown_label: Any = None
        self._at = [k for k in AT if k == 1 or k <= len(self.columns)]
        self._hits, self._gains = np.zeros(len(self._at)), np.zeros(len(self._at))
        self._losses: list[Floats] = []
        self._pooled = ScoreHistograms(1)
        self._decisions = np.zeros((3, _CELLS))  # numbers of decisions, sums of probabilities, true labels

    def add(self, labels: Any, proba: Floats) -> ScoredSets:
        """Add rows by their labels, sets or an indicator, and the probabilities of all classes."""
        truth, unknown = self._read(labels)
        answer = proba > 0.5
        self.tally.add(truth, answer, self.columns, unknown)
        true, p = truth[:, self.columns], proba[:, self.columns]
        tiny = np.finfo(np.float64).tiny
        loss = -np.log(np.maximum(np.where(true, p, 1 - p), tiny)).sum(axis=1)
        self._losses.append(loss)
        self._add_ranks(true, p)
        self._pooled.add(true.reshape(-1, 1), p.reshape(-1, 1))
        cell = np.clip(np.ceil(p * _CELLS).astype(np.int64) - 1, 0, None).ravel()
        for total, values in zip(self._decisions, (None, p.ravel(), true.ravel()), strict=True):
            total += np.bincount(cell, weights=values, minlength=_CELLS)
        return ScoredSets(truth, answer, loss, unknown)

    def _read(self, labels: Any) -> tuple[Booleans, NDArray[np.int64]]:
        """The indicator of the labels that are known, closed upwards, and how many others each row has."""
        if hasattr(labels, "tocsr") or len(getattr(labels, "shape", ())) == 2:
            sets = read_label_sets(labels, self.structure, self.classes, columns=self.columns)[0]
            return sets.matrix().toarray() > 0, np.zeros(len(sets), dtype=np.int64)
        known = [tuple(label for label in row if label in self._known) for row in labels]
        unknown = np.array([len(row) - len(kept) for row, kept in zip(labels, known, strict=True)], dtype=np.int64)
        if unknown.any() and self._unknown_label is None:
            self._unknown_label = next(label for row in labels for label in row if label not in self._known)
        self._unknown += int(unknown.sum())
        closed = read_label_sets([*known, ()], self.structure, self.classes)[0].matrix()[:-1]
        return closed.toarray() > 0, unknown

    def _add_ranks(self, true: Booleans, p: Floats) -> None:
        order = np.argsort(-p, axis=1, kind="stable")[:, : max(self._at)]
        hits = np.take_along_axis(true, order, axis=1)
        discounts = 1 / np.log2(np.arange(2, max(self._at) + 2))
        best = np.concatenate([[1.0], np.cumsum(discounts)])  # a row without a label earns 0 / 1
        for place, k in enumerate(self._at):
            self._hits[place] += float(hits[:, :k].sum()) / k
            gains = hits[:, :k] @ discounts[:k]
            self._gains[place] += float((gains / best[np.minimum(true.sum(axis=1), k)]).sum())

    def reliability(self) -> tuple[Floats, Floats, Floats]:
        """Mean probability, frequency and number of the decisions in each cell that is not empty."""
        counts, promised, came = self._decisions[:, self._decisions[0] > 0]
        return promised / counts, came / counts, counts

    def losses(self) -> Floats:
        """Log loss of each row."""
        return np.concatenate(self._losses)

    def summary(self) -> dict[str, Any]:
        """All figures by name; rates are between 0 and 1, intervals have a confidence of 95 %.

        Baselines give all rows the same probabilities, the frequencies of the labels among these rows.
        """
        losses, n = self.losses(), sum(map(len, self._losses))
        supports = (self.tally.right + self.tally.missed)[self.columns]
        share = supports / n
        entropy = entr(share) + entr(1 - share)
        confidence, frequency, counts = self.reliability()
        found = self.tally.summary(self.columns)
        return {
            "rows": n,
            "labels": int((supports > 0).sum()),
            **found,
            "subset_accuracy_interval": share_interval(round(found["subset_accuracy"] * n), n),
            **{f"precision_at_{k}": float(hits) / n for k, hits in zip(self._at, self._hits, strict=True)},
            **{f"ndcg_at_{k}": float(gain) / n for k, gain in zip(self._at, self._gains, strict=True) if k > 1},
            "log_loss": float(losses.mean()),
            "log_loss_interval": mean_interval(losses),
            "log_loss_per_label": float(losses.mean()) / len(self.columns),
            "pooled_area": float(self._pooled.areas()[0]),
            "calibration_error": float(np.average(np.abs(confidence - frequency), weights=counts)),
            "true_labels_per_row": float(supports.sum() + self._unknown) / n,
            "baseline_log_loss": float(entropy.sum()),
            "baseline_precision_at_1": float(share.max()),
            "baseline_label": self.classes[self.columns[supports.argmax()]].item(),
            "unknown_labels": self._unknown,
            "unknown_label": self._unknown_label,
        }


class ScoreHistograms:
    """How many rows have a label or not, by its probability, in cells of equal width in log odds.

    Curves over thresholds follow from them, however many rows there are.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._true, self._false = (np.zeros((width, 2 * _HALF), dtype=np.int64) for _ in range(2))

    def add(self, truth: Booleans, proba: Floats) -> None:
        """Add rows."""
        with np.errstate(divide="ignore"):
            # Cell k holds log odds above (k - _HALF) * _STEP.
            place = np.clip(np.ceil(logit(proba) / _STEP) - 1 + _HALF, 0, 2 * _HALF - 1).astype(np.int64)
        place += 2 * _HALF * np.arange(self._width)
        for counts, chosen in ((self._true, truth), (self._false, ~truth)):
            counts += np.bincount(place[chosen], minlength=counts.size).reshape(counts.shape)

    def areas(self) -> Floats:
        """Area under the precision-recall curve of each label by steps (average precision); NaN where none is true.

        Probabilities in the same cell count as equal.
        """
        hits, answered = (np.cumsum(each[:, ::-1], axis=1) for each in (self._true, self._true + self._false))
        parts = self._true[:, ::-1] * hits / np.maximum(answered, 1)
        positives = hits[:, -1]
        return np.asarray(np.where(positives > 0, parts.sum(axis=1) / np.maximum(positives, 1), np.nan))

    def by_threshold(self, columns: Any) -> dict[str, list[float]]:
        """Scores if labels above a threshold are answered, the same for all labels: at thresholds of 1 to 99 %."""
        wanted = np.unique(np.rint(logit(np.linspace(0.01, 0.99, 99)) / _STEP).astype(np.int64)) + _HALF
        true, false = self._true[columns].astype(np.int64), self._false[columns].astype(np.int64)
        above = [np.cumsum(each[:, ::-1], axis=1)[:, ::-1][:, wanted] for each in (true, false)]
        positives, n = true.sum(axis=1), int(true[0].sum() + false[0].sum())
        right, wrong = above
        f1 = 2 * right / np.maximum(right + wrong + positives[:, None], 1)
        hits, answered = right.sum(axis=0), (right + wrong).sum(axis=0)
        return {
            "threshold": expit((wanted - _HALF) * _STEP).tolist(),
            "micro_f1": (2 * hits / np.maximum(answered + positives.sum(), 1)).tolist(),
            "macro_f1": f1[positives > 0].mean(axis=0).tolist() if (positives > 0).any() else [0.0] * len(wanted),
            "precision": np.where(answered > 0, hits / np.maximum(answered, 1), 1.0).tolist(),
            "recall": (hits / max(1, int(positives.sum()))).tolist(),
            "labels_per_row": (answered / n).tolist(),
        }


def lowest(sets: Booleans, columns: Any, above: Any) -> Booleans:
    """Of each row the labels among the columns that no other one of them implies.

    ``above`` is the matrix of ``nodes_above``, None without a tree.
    """
    kept = np.zeros(sets.shape[1], dtype=np.bool_)
    kept[columns] = True
    sets = sets & kept
    if above is None:
        return sets
    strictly = above - sp.eye_array(above.shape[0], dtype=np.int8, format="csr")
    implied = sp.csr_array(sets.astype(np.int32)) @ strictly.astype(np.int32)
    return np.asarray(sets & ~(implied.toarray() > 0))


def structure_of(classifier: Any) -> Taxonomy | ClassGraph | None:
    """The tree or the graph of a classifier's labels."""
    graph: ClassGraph | None = getattr(classifier, "graph_", None)
    tree: Taxonomy | None = classifier.taxonomy_
    return tree if graph is None else graph


def above_labels(structure: Taxonomy | ClassGraph | None, classes: NDArray[Any]) -> Any:
    """Which labels are above which, None without a tree or graph."""
    return None if structure is None else nodes_above(structure, classes)
