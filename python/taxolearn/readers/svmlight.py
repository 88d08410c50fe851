"""Reader of svmlight files (also called libsvm format), and of the variant of the LSHTC challenges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from taxolearn.raw_files import Source
from taxolearn.readers.labelled import LabelledData
from taxolearn.readers.sparse_rows import SparseRows
from taxolearn.validation import check_choice

__all__ = ["LshtcData", "SvmlightData", "read_lshtc", "read_svmlight"]


@dataclass(frozen=True, eq=False, repr=False)
class SvmlightData(LabelledData):
    """Inputs and labels of an svmlight file.

    Attributes
    ----------
    X, y
        See `LabelledData`.
    zero_based : bool
        Whether column 0 is the feature 0 (else it is the feature 1). Pass it on to read a second file alike.
    n_labels : int or None
        Number of labels, of which some may have no row, if the file begins with the sizes; else None.
    """

    zero_based: bool
    n_labels: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class LshtcData(LabelledData):
    """Inputs and labels of an LSHTC file.

    Attributes
    ----------
    X, y
        See `LabelledData`. Column j is the word with the id j + 1.
    totals : ndarray of float64, shape (n_samples,)
        The number N of the leading ``0:N``, NaN where a line has none.
    """

    totals: Any


def read_svmlight(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    multilabel: bool = False,
    qid: Literal["ignore", "error"] = "ignore",
    dtype: npt.DTypeLike = np.float64,
) -> SvmlightData:
    """Read lines of the form ``label id:value id:value ... # comment``.

    Ids need not be sorted; the result is. Blank lines and comments are passed over. A row may have no
    features. A value 0 is kept as a stored entry.

    Files of the extreme classification repository begin with a line of three numbers: rows, features and labels. Ids
    and labels count from 0 in them.

    Parameters
    ----------
    source : path or binary file
        Compressed files (gzip) are recognised by their content.
    n_features : int, optional
        Number of columns. By default what the first line says, or as many as the largest id needs. Give the training
        file's number for the test file, so that both agree.
    zero_based : bool or "auto", default "auto"
        Whether ids start at 0 or at 1. With "auto" they start at 0 if the id 0 occurs in this file or it begins with
        the sizes. A test file may lack a feature that the training file has: tell it what the training file had
        (``zero_based`` of the result).
    multilabel : bool, default False
        Lines have any number of labels, also none, joined by commas: ``1,5,7 id:value ...``.
    qid : {"ignore", "error"}, default "ignore"
        What to do with query ids, ``label qid:3 id:value ...``.
    dtype : float64 or float32, default float64
        Type of the values.

    Returns
    -------
    SvmlightData
        With ``X``, ``y`` and ``zero_based``; ``X, y = read_svmlight(...)`` works as well.

    Raises
    ------
    ValueError
        If the file is not of this form, with line, column and what was expected. Infinities, NaN, negative ids, and
        ids that occur twice in a line are such errors.
    """
    check_choice("qid", qid, ("ignore", "error"))
    rows = SparseRows(source, form="svmlight", multilabel=multilabel, query_ids=qid == "ignore")
    first = rows.starts_at_zero(zero_based)
    if n_features is None and rows.sizes is not None:
        n_features = rows.sizes.features
    X = rows.matrix(first_id=0 if first else 1, n_features=n_features, dtype=dtype)
    return SvmlightData(X, rows.labels(multilabel), first, None if rows.sizes is None else rows.sizes.labels)


def read_lshtc(
    source: Source,
    *,
    n_features: int | None = None,
    multilabel: bool = False,
    dtype: npt.DTypeLike = np.float64,
) -> LshtcData:
    """Read lines of the form ``label 0:N id:count id:count ...``.

    That is svmlight with unsorted ids from 1 on, where the leading ``0:N`` is a number of the document and not a word.
    A line may lack it. The word with the id j is column j - 1.

    Parameters
    ----------
    source, n_features, multilabel, dtype
        As in `read_svmlight`. Commas between labels may be followed by blanks.

    Returns
    -------
    LshtcData
        With ``X``, ``y`` and ``totals``; ``X, y = read_lshtc(...)`` works as well.

    Raises
    ------
    ValueError
        If the file is not of this form, with line, column and what was expected.
    """
    rows = SparseRows(source, form="lshtc", multilabel=multilabel)
    X = rows.matrix(first_id=1, n_features=n_features, dtype=dtype)
    return LshtcData(X, rows.labels(multilabel), rows.parsed["totals"])
