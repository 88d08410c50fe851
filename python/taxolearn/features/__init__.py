"""Features of tables: words, characters and numbers."""

from taxolearn.features.tables import CellError, TableFeatures

__all__ = [
    "CellError",
    "TableFeatures",
]
