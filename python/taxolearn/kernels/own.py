"""Kernels of their own for classes, nodes of the taxonomy, or groups of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from taxolearn.kernels.base import Kernel
from taxolearn.kernels.parameters import Parametrized, Table
from taxolearn.kernels.registry import as_kernel
from taxolearn.validation import check_choice

__all__ = ["PerClass", "PerGroup", "PerNode"]

_SHARES = ("nothing", "correlation", "equal")


def _checked(value: object, name: str) -> Kernel | str:
    """The value as a kernel, or the name of one as it is: it may start from the data."""
    kernel = as_kernel(value, name)
    return value if isinstance(value, str) else kernel


@dataclass(frozen=True, repr=False)
class _Own(Parametrized):
    """Kernels of their own for names of some kind."""

    kernel: Any = "linear"
    share: str = field(default="nothing", kw_only=True)

    _kind: ClassVar[tuple[str, str]]

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if isinstance(self.kernel, Mapping):
            if not self.kernel:
                raise ValueError(f"{owner}: the mapping is empty, expected a kernel for every {self._kind[0]}")
            kernels = {name: _checked(kernel, f"{owner}[{name!r}]") for name, kernel in self.kernel.items()}
            object.__setattr__(self, "kernel", Table(kernels))
        else:
            object.__setattr__(self, "kernel", _checked(self.kernel, f"{owner}: kernel"))
        check_choice(f"{owner}: share", self.share, _SHARES)
        if self.share == "correlation" and isinstance(self.kernel, Table):
            self._check_one_correlation()

    def _own_params(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "share": self.share}

    def _check_one_correlation(self) -> None:
        (first, kernel), *others = self.kernel.items()
        for name, other in others:
            if as_kernel(other).split()[1] != as_kernel(kernel).split()[1]:
                raise ValueError(
                    f'{type(self).__name__}: share="correlation" needs kernels that differ in their variance alone, '
                    f"but {first!r} has {kernel!r} and {name!r} has {other!r}"
                )

    def __repr__(self) -> str:
        share = "" if self.share == "nothing" else f", share={self.share!r}"
        return f"{type(self).__name__}({self.kernel!r}{share})"

    def assign(self, names: Sequence[Hashable]) -> tuple[list[Kernel], list[int], list[float]]:
        """Kernels for names.

        Returns
        -------
        units : list of Kernel
            The kernels to be stored, of variance 1 (see ``Kernel.split``).
        index : list of int
            Which of them each name has.
        variances : list of float
            The variance of each name.
        """
        if isinstance(self.kernel, Table):
            self._check_known(names)
            parts = [as_kernel(self.kernel[name]).split() for name in names]
        else:
            parts = [as_kernel(self.kernel).split()] * len(names)
        variances = [variance for variance, _ in parts]
        if self.share == "nothing":
            return [unit for _, unit in parts], list(range(len(names))), variances
        places: dict[Kernel, int] = {}
        index = [places.setdefault(unit, len(places)) for _, unit in parts]
        return list(places), index, variances

    def _check_known(self, names: Sequence[Hashable]) -> None:
        wanted = set(names)
        missing = [name for name in names if name not in self.kernel]
        unknown = [name for name in self.kernel if name not in wanted]
        for wrong, problem in ((missing, "has no kernel for"), (unknown, "has kernels for unknown")):
            if wrong:
                shown = ", ".join(map(repr, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
                raise ValueError(f"{type(self).__name__} {problem} {self._kind[len(wrong) > 1]} {shown}")


@dataclass(frozen=True, repr=False)
class PerClass(_Own):
    """Kernels of their own for the classes.

    Parameters
    ----------
    kernel : Kernel, name, callable or mapping from labels to these, default="linear"
        A single kernel gives every class a copy of its own, a mapping each class its kernel. A name like "rbf" is a
        kernel whose values are found in the data.
    share : {"nothing", "correlation", "equal"}, default="nothing"
        What the classes have in common: "nothing", so that parameters of equal kernels are learned apart;
        "correlation", where only the variances are their own; or "equal", by which kernels that differ in their
        variance alone share their correlation.

    Examples
    --------
    >>> from taxolearn.kernels import RBF, Linear, PerClass
    >>> own = PerClass({"a": RBF(2.0), "b": 3.0 * RBF(2.0), "c": Linear()}, share="equal")
    >>> units, index, variances = own.assign(["a", "b", "c"])
    >>> len(units), index, variances
    (2, [0, 0, 1], [1.0, 3.0, 1.0])
    """

    _kind = ("class", "classes")


@dataclass(frozen=True, repr=False)
class PerNode(_Own):
    """Kernels of their own for the nodes of the taxonomy below the root.

    Parameters
    ----------
    kernel : Kernel, callable or mapping from names of nodes to these, default="linear"
        As in ``PerClass``.
    share : {"nothing", "correlation", "equal"}, default="nothing"
        As in ``PerClass``.
    """

    _kind = ("node", "nodes")


@dataclass(frozen=True, repr=False)
class PerGroup(_Own):
    """Kernels of their own for the groups of nodes that the ``tying`` of the coupling makes.

    Parameters
    ----------
    kernel : Kernel, callable or mapping from names of groups to these, default="linear"
        As in ``PerClass``.
    share : {"nothing", "correlation", "equal"}, default="nothing"
        As in ``PerClass``.
    """

    _kind = ("group", "groups")
