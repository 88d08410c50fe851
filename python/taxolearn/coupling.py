"""How the functions of the classes go together a priori: from names and numbers to the core's coupling."""

from typing import Any

import numpy as np

from taxolearn import _core
from taxolearn._validation import check_choice
from taxolearn.taxonomy import Taxonomy

__all__ = ["make_coupling"]

_COUPLINGS = ("auto", "identity", "tree")


def make_coupling(
    taxonomy: Taxonomy | None, coupling: str, tying: Any, variances: Any
) -> tuple[_core.Coupling | None, dict[str, float]]:
    """The prior covariance of the classes, None for the identity, and the variances by the names of their groups.

    Classes are in the order of ``taxonomy.classes``. Groups of nodes that have no class count under the tree only.
    """
    check_choice("coupling", coupling, _COUPLINGS)
    if taxonomy is None:
        if coupling == "tree":
            raise ValueError('coupling="tree" needs a taxonomy; give one, or coupling="identity"')
        if variances is not None:
            raise ValueError("variances are those of the nodes of a taxonomy; without one, set the kernel's variance")
        return None, {}
    groups, names = taxonomy.groups(tying)
    if coupling == "identity":
        if variances is None:
            return None, {}
        used, groups = np.unique(groups[taxonomy.n_inner :], return_inverse=True)
        names = [names[group] for group in used.tolist()]
    values = _check_variances(variances, names)
    by_name = dict(zip(names, values.tolist(), strict=True))
    if coupling == "identity":
        return _core.IndependentCoupling(values[groups], groups), by_name
    return _core.TreeCoupling(
        _core.Taxonomy(taxonomy.parents), np.where(groups < 0, 0.0, values[groups]), groups
    ), by_name


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
