"""Trees from tables: data frames and arrays with one column per level."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from taxolearn.taxonomy.nodes import Name, Nodes, nodes_from_paths

__all__ = ["nodes_from_columns"]


def nodes_from_columns(table: Any, *, separator: str | None, root: Name) -> Nodes:
    """The rows of a table as paths, each one ending where its missing values begin."""
    if hasattr(table, "get_columns"):  # polars
        rows: list[Any] = list(zip(*(column.to_list() for column in table.get_columns()), strict=True))
    elif hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2:  # pandas
        rows = list(zip(*(table.iloc[:, j].tolist() for j in range(table.shape[1])), strict=True))
    else:
        array = table if isinstance(table, np.ndarray) else np.array(table, dtype=object)
        if array.ndim != 2:
            raise ValueError(
                f"table has {array.ndim} dimension{'s' * (array.ndim != 1)}, expected a data frame or a 2-d array "
                "with one column per level"
            )
        rows = list(map(tuple, array.tolist()))
    first_row: dict[tuple[Any, ...], int] = {}
    for i, row in enumerate(rows):
        first_row.setdefault(_path_of_row(row, i), i)
    if not first_row:
        raise ValueError("table has no rows, expected at least one")
    places = list(first_row.values())
    return nodes_from_paths(first_row, separator=separator, root=root, place=lambda i: f"table row {places[i]}")


def _path_of_row(row: Sequence[Any], i: int) -> tuple[Any, ...]:
    missing = [_is_missing(value) for value in row]
    length = missing.index(True) if any(missing) else len(row)
    if length == 0:
        raise ValueError(f"table row {i} begins with a missing value: {row!r}")
    if not all(missing[length:]):
        raise ValueError(f"table row {i} has a missing value before its end: {row!r}")
    # Integers come as floats from columns in which some values are missing.
    return tuple(int(value) if isinstance(value, float) and value.is_integer() else value for value in row[:length])


def _is_missing(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return not value
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
