"""How the functions of the classes go together a priori."""

from taxolearn.couplings.factors import ClassFactors, LearnedCoupling, SimilarityTable

__all__ = [
    "ClassFactors",
    "LearnedCoupling",
    "SimilarityTable",
]
