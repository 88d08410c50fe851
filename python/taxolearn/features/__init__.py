"""Features of tables, of texts, sequences, numbers, dates, categories and embeddings; and blocks of scikit-learn's."""

from taxolearn.features.block_union import BlockUnion, as_blocks
from taxolearn.features.embeddings import SentenceEmbeddings
from taxolearn.features.sequence_codes import SequenceCodes
from taxolearn.features.sequence_features import SequenceFeatures
from taxolearn.features.tables import CellError, TableFeatures

__all__ = [
    "BlockUnion",
    "CellError",
    "SentenceEmbeddings",
    "SequenceCodes",
    "SequenceFeatures",
    "TableFeatures",
    "as_blocks",
]
