"""Hierarchical Bayesian logistic regression by variational inference (Gopal, Yang, TKDD 9, 2015, 3.1)."""

import numpy as np
import scipy.sparse as sp

from taxolearn import _core
from taxolearn.fitting.bayes import (
    BayesFit,
    BayesResult,
    BayesState,
    GammaValues,
    NodePrecisions,
    WeightPosterior,
    weights_of_groups,
)
from taxolearn.fitting.fit import Problem
from taxolearn.fitting.functions import LinearFunctions
from taxolearn.progress import ProgressCallback
from taxolearn.targets import LabelSets

__all__ = ["fit_variational"]


def fit_variational(
    problem: Problem,
    nodes: NodePrecisions,
    prior: GammaValues,
    *,
    start: BayesState,
    tol: float,
    max_rounds: int,
    memory_limit: float,
    n_threads: int = 1,
    progress: ProgressCallback | None = None,
) -> BayesFit:
    """Maximize Bouchard's bound over distributions of the weights of all nodes together and of the precisions.

    Parameters
    ----------
    problem, nodes, prior, start, n_threads
        As for ``fit_map``; of the start only the variances count.
    tol : float
        Rounds end when the bound rises by less, relative to its size.
    max_rounds : int
        Largest number of rounds, at least 1.
    memory_limit : float
        Bytes that the covariances of the nodes may take.
    progress : callable, optional
        Called after each round with the rise of the bound in place of a gap.
    """
    n_rows, n_features = problem.X.shape
    needed = 8 * (nodes.n_nodes * (n_features + 1) ** 2 + n_rows * n_features)
    if needed > memory_limit:
        raise ValueError(
            f'inference="variational" keeps a covariance of {n_features} features for each of {nodes.n_nodes} nodes, '
            f'{needed / 1e6:.3g} MB, more than memory_limit; take inference="map", fewer features, or a solver with '
            "more memory"
        )
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    targets = problem.targets
    if isinstance(targets, LabelSets):
        offsets, labels = targets.offsets, targets.labels
    else:
        offsets, labels = np.arange(n_rows + 1, dtype=np.int64), np.asarray(targets, dtype=np.int32)
    found = _core.fit_variational(
        X=np.ascontiguousarray(X, dtype=np.float64),
        sample_weight=problem.sample_weight,
        label_offsets=offsets,
        labels=labels,
        link=_core.Link[problem.link],
        taxonomy=_core.Taxonomy(nodes.parents),
        groups=nodes.groups.tolist(),
        shapes=prior.shape.tolist(),
        rates=prior.rate,
        variances=start.variances,
        intercept_variance=problem.intercept_variance,
        max_rounds=max_rounds,
        tol=tol,
        n_threads=n_threads,
        progress=progress,
    )
    posterior = WeightPosterior(
        np.ascontiguousarray(found.take_variances()[:, problem.order].T),
        found.intercept_variances[problem.order],
        GammaValues(nodes.names, prior.shape + 0.5 * weights_of_groups(nodes, X), found.take_rates()),
        prior,
    )
    coef = np.ascontiguousarray(found.take_weights()[:, problem.order].T)
    bounds = tuple(found.bounds.tolist())
    return BayesFit(
        LinearFunctions(coef, found.intercepts[problem.order]),
        None,
        posterior,
        BayesResult("converged" if found.converged else "max_rounds", len(bounds), (), bounds, 0, 0),
        BayesState(posterior.precisions.scale, (), 0, 0, None, ""),
    )
