"""Classes that share functions with learned loadings: the estimator's argument, and what is found."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from taxolearn.validation import check_number

__all__ = ["ClassFactors", "LearnedCoupling", "SimilarityTable"]

Floats = npt.NDArray[np.float64]

_MOST_CLASSES = 4000
_MOST_LOADINGS = 200_000


class LearnedCoupling(BaseEstimator):
    """Which classes go together, learned from the data: ``coupling=LearnedCoupling(rank=5)``.

    The function of a class is its own plus a combination of ``rank`` functions that all classes share:
    ``u = R f + B g``, so the prior covariance of the class functions is ``G = R R' + B B'`` times the kernel. ``R`` is
    the identity or, with a taxonomy, the tree's: the function of a class is then the sum of those of the nodes on its
    path and of the shared ones. The loadings ``B`` of shape (n_classes, rank) are hyperparameters of any sign, learned
    together with all others by gradient descent on the cross-validated log likelihood (Seeger, JMLR 9, 2008, 7.4.1).

    Learning starts from which classes a flat model takes for each other. The other hyperparameters are learned first,
    then all together. A Gaussian penalty holds the loadings near their start.

    Parameters
    ----------
    rank : int, default=None
        How many functions the classes share; None means one less than there are classes, all that probabilities can
        tell apart. There are ``n_classes * rank`` loadings to learn.
    B : array of shape (n_classes, rank), default=None
        Loadings, in the order of ``classes_``: to start from, or with ``tuning=None`` those of the model.
    base : {"auto", "tree", "independent"}, Tree, Independent or None, default="auto"
        What the classes have besides: functions of their own, those of the tree (which "auto" means where there is a
        taxonomy), or nothing. With None the prior has rank ``rank`` only, and fewer functions than classes cannot tell
        all of them apart.
    penalty : float, default=30.0
        Strength of the penalty. Loadings have a size of about ``1 / sqrt(rank)``; a priori each has a standard
        deviation of ``1 / sqrt(penalty * rank)`` about where it starts. 0 leaves the penalty out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from taxolearn import KernelLogisticClassifier, LearnedCoupling
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticClassifier(coupling=LearnedCoupling(rank=1)).fit(X, y)
    >>> model.coupling_.B.shape
    (3, 1)
    """

    def __init__(
        self, rank: int | None = None, *, B: npt.ArrayLike | None = None, base: Any = "auto", penalty: float = 30.0
    ) -> None:
        self.rank = rank
        self.B = B
        self.base = base
        self.penalty = penalty

    def strength(self) -> float:
        """The penalty, checked."""
        return float(check_number("penalty", self.penalty, least=0))

    def loadings(self, n_classes: int) -> Floats | None:
        """``B``, checked; None if there is none."""
        if self.B is None:
            return None
        try:
            B = np.array(self.B, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"B must be an array of numbers, got {type(self.B).__name__}") from None
        if B.ndim != 2 or B.shape[0] != n_classes or B.shape[1] < 1:
            raise ValueError(
                f"B has shape {B.shape}, expected ({n_classes}, rank): a row for each class in the order of classes_"
            )
        if not np.isfinite(B).all():
            row, column = np.argwhere(~np.isfinite(B))[0].tolist()
            raise ValueError(f"B[{row}, {column}] is {B[row, column]}; all loadings must be finite")
        if self.rank is not None and self.rank != B.shape[1]:
            raise ValueError(
                f"rank is {self.rank!r}, but B has {B.shape[1]} columns; leave rank out, or make it the same"
            )
        return B

    def n_shared(self, n_classes: int) -> int:
        """The rank for so many classes, checked."""
        if n_classes < 3:
            raise ValueError(f"LearnedCoupling needs at least 3 classes, got {n_classes}: two have nothing to share")
        rank = n_classes - 1 if self.rank is None else check_number("rank", self.rank, least=1, integer=True)
        given = self.loadings(n_classes)
        rank = rank if given is None else given.shape[1]
        if rank > n_classes:
            raise ValueError(
                f"rank is {rank}, more than there are classes ({n_classes}); choose at most {n_classes}, or None"
            )
        if n_classes > _MOST_CLASSES or n_classes * rank > _MOST_LOADINGS:
            raise ValueError(
                f"LearnedCoupling would learn {n_classes} * {rank} = {n_classes * rank} loadings, for {n_classes} "
                f"classes at rank {rank}; it takes up to {_MOST_CLASSES} classes and {_MOST_LOADINGS} loadings. Lower "
                "rank, or give a taxonomy, whose variances are few"
            )
        return rank


@dataclass(frozen=True)
class SimilarityTable:
    """A table of classes by classes, where the package pandas is missing."""

    classes: npt.NDArray[Any]
    values: Floats


@dataclass(frozen=True, eq=False)
class ClassFactors:
    """The loadings of a fitted model.

    Attributes
    ----------
    B : ndarray of shape (n_classes, rank)
        Row by row the loadings of the classes; ``B @ B.T`` is what sharing adds to their prior covariance, relative to
        the kernel's variance. ``B`` times any rotation says the same.
    classes : ndarray of shape (n_classes,)
        Labels of the rows.
    """

    B: Floats
    classes: npt.NDArray[Any]

    def correlations(self) -> Floats:
        """``B B'`` scaled to a diagonal of ones; classes that share nothing have zeros beside it."""
        sizes = np.linalg.norm(self.B, axis=1)
        rows = self.B / np.where(sizes > 0, sizes, 1.0)[:, None]
        out: Floats = np.clip(rows @ rows.T, -1.0, 1.0)
        np.fill_diagonal(out, 1.0)
        return out

    def class_similarity(self, *, scaled: bool = True) -> Any:
        """How similar the classes are, with their labels: the correlations, or with ``scaled=False`` ``B B'`` itself.

        Returns
        -------
        pandas DataFrame or SimilarityTable
            The latter, with ``classes`` and ``values``, where pandas is not installed.
        """
        values = self.correlations() if scaled else self.B @ self.B.T
        try:
            import pandas as pd
        except ImportError:
            return SimilarityTable(self.classes, values)
        return pd.DataFrame(values, index=self.classes, columns=self.classes)
