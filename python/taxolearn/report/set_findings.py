"""What a report on several labels per row says, as plain numbers and texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn.estimators.explain import NodeExplanation
from taxolearn.report.description import describe, explained_by
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
from taxolearn.report.set_scores import (
    AT,
    RunningSetScores,
    ScoredSets,
    ScoreHistograms,
    SetTally,
    above_labels,
    lowest,
    structure_of,
)
from taxolearn.set_decisions import LabelTree, best_sets
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["SetFindings", "SetRows", "collect_set_findings"]

_PAIRS = 5000
_NOTHING = 0  # the root, where no label stands on one side of a pair
_DEFAULT = "more probable than not"


@dataclass(frozen=True)
class SetRows:
    """Some rows with any number of labels, and what the model says about them.

    Attributes
    ----------
    truth : list of tuples, array or sparse matrix
        Labels, as in ``fit``; those of lists may be unknown to the model.
    proba : ndarray of shape (n, n_classes)
        Probabilities of the labels.
    texts : list of str
        What the rows say, for a reader; empty where there is nothing to be read.
    ids : list of str
        Names or numbers by which the rows are found in their file.
    explain : callable
        Gives explanations of rows, by their numbers, for labels: as ``RecursiveRegularizationClassifier.explain``. None
        if the model is not linear.
    """

    truth: Any
    proba: NDArray[np.float64]
    texts: list[str]
    ids: list[str]
    explain: Callable[[list[int], list[Any]], list[list[NodeExplanation]]] | None


@dataclass(kw_only=True)
class SetFindings(PageData):
    """Everything on the page; the fields are those of its JSON.

    In ``pairs`` a missed label stands before one that was answered in its place, node 0 where there is none; a label
    before itself counts where it was right. ``levels`` are scores by depth of the tree, ``sizes`` the numbers of rows
    that have so many labels and were answered so many, ``thresholds`` scores by a threshold that all labels share, and
    ``ways`` scores by how answers are chosen. ``documents`` are ids, texts, nodes of the truth and of the answer, and
    numbers of wrong labels.
    """

    levels: list[dict[str, Any]]
    sizes: dict[str, list[int]]
    thresholds: dict[str, list[float]]
    ways: list[dict[str, Any]]


def collect_set_findings(
    classifier: Any,
    rows: Iterable[SetRows],
    title: str,
    facts: list[tuple[str, str]] | None = None,
    *,
    id_name: str = "row",
) -> SetFindings:
    """Collect everything that a report on several labels per row shows, in one pass over the rows.

    Parameters
    ----------
    classifier : RecursiveRegularizationClassifier
        Fitted to rows with any number of labels.
    rows : iterable of SetRows
        The rows in parts, which are read once.
    title : str
        Headline of the page.
    facts : list of pairs of str, optional
        More lines for the summary.
    id_name : str
        What the ids of the rows are.
    """
    collected = _Collected(classifier)
    for part in rows:
        collected.add(part)
    if collected.count == 0:
        raise ValueError("there are no rows to report on")
    return collected.findings(title, facts or [], id_name)


class _Collected:
    """Counts of labels and of pairs of labels, scores, and the rows worth showing."""

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        self._classes: NDArray[Any] = classifier.classes_
        tree = classifier.taxonomy_
        self._tree: Taxonomy = flat_tree(self._classes) if tree is None else tree
        self._is_tree = tree is not None
        # The node of every class.
        self._nodes_of = np.arange(1, len(self._classes) + 1) if tree is None else tree.index(self._classes)
        self._above = above_labels(structure_of(classifier), self._classes)
        self._label_tree = classifier.label_tree
        self._scores = RunningSetScores(classifier)
        self._histograms = ScoreHistograms(len(self._classes))
        self._ways = {way: SetTally(len(self._classes)) for way in self._answers_of()}
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._with_labels = self._wrong = self.count = 0
        self._true_sizes: Counter[int] = Counter()
        self._answered_sizes: Counter[int] = Counter()
        self._mistakes: list[tuple[float, dict[str, Any]]] = []
        self._documents: list[list[Any]] = []

    def _answers_of(self) -> dict[str, Callable[[Any], Any]]:
        """Ways from probabilities to answers, besides the labels that are more probable than not."""
        tree, thresholds = self._label_tree, getattr(self._classifier, "thresholds_", None)
        ways: dict[str, Callable[[Any], Any]] = {"largest expected F1": lambda p: best_sets(p, "f1", tree)}
        if isinstance(tree, LabelTree):
            ways["least hierarchical loss"] = lambda p: best_sets(p, "hierarchical", tree)
        if thresholds is not None:
            ways["a learned threshold for each label"] = lambda p: self._closed(p > thresholds)
        return ways

    def _closed(self, sets: Any) -> Any:
        return sets if self._label_tree is None else self._label_tree.raise_parents(sets)

    def add(self, rows: SetRows) -> None:
        if len(rows.proba) == 0:
            return
        scored = self._scores.add(rows.truth, rows.proba)
        columns = self._scores.columns
        self._histograms.add(scored.truth, rows.proba)
        for way, choose in self._answers_of().items():
            self._ways[way].add(scored.truth, choose(rows.proba), columns, scored.unknown)
        truth, answer = (lowest(each, columns, self._above) for each in (scored.truth, scored.answer))
        self._true_sizes.update((truth.sum(axis=1) + scored.unknown).tolist())
        self._answered_sizes.update(answer.sum(axis=1).tolist())
        self._with_labels += int((scored.truth.any(axis=1) | (scored.unknown > 0)).sum())
        missed, extra = scored.truth & ~scored.answer, scored.answer & ~scored.truth
        kinds = (missed, extra, scored.truth & scored.answer)
        self._count_pairs(*(lowest(each, columns, self._above) for each in kinds))
        wrong = (missed | extra)[:, columns].sum(axis=1) + scored.unknown
        self._keep_documents(rows, truth, answer, wrong)
        self._keep_mistakes(rows, scored, truth, answer, wrong)
        self.count += len(wrong)

    def _count_pairs(self, missed: Any, extra: Any, right: Any) -> None:
        for node in self._nodes_of[np.nonzero(right)[1]].tolist():
            self._pairs[node, node] += 1
        for row in np.flatnonzero(missed.any(axis=1) | extra.any(axis=1)):
            truths = self._nodes_of[np.flatnonzero(missed[row])].tolist() or [_NOTHING]
            answers = self._nodes_of[np.flatnonzero(extra[row])].tolist() or [_NOTHING]
            self._pairs.update((truth, answer) for truth in truths for answer in answers)

    def _keep_documents(self, rows: SetRows, truth: Any, answer: Any, wrong: Any) -> None:
        """Keep the first rows, and the first of those with wrong answers."""
        so_far = self._wrong + (wrong > 0).cumsum()
        kept = (self.count + np.arange(len(wrong)) < DOCUMENTS) | ((wrong > 0) & (so_far <= DOCUMENTS))
        for row in np.flatnonzero(kept).tolist():
            sets = [self._nodes_of[np.flatnonzero(each[row])].tolist() for each in (truth, answer)]
            self._documents.append([rows.ids[row], shortened(rows.texts[row]), *sets, int(wrong[row])])
        self._wrong += int((wrong > 0).sum())

    def _keep_mistakes(self, rows: SetRows, scored: ScoredSets, truth: Any, answer: Any, wrong: Any) -> None:
        """Keep the rows whose labels the model held for least probable, of those with wrong answers."""
        places = np.flatnonzero(wrong > 0)
        places = places[np.argsort(-scored.loss[places], kind="stable")][:MISTAKES]
        if len(self._mistakes) >= MISTAKES:
            places = places[scored.loss[places] > self._mistakes[-1][0]]
        reasons = self._reasons(rows, places, truth, answer)
        for row, reason in zip(places.tolist(), reasons, strict=True):
            shown = np.flatnonzero(truth[row] | answer[row])
            shown = shown[np.argsort(-rows.proba[row, shown], kind="stable")]
            known = (scored.truth, scored.answer)
            labels = [
                [int(self._nodes_of[k]), rounded(rows.proba[row, k]), *(bool(each[row, k]) for each in known)]
                for k in shown.tolist()
            ]
            entry = {
                "id": rows.ids[row],
                "text": shortened(rows.texts[row]),
                "labels": labels,
                "unknown": int(scored.unknown[row]),
                "loss": rounded(scored.loss[row]),
                "reasons": reason,
            }
            self._mistakes.append((float(scored.loss[row]), entry))
        self._mistakes = sorted(self._mistakes, key=lambda each: -each[0])[:MISTAKES]

    def _reasons(self, rows: SetRows, places: Any, truth: Any, answer: Any) -> list[list[dict[str, Any]]]:
        """The features that count for the surest wrong label and for the least sure missed one."""
        out: list[list[dict[str, Any]]] = [[] for _ in places]
        if rows.explain is None or len(places) == 0:
            return out
        for sign, wrong in ((1, answer & ~truth), (-1, truth & ~answer)):
            chosen = [k for k, row in enumerate(places.tolist()) if wrong[row].any()]
            if not chosen:
                continue
            numbers = [int(places[k]) for k in chosen]
            worst = [int(np.where(wrong[row], sign * rows.proba[row], -np.inf).argmax()) for row in numbers]
            explained = rows.explain(numbers, [self._classes[k].item() for k in worst])
            for k, steps in zip(chosen, explained, strict=True):
                out[k].append(reason_of(steps[-1]) | {"is_true": sign < 0})
        return out

    # -- Putting it together ------------------------------------------------------------------------------------------

    def findings(self, title: str, facts: list[tuple[str, str]], id_name: str) -> SetFindings:
        scores = self._scores.summary()
        confidence, frequency, counts = self._scores.reliability()
        return SetFindings(
            title=title,
            summary=[*self._summary(scores), *facts],
            notes=_notes(scores),
            estimate=_estimate(scores),
            rows=self.count,
            nodes=self._nodes(),
            pairs=[[*pair, count] for pair, count in self._pairs.most_common(_PAIRS)],
            reliability={
                "confidence": [rounded(value) for value in confidence],
                "frequency": [rounded(value) for value in frequency],
                "rows": [int(count) for count in counts],
            },
            variances=learned_variances(self._classifier),
            model=describe(self._classifier),
            id_name=id_name,
            mistakes=[entry for _, entry in self._mistakes],
            documents=self._documents,
            documents_note=documents_note(len(self._documents), self.count, self._wrong, DOCUMENTS),
            mistakes_note=explained_by(self._classifier)[1],
            is_tree=self._is_tree,
            levels=self._levels(),
            sizes=self._sizes(),
            thresholds={
                name: [rounded(value) for value in values]
                for name, values in self._histograms.by_threshold(self._scores.columns).items()
            },
            ways=self._scores_of_ways(),
        )

    def _summary(self, scores: dict[str, Any]) -> list[tuple[str, str]]:
        macro = "–" if scores["macro_f1"] is None else f"{scores['macro_f1']:.1%}"
        out = [
            ("rows", f"{scores['rows']:,}"),
            ("labels", f"{len(self._scores.columns):,}"),
            ("micro F1", f"{scores['micro_f1']:.1%}"),
            ("macro F1", macro),
            ("rows with all labels right", f"{scores['subset_accuracy']:.1%}"),
            ("labels wrong (Hamming loss)", f"{scores['hamming_loss']:.2%}"),
            *((_of_first(k), f"{scores[f'precision_at_{k}']:.1%}") for k in AT if f"precision_at_{k}" in scores),
            *((f"nDCG of the first {k}", f"{scores[f'ndcg_at_{k}']:.1%}") for k in AT if f"ndcg_at_{k}" in scores),
            ("log loss per row", f"{scores['log_loss']:.3f}"),
            ("log loss per label", f"{scores['log_loss_per_label']:.4f}"),
            ("calibration error", f"{scores['calibration_error']:.2%}"),
            ("labels per row", f"{scores['true_labels_per_row']:.2f}"),
        ]
        if scores["unknown_labels"]:
            out.append(("unknown labels", f"{scores['unknown_labels']:,}"))
        return out

    def _nodes(self) -> dict[str, list[Any]]:
        """Support and scores of every node; of the root only how many rows have a label."""
        tally, n_nodes = self._scores.tally, self._tree.n_nodes
        support, answered = tally.right + tally.missed, tally.right + tally.wrong
        with np.errstate(invalid="ignore", divide="ignore"):
            recall, precision = tally.right / support, tally.right / answered
        f1 = np.where(support + answered > 0, tally.label_f1(), np.nan)

        def of_nodes(values: Any, root: Any) -> list[Any]:
            out = [root] * n_nodes
            for node, value in zip(self._nodes_of.tolist(), values.tolist(), strict=True):
                out[node] = value if isinstance(value, int) else None if np.isnan(value) else rounded(value)
            return out

        return {
            "names": [str(name) for name in self._tree.names],
            "parents": self._tree.parents.tolist(),
            "support": of_nodes(support, self._with_labels),
            "answered": of_nodes(answered, 0),
            "recall": of_nodes(recall, None),
            "precision": of_nodes(precision, None),
            "f1": of_nodes(f1, None),
            "area": of_nodes(self._histograms.areas(), None),
        }

    def _levels(self) -> list[dict[str, Any]]:
        """Scores of the nodes of each depth, in a graph by the longest way down; nothing if they have one."""
        if self._label_tree is None:
            return []
        tally, depths = self._scores.tally, self._label_tree.depths
        depths = depths - depths.min() + 1
        if depths.max() < 2:
            return []
        f1, occurs = tally.label_f1(), tally.right + tally.missed > 0
        out = []
        for depth in range(1, int(depths.max()) + 1):
            at = depths == depth
            right, wrong, missed = (int(each[at].sum()) for each in (tally.right, tally.wrong, tally.missed))
            counted = at & occurs
            out.append(
                {
                    "level": depth,
                    "labels": int(at.sum()),
                    "support": right + missed,
                    "recall": right / (right + missed) if right + missed else None,
                    "precision": right / (right + wrong) if right + wrong else None,
                    "micro_f1": 2 * right / (2 * right + wrong + missed) if right + wrong + missed else None,
                    "macro_f1": float(f1[counted].mean()) if counted.any() else None,
                }
            )
        return out

    def _sizes(self) -> dict[str, list[int]]:
        most = max(*self._true_sizes, *self._answered_sizes)
        return {
            "truth": [self._true_sizes[k] for k in range(most + 1)],
            "answer": [self._answered_sizes[k] for k in range(most + 1)],
        }

    def _scores_of_ways(self) -> list[dict[str, Any]]:
        columns = self._scores.columns
        ways = {_DEFAULT: self._scores.tally, **self._ways}
        return [{"way": way} | tally.summary(columns) for way, tally in ways.items()]


def _of_first(k: int) -> str:
    return "most probable label right" if k == 1 else f"precision of the first {k}"


def _notes(scores: dict[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """What stands below the entries of the summary: how sure they are, and what they are to be compared with."""
    notes = {
        "macro F1": [("labels that rows have", f"{scores['labels']:,}")],
        _of_first(1): [("most frequent label", f"{scores['baseline_precision_at_1']:.1%}")],
        "log loss per row": [("label frequencies", f"{scores['baseline_log_loss']:.3f}")],
        "labels per row": [("answered", f"{scores['labels_per_row']:.2f}")],
    }
    for name, key, digits in (
        ("micro F1", "micro_f1", ".1%"),
        ("rows with all labels right", "subset_accuracy", ".1%"),
        ("log loss per row", "log_loss", ".3f"),
    ):
        interval = scores[f"{key}_interval"]
        if interval is not None:
            text = f"{interval[0]:{digits}} to {interval[1]:{digits}}"
            notes.setdefault(name, []).insert(0, ("95% interval", text))
    return notes


def _estimate(scores: dict[str, Any]) -> list[tuple[str, str]]:
    """Say the same in words, as questions and answers."""
    count = scores["rows"]
    sure = (
        f"The scores come from {count:,} {'row' if count == 1 else 'rows'}; other rows of the same kind would give "
        "somewhat different ones. The intervals hold the scores on all rows of this kind with a confidence of about "
        "95%, if the rows are independent of each other"
    )
    model, baseline = scores["log_loss"], scores["baseline_log_loss"]
    compared = (
        f"Naming {scores['baseline_label']}, the most frequent label, for every row would be right for "
        f"{scores['baseline_precision_at_1']:.1%} of them. Giving all rows the same probabilities, the frequencies of "
        f"the labels among them, would have a log loss of {baseline:.3f} per row"
    )
    if model > baseline:
        compared += f", which is better than the model's {model:.3f}: its probabilities are worse than none"
    out = [("How sure is this?", f"{sure}."), ("How good is it?", f"{compared}.")]
    unknown = scores["unknown_labels"]
    if unknown:
        are = "label is" if unknown == 1 else "labels are"
        answer = f"{unknown:,} {are} unknown to the model, such as {scores['unknown_label']!r}. They count as missed"
        out.append(("What is unknown?", f"{answer}; the log loss leaves them out."))
    return out
