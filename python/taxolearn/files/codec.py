"""Values as JSON and arrays, and back: numbers, labels, kernels, trees, sparse matrices. What comes back is checked."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.files.container import ContentError
from taxolearn.fitting.fit import Solver
from taxolearn.kernels.argument import STORABLE, PerClass, PerGroup, PerNode
from taxolearn.kernels.base import Kernel, Product, Sum
from taxolearn.kernels.function import Function
from taxolearn.targets import PartialLabels
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation

__all__ = ["NotStorableError", "Packer", "Unpacker", "expect"]

_COMBINATIONS: dict[str, Callable[[Any], Kernel]] = {"Sum": Sum, "Product": Product}
_OWN: dict[str, Any] = {kind.__name__: kind for kind in (PerClass, PerNode, PerGroup)}
_SETTINGS: dict[str, Any] = {
    kind.__name__: kind for kind in (CrossValidation, Independent, LearnedCoupling, PartialLabels, Solver, Tree)
}
_LABEL_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}
_PLAIN = (bool, int, float, str)

_T = TypeVar("_T")


class NotStorableError(TypeError):
    """A value that has no place in a file."""


class Packer:
    """Turns values into JSON; arrays and trees are collected on the way."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.taxonomies: list[Any] = []
        self._stored: dict[int, tuple[Any, Any]] = {}  # by identity: the object, kept alive, and where it is

    def array(self, name: str, array: NDArray[Any]) -> str:
        """Store an array; the name comes back, with a number if it is taken."""
        free = name
        while free in self.arrays:
            free = f"{name}.{len(self.arrays)}"
        self.arrays[free] = array
        return free

    def once(self, value: Any, store: Callable[[], Any]) -> Any:
        """What ``store`` returns for this object, which is asked for once."""
        if id(value) not in self._stored:
            self._stored[id(value)] = (value, store())
        return self._stored[id(value)][1]

    def matrix(self, name: str, matrix: Any) -> Any:
        """A dense or a CSR matrix."""
        return self.once(matrix, lambda: self._matrix(name, matrix))

    def _matrix(self, name: str, matrix: Any) -> Any:
        if not sp.issparse(matrix):
            return {"dense": self.array(name, matrix)}
        matrix = matrix.tocsr()
        parts = {part: self.array(f"{name}.{part}", getattr(matrix, part)) for part in ("indptr", "indices", "data")}
        return {"csr": parts, "columns": int(matrix.shape[1])}

    def taxonomy(self, taxonomy: Taxonomy | None) -> int | None:
        if taxonomy is None:
            return None
        return int(self.once(taxonomy, lambda: self._taxonomy(taxonomy)))

    def _taxonomy(self, taxonomy: Taxonomy) -> int:
        self.taxonomies.append(
            {
                "parents": self.array("taxonomy.parents", taxonomy.parents),
                "names": taxonomy.names.tolist(),
                "separator": taxonomy.separator,
            }
        )
        return len(self.taxonomies) - 1

    @staticmethod
    def labels(labels: NDArray[Any]) -> Any:
        """Class labels with their type."""
        kind = _LABEL_KINDS.get(labels.dtype.kind)
        values = labels.tolist()
        if labels.dtype.kind == "O" and all(type(value) is str for value in values):
            kind = "object"
        if kind is None or (kind == "float" and not np.isfinite(labels).all()):
            raise NotStorableError(f"labels of the type {labels.dtype} cannot be stored; use strings or integers")
        return {"kind": kind, "values": values}

    def value(self, value: Any) -> Any:
        """Numbers, strings, lists, mappings, kernels and trees."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or type(value) in _PLAIN:
            return value
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self.value(each) for each in value]}
        if isinstance(value, Mapping):
            return {"mapping": [[self.value(key), self.value(each)] for key, each in value.items()]}
        if isinstance(value, np.ndarray) and value.dtype.kind in "fi" and value.ndim <= 2:
            return {"array": self.array("value", value.astype(np.float64 if value.dtype.kind == "f" else np.int64))}
        if isinstance(value, Taxonomy):
            return {"taxonomy": self.taxonomy(value)}
        if isinstance(value, (Kernel, PerClass, PerNode, PerGroup)):
            return {"kernel": self.kernel(value)}
        if type(value) is _SETTINGS.get(type(value).__name__):
            return {"settings": self._settings(value)}
        raise NotStorableError(f"a {type(value).__name__} cannot be stored")

    def _settings(self, value: Any) -> Any:
        """A part of an estimator's settings. Parameters that cannot be stored are for the fit alone and left out."""
        values = {}
        for name, each in value.get_params(deep=False).items():
            with suppress(NotStorableError):
                values[name] = self.value(each)
        return {"kind": type(value).__name__, "values": values}

    def kernel(self, kernel: Any) -> Any:
        kind = type(kernel).__name__
        if isinstance(kernel, Function):
            raise NotStorableError(
                f"{kernel!r} is a Python function, which a model file cannot hold; fit with a kernel of "
                "taxolearn.kernels, or with Precomputed kernel matrices"
            )
        if isinstance(kernel, (Sum, Product)):
            return {"kind": kind, "parts": [self.kernel(part) for part in kernel.parts]}
        if type(kernel) is _OWN.get(kind):
            return {"kind": kind, "kernel": self.value(kernel.kernel), "share": kernel.share}
        if type(kernel) is not STORABLE.get(kind):
            raise NotStorableError(f"{kernel!r} is no kernel of taxolearn.kernels, so a model file cannot hold it")
        return {"kind": kind, "values": {f.name: self.value(getattr(kernel, f.name)) for f in fields(kernel)}}


class Unpacker:
    """The way back. Whatever is wrong raises a ``ContentError``, or one of ``KeyError, TypeError, ValueError``."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], taxonomies: Any) -> None:
        self._arrays = arrays
        self._taxonomies: list[Taxonomy] = [self._read_taxonomy(each) for each in expect(taxonomies, list)]
        self._read: dict[str, Any] = {}

    def array(self, name: Any, *shape: int | None, kinds: str = "f") -> NDArray[Any]:
        """An array with so many dimensions, of these lengths where they are given."""
        array = self._arrays[expect(name, str)]
        fits = array.ndim == len(shape) and all(
            want is None or have == want for have, want in zip(array.shape, shape, strict=True)
        )
        if not fits or array.dtype.kind not in kinds:
            raise ContentError(f"its array {name!r} has the shape {array.shape} and the type {array.dtype}")
        return array

    def matrix(self, entry: Any) -> Any:
        """A dense or a CSR matrix; equal entries give the same object."""
        key = repr(entry)
        if key not in self._read:
            self._read[key] = self._matrix(entry)
        return self._read[key]

    def _matrix(self, entry: Any) -> Any:
        if "dense" in entry:
            return self.array(entry["dense"], None, None)
        parts = expect(entry["csr"], dict)
        indptr = self.array(parts["indptr"], None, kinds="i")
        indices = self.array(parts["indices"], None, kinds="i")
        data = self.array(parts["data"], len(indices))
        columns = expect(entry["columns"], int)
        is_valid = (
            len(indptr) > 0
            and indptr[0] == 0
            and indptr[-1] == len(indices)
            and bool((np.diff(indptr) >= 0).all())
            and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < columns))
            and columns < 2**62
        )
        if not is_valid:
            raise ContentError("it has a sparse matrix whose indices are wrong")
        return sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, columns), copy=False)

    def taxonomy(self, number: Any) -> Taxonomy | None:
        if number is None:
            return None
        if expect(number, int) < 0:
            raise ContentError("its tree is missing")
        tree: Taxonomy = self._taxonomies[number]
        return tree

    def _read_taxonomy(self, entry: Any) -> Taxonomy:
        parents = self.array(entry["parents"], None, kinds="i")
        taxonomy = Taxonomy(parents, expect(entry["names"], list), separator=entry["separator"])
        if not np.array_equal(taxonomy.parents, parents):
            raise ContentError("the nodes of its tree are not in order")
        return taxonomy

    @staticmethod
    def labels(entry: Any) -> NDArray[Any]:
        kind, values = entry["kind"], expect(entry["values"], list)
        types = {"bool": bool, "int": int, "float": float, "str": str, "object": str}
        if not values or any(type(value) is not types[kind] for value in values) or len(set(values)) < len(values):
            raise ContentError("its class labels are wrong")
        return np.array(values, dtype=None if kind != "object" else object)

    def value(self, entry: Any) -> Any:
        if entry is None or type(entry) in _PLAIN:
            return entry
        if len(expect(entry, dict)) != 1:
            raise ContentError("it has a value of an unknown kind")
        ((kind, content),) = entry.items()
        if kind == "float":
            return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[content]
        if kind in ("list", "tuple"):
            values = [self.value(each) for each in expect(content, list)]
            return values if kind == "list" else tuple(values)
        if kind == "mapping":
            return {self.value(key): self.value(each) for key, each in expect(content, list)}
        if kind == "array":
            array = self._arrays[content]
            return array if array.dtype.kind == "f" else array.astype(np.int64)
        if kind == "taxonomy":
            return self.taxonomy(content)
        if kind == "kernel":
            return self.kernel(content)
        if kind == "settings":
            parameters = expect(content["values"], dict)
            return _SETTINGS[content["kind"]](**{name: self.value(each) for name, each in parameters.items()})
        if kind == "coupling":  # of version 1
            return LearnedCoupling(**{name: self.value(each) for name, each in expect(content, dict).items()})
        raise ContentError(f"it has a value of the unknown kind {kind!r}")

    def kernel(self, entry: Any) -> Any:
        kind = entry["kind"]
        if kind in _COMBINATIONS:
            return _COMBINATIONS[kind](tuple(self.kernel(part) for part in expect(entry["parts"], list)))
        if kind in _OWN:
            return _OWN[kind](self.value(entry["kernel"]), share=entry["share"])
        if kind not in STORABLE:
            raise ContentError(f"it has a kernel of the unknown kind {kind!r}; a newer release may know it")
        return STORABLE[kind](**{name: self.value(value) for name, value in entry["values"].items()})


def expect(value: Any, kind: type[_T]) -> _T:
    """The value, if it has this very type."""
    if type(value) is not kind:
        raise ContentError(f"it has a {type(value).__name__} in place of a {kind.__name__}")
    return value
