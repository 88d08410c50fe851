"""Decisions: from probabilities to the answer with the least expected loss.

The functions take the probabilities of any classifier. ``KernelLogisticClassifier.decide`` is a shortcut to ``decide``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_array

from taxolearn import _core
from taxolearn.metrics.inputs import LabelSets, class_columns, read_classes, read_labels, read_scores, rounding
from taxolearn.metrics.nodes import read_taxonomy
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_number, check_threads

__all__ = ["LOSSES", "decide", "expected_loss", "node_proba"]

LOSSES = ("zero-one", "taxo", "parent")
"""Names of the losses that decisions can be made for."""
_Floats = npt.NDArray[np.float64]


def node_proba(proba: Any, *, classes: Any, taxonomy: Taxonomy, n_threads: int | None = None) -> _Floats:
    """Sum the probabilities of classes to those of all nodes of the tree.

    Parameters
    ----------
    proba : array of shape (n_samples, n_classes)
        Probabilities of the classes.
    classes : array of shape (n_classes,)
        Labels of the columns of ``proba``: the classes of the taxonomy, in any order.
    taxonomy : Taxonomy
        The tree.
    n_threads : int, optional
        Number of threads.

    Returns
    -------
    ndarray of shape (n_samples, taxonomy.n_nodes)
        Column p belongs to ``taxonomy.names[p]``; the first one is the root.
    """
    scores, names = _check_proba(proba, classes)
    columns = _columns(names, read_taxonomy(taxonomy))
    core = _core.Taxonomy(taxonomy.parents)
    return core.node_probabilities(scores, columns=columns, n_threads=check_threads(n_threads))


def decide(
    proba: Any,
    *,
    classes: Any,
    taxonomy: Taxonomy | None = None,
    loss: Any = "zero-one",
    stop_cost: Any = None,
    confidence: float | None = None,
    return_expected: bool = False,
    n_threads: int | None = None,
) -> Any:
    """Find the answer of least expected loss for each row.

    Losses of a tree take one sweep over it per row; no matrix of all pairs of classes is formed.

    Parameters
    ----------
    proba : array of shape (n_samples, n_classes)
        Probabilities of the classes.
    classes : array of shape (n_classes,)
        Labels of the columns of ``proba``.
    taxonomy : Taxonomy, optional
        The tree whose leaves are the classes; needed by the losses "taxo" and "parent" and by stopping.
    loss : {"zero-one", "taxo", "parent"} or array of shape (n_classes, n_classes), default="zero-one"
        - "zero-one": every wrong class costs 1, so the answer is the most probable class.
        - "taxo": half the length of the path in the tree between the answer and the truth.
        - "parent": 1 unless the answer has the same parent as the truth. The answer is the most probable class among
          the leaf children of the node whose leaf children have the largest mass (Seeger 2008, footnote 11).
        - an array: entry (t, a) is the cost of answering ``classes[a]`` when the truth is ``classes[t]``.
    stop_cost : float or array of shape (n_nodes,), optional
        If given, the answer may be an inner node, where the loss allows it: a "zero-one" loss of 0 if the truth lies
        below the answer and 1 if not, a "taxo" loss of half the path. A number is an extra cost for every level
        between the answer and the deepest leaf below it; an array has the extra cost of each node, infinite where one
        must not stop.
    confidence : float, optional
        If given, the answer is the deepest node that has at least this probability: the most detailed answer that is
        right this often, if the probabilities are. Goes with the loss "zero-one" only, and without ``stop_cost``.
    return_expected : bool, default=False
        Whether to return the expected losses too.
    n_threads : int, optional
        Number of threads.

    Returns
    -------
    answers : ndarray of shape (n_samples,)
        Labels; names of nodes where answers may be inner nodes.
    expected : ndarray of shape (n_samples,)
        Expected loss of each answer, stopping costs included; with ``return_expected`` only.

    Examples
    --------
    >>> from taxolearn import Taxonomy
    >>> from taxolearn.decisions import decide
    >>> taxonomy = Taxonomy.from_labels(["pet/cat", "pet/dog", "car"])
    >>> proba = [[0.35, 0.25, 0.40]]
    >>> classes = ["pet/cat", "pet/dog", "car"]
    >>> decide(proba, classes=classes, taxonomy=taxonomy)
    array(['car'], dtype='<U7')
    >>> decide(proba, classes=classes, taxonomy=taxonomy, loss="taxo")
    array(['pet/cat'], dtype='<U7')
    >>> decide(proba, classes=classes, taxonomy=taxonomy, confidence=0.5)
    array(['pet'], dtype='<U7')
    """
    threads = check_threads(n_threads)
    scores, names = _check_proba(proba, classes)
    stopping = stop_cost is not None or confidence is not None
    if not isinstance(loss, str):
        if stopping:
            raise ValueError("stop_cost and confidence go with a loss of the tree, not with a matrix of costs")
        costs = scores @ _check_costs(loss, len(names))
        best = costs.argmin(axis=1)
        answers, expected = names[best], costs[np.arange(len(best)), best]
        return (answers, expected) if return_expected else answers
    check_choice("loss", loss, LOSSES)
    if taxonomy is None:
        if loss != "zero-one" or stopping:
            what = f"loss={loss!r}" if loss != "zero-one" else "stopping at an inner node"
            raise ValueError(f"{what} needs a taxonomy; give one (for an estimator: before fit)")
        best = scores.argmax(axis=1)
        answers, expected = names[best], 1.0 - scores[np.arange(len(best)), best]
        return (answers, expected) if return_expected else answers
    columns = _columns(names, read_taxonomy(taxonomy))
    core = _core.Taxonomy(taxonomy.parents)
    if confidence is not None:
        if stop_cost is not None or loss != "zero-one":
            raise ValueError('confidence goes with loss="zero-one" and without stop_cost; choose one of the two ways')
        level = check_number("confidence", confidence, least=0, strict=True)
        nodes, expected = core.decide_confident(scores, level, columns=columns, n_threads=threads)
    else:
        if stopping and loss == "parent":
            raise ValueError('loss="parent" is about classes, so it takes no stop_cost')
        nodes, expected = core.decide(
            scores, loss, columns=columns, costs=_node_costs(taxonomy, stop_cost), n_threads=threads
        )
    answers = _typed_names(taxonomy)[nodes] if stopping else taxonomy.classes[nodes - taxonomy.n_inner]
    return (answers, expected) if return_expected else answers


def expected_loss(
    proba: Any, answers: Any, *, classes: Any, taxonomy: Taxonomy | None = None, loss: Any = "zero-one"
) -> _Floats:
    """Compute the expected loss of given answers, one per row, without stopping costs; arguments as in ``decide``.

    Returns
    -------
    ndarray of shape (n_samples,)
        What each answer costs on average if ``proba`` is right.
    """
    scores, names = _check_proba(proba, classes)
    given = read_labels("answers", answers, mixed=taxonomy is not None)
    if isinstance(given, LabelSets):
        raise ValueError("answers must be one label per row, got a matrix")
    if len(given) != len(scores):
        raise ValueError(f"answers has {len(given)} elements, but proba has {len(scores)} rows")
    row = np.arange(len(given))
    if not isinstance(loss, str):
        costs = _check_costs(loss, len(names))
        return np.asarray(np.einsum("ij,ji->i", scores, costs[:, class_columns("answers", given, names)]))
    check_choice("loss", loss, LOSSES)
    if taxonomy is None:
        if loss != "zero-one":
            raise ValueError(f"loss={loss!r} needs a taxonomy")
        return np.asarray(1.0 - scores[row, class_columns("answers", given, names)])
    columns = _columns(names, read_taxonomy(taxonomy))
    answer = taxonomy.index(given, argument="answers")
    core = _core.Taxonomy(taxonomy.parents)
    expected = np.empty(len(given))
    for rows in gen_batches(len(given), max(1, _BATCH // taxonomy.n_nodes)):
        nodes = core.node_probabilities(scores[rows], columns=columns)
        expected[rows] = _tree_loss(taxonomy, nodes, answer[rows], loss)
    return expected


_BATCH = 2**24  # elements of a block of node probabilities


def _tree_loss(taxonomy: Taxonomy, nodes: _Floats, answer: npt.NDArray[np.int64], loss: str) -> _Floats:
    row = np.arange(len(answer))
    if loss == "zero-one":
        return 1.0 - nodes[row, answer]
    if loss == "parent":
        leaf_parents = taxonomy.parents[taxonomy.n_inner :]  # those of a parent are neighbours
        first = np.flatnonzero(np.diff(leaf_parents, prepend=-1))
        mass = np.zeros((len(answer), taxonomy.n_inner))
        mass[:, leaf_parents[first]] = np.add.reduceat(nodes[:, taxonomy.n_inner :], first, axis=1)
        return 1.0 - mass[row, taxonomy.parents[answer]]
    common = np.zeros(len(answer))
    at = answer.copy()
    while (at > 0).any():
        common += np.where(at > 0, nodes[row, at], 0.0)
        at = np.where(at > 0, taxonomy.parents[at], 0)
    return np.asarray(0.5 * (taxonomy.depths[answer] + nodes[:, 1:].sum(axis=1)) - common)


def _check_proba(proba: Any, classes: Any) -> tuple[_Floats, npt.NDArray[Any]]:
    """Probabilities whose rows sum to one, and the labels of their columns."""
    names = read_classes(classes)
    scores = read_scores("proba", proba, names, probabilities=True)
    sums = scores.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > rounding(scores):
        raise ValueError(f"rows of proba must sum to 1, got {sums[worst]:g} in row {worst}")
    return np.ascontiguousarray(scores, dtype=np.float64), names


def _columns(names: npt.NDArray[Any], taxonomy: Taxonomy) -> npt.NDArray[np.int64]:
    """The column of each class of the taxonomy."""
    columns = np.full(taxonomy.n_classes, -1, dtype=np.int64)
    columns[taxonomy.leaf_index(names, argument="classes")] = np.arange(len(names))
    missing = np.flatnonzero(columns < 0)
    if len(missing) > 0:
        raise ValueError(
            f"classes lacks {len(missing)} of the {taxonomy.n_classes} classes of the taxonomy, among them "
            f"{taxonomy.classes[missing[0]].item()!r}; taxonomy.restrict(classes) leaves them out"
        )
    return columns


def _node_costs(taxonomy: Taxonomy, stop_cost: Any) -> _Floats | None:
    """Extra cost of every node as an answer; None if answers are leaves."""
    if stop_cost is None:
        return None
    if np.ndim(stop_cost) == 0:
        deepest = taxonomy.depths.tolist()
        parents = taxonomy.parents.tolist()
        for p in range(taxonomy.n_nodes - 1, 0, -1):
            deepest[parents[p]] = max(deepest[parents[p]], deepest[p])
        per_level: float = check_number("stop_cost", stop_cost, least=0)
        return per_level * (np.array(deepest, dtype=np.float64) - taxonomy.depths)
    costs = np.ascontiguousarray(stop_cost, dtype=np.float64)
    if costs.shape != (taxonomy.n_nodes,):
        raise ValueError(f"stop_cost has shape {costs.shape}, expected a number or ({taxonomy.n_nodes},): one per node")
    if np.isnan(costs).any() or (costs == -np.inf).any():
        raise ValueError("stop_cost must not be NaN or minus infinity")
    return costs


def _typed_names(taxonomy: Taxonomy) -> npt.NDArray[Any]:
    """Names of all nodes: strings, integers, or objects where there are both."""
    names = np.array(taxonomy.names.tolist())
    alike = len(set(map(type, taxonomy.names))) == 1
    return names if alike else taxonomy.names


def _check_costs(loss: Any, n_classes: int) -> _Floats:
    costs: _Floats = check_array(loss, dtype=np.float64, input_name="loss")
    if costs.shape != (n_classes, n_classes):
        raise ValueError(f"loss has shape {costs.shape}, expected ({n_classes}, {n_classes}): truth by answer")
    return costs
