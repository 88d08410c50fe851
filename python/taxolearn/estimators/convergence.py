"""What to tell a user whose fit, or whose data, fall short of what was asked for."""

from collections.abc import Iterator
from typing import Any

from taxolearn.fitting.solver import as_solver
from taxolearn.targets.labels import as_labels

__all__ = ["unconverged", "undecided"]


def undecided(classes: list[Any]) -> str:
    """What to say of classes that no row tells apart."""
    listed = ", ".join(map(repr, classes[:3])) + (", ..." if len(classes) > 3 else "")
    return (
        f"y: rows allow {listed} together only, never one of them alone, so the model cannot tell these classes apart. "
        'If an inner node that y names is to be a class of its own, choose labels="own".'
    )


def unconverged(model: Any) -> Iterator[str]:
    """What a fitted model fell short of, and what to do about it."""
    if model.em_result_ is not None and model.em_result_.status == "max_rounds":
        labels = as_labels(model.labels)
        yield (
            f"Expectation maximization stopped after max_rounds={labels.max_rounds} rounds. Raise "
            f"PartialLabels(max_rounds=...), or its tol (now {labels.tol:g}) if this accuracy is enough."
        )
    result = model.result_
    reached = f"certified relative gap {result.relative_gap:.1e}, tol={model.tol:g}"
    if result.status == "max_iter":
        yield (
            f"The fit stopped after {result.iterations} iterations ({reached}). Raise max_iter (now {model.max_iter}), "
            "or tol if this accuracy is enough."
        )
    elif result.status != "converged":
        if as_solver(model.solver).precision == "single":
            advice = 'Raise tol, or use Solver(precision="auto").'
        elif hasattr(model, "coef_"):
            advice = "Raise tol, or scale the features."
        else:
            advice = "Raise tol, or lower the variance of the kernel or intercept_variance."
        yield f"The fit cannot get closer to the minimum in this arithmetic ({reached}). {advice}"
