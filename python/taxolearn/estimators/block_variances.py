"""Variances of the blocks of the inputs, learned once on some of the rows, for models that take them as given."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.blocks import Blocks
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.kernels.argument import start_kernels
from taxolearn.kernels.inner_product import Linear
from taxolearn.kernels.per_block import PerBlock
from taxolearn.tuning.cross_validation import CrossValidation, make_folds
from taxolearn.tuning.learn import CrossValidationObjective
from taxolearn.tuning.sign_steps import step_by_signs
from taxolearn.validation import check_number

__all__ = [
    "as_block_kernel",
    "check_block_variances",
    "learn_block_variances",
    "rows_of_some_classes",
    "start_block_variances",
]

Floats = npt.NDArray[np.float64]

_ROWS = 3000  # that variances are learned from
_ROWS_OF_CLASS = 40  # of these, unless there are few classes
_CLASSES = 300
_RUN = 10  # classes that follow each other in sorted order, since these are often alike
_FOLDS = 3  # of which one is held out if there are so many rows
_EVALUATIONS = 12
_FIRST_STEP = float(np.log(8.0))
_MOST_PRODUCTS = 300  # of a fold with its derivatives, from which on fits are too slow; temperatures do the rest


def start_block_variances(X: Blocks) -> dict[str, float]:
    """Variances of linear kernels that suit the blocks, each by itself."""
    kernel: PerBlock = start_kernels("linear", X)
    return {name: float(kernel[name].split()[0]) for name in X.names}


def check_block_variances(given: Any, X: Blocks) -> dict[str, float]:
    """The variances that the user gives, in the order of the blocks."""
    if not isinstance(given, Mapping):
        raise TypeError(f'block_variances must be a mapping like {{"words": 1.0}}, got {type(given).__name__}')
    if set(given) != set(X.names):
        names, expected = (", ".join(map(repr, each)) for each in (given, X.names))
        raise ValueError(f"block_variances has {names}, expected a number for each of the blocks {expected}")
    return {name: check_number(f"block_variances[{name!r}]", given[name], least=0, strict=True) for name in X.names}


def as_block_kernel(variances: Mapping[str, float], factor: float = 1.0) -> PerBlock:
    """The sum of linear kernels with these variances, all multiplied by the factor."""
    return PerBlock({name: Linear(factor * variance) for name, variance in variances.items()})


def learn_block_variances(
    X: Blocks,
    y: npt.NDArray[Any],
    weights: Floats | None,
    *,
    deadline: float = np.inf,
    n_threads: int | None = None,
    random_state: int = 0,
) -> dict[str, float]:
    """Learn the variance of each block by the log loss of a flat softmax on rows that are held out.

    At most 3,000 rows of some classes are enough, since how much each block tells hardly depends on the class. It does
    depend on how many rows a class has, so classes have up to 40 of their rows rather than all classes a few.

    Parameters
    ----------
    X, y, weights
        Inputs, labels and weights of all rows.
    deadline : float, optional
        ``time.perf_counter()`` after which no other values are tried.
    n_threads, random_state
        As in the estimators.

    Returns
    -------
    dict of float
        By block. Where nothing can be learned, those of ``start_block_variances``.
    """
    random = np.random.RandomState(random_state)
    usable = np.arange(len(y)) if weights is None else np.flatnonzero(weights > 0)
    rows = usable[rows_of_some_classes(y[usable], random)]
    part = X[rows]
    start = start_block_variances(part)
    codes, counts = np.unique(y[rows], return_inverse=True, return_counts=True)[1:]
    if len(X.names) == 1 or time.perf_counter() > deadline or len(counts) < 2 or counts.max() < 2:
        return start
    folds = make_folds(codes, len(counts), _FOLDS, random, argument="folds")
    if len(rows) >= _ROWS:
        folds[folds > 0] = -1
    model = KernelLogisticClassifier(
        as_block_kernel(start),
        tuning=CrossValidation(folds, learn_intercept_variance=False),
        n_threads=n_threads,
        random_state=random_state,
    )
    objective = CrossValidationObjective(model, part, codes, None if weights is None else weights[rows])
    found = step_by_signs(
        objective,
        first_step=_FIRST_STEP,
        max_evaluations=_EVALUATIONS,
        most_products=_MOST_PRODUCTS * len(np.unique(folds[folds >= 0])),
        deadline=deadline,
    )
    kernel: Any = objective.parameters.table(found.theta).kernel
    return {name: float(kernel[name].variance) for name in X.names}


def rows_of_some_classes(y: npt.NDArray[Any], random: np.random.RandomState) -> npt.NDArray[np.intp]:
    """Rows of classes at random places in sorted order, several in a row, until there are enough."""
    codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    most = max(_ROWS_OF_CLASS, _ROWS // len(counts))
    runs = np.split(np.arange(len(counts)), np.arange(_RUN, len(counts), _RUN))
    order = np.concatenate([runs[k] for k in random.permutation(len(runs))])[:_CLASSES]
    sizes = np.minimum(counts[order], most)
    chosen = order[np.cumsum(sizes) - sizes < _ROWS]
    shuffled = random.permutation(len(y))
    by_class = np.split(shuffled[np.argsort(codes[shuffled], kind="stable")], np.cumsum(counts)[:-1])
    return np.sort(np.concatenate([by_class[k][:most] for k in chosen.tolist()]))
