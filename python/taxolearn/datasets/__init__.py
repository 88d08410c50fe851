"""Data to start with: collections of labelled texts."""

from __future__ import annotations

from taxolearn.datasets.collection import TextCollection
from taxolearn.datasets.docstrings import load_docstrings

__all__ = ["TextCollection", "load_docstrings"]
