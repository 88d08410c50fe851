"""Matrices as the commands read them: with as many features as the model has, and one label per row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from taxolearn.cli.main import CommandError
from taxolearn.readers.labelled import LabelledData

__all__ = ["inputs_and_labels"]


def inputs_and_labels(
    path: str, read: Callable[[Path, int | None], LabelledData], n_features: int | None
) -> tuple[Any, Any]:
    """Read the inputs, and the labels if there are any."""
    wanted = n_features or None
    found = read(Path(path), wanted)
    if wanted is not None and found.X.shape[1] != wanted:
        raise CommandError(f"{path}: there are {found.X.shape[1]} features, the model has {wanted}")
    return found.X, _single(found.y, path)


def _single(labels: Any, path: str) -> Any:
    """Labels as an array, one per row."""
    if labels is None or isinstance(labels, np.ndarray):
        return labels
    for row, each in enumerate(labels, start=1):
        if len(each) != 1:
            raise CommandError(
                f"{path}, row {row}: there are {len(each)} labels, expected one; rows with several are read in "
                "Python by taxolearn.datasets.read_arff, read_mulan or read_svmlight(..., multilabel=True)"
            )
    return np.array([each[0] for each in labels])
