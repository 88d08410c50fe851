"""How hyperparameters are learned (the estimator's argument ``tuning``), from which rows, and in which folds."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from taxolearn.kernels.argument import reads_kernel_values
from taxolearn.targets import LabelSets, Targets, check_labels, label_targets, row_weights
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_labelled, check_number, check_rows

__all__ = [
    "CrossValidation",
    "TuningData",
    "as_tuning",
    "choose_rows",
    "held_out_rows",
    "make_folds",
    "read_data",
    "some_rows",
]

Integers = npt.NDArray[np.int64]
Folds = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class CrossValidation(BaseEstimator):
    """Learning by the cross-validated log likelihood: ``tuning=CrossValidation(folds=10)``.

    Parameters
    ----------
    folds : int, splitter of scikit-learn, iterable of pairs (train, test), or array of int, default=5
        Number of folds, or the folds themselves: an array has the fold in which each row is held out, -1 for never. A
        number makes stratified folds; classes may have fewer rows than that, and the row of a class that has no other
        is never held out.
    repeats : int, default=1
        Partitions into folds over which the criterion is averaged. More than one needs a number of ``folds``.
    subset : int or float, default=None
        Learn on a random subset of so many rows, or such a share of them.
    learn_intercept_variance : bool, default=True
        Whether the variance of the intercepts is learned, unless it is 0.
    learn_temperature : bool, default=True
        Whether the temperature is learned: for any values of the others, the best one for the held-out rows.
    deviation : float or None, default=2.0
        Standard deviation of a Gaussian prior on the logarithms of the hyperparameters, about the values that learning
        starts from; the temperature has one of 1, about 1. What the data say little about stays where it is, and a few
        dozen rows outweigh it. None for no prior on the others.
    search : {"gradient", "scale", "steps"}, default="gradient"
        "gradient" learns all hyperparameters, by gradient descent. "scale" takes less time, and is often nearly as
        good: it tries a few values of one factor of all variances, each with its temperature; length scales and the
        variance of intercepts stay as they are. "steps" goes on from there with a few steps of all hyperparameters at
        once, each against the sign of its derivative: for many variances where evaluations are dear.
    max_evaluations : int, default=100
        Largest number of evaluations of the criterion. They may also be ended by Ctrl-C: the model is then fitted with
        the best hyperparameters so far.
    time_limit : float, default=None
        Seconds that learning may take; the final fit comes after it.
    checkpoint : path, default=None
        A file that learning writes after each evaluation, and continues from if it is there already.
    """

    def __init__(
        self,
        folds: Any = 5,
        *,
        repeats: int = 1,
        subset: float | None = None,
        learn_intercept_variance: bool = True,
        learn_temperature: bool = True,
        deviation: float | None = 2.0,
        search: str = "gradient",
        max_evaluations: int = 100,
        time_limit: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.folds = folds
        self.repeats = repeats
        self.subset = subset
        self.learn_intercept_variance = learn_intercept_variance
        self.learn_temperature = learn_temperature
        self.deviation = deviation
        self.search = search
        self.max_evaluations = max_evaluations
        self.time_limit = time_limit
        self.checkpoint = checkpoint

    def check(self) -> None:
        """Raise an error for values that no data could make right."""
        for name in ("learn_intercept_variance", "learn_temperature"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        check_choice("search", self.search, ("gradient", "scale", "steps"))
        if self.search != "gradient" and self.checkpoint is not None:
            raise ValueError(
                f'checkpoint is {self.checkpoint!r}, but search="{self.search}" is too short for one; leave it out, or '
                'use search="gradient"'
            )
        check_number("max_evaluations", self.max_evaluations, least=1, integer=True)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, least=0)
        if self.deviation is not None:
            check_number("deviation", self.deviation, least=0, strict=True)
        repeats = check_number("repeats", self.repeats, least=1, integer=True)
        if repeats > 1 and not isinstance(self.folds, (int, np.integer)):
            raise ValueError(
                f"repeats is {repeats}, but folds gives one partition; use a number of folds, or repeats=1"
            )


def as_tuning(tuning: Any) -> CrossValidation | None:
    """How to learn that an estimator's argument means; None for not at all."""
    if tuning is None or isinstance(tuning, CrossValidation):
        return tuning
    if isinstance(tuning, str) and tuning == "cv":
        return CrossValidation()
    raise ValueError(f'tuning is {tuning!r}, expected "cv", a CrossValidation, or None to use the values given')


@dataclass(frozen=True)
class TuningData:
    """Rows with one label each, or with label sets.

    Attributes
    ----------
    X : array or CSR matrix
        Inputs in the core's form.
    targets : int32 array of shape (n_samples,) or LabelSets
        Classes in the order of the core.
    strata : int32 array of shape (n_samples,)
        What folds hold in proportion: these classes, or of each set its rarest label, -1 for an empty one.
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
    targets: Any
    strata: npt.NDArray[np.int32]
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
        n_classes = len(self.classes)
        ranks = np.append(np.argsort(np.argsort(self.classes, kind="stable"), kind="stable"), n_classes)[self.strata]
        return tuple(make_folds(ranks, n_classes + 1, folds, random, argument="folds") for _ in range(tuning.repeats))


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
    if isinstance(y, LabelSets):
        return _read_sets(model, X, y, sample_weight, classes, subset, random)
    X, y = check_labelled(X, y)
    rows = choose_rows(y, subset, random)
    if rows is not None:
        classes = np.unique(y) if classes is None else classes
        is_pairwise = reads_kernel_values(model.kernel)
        X, y = np.ascontiguousarray(X[np.ix_(rows, rows)]) if is_pairwise else X[rows], y[rows]
        sample_weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
    if taxonomy is None and classes is not None:
        known = np.unique(np.asarray(classes))
        seen, indices = check_labels(y, least=1)
        unknown = np.setdiff1d(seen, known)
        if len(unknown) > 0:
            raise ValueError(f"classes lacks labels that are in y: {unknown[:5].tolist()}")
        targets = Targets(known, None, np.arange(len(known)), np.searchsorted(known, seen)[indices].astype(np.int32))
    else:
        targets = label_targets(y, taxonomy, "own")
    weights = row_weights(targets, sample_weight, model.class_weight, X)
    return TuningData(X, targets.labels, targets.labels, targets.in_core_order, targets.taxonomy, weights, rows)


def _read_sets(
    model: Any,
    X: Any,
    sets: LabelSets,
    sample_weight: Any,
    classes: npt.ArrayLike | None,
    subset: float | None,
    random: np.random.RandomState,
) -> TuningData:
    """The same of label sets, whose labels are the leaves of the taxonomy, or else the classes, in the core's order."""
    X = check_rows(X)
    rows = choose_rows(sets.rarest(), subset, random)
    if rows is not None:
        X, sets = X[rows], sets.take(rows)
        sample_weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
    in_order = np.asarray(classes) if model.taxonomy is None else model.taxonomy.classes
    order = np.argsort(in_order, kind="stable")
    targets = Targets(in_order[order], model.taxonomy, order, sets.rarest(), sets=sets)
    weights = row_weights(targets, sample_weight, model.class_weight, X)
    return TuningData(X, sets, targets.labels, in_order, model.taxonomy, weights, rows)


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


def some_rows(y: npt.NDArray[Any], count: int, random: np.random.RandomState) -> npt.NDArray[np.intp]:
    """About so many rows to choose hyperparameters by, sorted.

    Every class has its share of them, unless that would be fewer than three rows on average, which say little: then
    some classes have all of theirs.
    """
    if count >= len(y):
        return np.arange(len(y))
    numbers, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    if count < 3 * len(counts):
        order = random.permutation(len(counts))
        chosen = order[np.cumsum(counts[order]) <= count]
        return np.flatnonzero(np.isin(numbers, chosen))
    return np.asarray(choose_rows(y, count, random), dtype=np.intp)


def held_out_rows(
    labels: npt.NDArray[Any], share: float, seed: int, is_certain: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.bool_]:
    """Choose rows at random, from every class about the same share, but never all of its rows.

    Parameters
    ----------
    labels : ndarray
        Of all rows.
    share : float
        Below 1.
    seed : int
        The same rows for the same seed.
    is_certain : ndarray of bool, optional
        Rows with one class, which alone are held out; by default all.
    """
    random = np.random.default_rng(seed)
    numbers = np.unique(labels, return_inverse=True)[1].ravel()
    counts = np.bincount(numbers)
    may = counts[numbers] > 1
    if is_certain is not None:
        may &= is_certain
    order = random.permutation(np.flatnonzero(may))
    order = order[np.argsort(random.permutation(len(counts))[numbers[order]], kind="stable")]
    # Every so-manieth row in the order of classes: their shares differ by less than a row.
    passed = np.floor(np.arange(len(order) + 1) * share + random.random())
    out = np.zeros(len(labels), dtype=bool)
    out[order[np.diff(passed) > 0]] = True
    for number in np.flatnonzero(np.bincount(numbers[out], minlength=len(counts)) == counts):
        out[np.flatnonzero(out & (numbers == number))[:1]] = False
    return out


def make_folds(
    indices: npt.ArrayLike,
    n_classes: int,
    cv: Any,
    random_state: Any = None,
    *,
    argument: str = "cv",
) -> Folds:
    """The fold in which each row is held out; -1 for rows that are always trained on.

    A number of folds makes them stratified. The rows of each class are shuffled and dealt round the folds, each class
    beginning where the last one stopped: every class is spread as evenly as can be, and the sizes of folds differ by
    at most one. Classes with fewer rows than folds are in some folds only. The row of a class that has no other is
    never held out: its loss would say nothing about the kernel, only that the class was never seen. If there are fewer
    rows than folds, there are fewer folds.

    Folds that are given by the user are taken as they are, whatever classes they leave out.

    Parameters
    ----------
    indices : array of int of shape (n_samples,)
        Classes.
    n_classes : int
        Number of classes, seen or not.
    cv : int, splitter of scikit-learn, iterable of pairs (train, test), or array of int of shape (n_samples,)
        Number of folds, at least 2; or the folds. A row may be held out once at most, and each fold must train on all
        rows that it does not hold out. An array has the fold of every row, -1 for none.
    random_state : int, RandomState instance or None, default=None
        Of the shuffling. Not used for folds that are given.
    argument : str, default="cv"
        What messages call ``cv``.

    Returns
    -------
    int32 array of shape (n_samples,)
        Folds from 0 on, without holes.
    """
    indices = np.asarray(indices, dtype=np.int64)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"{argument} is {cv}, expected at least 2 folds")
        counts = np.bincount(indices, minlength=n_classes)
        rows = np.flatnonzero(counts[indices] > 1)
        if len(rows) == 0:
            raise ValueError(
                "y has no class with two rows, so none can be held out to learn hyperparameters; "
                "choose their values, with tuning=None (on the command line: --variance)"
            )
        random = check_random_state(random_state)
        fold_of = np.full(len(indices), -1, dtype=np.int64)
        fold_of[rows] = _deal(indices[rows], int(cv), random)
    elif hasattr(cv, "split") and not isinstance(cv, (str, bytes)):
        fold_of = _from_pairs(cv.split(np.zeros((len(indices), 1)), indices), len(indices), argument)
    else:
        fold_of = _from_given(cv, len(indices), argument)
    return _check_folds(fold_of, argument)


def _deal(classes: Integers, n_folds: int, random: np.random.RandomState) -> Integers:
    shuffled = random.permutation(len(classes))
    order = shuffled[np.argsort(classes[shuffled], kind="stable")]
    folds = np.empty(len(classes), dtype=np.int64)
    folds[order] = np.arange(len(classes)) % min(n_folds, len(classes))
    return folds


def _from_given(cv: Any, n: int, argument: str) -> Integers:
    """Folds from an array of them, or from pairs."""
    expected = (
        f"{argument} must be a number of folds, a splitter, pairs (train, test) of row numbers, or the fold of each of "
        f"the {n} rows"
    )
    if isinstance(cv, (str, bytes, bool)) or not isinstance(cv, Iterable):
        raise TypeError(f"{expected}, got {type(cv).__name__}")
    items = cv if isinstance(cv, np.ndarray) else list(cv)
    if len(items) > 0 and all(map(_is_pair, items)):
        return _from_pairs(items, n, argument)
    try:
        folds = np.asarray(items)
    except ValueError:
        raise ValueError(f"{expected}; these numbers have no common shape") from None
    if folds.shape != (n,) or folds.dtype.kind not in "iu":
        raise ValueError(f"{expected}; got an array of shape {folds.shape} and type {folds.dtype}")
    return folds.astype(np.int64)


def _is_pair(item: Any) -> bool:
    return isinstance(item, (tuple, list)) and len(item) == 2 and all(hasattr(part, "__len__") for part in item)


def _from_pairs(pairs: Iterable[Any], n: int, argument: str) -> Integers:
    fold_of = np.full(n, -1, dtype=np.int64)
    for fold, (train, test) in enumerate(pairs):
        trained, held = (_as_mask(rows, n, argument) for rows in (train, test))
        if (held & (fold_of >= 0)).any():
            row = int(np.flatnonzero(held & (fold_of >= 0))[0])
            raise ValueError(
                f"{argument} holds out row {row} more than once, in folds {fold_of[row]} and {fold}; for several "
                "partitions of the rows give a number of folds and repeats"
            )
        if not np.array_equal(trained, ~held):
            row = int(np.flatnonzero(trained == held)[0])
            what = "both trains on it and holds it out" if held[row] else "neither trains on it nor holds it out"
            raise ValueError(
                f"{argument}: row {row}: fold {fold} {what}; expected to train on all rows that are not held out"
            )
        fold_of[held] = fold
    return fold_of


def _as_mask(rows: Any, n: int, argument: str) -> npt.NDArray[np.bool_]:
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size > 0):
        raise ValueError(
            f"{argument} must have pairs of arrays of row numbers, got an array of shape {numbers.shape} and type "
            f"{numbers.dtype}"
        )
    numbers = numbers.astype(np.int64)
    wrong = numbers[(numbers < 0) | (numbers >= n)]
    if len(wrong) > 0:
        raise ValueError(f"{argument} has the row number {wrong[0]}, expected 0 to {n - 1}")
    mask = np.zeros(n, dtype=np.bool_)
    mask[numbers] = True
    return mask


def _check_folds(fold_of: Integers, argument: str) -> Folds:
    """Without holes, if every fold leaves something to train on."""
    if fold_of.min(initial=0) < -1:
        raise ValueError(f"{argument} has the fold {fold_of.min()}, expected -1 (never held out) or folds from 0 on")
    used, numbers = np.unique(fold_of, return_inverse=True)
    has_rest = len(used) > 0 and used[0] == -1
    n_folds = len(used) - has_rest
    if n_folds == 0:
        raise ValueError(f"{argument} holds out no row at all; at least one fold is needed")
    if n_folds == 1 and not has_rest:
        raise ValueError(f"{argument} holds out all rows in one fold, so none is left to train on; give more folds")
    return (numbers.reshape(fold_of.shape) - has_rest).astype(np.int32)
