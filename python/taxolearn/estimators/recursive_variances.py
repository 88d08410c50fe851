"""Variances of recursive regularization: which nodes share one, how they are learned, and how they are told."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from taxolearn.couplings.graph import Graph
from taxolearn.kernels.argument import as_kernel
from taxolearn.kernels.per_block import PerBlock
from taxolearn.targets import Targets
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning, make_folds
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.validation import check_number

__all__ = ["as_graph", "as_recursive_tuning", "structure_of", "tied_with_root", "variances_by_group"]

_MANY_ROWS = 10_000  # from which on one of the folds is enough to learn from
_MANY_ENTRIES = 2 * 10**5  # rows times labels, from which on it is as well
_MOST_ENTRIES = 5 * 10**5  # that several variances are learned from
_LEAST_ROWS = 1000


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


def as_recursive_tuning(model: Any, targets: Targets | None = None) -> CrossValidation | None:
    """How to learn that the argument ``tuning`` means; with the rows and labels, from how many of them.

    By default a few values are compared; then, where there are several variances, all are moved in steps. These take
    derivatives, which only the logistic loss has: with many rows or labels one fold of five is held out then, and with
    very many of both some rows are left out.
    """
    if not (isinstance(model.tuning, str) and model.tuning == "cv"):
        return as_tuning(model.tuning)
    has_one_variance = model.taxonomy is None or (isinstance(model.taxonomy, Taxonomy) and model.tying == "shared")
    if len(as_kernel(model.kernel).theta) > 1:  # a length scale, say, which steps of a factor would miss
        return as_tuning(model.tuning)
    if has_one_variance:
        return CrossValidation(search="scale")
    tuning = CrossValidation(search="steps")
    if targets is None or model.loss != "logistic":
        return tuning
    n, n_labels = len(targets.labels), targets.n_classes
    if n >= _MANY_ROWS or n * n_labels >= _MANY_ENTRIES:
        folds = make_folds(targets.labels + 1, n_labels + 1, tuning.folds, check_random_state(model.random_state))
        tuning.folds = np.where(folds == 0, 0, -1)
    most = max(_LEAST_ROWS, _MOST_ENTRIES // n_labels)
    tuning.subset = most if n > most else None
    return tuning


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
