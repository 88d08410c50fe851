"""What a report tells, as plain numbers and texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn import decisions, metrics
from taxolearn.estimators.explain import NodeExplanation
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["Findings", "Rows", "gather"]

_CURVE_POINTS = 200
_MISTAKES = 100
_DOCUMENTS = 2000
_SHOWN_TEXT = 300
_WORDS = 8
_BINS = 12


@dataclass(frozen=True)
class Rows:
    """Some labelled rows, and what the model says of them.

    Attributes
    ----------
    truth : ndarray
        Labels.
    proba : ndarray of shape (n, n_classes)
        Probabilities.
    texts : list of str
        What a reader recognises each row by.
    explain : callable
        Gives explanations of rows, by their numbers, for nodes: as ``KernelLogisticClassifier.explain``. None if the
        model is not linear.
    """

    truth: NDArray[Any]
    proba: NDArray[np.float64]
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


def gather(classifier: Any, rows: Iterable[Rows], title: str, facts: list[tuple[str, str]] | None = None) -> Findings:
    """Read rows once, and find out everything.

    Parameters
    ----------
    classifier : KernelLogisticClassifier
        Fitted.
    rows : iterable of Rows
        Read once, one after the other.
    title : str
        Headline of the page.
    facts : list of pairs of str, optional
        More for the summary.
    """
    collected = _Collected(classifier)
    for part in rows:
        collected.add(part)
    if collected.count == 0:
        raise ValueError("there are no rows of known classes to report on")
    return collected.findings(title, facts or [])


class _Collected:
    """Counts of nodes and pairs, one number each of the rows, and the rows worth showing."""

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        self._classes = classifier.classes_
        tree = classifier.taxonomy_
        self._tree: Taxonomy = _flat_tree(self._classes) if tree is None else tree
        self._is_tree = tree is not None
        # The node of every class.
        self._nodes_of = np.arange(1, len(self._classes) + 1) if tree is None else tree.index(self._classes)
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._mistakes: list[tuple[float, dict[str, Any]]] = []
        self._documents: list[list[Any]] = []
        self.count = 0
        self.unknown = 0

    def add(self, rows: Rows) -> None:
        classes = self._classes
        place = np.searchsorted(classes, rows.truth).clip(max=len(classes) - 1)
        known = np.flatnonzero(classes[place] == rows.truth)
        self.unknown += len(rows.truth) - len(known)
        if len(known) == 0:
            return
        proba, place = rows.proba[known], place[known]
        numbers = np.arange(len(known))
        best = proba.argmax(axis=1)
        true = proba[numbers, place]
        part = {
            "truth": self._nodes_of[place],
            "answer": self._nodes_of[best],
            "confidence": proba[numbers, best],
            "true": true,
            "rank": (proba > true[:, None]).sum(axis=1),
        }
        if self._is_tree:
            part["decided"] = self._tree.index(
                decisions.decide(proba, classes=classes, taxonomy=self._tree, loss="taxo")
            )
        self._parts.append(part)
        self._pairs.update(zip(part["truth"].tolist(), part["answer"].tolist(), strict=True))
        self._keep_documents(rows, known, part)
        self._keep_mistakes(rows, known, part)
        self.count += len(known)

    def _keep_documents(self, rows: Rows, known: NDArray[Any], part: dict[str, NDArray[Any]]) -> None:
        for k in range(min(len(known), max(_DOCUMENTS - len(self._documents), 0))):
            self._documents.append(
                [
                    _shortened(rows.texts[int(known[k])]),
                    int(part["truth"][k]),
                    int(part["answer"][k]),
                    _rounded(part["confidence"][k]),
                ]
            )

    def _keep_mistakes(self, rows: Rows, known: NDArray[Any], part: dict[str, NDArray[Any]]) -> None:
        """The most confident ones."""
        wrong = np.flatnonzero(part["truth"] != part["answer"])
        wrong = wrong[np.argsort(-part["confidence"][wrong], kind="stable")][:_MISTAKES]
        least = min((confidence for confidence, _ in self._mistakes), default=0.0)
        if len(self._mistakes) >= _MISTAKES:
            wrong = wrong[part["confidence"][wrong] > least]
        reasons = self._reasons(rows, known[wrong], part["truth"][wrong], part["answer"][wrong])
        for k, reason in zip(wrong.tolist(), reasons, strict=True):
            entry = {
                "text": _shortened(rows.texts[int(known[k])]),
                "truth": int(part["truth"][k]),
                "answer": int(part["answer"][k]),
                "confidence": _rounded(part["confidence"][k]),
                "true": _rounded(part["true"][k]),
                "reasons": reason,
            }
            self._mistakes.append((float(part["confidence"][k]), entry))
        self._mistakes = sorted(self._mistakes, key=lambda each: -each[0])[:_MISTAKES]

    def _reasons(self, rows: Rows, numbers: Any, truth: Any, answer: Any) -> list[list[dict[str, Any]]]:
        """For answer and truth, the words that speak for them where their paths part."""
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
        """As the classifier knows it."""
        return self._tree.names[node] if self._is_tree else self._classes[node - 1].item()

    # -- Putting it together ------------------------------------------------------------------------------------------

    def findings(self, title: str, facts: list[tuple[str, str]]) -> Findings:
        whole = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        was_learned = self._classifier.cv_result_ is not None
        variances = (self._classifier.hyperparameters_.get("variances") or {}) if was_learned else {}
        shown = sorted(self._documents, key=lambda each: each[0].lower())
        return Findings(
            title=title,
            summary=[*self._summary(whole), *facts],
            nodes=self._nodes(whole),
            pairs=[[*pair, count] for pair, count in self._pairs.most_common()],
            curve=_curve(whole),
            reliability=_reliability(whole),
            variances=[(str(name), float(value)) for name, value in list(variances.items())[:200]],
            mistakes=[entry for _, entry in self._mistakes],
            documents=shown,
            is_tree=self._is_tree,
        )

    def _summary(self, whole: dict[str, NDArray[Any]]) -> list[tuple[str, str]]:
        right = whole["truth"] == whole["answer"]
        rows = self.count + self.unknown
        out = [
            ("rows", f"{rows:,}"),
            ("classes", f"{len(self._classes):,}"),
            ("accuracy", f"{right.sum() / rows:.1%}"),
            ("right class among the first five", f"{(whole['rank'] < 5).sum() / rows:.1%}"),
            ("log loss", f"{-np.log(np.maximum(whole['true'], 1e-300)).mean():.3f}"),
        ]
        if self._is_tree:
            names = self._tree.names
            truth, answer, decided = (names[whole[name]] for name in ("truth", "answer", "decided"))
            out += [
                ("accuracy of the parent", f"{metrics.parent_accuracy(truth, answer, taxonomy=self._tree):.1%}"),
                ("taxo-loss", f"{metrics.taxo_loss(truth, answer, taxonomy=self._tree):.3f}"),
                ("taxo-loss, decided for it", f"{metrics.taxo_loss(truth, decided, taxonomy=self._tree):.3f}"),
            ]
        if self.unknown:
            out.append(("rows of unknown classes: errors in accuracies, else left out", f"{self.unknown:,}"))
        return out

    def _nodes(self, whole: dict[str, NDArray[Any]]) -> dict[str, list[Any]]:
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
    """All classes below a root."""
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


def _curve(whole: dict[str, NDArray[Any]]) -> dict[str, list[float]]:
    """Error among accepted rows against the share of rejected ones, at about evenly spaced shares."""
    curve = metrics.error_reject_curve(whole["truth"], whole["answer"], whole["confidence"])
    wanted = np.linspace(0, 1, _CURVE_POINTS, endpoint=False)
    places = np.unique(np.searchsorted(curve.rejected, wanted, side="right") - 1)
    return {
        name: [_rounded(value) for value in getattr(curve, name)[places]] for name in ("rejected", "error", "threshold")
    }


def _reliability(whole: dict[str, NDArray[Any]]) -> dict[str, list[float]]:
    """Accuracy against confidence, in bins of equally many rows."""
    order = np.argsort(whole["confidence"], kind="stable")
    right = (whole["truth"] == whole["answer"])[order]
    confidence = whole["confidence"][order]
    bins = np.array_split(np.arange(len(order)), min(_BINS, len(order)))
    return {
        "confidence": [_rounded(confidence[part].mean()) for part in bins],
        "frequency": [_rounded(right[part].mean()) for part in bins],
        "rows": [len(part) for part in bins],
    }


def _reason(explanation: NodeExplanation) -> dict[str, Any]:
    words = [[str(name), _rounded(part)] for name, part in explanation.contributions[:_WORDS]]
    return {"node": str(explanation.node), "words": words}


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…"


def _rounded(value: Any) -> float:
    return float(f"{float(value):.4g}")
