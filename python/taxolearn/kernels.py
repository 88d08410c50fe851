"""Kernels: immutable values that describe a covariance function and its parameters."""

import math
from dataclasses import dataclass
from numbers import Real

__all__ = ["Linear"]


def _positive(owner: str, name: str, value: object) -> float:
    """The value as a float, if it is a positive and finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{owner}: {name} must be a number, got {type(value).__name__}")
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{owner}: {name} must be positive and finite, got {value}")
    return number


@dataclass(frozen=True)
class Linear:
    """The linear kernel ``variance * x · x'``.

    Parameters
    ----------
    variance : float, default=1.0
        Prior variance of every weight. Larger values fit the data more closely; with scikit-learn's
        ``LogisticRegression`` it corresponds to ``C``.

    Examples
    --------
    >>> from taxolearn.kernels import Linear
    >>> Linear(variance=5)
    Linear(variance=5.0)
    """

    variance: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _positive("Linear", "variance", self.variance))
