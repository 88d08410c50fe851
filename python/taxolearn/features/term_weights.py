"""Tf-idf weights of texts by a fitted ``TfidfVectorizer``, counted by the core where its settings allow that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from taxolearn import _core

__all__ = ["WORD", "TermWeights"]

WORD = r"(?u)\b\w+\b"
_COUNTED = {  # settings that the core knows
    "lowercase": True,
    "strip_accents": None,
    "preprocessor": None,
    "tokenizer": None,
    "stop_words": None,
    "binary": False,
    "use_idf": True,
    "dtype": np.float32,
}
_UNITS = {"word": "words", "char_wb": "characters"}


class TermWeights:
    """Does the same as the ``transform`` of a vectorizer, faster.

    Parameters
    ----------
    vectorizer : TfidfVectorizer
        Fitted.
    """

    def __init__(self, vectorizer: TfidfVectorizer) -> None:
        self._vectorizer = vectorizer
        self._unit = _UNITS.get(vectorizer.analyzer, "") if isinstance(vectorizer.analyzer, str) else ""
        settings = vectorizer.get_params()
        is_known = all(settings[name] is value or settings[name] == value for name, value in _COUNTED.items())
        is_known &= self._unit == "characters" or (self._unit == "words" and settings["token_pattern"] == WORD)
        lengths = settings["ngram_range"]  # of a file, it can be anything
        is_known &= isinstance(lengths, (tuple, list)) and [type(length) for length in lengths] == [int, int]
        self._vocabulary: _core.Vocabulary | None = None
        if is_known and 1 <= lengths[0] <= lengths[1] < 2**31:
            terms = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
            self._vocabulary = _core.Vocabulary([_bytes(term) for term in terms])

    def transform(self, texts: Sequence[str], n_threads: int) -> Any:
        """Weigh the terms of texts: a CSR matrix of float32 with sorted indices."""
        vectorizer, vocabulary = self._vectorizer, self._vocabulary
        if vocabulary is None:
            return vectorizer.transform(texts)
        if self._unit == "words":
            find = re.compile(WORD).findall
            coded = [_bytes(" ".join(find(text.lower()))) for text in texts]
        else:
            coded = [_bytes(text.lower()) for text in texts]
        shortest, longest = vectorizer.ngram_range
        counts, terms, offsets = vocabulary.count(coded, self._unit, shortest, longest, n_threads)
        if offsets[-1] <= np.iinfo(np.int32).max:
            offsets = offsets.astype(np.int32)
        if vectorizer.sublinear_tf:
            np.log(counts, counts)
            counts += 1.0
        counts *= vectorizer.idf_[terms]
        X = sp.csr_matrix((counts, terms, offsets), shape=(len(coded), len(vocabulary)))
        return normalize(X, vectorizer.norm, copy=False) if vectorizer.norm is not None and coded else X


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
