"""Weights of rows, with those of their classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from taxolearn.targets.base import Floats, Targets
from taxolearn.validation import check_weights

__all__ = ["row_weights"]


def row_weights(
    targets: Targets, sample_weight: Any, class_weight: Mapping[Any, float] | str | None, X: Any
) -> Floats | None:
    """Weights of the rows, with those of their classes multiplied in; None if all are one.

    A row that is not certain has the mean of the weights of its allowed classes, or that by its probabilities.
    "balanced" counts rows in the same way.
    """
    if targets.is_certain:
        seen, indices = np.unique(targets.labels, return_inverse=True)
        unseen = () if targets.taxonomy is None else targets.classes.tolist()
        names = targets.in_core_order[seen]
        return check_weights(sample_weight, class_weight, X, names, indices.astype(np.int32), unseen)
    if sample_weight is None and class_weight is None and len(targets.unlabelled) == 0:
        return None
    weights: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True)
    weights[targets.unlabelled] = 0.0
    if class_weight is not None:
        first = targets.first()
        if first.ndim == 1:
            counts = np.bincount(targets.labels[targets.labelled], minlength=targets.n_classes).astype(np.float64)
            weights *= _factors(targets, class_weight, counts)[first]
        else:
            is_known = np.ones(len(weights))
            is_known[targets.unlabelled] = 0.0
            weights *= first @ _factors(targets, class_weight, is_known @ first)
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight times class_weight is not finite")
    if not (weights > 0).any():
        raise ValueError("sample_weight is zero in all rows with a label; at least one needs a positive weight")
    return np.ascontiguousarray(weights)


def _factors(targets: Targets, class_weight: Any, counts: Floats) -> Floats:
    """Weights of the classes in the order of the core."""
    names = targets.in_core_order.tolist()
    if isinstance(class_weight, Mapping):
        unknown = sorted(set(class_weight) - set(names), key=str)
        if unknown:
            raise ValueError(f"class_weight names labels that are not in y: {unknown[:5]}")
        factors = np.array([class_weight.get(name, 1.0) for name in names], dtype=np.float64)
        if (factors < 0).any():
            raise ValueError(f"class_weight must not be negative, got {factors.min()}")
        return factors
    if not isinstance(class_weight, str) or class_weight != "balanced":
        raise ValueError(f"class_weight is {class_weight!r}, expected a dict, 'balanced' or None")
    seen = counts > 0
    out = np.zeros(len(counts))
    out[seen] = counts.sum() / (seen.sum() * counts[seen])
    return out
