"""Kernels by their formulas, entry by entry, to hold the library against."""

import numpy as np
from scipy.spatial.distance import cdist

from taxolearn import kernels as k


def matrix(kernel, X, Y):
    """The kernel between dense rows."""
    if isinstance(kernel, k.Sum):
        return sum(matrix(part, X, Y) for part in kernel.parts)
    if isinstance(kernel, k.Product):
        return np.prod([matrix(part, X, Y) for part in kernel.parts], axis=0)
    inner = np.array([[x @ y for y in Y] for x in X])
    if isinstance(kernel, k.Linear):
        return kernel.variance * inner
    if isinstance(kernel, k.Polynomial):
        return kernel.variance * (kernel.scale * inner + kernel.offset) ** kernel.degree
    if isinstance(kernel, k.Cosine):
        norms = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
        return kernel.variance * np.divide(inner, norms, out=np.zeros_like(inner), where=norms > 0)
    scale = np.asarray(kernel.length_scale)
    r = cdist(X / scale, Y / scale)
    if isinstance(kernel, k.RBF):
        values = np.exp(-(r**2) / 2)
    elif isinstance(kernel, k.RationalQuadratic):
        values = (1 + r**2 / (2 * kernel.alpha)) ** -kernel.alpha
    else:
        a = np.sqrt(2 * kernel.nu) * r
        values = {0.5: 1.0, 1.5: 1 + a, 2.5: 1 + a + a**2 / 3}[kernel.nu] * np.exp(-a)
    return kernel.variance * values


def incomplete_cholesky(M, rank):
    """Greedy pivots, the factor and its true diagonal; ties to the smaller index."""
    left = M.diagonal().copy()
    L = np.zeros((len(M), rank))
    pivots = []
    for r in range(rank):
        pivot = int(left.argmax())
        pivots.append(pivot)
        L[:, r] = (M[:, pivot] - L[:, :r] @ L[pivot, :r]) / np.sqrt(left[pivot])
        L[pivots[:-1], r] = 0.0
        left = M.diagonal() - (L**2).sum(axis=1)
        left[pivots] = 0.0
    return pivots, L, left


def with_true_diagonal(M, L):
    out = L @ L.T
    np.fill_diagonal(out, M.diagonal())
    return out
