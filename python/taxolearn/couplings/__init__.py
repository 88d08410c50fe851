"""How the functions of the classes go together a priori."""

from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.couplings.factors import ClassFactors, LearnedCoupling, SimilarityTable

__all__ = [
    "ClassFactors",
    "Independent",
    "LearnedCoupling",
    "SimilarityTable",
    "Tree",
]
