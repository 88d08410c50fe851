"""The functions of the classes in a fitted model: what is left of a fit, and how to predict with it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils import gen_batches

from taxolearn import _core
from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.kernels.base import Kernel

__all__ = ["ClassFunctions", "Expansion", "KernelFunctions", "LinearFunctions", "MatrixFunctions", "linked"]

Floats = npt.NDArray[np.float64]

_BATCH = 2**24  # kernel values that a Python function computes at once, or products of sparse matrices


class ClassFunctions(Protocol):
    """Functions of the classes, in the order of ``classes_``."""

    @property
    def n_features(self) -> int: ...

    @property
    def intercept(self) -> Floats: ...

    @property
    def expansions(self) -> "list[Expansion]":
        """Empty for linear functions."""

    def with_intercept(self, intercept: Floats) -> "ClassFunctions": ...

    def with_link(self, link: str, temperature: float) -> "ClassFunctions":
        """The same functions, from which probabilities come in another way."""

    def shifted(self, offset: float) -> "ClassFunctions":
        """With a number added to all predictors."""

    def output(self, X: Any, output: str, n_threads: int) -> Floats:
        """Predictors of checked inputs, probabilities ("probability") or their logarithms ("log_probability")."""


@dataclass(frozen=True)
class LinearFunctions:
    """``u(x) = coef x + intercept``.

    ``coef`` of a model from a file may be in single precision; that of a pruned one is sparse.
    """

    coef: Any
    intercept: Floats
    link: str = "softmax"
    temperature: float = 1.0

    @property
    def n_features(self) -> int:
        return int(self.coef.shape[1])

    @property
    def expansions(self) -> "list[Expansion]":
        return []

    def with_intercept(self, intercept: Floats) -> "LinearFunctions":
        return replace(self, intercept=intercept)

    def with_link(self, link: str, temperature: float) -> "LinearFunctions":
        return replace(self, link=link, temperature=temperature)

    def shifted(self, offset: float) -> "LinearFunctions":
        return replace(self, intercept=self.intercept + offset)

    def output(self, X: Any, output: str, n_threads: int) -> Floats:
        if sp.issparse(self.coef):
            rows = gen_batches(X.shape[0], max(1, _BATCH // len(self.intercept)))
            return np.concatenate([self._output_sparse(X[part], output) for part in rows])
        return _core.predict_linear(
            X=X,
            weights=np.ascontiguousarray(self.coef.T),
            intercepts=self.intercept,
            link=_core.Link[self.link],
            temperature=self.temperature,
            output=_core.Output[output],
            n_threads=n_threads,
        )

    def _output_sparse(self, X: Any, output: str) -> Floats:
        product = X @ self.coef.T
        u = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64) + self.intercept
        return linked(u, output, self.link, self.temperature)


def linked(u: Floats, output: str, link: str, temperature: float) -> Floats:
    """The predictors themselves, or what the link makes of them: probabilities, or their logarithms."""
    if output == "predictor":
        return u
    out: Floats
    scores = (log_expit(u) if link == "one_of" else u) / temperature
    if link == "logistic":
        out = (expit if output == "probability" else log_expit)(scores)
    else:
        out = (softmax if output == "probability" else log_softmax)(scores, axis=1)
    return out


@dataclass(frozen=True)
class Expansion:
    """Functions ``sum_i coefficients[i] kernel(x, basis[i])``.

    The function of a class is that of its column plus the intercept; under a tree with kernels of their own, columns
    are nodes, and the function of a class is the sum over the nodes on its path, in whichever expansions they are.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    basis : array or sparse matrix of shape (n_basis, n_features), or None
        Training rows: all of them, or the pivots of a low rank approximation; None if kernel values are given.
    coefficients : ndarray of shape (n_basis, n_functions)
        One column per function that has this kernel.
    functions : tuple
        Labels of the classes, or names of the nodes, that the columns belong to.
    weights : ndarray of shape (n_features, n_functions) or None
        Under a low rank, what the blocks add whose kernel is linear: weights of all their features. The expansion is
        then that of the other blocks.
    """

    kernel: Kernel
    basis: Any
    coefficients: Floats
    functions: tuple[Any, ...]
    weights: Floats | None = None

    def with_columns(self, map_columns: Callable[[Floats], Floats], functions: tuple[Any, ...]) -> "Expansion":
        """Other functions, made of the columns of coefficients and weights."""
        coefficients, weights = (
            None if each is None else np.ascontiguousarray(map_columns(each))
            for each in (self.coefficients, self.weights)
        )
        assert coefficients is not None
        return replace(self, coefficients=coefficients, weights=weights, functions=functions)


@dataclass(frozen=True)
class KernelFunctions:
    """Expansions in kernels that the core knows.

    With one, its columns are the classes in our order. With several, the core puts them together, and ``order`` takes
    classes from its order to ours; ``coupling`` then has no variances but those that are 1.
    """

    expansions: list[Expansion]
    kernel_of: list[int]
    coupling: ClassCoupling
    intercept: Floats
    order: npt.NDArray[np.intp]
    link: str = "softmax"
    temperature: float = 1.0

    @property
    def n_features(self) -> int:
        return int(self.expansions[0].basis.shape[1])

    def with_intercept(self, intercept: Floats) -> "KernelFunctions":
        return replace(self, intercept=intercept)

    def with_link(self, link: str, temperature: float) -> "KernelFunctions":
        return replace(self, link=link, temperature=temperature)

    def shifted(self, offset: float) -> "KernelFunctions":
        return replace(self, intercept=self.intercept + offset)

    def output(self, X: Any, output: str, n_threads: int) -> Floats:
        intercept = self.intercept
        if self.kernel_of:
            intercept = np.empty_like(self.intercept)
            intercept[self.order] = self.intercept
        terms = [
            _core.Term(
                kernel=each.kernel.to_core(), basis=each.basis, coefficients=each.coefficients, weights=each.weights
            )
            for each in self.expansions
        ]
        out: Floats = _core.predict_kernels(
            X=X,
            terms=terms,
            kernel_of=self.kernel_of,
            coupling=self.coupling.to_core() if self.kernel_of else None,
            intercepts=intercept,
            link=_core.Link[self.link],
            temperature=self.temperature,
            output=_core.Output[output],
            n_threads=n_threads,
        )
        return out[:, self.order] if self.kernel_of else out


@dataclass(frozen=True)
class MatrixFunctions:
    """One expansion in a kernel whose values come from outside: a matrix that the user gives, or a Python function."""

    expansions: list[Expansion]
    intercept: Floats
    link: str = "softmax"
    temperature: float = 1.0

    @property
    def n_features(self) -> int:
        (expansion,) = self.expansions
        return int(expansion.coefficients.shape[0] if expansion.basis is None else expansion.basis.shape[1])

    def with_intercept(self, intercept: Floats) -> "MatrixFunctions":
        return replace(self, intercept=intercept)

    def with_link(self, link: str, temperature: float) -> "MatrixFunctions":
        return replace(self, link=link, temperature=temperature)

    def shifted(self, offset: float) -> "MatrixFunctions":
        return replace(self, intercept=self.intercept + offset)

    def output(self, X: Any, output: str, n_threads: int) -> Floats:
        (expansion,) = self.expansions
        kernel, basis, coefficients = expansion.kernel, expansion.basis, expansion.coefficients
        if basis is None:
            linear = LinearFunctions(kernel.split()[0] * coefficients.T, self.intercept, self.link, self.temperature)
            return linear.output(X, output, n_threads)
        linear = LinearFunctions(coefficients.T, self.intercept, self.link, self.temperature)
        batches = gen_batches(X.shape[0], max(1, _BATCH // basis.shape[0]))
        parts = [linear.output(kernel(X[rows], basis, n_threads=n_threads), output, n_threads) for rows in batches]
        return np.concatenate(parts)
