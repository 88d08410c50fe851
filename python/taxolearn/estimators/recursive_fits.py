"""How losses of recursive regularization are fitted, and what their fits leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from taxolearn.blocks import Blocks
from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.estimators.kernel_logistic import (
    KernelLogisticClassifier,
    check_arguments,
    class_functions,
    fit_targets,
    unconverged,
)
from taxolearn.estimators.recursive_hinge import HingeProblem, fit_hinge_problem
from taxolearn.estimators.recursive_variances import as_graph, as_recursive_tuning, as_variances, tied_with_root
from taxolearn.fitting.fit import FitResult
from taxolearn.fitting.functions import ClassFunctions
from taxolearn.fitting.node_functions import NodeFunctions, functions_of
from taxolearn.fitting.recursive import RecursiveFit, RecursiveResult
from taxolearn.kernels import Linear
from taxolearn.kernels.argument import as_kernel, start_kernels
from taxolearn.kernels.per_block import PerBlock
from taxolearn.targets import Targets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.search import LearningResult
from taxolearn.validation import check_number

if TYPE_CHECKING:
    from taxolearn.estimators.recursive import RecursiveRegularizationClassifier

__all__ = ["FITS", "Fitted"]

Floats = npt.NDArray[np.float64]


_TOLERANCES = {"logistic": 1e-6, "hinge": 1e-3, "squared_hinge": 1e-3}  # answers on 20 newsgroups stay the same below


@dataclass(frozen=True)
class Fitted:
    """What the fit of a loss leaves, with labels in the order of ``classes_``.

    ``held_out`` are predictors of held-out rows, with labels in the core's order, and which rows these are;
    ``messages`` say what the fit fell short of.
    """

    functions: ClassFunctions | NodeFunctions
    hyperparameters: Hyperparameters
    result: FitResult | RecursiveResult
    learning: LearningResult | None
    held_out: tuple[Floats, npt.NDArray[np.intp]] | None
    messages: list[str]


def _fit_logistic(model: RecursiveRegularizationClassifier, X: Any, targets: Targets, sample_weight: Any) -> Fitted:
    """By the joint solver: a kernel logistic regression with independent losses under a tree coupling."""
    kernel, coupling = _kernel_and_coupling(model, X, targets.taxonomy)
    last = getattr(model, "_joint", None) if model.warm_start else None
    joint = KernelLogisticClassifier() if last is None else last
    joint.set_params(
        kernel=kernel,
        loss="independent",
        taxonomy=targets.taxonomy,
        coupling=coupling,
        intercept_variance=model.intercept_variance,
        temperature=model.temperature,
        tuning=as_recursive_tuning(model, targets),
        class_weight=model.class_weight,
        tol=_tol(model),
        max_iter=model.max_iter,
        warm_start=model.warm_start,
        n_threads=model.n_threads,
        random_state=model.random_state,
        verbose=model.verbose,
    )
    learned = fit_targets(joint, check_arguments(joint), X, targets, sample_weight)
    if model.warm_start:
        model._joint = joint
    return Fitted(
        functions=class_functions(joint),
        hyperparameters=joint.hyperparameters_,
        result=joint.result_,
        learning=joint.cv_result_,
        held_out=None if learned is None else learned.held_out,
        messages=list(unconverged(joint)),
    )


def _kernel_and_coupling(
    model: RecursiveRegularizationClassifier, X: Any, taxonomy: Taxonomy | None
) -> tuple[Any, Any]:
    """What the arguments ``kernel``, ``C`` and ``tying`` mean for the joint solver."""
    C, names = model.C, [] if taxonomy is None else tied_with_root(taxonomy, model.tying)[1]
    kernel: Any = model.kernel if isinstance(model.kernel, str) else as_kernel(model.kernel)
    variances = np.ones(max(1, len(names)))
    if isinstance(C, Hyperparameters):
        kernel = C.kernel
        variances = np.array(list(C.variances.values()) or [1.0])
    elif isinstance(C, Mapping):
        own = {name: check_number(f"C[{name!r}]", value, least=0, strict=True) for name, value in C.items()}
        kernel = _of_blocks(kernel, own, X)
    elif C is not None and taxonomy is not None:
        kernel, variances = _of_variance(kernel, 1.0, X), as_variances(C, names, has_tree=True)
    elif C is not None:
        kernel = _of_variance(kernel, check_number("C", C, least=0, strict=True), X)
    if taxonomy is None:
        return kernel, Independent() if model.taxonomy is None else as_graph(model.taxonomy)
    if len(names) == 1:
        return kernel, Tree(model.tying, variances=variances[0], root_variance="shared")
    return kernel, Tree(model.tying, variances=variances[:-1], root_variance=float(variances[-1]))


def _of_variance(kernel: Any, variance: float, X: Any) -> Any:
    """The kernel with this variance, which all blocks have where inputs are blocks."""
    if kernel == "linear":
        return Linear(variance)
    found = start_kernels(kernel, X)
    if isinstance(found, PerBlock):
        return PerBlock({name: found[name] * (variance / found[name].total_variance) for name in found.names})
    return found * (variance / found.total_variance)


def _of_blocks(kernel: Any, variances: dict[str, float], X: Any) -> dict[str, Any]:
    """The kernels of blocks, each with the variance of its name."""
    if kernel == "linear":
        return {name: Linear(value) for name, value in variances.items()}
    names = X.names if isinstance(X, Blocks) else ()
    if sorted(variances) != sorted(names):
        given, known = (", ".join(map(repr, each)) for each in (variances, names))
        raise ValueError(
            f"C has variances for {given}, expected the names of blocks: {known or 'none: X is one matrix'}"
        )
    found = start_kernels(kernel, X)
    return {name: found[name] * (value / found[name].total_variance) for name, value in variances.items()}


def _fit_hinge(model: RecursiveRegularizationClassifier, X: Any, targets: Targets, sample_weight: Any) -> Fitted:
    """By dual coordinate descent in the core, with variances by held-out rows."""
    if not (isinstance(model.kernel, str) and model.kernel == "linear"):
        raise ValueError(
            f'kernel is {model.kernel!r}, but loss={model.loss!r} is for linear models: leave kernel at "linear", or '
            'choose loss="logistic"'
        )
    tol = check_number("tol", _tol(model), least=0, strict=True)
    check_number("verbose", int(model.verbose), least=0, integer=True)
    temperature = check_number("temperature", model.temperature, least=0, strict=True)
    problem = HingeProblem.of(model, X, targets, sample_weight)
    fit, logs, learned = fit_hinge_problem(model, problem, as_recursive_tuning(model), tol)
    scale = float(np.exp(np.mean(logs)))
    by_name = {} if problem.groups is None else dict(zip(problem.names, np.exp(logs) / scale, strict=True))
    if model.warm_start:
        model._duals = fit.duals
    return Fitted(
        functions=functions_of(fit, targets.order),
        hyperparameters=Hyperparameters(
            kernel=Linear(scale),
            intercept_variance=float(model.intercept_variance),
            variances={name: float(value) for name, value in by_name.items()},
            temperature=temperature if learned is None else learned.temperature,
            ridge=None if problem.graph is None else float(as_graph(model.taxonomy).ridge),
        ),
        result=RecursiveResult.of(fit, scale),
        learning=None if learned is None else learned.result,
        held_out=None if learned is None or targets.sets is None else (learned.predictors, learned.rows),
        messages=list(_unconverged_hinge(fit, tol, model.max_iter)),
    )


def _tol(model: RecursiveRegularizationClassifier) -> Any:
    """The gap at which to stop: as given, or the usual one of the loss."""
    return _TOLERANCES[model.loss] if model.tol is None else model.tol


def _unconverged_hinge(fit: RecursiveFit, tol: float, max_iter: int) -> Iterator[str]:
    reached = f"certified relative gap {fit.relative_gap:.1e}, tol={tol:g}"
    if fit.status == "max_iter":
        yield (
            f"The fit stopped after {fit.iterations} iterations ({reached}). Raise max_iter (now {max_iter}), or tol "
            "if this accuracy is enough; scaled features, or a smaller C, take fewer iterations."
        )
    elif fit.status != "converged":
        yield f"The fit cannot get closer to the minimum in this arithmetic ({reached}). Raise tol, or lower C."


FITS: dict[str, Callable[[RecursiveRegularizationClassifier, Any, Targets, Any], Fitted]] = {
    "logistic": _fit_logistic,
    "hinge": _fit_hinge,
    "squared_hinge": _fit_hinge,
}
