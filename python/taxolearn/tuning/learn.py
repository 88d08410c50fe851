"""Hyperparameters of an estimator, learned before it is fitted."""

import hashlib
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from taxolearn.progress import learning_progress
from taxolearn.targets.read import Targets
from taxolearn.tuning.folds import make_folds
from taxolearn.tuning.hyperparameters import Setting
from taxolearn.tuning.objective import CrossValidationObjective
from taxolearn.tuning.search import LearningResult, learn
from taxolearn.validation import check_number

__all__ = ["labelled_rows", "learn_for", "learn_setting"]

_LARGEST_RATIO = 2.0  # of mean squared norms of rows that count as the same scale
_TOLERANCE = 2e-4  # on the derivatives of the mean log loss by the logarithms of the hyperparameters


def learn_for(
    model: Any,
    X: Any,
    targets: Targets,
    sample_weight: Any,
    settings: dict[str, Any],
    *,
    is_pairwise: bool,
    verbose: int,
) -> tuple[Setting, dict[str, Any], LearningResult]:
    """The hyperparameters that the data ask for; see ``learn_setting``.

    Rows that allow several classes have no part in it. Of rows with probabilities one label each is drawn, so that the
    criterion is, in the mean, their cross entropy.
    """
    cv = model.cv
    kind = _kind(model, X, is_pairwise)
    earlier = None
    if model.warm_start and getattr(model, "_learned_kind", None) is not None and _is_like(kind, model._learned_kind):
        earlier = model.cv_result_
    if targets.soft is not None:
        targets = replace(targets, labels=_drawn(targets, check_random_state(model.random_state)))
    if not targets.is_certain:
        X, sample_weight, cv = labelled_rows(X, targets, sample_weight, cv, is_pairwise)
    setting, described, result = learn_setting(
        X,
        targets.names(),
        sample_weight,
        kernel=model.kernel,
        taxonomy=targets.taxonomy,
        classes=None if targets.is_certain or targets.taxonomy is not None else targets.classes,
        cv=cv,
        cv_partitions=model.cv_partitions,
        cv_samples=model.cv_samples,
        is_pairwise=is_pairwise,
        coupling=model.coupling,
        tying=model.tying,
        variances=model.variances,
        sigma2=settings["sigma2"],
        learn_sigma2=model.learn_sigma2,
        class_weight=model.class_weight,
        method="exact" if settings["method"] == "exact" else "auto",
        algorithm=model.algorithm,
        rank=model.rank,
        rank_tolerance=model.rank_tolerance,
        memory_limit=model.memory_limit,
        precision=settings["precision"],
        n_threads=settings["n_threads"],
        random_state=model.random_state,
        max_evaluations=model.max_evaluations,
        time_limit=model.time_limit,
        checkpoint=model.checkpoint,
        verbose=verbose,
        earlier=earlier,
    )
    if result.status in ("failed", "max_evaluations"):
        warnings.warn(f"Learning hyperparameters: {result.message}.", ConvergenceWarning, stacklevel=3)
    model._learned_kind = kind
    return setting, described, result


def _kind(model: Any, X: Any, is_pairwise: bool) -> tuple[str, int, float]:
    """What has to stay for learned hyperparameters to be a good start: the model, the features and their scale."""
    given = ("kernel", "coupling", "tying", "variances", "sigma2", "learn_sigma2")
    described = repr([getattr(model, name) for name in given])
    if is_pairwise:
        return described, 0, float(np.mean(np.abs(np.diagonal(X))))
    square = X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij", X, X, dtype=np.float64)
    return described, int(X.shape[1]), float(square) / X.shape[0]


def _is_like(kind: tuple[str, int, float], other: tuple[str, int, float]) -> bool:
    scales = sorted((kind[2], other[2]))
    return kind[:2] == other[:2] and scales[1] <= _LARGEST_RATIO * scales[0]


def learn_setting(
    X: Any,
    y: npt.NDArray[Any],
    sample_weight: Any,
    *,
    cv: Any,
    cv_partitions: int,
    cv_samples: Any,
    is_pairwise: bool,
    random_state: Any,
    max_evaluations: int,
    time_limit: float | None,
    checkpoint: Any,
    verbose: int,
    earlier: LearningResult | None = None,
    **arguments: Any,
) -> tuple[Setting, dict[str, Any], LearningResult]:
    """Learn on checked data, or a subset of it, with these arguments of the objective.

    What was learned ``earlier`` is where parameters of the same names begin, but for loadings, which turn with the
    data.

    Returns
    -------
    setting : Setting
        The best hyperparameters that were found.
    table : dict
        The same to be read.
    result : LearningResult
        How they were found.
    """
    random = check_random_state(random_state)
    rows = _choose_rows(y, cv_samples, random)
    weights = sample_weight
    if rows is not None:
        if arguments.get("classes") is None:
            arguments["classes"] = np.unique(y)
        X, y = X[rows][:, rows] if is_pairwise else X[rows], y[rows]
        if np.unique(y, return_counts=True)[1].max() < 2:
            raise ValueError(
                f"cv_samples={cv_samples!r} leaves {len(rows)} rows, no two of the same class, so none can be held "
                "out; raise it"
            )
        weights = None if weights is None else np.asarray(weights)[rows]
        if isinstance(cv, np.ndarray) and len(cv) > rows[-1]:  # folds of all rows
            cv = cv[rows]
    partitions = check_number("cv_partitions", cv_partitions, least=1, integer=True)
    if partitions == 1:
        indices = np.unique(y, return_inverse=True)[1]
        cv = make_folds(indices, int(indices.max()) + 1, cv, random, argument="cv")
    else:
        cv = check_number("cv", cv, least=2, integer=True)
    objective = CrossValidationObjective(
        X, y, folds=cv, n_partitions=partitions, sample_weight=weights, random_state=random, **arguments
    )
    start = objective.theta.copy()
    if earlier is not None:
        known = dict(zip(earlier.names, earlier.theta.tolist(), strict=True))
        kept = [k for k, name in enumerate(objective.names) if objective.is_log[k] and name in known]
        start[kept] = [known[objective.names[k]] for k in kept]
    fingerprint = "" if checkpoint is None else _fingerprint(objective, X, y, weights, start)
    with learning_progress(verbose, _TOLERANCE, max_evaluations, time_limit) as progress:
        result = learn(
            objective,
            tol=_TOLERANCE,
            max_evaluations=max_evaluations,
            time_limit=time_limit,
            checkpoint=checkpoint,
            progress=progress,
            fingerprint=fingerprint,
            start=start,
        )
    return objective.hyperparameters.at(result.theta), objective.hyperparameters.table(result.theta), result


def labelled_rows(X: Any, targets: Targets, sample_weight: Any, cv: Any, is_pairwise: bool) -> tuple[Any, Any, Any]:
    """Inputs, weights and folds of the rows with one class, which alone can be held out and scored."""
    rows = targets.labelled
    if len(rows) == 0 or np.bincount(targets.labels[rows]).max() < 2:
        raise ValueError(
            f'hyperparameters="cv" holds out rows with one label, of which y has {len(rows)}, no two of the same '
            'class; choose the values, with hyperparameters="fixed"'
        )
    n = len(targets.labels)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X)[rows]
        if not (sample_weight > 0).any():
            raise ValueError(
                'hyperparameters="cv" holds out rows with one label, and sample_weight is zero in all of these; choose '
                'the values, with hyperparameters="fixed"'
            )
    if not (isinstance(cv, (int, np.integer)) or hasattr(cv, "split")) and hasattr(cv, "__len__") and len(cv) == n:
        folds = np.asarray(cv)
        cv = folds[rows] if folds.ndim == 1 and folds.dtype.kind in "iu" else cv  # folds of all rows
    return X[rows][:, rows] if is_pairwise else X[rows], sample_weight, cv


def _drawn(targets: Targets, random: np.random.RandomState) -> npt.NDArray[np.int32]:
    """A label for each row with probabilities; -1 where nothing is known."""
    assert targets.soft is not None
    ends = np.cumsum(targets.soft, axis=1)
    labels = (random.uniform(size=(len(ends), 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1)
    labels[targets.unlabelled] = -1
    drawn: npt.NDArray[np.int32] = labels.astype(np.int32)
    return drawn


def _choose_rows(y: npt.NDArray[Any], cv_samples: Any, random: Any) -> npt.NDArray[np.intp] | None:
    """A random subset in which every class has its share; None for all rows."""
    if cv_samples is None:
        return None
    n = len(y)
    if isinstance(cv_samples, float):
        count = int(np.ceil(check_number("cv_samples", cv_samples, least=0, strict=True) * n))
    else:
        count = check_number("cv_samples", cv_samples, least=2, integer=True)
    if count >= n:
        return None
    # The k-th of m shuffled rows of a class comes at (k + a random number) / m, so that any beginning is in proportion.
    places = np.empty(n)
    order = random.permutation(n)
    labels = np.unique(y, return_inverse=True)[1][order]
    for rows in np.split(order[np.argsort(labels, kind="stable")], np.cumsum(np.bincount(labels))[:-1]):
        places[rows] = (np.arange(len(rows)) + random.uniform()) / len(rows)
    chosen: npt.NDArray[np.intp] = np.sort(np.argsort(places, kind="stable")[:count])
    return chosen


def _fingerprint(
    objective: CrossValidationObjective,
    X: Any,
    y: npt.NDArray[Any],
    sample_weight: Any,
    start: npt.NDArray[np.float64],
) -> str:
    """Of the data, the folds and everything that the criterion depends on."""
    digest = hashlib.blake2b(digest_size=16)
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    labels = np.char.encode(np.asarray(y).astype(str), "utf-8")
    for array in (*parts, labels, *objective.partitions, start, objective.bounds):
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    if sample_weight is not None:
        digest.update(np.asarray(sample_weight, dtype=np.float64).tobytes())
    digest.update(repr((X.shape, objective.names, objective.hyperparameters.table(objective.theta))).encode())
    digest.update(repr(sorted(objective.settings.items())).encode())
    if objective.hyperparameters.penalty_strength > 0:
        digest.update(repr(objective.hyperparameters.penalty_strength).encode())
    return digest.hexdigest()
