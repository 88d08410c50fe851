"""Explicit features of sequences, whose inner products are string kernels."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from taxolearn.sequence_codes import as_sequences
from taxolearn.validation import check_choice, check_number

__all__ = ["LARGEST_CODE", "SequenceFeatures"]

Codes = npt.NDArray[np.int64]

_UNITS = ("letters", "words")
LARGEST_CODE = 2**62
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)  # multipliers that mix bits
_BLOCK = 512  # sequences that are counted at once


class SequenceFeatures(TransformerMixin, BaseEstimator):
    """Counts of the substrings of sequences, as a sparse matrix.

    Inner products of its rows are string kernels, so that linear models serve, in time proportional to the letters:

    - the spectrum kernel of Leslie, Eskin and Noble (2002), the counts of all substrings of some lengths;
    - with ``positions=True`` the weighted degree kernel of Rätsch and Sonnenburg (2004), the substrings that two
      sequences have at the same places: length k counts ``2 (d - k + 1) / (d (d + 1))``, where d is the largest one.

    Parameters
    ----------
    lengths : int or sequence of int, default=(3, 4)
        Lengths of the substrings.
    unit : {"letters", "words"}, default="letters"
        What a sequence consists of: characters, or what blanks part.
    positions : bool, default=False
        Whether substrings at different places differ.
    n_hashed : int or None, default=None
        Number of features, of which substrings share some by chance. None gives each substring of the sequences in
        ``fit`` a feature of its own, and others none.
    normalized : bool, default=True
        Whether rows have length 1.
    dtype : type, default=numpy.float32
        Of the counts.

    Attributes
    ----------
    units_ : list of str or None
        The letters or words of the sequences in ``fit``, sorted; None with ``n_hashed``.
    codes_ : ndarray of int or None
        Which substring each feature stands for; None with ``n_hashed``.
    n_features_ : int
        Number of features.

    Examples
    --------
    >>> from taxolearn.features import SequenceFeatures
    >>> X = SequenceFeatures(2, normalized=False).fit_transform(["abab", "abc"])
    >>> (X @ X.T).toarray().tolist()
    [[5.0, 2.0], [2.0, 2.0]]
    """

    def __init__(
        self,
        lengths: int | Sequence[int] = (3, 4),
        *,
        unit: str = "letters",
        positions: bool = False,
        n_hashed: int | None = None,
        normalized: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.lengths = lengths
        self.unit = unit
        self.positions = positions
        self.n_hashed = n_hashed
        self.normalized = normalized
        self.dtype = dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = self.n_hashed is None
        return tags

    def fit(self, X: Any, y: Any = None) -> SequenceFeatures:
        """Find the substrings.

        Parameters
        ----------
        X : list or column of str
            Sequences.
        y : None
            Ignored.
        """
        lengths = self._checked_lengths()
        check_choice("unit", self.unit, _UNITS)
        sequences = self._split(X)
        if self.n_hashed is not None:
            self.n_features_ = check_number("n_hashed", self.n_hashed, least=1, integer=True)
            self.units_, self.codes_ = None, None
            return self
        self.units_ = sorted({each for sequence in sequences for each in sequence})
        self._longest = max((len(sequence) for sequence in sequences), default=0)
        if self._possible_codes() > LARGEST_CODE:
            raise ValueError(
                f"lengths={self.lengths!r} of {len(self.units_)} different {self.unit} give too many possible "
                "substrings to number them; give n_hashed, or smaller lengths"
            )
        found = [np.unique(codes) for _, codes, _ in self._substrings(sequences, lengths)]
        self.codes_ = np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)
        self.n_features_ = len(self.codes_)
        if self.n_features_ == 0:
            raise ValueError(f"no sequence has a substring of lengths {lengths}; they are shorter")
        return self

    def transform(self, X: Any) -> sp.csr_array:
        """Count the substrings: a CSR matrix of shape (n_sequences, n_features_)."""
        check_is_fitted(self, "n_features_")
        lengths = self._checked_lengths()
        sequences = self._split(X)
        rows, columns, values = [], [], []
        for of, codes, weight in self._substrings(sequences, lengths):
            if self.codes_ is None:
                known = np.arange(len(codes))
                places = (codes.view(np.uint64) % np.uint64(self.n_features_)).astype(np.int64)
            else:
                places = np.searchsorted(self.codes_, codes)
                known = np.flatnonzero(self.codes_[np.minimum(places, self.n_features_ - 1)] == codes)
            rows.append(of[known])
            columns.append(places[known])
            values.append(np.full(len(known), weight))
        entries = [np.concatenate(each) if each else np.empty(0, np.int64) for each in (rows, columns, values)]
        shape = (len(sequences), self.n_features_)
        out = sp.csr_array((entries[2].astype(np.float64), (entries[0], entries[1])), shape=shape)
        out.sum_duplicates()
        if self.normalized:
            out = normalize(out, copy=False)
        index = np.int32 if max(out.nnz, self.n_features_) < 2**31 else np.int64  # liblinear takes no other
        parts = (out.data.astype(self.dtype), out.indices.astype(index), out.indptr.astype(index))
        return sp.csr_array(parts, shape=shape)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the features: their substrings, with "@" and the place where that counts."""
        check_is_fitted(self, "n_features_")
        if self.codes_ is None or self.units_ is None:
            return np.array([f"hashed {k}" for k in range(self.n_features_)], dtype=object)
        lengths, base = self._checked_lengths(), len(self.units_) + 1
        joint = "" if self.unit == "letters" else " "
        names = []
        for code in self.codes_.tolist():
            place, rest = divmod(code, len(lengths) * base ** max(lengths))
            number, word = divmod(rest, base ** max(lengths))
            letters = [self.units_[word // base**k % base - 1] for k in range(lengths[number])]
            names.append(joint.join(letters) + (f"@{place}" if self.positions else ""))
        return np.array(names, dtype=object)

    def _possible_codes(self) -> float:
        """Codes are below this; there are as many, or nearly."""
        assert self.units_ is not None
        lengths = self._checked_lengths()
        places = self._longest + 1 if self.positions else 1
        try:
            return float(len(self.units_) + 1) ** max(lengths) * places * len(lengths)
        except OverflowError:
            return np.inf

    def _checked_lengths(self) -> list[int]:
        given = [self.lengths] if np.ndim(self.lengths) == 0 else list(self.lengths)  # type: ignore[arg-type]
        if not given:
            raise ValueError("lengths is empty, expected at least one length")
        return sorted({check_number("lengths", each, least=1, integer=True) for each in given})

    def _split(self, X: Any) -> list[Sequence[str]]:
        rows = as_sequences(X)
        return list(rows) if self.unit == "letters" else [sequence.split() for sequence in rows]

    def _numbers(self, sequence: Sequence[str], number_of: dict[str, int]) -> Codes:
        """Numbers of the units; 0 for those that fit has not seen."""
        if self.units_ is not None:
            return np.array([number_of.get(each, 0) for each in sequence], dtype=np.int64)
        coded = [number_of.setdefault(each, zlib.crc32(each.encode("utf-8", "surrogatepass"))) for each in sequence]
        return np.array(coded, dtype=np.int64)

    def _substrings(self, sequences: list[Sequence[str]], lengths: list[int]) -> Iterator[tuple[Codes, Codes, float]]:
        """Rows and codes of all substrings of a length in some sequences, and what each counts."""
        is_exact = self.units_ is not None
        number_of = {} if self.units_ is None else {each: k + 1 for k, each in enumerate(self.units_)}
        base = len(number_of) + 1
        largest = lengths[-1]
        for first in range(0, len(sequences), _BLOCK):
            numbers = [self._numbers(sequence, number_of) for sequence in sequences[first : first + _BLOCK]]
            sizes = np.array([len(each) for each in numbers], dtype=np.int64)
            together = np.concatenate([*numbers, np.empty(0, dtype=np.int64)])
            starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
            places = np.arange(len(together)) - starts
            row = np.repeat(np.arange(first, first + len(numbers)), sizes)
            left = np.repeat(sizes, sizes) - places
            for at, length in enumerate(lengths):
                begin = np.flatnonzero(left >= length)
                if is_exact:
                    known = np.ones(len(begin), dtype=bool)
                    codes = np.zeros(len(begin), dtype=np.int64)
                    for k in range(length):
                        letter = together[begin + k]
                        known &= letter > 0
                        codes += letter * base**k
                    if self.positions:
                        known &= places[begin] <= self._longest
                    codes += at * base**largest
                    if self.positions:
                        codes += places[begin] * (len(lengths) * base**largest)
                    begin, codes = begin[known], codes[known]
                else:
                    mixed = np.full(len(begin), length, dtype=np.uint64)
                    for k in range(length):
                        mixed = _mix(mixed ^ together[begin + k].view(np.uint64))
                    if self.positions:
                        mixed = _mix(mixed ^ places[begin].view(np.uint64))
                    codes = mixed.view(np.int64)
                weight = 1.0  # the root of what a pair of substrings counts
                if self.positions:
                    weight = float(np.sqrt(2 * (largest - length + 1) / (largest * (largest + 1))))
                yield row[begin], codes, weight


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    for odd in _ODD:
        values = values * np.uint64(odd)
        values = values ^ (values >> np.uint64(29))
    return values
