"""Explanations: parts of features in linear models, and changes of features in others."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from taxolearn import KernelLogisticClassifier, PoolClassifier, Taxonomy, decisions
from taxolearn.estimators.explain import explain_by_change
from taxolearn.kernels import RBF, Linear

LABELS = np.array(["a/x", "a/y", "b/x", "b/y", "c"])
TREE = Taxonomy.from_labels(LABELS)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        90, 6, n_informative=5, n_redundant=0, n_classes=5, n_clusters_per_class=1, random_state=0
    )
    return np.where(np.abs(X) > 0.3, X, 0.0), LABELS[y]


def fitted(data, **options):
    return KernelLogisticClassifier(Linear(), tuning=None, **options).fit(*data)


def total(explanation):
    return sum(part for _, part in explanation.contributions) + explanation.rest


@pytest.mark.parametrize("node", [None, "a/x", "b", "c"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_parts_add_up_to_the_derivative(node, is_sparse, data):
    """Along the row itself, by finite differences of the odds."""
    model = fitted(data, taxonomy=TREE)
    X = data[0][:8]
    explained = model.explain(sp.csr_matrix(X) if is_sparse else X, node, top=2)

    def odds(scale):
        p = model.predict_node_proba(scale * X)
        return {
            str(name): np.log(p[:, k]) - np.log(p[:, TREE.parents[k]] - p[:, k])
            for k, name in enumerate(TREE.names)
            if k > 0
        }

    up, down, here = odds(1 + 1e-5), odds(1 - 1e-5), odds(1.0)
    for row, path in enumerate(explained):
        target = model.predict(X)[row] if node is None else node
        assert [each.node for each in path] == TREE.path(target)
        for each in path:
            slope = (up[each.node][row] - down[each.node][row]) / 2e-5
            assert total(each) == pytest.approx(slope, rel=1e-5, abs=1e-6)
            assert np.log(each.probability / (1 - each.probability)) == pytest.approx(here[each.node][row])
            assert len(each.contributions) == 2
            sizes = [abs(part) for _, part in each.contributions]
            assert sizes == sorted(sizes, reverse=True)


def test_two_classes_are_explained_exactly(data):
    X, y = data
    model = fitted((X, y == "c"))
    for row, (explanation,) in zip(X, model.explain(X, True, top=6), strict=True):
        expected = row * (model.coef_[1] - model.coef_[0])
        for feature, part in explanation.contributions:
            assert part == pytest.approx(expected[feature])
        assert {feature for feature, _ in explanation.contributions} == set(np.flatnonzero(row))


def test_flat_models_have_one_node(data):
    model = fitted(data)
    X = data[0][:3]
    assert [[each.node for each in path] for path in model.explain(X)] == [[label] for label in model.predict(X)]
    proba = model.predict_proba(X)
    assert [path[0].probability for path in model.explain(X)] == pytest.approx(proba.max(axis=1))


def test_one_node_for_each_row(data):
    model = fitted(data, taxonomy=TREE)
    paths = model.explain(data[0][:2], ["c", "b/y"])
    assert [[each.node for each in path] for path in paths] == [["c"], ["b", "b/y"]]
    given_parent = decisions.node_proba(model.predict_proba(data[0][:2]), classes=model.classes_, taxonomy=TREE)[1]
    expected = given_parent[TREE.index("b/y")] / given_parent[TREE.index("b")]
    assert paths[1][1].probability == pytest.approx(expected)


def test_names_of_features(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=list("uvwxyz"))
    model = fitted((frame, y))
    assert {name for name, _ in model.explain(frame[:1])[0][0].contributions} <= set("uvwxyz")
    named = model.explain(frame[:1], feature_names=[f"f{k}" for k in range(6)])
    assert {name for name, _ in named[0][0].contributions} <= {f"f{k}" for k in range(6)}


def test_only_children_need_no_reason(data):
    X, y = data
    y = np.where(y == "c", "c/only", y)
    model = fitted((X, y), taxonomy=Taxonomy.from_labels(np.unique(y)))
    path = model.explain(X[:1], "c/only")[0]
    assert [each.node for each in path] == ["c", "c/only"]
    assert path[1].probability == 1.0
    assert path[1].contributions == []


def test_errors(data):
    X, y = data
    model = fitted(data)
    for options, message in (
        ({"node": "nothing"}, "no class of the model"),
        ({"node": ["c", "c"]}, "node has 2 elements"),
        ({"top": 0}, "top"),
        ({"feature_names": ["a"]}, "feature_names has 1 elements, expected 6"),
    ):
        with pytest.raises(ValueError, match=message):
            model.explain(X[:3], **options)
    with pytest.raises(ValueError, match="node: not in the taxonomy: 'nothing'"):
        fitted(data, taxonomy=TREE).explain(X[:3], "nothing")
    with pytest.raises(ValueError, match="linear model"):
        KernelLogisticClassifier(RBF(2.0), tuning=None).fit(X, y).explain(X)


# -- Models that are not linear ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_changes_of_a_linear_model_are_its_parts(form):
    """The log odds of two classes are linear, so that both definitions agree."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(30, 4)) * (generator.random((30, 4)) < 0.7)
    y = np.where(X[:, 0] + generator.normal(size=30) > 0, "up", "down")
    model = KernelLogisticClassifier(tuning=None).fit(X, y)
    expected = model.explain(form(X[:5]), top=2)
    found = explain_by_change(form(X[:5]), model.predict_log_proba, None, model.classes_, None, top=2)
    for (one,), (other,) in zip(found, expected, strict=True):
        assert one.node == other.node
        assert one.probability == pytest.approx(other.probability)
        assert [name for name, _ in one.contributions] == [name for name, _ in other.contributions]
        assert [part for _, part in one.contributions] == pytest.approx([part for _, part in other.contributions])
        assert one.rest == pytest.approx(other.rest)


def test_changes_say_what_a_pool_would_answer_instead():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(80, 3)) + 5.0
    y = np.where(np.abs(X[:, 1] - 5.0) > 0.7, "x/far", "y/near")  # not linear
    tree = Taxonomy.from_labels(y)
    expert = KernelLogisticClassifier("rbf", taxonomy=tree, tuning=None)
    pool = PoolClassifier([("bent", expert)], taxonomy=tree).fit(X, y)
    assert not hasattr(pool.experts_["bent"], "coef_")
    top, leaf = pool.explain(X[:1], "x/far", feature_names=["a", "b", "c"])[0]
    assert (top.node, leaf.node) == ("x", "x/far")
    assert leaf.contributions == [], "an only child needs no reason"
    assert top.contributions[0][0] == "b"

    def odds(rows):
        p = pool.predict_proba(rows)[0]
        return np.log(p[0] / p[1])

    changed = X[:1].copy()
    changed[0, 1] = X[:, 1].mean()
    assert top.contributions[0][1] == pytest.approx(odds(X[:1]) - odds(changed), rel=1e-6)
    assert top.probability == pytest.approx(pool.predict_proba(X[:1])[0, 0])
    with pytest.raises(ValueError, match="feature_names has 2 elements, expected 3"):
        pool.explain(X[:1], feature_names=["a", "b"])


def test_rows_of_usual_values_have_no_reasons():
    X = np.arange(20.0).reshape(10, 2)
    y = np.repeat([0, 1], 5)
    pool = PoolClassifier([KernelLogisticClassifier("rbf", tuning=None)]).fit(X, y)
    ((found,),) = pool.explain(X.mean(axis=0, keepdims=True))
    assert found.contributions == []
    assert found.rest == 0.0
