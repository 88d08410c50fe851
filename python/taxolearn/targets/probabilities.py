"""Rows with probabilities of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from taxolearn.targets.base import Floats, Targets, flat_classes, nothing_known
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["read_probabilities"]

_SUM_TOLERANCE = 1e-6  # on the sums of probabilities


def read_probabilities(y: Any, taxonomy: Taxonomy | None) -> Targets:
    names = list(y.columns) if hasattr(y, "columns") else None
    try:
        values = np.array(y, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(
            f"y has shape {tuple(y.shape)}, which means probabilities of classes, but its values are no numbers; "
            "expected one column of labels, or numbers from 0 to 1 that sum to 1 in every row"
        ) from None
    unlabelled = np.flatnonzero(np.isnan(values).all(axis=1))
    if len(unlabelled) == len(values):
        raise nothing_known(values.tolist())
    values[unlabelled] = 1.0 / values.shape[1]
    _check_probabilities(values)
    leaves = None if taxonomy is None else np.sort(taxonomy.classes)
    if names is None and leaves is not None and len(leaves) != values.shape[1]:
        raise ValueError(
            f"y has {values.shape[1]} columns of probabilities, expected {len(leaves)}: one for each leaf of the "
            "taxonomy, sorted as in classes_; a data frame may name fewer of them"
        )
    if taxonomy is None or leaves is None:
        listed = list(range(values.shape[1])) if names is None else names
        classes, place = flat_classes(_check_unique(listed))
        order = np.arange(len(classes))
        columns = [place[name] for name in listed]
    else:
        order = np.argsort(taxonomy.classes, kind="stable")
        classes = taxonomy.classes[order]
        listed = classes.tolist() if names is None else _check_unique(names)
        columns = np.atleast_1d(taxonomy.leaf_index(listed, argument="columns of y")).tolist()
    soft = np.zeros((len(values), len(classes)))
    soft[:, columns] = values
    labels = np.where(soft.max(axis=1) == 1.0, soft.argmax(axis=1), -1).astype(np.int32)
    return Targets(classes, taxonomy, order, labels, unlabelled=unlabelled, soft=soft)


def _check_unique(names: list[Any]) -> list[Any]:
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"y has more than one column named {repeated[0]!r}; each class has one column")
    return names


def _check_probabilities(values: Floats) -> None:
    """Scales what is within rounding of a distribution to one."""
    what = f"y has shape {values.shape}, which means probabilities of classes"
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)).all(axis=1))
    if len(wrong) > 0:
        row = int(wrong[0])
        raise ValueError(
            f"{what}, but row {row} has the value {values[row][~(values[row] >= 0) | ~np.isfinite(values[row])][0]}; "
            "expected numbers from 0 to 1, or NaN in all columns of an unlabelled row"
        )
    sums = values.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > _SUM_TOLERANCE)
    if len(wrong) > 0:
        row = int(wrong[0])
        raise ValueError(f"{what}, but row {row} sums to {sums[row]:.6g}, expected 1; divide each row by its sum")
    off = np.flatnonzero(sums != 1.0)
    values[off] /= sums[off, None]
