"""Max-margin Markov trees: one function that scores all labels of a row together."""

import warnings
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from taxolearn import _core
from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.estimators.label_calibration import fit_label_calibration
from taxolearn.estimators.label_sets import LabelSetClassifier
from taxolearn.fitting.functions import Expansion, KernelFunctions, LinearFunctions, MatrixFunctions
from taxolearn.fitting.margin import MARGIN_LOSSES, MarginFit, fit_margin
from taxolearn.kernels.argument import as_kernel, reads_kernel_values, start_kernels
from taxolearn.kernels.inner_product import Linear
from taxolearn.progress import fit_progress
from taxolearn.set_decisions import LabelTree, best_thresholds
from taxolearn.targets import LabelSets, is_label_sets, read_label_sets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_inputs, check_number, check_threads

__all__ = ["MaxMarginTreeClassifier", "label_order", "label_scales"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SCALINGS = ("uniform", "sibling", "subtree")
_COSTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # compared by C="cv"


class MaxMarginTreeClassifier(LabelSetClassifier):
    """A max-margin Markov tree (H-M3), which predicts all labels of a row at once.

    A labeling has a score, the sum over the edges of the tree of ``w_e,u . x``, where u are the labels at the two ends.
    The weights minimize ``|W|^2 / 2 + C sum_i max_y (loss(y_i, y) - score(y_i) + score(y))``: every other labeling y of
    row i is to score less than its own by its loss (Rousu, Saunders, Szedmak, Shawe-Taylor, JMLR 7, 2006). ``predict``
    finds the best union of paths from the root by dynamic programming. The fit stops when its duality gap is proven to
    be small.

    Parameters
    ----------
    taxonomy : Taxonomy, default=None
        The tree of labels. All nodes but its root are labels; a row that has one has those above it. Nodes below the
        root have an edge to it, which is always there; so labels without a tree are independent of each other, but for
        the loss.
    loss : {"hamming", "hierarchical", "zero-one"}, default="hamming"
        What a wrong labeling costs: the number of wrong labels; the sum of factors of the labels that are wrong while
        those right above them are right; or 1.
    scaling : {"uniform", "sibling", "subtree"}, default="uniform"
        Factors of the hierarchical loss: 1; that of the parent divided by the number of its children; or the share of
        all labels that are the node or below it.
    C : float, "cv" or sequence of float, default=1.0
        Weight of the margins against that of the regularization. "cv" compares a few values by the mean loss of rows
        held out, a sequence those that it has, each fit starting from that of the next smaller value.
    kernel : str or Kernel, default="linear"
        Kernel of the inputs, fixed: a name stands for values that suit the scale of the data. "linear" is the plain
        product of rows, and keeps weights of the features instead of multipliers of the rows.
    intercept_variance : float, default=1.0
        Square of one more feature that is the same in all rows; 0 leaves intercepts out.
    calibrate : bool, default=False
        Whether to learn probabilities from rows held out, at the cost of a fit per fold. Without, there are none:
        scores of margins are not probabilities.
    folds : int, default=3
        Number of folds for ``C`` and ``calibrate``.
    tol : float, default=1e-2
        Certified duality gap at which to stop, relative to the objective.
    max_iter : int, default=10000
        Largest number of passes over the rows, or those far from the optimum. If it is reached, the model is usable
        and a ``ConvergenceWarning`` says how far the fit came.
    memory_limit : float, default=4e9
        Bytes that the matrix of a kernel may take; a larger one is computed anew in every pass.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use. The model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Of the order of rows and the folds.
    verbose : int, default=0
        0 shows a progress bar for long fits on a terminal, 1 at once, 2 prints a line per pass.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: with a taxonomy all its nodes but the root.
    taxonomy_ : Taxonomy or None
        The taxonomy.
    label_form_ : LabelForm
        How label sets were written.
    C_ : float
        Given or chosen.
    held_out_losses_ : dict or None
        Mean loss of rows held out for each value of C that was compared.
    calibration_ : tuple of float or None
        Temperature and offset of the probabilities.
    thresholds_ : ndarray of shape (n_classes,) or None
        Of the probabilities, those of the largest F1 of each label on rows held out, with ``calibrate=True``; 0.5 for
        labels whose largest F1 is below 0.1.
    result_ : MarginResult
        How the fit went: status, certified gap, passes, seconds.
    n_iter_ : int
        Passes over the rows.
    functions_ : ClassFunctions
        What gives the scores of nodes and edges.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where the input had names.

    Examples
    --------
    >>> from taxolearn import MaxMarginTreeClassifier, Taxonomy
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    >>> y = [["pet/cat"], ["car"], ["pet/cat", "car"], []]
    >>> tree = Taxonomy.from_labels(["pet/cat", "pet/dog", "car"])
    >>> model = MaxMarginTreeClassifier(tree, C=10.0).fit(X, y)
    >>> model.predict([[1.0, 1.0], [0.0, 0.0]])
    [('car', 'pet/cat'), ()]
    """

    _gives_thresholds = "calibrate=True"

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        loss: str = "hamming",
        scaling: str = "uniform",
        C: Any = 1.0,
        kernel: Any = "linear",
        intercept_variance: float = 1.0,
        calibrate: bool = False,
        folds: int = 3,
        tol: float = 1e-2,
        max_iter: int = 10_000,
        memory_limit: float = 4e9,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.loss = loss
        self.scaling = scaling
        self.C = C
        self.kernel = kernel
        self.intercept_variance = intercept_variance
        self.calibrate = calibrate
        self.folds = folds
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = reads_kernel_values(self.kernel)
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags

    # -- Fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MaxMarginTreeClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs; with a ``Precomputed`` kernel its matrix.
        y : array, sparse matrix, data frame, list or series
            Any number of labels per row: an indicator matrix of 0 and 1, dense or sparse, or sets, lists, tuples or
            arrays of labels, empty for a row without any. With a taxonomy, labels are any of its nodes but the root,
            and imply those above them. Columns of an indicator are named as in ``RecursiveRegularizationClassifier``.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows; an integer weight acts like a repetition.

        Returns
        -------
        self
        """
        self._check_arguments()
        if y is None:
            raise ValueError("MaxMarginTreeClassifier requires y to be passed, but the target y is None")
        if not is_label_sets(y):
            raise ValueError(
                "y has one label per row, but MaxMarginTreeClassifier predicts sets of labels; give an indicator "
                "matrix or a list of sets, such as [[label] for label in y]"
            )
        sets, classes, form = read_label_sets(y, self.taxonomy)
        X, _ = check_inputs(self, X, np.zeros(len(sets)), reset=True)  # a stand-in of the same length
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        random = check_random_state(self.random_state)
        work = _Work(self, X, sets, classes, weights, int(random.randint(2**31 - 1)))
        costs = self._costs()
        chosen, held_out_losses = costs[0], None
        calibration, thresholds = None, None
        if len(costs) > 1 or self.calibrate:
            losses, values = self._hold_out(work, costs, random)
            best = int(losses.argmin())
            chosen = costs[best]
            if len(costs) > 1:
                held_out_losses = dict(zip(costs, losses.tolist(), strict=True))
            if self.calibrate:
                truth = sets.matrix()
                calibration = fit_label_calibration(values[best], truth, weights)
                thresholds = best_thresholds(_calibrated(values[best], calibration), truth)
        with self._progress() as progress:
            fitted = work.fit(np.arange(len(sets)), chosen, None, progress)
        self.classes_, self.taxonomy_, self.label_form_ = classes, self.taxonomy, form
        self.C_, self.held_out_losses_ = chosen, held_out_losses
        self.calibration_, self.thresholds_ = calibration, thresholds
        self.result_, self.n_iter_ = fitted.result, fitted.result.iterations
        self.functions_ = work.functions(fitted, np.arange(len(sets)))
        if self.result_.status != "converged":
            scale = "Centre and scale the features"
            why = f"{scale}, raise max_iter" if self.result_.status == "max_iter" else scale
            warnings.warn(
                f"The fit stopped after {self.n_iter_} passes (certified relative gap {self.result_.relative_gap:.1e}, "
                f"tol={self.tol:g}). {why}, or raise tol if this accuracy is enough.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _progress(self) -> AbstractContextManager[Any]:
        return fit_progress(self.verbose, self.tol)

    def _check_arguments(self) -> None:
        if not (self.taxonomy is None or isinstance(self.taxonomy, Taxonomy)):
            raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(self.taxonomy).__name__}")
        check_choice("loss", self.loss, MARGIN_LOSSES)
        check_choice("scaling", self.scaling, _SCALINGS)
        check_number("intercept_variance", self.intercept_variance, least=0)
        check_number("folds", self.folds, least=2, integer=True)
        check_number("tol", self.tol, least=0, strict=True)
        check_number("max_iter", self.max_iter, least=1, integer=True)
        check_number("memory_limit", self.memory_limit, least=0)
        if self.scaling != "uniform" and self.loss != "hierarchical":
            raise ValueError(f'scaling={self.scaling!r} goes with loss="hierarchical", got loss={self.loss!r}')

    def _costs(self) -> list[float]:
        """The values of C to compare, in increasing order."""
        if isinstance(self.C, str):
            check_choice("C", self.C, ("cv",))
            return list(_COSTS)
        given = np.atleast_1d(np.asarray(self.C, dtype=object)).tolist()
        if not given:
            raise ValueError("C is an empty sequence, expected at least one number")
        return sorted({check_number("C", value, least=0, strict=True) for value in given})

    def _hold_out(self, work: "_Work", costs: list[float], random: Any) -> tuple[Floats, list[Floats]]:
        """Mean held-out loss for each C, and max-marginals of all rows for each C."""
        n = len(work.sets)
        if n < self.folds:
            raise ValueError(f"folds={self.folds} needs at least as many rows, got n_samples={n}")
        fold_of = random.permutation(np.arange(n) % self.folds)
        values = [np.empty((n, work.sets.n_labels)) for _ in costs]
        for fold in range(self.folds):
            train, held = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
            start = None
            for place, cost in enumerate(costs):
                with self._progress() as progress:
                    fitted = work.fit(train, cost, start, progress)
                start = fitted.duals
                values[place][held] = work.marginals(work.functions(fitted, train), work.between(held, train))
        return np.array([work.mean_loss(each > 0) for each in values]), values

    def _learned_arguments(self) -> dict[str, Any]:
        return {"C": self.C_, "calibrate": False}

    def _adopt(self, again: Any) -> None:
        kept: dict[str, Any] = {"held_out_losses_": self.held_out_losses_, "calibration_": self.calibration_}
        if np.array_equal(self.classes_, again.classes_):
            kept["thresholds_"] = self.thresholds_
        super()._adopt(again)
        self.__dict__.update(kept)

    # -- Predicting ---------------------------------------------------------------------------------------------------

    def _output(self, X: Any, output: str) -> Floats:
        order, parents = label_order(self.taxonomy_, self.classes_)
        u = node_marginals(self.functions_, X, order, parents, check_threads(self.n_threads))
        u = self._consistent(u)  # raised by as much as rounding
        if output == "predictor":
            return u
        if self.calibration_ is None:
            raise ValueError(
                "scores of margins are not probabilities; fit with calibrate=True to learn some from rows held out"
            )
        return _calibrated(u, self.calibration_, expit if output == "probability" else log_expit)

    def decision_function(self, X: Any) -> Floats:
        """Max-marginals of the labels: shape (n_samples, n_classes).

        The largest score of a union of paths that has the label, minus the largest of one that has not. ``predict``
        answers the labels where this is above 0. A label's is never above that of the one above it.
        """
        return super().decision_function(X)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each label, in the order of ``classes_``; needs ``calibrate=True``."""
        return super().predict_proba(X)


def _calibrated(u: Floats, calibration: tuple[float, float], link: Any = expit) -> Floats:
    """Probabilities that max-marginals mean, or their logarithms."""
    temperature, offset = calibration
    values: Floats = link((u + offset) / temperature)
    return values


def label_order(taxonomy: Taxonomy | None, classes: npt.NDArray[Any]) -> tuple[Integers, Integers]:
    """Labels in the core's order, as places in the classes, and the places there of those above them, or -1."""
    if taxonomy is None:
        return np.arange(len(classes)), np.full(len(classes), -1)
    tree = LabelTree(taxonomy, classes)
    order = np.argsort(tree.depths, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    above = tree.parents[order]
    return order, np.where(above >= 0, place[above], -1)


def label_scales(parents: Integers, scaling: str) -> Floats:
    """Factors of the hierarchical loss, for labels in the core's order (Rousu et al. 2006, 2.1)."""
    n = len(parents)
    scales = np.ones(n)
    if scaling == "sibling":
        siblings = np.bincount(parents + 1, minlength=n + 1)[parents + 1]
        for node in range(n):
            scales[node] = (scales[parents[node]] if parents[node] >= 0 else 1.0) / siblings[node]
    elif scaling == "subtree":
        for node in reversed(range(n)):
            if parents[node] >= 0:
                scales[parents[node]] += scales[node]
        scales /= n
    return scales


def node_marginals(functions: Any, X: Any, order: Integers, parents: Integers, n_threads: int) -> Floats:
    """Max-marginals, in the order of the classes."""
    scores = np.ascontiguousarray(functions.output(X, "predictor", n_threads))
    out = np.empty((len(scores), len(order)))
    out[:, order] = _core.max_marginals(scores, parents.tolist(), n_threads)
    return out


class _Work:
    """The rows of a fit, of which some are fitted to at a time."""

    def __init__(
        self,
        model: MaxMarginTreeClassifier,
        X: Any,
        sets: LabelSets,
        classes: npt.NDArray[Any],
        weights: Floats | None,
        seed: int,
    ) -> None:
        self.model, self.X, self.weights, self.seed = model, X, weights, seed
        self.order, self.parents = label_order(model.taxonomy, classes)
        self.sets = LabelSets.of(sp.csr_array(sp.csc_array(sets.matrix())[:, self.order]))
        self.scales = label_scales(self.parents, model.scaling)
        self.threads = check_threads(model.n_threads)
        # The plain product, whatever variance a linear kernel would start from.
        kernel = Linear() if model.kernel == "linear" else as_kernel(start_kernels(model.kernel, X))
        if not kernel.is_native:
            raise TypeError("kernel is a Function; give its matrix as X, with kernel=Precomputed()")
        kernel.check_reads(X)
        self.kernel = kernel

    def between(self, rows: Any, others: Any) -> Any:
        """Inputs of rows for functions that were fitted to others."""
        return self.X[np.ix_(rows, others)] if self.kernel.is_precomputed else self.X[rows]

    def fit(self, rows: npt.NDArray[Any], cost: float, start: Any, progress: Any) -> MarginFit:
        """Minimize over some rows.

        A linear kernel of variance v is the plain one with C v and the intercepts' variance divided by v, and the
        objective divided by v.
        """
        model = self.model
        factor = self.kernel.split()[0] if isinstance(self.kernel, Linear) else 1.0
        sets = self.sets.take(rows)
        fitted = fit_margin(
            self.between(rows, rows),
            sets.offsets,
            sets.labels,
            self.parents,
            loss=model.loss,
            scales=self.scales if model.loss == "hierarchical" else None,
            C=cost * factor,
            bias=float(np.sqrt(model.intercept_variance / factor)),
            kernel=None if isinstance(self.kernel, Linear) else self.kernel.to_core(),
            sample_weight=None if self.weights is None else np.ascontiguousarray(self.weights[rows], dtype=np.float64),
            memory_limit=model.memory_limit,
            tol=model.tol,
            max_iter=model.max_iter,
            random_state=self.seed,
            start=start,
            n_threads=self.threads,
            progress=progress,
        )
        result = fitted.result
        return replace(fitted, result=replace(result, objective=result.objective / factor, gap=result.gap / factor))

    def functions(self, fitted: MarginFit, rows: npt.NDArray[Any]) -> Any:
        """What gives scores of nodes and edges."""
        if isinstance(self.kernel, Linear):
            return LinearFunctions(fitted.weights.T, fitted.intercepts)
        columns = tuple(range(len(fitted.intercepts)))
        basis = None if self.kernel.is_precomputed else self.X[rows]
        expansion = Expansion(self.kernel, basis, fitted.weights, columns)
        if basis is None:
            return MatrixFunctions([expansion], fitted.intercepts)
        return KernelFunctions([expansion], [], ClassCoupling(), fitted.intercepts, np.arange(len(columns)))

    def marginals(self, functions: Any, X: Any) -> Floats:
        return node_marginals(functions, X, self.order, self.parents, self.threads)

    def mean_loss(self, answers: npt.NDArray[np.bool_]) -> float:
        """The model's loss of answers for all rows, by its definition."""
        wrong = answers[:, self.order] != self.sets.matrix().toarray().astype(bool)
        if self.model.loss == "zero-one":
            losses = wrong.any(axis=1).astype(np.float64)
        elif self.model.loss == "hamming":
            losses = wrong.sum(axis=1).astype(np.float64)
        else:
            parent_wrong = np.where(self.parents >= 0, wrong[:, self.parents], False)
            losses = (wrong & ~parent_wrong) @ self.scales
        return float(np.average(losses, weights=self.weights))
