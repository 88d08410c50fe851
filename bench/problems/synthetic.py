"""Problems made up at any size, for curves of cost: texts, dense clusters and trees, without a loop over rows."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from taxolearn import Blocks

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

OWN_SHARE = 0.2  # of the words of a text: those of its class
NOISE = 0.1  # share of rows that exchange their labels


def frequencies(d: int, per_row: int) -> Floats:
    """Shares of rows that have each of d words: by Zipf's law, at most 1, and ``per_row`` in all."""
    if not 0 < per_row < d:
        raise ValueError(f"per_row must be between 1 and d - 1, got {per_row} of {d} words")
    law = 1.0 / np.arange(1, d + 1)
    # The m most frequent words are in every row, and the law shares the rest among the others: m grows until none of
    # them exceeds 1.
    rest = np.cumsum(law[::-1])[::-1]
    m = int(np.argmax(law * (per_row - np.arange(d)) <= rest))
    shares: Floats = law * ((per_row - m) / rest[m])
    shares[:m] = 1.0
    return shares


def permutations(count: int, d: int, random: np.random.Generator) -> tuple[Integers, Integers]:
    """Factors and offsets of ``count`` permutations of d numbers, k -> (factor k + offset) mod d."""
    coprime = np.flatnonzero(np.gcd(np.arange(d), d) == 1)
    return random.choice(coprime, count), random.integers(d, size=count)


def labels(n: int, n_classes: int, random: np.random.Generator) -> Integers:
    """Classes in random order, of equal size but for one row."""
    return random.permutation(np.arange(n) % n_classes)


def noisy(y: Integers, random: np.random.Generator) -> Integers:
    """The classes with labels of some rows exchanged, so that no model is right about all."""
    rows = np.flatnonzero(random.random(len(y)) < NOISE)
    out = y.copy()
    out[rows] = y[random.permutation(rows)]
    return out


def made_up_text(n: int, n_classes: int, per_row: int, d: int, seed: int) -> tuple[Any, Integers]:
    """Tf-idf of n texts with nearly ``per_row`` words of d, some the class's own; and their classes.

    The k-th word of a row is drawn from the k-th of ``per_row`` equal parts of the law, so that words hardly repeat.
    Words of the class's own have gone through a permutation that belongs to it. Some labels are wrong.
    """
    random = np.random.default_rng(seed)
    y = labels(n, n_classes, random)
    until = np.cumsum(frequencies(d, per_row))
    until[-1] = per_row  # whatever rounding did
    words = np.searchsorted(until, np.arange(per_row) + random.random((n, per_row)), side="right")
    factors, offsets = permutations(n_classes, d, random)
    of_class = (factors[y, None] * words + offsets[y, None]) % d
    words = np.where(random.random((n, per_row)) < OWN_SHARE, of_class, words).astype(np.int32)
    words.sort(axis=1)
    counts = sparse.csr_matrix(
        (np.ones(n * per_row), words.ravel(), per_row * np.arange(n + 1, dtype=np.int32)), shape=(n, d)
    )
    counts.sum_duplicates()
    return TfidfTransformer(sublinear_tf=True).fit(counts).transform(counts, copy=False), noisy(y, random)


def made_up_clusters(n: int, n_classes: int, d: int, seed: int) -> tuple[Floats, Integers]:
    """Rows around the centre of their class, with a mean |x|^2 near 1; and their classes, some wrong.

    The k-th feature has a standard deviation proportional to 1 / sqrt(k), so that fits are not too easy.
    """
    random = np.random.default_rng(seed)
    y = labels(n, n_classes, random)
    centres = random.standard_normal((n_classes, d))
    X = random.standard_normal((n, d))
    X += centres[y]
    scales = np.arange(1, d + 1) ** -0.5
    X *= scales * (2 * np.sum(scales**2)) ** -0.5
    return X, noisy(y, random)


def made_up_blocks(n: int, n_classes: int, per_row: int, d: int, width: int, seed: int) -> tuple[Blocks, Integers]:
    """Words (``per_row`` of d in a row) and dense numbers that know a little of the class, in single precision.

    Words are uniform, but for one that belongs to the class. Both blocks have rows of length about 1, and are made
    without anything else of their size.
    """
    random = np.random.default_rng(seed)
    y = labels(n, n_classes, random)
    words = random.integers(0, d, (n, per_row), dtype=np.int32)
    words[:, 0] = y
    words.sort(axis=1)
    values = np.full(n * per_row, per_row**-0.5, dtype=np.float32)
    X = sparse.csr_matrix((values, words.ravel(), per_row * np.arange(n + 1, dtype=np.int32)), shape=(n, d))
    X.sum_duplicates()
    dense = random.standard_normal((n, width), dtype=np.float32)
    centres = random.standard_normal((n_classes, width), dtype=np.float32)
    for c in range(n_classes):
        dense[y == c] += 0.2 * centres[c]
    dense *= np.float32(width**-0.5)
    return Blocks({"words": X, "embedding": dense}), y


def made_up_tree(sizes: Sequence[int]) -> Integers:
    """Parents of the nodes of a tree with ``sizes`` nodes on its levels, the last of them leaves; the root is node 0.

    On every level nodes are divided evenly among those of the level above, so sizes must not decrease.
    """
    if any(above > below for above, below in pairwise(sizes)):
        raise ValueError(f"sizes of levels must not decrease from the root downwards, got {list(sizes)}")
    parents = [np.array([-1])]
    first, above = 0, 1
    for size in sizes:
        parents.append(first + np.arange(size) * above // size)
        first, above = first + above, size
    return np.concatenate(parents)
