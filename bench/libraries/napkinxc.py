"""napkinXC: probabilistic label trees and hierarchical softmax."""

import importlib
import tempfile
from functools import partial
from typing import Any

import numpy as np

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


def _fitted(rows: Rows, kind: str, C: float) -> tuple[Any, Any]:
    """A model of the given kind, and its folder, which is gone when nobody holds it."""
    folder = tempfile.TemporaryDirectory()
    made = getattr(importlib.import_module("napkinxc.models"), kind)
    model = made(folder.name, liblinear_c=C, threads=rows.n_threads, seed=0)
    model.fit(rows.X, rows.y.tolist())
    return model, folder


def classifier(rows: Rows, kind: str, C: float) -> Predict:
    """Probabilities of all classes."""
    model, folder = _fitted(rows, kind, C)

    def predict(X: Any, _: Any = folder) -> Floats:
        full = np.zeros((X.shape[0], len(rows.classes)))
        for row, answers in enumerate(model.predict_proba(X, top_k=len(rows.classes))):
            for label, probability in answers:
                full[row, label] = probability
        return full

    return predict


def top(rows: Rows, kind: str, C: float) -> PredictTop:
    """The most probable classes alone."""
    model, folder = _fitted(rows, kind, C)

    def predict(X: Any, k: int, _: Any = folder) -> Labels:
        best = np.full((X.shape[0], k), -1)
        for row, answers in enumerate(model.predict(X, top_k=k)):
            best[row, : len(answers)] = answers
        return best

    return predict


def of_labels(rows: LabelRows, kind: str, C: float) -> PredictLabels:
    """Probabilities of all labels, any number of which a row may have."""
    folder = tempfile.TemporaryDirectory()
    made = getattr(importlib.import_module("napkinxc.models"), kind)
    model = made(folder.name, liblinear_c=C, threads=rows.n_threads, seed=0)
    model.fit(rows.X, [row.tolist() for row in np.split(rows.Y.indices, rows.Y.indptr[1:-1])])
    width = rows.Y.shape[1]

    def predict(X: Any, _: Any = folder) -> Floats:
        full = np.zeros((X.shape[0], width))
        for row, answers in enumerate(model.predict_proba(X, top_k=width)):
            if answers:
                labels, values = zip(*answers, strict=True)
                full[row, list(labels)] = values
        return full

    return predict


CLASSIFIERS = {
    "napkinXC PLT": Classifier(partial(classifier, kind="PLT"), LOWER_PENALTIES),
    "napkinXC HSM": Classifier(partial(classifier, kind="HSM"), LOWER_PENALTIES),
}
TOP_MODELS = {
    f"napkinXC {kind}": TopModel(partial(top, kind=kind), ({"C": 1.0}, {"C": 10.0}, {"C": 100.0}), "labels")
    for kind in ("PLT", "HSM")
}
JOB_MODELS = {
    f"napkinXC {kind}": JobModel(
        chosen_by_a_tenth(partial(classifier, kind=kind), WIDE_PENALTIES, ("napkinxc.models",)),
        f"{kind} with a tree of its own; C of 0.1, 1, 10, 100, 1000 by the log loss of a held-out tenth, then a fit to "
        "all rows",
        takes=lambda job: job.is_sparse or job.taxonomy is not None,
    )
    for kind in ("PLT", "HSM")
}
LABEL_MODELS = {
    f"napkinXC {kind}": LabelModel(
        labels_chosen_by_a_tenth(
            partial(of_labels, kind=kind), tuple({"C": C} for C in WIDE_PENALTIES), ("napkinxc.models",)
        ),
        f"{kind}{' with a tree of its own' if kind == 'PLT' else ''}; C of 0.1, 1, 10, 100, 1000 by the log loss of a "
        "held-out tenth, then a fit to all rows",
        environment="labels",
    )
    for kind in ("PLT", "OVR")
}
