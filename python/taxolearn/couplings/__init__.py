"""How the functions of the classes go together a priori."""

from taxolearn.couplings.factors import ClassFactors, LearnedCoupling, SimilarityTable
from taxolearn.couplings.tree import Independent, Tree

__all__ = [
    "ClassFactors",
    "Independent",
    "LearnedCoupling",
    "SimilarityTable",
    "Tree",
]
