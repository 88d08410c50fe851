"""Why a model answers as it does: the features that speak for and against each node on a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import logsumexp, softmax

from taxolearn.blocks import Blocks, stack_rows
from taxolearn.taxonomy.nodes import Name
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_number

__all__ = [
    "NodeExplanation",
    "block_shares",
    "explain_by_change",
    "explain_labels",
    "explain_rows",
    "names_in_blocks",
]

Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.intp]
_Parts = Callable[[Columns, Columns], Floats]  # in the logarithm of the odds of some classes against others


@dataclass(frozen=True)
class NodeExplanation:
    """What speaks for a node against its siblings, for one row.

    Attributes
    ----------
    node : str or int
        Name of the node; in a flat model a class.
    probability : float
        Its probability, given that the row belongs below its parent.
    contributions : list of (str or int, float)
        Features of the row, the weightiest first, by their part in the logarithm of the odds of the node against its
        siblings: above 0 they speak for it. In a linear model a part is the feature's value times the derivative by
        it; in others, what the logarithm of the odds would lose if the feature had its usual value.
    rest : float
        What all other features contribute together.
    blocks : dict
        What the features of each block contribute together, by name; empty where inputs are one matrix.
    """

    node: Name
    probability: float
    contributions: list[tuple[Any, float]]
    rest: float
    blocks: dict[str, float] = field(default_factory=dict)


def explain_rows(
    X: Any,
    coef: Any,
    predictors: Floats,
    classes: npt.NDArray[Any],
    taxonomy: Taxonomy | None,
    node: Any = None,
    *,
    top: int = 10,
    feature_names: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
) -> list[list[NodeExplanation]]:
    """Explain the rows: for each row, every node on the path.

    Parameters
    ----------
    X : array, CSR matrix or Blocks of shape (n_samples, n_features)
        The rows.
    coef : array or sparse matrix of shape (n_classes, n_features)
        Weights.
    predictors : array of shape (n_samples, n_classes)
        ``X coef' + intercept``.
    classes : array of shape (n_classes,)
        Labels of the classes.
    taxonomy : Taxonomy or None
        The tree; without one, every path has a single node.
    node : name, sequence of names, or None
        Where the paths lead to: one node for all rows, or one for each; by default the most probable class.
    top : int
        Features to name.
    feature_names : sequence, or mapping from names of blocks to these, optional
        Names of the features, by default their numbers. Those of blocks become pairs (block, feature).
    """

    def parts_of(row: int) -> tuple[Columns, _Parts]:
        features, values = _row_of(X, row)
        part, u = coef[:, features], predictors[row]
        weights = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
        return (
            features,
            lambda inside, outside: (
                values * (softmax(u[inside]) @ weights[inside] - softmax(u[outside]) @ weights[outside])
            ),
        )

    blocks: dict[str, slice] = {}
    if isinstance(X, Blocks):
        feature_names = names_in_blocks(X, feature_names)
        blocks = {name: columns for name, _, columns in X.parts()}
    _check_feature_names(feature_names, coef.shape[1])
    return _explain(predictors, classes, taxonomy, node, top, feature_names, parts_of, blocks)


def explain_labels(
    X: Any,
    coef: Any,
    proba: Floats,
    classes: npt.NDArray[Any],
    taxonomy: Taxonomy | None,
    node: Any,
    top: int,
    feature_names: Sequence[Any] | Mapping[str, Sequence[Any]] | None,
) -> list[list[NodeExplanation]]:
    """Explain labels that are right or wrong each by itself: the parts of features in their predictors.

    Arguments are as in ``explain_rows``; ``proba`` are the labels' probabilities. Without ``node``, labels more
    probable than not are explained, or the most probable one.
    """
    if isinstance(X, Blocks):
        feature_names = names_in_blocks(X, feature_names)
    _check_feature_names(feature_names, coef.shape[1])
    top = check_number("top", top, least=1, integer=True)
    targets = None if node is None else _targets(node, proba, classes)
    place = {name: column for column, name in enumerate(classes.tolist())}
    out = []
    for row, p in enumerate(proba):
        if targets is None:
            columns = np.flatnonzero(p > 0.5).tolist() or [int(p.argmax())]
        else:
            names = [targets[row]] if taxonomy is None else taxonomy.path(targets[row])
            if not names or names[-1] not in place:
                raise ValueError(f"node is {targets[row]!r}, which is no label of the model")
            columns = [place[name] for name in names]
        features, values = _row_of(X, row)
        explained = []
        for column in columns:
            weights = coef[[column]][:, features]
            weights = (weights.toarray() if sp.issparse(weights) else weights)[0].astype(np.float64)
            named, rest = _ranked(features, values * weights, top, feature_names)
            explained.append(NodeExplanation(classes[column].item(), float(p[column]), named, rest))
        out.append(explained)
    return out


def block_shares(X: Blocks, coef: Any) -> dict[str, float]:
    """How much each block of a linear model contributes to its answers.

    Parameters
    ----------
    X : Blocks
        Inputs.
    coef : array or CSR matrix of shape (n_classes, n_features)
        Weights of all blocks side by side.

    Returns
    -------
    dict of float
        By block, the mean square of what it adds to the predictors, as a share of the sum over the blocks. What is the
        same for all classes, or for all rows, does not count.
    """
    squares = {}
    for name, matrix, columns in X.parts():
        part = matrix @ coef[:, columns].T
        part = part.toarray() if sp.issparse(part) else np.asarray(part)
        part = part - part.mean(axis=1, keepdims=True)
        squares[name] = float(np.mean((part - part.mean(axis=0)) ** 2))
    total = sum(squares.values())
    return {name: square / total if total > 0 else 0.0 for name, square in squares.items()}


def names_in_blocks(X: Blocks, given: Any) -> list[Any]:
    """Pairs of a block and a feature."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"feature_names must be a mapping from names of blocks to names, got {type(given).__name__}")
    out: list[Any] = []
    for block, count in X.n_features.items():
        names = range(count) if given is None or block not in given else given[block]
        if len(names) != count:
            raise ValueError(f"feature_names[{block!r}] has {len(names)} elements, expected {count}")
        out.extend((block, name) for name in names)
    return out


def explain_by_change(
    X: Any,
    predict: Callable[[Any], Floats],
    usual: Floats | None,
    classes: npt.NDArray[Any],
    taxonomy: Taxonomy | None,
    node: Any = None,
    *,
    top: int = 10,
    feature_names: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
) -> list[list[NodeExplanation]]:
    """Explain rows of any model: each feature in turn gets its usual value. Other arguments are as in ``explain_rows``.

    Parameters
    ----------
    predict : callable
        Log probabilities of all classes, for rows like those of ``X``.
    usual : array of shape (n_features,) or None
        The usual values, None for zeros. Those of sparse matrices are zero in any case.
    """
    predictors = predict(X)

    def parts_of(row: int) -> tuple[Columns, _Parts]:
        features = _row_of(X, row)[0] if usual is None else _unusual(X, row, usual)
        if len(features) == 0:
            return features, lambda inside, outside: np.empty(0)
        u, without = predictors[row], predict(_changed(X, row, features, usual))
        return features, lambda inside, outside: _log_odds(u, inside, outside) - _log_odds(without, inside, outside)

    blocks: dict[str, slice] = {}
    if isinstance(X, Blocks):
        feature_names = names_in_blocks(X, feature_names)
        blocks = {name: columns for name, _, columns in X.parts()}
    _check_feature_names(feature_names, X.shape[1])
    return _explain(predictors, classes, taxonomy, node, top, feature_names, parts_of, blocks)


def _unusual(X: Any, row: int, usual: Floats) -> Columns:
    """The features that do not have their usual value."""
    if isinstance(X, Blocks):
        parts = [columns.start + _unusual(matrix, row, usual[columns]) for _, matrix, columns in X.parts()]
        return np.concatenate(parts)
    return _row_of(X, row)[0] if sp.issparse(X) else np.flatnonzero(X[row] != usual.astype(X.dtype))


def _changed(X: Any, row: int, features: Columns, usual: Floats | None) -> Any:
    """The row once for each of the features, which there has its usual value; that is zero where X is sparse."""
    if isinstance(X, Blocks):
        matrices = {}
        for name, matrix, columns in X.parts():
            begin, end = np.searchsorted(features, [columns.start, columns.stop])
            own = features[begin:end] - columns.start
            changed = _changed(matrix, row, own, None if usual is None else usual[columns])
            same = matrix[np.full(len(features) - len(own), row)]
            matrices[name] = stack_rows(stack_rows(same[:begin], changed), same[begin:])
        return Blocks(matrices)
    each = np.arange(len(features))
    changed = X[np.full(len(features), row)]
    if sp.issparse(X):
        changed.data[each * (len(features) + 1)] = 0.0
    else:
        changed[each, features] = 0.0 if usual is None else usual[features]
    return changed


def _check_feature_names(feature_names: Any, n_features: int) -> None:
    if feature_names is not None and len(feature_names) != n_features:
        raise ValueError(f"feature_names has {len(feature_names)} elements, expected {n_features}")


def _explain(
    predictors: Floats,
    classes: npt.NDArray[Any],
    taxonomy: Taxonomy | None,
    node: Any,
    top: int,
    feature_names: Any,
    parts_of: Callable[[int], tuple[Columns, _Parts]],
    blocks: Mapping[str, slice] | None = None,
) -> list[list[NodeExplanation]]:
    """For each row every node on its path; ``parts_of`` says which features a row has, and what each contributes."""
    top = check_number("top", top, least=1, integer=True)
    targets = _targets(node, predictors, classes)
    if taxonomy is not None:
        taxonomy.index(targets, argument="node")
    children = _Children(classes, taxonomy)
    out = []
    for row, target in enumerate(targets):
        features, parts = parts_of(row)
        explained = []
        for name, inside, outside in children.path(target):
            if len(outside) == 0:  # an only child
                explained.append(NodeExplanation(name, 1.0, [], 0.0))
                continue
            values = parts(inside, outside)
            named, rest = _ranked(features, values, top, feature_names)
            odds = float(_log_odds(predictors[row], inside, outside))
            by_block = {
                block: float(values[(features >= columns.start) & (features < columns.stop)].sum())
                for block, columns in (blocks or {}).items()
            }
            explained.append(NodeExplanation(name, float(1 / (1 + np.exp(-odds))), named, rest, by_block))
        out.append(explained)
    return out


def _ranked(features: Columns, values: Floats, top: int, feature_names: Any) -> tuple[list[tuple[Any, float]], float]:
    """The features of the largest parts by name, and the sum of all others."""
    order = np.argsort(-np.abs(values), kind="stable")
    named = [
        (int(features[k]) if feature_names is None else feature_names[features[k]], float(values[k]))
        for k in order[:top]
    ]
    return named, float(values[order[top:]].sum())


def _log_odds(u: Floats, inside: Columns, outside: Columns) -> Any:
    """Of some classes against others, for one row of predictors or several."""
    return logsumexp(u[..., inside], axis=-1) - logsumexp(u[..., outside], axis=-1)


def _targets(node: Any, predictors: Floats, classes: npt.NDArray[Any]) -> list[Any]:
    if node is None:
        return list(classes[predictors.argmax(axis=1)].tolist())
    if isinstance(node, (str, int, np.generic)):
        return [node.item() if isinstance(node, np.generic) else node] * len(predictors)
    targets = list(np.asarray(node).tolist())
    if len(targets) != len(predictors):
        raise ValueError(
            f"node has {len(targets)} elements, expected one name, or one for each of the {len(predictors)} rows"
        )
    return targets


class _Children:
    """The classes below a node, and those below its siblings, as columns."""

    def __init__(self, classes: npt.NDArray[Any], taxonomy: Taxonomy | None) -> None:
        self._classes = classes
        self._taxonomy = taxonomy
        if taxonomy is not None:
            self._column = np.searchsorted(classes, taxonomy.classes)  # of the taxonomy's classes

    def path(self, target: Any) -> list[tuple[Name, Columns, Columns]]:
        if self._taxonomy is None:
            place = np.flatnonzero(self._classes == target)
            if len(place) != 1:
                raise ValueError(f"node is {target!r}, which is no class of the model")
            return [(target, place, np.delete(np.arange(len(self._classes)), place))]
        out = []
        for name in self._taxonomy.path(target):
            below = self._below(name)
            parent = self._taxonomy.parent(name)
            around = self._below(parent)
            out.append((name, below, np.setdiff1d(around, below)))
        return out

    def _below(self, name: Any) -> Columns:
        tree = self._taxonomy
        assert tree is not None
        node = int(tree.index(name))
        return np.asarray(self._column[tree.leaf_begin[node] : tree.leaf_end[node]], dtype=np.intp)


def _row_of(X: Any, row: int) -> tuple[Columns, Floats]:
    """Return the features that are not zero, and their values."""
    if isinstance(X, Blocks):
        found = [(columns.start, *_row_of(matrix, row)) for _, matrix, columns in X.parts()]
        return np.concatenate([first + k for first, k, _ in found]), np.concatenate([values for *_, values in found])
    if sp.issparse(X):
        part = slice(X.indptr[row], X.indptr[row + 1])
        return X.indices[part].astype(np.intp), X.data[part].astype(np.float64)
    values = np.asarray(X[row], dtype=np.float64)
    features = np.flatnonzero(values)
    return features, values[features]
