"""Made-up data whose classes form a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from taxolearn.readers.labelled import LabelledData
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_number

__all__ = ["HierarchyData", "make_hierarchy"]


@dataclass(frozen=True, eq=False, repr=False)
class HierarchyData(LabelledData):
    """Points around the centres of classes that form a tree.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The points.
    y : ndarray of str, shape (n_samples,)
        Their classes: paths such as "2/0/1".
    taxonomy : Taxonomy
        The tree, with all classes, drawn or not.
    """

    taxonomy: Taxonomy


def make_hierarchy(
    n_samples: int = 1000,
    *,
    branching: Sequence[int] = (4, 3, 3),
    n_features: int = 20,
    spread: float = 1.0,
    noise: float = 1.0,
    skew: float = 0.0,
    random_state: Any = None,
) -> HierarchyData:
    """Make points of classes in a tree, siblings close together.

    Every node but the root has a normally distributed displacement of its own; the centre of a class is the sum along
    its path, and its points are normally distributed around that.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    branching : sequence of int, default=(4, 3, 3)
        Children of every node, level by level; their product is the number of classes.
    n_features : int, default=20
        Number of features.
    spread : float, default=1.0
        Standard deviation of the displacements.
    noise : float, default=1.0
        Standard deviation of the points around the centre of their class.
    skew : float, default=0.0
        The k-th class is drawn in proportion to ``k ** -skew``; 0 makes all classes equally frequent.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    HierarchyData
        With ``X``, ``y`` and ``taxonomy``; ``X, y = make_hierarchy(...)`` works as well.

    Examples
    --------
    >>> from taxolearn.datasets import make_hierarchy
    >>> data = make_hierarchy(100, branching=(2, 3), random_state=0)
    >>> data.taxonomy
    Taxonomy(6 classes, 3 inner nodes, height 2)
    """
    n_samples = check_number("n_samples", n_samples, least=1, integer=True)
    n_features = check_number("n_features", n_features, least=1, integer=True)
    levels = [check_number("branching", width, least=1, integer=True) for width in branching]
    if int(np.prod(levels, dtype=object)) < 2:
        raise ValueError(
            f"branching is {tuple(branching)}, expected numbers of children that make at least two classes"
        )
    spread = check_number("spread", spread, least=0)
    noise = check_number("noise", noise, least=0)
    skew = check_number("skew", skew, least=0)
    random = check_random_state(random_state)

    labels = ["/".join(map(str, path)) for path in product(*map(range, levels))]
    taxonomy = Taxonomy.from_labels(labels)
    centres = spread * random.standard_normal((taxonomy.n_nodes, n_features))
    centres[0] = 0.0
    for node in range(1, taxonomy.n_nodes):
        centres[node] += centres[taxonomy.parents[node]]
    frequency = np.arange(1, taxonomy.n_classes + 1) ** -skew
    drawn = random.choice(random.permutation(taxonomy.n_classes), size=n_samples, p=frequency / frequency.sum())
    X = centres[taxonomy.n_inner + drawn] + noise * random.standard_normal((n_samples, n_features))
    return HierarchyData(X, taxonomy.classes[drawn], taxonomy)
