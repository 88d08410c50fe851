"""The estimator's argument ``kernel``: kernels by name, kernels of their own for classes or nodes, and who gets which.

Whatever lists kernels (the command line, model files) reads it from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from taxolearn.blocks import Blocks
from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.kernels.base import Kernel, Parametrized
from taxolearn.kernels.function import Function
from taxolearn.kernels.inner_product import Cosine, Linear, Polynomial
from taxolearn.kernels.leaf import Leaf, Table
from taxolearn.kernels.per_block import PerBlock
from taxolearn.kernels.precomputed import Precomputed
from taxolearn.kernels.stationary import RBF, Matern, RationalQuadratic
from taxolearn.kernels.strings import Spectrum, Subsequence, WeightedDegree
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice

__all__ = [
    "STORABLE",
    "ClassKernels",
    "PerClass",
    "PerGroup",
    "PerNode",
    "as_kernel",
    "assign_kernels",
    "from_mapping",
    "function_names",
    "kernel_names",
    "reads_kernel_values",
    "start_kernel",
    "start_kernels",
]

_SHARES = ("nothing", "correlation", "equal")
_LINEAR_SCALE = 5.0  # of the kernel between two rows; of one row with itself in Seeger (2008)
_LEAST_COSINE = 0.01  # rows that have nothing in common count as if they had this
_SAMPLE = 512  # rows whose angles are looked at
_SCALE = 10.0  # mean of the diagonal of kernels that bend
_USUAL = (1e-3, 1e3)  # values for which the default bounds leave room
_ROOM = 1e5  # factor to each side that other values get
_EXTREME = 1e100
_ROUNDING = 1e-24  # share of the squared values
_BLOCK = 2**22  # elements of X that are copied at once

# -- Values that suit the data ----------------------------------------------------------------------------------------


def _start_linear(X: Any) -> dict[str, Any]:
    """A variance by the length of the rows and the angles between them."""
    variance = _LINEAR_SCALE / _usual_cosine(X) / _positive(_mean_square(X))
    return {"variance": variance, "bounds": _bounds("variance", variance)}


def _start_cosine(X: Any) -> dict[str, Any]:
    """A variance by the angles between rows."""
    return {"variance": _LINEAR_SCALE / _usual_cosine(X)}


def _start_polynomial(X: Any) -> dict[str, Any]:
    """Degree 2, and a scale by the length of the rows."""
    degree, scale = 2, 1.0 / _positive(_mean_square(X))
    return {"degree": degree, "scale": scale, "variance": _SCALE / 2**degree, "bounds": _bounds("scale", scale)}


def _start_stationary(X: Any) -> dict[str, Any]:
    """A length scale by the distances of the rows."""
    length_scale = _positive(math.sqrt(_total_variance(X)))
    return {"length_scale": length_scale, "variance": _SCALE, "bounds": _bounds("length_scale", length_scale)}


def _positive(number: float) -> float:
    """The number within reason, 1 for zero."""
    return float(np.clip(number, 1.0 / _EXTREME, _EXTREME)) if number > 0 else 1.0


def _usual_cosine(X: Any) -> float:
    """Root mean square of the cosines of the angles between rows, at least 0.01; 1 if no two rows have a direction."""
    some = X[np.unique(np.linspace(0, X.shape[0] - 1, min(_SAMPLE, X.shape[0])).astype(np.intp))]
    rows = normalize(some.astype(np.float64) / (abs(some).max() or 1.0))
    square = np.square(Linear().to_core().matrix(rows))  # by the core, on one thread: NumPy would take all
    n = float(np.trace(square))  # rows that are not zero
    if n < 2:
        return 1.0
    return float(np.sqrt(np.clip((square.sum() - n) / (n * (n - 1)), _LEAST_COSINE**2, 1.0)))


def _bounds(name: str, value: float) -> dict[str, tuple[float, float]]:
    return {} if _USUAL[0] <= value <= _USUAL[1] else {name: (value / _ROOM, value * _ROOM)}


def _mean_square(X: Any, centre: Any = 0.0) -> float:
    """Mean of the squared distances of the rows from a centre; for a sparse matrix, from zero."""
    values = X.data if sp.issparse(X) else X
    scale = float(np.abs(values).max(initial=0.0))  # without it squares might be infinite
    if scale == 0:
        return 0.0
    total = 0.0
    for rows in gen_batches(values.shape[0], max(1, _BLOCK // max(1, values[:1].size))):
        total += float(np.square((values[rows].astype(np.float64) - centre) / scale).sum())
    return total / float(X.shape[0]) * scale * scale


def _total_variance(X: Any) -> float:
    """Sum of the variances of the features; 0 if rounding is all there is."""
    centre = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if sp.issparse(X):
        # What is not stored is as far from the mean as that is from zero.
        stored = np.bincount(X.indices, minlength=X.shape[1])
        squares = np.square(X.data.astype(np.float64) - centre[X.indices]).sum()
        variance = float(squares + (X.shape[0] - stored) @ np.square(centre)) / float(X.shape[0])
    else:
        variance = _mean_square(X, centre)
    return variance if variance > _ROUNDING * _mean_square(X) else 0.0


# -- Kernels by name --------------------------------------------------------------------------------------------------

# Kernels that can be given by name, each with a function from checked inputs to arguments that suit these.
_KINDS: dict[str, tuple[type[Leaf], Callable[[Any], dict[str, Any]]]] = {
    "linear": (Linear, _start_linear),
    "rbf": (RBF, _start_stationary),
    "matern": (Matern, _start_stationary),
    "rational_quadratic": (RationalQuadratic, _start_stationary),
    "cosine": (Cosine, _start_cosine),
    "polynomial": (Polynomial, _start_polynomial),
}

# Kernels that model files hold, by the names of their classes.
STORABLE: dict[str, type[Leaf]] = {kernel.__name__: kernel for kernel, _ in _KINDS.values()}
STORABLE |= {kernel.__name__: kernel for kernel in (Precomputed, Spectrum, Subsequence, WeightedDegree)}


def kernel_names() -> tuple[str, ...]:
    """Names that stand for kernels."""
    return tuple(_KINDS)


def start_kernel(name: str, X: Any) -> Kernel:
    """The kernel of that name with values that suit the inputs.

    For ``Linear`` and ``Cosine`` the mean of ``k(x, x)`` becomes 5 divided by the root mean square cosine of the angles
    between rows: the sparser the rows, the less they say about each other, and the larger the variances that learning
    ends with. The mean is 10 for the others, for ``Polynomial`` at rows of root mean square length. A length scale is
    the root of the summed variances of the features, which is the root mean square distance of two rows divided by the
    root of 2. Where inputs are zero, or do not vary, these count as 1.

    Parameters
    ----------
    name : {"linear", "rbf", "matern", "rational_quadratic", "cosine", "polynomial"}
        Which kernel.
    X : array or CSR matrix of shape (n_samples, n_features)
        Checked inputs.
    """
    kernel, start = _kind(name, "kernel")
    return kernel(**start(X))


def as_kernel(value: object, name: str = "kernel") -> Kernel:
    """The value, if it is a kernel; "rbf" means ``RBF()`` and so on, a callable its ``Function``."""
    if isinstance(value, str):
        kernel, _ = _kind(value, name)
        return kernel()
    if isinstance(value, Kernel):
        return value
    if isinstance(value, type):
        raise TypeError(f"{name} is the class {value.__name__}, expected a kernel: {value.__name__}(...)")
    if callable(value):
        return Function(value)
    raise TypeError(
        f"{name} must be one of taxolearn.kernels, a name or a callable k(X, Y), got {type(value).__name__}"
    )


def _kind(value: str, name: str) -> tuple[type[Leaf], Callable[[Any], dict[str, Any]]]:
    if value not in _KINDS:
        raise ValueError(f"{name} is {value!r}, expected a kernel or one of {', '.join(map(repr, _KINDS))}")
    return _KINDS[value]


# -- Kernels of their own ---------------------------------------------------------------------------------------------


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

    @property
    def reads_sequences(self) -> bool:
        """Whether the inputs are strings, or codes of their letters."""
        kernels = self.kernel.values() if isinstance(self.kernel, Table) else [self.kernel]
        return any(isinstance(kernel, Kernel) and kernel.reads_sequences for kernel in kernels)

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


# -- Which function has which kernel ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassKernels:
    """Kernels of the independent functions of a model.

    Attributes
    ----------
    kernels : list of Kernel
        The distinct ones. A single kernel is for all functions and keeps its variance; of several, the variances are
        in the coupling.
    kernel_of : list of int
        Which of them each function has; empty for a single one.
    coupling : ClassCoupling
        The coupling, with the variances of the kernels multiplied in where they differ.
    described : Kernel or dict
        The kernel, or kernels by the names they were given for.
    """

    kernels: list[Kernel]
    kernel_of: list[int]
    coupling: ClassCoupling
    described: Any


def assign_kernels(
    kernel: Any, taxonomy: Taxonomy | None, classes: npt.NDArray[Any], coupling: ClassCoupling
) -> ClassKernels:
    """Read the estimator's ``kernel``. Classes and functions are in the order of the core."""
    if isinstance(kernel, Sequence) and not isinstance(kernel, str):
        if coupling.parents is not None:
            raise ValueError(
                "a list of kernels is for flat models; under the tree, map the names of nodes or groups to kernels"
            )
        if len(kernel) != len(classes):
            raise ValueError(
                f"kernel has {len(kernel)} elements, expected one kernel, or one for each of the {len(classes)} classes"
            )
        # A list is in the order of classes_, which is sorted.
        kernel = dict(zip(np.sort(classes).tolist(), kernel, strict=True))
    if isinstance(kernel, Mapping):
        kernel = from_mapping(kernel, taxonomy, coupling)
    if not isinstance(kernel, (PerClass, PerNode, PerGroup)):
        shared = as_kernel(kernel)
        return ClassKernels([shared], [], coupling, shared)
    if not coupling.has_functions:
        kind = "LearnedCoupling" if coupling.graph is None else "Graph"
        raise ValueError(
            f"kernel gives kernels of their own to classes or nodes, but under a {kind} these share functions: "
            'give one kernel for all, or another coupling ("independent" or "tree")'
        )
    names = function_names(kernel, taxonomy, classes, coupling)
    distinct = list(dict.fromkeys(names))
    units, index, variances = kernel.assign(distinct)
    units, index = _merge_without_parameters(units, index)
    place = {name: k for k, name in enumerate(distinct)}
    kernel_of = [index[place[name]] for name in names]
    coupling = coupling.times(np.array([variances[place[name]] for name in names]))
    given = kernel.kernel
    described = {name: as_kernel(given[name] if isinstance(given, Mapping) else given) for name in distinct}
    if len(units) == 1:
        kernel_of = []
    elif not all(unit.is_native and not unit.is_precomputed for unit in units):
        raise ValueError(
            "own kernels must be kernels of taxolearn that read features; a Function or Precomputed kernel can only be "
            'shared by all classes, with variances of their own by share="correlation"'
        )
    return ClassKernels(units, kernel_of, coupling, described)


def start_kernels(kernel: Any, X: Any) -> Any:
    """What the user gave as ``kernel``, with names of kernels replaced by kernels whose values suit the inputs.

    For ``Blocks`` a mapping from their names to kernels becomes a ``PerBlock``; so does any other kernel, which every
    block gets.
    """
    if isinstance(X, Blocks) and not isinstance(kernel, (PerClass, PerNode, PerGroup)):
        return _start_blocks(kernel, X)
    if isinstance(kernel, str):
        return start_kernel(kernel, X)
    if isinstance(kernel, (PerClass, PerNode, PerGroup)):
        return replace(kernel, kernel=start_kernels(kernel.kernel, X))
    if isinstance(kernel, Mapping):
        return {name: start_kernels(own, X) for name, own in kernel.items()}
    if isinstance(kernel, Sequence):
        return [start_kernels(own, X) for own in kernel]
    return kernel


def _start_blocks(kernel: Any, X: Blocks) -> Any:
    if isinstance(kernel, PerBlock):
        ordered = kernel.in_order(X.names)
        ordered.check_reads(X)
        return ordered
    if isinstance(kernel, Mapping):
        missing = [name for name in X.names if name not in kernel]
        if missing and len(missing) < len(X.names):
            raise ValueError(f"kernel has no kernel for the blocks {', '.join(map(repr, missing))}")
        if missing:  # names of classes, nodes or groups
            return {name: start_kernels(own, X) for name, own in kernel.items()}
        unknown = [name for name in kernel if name not in X.names]
        if unknown:
            raise ValueError(f"kernel has kernels for unknown blocks {', '.join(map(repr, unknown))}")
        return PerBlock({name: as_kernel(start_kernels(kernel[name], own)) for name, own in X.items()})
    if isinstance(kernel, Sequence) and not isinstance(kernel, str):
        return [start_kernels(own, X) for own in kernel]
    return PerBlock({name: as_kernel(start_kernels(kernel, own)) for name, own in X.items()})


def reads_kernel_values(kernel: Any) -> bool:
    """Whether an estimator with this kernel takes kernel values for inputs instead of features."""
    kernels = getattr(kernel, "kernel", kernel)  # of PerClass and its like
    if isinstance(kernels, Mapping):
        kernels = list(kernels.values())
    each = kernels if isinstance(kernels, (list, tuple)) else [kernels]
    return any(isinstance(kernel, Kernel) and kernel.is_precomputed for kernel in each)


def from_mapping(
    kernels: Mapping[Any, Any], taxonomy: Taxonomy | None, coupling: ClassCoupling
) -> PerClass | PerNode | PerGroup:
    """A plain mapping: by its keys for groups, for nodes, or for classes. Equal correlations are stored once."""
    if taxonomy is not None and kernels.keys() <= set(taxonomy.groups(coupling.tying)[1]):
        return PerGroup(kernels, share="equal")
    if taxonomy is None or coupling.parents is None:
        return PerClass(kernels, share="equal")
    if kernels.keys() <= set(taxonomy.classes.tolist()):
        raise ValueError(
            "kernel maps classes to kernels, but under the tree functions belong to nodes: map the names of all nodes "
            'below the root, or of the groups of tying, or use coupling="independent"'
        )
    return PerNode(kernels, share="equal")


def function_names(
    kernel: PerClass | PerNode | PerGroup,
    taxonomy: Taxonomy | None,
    classes: npt.NDArray[Any],
    coupling: ClassCoupling,
) -> list[Any]:
    """For every function, the name under which its kernel was given."""
    is_tree = coupling.parents is not None
    if isinstance(kernel, PerClass):
        if is_tree:
            raise ValueError(
                "PerClass gives kernels to the functions of a flat model; under the tree functions belong to nodes: "
                'use PerNode or PerGroup, or coupling="independent"'
            )
        return list(classes.tolist())
    if taxonomy is None:
        raise ValueError(f"{type(kernel).__name__} needs a taxonomy; without one, use PerClass")
    if isinstance(kernel, PerNode):
        if not is_tree:
            raise ValueError('PerNode gives kernels to the nodes of a tree; with coupling="independent", use PerClass')
        return coupling.function_names(taxonomy, classes)
    groups, names = taxonomy.groups(coupling.tying)
    if not is_tree:
        return [names[group] for group in groups[taxonomy.n_inner :].tolist()]
    assert coupling.groups is not None
    names = list(coupling.by_name)
    return [names[group] for group in coupling.groups[1:].tolist()]


def _merge_without_parameters(units: list[Kernel], index: list[int]) -> tuple[list[Kernel], list[int]]:
    """Equal kernels that have nothing to learn but their variances, like ``Linear``, are one."""
    places: dict[Any, int] = {}
    kept: list[Kernel] = []
    moved = []
    for k, unit in enumerate(units):
        key: Any = unit if len(unit.theta) == 0 else k
        if key not in places:
            places[key] = len(kept)
            kept.append(unit)
        moved.append(places[key])
    return kept, [moved[k] for k in index]
