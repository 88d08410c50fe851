"""What a report says, as plain numbers and texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn.estimators.explain import NodeExplanation
from taxolearn.report.scores import TOP, RunningScores, ScoredRows, error_reject_curve, reliability_curve
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["Findings", "Rows", "collect_findings"]

_CURVE_POINTS = 200
_MISTAKES = 100
_DOCUMENTS = 2000
_SHOWN_TEXT = 300
_WORDS = 8
_VARIANCES = 200
UNKNOWN = "rows of unknown classes: errors in accuracies and when rejecting, else left out"


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
        Texts by which a reader recognises the rows.
    explain : callable
        Gives explanations of rows, by their numbers, for nodes: as ``KernelLogisticClassifier.explain``. None if the
        model is not linear.
    """

    truth: NDArray[Any]
    log_proba: NDArray[np.float64]
    texts: list[str]
    explain: Callable[[list[int], list[Any]], list[list[NodeExplanation]]] | None


@dataclass
class Findings:
    """Everything on the page; the fields are those of its JSON.

    ``pairs`` are the nodes of truth and answer with the number of rows, the most frequent first.
    """

    title: str
    summary: list[tuple[str, str]]
    nodes: dict[str, list[Any]]
    pairs: list[list[int]]
    curve: dict[str, list[float]]
    reliability: dict[str, list[float]]
    variances: list[tuple[str, float]]
    mistakes: list[dict[str, Any]] = field(default_factory=list)
    documents: list[list[Any]] = field(default_factory=list)
    is_tree: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def collect_findings(
    classifier: Any, rows: Iterable[Rows], title: str, facts: list[tuple[str, str]] | None = None
) -> Findings:
    """Collect everything that a report shows, in one pass over the rows.

    Parameters
    ----------
    classifier : KernelLogisticClassifier
        Fitted.
    rows : iterable of Rows
        The rows in parts, which are read once.
    title : str
        Headline of the page.
    facts : list of pairs of str, optional
        More lines for the summary.
    """
    collected = _Collected(classifier)
    for part in rows:
        collected.add(part)
    if collected.count == 0:
        raise ValueError("there are no rows of known classes to report on")
    return collected.findings(title, facts or [])


class _Collected:
    """Counts of nodes and of pairs of nodes, scores, and the rows worth showing."""

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        self._classes = classifier.classes_
        tree = classifier.taxonomy_
        self._tree: Taxonomy = _flat_tree(self._classes) if tree is None else tree
        self._is_tree = tree is not None
        # The node of every class.
        self._nodes_of = np.arange(1, len(self._classes) + 1) if tree is None else tree.index(self._classes)
        self._scores = RunningScores(classifier)
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._mistakes: list[tuple[float, dict[str, Any]]] = []
        self._documents: list[list[Any]] = []
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
        for row in known[: max(_DOCUMENTS - len(self._documents), 0)].tolist():
            self._documents.append(
                [_shortened(rows.texts[row]), int(truth[row]), int(answer[row]), _rounded(scored.confidence[row])]
            )

    def _keep_mistakes(self, rows: Rows, scored: ScoredRows, known: Any, truth: Any, answer: Any) -> None:
        """Keep the most confident mistakes."""
        confidence = scored.confidence
        wrong = known[~scored.correct[known]]
        wrong = wrong[np.argsort(-confidence[wrong], kind="stable")][:_MISTAKES]
        if len(self._mistakes) >= _MISTAKES:
            wrong = wrong[confidence[wrong] > self._mistakes[-1][0]]
        reasons = self._reasons(rows, wrong, truth[wrong], answer[wrong])
        for row, reason in zip(wrong.tolist(), reasons, strict=True):
            entry = {
                "text": _shortened(rows.texts[row]),
                "truth": int(truth[row]),
                "answer": int(answer[row]),
                "confidence": _rounded(confidence[row]),
                "true": _rounded(np.exp(-scored.loss[row])),
                "reasons": reason,
            }
            self._mistakes.append((float(confidence[row]), entry))
        self._mistakes = sorted(self._mistakes, key=lambda each: -each[0])[:_MISTAKES]

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
            out.append([_reason(for_answer[shared]), _reason(for_truth[shared])])
        return out

    def _name(self, node: int) -> Any:
        """The name of a node as the classifier knows it."""
        return self._tree.names[node] if self._is_tree else self._classes[node - 1].item()

    # -- Putting it together ------------------------------------------------------------------------------------------

    def findings(self, title: str, facts: list[tuple[str, str]]) -> Findings:
        was_learned = self._classifier.cv_result_ is not None
        variances = self._classifier.hyperparameters_.variances if was_learned else {}
        rows = self._scores.rows()
        return Findings(
            title=title,
            summary=[*self._summary(), *facts],
            nodes=self._nodes(),
            pairs=[[*pair, count] for pair, count in self._pairs.most_common()],
            curve=_curve(rows),
            reliability=_reliability(rows),
            variances=[(str(name), float(value)) for name, value in list(variances.items())[:_VARIANCES]],
            mistakes=[entry for _, entry in self._mistakes],
            documents=sorted(self._documents, key=lambda each: each[0].lower()),
            is_tree=self._is_tree,
        )

    def _summary(self) -> list[tuple[str, str]]:
        scores = self._scores.summary()
        out = [
            ("rows", f"{scores['rows']:,}"),
            ("classes", f"{len(self._classes):,}"),
            ("accuracy", f"{scores['accuracy']:.1%}"),
            (f"right class among the first {TOP}", f"{scores[f'top{TOP}_accuracy']:.1%}"),
            ("log loss", f"{scores['log_loss']:.3f}"),
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
            "recall": [None if np.isnan(value) else _rounded(value) for value in recall],
            "precision": [None if np.isnan(value) else _rounded(value) for value in precision],
        }


def _flat_tree(classes: NDArray[Any]) -> Taxonomy:
    """A tree in which all classes are children of the root."""
    names = [str(label) for label in classes.tolist()]
    root = "all"
    while root in names:
        root = f"({root})"
    return Taxonomy(np.array([-1, *([0] * len(names))]), [root, *names])


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
        name: [_rounded(value) for value in getattr(curve, name)[places]] for name in ("rejected", "error", "threshold")
    }


def _reliability(rows: ScoredRows) -> dict[str, list[float]]:
    """Accuracy against confidence."""
    curve = reliability_curve(rows)
    return {
        "confidence": [_rounded(value) for value in curve.confidence],
        "frequency": [_rounded(value) for value in curve.frequency],
        "rows": [int(weight) for weight in curve.weight],
    }


def _reason(explanation: NodeExplanation) -> dict[str, Any]:
    words = [[str(name), _rounded(part)] for name, part in explanation.contributions[:_WORDS]]
    return {"node": str(explanation.node), "words": words}


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…"


def _rounded(value: Any) -> float:
    return float(f"{float(value):.4g}")
