"""Whether two models are the same: a digest of values, in which arrays count with every byte."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["update"]


def update(digest: Any, value: Any) -> None:
    """Add a value to a hash: a number, text, array, sparse matrix, kernel, coupling, or a collection of these.

    Objects with ``get_params`` count by their type and parameters. What has none of these forms, such as a function,
    counts by its ``repr``.
    """
    if sp.issparse(value):
        _open(digest, "sparse", value.shape)
        for part in (value.indptr, value.indices, value.data):
            update(digest, part)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        _open(digest, "array", (value.dtype.str, value.shape))
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        _open(digest, "mapping", len(value))
        for key, each in value.items():
            update(digest, key)
            update(digest, each)
    elif isinstance(value, (list, tuple, np.ndarray)):
        _open(digest, type(value).__name__, len(value))
        for each in value:
            update(digest, each)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _open(digest, type(value).__qualname__, "parameters")
        update(digest, value.get_params(deep=False))
    else:
        _open(digest, type(value).__qualname__, repr(value))


def _open(digest: Any, kind: str, detail: Any) -> None:
    digest.update(repr((kind, detail)).encode())
