"""hiclass: local classifiers per parent node."""

import importlib
import warnings
from typing import Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from bench.libraries.contracts import PENALTIES, Classifier, JobModel, Predict, Rows, chosen_by_a_tenth
from bench.problems.data import Floats


def classifier(rows: Rows, C: float) -> Predict:
    """Fit local classifiers; leaves are repeated until all paths are equally long and end on the last level.

    Probabilities are products of those of the local classifiers: in version 5.0.8, ``predict_proba`` of a tree with
    more than two levels leaves most of the nodes out.
    """
    chains = [[str(node) for node in rows.data.taxonomy.path(name)] for name in rows.classes.tolist()]
    longest = max(len(chain) for chain in chains)
    paths = np.array([chain + chain[-1:] * (longest - len(chain)) for chain in chains])
    model = importlib.import_module("hiclass").LocalClassifierPerParentNode(
        LogisticRegression(C=C, max_iter=1000), n_jobs=rows.n_threads
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows.X, paths[rows.y])
    nodes = model.hierarchy_.nodes
    number = {model.separator_.join(path): k for k, path in enumerate(paths.tolist())}

    def predict(X: Any) -> Floats:
        full = np.zeros((X.shape[0], len(rows.classes)))
        reached: list[tuple[Any, Any]] = [(model.root_, 1.0)]
        while reached:
            node, probability = reached.pop()
            if node in number:
                full[:, number[node]] = probability
                continue
            local = nodes[node]["classifier"]
            of_children = local.predict_proba(X)
            reached += [(child, probability * of_children[:, k]) for k, child in enumerate(local.classes_)]
        return full

    return predict


def in_threads(rows: Rows, C: float) -> Predict:
    """The same in threads of this process, so that their memory and processor time are those of the fit."""
    with joblib.parallel_config("threading"):
        return classifier(rows, C)


CLASSIFIERS = {"hiclass, per parent": Classifier(classifier, PENALTIES)}
JOB_MODELS = {
    "hiclass": JobModel(
        chosen_by_a_tenth(in_threads, (1.0, 10.0, 100.0), ("hiclass",)),
        "LocalClassifierPerParentNode of LogisticRegression, probabilities multiplied along the path; "
        "C of 1, 10, 100 by the log loss of a held-out tenth, then a fit to all rows",
        takes=lambda job: job.taxonomy is not None,
    )
}
