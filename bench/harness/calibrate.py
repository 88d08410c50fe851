"""The loosest tolerance with which a library's answer is accurate enough."""

import math
from collections.abc import Callable

_REFINEMENTS = 2  # tolerances tried between the last that was too loose and the first that was not


def calibrate(attempt: Callable[[float], str], tolerances: list[float]) -> tuple[float | None, str]:
    """Find the loosest tolerance that is enough, and say how the search ended.

    An attempt is "enough", "too loose" or "late", and so is the end; the tolerance is None if there is none.
    """
    looser: float | None = None
    end, tol = "too loose", math.nan
    for tol in tolerances:
        end = attempt(tol)
        if end != "too loose":
            break
        looser = tol
    best = tol if end == "enough" else None
    if end == "too loose" or looser is None:
        return best, end
    for _ in range(_REFINEMENTS):
        between = float(f"{math.sqrt(looser * tol):.3g}")
        outcome = attempt(between)
        if outcome == "too loose":
            looser = between
        else:
            tol = between
            best = between if outcome == "enough" else best
        if outcome == "late":
            break
    return best, "late" if best is None else "enough"
