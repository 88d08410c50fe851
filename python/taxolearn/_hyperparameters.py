"""Hyperparameters as one vector of logarithms: which numbers of a model are learned, and how they act on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn import _core
from taxolearn._class_kernels import ClassKernels, _from_mapping, _function_names, assign_kernels
from taxolearn._kernel_parameters import Parameter, exact_log
from taxolearn._kernel_scale import variance_bounds
from taxolearn._kernel_start import start_kernel, start_kernels
from taxolearn._learned_parts import LearnedKernel, LearnedVariances, NamedKernel, Vector
from taxolearn._taxonomy_building import group_names
from taxolearn.coupling import ClassCoupling, make_coupling
from taxolearn.kernels import Kernel, Linear
from taxolearn.taxonomy import Taxonomy

__all__ = ["Hyperparameters", "Setting", "make_hyperparameters", "start_kernel", "start_kernels"]

Floats = npt.NDArray[np.float64]

_LARGEST_LOG = 700.0  # exp of more is infinite, of less than minus this zero


@dataclass(frozen=True)
class Setting:
    """A model's hyperparameters at one point: all that a fit needs.

    Attributes
    ----------
    theta : float64 array of shape (m,)
        The point.
    class_kernels : ClassKernels
        Kernels and coupling.
    sigma2 : float
        Prior variance of the intercepts.
    n_functions : int
        Independent functions: classes of a flat model, nodes but the root under a tree.
    matrix_factor : float or None
        By which a matrix that stands for the kernel is multiplied; None where the core evaluates the kernels.
    """

    theta: Floats
    class_kernels: ClassKernels
    sigma2: float
    n_functions: int
    matrix_factor: float | None = None

    def core_arguments(self, *, by_features: bool = True) -> dict[str, Any]:
        """Arguments of the core's criterion; the coupling has a parameter for every function.

        Parameters
        ----------
        by_features : bool, default=True
            Whether a linear kernel is left to the features themselves: then there are no kernels, and its variance is
            part of the coupling.
        """
        kernels, coupling = self.class_kernels.kernels, self.class_kernels.coupling
        variances = coupling.function_variances(self.n_functions)
        if self.matrix_factor is not None:
            core_kernels = [_core.PrecomputedKernel(self.matrix_factor)]
        elif by_features and len(kernels) == 1 and isinstance(kernels[0], Linear):
            core_kernels = []
            variances = kernels[0].variance * variances
        else:
            core_kernels = [kernel.to_core() for kernel in kernels]
        return {
            "kernels": core_kernels,
            "kernel_of": self.class_kernels.kernel_of,
            "coupling": _core_coupling(coupling.parents, variances),
            "sigma2": self.sigma2,
        }


def _core_coupling(parents: npt.NDArray[np.int64] | None, variances: Floats) -> _core.Coupling:
    """With a parameter of its own for every function."""
    functions = np.arange(len(variances), dtype=np.int64)
    if parents is None:
        return _core.IndependentCoupling(np.ascontiguousarray(variances), functions)
    return _core.TreeCoupling(
        _core.Taxonomy(parents), np.concatenate([[0.0], variances]), np.concatenate([[-1], functions])
    )


class Hyperparameters:
    """The parameters of a model that are learned, on log scale: what they are called, where they may lie, what they do.

    ``make_hyperparameters`` builds it. It does not change. No parameter is redundant:

    - A kernel that all classes share has its free parameters. Under a taxonomy the groups of ``tying`` have variances,
      and that of the kernel is held; groups of variance 0 are left out. A flat model with only one group has none.
    - Kernels of their own have their free parameters; those with the correlation of others share its parameters and
      have variances of their own. Variances of groups stay as they are.
    - In products of kernels only the first variance is learned.
    - Of kernels that are evaluated in Python, and of ``Precomputed``, only a factor is learned.

    Attributes
    ----------
    names : tuple of str
        Like "kernel.length_scale", "kernels[a].variance", "variances[level 1]" and "sigma2".
    theta : float64 array of shape (m,)
        Logarithms of the values at the start. Read-only.
    bounds : float64 array of shape (m, 2)
        Logarithms of the bounds. Read-only.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        kernels: Sequence[LearnedKernel],
        class_kernels: ClassKernels,
        variances: LearnedVariances,
        groups: Mapping[str, int],
        named: Mapping[Any, NamedKernel],
        sigma2: float,
        place_of_sigma2: int,
    ) -> None:
        self.names = tuple(parameter.name for parameter in parameters)
        self.theta: Floats = np.array([parameter.log for parameter in parameters], dtype=np.float64)
        bounds = [(parameter.low, parameter.high) for parameter in parameters]
        self.bounds: Floats = np.array(bounds, dtype=np.float64).reshape(-1, 2)
        self.theta.flags.writeable = self.bounds.flags.writeable = False
        self._kernels = list(kernels)
        self._class_kernels = class_kernels
        self._variances = variances
        self._groups = dict(groups)
        self._named = dict(named)
        self._sigma2 = sigma2
        self._place_of_sigma2 = place_of_sigma2

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Hyperparameters: {', '.join(self.names) or 'none'}>"

    @property
    def has_kernel_parameters(self) -> bool:
        """Whether the gradient needs the derivatives of kernels that the core evaluates."""
        return any(learned.learned.any() and not learned.is_matrix for learned in self._kernels)

    def at(self, theta: npt.ArrayLike) -> Setting:
        """The model at a point."""
        values = self._check(theta)
        kernels = [learned.at(values) for learned in self._kernels]
        described: Any = {name: named.at(kernels, self._kernels, values) for name, named in self._named.items()}
        sigma2 = self._sigma2
        if self._place_of_sigma2 >= 0:
            sigma2 = exact_log(float(values[self._place_of_sigma2]), sigma2)
        return Setting(
            theta=values,
            class_kernels=ClassKernels(
                kernels, self._class_kernels.kernel_of, self._coupling_at(values), described or kernels[0]
            ),
            sigma2=sigma2,
            n_functions=len(self._variances.factors),
            matrix_factor=self._kernels[0].matrix_factor(kernels[0]),
        )

    def gradient(self, setting: Setting, core_gradient: Mapping[str, Any]) -> Floats:
        """The gradient by ``theta``, from that by all parameters of the core's kernels and the variances of functions.

        Parameters
        ----------
        setting : Setting
            The point, as ``at`` gave it.
        core_gradient : mapping
            "kernels", "functions" and "sigma2", as the core's criterion gives them for the setting's arguments. Without
            ``has_kernel_parameters``, "kernels" is not read.
        """
        by_function = np.asarray(core_gradient["functions"], dtype=np.float64)
        out = np.zeros(len(self.names))
        by_kernel = core_gradient["kernels"]
        for k, learned in enumerate(self._kernels):
            if not learned.learned.any():
                continue
            if learned.is_matrix or not by_kernel:  # only a variance, which is in all functions
                out[learned.place] = by_function.sum()
            else:
                out[learned.place] = np.asarray(by_kernel[k], dtype=np.float64)[learned.learned]
        self._variances.add_gradient(by_function, out)
        if self._place_of_sigma2 >= 0:
            out[self._place_of_sigma2] = core_gradient["sigma2"]
        return out

    def table(self, theta: npt.ArrayLike) -> dict[str, Any]:
        """The values at a point, to be read: "kernel" or "kernels" by name, "sigma2", and "variances" of groups.

        For the linear kernel also its "variance". Parameters that are not learned are there too.
        """
        setting = self.at(theta)
        described = setting.class_kernels.described
        out: dict[str, Any] = {"kernels" if isinstance(described, dict) else "kernel": described}
        out["sigma2"] = setting.sigma2
        if isinstance(described, Linear):
            out["variance"] = described.variance
        by_name = setting.class_kernels.coupling.by_name
        return out | ({"variances": dict(by_name)} if by_name else {})

    def _check(self, theta: npt.ArrayLike) -> Floats:
        values = np.array(theta, dtype=np.float64)
        if values.shape != self.theta.shape:
            shown = ", ".join(self.names[:5]) + (", ..." if len(self.names) > 5 else "")
            raise ValueError(
                f"theta has shape {values.shape}, expected ({len(self.names)},) for: {shown or 'no parameter'}"
            )
        wrong = np.flatnonzero(~(np.abs(values) <= _LARGEST_LOG))
        if len(wrong) > 0:
            raise ValueError(
                f"theta: the logarithm of {self.names[wrong[0]]} must lie between -{_LARGEST_LOG:g} and "
                f"{_LARGEST_LOG:g}, got {values[wrong[0]]}"
            )
        values.flags.writeable = False
        return values

    def _coupling_at(self, theta: Floats) -> ClassCoupling:
        given = self._class_kernels.coupling
        if given.variances is None:
            return given
        variances, values = self._variances.at(theta), self._variances.values(theta)
        by_name = given.by_name | {name: values[place] for name, place in self._groups.items()}
        if given.parents is not None:
            variances = np.concatenate([[0.0], variances])
        return replace(given, variances=variances, by_name=by_name)


def make_hyperparameters(
    kernel: Any,
    taxonomy: Taxonomy | None,
    classes: npt.NDArray[Any],
    coupling: str,
    tying: Any,
    variances: Any,
    sigma2: float,
    learn_sigma2: bool,
) -> Hyperparameters:
    """The parameters that the estimator's arguments describe.

    Parameters
    ----------
    kernel
        The estimator's, without names of kernels (see ``start_kernels``).
    taxonomy : Taxonomy or None
        With a leaf for every class.
    classes : array of shape (n_classes,)
        Labels in the order of the core.
    coupling, tying, variances
        The estimator's.
    sigma2 : float
        Prior variance of the intercepts.
    learn_sigma2 : bool
        Whether it is a parameter; if it is 0 it is none.
    """
    given = make_coupling(taxonomy, coupling, tying, variances)
    assigned = assign_kernels(kernel, taxonomy, classes, given, tying)
    n_functions = len(classes) if given.parents is None else len(given.parents) - 1
    vector = Vector()
    groups: dict[str, int] = {}
    named: dict[Any, NamedKernel] = {}
    if isinstance(assigned.described, Mapping):
        names = _names_of_functions(kernel, taxonomy, classes, given, tying)
        assigned = replace(assigned, coupling=given.times(np.ones(n_functions)))
        kernels, of_functions, named = _own_kernels(assigned, names, vector)
    else:
        if taxonomy is not None and given.variances is None:
            grouped = make_coupling(taxonomy, coupling, tying, 1.0)
            given = grouped if len(grouped.by_name) > 1 else given
        has_groups = given.parents is not None or len(given.by_name) > 1
        assigned = replace(assigned, coupling=given)
        kernels = [LearnedKernel.of(assigned.kernels[0], vector, "kernel.", held=has_groups)]
        if has_groups:
            of_functions, groups = _group_variances(given, vector)
        else:
            nowhere = np.full(n_functions, -1, dtype=np.int64)
            of_functions = LearnedVariances(given.function_variances(n_functions), nowhere, {})
    place = vector.add_number("sigma2", sigma2) if learn_sigma2 and sigma2 > 0 else -1
    return Hyperparameters(vector.parameters, kernels, assigned, of_functions, groups, named, sigma2, place)


def _names_of_functions(
    kernel: Any, taxonomy: Taxonomy | None, classes: npt.NDArray[Any], coupling: ClassCoupling, tying: Any
) -> list[Any]:
    """Under which name the kernel of each function was given."""
    if isinstance(kernel, Sequence):
        kernel = dict(zip(np.sort(classes).tolist(), kernel, strict=True))
    if isinstance(kernel, Mapping):
        kernel = _from_mapping(kernel, taxonomy, coupling, tying)
    return _function_names(kernel, taxonomy, classes, coupling, tying)


def _group_variances(coupling: ClassCoupling, vector: Vector) -> tuple[LearnedVariances, dict[str, int]]:
    """A variance for each group that has one above 0; also the parameters by the names of the groups."""
    assert coupling.groups is not None
    group_of = coupling.groups if coupling.parents is None else coupling.groups[1:]
    values = np.array(list(coupling.by_name.values()))
    places = np.full(len(values), -1, dtype=np.int64)
    for group, name in enumerate(coupling.by_name):
        if values[group] > 0:
            places[group] = vector.add_number(f"variances[{name}]", float(values[group]))
    factors = np.where(values > 0, 1.0, 0.0)[group_of]
    learned = np.flatnonzero(places >= 0).tolist()
    starts = {int(places[group]): float(values[group]) for group in learned}
    names = list(coupling.by_name)
    return LearnedVariances(factors, places[group_of], starts), {names[group]: int(places[group]) for group in learned}


def _own_kernels(
    assigned: ClassKernels, names: list[Any], vector: Vector
) -> tuple[list[LearnedKernel], LearnedVariances, dict[Any, NamedKernel]]:
    """A kernel that only one name has is kept whole; of what several have, the variances are those of the functions.

    Names whose functions are all switched off by a variance of 0 have no parameters.
    """
    factors = assigned.coupling.function_variances(len(names))
    unit_of = dict(zip(names, assigned.kernel_of or [0] * len(names), strict=True))
    used = {name for name, factor in zip(names, factors.tolist(), strict=True) if factor > 0}
    members: dict[int, list[Any]] = {}
    for name, unit in unit_of.items():
        members.setdefault(unit, []).append(name)
    texts = dict(zip(unit_of, group_names(list(unit_of)), strict=True))
    kernels: dict[int, LearnedKernel] = {}
    named: dict[Any, NamedKernel] = {}
    starts: dict[int, float] = {}
    constants: dict[Any, float] = {}
    for name, unit in unit_of.items():
        given: Kernel = assigned.described[name]
        is_shared = len(members[unit]) > 1
        if unit not in kernels:
            kernel = assigned.kernels[unit] if is_shared else given
            title = _title([texts[member] for member in members[unit]], len(unit_of) if is_shared else 0)
            is_used = not used.isdisjoint(members[unit])
            kernels[unit] = LearnedKernel.of(kernel, vector, title) if is_used else LearnedKernel.fixed(kernel)
        place = -1
        if is_shared:
            variance = given._variance
            if name in used and not given._variance_is_fixed:
                place = vector.add_number(f"kernels[{texts[name]}].variance", variance, variance_bounds(given))
                starts[place] = variance
            else:
                constants[name] = variance
        named[name] = NamedKernel(given, unit, is_shared, place)
    factors = factors * np.array([constants.get(name, 1.0) for name in names])
    parameter_of = np.array([named[name].place for name in names], dtype=np.int64)
    return [kernels[k] for k in range(len(kernels))], LearnedVariances(factors, parameter_of, starts), named


def _title(texts: list[str], count: int) -> str:
    """The beginning of the names of parameters of kernels with one correlation, where there are so many in all."""
    if len(texts) == count:
        return "kernels."
    return f"kernels[{', '.join(texts[:3])}{', ...' if len(texts) > 3 else ''}]."
