"""What a report says, as plain numbers and texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn.estimators.explain import NodeExplanation
from taxolearn.report.description import cross_validated_log_loss, describe, explained_by
from taxolearn.report.page_data import (
    DOCUMENTS,
    MISTAKES,
    PageData,
    documents_note,
    flat_tree,
    learned_variances,
    reason_of,
    rounded,
    shortened,
)
from taxolearn.report.scores import TOP, RunningScores, ScoredRows, error_reject_curve, reliability_curve
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["Findings", "Rows", "collect_findings"]

_CURVE_POINTS = 200
UNKNOWN = "rows of unknown classes"


@dataclass(frozen=True)
class Rows:
    """Some labelled rows, and what the model says about them.

    Attributes
    ----------
    truth : ndarray
        Labels.
    log_proba : ndarray of shape (n, n_classes)
        Logarithms of the probabilities.
    texts : list of str
        What the rows say, for a reader; empty where there is nothing to be read.
    ids : list of str
        Names or numbers by which the rows are found in their file.
    explain : callable
        Gives explanations of rows, by their numbers, for nodes: as ``KernelLogisticClassifier.explain``. None if the
        model is not linear.
    """

    truth: NDArray[Any]
    log_proba: NDArray[np.float64]
    texts: list[str]
    ids: list[str]
    explain: Callable[[list[int], list[Any]], list[list[NodeExplanation]]] | None


@dataclass(kw_only=True)
class Findings(PageData):
    """Everything on the page; the fields are those of its JSON.

    ``rows`` counts all rows, also those of unknown classes. ``pairs`` are the nodes of truth and answer with the number
    of rows, the most frequent first. ``documents`` are ids, texts, nodes of truth and answer, and probabilities of the
    answers.
    """

    curve: dict[str, list[float]]


def collect_findings(
    classifier: Any,
    rows: Iterable[Rows],
    title: str,
    facts: list[tuple[str, str]] | None = None,
    *,
    id_name: str = "row",
    training_rows: int | None = None,
) -> Findings:
    """Collect everything that a report shows, in one pass over the rows.

    Parameters
    ----------
    classifier : classifier with ``classes_`` and ``taxonomy_``
        Fitted. Those of this package are described.
    rows : iterable of Rows
        The rows in parts, which are read once.
    title : str
        Headline of the page.
    facts : list of pairs of str, optional
        More lines for the summary.
    id_name : str
        What the ids of the rows are.
    training_rows : int, optional
        How many rows the model was fitted to: how sure its cross-validated log loss is.
    """
    collected = _Collected(classifier)
    for part in rows:
        collected.add(part)
    if collected.count == 0:
        raise ValueError("there are no rows of known classes to report on")
    return collected.findings(title, facts or [], id_name, training_rows)


class _Collected:
    """Counts of nodes and of pairs of nodes, scores, and the rows worth showing."""

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        self._classes = classifier.classes_
        tree = classifier.taxonomy_
        self._tree: Taxonomy = flat_tree(self._classes) if tree is None else tree
        self._is_tree = tree is not None
        # The node of every class.
        self._nodes_of = np.arange(1, len(self._classes) + 1) if tree is None else tree.index(self._classes)
        self._scores = RunningScores(classifier)
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._mistakes: list[tuple[float, dict[str, Any]]] = []
        self._documents: list[list[Any]] = []
        self._wrong = 0
        self.count = 0

    def add(self, rows: Rows) -> None:
        if len(rows.truth) == 0:
            return
        scored = self._scores.add(rows.truth, rows.log_proba)
        known = np.flatnonzero(scored.known)
        truth, answer = self._nodes_of[scored.truth], self._nodes_of[scored.answer]
        self._pairs.update(zip(truth[known].tolist(), answer[known].tolist(), strict=True))
        self._keep_documents(rows, scored, known, truth, answer)
        self._keep_mistakes(rows, scored, known, truth, answer)
        self.count += len(known)

    def _keep_documents(self, rows: Rows, scored: ScoredRows, known: Any, truth: Any, answer: Any) -> None:
        """Keep the first rows, and the first of those with wrong answers."""
        is_wrong = ~scored.correct[known]
        wrong = self._wrong + is_wrong.cumsum()
        kept = (self.count + np.arange(len(known)) < DOCUMENTS) | (is_wrong & (wrong <= DOCUMENTS))
        for row in known[kept].tolist():
            text, confidence = shortened(rows.texts[row]), rounded(scored.confidence[row])
            self._documents.append([rows.ids[row], text, int(truth[row]), int(answer[row]), confidence])
        self._wrong += int(is_wrong.sum())

    def _keep_mistakes(self, rows: Rows, scored: ScoredRows, known: Any, truth: Any, answer: Any) -> None:
        """Keep the most confident mistakes."""
        confidence = scored.confidence
        wrong = known[~scored.correct[known]]
        wrong = wrong[np.argsort(-confidence[wrong], kind="stable")][:MISTAKES]
        if len(self._mistakes) >= MISTAKES:
            wrong = wrong[confidence[wrong] > self._mistakes[-1][0]]
        reasons = self._reasons(rows, wrong, truth[wrong], answer[wrong])
        for row, reason in zip(wrong.tolist(), reasons, strict=True):
            entry = {
                "id": rows.ids[row],
                "text": shortened(rows.texts[row]),
                "truth": int(truth[row]),
                "answer": int(answer[row]),
                "confidence": rounded(confidence[row]),
                "true": rounded(np.exp(-scored.loss[row])),
                "reasons": reason,
            }
            self._mistakes.append((float(confidence[row]), entry))
        self._mistakes = sorted(self._mistakes, key=lambda each: -each[0])[:MISTAKES]

    def _reasons(self, rows: Rows, numbers: Any, truth: Any, answer: Any) -> list[list[dict[str, Any]]]:
        """Find the features that speak for answer and truth, at the nodes where their paths part."""
        if rows.explain is None or len(numbers) == 0:
            return [[] for _ in numbers]
        chosen = [int(number) for number in numbers]
        answers = rows.explain(chosen, [self._name(k) for k in answer])
        truths = rows.explain(chosen, [self._name(k) for k in truth])
        out = []
        for for_answer, for_truth in zip(answers, truths, strict=True):
            shared = 0
            while (
                shared < min(len(for_answer), len(for_truth)) - 1 and for_answer[shared].node == for_truth[shared].node
            ):
                shared += 1
            out.append([reason_of(for_answer[shared]), reason_of(for_truth[shared])])
        return out

    def _name(self, node: int) -> Any:
        """The name of a node as the classifier knows it."""
        return self._tree.names[node] if self._is_tree else self._classes[node - 1].item()

    # -- Putting it together ------------------------------------------------------------------------------------------

    def findings(self, title: str, facts: list[tuple[str, str]], id_name: str, training_rows: int | None) -> Findings:
        rows, scores = self._scores.rows(), self._scores.summary()
        promised = cross_validated_log_loss(self._classifier)
        return Findings(
            title=title,
            summary=[*self._summary(scores), *facts],
            notes=_notes(scores, promised),
            estimate=_estimate(scores, promised, training_rows),
            rows=len(rows),
            nodes=self._nodes(),
            pairs=[[*pair, count] for pair, count in self._pairs.most_common()],
            curve=_curve(rows),
            reliability=_reliability(rows),
            variances=learned_variances(self._classifier),
            model=describe(self._classifier),
            id_name=id_name,
            mistakes=[entry for _, entry in self._mistakes],
            documents=self._documents,
            documents_note=documents_note(len(self._documents), self.count, self._wrong, DOCUMENTS),
            mistakes_note=explained_by(self._classifier)[1],
            is_tree=self._is_tree,
        )

    def _summary(self, scores: dict[str, Any]) -> list[tuple[str, str]]:
        out = [
            ("rows", f"{scores['rows']:,}"),
            ("classes", f"{len(self._classes):,}"),
            ("accuracy", f"{scores['accuracy']:.1%}"),
            ("log loss", f"{scores['log_loss']:.3f}"),
            (f"right class among the first {TOP}", f"{scores[f'top{TOP}_accuracy']:.1%}"),
            ("calibration error", f"{scores['calibration_error']:.1%}"),
        ]
        if self._is_tree:
            out += [
                ("accuracy of the parent", f"{scores['parent_accuracy']:.1%}"),
                ("taxo-loss", f"{scores['taxo_loss']:.3f}"),
                ("taxo-loss, decided for it", f"{scores['taxo_loss_decided']:.3f}"),
            ]
        if scores["rows_of_unknown_classes"]:
            out.append((UNKNOWN, f"{scores['rows_of_unknown_classes']:,}"))
        return out

    def _nodes(self) -> dict[str, list[Any]]:
        """Support, recall and precision of every node."""
        tree = self._tree
        support, answered, hits = (np.zeros(tree.n_nodes) for _ in range(3))
        for (truth, answer), count in self._pairs.items():
            above = _ancestors(tree, truth)
            support[above] += count
            others = _ancestors(tree, answer)
            answered[others] += count
            hits[np.intersect1d(above, others)] += count
        with np.errstate(invalid="ignore", divide="ignore"):
            recall, precision = hits / support, hits / answered
        return {
            "names": [str(name) for name in tree.names],
            "parents": tree.parents.tolist(),
            "support": support.astype(int).tolist(),
            "answered": answered.astype(int).tolist(),
            "recall": [None if np.isnan(value) else rounded(value) for value in recall],
            "precision": [None if np.isnan(value) else rounded(value) for value in precision],
        }


def _notes(scores: dict[str, Any], promised: float | None) -> dict[str, list[tuple[str, str]]]:
    """What stands below the entries of the summary: how sure they are, and what they are to be compared with."""
    low, high = scores["accuracy_interval"]
    notes = {
        "accuracy": [
            ("95% interval", f"{low:.1%} to {high:.1%}"),
            ("most frequent class", f"{scores['baseline_accuracy']:.1%}"),
        ],
        "log loss": [("class frequencies", f"{scores['baseline_log_loss']:.3f}")],
    }
    if scores["log_loss_interval"] is not None:
        low, high = scores["log_loss_interval"]
        notes["log loss"].insert(0, ("95% interval", f"{low:.3f} to {high:.3f}"))
    if promised is not None:
        notes["log loss"].append(("cross-validation in training", f"{promised:.3f}"))
    return notes


def _estimate(scores: dict[str, Any], promised: float | None, training_rows: int | None) -> list[tuple[str, str]]:
    """Say the same in words, as questions and answers; ``promised`` is the log loss of cross-validation."""
    low, high = scores["accuracy_interval"]
    count = scores["rows"]
    sure = (
        f"The scores come from {count:,} {'row' if count == 1 else 'rows'}; other rows of the same "
        "kind would give somewhat different ones. If the rows are independent of each other, then with a confidence of "
        f"95% the accuracy on all rows of this kind is between {low:.1%} and {high:.1%}"
    )
    if scores["log_loss_interval"] is not None:
        low, high = scores["log_loss_interval"]
        sure += f", and the log loss between {low:.3f} and {high:.3f}"
    model, baseline = scores["log_loss"], scores["baseline_log_loss"]
    compared = (
        f"Always answering {scores['baseline_class']}, the most frequent class, would be right for "
        f"{scores['baseline_accuracy']:.1%} of these rows. Giving all rows the same probabilities, the frequencies of "
        f"the classes among them, would have a log loss of {baseline:.3f}"
    )
    if model > baseline:
        compared += f", which is better than the model's {model:.3f}: its probabilities are worse than none"
    out = [("How sure is this?", f"{sure}."), ("How good is it?", f"{compared}.")]
    if promised is not None:
        out.append(("Is it what training promised?", _compared_with_training(scores, promised, training_rows)))
    unknown = scores["rows_of_unknown_classes"]
    if unknown:
        have = "row has a class" if unknown == 1 else "rows have classes"
        answer = (
            f"{unknown:,} {have} that the model does not know, such as {scores['unknown_class']!r}. They count as "
            "errors in accuracies and when rejecting."
        )
        out.append(("What is unknown?", f"{answer} All other scores leave them out."))
    return out


def _compared_with_training(scores: dict[str, Any], promised: float, training_rows: int | None) -> str:
    """Say what the measured and the cross-validated log loss are, and whether they differ by more than chance."""
    measured = scores["log_loss"]
    text = (
        f"The log loss measured on these rows is {measured:.3f}. Training found {promised:.3f} by cross-validation: "
        "for training rows, each answered by models that were fitted without it and so to fewer rows. Settings were "
        "chosen by these answers, which makes the figure somewhat too good."
    )
    if scores["log_loss_interval"] is None or training_rows is None:
        return text
    # Losses of training rows are taken to spread like those of these rows.
    count = scores["rows"] - scores["rows_of_unknown_classes"]
    width = (scores["log_loss_interval"][1] - measured) * np.sqrt(1 + count / training_rows)
    if abs(measured - promised) <= width:
        return f"{text} The two differ by no more than chance."
    if measured > promised:
        return f"{text} The measured one is higher by more than chance: these rows seem to be harder."
    return (
        f"{text} The measured one is lower by more than chance. That is usual where classes have few rows, so that "
        "every training row counts; otherwise these rows may be easier, or were trained on."
    )


def _ancestors(tree: Taxonomy, node: int) -> NDArray[np.intp]:
    """The node and all above it."""
    out = [node]
    while tree.parents[out[-1]] >= 0:
        out.append(int(tree.parents[out[-1]]))
    return np.array(out, dtype=np.intp)


def _curve(rows: ScoredRows) -> dict[str, list[float]]:
    """Error among accepted rows against the share of rejected ones, at about evenly spaced shares."""
    curve = error_reject_curve(rows)
    wanted = np.linspace(0, 1, _CURVE_POINTS, endpoint=False)
    places = np.unique(np.searchsorted(curve.rejected, wanted, side="right") - 1)
    return {
        name: [rounded(value) for value in getattr(curve, name)[places]] for name in ("rejected", "error", "threshold")
    }


def _reliability(rows: ScoredRows) -> dict[str, list[float]]:
    """Accuracy against confidence."""
    curve = reliability_curve(rows)
    return {
        "confidence": [rounded(value) for value in curve.confidence],
        "frequency": [rounded(value) for value in curve.frequency],
        "rows": [int(weight) for weight in curve.weight],
    }
