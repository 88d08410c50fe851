"""The hierarchical model on published data: CLEF's X-ray images, and web pages of the LSHTC challenge."""

import numpy as np
import pytest
from conftest import Split
from sklearn.feature_extraction.text import TfidfTransformer

from taxolearn import KernelLogisticClassifier, Taxonomy, Tree, metrics
from taxolearn.datasets import read_lshtc
from taxolearn.kernels import Linear

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def lshtc(data_file):
    train, test, tree = (
        data_file(f"lshtc_dryrun/{name}") for name in ("validation.txt.gz", "test.txt.gz", "cat_hier.txt")
    )
    X_test, y_test = read_lshtc(test)
    X, y = read_lshtc(train, n_features=X_test.shape[1])
    weighting = TfidfTransformer(sublinear_tf=True).fit(X)
    words = np.unique(X.indices)  # others cannot change a prediction
    split = Split(weighting.transform(X)[:, words], y, weighting.transform(X_test)[:, words], y_test)
    return split, Taxonomy.from_file(tree)


def test_clef_figures(clef, data_file):
    """Variances of the nodes as chosen by held-out log likelihood (python -m bench hierarchy)."""
    data, taxonomy = clef, Taxonomy.from_file(data_file("clef/hiercost_cat_hier.txt"))
    model = KernelLogisticClassifier(
        Linear(), taxonomy=taxonomy, intercept_variance=10.0, tuning=None, coupling=Tree(variances=[0.01, 0.03, 0.09])
    ).fit(data.X, data.y)
    assert model.result_.relative_gap <= 1e-6
    answers = model.predict(data.X_test)
    assert 100 * metrics.f1(data.y_test, answers, average="micro") >= 81
    assert 100 * metrics.f1(data.y_test, answers, average="macro", labels=np.unique(data.y_test)) >= 55


def test_the_tree_wins_where_examples_are_few(lshtc):
    """1,860 texts for 1,139 classes: the flat model knows almost nothing of most classes."""
    data, taxonomy = lshtc
    scores = {}
    for name, coupling in {"independent": "independent", "tree": Tree(variances=3.0 ** -np.arange(5))}.items():
        model = KernelLogisticClassifier(
            Linear(variance=5000),
            taxonomy=taxonomy,
            intercept_variance=0.01,
            tol=1e-3,
            tuning=None,
            coupling=coupling,
        ).fit(data.X, data.y)
        assert model.classes_.shape == (1139,)
        log_proba = model.predict_log_proba(data.X_test)
        top = model.classes_[log_proba.argmax(axis=1)]
        scores[name] = (
            metrics.log_loss(data.y_test, log_proba=log_proba, classes=model.classes_),
            metrics.taxo_loss(data.y_test, top, taxonomy=taxonomy),
            metrics.taxo_loss(data.y_test, model.decide(data.X_test, "taxo"), taxonomy=taxonomy),
            -metrics.accuracy(data.y_test, top),
        )
    assert (np.array(scores["tree"]) < np.array(scores["independent"]) - 0.02).all()
