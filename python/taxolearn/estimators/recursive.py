"""Recursive regularization: a classifier of each label against the rest, which leans on the one of its parent."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.estimators.base import TaxonomyClassifier
from taxolearn.estimators.explain import NodeExplanation, explain_labels
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier, check_arguments, fit_targets, unconverged
from taxolearn.estimators.label_calibration import fit_label_calibration
from taxolearn.estimators.label_set_answers import LabelSetAnswers
from taxolearn.fitting.fit import FitResult
from taxolearn.fitting.functions import LinearFunctions
from taxolearn.kernels import Linear
from taxolearn.set_decisions import best_sets, best_thresholds
from taxolearn.targets import (
    LabelForm,
    Targets,
    is_label_sets,
    label_targets,
    read_label_sets,
    read_targets,
    set_targets,
)
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.search import LearningResult
from taxolearn.validation import check_choice, check_inputs, check_number, check_threads

__all__ = ["RecursiveRegularizationClassifier", "variances_by_group"]

Floats = npt.NDArray[np.float64]

_TYINGS = ("shared", "level", "subtree", "node")
_THRESHOLDS = ("expected", "fixed", "s-cut")
_LARGEST_OFFSET = 1e6
_BATCH = 2**24  # elements of a block of probabilities


class RecursiveRegularizationClassifier(LabelSetAnswers, TaxonomyClassifier):
    """A linear classifier of each label against the rest, for one label per row or any number of them.

    Minimizes ``sum_n |w_n - w_parent(n)|^2 / (2 C) + sum_i sum_n log(1 + exp(-y_in (w_n . x_i + b_n)))`` over the
    weights of all nodes n of a tree, where ``y_in`` is 1 if row i has label n and else -1, so that labels with few rows
    lean on their relatives (Gopal, Yang, TKDD 9, 2015, section 4). Without a tree the weights lean on zero, which is
    logistic regression of each label for itself. The fit stops when its duality gap is proven to be small.

    ``y`` decides which model this is. With one label per row, ``predict`` gives the best class, and probabilities sum
    to 1. With an indicator matrix or a list of label sets, every label has a probability of its own, whatever the
    others have. Under a tree every node is then a label, which a row has if it has one below; a node is at least as
    probable as any below it.

    Parameters
    ----------
    taxonomy : Taxonomy, default=None
        The tree of labels.
    loss : {"logistic"}, default="logistic"
        Loss of a label.
    C : float, array of shape (n_groups,) or None, default=None
        The variance of the weights around those of the parent: the larger, the less regular. None stands for a value
        that suits the scale of the data. With several groups of nodes (see ``tying``), one value for all or one for
        each, in the order of ``C_``. ``tuning`` learns it from there.
    tying : {"shared", "level", "subtree", "node"}, default="level"
        Which nodes of the tree share a variance: all, as in the paper, those of the same depth, those below the same
        child of the root, or none.
    intercept_variance : float, default=1.0
        Prior variance of the intercepts ``b_n``; 0 leaves them out.
    temperature : float, default=1.0
        What divides predictors before they become probabilities. ``tuning`` learns it.
    offset : float, default=0.0
        What is added to the predictors of several labels per row before they are divided, the same for all labels.
        ``tuning`` learns it: the prior shrinks what features say, which makes rare labels less probable than they are.
    tuning : "cv", CrossValidation or None, default="cv"
        How ``C``, ``temperature`` and ``offset`` are learned by cross-validation. "cv" tries a few values of one
        variance (``CrossValidation(search="scale")``), and follows the gradient where there are several. None uses the
        values that are given; then there are no thresholds for ``decide(X, thresholds="s-cut")``.
    class_weight : dict, "balanced" or None, default=None
        Weights of labels, multiplied into ``sample_weight``: a row with several labels has the mean of theirs, one
        without any has 1.
    tol : float, default=1e-6
        Certified duality gap at which to stop, relative to the objective.
    max_iter : int, default=1000
        Largest number of iterations. If it is reached, the model is usable and a ``ConvergenceWarning`` says how far
        the fit came.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the folds.
    verbose : int, default=0
        0 shows a progress bar for long fits on a terminal, 1 at once, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: with a taxonomy all its leaves, and for several labels per row all its nodes but the root.
    taxonomy_ : Taxonomy or None
        The taxonomy; for one label per row, with a leaf for every label.
    is_multilabel_ : bool
        Whether ``y`` had any number of labels per row.
    label_form_ : LabelForm or None
        How these were written.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    C_ : float or dict
        Learned or given; where the tree has several groups of nodes, by their names. Inner nodes that are labels have
        a leaf of their own one level below.
    offset_ : float
        Learned or given; 0 for one label per row.
    thresholds_ : ndarray of shape (n_classes,) or None
        For several labels per row: thresholds of the probabilities with the largest F1 of each label on held-out rows.
    hyperparameters_ : Hyperparameters
        Those of the fitted model, ``temperature`` among them.
    result_ : FitResult
        How the fit went: status, certified gap, counts, timings.
    cv_result_ : LearningResult or None
        How the hyperparameters were learned.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where the input had names.

    Examples
    --------
    >>> from taxolearn import RecursiveRegularizationClassifier, Taxonomy
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    >>> y = [["pet/cat"], ["car"], ["pet/cat", "car"], []]
    >>> tree = Taxonomy.from_labels(["pet/cat", "pet/dog", "car"])
    >>> model = RecursiveRegularizationClassifier(tree, C=10.0, tuning=None).fit(X, y)
    >>> model.predict([[1.0, 1.0], [0.0, 0.0]])
    [('car', 'pet/cat'), ()]
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        loss: str = "logistic",
        C: Any = None,
        tying: str = "level",
        intercept_variance: float = 1.0,
        temperature: float = 1.0,
        offset: float = 0.0,
        tuning: Any = "cv",
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.loss = loss
        self.C = C
        self.tying = tying
        self.intercept_variance = intercept_variance
        self.temperature = temperature
        self.offset = offset
        self.tuning = tuning
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def _expand(self, name: str, value: Any) -> Any:
        return as_recursive_tuning(self) if name == "tuning" else value

    # -- Fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RecursiveRegularizationClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs. Sparse matrices of any format; CSR with sorted indices is used without a copy.
        y : array, sparse matrix, data frame, list or series
            One label per row: numbers or strings; with a taxonomy names of its nodes, where an inner one means a class
            of its own. Any number of labels per row: an indicator matrix of 0 and 1, dense or sparse, or sets, lists,
            tuples or arrays of labels, empty for a row without any. With a taxonomy, labels are any of its nodes but
            the root, and imply those above them. The columns of an indicator are named by a data frame; else they are
            the labels 0, 1, 2 and so on, or with a taxonomy its leaves or all its nodes but the root, sorted.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows; an integer weight acts like a repetition.

        Returns
        -------
        self
        """
        check_choice("loss", self.loss, tuple(_FITS))
        check_choice("tying", self.tying, _TYINGS)
        if not (self.taxonomy is None or isinstance(self.taxonomy, Taxonomy)):
            raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(self.taxonomy).__name__}")
        offset = check_number("offset", self.offset, least=-_LARGEST_OFFSET)
        form: LabelForm | None = None
        if is_label_sets(y):
            sets, classes, form = read_label_sets(y, self.taxonomy)
            X, _ = check_inputs(self, X, np.zeros(len(sets)), reset=True)  # a stand-in of the same length
            targets = set_targets(sets, classes, self.taxonomy)
        else:
            if read_targets(y, self.taxonomy, "own") is not None:
                raise ValueError(
                    "y has rows without a label (None or NaN); leave them out. For any number of labels per row, give "
                    "a list of them for each row, empty where there is none"
                )
            X, y = check_inputs(self, X, y, reset=True)
            targets = label_targets(y, self.taxonomy, "own")
        fitted = _FITS[self.loss](self, X, targets, sample_weight)
        self.classes_ = targets.classes
        self.taxonomy_ = targets.taxonomy if form is None else self.taxonomy
        self.label_form_ = form
        self.coef_, self.intercept_ = fitted.coef, fitted.intercept
        self.hyperparameters_ = fitted.hyperparameters
        self.C_ = variances_by_group(fitted.hyperparameters)
        self.result_, self.cv_result_ = fitted.result, fitted.learning
        self.n_iter_ = fitted.result.iterations
        self.offset_ = 0.0 if form is None else offset
        self.thresholds_: Floats | None = None
        if fitted.held_out is not None:
            self._learn_from_held_out(*fitted.held_out, targets, sample_weight)
        for message in fitted.messages:
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def _learn_from_held_out(self, u: Floats, rows: npt.NDArray[np.intp], targets: Targets, sample_weight: Any) -> None:
        """Set temperature, offset and thresholds by predictors of held-out rows, in the core's order of labels."""
        assert targets.sets is not None
        u = u[:, targets.order]
        truth = sp.csc_array(targets.sets.take(rows).matrix())[:, targets.order]
        tuning = as_recursive_tuning(self)
        if tuning is not None and tuning.learn_temperature:
            weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[rows]
            temperature, self.offset_ = fit_label_calibration(u, truth, weights)
            self.hyperparameters_ = replace(self.hyperparameters_, temperature=temperature)
        p: Floats = expit((u + self.offset_) / self.hyperparameters_.temperature)
        self.thresholds_ = best_thresholds(self._consistent(p), truth)

    def _learned_arguments(self) -> dict[str, Any]:
        values = list(self.C_.values()) if isinstance(self.C_, dict) else self.C_
        return {
            "C": np.array(values) if isinstance(values, list) else values,
            "intercept_variance": self.hyperparameters_.intercept_variance,
            "temperature": self.hyperparameters_.temperature,
            "offset": self.offset_,
            "tuning": None,
        }

    def _adopt(self, again: Any) -> None:
        if again.is_multilabel_ != self.is_multilabel_:
            raise ValueError("refit: y has another number of labels per row (one, or any number) than in fit")
        kept: dict[str, Any] = {"cv_result_": self.cv_result_}
        if self.thresholds_ is not None and np.array_equal(self.classes_, again.classes_):
            kept["thresholds_"] = self.thresholds_
        super()._adopt(again)
        self.__dict__.update(kept)

    # -- Predicting ---------------------------------------------------------------------------------------------------

    def _consistent(self, values: Floats) -> Floats:
        tree = self._tree
        return values if tree is None else tree.raise_parents(values)

    def _output(self, X: Any, output: str) -> Floats:
        link = "logistic" if self.is_multilabel_ else "one_of"
        intercept = self.intercept_ + self.offset_
        functions = LinearFunctions(self.coef_, intercept, link, self.hyperparameters_.temperature)
        values = functions.output(X, output, check_threads(self.n_threads))
        return self._consistent(values) if self.is_multilabel_ else values

    def _blocks(self, X: Any) -> Iterator[Floats]:
        """Probabilities of some rows after the other."""
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        for rows in gen_batches(X.shape[0], max(1, _BATCH // len(self.classes_))):
            yield self._output(X[rows], "probability")

    def decision_function(self, X: Any) -> Floats:
        """Predictors ``w . x + b`` of all labels: shape (n_samples, n_classes).

        Those of several labels per row have ``offset_`` added, so that labels above 0 are more probable than not, and
        are consistent with the tree, as probabilities are. For one label per row and
        two classes, it is their difference, of shape (n_samples,).
        """
        return self._predict(X, "predictor") if self.is_multilabel_ else super().decision_function(X)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the labels, in the order of ``classes_``.

        For one label per row, those of the labels divided by their sum. For any number of labels, each by itself; a
        node of the tree has the largest probability of its own and those below.
        """
        return super().predict_proba(X)

    def predict_node_proba(self, X: Any) -> Floats:
        """Probability of every node of the tree: shape (n_samples, n_nodes), in the order of ``taxonomy_.names``.

        The first node is the root, with probability 1.
        """
        if not self.is_multilabel_ or self.taxonomy_ is None:
            return super().predict_node_proba(X)
        return self._with_root(self.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """The best class of each row, or all labels that are more probable than not, in the form that ``y`` had.

        An indicator matrix has the columns of ``y``. Label sets come as a list of tuples, or of sets if ``y`` had sets;
        they hold the labels above others if those of ``y`` did, and else the lowest ones only.
        """
        if not self.is_multilabel_:
            return super().predict(X)
        return self._write(p > 0.5 for p in self._blocks(X))

    def decide(
        self,
        X: Any,
        loss: Any = None,
        *,
        thresholds: str | float | None = None,
        stop_cost: Any = None,
        confidence: float | None = None,
    ) -> Any:
        """The answer of least expected loss for each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        loss : str or array, optional
            For one label per row "zero-one", "taxo", "parent" or an array, as in ``taxolearn.decisions.decide``. For
            any number of labels one of these, with ``thresholds="expected"`` only:

            - "hamming": the number of wrong labels, the default;
            - "f1": 1 minus the F1 of the row's labels, as if labels were independent;
            - "hierarchical": the number of labels that are wrong while all above them are right;
            - "zero-one": 1 unless all labels are right.
        thresholds : {"expected", "fixed", "s-cut"} or float, default="expected"
            For any number of labels: the set of least expected ``loss``; labels of a probability above 0.5; above
            ``thresholds_``, along with all labels above them in the tree; or above the number.
        stop_cost, confidence : optional
            For one label per row, as in ``taxolearn.decisions.decide``.

        Returns
        -------
        ndarray of shape (n_samples,), or label sets in the form that ``y`` had
            Sets hold what is above their labels.
        """
        if not self.is_multilabel_:
            if thresholds is not None:
                raise ValueError(f"thresholds={thresholds!r} is for several labels per row; the model has one")
            loss = "zero-one" if loss is None else loss
            return super().decide(X, loss, stop_cost=stop_cost, confidence=confidence)
        if stop_cost is not None or confidence is not None:
            raise ValueError("stop_cost and confidence are for one label per row; the model has several")
        at: Any = thresholds
        how = "number"
        if isinstance(thresholds, float):
            if not 0 <= thresholds < 1:
                raise ValueError(f"thresholds must be a name, or a probability from 0 to below 1, got {thresholds!r}")
        else:
            how = check_choice("thresholds", "expected" if thresholds is None else thresholds, _THRESHOLDS)
            at = 0.5 if how == "fixed" else self.thresholds_
        if how == "expected":
            tree, chosen_loss = self._tree, "hamming" if loss is None else loss
            return self._write(best_sets(p, chosen_loss, tree) for p in self._blocks(X))
        if loss is not None:
            raise ValueError(f'loss={loss!r} goes with thresholds="expected", got thresholds={thresholds!r}')
        if at is None:
            raise ValueError('thresholds="s-cut" needs held-out rows: fit with tuning="cv" or a CrossValidation')
        return self._write(p > at for p in self._blocks(X))

    def top_classes(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], Floats]:
        """The most probable labels of each row and their probabilities, the largest first.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        k : int, default=5
            How many labels; at most all.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Labels; those that answers can have, for several labels per row.
        probabilities : ndarray of shape (n_samples, k)
            Their probabilities.
        """
        k = check_number("k", k, least=1, integer=True)
        check_is_fitted(self)
        columns = np.arange(len(self.classes_)) if self.label_form_ is None else self.label_form_.columns
        k = min(k, len(columns))
        labels, values = [], []
        for p in self._blocks(X):
            p = p[:, columns]
            best = np.argpartition(-p, k - 1, axis=1)[:, :k]
            top = np.take_along_axis(p, best, axis=1)
            order = np.lexsort((best, -top), axis=1)
            labels.append(columns[np.take_along_axis(best, order, axis=1)])
            values.append(np.take_along_axis(top, order, axis=1))
        return self.classes_[np.concatenate(labels)], np.concatenate(values)

    def explain(
        self, X: Any, node: Any = None, *, top: int = 10, feature_names: Any = None
    ) -> list[list[NodeExplanation]]:
        """The features that speak for and against labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        node : label, or one for each row, optional
            What to explain, with all nodes on the path to it. By default the best class; for several labels per row the
            labels that ``predict`` finds, with all above them, and the most probable one where there are none.
        top : int, default=10
            How many features to name, those with the largest part first.
        feature_names : sequence of length n_features, optional
            Names of the features; by default those of the data frame in ``fit``, or numbers.

        Returns
        -------
        list of lists of NodeExplanation
            For one label per row, parts are those in the logarithm of the odds against siblings, as for other models;
            for several labels, in the logarithm of the odds that the row has the label.
        """
        if not self.is_multilabel_:
            return super().explain(X, node, top=top, feature_names=feature_names)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        X = check_inputs(self, X, reset=False)
        return explain_labels(
            X, self.coef_, self._output(X, "probability"), self.classes_, self.taxonomy_, node, top, names
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on labelled data; for several labels per row the share of rows whose labels are all right."""
        if not self.is_multilabel_:
            return super().score(X, y, sample_weight)
        return self._score_sets((p > 0.5 for p in self._blocks(X)), y, sample_weight)

    @property
    def is_multilabel_(self) -> bool:
        check_is_fitted(self)
        return self.label_form_ is not None


@dataclass(frozen=True)
class _Fitted:
    """What the fit of a loss leaves, with labels in the order of ``classes_``.

    ``held_out`` are predictors of held-out rows, with labels in the core's order, and which rows these are;
    ``messages`` say what the fit fell short of.
    """

    coef: Floats
    intercept: Floats
    hyperparameters: Hyperparameters
    result: FitResult
    learning: LearningResult | None
    held_out: tuple[Floats, npt.NDArray[np.intp]] | None
    messages: list[str]


def _fit_logistic(model: RecursiveRegularizationClassifier, X: Any, targets: Targets, sample_weight: Any) -> _Fitted:
    """By the joint solver: a kernel logistic regression with independent losses under a tree coupling."""
    kernel: Any = "linear"
    variances = None
    if model.C is not None and targets.taxonomy is None:
        kernel = Linear(check_number("C", model.C, least=0, strict=True))
    elif model.C is not None:
        kernel = Linear(1.0)
        variances = model.C if np.ndim(model.C) > 0 else check_number("C", model.C, least=0, strict=True)
    joint = KernelLogisticClassifier(
        kernel,
        loss="independent",
        taxonomy=targets.taxonomy,
        coupling=Independent() if targets.taxonomy is None else Tree(model.tying, variances=variances),
        intercept_variance=model.intercept_variance,
        temperature=model.temperature,
        tuning=as_recursive_tuning(model),
        class_weight=model.class_weight,
        tol=model.tol,
        max_iter=model.max_iter,
        n_threads=model.n_threads,
        random_state=model.random_state,
        verbose=model.verbose,
    )
    learned = fit_targets(joint, check_arguments(joint), X, targets, sample_weight)
    return _Fitted(
        coef=joint.coef_,
        intercept=joint.intercept_,
        hyperparameters=joint.hyperparameters_,
        result=joint.result_,
        learning=joint.cv_result_,
        held_out=None if learned is None else learned.held_out,
        messages=list(unconverged(joint)),
    )


_FITS: dict[str, Callable[[RecursiveRegularizationClassifier, Any, Targets, Any], _Fitted]] = {
    "logistic": _fit_logistic,
}


def as_recursive_tuning(model: RecursiveRegularizationClassifier) -> CrossValidation | None:
    """How to learn that the argument ``tuning`` means: for one variance, a few values are compared."""
    has_one_variance = model.taxonomy is None or model.tying == "shared"
    if isinstance(model.tuning, str) and model.tuning == "cv" and has_one_variance:
        return CrossValidation(search="scale")
    return as_tuning(model.tuning)


def variances_by_group(table: Hyperparameters) -> float | dict[str, float]:
    """``C_`` of a model with these hyperparameters: a variance, or those of groups by name where there are several."""
    kernel: Any = table.kernel
    by_name = {name: kernel.variance * value for name, value in table.variances.items()}
    if not by_name:
        return float(kernel.variance)
    return by_name if len(by_name) > 1 else next(iter(by_name.values()))
