"""The rows that hyperparameters are learned from: checked, perhaps a subset of them, and their folds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_X_y

from taxolearn.kernels.argument import reads_kernel_values
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation
from taxolearn.tuning.folds import make_folds
from taxolearn.validation import check_labels, check_number, check_weights, in_core_form

__all__ = ["TuningData", "choose_rows", "read_data"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TuningData:
    """Rows with one label each.

    Attributes
    ----------
    X : array or CSR matrix
        Inputs in the core's form.
    targets : int32 array of shape (n_samples,)
        Classes in the order of the core.
    classes : array of shape (n_classes,)
        Labels in that order.
    taxonomy : Taxonomy or None
        With a leaf for each of them.
    weights : array of shape (n_samples,) or None
        Weights of the rows and their classes.
    rows : array of int or None
        The rows of the user's data that these are; None for all.
    """

    X: Any
    targets: npt.NDArray[np.int32]
    classes: npt.NDArray[Any]
    taxonomy: Taxonomy | None
    weights: Floats | None
    rows: npt.NDArray[np.intp] | None

    def partitions(self, tuning: CrossValidation, random: np.random.RandomState) -> tuple[npt.NDArray[np.int32], ...]:
        """For each partition the fold in which each row is held out, or -1."""
        folds = tuning.folds
        if self.rows is not None and isinstance(folds, np.ndarray) and len(folds) > self.rows[-1]:
            folds = folds[self.rows]  # they were folds of all rows
        # By the order of labels, so that a seed makes the same folds with and without a taxonomy.
        ranks = np.argsort(np.argsort(self.classes, kind="stable"), kind="stable")[self.targets]
        n_classes = len(self.classes)
        return tuple(make_folds(ranks, n_classes, folds, random, argument="folds") for _ in range(tuning.repeats))


def read_data(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    classes: npt.ArrayLike | None,
    subset: float | None,
    random: np.random.RandomState,
) -> TuningData:
    """Check what the user gives, and choose rows if a subset is asked for. Its classes are those of all rows."""
    taxonomy = model.taxonomy
    if not (taxonomy is None or isinstance(taxonomy, Taxonomy)):
        raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(taxonomy).__name__}")
    X, y = check_X_y(X, y, accept_sparse="csr", accept_large_sparse=True, dtype=[np.float64, np.float32], order="C")
    X = in_core_form(X)
    rows = choose_rows(y, subset, random)
    if rows is not None:
        classes = np.unique(y) if classes is None else classes
        is_pairwise = reads_kernel_values(model.kernel)
        X, y = np.ascontiguousarray(X[np.ix_(rows, rows)]) if is_pairwise else X[rows], y[rows]
        sample_weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
    seen, indices = check_labels(y, least=2 if taxonomy is None and classes is None else 1)
    if taxonomy is not None:
        taxonomy = taxonomy.with_classes(seen, argument="y")
        known, places = taxonomy.classes, taxonomy.leaf_index(seen)
    else:
        known = seen if classes is None else np.unique(np.asarray(classes))
        unknown = np.setdiff1d(seen, known)
        if len(unknown) > 0:
            raise ValueError(f"classes lacks labels that are in y: {unknown[:5].tolist()}")
        places = np.searchsorted(known, seen)
    weights = check_weights(sample_weight, model.class_weight, X, seen, indices, known.tolist())
    return TuningData(X, places[indices].astype(np.int32), known, taxonomy, weights, rows)


def choose_rows(
    y: npt.NDArray[Any], subset: float | None, random: np.random.RandomState
) -> npt.NDArray[np.intp] | None:
    """A random subset in which every class has its share; None for all rows."""
    if subset is None:
        return None
    n = len(y)
    if isinstance(subset, float):
        count = int(np.ceil(check_number("subset", subset, least=0, strict=True) * n))
    else:
        count = check_number("subset", subset, least=2, integer=True)
    if count >= n:
        return None
    # The k-th of m shuffled rows of a class comes at (k + a random number) / m, so that any beginning is in proportion.
    places = np.empty(n)
    order = random.permutation(n)
    labels = np.unique(y, return_inverse=True)[1][order]
    for rows in np.split(order[np.argsort(labels, kind="stable")], np.cumsum(np.bincount(labels))[:-1]):
        places[rows] = (np.arange(len(rows)) + random.uniform()) / len(rows)
    chosen: npt.NDArray[np.intp] = np.sort(np.argsort(places, kind="stable")[:count])
    if np.unique(y[chosen], return_counts=True)[1].max() < 2:
        raise ValueError(
            f"subset={subset!r} leaves {len(chosen)} rows, no two of the same class, so none can be held out; raise it"
        )
    return chosen
