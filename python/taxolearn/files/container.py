"""The format of model files: arrays and JSON, checksummed, memory-mapped, and never trusted; and values in that form.

Layout, all numbers little-endian:

    16 bytes   0x93 followed by "taxolearn model"
     4 bytes   version of the format
     4 bytes   zero
     8 bytes   length of the header
    32 bytes   SHA-256 of the header
    header     JSON in UTF-8: {"content": ..., "arrays": {name: {"dtype", "shape", "offset"}}, "size", "checksums"}
    data       arrays in C order, each at a multiple of 64 bytes from the start of the file

"size" is that of the whole file, and "checksums" are the CRC-32 of every 16 MiB of the data, from the header's end on.
"""

import hashlib
import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taxolearn.blocks import Blocks
from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.couplings.graph import Graph
from taxolearn.fitting.fit import Solver
from taxolearn.kernels.argument import STORABLE, PerClass, PerGroup, PerNode
from taxolearn.kernels.base import Kernel, Product, Sum
from taxolearn.kernels.function import Function
from taxolearn.kernels.per_block import PerBlock
from taxolearn.raw_files import replaced
from taxolearn.targets import PartialLabels
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation

__all__ = [
    "DAMAGED",
    "VERSION",
    "Container",
    "ContentError",
    "NotStorableError",
    "Packer",
    "Unpacker",
    "expect",
    "read_container",
    "write_container",
]

VERSION = 2
DAMAGED = "it is damaged"

_COMBINATIONS: dict[str, Callable[[Any], Kernel]] = {"Sum": Sum, "Product": Product}
_OWN: dict[str, Any] = {kind.__name__: kind for kind in (PerClass, PerNode, PerGroup)}
_SETTINGS: dict[str, Any] = {
    kind.__name__: kind for kind in (CrossValidation, Graph, Independent, LearnedCoupling, PartialLabels, Solver, Tree)
}
_LABEL_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}
_PLAIN = (bool, int, float, str)
_T = TypeVar("_T")

_MAGIC = b"\x93taxolearn model"
_FIRST = struct.Struct("<16sIIQ32s")
_ALIGNMENT = 64
_CHUNK = 1 << 24
_THREADS = 4
_DTYPES = ("<f4", "<f8", "<i4", "<i8", "|u1")


class ContentError(ValueError):
    """A file that cannot be used; the message says why, but not which file."""


class NotStorableError(TypeError):
    """A value that has no place in a file."""


# -- The file ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Container:
    """What a file holds.

    Attributes
    ----------
    version : int
        Of the format.
    content : Any
        What the JSON says.
    arrays : dict of ndarray
        Read-only views of the file.
    size : int
        Bytes of the file.
    """

    version: int
    content: Any
    arrays: dict[str, NDArray[Any]]
    size: int


def write_container(path: Path, content: Any, arrays: Mapping[str, NDArray[Any]]) -> int:
    """Write a file, or replace one as a whole.

    Parameters
    ----------
    path : Path
    content : Any
        Must be expressible in JSON.
    arrays : mapping of names to arrays
        Of float32, float64, int32, int64 or uint8.

    Returns
    -------
    size : int
        Bytes of the file.
    """
    stored = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in stored.items():
        if array.dtype.str not in _DTYPES:
            raise TypeError(f"array {name!r} has the type {array.dtype}, expected one of {', '.join(_DTYPES)}")
    header = _Header(content, stored)
    with replaced(path, "save") as file:
        # The header's length depends on the offsets and the checksums, which depend on its length: make room first.
        begin = _FIRST.size + header.room
        file.seek(begin)
        for name, array in stored.items():
            file.write(bytes(-file.tell() % _ALIGNMENT))
            header.offsets[name] = file.tell()
            file.write(array.data)
        header.size = file.tell()
        header.checksums = _checksums_of_file(file, begin, header.size)
        text = header.text()
        file.seek(0)
        file.write(_FIRST.pack(_MAGIC, VERSION, 0, len(text), hashlib.sha256(text).digest()))
        file.write(text)
    return header.size


class _Header:
    """The JSON in front of the arrays."""

    def __init__(self, content: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._content = content
        self._arrays = arrays
        self.offsets = dict.fromkeys(arrays, 10**18)
        self.size = 10**18
        total = sum(array.nbytes + _ALIGNMENT for array in arrays.values())
        self.checksums = [2**32 - 1] * (total // _CHUNK + 1)
        self.room = len(self._json())

    def text(self) -> bytes:
        return self._json().ljust(self.room)

    def _json(self) -> bytes:
        arrays = {
            name: {"dtype": array.dtype.str, "shape": list(array.shape), "offset": self.offsets[name]}
            for name, array in self._arrays.items()
        }
        whole = {"content": self._content, "arrays": arrays, "size": self.size, "checksums": self.checksums}
        return json.dumps(whole, allow_nan=False, separators=(",", ":")).encode()


def _checksums_of_file(file: BinaryIO, begin: int, end: int) -> list[int]:
    file.seek(begin)
    return [zlib.crc32(file.read(min(_CHUNK, end - start))) for start in range(begin, end, _CHUNK)]


def read_container(path: Path, *, check: bool = True) -> Container:
    """Map a file into memory.

    Parameters
    ----------
    path : Path
    check : bool, default=True
        Whether to compare the checksums of the arrays, for which all of them are read once. That of the header always
        is.

    Raises
    ------
    ContentError
        The file is of another kind, of a newer version, or damaged.
    OSError
        It cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        first = file.read(_FIRST.size)
        if not first.startswith(_MAGIC) or len(first) < _FIRST.size:
            raise ContentError("it is not a model file of taxolearn")
        _, version, zero, length, digest = _FIRST.unpack(first)
        if not 1 <= version <= VERSION:
            raise ContentError(f"it has format version {version}, and this release reads up to {VERSION}")
        begin = _FIRST.size + length
        if zero != 0 or begin > size:
            raise ContentError(f"{DAMAGED}, or cut off")
        text = file.read(length)
        if hashlib.sha256(text).digest() != digest:
            raise ContentError(f"{DAMAGED}: the checksum of its header is wrong")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        header = json.loads(text)
        claimed, checksums, arrays = header["size"], header["checksums"], header["arrays"].items()
        if claimed != size:
            raise ContentError(f"{DAMAGED}: it has {size} bytes, expected {claimed}")
        if len(checksums) != -(-(size - begin) // _CHUNK):
            raise ContentError("its header contradicts itself")
        views = {name: _view(mapped, begin, size, **entry) for name, entry in arrays}
        content = header["content"]
    # A file made up to do harm can have anything here.
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise error if isinstance(error, ContentError) else ContentError("its header is wrong") from error
    if check and _checksums(mapped, begin, size) != checksums:
        raise ContentError(f"{DAMAGED}: the checksum of its arrays is wrong")
    return Container(version, content, views, size)


def _view(mapped: mmap.mmap, begin: int, size: int, dtype: Any, shape: Any, offset: Any) -> NDArray[Any]:
    """An array inside the file."""
    sides = [offset, *shape]
    if dtype not in _DTYPES or not all(type(side) is int and 0 <= side <= size for side in sides) or len(sides) > 5:
        raise ContentError("its header describes arrays of an impossible type, shape or place")
    count = 1
    for side in shape:
        count *= side
    kind = np.dtype(dtype)
    if offset < begin or offset + count * kind.itemsize > size or offset % _ALIGNMENT:
        raise ContentError("its header describes arrays beyond its end")
    return np.frombuffer(mapped, kind, count, offset).reshape(shape) if count else np.empty(shape, kind)


def _checksums(mapped: mmap.mmap, begin: int, end: int) -> list[int]:
    view = memoryview(mapped)
    starts = range(begin, end, _CHUNK)
    if len(starts) < 2:
        return [zlib.crc32(view[start:end]) for start in starts]
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(lambda start: zlib.crc32(view[start : min(start + _CHUNK, end)]), starts))


# -- Values in it -----------------------------------------------------------------------------------------------------


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
        """A dense or a CSR matrix, or blocks of these."""
        return self.once(matrix, lambda: self._matrix(name, matrix))

    def _matrix(self, name: str, matrix: Any) -> Any:
        if isinstance(matrix, Blocks):
            return {
                "blocks": [[own, self._matrix(f"{name}.{k}", each)] for k, (own, each) in enumerate(matrix.items())]
            }
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
        """Numbers, strings, lists, mappings, kernels, trees and graphs."""
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
        if isinstance(value, ClassGraph):
            edges = self.once(value, lambda: self.array("graph.edges", value.edges))
            return {"graph": {"names": value.names.tolist(), "edges": edges, "directed": value.directed}}
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
        if type(kernel) is PerBlock:
            return {"kind": kind, "blocks": [[name, self.kernel(kernel[name])] for name in kernel.names]}
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
        """A dense or a CSR matrix, or blocks; equal entries give the same object."""
        key = repr(entry)
        if key not in self._read:
            self._read[key] = self._matrix(entry)
        return self._read[key]

    def _matrix(self, entry: Any) -> Any:
        if "blocks" in entry:
            return Blocks({expect(name, str): self._matrix(each) for name, each in expect(entry["blocks"], list)})
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
        if kind == "graph":
            edges = self.array(content["edges"], None, 2, kinds="i")
            return ClassGraph(expect(content["names"], list), edges, directed=expect(content["directed"], bool))
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
        if kind == "PerBlock":
            return PerBlock({expect(name, str): self.kernel(each) for name, each in expect(entry["blocks"], list)})
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
