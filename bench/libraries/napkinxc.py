"""napkinXC: probabilistic label trees and hierarchical softmax."""

import importlib
import tempfile
from functools import partial
from typing import Any

import numpy as np

from bench.libraries.contracts import LOWER_PENALTIES, Classifier, JobModel, Predict, Rows, chosen_by_a_tenth
from bench.problems.data import Floats


def classifier(rows: Rows, kind: str, C: float) -> Predict:
    """A model of the given kind, in a folder of its own."""
    folder = tempfile.TemporaryDirectory()  # gone when the model is
    made = getattr(importlib.import_module("napkinxc.models"), kind)
    model = made(folder.name, liblinear_c=C, threads=rows.n_threads, seed=0)
    model.fit(rows.X, rows.y.tolist())

    def predict(X: Any, _: Any = folder) -> Floats:
        full = np.zeros((X.shape[0], len(rows.classes)))
        for row, answers in enumerate(model.predict_proba(X, top_k=len(rows.classes))):
            for label, probability in answers:
                full[row, label] = probability
        return full

    return predict


CLASSIFIERS = {
    "napkinXC PLT": Classifier(partial(classifier, kind="PLT"), LOWER_PENALTIES),
    "napkinXC HSM": Classifier(partial(classifier, kind="HSM"), LOWER_PENALTIES),
}
JOB_MODELS = {
    f"napkinXC {kind}": JobModel(
        chosen_by_a_tenth(partial(classifier, kind=kind), (1.0, 10.0, 100.0), ("napkinxc.models",)),
        f"{kind} with a tree of its own; C of 1, 10, 100 by the log loss of a held-out tenth, then a fit to all rows",
        takes=lambda job: job.is_sparse or job.taxonomy is not None,
    )
    for kind in ("PLT", "HSM")
}
