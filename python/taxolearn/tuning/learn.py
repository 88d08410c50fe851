"""Hyperparameters of an estimator, learned before it is fitted: the cross-validated log likelihood and its minimum."""

import copy
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from taxolearn import _core
from taxolearn.blocks import Blocks
from taxolearn.couplings.coupling import make_coupling
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.fitting.fit import as_solver, kernel_values, make_likelihood
from taxolearn.kernels.argument import assign_kernels, reads_kernel_values, start_kernels
from taxolearn.progress import learning_progress
from taxolearn.targets import LabelSets, Targets
from taxolearn.tuning.checkpoint import fingerprint
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning, read_data
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.initial_loadings import confusion_loadings
from taxolearn.tuning.parameter_vector import ModelAtTheta, ParameterVector, PriorGradient, make_parameters
from taxolearn.tuning.search import Evaluation, LearningResult, learn
from taxolearn.tuning.steps import learn_in_steps
from taxolearn.validation import check_choice, check_number, check_threads

__all__ = ["CrossValidationObjective", "Learned", "ModelIdentity", "labelled_rows", "learn_hyperparameters"]

_LARGEST_RATIO = 2.0  # of mean squared norms of rows that count as the same scale
_TOLERANCE = 2e-4  # on the derivatives of the mean log loss by the logarithms of the hyperparameters
_USUAL_STEPS = 4  # of a search for the scale of variances
_LEAST_ITERATIONS = 1000  # that fits to folds get, however few the final fit may take
Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int, float, float, float], None]
_STRATEGIES = tuple(_core.Strategy.__members__)
_STATE = ("fits", "adjoints")  # what the core keeps of an evaluation
_HELD_OUT_TOLERANCE = 1e-4  # relative gap of the fits whose predictors of held-out rows are kept
_SYSTEM_SHARE = 0.1  # of the tolerance of the fits, for the linear systems: their errors weigh more in the gradient
_SYSTEM_FLOOR = 1e-7  # no system needs a smaller one, unless the fits have it


class CrossValidationObjective:
    """The cross-validated negative log likelihood of a kernel logistic regression, and its gradient.

    For each fold the model is fitted to the rows outside of it and predicts those inside. The criterion is the sum of
    the weighted negative logarithms of the probabilities that held-out rows get for their class. Its gradient by all
    hyperparameters takes one more linear system per fold, however many there are (Seeger, JMLR 9, 2008, sections 4 and
    5.2). Divided by ``n_held_out``, it is the mean log loss. A ``LearnedCoupling`` adds its penalty, and so do the
    priors of ``tuning`` on hyperparameters and temperature.

    Fits start from those of the last point that was accepted, so nearby points are cheap.

    Parameters
    ----------
    model : KernelLogisticClassifier
        Whose hyperparameters: its kernel, taxonomy, coupling, ``intercept_variance``, ``tuning``, ``class_weight``,
        ``max_iter``, solver, ``n_threads`` and ``random_state``. It need not be fitted and is not changed. Names of
        kernels start from values found in the data, kernels from the values they have. Of kernels that are evaluated in
        Python only the variance is learned. Of the solver's methods "exact" is used for flat models, and "lbfgs" in
        place of all others. With ``tuning=None`` the folds are those of ``CrossValidation()``.
    X : array, sparse matrix, data frame or Blocks of shape (n_samples, n_features)
        Inputs; for a ``Precomputed`` kernel the kernel matrix.
    y : array of shape (n_samples,) or LabelSets
        Labels; with a taxonomy, names of its nodes. Label sets hold numbers of leaves of the taxonomy, or of
        ``classes``, and need ``loss="independent"``: then the criterion is the sum of the losses of all labels.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the rows, in fits as well as where they are held out.
    classes : array of labels, default=None
        Classes of the model, where some of them are not in ``y`` and there is no taxonomy that has them.
    strategy : {"auto", "stacked", "shuffled"}, default="auto"
        Whether the folds share products with the kernel matrix of all rows, or each works on its own rows.

    Attributes
    ----------
    names : tuple of str
        What the hyperparameters are called, like "kernel.length_scale", "variances[level 1]" or "intercept_variance".
    theta : float64 array of shape (m,)
        Logarithms of their values at the start; of the loadings of a ``LearnedCoupling`` the values, for ``B`` divided
        by its norm.
    bounds : float64 array of shape (m, 2)
        Logarithms of their bounds, and the bounds of loadings.
    is_log : bool array of shape (m,)
        Which of them are on log scale.
    n_held_out : float
        Number of rows that are held out, counted by their weights.
    parameters : ParameterVector
        ``parameters.table(theta)`` gives the values at a point.
    classes : array of shape (n_classes,)
        Labels in the order of the core, which is that of predictors.
    partitions : tuple of int32 arrays of shape (n_samples,)
        The fold in which each row is held out, or -1. Where ``tuning`` asks for a subset, of its rows.
    rows : array of int or None
        The rows of this subset; None for all.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> from sklearn.datasets import load_iris
    >>> from taxolearn import CrossValidation, KernelLogisticClassifier
    >>> from taxolearn.model_selection import CrossValidationObjective
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticClassifier("rbf", tuning=CrossValidation(learn_intercept_variance=False))
    >>> objective = CrossValidationObjective(model, X, y)
    >>> objective.names
    ('kernel.length_scale', 'kernel.variance')
    >>> options = {"method": "L-BFGS-B", "bounds": objective.bounds, "options": {"maxiter": 10}}
    >>> found = minimize(objective.value_and_gradient, objective.theta, jac=True, **options)
    >>> bool(found.fun < objective.value(objective.theta))
    True
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        classes: npt.ArrayLike | None = None,
        strategy: str = "auto",
    ) -> None:
        tuning, solver = as_tuning(model.tuning) or CrossValidation(), as_solver(model.solver)
        tuning.check()
        intercept_variance = check_number("intercept_variance", model.intercept_variance, least=0)
        self._products = solver.kernel_settings()
        self._settings = _core.CriterionSettings(
            method=_core.Method.exact if solver.method == "exact" else _core.Method.auto,
            precision=_core.Precision[solver.precision],
            strategy=_core.Strategy[check_choice("strategy", strategy, _STRATEGIES)],
            max_iter=check_number("max_iter", model.max_iter, least=1, integer=True),
            memory_limit=self._products.memory_limit,
        )
        self._settings.temperature = check_number("temperature", model.temperature, least=0, strict=True)
        self._settings.learn_temperature = bool(tuning.learn_temperature)
        self._deviation = tuning.deviation
        self._by_features = self._products.algorithm is _core.KernelAlgorithm.auto
        self._n_threads = check_threads(model.n_threads)
        random = check_random_state(model.random_state)
        data = read_data(model, X, y, sample_weight, classes, tuning.subset, random)
        in_order, taxonomy = data.classes, data.taxonomy
        self.classes = in_order
        self.rows = data.rows
        self.partitions = data.partitions(tuning, random)
        counted = np.ones(len(data.targets)) if data.weights is None else data.weights
        self.n_held_out = float(counted[self.partitions[0] >= 0].sum())
        if self.n_held_out == 0:
            raise ValueError("sample_weight is zero for all rows that are held out; give them weight, or other folds")

        kernel = start_kernels(model.kernel, data.X)
        self._likelihood = make_likelihood(model.loss, data.targets, len(in_order), data.weights)
        # Whatever the loss of the fits, a held-out row has one class, unless it has any number of them.
        self._held_out = self._likelihood
        if not isinstance(data.targets, LabelSets):
            self._held_out = make_likelihood("softmax", data.targets, len(in_order), data.weights)
        loadings = None
        if isinstance(model.coupling, LearnedCoupling):
            rank = model.coupling.n_shared(len(in_order))
            given = make_coupling(taxonomy, model.coupling, in_order, np.ones((len(in_order), rank)))
            assign_kernels(kernel, taxonomy, in_order, given)  # raises an error for what does not go together
            if model.coupling.B is None:
                loadings = confusion_loadings(
                    data, self.partitions[0], kernel, intercept_variance, self._products, rank, self._n_threads
                )
                loadings *= np.sqrt(len(in_order))
        self.parameters: ParameterVector = make_parameters(
            kernel,
            taxonomy,
            in_order,
            model.coupling,
            intercept_variance,
            bool(tuning.learn_intercept_variance),
            loadings,
        )
        start = self.parameters.at(self.parameters.theta)
        if solver.method == "exact" and not start.class_kernels.coupling.is_diagonal:
            raise ValueError(
                'Solver(method="exact") is for flat models; choose another method, or coupling="independent"'
            )
        self._X = data.X
        if start.matrix_factor is not None:
            self._X, _ = kernel_values(start.class_kernels.kernels[0], data.X, self._n_threads)
        else:
            for own in start.class_kernels.kernels:
                own.check_reads(data.X)
        self._criteria = self._make_criteria()

    @property
    def names(self) -> tuple[str, ...]:
        return self.parameters.names

    @property
    def theta(self) -> Floats:
        return self.parameters.theta

    @property
    def bounds(self) -> Floats:
        return self.parameters.bounds

    @property
    def is_log(self) -> npt.NDArray[np.bool_]:
        return self.parameters.is_log

    def value_and_gradient(self, theta: npt.ArrayLike, tol: float = 1e-8) -> tuple[float, Floats]:
        """The criterion and its derivatives, for any optimizer.

        Parameters
        ----------
        theta : array of shape (m,)
            Logarithms of the hyperparameters.
        tol : float, default=1e-8
            Certified relative gap to which the folds are fitted. The criterion is corrected for what the fits lack, up
            to the second order.

        Returns
        -------
        value : float
            The criterion.
        gradient : float64 array of shape (m,)
            Its gradient.
        """
        evaluation = self.evaluate(theta, tol)
        gradient = np.asarray(evaluation.gradient)
        if not (evaluation.converged and np.isfinite(evaluation.value) and np.isfinite(gradient).all()):
            raise RuntimeError(
                f"the folds reached a certified relative gap of {evaluation.gap:.1e} only, tol={tol:g}: raise tol or "
                f"max_iter (now {self._settings.max_iter}), or keep theta away from extreme values"
            )
        self.accept()
        return evaluation.value, gradient

    def value(self, theta: npt.ArrayLike, tol: float = 1e-8) -> float:
        """The criterion alone; it takes as long as with its gradient, which corrects it."""
        return self.value_and_gradient(theta, tol)[0]

    def evaluate(self, theta: npt.ArrayLike, tol: float, progress: Progress | None = None) -> Evaluation:
        """The criterion, its gradient and how the fits went, which may have failed.

        The fits become the start of later ones only by ``accept``.

        Parameters
        ----------
        theta : array of shape (m,)
            Logarithms of the hyperparameters.
        tol : float
            Certified relative gap to which the folds are fitted; the linear systems are solved to a tenth of it, or
            1e-7.
        progress : callable, default=None
            Called now and then with the iteration, the number of products, the objective of the fits, their relative
            gap and the seconds so far.
        """
        settings = copy.copy(self._settings)
        settings.kernel_gradient = self.parameters.has_kernel_parameters
        return self._evaluate(theta, tol, settings, progress)[0]

    def evaluate_held_out(
        self, theta: npt.ArrayLike, tol: float, progress: Progress | None = None
    ) -> tuple[Evaluation, Floats]:
        """The criterion without its gradient, which takes less than half the time, and predictors of held-out rows.

        Parameters
        ----------
        theta, tol, progress
            As in ``evaluate``.

        Returns
        -------
        evaluation : Evaluation
            Its gradient is NaN, and its value is not corrected for what the fits lack.
        predictors : float64 array of shape (n_samples, n_classes)
            Of the rows that the first partition holds out, in the core's order of classes; zero for others.
        """
        settings = copy.copy(self._settings)
        settings.gradient, settings.keep_predictors = False, True
        evaluation, (first, *_) = self._evaluate(theta, tol, settings, progress)
        return evaluation, first.take_predictors()

    def _evaluate(
        self, theta: npt.ArrayLike, tol: float, settings: _core.CriterionSettings, progress: Progress | None
    ) -> tuple[Evaluation, list[_core.Criterion]]:
        begin = time.perf_counter()
        tol = check_number("tol", tol, least=0, strict=True)
        point = self.parameters.at(theta)
        settings.tol = tol
        settings.adjoint_tol = min(tol, max(_SYSTEM_SHARE * tol, _SYSTEM_FLOOR))
        prior = point.prior(by_features=self._by_features)
        results = [criterion.evaluate(prior, settings, self._products, progress) for criterion in self._criteria]
        penalty, slope = self.parameters.penalty(point.theta)
        if self._deviation is not None:
            moved = np.where(self.is_log, point.theta - self.theta, 0.0) / self._deviation**2
            penalty += 0.5 * float(moved @ (point.theta - self.theta))
            slope = slope + moved
        gradients = [
            self.parameters.gradient(point, PriorGradient.of(each), by_features=self._by_features)
            if each.converged and settings.gradient
            else np.full(len(self.theta), np.nan)
            for each in results
        ]
        evaluation = Evaluation(
            theta=point.theta,
            value=float(np.mean([result.value for result in results])) + penalty,
            gradient=np.mean(gradients, axis=0) + slope,
            converged=all(result.converged for result in results),
            gap=max(result.gap for result in results),
            products=sum(result.products for result in results),
            seconds=time.perf_counter() - begin,
            temperature=float(np.exp(np.mean([np.log(result.temperature) for result in results]))),
        )
        return evaluation, results

    def accept(self) -> None:
        """Later evaluations start from the fits of the last one."""
        for criterion in self._criteria:
            criterion.accept()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The fits from which evaluations start, as arrays that can be saved; empty before the first ``accept``."""
        out = {}
        for k, criterion in enumerate(self._criteria):
            if len(criterion.warm_start.fits) > 0:
                for name in _STATE:
                    out[f"{k}.{name}"] = getattr(criterion.warm_start, name)
        return out

    def set_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """The opposite of ``state``: the next evaluation is the same, bit by bit, as it was there."""
        criteria = self._make_criteria()
        if state:
            self._check_state(state, [f"{k}.{name}" for k in range(len(criteria)) for name in _STATE])
            for k, criterion in enumerate(criteria):
                criterion.warm_start = _core.WarmStart(*(state[f"{k}.{name}"] for name in _STATE))
        self._criteria = criteria

    @staticmethod
    def _check_state(state: Mapping[str, npt.NDArray[Any]], expected: list[str]) -> None:
        unknown = next((key for key in state if key not in expected), None)
        missing = next((key for key in expected if key not in state), None)
        if unknown is not None or missing is not None:
            wrong = f"has no {missing!r}" if unknown is None else f"has the key {unknown!r}"
            raise ValueError(f"state {wrong}; expected what state() of an equal objective gave")
        for key in expected:
            array = np.asarray(state[key])
            if array.ndim != 1 or array.dtype.kind != "f" or not np.isfinite(array).all():
                raise ValueError(f"state[{key!r}] must be finite numbers in one dimension, as state() gives them")

    def described(self) -> dict[str, Any]:
        """What the criterion depends on besides data, folds and hyperparameters."""
        settings, products = self._settings, self._products
        return {
            "method": settings.method.name,
            "precision": settings.precision.name,
            "strategy": settings.strategy.name,
            "max_iter": settings.max_iter,
            "temperature": settings.temperature,
            "learn_temperature": settings.learn_temperature,
            "deviation": self._deviation,
            "products": products.algorithm.name,
            "memory_limit": products.memory_limit,
            "rank": products.rank,
            "rank_tolerance": products.rank_tolerance,
        }

    def _make_criteria(self) -> list[_core.CrossValidation]:
        """One for each partition, with nothing accepted yet."""
        return [
            _core.CrossValidation(
                X=self._X,
                likelihood=self._likelihood,
                fold_of=fold_of,
                n_folds=int(fold_of.max()) + 1,
                held_out=self._held_out,
                n_threads=self._n_threads,
            )
            for fold_of in self.partitions
        ]


@dataclass(frozen=True, eq=False)
class ModelIdentity:
    """What has to stay for learned hyperparameters to be a good start: the model, the features and their scale."""

    arguments: tuple[Any, ...]
    n_features: int
    mean_square: float

    @classmethod
    def of(cls, model: Any, tuning: CrossValidation, X: Any) -> "ModelIdentity":
        values = (model.loss, model.kernel, model.coupling, model.intercept_variance, tuning.learn_intercept_variance)
        may_change = (BaseEstimator, list, dict)  # in the hands of the user
        arguments = tuple(copy.copy(value) if isinstance(value, may_change) else value for value in values)
        if reads_kernel_values(model.kernel):
            return cls(arguments, 0, float(np.mean(np.abs(np.diagonal(X)))))
        if isinstance(X, Blocks):
            arguments = (*arguments, X.n_features)
        return cls(arguments, int(X.shape[1]), _sum_of_squares(X) / X.shape[0])

    def is_like(self, other: "ModelIdentity") -> bool:
        """Whether what was learned for one suits the other."""
        low, high = sorted((self.mean_square, other.mean_square))
        same = self.n_features == other.n_features and fingerprint(*self.arguments) == fingerprint(*other.arguments)
        return same and high <= _LARGEST_RATIO * low


def _sum_of_squares(X: Any) -> float:
    if isinstance(X, Blocks):
        return sum(map(_sum_of_squares, X.matrices))
    return float(X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij", X, X, dtype=np.float64))


@dataclass(frozen=True)
class Learned:
    """What learning has found: the best model, its hyperparameters to be read, how it went, and for which model.

    Where rows have label sets, also the predictors of held-out rows, and which rows these are.
    """

    point: ModelAtTheta
    hyperparameters: Hyperparameters
    result: LearningResult
    identity: ModelIdentity
    held_out: tuple[Floats, npt.NDArray[np.intp]] | None = None


def learn_hyperparameters(
    model: Any,
    tuning: CrossValidation,
    X: Any,
    targets: Targets,
    sample_weight: Any,
    *,
    earlier: tuple[ModelIdentity, LearningResult] | None,
    verbose: int,
) -> Learned:
    """The hyperparameters that the data ask for.

    Rows that allow several classes have no part in it. Of rows with probabilities one label each is drawn, so that the
    criterion is, in the mean, their cross entropy. What was learned ``earlier`` for a like problem is where parameters
    of the same names begin, except for loadings, which turn with the data.
    """
    identity = ModelIdentity.of(model, tuning, X)
    if targets.soft is not None:
        targets = replace(targets, labels=_drawn(targets, check_random_state(model.random_state)))
    if not targets.is_certain:
        X, sample_weight, folds = labelled_rows(
            X, targets, sample_weight, tuning.folds, reads_kernel_values(model.kernel)
        )
        tuning = copy.copy(tuning)
        tuning.folds = folds
    criterion = copy.copy(model)
    criterion.taxonomy, criterion.tuning = targets.taxonomy, tuning
    criterion.max_iter = max(model.max_iter, _LEAST_ITERATIONS)
    y = targets.names() if targets.sets is None else targets.sets
    is_known = targets.taxonomy is not None or (targets.is_certain and targets.sets is None)
    classes = None if is_known else targets.classes
    objective = CrossValidationObjective(criterion, X, y, sample_weight, classes=classes)
    start = objective.theta.copy()
    if earlier is not None and identity.is_like(earlier[0]):
        known = dict(zip(earlier[1].names, earlier[1].theta.tolist(), strict=True))
        kept = [k for k, name in enumerate(objective.names) if objective.is_log[k] and name in known]
        start[kept] = [known[objective.names[k]] for k in kept]
    is_short = tuning.search != "gradient"
    most = min(tuning.max_evaluations, _USUAL_STEPS) if is_short else tuning.max_evaluations
    with learning_progress(verbose, _TOLERANCE, most, tuning.time_limit) as progress:
        if is_short:
            result = learn_in_steps(objective, start, tuning, progress)
        else:
            result = learn(
                objective,
                tol=_TOLERANCE,
                max_evaluations=tuning.max_evaluations,
                time_limit=tuning.time_limit,
                checkpoint=tuning.checkpoint,
                progress=progress,
                fingerprint="" if tuning.checkpoint is None else _problem_of(objective, X, y, sample_weight, start),
                start=start,
            )
    if result.status in ("failed", "max_evaluations"):
        warnings.warn(f"Learning hyperparameters: {result.message}.", ConvergenceWarning, stacklevel=4)
    table = objective.parameters.table(result.theta)
    table = replace(table, temperature=model.temperature if result.temperature is None else result.temperature)
    held_out = None if targets.sets is None else _held_out_rows(objective, result.theta)
    return Learned(objective.parameters.at(result.theta), table, result, identity, held_out)


def _held_out_rows(objective: CrossValidationObjective, theta: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Predictors of the rows that the first partition holds out, at what was learned, and which rows they are."""
    _, predictors = objective.evaluate_held_out(theta, _HELD_OUT_TOLERANCE)
    rows = np.flatnonzero(objective.partitions[0] >= 0)
    return predictors[rows], rows if objective.rows is None else objective.rows[rows]


def labelled_rows(X: Any, targets: Targets, sample_weight: Any, folds: Any, is_pairwise: bool) -> tuple[Any, Any, Any]:
    """Inputs, weights and folds of the rows with one class, which alone can be held out and scored."""
    rows = targets.labelled
    if len(rows) == 0 or np.bincount(targets.labels[rows]).max() < 2:
        raise ValueError(
            f'tuning="cv" holds out rows with one label, of which y has {len(rows)}, no two of the same class; choose '
            "the values, with tuning=None"
        )
    n = len(targets.labels)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X)[rows]
        if not (sample_weight > 0).any():
            raise ValueError(
                'tuning="cv" holds out rows with one label, and sample_weight is zero in all of these; choose the '
                "values, with tuning=None"
            )
    if not hasattr(folds, "split") and hasattr(folds, "__len__") and len(folds) == n:
        given = np.asarray(folds)
        folds = given[rows] if given.ndim == 1 and given.dtype.kind in "iu" else folds  # folds of all rows
    return X[rows][:, rows] if is_pairwise else X[rows], sample_weight, folds


def _drawn(targets: Targets, random: np.random.RandomState) -> npt.NDArray[np.int32]:
    """A label for each row with probabilities; -1 where nothing is known."""
    assert targets.soft is not None
    ends = np.cumsum(targets.soft, axis=1)
    labels = (random.uniform(size=(len(ends), 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1)
    labels[targets.unlabelled] = -1
    drawn: npt.NDArray[np.int32] = labels.astype(np.int32)
    return drawn


def _problem_of(
    objective: CrossValidationObjective,
    X: Any,
    y: Any,
    sample_weight: Any,
    start: npt.NDArray[np.float64],
) -> str:
    """The fingerprint of the data, the folds and everything that the criterion depends on."""
    labels: Any = (
        [y.labels, y.offsets] if isinstance(y, LabelSets) else np.char.encode(np.asarray(y).astype(str), "utf-8")
    )
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    table = objective.parameters.table(objective.theta)
    values = (X, labels, weights, list(objective.partitions), start, objective.bounds, list(objective.names))
    return fingerprint(*values, table.to_dict(), objective.described(), objective.parameters.penalty_strength)
