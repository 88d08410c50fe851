"""A made-up catalogue of products: titles, numbers, categories and dates, each of which tells something of the class.

All columns of a product are drawn independently of one another given its class, so that the true probabilities of the
classes are known. Prices of the classes of a group lie in bands, one above the other: no linear function of the price
tells those in the middle.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from bench.problems.jobs import Job
from taxolearn import Taxonomy

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TITLE, NUMBERS, CATEGORIES, DATES = "title", ["price", "weight"], ["brand", "country"], ["listed"]

_DEPARTMENTS, _GROUPS, _CLASSES = 12, 5, 5  # groups of a department, and classes of a group
_N_CLASSES = _DEPARTMENTS * _GROUPS * _CLASSES
# On every level: nodes, words that belong to each, and the share of these among the words of a title.
_OWN_WORDS = ((_N_CLASSES, 10, 0.15), (_DEPARTMENTS * _GROUPS, 20, 0.15), (_DEPARTMENTS, 50, 0.15))
_COMMON_WORDS = 2000
_LEAST_WORDS, _MOST_WORDS = 2, 6  # of a title
_PLURALS = 0.3  # share of words with an s at the end
_BRANDS, _COUNTRIES, _DAYS, _YEARS = 2000, 40, 365, (2021, 2022, 2023)
_AT_HOME = 0.75  # share of the brands of the group
_SEASONAL = 0.5  # share of the classes that have a season
_BAND, _BAND_WIDTH = 0.6, 0.3  # distance of the bands of prices, and their standard deviation, in logarithms
_TEST_SEED = 3
_MISSING = {"price": 0.15, "weight": 0.25, "brand": 0.05}


@dataclass(frozen=True)
class Products:
    """Codes of what was drawn for each of n products; missing numbers are NaN, a missing brand and unused words -1."""

    words: Integers  # n x _MOST_WORDS
    brand: Integers
    country: Integers
    day: Integers
    log_price: Floats
    log_weight: Floats


class Catalogue:
    """What classes are like: for each column a distribution per class."""

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        at = np.arange(_N_CLASSES)
        group, department = at // _CLASSES, at // (_CLASSES * _GROUPS)
        self.names = np.array([f"{d:02}/{g:02}/{k:03}" for d, g, k in zip(department, group, at, strict=True)])
        self.prior = _zipf(_N_CLASSES, 0.5)[random.permutation(_N_CLASSES)]
        parts = [(1 - sum(share for *_, share in _OWN_WORDS)) * np.tile(_zipf(_COMMON_WORDS), (_N_CLASSES, 1))]
        for (nodes, count, share), node in zip(_OWN_WORDS, (at, group, department), strict=True):
            own = np.zeros((_N_CLASSES, nodes, count))
            own[at, node] = share * _zipf(count)
            parts.append(own.reshape(_N_CLASSES, -1))
        self.words = np.hstack(parts)
        popular, home = _zipf(_BRANDS), random.integers(_DEPARTMENTS * _GROUPS, size=_BRANDS)
        at_home = popular * (home == group[:, None])
        self.brands = _AT_HOME * at_home / at_home.sum(axis=1, keepdims=True) + (1 - _AT_HOME) * popular
        of_department = random.dirichlet(0.3 * np.ones(_COUNTRIES), _DEPARTMENTS)[department]
        self.countries = 0.5 * of_department + 0.5 * _zipf(_COUNTRIES)
        peak, is_seasonal = random.random((2, _N_CLASSES, 1))
        season = np.exp(4 * np.cos(2 * np.pi * (np.arange(_DAYS) / _DAYS - peak)) * (is_seasonal < _SEASONAL))
        self.days = 0.7 * season / season.sum(axis=1, keepdims=True) + 0.3 / _DAYS
        bands = np.concatenate([random.permutation(_CLASSES) for _ in range(_N_CLASSES // _CLASSES)])
        self.log_price = random.normal(3.0, 1.0, _DEPARTMENTS * _GROUPS)[group] + _BAND * (bands - (_CLASSES - 1) / 2)
        self.log_weight = random.normal(0.0, 1.0, _DEPARTMENTS)[department] + random.normal(0.0, 0.7, _N_CLASSES)
        self._spelling = random.permutation(60**3)[: self.words.shape[1]]

    def draw(self, n: int, seed: int) -> tuple[Any, Products, Integers]:
        """Draw a data frame of n products, their codes and their classes."""
        import pandas as pd

        random = np.random.default_rng(seed)
        y = random.choice(_N_CLASSES, n, p=self.prior)
        words = _drawn(self.words, y, _MOST_WORDS, random)
        lengths = random.integers(_LEAST_WORDS, _MOST_WORDS + 1, n)
        words[np.arange(_MOST_WORDS) >= lengths[:, None]] = -1
        is_missing = {name: random.random(n) < share for name, share in _MISSING.items()}
        products = Products(
            words=words,
            brand=np.where(is_missing["brand"], -1, _drawn(self.brands, y, 1, random)[:, 0]),
            country=_drawn(self.countries, y, 1, random)[:, 0],
            day=_drawn(self.days, y, 1, random)[:, 0],
            log_price=np.where(is_missing["price"], np.nan, random.normal(self.log_price[y], _BAND_WIDTH)),
            log_weight=np.where(is_missing["weight"], np.nan, random.normal(self.log_weight[y], 0.5)),
        )
        plural = random.random(words.shape) < _PLURALS
        year = random.choice(_YEARS, n)
        columns = {
            "title": [self._title(*each) for each in zip(words.tolist(), plural.tolist(), strict=True)],
            "price": np.exp(products.log_price).round(2),
            "weight": np.exp(products.log_weight).round(3),
            "brand": [None if code < 0 else f"brand {code}" for code in products.brand.tolist()],
            "country": [f"C{code:02}" for code in products.country.tolist()],
            "listed": _dates(year, products.day),
        }
        return pd.DataFrame(columns), products, y

    def job(self, rows: int, test_rows: int) -> Job:
        """A job on data frames of so many products."""
        X, _, y = self.draw(rows, 1)
        X_test, _, y_test = self.draw(test_rows, _TEST_SEED)
        return Job("catalogue", X, self.names[y], X_test, self.names[y_test], Taxonomy.from_labels(self.names))

    def true_log_proba(self, test_rows: int) -> Floats:
        """True log probabilities of the test rows of ``job``, a column for each of ``names``."""
        return self.log_proba(self.draw(test_rows, _TEST_SEED)[1])

    def log_proba(self, products: Products) -> Floats:
        """True log probabilities of all classes."""
        u = np.tile(np.log(self.prior), (len(products.day), 1))
        of_words = np.log(np.maximum(self.words, 1e-300))
        for k in range(_MOST_WORDS):
            rows = np.flatnonzero(products.words[:, k] >= 0)
            u[rows] += of_words.T[products.words[rows, k]]
        rows = np.flatnonzero(products.brand >= 0)
        u[rows] += np.log(self.brands.T[products.brand[rows]])
        u += np.log(self.countries.T[products.country]) + np.log(self.days.T[products.day])
        for values, means, width in (
            (products.log_price, self.log_price, _BAND_WIDTH),
            (products.log_weight, self.log_weight, 0.5),
        ):
            rows = np.flatnonzero(~np.isnan(values))
            u[rows] -= 0.5 * ((values[rows, None] - means) / width) ** 2
        out: Floats = log_softmax(u, axis=1)
        return out

    def _title(self, words: list[int], plural: list[bool]) -> str:
        used = zip(words, plural, strict=True)
        return " ".join(self._word(code) + "s" * is_plural for code, is_plural in used if code >= 0)

    def _word(self, code: int) -> str:
        """Three syllables, by which words of no class are alike."""
        number = int(self._spelling[code])
        syllables = (number // 3600, number // 60 % 60, number % 60)
        return "".join("bcdfghjklmnprtv"[each // 4] + "aeio"[each % 4] for each in syllables)


def _zipf(count: int, power: float = 1.0) -> Floats:
    law = np.arange(1, count + 1) ** -power
    return np.asarray(law / law.sum())


def _drawn(table: Floats, y: Integers, count: int, random: np.random.Generator) -> Integers:
    """``count`` codes for each row, from the distribution of its class."""
    out = np.empty((len(y), count), dtype=np.int64)
    for k in range(len(table)):
        rows = np.flatnonzero(y == k)
        out[rows] = random.choice(table.shape[1], (len(rows), count), p=table[k] / table[k].sum())
    return out


def _dates(year: Integers, day: Integers) -> list[str]:
    first = np.array([f"{each}-01-01" for each in year], dtype="datetime64[D]")
    return [str(date) for date in first + day.astype("timedelta64[D]")]
