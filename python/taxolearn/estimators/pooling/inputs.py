"""What the experts of a pool see: inputs as they come or standardized, all blocks or some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_features

from taxolearn.blocks import Blocks, stack_rows
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.pooling.dense import choose_scaling
from taxolearn.estimators.top_down import TopDownClassifier
from taxolearn.targets import Targets

__all__ = ["Inputs", "Scaling", "Uncertain", "Views"]

Floats = npt.NDArray[np.float64]
Views = Mapping[str, tuple[str, ...]]  # the blocks that experts see, by name, as one matrix; others see them all


@dataclass(frozen=True)
class Scaling:
    """What is subtracted from the features, and what these are divided by then.

    Attributes
    ----------
    mean, scale : array of shape (n_features,), dict of these or None
        None where inputs are sparse. For blocks, by the names of those that are dense.
    """

    mean: Any
    scale: Any

    @classmethod
    def choose(cls, X: Any, y: npt.NDArray[Any], weights: Floats | None, **arguments: Any) -> Scaling:
        """The scaling that suits these rows; arguments are those of ``choose_scaling``."""
        if isinstance(X, Blocks):
            chosen = {
                name: choose_scaling(matrix, y, weights, **arguments)
                for name, matrix in X.items()
                if not sp.issparse(matrix)
            }
            return cls(
                {name: each[0] for name, each in chosen.items()}, {name: each[1] for name, each in chosen.items()}
            )
        return cls(None, None) if sp.issparse(X) else cls(*choose_scaling(X, y, weights, **arguments))

    def apply(self, X: Any) -> Any:
        """The scaled inputs; sparse ones are as they were."""
        if self.mean is None:
            return X
        if isinstance(X, Blocks):
            scaled = {name: _scaled(X[name], self.mean[name], self.scale[name]) for name in self.mean}
            return Blocks({name: scaled.get(name, matrix) for name, matrix in X.items()})
        return _scaled(X, self.mean, self.scale)

    def usual(self, X: Any) -> Floats | None:
        """The means of all features, zeros for those of sparse blocks; None where inputs are sparse."""
        if not isinstance(X, Blocks):
            mean: Floats | None = self.mean
            return mean
        return np.concatenate([self.mean.get(name, np.zeros(count)) for name, count in X.n_features.items()])

    def check(self, X: Any) -> None:
        """Raise an error unless the features that are scaled have the number that ``fit`` has seen."""
        if self.mean is None:
            return
        if not isinstance(X, Blocks):
            _check_features("X has", _num_features(X), self.mean)
            return
        for name, mean in self.mean.items():
            if name in X.names:  # else a better error comes later
                _check_features(f"X[{name!r}] has", X[name].shape[1], mean)


def _check_features(what: str, count: int, mean: Floats) -> None:
    if count != len(mean):
        raise ValueError(f"{what} {count} features, expected the {len(mean)} that fit has seen")


def _scaled(X: Any, mean: Floats, scale: Floats) -> Any:
    dense = X.toarray() if sp.issparse(X) else X
    return np.ascontiguousarray((dense - mean) / scale, dtype=dense.dtype)


@dataclass(frozen=True)
class Inputs:
    """Checked inputs, the same with standardized columns for experts that take any sign, and who sees which blocks."""

    raw: Any
    scaled: Any
    views: Views = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any, scaling: Scaling, views: Views | None = None) -> Inputs:
        return cls(X, scaling.apply(X), views or {})

    def given_to(self, name: str, estimator: Any) -> Any:
        """What the expert of that name sees."""
        X = self.raw if get_tags(estimator).input_tags.positive_only else self.scaled
        names = self.views.get(name)
        if names is None:
            return X
        matrices = [X[each] for each in names]
        if len(matrices) == 1:
            return matrices[0]
        return sp.hstack(matrices, format="csr") if any(map(sp.issparse, matrices)) else np.hstack(matrices)


@dataclass(frozen=True)
class Uncertain:
    """Rows that may be of several classes, for experts that can use them.

    Attributes
    ----------
    X : array, CSR matrix or Blocks
        Inputs as they come.
    labels : list of tuple
        The classes that each row may be of.
    is_node : array of bool
        Whether these are all the classes below a node.
    weights : array or None
    """

    X: Any
    labels: list[tuple[Any, ...]]
    is_node: npt.NDArray[np.bool_]
    weights: Floats | None

    @classmethod
    def of(cls, X: Any, targets: Targets, weights: Floats | None) -> Uncertain | None:
        """The rows that allow several classes but not all, and have a weight; None if there are none."""
        allowed, tree = targets.allowed, targets.taxonomy
        if allowed is None:
            return None
        sets = [allowed.members[begin:end] for begin, end in pairwise(allowed.begin.tolist())]
        names = [tuple(targets.in_core_order[members].tolist()) for members in sets]
        ranges = set() if tree is None else set(zip(tree.leaf_begin.tolist(), tree.leaf_end.tolist(), strict=True))
        is_node = np.array(
            [len(each) == each[-1] + 1 - each[0] and (int(each[0]), int(each[-1]) + 1) in ranges for each in sets]
        )
        used = np.arange(len(allowed.rows)) if weights is None else np.flatnonzero(weights[allowed.rows] > 0)
        if len(used) == 0:
            return None
        rows, of = allowed.rows[used], allowed.of[used]
        return cls(X[rows], [names[k] for k in of.tolist()], is_node[of], None if weights is None else weights[rows])

    def added_to(
        self, name: str, estimator: Any, data: tuple[Any, Any, Floats | None], scaling: Scaling, views: Views
    ) -> tuple[Any, Any, Floats | None]:
        """Inputs, labels and weights with those of the rows that the expert can use."""
        if isinstance(estimator, TopDownClassifier):
            rows = np.flatnonzero(self.is_node)
        elif isinstance(estimator, KernelLogisticClassifier) and estimator.loss == "softmax":
            rows = np.arange(len(self.labels))
        else:
            return data
        X, y, weights = data
        X = stack_rows(X, Inputs.of(self.X[rows], scaling, views).given_to(name, estimator))
        if weights is not None and self.weights is not None:
            weights = np.concatenate([weights, self.weights[rows]])
        return X, [*y.tolist(), *(self.labels[row] for row in rows.tolist())], weights
