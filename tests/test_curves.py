"""Curves of numbers: hat functions whose inner products are a covariance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from taxolearn import KernelLogisticClassifier, PoolClassifier
from taxolearn.features import TableFeatures
from taxolearn.features.scales import Curves
from taxolearn.kernels import Linear

KNOTS = 65


def hats(x, knots):
    """The definition, a number and a hat at a time."""
    if len(knots) < 3 or np.isnan(x):
        return []
    u = np.interp(x, knots, np.linspace(0, 1, len(knots)))
    out, level = [], 0
    while 2**level < len(knots) - 1 or level == 0:
        top = [(k + 0.5) / 2**level for k in range(2**level)]
        out += [max(0.0, 1 - abs(u - each) * 2 ** (level + 1)) * 2 ** (-level / 2) for each in top]
        level += 1
    return out


def test_inner_products_at_knots_are_those_of_a_brownian_bridge():
    curves = Curves.of(np.sort(np.random.default_rng(0).normal(size=(KNOTS, 1)), axis=0))
    assert len(curves.knots[0]) == KNOTS
    H = curves.features(curves.knots[0][:, None]).toarray().astype(float)
    u = np.arange(KNOTS) / (KNOTS - 1)
    np.testing.assert_allclose(H @ H.T, 4 * (np.minimum.outer(u, u) - np.outer(u, u)), atol=1e-6)


COLUMN = st.lists(st.none() | st.integers(-3, 3) | st.floats(-1e20, 1e20), min_size=1, max_size=200)


@given(COLUMN, COLUMN)
@settings(max_examples=200, deadline=None)
def test_hats_are_those_of_the_definition(seen, new):
    seen, new = (np.array([np.nan if x is None else x for x in each], dtype=float) for each in (seen, new))
    curves = Curves.of(seen[:, None])
    (knots,) = curves.knots
    assert (np.diff(knots) > 0).all()
    assert len(knots) <= KNOTS
    assert set(knots) <= set(seen)
    for numbers in (seen, new):
        features = curves.features(numbers[:, None])
        assert (features.data > 0).all()
        assert features.has_sorted_indices
        for x, row in zip(numbers, features.toarray(), strict=True):
            np.testing.assert_allclose(row, hats(x, knots) or np.zeros(len(row)), atol=2e-6)
    assert len(curves.names(["price"])) == features.shape[1]


def test_columns_are_side_by_side():
    numbers = np.random.default_rng(0).normal(size=(KNOTS, 4))
    numbers[:, 1] = numbers[:, 1] > 0  # no third value, so no curve
    numbers[:, 2] = np.nan
    numbers[::7, 3] = np.nan
    together = Curves.of(numbers)
    apart = [Curves.of(column[:, None]) for column in numbers.T]
    widths = [each.features(numbers[:, k : k + 1]).shape[1] for k, each in enumerate(apart)]
    assert widths == [63, 0, 0, 63]
    stacked = np.hstack([each.features(numbers[:, k : k + 1]).toarray() for k, each in enumerate(apart)])
    np.testing.assert_array_equal(together.features(numbers).toarray(), stacked)
    assert not together.features(numbers)[::7, 63:].nnz
    assert together.names(list("abcd"))[0] == f"a near {np.median(numbers[:, 0]):.6g}"
    assert Curves.of(numbers[:, 1:3]).features(numbers[:, 1:3]).shape == (KNOTS, 0)


def test_a_frequent_number_takes_one_knot():
    numbers = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])
    (knots,) = Curves.of(numbers[:, None]).knots
    assert knots[0] == 0
    assert knots[-1] == 100
    assert len(knots) > 50


@pytest.mark.parametrize(
    ("options", "has_curves"),
    [
        ({"text": "t"}, True),
        ({"sequences": "t"}, True),
        ({"categorical": ["t"]}, True),
        ({"text": "t", "curves": False}, False),
        ({"text": "t", "output": "matrix"}, False),
        ({"text": "t", "output": "matrix", "curves": True}, True),
        ({}, False),
        ({"curves": True}, True),
    ],
)
def test_where_curves_are(options, has_curves):
    table = {"t": ["ab", "ba", "aa"] * 20, "x": list(range(60))}
    features = TableFeatures(**{"numeric": ["x"], "output": "blocks"} | options).fit(table)
    assert (features.curves_ is not None) == has_curves
    names = features.get_feature_names_out().tolist()
    assert features.transform(table).shape[1] == len(names)
    assert any(name.startswith("x near ") for name in names) == has_curves


def test_what_curves_may_be():
    with pytest.raises(ValueError, match="curves must be True, False or"):
        TableFeatures(numeric=["x"], curves="yes").fit({"x": [1.0, 2.0]})


@pytest.mark.parametrize("classifier", [KernelLogisticClassifier(Linear(), tuning=None), PoolClassifier()])
def test_bands_of_a_number_are_found(classifier):
    random = np.random.default_rng(0)
    x = random.normal(size=600)
    table = {"t": random.choice(["red", "green"], 600).tolist(), "x": x.tolist()}
    y = (np.abs(x) < 0.7).astype(int)
    shares = []
    for curves in ("auto", False):
        model = make_pipeline(TableFeatures("t", numeric=["x"], output="blocks", curves=curves), classifier)
        model.fit({name: column[:400] for name, column in table.items()}, y[:400])
        shares.append(model.score({name: column[400:] for name, column in table.items()}, y[400:]))
    assert shares[0] > 0.9 > 0.75 > shares[1]
