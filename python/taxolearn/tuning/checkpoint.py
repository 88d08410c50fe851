"""Checkpoints of a long search: one file, replaced as a whole, that is read only if every bit of it is right.

The file is a NumPy archive (``.npz``) without pickled objects: the member ``header.json`` says what it is, the others
are arrays. The archive's comment, the last 64 bytes of the file, is the SHA-256 of all bytes before.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taxolearn.blocks import Blocks
from taxolearn.raw_files import remove_partial, replaced
from taxolearn.taxonomy.graph import ClassGraph

__all__ = ["fingerprint", "read_checkpoint", "record_type", "write_checkpoint"]

_FORMAT = "taxolearn learning"
_VERSION = 1
_STATE = "state."  # starts the names of the arrays of the state
_DIGEST_BYTES = 64
_CHUNK_BYTES = 1 << 20


def write_checkpoint(
    path: Path, fingerprint: str, names: tuple[str, ...], records: NDArray[Any], state: Mapping[str, NDArray[Any]]
) -> None:
    """Write a checkpoint. Whatever happens meanwhile, the path holds the whole old file or the whole new one.

    Parameters
    ----------
    path : Path
    fingerprint : str
        Tells the problem from others.
    names : tuple of str
        Names of the parameters.
    records : array
        The evaluations so far.
    state : mapping of names to arrays
        What the next one starts from.
    """
    arrays = {"evaluations": records, **{f"{_STATE}{name}": array for name, array in state.items()}}
    header = {"format": _FORMAT, "version": _VERSION, "fingerprint": fingerprint, "names": list(names)}
    with replaced(path, "checkpoint") as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo("header.json"), json.dumps(header))
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
            archive.comment = b"0" * _DIGEST_BYTES
        digest = _digest(file)
        file.seek(-_DIGEST_BYTES, os.SEEK_END)
        file.write(digest)


def read_checkpoint(
    path: Path, fingerprint: str, names: tuple[str, ...], record_type: np.dtype[Any]
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]] | None:
    """Evaluations and state from a checkpoint of this very problem; None if there is no file.

    What killed processes left half-written next to it is removed.

    Raises
    ------
    ValueError
        The file is damaged, of another kind, or of another problem.
    """
    remove_partial(path)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"checkpoint: cannot read {path}: {error.strerror}; choose another path") from error
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _DIGEST_BYTES, 0))
        if size <= _DIGEST_BYTES or file.read() != _digest(file):
            raise _unusable(path, "it is no checkpoint, or it is damaged (its checksum is wrong)")
        try:
            header, arrays = _content(file, size)
        # A file made up to do harm can raise almost anything inside zipfile, json and the parser of array headers.
        except Exception as error:
            raise _unusable(path, f"its content is not that of a checkpoint ({error})") from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise _unusable(path, "its content is not that of a checkpoint")
    if header.get("version") != _VERSION:
        raise _unusable(path, f"it has format version {header.get('version')!r}, this release reads {_VERSION}")
    if header.get("fingerprint") != fingerprint or header.get("names") != list(names):
        raise _unusable(path, "it belongs to another problem (other data, labels, folds or arguments)")
    records = arrays.get("evaluations", np.empty(()))
    if records.dtype != record_type or records.ndim != 1:
        raise _unusable(path, "its content is not that of a checkpoint")
    return records, {name.removeprefix(_STATE): array for name, array in arrays.items() if name.startswith(_STATE)}


def record_type(m: int) -> np.dtype[Any]:
    """The type of the record of an evaluation with so many parameters."""
    real = np.float64
    return np.dtype(
        [
            ("theta", real, (m,)),
            ("value", real),
            ("gradient", real, (m,)),
            ("converged", bool),
            ("gap", real),
            ("products", np.int64),
            ("seconds", real),
            ("tolerance", real),
            ("temperature", real),
        ]
    )


def fingerprint(*values: Any) -> str:
    """A hash of values: numbers, texts, arrays, sparse matrices, blocks, kernels, couplings, collections of these."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        _update(digest, value)
    return digest.hexdigest()


def _content(file: BinaryIO, size: int) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Header and arrays. Nothing is allocated that is larger than the file."""
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        if sum(member.file_size for member in archive.infolist()) > size:
            raise ValueError("its parts claim to be larger than the whole")
        header = json.loads(archive.read("header.json"))
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                arrays[member.filename.removesuffix(".npy")] = _array(archive.read(member))
    return header, arrays


def _array(content: bytes) -> NDArray[Any]:
    """An array from its bytes in NumPy's format; a shape that is too large for them is an error."""
    stream = BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array has an unknown format")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or dtype.itemsize == 0:
        raise ValueError(f"an array has the type {dtype}")
    order: Literal["C", "F"] = "F" if is_fortran else "C"
    return np.ndarray(shape, dtype, content, stream.tell(), order=order).copy()


def _digest(file: BinaryIO) -> bytes:
    """Checksum of all but the last bytes, where it belongs."""
    left = file.seek(0, os.SEEK_END) - _DIGEST_BYTES
    file.seek(0)
    checksum = hashlib.sha256()
    while left > 0:
        chunk = file.read(min(left, _CHUNK_BYTES))
        checksum.update(chunk)
        left -= len(chunk)
    return checksum.hexdigest().encode()


def _unusable(path: Path, reason: str | None) -> ValueError:
    return ValueError(f"checkpoint: cannot use {path}: {reason}; delete it or choose another path")


def _update(digest: Any, value: Any) -> None:
    """Add a value to a hash.

    Objects with ``get_params`` count by their type and parameters. What has none of these forms, such as a function,
    counts by its ``repr``.
    """
    if sp.issparse(value):
        _open(digest, "sparse", value.shape)
        for part in (value.indptr, value.indices, value.data):
            _update(digest, part)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        _open(digest, "array", (value.dtype.str, value.shape))
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Blocks):
        _open(digest, "blocks", len(value))
        _update(digest, dict(value.items()))
    elif isinstance(value, ClassGraph):
        _open(digest, "graph", value.directed)
        _update(digest, [value.names, value.edges])
    elif isinstance(value, Mapping):
        _open(digest, "mapping", len(value))
        for key, each in value.items():
            _update(digest, key)
            _update(digest, each)
    elif isinstance(value, (list, tuple, np.ndarray)):
        _open(digest, type(value).__name__, len(value))
        for each in value:
            _update(digest, each)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _open(digest, type(value).__qualname__, "parameters")
        _update(digest, value.get_params(deep=False))
    else:
        _open(digest, type(value).__qualname__, repr(value))


def _open(digest: Any, kind: str, detail: Any) -> None:
    digest.update(repr((kind, detail)).encode())
