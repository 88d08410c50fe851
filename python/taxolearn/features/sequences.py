"""Sequences of letters, such as DNA and proteins: how long the words are that they are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

__all__ = ["usual_lengths", "without_blanks"]

_WORDS = 200_000  # possible ones, at most
_LONGEST = 12


def without_blanks(columns: Sequence[Sequence[str]]) -> list[str]:
    """The sequences of each row without blanks inside, and with one between those of different columns."""
    return [" ".join("".join(cell.split()) for cell in row) for row in zip(*columns, strict=True)]


def usual_lengths(sequences: Sequence[str]) -> tuple[int, int]:
    """Shortest and longest words that tell sequences apart.

    It is one length k: the longest with at most 200,000 words, a^k, of an alphabet of a letters that are equally
    frequent. Letters that are not count as exp(entropy), so that a few N among A, C, G and T do not matter.
    """
    counts: Counter[str] = Counter()
    for sequence in sequences:
        counts.update(sequence.lower())
    del counts[" "]
    shares = np.array(list(counts.values()), dtype=np.float64) / max(counts.total(), 1)
    entropy = float(-(shares * np.log(shares)).sum())
    length = int(np.log(_WORDS) / max(entropy, np.log(_WORDS) / _LONGEST))
    return max(length, 1), max(length, 1)
