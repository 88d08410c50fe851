"""Learning hyperparameters by cross-validation."""

from taxolearn.tuning.cross_validation import CrossValidation
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.learn import CrossValidationObjective
from taxolearn.tuning.search import Evaluation, LearningResult

__all__ = [
    "CrossValidation",
    "CrossValidationObjective",
    "Evaluation",
    "Hyperparameters",
    "LearningResult",
]
