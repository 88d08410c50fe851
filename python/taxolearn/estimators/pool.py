"""A pool of experts: the log-linear mixture of several classifiers, with weights from rows they were not fitted to."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from taxolearn.blocks import Blocks
from taxolearn.estimators.base import TaxonomyClassifier
from taxolearn.estimators.block_variances import learn_block_variances
from taxolearn.estimators.centroid import CentroidClassifier
from taxolearn.estimators.class_sums import class_numbers
from taxolearn.estimators.explain import NodeExplanation, block_shares, explain_by_change, names_in_blocks
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.naive_bayes import NaiveBayesClassifier
from taxolearn.estimators.pooling.choice import drop_light, fit_weights, is_clearly_better, mean_loss
from taxolearn.estimators.pooling.experts import (
    FREQUENCIES,
    HeldOut,
    Lineup,
    default_experts,
    fit_expert,
    log_frequencies,
    log_scores,
    named_experts,
    subset_of_rows,
    without_zeros,
)
from taxolearn.estimators.pooling.folds import held_out_weights, pool_folds
from taxolearn.estimators.pooling.inputs import Inputs, Scaling, Uncertain
from taxolearn.estimators.pooling.schedule import Schedule
from taxolearn.estimators.pooling.scoring import Scored, score_experts
from taxolearn.estimators.pooling.weights import PoolResult
from taxolearn.estimators.top_down import TopDownClassifier, node_weights
from taxolearn.progress import Stages, stage_progress
from taxolearn.targets import Targets, label_targets, read_targets, row_weights
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_inputs, check_number, check_threads

__all__ = ["PoolClassifier", "PoolRow", "PoolTable", "contributions", "linear_expert"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ENTRIES = 60_000_000  # scores of all experts that weights are fitted to, at most
_UNTRIED = 1 - 1e-6  # part of the shares where nothing could be held out: experts then break ties only


@dataclass(frozen=True)
class PoolRow:
    """One expert in the table of a pool: scores are those of rows it was not fitted to, at its own temperature."""

    name: str
    log_loss: float
    accuracy: float
    weight: float
    seconds: float


class PoolTable(list[PoolRow]):
    """The experts of a pool, one row each; printed as a table."""

    def __str__(self) -> str:
        width = max([6, *(len(row.name) for row in self)])
        lines = [f"{'expert':<{width}}  log loss  accuracy  weight  seconds"]
        lines += [
            f"{row.name:<{width}}  {row.log_loss:8.4f}  {row.accuracy:8.4f}  {row.weight:6.3f}  {row.seconds:7.2f}"
            for row in self
        ]
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True)
class _Rows:
    """Checked rows with one class each and a weight, and those that may be of several classes.

    ``numbers`` are places in the sorted classes, and ``used`` says which of the user's rows have one class.
    """

    X: Any
    targets: Targets
    numbers: Integers
    weights: Floats | None
    used: npt.NDArray[np.bool_]
    uncertain: Uncertain | None


class PoolClassifier(TaxonomyClassifier):
    """A log-linear pool of classifiers: ``p(c|x) ~ exp(sum_k a_k log p_k(c|x) / T_k)``.

    Different models err differently, and their pool is mostly better than the best of them. Every expert has a
    temperature ``T_k``, so that it is as sure as it should be, and a weight ``a_k``, not negative. Both are fitted to
    rows that the experts were not fitted to, and the weights come with a certificate. Experts that do not help are
    dropped. On these rows the pool is never worse than its best expert, with one exception: where it is not better than
    the shares of the classes by two standard errors, three for 100 rows, its gain may be chance, and the answer is
    these shares. In any
    case the shares are mixed in, by ``1 / (n + 2)`` for n rows that were held out: what has never gone wrong yet may do
    so in the next row. If no class has two rows, nothing tells how good experts are, and they break ties only.

    Parameters
    ----------
    experts : "auto" or list of classifiers or of pairs (name, classifier), default="auto"
        Classifiers with ``predict_proba``, of scikit-learn's interface. "auto" takes what suits the inputs: logistic
        regression with either loss, over the tree if there is a taxonomy; naive Bayes where no feature is negative; the
        nearest centre for sparse inputs; and for dense inputs with few features and not too many rows a radial kernel.
        An expert may have a method ``tuned(X, y, sample_weight, folds)`` that returns an unfitted copy with
        hyperparameters chosen by these folds.
    taxonomy : Taxonomy, default=None
        A tree whose leaves are the classes. "auto" gives it to the experts; those that are listed have their own.
    folds : int, splitter of scikit-learn, iterable of pairs (train, test), or array of int, default=3
        Number of folds, or the folds themselves. Copies of a row are in the same fold. From 10,000 rows on, and
        from 4,000 if there are so many classes that fits take long, a fifth of them (or less, if this number is above
        five) is held out once, and the others never.
    tol : float, default=1e-3
        Relative gap at which fits of experts of "auto" stop.
    time_limit : float, default=None
        Seconds. Experts are tried cheapest first; those for which no time is left are skipped, and time for the last
        fits is kept. A fit that runs is not broken off, so the first expert is always there.
    warm_start : bool, default=False
        Whether ``fit`` and ``refit`` begin with the experts of the last fit: logistic ones look for hyperparameters
        near those they had, and are fitted from where they were, if classes and number of features are the same.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the folds, and of experts of "auto".
    verbose : int, default=0
        0 shows a bar on a terminal, if it takes long: what is being done, how good it is, and how much time is left as
        far as that is known. 1 also prints a line for each expert.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; with a taxonomy all its leaves.
    taxonomy_ : Taxonomy or None
        The taxonomy.
    experts_ : dict
        Fitted experts by name, those that were kept.
    weights_, temperatures_ : dict
        Of these by name. If the shares of classes are part of the pool, their weight is that of "class frequencies".
    pool_result_ : PoolResult
        How the weights were found: gap, iterations, status, log loss.
    table_ : list of PoolRow
        Log loss, accuracy, weight and seconds of every expert that was tried.
    skipped_ : list of str
        Experts for which the time limit left no time.
    cv_log_loss_ : float
        Mean log loss of the pool on the rows that its weights were fitted to; NaN if none could be held out.
    mean_, scale_ : ndarray of shape (n_features,), dict of these or None
        By which dense inputs are standardized for experts that take any sign; None for sparse inputs. For ``Blocks``,
        by the names of those that are dense.
    block_variances_ : dict of float or None
        For ``Blocks``, the variance of each that the experts of "auto" begin with.
    views_ : dict of tuple of str
        The blocks that experts see, where these are not all.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from taxolearn import PoolClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PoolClassifier().fit(X, y)
    >>> model.predict(X[:1])
    array([0])
    """

    def __init__(
        self,
        experts: Any = "auto",
        *,
        taxonomy: Taxonomy | None = None,
        folds: Any = 3,
        tol: float = 1e-3,
        time_limit: float | None = None,
        warm_start: bool = False,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.experts = experts
        self.taxonomy = taxonomy
        self.folds = folds
        self.tol = tol
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_listed = isinstance(self.experts, (list, tuple))
        experts = [pair[1] for pair in named_experts(self.experts)] if is_listed and self.experts else []
        tags.input_tags.sparse = all(get_tags(each).input_tags.sparse for each in experts)
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PoolClassifier:
        """Fit experts, temperatures and weights.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Blocks of shape (n_samples, n_features)
            Inputs. Columns of dense ones are standardized.
        y : array or list of shape (n_samples,)
            Labels; with a taxonomy, names of its nodes, where an inner node means one of the classes below it. An entry
            may also be a set, list or tuple of labels, one of which is right, or missing. Such rows have no part in
            the choice of experts and weights; experts that can use them, softmax and top-down, are fitted to them, too.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows, also given to the experts that take them.

        Returns
        -------
        self
        """
        begin = time.perf_counter()
        limit = np.inf if self.time_limit is None else check_number("time_limit", self.time_limit, least=0)
        deadline = begin + limit
        tol = check_number("tol", self.tol, least=0, strict=True)
        check_threads(self.n_threads)
        rows = self._read(X, y, sample_weight)
        with stage_progress(self.verbose) as stages:
            self._fit(rows, tol, deadline, stages)
        return self

    def _fit(self, rows: _Rows, tol: float, deadline: float, stages: Stages) -> None:
        X, targets, numbers, weights = rows.X, rows.targets, rows.numbers, rows.weights
        earlier = getattr(self, "experts_", {}) if self.warm_start else {}
        n_classes, folds = targets.n_classes, self.folds
        if isinstance(folds, np.ndarray) and folds.shape == rows.used.shape:
            folds = folds[rows.used]
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        self.classes_, self.taxonomy_ = targets.classes, targets.taxonomy
        inputs, lineup = self._prepare(rows, tol, seed, deadline, stages)
        experts = lineup.experts
        self._log_prior = log_frequencies(numbers, n_classes, weights)
        scored: list[Scored] = []
        if np.bincount(numbers).max() < 2:
            chosen = self._equal(experts)
        else:
            fold_of = pool_folds(X, numbers, n_classes, folds, random)
            most = _ENTRIES // (n_classes * len(experts))
            compared = subset_of_rows(np.flatnonzero(fold_of >= 0).tolist(), most, random)
            compared = compared[np.argsort(fold_of[compared], kind="stable")]
            counted = held_out_weights(numbers, fold_of) * (1.0 if weights is None else weights)
            held_out = HeldOut(fold_of, compared, counted[compared])
            schedule = Schedule(stages, [isinstance(each, KernelLogisticClassifier) for _, each in experts])
            scored = score_experts(
                experts,
                inputs,
                numbers,
                targets.classes,
                weights,
                held_out,
                earlier=earlier,
                deadline=deadline,
                schedule=schedule,
            )
            chosen = self._select(scored, numbers, weights, held_out, deadline)
        self.skipped_ = [name for name, _ in experts if name not in {row.name for row in self.table_}]
        kept = ", ".join(f"{name} {weight:.3f}" for name, weight in self.weights_.items())
        stages.line(f"pool: log loss {self.cv_log_loss_:.4f}, weights {kept}")
        self._fit_experts(chosen, earlier, inputs, rows, {each.name: each.found.fit_seconds for each in scored}, stages)

    def _prepare(self, rows: _Rows, tol: float, seed: int, deadline: float, stages: Stages) -> tuple[Inputs, Lineup]:
        """Scale the inputs, learn how much each block counts, and choose the experts."""
        common: dict[str, Any] = {"n_threads": self.n_threads, "random_state": seed}
        scaling = Scaling.choose(rows.X, rows.numbers, rows.weights, **common)
        self.mean_, self.scale_ = scaling.mean, scaling.scale
        inputs = Inputs.of(rows.X, scaling)
        self.block_variances_: dict[str, float] | None = None
        if isinstance(self.experts, str) and self.experts == "auto":
            if isinstance(inputs.scaled, Blocks):
                stages.update("learning how much each block counts", np.nan, False)
                self.block_variances_ = learn_block_variances(
                    inputs.scaled, rows.numbers, rows.weights, deadline=deadline, **common
                )
            lineup = default_experts(
                inputs,
                rows.targets.n_classes,
                rows.targets.taxonomy,
                block_variances=self.block_variances_,
                tol=tol,
                **common,
            )
        else:
            lineup = Lineup(named_experts(self.experts), {})
        return replace(inputs, views=lineup.views), lineup

    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> PoolClassifier:
        """Fit the experts to other rows, such as all of them, and keep all that was chosen and learned.

        Experts, their hyperparameters, temperatures and weights stay as they are, so this takes one fit of each
        expert. ``table_`` and ``cv_log_loss_`` are still those of ``fit``.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``. The number of features may be another one if they are sparse. Rows of weight 0 count as
            absent.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        Scaling(self.mean_, self.scale_).check(X)  # before anything is changed
        rows = self._read(X, y, sample_weight)
        self.classes_, self.taxonomy_ = rows.targets.classes, rows.targets.taxonomy
        inputs = self._inputs(rows.X)
        self._log_prior = log_frequencies(rows.numbers, rows.targets.n_classes, rows.weights)
        earlier = self.experts_ if self.warm_start else {}
        with stage_progress(self.verbose) as stages:
            self._fit_experts(list(self.experts_.items()), earlier, inputs, rows, {}, stages)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any) -> _Rows:
        """Check what the user gives."""
        if not (self.taxonomy is None or isinstance(self.taxonomy, Taxonomy)):
            raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(self.taxonomy).__name__}")
        targets = read_targets(y, self.taxonomy, "below")
        if targets is not None and targets.soft is not None:
            raise ValueError(
                "y has probabilities of classes, which PoolClassifier cannot use; give the most probable ones, or use "
                "KernelLogisticClassifier"
            )
        # A stand-in of the same length lets scikit-learn check the rest.
        labels = y if targets is None else np.zeros(len(targets.labels))
        X, y = check_inputs(self, X, labels, reset=True, blocks=True)
        targets = label_targets(y, self.taxonomy, "below") if targets is None else targets
        weights = row_weights(targets, sample_weight, None, X)
        has_weight = np.ones(X.shape[0], dtype=bool) if weights is None else weights > 0
        used = has_weight & (targets.labels >= 0)
        if not used.any():
            raise ValueError("y has no row with just one class; PoolClassifier needs some, to choose and weigh experts")
        numbers = class_numbers(targets)
        uncertain = Uncertain.of(X, targets, weights)
        if not used.all():
            X, numbers, weights = X[used], numbers[used], None if weights is None else weights[used]
        return _Rows(X, targets, numbers, weights, used, uncertain)

    def _fit_experts(
        self,
        chosen: list[tuple[str, Any]],
        earlier: dict[str, Any],
        inputs: Inputs,
        rows: _Rows,
        seconds: dict[str, float],
        stages: Stages,
    ) -> None:
        """Fit the experts to all rows; fits of those that were there earlier begin where these ended."""
        is_auto = isinstance(self.experts, str)
        fitted: dict[str, Any] = {}
        for name, estimator in chosen:
            left = float(np.sum([seconds.get(each, np.nan) for each, _ in chosen[len(fitted) :]]))
            stages.update(f"fitting {name} to all rows", left, False)
            data = inputs.given_to(name, estimator), self.classes_[rows.numbers], rows.weights
            if rows.uncertain is not None:
                data = rows.uncertain.added_to(name, estimator, data, Scaling(self.mean_, self.scale_), inputs.views)
            with warnings.catch_warnings():
                if is_auto:  # few evaluations are meant
                    warnings.filterwarnings("ignore", "Learning hyperparameters: stopped", ConvergenceWarning)
                fitted[name] = fit_expert(estimator, *data, earlier=earlier.get(name))
        self.experts_ = fitted
        self.views_ = {name: inputs.views[name] for name in fitted if name in inputs.views}
        self._floor = 1.0 / (len(rows.numbers) + len(self.classes_))

    def _equal(self, experts: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Equal weights, where no row can be held out."""
        experts = [(name, each[0] if isinstance(each, list) else each) for name, each in experts]
        names = [name for name, _ in experts]
        share = 1.0 / len(names)
        self.weights_ = dict.fromkeys(names, share)
        self.temperatures_ = dict.fromkeys(names, 1.0)
        self._uniform_shares = dict.fromkeys(names, 0.0)
        self.pool_result_ = PoolResult(np.full(len(names), share), np.nan, np.nan, 0, "equal", np.nan)
        self._prior_share = _UNTRIED
        self.table_ = PoolTable(PoolRow(name, np.nan, np.nan, share, np.nan) for name in names)
        self.cv_log_loss_ = np.nan
        return experts

    def _select(
        self, scored: list[Scored], numbers: Integers, weights: Floats | None, held_out: HeldOut, deadline: float
    ) -> list[tuple[str, Any]]:
        """Fit weights, drop what is light or what there is no time for, and keep the rest."""
        labels = numbers[held_out.rows]
        row_weight = held_out.weights
        n_classes = len(self.classes_)
        scores: dict[str, Any] = {each.name: each.found.scores for each in scored}
        alone = {each.name: each.loss for each in scored}
        frequencies = held_out.frequencies(numbers, n_classes, weights)
        names, result = drop_light(list(scores), scores, alone, labels, row_weight)
        prior_loss = mean_loss(frequencies, labels, row_weight)
        if prior_loss < result.loss:
            scores[FREQUENCIES], alone[FREQUENCIES] = frequencies, prior_loss
            names, result = drop_light(list(scores), scores, alone, labels, row_weight)
        single = np.bincount(numbers, minlength=n_classes) == 1
        # Rows of pairs that stand for single ones make experts that spread probability seem better than they are, so
        # the shares have an advantage, too: they are those of all rows.
        shares = np.broadcast_to(self._log_prior, frequencies.shape) if single.any() else frequencies
        if not is_clearly_better(names, result, scores, shares, labels, row_weight, single):
            scores[FREQUENCIES], alone[FREQUENCIES] = frequencies, prior_loss
            names = [FREQUENCIES]
            result = fit_weights(names, scores, labels, row_weight)
        needed = {each.name: each.found.fit_seconds for each in scored}
        while time.perf_counter() + sum(needed.get(name, 0.0) for name in names) > deadline and len(names) > 1:
            names = [name for k, name in enumerate(names) if k != int(np.argmin(result.weights))]
            result = fit_weights(names, scores, labels, row_weight)
        self.weights_ = dict(zip(names, result.weights.tolist(), strict=True))
        kept = [each for each in scored if each.name in self.weights_]
        self.temperatures_ = {each.name: each.temperature for each in kept}
        self._uniform_shares = {each.name: each.found.smoothing for each in kept}
        self.pool_result_ = result
        self._prior_share = 1.0 / (len(labels) + 2.0)
        self.cv_log_loss_ = result.loss
        seconds = {each.name: each.seconds for each in scored}
        self.table_ = PoolTable(
            PoolRow(
                name,
                alone[name],
                float(np.average(each.argmax(axis=1) == labels, weights=row_weight)),
                self.weights_.get(name, 0.0),
                seconds.get(name, 0.0),
            )
            for name, each in scores.items()
        )
        return [(each.name, each.estimator) for each in kept]

    def _inputs(self, X: Any) -> Inputs:
        """What the fitted experts see of these rows."""
        return Inputs.of(X, Scaling(self.mean_, self.scale_), self.views_)

    def _output(self, X: Any, output: str) -> Floats:
        inputs = self._inputs(X)
        u = np.zeros((X.shape[0], len(self.classes_)))
        if FREQUENCIES in self.weights_:
            u += self.weights_[FREQUENCIES] * self._log_prior
        for name, expert in self.experts_.items():
            scores = log_scores(expert, inputs.given_to(name, expert), self.classes_, self._floor)
            factor = self.weights_[name] / self.temperatures_[name]
            u += factor * without_zeros(scores, self._uniform_shares[name])
        # What has never gone wrong in n rows may still do so in the next one, by the rule of succession.
        log_p: Floats = log_softmax(u, axis=1) + np.log1p(-self._prior_share)
        np.logaddexp(log_p, self._log_prior + np.log(self._prior_share), out=log_p)
        return np.exp(log_p, out=log_p) if output == "probability" else log_p

    def explain(
        self, X: Any, node: Any = None, *, top: int = 10, feature_names: Any = None
    ) -> list[list[NodeExplanation]]:
        """The features that speak for and against each node on the path to the pool's answer.

        They are those of the linear expert with the largest weight, so probabilities are those of that expert, and
        features of dense inputs are standardized ones. A pool without a linear expert is asked what its answer would
        be if a feature had its mean (zero, if inputs are sparse); features are as they come then. Parameters and
        result are those of ``KernelLogisticClassifier.explain``.
        """
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        name = linear_expert(self)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        explained: list[list[NodeExplanation]]
        if name is None:
            if self.mean_ is not None and sp.issparse(X):
                X = X.toarray()
            explained = explain_by_change(
                X,
                lambda rows: self._output(rows, "predictor"),
                Scaling(self.mean_, self.scale_).usual(X),
                self.classes_,
                self.taxonomy_,
                node,
                top=top,
                feature_names=names,
            )
            return explained
        expert: Any = self.experts_[name]
        goal = self.classes_[self._output(X, "predictor").argmax(axis=1)] if node is None else node
        part = self._inputs(X).given_to(name, expert)
        if isinstance(X, Blocks) and not isinstance(part, Blocks):
            seen = X.select(self.views_[name])
            given = None if names is None else {each: names[each] for each in seen.names if each in names}
            names = names_in_blocks(seen, given)
        explained = expert.explain(part, goal, top=top, feature_names=names)
        return explained


def linear_expert(model: PoolClassifier) -> str | None:
    """The linear expert that explains the answers, None if there is none: one that sees all blocks, of large weight."""
    kinds = (NaiveBayesClassifier, CentroidClassifier, TopDownClassifier)
    linear = [
        name
        for name, expert in model.experts_.items()
        if isinstance(expert, TaxonomyClassifier) and (hasattr(expert, "coef_") or isinstance(expert, kinds))
    ]
    return max(linear, key=lambda name: (name not in model.views_, model.weights_[name]), default=None)


def contributions(model: Any, X: Blocks) -> dict[str, float]:
    """How much each block contributes to the answers, by ``block_shares``; of a pool, to those of its linear expert.

    Empty if there is no linear model of all blocks.
    """
    if isinstance(model, PoolClassifier):
        name = linear_expert(model)
        if name is None or name in model.views_:
            return {}
        expert = model.experts_[name]
        model, X = expert, model._inputs(check_inputs(model, X, reset=False)).given_to(name, expert)
    if isinstance(model, TopDownClassifier):
        return block_shares(X, node_weights(model).weights.T)
    return block_shares(X, model.coef_) if hasattr(model, "coef_") else {}
