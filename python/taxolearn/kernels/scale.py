"""The overall scale of a kernel, and which of its parameters say something that no other says."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from taxolearn.kernels.base import Kernel, Product, Sum
from taxolearn.kernels.inner_product import Polynomial
from taxolearn.kernels.leaf import Leaf

__all__ = ["learned_parameters", "scale_bounds", "scale_is_free", "scaled", "variance_bounds", "with_logs"]

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def scale_is_free(kernel: Kernel) -> bool:
    """Whether the parameters that may be learned can multiply the kernel by any factor."""
    if isinstance(kernel, Sum):
        return all(map(scale_is_free, kernel.parts))
    if isinstance(kernel, Product):
        return any(map(scale_is_free, kernel.parts))
    return kernel.parameters()[-1].free


def learned_parameters(kernel: Kernel, *, held: bool = False) -> Booleans:
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
        return type(kernel)(tuple(map(_without_bounds, kernel.parts)))
    return kernel._changed(bounds={}) if isinstance(kernel, Leaf) else kernel
