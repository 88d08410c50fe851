"""Cases of the suite ``compare``, each timed with the taxolearn that the interpreter of its worker has.

Only public names of taxolearn are used, and inputs are read from arrays that bench/compare.py wrote, so that older
versions can take part.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import taxolearn
from bench.synthetic import made_up_text
from taxolearn import KernelLogisticClassifier, kernels
from taxolearn.kernels import Linear

Work = Callable[[], float]  # what is timed; its answer shows that the same was computed


@dataclass(frozen=True)
class Inputs:
    """A training and a test set, and the edges of the tree of classes, if there is one."""

    X: Any
    y: Any
    X_test: Any
    edges: list[tuple[Any, Any]]

    def write(self, path: Path) -> None:
        """As arrays."""
        arrays: dict[str, Any] = {"y": np.asarray(self.y), "edges": np.array(self.edges)}
        for name, matrix in (("X", self.X), ("X_test", self.X_test)):
            if sparse.issparse(matrix):
                csr = sparse.csr_matrix(matrix)
                arrays |= {f"{name}_{part}": getattr(csr, part) for part in ("data", "indices", "indptr")}
                arrays[f"{name}_shape"] = np.array(csr.shape)
            else:
                arrays[name] = matrix
        np.savez(path, **arrays)

    @classmethod
    def read(cls, path: Path) -> "Inputs":
        with np.load(path) as file:
            matrices = [_matrix(file, name) for name in ("X", "X_test")]
            return cls(matrices[0], file["y"], matrices[1], [tuple(edge) for edge in file["edges"].tolist()])


def _matrix(file: Any, name: str) -> Any:
    if name in file:
        return file[name]
    parts = tuple(file[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix(parts, shape=tuple(file[f"{name}_shape"]))


@dataclass(frozen=True)
class Case:
    """What it is, the data set that it needs, and how inputs and a number of threads become work."""

    title: str
    data: str
    prepare: Callable[[Inputs, int], Work]


def _model(kernel: Any, n_threads: int, **options: Any) -> Any:
    given: dict[str, Any] = {"hyperparameters": "fixed", "n_threads": n_threads} | options
    if "hyperparameters" not in KernelLogisticClassifier().get_params():  # before they could be learned
        del given["hyperparameters"]
    return KernelLogisticClassifier(kernel, **given)


def _fit(make_kernel: Callable[[], Any], tree: bool = False, **options: Any) -> Callable[[Inputs, int], Work]:
    """A fit; its answer is the objective. What not every version has is looked up when it is needed."""

    def prepare(inputs: Inputs, n_threads: int) -> Work:
        taxonomy = {"taxonomy": taxolearn.Taxonomy.from_edges(inputs.edges)} if tree else {}
        model = _model(make_kernel(), n_threads, **taxonomy, **options)
        return lambda: float(model.fit(inputs.X, inputs.y).result_.objective)

    return prepare


def _criterion(inputs: Inputs, n_threads: int) -> Work:
    """One evaluation with its gradient and the start of a final fit; its answer is the criterion."""
    options = {"hyperparameters": "cv", "learn_sigma2": False, "max_evaluations": 1, "max_iter": 1}
    model = _model(Linear(50.0), n_threads, sigma2=0.01, **options)
    return lambda: float(model.fit(inputs.X, inputs.y).cv_result_.values[0])


def _predict_proba(inputs: Inputs, n_threads: int) -> Work:
    """Its answer is the mean of the largest probabilities."""
    model = _model(Linear(50.0), n_threads, sigma2=0.01, tol=1e-3).fit(inputs.X, inputs.y)
    return lambda: float(np.mean([model.predict_proba(inputs.X_test).max(axis=1).mean() for _ in range(20)]))


def _predict_many(inputs: Inputs, n_threads: int) -> Work:
    """Its answer is the number of classes that are predicted."""
    model = _model(Linear(50.0), n_threads, sigma2=0.01, max_iter=3).fit(inputs.X, inputs.y)
    return lambda: float(len(np.unique(model.predict(inputs.X_test))))


def _save_and_load(inputs: Inputs, n_threads: int) -> Work:
    """Its answer is the sum of the weights that were loaded."""
    model = _model(Linear(50.0), n_threads, sigma2=0.01, max_iter=3).fit(inputs.X, inputs.y)

    def work() -> float:
        sums = []
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                taxolearn.save(model, Path(folder) / "model.taxo")
                sums.append(abs(taxolearn.load(Path(folder) / "model.taxo").coef_).sum())
        return float(np.mean(sums))

    return work


_NEWS: dict[str, Any] = {"sigma2": 0.01, "tol": 1e-6}
CASES = {
    "news20-5": Case("fit of news20, flat, v = 5", "news20", _fit(partial(Linear, 5.0), **_NEWS)),
    "news20-50": Case("fit of news20, flat, v = 50", "news20", _fit(partial(Linear, 50.0), **_NEWS)),
    "news20-tree": Case("fit of news20, tree, v = 20", "news20", _fit(partial(Linear, 20.0), tree=True, **_NEWS)),
    "clef-flat": Case("fit of CLEF, flat", "clef", _fit(partial(Linear, 0.1), sigma2=1.0, tol=1e-5)),
    "clef-tree": Case(
        "fit of CLEF, tree", "clef", _fit(Linear, tree=True, variances=[0.01, 0.03, 0.09], sigma2=10.0, tol=1e-5)
    ),
    "clinc150-tree": Case(
        "fit of clinc150, tree", "clinc150", _fit(partial(Linear, 1000.0), tree=True, sigma2=1.0, tol=1e-4)
    ),
    "onet-tree": Case(
        "fit of onet tasks, tree, 15 iterations",
        "onet",
        _fit(partial(Linear, 20.0), tree=True, sigma2=1.0, max_iter=15),
    ),
    "satimage-rbf": Case(
        "fit of satimage, RBF", "satimage", _fit(lambda: kernels.RBF(0.2**-0.5, 100.0), sigma2=16.0, tol=1e-6)
    ),
    "criterion": Case("criterion with gradient, news20, flat", "news20", _criterion),
    "predict-proba": Case("predict_proba, 20 times news20's test set", "news20", _predict_proba),
    "predict-many": Case("predict, 1,000 classes", "text", _predict_many),
    "save-load": Case("save and load, 5 times, 1,000 classes", "text", _save_and_load),
}


def made_up(quick: bool) -> Inputs:
    """Texts of a thousand classes."""
    X, y = made_up_text(2_000 if quick else 10_000, 1_000, 50, 5_000, seed=0)
    return Inputs(X, y, X, [])


class Prepared:
    """A case with its inputs from a folder, run once when it is made; for ``bench.workers``."""

    def __init__(self, case: str, folder: str, n_threads: int) -> None:
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that end early on purpose
        inputs = Inputs.read(Path(folder) / f"{CASES[case].data}.npz")
        self._work = CASES[case].prepare(inputs, n_threads)
        self._work()

    def ready(self) -> bool:
        """Answered as soon as there is something to ask."""
        return True

    def run(self) -> dict[str, Any]:
        """Seconds and answer of one more run."""
        start = time.perf_counter()
        answer = self._work()
        return {"seconds": time.perf_counter() - start, "answer": answer}
