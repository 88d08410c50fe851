"""Variances of recursive regularization: which nodes share one, how they are learned, and how they are told."""

from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.couplings.graph import Graph
from taxolearn.kernels.argument import as_kernel
from taxolearn.kernels.per_block import PerBlock
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.validation import check_number

__all__ = ["as_graph", "as_recursive_tuning", "structure_of", "tied_with_root", "variances_by_group"]


def structure_of(taxonomy: Any) -> Taxonomy | ClassGraph | None:
    """The tree or graph that the argument ``taxonomy`` means."""
    structure = taxonomy.graph if isinstance(taxonomy, Graph) else taxonomy
    if structure is None or isinstance(structure, (Taxonomy, ClassGraph)):
        return structure
    raise TypeError(f"taxonomy must be a taxolearn.Taxonomy, ClassGraph, Graph or None, got {type(structure).__name__}")


def as_graph(taxonomy: Any) -> Graph:
    """The prior on a graph that the argument means."""
    return taxonomy if isinstance(taxonomy, Graph) else Graph(taxonomy)


def tied_with_root(taxonomy: Taxonomy, tying: str) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Groups of all nodes and their names, where the root is in the group of all nodes or in one of its own, the last.

    The weights of the root, which all labels share, lean on zero.
    """
    groups, names = taxonomy.groups(tying)
    groups = groups.copy()
    if tying == "shared":
        groups[0] = 0
        return groups, names
    groups[0] = len(names)
    return groups, [*names, "root" if "root" not in names else "root of all"]


def as_variances(C: Any, names: list[str], *, has_tree: bool) -> npt.NDArray[np.float64]:
    """Variances of the groups with these names that the argument ``C`` means, a number or one for each."""
    if np.ndim(C) == 0:
        return np.full(len(names), check_number("C", C, least=0, strict=True))
    values = np.asarray(C, dtype=np.float64)
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    if values.shape != (len(names),):
        expected = f"({len(names)},) for: {shown}" if has_tree else "a number without a taxonomy"
        raise ValueError(f"C has shape {values.shape}, expected {expected}")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"C must be finite and above 0, got {values.tolist()[:5]} for: {shown}")
    return values


def as_recursive_tuning(model: Any) -> CrossValidation | None:
    """How to learn that the argument ``tuning`` means: for a variance and nothing else, a few values are compared."""
    is_tree = isinstance(model.taxonomy, Taxonomy)
    has_one_variance = model.taxonomy is None or (is_tree and model.tying == "shared")
    has_variance_only = len(as_kernel(model.kernel).theta) <= 1
    if isinstance(model.tuning, str) and model.tuning == "cv" and has_one_variance and has_variance_only:
        return CrossValidation(search="scale")
    return as_tuning(model.tuning)


def variances_by_group(table: Hyperparameters) -> Any:
    """``C_`` of a model with these hyperparameters: a variance, or those of groups by name where there are several.

    In place of a variance there are those of the blocks by name, where inputs are blocks.
    """
    by_name = {name: _scaled_variance(table.kernel, value) for name, value in table.variances.items()}
    if not by_name:
        return _scaled_variance(table.kernel, 1.0)
    return by_name if len(by_name) > 1 else next(iter(by_name.values()))


def _scaled_variance(kernel: Any, factor: float) -> Any:
    if isinstance(kernel, PerBlock):
        return {name: _scaled_variance(kernel[name], factor) for name in kernel.names}
    return float(kernel.total_variance * factor)
