"""Numbers and dates on a common scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from taxolearn.features.cells import Dates

__all__ = ["CYCLES", "Curves", "NumberScale", "cycle_features", "cycle_names", "cycles_of"]

_HEAVY = 50.0  # mean fourth power of standardized numbers, above which tails are heavy; 3 if normal, 9 if exponential
_SMALL = 0.05  # share of the positive numbers that count as small
_LEAST_WIDTH = 1e-30
_DAY = np.timedelta64(1, "D")
_MONDAY = np.datetime64("1970-01-05", "us")
_LEVELS = 6  # of curves: 64 intervals
_SAME = 0.01  # of a cycle, up to which dates are at the same place of it
CYCLES = ("year", "week", "day")
_WAVES = tuple((wave, turns) for turns in (1, 2) for wave in ("sin", "cos"))  # of each; one turn knows no weekend


@dataclass(frozen=True)
class NumberScale:
    """How columns of numbers become features.

    A number x becomes (x - mean) / scale, and 0 if it is missing. In a column with heavy tails, such as prices from
    cents to millions, x is replaced by arsinh((x - centre) / width) before, which is about linear near the centre and
    logarithmic far away. Behind the numbers there is a feature for every column of which some, but not all, numbers
    are missing: 1 where they are.

    Attributes
    ----------
    mean, scale : ndarray of float64
        Of each column.
    centre, width : ndarray of float64
        Of each column; the width is 0 if the column is taken as it is.
    has_missing : ndarray of bool
        Whether the column has a feature for missing numbers.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    centre: NDArray[np.float64]
    width: NDArray[np.float64]
    has_missing: NDArray[np.bool_]

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> NumberScale:
        """The scale of a matrix in which missing numbers are NaN."""
        known: NDArray[np.bool_] = ~np.isnan(numbers)
        numbers = np.where(known.any(axis=0), numbers, 0.0)
        plain = StandardScaler().fit(numbers)
        has_tails = np.nanmean(((numbers - plain.mean_) / plain.scale_) ** 4, axis=0) > _HEAVY
        centre, width = np.zeros(numbers.shape[1]), np.zeros(numbers.shape[1])
        for k in np.flatnonzero(has_tails):
            centre[k], width[k] = _centre_and_width(numbers[known[:, k], k])
        scaler = StandardScaler().fit(_bent(numbers, centre, width)) if has_tails.any() else plain
        has_missing = np.logical_and(known.any(axis=0), ~known.all(axis=0))
        return cls(scaler.mean_, scaler.scale_, centre, width, has_missing)

    def features(self, numbers: NDArray[np.float64]) -> NDArray[np.float32]:
        values = (_bent(numbers, self.centre, self.width) - self.mean) / self.scale
        missing = np.isnan(numbers)
        return np.hstack([np.where(missing, 0.0, values), missing[:, self.has_missing]]).astype(np.float32)

    def names(self, columns: Sequence[str]) -> list[str]:
        missing = [name for name, has_missing in zip(columns, self.has_missing, strict=True) if has_missing]
        return [*columns, *(f"{name}=missing" for name in missing)]


@dataclass(frozen=True)
class Curves:
    """Hat functions of columns of numbers, by which linear models have a piecewise linear curve for each.

    A number x becomes its place u between the least of the knots, 0, and the largest, 1; from each knot to the next it
    is the same way. Level l has 2^(l-1) hats on u side by side, of height 2^(-(l-1)/2): the Faber-Schauder functions.
    Inner products at two knots are 4 (min(u, v) - u v), the covariance of a Brownian bridge, so weights of equal
    variance make curves that are as smooth as a random walk, however many levels there are. A missing number has no
    features, nor has one outside of those of ``fit``; there the number itself has to do.

    Attributes
    ----------
    knots : tuple of ndarray of float64
        Some of the numbers of each column, increasing, with about the same number of rows between each two. A number
        that many rows have takes the place of one knot only. Columns with fewer than three knots have no features.
    """

    knots: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> Curves:
        """Knots of a matrix in which missing numbers are NaN."""
        return cls(tuple(_knots(column[~np.isnan(column)]) for column in numbers.T))

    def features(self, numbers: NDArray[np.float64]) -> sp.csr_matrix:
        values, columns, first = [], [], 0
        for knots, column in zip(self.knots, numbers.T, strict=True):
            if _levels(knots) == 0:
                continue
            shares = np.interp(column, knots, np.linspace(0.0, 1.0, len(knots)))  # NaN stays
            for level in range(_levels(knots)):
                count = 2**level
                place = np.clip(np.nan_to_num(shares * count), 0, count - 1).astype(np.int64)
                values.append(np.nan_to_num(1.0 - np.abs(2.0 * (shares * count - place) - 1.0)) / np.sqrt(count))
                columns.append(first + place)
                first += count
        if first == 0:
            return sp.csr_matrix((len(numbers), 0), dtype=np.float32)
        pointers = len(values) * np.arange(len(numbers) + 1)
        parts = (np.stack(values, axis=1).ravel().astype(np.float32), np.stack(columns, axis=1).ravel(), pointers)
        hats = sp.csr_matrix(parts, shape=(len(numbers), first))
        hats.eliminate_zeros()
        return hats

    def names(self, columns: Sequence[str]) -> list[str]:
        """``price near 12.5``, by the number where the hat is highest."""
        names = []
        for name, knots in zip(columns, self.knots, strict=True):
            shares = np.linspace(0.0, 1.0, len(knots))
            for level in range(_levels(knots)):
                tops = np.interp((np.arange(2**level) + 0.5) / 2**level, shares, knots)
                names += [f"{name} near {top:.6g}" for top in tops]
        return names


def _knots(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(numbers) == 0:
        return numbers
    values, counts = np.unique(numbers, return_counts=True)
    rows = np.cumsum(np.minimum(counts, len(numbers) / 2**_LEVELS))
    chosen = np.searchsorted(rows, np.linspace(0.0, rows[-1], 2**_LEVELS + 1))
    knots: NDArray[np.float64] = values[np.unique(np.minimum(chosen, len(values) - 1))]
    return knots


def _levels(knots: NDArray[np.float64]) -> int:
    """Levels of hats that are not zero at all knots."""
    return int(np.ceil(np.log2(len(knots) - 1))) if len(knots) > 2 else 0


def _centre_and_width(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Of numbers with heavy tails: 0 and a small one if none is negative, else the median and the median distance."""
    if (numbers >= 0).all():
        centre, width = 0.0, np.quantile(numbers[numbers > 0], _SMALL)
    else:
        centre = np.median(numbers)
        width = np.median(np.abs(numbers - centre)) or numbers.std()
    return float(centre), max(float(width), _LEAST_WIDTH)


def _bent(numbers: NDArray[np.float64], centre: NDArray[np.float64], width: NDArray[np.float64]) -> Any:
    is_bent = width > 0
    if not is_bent.any():
        return numbers
    return np.where(is_bent, np.arcsinh((numbers - centre) / np.where(is_bent, width, 1.0)), numbers)


def cycles_of(dates: Dates) -> list[str]:
    """The cycles in which dates differ. Those of a month's first days, or of its last ones, have no week."""
    clock = dates.clock[~np.isnat(dates.clock)]
    if len(clock) == 0:
        return []
    found = [name for name in CYCLES if np.ptp(_phases(clock, name)) > _SAME]
    days = clock.astype("M8[D]") - clock.astype("M8[M]")
    return [name for name in found if name != "week" or np.ptp(days) > 3 * _DAY]


def cycle_features(dates: Dates, cycles: Sequence[str]) -> NDArray[np.float32]:
    """Sines and cosines of the cycles, of mean square 1 if dates are uniform; 0 where the date is missing."""
    waves = [
        getattr(np, wave)(2 * np.pi * turns * _phases(dates.clock, name)) for name in cycles for wave, turns in _WAVES
    ]
    values = np.sqrt(2) * np.array(waves).reshape(len(waves), len(dates.clock)).T
    return np.where(np.isnan(values), 0.0, values).astype(np.float32)


def cycle_names(column: str, cycles: Sequence[str]) -> list[str]:
    """The names of the features: ``sold sin(year)``, ``sold cos(2 year)``."""
    return [
        f"{column} {wave}({name if turns == 1 else f'{turns} {name}'})" for name in cycles for wave, turns in _WAVES
    ]


def _phases(clock: NDArray[np.datetime64], cycle: str) -> Any:
    """Where in a year, week (from Monday on) or day: from 0 to 1."""
    if cycle == "year":
        years = clock.astype("M8[Y]")
        return (clock - years) / ((years + 1).astype("M8[us]") - years)
    if cycle == "week":
        return (clock - _MONDAY) / (7 * _DAY) % 1.0
    return (clock - clock.astype("M8[D]")) / _DAY
