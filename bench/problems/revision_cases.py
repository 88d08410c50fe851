"""Cases of the suite ``compare``, each timed with the taxolearn that the interpreter of its worker has.

Only public names of taxolearn are used, and inputs are read from arrays that the suite wrote, so that older
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
from sklearn.exceptions import ConvergenceWarning

import taxolearn
from bench.problems.files import read_arrays, write_arrays
from bench.problems.synthetic import made_up_text
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
        """Write the inputs as arrays."""
        write_arrays(path, X=self.X, y=self.y, X_test=self.X_test, edges=self.edges)

    @classmethod
    def read(cls, path: Path) -> "Inputs":
        """Read what ``write`` wrote."""
        arrays = read_arrays(path)
        return cls(**arrays | {"edges": [tuple(edge) for edge in arrays["edges"].tolist()]})


@dataclass(frozen=True)
class Case:
    """What it is, the data set that it needs, and how inputs and a number of threads become work."""

    title: str
    data: str
    prepare: Callable[[Inputs, int], Work]


# What parameters of the solver were called when the estimator had them itself.
_FORMER_NAMES = {"space": "state", "products": "algorithm"}


def make_model(
    kernel: Any,
    n_threads: int,
    *,
    intercept_variance: float,
    variances: list[float] | None = None,
    evaluations: int | None = None,
    solver: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """The estimator, by the names that the installed version has for its parameters.

    ``variances`` are those of the levels of a tree, ``evaluations`` those of the criterion; without them,
    hyperparameters are used as they are given. ``solver`` has the arguments of ``Solver``. Parameters whose names have
    not changed are ``options``. What not every version has is looked up when it is needed.
    """
    known = KernelLogisticClassifier().get_params(deep=False)
    named: dict[str, Any] = {"n_threads": n_threads} | options
    if "tuning" in known:
        named |= {"intercept_variance": intercept_variance, "tuning": None}
        if evaluations is not None:
            named["tuning"] = taxolearn.CrossValidation(max_evaluations=evaluations, learn_intercept_variance=False)
        if variances is not None:
            named["coupling"] = taxolearn.Tree(variances=variances)
        if solver is not None:
            named["solver"] = taxolearn.Solver(**solver)
        return KernelLogisticClassifier(kernel, **named)
    named["sigma2"] = intercept_variance
    named |= {_FORMER_NAMES.get(name, name): value for name, value in (solver or {}).items()}
    if variances is not None:
        named["variances"] = variances
    if evaluations is not None:
        named |= {"hyperparameters": "cv", "max_evaluations": evaluations, "learn_sigma2": False}
    elif "hyperparameters" in known:  # before they could be learned, they were always given
        named["hyperparameters"] = "fixed"
    return KernelLogisticClassifier(kernel, **named)


def _fit(
    make_kernel: Callable[[], Any], tree: bool = False, rows: int | None = None, **options: Any
) -> Callable[[Inputs, int], Work]:
    """A fit, perhaps to the first rows; its answer is the objective."""

    def prepare(inputs: Inputs, n_threads: int) -> Work:
        taxonomy: dict[str, Any] = {"taxonomy": taxolearn.Taxonomy.from_edges(inputs.edges)} if tree else {}
        model = make_model(make_kernel(), n_threads, **taxonomy, **options)
        return lambda: float(model.fit(inputs.X[:rows], inputs.y[:rows]).result_.objective)

    return prepare


def _linear(inputs: Inputs, n_threads: int, **options: Any) -> Any:
    """A fitted flat model."""
    model = make_model(Linear(50.0), n_threads, intercept_variance=0.01, **options)
    return model.fit(inputs.X, inputs.y)


def _criterion(inputs: Inputs, n_threads: int) -> Work:
    """One evaluation with its gradient and the start of a final fit; its answer is the criterion."""
    return lambda: float(_linear(inputs, n_threads, evaluations=1, max_iter=1).cv_result_.values[0])


def _predict_proba(inputs: Inputs, n_threads: int) -> Work:
    """Its answer is the mean of the largest probabilities."""
    model = _linear(inputs, n_threads, tol=1e-3)
    return lambda: float(np.mean([model.predict_proba(inputs.X_test).max(axis=1).mean() for _ in range(20)]))


def _predict_many(inputs: Inputs, n_threads: int) -> Work:
    """Its answer is the number of classes that are predicted."""
    model = _linear(inputs, n_threads, max_iter=3)
    return lambda: float(len(np.unique(model.predict(inputs.X_test))))


def _save_and_load(inputs: Inputs, n_threads: int) -> Work:
    """Its answer is the sum of the weights that were loaded."""
    model = _linear(inputs, n_threads, max_iter=3)

    def work() -> float:
        sums = []
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                taxolearn.save(model, Path(folder) / "model.taxo")
                sums.append(abs(taxolearn.load(Path(folder) / "model.taxo").coef_).sum())
        return float(np.mean(sums))

    return work


def _rbf() -> Any:
    return kernels.RBF(0.2**-0.5, 100.0)


_SATIMAGE: dict[str, Any] = {"intercept_variance": 16.0, "tol": 1e-6}
_NEWS: dict[str, Any] = {"intercept_variance": 0.01, "tol": 1e-6}
CASES = {
    "news20-5": Case("fit of news20, flat, v = 5", "news20", _fit(partial(Linear, 5.0), **_NEWS)),
    "news20-50": Case("fit of news20, flat, v = 50", "news20", _fit(partial(Linear, 50.0), **_NEWS)),
    "news20-tree": Case("fit of news20, tree, v = 20", "news20", _fit(partial(Linear, 20.0), tree=True, **_NEWS)),
    "clef-flat": Case("fit of CLEF, flat", "clef", _fit(partial(Linear, 0.1), intercept_variance=1.0, tol=1e-5)),
    "clef-tree": Case(
        "fit of CLEF, tree",
        "clef",
        _fit(Linear, tree=True, variances=[0.01, 0.03, 0.09], intercept_variance=10.0, tol=1e-5),
    ),
    "clinc150-tree": Case(
        "fit of clinc150, tree", "clinc150", _fit(partial(Linear, 1000.0), tree=True, intercept_variance=1.0, tol=1e-4)
    ),
    "onet-tree": Case(
        "fit of onet tasks, tree, 15 iterations",
        "onet",
        _fit(partial(Linear, 20.0), tree=True, intercept_variance=1.0, max_iter=15),
    ),
    "satimage-rbf": Case("fit of satimage, RBF", "satimage", _fit(_rbf, **_SATIMAGE)),
    "satimage-tiled": Case(
        "fit of satimage, RBF, tiled", "satimage", _fit(_rbf, solver={"products": "tiled"}, **_SATIMAGE)
    ),
    "satimage-rank": Case("fit of satimage, RBF, rank 500", "satimage", _fit(_rbf, solver={"rank": 500}, **_SATIMAGE)),
    "satimage-exact": Case(
        "fit of 800 rows of satimage, RBF, exact",
        "satimage",
        _fit(_rbf, rows=800, solver={"method": "exact"}, **_SATIMAGE),
    ),
    "clef-coefficients": Case(
        "fit of CLEF, flat, by coefficients, 100 iterations",
        "clef",
        _fit(partial(Linear, 0.1), intercept_variance=1.0, max_iter=100, solver={"space": "coefficients"}),
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
    """A case with its inputs from a folder, run once when it is made; for ``bench.harness.workers``."""

    def __init__(self, case: str, folder: str, n_threads: int) -> None:
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that end early on purpose
        inputs = Inputs.read(Path(folder) / f"{CASES[case].data}.npz")
        self._work = CASES[case].prepare(inputs, n_threads)
        self._work()

    def ready(self) -> bool:
        """Return true, which the worker can do only after the case has run once."""
        return True

    def run(self) -> dict[str, Any]:
        """Seconds, those of all cores together, and the answer of one more run."""
        start, used = time.perf_counter(), time.process_time()
        answer = self._work()
        taken = {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - used}
        return taken | {"answer": answer}
