"""What ``fit`` is told about the classes of its rows: one label each, or less, or more, than that.

A row may have one label, a set of them of which one is right, a node of the taxonomy below which the right one lies,
nothing at all, or probabilities of the classes. All of it becomes either a class or a set of allowed classes per row,
or an array of probabilities.
"""

from __future__ import annotations

from typing import Any

from taxolearn.targets.base import Targets
from taxolearn.targets.partial import entries_of, one_column, read_sets
from taxolearn.targets.probabilities import read_probabilities
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["read_targets"]


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
