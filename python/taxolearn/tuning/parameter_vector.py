"""Hyperparameters as one vector, on log scale but for loadings: what is learned of a model, and how it acts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn import _core
from taxolearn.couplings.coupling import ClassCoupling, make_coupling
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.kernels.argument import ClassKernels, assign_kernels, from_mapping, function_names
from taxolearn.kernels.base import Kernel
from taxolearn.kernels.inner_product import Linear
from taxolearn.kernels.leaf import exact_log
from taxolearn.taxonomy.nodes import group_names
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.hyperparameters import (
    Hyperparameters,
    LearnedKernel,
    LearnedLoadings,
    LearnedVariances,
    NamedKernel,
    Vector,
    variance_bounds,
)

__all__ = ["ModelAtTheta", "ParameterVector", "PriorGradient", "make_parameters"]

Floats = npt.NDArray[np.float64]

_LARGEST_LOG = 700.0  # exp of more is infinite, of less than minus this zero


@dataclass(frozen=True)
class ModelAtTheta:
    """A model at one point of its hyperparameters: all that a fit needs.

    Attributes
    ----------
    theta : float64 array of shape (m,)
        The point.
    class_kernels : ClassKernels
        Kernels and coupling.
    intercept_variance : float
        Prior variance of the intercepts.
    n_functions : int
        Independent functions: classes of a flat model, nodes but the root under a tree; those that classes share by
        loadings are not counted. All of those on a graph count as one, as they have one variance.
    matrix_factor : float or None
        By which a matrix that stands for the kernel is multiplied; None where the core evaluates the kernels.
    """

    theta: Floats
    class_kernels: ClassKernels
    intercept_variance: float
    n_functions: int
    matrix_factor: float | None = None

    def prior(self, *, by_features: bool = True) -> _core.Prior:
        """The prior in the core's form; its coupling has a parameter for every function, every loading and a ridge.

        Parameters
        ----------
        by_features : bool, default=True
            Whether a linear kernel is left to the features themselves: then there are no kernels, and its variance is
            part of the coupling.
        """
        kernels, coupling = self.class_kernels.kernels, self.class_kernels.coupling
        variances = coupling.function_variances(self.n_functions)
        factor = self._factor(by_features)
        if self.matrix_factor is not None:
            core_kernels = [_core.PrecomputedKernel(self.matrix_factor)]
        elif factor is not None:
            core_kernels = []
        else:
            core_kernels = [kernel.to_core() for kernel in kernels]
        return _core.Prior(
            kernels=core_kernels,
            kernel_of=self.class_kernels.kernel_of,
            coupling=_core_coupling(coupling, variances, 1.0 if factor is None else factor),
            intercept_variance=self.intercept_variance,
        )

    def _factor(self, by_features: bool) -> float | None:
        """The variance of a linear kernel that is left to the features; None for others."""
        kernels = self.class_kernels.kernels
        if by_features and self.matrix_factor is None and len(kernels) == 1 and isinstance(kernels[0], Linear):
            return float(kernels[0].variance)
        return None

    def by_loading(self, core_gradient: Floats, *, by_features: bool) -> Floats:
        """Derivatives by the entries of ``B``, from those that the core gives by those of its coupling."""
        factor = self._factor(by_features)
        return core_gradient if factor is None else np.sqrt(factor) * core_gradient


@dataclass(frozen=True)
class PriorGradient:
    """Derivatives of the criterion by all that the core's prior has.

    Attributes
    ----------
    kernels : list of arrays
        By the logarithms of the parameters of each kernel; empty where these were left out.
    functions : array
        By the logarithms of the variances of all functions, then by the loadings or the logarithm of the ridge.
    intercept_variance : float
        By the logarithm of it.
    """

    kernels: list[Floats]
    functions: Floats
    intercept_variance: float

    @classmethod
    def of(cls, criterion: _core.Criterion) -> "PriorGradient":
        return cls(criterion.kernel_gradient, criterion.function_gradient, criterion.intercept_variance_gradient)


def _core_coupling(coupling: ClassCoupling, variances: Floats, factor: float) -> _core.Coupling:
    """All variances times a factor, with a parameter of its own for every function, every loading and a ridge."""
    if coupling.graph is not None:
        return coupling.graph.to_core(factor * float(variances[0]))
    if coupling.loadings is not None:
        base = None if coupling.is_alone else _core_coupling(replace(coupling, loadings=None), variances, factor)
        return _core.FactorCoupling(base, np.ascontiguousarray(np.sqrt(factor) * coupling.loadings))
    parents, variances = coupling.parents, factor * variances
    functions = np.arange(len(variances), dtype=np.int64)
    if parents is None:
        return _core.IndependentCoupling(np.ascontiguousarray(variances), functions)
    return _core.TreeCoupling(
        _core.Taxonomy(parents), np.concatenate([[0.0], variances]), np.concatenate([[-1], functions])
    )


class ParameterVector:
    """The parameters of a model that are learned: what they are called, where they may lie, what they do.

    ``make_parameters`` builds it. It does not change. No parameter is redundant:

    - A kernel that all classes share has its free parameters. Under a taxonomy the groups of ``tying`` have variances,
      and that of the kernel is held; groups of variance 0 are left out. A flat model with only one group has none.
    - Kernels of their own have their free parameters; those with the correlation of others share its parameters and
      have variances of their own. Variances of groups stay as they are.
    - In products of kernels only the first variance is learned.
    - Of kernels that are evaluated in Python, and of ``Precomputed``, only a factor is learned.
    - The ridge of a ``Graph`` is learned beside the variance of the kernel.
    - Loadings of a ``LearnedCoupling`` have a variance, the mean diagonal of ``B B'``, unless they are alone: then that
      of the kernel is it. What remains of them is on no log scale: the entries of ``B`` divided by its norm. Their own
      norm is held by the penalty only.

    Attributes
    ----------
    names : tuple of str
        Like "kernel.length_scale", "kernels[a].variance", "variances[level 1]", "coupling.B[a, 0]", "coupling.ridge"
        and "intercept_variance".
    theta : float64 array of shape (m,)
        Logarithms of the values at the start; of loadings the values. Read-only.
    bounds : float64 array of shape (m, 2)
        Logarithms of the bounds; of loadings the bounds. Read-only.
    is_log : bool array of shape (m,)
        Which parameters are on log scale. Read-only.
    """

    def __init__(
        self,
        vector: Vector,
        kernels: Sequence[LearnedKernel],
        class_kernels: ClassKernels,
        variances: LearnedVariances,
        groups: Mapping[str, int],
        named: Mapping[Any, NamedKernel],
        intercept_variance: float,
        place_of_intercept: int,
        loadings: LearnedLoadings | None = None,
        place_of_ridge: int = -1,
        *,
        order: npt.NDArray[np.intp],
    ) -> None:
        parameters = vector.parameters
        self.names = tuple(parameter.name for parameter in parameters)
        self.theta: Floats = np.array([parameter.log for parameter in parameters], dtype=np.float64)
        bounds = [(parameter.low, parameter.high) for parameter in parameters]
        self.bounds: Floats = np.array(bounds, dtype=np.float64).reshape(-1, 2)
        self.is_log: npt.NDArray[np.bool_] = np.ones(len(parameters), dtype=np.bool_)
        self.is_log[vector.plain] = False
        self.theta.flags.writeable = self.bounds.flags.writeable = self.is_log.flags.writeable = False
        self._kernels = list(kernels)
        self._class_kernels = class_kernels
        self._variances = variances
        self._groups = dict(groups)
        self._named = dict(named)
        self._intercept_variance = intercept_variance
        self._place_of_intercept = place_of_intercept
        self._loadings = loadings
        self._place_of_ridge = place_of_ridge
        self._order = order  # from classes of the core to sorted ones

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<ParameterVector: {', '.join(self.names) or 'none'}>"

    @property
    def has_kernel_parameters(self) -> bool:
        """Whether the gradient needs the derivatives of kernels that the core evaluates."""
        return any(learned.learned.any() and not learned.is_matrix for learned in self._kernels)

    def at(self, theta: npt.ArrayLike) -> ModelAtTheta:
        """The model at a point."""
        values = self._check(theta)
        kernels = [learned.at(values) for learned in self._kernels]
        described: Any = {name: named.at(kernels, self._kernels, values) for name, named in self._named.items()}
        intercept_variance = self._intercept_variance
        if self._place_of_intercept >= 0:
            intercept_variance = exact_log(float(values[self._place_of_intercept]), intercept_variance)
        return ModelAtTheta(
            theta=values,
            class_kernels=ClassKernels(
                kernels, self._class_kernels.kernel_of, self._coupling_at(values), described or kernels[0]
            ),
            intercept_variance=intercept_variance,
            n_functions=len(self._variances.factors),
            matrix_factor=self._kernels[0].matrix_factor(kernels[0]),
        )

    def penalty(self, theta: Floats) -> tuple[float, Floats]:
        """What is added to the criterion, and its gradient by ``theta``."""
        return (0.0, np.zeros(len(self.names))) if self._loadings is None else self._loadings.penalty(theta)

    @property
    def penalty_strength(self) -> float:
        return 0.0 if self._loadings is None else self._loadings.strength

    def gradient(self, point: ModelAtTheta, by_prior: PriorGradient, *, by_features: bool = True) -> Floats:
        """The gradient by ``theta``, from that by all parameters of the core's kernels and the variances of functions.

        Parameters
        ----------
        point : ModelAtTheta
            The point, as ``at`` gave it.
        by_prior : PriorGradient
            What the core's criterion gives for the point's prior. Without ``has_kernel_parameters``, the part of the
            kernels is not read.
        by_features : bool, default=True
            As this prior had it.
        """
        by_function, rest = np.split(by_prior.functions, [len(self._variances.factors)])
        out = np.zeros(len(self.names))
        total = by_function.sum()
        if self._loadings is not None:
            by_loading = point.by_loading(rest, by_features=by_features)
            self._loadings.add_gradient(point.theta, by_loading, out)
            total += 0.5 * float(by_loading @ self._loadings.at(point.theta).ravel())
        if self._place_of_ridge >= 0:
            out[self._place_of_ridge] = rest[0]
        by_kernel = by_prior.kernels
        for k, learned in enumerate(self._kernels):
            if not learned.learned.any():
                continue
            if learned.is_matrix or not by_kernel:  # only a variance, which is in all functions
                out[learned.place] = total
            else:
                out[learned.place] = np.asarray(by_kernel[k], dtype=np.float64)[learned.learned]
        self._variances.add_gradient(by_function, out)
        if self._place_of_intercept >= 0:
            out[self._place_of_intercept] = by_prior.intercept_variance
        return out

    def table(self, theta: npt.ArrayLike) -> Hyperparameters:
        """The values at a point, to be read. Parameters that are not learned are there too."""
        point = self.at(theta)
        return Hyperparameters.of(
            point.class_kernels.described, point.intercept_variance, point.class_kernels.coupling, self._order
        )

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
        if self._loadings is not None:
            given = replace(given, loadings=self._loadings.at(theta))
        if given.graph is not None and self._place_of_ridge >= 0:
            ridge = exact_log(float(theta[self._place_of_ridge]), given.graph.ridge)
            given = replace(given, graph=replace(given.graph, ridge=ridge))
        if given.variances is None:
            return given
        variances, values = self._variances.at(theta), self._variances.values(theta)
        by_name = given.by_name | {name: values[place] for name, place in self._groups.items()}
        if given.parents is not None:
            variances = np.concatenate([[0.0], variances])
        return replace(given, variances=variances, by_name=by_name)


def make_parameters(
    kernel: Any,
    taxonomy: Taxonomy | None,
    classes: npt.NDArray[Any],
    coupling: Any,
    intercept_variance: float,
    learn_intercept_variance: bool,
    loadings: Floats | None = None,
) -> ParameterVector:
    """The parameters that the estimator's arguments describe.

    Parameters
    ----------
    kernel
        The estimator's, without names of kernels (see ``start_kernels``).
    taxonomy : Taxonomy or None
        With a leaf for every class.
    classes : array of shape (n_classes,)
        Labels in the order of the core.
    coupling
        The estimator's.
    intercept_variance : float
        Prior variance of the intercepts.
    learn_intercept_variance : bool
        Whether it is a parameter; if it is 0 it is none.
    loadings : array of shape (n_classes, rank), default=None
        Where those of a ``LearnedCoupling`` start, if it does not say, in the order of the core.
    """
    given = make_coupling(taxonomy, coupling, classes, loadings)
    assigned = assign_kernels(kernel, taxonomy, classes, given)
    n_functions = given.n_functions(len(classes))
    vector = Vector()
    groups: dict[str, int] = {}
    named: dict[Any, NamedKernel] = {}
    if isinstance(assigned.described, Mapping):
        names = _names_of_functions(kernel, taxonomy, classes, given)
        assigned = replace(assigned, coupling=given.times(np.ones(n_functions)))
        kernels, of_functions, named = _own_kernels(assigned, names, vector)
    else:
        if taxonomy is not None and given.variances is None and not given.is_alone:
            grouped = make_coupling(taxonomy, coupling, classes, loadings, grouped=True)
            given = grouped if len(grouped.by_name) > 1 else given
        has_groups = given.parents is not None or len(given.by_name) > 1
        assigned = replace(assigned, coupling=given)
        kernels = [LearnedKernel.of(assigned.kernels[0], vector, "kernel.", held=has_groups)]
        if has_groups:
            of_functions, groups = _group_variances(given, vector)
        else:
            nowhere = np.full(n_functions, -1, dtype=np.int64)
            of_functions = LearnedVariances(given.function_variances(n_functions), nowhere, {})
    shared: LearnedLoadings | None = None
    if isinstance(coupling, LearnedCoupling) and given.loadings is not None:
        labels, strength = [str(label) for label in classes.tolist()], coupling.strength()
        shared = LearnedLoadings.of(given.loadings, labels, vector, strength=strength, held=given.is_alone)
    place_of_ridge = -1 if given.graph is None else vector.add_number("coupling.ridge", given.graph.ridge)
    place = (
        vector.add_number("intercept_variance", intercept_variance)
        if learn_intercept_variance and intercept_variance > 0
        else -1
    )
    order = np.argsort(classes, kind="stable")
    return ParameterVector(
        vector,
        kernels,
        assigned,
        of_functions,
        groups,
        named,
        intercept_variance,
        place,
        shared,
        place_of_ridge,
        order=order,
    )


def _names_of_functions(
    kernel: Any, taxonomy: Taxonomy | None, classes: npt.NDArray[Any], coupling: ClassCoupling
) -> list[Any]:
    """Under which name the kernel of each function was given."""
    if isinstance(kernel, Sequence):
        kernel = dict(zip(np.sort(classes).tolist(), kernel, strict=True))
    if isinstance(kernel, Mapping):
        kernel = from_mapping(kernel, taxonomy, coupling)
    return function_names(kernel, taxonomy, classes, coupling)


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
            variance = given.total_variance
            if name in used and not given.total_variance_is_fixed:
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
