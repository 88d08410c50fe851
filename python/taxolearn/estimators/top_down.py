"""Top-down classification: a softmax at every inner node of the tree."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taxolearn.blocks import Blocks
from taxolearn.estimators.base import TaxonomyClassifier
from taxolearn.estimators.block_variances import (
    check_block_variances,
    learn_block_variances,
    start_block_variances,
)
from taxolearn.estimators.explain import NodeExplanation
from taxolearn.estimators.top_down_answers import beam_search, best_classes, explain_nodes
from taxolearn.estimators.top_down_nodes import (
    Branches,
    LinearPriors,
    NodeFit,
    NodeRows,
    NodeWeights,
    TopDownResult,
    fit_nodes,
    rows_by_level,
)
from taxolearn.estimators.top_down_tuning import LevelParameters, learn_levels
from taxolearn.fitting.fit import FitResult
from taxolearn.kernels.argument import start_kernel
from taxolearn.targets import FOR_SEVERAL, Targets, as_labels, label_targets, read_targets, row_weights
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning, choose_rows, make_folds
from taxolearn.validation import check_inputs, check_number, check_threads

__all__ = ["TopDownClassifier", "branches_of", "node_weights", "set_node_weights"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FOLDS = 3
_CANDIDATES = 5
_ROOT = "root"  # what the only node is called where there is no tree


class TopDownClassifier(TaxonomyClassifier):
    """Logistic regression at every inner node of a tree of classes, fast for thousands of classes.

    At each inner node a multinomial logistic regression with a linear kernel, as ``KernelLogisticClassifier`` has it
    for all classes at once, tells the children apart. It is fitted to the rows below the node alone. The probability of
    a class is the product of those of the nodes on its path. The fits are small and independent of each other, and each
    has a certificate of its accuracy. The prior ties nothing between different nodes, so the joint model is often a
    little more accurate, where there is time for it.

    Each level of the tree has a variance and a temperature that the functions of its nodes are divided by. They are
    learned on rows that are held out.

    Memory is that of the weights, one for every feature and child at the nodes whose rows have the feature (8 bytes and
    4 for its place; half of the first if ``X`` is in single precision), and while a node is fitted some vectors with
    one number for each of its children and each of its rows or features, whichever are fewer. Predictions need a few
    hundred megabytes besides their result: ``predict``, ``decide`` and ``top_classes`` work on some rows after the
    other, so 17,000 classes are no problem, whereas ``predict_proba`` returns a number for each class and row.

    Parameters
    ----------
    taxonomy : Taxonomy, default=None
        The tree of classes. All its leaves are classes of the model, seen in ``y`` or not. Without one all classes are
        children of the root, which is plain multinomial logistic regression. ``Taxonomy.from_clusters`` makes a tree
        of data where there is none.
    variance : float, sequence of float or None, default=None
        Variance of the linear kernel: one for all levels, or one for each, that of the root first. None stands for a
        value that suits the data. Learning starts from it.
    intercept_variance : float, default=1.0
        Prior variance of the intercepts; 0 leaves them out.
    block_variances : mapping from names of blocks to float, default=None
        Where inputs are ``Blocks``, what the variance of each is, relative to the others: that of the first counts as
        1. None learns them at the root, or with ``tuning=None`` takes values that suit the data.
    temperature : float, sequence of float or None, default=None
        What the functions are divided by, for all levels or for each; None means 1. Learning does not need it.
    tuning : "cv", CrossValidation or None, default="cv"
        "cv" learns variances and temperatures in three folds, from at most 5,000 rows of each level. Of a
        ``CrossValidation``, ``folds``, ``subset``, ``time_limit`` and ``max_evaluations`` (of each level) are used.
        None uses the values that are given.
    labels : {"below", "own"} or PartialLabels, default="below"
        What the name of an inner node means as a label: "below" that the class is one of those below the node, nobody
        knows which, so that the row has a part in the fits above that node only; "own" a class of its own, for which a
        leaf is added below the node (``Taxonomy.with_classes``).
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied into ``sample_weight``.
    tol : float, default=1e-4
        Certified duality gap at which the fit of a node stops, relative to its objective.
    max_iter : int, default=1000
        Largest number of iterations at a node.
    n_jobs : int or None, default=None
        Number of nodes that are fitted at the same time, each by one thread. None fits large nodes one after the other
        with ``n_threads``, then small ones side by side.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the folds and of the rows they are made from. A fit with given hyperparameters has nothing random.
    verbose : int, default=0
        From 1 on, prints a line for each level.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; with a taxonomy all its leaves.
    taxonomy_ : Taxonomy or None
        The taxonomy, with a leaf for every label.
    hyperparameters_ : LevelParameters
        ``variances`` and ``temperatures`` by level, ``intercept_variance``, and ``block_variances``.
    result_ : TopDownResult
        How the fits went, summed up.
    node_results_ : dict of FitResult
        How each went, by the name of the node, "root" where there is no taxonomy.
    n_iter_ : int
        Iterations of the solver at the node that needed most.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where the input had names.

    Examples
    --------
    >>> from taxolearn import Taxonomy, TopDownClassifier
    >>> X = [[0.0, 1.0], [0.2, 1.0], [0.0, 2.0], [1.0, 0.0], [1.0, 0.1], [2.0, 0.0]]
    >>> y = ["animal/cat", "animal/cat", "animal/dog", "plant", "plant", "plant"]
    >>> model = TopDownClassifier(Taxonomy.from_labels(y), tuning=None).fit(X, y)
    >>> model.predict([[0.1, 0.9], [1.5, 0.0]]).tolist()
    ['animal/cat', 'plant']
    >>> model.result_.nodes
    2
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        variance: Any = None,
        intercept_variance: float = 1.0,
        block_variances: Mapping[str, float] | None = None,
        temperature: Any = None,
        tuning: Any = "cv",
        labels: Any = "below",
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.variance = variance
        self.intercept_variance = intercept_variance
        self.block_variances = block_variances
        self.temperature = temperature
        self.tuning = tuning
        self.labels = labels
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _expand(self, name: str, value: Any) -> Any:
        if name == "tuning":
            return _as_tuning(value)
        return as_labels(value) if name == "labels" else value

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TopDownClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Blocks of shape (n_samples, n_features)
            Inputs. Sparse matrices of any format; CSR with sorted indices is used without a copy.
        y : array or list of shape (n_samples,)
            Labels: numbers or strings; with a taxonomy, names of its nodes (see ``labels``). Missing ones (None, NaN,
            pandas.NA) have no influence.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows; an integer weight acts like a repetition.

        Returns
        -------
        self
        """
        data = self._read(X, y, sample_weight)
        hyperparameters = self._learn(data, _as_tuning(self.tuning))
        began = time.perf_counter()
        fits = fit_nodes(
            data.X,
            data.weights,
            data.branches,
            data.levels,
            hyperparameters.variances,
            _priors(hyperparameters.intercept_variance, hyperparameters.block_variances),
            check_number("tol", self.tol, least=0, strict=True),
            data.max_iter,
            n_jobs=self.n_jobs,
            n_threads=data.n_threads,
        )
        self.classes_ = data.targets.classes
        self.taxonomy_ = data.targets.taxonomy
        self.hyperparameters_ = hyperparameters
        self.node_results_ = self._results(fits)
        self.result_ = TopDownResult.of(self.node_results_, time.perf_counter() - began)
        self.n_iter_ = max((each.iterations for each in self.node_results_.values()), default=0)
        n_features, dtype = data.X.shape[1], data.X.dtype
        set_node_weights(self, NodeWeights.of(fits, data.branches, hyperparameters.temperatures, n_features, dtype))
        if self.result_.status != "converged":
            warnings.warn(self._unconverged(), ConvergenceWarning, stacklevel=2)
        return self

    def tuned(self, X: Any, y: Any, sample_weight: Any = None, folds: Any = None) -> TopDownClassifier:
        """Learn the hyperparameters only: an unfitted copy of this estimator that has them, with ``tuning=None``.

        Parameters
        ----------
        X, y, sample_weight
            As ``fit`` takes them.
        folds : as in CrossValidation, default=None
            In place of those of ``tuning``.
        """
        copied: TopDownClassifier = clone(self)
        tuning = _as_tuning(copied.tuning)
        if folds is not None:
            tuning = clone(tuning or CrossValidation())
            tuning.folds = folds
        learned = copied._learn(copied._read(X, y, sample_weight), tuning)
        out: TopDownClassifier = clone(copied).set_params(**_as_arguments(learned))
        return out

    def _learned_arguments(self) -> dict[str, Any]:
        return _as_arguments(self.hyperparameters_)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> _Data:
        """Check what the user gives."""
        if not (self.taxonomy is None or isinstance(self.taxonomy, Taxonomy)):
            raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(self.taxonomy).__name__}")
        inner = as_labels(self.labels).inner
        max_iter = check_number("max_iter", self.max_iter, least=0, integer=True)
        n_threads = check_threads(self.n_threads)
        targets = read_targets(y, self.taxonomy, inner)
        # A stand-in of the same length lets scikit-learn check the rest.
        labels = y if targets is None else np.zeros(len(targets.labels))
        X, y = check_inputs(self, X, labels, reset=True, blocks=True)
        targets = label_targets(y, self.taxonomy, inner) if targets is None else targets
        weights = row_weights(targets, sample_weight, self.class_weight, X)
        branches = branches_of(targets.taxonomy, targets.n_classes)
        at = _nodes_of(targets)
        if weights is not None:
            at[weights == 0] = -1
        return _Data(X, targets, weights, branches, at, rows_by_level(branches, at), max_iter, n_threads)

    def _learn(self, data: _Data, tuning: CrossValidation | None) -> LevelParameters:
        """The hyperparameters: those given, or learned from there."""
        n_levels = data.branches.n_levels
        temperatures = _per_level("temperature", 1.0 if self.temperature is None else self.temperature, n_levels)
        intercept_variance = check_number("intercept_variance", self.intercept_variance, least=0)
        variance, block_variances = self._start(data, is_learned=tuning is not None)
        variances = _per_level("variance", variance if self.variance is None else self.variance, n_levels)
        if tuning is None:
            return LevelParameters(variances, temperatures, intercept_variance, block_variances)
        tuning.check()
        random = check_random_state(self.random_state)
        rows = np.flatnonzero(data.at >= 0)
        codes = np.unique(data.names_of(rows), return_inverse=True)[1]
        folds = np.full(len(data.at), -1, dtype=np.int32)
        chosen = choose_rows(codes, tuning.subset, random)
        levels = data.levels
        if chosen is not None:
            rows, codes = rows[chosen], codes[chosen]
            at = np.full_like(data.at, -1)
            at[rows] = data.at[rows]
            levels = rows_by_level(data.branches, at)
        if isinstance(tuning.folds, (int, np.integer)):
            folds[rows] = make_folds(codes, int(codes.max()) + 1, tuning.folds, random, argument="folds")
        else:
            all_codes = np.zeros(len(data.at), dtype=np.int64)
            all_codes[rows] = codes
            folds[:] = make_folds(all_codes, int(codes.max()) + 1, tuning.folds, random, argument="folds")
        variances, temperatures = learn_levels(
            data.X,
            data.weights,
            data.branches,
            levels,
            folds,
            variances,
            _priors(intercept_variance, block_variances),
            data.max_iter,
            candidates=min(_CANDIDATES, check_number("max_evaluations", tuning.max_evaluations, least=1, integer=True)),
            time_limit=tuning.time_limit,
            n_jobs=self.n_jobs,
            n_threads=data.n_threads,
            random_state=random,
            report=print if self.verbose else lambda line: None,
        )
        return LevelParameters(variances, temperatures, intercept_variance, block_variances)

    def _start(self, data: _Data, *, is_learned: bool) -> tuple[float, dict[str, float]]:
        """A variance that suits the data, and factors of it for the blocks: as given, or learned at the root."""
        X = data.X
        if not isinstance(X, Blocks):
            if self.block_variances is not None:
                raise ValueError("block_variances are given, but X is one matrix, expected taxolearn.Blocks")
            return float(start_kernel("linear", X).split()[0]), {}
        start = start_block_variances(X)
        if self.block_variances is not None:
            variances = check_block_variances(self.block_variances, X)
        elif is_learned:
            child = data.children_of_root()
            rows = np.flatnonzero(child >= 0)
            weights = None if data.weights is None else data.weights[rows]
            variances = learn_block_variances(X[rows], child[rows], weights, n_threads=data.n_threads)
        else:
            variances = start
        first = next(iter(variances.values()))
        return start[X.names[0]], {name: variance / first for name, variance in variances.items()}

    def _results(self, fits: list[NodeFit]) -> dict[Any, FitResult]:
        names = [_ROOT] if self.taxonomy_ is None else self.taxonomy_.names
        return {names[each.node]: each.result for each in fits}

    def _unconverged(self) -> str:
        failed = sum(each.status != "converged" for each in self.node_results_.values())
        worst = self.node_results_[self.result_.worst]
        advice = (
            f"Raise max_iter (now {self.max_iter}), or tol if this accuracy is enough."
            if worst.status == "max_iter"
            else "Raise tol, or scale the features."
        )
        return (
            f"The fits of {failed} of {self.result_.nodes} nodes did not converge, the worst is {self.result_.worst!r} "
            f"(certified relative gap {worst.relative_gap:.1e}, tol={self.tol:g}). {advice}"
        )

    # -- Predictions --------------------------------------------------------------------------------------------------

    def _columns(self) -> Integers:
        """Functions of the classes, in the order of ``classes_``."""
        leaves: Integers = self._branches.leaves
        return leaves if self.taxonomy_ is None else leaves[np.argsort(self.taxonomy_.classes, kind="stable")]

    def _output(self, X: Any, output: str) -> Floats:
        columns = self._columns()
        out = np.empty((X.shape[0], len(columns)))
        for rows, log_p in self._functions.blocks(X, self._branches, check_threads(self.n_threads)):
            out[rows] = log_p[:, columns]
        return np.exp(out, out=out) if output == "probability" else out

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        columns = self._columns()
        best = np.zeros(X.shape[0], dtype=np.intp)
        for rows, log_p in self._functions.blocks(X, self._branches, check_threads(self.n_threads)):
            best[rows] = log_p[:, columns].argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    def top_classes(self, X: Any, k: int = 5, beam: int | None = None) -> tuple[npt.NDArray[Any], Floats]:
        """The most probable classes of each row and their probabilities, the largest first.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        k : int, default=5
            How many classes; at most all.
        beam : int or None, default=None
            Follow so many nodes of each level, the most probable ones, instead of all. Classes below others are not
            found; where fewer than ``k`` are, the rest are any others, with probability 0.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Classes.
        probabilities : ndarray of shape (n_samples, k)
            Their probabilities, which are exact in both cases.
        """
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        k = min(check_number("k", k, least=1, integer=True), len(self.classes_))
        n_threads = check_threads(self.n_threads)
        if beam is None:
            best, log_p = best_classes(self._functions, self._branches, self._columns(), X, k, n_threads)
        else:
            beam = check_number("beam", beam, least=1, integer=True)
            best, log_p = beam_search(self._functions, self._branches, self._columns(), X, k, beam)
        return self.classes_[best], np.exp(log_p)

    def explain(
        self, X: Any, node: Any = None, *, top: int = 10, feature_names: Any = None
    ) -> list[list[NodeExplanation]]:
        """The features that speak for and against each node on the path to an answer.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        node : name of a node or class, or one for each row, optional
            Where the path leads to; by default the most probable class.
        top : int, default=10
            How many features to name, those with the largest part first.
        feature_names : sequence of length n_features, optional
            Names of the features; by default those of the data frame in ``fit``, or numbers.

        Returns
        -------
        list of lists of NodeExplanation
            For each row, the nodes on the path from below the root; without a taxonomy the class alone.
        """
        check_is_fitted(self)
        answers = self.predict(X).tolist() if node is None else node
        X = check_inputs(self, X, reset=False)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        return explain_nodes(
            self._functions, self._branches, self.classes_, self.taxonomy_, X, answers, top=top, feature_names=names
        )


@dataclass(frozen=True)
class _Data:
    """What the user gives, checked."""

    X: Any
    targets: Targets
    weights: Floats | None
    branches: Branches
    at: Integers  # the node of each row, -1 for rows that have no influence
    levels: list[list[NodeRows]]
    max_iter: int
    n_threads: int

    def children_of_root(self) -> Integers:
        """The node below the root that each row is in or below, -1 for none."""
        out = np.full(len(self.at), -1, dtype=np.int64)
        for part in self.levels[0] if self.levels else []:
            out[part.rows] = part.targets
        return out

    def names_of(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Of the nodes of rows, so that folds do not depend on how a tree numbers them."""
        at, tree = self.at[rows], self.targets.taxonomy
        return at if tree is None else np.array([str(name) for name in tree.names])[at]


def node_weights(model: TopDownClassifier) -> NodeWeights:
    """What predicts."""
    check_is_fitted(model)
    functions: NodeWeights = model._functions
    return functions


def set_node_weights(model: TopDownClassifier, functions: NodeWeights) -> None:
    """Give a model that knows its classes what predicts."""
    model._functions = functions
    model._branches = branches_of(model.taxonomy_, len(model.classes_))


def branches_of(taxonomy: Taxonomy | None, n_classes: int) -> Branches:
    """Where the children of each node are."""
    return Branches.flat(n_classes) if taxonomy is None else Branches(taxonomy.parents, taxonomy.depths)


def _as_tuning(tuning: Any) -> CrossValidation | None:
    return CrossValidation(_FOLDS) if isinstance(tuning, str) and tuning == "cv" else as_tuning(tuning)


def _as_arguments(learned: LevelParameters) -> dict[str, Any]:
    """The arguments by which a model has these hyperparameters."""
    return {
        "variance": learned.variances,
        "temperature": learned.temperatures,
        "block_variances": learned.block_variances or None,
        "tuning": None,
    }


def _priors(intercept_variance: float, block_variances: Mapping[str, float]) -> LinearPriors:
    return LinearPriors(intercept_variance, tuple(block_variances.values()) or None)


def _per_level(name: str, value: Any, n_levels: int) -> tuple[float, ...]:
    """A number for each level, from one for all of them or from these."""
    if np.ndim(value) == 0:
        return (check_number(name, value, least=0, strict=True),) * n_levels
    if np.ndim(value) != 1 or len(value) != n_levels:
        raise ValueError(
            f"{name} is {value!r}, expected a number, or one for each of the {n_levels} levels of inner nodes"
        )
    return tuple(check_number(f"{name}[{d}]", each, least=0, strict=True) for d, each in enumerate(value))


def _nodes_of(targets: Targets) -> Integers:
    """The lowest node that each row is known to be at or below; -1 for the root, of which nothing is to be learned."""
    use = f"KernelLogisticClassifier takes these. {FOR_SEVERAL}"
    if targets.soft is not None:
        raise ValueError(f"y has probabilities of classes, but TopDownClassifier needs one label per row; {use}")
    n_inner = 1 if targets.taxonomy is None else targets.taxonomy.n_inner
    at = np.where(targets.labels >= 0, targets.labels + n_inner, -1).astype(np.int64)
    if targets.allowed is None:
        return at
    allowed, tree = targets.allowed, targets.taxonomy
    node_of = {}
    if tree is not None:
        ends = zip(tree.leaf_begin[:n_inner].tolist(), tree.leaf_end[:n_inner].tolist(), strict=True)
        node_of = {range_: node for node, range_ in enumerate(ends)}
    nodes = np.empty(len(allowed.sizes), dtype=np.int64)
    for s, (begin, end) in enumerate(zip(allowed.begin[:-1].tolist(), allowed.begin[1:].tolist(), strict=True)):
        members = allowed.members[begin:end]
        first, last = int(members[0]), int(members[-1]) + 1
        if last - first != len(members) or (first, last) not in node_of:
            row = int(allowed.rows[np.flatnonzero(allowed.of == s)[0]])
            listed = targets.in_core_order[members[:3]].tolist()
            raise ValueError(
                f"y: row {row} allows several classes ({', '.join(map(repr, listed))}{', ...' * (len(members) > 3)}) "
                f"that are not all those below one node, but TopDownClassifier needs one label per row; {use}"
            )
        nodes[s] = node_of[first, last]
    at[allowed.rows] = nodes[allowed.of]
    return at
