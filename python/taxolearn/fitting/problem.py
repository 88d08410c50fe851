"""What is fitted, and how it went: the problem in the core's form, and the report of a fit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn import _core
from taxolearn.kernels.assignment import ClassKernels

__all__ = ["FitResult", "Problem"]

# The losses that a model may have: their likelihood in the core, and the link from predictors to probabilities.
_LOSSES = {
    "softmax": (_core.Softmax, _core.Link.softmax),
    "independent": (_core.IndependentLogistic, _core.Link.logistic),
}


@dataclass(frozen=True)
class Problem:
    """Inputs, targets and prior in the core's form.

    Classes are in the core's order; ``order`` leads from there to that of ``classes``.
    """

    X: Any
    targets: npt.NDArray[Any]
    sample_weight: npt.NDArray[np.float64] | None
    class_kernels: ClassKernels
    intercept_variance: float
    order: npt.NDArray[np.intp]
    classes: npt.NDArray[Any]  # sorted
    function_names: list[Any]  # of the independent functions, in the core's order
    loss: str = "softmax"

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def likelihood(self) -> _core.Likelihood:
        """The loss of all rows."""
        make, _ = _LOSSES[self.loss]
        return make(self.targets, self.n_classes, self.sample_weight)

    @property
    def link(self) -> str:
        """How predictors become probabilities."""
        return _LOSSES[self.loss][1].name

    def prior(self, kernels: list[_core.Kernel]) -> _core.Prior:
        """The prior of the class functions, with these kernels of the core in place of our own."""
        return _core.Prior(
            kernels=kernels,
            kernel_of=self.class_kernels.kernel_of,
            coupling=self.class_kernels.coupling.to_core(),
            intercept_variance=self.intercept_variance,
        )

    def classes_in_core_order(self) -> list[Any]:
        names = np.empty_like(self.classes)
        names[self.order] = self.classes
        return list(names.tolist())


@dataclass(frozen=True)
class FitResult:
    """How a fit went.

    Attributes
    ----------
    status : str
        "converged", "max_iter" (stopped early) or "stalled" (the limit of the arithmetic).
    iterations, products : int
        Iterations of the solver and products with the kernel matrix, including those of the certificate.
    objective : float
        Penalized negative log likelihood at the fitted model.
    gap, relative_gap : float
        Certified in double precision: the objective is above its minimum by at most ``gap``; ``relative_gap`` is
        ``gap`` divided by the objective.
    method : str
        The solver: "lbfgs", "ncg", "newton" or "exact".
    algorithm : str
        How products were computed: "sparse", "dense" or "stored" for the linear kernel, else "gram", "tiled" or
        "low_rank".
    reason : str
        Why this method and this algorithm were chosen.
    space : str
        What the solver worked on: dual "coefficients" or primal "weights".
    precision : str
        Precision of the last products: "single" or "double".
    kernel_bytes : float
        Memory of the stored kernel matrices, or of the factors that stand for them.
    ranks : tuple of int
        Ranks of the approximations under "low_rank", one per kernel.
    timings : dict
        Seconds by phase: setup, products, likelihood, vectors, certificate, total.
    """

    status: str
    iterations: int
    products: int
    objective: float
    gap: float
    relative_gap: float
    method: str
    algorithm: str
    reason: str
    space: str
    precision: str
    kernel_bytes: float
    ranks: tuple[int, ...]
    timings: dict[str, float]

    @classmethod
    def from_core(cls, result: _core.FitResult) -> "FitResult":
        phases = ("setup", "products", "likelihood", "vectors", "certificate", "total")
        return cls(
            status=result.status.name,
            iterations=result.iterations,
            products=result.products,
            objective=result.objective,
            gap=result.gap,
            relative_gap=result.relative_gap,
            method=result.method.name,
            algorithm=result.algorithm,
            reason=result.reason,
            space=result.space.name,
            precision=result.precision.name,
            kernel_bytes=result.kernel_bytes,
            ranks=tuple(result.ranks),
            timings={phase: getattr(result.timings, phase) for phase in phases},
        )
