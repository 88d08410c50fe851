"""omikuji: partitioned label trees (Parabel)."""

import importlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bench.libraries.contracts import WIDE_PENALTIES, LabelModel, LabelRows, PredictLabels, labels_chosen_by_a_tenth
from bench.problems.data import Floats


def _write(rows: LabelRows, path: Path) -> None:
    """The format of the repository of extreme classification: a header, then labels and features of each row."""
    X, Y = sparse.csr_matrix(rows.X), sparse.csr_matrix(rows.Y)
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for row in range(X.shape[0]):
            labels, features = (slice(part.indptr[row], part.indptr[row + 1]) for part in (Y, X))
            pairs = zip(X.indices[features].tolist(), X.data[features].tolist(), strict=True)
            words = " ".join(f"{feature}:{value:.7g}" for feature, value in pairs)
            file.write(f"{','.join(map(str, Y.indices[labels].tolist()))} {words}\n")


def trees(rows: LabelRows, C: float) -> PredictLabels:
    """Three trees with logistic loss; all labels are scored."""
    omikuji = importlib.import_module("omikuji")
    parameters = omikuji.Model.default_hyper_param()
    parameters.linear_loss_type = omikuji.LossType.LOG.value
    parameters.linear_c = C
    width = rows.Y.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        _write(rows, path)
        model = omikuji.Model.train_on_data(str(path), parameters, rows.n_threads)
    model.init_prediction_thread_pool(rows.n_threads)

    def predict(X: Any) -> Floats:
        X = sparse.csr_matrix(X)
        full = np.zeros((X.shape[0], width))
        for row in range(X.shape[0]):
            entries = slice(X.indptr[row], X.indptr[row + 1])
            pairs = list(zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True))
            for label, value in model.predict(pairs, beam_size=width, top_k=width):
                full[row, label] = value
        return full

    return predict


LABEL_MODELS = {
    "omikuji": LabelModel(
        labels_chosen_by_a_tenth(trees, tuple({"C": C} for C in WIDE_PENALTIES), ("omikuji",)),
        "three balanced trees (Parabel) with logistic loss, all labels scored; linear_c of 0.1, 1, 10, 100, 1000 by "
        "the log loss of a held-out tenth, then a fit to all rows",
        environment="labels",
    )
}
