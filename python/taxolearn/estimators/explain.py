"""Why a linear model answers as it does: the features that speak for and against each node on a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import logsumexp, softmax

from taxolearn.blocks import Blocks
from taxolearn.taxonomy.lookup import Name
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_number

__all__ = ["NodeExplanation", "explain_rows"]

Floats = npt.NDArray[np.float64]


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
        siblings: above 0 they speak for it. A part is the feature's value times the derivative by it.
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
    top = check_number("top", top, least=1, integer=True)
    if isinstance(X, Blocks):
        feature_names = _names_in_blocks(X, feature_names)
    if feature_names is not None and len(feature_names) != coef.shape[1]:
        raise ValueError(f"feature_names has {len(feature_names)} elements, expected {coef.shape[1]}")
    targets = _targets(node, predictors, classes)
    if taxonomy is not None:
        taxonomy.index(targets, argument="node")
    children = _Children(classes, taxonomy)
    out = []
    for row, target in enumerate(targets):
        features, values = _row_of(X, row)
        part = coef[:, features]
        weights = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
        blocks = _blocks_of(X, features)
        out.append(
            [
                _explain(name, inside, outside, features, values, weights, predictors[row], top, feature_names, blocks)
                for name, inside, outside in children.path(target)
            ]
        )
    return out


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

    def path(self, target: Any) -> list[tuple[Name, npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
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

    def _below(self, name: Any) -> npt.NDArray[np.intp]:
        tree = self._taxonomy
        assert tree is not None
        node = int(tree.index(name))
        return np.asarray(self._column[tree.leaf_begin[node] : tree.leaf_end[node]], dtype=np.intp)


def _names_in_blocks(X: Blocks, given: Any) -> list[Any]:
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


def _blocks_of(X: Any, features: npt.NDArray[np.intp]) -> dict[str, slice]:
    """Where the features of each block are among these, which are sorted by blocks; none for a single matrix."""
    if not isinstance(X, Blocks):
        return {}
    out = {}
    for name, _, columns in X.parts():
        places = np.flatnonzero((features >= columns.start) & (features < columns.stop))
        out[name] = slice(int(places[0]), int(places[-1]) + 1) if len(places) > 0 else slice(0, 0)
    return out


def _row_of(X: Any, row: int) -> tuple[npt.NDArray[np.intp], Floats]:
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


def _explain(
    name: Name,
    inside: npt.NDArray[np.intp],
    outside: npt.NDArray[np.intp],
    features: npt.NDArray[np.intp],
    values: Floats,
    weights: Floats,
    u: Floats,
    top: int,
    feature_names: Any,
    blocks: Mapping[str, slice],
) -> NodeExplanation:
    if len(outside) == 0:  # an only child
        return NodeExplanation(name, 1.0, [], 0.0)
    odds = float(logsumexp(u[inside]) - logsumexp(u[outside]))
    parts = values * (softmax(u[inside]) @ weights[inside] - softmax(u[outside]) @ weights[outside])
    order = np.argsort(-np.abs(parts), kind="stable")
    named = [
        (int(features[k]) if feature_names is None else feature_names[features[k]], float(parts[k]))
        for k in order[:top]
    ]
    by_block = {block: float(parts[places].sum()) for block, places in blocks.items()}
    return NodeExplanation(name, float(1 / (1 + np.exp(-odds))), named, float(parts[order[top:]].sum()), by_block)
