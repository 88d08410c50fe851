"""Metrics that depend on how far apart two nodes of a taxonomy are."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from taxolearn.metrics.inputs import FloatArray, IntArray, SetPair, average, contains, read_sets, read_weights, sums
from taxolearn.metrics.nodes import NodePair, read_nodes
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_number

__all__ = [
    "LevelScores",
    "PrecisionRecallF",
    "h_loss",
    "hierarchical_precision_recall_f",
    "level_precision_recall_f",
    "parent_accuracy",
    "symmetric_difference_loss",
    "taxo_loss",
    "taxo_losses",
]


class PrecisionRecallF(NamedTuple):
    """Precision, recall and F; NaN where nothing was predicted, nothing is true, or neither."""

    precision: float
    recall: float
    f: float


class LevelScores(NamedTuple):
    """Precision, recall and F of each level of a taxonomy, from the children of the root (level 1) down.

    Attributes
    ----------
    level : ndarray of int
        Depth of the nodes.
    precision, recall, f : ndarray of float
        Scores at each level; NaN where nothing was predicted, nothing is true, or neither.
    true, predicted : ndarray of float
        Weight of the true and of the predicted nodes at each level.
    """

    level: IntArray
    precision: FloatArray
    recall: FloatArray
    f: FloatArray
    true: FloatArray
    predicted: FloatArray


def taxo_loss(y_true: Any, y_pred: Any, *, taxonomy: Taxonomy, sample_weight: Any = None) -> float:
    """Half the length of the path between the true and the predicted node, averaged (Seeger 2008, 6.1).

    For two leaves of the same depth this is the number of levels one has to climb to where their paths meet. Truth and
    prediction may be any nodes; stopping at the parent of the truth costs 1/2.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Names of nodes.
    taxonomy, sample_weight
        See :mod:`taxolearn.metrics`.

    Examples
    --------
    >>> from taxolearn import Taxonomy
    >>> from taxolearn.metrics import taxo_loss
    >>> taxonomy = Taxonomy.from_labels(["A/1", "A/2", "B/1"])
    >>> taxo_loss(["A/1", "A/1", "A/1", "A/1"], ["A/1", "A", "A/2", "B/1"], taxonomy=taxonomy)
    0.875
    """
    losses = taxo_losses(y_true, y_pred, taxonomy)
    return average(losses, read_weights(sample_weight, len(losses)))


def taxo_losses(y_true: Any, y_pred: Any, taxonomy: Taxonomy) -> FloatArray:
    """Half the length of the path between truth and prediction of each item."""
    return _path_lengths(_single_nodes(y_true, y_pred, taxonomy), taxonomy) / 2


def _single_nodes(y_true: Any, y_pred: Any, taxonomy: Taxonomy) -> NodePair:
    pair = read_nodes(y_true, y_pred, taxonomy, close=False)
    if isinstance(pair, SetPair):
        raise ValueError(
            "y_true and y_pred must have one label per item, as one-dimensional arrays; for sets of labels use h_loss, "
            "symmetric_difference_loss or hierarchical_precision_recall_f"
        )
    return pair


def _path_lengths(pair: NodePair, taxonomy: Taxonomy) -> IntArray:
    depths = taxonomy.depths
    lengths: IntArray = depths[pair.true] + depths[pair.predicted] - 2 * taxonomy.common_depth(*pair)
    return lengths


def parent_accuracy(y_true: Any, y_pred: Any, *, taxonomy: Taxonomy, sample_weight: Any = None) -> float:
    """Fraction of items whose prediction has the same parent as the truth (Seeger 2008, 6.1).

    A prediction that is itself the parent of the truth does not count; :func:`taxo_loss` and
    :func:`hierarchical_precision_recall_f` are made for predictions that stop above the leaves.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Names of nodes, in the papers leaves.
    taxonomy, sample_weight
        See :mod:`taxolearn.metrics`.

    Examples
    --------
    >>> from taxolearn import Taxonomy
    >>> from taxolearn.metrics import parent_accuracy
    >>> taxonomy = Taxonomy.from_labels(["A/1", "A/2", "B/1"])
    >>> parent_accuracy(["A/1", "A/1", "B/1", "B/1"], ["A/1", "A/2", "B/1", "A/2"], taxonomy=taxonomy)
    0.75
    """
    true, predicted = _single_nodes(y_true, y_pred, taxonomy)
    right = taxonomy.parents[true] == taxonomy.parents[predicted]
    return average(right, read_weights(sample_weight, len(right)))


def hierarchical_precision_recall_f(
    y_true: Any, y_pred: Any, *, taxonomy: Taxonomy, beta: float = 1.0, sample_weight: Any = None
) -> PrecisionRecallF:
    """Precision, recall and F of the sets of nodes above truth and prediction (Kiritchenko et al. 2005).

    With A and B the true and the predicted nodes together with all their ancestors but the root, precision is
    ``sum |A and B| / sum |B|``, recall ``sum |A and B| / sum |A|``, both sums over all items, and F their harmonic
    mean with weight ``beta**2`` on recall. Stopping above the truth costs recall only.

    Parameters
    ----------
    y_true, y_pred, taxonomy, sample_weight
        See :mod:`taxolearn.metrics`. Ancestors are added to indicators of nodes, too.
    beta : float, default=1.0
        How much more recall counts than precision.

    Returns
    -------
    PrecisionRecallF
        Named tuple (precision, recall, f).

    Examples
    --------
    >>> from taxolearn import Taxonomy
    >>> from taxolearn.metrics import hierarchical_precision_recall_f
    >>> taxonomy = Taxonomy.from_labels(["A/1", "A/2", "B/1"])
    >>> hierarchical_precision_recall_f(["A/1", "A/1"], ["A/1", "A"], taxonomy=taxonomy)
    PrecisionRecallF(precision=1.0, recall=0.75, f=0.8571428571428571)
    """
    counts = _level_weights(y_true, y_pred, taxonomy, sample_weight, close=True)
    both, true, predicted = (part.sum(keepdims=True) for part in counts)
    return PrecisionRecallF(*(float(score[0]) for score in _scores(both, true, predicted, beta)))


def level_precision_recall_f(
    y_true: Any, y_pred: Any, *, taxonomy: Taxonomy, beta: float = 1.0, close: bool = False, sample_weight: Any = None
) -> LevelScores:
    """Precision, recall and F over all nodes of each level of the tree (Rousu et al. 2006, table 3).

    Parameters
    ----------
    y_true, y_pred, taxonomy, sample_weight
        See :mod:`taxolearn.metrics`.
    beta : float, default=1.0
        As in :func:`hierarchical_precision_recall_f`.
    close : bool, default=False
        Whether ancestors are added to indicators of nodes, too, as :func:`hierarchical_precision_recall_f` does.

    Returns
    -------
    LevelScores
        Named tuple (level, precision, recall, f, true, predicted) of arrays, one entry for each level.

    Examples
    --------
    >>> from taxolearn import Taxonomy
    >>> from taxolearn.metrics import level_precision_recall_f
    >>> taxonomy = Taxonomy.from_labels(["A/1", "A/2", "B/1"])
    >>> level_precision_recall_f(["A/1", "A/1"], ["A/2", "A"], taxonomy=taxonomy).recall
    array([1., 0.])
    """
    both, true, predicted = _level_weights(y_true, y_pred, taxonomy, sample_weight, close=close)
    scores = _scores(both, true, predicted, beta)
    return LevelScores(np.arange(1, taxonomy.height + 1), *scores, true, predicted)


def _level_weights(
    y_true: Any, y_pred: Any, taxonomy: Taxonomy, sample_weight: Any, *, close: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights of the common, the true and the predicted nodes at each level below the root."""
    pair = read_nodes(y_true, y_pred, taxonomy, close=close)
    levels = taxonomy.height + 1
    if isinstance(pair, SetPair):
        width = pair.true.width
        weights = read_weights(sample_weight, pair.true.n)
        both, true, predicted = (
            sums(taxonomy.depths[keys % width], weights[keys // width], levels)[1:]
            for keys in (pair.common(), pair.true.keys, pair.predicted.keys)
        )
    else:
        weights = read_weights(sample_weight, len(pair.true))
        # A path to depth d has one node at each of the levels 1 .. d.
        both, true, predicted = (
            sums(depths, weights, levels)[::-1].cumsum()[::-1][1:]
            for depths in (taxonomy.common_depth(*pair), taxonomy.depths[pair.true], taxonomy.depths[pair.predicted])
        )
    return both, true, predicted


def _scores(
    both: FloatArray, true: FloatArray, predicted: FloatArray, beta: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    square = check_number("beta", beta, least=0, strict=True) ** 2
    precision, recall, f = (
        np.divide(share, total, out=np.full_like(both, np.nan), where=total > 0)
        for share, total in (
            (both, predicted),
            (both, true),
            ((1 + square) * both, square * true + predicted),
        )
    )
    return precision, recall, f


def symmetric_difference_loss(
    y_true: Any, y_pred: Any, *, taxonomy: Taxonomy | None = None, sample_weight: Any = None
) -> float:
    """Mean number of labels that are either true or predicted but not both (Rousu et al. 2006, 2.1).

    With a taxonomy, nodes are counted. The parameters are described in :mod:`taxolearn.metrics`.

    Examples
    --------
    >>> from taxolearn.metrics import symmetric_difference_loss
    >>> symmetric_difference_loss([[1, 0, 1], [0, 1, 0]], [[1, 0, 0], [1, 1, 1]])
    1.5
    """
    pair = read_sets(y_true, y_pred)[0] if taxonomy is None else read_nodes(y_true, y_pred, taxonomy, close=False)
    if isinstance(pair, SetPair):
        losses = np.bincount(pair.different() // pair.true.width, minlength=pair.true.n)
    else:
        assert taxonomy is not None
        losses = _path_lengths(pair, taxonomy)
    return average(losses, read_weights(sample_weight, len(losses)))


def h_loss(
    y_true: Any,
    y_pred: Any,
    *,
    taxonomy: Taxonomy,
    weights: Any = "uniform",
    given: str = "ancestors",
    sample_weight: Any = None,
) -> float:
    """Hierarchical loss: a wrong node costs only if everything above it is right (Cesa-Bianchi et al. 2004).

    The loss of an item is ``sum_j c_j [y_j != u_j and y_h = u_h for all ancestors h of j]`` over the nodes j below the
    root, where y and u say for each node whether it is true and whether it is predicted (Rousu et al. 2006, 2.1). The
    root counts as right.

    Parameters
    ----------
    y_true, y_pred, taxonomy, sample_weight
        See :mod:`taxolearn.metrics`.
    weights : {"uniform", "sibling", "subtree"} or array-like of shape (n_nodes,), default="uniform"
        The costs c_j. "uniform": 1. "sibling": 1 for the root, and each node has its parent's cost divided by the
        number of the parent's children. "subtree": the share of all nodes, root included, that are the node or below.
    given : {"ancestors", "parent"}, default="ancestors"
        What must be right for an error to cost. "parent" is the simpler loss of Rousu et al., which differs only where
        labels contradict the tree.

    Examples
    --------
    >>> from taxolearn import Taxonomy
    >>> from taxolearn.metrics import h_loss
    >>> taxonomy = Taxonomy.from_labels(["A/1", "A/2", "B/1"])
    >>> h_loss(["A/1", "A/1"], ["A/2", "B/1"], taxonomy=taxonomy)
    2.0
    >>> h_loss(["A/1", "A/1"], ["A/2", "B/1"], taxonomy=taxonomy, weights="sibling")
    0.75
    """
    check_choice("given", given, ("ancestors", "parent"))
    pair = read_nodes(y_true, y_pred, taxonomy, close=False)
    costs = _node_costs(weights, taxonomy)
    if isinstance(pair, SetPair):
        different, width = pair.different(), pair.true.width
        first = different[_nothing_wrong_above(different, taxonomy, parent_only=given == "parent")]
        losses = sums(first // width, costs[first % width], pair.true.n)
    else:
        # Two paths part below their last common node: what comes next on each is wrong, what comes after is forgiven.
        next_depth = taxonomy.common_depth(*pair) + 1
        losses = np.zeros(len(pair.true))
        for nodes in pair:
            parted = taxonomy.depths[nodes] >= next_depth
            losses[parted] += costs[_ancestors_at(nodes[parted], next_depth[parted], taxonomy)]
    return average(losses, read_weights(sample_weight, len(losses)))


def _nothing_wrong_above(different: IntArray, taxonomy: Taxonomy, *, parent_only: bool) -> npt.NDArray[np.bool_]:
    """Find the wrong (item, node) keys that have no other wrong one above."""
    first = np.ones(len(different), dtype=bool)
    at = np.arange(len(different))
    rows, nodes = different - different % taxonomy.n_nodes, different % taxonomy.n_nodes
    while len(at) > 0:
        nodes = taxonomy.parents[nodes]
        wrong = contains(different, rows + nodes)
        first[at[wrong]] = False
        climb = ~wrong & (nodes > 0)
        at, rows, nodes = at[climb], rows[climb], nodes[climb]
        if parent_only:
            break
    return first


def _ancestors_at(nodes: IntArray, depths: IntArray, taxonomy: Taxonomy) -> IntArray:
    """The ancestor of each node at the given depth, or the node itself if it is not deeper."""
    found = nodes.copy()
    deeper = np.flatnonzero(taxonomy.depths[found] > depths)
    while len(deeper) > 0:
        found[deeper] = taxonomy.parents[found[deeper]]
        deeper = deeper[taxonomy.depths[found[deeper]] > depths[deeper]]
    return found


def _node_costs(weights: Any, taxonomy: Taxonomy) -> FloatArray:
    if not isinstance(weights, str):
        try:
            costs = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError):
            costs = np.empty(0)
        if costs.shape != (taxonomy.n_nodes,) or not (np.isfinite(costs) & (costs >= 0)).all():
            raise ValueError(
                f"weights must be 'uniform', 'sibling', 'subtree' or {taxonomy.n_nodes} finite numbers that are not "
                f"negative, one for each node"
            )
        return costs
    check_choice("weights", weights, ("uniform", "sibling", "subtree"))
    costs = np.ones(taxonomy.n_nodes)
    if weights == "uniform" or taxonomy.n_nodes == 1:
        return costs
    by_depth = np.argsort(taxonomy.depths, kind="stable")
    levels = np.split(by_depth, np.cumsum(np.bincount(taxonomy.depths))[:-1])[1:]
    if weights == "sibling":
        n_children = np.bincount(taxonomy.parents[1:], minlength=taxonomy.n_nodes)
        for level in levels:
            parents = taxonomy.parents[level]
            costs[level] = costs[parents] / n_children[parents]
        return costs
    for level in reversed(levels):
        np.add.at(costs, taxonomy.parents[level], costs[level])
    return costs / taxonomy.n_nodes
