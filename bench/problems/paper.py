"""The data of Gopal and Yang's tables (TKDD 9, 2015, II and III), as far as they are here, and the figures there."""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse

from bench.problems.data import data_directory
from bench.problems.label_jobs import LabelJob, indicator
from bench.problems.trees import TREES
from taxolearn import Taxonomy

_TRAINING_ROWS = 23_149  # of RCV1, as in the paper

# Macro- and micro-F1 in percent, of tables II and III.
PUBLISHED: dict[str, dict[str, tuple[float, float]]] = {
    "clef": {
        "BSVM": (48.59, 77.53),
        "BLR": (53.26, 79.92),
        "MSVM": (54.33, 80.02),
        "MLR": (54.76, 80.52),
        "TD": (32.32, 70.11),
        "HSVM": (57.23, 79.72),
        "OT": (37.12, 73.84),
        "RR-SVM": (53.92, 80.02),
        "RR-LR": (55.83, 80.12),
        "HBLR": (59.65, 81.41),
    },
    "news20": {
        "BSVM": (82.32, 83.10),
        "BLR": (82.17, 82.97),
        "MSVM": (81.73, 82.47),
        "MLR": (81.82, 82.56),
        "TD": (80.86, 81.20),
        "HSVM": (80.04, 80.79),
        "OT": (81.20, 81.98),
        "RR-SVM": (82.00, 82.78),
        "RR-LR": (82.06, 82.86),
        "HBLR": (81.69, 82.56),
    },
    "rcv1": {
        "BSVM": (54.72, 80.82),
        "BLR": (53.38, 80.08),
        "TD": (34.15, 71.34),
        "RR-SVM": (56.56, 81.66),
        "RR-LR": (55.81, 81.23),
        "HBLR": (56.08, 81.98),
    },
    "lshtc": {},  # their training file is another one, of 4,463 rows
}


def _tree(name: str) -> LabelJob:
    data = TREES[name]()
    classes = sorted(data.taxonomy.classes.tolist())
    Y, Y_test = (indicator(([label] for label in y.tolist()), classes) for y in (data.y, data.y_test))
    return LabelJob(name, data.X, Y, data.X_test, Y_test, classes, data.taxonomy)


def _rcv1() -> LabelJob:
    """Distinct rows, a random part of them for training; every topic is a label, and the root is no topic."""
    with np.load(data_directory() / "rcv1" / "rcv1_30k_clean.npz") as file:
        X = sparse.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        Y = np.unpackbits(file["Y"], axis=1)[:, : len(file["labels"])]
        names, parents = file["labels"].tolist(), file["parents"].tolist()
    X.sort_indices()
    contents = (X.indices[i:j].tobytes() + X.data[i:j].tobytes() for i, j in zip(X.indptr, X.indptr[1:], strict=False))
    first = np.array(sorted({content: row for row, content in reversed([*enumerate(contents)])}.values()))
    order = np.random.default_rng(0).permutation(first)
    train, test = np.sort(order[:_TRAINING_ROWS]), np.sort(order[_TRAINING_ROWS:])
    seen = np.flatnonzero(Y[train].any(axis=0))
    classes = [names[k] for k in seen]
    X, labels = X.astype(np.float64), sparse.csr_array(Y[:, seen].astype(np.float64))
    edges = [(parent, name) for parent, name in zip(parents, names, strict=True) if name in set(classes)]
    return LabelJob("rcv1", X[train], labels[train], X[test], labels[test], classes, Taxonomy.from_edges(edges))


PAPER_JOBS: dict[str, Callable[[], LabelJob]] = {
    **{name: partial(_tree, name) for name in ("clef", "news20")},
    "rcv1": _rcv1,
    "lshtc": partial(_tree, "lshtc"),
}
