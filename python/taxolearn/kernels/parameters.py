"""Parameters of kernels: numbers on log scale with bounds, which ones are fixed, and the checks of what users give."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone

__all__ = [
    "DEFAULT_BOUNDS",
    "Parameter",
    "Parametrized",
    "Table",
    "check_bounds",
    "check_fixed",
    "check_length_scale",
    "check_positive",
    "exact_log",
    "hold_within",
    "rounded",
    "with_params",
]

DEFAULT_BOUNDS = (1e-5, 1e5)
_ROUNDING = 1e-9  # relative error that the way through the logarithm may cause

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Parameter(NamedTuple):
    """One number of a kernel: its logarithm, the bounds of that, and whether it may be learned."""

    name: str
    log: float
    low: float
    high: float
    free: bool


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


def check_positive(owner: str, name: str, value: object, *, or_zero: bool = False) -> float:
    """The value as a float, if it is a positive and finite number; with ``or_zero``, zero is allowed too."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{owner}: {name} must be a number, got {type(value).__name__}")
    number = float(value)
    if or_zero and number == 0:
        return 0.0
    if not (math.isfinite(number) and number > 0):
        expected = "positive or zero, and finite" if or_zero else "positive and finite"
        raise ValueError(f"{owner}: {name} must be {expected}, got {value}")
    return number


def check_length_scale(owner: str, value: object) -> float | tuple[float, ...]:
    """One length scale, or a tuple with one per feature."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        if isinstance(value, Real) and not isinstance(value, bool):
            return check_positive(owner, "length_scale", value)
        raise TypeError(f"{owner}: length_scale must be a number or one number per feature, got {type(value).__name__}")
    if len(value) == 0:
        raise ValueError(f"{owner}: length_scale is empty, expected a number or one number per feature")
    return tuple(check_positive(owner, f"length_scale[{k}]", scale) for k, scale in enumerate(value))


def check_fixed(owner: str, fixed: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the fixed parameters, in the order of the parameters."""
    if isinstance(fixed, bool):
        return names if fixed else ()
    given = (fixed,) if isinstance(fixed, str) else fixed
    if not isinstance(given, Iterable):
        raise TypeError(f"{owner}: fixed must be True, False, a name or several, got {type(fixed).__name__}")
    chosen = list(given)
    _check_names(owner, "fixed", chosen, names)
    return tuple(name for name in names if name in chosen)


def check_bounds(owner: str, bounds: object, names: tuple[str, ...]) -> Table[str, tuple[float, float]]:
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
    low = check_positive(owner, f"lower bound of {name}", low)
    high = check_positive(owner, f"upper bound of {name}", high)
    if low >= high:
        raise ValueError(
            f"{owner}: bounds of {name} are ({low}, {high}), expected low < high; to keep a value, use fixed={name!r}"
        )
    return low, high


def hold_within(owner: str, name: str, value: float, bounds: tuple[float, float]) -> float:
    """The value, which must lie within the bounds; what rounding has put outside is put back."""
    low, high = bounds
    if not low * (1 - _ROUNDING) <= value <= high * (1 + _ROUNDING):
        raise ValueError(f"{owner}: {name} is {value}, outside of its bounds ({low}, {high}); change one of them")
    return min(max(value, low), high)


def exact_log(log: float, old: float) -> float:
    """The number with this logarithm; the old one itself if that has it, so that nothing drifts."""
    return old if old > 0 and log == math.log(old) else math.exp(log)


def rounded(number: float) -> float:
    """The number to 10 digits, so that equal ratios are equal numbers however they came about."""
    return float(f"{number:.10g}")


def with_params(value: Any, params: Mapping[str, Any], name: str) -> Any:
    """The value with other parameters, given by names like ``variance`` or ``0__length_scale``; it does not change.

    ``name`` is how errors call it.
    """
    if hasattr(value, "with_params"):
        return value.with_params(**params)
    if hasattr(value, "set_params") and not isinstance(value, type):
        return clone(value).set_params(**params)
    raise ValueError(f"{name} is {value!r}, which has no parameter {next(iter(params))!r} to set")


def updated(owner: str, own: dict[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a value, some of them replaced; those of parts are set by names like ``part__name``."""
    out, nested = dict(own), dict[str, dict[str, Any]]()
    for key, value in params.items():
        name, inside, rest = key.partition("__")
        if name not in own:
            raise ValueError(f"{owner} has no parameter {name!r}; it has {', '.join(map(repr, own))}")
        if inside:
            nested.setdefault(name, {})[rest] = value
        else:
            out[name] = value
    for name, inner in nested.items():
        out[name] = with_params(out[name], inner, f"{owner}: {name}")
    return out


class Parametrized:
    """A value that does not change, with parameters as scikit-learn sees them: ``clone`` gives it back as it is."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep`` also those of parts, as ``part__name``."""
        out = self._own_params()
        if deep:
            for name, value in list(out.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    out |= {f"{name}__{key}": each for key, each in value.get_params().items()}
        return out

    def with_params(self, **params: Any) -> Any:
        """The same with other parameters, named as in ``get_params``."""
        return self._of_params(updated(type(self).__name__, self._own_params(), params))

    def _own_params(self) -> dict[str, Any]:
        raise NotImplementedError

    def _of_params(self, params: dict[str, Any]) -> Any:
        return type(self)(**params)

    def __sklearn_clone__(self) -> Any:
        return self
