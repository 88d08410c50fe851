"""The kernel with parameters of its own, from which every covariance function comes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

from taxolearn.kernels.base import Kernel
from taxolearn.kernels.parameters import (
    DEFAULT_BOUNDS,
    Parameter,
    Table,
    check_bounds,
    check_fixed,
    check_positive,
    exact_log,
    hold_within,
    rounded,
)

__all__ = ["Leaf", "Number"]

Number = float | tuple[float, ...]

_Self = TypeVar("_Self", bound="Leaf")


@dataclass(frozen=True, repr=False)
class Leaf(Kernel):
    """A kernel with parameters of its own. Every one has a variance, its last parameter."""

    bounds: Mapping[str, tuple[float, float]] = field(default=Table(), kw_only=True)
    fixed: bool | str | Iterable[str] = field(default=(), kw_only=True)

    _names: ClassVar[tuple[str, ...]] = ("variance",)  # of the parameters, in the order of the core

    @property
    @abstractmethod
    def variance(self) -> float: ...

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for name in self._names:
            self._set(name, self._check_value(owner, name, getattr(self, name)))
        self._set("fixed", check_fixed(owner, self.fixed, self._fixable))
        self._set("bounds", check_bounds(owner, self.bounds, self._names))
        for name, pair in self.bounds.items():
            value = getattr(self, name)
            if isinstance(value, tuple):
                places = enumerate(value)
                self._set(name, tuple(hold_within(owner, f"{name}[{k}]", scale, pair) for k, scale in places))
            elif value > 0:
                self._set(name, hold_within(owner, name, value, pair))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_value(self, owner: str, name: str, value: object) -> Number:
        return check_positive(owner, name, value)

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

    @property
    def is_native(self) -> bool:
        return True

    def check_features(self, n_features: int) -> None:
        pass

    def parameters(self) -> list[Parameter]:
        return [parameter for name in self._names for parameter in self._parameters_named(name)]

    def _parameters_named(self, name: str) -> list[Parameter]:
        value = getattr(self, name)
        low, high = map(math.log, self.bounds.get(name, DEFAULT_BOUNDS))
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
            bounds["variance"] = (rounded(low / divisor), rounded(high / divisor))
        return self._changed(variance=rounded(self.variance / divisor), bounds=bounds)

    def _scaled(self: _Self, factor: float) -> _Self:
        return self._changed(variance=self.variance * factor)
