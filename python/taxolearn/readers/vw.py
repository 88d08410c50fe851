"""Reader of the text format of Vowpal Wabbit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from taxolearn.raw_files import Source
from taxolearn.readers.labelled import LabelledData
from taxolearn.readers.sparse_rows import SparseRows
from taxolearn.validation import check_choice

__all__ = ["VwData", "read_vw"]


@dataclass(frozen=True, eq=False, repr=False)
class VwData(LabelledData):
    """Inputs and labels of a vw file.

    Attributes
    ----------
    X, y
        See `LabelledData`.
    sample_weight : ndarray of float64, shape (n_samples,), or None
        Weights of the rows, 1 where a line has none; None if no line has one.
    zero_based : bool
        Whether column 0 is the feature 0 (else it is the feature 1). True for features with names.
    vocabulary : list of str or None
        With ``features="names"`` the name of each column, ``"namespace^name"`` or just ``"name"``.
    """

    sample_weight: Any
    zero_based: bool
    vocabulary: list[str] | None


def read_vw(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    multilabel: bool = False,
    features: Literal["index", "names"] = "index",
    vocabulary: Sequence[str] | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> VwData:
    """Read lines of the form ``label weight 'tag|namespace index:value index ...``.

    Weight, tag and namespace may be missing, as in ``541 | 1:8 2:6``. A feature without a value has the value 1. The
    scale of a namespace, ``|name:0.5``, multiplies its values. Tags are passed over. Labels of several classes are
    joined by commas. Nothing is hashed.

    Parameters
    ----------
    source, n_features, zero_based, multilabel, dtype
        As in `read_svmlight`.
    features : {"index", "names"}, default "index"
        "index": features are integers, in one namespace. "names": any text; every pair of namespace and name is a
        feature, and columns are numbered as the features appear. The pair is known as ``"namespace^name"``, so
        ``|a x`` and ``| a^x`` are the same feature: names should be free of ``^``.
    vocabulary : sequence of str, optional
        For ``features="names"``: the names of the columns, such as the ``vocabulary`` of the training file. Features
        with other names are left out.

    Returns
    -------
    VwData
        With ``X``, ``y``, ``sample_weight``, ``zero_based`` and ``vocabulary``; ``X, y = read_vw(...)`` works as well.

    Raises
    ------
    ValueError
        If the file is not of this form, with line, column and what was expected. So are lines without a label, costs
        of classes, initial predictions, and features that occur twice in a line.
    """
    named = check_choice("features", features, ("index", "names")) == "names"
    if vocabulary is not None and not named:
        raise ValueError('vocabulary goes with features="names", got features="index"')
    if named and n_features is not None:
        raise ValueError(
            f'n_features={n_features} goes with features="index"; with "names" pass the training file\'s vocabulary'
        )
    rows = SparseRows(source, form="vw", multilabel=multilabel, named_features=named, vocabulary=vocabulary)
    first = True if named else rows.starts_at_zero(zero_based)
    X = rows.matrix(first_id=0 if first else 1, n_features=len(rows.vocabulary) if named else n_features, dtype=dtype)
    return VwData(
        X,
        rows.labels(multilabel),
        rows.parsed["weights"] if rows.parsed["weighted"] else None,
        first,
        rows.vocabulary if named else None,
    )
