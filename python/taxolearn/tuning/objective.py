"""Choosing hyperparameters: the cross-validated log likelihood as a function that an optimizer can use."""

import time
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from taxolearn import _core
from taxolearn.couplings.coupling import make_coupling
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.fitting.fit import as_solver, kernel_values
from taxolearn.kernels.argument import assign_kernels, start_kernels
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning
from taxolearn.tuning.data import read_data
from taxolearn.tuning.initial_loadings import confusion_loadings
from taxolearn.tuning.parameter_vector import ParameterVector, PriorGradient, make_parameters
from taxolearn.tuning.result import Evaluation
from taxolearn.validation import check_choice, check_number, check_threads

__all__ = ["CrossValidationObjective"]

Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int, float, float, float], None]

_STRATEGIES = tuple(_core.Strategy.__members__)
_STATE = ("fits", "adjoints")  # what the core keeps of an evaluation
_SYSTEM_SHARE = 0.1  # of the tolerance of the fits, for the linear systems: their errors weigh more in the gradient
_SYSTEM_FLOOR = 1e-7  # no system needs a smaller one, unless the fits have it


class CrossValidationObjective:
    """The cross-validated negative log likelihood of a kernel logistic regression, and its gradient.

    For each fold the model is fitted to the rows outside of it and predicts those inside. The criterion is the sum of
    the weighted negative logarithms of the probabilities that held-out rows get for their class. Its gradient by all
    hyperparameters takes one more linear system per fold, however many there are (Seeger, JMLR 9, 2008, sections 4 and
    5.2). Divided by ``n_held_out``, it is the mean log loss. A ``LearnedCoupling`` adds its penalty.

    Fits start from those of the last point that was accepted, so nearby points are cheap.

    Parameters
    ----------
    model : KernelLogisticClassifier
        Whose hyperparameters: its kernel, taxonomy, coupling, ``intercept_variance``, ``tuning``, ``class_weight``,
        ``max_iter``, solver, ``n_threads`` and ``random_state``. It need not be fitted and is not changed. Names of
        kernels start from values found in the data, kernels from the values they have. Of kernels that are evaluated in
        Python only the variance is learned. Of the solver's methods "exact" is used for flat models, and "lbfgs" in
        place of all others. With ``tuning=None`` the folds are those of ``CrossValidation()``.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Inputs; for a ``Precomputed`` kernel the kernel matrix.
    y : array of shape (n_samples,)
        Labels; with a taxonomy, names of its nodes.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the rows, in fits as well as where they are held out.
    classes : array of labels, default=None
        Classes of the model, where some of them are not in ``y`` and there is no taxonomy to tell.
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
        ``parameters.table(theta)`` tells the values at a point.
    partitions : tuple of int32 arrays of shape (n_samples,)
        The fold in which each row is held out, or -1. Where ``tuning`` asks for a subset, of its rows.

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
    >>> bool(found.fun < 0.9 * objective.value(objective.theta))
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
        self._by_features = self._products.algorithm is _core.KernelAlgorithm.auto
        self._n_threads = check_threads(model.n_threads)
        random = check_random_state(model.random_state)
        data = read_data(model, X, y, sample_weight, classes, tuning.subset, random)
        in_order, taxonomy = data.classes, data.taxonomy
        self.partitions = data.partitions(tuning, random)
        counted = np.ones(len(data.targets)) if data.weights is None else data.weights
        self.n_held_out = float(counted[self.partitions[0] >= 0].sum())
        if self.n_held_out == 0:
            raise ValueError("sample_weight is zero for all rows that are held out; give them weight, or other folds")

        kernel = start_kernels(model.kernel, data.X)
        self._likelihood = _core.Softmax(data.targets, len(in_order), data.weights)
        loadings = None
        if isinstance(model.coupling, LearnedCoupling):
            rank = model.coupling.n_shared(len(in_order))
            given = make_coupling(taxonomy, model.coupling, in_order, np.ones((len(in_order), rank)))
            assign_kernels(kernel, taxonomy, in_order, given)  # tells what does not go together
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
                own.check_features(data.X.shape[1])
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
        begin = time.perf_counter()
        tol = check_number("tol", tol, least=0, strict=True)
        point = self.parameters.at(theta)
        settings = copy(self._settings)
        settings.tol = tol
        settings.adjoint_tol = min(tol, max(_SYSTEM_SHARE * tol, _SYSTEM_FLOOR))
        settings.kernel_gradient = self.parameters.has_kernel_parameters
        prior = point.prior(by_features=self._by_features)
        results = [criterion.evaluate(prior, settings, self._products, progress) for criterion in self._criteria]
        penalty, slope = self.parameters.penalty(point.theta)
        gradients = [
            self.parameters.gradient(point, PriorGradient.of(each), by_features=self._by_features) for each in results
        ]
        return Evaluation(
            theta=point.theta,
            value=float(np.mean([result.value for result in results])) + penalty,
            gradient=np.mean(gradients, axis=0) + slope,
            converged=all(result.converged for result in results),
            gap=max(result.gap for result in results),
            products=sum(result.products for result in results),
            seconds=time.perf_counter() - begin,
        )

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
                n_threads=self._n_threads,
            )
            for fold_of in self.partitions
        ]
