"""What metrics of a hierarchy take: a node for each item, or sets of nodes with all above them."""

from typing import Any, NamedTuple

import numpy as np

from taxolearn.metrics.inputs import IntArray, LabelSets, ListedSets, SetPair, check_lengths, listed_labels, read_items
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["NodePair", "read_nodes", "read_taxonomy"]


class NodePair(NamedTuple):
    """True and predicted node of the same items."""

    true: IntArray
    predicted: IntArray


def read_taxonomy(taxonomy: Any) -> Taxonomy:
    """Return the taxonomy, or refuse what is none."""
    if not isinstance(taxonomy, Taxonomy):
        raise ValueError(f"taxonomy must be a taxolearn.Taxonomy, got {type(taxonomy).__name__}")
    return taxonomy


def read_nodes(y_true: Any, y_pred: Any, taxonomy: Taxonomy, *, close: bool) -> NodePair | SetPair:
    """Read truth and prediction as node numbers if both have one label per item, else as sets of nodes but the root.

    A label and an indicator of classes stand for whole paths. An indicator of nodes is taken as it stands, or with
    ``close`` gets the ancestors of its nodes.
    """
    read_taxonomy(taxonomy)
    parts: list[IntArray | LabelSets | ListedSets] = []
    for name, y in (("y_true", y_true), ("y_pred", y_pred)):
        labels = read_items(name, y, mixed=True)
        if isinstance(labels, LabelSets):
            if labels.width not in (taxonomy.n_nodes, taxonomy.n_classes):
                raise ValueError(
                    f"{name} has {labels.width} columns, expected {taxonomy.n_nodes} (the nodes of the taxonomy) or "
                    f"{taxonomy.n_classes} (its classes)"
                )
            parts.append(labels)
        elif isinstance(labels, ListedSets):
            none = np.empty(0, dtype=np.int64)
            nodes = taxonomy.index(labels.labels, argument=name) if len(labels.labels) > 0 else none
            parts.append(labels._replace(labels=np.asarray(nodes, dtype=np.int64)))
        else:
            parts.append(np.asarray(taxonomy.index(labels, argument=name), dtype=np.int64))
    true, predicted = parts
    check_lengths(*(len(part) if isinstance(part, np.ndarray) else part.n for part in parts))
    if isinstance(true, np.ndarray) and isinstance(predicted, np.ndarray):
        return NodePair(true, predicted)
    return SetPair(*(_node_sets(listed_labels(part), taxonomy, close=close) for part in parts))


def _node_sets(part: LabelSets | ListedSets, taxonomy: Taxonomy, *, close: bool) -> LabelSets:
    if isinstance(part, LabelSets):
        n, rows, nodes = part.n, part.rows, part.columns
        if part.width != taxonomy.n_nodes:
            nodes = nodes + taxonomy.n_inner
            close = True
    else:
        (n, rows, nodes), close = part, True
    below = nodes > 0
    rows, nodes = rows[below], nodes[below]
    keys = rows * taxonomy.n_nodes + nodes
    if not close:
        return LabelSets(n, taxonomy.n_nodes, keys)
    parts = [keys]
    while len(nodes) > 0:
        nodes = taxonomy.parents[nodes]
        below = nodes > 0
        rows, nodes = rows[below], nodes[below]
        parts.append(rows * taxonomy.n_nodes + nodes)
    keys = np.sort(np.concatenate(parts))  # paths meet, so some come twice
    return LabelSets(n, taxonomy.n_nodes, keys[np.diff(keys, prepend=-1) > 0])
