"""Features of tables: words, sequences, numbers, dates, categories, embeddings; and blocks of scikit-learn's parts."""

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
