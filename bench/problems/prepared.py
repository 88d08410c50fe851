"""The problems of suite ``peers``: prepared once, written to a folder, and read from there by every process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from bench.problems.data import Data, aloi, news20, scaled
from bench.problems.files import read_arrays, write_arrays
from bench.problems.trees import TREES
from taxolearn.datasets import load_docstrings

_OF_TEXTS = (0.5, 5.0, 50.0, 500.0)  # prior variances of weights where rows have length 1
_QUICK_ROWS = 600


@dataclass(frozen=True)
class Problem:
    """How to load the data, and prior variances: several of the weights, one of the intercepts."""

    load: Callable[[], Data]
    variances: tuple[float, ...] = _OF_TEXTS
    intercept_variance: float = 0.01


def _docstrings() -> Data:
    """The docstrings, with the features of README.md."""
    texts, labels = load_docstrings(return_X_y=True)
    train, test, y, y_test = train_test_split(texts, labels, stratify=labels, random_state=0)
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(train)
    X, X_test = (sparse.csr_matrix(vectorizer.transform(part)) for part in (train, test))
    return Data("docstrings", X, np.asarray(y), X_test, np.asarray(y_test))


PROBLEMS = {
    "news20": Problem(news20),
    "clinc150": Problem(TREES["clinc150"]),
    "docstrings": Problem(_docstrings),
    "onet": Problem(TREES["onet"]),
    "clef": Problem(TREES["clef"], (0.01, 0.1, 1.0, 10.0), 1.0),
    "aloi": Problem(lambda: scaled(aloi(), "constant"), (0.1, 1.0), 1.0),
}


def write_problem(name: str, folder: str, quick: bool) -> dict[str, Any]:
    """Prepare a problem and describe it."""
    data = PROBLEMS[name].load()
    data = data.first_rows(_QUICK_ROWS) if quick else data
    write_arrays(Path(folder, f"{name}.npz"), X=data.X, y=data.y, X_test=data.X_test, y_test=data.y_test)
    facts = {
        "name": data.name,
        "description": data.description,
        "sparse": bool(sparse.issparse(data.X)),
        "weights": data.X.shape[1] * len(np.unique(data.y)),
    }
    Path(folder, f"{name}.json").write_text(json.dumps(facts))
    return facts


def read_problem(name: str, folder: str) -> Data:
    """Read what ``write_problem`` wrote."""
    facts = json.loads(Path(folder, f"{name}.json").read_text())
    return Data(facts["name"], **read_arrays(Path(folder, f"{name}.npz")))
