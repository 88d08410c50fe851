"""PECOS: XLinear."""

import importlib
from typing import Any

import numpy as np
from scipy import sparse

from bench.libraries.contracts import (
    LOWER_PENALTIES,
    WIDE_PENALTIES,
    Classifier,
    JobModel,
    LabelModel,
    LabelRows,
    Labels,
    Predict,
    PredictLabels,
    PredictTop,
    Rows,
    TopModel,
    chosen_by_a_tenth,
    labels_chosen_by_a_tenth,
)
from bench.problems.data import Floats


def _fitted(rows: Rows, C: float) -> Any:
    """A model of one label per row."""
    ones = np.ones(len(rows.y), dtype=np.float32)
    Y = sparse.csc_matrix((ones, (np.arange(len(rows.y)), rows.y)), shape=(len(rows.y), len(rows.classes)))
    return _train(rows.X, Y, C, rows.n_threads)


def _train(inputs: Any, Y: Any, C: float, n_threads: int) -> Any:
    """A model on a tree of the classes that PECOS makes itself."""
    xmc, xlinear = (importlib.import_module(f"pecos.xmc{name}") for name in (".base", ".xlinear"))
    X = _as_floats(inputs)
    features = xmc.LabelEmbeddingFactory.create(Y, X, method="pifa", threads=n_threads)
    clusters = xmc.Indexer.gen(features, threads=n_threads)
    return xlinear.XLinearModel.train(
        X, Y, C=clusters, solver_type="L2R_LR_DUAL", Cp=C, Cn=C, bias=1.0, threads=n_threads
    )


def _as_floats(X: Any) -> Any:
    return sparse.csr_matrix(X, dtype=np.float32).sorted_indices()


def classifier(rows: Rows, C: float) -> Predict:
    """Probabilities of all classes."""
    return _all_scored(_fitted(rows, C), len(rows.classes), rows.n_threads)


def of_labels(rows: LabelRows, C: float) -> PredictLabels:
    """Probabilities of all labels, any number of which a row may have."""
    Y = sparse.csc_matrix(rows.Y, dtype=np.float32)
    return _all_scored(_train(rows.X, Y, C, rows.n_threads), Y.shape[1], rows.n_threads)


def _all_scored(model: Any, count: int, n_threads: int) -> Predict:
    """The beam is as wide as there are classes."""

    def predict(X: Any) -> Floats:
        answer = model.predict(
            _as_floats(X), only_topk=count, beam_size=count, post_processor="sigmoid", threads=n_threads
        )
        full: Floats = answer.toarray().astype(np.float64)
        return full

    return predict


def top(rows: Rows, C: float) -> PredictTop:
    """The most probable classes alone, with the beam of 10 that is the default."""
    model = _fitted(rows, C)

    def predict(X: Any, k: int) -> Labels:
        answer = model.predict(
            _as_floats(X), only_topk=k, beam_size=10, post_processor="sigmoid", threads=rows.n_threads
        )
        best = np.full((X.shape[0], k), -1)
        for row, (begin, end) in enumerate(zip(answer.indptr, answer.indptr[1:], strict=False)):
            order = np.argsort(-answer.data[begin:end], kind="stable")
            best[row, : end - begin] = answer.indices[begin:end][order]
        return best

    return predict


CLASSIFIERS = {"PECOS XLinear": Classifier(classifier, LOWER_PENALTIES, pecos=True)}
TOP_MODELS = {"PECOS XLinear": TopModel(top, ({"C": 1.0}, {"C": 10.0}, {"C": 100.0}), "pecos")}
JOB_MODELS = {
    "PECOS XLinear": JobModel(
        chosen_by_a_tenth(classifier, WIDE_PENALTIES, ("pecos.xmc.base", "pecos.xmc.xlinear")),
        "L2R_LR_DUAL on a tree of its own, all classes scored; Cp of 0.1, 1, 10, 100, 1000 by the log loss of a "
        "held-out tenth, then a fit to all rows",
        takes=lambda job: job.is_sparse,
        pecos=True,
    )
}
LABEL_MODELS = {
    "PECOS XLinear": LabelModel(
        labels_chosen_by_a_tenth(
            of_labels, tuple({"C": C} for C in WIDE_PENALTIES), ("pecos.xmc.base", "pecos.xmc.xlinear")
        ),
        "L2R_LR_DUAL on a tree of its own, all labels scored; Cp of 0.1, 1, 10, 100, 1000 by the log loss of a "
        "held-out tenth, then a fit to all rows",
        environment="pecos",
    )
}
