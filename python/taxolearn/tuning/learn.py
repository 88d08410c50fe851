"""Hyperparameters of an estimator, learned before it is fitted."""

import copy
import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from taxolearn.kernels.argument import reads_kernel_values
from taxolearn.progress import learning_progress
from taxolearn.targets.base import Targets
from taxolearn.tuning.cross_validation import CrossValidation
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.objective import CrossValidationObjective
from taxolearn.tuning.parameter_vector import ModelAtTheta
from taxolearn.tuning.result import LearningResult
from taxolearn.tuning.search import learn

__all__ = ["Learned", "ModelIdentity", "labelled_rows", "learn_hyperparameters"]

_LARGEST_RATIO = 2.0  # of mean squared norms of rows that count as the same scale
_TOLERANCE = 2e-4  # on the derivatives of the mean log loss by the logarithms of the hyperparameters
_LEAST_ITERATIONS = 1000  # that fits to folds get, however few the final fit may take


@dataclass(frozen=True)
class ModelIdentity:
    """What has to stay for learned hyperparameters to be a good start: the model, the features and their scale."""

    model: bytes
    n_features: int
    mean_square: float

    @classmethod
    def of(cls, model: Any, tuning: CrossValidation, X: Any) -> "ModelIdentity":
        digest = hashlib.blake2b(digest_size=16)
        for value in (model.kernel, model.coupling, model.intercept_variance, tuning.learn_intercept_variance):
            update(digest, value)
        if reads_kernel_values(model.kernel):
            return cls(digest.digest(), 0, float(np.mean(np.abs(np.diagonal(X)))))
        square = X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij", X, X, dtype=np.float64)
        return cls(digest.digest(), int(X.shape[1]), float(square) / X.shape[0])

    def is_like(self, other: "ModelIdentity") -> bool:
        """Whether what was learned for one suits the other."""
        low, high = sorted((self.mean_square, other.mean_square))
        same = (self.model, self.n_features) == (other.model, other.n_features)
        return same and high <= _LARGEST_RATIO * low


@dataclass(frozen=True)
class Learned:
    """What learning has found: the best model, its hyperparameters to be read, how it went, and for which model."""

    point: ModelAtTheta
    hyperparameters: Hyperparameters
    result: LearningResult
    identity: ModelIdentity


def learn_hyperparameters(
    model: Any,
    tuning: CrossValidation,
    X: Any,
    targets: Targets,
    sample_weight: Any,
    *,
    earlier: tuple[ModelIdentity, LearningResult] | None,
    verbose: int,
) -> Learned:
    """The hyperparameters that the data ask for.

    Rows that allow several classes have no part in it. Of rows with probabilities one label each is drawn, so that the
    criterion is, in the mean, their cross entropy. What was learned ``earlier`` for a like problem is where parameters
    of the same names begin, except for loadings, which turn with the data.
    """
    identity = ModelIdentity.of(model, tuning, X)
    if targets.soft is not None:
        targets = replace(targets, labels=_drawn(targets, check_random_state(model.random_state)))
    if not targets.is_certain:
        X, sample_weight, folds = labelled_rows(
            X, targets, sample_weight, tuning.folds, reads_kernel_values(model.kernel)
        )
        tuning = copy.copy(tuning)
        tuning.folds = folds
    criterion = copy.copy(model)
    criterion.taxonomy, criterion.tuning = targets.taxonomy, tuning
    criterion.max_iter = max(model.max_iter, _LEAST_ITERATIONS)
    y = targets.names()
    classes = None if targets.is_certain or targets.taxonomy is not None else targets.classes
    objective = CrossValidationObjective(criterion, X, y, sample_weight, classes=classes)
    start = objective.theta.copy()
    if earlier is not None and identity.is_like(earlier[0]):
        known = dict(zip(earlier[1].names, earlier[1].theta.tolist(), strict=True))
        kept = [k for k, name in enumerate(objective.names) if objective.is_log[k] and name in known]
        start[kept] = [known[objective.names[k]] for k in kept]
    fingerprint = "" if tuning.checkpoint is None else _fingerprint(objective, X, y, sample_weight, start)
    with learning_progress(verbose, _TOLERANCE, tuning.max_evaluations, tuning.time_limit) as progress:
        result = learn(
            objective,
            tol=_TOLERANCE,
            max_evaluations=tuning.max_evaluations,
            time_limit=tuning.time_limit,
            checkpoint=tuning.checkpoint,
            progress=progress,
            fingerprint=fingerprint,
            start=start,
        )
    if result.status in ("failed", "max_evaluations"):
        warnings.warn(f"Learning hyperparameters: {result.message}.", ConvergenceWarning, stacklevel=3)
    return Learned(objective.parameters.at(result.theta), objective.parameters.table(result.theta), result, identity)


def labelled_rows(X: Any, targets: Targets, sample_weight: Any, folds: Any, is_pairwise: bool) -> tuple[Any, Any, Any]:
    """Inputs, weights and folds of the rows with one class, which alone can be held out and scored."""
    rows = targets.labelled
    if len(rows) == 0 or np.bincount(targets.labels[rows]).max() < 2:
        raise ValueError(
            f'tuning="cv" holds out rows with one label, of which y has {len(rows)}, no two of the same class; choose '
            "the values, with tuning=None"
        )
    n = len(targets.labels)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X)[rows]
        if not (sample_weight > 0).any():
            raise ValueError(
                'tuning="cv" holds out rows with one label, and sample_weight is zero in all of these; choose the '
                "values, with tuning=None"
            )
    if not hasattr(folds, "split") and hasattr(folds, "__len__") and len(folds) == n:
        given = np.asarray(folds)
        folds = given[rows] if given.ndim == 1 and given.dtype.kind in "iu" else folds  # folds of all rows
    return X[rows][:, rows] if is_pairwise else X[rows], sample_weight, folds


def _drawn(targets: Targets, random: np.random.RandomState) -> npt.NDArray[np.int32]:
    """A label for each row with probabilities; -1 where nothing is known."""
    assert targets.soft is not None
    ends = np.cumsum(targets.soft, axis=1)
    labels = (random.uniform(size=(len(ends), 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1)
    labels[targets.unlabelled] = -1
    drawn: npt.NDArray[np.int32] = labels.astype(np.int32)
    return drawn


def _fingerprint(
    objective: CrossValidationObjective,
    X: Any,
    y: npt.NDArray[Any],
    sample_weight: Any,
    start: npt.NDArray[np.float64],
) -> str:
    """Of the data, the folds and everything that the criterion depends on."""
    digest = hashlib.blake2b(digest_size=16)
    labels = np.char.encode(np.asarray(y).astype(str), "utf-8")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    table = objective.parameters.table(objective.theta)
    values = (X, labels, weights, list(objective.partitions), start, objective.bounds, list(objective.names))
    for value in (*values, table.to_dict(), objective.described(), objective.parameters.penalty_strength):
        update(digest, value)
    return digest.hexdigest()


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
