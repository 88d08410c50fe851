"""Learning hyperparameters by cross-validation."""

from taxolearn.tuning.objective import CrossValidationObjective
from taxolearn.tuning.search import Evaluation, LearningResult

__all__ = [
    "CrossValidationObjective",
    "Evaluation",
    "LearningResult",
]
