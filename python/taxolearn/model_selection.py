"""Cross-validation, under the name that scikit-learn has for it."""

from taxolearn.tuning import CrossValidationObjective, Evaluation, LearningResult

__all__ = ["CrossValidationObjective", "Evaluation", "LearningResult"]
