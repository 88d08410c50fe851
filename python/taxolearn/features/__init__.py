"""Features of tables: words, characters, numbers and embeddings; and features of scikit-learn in blocks."""

from taxolearn.features.block_union import BlockUnion, as_blocks
from taxolearn.features.embeddings import SentenceEmbeddings
from taxolearn.features.tables import CellError, TableFeatures

__all__ = [
    "BlockUnion",
    "CellError",
    "SentenceEmbeddings",
    "TableFeatures",
    "as_blocks",
]
