"""LibMultiLabel: liblinear for each label against the rest."""

import importlib
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from bench.libraries.contracts import WIDE_PENALTIES, LabelModel, LabelRows, PredictLabels, labels_chosen_by_a_tenth
from bench.problems.data import Floats

_LOGISTIC, _SQUARED_HINGE = 0, 2  # solvers of liblinear; the second one is the default here


def one_against_rest(rows: LabelRows, solver: int, C: float) -> PredictLabels:
    """A sigmoid of the decision values, which are probabilities with logistic loss only."""
    linear = importlib.import_module("libmultilabel.linear")
    Y = sparse.csr_matrix(rows.Y, dtype=np.int64)
    options = f"-s {solver} -c {C:g} -B 1 -e 0.0001 -q"
    model = linear.train_1vsrest(Y, sparse.csr_matrix(rows.X), False, options, verbose=False)

    def predict(X: Any) -> Floats:
        values: Floats = expit(np.asarray(linear.predict_values(model, sparse.csr_matrix(X))))
        return values

    return predict


def _entry(solver: int, loss: str) -> LabelModel:
    is_probability = solver == _LOGISTIC
    return LabelModel(
        labels_chosen_by_a_tenth(
            one_against_rest,
            tuple({"solver": solver, "C": C} for C in WIDE_PENALTIES),
            ("libmultilabel.linear",),
            is_probability=is_probability,
        ),
        f"train_1vsrest with {loss} loss (-s {solver}) and a bias; C of 0.1, 1, 10, 100, 1000 by the "
        f"{'log loss' if is_probability else 'micro-F1'} of a held-out tenth, then a fit to all rows",
        environment="labels",
        is_probability=is_probability,
    )


LABEL_MODELS = {
    "LibMultiLabel 1-vs-rest, logistic": _entry(_LOGISTIC, "logistic"),
    "LibMultiLabel 1-vs-rest, SVM": _entry(_SQUARED_HINGE, "squared hinge"),
}
