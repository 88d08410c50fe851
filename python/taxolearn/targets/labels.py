"""What labels mean that do not tell one class: the estimator's argument ``labels``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from taxolearn.targets.base import Targets
from taxolearn.targets.partial import entries_of, one_column, read_sets
from taxolearn.targets.probabilities import read_probabilities
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_labels, check_number

__all__ = ["PartialLabels", "as_labels", "label_targets", "read_targets"]

_INNER = ("below", "own")


class PartialLabels(BaseEstimator):
    """How to read inner nodes as labels, and how rows that allow several classes are fitted.

    Such rows are fitted by expectation maximization: each round weighs the allowed classes by their probabilities and
    continues the fit with these weights.

    Parameters
    ----------
    inner : {"below", "own"}, default="below"
        What the name of an inner node means as a label: "below" that the class is one of those below the node, nobody
        knows which; "own" a class of its own, for which a leaf is added below the node (``Taxonomy.with_classes``).
    tol : float, default=1e-4
        Relative change of the marginal likelihood at which rounds stop.
    max_rounds : int, default=100
        Largest number of rounds.
    """

    def __init__(self, inner: str = "below", *, tol: float = 1e-4, max_rounds: int = 100) -> None:
        self.inner = inner
        self.tol = tol
        self.max_rounds = max_rounds

    def check(self) -> None:
        """Raises an error for what cannot be."""
        check_choice("inner", self.inner, _INNER)
        check_number("PartialLabels: tol", self.tol, least=0)
        check_number("max_rounds", self.max_rounds, least=1, integer=True)


def as_labels(labels: Any) -> PartialLabels:
    """The checked value that an estimator's argument means."""
    if isinstance(labels, str) and labels in _INNER:
        return PartialLabels(labels)
    if not isinstance(labels, PartialLabels):
        choices = ", ".join(map(repr, _INNER))
        raise ValueError(f"labels is {labels!r}, expected one of {choices}, or a PartialLabels")
    labels.check()
    return labels


def read_targets(y: Any, taxonomy: Taxonomy | None, inner: str) -> Targets | None:
    """Targets of rows that may have less, or more, than one label; None if ``y`` holds plain labels only.

    Parameters
    ----------
    y : array, list, series or data frame
        As ``KernelLogisticClassifier.fit`` takes it.
    taxonomy : Taxonomy or None
        The tree of classes.
    inner : {"below", "own"}
        What the name of an inner node means.
    """
    shape = getattr(y, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] > 1 and not hasattr(y, "tocsr"):
        return read_probabilities(y, taxonomy)
    entries = entries_of(one_column(y), taxonomy if inner == "below" else None)
    return None if entries is None else read_sets(entries, taxonomy, inner)


def label_targets(y: Any, taxonomy: Taxonomy | None, inner: str) -> Targets:
    """Targets of rows with one label each, as scikit-learn checks them."""
    seen, indices = check_labels(y, least=2 if taxonomy is None else 1)
    if taxonomy is None:
        return Targets(seen, None, np.arange(len(seen)), indices)
    if inner == "own":
        taxonomy = taxonomy.with_classes(seen, argument="y")
    order = np.argsort(taxonomy.classes, kind="stable")
    labels = taxonomy.leaf_index(seen, argument="y")[indices].astype(np.int32)
    return Targets(taxonomy.classes[order], taxonomy, order, labels)
