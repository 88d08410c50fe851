"""Matrices in files, so that processes, and versions of this project, get the same ones."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

_PARTS = ("data", "indices", "indptr", "shape")


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write arrays and sparse matrices by their names."""
    parts: dict[str, Any] = {}
    for name, array in arrays.items():
        if sparse.issparse(array):
            rows = sparse.csr_matrix(array)
            parts |= {f"{name}.{part}": np.asarray(getattr(rows, part)) for part in _PARTS}
        else:
            parts[name] = np.asarray(array)
    np.savez(path, **parts)


def read_arrays(path: Path) -> dict[str, Any]:
    """Read what ``write_arrays`` wrote, sparse matrices by rows."""
    with np.load(path) as file:
        parts = dict(file)
    arrays = {name: array for name, array in parts.items() if "." not in name}
    for name in {name.partition(".")[0] for name in parts.keys() - arrays.keys()}:
        *values, shape = (parts[f"{name}.{part}"] for part in _PARTS)
        arrays[name] = sparse.csr_matrix(tuple(values), shape=tuple(shape))
    return arrays
