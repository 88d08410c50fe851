"""Label embeddings (Mineiro and Karampatziakis 2015) by the core."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn import _core
from taxolearn.progress import ProgressCallback
from taxolearn.validation import check_choice

__all__ = ["EMBEDDING_METHODS", "EmbeddingFit", "fit_embedding"]

Floats = npt.NDArray[np.float64]

EMBEDDING_METHODS = tuple(_core.EmbeddingMethod.__members__)


@dataclass(frozen=True)
class EmbeddingFit:
    """What an embedding of labels consists of, and how good its regression is.

    Attributes
    ----------
    components : ndarray of shape (n_classes, k), for "pca" (n_features, k)
        Orthonormal columns; k is smaller than asked for where there are not so many directions.
    values : ndarray of shape (k,)
        The eigenvalues that go with them; for "random" sums of squares of the rows' embeddings.
    weights, intercepts : ndarray of shape (n_features, k), (k,)
        The embedding of a row x is ``x @ weights + intercepts``.
    mean, moments : ndarray of shape (k,), (k, k)
        Mean and covariance of the training rows' embeddings.
    ridge : float
        In units of the mean of the features' sums of squares.
    path_ridges, path_errors : ndarray
        Ridges that were compared and their errors on rows left out, if the ridge was to be chosen.
    is_converged : bool
        Whether conjugate gradients came to the tolerance everywhere.
    iterations : int
        Products with the normal matrix, for up to 64 right-hand sides each.
    residuals : ndarray of shape (k,)
        Residuals of the normal equations relative to their right-hand sides, computed anew.
    objective, gap : float
        ``|Y V - X W|^2 + ridge |W|^2``, which is at most ``gap`` above its minimum over W; infinite without a ridge.
    seconds : float
        Time of the fit.
    """

    components: Floats
    values: Floats
    weights: Floats
    intercepts: Floats
    mean: Floats
    moments: Floats
    ridge: float
    path_ridges: Floats
    path_errors: Floats
    is_converged: bool
    iterations: int
    residuals: Floats
    objective: float
    gap: float
    seconds: float


def fit_embedding(
    X: Any,
    label_offsets: npt.ArrayLike,
    labels: npt.ArrayLike,
    n_classes: int,
    *,
    method: str = "rembrandt",
    n_components: int = 50,
    oversampling: int = 20,
    rounds: int = 1,
    ridge: float | None = None,
    center: bool = True,
    sample_weight: Floats | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    single_precision: bool = False,
    random_state: int = 0,
    n_threads: int = 1,
    progress: ProgressCallback | None = None,
) -> EmbeddingFit:
    """Embed the classes and regress the embedding.

    Parameters
    ----------
    X : array, CSR matrix or Blocks of shape (n_samples, n_features)
        Inputs in the core's form (see ``taxolearn.validation``).
    label_offsets, labels : array of int
        Row i has the classes ``labels[label_offsets[i]:label_offsets[i + 1]]``, of which there may be none.
    n_classes : int
        Number of classes.
    method : {"rembrandt", "plst", "random", "pca"}, default="rembrandt"
        What is decomposed: moments of predictions, moments of labels, nothing, moments of inputs.
    n_components, oversampling, rounds : int
        Columns that are wanted, columns beside these, and products before the last one.
    ridge : float, optional
        By default chosen by leaving rows out.
    center : bool, default=True
        Whether means are taken off inputs and labels.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows.
    tol : float, default=1e-4
        Largest relative residual of the normal equations.
    max_iter : int, default=1000
        Largest number of iterations of conjugate gradients for a block of right-hand sides.
    single_precision : bool, default=False
        Whether products are computed in single precision.
    random_state : int, default=0
        Of the start, and of the rows left out.
    n_threads : int, default=1
        Threads. The answer does not depend on their number.
    progress : callable, optional
        Called after every iteration.
    """
    settings = _core.EmbeddingSettings(
        method=_core.EmbeddingMethod[check_choice("method", method, EMBEDDING_METHODS)],
        n_components=n_components,
        oversampling=oversampling,
        rounds=rounds,
        ridge=-1.0 if ridge is None else ridge,
        tol=tol,
        max_iter=max_iter,
        seed=random_state,
    )
    result = _core.fit_embedding(
        X=X,
        label_offsets=np.ascontiguousarray(label_offsets, dtype=np.int64),
        labels=np.ascontiguousarray(labels, dtype=np.int32),
        n_classes=n_classes,
        sample_weight=sample_weight,
        center=center,
        settings=settings,
        single_precision=single_precision,
        n_threads=n_threads,
        progress=progress,
    )
    return EmbeddingFit(
        components=result.take_components(),
        values=result.values,
        weights=result.take_weights(),
        intercepts=result.intercepts,
        mean=result.mean,
        moments=result.take_moments(),
        ridge=result.ridge,
        path_ridges=result.path_ridges,
        path_errors=result.path_errors,
        is_converged=result.converged,
        iterations=result.iterations,
        residuals=result.residuals,
        objective=result.objective,
        gap=result.gap,
        seconds=result.seconds,
    )
