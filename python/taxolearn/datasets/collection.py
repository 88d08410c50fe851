"""The plain container that every text loader of this package returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["TextCollection"]


@dataclass(frozen=True, eq=False)
class TextCollection:
    """Texts with one class path each.

    The three sequences run in parallel: entry ``i`` of each belongs to document ``i``.

    Attributes
    ----------
    texts : list of str
        The documents.
    labels : ndarray of str, shape (n_documents,)
        One class per document, a path whose parts are separated by ``"/"``.
    names : list of str
        A readable identifier per document, unique within the collection.
    description : str
        Where the documents come from and how many there are.
    """

    texts: list[str]
    labels: NDArray[np.str_]
    names: list[str]
    description: str

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"TextCollection({len(self)} documents, {len(np.unique(self.labels))} classes)"
