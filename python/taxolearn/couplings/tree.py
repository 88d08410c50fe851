"""Couplings that a taxonomy describes: functions of nodes that add up along a path, or one per class."""

from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["Independent", "Tree"]


class Tree(BaseEstimator):
    """The function of a class is the sum of independent functions of the nodes on its path: ``coupling=Tree()``.

    Each function has the kernel's covariance times the variance of its node, so classes share as much as their paths.

    Parameters
    ----------
    tying : {"shared", "level", "subtree", "node"} or array of int, default="level"
        Which nodes share a variance: all; those of the same depth; those below the same child of the root; none. Or
        the group of every node (see ``Taxonomy.groups``).
    variances : float or array of shape (n_groups,), default=None
        Variances of the groups of nodes, relative to the kernel's; None means 1. ``Taxonomy.groups`` tells their order:
        for "level", from below the root downwards. 0 switches a group off. Learning starts from these values.

    Examples
    --------
    >>> from taxolearn import Tree
    >>> Tree(tying="subtree")
    Tree(tying='subtree')
    """

    def __init__(self, tying: Any = "level", *, variances: Any = None) -> None:
        self.tying = tying
        self.variances = variances


class Independent(BaseEstimator):
    """The functions of the classes are independent, a flat model: ``coupling=Independent()``.

    A taxonomy then serves for classes, node probabilities and decisions only.

    Parameters
    ----------
    tying : {"shared", "level", "subtree", "node"} or array of int, default="level"
        With a taxonomy: which classes share a variance, as in ``Tree``.
    variances : float or array of shape (n_groups,), default=None
        Variances of the groups that hold classes, relative to the kernel's; None means 1 for all of them.
    """

    def __init__(self, tying: Any = "level", *, variances: Any = None) -> None:
        self.tying = tying
        self.variances = variances
