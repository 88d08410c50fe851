"""Hierarchical Bayesian logistic regression written out densely, and a sampler of its posterior, to compare with."""

import numpy as np
from scipy.special import digamma, expit, gammaln, softmax


def node_covariance(parents, v):
    """Prior covariance of the weights of all nodes but node 0, which is zero, for one feature."""
    n = len(parents)
    paths = np.zeros((n, n))
    for node in range(1, n):
        paths[node] = paths[parents[node]]
        paths[node, node] = 1.0
    return (paths * v) @ paths.T, paths


def moments(X, w, W, b, link, parents, groups, variances, n_groups):
    """Sums of squared increments and their posterior variances, and variances of leaves, feature by feature."""
    u = X @ W + b
    p = softmax(u, axis=1) if link == "softmax" else expit(u)
    h = (X**2).T @ (w[:, None] * p * (1 - p))
    n, C = len(parents), W.shape[1]
    leaves = np.arange(n - C, n)
    squares, spreads, of_leaves = (np.zeros((X.shape[1], k)) for k in (n_groups, n_groups, C))
    for j in range(X.shape[1]):
        own = variances[j if len(variances) > 1 else 0]
        v = np.concatenate([[0.0], own[groups[1:]]])
        G, _ = node_covariance(parents, v)
        above = np.eye(n)
        above[np.arange(1, n), parents[1:]] -= 1.0
        K = G[np.ix_(leaves, leaves)]
        d = above @ G[:, leaves] @ np.linalg.solve(K, W[j])
        S = G - G[:, leaves] @ np.linalg.solve(K + np.diag(1 / h[j]), G[leaves])
        V = np.diag(above @ S @ above.T)
        for node in range(1, n):
            squares[j, groups[node]] += d[node] ** 2
            spreads[j, groups[node]] += V[node]
        of_leaves[j] = np.diag(S)[leaves]
    if len(variances) == 1:
        squares, spreads = squares.sum(axis=0, keepdims=True), spreads.sum(axis=0, keepdims=True)
    return squares, spreads, of_leaves


def lam(xi):
    return np.tanh(xi / 2) / (4 * xi)


def variational_bounds(X, w, Y, link, parents, groups, shape, rate, variances, intercept_variance, rounds):
    """The bound after each round: one Gaussian over the weights of all nodes and the intercepts, in full."""
    (n, d), C, N = X.shape, Y.shape[1], len(parents)
    by_feature = len(rate) > 1
    m, s, beta = np.zeros((n, C)), np.zeros((n, C)), np.zeros(n)
    size = (N - 1) * d  # of the nodes' weights, feature after feature
    T = np.eye(N)[1:, 1:]  # increments from weights
    for node in range(1, N):
        if parents[node] > 0:
            T[node - 1, parents[node] - 1] = -1.0
    T = np.kron(np.eye(d), T)
    tau = shape + 0.5 * (1 if by_feature else d) * np.bincount(groups[1:], minlength=len(shape))
    nu = variances * tau
    bounds = []

    def tighten():
        nonlocal beta
        for _ in range(5 if link == "softmax" else 0):
            with np.errstate(invalid="ignore"):
                xi = np.maximum(np.sqrt(s + (m - beta[:, None]) ** 2), 1e-9)
            beta = (C / 4 - 0.5 + (lam(xi) * m).sum(axis=1)) / lam(xi).sum(axis=1)
        xi = np.maximum(np.sqrt(s + (m - beta[:, None]) ** 2), 1e-9)
        return xi, beta + (0.5 * (m - beta[:, None] - xi) + np.logaddexp(0, xi)).sum(axis=1)

    xi, _ = tighten()
    for _ in range(rounds):
        D = (tau / nu)[np.arange(d) if by_feature else np.zeros(d, dtype=int)][:, groups[1:]].ravel()
        precision = np.zeros((size + C, size + C))
        precision[:size, :size] = T.T @ (D[:, None] * T)
        precision[size:, size:] = np.eye(C) / intercept_variance
        eta = np.zeros(size + C)
        maps = []
        for c in range(C):
            M = np.zeros((n, size + C))
            M[:, np.arange(d) * (N - 1) + N - 1 - C + c] = X
            M[:, size + c] = 1.0
            maps.append(M)
            weight = 2 * w * lam(xi[:, c])
            precision += M.T @ (weight[:, None] * M)
            eta += M.T @ (w * (Y[:, c] - 0.5) + weight * beta)
        S = np.linalg.inv(precision)
        mean = S @ eta
        E = (T @ mean[:size]) ** 2 + np.diag(T @ S[:size, :size] @ T.T)
        nu = rate.astype(float).copy()
        for j in range(d):
            for k in range(N - 1):
                nu[j if by_feature else 0, groups[k + 1]] += 0.5 * E[j * (N - 1) + k]
        m = np.column_stack([M @ mean for M in maps])
        s = np.column_stack([np.einsum("ij,jk,ik->i", M, S, M) for M in maps])
        xi, upper = tighten()
        bound = np.sum(w * ((Y * m).sum(axis=1) - upper))
        mean_log = digamma(tau) - np.log(nu)
        half = tau - shape
        bound += np.sum(half * mean_log - tau / nu * (nu - rate)) + 0.5 * size
        bound += np.sum(shape * np.log(rate) - gammaln(shape) + (shape - 1) * mean_log - rate * tau / nu)
        bound += np.sum(tau - np.log(nu) + gammaln(tau) + (1 - tau) * digamma(tau))
        b = mean[size:] ** 2 + np.diag(S)[size:]
        bound += 0.5 * np.sum(1 - b / intercept_variance - np.log(intercept_variance))
        bound += 0.5 * np.linalg.slogdet(S)[1]
        bounds.append(bound)
    return np.array(bounds), mean, S, nu


def sample_posterior(X, Y, link, parents, groups, shape, rate, intercept_variance, n_samples, seed, steps=12):
    """Means, deviations and errors of leaf weights (C x d) and precisions, by Hamiltonian moves and Gibbs draws."""
    rng = np.random.default_rng(seed)
    (n, d), C, N = X.shape, Y.shape[1], len(parents)
    _, paths = node_covariance(parents, np.ones(N))
    leaves = paths[N - C :, 1:]  # leaf weights from increments
    D, b = np.zeros((N - 1, d)), np.zeros(C)
    alpha = shape / rate[0]
    counts = np.bincount(groups[1:], minlength=len(shape))
    kept_w, kept_a, step = [], [], 0.5 / np.sqrt(n * np.mean(X**2))
    accepted = []

    def energy(D, b):
        u = X @ (leaves @ D).T + b
        if link == "softmax":
            top = u.max(axis=1, keepdims=True)
            loss = np.sum(np.log(np.exp(u - top).sum(axis=1)) + top[:, 0] - (Y * u).sum(axis=1))
            r = softmax(u, axis=1) - Y
        else:
            loss, r = np.sum(np.logaddexp(0, u) - Y * u), expit(u) - Y
        a = alpha[groups[1:]][:, None]
        value = loss + 0.5 * np.sum(a * D**2) + 0.5 * np.sum(b**2) / intercept_variance
        return value, leaves.T @ r.T @ X + a * D, r.sum(axis=0) + b / intercept_variance

    for k in range(n_samples + n_samples // 5):
        value, gD, gb = energy(D, b)
        pD, pb = rng.standard_normal(D.shape), rng.standard_normal(C)
        start = value + 0.5 * (pD**2).sum() + 0.5 * (pb**2).sum()
        newD, newb = D, b
        size = step * rng.uniform(0.7, 1.3)
        for _ in range(steps):
            pD, pb = pD - 0.5 * size * gD, pb - 0.5 * size * gb
            newD, newb = newD + size * pD, newb + size * pb
            value, gD, gb = energy(newD, newb)
            pD, pb = pD - 0.5 * size * gD, pb - 0.5 * size * gb
        accept = np.log(rng.uniform()) < start - value - 0.5 * (pD**2).sum() - 0.5 * (pb**2).sum()
        accepted.append(accept)
        if accept:
            D, b = newD, newb
        if k < n_samples // 5:
            step *= 1.05 if accept else 0.9
        squares = np.bincount(groups[1:], (D**2).sum(axis=1), minlength=len(shape))
        alpha = rng.gamma(shape + 0.5 * d * counts) / (rate[0] + 0.5 * squares)
        if k >= n_samples // 5:
            kept_w.append(leaves @ D)
            kept_a.append(alpha)
    assert np.mean(accepted) > 0.4
    w, a = np.array(kept_w), np.array(kept_a)
    return (w.mean(axis=0), w.std(axis=0), batch_error(w)), (a.mean(axis=0), a.std(axis=0), batch_error(a))


def batch_error(samples, batches=20):
    """Standard error of the mean of a chain, from the means of batches of it."""
    means = np.array([part.mean(axis=0) for part in np.array_split(samples, batches)])
    return means.std(axis=0, ddof=1) / np.sqrt(batches)
