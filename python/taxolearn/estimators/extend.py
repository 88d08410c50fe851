"""Classes that join the tree after the fit: what the model knows of them without an example.

Under the tree the function of a class is the sum of those of the nodes on its path. Of a new leaf nothing is known, so
its own function is zero, the mean of its prior, and its sum is that of the lowest node above it that the model has.
These sums follow from the functions of the classes alone: the most probable sums at inner nodes, given those at the
leaves, are their means given the leaves, and these come from the leaves upwards and then from the root downwards, as
in all Gaussian models on trees.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.couplings.coupling import ClassCoupling, Tree, as_coupling
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.couplings.graph import Graph
from taxolearn.fitting.functions import ClassFunctions, KernelFunctions, LinearFunctions
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["extend_functions", "weights_of_leaves"]

Floats = npt.NDArray[np.float64]

_LEAST_VARIANCE = 1e-12  # relative to the largest: what stands for groups that are switched off


def _node_variances(model: Any, taxonomy: Any) -> Floats:
    """Find the variances of the nodes of a fitted model, relative to its kernel; refuse models that cannot grow."""
    if not isinstance(taxonomy, Taxonomy):
        raise TypeError(f"taxonomy must be a taxolearn.Taxonomy, got {type(taxonomy).__name__}")
    coupling = as_coupling(model.coupling, model.taxonomy_)
    if isinstance(coupling, LearnedCoupling):
        raise ValueError("a LearnedCoupling has no loadings for new classes; fit it anew, or one with the tree alone")
    if isinstance(coupling, Graph):
        raise ValueError("a Graph says nothing of the nodes of a tree; fit anew with the larger graph and its classes")
    if not isinstance(coupling, Tree):
        raise ValueError(
            "the classes of this model are independent, so it knows nothing of new ones; fit it with a tree"
        )
    if coupling.root_variance is not None:
        raise ValueError(
            "the root of this model's tree has a function; fit with Tree(root_variance=None) to let it grow"
        )
    if sp.issparse(getattr(model, "coef_", None)):  # probabilities did not change, but the functions
        raise ValueError("the model was pruned; give it the larger tree before it is pruned")
    tying = coupling.tying
    if not isinstance(tying, str) and len(tying) != taxonomy.n_nodes:
        raise ValueError(
            f"tying numbers the {len(tying)} nodes of the model's tree, but the new one has {taxonomy.n_nodes}; "
            'fit with tying="level", "subtree", "node" or "shared"'
        )
    groups, names = model.taxonomy_.groups(tying)
    known = model.hyperparameters_.variances
    # Nodes that came without a fit have groups that nobody knows; their functions are zero under any variance.
    values = np.array([known.get(name, max(known.values())) for name in names])
    return np.where(groups < 0, 0.0, values[groups])


def weights_of_leaves(taxonomy: Taxonomy, variances: Floats, nodes: npt.NDArray[np.int64]) -> sp.csr_array:
    """The sums at some nodes as combinations of those at the leaves: (nodes, classes), classes as in the taxonomy.

    Parameters
    ----------
    taxonomy : Taxonomy
        The tree.
    variances : array of shape (n_nodes,)
        Of the functions of the nodes; that of the root is not read.
    nodes : array of int
        Inner nodes.
    """
    own = np.maximum(variances, _LEAST_VARIANCE * variances[1:].max())
    below = np.zeros(taxonomy.n_nodes)  # variance of a node's sum, given the leaves below it
    share = np.ones(taxonomy.n_nodes)  # of a child in its parent's mean given the leaves below
    precisions = np.zeros(taxonomy.n_nodes)  # of a node's sum, given the leaves below it
    for depth in range(taxonomy.height, 0, -1):
        nodes_here = np.flatnonzero(taxonomy.depths == depth)
        inner, above = nodes_here[nodes_here < taxonomy.n_inner], taxonomy.parents[nodes_here]
        below[inner] = 1.0 / precisions[inner]
        share[nodes_here] = 1.0 / (below[nodes_here] + own[nodes_here])
        np.add.at(precisions, above, share[nodes_here])
        share[nodes_here] /= precisions[above]
    rows, columns, values = [], [], []
    for k, node in enumerate(nodes.tolist()):
        factor, p = 1.0, node
        weights = np.zeros(taxonomy.n_classes)
        while p > 0:
            from_below = own[p] / (own[p] + below[p])
            weights[taxonomy.leaf_begin[p] : taxonomy.leaf_end[p]] += factor * from_below * _means(taxonomy, share, p)
            factor *= 1.0 - from_below
            p = int(taxonomy.parents[p])
        used = np.flatnonzero(weights)
        rows.append(np.full(len(used), k))
        columns.append(used)
        values.append(weights[used])
    shape = (len(nodes), taxonomy.n_classes)
    if not rows:
        return sp.csr_array(shape)
    return sp.csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def _means(taxonomy: Taxonomy, share: Floats, node: int) -> Floats:
    """Weights of the leaves below a node in its mean given them."""
    first, last = int(taxonomy.leaf_begin[node]), int(taxonomy.leaf_end[node])
    out = np.ones(last - first)
    at = np.arange(first, last) + taxonomy.n_inner
    above = at != node
    while above.any():
        out[above] *= share[at[above]]
        at[above] = taxonomy.parents[at[above]]
        above = at != node
    return out


@dataclass(frozen=True)
class _Growth:
    """Where the classes of a larger tree come from.

    Attributes
    ----------
    anchors : array of int, shape (n_new_classes,)
        Per leaf of the new tree, in its order, the lowest node above or at it that the old tree has.
    crowd : array of int
        Of how many leaves of the new tree this is the anchor, if it is a leaf of the old one; else 1.
    """

    anchors: npt.NDArray[np.int64]
    crowd: npt.NDArray[np.int64]


def _compare(old: Taxonomy, new: Taxonomy) -> _Growth:
    number = {name: k for k, name in enumerate(old.names.tolist())}
    if new.names[0] != old.names[0]:
        number.pop(old.names[0])
        number[new.names[0]] = 0
    anchors = np.empty(new.n_nodes, dtype=np.int64)
    found = 0
    for k, name in enumerate(new.names.tolist()):
        above = int(anchors[new.parents[k]]) if k > 0 else 0
        here = number.get(name, -1)
        if here > 0 and (old.parents[here] != above or new.names[new.parents[k]] not in number):
            raise ValueError(
                f"taxonomy: {name!r} is below {new.names[new.parents[k]]!r}, but below "
                f"{old.names[old.parents[here]]!r} in the model's tree; only new nodes can be added, fit anew otherwise"
            )
        found += here >= 0
        anchors[k] = above if here < 0 else here
    if found < old.n_nodes:
        missing = sorted(set(old.names[1:].tolist()) - set(new.names.tolist()), key=str)
        raise ValueError(f"taxonomy lacks nodes of the model's tree: {missing[:5]}; nodes can be added, not taken away")
    for k in range(new.n_inner):
        here = number.get(new.names[k], -1)
        if here >= old.n_inner and old.names[old.parents[here]] == f"{new.names[k]}{old.separator}*":
            raise ValueError(
                f"taxonomy: {new.names[k]!r} is a class of its own in the model's tree, at the inner node "
                f"{old.names[old.parents[here]]!r}; put new leaves below that node"
            )
    anchors = anchors[new.n_inner :]
    counts = np.bincount(anchors, minlength=old.n_nodes)
    return _Growth(anchors, np.where(anchors >= old.n_inner, counts[anchors], 1))


def extend_functions(model: Any, functions: ClassFunctions, new: Any) -> tuple[ClassFunctions, npt.NDArray[Any]]:
    """The functions of a fitted model for the classes of a larger tree, and these classes, sorted.

    A new leaf has the function of the node above it and the intercept zero, the mean of all. Leaves below
    one that was a class share its probability evenly.
    """
    variances = _node_variances(model, new)
    old: Taxonomy = model.taxonomy_
    growth = _compare(old, new)
    order = np.argsort(new.classes, kind="stable")
    anchors, crowd = growth.anchors[order], growth.crowd[order]
    place = np.empty(old.n_classes, dtype=np.int64)  # of the old classes, in sorted order
    place[np.argsort(old.classes, kind="stable")] = np.arange(old.n_classes)
    is_class = anchors >= old.n_inner
    intercept = np.zeros(len(anchors))
    # Probabilities come from predictors divided by the temperature.
    shared = model.hyperparameters_.temperature * np.log(crowd[is_class])
    intercept[is_class] = functions.intercept[place[anchors[is_class] - old.n_inner]] - shared
    if isinstance(functions, KernelFunctions) and functions.kernel_of:
        return _extend_nodes(functions, old, new, order, intercept), new.classes[order]
    inner, which = np.unique(anchors[~is_class], return_inverse=True)
    sums = weights_of_leaves(old, variances, inner).tocoo()
    new_rows, old_columns = np.flatnonzero(is_class), place[anchors[is_class] - old.n_inner]
    means = sp.csr_array((sums.data, (sums.row, place[sums.col])), shape=sums.shape)[which].tocoo()
    weights = sp.csr_array(
        (
            np.concatenate([np.ones(len(new_rows)), means.data]),
            (
                np.concatenate([new_rows, np.flatnonzero(~is_class)[means.row]]),
                np.concatenate([old_columns, means.col]),
            ),
        ),
        shape=(len(anchors), old.n_classes),
    )
    classes = new.classes[order]
    if isinstance(functions, LinearFunctions):
        return LinearFunctions(weights.astype(functions.coef.dtype) @ functions.coef, intercept), classes
    (expansion,) = functions.expansions
    grown = expansion.with_columns(lambda columns: columns @ weights.T, tuple(classes.tolist()))
    changed: dict[str, Any] = {"expansions": [grown], "intercept": intercept}
    if isinstance(functions, KernelFunctions):
        changed |= {"order": order, "coupling": _unit_coupling(new)}
    return replace(functions, **changed), classes  # type: ignore[type-var]


def _extend_nodes(
    functions: KernelFunctions, old: Taxonomy, new: Taxonomy, order: npt.NDArray[np.intp], intercept: Floats
) -> KernelFunctions:
    """Where nodes have kernels of their own, those of new nodes are zero; which kernel they have does not matter."""
    kernel_of = dict(zip(old.names[1:].tolist(), functions.kernel_of, strict=True))
    names = new.names[1:].tolist()
    owners = [kernel_of.get(name, 0) for name in names]
    expansions = []
    for k, expansion in enumerate(functions.expansions):
        column = {name: j for j, name in enumerate(expansion.functions)}
        own = [name for name, owner in zip(names, owners, strict=True) if owner == k]
        places = np.array([column.get(name, -1) for name in own], dtype=np.intp)
        expansions.append(expansion.with_columns(partial(_columns_at, places), tuple(own)))
    return KernelFunctions(expansions, owners, _unit_coupling(new), intercept, order)


def _columns_at(places: npt.NDArray[np.intp], values: Floats) -> Floats:
    """Columns of a matrix; zeros for the place -1."""
    out = np.zeros((len(values), len(places)))
    out[:, places >= 0] = values[:, places[places >= 0]]
    return out


def _unit_coupling(taxonomy: Taxonomy) -> ClassCoupling:
    return ClassCoupling(taxonomy.parents, np.ones(taxonomy.n_nodes))
