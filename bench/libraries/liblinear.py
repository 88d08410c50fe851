"""liblinear: one-vs-rest logistic regression."""

import importlib

import numpy as np

from bench.libraries.contracts import PENALTIES, Classifier, Predict, Rows


def classifier(rows: Rows, C: float) -> Predict:
    """One classifier per class."""
    library = importlib.import_module("liblinear.liblinearutil")
    model = library.train(rows.y.astype(np.float64), rows.X, f"-s 0 -c {C} -B 1 -q")
    columns = np.array(model.get_labels())
    return lambda X: rows.spread(columns, np.array(library.predict([], X, model, "-b 1 -q")[2]))


CLASSIFIERS = {"liblinear, one-vs-rest": Classifier(classifier, PENALTIES)}
