"""Input checking: the only place that copies or converts what the user gives."""

from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from taxolearn import _core

__all__ = [
    "check_choice",
    "check_inputs",
    "check_number",
    "check_threads",
    "in_core_form",
]


def check_number(name: str, value: object, *, least: float, strict: bool = False, integer: bool = False) -> Any:
    """The value, if it is a finite number not below (with ``strict``: above) the least one."""
    kind = Integral if integer else Real
    if isinstance(value, bool) or not isinstance(value, kind):
        expected = "an integer" if integer else "a number"
        raise TypeError(f"{name} must be {expected}, got {value!r} of type {type(value).__name__}")
    number: Any = value
    if not np.isfinite(number) or number < least or (strict and number == least):
        raise ValueError(f"{name} must be finite and {'above' if strict else 'at least'} {least}, got {value!r}")
    return int(number) if integer else float(number)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}")
    return str(value)


def check_threads(n_threads: object) -> int:
    """Number of threads to use: as given, or for None as many as OpenMP and the machine grant this process."""
    if n_threads is None:
        return int(min(_core.available_threads(), joblib.cpu_count()))
    return int(check_number("n_threads", n_threads, least=1, integer=True))


def check_inputs(estimator: object, X: Any, y: Any = None, *, reset: bool) -> Any:
    """``X`` (and ``y``, when fitting) as scikit-learn checks them, with ``X`` in a form the core can read in place.

    That is a C-ordered float32 or float64 array, or a CSR matrix of these with sorted indices, all int32 or all
    int64. Nothing is copied that has this form already.
    """
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "accept_large_sparse": True,
        "dtype": [np.float64, np.float32],
        "order": "C",
        "reset": reset,
    }
    if not reset:
        return in_core_form(validate_data(estimator, X, **options))
    X, y = validate_data(estimator, X, y, **options)
    return in_core_form(X), y


def in_core_form(X: Any) -> Any:
    """Checked inputs as the core reads them in place: sparse ones with sorted indices of one type."""
    if not sp.issparse(X):
        return X
    # SciPy follows indptr blindly, so this comes before it looks at the order of the indices; the core checks the rest.
    falls = np.flatnonzero(np.diff(X.indptr) < 0)
    if len(falls) > 0:
        row = int(falls[0])
        raise ValueError(f"X: indptr falls from {X.indptr[row]} to {X.indptr[row + 1]} at row {row}")
    if X.indptr[0] != 0 or X.indptr[-1] > X.indices.size:
        raise ValueError(
            f"X: indptr runs from {X.indptr[0]} to {X.indptr[-1]} but there are {X.indices.size} stored entries"
        )
    if X.indices.dtype != X.indptr.dtype:
        X = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape, copy=False)
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    return X
