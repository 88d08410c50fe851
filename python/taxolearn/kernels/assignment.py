"""Which kernel the function of every class, node or group has: from what users write to what the core takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.kernels.base import Kernel
from taxolearn.kernels.own import PerClass, PerGroup, PerNode
from taxolearn.kernels.registry import as_kernel, start_kernel
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["ClassKernels", "assign_kernels", "from_mapping", "function_names", "reads_kernel_values", "start_kernels"]


@dataclass(frozen=True)
class ClassKernels:
    """Kernels of the independent functions of a model.

    Attributes
    ----------
    kernels : list of Kernel
        The distinct ones. A single kernel is for all functions and keeps its variance; of several, the variances are
        in the coupling.
    kernel_of : list of int
        Which of them each function has; empty for a single one.
    coupling : ClassCoupling
        The coupling, with the variances of the kernels multiplied in where they differ.
    described : Kernel or dict
        The kernel, or kernels by the names they were given for.
    """

    kernels: list[Kernel]
    kernel_of: list[int]
    coupling: ClassCoupling
    described: Any


def assign_kernels(
    kernel: Any, taxonomy: Taxonomy | None, classes: npt.NDArray[Any], coupling: ClassCoupling
) -> ClassKernels:
    """Read the estimator's ``kernel``. Classes and functions are in the order of the core."""
    if isinstance(kernel, Sequence) and not isinstance(kernel, str):
        if coupling.parents is not None:
            raise ValueError(
                "a list of kernels is for flat models; under the tree, map the names of nodes or groups to kernels"
            )
        if len(kernel) != len(classes):
            raise ValueError(
                f"kernel has {len(kernel)} elements, expected one kernel, or one for each of the {len(classes)} classes"
            )
        # A list is in the order of classes_, which is sorted.
        kernel = dict(zip(np.sort(classes).tolist(), kernel, strict=True))
    if isinstance(kernel, Mapping):
        kernel = from_mapping(kernel, taxonomy, coupling)
    if not isinstance(kernel, (PerClass, PerNode, PerGroup)):
        shared = as_kernel(kernel)
        return ClassKernels([shared], [], coupling, shared)
    if coupling.loadings is not None:
        raise ValueError(
            "kernel gives kernels of their own to classes or nodes, but under a LearnedCoupling these share functions: "
            'give one kernel for all, or another coupling ("independent" or "tree")'
        )
    names = function_names(kernel, taxonomy, classes, coupling)
    distinct = list(dict.fromkeys(names))
    units, index, variances = kernel.assign(distinct)
    units, index = _merge_without_parameters(units, index)
    place = {name: k for k, name in enumerate(distinct)}
    kernel_of = [index[place[name]] for name in names]
    coupling = coupling.times(np.array([variances[place[name]] for name in names]))
    given = kernel.kernel
    described = {name: as_kernel(given[name] if isinstance(given, Mapping) else given) for name in distinct}
    if len(units) == 1:
        kernel_of = []
    elif not all(unit.is_native and not unit.is_precomputed for unit in units):
        raise ValueError(
            "own kernels must be kernels of taxolearn that read features; a Function or Precomputed kernel can only be "
            'shared by all classes, with variances of their own by share="correlation"'
        )
    return ClassKernels(units, kernel_of, coupling, described)


def start_kernels(kernel: Any, X: Any) -> Any:
    """What the user gave as ``kernel``, with names of kernels replaced by kernels whose values suit the inputs."""
    if isinstance(kernel, str):
        return start_kernel(kernel, X)
    if isinstance(kernel, (PerClass, PerNode, PerGroup)):
        return replace(kernel, kernel=start_kernels(kernel.kernel, X))
    if isinstance(kernel, Mapping):
        return {name: start_kernels(own, X) for name, own in kernel.items()}
    if isinstance(kernel, Sequence):
        return [start_kernels(own, X) for own in kernel]
    return kernel


def reads_kernel_values(kernel: Any) -> bool:
    """Whether an estimator with this kernel takes kernel values for inputs instead of features."""
    kernels = getattr(kernel, "kernel", kernel)  # of PerClass and its like
    if isinstance(kernels, Mapping):
        kernels = list(kernels.values())
    each = kernels if isinstance(kernels, (list, tuple)) else [kernels]
    return any(isinstance(kernel, Kernel) and kernel.is_precomputed for kernel in each)


def from_mapping(
    kernels: Mapping[Any, Any], taxonomy: Taxonomy | None, coupling: ClassCoupling
) -> PerClass | PerNode | PerGroup:
    """A plain mapping: by its keys for groups, for nodes, or for classes. Equal correlations are stored once."""
    if taxonomy is not None and kernels.keys() <= set(taxonomy.groups(coupling.tying)[1]):
        return PerGroup(kernels, share="equal")
    if taxonomy is None or coupling.parents is None:
        return PerClass(kernels, share="equal")
    if kernels.keys() <= set(taxonomy.classes.tolist()):
        raise ValueError(
            "kernel maps classes to kernels, but under the tree functions belong to nodes: map the names of all nodes "
            'below the root, or of the groups of tying, or use coupling="independent"'
        )
    return PerNode(kernels, share="equal")


def function_names(
    kernel: PerClass | PerNode | PerGroup,
    taxonomy: Taxonomy | None,
    classes: npt.NDArray[Any],
    coupling: ClassCoupling,
) -> list[Any]:
    """For every function, the name under which its kernel was given."""
    is_tree = coupling.parents is not None
    if isinstance(kernel, PerClass):
        if is_tree:
            raise ValueError(
                "PerClass gives kernels to the functions of a flat model; under the tree functions belong to nodes: "
                'use PerNode or PerGroup, or coupling="independent"'
            )
        return list(classes.tolist())
    if taxonomy is None:
        raise ValueError(f"{type(kernel).__name__} needs a taxonomy; without one, use PerClass")
    if isinstance(kernel, PerNode):
        if not is_tree:
            raise ValueError('PerNode gives kernels to the nodes of a tree; with coupling="independent", use PerClass')
        return list(taxonomy.names[1:])
    groups, names = taxonomy.groups(coupling.tying)
    first = 1 if is_tree else taxonomy.n_inner
    return [names[group] for group in groups[first:].tolist()]


def _merge_without_parameters(units: list[Kernel], index: list[int]) -> tuple[list[Kernel], list[int]]:
    """Equal kernels that have nothing to learn but their variances, like ``Linear``, are one."""
    places: dict[Any, int] = {}
    kept: list[Kernel] = []
    moved = []
    for k, unit in enumerate(units):
        key: Any = unit if len(unit.theta) == 0 else k
        if key not in places:
            places[key] = len(kept)
            kept.append(unit)
        moved.append(places[key])
    return kept, [moved[k] for k in index]
