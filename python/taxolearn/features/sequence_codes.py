"""Sequences as the codes of their letters or words, which kernels of strings read."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from taxolearn.sequence_codes import as_sequences, code_matrix, letter_codes
from taxolearn.validation import check_choice

__all__ = ["SequenceCodes"]

_UNITS = ("letters", "words")


class SequenceCodes(TransformerMixin, BaseEstimator):
    """Sequences as sparse rows of codes, which the kernels of strings read: row i holds its letters from the left.

    Models with a kernel of strings take strings as they are and use letters. This transformer is for sequences of
    words, and for pipelines and ``Blocks`` in which other inputs go with the sequences. Linear and stationary kernels,
    and models without kernels, make no sense of codes; ``SequenceFeatures`` is for these.

    Parameters
    ----------
    unit : {"letters", "words"}, default="letters"
        What a sequence consists of: characters, or what blanks part.

    Attributes
    ----------
    words_ : ndarray of str or None
        The words of the sequences in ``fit``, sorted; None for letters. Other words differ from these and from each
        other.

    Examples
    --------
    >>> from taxolearn.features import SequenceCodes
    >>> from taxolearn.kernels import Spectrum
    >>> X = SequenceCodes(unit="words").fit_transform(["to be or not to be", "let it be", "be it"])
    >>> Spectrum(1, normalized=False)(X).tolist()
    [[10.0, 2.0, 2.0], [2.0, 3.0, 2.0], [2.0, 2.0, 2.0]]
    """

    def __init__(self, unit: str = "letters") -> None:
        self.unit = unit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, X: Any, y: Any = None) -> SequenceCodes:
        """Number the words.

        Parameters
        ----------
        X : list or column of str
            Sequences.
        y : None
            Ignored.
        """
        check_choice("unit", self.unit, _UNITS)
        sequences = as_sequences(X)
        self.words_ = None
        if self.unit == "words":
            self.words_ = np.array(sorted({word for each in sequences for word in each.split()}), dtype=object)
        return self

    def transform(self, X: Any) -> sp.csr_array:
        """The codes: a CSR matrix of shape (n_sequences, 2^20), a number per letter stored."""
        check_is_fitted(self, "words_")
        if self.words_ is None:
            return letter_codes(X)
        known = {word: code for code, word in enumerate(self.words_.tolist(), start=1)}
        codes = [[known.setdefault(word, len(known) + 1) for word in each.split()] for each in as_sequences(X)]
        return code_matrix([np.array(each, dtype=np.int64) for each in codes])
