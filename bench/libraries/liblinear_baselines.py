"""liblinear in scikit-learn, as the baselines of Gopal and Yang: one against the rest, Crammer and Singer, top-down.

Tolerances are liblinear's own defaults, which are looser than those of scikit-learn.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from bench.libraries.contracts import PaperModel, PaperRows
from bench.problems.data import Floats
from taxolearn import Taxonomy

MakeClassifier = Callable[[float], Any]  # of C


def _svm(C: float) -> Any:
    return LinearSVC(C=C, loss="hinge", tol=0.1, random_state=0)


def _logistic(C: float) -> Any:
    return LogisticRegression(C=C, solver="liblinear", tol=0.01)


def _binary(make: MakeClassifier, X: Any, y: Any, C: float) -> tuple[Any, float]:
    """Weights and intercept; where all rows agree, a constant."""
    if y.all() or not y.any():
        return np.zeros(X.shape[1]), 1.0 if y.any() else -1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(C).fit(X, y)
    return model.coef_[0], float(model.intercept_[0])


def one_against_rest(rows: PaperRows, C: float, make: MakeClassifier) -> Callable[[Any], Floats]:
    """A classifier for each label; liblinear works without Python's lock, so threads do."""
    Y = sparse.csc_array(rows.Y).toarray() > 0
    fit = joblib.delayed(partial(_binary, make))
    found = joblib.Parallel(rows.n_threads, prefer="threads")(fit(rows.X, y, C) for y in Y.T)
    coef, intercept = (np.array(part) for part in zip(*found, strict=True))
    return lambda X: np.asarray(X @ coef.T) + intercept


def crammer_singer(rows: PaperRows, C: float) -> Callable[[Any], Floats]:
    """One machine for all classes; those without rows get the least score."""
    model = LinearSVC(C=C, multi_class="crammer_singer", tol=0.1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows.X, rows.Y.indices)

    def scores(X: Any) -> Floats:
        full = np.full((X.shape[0], rows.Y.shape[1]), -np.inf)
        found = model.decision_function(X)
        full[:, model.classes_] = found if found.ndim > 1 else np.stack([-found, found], axis=1)
        return full

    return scores


def top_down(rows: PaperRows, C: float) -> Callable[[Any], Floats]:
    """At each node a machine for each child against its siblings, on the rows below; 1 for what is reached, else -1.

    With one label per row the best child is reached, else every child with a score above 0.
    """
    tree = rows.job.hierarchy
    assert isinstance(tree, Taxonomy)
    parents = np.asarray(tree.parents)
    column = tree.index(rows.job.classes)
    has = np.zeros((rows.Y.shape[0], tree.n_nodes), dtype=bool)
    has[:, column] = rows.Y.toarray() > 0
    for node in range(tree.n_nodes - 1, 0, -1):  # parents come before their children
        has[:, parents[node]] |= has[:, node]
    fit = joblib.delayed(partial(_binary, _svm))
    below = [np.flatnonzero(has[:, parent]) for parent in parents[1:]]
    found = joblib.Parallel(rows.n_threads, prefer="threads")(
        fit(rows.X[part], has[part, node], C) for node, part in enumerate(below, start=1)
    )
    coef, intercept = (np.array(part) for part in zip(*found, strict=True))
    is_one = rows.job.has_one_label

    def answers(X: Any) -> Floats:
        scores = np.asarray(X @ coef.T) + intercept
        reached = np.zeros((X.shape[0], tree.n_nodes), dtype=bool)
        reached[:, 0] = True
        for parent in range(tree.n_nodes):
            children = np.flatnonzero(parents[1:] == parent) + 1
            if len(children) == 0:
                continue
            of_children = scores[:, children - 1]
            chosen = of_children == of_children.max(axis=1, keepdims=True) if is_one else of_children > 0
            reached[:, children] = chosen & reached[:, [parent]]
        return np.where(reached[:, column], 1.0, -1.0)

    return answers


PAPER_MODELS = {
    "BSVM, liblinear": PaperModel(partial(one_against_rest, make=_svm)),
    "BLR, liblinear": PaperModel(partial(one_against_rest, make=_logistic)),
    "MSVM, liblinear": PaperModel(crammer_singer, lambda job: job.has_one_label),
    "TD, liblinear": PaperModel(top_down, has_decided=True),
}
