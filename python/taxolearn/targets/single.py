"""Rows with one label each."""

from __future__ import annotations

from typing import Any

import numpy as np

from taxolearn.targets.base import Targets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_labels

__all__ = ["label_targets"]


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
