"""How losses of recursive regularization are fitted, and what their fits leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier, check_arguments, fit_targets, unconverged
from taxolearn.fitting.fit import FitResult
from taxolearn.kernels import Linear
from taxolearn.targets import Targets
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.search import LearningResult
from taxolearn.validation import check_number

if TYPE_CHECKING:
    from taxolearn.estimators.recursive import RecursiveRegularizationClassifier

__all__ = ["FITS", "Fitted", "as_recursive_tuning", "variances_by_group"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """What the fit of a loss leaves, with labels in the order of ``classes_``.

    ``held_out`` are predictors of held-out rows, with labels in the core's order, and which rows these are;
    ``messages`` say what the fit fell short of.
    """

    coef: Floats
    intercept: Floats
    hyperparameters: Hyperparameters
    result: FitResult
    learning: LearningResult | None
    held_out: tuple[Floats, npt.NDArray[np.intp]] | None
    messages: list[str]


def _fit_logistic(model: RecursiveRegularizationClassifier, X: Any, targets: Targets, sample_weight: Any) -> Fitted:
    """By the joint solver: a kernel logistic regression with independent losses under a tree coupling."""
    kernel: Any = "linear"
    variances = None
    if model.C is not None and targets.taxonomy is None:
        kernel = Linear(check_number("C", model.C, least=0, strict=True))
    elif model.C is not None:
        kernel = Linear(1.0)
        variances = model.C if np.ndim(model.C) > 0 else check_number("C", model.C, least=0, strict=True)
    joint = KernelLogisticClassifier(
        kernel,
        loss="independent",
        taxonomy=targets.taxonomy,
        coupling=Independent() if targets.taxonomy is None else Tree(model.tying, variances=variances),
        intercept_variance=model.intercept_variance,
        temperature=model.temperature,
        tuning=as_recursive_tuning(model),
        class_weight=model.class_weight,
        tol=model.tol,
        max_iter=model.max_iter,
        n_threads=model.n_threads,
        random_state=model.random_state,
        verbose=model.verbose,
    )
    learned = fit_targets(joint, check_arguments(joint), X, targets, sample_weight)
    return Fitted(
        coef=joint.coef_,
        intercept=joint.intercept_,
        hyperparameters=joint.hyperparameters_,
        result=joint.result_,
        learning=joint.cv_result_,
        held_out=None if learned is None else learned.held_out,
        messages=list(unconverged(joint)),
    )


FITS: dict[str, Callable[[RecursiveRegularizationClassifier, Any, Targets, Any], Fitted]] = {
    "logistic": _fit_logistic,
}


def as_recursive_tuning(model: RecursiveRegularizationClassifier) -> CrossValidation | None:
    """How to learn that the argument ``tuning`` means: for one variance, a few values are compared."""
    has_one_variance = model.taxonomy is None or model.tying == "shared"
    if isinstance(model.tuning, str) and model.tuning == "cv" and has_one_variance:
        return CrossValidation(search="scale")
    return as_tuning(model.tuning)


def variances_by_group(table: Hyperparameters) -> float | dict[str, float]:
    """``C_`` of a model with these hyperparameters: a variance, or those of groups by name where there are several."""
    kernel: Any = table.kernel
    by_name = {name: kernel.variance * value for name, value in table.variances.items()}
    if not by_name:
        return float(kernel.variance)
    return by_name if len(by_name) > 1 else next(iter(by_name.values()))
