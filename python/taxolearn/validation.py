"""Input checking: the only place that copies or converts what the user gives."""

from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_X_y, validate_data

from taxolearn import _core
from taxolearn.blocks import Blocks
from taxolearn.sequence_codes import are_strings, letter_codes

__all__ = [
    "check_choice",
    "check_inputs",
    "check_labelled",
    "check_number",
    "check_rows",
    "check_threads",
    "in_core_form",
]

_OPTIONS: dict[str, Any] = {  # of scikit-learn's checks
    "accept_sparse": "csr",
    "accept_large_sparse": True,
    "dtype": [np.float64, np.float32],
    "order": "C",
}


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


def check_inputs(estimator: Any, X: Any, y: Any = None, *, reset: bool, blocks: bool = False) -> Any:
    """``X`` (and ``y``, when fitting) as scikit-learn checks them, with ``X`` in a form the core can read in place.

    That is a C-ordered float32 or float64 array, or a CSR matrix of these with sorted indices, all int32 or all
    int64, or blocks of these. Nothing is copied that has this form already.

    Parameters
    ----------
    estimator : object
        Whose inputs these are; a fit leaves what it has seen there, among that ``blocks_in_``.
    X, y
        Inputs and labels.
    reset : bool
        Whether this is a fit.
    blocks : bool, default=False
        Whether the estimator can be fitted to ``Blocks``.
    """
    if getattr(getattr(estimator, "kernel", None), "reads_sequences", False) and are_strings(X):
        X = letter_codes(X)
    if isinstance(X, Blocks):
        return _check_blocks_of(estimator, X, y, reset=reset, blocks=blocks)
    known = getattr(estimator, "blocks_in_", None)
    if not reset:
        if known is not None:
            listed = ", ".join(map(repr, known))
            raise TypeError(f"X must be taxolearn.Blocks with the blocks {listed}, as in fit, got {type(X).__name__}")
        return in_core_form(validate_data(estimator, X, reset=False, **_OPTIONS))
    X, y = validate_data(estimator, X, y, reset=True, **_OPTIONS)
    if known is not None:
        del estimator.blocks_in_
    return in_core_form(X), y


def check_labelled(X: Any, y: Any) -> tuple[Any, Any]:
    """The same of inputs and labels that belong to no estimator."""
    if isinstance(X, Blocks):
        return check_rows(X), check_X_y(np.zeros((len(X), 1)), y)[1]
    X, y = check_X_y(X, y, **_OPTIONS)
    return in_core_form(X), y


def check_rows(X: Any, name: str = "X") -> Any:
    """Rows without labels, in a form that the core can read in place."""
    if isinstance(X, Blocks):
        return Blocks({own: check_rows(each, f"{name}[{own!r}]") for own, each in X.items()})
    return in_core_form(check_array(X, input_name=name, **_OPTIONS))


def _check_blocks_of(estimator: Any, X: Blocks, y: Any, *, reset: bool, blocks: bool) -> Any:
    known: dict[str, int] | None = None if reset else getattr(estimator, "blocks_in_", None)
    if not (blocks if reset else known is not None):
        what = f"{type(estimator).__name__} takes" if reset else "the model was fitted to"
        raise TypeError(f"X must be an array, sparse matrix or data frame, got Blocks: {what} one matrix")
    if reset:
        X, y = check_labelled(X, y)
        estimator.n_features_in_, estimator.blocks_in_ = X.shape[1], X.n_features
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return X, y
    assert known is not None
    if set(X.names) != set(known):
        given, expected = (", ".join(map(repr, names)) for names in (X.names, known))
        raise ValueError(f"X has the blocks {given}, expected {expected} as in fit")
    for name, count in known.items():
        if X[name].shape[1] != count:
            raise ValueError(f"X[{name!r}] has {X[name].shape[1]} features, expected {count} as in fit")
    return check_rows(Blocks({name: X[name] for name in known}))


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
