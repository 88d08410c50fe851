"""One fit: the problem in the core's form, the run, and the functions that it leaves."""

from taxolearn.fitting.expectation import ExpectationResult
from taxolearn.fitting.fit import FitResult, Solver
from taxolearn.fitting.functions import Expansion

__all__ = [
    "Expansion",
    "ExpectationResult",
    "FitResult",
    "Solver",
]
