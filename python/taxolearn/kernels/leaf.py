"""The kernel with parameters of its own, from which every covariance function comes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np

from taxolearn import _core
from taxolearn.blocks import Blocks
from taxolearn.kernels.base import Kernel, Parameter
from taxolearn.validation import check_number

__all__ = ["DEFAULT_BOUNDS", "Leaf", "Number", "Table", "check_length_scale", "check_positive", "exact_log"]

Number = float | tuple[float, ...]

DEFAULT_BOUNDS = (1e-5, 1e5)
_ROUNDING = 1e-9  # relative error that the way through the logarithm may cause

_Self = TypeVar("_Self", bound="Leaf")
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Table(Mapping[_Key, _Value]):
    """A mapping that cannot be changed, and so can be hashed. Equal to any mapping with the same items."""

    def __init__(self, items: Mapping[_Key, _Value] | Iterable[tuple[_Key, _Value]] = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: _Key) -> _Value:
        return self._items[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


@dataclass(frozen=True, repr=False)
class Leaf(Kernel):
    """A kernel with parameters of its own. Every one has a variance, its last parameter."""

    bounds: Mapping[str, tuple[float, float]] = field(default=Table(), kw_only=True)
    fixed: bool | str | Iterable[str] = field(default=(), kw_only=True)

    _names: ClassVar[tuple[str, ...]] = ("variance",)  # of the parameters, in the order of the core
    _usual_bounds: ClassVar[Mapping[str, tuple[float, float]]] = Table()  # where they are not DEFAULT_BOUNDS
    _core_kernel: ClassVar[Callable[..., _core.Kernel]]  # takes the positional arguments, in the same order

    @property
    @abstractmethod
    def variance(self) -> float: ...

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for name in self._names:
            self._set(name, self._check_value(owner, name, getattr(self, name)))
        self._set("fixed", _check_fixed(owner, self.fixed, self._fixable))
        self._set("bounds", _check_bounds(owner, self.bounds, self._names))
        for name, pair in self.bounds.items():
            value = getattr(self, name)
            if isinstance(value, tuple):
                places = enumerate(value)
                self._set(name, tuple(_hold_within(owner, f"{name}[{k}]", scale, pair) for k, scale in places))
            elif value > 0:
                self._set(name, _hold_within(owner, name, value, pair))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_value(self, owner: str, name: str, value: object) -> Number:
        return check_positive(f"{owner}: {name}", value)

    def _changed(self: _Self, **changes: Any) -> _Self:
        return replace(self, **changes)

    def __repr__(self) -> str:
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if not f.kw_only]
        return self._written(shown)

    def _written(self, shown: list[str]) -> str:
        """The constructor's call with these arguments and whatever is not the default."""
        if self.bounds:
            shown.append(f"bounds={self.bounds!r}")
        if self._fixed:
            every = len(self._fixed) == len(self._fixable) > 1
            fixed = True if every else self._fixed[0] if len(self._fixed) == 1 else self._fixed
            shown.append(f"fixed={fixed!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def _fixable(self) -> tuple[str, ...]:
        return self._names

    @property
    def _fixed(self) -> tuple[str, ...]:
        return tuple(self.fixed) if not isinstance(self.fixed, (bool, str)) else ()

    def _own_params(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}

    def to_core(self) -> _core.Kernel:
        return type(self)._core_kernel(*(getattr(self, each.name) for each in fields(self) if not each.kw_only))

    def check_reads(self, X: Any) -> None:
        if isinstance(X, Blocks):
            raise TypeError(f"{self!r} reads one matrix, got {X!r}; PerBlock has a kernel for every block")

    def parameters(self) -> list[Parameter]:
        return [parameter for name in self._names for parameter in self._parameters_named(name)]

    def _parameters_named(self, name: str) -> list[Parameter]:
        value = getattr(self, name)
        low, high = map(math.log, self.bounds.get(name, self._usual_bounds.get(name, DEFAULT_BOUNDS)))
        values = {f"{name}[{k}]": scale for k, scale in enumerate(value)} if isinstance(value, tuple) else {name: value}
        logs = {label: math.log(number) if number > 0 else -math.inf for label, number in values.items()}
        free = name not in self._fixed
        return [
            Parameter(label, log, min(low, log), max(high, log), free and math.isfinite(log))
            for label, log in logs.items()
        ]

    def with_logs(self, logs: Sequence[float]) -> Kernel:
        values = iter(logs)
        changes: dict[str, Any] = {}
        for name in self._names:
            old = getattr(self, name)
            if isinstance(old, tuple):
                changes[name] = tuple(exact_log(next(values), scale) for scale in old)
            else:
                changes[name] = exact_log(next(values), old)
        return self._changed(**changes)

    @property
    def total_variance(self) -> float:
        return self.variance

    @property
    def total_variance_is_fixed(self) -> bool:
        return "variance" in self._fixed

    def _unit(self: _Self) -> _Self:
        bounds = {name: pair for name, pair in self.bounds.items() if name != "variance"}
        return self._changed(variance=1.0, bounds=bounds, fixed={*self._fixed, "variance"})

    def _divided(self: _Self, divisor: float) -> _Self:
        bounds = dict(self.bounds)
        if "variance" in bounds:
            low, high = bounds["variance"]
            bounds["variance"] = (_rounded(low / divisor), _rounded(high / divisor))
        return self._changed(variance=_rounded(self.variance / divisor), bounds=bounds)

    def _scaled(self: _Self, factor: float) -> _Self:
        return self._changed(variance=self.variance * factor)


def check_positive(name: str, value: object) -> float:
    """The value as a float, if it is a positive and finite number."""
    return float(check_number(name, value, least=0, strict=True))


def check_length_scale(owner: str, value: object) -> float | tuple[float, ...]:
    """One length scale, or a tuple with one per feature."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        if isinstance(value, Real) and not isinstance(value, bool):
            return check_positive(f"{owner}: length_scale", value)
        raise TypeError(f"{owner}: length_scale must be a number or one number per feature, got {type(value).__name__}")
    if len(value) == 0:
        raise ValueError(f"{owner}: length_scale is empty, expected a number or one number per feature")
    return tuple(check_positive(f"{owner}: length_scale[{k}]", scale) for k, scale in enumerate(value))


def _check_fixed(owner: str, fixed: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the fixed parameters, in the order of the parameters."""
    if isinstance(fixed, bool):
        return names if fixed else ()
    given = (fixed,) if isinstance(fixed, str) else fixed
    if not isinstance(given, Iterable):
        raise TypeError(f"{owner}: fixed must be True, False, a name or several, got {type(fixed).__name__}")
    chosen = list(given)
    _check_names(owner, "fixed", chosen, names)
    return tuple(name for name in names if name in chosen)


def _check_bounds(owner: str, bounds: object, names: tuple[str, ...]) -> Table[str, tuple[float, float]]:
    """Bounds by the name of the parameter, in the order of the parameters."""
    if not isinstance(bounds, Mapping):
        raise TypeError(
            f"{owner}: bounds must be a mapping like {{{names[-1]!r}: (0.001, 1000.0)}}, got {type(bounds).__name__}"
        )
    _check_names(owner, "bounds", list(bounds), names)
    return Table({name: _check_pair(owner, name, bounds[name]) for name in names if name in bounds})


def _check_names(owner: str, argument: str, given: list[Any], names: tuple[str, ...]) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"{owner}: {argument} names {unknown[0]!r}, expected one of {', '.join(map(repr, names))}")


def _check_pair(owner: str, name: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise ValueError(f"{owner}: bounds of {name} must be a pair (low, high), got {pair!r}") from None
    low = check_positive(f"{owner}: lower bound of {name}", low)
    high = check_positive(f"{owner}: upper bound of {name}", high)
    if low >= high:
        raise ValueError(
            f"{owner}: bounds of {name} are ({low}, {high}), expected low < high; to keep a value, use fixed={name!r}"
        )
    return low, high


def _hold_within(owner: str, name: str, value: float, bounds: tuple[float, float]) -> float:
    """The value, which must lie within the bounds; what rounding has put outside is put back."""
    low, high = bounds
    if not low * (1 - _ROUNDING) <= value <= high * (1 + _ROUNDING):
        raise ValueError(f"{owner}: {name} is {value}, outside of its bounds ({low}, {high}); change one of them")
    return min(max(value, low), high)


def exact_log(log: float, old: float) -> float:
    """The number with this logarithm; the old one itself if that has it, so that nothing drifts."""
    return old if old > 0 and log == math.log(old) else math.exp(log)


def _rounded(number: float) -> float:
    """The number to 10 digits, so that equal ratios are equal numbers however they came about."""
    return float(f"{number:.10g}")
