"""Kernels of strings: substrings, subsequences with gaps, and substrings at equal places."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import scipy.sparse as sp

from taxolearn import _core
from taxolearn.kernels.leaf import Leaf, Number
from taxolearn.validation import check_number

__all__ = ["Spectrum", "Subsequence", "WeightedDegree"]

_LONGEST_SUBSEQUENCE = 8
_LONGEST_SUBSTRING = 1000


@dataclass(frozen=True, repr=False)
class _OfSequences(Leaf):
    """A kernel whose inputs are sequences."""

    reads_sequences = True

    @property
    @abstractmethod
    def normalized(self) -> bool: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("normalized", _check_bool(type(self).__name__, self.normalized))

    def check_reads(self, X: Any) -> None:
        super().check_reads(X)
        if not sp.issparse(X):
            raise TypeError(
                f"{self!r} reads sequences: a list or a column of strings, or the codes that features.SequenceCodes "
                f"makes of them, got {type(X).__name__} of shape {X.shape}"
            )


@dataclass(frozen=True, repr=False)
class Subsequence(_OfSequences):
    """Pairs of equal subsequences of a length, which may have gaps (Lodhi and others 2002).

    Each pair counts ``decay ** s``, where s is the sum of its spans in the two strings, gaps included. With a small
    decay only subsequences without gaps matter, as in ``Spectrum``. Time is proportional to the product of the lengths
    of the two strings and to the length of the subsequences.

    Parameters
    ----------
    length : int, default=4
        Letters of the subsequences, 1 to 8. Not learned.
    decay : float, default=0.5
        At most 1. Learned by its exact derivative.
    normalized : bool, default=True
        Whether to divide by ``sqrt(k(x, x) k(x', x'))``. Strings shorter than ``length`` have the value 0 with all.
    variance : float, default=1.0
        Factor of the whole.
    bounds, fixed
        As in ``Linear``; the decay is searched for from 0.01 to 1 by default.

    Examples
    --------
    >>> from taxolearn.kernels import Subsequence
    >>> Subsequence(2, 0.5, normalized=False)(["cat", "car", "cart"]).round(4).tolist()
    [[0.1406, 0.0625, 0.1016], [0.0625, 0.1406, 0.1406], [0.1016, 0.1406, 0.2227]]
    """

    length: int = 4
    decay: float = 0.5
    normalized: bool = True
    variance: float = 1.0

    _names = ("decay", "variance")
    _usual_bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"decay": (0.01, 1.0)}
    _core_kernel = _core.SubsequenceKernel

    def __post_init__(self) -> None:
        super().__post_init__()
        length = check_number("Subsequence: length", self.length, least=1, integer=True)
        if length > _LONGEST_SUBSEQUENCE:
            raise ValueError(f"Subsequence: length is {length}, expected at most {_LONGEST_SUBSEQUENCE}")
        self._set("length", length)
        if self.bounds.get("decay", (0.0, 1.0))[1] > 1.0:
            raise ValueError(f"Subsequence: bounds of decay are {self.bounds['decay']}, expected at most 1")

    def _check_value(self, owner: str, name: str, value: object) -> Number:
        number = super()._check_value(owner, name, value)
        if name == "decay" and number > 1.0:  # type: ignore[operator]
            raise ValueError(f"{owner}: decay is {number}, expected at most 1")
        return number


@dataclass(frozen=True, repr=False)
class Spectrum(_OfSequences):
    """The inner product of the counts of all substrings of some lengths (Leslie, Eskin and Noble 2002).

    ``features.SequenceFeatures`` makes these counts explicit, so that linear models serve, which is faster unless
    sequences are few. This kernel is for sums and products with others.

    Parameters
    ----------
    lengths : int or sequence of int, default=(3, 4)
        Lengths of the substrings. Not learned; sums of kernels of one length each learn a variance of each.
    normalized : bool, default=True
        Whether to divide by ``sqrt(k(x, x) k(x', x'))``.
    variance : float, default=1.0
        Factor of the whole.
    bounds, fixed
        As in ``Linear``.

    Examples
    --------
    >>> from taxolearn.kernels import Spectrum
    >>> Spectrum(2, normalized=False)(["abab", "abc"]).tolist()
    [[5.0, 2.0], [2.0, 2.0]]
    """

    lengths: Any = (3, 4)
    normalized: bool = True
    variance: float = 1.0

    _core_kernel = _core.SpectrumKernel

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("lengths", _check_lengths("Spectrum", self.lengths))


@dataclass(frozen=True, repr=False)
class WeightedDegree(_OfSequences):
    """Equal substrings at equal places (Rätsch and Sonnenburg 2004), for sequences that are aligned.

    A substring of k letters counts ``2 (d - k + 1) / (d (d + 1))``, where d is the largest length.

    Parameters
    ----------
    lengths : int or sequence of int, default=(1, 2, 3, 4, 5)
        Lengths of the substrings. Not learned.
    normalized : bool, default=True
        Whether to divide by ``sqrt(k(x, x) k(x', x'))``.
    variance : float, default=1.0
        Factor of the whole.
    bounds, fixed
        As in ``Linear``.

    Examples
    --------
    >>> from taxolearn.kernels import WeightedDegree
    >>> WeightedDegree((1, 2))(["ACGT", "ACCT", "GTAC"]).round(3).tolist()
    [[1.0, 0.636, 0.0], [0.636, 1.0, 0.182], [0.0, 0.182, 1.0]]
    """

    lengths: Any = (1, 2, 3, 4, 5)
    normalized: bool = True
    variance: float = 1.0

    _core_kernel = _core.WeightedDegreeKernel

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("lengths", _check_lengths("WeightedDegree", self.lengths))


def _check_lengths(owner: str, lengths: Any) -> tuple[int, ...]:
    """Lengths in increasing order."""
    given = [lengths] if isinstance(lengths, Integral) else lengths
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{owner}: lengths must be a number or several, got {lengths!r}")
    checked = {check_number(f"{owner}: lengths", each, least=1, integer=True) for each in given}
    if not checked or max(checked) > _LONGEST_SUBSTRING:
        raise ValueError(
            f"{owner}: lengths is {lengths!r}, expected at least one number, all up to {_LONGEST_SUBSTRING}"
        )
    return tuple(sorted(checked))


def _check_bool(owner: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{owner}: normalized must be True or False, got {value!r}")
    return value
