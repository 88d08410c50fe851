"""Cross-validation, by the name that it has in scikit-learn."""

from taxolearn.tuning import CrossValidationObjective, Evaluation, LearningResult

__all__ = ["CrossValidationObjective", "Evaluation", "LearningResult"]
