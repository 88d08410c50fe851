"""Reader of sparse matrices in NumPy's npz files."""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.raw_files import Source, name_of, read_all
from taxolearn.readers.labelled import LabelledData
from taxolearn.validation import check_number

__all__ = ["NpzData", "read_npz"]

_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False, repr=False)
class NpzData(LabelledData):
    """A sparse matrix of an npz file and its labels.

    Attributes
    ----------
    X : csr_array, shape (n_samples, n_features)
        Columns in rising order within a row; entries that were stored twice are added up.
    y : ndarray or None
        The labels, None if the file has none under this prefix.
    """


def read_npz(source: Source, prefix: str = "", *, n_features: int | None = None) -> NpzData:
    """Read a CSR matrix from the arrays ``data``, ``indices`` and ``indptr``, and labels from ``y``.

    Files of `scipy.sparse.save_npz` have this form. So have files with several matrices, told apart by a prefix:
    ``read_npz(path, "train")`` takes ``train_data``, ``train_indices``, ``train_indptr`` and ``train_y``. Nothing is
    unpickled.

    Parameters
    ----------
    source : path or binary file
        The npz file.
    prefix : str, default ""
        What comes before the underscore of the names; nothing for plain names.
    n_features : int, optional
        Number of columns. By default that of the array ``shape``, or without one as many as the indices need. Give
        it for matrices that are stored without a shape and have to agree.

    Returns
    -------
    NpzData
        With ``X`` and ``y``; ``X, y = read_npz(...)`` works as well.

    Raises
    ------
    ValueError
        If the file is damaged, lacks an array, or its arrays are no valid matrix.
    """
    name = name_of(source)
    before = f"{prefix}_" if prefix else ""
    wanted = [before + part for part in ("data", "indices", "indptr", "shape", "format", "y")]
    content = read_all(source)
    if not content.startswith(b"PK") or not zipfile.is_zipfile(io.BytesIO(content)):
        found = "a single array without a name" if content.startswith(b"\x93NUMPY") else "no zip archive, or a cut one"
        raise ValueError(f"{name}: expected an npz file of plain arrays, found {found}")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {key: _load(file, key) for key in wanted if key in file.files}
            present = sorted(file.files)
    except (ValueError, EOFError, OSError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise ValueError(f"{name}: expected an npz file of plain arrays: {error}") from error
    missing = [key for key in wanted[:3] if key not in arrays]
    if missing:
        raise ValueError(f"{name}: expected the array {missing[0]!r}, found {', '.join(present) or 'none'}")
    form = arrays.get(before + "format")
    if form is not None and _text(form) != "csr":
        raise ValueError(f"{name}: expected a matrix in the format csr, found {_text(form)!r}")
    X = _matrix(name, before, arrays, n_features)
    y = arrays.get(before + "y")
    if y is not None and y.shape[:1] != X.shape[:1]:
        raise ValueError(f"{name}: expected {X.shape[0]} labels in {before}y, one per row, found the shape {y.shape}")
    return NpzData(X, y)


def _load(file: Any, key: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(file[key])
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError(f"array {key!r} holds Python objects, which are not read: save plain arrays") from None
        raise ValueError(f"array {key!r}: {error}") from error


def _text(form: npt.NDArray[Any]) -> str:
    value = form.item() if form.size == 1 else form.tolist()
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _matrix(name: str, before: str, arrays: dict[str, npt.NDArray[Any]], n_features: int | None) -> sp.csr_array:
    """Make a matrix of three arrays that may come from anywhere."""

    def require(condition: object, key: str, expected: str, found: object) -> None:
        if not condition:
            raise ValueError(f"{name}: expected {before}{key} to be {expected}, found {found}")

    data, indices, indptr = (arrays[before + key] for key in ("data", "indices", "indptr"))
    for key, array in (("data", data), ("indices", indices), ("indptr", indptr)):
        kinds = "biuf" if key == "data" else "iu"
        numbers = "numbers" if key == "data" else "integers"
        require(array.ndim == 1, key, "one-dimensional", f"the shape {array.shape}")
        require(array.dtype.kind in kinds, key, f"an array of {numbers}", array.dtype)
    require(np.isfinite(data).all(), "data", "finite", "infinities or NaN")
    require(len(indptr) > 0, "indptr", "one longer than there are rows", "it empty")
    require(indptr[0] == 0, "indptr", "0 at the start", indptr[0])
    require((indptr[1:] >= indptr[:-1]).all(), "indptr", "never falling", f"a fall at {_first_fall(indptr)}")
    require(len(indices) == len(data), "indices", f"as long as {before}data ({len(data)})", len(indices))
    require(indptr[-1] == len(data), "indptr", f"{len(data)} (the length of {before}data) at the end", indptr[-1])
    lowest, highest = (int(indices.min()), int(indices.max())) if len(indices) else (0, -1)
    require(lowest >= 0, "indices", "at least 0", lowest)
    require(highest < _LARGEST, "indices", f"below {_LARGEST}", highest)
    rows, width = len(indptr) - 1, highest + 1
    shape = arrays.get(before + "shape")
    if shape is not None:
        require(shape.shape == (2,) and shape.dtype.kind in "iu", "shape", "two integers", shape.tolist())
        require(shape[0] == rows, "shape", f"{rows} rows (from {before}indptr)", int(shape[0]))
        require(shape[1] > highest, "shape", f"at least {width} columns (from {before}indices)", int(shape[1]))
        width = int(shape[1])
        require(width <= _LARGEST, "shape", f"at most {_LARGEST} columns", width)
    if n_features is not None:
        n_features = check_number("n_features", n_features, least=0, integer=True)
        if n_features > _LARGEST:
            raise ValueError(f"n_features must be at most {_LARGEST}, got {n_features}")
        require(highest < n_features, "indices", f"below n_features={n_features}", highest)
        require(shape is None or width == n_features, "shape", f"n_features={n_features} columns", width)
        width = n_features
    index_type = np.int32 if max(width, len(data)) <= np.iinfo(np.int32).max else np.int64
    X = sp.csr_array((data, indices.astype(index_type), indptr.astype(index_type)), shape=(rows, width))
    X.sum_duplicates()
    return X


def _first_fall(indptr: npt.NDArray[Any]) -> int:
    return int(np.argmax(indptr[1:] < indptr[:-1])) + 1 if len(indptr) > 1 else 0
