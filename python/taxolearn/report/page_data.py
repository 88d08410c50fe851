"""What pages about one label per row and about several have in common."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn.estimators.explain import NodeExplanation
from taxolearn.report.description import Description
from taxolearn.taxonomy.tree import Taxonomy

__all__ = [
    "DOCUMENTS",
    "MISTAKES",
    "PageData",
    "documents_note",
    "flat_tree",
    "learned_variances",
    "reason_of",
    "rounded",
    "shortened",
]

DOCUMENTS = 2000  # rows that are listed, and as many wrong ones
MISTAKES = 100  # rows that are listed as the worst mistakes
_SHOWN_TEXT = 300
_WORDS = 8
_VARIANCES = 200


@dataclass(kw_only=True)
class PageData:
    """What stands on any page; the fields are those of its JSON.

    ``notes`` stand below the entries of the summary of the same names, and ``estimate`` says in words how sure the
    scores are and what they are to be compared with. ``nodes`` are columns of a table with a row for each node of the
    tree, and ``pairs`` are nodes that were taken for each other, with numbers of rows. ``warnings`` stand above
    everything else.
    """

    title: str
    summary: list[tuple[str, str]]
    notes: dict[str, list[tuple[str, str]]]
    estimate: list[tuple[str, str]]
    rows: int
    nodes: dict[str, list[Any]]
    pairs: list[list[int]]
    reliability: dict[str, list[float]]
    variances: list[tuple[str, float]]
    model: Description
    id_name: str
    mistakes: list[dict[str, Any]] = field(default_factory=list)
    documents: list[list[Any]] = field(default_factory=list)
    documents_note: str = ""
    mistakes_note: str = ""
    warnings: list[str] = field(default_factory=list)
    is_tree: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """The summary with its notes, one line each."""
        return [
            line
            for name, value in self.summary
            for line in [(name, value), *((f"{name}, {what}", note) for what, note in self.notes.get(name, []))]
        ]


def documents_note(kept: int, count: int, wrong: int, limit: int) -> str:
    """Say which rows are kept, if not all are: the first up to the limit, and as many wrong ones."""
    if kept == count:
        return ""
    which = "all wrong ones" if wrong <= limit else f"the first {limit:,} of {wrong:,} wrong ones"
    return f"The first {limit:,} of {count:,} rows, and {which}."


def learned_variances(classifier: Any) -> list[tuple[str, float]]:
    """The first variances of nodes with their names, if they were learned."""
    was_learned = getattr(classifier, "cv_result_", None) is not None
    variances = classifier.hyperparameters_.variances if was_learned else {}
    return [(str(name), float(value)) for name, value in list(variances.items())[:_VARIANCES]]


def flat_tree(classes: NDArray[Any]) -> Taxonomy:
    """A tree in which all classes are children of the root."""
    names = [str(label) for label in classes.tolist()]
    root = "all"
    while root in names:
        root = f"({root})"
    return Taxonomy(np.array([-1, *([0] * len(names))]), [root, *names])


def reason_of(explanation: NodeExplanation) -> dict[str, Any]:
    """The features that counted most at a node."""
    words = [[str(name), rounded(part)] for name, part in explanation.contributions[:_WORDS]]
    return {"node": str(explanation.node), "words": words}


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…"


def rounded(value: Any) -> float:
    return float(f"{float(value):.4g}")
