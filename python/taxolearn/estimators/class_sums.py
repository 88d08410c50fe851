"""What classifiers share that need no more than the sums of the rows of each class, and so take next to no time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import log_softmax, softmax
from sklearn.utils import gen_batches

from taxolearn.targets import FOR_SEVERAL, Targets, label_targets, read_targets, row_weights
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import make_folds
from taxolearn.validation import check_inputs, check_number, check_threads

__all__ = [
    "class_numbers",
    "class_products",
    "few_folds",
    "held_out_parts",
    "number_or_none",
    "read_rows",
    "row_batches",
    "sums_by_class",
    "to_output",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Folds = npt.NDArray[np.int32]

_FOLDS = 3
_HELD_OUT = 10_000  # rows that hyperparameters are chosen by, at most
_ENTRIES = 5_000_000  # scores of these rows
_BATCH = 2**22  # numbers that are computed together


# -- What the user gives ----------------------------------------------------------------------------------------------


def read_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets, Floats]:
    """Checked inputs, targets of one class each, and weights."""
    check_threads(model.n_threads)
    targets = _certain_targets(y, model.taxonomy, type(model).__name__)
    X, y = check_inputs(model, X, y, reset=True)
    targets = label_targets(y, model.taxonomy, "below") if targets is None else targets
    weights = row_weights(targets, sample_weight, None, X)
    return X, targets, np.ones(X.shape[0]) if weights is None else weights


def number_or_none(name: str, value: Any) -> float | None:
    """A checked parameter above 0, None where it is to be chosen."""
    return None if value is None else check_number(name, value, least=0, strict=True)


def _certain_targets(y: Any, taxonomy: Any, model: str) -> Targets | None:
    """Targets if ``y`` names inner nodes that are one class, None for plain labels; an error if rows are uncertain."""
    if not (taxonomy is None or isinstance(taxonomy, Taxonomy)):
        raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(taxonomy).__name__}")
    targets = read_targets(y, taxonomy, "below")
    if targets is not None and not targets.is_certain:
        raise ValueError(
            f"y has rows without just one class (a set, an inner node, nothing, probabilities), which {model} cannot "
            f"use; leave them out, or use KernelLogisticClassifier. {FOR_SEVERAL}"
        )
    return targets


def class_numbers(targets: Targets) -> Integers:
    """The place of each row's class in ``classes_``."""
    places = np.empty(targets.n_classes, dtype=np.int64)
    places[targets.order] = np.arange(targets.n_classes)
    numbers: Integers = places[targets.labels]
    return numbers


# -- Rows held out ----------------------------------------------------------------------------------------------------


def few_folds(numbers: Integers, n_classes: int, folds: Any, random_state: Any) -> Folds:
    """The fold of each row, as given or of three."""
    given = _FOLDS if folds is None else np.asarray(folds)
    return make_folds(numbers, n_classes, given, random_state, argument="folds")


def held_out_parts(folds: Folds, weights: Floats, n_classes: int) -> list[tuple[Integers, Integers]]:
    """For each fold, the rows to fit to and those to score; of these a sample, if there are many."""
    held = np.flatnonzero((folds >= 0) & (weights > 0))
    limit = min(_HELD_OUT, max(100, _ENTRIES // n_classes))
    if len(held) > limit:
        held = np.sort(np.random.default_rng(0).choice(held, limit, replace=False))
    of = folds[held]
    return [(np.flatnonzero(folds != fold), held[of == fold]) for fold in np.unique(of)]


# -- Sums and products ------------------------------------------------------------------------------------------------


def sums_by_class(X: Any, numbers: Integers, weights: Floats, n_classes: int) -> Any:
    """Weighted sums of the rows of each class: CSR for sparse inputs, else dense; of shape (n_classes, n_features)."""
    n = len(numbers)
    members = sp.csr_matrix((weights, (numbers, np.arange(n))), shape=(n_classes, n))
    if not sp.issparse(X):
        return np.asarray(members @ X, dtype=np.float64)
    sums = sp.csr_matrix(members @ X, dtype=np.float64)
    sums.eliminate_zeros()
    return sums


def row_batches(n_rows: int, n_columns: int) -> Any:
    """Slices of rows that are computed together, so that nothing but the answer is as large as it."""
    return gen_batches(n_rows, max(1, _BATCH // n_columns))


def class_products(X: Any, weights: Any) -> Floats:
    """``X weights'``, dense; either may be sparse."""
    out = np.empty((X.shape[0], weights.shape[0]))
    by_feature = weights.T
    if sp.issparse(weights):
        by_feature = by_feature.tocsr() if sp.issparse(X) else by_feature.toarray()
    for rows in row_batches(*out.shape):
        product = X[rows] @ by_feature
        out[rows] = product.toarray() if sp.issparse(product) else product
    return out


def to_output(u: Floats, output: str) -> Floats:
    """Class functions as the "predictor", "probability" or "log_probability" that is asked for, in place."""
    if output != "predictor":
        normalized = softmax if output == "probability" else log_softmax
        for rows in row_batches(*u.shape):
            u[rows] = normalized(u[rows], axis=1)
    return u
