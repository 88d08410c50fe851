"""The libraries that fit the same model, each behind the same function of a tolerance.

All minimize the objective of certify.py. scikit-learn's LogisticRegression has no prior on its intercept, so there the
intercept is one more feature, the constant sqrt(sigma2 / v), with ``fit_intercept=False`` and ``C=v``:

    v loss + |w|^2 / 2 + a^2 / 2   is, with b = a sqrt(sigma2 / v), v times   loss + |w|^2 / (2 v) + b^2 / (2 sigma2).
"""

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from bench.problems import Data, Floats
from taxolearn import KernelLogisticClassifier
from taxolearn.kernels import Linear

Model = tuple[Floats, Floats]  # coef (C x d) and intercept (C)

# What each library calls its tolerance differs: the benchmark takes the first that reaches the gap.
_DECREASING = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(1, 23))


@dataclass(frozen=True)
class Library:
    """A solver: ``fit(tol)`` is what gets timed, ``model(answer)`` reads its answer off."""

    name: str
    ours: bool
    tolerances: tuple[float, ...]
    fit: Callable[[float], Any]
    model: Callable[[Any], Model]


def libraries(data: Data, v: float, s2: float, gap: float, n_threads: int) -> list[Library]:
    """Every competitor, its inputs prepared in the form it likes best."""
    ours = [taxolearn(data, v, s2, gap, method, n_threads) for method in ("lbfgs", "ncg")]
    X = augmented(data, v, s2)
    rivals = [scikit_learn(X, data, v, s2, solver) for solver in ("saga", "newton-cg", "lbfgs")]
    return [*ours, *rivals, scikit_learn(X.astype(np.float32), data, v, s2, "saga", suffix=" float32")]


def augmented(data: Data, v: float, s2: float) -> Any:
    """The inputs and the constant feature of the intercept."""
    constant = np.full((data.X.shape[0], 1), np.sqrt(s2 / v))
    stack = (lambda parts: sparse.hstack(parts, format="csr")) if sparse.issparse(data.X) else np.hstack
    return stack([data.X, constant])


def taxolearn(data: Data, v: float, s2: float, gap: float, method: str, n_threads: int) -> Library:
    """This library; its tolerance is the relative gap."""

    def fit(tol: float) -> Any:
        model = KernelLogisticClassifier(
            Linear(v), sigma2=s2, tol=tol, method=method, n_threads=n_threads, hyperparameters="fixed"
        )
        return model.fit(data.X, data.y)

    return Library(f"taxolearn {method}", True, (gap, gap / 2), fit, lambda model: (model.coef_, model.intercept_))


def scikit_learn(
    X: Any, data: Data, v: float, s2: float, solver: str, *, estimator: Any = LogisticRegression, suffix: str = ""
) -> Library:
    """LogisticRegression, or an estimator that is used alike, on augmented inputs."""

    def fit(tol: float) -> Any:
        model = estimator(C=v, solver=solver, tol=tol, fit_intercept=False, max_iter=2000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X, data.y)

    def read(model: Any) -> Model:
        coef = model.coef_.astype(np.float64)
        return coef[:, :-1], coef[:, -1] * np.sqrt(s2 / v)

    return Library(f"scikit-learn {solver}{suffix}", False, _DECREASING, fit, read)


def mkl_product() -> Callable[[Any, Any], Any]:
    """Products of sparse matrices by MKL, or ImportError; the library may lie in this environment."""
    for path in Path(sys.prefix, "lib").glob("libmkl_rt.so*"):
        os.environ.setdefault("MKL_RT", str(path))
    product: Callable[[Any, Any], Any] = importlib.import_module("sparse_dot_mkl").dot_product_mkl
    return product
