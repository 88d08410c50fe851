"""The hyperparameters of a fitted model, to be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.kernels.base import Kernel

__all__ = ["Hyperparameters"]


@dataclass(frozen=True, eq=False, repr=False)
class Hyperparameters:
    """The hyperparameters of a model, learned or given: the attribute ``hyperparameters_`` of a fitted estimator.

    Attributes
    ----------
    kernel : Kernel or None
        The kernel that all classes share; None where classes, nodes or groups have their own.
    kernels : dict
        These kernels by name; empty where one is shared.
    intercept_variance : float
        Prior variance of the intercepts.
    variances : dict
        Variances by the name of the group of nodes, relative to the kernel's; empty where there are no groups.
    loadings : ndarray of shape (n_classes, rank) or None
        Those of a ``LearnedCoupling``, in the order of ``classes_``.
    """

    kernel: Kernel | None
    intercept_variance: float
    kernels: dict[Any, Kernel] = field(default_factory=dict)
    variances: dict[str, float] = field(default_factory=dict)
    loadings: npt.NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls, described: Any, intercept_variance: float, coupling: ClassCoupling, order: npt.NDArray[np.intp]
    ) -> "Hyperparameters":
        """From a kernel or kernels by name, and a coupling; ``order`` leads from its classes to sorted ones."""
        is_shared = not isinstance(described, Mapping)
        return cls(
            kernel=described if is_shared else None,
            kernels={} if is_shared else dict(described),
            intercept_variance=intercept_variance,
            variances=dict(coupling.by_name),
            loadings=None if coupling.loadings is None else coupling.loadings[order],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hyperparameters):
            return NotImplemented
        values, others = self.to_dict(), other.to_dict()
        return values.keys() == others.keys() and all(np.array_equal(values[name], others[name]) for name in values)

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """The fields that say something, by their names."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None and not _is_empty(value)}

    def __repr__(self) -> str:
        lines = []
        for name, value in self.to_dict().items():
            if isinstance(value, dict):
                shown = ", ".join(f"{key!r}: {_text(each)}" for key, each in list(value.items())[:8])
                value = f"{{{shown}{', ...' if len(value) > 8 else ''}}}"
            elif name == "loadings":
                value = f"<array of shape {value.shape}>"
            lines.append(f"    {name}={_text(value)},\n")
        return f"Hyperparameters(\n{''.join(lines)})"


def _is_empty(value: Any) -> bool:
    return isinstance(value, dict) and not value


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
