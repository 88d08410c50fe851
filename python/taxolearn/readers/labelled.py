"""The plain container that the readers of feature files return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["LabelledData"]


@dataclass(frozen=True, eq=False, repr=False)
class LabelledData:
    """Inputs and labels, row by row. ``X, y = data`` unpacks them.

    Attributes
    ----------
    X : csr_array or ndarray, shape (n_samples, n_features)
        The inputs. Sparse rows have their columns in rising order, each once.
    y : ndarray, shape (n_samples,), or list of tuples
        The labels: one per row, or where rows have several labels, a tuple for each row. Numbers are int64 if all
        labels of the file are integers, else float64.
    """

    X: Any
    y: Any

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.y

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.X.shape[0]} rows, {self.X.shape[1]} features)"
