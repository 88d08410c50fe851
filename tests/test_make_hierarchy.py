"""Made-up hierarchical data: its law, its seed, bad arguments."""

import numpy as np
import pytest

from taxolearn.datasets import make_hierarchy


def test_siblings_are_close_and_cousins_are_not():
    data = make_hierarchy(20000, branching=(3, 4, 2), n_features=30, spread=2.0, noise=0.5, random_state=0)
    tree = data.taxonomy
    assert (data.X.shape, tree.n_classes, tree.height) == ((20000, 30), 24, 3)
    centres = np.array([data.X[data.y == label].mean(axis=0) for label in tree.classes])
    nodes = tree.n_inner + np.arange(24)
    apart = tree.common_depth(nodes[:, None], nodes[None, :])
    distances = ((centres[:, None] - centres[None]) ** 2).sum(axis=2)
    # Two classes differ by the displacements of the levels that they do not share, on either side.
    for shared in range(3):
        expected = 2 * (3 - shared) * 30 * 2.0**2
        assert distances[apart == shared].mean() == pytest.approx(expected, rel=0.35)
    assert np.std(data.X - centres[tree.leaf_index(data.y)]) == pytest.approx(0.5, rel=0.02)


def test_skew_and_seed():
    X, y = make_hierarchy(5000, branching=(2, 5), skew=1.5, random_state=3)
    counts = np.sort(np.unique(y, return_counts=True)[1])[::-1]
    assert counts[0] > 10 * counts[-1]
    again = make_hierarchy(5000, branching=(2, 5), skew=1.5, random_state=3)
    assert np.array_equal(again.X, X)
    assert np.array_equal(again.y, y)
    assert not np.array_equal(make_hierarchy(5000, branching=(2, 5), skew=1.5, random_state=4).X, X)
    even = np.unique(make_hierarchy(5000, branching=(2, 5), random_state=3).y, return_counts=True)[1]
    assert even.min() > 400


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples"),
        ({"n_features": 0}, ValueError, "n_features"),
        ({"branching": ()}, ValueError, "at least two classes"),
        ({"branching": (1, 1)}, ValueError, "at least two classes"),
        ({"branching": (2, 0)}, ValueError, "branching"),
        ({"branching": (2, 1.5)}, TypeError, "branching"),
        ({"noise": -1}, ValueError, "noise"),
        ({"spread": np.nan}, ValueError, "spread"),
        ({"skew": -0.1}, ValueError, "skew"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        make_hierarchy(**options)
