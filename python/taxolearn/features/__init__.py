"""Features of tables: words, characters and numbers; and features of scikit-learn in blocks."""

from taxolearn.features.block_union import BlockUnion, as_blocks
from taxolearn.features.tables import CellError, TableFeatures

__all__ = [
    "BlockUnion",
    "CellError",
    "TableFeatures",
    "as_blocks",
]
