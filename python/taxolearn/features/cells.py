"""Values in a table as numbers and dates, and what is wrong with those that are neither."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CellError", "Dates", "as_dates", "as_numbers"]

_LARGEST = 1e30  # of a number
_LONGEST_SHOWN = 60  # characters of a value in a message
_DATE = re.compile(
    r"(?P<day>(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)(?P<zone>Z|[+-][0-2][0-9](?::?[0-5][0-9])?)?)?"
)
_MICROSECONDS = len("12:34:56.123456")  # finer ones do not count
_YEARS = range(1, 10_000)  # as for datetime


class CellError(ValueError):
    """A value in a table that cannot be used.

    Parameters
    ----------
    row : int
        Counted from 0.
    column : str
        Its name.
    problem : str
        What it is, and what was expected.
    """

    def __init__(self, row: int, column: str, problem: str) -> None:
        super().__init__(f"TableFeatures: row {row} of {column} {problem}")
        self.row, self.column, self.problem = row, column, problem


class Dates(NamedTuple):
    """A column of dates.

    Attributes
    ----------
    clock : ndarray of datetime64[us]
        What calendar and clock show there, whatever the zone; NaT where it is missing.
    seconds : ndarray of float64
        Since the beginning of 1970 in Greenwich, where dates without a zone are taken to be; NaN where it is missing.
    """

    clock: NDArray[np.datetime64]
    seconds: NDArray[np.float64]


def as_numbers(column: list[Any], name: str) -> NDArray[np.float64]:
    """The column as numbers; what is missing is NaN."""
    if all(type(value) is float for value in column):
        numbers = np.array(column, dtype=np.float64)
        if not (np.abs(numbers) > _LARGEST).any():
            return numbers
    out = np.empty(len(column))
    for row, value in enumerate(column):
        if value is None or (isinstance(value, str) and not value.strip()):
            out[row] = np.nan
            continue
        try:
            out[row] = float(value)
        except (TypeError, ValueError):
            hint = "write it with a point" if _has_decimal_comma(value) else "leave it empty if unknown"
            raise CellError(row, name, f"is {_shown(value)}, expected a number; {hint}") from None
        if abs(out[row]) > _LARGEST:
            raise CellError(row, name, f"is {_shown(value)}, expected a number up to {_LARGEST:g}")
    return out


def as_dates(column: list[Any], name: str) -> Dates:
    """The column as dates: texts in ISO 8601, ``datetime``, ``date`` and ``datetime64``."""
    clock = np.full(len(column), "NaT", dtype="M8[us]")
    ahead = np.zeros(len(column))
    for row, value in enumerate(column):
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            continue
        try:
            clock[row], ahead[row] = _read_date(value)
        except (TypeError, ValueError, OverflowError):
            raise CellError(
                row,
                name,
                f"is {_shown(value)}, expected a date such as 2024-05-31 or 2024-05-31T14:30:00+02:00; rewrite others, "
                "such as 31.05.2024 or 5/31/2024, as YYYY-MM-DD, and leave it empty if unknown",
            ) from None
    seconds = clock.astype(np.int64) / 1e6 - ahead
    return Dates(clock, np.where(np.isnat(clock), np.nan, seconds))


def _read_date(value: Any) -> tuple[np.datetime64, float]:
    """What the clock shows, and by how many seconds it is ahead of Greenwich."""
    if isinstance(value, str):
        found = _DATE.fullmatch(value.strip())
        if found is None:
            raise ValueError
        day, time, zone = found.groups()
        clock = np.datetime64(f"{day}T{time[:_MICROSECONDS]}" if time else day, "us")
        ahead = 0.0
        if zone is not None and zone != "Z":
            hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
            ahead = (60.0 if zone[0] == "+" else -60.0) * (60 * hours + minutes)
    elif isinstance(value, datetime):
        offset = value.utcoffset()
        clock = np.datetime64(value.replace(tzinfo=None), "us")
        ahead = 0.0 if offset is None else offset.total_seconds()
    elif isinstance(value, date):
        clock, ahead = np.datetime64(value, "us"), 0.0
    elif isinstance(value, np.datetime64):
        if int(value.astype("M8[Y]").astype(np.int64)) + 1970 not in _YEARS:
            raise OverflowError
        clock, ahead = value.astype("M8[us]"), 0.0
    else:
        raise TypeError
    return clock, ahead


def _has_decimal_comma(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]+,[0-9]+\s*", value) is not None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
