"""Models with a tree inside scikit-learn's tools, also those that number the labels before they fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score

from taxolearn import KernelLogisticClassifier, Taxonomy, Tree
from taxolearn.kernels import Linear

# "d" is never seen; leaves are not in sorted order, and some are as deep as their parents' siblings.
TREE = Taxonomy.from_labels(["z/q", "z/p", "m", "a/x/2", "a/x/1", "d"])
SEEN = np.array(["z/q", "z/p", "m", "a/x/2", "a/x/1"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.concatenate([SEEN[np.arange(100) % 5], ["m"]])
    centres = dict(zip(SEEN, 2.0 * rng.standard_normal((5, 4)), strict=True))
    return np.array([centres[label] for label in y]) + rng.standard_normal((len(y), 4)), y


def model(taxonomy, **options):
    return KernelLogisticClassifier(Linear(0.5), taxonomy=taxonomy, tuning=None, tol=1e-9, n_threads=1, **options)


class TestEncode:
    def test_classes_are_the_places_among_the_sorted_labels(self, data):
        _, y = data
        tree, codes = TREE.encode(y)
        names = np.unique(y)
        assert_array_equal(names[codes], y)
        assert sorted(tree.classes.tolist()) == list(range(5))
        for code, name in enumerate(names):
            assert tree.path(code)[:-1] == TREE.path(name)[:-1]
        again, same = tree.encode(codes)
        assert again == tree
        assert_array_equal(same, codes)

    def test_names_of_inner_nodes_never_clash(self):
        numbers = Taxonomy([-1, 0, 0, 1, 1, 2, 2], [7, 0, "0", 10, 11, 12, 13])
        tree, codes = numbers.encode([13, 10, 11, 12])
        assert codes.tolist() == [3, 0, 1, 2]
        assert set(tree.names.tolist()) == {"7", "0", "0*", 0, 1, 2, 3}

    def test_inner_nodes_are_no_classes(self):
        with pytest.raises(ValueError, match="z"):
            TREE.encode(["z", "m"])

    def test_the_model_is_that_of_the_names(self, data):
        X, y = data
        tree, codes = TREE.encode(y)
        named = model(TREE.restrict(y)).fit(X, y)
        assert_allclose(model(tree).fit(X, codes).predict_proba(X), named.predict_proba(X), atol=1e-7)

    def test_errors_point_to_it(self, data):
        X, y = data
        with pytest.raises(ValueError, match=r"names are strings such as .*Taxonomy\.encode"):
            model(TREE).fit(X, TREE.encode(y)[1])


def test_tools_that_leave_labels_alone(data):
    X, y = data
    assert cross_val_score(model(TREE), X, y, cv=3).min() > 0.6
    search = GridSearchCV(model(TREE, coupling=Tree()), {"coupling__tying": ["level", "shared"]}, cv=3).fit(X, y)
    assert set(search.predict(X)) <= set(SEEN)
    calibrated = CalibratedClassifierCV(model(TREE.restrict(SEEN)), cv=3).fit(X, y)
    assert_array_equal(calibrated.classes_, np.sort(SEEN))


def test_cross_val_predict(data):
    X, y = data
    tree, codes = TREE.encode(y)
    folds = StratifiedKFold(3)
    proba = cross_val_predict(model(tree), X, codes, cv=folds, method="predict_proba")
    for train, test in folds.split(X, codes):
        expected = model(TREE.restrict(y)).fit(X[train], y[train]).predict_proba(X[test])
        assert_allclose(proba[test], expected, atol=1e-7)


def test_cross_val_predict_with_a_class_that_a_fold_never_sees(data):
    X, y = data
    tree, codes = TREE.encode(y)
    last = np.flatnonzero(y == "m")
    folds = [(np.setdiff1d(np.arange(len(y)), rows), rows) for rows in (last, np.setdiff1d(np.arange(len(y)), last))]
    proba = cross_val_predict(model(tree), X, codes, cv=folds, method="predict_proba")
    assert proba.shape == (len(y), 5)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert (proba[last, np.unique(y).tolist().index("m")] > 0).all()


def test_stacking(data):
    X, y = data
    tree, codes = TREE.encode(y)
    stack = StackingClassifier([("tree", model(tree)), ("flat", LogisticRegression())], LogisticRegression(), cv=3).fit(
        X, codes
    )
    assert stack.transform(X).shape == (len(y), 10)
    assert np.mean(np.unique(y)[stack.predict(X)] == y) > 0.7


@pytest.mark.parametrize("ensemble", [False, True])
def test_calibration(data, ensemble):
    X, y = data
    tree, codes = TREE.encode(y)
    calibrated = CalibratedClassifierCV(model(tree), cv=3, ensemble=ensemble).fit(X, codes)
    assert calibrated.predict_proba(X).shape == (len(y), 5)
    assert np.mean(np.unique(y)[calibrated.predict(X)] == y) > 0.7
