"""A file of arrays and JSON: checksummed, memory-mapped, and never trusted.

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
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from taxolearn.atomic import replaced

__all__ = ["DAMAGED", "VERSION", "Container", "ContentError", "read_container", "write_container"]

VERSION = 2
DAMAGED = "it is damaged"

_MAGIC = b"\x93taxolearn model"
_FIRST = struct.Struct("<16sIIQ32s")
_ALIGNMENT = 64
_CHUNK = 1 << 24
_THREADS = 4
_DTYPES = ("<f4", "<f8", "<i4", "<i8", "|u1")


class ContentError(ValueError):
    """A file that cannot be used; the message says why, but not which file."""


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
        raise ContentError("its header describes arrays that cannot be")
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
