"""One fit: the problem in the core's form, the run, and the functions that it leaves."""

from taxolearn.fitting.expectation import ExpectationResult
from taxolearn.fitting.functions import Expansion
from taxolearn.fitting.problem import FitResult
from taxolearn.fitting.solver import Solver

__all__ = [
    "Expansion",
    "ExpectationResult",
    "FitResult",
    "Solver",
]
