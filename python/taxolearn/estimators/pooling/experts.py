"""The experts of a pool: which there are, and what they say about rows that they were not fitted to."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from taxolearn.blocks import Blocks, n_stored
from taxolearn.estimators.base import TaxonomyClassifier
from taxolearn.estimators.block_variances import as_block_kernel
from taxolearn.estimators.centroid import CentroidClassifier
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.naive_bayes import NaiveBayesClassifier
from taxolearn.estimators.pooling.dense import radial_experts
from taxolearn.estimators.pooling.inputs import Inputs, Views
from taxolearn.estimators.top_down import TopDownClassifier
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation

__all__ = [
    "FREQUENCIES",
    "HeldOut",
    "Lineup",
    "OutOfFold",
    "default_experts",
    "fit_expert",
    "log_frequencies",
    "log_scores",
    "named_experts",
    "out_of_fold",
    "subset_of_rows",
    "without_zeros",
]

Floats = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

FREQUENCIES = "class frequencies"

_LOWEST = -1e30  # score, which single precision still holds
_LEAST_SCORE = -690.0  # logarithm of what a probability of zero is taken for, where the expert had none in the folds
_JOINT_WORK = 1e9  # entries times classes, up to which the classes of sparse inputs are fitted together
_INDEPENDENT_WORK = 2e8  # the same for independent losses, whose fits take more iterations
_WIDE = 32  # columns of a dense block that may be an embedding
_DENSE = 10.0  # how much faster entries of dense inputs are multiplied


@dataclass(frozen=True)
class Lineup:
    """Experts by name, the cheapest first, where a list means the best of these; and which blocks they see."""

    experts: list[tuple[str, Any]]
    views: Views


def default_experts(
    inputs: Inputs,
    n_classes: int,
    taxonomy: Taxonomy | None,
    *,
    block_variances: Mapping[str, float] | None = None,
    tol: float = 1e-4,
    n_threads: int | None = None,
    random_state: int = 0,
) -> Lineup:
    """The experts that "auto" means for inputs of this kind; for blocks, with these variances of linear kernels."""
    is_blocks = isinstance(inputs.raw, Blocks)
    parts = dict(inputs.raw.items()) if is_blocks else {"": inputs.raw}
    sparse = tuple(name for name, matrix in parts.items() if sp.issparse(matrix))
    dense = tuple(name for name in parts if name not in sparse)
    counts = tuple(name for name in (sparse if is_blocks else parts) if _is_counts(parts[name]))
    common: dict[str, Any] = {"n_threads": n_threads, "random_state": random_state}
    kernel: Any = "linear" if block_variances is None else as_block_kernel(block_variances)
    tuning = CrossValidation(search="scale")
    logistic = {"taxonomy": taxonomy, "tol": tol, "tuning": tuning, **common}
    work = sum(n_stored(each) / (1.0 if sp.issparse(each) else _DENSE) for each in parts.values()) * n_classes
    is_deep = taxonomy is not None and taxonomy.height > 1
    experts: list[tuple[str, Any]] = []
    views: dict[str, tuple[str, ...]] = {}
    if counts:
        experts.append(("naive Bayes", NaiveBayesClassifier(taxonomy=taxonomy, **common)))
        views["naive Bayes"] = counts
    if sparse:
        experts.append(("centroid", CentroidClassifier(taxonomy=taxonomy, **common)))
        views["centroid"] = sparse
    if is_deep:
        experts.append(("top-down", TopDownClassifier(taxonomy, block_variances=block_variances, tol=tol, **common)))
    wide = [name for name in dense if len(parts) > 1 and parts[name].shape[1] >= _WIDE]
    for name in wide:  # embeddings, which tell much by themselves
        experts.append((f"centroid of {name}", CentroidClassifier(taxonomy=taxonomy, **common)))
        experts.append((f"softmax of {name}", KernelLogisticClassifier(**logistic)))
        views |= {f"centroid of {name}": (name,), f"softmax of {name}": (name,)}
    if work <= _JOINT_WORK or not (counts and is_deep):
        experts.append(("softmax", KernelLogisticClassifier(kernel, **logistic)))
    if work <= _INDEPENDENT_WORK / (2.0 if is_blocks else 1.0):  # of blocks they take twice as many
        experts.append(("independent", KernelLogisticClassifier(kernel, loss="independent", **logistic)))
    if not sparse:
        views["rbf"] = dense
        whole = np.hstack(inputs.scaled.matrices) if is_blocks else inputs.scaled
        radial = radial_experts(whole, n_classes, taxonomy=taxonomy, tol=tol, **common)
        if radial:
            experts.append(("rbf", radial))
    return Lineup(experts, views if is_blocks else {})


def _is_counts(X: Any) -> bool:
    """Whether nothing is negative."""
    values = X.data if sp.issparse(X) else X
    return bool(values.size == 0 or values.min() >= 0)


def named_experts(experts: Any) -> list[tuple[str, Any]]:
    """The experts that a list of estimators, or of pairs (name, estimator), means; the cheapest first."""
    if isinstance(experts, str) or not isinstance(experts, Iterable):
        raise ValueError(
            f'experts is {experts!r}, expected "auto", or a list of classifiers or pairs (name, classifier)'
        )
    named: list[tuple[str, Any]] = []
    taken: set[str] = set()
    for each in experts:
        is_pair = isinstance(each, (tuple, list)) and len(each) == 2 and isinstance(each[0], str)
        name, estimator = each if is_pair else (type(each).__name__, each)
        if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
            raise TypeError(f"experts has {estimator!r}, which is no estimator of scikit-learn's kind")
        if not (hasattr(estimator, "predict_log_proba") or hasattr(estimator, "predict_proba")):
            raise TypeError(f"experts has {estimator!r}, which gives no probabilities: it lacks predict_proba")
        if name == FREQUENCIES:
            raise ValueError(f"experts has an expert named {name!r}, which stands for the shares of classes; rename it")
        if is_pair and name in taken:
            raise ValueError(f"experts has two experts of the name {name!r}; names must differ")
        number, free = 2, name
        while free in taken:
            free, number = f"{name} {number}", number + 1
        taken.add(free)
        named.append((free, estimator))
    if not named:
        raise ValueError("experts is empty; a pool needs at least one expert")
    return sorted(named, key=lambda pair: not isinstance(pair[1], (NaiveBayesClassifier, CentroidClassifier)))


def fit_expert(estimator: Any, X: Any, y: Any, weights: Floats | None, *, earlier: Any = None) -> Any:
    """A fitted copy. Hyperparameters that cannot be learned, since every class has one row, stay as they are.

    The fit begins where that of an earlier expert of the same name ended.
    """
    fitted = clone(estimator)
    if isinstance(fitted, KernelLogisticClassifier) and isinstance(earlier, KernelLogisticClassifier):
        fitted = copy.copy(earlier).set_params(**fitted.get_params(deep=False) | {"warm_start": True})
    is_tuned = isinstance(fitted, (KernelLogisticClassifier, TopDownClassifier))
    if is_tuned and isinstance(y, np.ndarray) and np.unique(y, return_counts=True)[1].max() < 2:
        fitted.set_params(tuning=None)
    if weights is not None and has_fit_parameter(fitted, "sample_weight"):
        return fitted.fit(X, y, sample_weight=weights)
    return fitted.fit(X, y)


def log_scores(fitted: Any, X: Any, classes: npt.NDArray[Any], floor: float) -> Floats:
    """Logarithms of the probabilities of all classes; those that the expert does not know have the floor's."""
    with np.errstate(divide="ignore"):
        if hasattr(fitted, "predict_log_proba"):
            scores = np.asarray(fitted.predict_log_proba(X), dtype=np.float64)
        else:
            scores = np.log(np.asarray(fitted.predict_proba(X), dtype=np.float64))
    if np.isnan(scores).any():
        raise ValueError(f"the expert {fitted!r} gave probabilities that are NaN")
    known = np.asarray(fitted.classes_)
    if len(known) == len(classes):
        return scores
    out = np.full((len(scores), len(classes)), np.log(floor))
    out[:, np.searchsorted(classes, known)] = scores + np.log1p(-floor * (len(classes) - len(known)))
    return out


def without_zeros(scores: Floats, smoothing: float) -> Floats:
    """Scores that are finite: mixed with the uniform distribution, or without smoothing cut off far below."""
    if smoothing > 0:
        mixed: Floats = np.logaddexp(scores + np.log1p(-smoothing), np.log(smoothing / scores.shape[1]))
        return mixed
    return np.maximum(scores, _LEAST_SCORE) if not np.isfinite(scores).all() else np.maximum(scores, _LOWEST)


def log_frequencies(numbers: Integers, n_classes: int, weights: Floats | None) -> Floats:
    """Logarithms of the shares of classes, half a row added to each."""
    counts = np.bincount(numbers, weights=weights, minlength=n_classes) + 0.5
    return np.asarray(np.log(counts) - np.log(counts.sum()), dtype=np.float64)


@dataclass(frozen=True)
class HeldOut:
    """The rows that experts are compared on.

    Attributes
    ----------
    folds : array of int of shape (n_samples,)
        The fold of each row, -1 for never held out.
    rows : array of int
        Rows that scores are asked for, all held out, sorted by fold.
    weights : array
        How much each of these counts.
    """

    folds: npt.NDArray[np.int32]
    rows: Integers
    weights: Floats

    def __iter__(self) -> Any:
        """Rows to train on, rows to score, and the place of these among all that are scored."""
        of = self.folds[self.rows]
        for fold in np.unique(of).tolist():
            place = slice(int(np.searchsorted(of, fold)), int(np.searchsorted(of, fold, side="right")))
            yield np.flatnonzero(self.folds != fold), self.rows[place], place

    def frequencies(self, numbers: Integers, n_classes: int, weights: Floats | None) -> Scores:
        """Log scores of the model that knows the shares of classes only."""
        out = np.empty((len(self.rows), n_classes), dtype=np.float32)
        for train, _, place in self:
            out[place] = log_frequencies(numbers[train], n_classes, None if weights is None else weights[train])
        return out


@dataclass(frozen=True)
class OutOfFold:
    """What an expert says about rows that it was not fitted to.

    Attributes
    ----------
    scores : float32 array of shape (n_rows, n_classes)
        Finite log scores.
    smoothing : float
        Share of the uniform distribution in them; above 0 for experts that give some class no probability at all.
    fit_seconds : float
        How long a fit takes.
    """

    scores: Scores
    smoothing: float
    fit_seconds: float


def out_of_fold(
    estimator: Any,
    X: Any,
    numbers: Integers,
    classes: npt.NDArray[Any],
    weights: Floats | None,
    held_out: HeldOut,
) -> OutOfFold:
    """Fit the expert to the other rows of each fold and ask it about those of the fold."""
    n_classes = len(classes)
    scores = np.empty((len(held_out.rows), n_classes))
    # One class is enough where a tree has others.
    least = 1 if isinstance(estimator, TaxonomyClassifier) and estimator.get_params().get("taxonomy") is not None else 2
    seconds, n_fits = 0.0, 0
    for train, rows, place in held_out:
        seen = numbers[train]
        train_weights = None if weights is None else weights[train]
        if len(np.unique(seen)) < least:
            scores[place] = log_frequencies(seen, n_classes, train_weights)
            continue
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = fit_expert(estimator, X[train], classes[seen], train_weights)
        seconds += time.perf_counter() - start
        n_fits += 1
        scores[place] = log_scores(fitted, X[rows], classes, 1.0 / (len(train) + n_classes))
    has_zeros = bool(np.isneginf(scores).any())
    smoothing = 1.0 / (len(numbers) + 1) if has_zeros else 0.0
    return OutOfFold(without_zeros(scores, smoothing).astype(np.float32), smoothing, seconds / max(1, n_fits))


def subset_of_rows(rows: Sequence[int], limit: int, random: np.random.RandomState) -> Integers:
    """At most so many of the rows, drawn at random."""
    chosen = np.asarray(rows, dtype=np.int64)
    return chosen if len(chosen) <= limit else np.sort(random.choice(chosen, limit, replace=False))
