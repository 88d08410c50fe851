"""What classifiers share whose rows have one label, or any number of them: answers, decisions, scores."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from taxolearn.estimators.base import NOT_LINEAR, TaxonomyClassifier
from taxolearn.estimators.explain import NodeExplanation, explain_labels
from taxolearn.fitting.functions import linked
from taxolearn.set_decisions import LabelGraph, LabelTree, best_sets
from taxolearn.targets import LabelForm, closed_sets, nodes_above, read_label_sets
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.validation import check_choice, check_inputs, check_number

__all__ = ["LabelSetClassifier"]

Floats = npt.NDArray[np.float64]

_THRESHOLDS = ("expected", "fixed", "s-cut")
_BATCH = 2**24  # elements of a block of probabilities


class LabelSetClassifier(TaxonomyClassifier):
    """A classifier that answers with one label per row or with a set of them, in the form that ``y`` had.

    A subclass sets the attributes below in ``fit``, besides those of ``TaxonomyClassifier``; the last three if it is
    linear in the features, label by label. With label sets, classes are the nodes of the taxonomy but the root.
    """

    label_form_: LabelForm | None
    graph_: ClassGraph | None = None
    thresholds_: Floats | None

    _gives_thresholds = 'tuning="cv" or a CrossValidation'  # arguments of ``fit``

    offset_: float
    hyperparameters_: Hyperparameters

    @property
    def label_tree(self) -> LabelTree | LabelGraph | None:
        """Which labels lie below which, None where none do."""
        if self.taxonomy_ is not None:
            return LabelTree(self.taxonomy_, self.classes_)
        is_directed = self.graph_ is not None and self.graph_.directed
        return LabelGraph(self.graph_, self.classes_) if is_directed and self.graph_ is not None else None

    def _consistent(self, values: Floats) -> Floats:
        tree = self.label_tree
        return values if tree is None else tree.raise_parents(values)

    def _blocks(self, X: Any, output: str = "probability") -> Iterator[Floats]:
        """Probabilities, or predictors, of some rows after the other, so that those of all never exist at once."""
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        for rows in gen_batches(X.shape[0], max(1, _BATCH // len(self.classes_))):
            yield self._output(X[rows], output)

    def _answers(self, X: Any) -> Iterator[npt.NDArray[np.bool_]]:
        """Which labels ``predict`` finds, for some rows after the other."""
        return (u > 0 for u in self._blocks(X, "predictor"))

    def _top(self, X: Any, k: int) -> tuple[npt.NDArray[np.intp], Floats] | None:
        """The k labels with the largest predictors and these, if there is a way without those of all labels."""
        return None

    def decision_function(self, X: Any) -> Floats:
        """Predictors ``w . x + b`` of all labels: shape (n_samples, n_classes).

        Labels above 0 are those that ``predict`` finds where rows have several. These predictors are consistent with
        the tree, as probabilities are, and under the logistic loss have ``offset_`` added, so that labels above 0 are
        more probable than not. For one label per row and two classes, it is their difference, of shape (n_samples,).
        """
        return self._predict(X, "predictor") if self.is_multilabel_ else super().decision_function(X)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the labels, in the order of ``classes_``.

        For one label per row, those of the labels divided by their sum. For any number of labels, each by itself; a
        node of the tree has the largest probability of its own and those below. Those of hinge losses are only as good
        as the temperature and the offset, which ``tuning`` learns from held-out rows.
        """
        return super().predict_proba(X)

    def predict_node_proba(self, X: Any) -> Floats:
        """Probability of every node of the tree: shape (n_samples, n_nodes), in the order of ``taxonomy_.names``.

        The first node is the root, with probability 1.
        """
        if not self.is_multilabel_ or self.taxonomy_ is None:
            return super().predict_node_proba(X)
        proba = self.predict_proba(X)
        out = np.ones((len(proba), self.taxonomy_.n_nodes))
        out[:, self.taxonomy_.index(self.classes_.tolist())] = proba
        return out

    def predict(self, X: Any) -> Any:
        """The best class of each row, or all labels whose predictor is above 0, in the form that ``y`` had.

        With the logistic loss these are the labels that are more probable than not.
        An indicator matrix has the columns of ``y``. Label sets come as a list of tuples, or of sets if ``y`` had sets;
        they hold the labels above others if those of ``y`` did, and else the lowest ones only.
        """
        if self.is_multilabel_:
            return self._write(self._answers(X))
        best = self._top(X, 1)
        if best is not None:
            return self.classes_[best[0][:, 0]]
        return self.classes_[np.concatenate([u.argmax(axis=1) for u in self._blocks(X, "predictor")])]

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
            tree, chosen_loss = self.label_tree, "hamming" if loss is None else loss
            return self._write(best_sets(p, chosen_loss, tree) for p in self._blocks(X))
        if loss is not None:
            raise ValueError(f'loss={loss!r} goes with thresholds="expected", got thresholds={thresholds!r}')
        if at is None:
            raise ValueError(f'thresholds="s-cut" needs held-out rows: fit with {self._gives_thresholds}')
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
        if self.is_multilabel_ and len(columns) == len(self.classes_) and (found := self._top(X, k)) is not None:
            best, u = found
            temperature = self.hyperparameters_.temperature
            return self.classes_[best], linked(u + self.offset_, "probability", "logistic", temperature)
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
        coef = getattr(self, "coef_", None)
        if coef is None:
            raise ValueError(NOT_LINEAR)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        X = check_inputs(self, X, reset=False)
        return explain_labels(X, coef, self._output(X, "probability"), self.classes_, self.taxonomy_, node, top, names)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on labelled data; for several labels per row the share of rows whose labels are all right."""
        if not self.is_multilabel_:
            return super().score(X, y, sample_weight)
        assert self.label_form_ is not None
        sets, _, _ = read_label_sets(y, self.taxonomy_ or self.graph_, self.classes_, columns=self.label_form_.columns)
        truth = self.label_form_.restricted(sets.matrix(), self._above())
        answers = self.label_form_.restricted(self._sets(self._answers(X)), self._above())
        if truth.shape[0] != answers.shape[0]:
            raise ValueError(f"y has {truth.shape[0]} rows, but X has {answers.shape[0]}")
        wrong = np.diff(sp.csr_array(truth.astype(bool) != answers.astype(bool)).indptr)
        return float(np.average(wrong == 0, weights=sample_weight))

    @property
    def is_multilabel_(self) -> bool:
        check_is_fitted(self)
        return self.label_form_ is not None

    def _above(self) -> Any:
        structure = self.taxonomy_ or self.graph_
        return None if structure is None else nodes_above(structure, self.classes_)

    def _sets(self, blocks: Any) -> sp.csr_array:
        """The indicator of chosen labels, closed upwards."""
        return closed_sets(sp.vstack([sp.csr_array(block) for block in blocks], format="csr"), self._above())

    def _write(self, blocks: Any) -> Any:
        assert self.label_form_ is not None
        return self.label_form_.write(self._sets(blocks), self.classes_, self._above())
