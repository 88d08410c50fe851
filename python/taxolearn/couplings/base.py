"""How the functions of the classes go together a priori: from names and numbers to the core's coupling."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn import _core
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["ClassCoupling", "make_coupling"]

_COUPLINGS = ("auto", "identity", "tree")


@dataclass(frozen=True)
class ClassCoupling:
    """The prior covariance ``G = R diag(variances) R' + B B'`` of the classes, in arrays that can be copied and saved.

    ``R`` maps independent functions to those of the classes: the identity, or under a tree the sum over the nodes on
    the path to a class, with a function for every node but the root. Classes are in the order of the taxonomy.

    Attributes
    ----------
    parents : ndarray or None
        Of the nodes of the tree; None where classes are independent.
    variances : ndarray or None
        Of the functions, under a tree with an unused one for the root in front; None means all 1.
    groups : ndarray or None
        Which variances are one parameter.
    by_name : dict
        Variances by the names of their groups.
    loadings : ndarray of shape (n_classes, rank) or None
        ``B``, if there is one.
    is_alone : bool
        Whether ``G`` is ``B B'`` and nothing else.
    """

    parents: npt.NDArray[np.int64] | None = None
    variances: npt.NDArray[np.float64] | None = None
    groups: npt.NDArray[np.int64] | None = None
    by_name: dict[str, float] = field(default_factory=dict)
    loadings: npt.NDArray[np.float64] | None = None
    is_alone: bool = False

    @property
    def is_diagonal(self) -> bool:
        """Whether classes are independent."""
        return self.parents is None and self.loadings is None

    def to_core(self) -> _core.Coupling | None:
        """The core's object; None for the identity."""
        if self.loadings is not None:
            n_classes = len(self.loadings)
            unit = _core.IndependentCoupling(np.ones(n_classes))
            base = None if self.is_alone else replace(self, loadings=None).to_core() or unit
            return _core.FactorCoupling(base, np.ascontiguousarray(self.loadings))
        if self.variances is None:
            return None
        if self.parents is None:
            return _core.IndependentCoupling(self.variances, self.groups)
        return _core.TreeCoupling(_core.Taxonomy(self.parents), self.variances, self.groups)

    def n_factors(self, n_functions: int) -> int:
        """Of independent functions and those that are shared."""
        shared = 0 if self.loadings is None else self.loadings.shape[1]
        return shared if self.is_alone else n_functions + shared

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


def make_coupling(
    taxonomy: Taxonomy | None,
    coupling: Any,
    tying: Any,
    variances: Any,
    classes: npt.NDArray[Any] | None = None,
    loadings: npt.NDArray[np.float64] | None = None,
) -> ClassCoupling:
    """The coupling that the estimator's arguments describe.

    Groups of nodes that have no class count under the tree only. Classes and loadings, which take the place of those
    of a ``LearnedCoupling``, are in the order of the core.
    """
    if isinstance(coupling, LearnedCoupling):
        assert classes is not None
        return _make_learned(taxonomy, coupling, tying, variances, classes, loadings)
    if not isinstance(coupling, str) or coupling not in _COUPLINGS:
        choices = ", ".join(map(repr, _COUPLINGS))
        raise ValueError(f"coupling is {coupling!r}, expected one of {choices}, or a LearnedCoupling")
    if taxonomy is None:
        if coupling == "tree":
            raise ValueError('coupling="tree" needs a taxonomy; give one, or coupling="identity"')
        if variances is not None:
            raise ValueError("variances are those of the nodes of a taxonomy; without one, set the kernel's variance")
        return ClassCoupling()
    groups, names = taxonomy.groups(tying)
    if coupling == "identity":
        if variances is None:
            return ClassCoupling()
        used, groups = np.unique(groups[taxonomy.n_inner :], return_inverse=True)
        names = [names[group] for group in used.tolist()]
    values = _check_variances(variances, names)
    by_name = dict(zip(names, values.tolist(), strict=True))
    if coupling == "identity":
        return ClassCoupling(None, values[groups], groups, by_name)
    return ClassCoupling(taxonomy.parents, np.where(groups < 0, 0.0, values[groups]), groups, by_name)


def _make_learned(
    taxonomy: Taxonomy | None,
    coupling: LearnedCoupling,
    tying: Any,
    variances: Any,
    classes: npt.NDArray[Any],
    loadings: npt.NDArray[np.float64] | None,
) -> ClassCoupling:
    """The base with the loadings."""
    coupling.n_shared(len(classes))
    base = coupling.base_name(taxonomy is not None)
    if loadings is None:
        given = coupling.loadings(len(classes))
        if given is None:
            raise ValueError(
                'coupling is a LearnedCoupling without B, which hyperparameters="cv" learns; with "fixed", give B'
            )
        loadings = given[np.argsort(np.argsort(classes, kind="stable"), kind="stable")]
    if base == "none":
        if variances is not None:
            raise ValueError('variances belong to functions that LearnedCoupling(base="none") leaves out; omit them')
        return ClassCoupling(loadings=loadings, is_alone=True)
    return replace(make_coupling(taxonomy, base, tying, variances, classes), loadings=loadings)


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
