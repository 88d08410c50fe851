"""Trees and graphs of classes."""

from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy

__all__ = [
    "ClassGraph",
    "Taxonomy",
]
