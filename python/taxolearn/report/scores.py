"""Scores of a classifier on labelled rows that come in parts: one definition for every command and the report."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn import decisions, metrics
from taxolearn.taxonomy.tree import Taxonomy

__all__ = [
    "REJECTED",
    "TOP",
    "RunningScores",
    "ScoredRows",
    "error_reject_curve",
    "mean_interval",
    "ratio_interval",
    "reliability_curve",
    "share_interval",
]

TOP = 5  # classes among which the right one is looked for
REJECTED = 0.1  # share of the least sure rows that are set aside
_DEVIATIONS = 1.959964  # of a normal distribution: half the width of the interval that holds 95 %


@dataclass(frozen=True)
class ScoredRows:
    """What scores need to know about rows: a few numbers per row, however many classes there are.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        True labels as they were given.
    truth : ndarray of int, shape (n,)
        The number of the true class, -1 for labels that the model does not know.
    answer : ndarray of int, shape (n,)
        The number of the most probable class.
    confidence : ndarray of float, shape (n,)
        Its probability.
    loss : ndarray of float, shape (n,)
        Log loss; NaN for unknown labels.
    rank : ndarray of int, shape (n,)
        How many classes are more probable than the true one; the number of classes for unknown labels.
    decided : ndarray of int, shape (n,)
        The class of least expected taxo-loss; without a tree, the answer.
    """

    labels: NDArray[Any]
    truth: NDArray[np.intp]
    answer: NDArray[np.intp]
    confidence: NDArray[np.float64]
    loss: NDArray[np.float64]
    rank: NDArray[np.intp]
    decided: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the model knows the true class."""
        return self.truth >= 0

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the answer is right."""
        return np.equal(self.truth, self.answer)

    @classmethod
    def of(
        cls, labels: NDArray[Any], log_proba: NDArray[np.float64], classes: NDArray[Any], taxonomy: Taxonomy | None
    ) -> ScoredRows:
        """Score rows; ``classes`` are sorted, as the classes of classifiers are."""
        place = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        known = classes[place] == labels
        rows = np.arange(len(labels))
        proba = np.exp(log_proba)
        answer = proba.argmax(axis=1)
        loss = np.full(len(labels), np.nan)
        if known.any():
            loss[known] = metrics.log_losses(labels[known], log_proba=log_proba[known], classes=classes)
        decided = answer
        if taxonomy is not None:
            answers = decisions.decide(proba, classes=classes, taxonomy=taxonomy, loss="taxo")
            decided = np.searchsorted(classes, answers)
        better = (log_proba > log_proba[rows, place][:, None]).sum(axis=1)
        return cls(
            labels=labels,
            truth=np.where(known, place, -1),
            answer=answer,
            confidence=proba[rows, answer],
            loss=loss,
            rank=np.where(known, better, len(classes)),
            decided=decided,
        )


class RunningScores:
    """Collects scored rows, part by part, and sums them up.

    Parameters
    ----------
    classifier : classifier with ``classes_`` and ``taxonomy_``
        Fitted.
    """

    def __init__(self, classifier: Any) -> None:
        self._classes: NDArray[Any] = classifier.classes_
        self._taxonomy: Taxonomy | None = classifier.taxonomy_
        self._parts: list[ScoredRows] = []

    def add(self, labels: NDArray[Any], log_proba: NDArray[np.float64]) -> ScoredRows:
        """Add rows by their true labels and the logarithms of the probabilities of all classes."""
        part = ScoredRows.of(labels, log_proba, self._classes, self._taxonomy)
        self._parts.append(part)
        return part

    def rows(self) -> ScoredRows:
        """All rows so far, of which there must be some."""
        joined = {
            each.name: np.concatenate([getattr(part, each.name) for part in self._parts]) for each in fields(ScoredRows)
        }
        return ScoredRows(**joined)

    def summary(self) -> dict[str, Any]:
        """The scores by name.

        Rows of unknown classes count as errors in accuracies, F1 and the error after rejecting; they are left out of
        all other scores, which are None if no row is left. Intervals have a confidence of 95 %. Baselines say the same
        of every row: the class that is most frequent in these rows, or the frequencies of the classes in these rows.
        """
        rows = self.rows()
        known = rows.known
        curve = error_reject_curve(rows)
        out: dict[str, Any] = {
            "rows": len(rows),
            "rows_of_unknown_classes": int((~known).sum()),
            "unknown_class": None if known.all() else rows.labels[~known][0].item(),
            "accuracy": float(rows.correct.mean()),
            "accuracy_interval": share_interval(int(rows.correct.sum()), len(rows)),
            "baseline_accuracy": None,
            "baseline_class": None,
            f"top{TOP}_accuracy": float((rows.rank < TOP).mean()),
            "macro_f1": metrics.f1(
                rows.labels, self._classes[rows.answer], average="macro", labels=np.unique(rows.labels)
            ),
            "log_loss": float(rows.loss[known].mean()) if known.any() else None,
            "log_loss_interval": mean_interval(rows.loss[known]),
            "baseline_log_loss": None,
            "calibration_error": reliability_curve(rows).calibration_error if known.any() else None,
            f"error_at_{REJECTED * 100:.0f}_percent_reject": float(curve.error[curve.rejected <= REJECTED][-1]),
            "taxo_loss": None,
            "taxo_loss_decided": None,
            "parent_accuracy": None,
        }
        if known.any():
            counts = np.bincount(rows.truth[known])
            shares = counts[counts > 0] / counts.sum()
            out |= {
                "baseline_accuracy": float(counts.max() / len(rows)),
                "baseline_class": self._classes[counts.argmax()].item(),
                "baseline_log_loss": float((shares * np.log(1 / shares)).sum()),
            }
        if self._taxonomy is not None and known.any():
            truth, answer, decided = (self._classes[each[known]] for each in (rows.truth, rows.answer, rows.decided))
            out |= {
                "taxo_loss": metrics.taxo_loss(truth, answer, taxonomy=self._taxonomy),
                "taxo_loss_decided": metrics.taxo_loss(truth, decided, taxonomy=self._taxonomy),
                "parent_accuracy": metrics.parent_accuracy(truth, answer, taxonomy=self._taxonomy),
            }
        return out


def error_reject_curve(rows: ScoredRows) -> metrics.ErrorRejectCurve:
    """Error among the accepted rows; rows of unknown classes are errors."""
    return metrics.error_reject_curve(rows.truth, rows.answer, rows.confidence)


def reliability_curve(rows: ScoredRows) -> metrics.ReliabilityCurve:
    """Accuracy by confidence, over the rows of known classes."""
    return metrics.reliability_of_answers(rows.confidence[rows.known], rows.correct[rows.known])


def share_interval(hits: int, count: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a probability, after ``hits`` in ``count`` independent trials."""
    share, spread = hits / count, _DEVIATIONS**2 / count
    centre = (share + spread / 2) / (1 + spread)
    width = np.sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)
    return max(float(centre - width), 0.0), min(float(centre + width), 1.0)


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float] | None:
    """Normal interval of 95 % for the mean of losses, none of them negative; None if it cannot be told."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    mean, width = float(values.mean()), _DEVIATIONS * float(values.std(ddof=1)) / np.sqrt(len(values))
    return max(mean - width, 0.0), float(mean + width)


def ratio_interval(parts: NDArray[np.int64], wholes: NDArray[np.int64]) -> tuple[float, float] | None:
    """Normal interval of 95 % for a sum over rows divided by another, between 0 and 1; None if it cannot be told.

    By linearization (the delta method): to first order the ratio moves with the mean of ``parts - ratio * wholes``.
    """
    total = float(wholes.sum())
    if len(parts) < 2 or total == 0:
        return None
    ratio = float(parts.sum()) / total
    residuals = parts - ratio * wholes
    width = _DEVIATIONS * float(np.sqrt((residuals**2).sum() * len(parts) / (len(parts) - 1))) / total
    return max(ratio - width, 0.0), min(ratio + width, 1.0)
