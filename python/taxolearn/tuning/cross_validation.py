"""How hyperparameters are learned: the estimator's argument ``tuning``."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from taxolearn.validation import check_number

__all__ = ["CrossValidation", "as_tuning"]


class CrossValidation(BaseEstimator):
    """Learning by gradient descent on the cross-validated log likelihood: ``tuning=CrossValidation(folds=10)``.

    Parameters
    ----------
    folds : int, splitter of scikit-learn, iterable of pairs (train, test), or array of int, default=5
        Number of folds, or the folds themselves: an array has the fold in which each row is held out, -1 for never. A
        number makes stratified folds; classes may have fewer rows than that, and the row of a class that has no other
        is never held out.
    repeats : int, default=1
        Partitions into folds over which the criterion is averaged. More than one needs a number of ``folds``.
    subset : int or float, default=None
        Learn on a random subset of so many rows, or such a share of them.
    learn_intercept_variance : bool, default=True
        Whether the variance of the intercepts is learned, unless it is 0.
    max_evaluations : int, default=100
        Largest number of evaluations of the criterion. They may also be ended by Ctrl-C: the model is then fitted with
        the best hyperparameters so far.
    time_limit : float, default=None
        Seconds that learning may take; the final fit comes after it.
    checkpoint : path, default=None
        A file that learning writes after each evaluation, and continues from if it is there already.
    """

    def __init__(
        self,
        folds: Any = 5,
        *,
        repeats: int = 1,
        subset: float | None = None,
        learn_intercept_variance: bool = True,
        max_evaluations: int = 100,
        time_limit: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.folds = folds
        self.repeats = repeats
        self.subset = subset
        self.learn_intercept_variance = learn_intercept_variance
        self.max_evaluations = max_evaluations
        self.time_limit = time_limit
        self.checkpoint = checkpoint

    def check(self) -> None:
        """Raises an error for what no data could make right."""
        if not isinstance(self.learn_intercept_variance, (bool, np.bool_)):
            raise TypeError(f"learn_intercept_variance must be True or False, got {self.learn_intercept_variance!r}")
        repeats = check_number("repeats", self.repeats, least=1, integer=True)
        if repeats > 1 and not isinstance(self.folds, (int, np.integer)):
            raise ValueError(
                f"repeats is {repeats}, but folds gives one partition; use a number of folds, or repeats=1"
            )


def as_tuning(tuning: Any) -> CrossValidation | None:
    """How to learn that an estimator's argument means; None for not at all."""
    if tuning is None or isinstance(tuning, CrossValidation):
        return tuning
    if isinstance(tuning, str) and tuning == "cv":
        return CrossValidation()
    raise ValueError(f'tuning is {tuning!r}, expected "cv", a CrossValidation, or None to use the values given')
