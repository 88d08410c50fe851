"""What every kernel can do, and how kernels combine."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from taxolearn import _core
from taxolearn.sequence_codes import are_strings, letter_codes
from taxolearn.validation import check_number, check_rows, check_threads

__all__ = ["Kernel", "Parameter", "Parametrized", "Product", "Sum", "with_params"]

Floats = npt.NDArray[np.float64]

_LARGEST_LOG = 700.0  # exp of more is infinite, of less than minus this zero


class Parameter(NamedTuple):
    """One number of a kernel: its logarithm, the bounds of that, and whether it may be learned."""

    name: str
    log: float
    low: float
    high: float
    free: bool


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
        return self._of_params(_updated(type(self).__name__, self._own_params(), params))

    def _own_params(self) -> dict[str, Any]:
        raise NotImplementedError

    def _of_params(self, params: dict[str, Any]) -> Any:
        return type(self)(**params)

    def __sklearn_clone__(self) -> Any:
        return self


class Kernel(Parametrized, ABC):
    """A covariance function: an immutable value with its parameters on log scale.

    Kernels add (``+``), multiply (``*``) and scale (``2.0 * kernel``). The free parameters, in the order of
    ``parameter_names``, form the vector ``theta`` of their logarithms.

    ``get_params`` gives the arguments of the constructor, so ``model.set_params(kernel__variance=3.0)`` and a grid over
    ``kernel__length_scale`` work; the parts of a sum or product are numbered: ``kernel__0__variance``. As kernels do
    not change, the model then has another kernel, the one that ``kernel.with_params(variance=3.0)`` gives.

    Attributes
    ----------
    is_native : bool
        Whether the core evaluates it: true of all but those with a ``Function`` inside.
    is_precomputed : bool
        Whether the inputs are kernel matrices instead of features.
    reads_blocks : bool
        Whether the inputs are ``Blocks``.
    reads_sequences : bool
        Whether the inputs are strings, or codes of their letters.
    """

    __array_ufunc__ = None  # numpy scalars leave ``number * kernel`` to us

    is_native: bool = True
    is_precomputed: bool = False
    reads_blocks: ClassVar[bool] = False
    reads_sequences: bool = False

    @abstractmethod
    def to_core(self) -> _core.Kernel:
        """The same kernel in the core, with all parameters, fixed ones included, in the same order."""

    @abstractmethod
    def check_reads(self, X: Any) -> None:
        """Raise an error if the kernel cannot take these inputs."""

    # Parameters

    @abstractmethod
    def parameters(self) -> list[Parameter]:
        """All parameters, free or not, in the order of the core."""

    @abstractmethod
    def with_logs(self, logs: Sequence[float]) -> Kernel:
        """The kernel with other values of all parameters."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the free parameters, like "length_scale[3]"; those of the second part of a sum begin with "1."."""
        return tuple(parameter.name for parameter in self.parameters() if parameter.free)

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """For each parameter, in the order of the core, whether it is part of ``theta``. Read-only."""
        return _read_only(np.array([parameter.free for parameter in self.parameters()], dtype=np.bool_))

    @property
    def theta(self) -> Floats:
        """Logarithms of the free parameters. Read-only."""
        return _read_only(np.array([p.log for p in self.parameters() if p.free], dtype=np.float64))

    @property
    def theta_bounds(self) -> Floats:
        """Logarithms of the bounds of the free parameters, shape (n_parameters, 2). Read-only."""
        pairs = [(p.low, p.high) for p in self.parameters() if p.free]
        return _read_only(np.array(pairs, dtype=np.float64).reshape(-1, 2))

    def with_theta(self, theta: npt.ArrayLike) -> Kernel:
        """The kernel with other values of the free parameters, given by their logarithms."""
        parameters = self.parameters()
        places = [k for k, parameter in enumerate(parameters) if parameter.free]
        values = np.asarray(theta, dtype=np.float64)
        if values.shape != (len(places),):
            names = ", ".join(parameters[k].name for k in places[:5]) + (", ..." if len(places) > 5 else "")
            raise ValueError(
                f"theta has shape {values.shape}, expected ({len(places)},) for: {names or 'no parameter'}"
            )
        logs = [parameter.log for parameter in parameters]
        for k, value in zip(places, values.tolist(), strict=True):
            if not abs(value) <= _LARGEST_LOG:
                raise ValueError(
                    f"theta: the logarithm of {parameters[k].name} must lie between -{_LARGEST_LOG:g} and "
                    f"{_LARGEST_LOG:g}, got {value}"
                )
            logs[k] = value
        return self.with_logs(logs)

    # Variance

    @property
    @abstractmethod
    def total_variance(self) -> float:
        """The factor that ``split`` takes out."""

    @property
    @abstractmethod
    def total_variance_is_fixed(self) -> bool: ...

    @abstractmethod
    def _unit(self) -> Kernel:
        """The kernel with that factor set to 1 and fixed."""

    @abstractmethod
    def _divided(self, divisor: float) -> Kernel:
        """The kernel divided by a number, as a part of a unit: its own factor stays a parameter."""

    @abstractmethod
    def _scaled(self, factor: float) -> Kernel: ...

    def split(self) -> tuple[float, Kernel]:
        """A variance and the kernel without it, whose variance is 1 and fixed.

        That of a product is the product of all; that of a sum is the variance of the first part, and the variances
        of the others become relative to it, rounded to 10 digits. A variance that was fixed in a sum then stays fixed
        relative to the first. Kernels with equal second results have the same correlation matrix.

        Examples
        --------
        >>> from taxolearn.kernels import RBF, Linear
        >>> RBF(2.0, variance=3.0).split()
        (3.0, RBF(length_scale=2.0, variance=1.0, fixed='variance'))
        >>> (2.0 * Linear() + 6.0 * RBF()).split()
        (2.0, Linear(variance=1.0, fixed='variance') + RBF(length_scale=1.0, variance=3.0))
        """
        return self.total_variance, self._unit()

    def __add__(self, other: Kernel) -> Sum:
        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product((self, other))
        if isinstance(other, Real) and not isinstance(other, bool):
            return self._scaled(check_number("the factor of a kernel", other, least=0, strict=True))
        return NotImplemented

    __rmul__ = __mul__

    # Evaluation

    def __call__(
        self, X: Any, Y: Any = None, *, n_threads: int | None = None, dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[Any]:
        """The kernel matrix between the rows of ``X`` and of ``Y``, by default those of ``X`` again.

        Inputs may be dense or sparse, in single or double precision; the result is a float64 array, or with
        ``dtype=np.float32`` one that is computed in single precision, in half the memory. A ``Precomputed`` kernel
        takes for ``X`` rows of kernel values with the training points and for ``Y`` the training matrix.
        """
        X = self._check_inputs(X, "X")
        if Y is not None:
            Y = self._check_inputs(Y, "Y")
            if X.shape[1] != Y.shape[1]:
                raise ValueError(f"X has {X.shape[1]} columns and Y has {Y.shape[1]}, expected the same number")
            if not self.is_native:
                X, Y = _alike(X, Y)
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype is {dtype!r}, expected float32 or float64")
        if self.is_native and np.dtype(dtype) == np.float32:
            return self.to_core().matrix(X, Y, check_threads(n_threads), single=True)  # type: ignore[no-any-return]
        return self._matrix(X, Y, check_threads(n_threads)).astype(dtype, copy=False)

    def diag(self, X: Any) -> Floats:
        """The diagonal of the kernel matrix of the rows of ``X``."""
        return self._diag(self._check_inputs(X, "X"))

    def gradient(self, X: Any, Q: npt.ArrayLike, *, n_threads: int | None = None) -> Floats:
        """Derivatives of ``sum(Q * k(X, X))`` with respect to ``theta``."""
        X = self._check_inputs(X, "X")
        Q = np.ascontiguousarray(Q, dtype=np.float64)
        if Q.shape != (X.shape[0], X.shape[0]):
            raise ValueError(f"Q has shape {Q.shape}, expected ({X.shape[0]}, {X.shape[0]}): X has {X.shape[0]} rows")
        return self._gradient(X, Q, check_threads(n_threads))[self.free]

    def _check_inputs(self, X: Any, name: str) -> Any:
        """Rows in a form that the core reads in place."""
        if self.is_precomputed and sp.issparse(X):
            raise TypeError(f"{name} is sparse, but a Precomputed kernel needs a dense matrix; use {name}.toarray()")
        X = check_rows(letter_codes(X, name) if self.reads_sequences and are_strings(X) else X, name)
        self.check_reads(X)
        return X

    def _matrix(self, X: Any, Y: Any, n_threads: int) -> Floats:
        return self.to_core().matrix(X, Y, n_threads)  # type: ignore[no-any-return]

    def _diag(self, X: Any) -> Floats:
        return self.to_core().diag(X)

    def _gradient(self, X: Any, Q: Floats, n_threads: int) -> Floats:
        """As ``gradient``, for all parameters."""
        return self.to_core().gradient(X, Q, n_threads)


@dataclass(frozen=True, repr=False)
class _Combination(Kernel):
    """Two or more kernels of the same inputs. A combination of its own kind among them is taken apart."""

    parts: tuple[Kernel, ...]

    _operator: ClassVar[Any]

    def __post_init__(self) -> None:
        kind = type(self)
        if not isinstance(self.parts, Iterable):
            raise TypeError(f"{kind.__name__}: parts must be a sequence of kernels, got {type(self.parts).__name__}")
        flat: list[Kernel] = []
        for part in self.parts:
            if not isinstance(part, Kernel):
                raise TypeError(
                    f"{kind.__name__}: every part must be a kernel, got {type(part).__name__}; "
                    "wrap a callable in taxolearn.kernels.Function"
                )
            flat.extend(part.parts if type(part) is kind else (part,))
        if len(flat) < 2:
            raise ValueError(f"{kind.__name__}: at least two parts are needed, got {len(flat)}")
        if any(part.reads_blocks for part in flat):
            raise ValueError(
                f"{kind.__name__}: PerBlock is a sum over blocks and no part of another kernel; combine the kernels of "
                "its blocks"
            )
        if len({part.is_precomputed for part in flat}) > 1:
            raise ValueError(
                f"{kind.__name__}: a Precomputed kernel reads a kernel matrix, the other parts read features, so they "
                "cannot go together; evaluate the others, combine the matrices and use Precomputed alone"
            )
        if len({part.reads_sequences for part in flat}) > 1:
            raise ValueError(
                f"{kind.__name__}: a kernel of strings reads sequences, the other parts read features, so they cannot "
                'go together; give each its inputs: Blocks({"sequence": strings, "features": X})'
            )
        object.__setattr__(self, "parts", tuple(flat))
        object.__setattr__(self, "reads_sequences", flat[0].reads_sequences)
        object.__setattr__(self, "is_native", all(part.is_native for part in flat))
        object.__setattr__(self, "is_precomputed", flat[0].is_precomputed)

    def _own_params(self) -> dict[str, Any]:
        return {str(k): part for k, part in enumerate(self.parts)}

    def _of_params(self, params: dict[str, Any]) -> Any:
        return type(self)(tuple(params.values()))

    def check_reads(self, X: Any) -> None:
        for part in self.parts:
            part.check_reads(X)

    def parameters(self) -> list[Parameter]:
        return [p._replace(name=f"{k}.{p.name}") for k, part in enumerate(self.parts) for p in part.parameters()]

    def with_parts(self, parts: Sequence[Kernel]) -> Kernel:
        """The same combination of other kernels."""
        return type(self)(tuple(parts))

    def with_logs(self, logs: Sequence[float]) -> Kernel:
        values = iter(logs)
        return self.with_parts([part.with_logs([next(values) for _ in part.parameters()]) for part in self.parts])

    def _matrix(self, X: Any, Y: Any, n_threads: int) -> Floats:
        if self.is_native:
            return super()._matrix(X, Y, n_threads)
        matrix: Floats = reduce(self._operator, (part._matrix(X, Y, n_threads) for part in self.parts))
        return matrix

    def _diag(self, X: Any) -> Floats:
        if self.is_native:
            return super()._diag(X)
        diagonal: Floats = reduce(self._operator, (part._diag(X) for part in self.parts))
        return diagonal

    def _gradient(self, X: Any, Q: Floats, n_threads: int) -> Floats:
        if self.is_native:
            return super()._gradient(X, Q, n_threads)
        return np.concatenate(
            [
                part._gradient(X, weights, n_threads)
                for part, weights in zip(self.parts, self._weights(X, Q, n_threads), strict=True)
            ]
        )

    @abstractmethod
    def _weights(self, X: Any, Q: Floats, n_threads: int) -> Iterator[Floats]:
        """For each part, what its entries are multiplied with in ``sum(Q * matrix)``."""


@dataclass(frozen=True, repr=False)
class Sum(_Combination):
    """The sum of kernels; usually written with ``+``.

    Parameters
    ----------
    parts : sequence of Kernel
        Two or more.

    Examples
    --------
    >>> from taxolearn.kernels import RBF, Linear
    >>> (RBF(2.0) + Linear()).parameter_names
    ('0.length_scale', '0.variance', '1.variance')
    """

    _operator = np.add

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def to_core(self) -> _core.Kernel:
        return _core.SumKernel([part.to_core() for part in self.parts])

    @property
    def total_variance(self) -> float:
        return self.parts[0].total_variance

    @property
    def total_variance_is_fixed(self) -> bool:
        return self.parts[0].total_variance_is_fixed

    def _unit(self) -> Kernel:
        first, *others = self.parts
        return self.with_parts([first._unit(), *(part._divided(first.total_variance) for part in others)])

    def _divided(self, divisor: float) -> Kernel:
        return self.with_parts([part._divided(divisor) for part in self.parts])

    def _scaled(self, factor: float) -> Kernel:
        return self.with_parts([part._scaled(factor) for part in self.parts])

    def _weights(self, X: Any, Q: Floats, n_threads: int) -> Iterator[Floats]:
        return (Q for _ in self.parts)


@dataclass(frozen=True, repr=False)
class Product(_Combination):
    """The product of kernels; usually written with ``*``.

    Only the product of the variances matters, so fix all but one of them where parameters are learned.

    Parameters
    ----------
    parts : sequence of Kernel
        Two or more.

    Examples
    --------
    >>> from taxolearn.kernels import RBF, Linear
    >>> 3.0 * RBF() * Linear(fixed="variance")
    RBF(length_scale=1.0, variance=3.0) * Linear(variance=1.0, fixed='variance')
    """

    _operator = np.multiply

    def __repr__(self) -> str:
        return " * ".join(f"({part!r})" if isinstance(part, Sum) else repr(part) for part in self.parts)

    def to_core(self) -> _core.Kernel:
        return _core.ProductKernel([part.to_core() for part in self.parts])

    @property
    def total_variance(self) -> float:
        return math.prod(part.total_variance for part in self.parts)

    @property
    def total_variance_is_fixed(self) -> bool:
        return all(part.total_variance_is_fixed for part in self.parts)

    def _unit(self) -> Kernel:
        return Product(tuple(part._unit() for part in self.parts))

    def _divided(self, divisor: float) -> Kernel:
        """One part carries the variance of all: the first where it is free."""
        carrier = next((k for k, part in enumerate(self.parts) if not part.total_variance_is_fixed), 0)
        rest = math.prod(part.total_variance for k, part in enumerate(self.parts) if k != carrier)
        return Product(
            tuple(part._divided(divisor / rest) if k == carrier else part._unit() for k, part in enumerate(self.parts))
        )

    def _scaled(self, factor: float) -> Kernel:
        return Product((self.parts[0]._scaled(factor), *self.parts[1:]))

    def _weights(self, X: Any, Q: Floats, n_threads: int) -> Iterator[Floats]:
        matrices = [part._matrix(X, None, n_threads) for part in self.parts]
        for k in range(len(matrices)):
            yield reduce(np.multiply, (matrix for j, matrix in enumerate(matrices) if j != k), Q)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def _alike(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both inputs in one precision, and both sparse if one is."""
    if X.dtype != Y.dtype:
        X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
    if sp.issparse(X) != sp.issparse(Y):
        X, Y = (A if sp.issparse(A) else sp.csr_array(A) for A in (X, Y))
    return X, Y


def with_params(value: Any, params: Mapping[str, Any], name: str) -> Any:
    """The value with other parameters, given by names like ``variance`` or ``0__length_scale``; it does not change.

    ``name`` is how errors call it.
    """
    if hasattr(value, "with_params"):
        return value.with_params(**params)
    if hasattr(value, "set_params") and not isinstance(value, type):
        return clone(value).set_params(**params)
    raise ValueError(f"{name} is {value!r}, which has no parameter {next(iter(params))!r} to set")


def _updated(owner: str, own: dict[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
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
