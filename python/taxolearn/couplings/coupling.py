"""How the functions of the classes go together a priori: what users write, and the coupling of the core it becomes."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from taxolearn import _core
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.couplings.graph import Graph, GraphPrecision
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_number

__all__ = ["ClassCoupling", "Independent", "Tree", "as_coupling", "make_coupling"]

_COUPLINGS = ("auto", "tree", "independent")


class Tree(BaseEstimator):
    """The function of a class is the sum of independent functions of the nodes on its path: ``coupling=Tree()``.

    Each function has the kernel's covariance times the variance of its node, so classes share as much as their paths.

    Parameters
    ----------
    tying : {"shared", "level", "subtree", "node"} or array of int, default="level"
        Which nodes share a variance: all; those of the same depth; those below the same child of the root; none. Or
        the group of every node (see ``Taxonomy.groups``).
    variances : float or array of shape (n_groups,), default=None
        Variances of the groups of nodes, relative to the kernel's; None means 1. ``Taxonomy.groups`` has their order:
        for "level", from below the root downwards. 0 switches a group off. Learning starts from these values.
    root_variance : float or "shared", default=None
        Variance of a function of the root, which all classes share, relative to the kernel's; None leaves it out. It is
        learned like the others, as a group of its own, or with "shared" as a part of the only group, that of
        ``tying="shared"``. Under softmax it changes nothing; with ``loss="independent"`` it is what all classes have in
        common against the rest.

    Examples
    --------
    >>> from taxolearn import Tree
    >>> Tree(tying="subtree")
    Tree(tying='subtree')
    """

    def __init__(
        self, tying: Any = "level", *, variances: Any = None, root_variance: float | str | None = None
    ) -> None:
        self.tying = tying
        self.variances = variances
        self.root_variance = root_variance


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


@dataclass(frozen=True)
class ClassCoupling:
    """The prior covariance ``G = R diag(variances) R' + B B'`` of the classes, in arrays that can be copied and saved.

    ``R`` maps independent functions to those of the classes: the identity, or under a tree the sum over the nodes on
    the path to a class, with a function for every node but the root. Classes are in the order of the taxonomy. On a
    graph ``G`` is the inverse of a precision instead.

    Attributes
    ----------
    parents : ndarray or None
        Of the nodes of the tree; None where classes are independent. If the root has a function too, there is one more
        node above it.
    variances : ndarray or None
        Of the functions, under a tree with an unused one for the root in front; None means all 1.
    groups : ndarray or None
        Which variances are one parameter.
    by_name : dict
        Variances by the names of their groups.
    tying : str or array
        By which nodes of the taxonomy are grouped.
    loadings : ndarray of shape (n_classes, rank) or None
        ``B``, if there is one.
    is_alone : bool
        Whether ``G`` is ``B B'`` and nothing else.
    graph : GraphPrecision or None
        The precision of functions on a graph.
    """

    parents: npt.NDArray[np.int64] | None = None
    variances: npt.NDArray[np.float64] | None = None
    groups: npt.NDArray[np.int64] | None = None
    by_name: dict[str, float] = field(default_factory=dict)
    tying: Any = "level"
    loadings: npt.NDArray[np.float64] | None = None
    is_alone: bool = False
    graph: GraphPrecision | None = None

    @property
    def is_diagonal(self) -> bool:
        """Whether classes are independent."""
        return self.parents is None and self.has_functions

    @property
    def has_functions(self) -> bool:
        """Whether each independent function belongs to a class or a node of the tree."""
        return self.loadings is None and self.graph is None

    def to_core(self) -> _core.Coupling | None:
        """The core's object; None for the identity."""
        if self.loadings is not None:
            n_classes = len(self.loadings)
            unit = _core.IndependentCoupling(np.ones(n_classes))
            base = None if self.is_alone else replace(self, loadings=None).to_core() or unit
            return _core.FactorCoupling(base, np.ascontiguousarray(self.loadings))
        if self.graph is not None:
            return self.graph.to_core()
        if self.variances is None:
            return None
        if self.parents is None:
            return _core.IndependentCoupling(self.variances, self.groups)
        return _core.TreeCoupling(_core.Taxonomy(self.parents), self.variances, self.groups)

    def n_functions(self, n_classes: int) -> int:
        """How many functions have a variance of their own; on a graph all have one."""
        if self.is_alone or self.graph is not None:
            return 0 if self.is_alone else 1
        return n_classes if self.parents is None else len(self.parents) - 1

    def function_names(self, taxonomy: Taxonomy | None, classes: npt.NDArray[Any]) -> list[Any]:
        """Names of the nodes of the tree that have functions, or of the classes."""
        if taxonomy is None or self.parents is None:
            return list(classes.tolist())
        return list(taxonomy.names[taxonomy.n_nodes + 1 - len(self.parents) :])

    def function_variances(self, n_functions: int) -> npt.NDArray[np.float64]:
        """Of the independent functions."""
        if self.variances is None:
            return np.ones(n_functions)
        return self.variances if self.parents is None else self.variances[1:]

    def without_variances(self) -> "ClassCoupling":
        """The same with all variances 1."""
        if self.parents is None:
            return ClassCoupling()
        return ClassCoupling(self.parents, np.ones(len(self.parents)))

    def times(self, factors: npt.NDArray[np.float64]) -> "ClassCoupling":
        """With the variance of every function multiplied by a factor."""
        if self.parents is not None:
            factors = np.concatenate([[1.0], factors])
        return replace(self, variances=factors if self.variances is None else self.variances * factors)


def as_coupling(coupling: Any, taxonomy: Taxonomy | None) -> Tree | Independent | LearnedCoupling | Graph:
    """The coupling that an estimator's argument means, as a value whose parts fit the taxonomy or the lack of one."""
    if isinstance(coupling, LearnedCoupling):
        if coupling.base is not None:
            _as_base(coupling.base, taxonomy, "LearnedCoupling(base={})")
        return coupling
    if isinstance(coupling, Graph):
        return coupling
    return _as_base(coupling, taxonomy, "coupling={}")


def _as_base(coupling: Any, taxonomy: Taxonomy | None, argument: str) -> Tree | Independent:
    if isinstance(coupling, str) and coupling in _COUPLINGS:
        is_tree = coupling == "tree" or (coupling == "auto" and taxonomy is not None)
        value: Any = Tree() if is_tree else Independent()
    else:
        value = coupling
    if not isinstance(value, (Tree, Independent)):
        choices = ", ".join(map(repr, _COUPLINGS))
        is_base = argument.startswith("Learned")
        others = "Tree, Independent or None" if is_base else "Tree, Independent, LearnedCoupling or Graph"
        raise ValueError(f"{'base' if is_base else 'coupling'} is {coupling!r}, expected one of {choices}, or {others}")
    if taxonomy is None and isinstance(value, Tree):
        raise ValueError(
            f"{argument.format(repr(coupling))} needs a taxonomy; give one, or {argument.format(repr('independent'))}"
        )
    return value


def make_coupling(
    taxonomy: Taxonomy | None,
    coupling: Any,
    classes: npt.NDArray[Any] | None = None,
    loadings: npt.NDArray[np.float64] | None = None,
    *,
    grouped: bool = False,
) -> ClassCoupling:
    """The coupling that the estimator's argument describes.

    Groups of nodes that have no class count under the tree only. Classes and loadings, which take the place of those
    of a ``LearnedCoupling``, are in the order of the core. With ``grouped``, independent classes have groups of
    variances even if none were given.
    """
    value = as_coupling(coupling, taxonomy)
    if isinstance(value, LearnedCoupling):
        assert classes is not None
        return _make_learned(taxonomy, value, classes, loadings, grouped)
    if isinstance(value, Graph):
        assert classes is not None
        return ClassCoupling(graph=value.precision(classes))
    if taxonomy is None:
        if value.variances is not None:
            raise ValueError("variances are those of the nodes of a taxonomy; without one, set the kernel's variance")
        return ClassCoupling()
    groups, names = taxonomy.groups(value.tying)
    if not isinstance(value, Tree):
        if value.variances is None and not grouped:
            return ClassCoupling(tying=value.tying)
        used, groups = np.unique(groups[taxonomy.n_inner :], return_inverse=True)
        names = [names[group] for group in used.tolist()]
    values = _check_variances(value.variances, names)
    by_name = dict(zip(names, values.tolist(), strict=True))
    if not isinstance(value, Tree):
        return ClassCoupling(None, values[groups], groups, by_name, value.tying)
    coupling_of_tree = ClassCoupling(
        taxonomy.parents, np.where(groups < 0, 0.0, values[groups]), groups, by_name, value.tying
    )
    return coupling_of_tree if value.root_variance is None else _with_root(coupling_of_tree, value.root_variance)


def _with_root(coupling: ClassCoupling, root_variance: float | str) -> ClassCoupling:
    """The root has a function too, in the only group or one more, the last: to the core it is a node below another."""
    assert coupling.parents is not None
    assert coupling.variances is not None
    assert coupling.groups is not None
    if isinstance(root_variance, str):
        check_choice("root_variance", root_variance, ("shared",))
        if len(coupling.by_name) > 1:
            raise ValueError(
                f'root_variance="shared" needs one variance for all nodes, as with tying="shared"; tying is '
                f"{coupling.tying!r}: give a number"
            )
        return replace(
            coupling,
            parents=np.concatenate([[-1], coupling.parents + 1]),
            variances=np.concatenate([[0.0], [next(iter(coupling.by_name.values()))], coupling.variances[1:]]),
            groups=np.concatenate([[-1, 0], coupling.groups[1:]]),
        )
    variance = check_number("root_variance", root_variance, least=0, strict=True)
    name = "root" if "root" not in coupling.by_name else "root of all"
    return replace(
        coupling,
        parents=np.concatenate([[-1], coupling.parents + 1]),
        variances=np.concatenate([[0.0, variance], coupling.variances[1:]]),
        groups=np.concatenate([[-1, len(coupling.by_name)], coupling.groups[1:]]),
        by_name=coupling.by_name | {name: variance},
    )


def _make_learned(
    taxonomy: Taxonomy | None,
    coupling: LearnedCoupling,
    classes: npt.NDArray[Any],
    loadings: npt.NDArray[np.float64] | None,
    grouped: bool,
) -> ClassCoupling:
    """The base with the loadings."""
    coupling.n_shared(len(classes))
    if loadings is None:
        given = coupling.loadings(len(classes))
        if given is None:
            raise ValueError(
                'coupling is a LearnedCoupling without B, which tuning="cv" learns; with tuning=None, give B'
            )
        loadings = given[np.argsort(np.argsort(classes, kind="stable"), kind="stable")]
    if coupling.base is None:
        return ClassCoupling(loadings=loadings, is_alone=True)
    return replace(make_coupling(taxonomy, coupling.base, grouped=grouped), loadings=loadings)


def _check_variances(variances: Any, names: list[str]) -> Any:
    """One finite variance of at least 0 per group."""
    if variances is None:
        return np.ones(len(names))
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    try:
        values = np.array(variances, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"variances is {variances!r}, expected a number or {len(names)} of them for: {shown}"
        ) from None
    if values.ndim == 0:
        values = np.full(len(names), values)
    if values.shape != (len(names),):
        raise ValueError(f"variances has shape {values.shape}, expected a number or ({len(names)},) for: {shown}")
    if not (np.isfinite(values).all() and (values >= 0).all() and (values > 0).any()):
        raise ValueError(f"variances must be finite, at least 0 and not all 0, got {values.tolist()[:5]} for: {shown}")
    return values
