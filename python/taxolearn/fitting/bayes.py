"""Hierarchical Bayesian logistic regression by partial MAP inference (Gopal, Yang, TKDD 9, 2015, section 3).

Weights of nodes are Gaussian around those of their parents, ``w_n ~ N(w_parent(n), I / alpha_g(n))``, and so are those
of each feature where precisions belong to features. The precisions have Gamma priors. A round fits the most probable
weights at given variances, to a certified gap, and then moves the variances to where the posterior of the precisions
has its mean, given a Laplace approximation of the posterior of the weights. ``docs/hierarchical-bayes.md`` derives it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn import _core
from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.fitting.fit import Fit, FitResult, Problem, Solver, fit_functions
from taxolearn.fitting.functions import LinearFunctions
from taxolearn.kernels import Linear
from taxolearn.kernels.argument import ClassKernels
from taxolearn.progress import ProgressCallback
from taxolearn.targets import LabelSets, Targets

__all__ = [
    "BayesFit",
    "BayesResult",
    "BayesState",
    "GammaValues",
    "NodePrecisions",
    "WeightPosterior",
    "canonical",
    "fit_map",
    "fitted_prior",
    "proportions_prior",
    "start_variance",
    "updated_variances",
    "weights_of_groups",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
RoundCallback = Callable[[int, int, float, float], None]  # round, products, objective, largest relative change

_ROUGH, _FINE = 1e-3, 1e-4  # gaps of the fits of rounds: at first, and at most once variances change by less than
_SETTLED = 0.1
_START = 10.0  # mean prior variance of a predictor to begin with
_SMALLEST, _LARGEST = 1e-10, 1e10  # variances


@dataclass(frozen=True)
class NodePrecisions:
    """Which nodes of the tree share a precision.

    Nodes are numbered as the core does, from the root down; node 0 stays at zero and has none.

    Attributes
    ----------
    parents : ndarray of shape (n_nodes,)
        Of the nodes; -1 for node 0.
    groups : ndarray of shape (n_nodes,)
        Of the nodes; that of node 0 is not used.
    names : tuple
        Of the groups.
    function_names : tuple
        Of all nodes but node 0.
    by_feature : bool
        Whether each feature has precisions of its own.
    """

    parents: Integers
    groups: Integers
    names: tuple[Any, ...]
    function_names: tuple[Any, ...]
    by_feature: bool

    @classmethod
    def of(cls, targets: Targets, variant: str, *, with_root: bool) -> "NodePrecisions":
        """For "M1", one for the children of each node; "M2" the same for each feature; "M3" one for each node.

        Without a tree, classes are the children of one root. ``with_root`` adds a function of the root, which lies
        below node 0 then.
        """
        tree = targets.taxonomy
        if tree is None:
            parents = np.concatenate([[-1], np.zeros(targets.n_classes, dtype=np.int64)])
            names = ["all classes", *targets.in_core_order.tolist()]
        else:
            parents, names = np.asarray(tree.parents, dtype=np.int64), tree.names.tolist()
            if with_root:
                parents = np.concatenate([[-1], parents + 1])
                names = ["above the root", *names]
        if variant == "M3":
            groups = np.arange(len(parents)) - 1
            return cls(parents, groups, tuple(names[1:]), tuple(names[1:]), False)
        used, groups = np.unique(parents[1:], return_inverse=True)
        groups = np.concatenate([[-1], groups])
        return cls(parents, groups, tuple(names[n] for n in used.tolist()), tuple(names[1:]), variant == "M2")

    @property
    def n_nodes(self) -> int:
        return len(self.parents)

    @property
    def sizes(self) -> Floats:
        """Nodes of each group."""
        return np.bincount(self.groups[1:], minlength=len(self.names)).astype(np.float64)

    def sums_below(self, leaves: Floats) -> Floats:
        """Sums over the leaves below each node of values of the leaves, along the last axis."""
        out = np.zeros((*leaves.shape[:-1], self.n_nodes))
        out[..., self.n_nodes - leaves.shape[-1] :] = leaves
        for node in range(self.n_nodes - 1, 0, -1):
            out[..., self.parents[node]] += out[..., node]
        return out

    def sums_over_groups(self, leaves: Floats) -> Floats:
        """For each group the sum over its nodes of the sums below them."""
        below = self.sums_below(leaves)
        out = np.zeros((*leaves.shape[:-1], len(self.names)))
        for node in range(1, self.n_nodes):
            out[..., self.groups[node]] += below[..., node]
        return out


@dataclass(frozen=True)
class GammaValues:
    """Gamma distributions of precisions: of each group, and of each feature where these have their own.

    Attributes
    ----------
    names : tuple
        Of the groups: nodes, or the parents whose children share a precision.
    shape : ndarray of shape (n_groups,)
        Their shapes.
    rate : ndarray of shape (1, n_groups) or (n_features, n_groups)
        Their rates; a mean is ``shape / rate``.
    """

    names: tuple[Any, ...]
    shape: Floats
    rate: Floats

    @property
    def mean(self) -> Floats:
        """Means of the precisions."""
        out: Floats = self.shape / self.rate
        return out

    @property
    def variance(self) -> Floats:
        """Variances of the precisions."""
        out: Floats = self.shape / self.rate**2
        return out

    @property
    def scale(self) -> Floats:
        """Prior variances of the weights that these stand for, ``rate / shape``."""
        out: Floats = self.rate / self.shape
        return out


@dataclass(frozen=True)
class WeightPosterior:
    """The posterior of the weights around ``coef_`` and ``intercept_``, and that of the precisions.

    Attributes
    ----------
    coef_variances : ndarray of shape (n_classes, n_features)
        Variances of the weights of the classes.
    intercept_variances : ndarray of shape (n_classes,)
        Variances of the intercepts.
    precisions : GammaValues
        Precisions of the weights of nodes around those of their parents.
    prior : GammaValues
        Those before any row was seen.
    """

    coef_variances: Floats
    intercept_variances: Floats
    precisions: GammaValues
    prior: GammaValues

    def predictor_variances(self, X: Any) -> Floats:
        """Variances of the predictors of checked inputs, of shape (n_samples, n_classes)."""
        product = _squares(X) @ self.coef_variances.T
        return np.asarray(product, dtype=np.float64) + self.intercept_variances


@dataclass(frozen=True)
class BayesResult:
    """How inference went.

    Attributes
    ----------
    status : str
        "converged", or "max_rounds".
    rounds : int
        Rounds, of a fit and an update each.
    changes : tuple of float
        Largest change of the logarithm of a variance in each round; where features have their own, the root of the mean
        square over the features.
    bounds : tuple of float
        For variational inference, the lower bound of the log likelihood after each round; else empty.
    iterations, products : int
        Iterations of the solver and products with the kernel matrix in all rounds.
    """

    status: str
    rounds: int
    changes: tuple[float, ...]
    bounds: tuple[float, ...]
    iterations: int
    products: int


@dataclass(frozen=True)
class BayesState:
    """Where rounds stand: what a checkpoint holds, and a warm start begins from."""

    variances: Floats  # (1, n_groups) or (n_features, n_groups)
    changes: tuple[float, ...]
    iterations: int
    products: int
    point: Floats | None  # of the solver
    space: str


@dataclass(frozen=True)
class BayesFit:
    """What inference leaves; classes are in sorted order. Variational inference has no certified fit."""

    functions: LinearFunctions
    result: FitResult | None
    posterior: WeightPosterior
    bayes: BayesResult
    state: BayesState


def start_variance(problem: Problem) -> float:
    """A variance of weights at which predictors are of the size of a few units, whatever the scale of the inputs."""
    weights = np.ones(problem.X.shape[0]) if problem.sample_weight is None else problem.sample_weight
    square = float((weights @ _squares(problem.X)).sum() / weights.sum())
    return _START / square if square > 0 else 1.0


def canonical(X: Any) -> Any:
    """Inputs in which no row has a feature twice, so that squares are squares of sums."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _squares(X: Any) -> Any:
    return X.multiply(X) if sp.issparse(X) else np.square(X, dtype=np.float64)


# -- Priors of precisions ---------------------------------------------------------------------------------------------


def proportions_prior(nodes: NodePrecisions, problem: Problem) -> GammaValues:
    """Shapes and rates from the observed information at the shares of the classes (3.4).

    A leaf has the shape 1 and the rate ``1 / I_jj`` for feature j, with ``I_jj = p (1 - p) sum_i x_ij^2`` and p the
    share of its rows, to which half a row is added, since leaves may have none. Where features share a precision, it
    is the mean over those that some row has. Nodes have the sums of the leaves below.
    """
    weights = np.ones(problem.X.shape[0]) if problem.sample_weight is None else problem.sample_weight
    if isinstance(problem.targets, LabelSets):
        counts = np.asarray(weights @ problem.targets.matrix(), dtype=np.float64)
    else:
        counts = np.bincount(problem.targets, weights, problem.n_classes).astype(np.float64)
    p = (counts + 0.5) / (weights.sum() + 1.0)
    per_feature = np.asarray(weights @ _squares(problem.X), dtype=np.float64)
    seen = per_feature > 0
    inverse = np.full(len(per_feature), np.mean(1.0 / per_feature[seen]) if seen.any() else 1.0)
    inverse[seen] = 1.0 / per_feature[seen]
    rates = inverse if nodes.by_feature else np.array([inverse.mean()])
    return _prior_of(nodes, rates[:, None] / (p * (1 - p)))


def fitted_prior(
    nodes: NodePrecisions, problem: Problem, variance: float, solver: Solver, n_threads: int
) -> GammaValues:
    """The same with probabilities of rows from a flat fit of each class against the rest (5.2).

    Its variances are the posterior ones of that fit, ``1 / (I_jj + 1 / variance)``: those of the information alone
    would have no bound where the fit is sure of all rows.
    """
    flat = replace(
        problem,
        class_kernels=ClassKernels([Linear(variance)], [], ClassCoupling(), Linear(variance)),
        loss="independent",
    )
    fit = fit_functions(flat, solver.fit_settings(_ROUGH, 1000), solver.kernel_settings(), n_threads=n_threads)
    weights, intercepts = _in_core_order(fit, problem)
    information = _core.observed_information(
        X=problem.X,
        sample_weight=problem.sample_weight,
        weights=weights,
        intercepts=intercepts,
        link=_core.Link.logistic,
        n_threads=n_threads,
    )
    rates = 1.0 / (information + 1.0 / variance)
    return _prior_of(nodes, rates if nodes.by_feature else rates.mean(axis=0, keepdims=True))


def _prior_of(nodes: NodePrecisions, rates: Floats) -> GammaValues:
    """From rates of the leaves, of shape (1 or n_features, n_classes)."""
    shape = nodes.sums_over_groups(np.ones(rates.shape[1]))
    return GammaValues(nodes.names, shape, nodes.sums_over_groups(rates))


# -- Rounds -----------------------------------------------------------------------------------------------------------


def updated_variances(prior: GammaValues, sizes: Floats, variances: Floats, squares: Floats, spreads: Floats) -> Floats:
    """Variances at which the posterior of the precisions has its mean at their inverse, given what the weights say.

    With N weights of a group, the Gamma posterior has the shape ``a + N / 2`` and the rate ``b + (squares + spreads) /
    2``. Its mean is ``1 / v`` where ``v (2 a + N) = 2 b + squares + spreads``. The spreads are almost proportional to v
    where rows say little, so this solves ``v (2 a + N - spreads / v_old) = 2 b + squares`` instead, which has the same
    fixed points and comes to them in a few rounds: ``N - spreads / v`` counts the weights that rows determine.
    """
    determined = np.maximum(sizes - spreads / variances, 0.0)
    values: Floats = (2.0 * prior.rate + squares) / (2.0 * prior.shape + determined)
    return np.clip(values, _SMALLEST, _LARGEST)


def fit_map(
    problem: Problem,
    nodes: NodePrecisions,
    prior: GammaValues,
    *,
    start: BayesState,
    tol: float,
    max_iter: int,
    round_tol: float,
    max_rounds: int,
    solver: Solver,
    n_threads: int = 1,
    progress: ProgressCallback | None = None,
    round_progress: RoundCallback | None = None,
    after_round: Callable[[BayesState], None] | None = None,
) -> BayesFit:
    """Alternate fits and updates until variances change little, then fit to the tolerance.

    Parameters
    ----------
    problem : Problem
        What to fit; its kernels and coupling are replaced. Its inputs are ``canonical``.
    nodes : NodePrecisions
        The tree, and which of its nodes share a precision.
    prior : GammaValues
        Of the precisions.
    start : BayesState
        Where to begin.
    tol : float
        Certified relative gap of the last fit.
    max_iter : int
        Largest number of iterations of each fit.
    round_tol : float
        Largest change of the logarithms of variances at which rounds end.
    max_rounds : int
        Largest number of rounds; 0 leaves the variances as they are.
    solver : Solver
        How fits are computed.
    n_threads : int, default=1
        Threads.
    progress, round_progress, after_round : callable, optional
        Called after each iteration of the solver, and after each round.
    """
    state, products = start, solver.kernel_settings()
    status = "converged" if max_rounds == 0 else "max_rounds"
    X = problem.X
    while len(state.changes) < max_rounds:
        # A gap bounds the square of a distance, so that the errors of variances are of the size of its root.
        is_rough = not state.changes or state.changes[-1] > _SETTLED
        gap = max(tol, _ROUGH if is_rough else min(_FINE, round_tol**2))
        settings = solver.fit_settings(gap, max_iter, keep_point=True)
        now = _at_variances(problem, nodes, state.variances)
        fit = fit_functions(now, settings, products, point=state.point, n_threads=n_threads, progress=progress)
        squares, spreads, _, _ = _moments(now, nodes, fit, state.variances, n_threads)
        variances = updated_variances(prior, weights_of_groups(nodes, X), state.variances, squares, spreads)
        change = float(np.sqrt(np.mean(np.log(variances / state.variances) ** 2, axis=0)).max())
        state = BayesState(
            variances,
            (*state.changes, change),
            state.iterations + fit.result.iterations,
            state.products + fit.result.products,
            _rescaled(fit, problem, nodes, state.variances, variances),
            fit.result.space,
        )
        if round_progress is not None:
            round_progress(len(state.changes), state.products, fit.result.objective, change)
        if after_round is not None:
            after_round(state)
        if change <= round_tol:
            status = "converged"
            break
    settings = solver.fit_settings(tol, max_iter, keep_point=True)
    now = _at_variances(problem, nodes, state.variances)
    fit = fit_functions(now, settings, products, point=state.point, n_threads=n_threads, progress=progress)
    squares, spreads, of_weights, of_intercepts = _moments(now, nodes, fit, state.variances, n_threads, keep=True)
    shape = prior.shape + 0.5 * weights_of_groups(nodes, X)
    posterior = WeightPosterior(
        np.ascontiguousarray(of_weights[:, problem.order].T),
        of_intercepts[problem.order],
        GammaValues(nodes.names, shape, prior.rate + 0.5 * (squares + spreads)),
        prior,
    )
    iterations, spent = state.iterations + fit.result.iterations, state.products + fit.result.products
    assert isinstance(fit.functions, LinearFunctions)
    return BayesFit(
        fit.functions,
        fit.result,
        posterior,
        BayesResult(status, len(state.changes), state.changes, (), iterations, spent),
        replace(state, point=fit.point, space=fit.result.space),
    )


def weights_of_groups(nodes: NodePrecisions, X: Any) -> Floats:
    """How many weights have the precision of a group."""
    return nodes.sizes * (1 if nodes.by_feature else X.shape[1])


def _at_variances(problem: Problem, nodes: NodePrecisions, variances: Floats) -> Problem:
    """The problem of the most probable weights."""
    of_nodes = np.concatenate([[0.0], variances[0, nodes.groups[1:]]])
    coupling = ClassCoupling(nodes.parents, of_nodes, np.maximum(nodes.groups, -1))
    kernels = ClassKernels([Linear(1.0)], [], coupling, Linear(1.0))
    return replace(problem, class_kernels=kernels, function_names=list(nodes.function_names))


def _moments(
    problem: Problem, nodes: NodePrecisions, fit: Fit, variances: Floats, n_threads: int, *, keep: bool = False
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums of squares and spreads of the groups; with ``keep`` variances of weights (n_features, n_classes)."""
    weights, intercepts = _in_core_order(fit, problem)
    found = _core.weight_moments(
        X=problem.X,
        sample_weight=problem.sample_weight,
        weights=weights,
        intercepts=intercepts,
        link=_core.Link[problem.link],
        taxonomy=_core.Taxonomy(nodes.parents),
        groups=nodes.groups.tolist(),
        variances=variances,
        intercept_variance=problem.intercept_variance,
        with_variances=keep,
        n_threads=n_threads,
    )
    return found.take_squares(), found.take_spreads(), found.take_variances(), found.intercept_variances


def _in_core_order(fit: Fit, problem: Problem) -> tuple[Floats, Floats]:
    """Weights (n_features, n_classes) and intercepts, classes in the core's order."""
    assert isinstance(fit.functions, LinearFunctions)
    coef, intercept, place = fit.functions.coef.T, fit.functions.intercept, np.argsort(problem.order)
    if not np.array_equal(place, np.arange(len(place))):
        coef, intercept = coef.take(place, axis=1), intercept[place]
    return np.ascontiguousarray(coef), np.ascontiguousarray(intercept)


def _rescaled(fit: Fit, problem: Problem, nodes: NodePrecisions, old: Floats, new: Floats) -> Floats | None:
    """Where the next fit begins: the same functions, or the same coefficients."""
    if fit.point is None or fit.result.space == "coefficients":
        return fit.point
    point, C = fit.point.copy(), problem.n_classes
    weights = point[:-C].reshape(problem.X.shape[1], nodes.n_nodes - 1)
    weights *= np.sqrt(old / new)[:, nodes.groups[1:]]
    return point
