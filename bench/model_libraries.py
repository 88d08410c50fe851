"""Classifiers into trees and large sets of classes, in several libraries, behind the same functions.

A fit takes training rows and class numbers, and gives a function from inputs to probabilities, one column a class; they
need not sum to one. Every library has a small grid of settings of its regularization.
"""

import importlib
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from bench.problems import Floats
from bench.taxonomies import TreeData
from taxolearn import KernelLogisticClassifier
from taxolearn.kernels import Linear

Labels = npt.NDArray[np.int64]
Predict = Callable[[Any], Floats]

_SIGMA2 = 1.0


@dataclass(frozen=True)
class Rows:
    """Inputs (n x d) and class numbers (n) to train on; ``classes`` are the names of all."""

    data: TreeData
    classes: npt.NDArray[Any]
    X: Any
    y: Labels
    n_threads: int

    def spread(self, columns: npt.NDArray[Any], proba: Floats) -> Floats:
        """Probabilities of some classes among all."""
        full = np.zeros((proba.shape[0], len(self.classes)))
        full[:, columns.astype(np.int64)] = proba
        return full


def _taxolearn(rows: Rows, coupling: str, variance: float, ratio: float = 1.0) -> Predict:
    tree = coupling == "tree"
    model = KernelLogisticClassifier(
        Linear(variance),
        taxonomy=rows.data.taxonomy,
        coupling=coupling,
        variances=ratio ** np.arange(rows.data.taxonomy.height) if tree else None,
        sigma2=_SIGMA2,
        n_threads=rows.n_threads,
        hyperparameters="fixed",
    )
    model.fit(rows.X, rows.classes[rows.y])
    columns = np.searchsorted(rows.classes, model.classes_)
    seen = np.isin(model.classes_, rows.classes)  # the tree may have classes without any row
    return lambda X: rows.spread(columns[seen], model.predict_proba(X)[:, seen])


def _hiclass(rows: Rows, C: float) -> Predict:
    """Paths are made equally long by repeating their leaves, so that every leaf is on the last level.

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


def _napkinxc(rows: Rows, kind: str, C: float) -> Predict:
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


def _pecos(rows: Rows, C: float) -> Predict:
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


def _liblinear(rows: Rows, C: float) -> Predict:
    library = importlib.import_module("liblinear.liblinearutil")
    model = library.train(rows.y.astype(np.float64), rows.X, f"-s 0 -c {C} -B 1 -q")
    columns = np.array(model.get_labels())
    return lambda X: rows.spread(columns, np.array(library.predict([], X, model, "-b 1 -q")[2]))


_VALUES = (4.0, 20.0, 100.0, 500.0, 2500.0, 12500.0)
_LOWER = tuple(value / 5 for value in _VALUES)  # where a penalty is shared by fewer rows


@dataclass(frozen=True)
class Classifier:
    """How to fit, the settings to choose from, and whether it is in the environment of PECOS."""

    fit: Callable[..., Predict]
    grid: tuple[dict[str, float], ...]
    pecos: bool = False


def _penalties(values: tuple[float, ...]) -> tuple[dict[str, float], ...]:
    return tuple({"C": value} for value in values)


CLASSIFIERS = {
    "taxolearn, tree": Classifier(
        partial(_taxolearn, coupling="tree"),
        tuple({"variance": value, "ratio": ratio} for value, ratio in product(_VALUES, (1 / 3, 1.0))),
    ),
    "taxolearn, flat": Classifier(
        partial(_taxolearn, coupling="identity"), tuple({"variance": value} for value in _VALUES)
    ),
    "hiclass, per parent": Classifier(_hiclass, _penalties(_VALUES)),
    "napkinXC PLT": Classifier(partial(_napkinxc, kind="PLT"), _penalties(_LOWER)),
    "napkinXC HSM": Classifier(partial(_napkinxc, kind="HSM"), _penalties(_LOWER)),
    "PECOS XLinear": Classifier(_pecos, _penalties(_LOWER), pecos=True),
    "liblinear, one-vs-rest": Classifier(_liblinear, _penalties(_VALUES)),
}
