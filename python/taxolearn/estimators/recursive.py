"""Recursive regularization: a classifier of each label against the rest, which leans on the one of its parent."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from taxolearn.couplings.graph import Graph
from taxolearn.estimators.label_calibration import fit_label_calibration
from taxolearn.estimators.label_sets import LabelSetClassifier
from taxolearn.estimators.recursive_fits import FITS
from taxolearn.estimators.recursive_variances import as_graph, as_recursive_tuning, structure_of, variances_by_group
from taxolearn.fitting.functions import LinearFunctions
from taxolearn.fitting.node_functions import NodeFunctions
from taxolearn.kernels.argument import as_kernel, reads_kernel_values
from taxolearn.kernels.base import with_params
from taxolearn.set_decisions import best_thresholds
from taxolearn.targets import (
    LabelForm,
    Targets,
    is_label_sets,
    label_targets,
    read_label_sets,
    read_targets,
    set_targets,
)
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_inputs, check_number, check_threads

__all__ = ["RecursiveRegularizationClassifier"]

Floats = npt.NDArray[np.float64]

_TYINGS = ("shared", "level", "subtree", "node")
_LARGEST_OFFSET = 1e6


class RecursiveRegularizationClassifier(LabelSetClassifier):
    """A classifier of each label against the rest, for one label per row or any number of them.

    Minimizes ``sum_n |w_n - w_parent(n)|^2 / (2 C) + sum_i sum_n loss(y_in (w_n . x_i + b_n))`` over the weights of all
    nodes n of a tree, where ``y_in`` is 1 if row i has label n and else -1, so that labels with few rows lean on their
    relatives (Gopal, Yang, TKDD 9, 2015, section 4). Without a tree the weights lean on zero: a logistic regression, or
    a linear support vector machine, of each label for itself. The fit stops when its duality gap is proven to be small.

    ``y`` decides which model this is. With one label per row, ``predict`` gives the best class, and probabilities sum
    to 1. With an indicator matrix or a list of label sets, every label has a probability of its own, whatever the
    others have. Under a tree every node is then a label, which a row has if it has one below; a node is at least as
    probable as any below it.

    Parameters
    ----------
    taxonomy : Taxonomy, ClassGraph or Graph, default=None
        The tree of labels, or a graph, whose neighbours lean on each other: the prior is that of ``Graph(graph)``, and
        a ``Graph`` says more about it. For the logistic loss ``tuning`` learns its ridge. In a directed graph all nodes
        are labels, and a label implies those above it; in an undirected one labels are those in ``y``.
    loss : {"logistic", "hinge", "squared_hinge"}, default="logistic"
        Loss of a label: ``log(1 + exp(-m))``, ``max(0, 1 - m)`` or its square. Hinge losses leave most rows without a
        say, so that fits are fast and weights sparse where classes are many and features are words; probabilities
        then come from predictors of held-out rows alone, so they need ``tuning``, or a ``temperature`` from elsewhere.
    kernel : str, Kernel or callable, default="linear"
        In place of products of rows, with the logistic loss only: "rbf" or any name or kernel that
        ``KernelLogisticClassifier`` has for all classes. Functions of rows then lean on each other as weights do;
        columns should have like scales, as ``sklearn.preprocessing.StandardScaler`` makes them. ``tuning`` learns the
        kernel's parameters. For ``Blocks`` each has this kernel.
    C : float, array of shape (n_groups,), mapping, Hyperparameters or None, default=None
        The variance of the weights around those of the parent: the larger, the less regular. None stands for a value
        that suits the scale of the data. With several groups of nodes (see ``tying``), one value for all or one for
        each, in the order of ``C_``. ``tuning`` learns it from there. For hinge losses without a tree it is that of
        liblinear. For ``Blocks`` a mapping gives each its own by name. With the logistic loss it may also be the
        ``hyperparameters_`` of another model, whose kernel counts then. With another kernel this is its variance.
    tying : {"shared", "level", "subtree", "node"}, default="level"
        Which nodes of the tree share a variance: all, as in the paper, those of the same depth, those below the same
        child of the root, or none. Except under "shared", the root has one of its own.
    intercept_variance : float, default=1.0
        Prior variance of the intercepts ``b_n``; 0 leaves them out. With hinge losses intercepts lean on those of the
        parents as weights do, and their variance is this times that of the weights: they are the weights of one more
        feature, whose value in every row is the root of this.
    temperature : float, default=1.0
        What divides predictors before they become probabilities. ``tuning`` learns it.
    offset : float, default=0.0
        What is added to the predictors of several labels per row before they are divided, the same for all labels.
        ``tuning`` learns it: the prior shrinks what features say, which makes rare labels less probable than they are.
    tuning : "cv", CrossValidation or None, default="cv"
        How ``C``, ``temperature`` and ``offset`` are learned by cross-validation. "cv" tries a few values of one
        variance (``CrossValidation(search="scale")``), and where there are several goes on with a few steps of all
        (``search="steps"``): from 10,000 rows, or 200,000 rows times labels, with one fold of five, and of at most
        500,000 rows times labels, or 1,000 rows. Kernels with more parameters than a variance follow the gradient. With
        hinge losses, all values are tried in steps of a factor of 4: first one factor of all variances, on a path that
        starts every fit from the dual variables of the last one, then, unless ``search="scale"``, each variance by
        itself; the least calibrated log loss counts, of as many held-out rows as make 16 million predictors. None uses
        the values that are given; then there are no thresholds for ``decide(X, thresholds="s-cut")``.
    class_weight : dict, "balanced" or None, default=None
        Weights of labels, multiplied into ``sample_weight``. With hinge losses a label's weight is that of the rows
        that have it, in the loss of this label alone. With the logistic loss it is that of rows in all their losses: a
        row with several labels has the mean of theirs, one without any has 1.
    tol : float, default=None
        Certified duality gap at which to stop, relative to the objective. None means 1e-6 for the logistic loss, and
        1e-3 for hinge losses, below which answers hardly change.
    max_iter : int, default=1000
        Largest number of iterations. If it is reached, the model is usable and a ``ConvergenceWarning`` says how far
        the fit came.
    warm_start : bool, default=False
        Start from the last fit. With the logistic loss as in ``KernelLogisticClassifier``; with hinge losses from its
        dual variables, if it had the same classes and rows, new ones at the end.
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
    graph_ : ClassGraph or None
        The graph, where ``taxonomy`` was one.
    is_multilabel_ : bool
        Whether ``y`` had any number of labels per row.
    label_form_ : LabelForm or None
        How these were written.
    coef_ : ndarray or csr_array of shape (n_classes, n_features)
        Weights, of linear models only; sparse where a fit with hinge losses, or ``taxolearn.prune``, leaves few. Under
        a tree what is stored then is what nodes add to their parents' weights, and these are sums of that, made on
        demand.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    C_ : float or dict
        Learned or given; where the tree has several groups of nodes, by their names. Inner nodes that are labels have
        a leaf of their own one level below. The root has weights too, with a variance of its own, unless all nodes
        share one. For ``Blocks`` in place of each variance those of the blocks, by their names.
    offset_ : float
        Learned or given; 0 for one label per row.
    thresholds_ : ndarray of shape (n_classes,) or None
        For several labels per row: thresholds of the probabilities with the largest F1 of each label on held-out rows;
        0.5 for labels whose largest F1 is below 0.1.
    hyperparameters_ : Hyperparameters
        Those of the fitted model, ``temperature`` among them.
    result_ : FitResult or RecursiveResult
        How the fit went: status, certified gap, counts, timings. With hinge losses ``passes`` is the work, in passes
        over all rows and classes.
    cv_result_ : LearningResult or None
        How the hyperparameters were learned.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features seen in ``fit``.
    blocks_in_ : dict
        Where the input was ``Blocks``, the number of features of each by name.
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
        taxonomy: Taxonomy | ClassGraph | Graph | None = None,
        *,
        loss: str = "logistic",
        kernel: Any = "linear",
        C: Any = None,
        tying: str = "level",
        intercept_variance: float = 1.0,
        temperature: float = 1.0,
        offset: float = 0.0,
        tuning: Any = "cv",
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float | None = None,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.loss = loss
        self.kernel = kernel
        self.C = C
        self.tying = tying
        self.intercept_variance = intercept_variance
        self.temperature = temperature
        self.offset = offset
        self.tuning = tuning
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_pairwise = reads_kernel_values(self.kernel)
        tags.input_tags.sparse = not is_pairwise
        tags.input_tags.pairwise = is_pairwise
        tags.classifier_tags.multi_label = True
        return tags

    def _expand(self, name: str, value: Any) -> Any:
        expand: dict[str, Callable[[], Any]] = {
            "tuning": lambda: as_recursive_tuning(self),
            "kernel": lambda: as_kernel(value),
        }
        return expand.get(name, lambda: value)()

    # -- Fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RecursiveRegularizationClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Blocks of shape (n_samples, n_features)
            Inputs. Sparse matrices of any format; CSR with sorted indices is used without a copy. ``Blocks``, each with
            a variance of its own, are for the logistic loss.
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
        check_choice("loss", self.loss, tuple(FITS))
        check_choice("tying", self.tying, _TYINGS)
        as_kernel(self.kernel)
        structure = structure_of(self.taxonomy)
        taxonomy = structure if isinstance(structure, Taxonomy) else None
        offset = check_number("offset", self.offset, least=-_LARGEST_OFFSET)
        form: LabelForm | None = None
        if is_label_sets(y):
            sets, classes, form = read_label_sets(y, structure)
            stand_in = np.zeros(len(sets))  # of the same length
            X, _ = check_inputs(self, X, stand_in, reset=True, blocks=self.loss == "logistic")
            targets = set_targets(sets, classes, structure)
        else:
            if read_targets(y, taxonomy, "own") is not None:
                raise ValueError(
                    "y has rows without a label (None or NaN); leave them out. For any number of labels per row, give "
                    "a list of them for each row, empty where there is none"
                )
            X, y = check_inputs(self, X, y, reset=True, blocks=self.loss == "logistic")
            targets = label_targets(y, taxonomy, "own")
        fitted = FITS[self.loss](self, X, targets, sample_weight)
        self.classes_ = targets.classes
        self.taxonomy_ = targets.taxonomy if form is None else taxonomy
        self.graph_ = structure if isinstance(structure, ClassGraph) else None
        self.label_form_ = form
        self._functions = fitted.functions
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
        C: Any = self.hyperparameters_
        if self.loss != "logistic":
            C = np.array(list(self.C_.values())) if isinstance(self.C_, dict) else self.C_
        ridge = self.hyperparameters_.ridge
        return {
            "taxonomy": self.taxonomy if ridge is None else with_params(as_graph(self.taxonomy), {"ridge": ridge}, ""),
            "C": C,
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

    @property
    def coef_(self) -> Any:
        check_is_fitted(self)
        if not isinstance(self._functions, (LinearFunctions, NodeFunctions)):
            raise AttributeError(
                f"coef_ are weights of features, which a model with the kernel {self.hyperparameters_.kernel!r} has not"
            )
        return self._functions.coef

    @property
    def intercept_(self) -> Floats:
        check_is_fitted(self)
        return self._functions.intercept

    def _output(self, X: Any, output: str) -> Floats:
        is_hinge = self.loss != "logistic"
        link = "logistic" if self.is_multilabel_ else "softmax" if is_hinge else "one_of"
        functions = self._functions.with_link(link, self.hyperparameters_.temperature)
        if not (is_hinge and output == "predictor"):
            functions = functions.shifted(self.offset_)
        values = functions.output(X, output, check_threads(self.n_threads))
        return self._consistent(values) if self.is_multilabel_ else values

    def _top(self, X: Any, k: int) -> tuple[npt.NDArray[np.intp], Floats] | None:
        """The k labels with the largest predictors and these, where they can be had without those of all labels."""
        check_is_fitted(self)
        if not isinstance(self._functions, NodeFunctions) or (self.is_multilabel_ and self.label_tree is not None):
            return None
        return self._functions.top(check_inputs(self, X, reset=False), k, check_threads(self.n_threads))
