"""The hyperparameters of a model, to be read; and the parts of a model that have some to be learned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.kernels.base import Kernel, Parameter, Product, Sum
from taxolearn.kernels.inner_product import Polynomial
from taxolearn.kernels.leaf import DEFAULT_BOUNDS, Leaf, exact_log

__all__ = ["Hyperparameters", "LearnedKernel", "LearnedLoadings", "LearnedVariances", "NamedKernel", "Vector"]

Floats = npt.NDArray[np.float64]
_LARGEST_LOADING = 100.0


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
    temperature : float
        By which predictors are divided before they become probabilities.
    ridge : float or None
        That of a ``Graph``.
    """

    kernel: Kernel | None
    intercept_variance: float
    kernels: dict[Any, Kernel] = field(default_factory=dict)
    variances: dict[str, float] = field(default_factory=dict)
    loadings: npt.NDArray[np.float64] | None = None
    temperature: float = 1.0
    ridge: float | None = None

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
            ridge=None if coupling.graph is None else coupling.graph.ridge,
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


@dataclass(frozen=True)
class Vector:
    """The parameters of a model in the making, in their order."""

    parameters: list[Parameter] = field(default_factory=list)
    plain: list[int] = field(default_factory=list)  # places of those that are not on log scale

    def add(self, prefix: str, parameters: Sequence[Parameter]) -> slice:
        """Append them, and return their place."""
        start = len(self.parameters)
        self.parameters.extend(parameter._replace(name=prefix + parameter.name) for parameter in parameters)
        return slice(start, len(self.parameters))

    def add_number(self, name: str, value: float, bounds: tuple[float, float] | None = None) -> int:
        """Append one, with the logarithms of its bounds, which are widened to hold the value."""
        log = float(np.log(value))
        low, high = np.log(DEFAULT_BOUNDS).tolist() if bounds is None else bounds
        self.parameters.append(Parameter(name, log, min(low, log), max(high, log), True))
        return len(self.parameters) - 1

    def add_plain(self, names: Sequence[str], values: Floats, largest: float) -> slice:
        """Append numbers of any sign, not on log scale."""
        start = len(self.parameters)
        self.plain.extend(range(start, start + len(names)))
        self.parameters.extend(
            Parameter(name, value, min(-largest, value), max(largest, value), True)
            for name, value in zip(names, values.tolist(), strict=True)
        )
        return slice(start, len(self.parameters))


@dataclass(frozen=True)
class LearnedKernel:
    """A kernel of the core with the parameters that are learned.

    Of a kernel that the core does not evaluate that is a factor of its matrix, if anything; the matrix stays as it is.
    """

    kernel: Kernel
    learned: npt.NDArray[np.bool_]  # of all parameters that it has in the core
    place: slice

    @classmethod
    def of(cls, kernel: Kernel, vector: Vector, prefix: str, *, held: bool = False) -> "LearnedKernel":
        """Put its parameters into the vector, with ``held`` all but its scale."""
        if kernel.is_native and not kernel.is_precomputed:
            learned = learned_parameters(kernel, held=held)
            parameters = [p for p, flag in zip(kernel.parameters(), learned, strict=True) if flag]
            return cls(kernel, learned, vector.add(prefix, parameters))
        learned = np.array([scale_is_free(kernel) and not held])
        low, high = scale_bounds(kernel)
        log = float(np.log(kernel.total_variance))
        variance = Parameter("variance", log, log + low, log + high, True)
        return cls(kernel, learned, vector.add(prefix, [variance] if learned[0] else []))

    @classmethod
    def fixed(cls, kernel: Kernel) -> "LearnedKernel":
        """Without any parameter."""
        count = len(kernel.parameters()) if kernel.is_native else 1
        return cls(kernel, np.zeros(count, dtype=np.bool_), slice(0, 0))

    @property
    def is_matrix(self) -> bool:
        """Whether a matrix stands for it in the core."""
        return self.kernel.is_precomputed or not self.kernel.is_native

    def at(self, theta: Floats) -> Kernel:
        values = iter(theta[self.place].tolist())
        if self.is_matrix:
            old = float(np.log(self.kernel.total_variance))
            return scaled(self.kernel, next(values, old) - old)
        parameters = zip(self.kernel.parameters(), self.learned.tolist(), strict=True)
        return self.kernel.with_logs([next(values) if flag else p.log for p, flag in parameters])

    def matrix_factor(self, kernel: Kernel) -> float | None:
        """Of the matrix, which has the variance of a function at the start in it, but none that was precomputed."""
        if not self.is_matrix:
            return None
        return kernel.total_variance / (1.0 if kernel.is_precomputed else self.kernel.total_variance)


@dataclass(frozen=True)
class LearnedVariances:
    """Variances of the functions: factors that stay, times a parameter where there is one."""

    factors: Floats
    parameter_of: npt.NDArray[np.int64]  # of every function; -1 for none
    starts: dict[int, float]  # values of the parameters at the start, themselves and not their logarithms

    def values(self, theta: Floats) -> dict[int, float]:
        """Of the parameters."""
        return {place: exact_log(float(theta[place]), start) for place, start in self.starts.items()}

    def at(self, theta: Floats) -> Floats:
        values = np.ones(len(theta) + 1)  # the last is for those without a parameter
        places = list(self.starts)
        values[places] = list(self.values(theta).values())
        return self.factors * values[self.parameter_of]

    def add_gradient(self, by_function: Floats, out: Floats) -> None:
        learned = self.parameter_of >= 0
        np.add.at(out, self.parameter_of[learned], by_function[learned])


@dataclass(frozen=True)
class LearnedLoadings:
    """Loadings ``B = sqrt(variance n_classes) T / |T|`` of the functions that classes share.

    The parameters are the entries of ``T``, which starts with a mean square of 1, and the logarithm of the variance:
    the mean diagonal of ``B B'``. So the scale of ``T`` means nothing, and the penalty
    ``strength / 2 * |T - start|^2`` holds it.
    """

    start: Floats  # T, of shape (n_classes, rank)
    place: slice
    variance: float  # at the start
    place_of_variance: int  # -1: it stays
    strength: float

    @classmethod
    def of(
        cls, loadings: Floats, labels: Sequence[str], vector: Vector, *, strength: float, held: bool
    ) -> "LearnedLoadings":
        """Put them into the vector, with ``held`` without their variance."""
        norm = float(np.linalg.norm(loadings))
        if norm == 0:
            raise ValueError("B has zeros only, which gives no direction to learn in; leave it out")
        n_classes, rank = loadings.shape
        names = [f"coupling.B[{label}, {k}]" for label in labels for k in range(rank)]
        start = np.sqrt(loadings.size) / norm * loadings
        place = vector.add_plain(names, start.ravel(), _LARGEST_LOADING * float(np.sqrt(rank)))
        variance = norm**2 / n_classes
        place_of_variance = -1 if held else vector.add_number("coupling.variance", variance)
        return cls(start, place, variance, place_of_variance, strength)

    def at(self, theta: Floats) -> Floats:
        T = theta[self.place].reshape(self.start.shape)
        variance = self.variance
        if self.place_of_variance >= 0:
            variance = exact_log(float(theta[self.place_of_variance]), variance)
        B: Floats = np.sqrt(variance * len(T)) / np.linalg.norm(T) * T
        return B

    def add_gradient(self, theta: Floats, by_loading: Floats, out: Floats) -> None:
        """From the derivatives by the entries of ``B``."""
        T, B = theta[self.place], self.at(theta).ravel()
        norm = np.linalg.norm(T)
        along = float(by_loading @ B)
        out[self.place] += (np.linalg.norm(B) * by_loading - along * T / norm) / norm
        if self.place_of_variance >= 0:
            out[self.place_of_variance] += 0.5 * along

    def penalty(self, theta: Floats) -> tuple[float, Floats]:
        """Its value and gradient by all parameters."""
        gradient = np.zeros(len(theta))
        change = theta[self.place] - self.start.ravel()
        gradient[self.place] = self.strength * change
        return 0.5 * self.strength * float(change @ change), gradient


@dataclass(frozen=True)
class NamedKernel:
    """What the user gave for a name: a kernel of its own, or a correlation that others have too with its variance."""

    given: Kernel
    index: int  # of the kernel in the core
    is_shared: bool = False
    place: int = -1  # of the variance, if it is a parameter

    def at(self, kernels: Sequence[Kernel], starts: Sequence[LearnedKernel], theta: Floats) -> Any:
        """The kernel as the user would write it, from those in the core now and at the start."""
        kernel = kernels[self.index]
        if not self.is_shared:
            return kernel
        moves = [
            new.log - old.log if new.log != old.log else 0.0
            for new, old in zip(kernel.parameters(), starts[self.index].kernel.parameters(), strict=True)
        ]
        log_factor = float(theta[self.place]) - float(np.log(self.given.total_variance)) if self.place >= 0 else 0.0
        return with_logs(self.given, moves, log_factor)


def scale_is_free(kernel: Kernel) -> bool:
    """Whether the parameters that may be learned can multiply the kernel by any factor."""
    if isinstance(kernel, Sum):
        return all(map(scale_is_free, kernel.parts))
    if isinstance(kernel, Product):
        return any(map(scale_is_free, kernel.parts))
    return kernel.parameters()[-1].free


def learned_parameters(kernel: Kernel, *, held: bool = False) -> npt.NDArray[np.bool_]:
    """Of all parameters, in the order of the core, those that are learned: the free ones without the redundant ones.

    In a product the scale of only one part is learned, and of a ``Polynomial`` the variance instead of the scale of
    the inner product, where the offset goes along.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    held : bool, default=False
        Whether something outside multiplies the kernel, so that its own scale is left as it is. In a sum that is the
        scale of the first part; the others are learned relative to it.
    """
    held = held and scale_is_free(kernel)
    if isinstance(kernel, Sum):
        parts = [learned_parameters(part, held=held and k == 0) for k, part in enumerate(kernel.parts)]
        return np.concatenate(parts)
    if isinstance(kernel, Product):
        first = next((k for k, part in enumerate(kernel.parts) if scale_is_free(part)), -1)
        return np.concatenate(
            [learned_parameters(part, held=held or k != first) for k, part in enumerate(kernel.parts)]
        )
    parameters = kernel.parameters()
    learned = np.array([parameter.free for parameter in parameters], dtype=np.bool_)
    if isinstance(kernel, Polynomial) and learned[2] and (learned[1] or kernel.offset == 0):
        learned[0] = False
    if held:
        learned[-1] = False
    return learned


def _scale_mask(kernel: Kernel) -> list[bool]:
    """The parameters, one per part of a sum, that are multiplied where the kernel is multiplied by a factor."""
    if isinstance(kernel, Sum):
        return [flag for part in kernel.parts for flag in _scale_mask(part)]
    if isinstance(kernel, Product):
        carrier = next((k for k, part in enumerate(kernel.parts) if scale_is_free(part)), 0)
        masks = [_scale_mask(part) for part in kernel.parts]
        return [flag and k == carrier for k, mask in enumerate(masks) for flag in mask]
    return [False] * (len(kernel.parameters()) - 1) + [True]


def scale_bounds(kernel: Kernel) -> tuple[float, float]:
    """Logarithms of the factors by which the kernel may be multiplied: no variance leaves its bounds."""
    parameters = [p for p, flag in zip(kernel.parameters(), _scale_mask(kernel), strict=True) if flag]
    return max(p.low - p.log for p in parameters), min(p.high - p.log for p in parameters)


def variance_bounds(kernel: Kernel) -> tuple[float, float]:
    """Logarithms of the bounds of the variance that ``Kernel.split`` takes out."""
    first = kernel.parts[0] if isinstance(kernel, Sum) else kernel
    low, high = scale_bounds(first)
    log = float(np.log(first.total_variance))
    return log + low, log + high


def scaled(kernel: Kernel, log_factor: float) -> Kernel:
    """The kernel times a factor; the kernel itself for the factor 1."""
    return with_logs(kernel, np.where(_scale_mask(kernel), log_factor, 0.0))


def with_logs(kernel: Kernel, changes: Sequence[float] | Floats, log_factor: float = 0.0) -> Kernel:
    """The kernel with all its parameters changed, on log scale, and multiplied by a factor.

    Bounds that the new values would leave are dropped.
    """
    logs = [p.log for p in kernel.parameters()]
    shifts = np.where(_scale_mask(kernel), log_factor, 0.0) + np.asarray(changes, dtype=np.float64)
    moved = [log + shift if shift != 0 else log for log, shift in zip(logs, shifts.tolist(), strict=True)]
    try:
        return kernel.with_logs(moved)
    except ValueError:
        return _without_bounds(kernel).with_logs(moved)


def _without_bounds(kernel: Kernel) -> Kernel:
    if isinstance(kernel, (Sum, Product)):
        return kernel.with_parts([_without_bounds(part) for part in kernel.parts])
    return kernel._changed(bounds={}) if isinstance(kernel, Leaf) else kernel
