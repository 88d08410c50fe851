"""Sequences of letters in the form in which the core reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["MOST_LETTERS", "are_strings", "as_sequences", "code_matrix", "letter_codes"]

MOST_LETTERS = 2**20  # of a sequence; the number of columns, so that new sequences may be longer than known ones


def are_strings(X: Any) -> bool:
    """Whether the rows are a list or a column of strings, as far as the first of them tells."""
    if isinstance(X, (str, bytes)) or sp.issparse(X) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__"):
        return False
    return len(X) > 0 and isinstance(X.iloc[0] if hasattr(X, "iloc") else X[0], str)


def as_sequences(X: Any, name: str = "X") -> list[str]:
    """The strings of a list, an array or a column."""
    if isinstance(X, str) or getattr(X, "ndim", 1) != 1:
        raise TypeError(f"{name} must be a list or a column of strings, one per sequence")
    rows = X.tolist() if hasattr(X, "tolist") else list(X)
    for row, sequence in enumerate(rows):
        if not isinstance(sequence, str):
            raise TypeError(f"{name}: row {row} is {sequence!r}, expected a string")
    return rows


def code_matrix(codes: Sequence[npt.NDArray[Any]], name: str = "X") -> sp.csr_array:
    """A sparse matrix whose row i has the codes of sequence i, whole numbers from 1, in its first columns."""
    lengths = np.array([len(each) for each in codes], dtype=np.int64)
    if lengths.max(initial=0) > MOST_LETTERS:
        row = int(lengths.argmax())
        raise ValueError(f"{name}: row {row} has {lengths[row]} letters, expected at most {MOST_LETTERS}")
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    index = np.int32 if total < 2**31 else np.int64
    places = np.arange(total) - np.repeat(ends - lengths, lengths)
    values = np.concatenate([*codes, np.empty(0)]).astype(np.float32)
    offsets = np.concatenate([[0], ends])
    shape = (len(codes), MOST_LETTERS)
    return sp.csr_array((values, places.astype(index), offsets.astype(index)), shape=shape)


def letter_codes(X: Any, name: str = "X") -> sp.csr_array:
    """Strings by the code points of their characters plus one, which need not be learned from any data."""
    codes = [
        np.frombuffer(each.encode("utf-32-le", "surrogatepass"), dtype=np.uint32) + 1 for each in as_sequences(X, name)
    ]
    return code_matrix(codes, name)
