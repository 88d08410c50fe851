"""The transformer of label embeddings: shapes, forms of labels, queries, and what it says about them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxolearn import Blocks, ClassGraph, LabelEmbedding, Taxonomy
from taxolearn.metrics import sibling_fraction
from taxolearn.plotting import plot_classes

METHODS = ("rembrandt", "plst", "random", "pca")
TREE = Taxonomy.from_labels([f"{branch}/{leaf}" for branch in "ABC" for leaf in range(4)])


def problem(seed=0, n=400, d=15):
    """Classes of a tree whose siblings have means close together."""
    rng = np.random.default_rng(seed)
    branches = rng.standard_normal((3, d)) * 3
    means = np.repeat(branches, 4, axis=0) + rng.standard_normal((12, d))
    y = rng.integers(12, size=n)
    return means[y] + rng.standard_normal((n, d)), np.array(TREE.classes.tolist())[y]


# With a ridge that is given: rows left out are drawn by their number, so a weight is not a repetition there.
@parametrize_with_checks([LabelEmbedding(2, ridge=0.1), LabelEmbedding(3, "pca"), LabelEmbedding(2, "plst", ridge=0.0)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("whiten", [True, False])
def test_shapes_and_whitening(method, whiten):
    X, y = problem()
    model = LabelEmbedding(5, method, whiten=whiten, ridge=0.01).fit(X, y)
    Z = model.transform(X)
    assert Z.shape == (len(X), 5)
    assert model.components_.shape == (12, 5)
    assert model.coef_.shape == (5, X.shape[1])
    assert model.singular_values_.shape == (5,)
    assert model.get_feature_names_out().tolist() == [f"labelembedding{k}" for k in range(5)]
    if whiten:
        np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(5), atol=1e-6)
    else:
        np.testing.assert_allclose(Z, X @ model.coef_.T + model.intercept_)


def test_one_label_and_its_indicator_are_the_same():
    X, y = problem()
    one = LabelEmbedding(4, rounds=5).fit(X, y)
    indicator = (y[:, None] == one.classes_).astype(int)
    for several in (indicator, sp.csr_array(indicator), [{name} for name in y]):
        other = LabelEmbedding(4, rounds=5).fit(X, several)
        np.testing.assert_allclose(other.components_, one.components_, atol=1e-9)
        np.testing.assert_allclose(other.transform(X), one.transform(X), atol=1e-9)
        np.testing.assert_allclose(other.transform_labels(several), one.transform_labels(y), atol=1e-9)


def test_label_embeddings_are_what_rows_are_regressed_on():
    X, y = problem()
    model = LabelEmbedding(11, whiten=False, ridge=0.0, tol=1e-9).fit(X, y)
    targets, Z = model.transform_labels(y), model.transform(X)
    design = np.column_stack([X, np.ones(len(X))])
    np.testing.assert_allclose(Z, design @ np.linalg.lstsq(design, targets, rcond=None)[0], atol=1e-7)


def test_class_means_of_principal_components():
    X, y = problem()
    model = LabelEmbedding(3, "pca", whiten=False).fit(X, y)
    expected = [model.transform(X[y == name]).mean(axis=0) for name in model.classes_]
    np.testing.assert_allclose(model.components_, expected, atol=1e-10)


def test_any_number_of_labels_under_a_tree():
    X, y = problem()
    sets = [[name] if k % 3 else [name, "A"] for k, name in enumerate(y)]
    model = LabelEmbedding(4, taxonomy=TREE).fit(X, sets)
    assert sorted(model.classes_.tolist()) == sorted(TREE.names[1:].tolist())
    assert model.transform_labels(sets[:5]).shape == (5, 4)


def test_siblings_come_first():
    X, y = problem()
    model = LabelEmbedding(4).fit(X, y)
    for name in model.classes_:
        (nearest, cosine), *others = model.nearest_classes(name, k=3)
        assert nearest[0] == name[0]
        assert [nearest != name, *(each[0] != name for each in others)] == [True] * 3
        assert cosine >= others[0][1] >= others[1][1]
    assert sibling_fraction(model.class_points(), model.classes_, taxonomy=TREE) == 1.0


def test_similarity_has_the_cosines():
    X, y = problem()
    model = LabelEmbedding(4).fit(X, y)
    table = model.class_similarity()
    assert table.index.tolist() == table.columns.tolist() == model.classes_.tolist()
    name, cosine = model.nearest_classes("A/0", k=1)[0]
    np.testing.assert_allclose(table.loc["A/0", name], cosine)
    assert model.class_similarity(["B/1", "A/0"]).columns.tolist() == ["B/1", "A/0"]


def test_classes_without_rows_lie_with_their_relatives():
    X, y = problem()
    seen = np.isin(y, ["A/0", "C/1", "C/2", "C/3"], invert=True)
    model = LabelEmbedding(4, taxonomy=TREE).fit(X[seen], y[seen])
    assert len(model.classes_) == 12
    assert {name for name, _ in model.nearest_classes("A/0", k=3)} == {"A/1", "A/2", "A/3"}
    assert model.nearest_classes("C/3", k=1)[0][0][0] == "C"
    assert {name for name, _ in model.nearest_classes("A", k=8)}.isdisjoint({"A/0", "A/1", "A/2", "A/3"})
    flat = LabelEmbedding(4).fit(X[seen], y[seen])
    with pytest.raises(ValueError, match="is no class"):
        flat.nearest_classes("A/0")


def test_blocks_and_one_matrix():
    X, y = problem()
    blocks = Blocks({"left": X[:, :6], "right": sp.csr_matrix(X[:, 6:])})
    one, other = LabelEmbedding(3).fit(X, y), LabelEmbedding(3).fit(blocks, y)
    np.testing.assert_allclose(other.transform(blocks), one.transform(X), atol=1e-6)


def test_more_components_than_directions():
    X, y = problem()
    assert LabelEmbedding(50).fit(X, y).transform(X).shape == (len(X), 11)
    assert LabelEmbedding(50, "pca").fit(X, y).transform(X).shape == (len(X), 15)


def test_random_states():
    X, y = problem()
    given = {"n_components": 2, "oversampling": 0, "method": "random"}
    a, b = LabelEmbedding(**given).fit(X, y), LabelEmbedding(**given, random_state=np.random.RandomState(0)).fit(X, y)
    other = LabelEmbedding(**given, random_state=1).fit(X, y)
    np.testing.assert_array_equal(a.components_, b.components_)
    assert not np.allclose(a.components_, other.components_)


def test_short_of_iterations_it_warns():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 150)), rng.integers(5, size=200)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or ridge"):
        model = LabelEmbedding(2, oversampling=0, ridge=1e-3, max_iter=1, tol=1e-8).fit(X, y)
    assert not model.result_.is_converged
    assert 0 < model.result_.gap < np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"method": "svd"}, "method"),
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": "cv"}, "ridge"),
        ({"oversampling": 1.5}, "oversampling"),
        ({"rounds": -1}, "rounds"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"taxonomy": "tree"}, "taxonomy"),
    ],
)
def test_bad_arguments(arguments, message):
    X, y = problem()
    with pytest.raises((ValueError, TypeError), match=message):
        LabelEmbedding(**arguments).fit(X, y)


def test_bad_labels():
    X, y = problem()
    model = LabelEmbedding(2).fit(X, y)
    with pytest.raises(ValueError, match="never saw"):
        model.transform_labels(["Z"])
    with pytest.raises(ValueError, match="never saw"):
        model.class_similarity(["Z"])
    with pytest.raises(ValueError, match="rows without just one label"):
        clone(model).fit(X, [None, *y[1:]])


def test_siblings_by_hand():
    points = np.array([[1, 0], [2, 0.1], [0, 1], [0.1, 2], [1, 1.1], [0, 0]])
    tree = Taxonomy.from_labels(["A/1", "A/2", "B/1", "B/2", "C/1", "C/2"])
    names = ["A/1", "A/2", "B/1", "B/2", "C/1", "C/2"]
    assert sibling_fraction(points, names, taxonomy=tree) == pytest.approx(4 / 6)
    assert sibling_fraction(points, names, taxonomy=ClassGraph.from_taxonomy(tree)) == pytest.approx(4 / 6)
    both = ClassGraph.from_edges([("p", "x"), ("p", "y"), ("q", "y"), ("q", "z")])
    assert sibling_fraction([[1, 0], [1, 0.9], [0, 1]], ["x", "y", "z"], taxonomy=both) == 1.0
    apart = ClassGraph.from_edges([("p", "x"), ("q", "y"), ("q", "z")])
    assert sibling_fraction([[1, 0], [1, 0.9], [0, 1]], ["x", "y", "z"], taxonomy=apart) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("points", "names", "message"),
    [
        ([[1.0]], ["A/1"], "at least two"),
        ([[1.0], [2.0]], ["A/1"], "expected a row"),
        ([[np.nan], [2.0]], ["A/1", "A/2"], "finite"),
        ([[1.0], [2.0]], ["A/1", "Z"], "classes"),
    ],
)
def test_siblings_of_bad_input(points, names, message):
    with pytest.raises(ValueError, match=message):
        sibling_fraction(points, names, taxonomy=Taxonomy.from_labels(["A/1", "A/2"]))
    undirected = ClassGraph(["A/1", "A/2"], [(0, 1)], directed=False)
    with pytest.raises(ValueError, match="undirected"):
        sibling_fraction([[1.0], [2.0]], ["A/1", "A/2"], taxonomy=undirected)


@pytest.mark.parametrize("taxonomy", [None, TREE])
def test_picture(taxonomy):
    X, y = problem()
    model = LabelEmbedding(4, taxonomy=taxonomy).fit(X, y)
    ax = plot_classes(model)
    assert sum(len(each.get_offsets()) for each in ax.collections) == 12
    assert (ax.get_legend() is None) == (taxonomy is None)
    assert {text.get_text() for text in ax.texts} == set(model.classes_)
    with pytest.raises(ValueError, match="LabelEmbedding"):
        plot_classes("model")


def test_interrupt(run_python):
    """Ctrl-C stops a fit that would take minutes within a second of work."""
    program = """
        import os, signal, threading, time
        import numpy as np
        from taxolearn import LabelEmbedding

        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((20_000, 1000)), rng.integers(300, size=20_000)
        sent = []

        def send():
            sent.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(1.0, send).start()
        try:
            LabelEmbedding(100, ridge=0.0, tol=1e-300, max_iter=10**6, n_threads=1).fit(X, y)
            print("ended")
        except KeyboardInterrupt:
            print("interrupted", time.process_time() - sent[0])
    """
    done = run_python(program)
    word, seconds = done.stdout.split()
    assert word == "interrupted", done.stderr
    assert float(seconds) < 1.0
