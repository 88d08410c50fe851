"""PECOS: XLinear."""

import importlib
from typing import Any

import numpy as np
from scipy import sparse

from bench.libraries.contracts import LOWER_PENALTIES, Classifier, JobModel, Predict, Rows, chosen_by_a_tenth
from bench.problems.data import Floats


def classifier(rows: Rows, C: float) -> Predict:
    """A model on a tree of the classes that PECOS makes itself; all classes are scored."""
    xmc, xlinear = (importlib.import_module(f"pecos.xmc{name}") for name in (".base", ".xlinear"))
    count = len(rows.classes)
    X = sparse.csr_matrix(rows.X, dtype=np.float32).sorted_indices()
    ones = np.ones(len(rows.y), dtype=np.float32)
    Y = sparse.csc_matrix((ones, (np.arange(len(rows.y)), rows.y)), shape=(len(rows.y), count))
    features = xmc.LabelEmbeddingFactory.create(Y, X, method="pifa", threads=rows.n_threads)
    clusters = xmc.Indexer.gen(features, threads=rows.n_threads)
    model = xlinear.XLinearModel.train(
        X, Y, C=clusters, solver_type="L2R_LR_DUAL", Cp=C, Cn=C, bias=1.0, threads=rows.n_threads
    )

    def predict(X: Any) -> Floats:
        given = sparse.csr_matrix(X, dtype=np.float32).sorted_indices()
        answer = model.predict(
            given, only_topk=count, beam_size=count, post_processor="sigmoid", threads=rows.n_threads
        )
        full: Floats = answer.toarray().astype(np.float64)
        return full

    return predict


CLASSIFIERS = {"PECOS XLinear": Classifier(classifier, LOWER_PENALTIES, pecos=True)}
JOB_MODELS = {
    "PECOS XLinear": JobModel(
        chosen_by_a_tenth(classifier, (1.0, 10.0, 100.0), ("pecos.xmc.base", "pecos.xmc.xlinear")),
        "L2R_LR_DUAL on a tree of its own, all classes scored; Cp of 1, 10, 100 by the log loss of a held-out tenth, "
        "then a fit to all rows",
        takes=lambda job: job.is_sparse or job.taxonomy is not None,
        pecos=True,
    )
}
