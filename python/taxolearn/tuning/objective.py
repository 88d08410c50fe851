"""Choosing hyperparameters: the cross-validated log likelihood as a function that an optimizer can use."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state, check_X_y

from taxolearn import _core
from taxolearn.couplings.base import make_coupling
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.fitting.run import _given_matrix, check_products
from taxolearn.kernels.assignment import assign_kernels
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.folds import make_folds
from taxolearn.tuning.hyperparameters import Hyperparameters, make_hyperparameters, start_kernels
from taxolearn.tuning.initial_loadings import confusion_loadings
from taxolearn.tuning.search import Evaluation
from taxolearn.validation import (
    _in_core_form,
    check_choice,
    check_labels,
    check_number,
    check_threads,
    check_weights,
)

__all__ = ["CrossValidationObjective"]

Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int, float, float, float], None]

_METHODS = ("auto", "lbfgs", "exact")
_PRECISIONS = ("auto", "single", "double")
_STRATEGIES = ("auto", "stacked", "shuffled")
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
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Inputs; for a ``Precomputed`` kernel the kernel matrix.
    y : array of shape (n_samples,)
        Labels; with a taxonomy, names of its nodes.
    kernel : as in ``KernelLogisticClassifier``, or the name of a kernel, default=None
        A name, alone or in place of any kernel in a mapping or list, is a kernel that starts from values found in the
        data: "linear" (also meant by None), "rbf", "matern", "rational_quadratic", "cosine" or "polynomial". Kernels
        start from the values they have. Of kernels that are evaluated in Python only the variance is learned.
    taxonomy : Taxonomy, default=None
        The tree of classes.
    folds : int, splitter of scikit-learn, iterable of pairs (train, test), or array of int, default=5
        Number of folds, or the folds themselves: an array has the fold in which each row is held out, -1 for never. A
        number makes stratified folds; classes may have fewer rows than that, and the row of a class that has no other
        is never held out.
    classes : array of labels, default=None
        Classes of the model, where some of them are not in ``y`` and there is no taxonomy to tell.
    coupling, tying, variances, sigma2, class_weight
        As in ``KernelLogisticClassifier``.
    learn_sigma2 : bool, default=True
        Whether ``sigma2`` is a hyperparameter, unless it is 0.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the rows, in fits as well as where they are held out.
    method : {"auto", "lbfgs", "exact"}, default="auto"
        How the folds are fitted: by limited-memory BFGS, which "auto" means, or for flat models by exact Newton steps.
    algorithm, rank, rank_tolerance, memory_limit, precision
        As in ``KernelLogisticClassifier``.
    strategy : {"auto", "stacked", "shuffled"}, default="auto"
        Whether the folds share products with the kernel matrix of all rows, or each works on its own rows.
    max_iter : int, default=1000
        Largest number of iterations of the fits.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=None
        Of the folds.
    n_partitions : int, default=1
        So many partitions into folds are averaged. More than one needs a number of ``folds``.

    Attributes
    ----------
    names : tuple of str
        What the hyperparameters are called, like "kernel.length_scale", "variances[level 1]" or "sigma2".
    theta : float64 array of shape (m,)
        Logarithms of their values at the start; of the loadings of a ``LearnedCoupling`` the values, for ``B`` divided
        by its norm.
    bounds : float64 array of shape (m, 2)
        Logarithms of their bounds, and the bounds of loadings.
    is_log : bool array of shape (m,)
        Which of them are on log scale.
    n_held_out : float
        Number of rows that are held out, counted by their weights.
    hyperparameters : Hyperparameters
        ``hyperparameters.table(theta)`` tells the values at a point.
    partitions : tuple of int32 arrays of shape (n_samples,)
        The fold in which each row is held out, or -1.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> from sklearn.datasets import load_iris
    >>> from taxolearn.model_selection import CrossValidationObjective
    >>> X, y = load_iris(return_X_y=True)
    >>> objective = CrossValidationObjective(X, y, "rbf", learn_sigma2=False, random_state=0)
    >>> objective.names
    ('kernel.length_scale', 'kernel.variance')
    >>> options = {"method": "L-BFGS-B", "bounds": objective.bounds, "options": {"maxiter": 10}}
    >>> found = minimize(objective.value_and_gradient, objective.theta, jac=True, **options)
    >>> bool(found.fun < 0.9 * objective.value(objective.theta))
    True
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        kernel: Any = None,
        taxonomy: Taxonomy | None = None,
        folds: Any = 5,
        *,
        classes: npt.ArrayLike | None = None,
        coupling: Any = "auto",
        tying: Any = "level",
        variances: Any = None,
        sigma2: float = 1.0,
        learn_sigma2: bool = True,
        sample_weight: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        method: str = "auto",
        algorithm: str = "auto",
        rank: int | None = None,
        rank_tolerance: float | None = None,
        memory_limit: float | str | None = None,
        precision: str = "auto",
        strategy: str = "auto",
        max_iter: int = 1000,
        n_threads: int | None = None,
        random_state: Any = None,
        n_partitions: int = 1,
    ) -> None:
        if not (taxonomy is None or isinstance(taxonomy, Taxonomy)):
            raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(taxonomy).__name__}")
        if not isinstance(learn_sigma2, (bool, np.bool_)):
            raise TypeError(f"learn_sigma2 must be True or False, got {learn_sigma2!r}")
        sigma2 = check_number("sigma2", sigma2, least=0)
        products = check_products(algorithm, memory_limit, rank, rank_tolerance)
        method = check_choice("method", method, _METHODS)
        self.settings = products.arguments() | {
            "method": "lbfgs" if method == "auto" else method,
            "precision": check_choice("precision", precision, _PRECISIONS),
            "strategy": check_choice("strategy", strategy, _STRATEGIES),
            "max_iter": check_number("max_iter", max_iter, least=1, integer=True),
        }
        self._by_features = products.is_free
        self._n_threads = check_threads(n_threads)
        n_partitions = check_number("n_partitions", n_partitions, least=1, integer=True)

        X, indices, in_order, taxonomy, weights = _check_data(X, y, taxonomy, classes, sample_weight, class_weight)
        # By the order of labels, so that a seed makes the same folds with and without a taxonomy.
        ranks = np.argsort(np.argsort(in_order, kind="stable"), kind="stable")
        self.partitions = _make_partitions(ranks[indices], len(in_order), folds, random_state, n_partitions)
        counted = np.ones(len(indices)) if weights is None else weights
        self.n_held_out = float(counted[self.partitions[0] >= 0].sum())
        if self.n_held_out == 0:
            raise ValueError("sample_weight is zero for all rows that are held out; give them weight, or other folds")

        kernel = start_kernels(kernel, X)
        self._data = {"X": X, "targets": indices, "n_classes": len(in_order), "sample_weight": weights}
        loadings = None
        if isinstance(coupling, LearnedCoupling):
            rank = coupling.n_shared(len(in_order))
            unit = np.ones((len(in_order), rank))
            given = make_coupling(taxonomy, coupling, tying, variances, in_order, unit)
            assign_kernels(kernel, taxonomy, in_order, given, tying)  # tells what does not go together
            if coupling.B is None:
                loadings = confusion_loadings(
                    self._data, in_order, self.partitions[0], kernel, sigma2, products, rank, self._n_threads
                )
                loadings *= np.sqrt(len(in_order))
        self.hyperparameters: Hyperparameters = make_hyperparameters(
            kernel, taxonomy, in_order, coupling, tying, variances, sigma2, bool(learn_sigma2), loadings
        )
        start = self.hyperparameters.at(self.hyperparameters.theta)
        if method == "exact" and not start.class_kernels.coupling.is_diagonal:
            raise ValueError('method="exact" is for flat models; choose another method, or coupling="identity"')
        if start.matrix_factor is not None:
            X, _ = _given_matrix(start.class_kernels.kernels[0], X, self._n_threads)
        else:
            for own in start.class_kernels.kernels:
                own.check_features(X.shape[1])
        self._data["X"] = X
        self._criteria = self._make_criteria()

    @property
    def names(self) -> tuple[str, ...]:
        return self.hyperparameters.names

    @property
    def theta(self) -> Floats:
        return self.hyperparameters.theta

    @property
    def bounds(self) -> Floats:
        return self.hyperparameters.bounds

    @property
    def is_log(self) -> npt.NDArray[np.bool_]:
        return self.hyperparameters.is_log

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
                f"max_iter (now {self.settings['max_iter']}), or keep theta away from extreme values"
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
        setting = self.hyperparameters.at(theta)
        arguments = setting.core_arguments(by_features=self._by_features) | self.settings
        results = [
            criterion.evaluate(
                **arguments,
                tol=tol,
                adjoint_tol=min(tol, max(_SYSTEM_SHARE * tol, _SYSTEM_FLOOR)),
                gradient=True,
                kernel_gradient=self.hyperparameters.has_kernel_parameters,
                progress=progress,
            )
            for criterion in self._criteria
        ]
        penalty, slope = self.hyperparameters.penalty(setting.theta)
        gradients = [
            self.hyperparameters.gradient(setting, one["gradient"], by_features=self._by_features) for one in results
        ]
        return Evaluation(
            theta=setting.theta,
            value=float(np.mean([result["value"] for result in results])) + penalty,
            gradient=np.mean(gradients, axis=0) + slope,
            converged=all(result["converged"] for result in results),
            gap=max(float(result["gap"]) for result in results),
            products=sum(int(result["products"]) for result in results),
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
            for name, array in (criterion.state() or {}).items():
                out[f"{k}.{name}"] = array
        return out

    def set_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """The opposite of ``state``: the next evaluation is the same, bit by bit, as it was there."""
        criteria = self._make_criteria()
        if state:
            self._check_state(state, [f"{k}.{name}" for k in range(len(criteria)) for name in _STATE])
            for k, criterion in enumerate(criteria):
                criterion.set_state({name: np.asarray(state[f"{k}.{name}"], dtype=np.float32) for name in _STATE})
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

    def _make_criteria(self) -> list[Any]:
        """One for each partition, with nothing accepted yet."""
        return [
            _core.CrossValidation(
                **self._data, fold_of=fold_of, n_folds=int(fold_of.max()) + 1, n_threads=self._n_threads
            )
            for fold_of in self.partitions
        ]


def _check_data(
    X: Any,
    y: Any,
    taxonomy: Taxonomy | None,
    classes: npt.ArrayLike | None,
    sample_weight: Any,
    class_weight: Mapping[Any, float] | str | None,
) -> tuple[Any, npt.NDArray[np.int32], npt.NDArray[Any], Taxonomy | None, Floats | None]:
    """Inputs, targets, classes in the order of the core, the taxonomy with all of them, and weights."""
    X, y = check_X_y(X, y, accept_sparse="csr", accept_large_sparse=True, dtype=[np.float64, np.float32], order="C")
    X = _in_core_form(X)
    seen, indices = check_labels(y, least=2 if taxonomy is None and classes is None else 1)
    if taxonomy is not None:
        taxonomy = taxonomy.with_classes(seen, argument="y")
        known, places = taxonomy.classes, taxonomy.leaf_index(seen)
    else:
        known = seen if classes is None else np.unique(np.asarray(classes))
        unknown = np.setdiff1d(seen, known)
        if len(unknown) > 0:
            raise ValueError(f"classes lacks labels that are in y: {unknown[:5].tolist()}")
        places = np.searchsorted(known, seen)
    weights = check_weights(sample_weight, class_weight, X, seen, indices, known.tolist())
    return X, places[indices].astype(np.int32), known, taxonomy, weights


def _make_partitions(
    indices: npt.NDArray[np.intp], n_classes: int, folds: Any, random_state: Any, n_partitions: int
) -> tuple[npt.NDArray[np.int32], ...]:
    if n_partitions > 1 and not isinstance(folds, (int, np.integer)):
        raise ValueError(
            f"n_partitions is {n_partitions}, but folds gives one partition; use a number of folds, or n_partitions=1"
        )
    random = check_random_state(random_state)
    return tuple(make_folds(indices, n_classes, folds, random, argument="folds") for _ in range(n_partitions))
