"""How the functions of the classes go together a priori."""

from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.couplings.factors import ClassFactors, LearnedCoupling, SimilarityTable
from taxolearn.couplings.graph import Graph

__all__ = [
    "ClassFactors",
    "Graph",
    "Independent",
    "LearnedCoupling",
    "SimilarityTable",
    "Tree",
]
