"""Trees of classes."""

from taxolearn.taxonomy.tree import Taxonomy

__all__ = [
    "Taxonomy",
]
