"""Classification by label embeddings: what it consists of, forms of labels, files, refits."""

from mmap import mmap

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.utils.estimator_checks import parametrize_with_checks

import taxolearn
from taxolearn import (
    Blocks,
    CrossValidation,
    KernelLogisticClassifier,
    LabelEmbedding,
    LabelEmbeddingClassifier,
    PoolClassifier,
    RecursiveRegularizationClassifier,
    Taxonomy,
    TopDownClassifier,
)
from taxolearn.estimators import embedding_classifier, embedding_decoders
from taxolearn.estimators.random_features import RandomFeatures, best_bandwidth
from taxolearn.kernels import Linear

TREE = Taxonomy.from_labels([f"{branch}/{leaf}" for branch in "ABC" for leaf in range(4)])


def problem(seed=0, n=300, d=10):
    rng = np.random.default_rng(seed)
    means = np.repeat(rng.standard_normal((3, d)) * 2, 4, axis=0) + rng.standard_normal((12, d))
    y = rng.integers(12, size=n)
    return means[y] + rng.standard_normal((n, d)), np.array(TREE.classes.tolist())[y]


def quick(k=6, **given):
    return LabelEmbeddingClassifier(LabelEmbedding(k, ridge=0.01), **({"tuning": None} | given))


def weights_and_variance(_):
    """The start value of the decoder's variance, which stays without tuning, counts rows whatever their weights."""
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return dict.fromkeys(names, weights_and_variance.__doc__)


@parametrize_with_checks(
    [LabelEmbeddingClassifier(LabelEmbedding(2, ridge=0.01), tuning=None, tol=1e-8)],
    expected_failed_checks=weights_and_variance,
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_the_decoder_on_embedded_rows():
    X, y = problem()
    model = quick().fit(X, y)
    Z = LabelEmbedding(6, ridge=0.01).fit(X, y).transform(X)
    by_hand = KernelLogisticClassifier("linear", tuning=None, tol=1e-5).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(Z), atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), by_hand.decision_function(Z), atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), by_hand.predict(Z))
    assert model.score(X, y) == by_hand.score(Z, y) > 0.6


def test_weights_are_repetitions():
    X, y = problem()
    repetitions = np.random.default_rng(0).integers(0, 3, size=len(X))
    repeated = np.repeat(np.arange(len(X)), repetitions)
    decoder = KernelLogisticClassifier(Linear(1.0), tuning=None, tol=1e-10)
    model = LabelEmbeddingClassifier(LabelEmbedding(4, ridge=0.01, rounds=8, tol=1e-9), decoder)
    weighted = model.fit(X, y, repetitions.astype(float)).predict_proba(X)
    np.testing.assert_allclose(model.fit(X[repeated], y[repeated]).predict_proba(X), weighted, atol=1e-4)


@pytest.mark.parametrize("method", ["rembrandt", "plst", "random", "pca"])
def test_all_directions_lose_nothing(method):
    """Eleven directions of twelve classes tell as much as ten features do."""
    X, y = problem()
    model = LabelEmbeddingClassifier(LabelEmbedding(11, method, ridge=0.0), tuning=None).fit(X, y)
    assert model.score(X, y) >= KernelLogisticClassifier(tuning=None).fit(X, y).score(X, y) - 0.05


def test_learned_decoder_and_refit():
    X, y = problem()
    model = LabelEmbeddingClassifier(LabelEmbedding(6), tuning=CrossValidation(3, search="scale"))
    model.fit(X[:200], y[:200])
    assert model.decoder_.cv_result_ is not None
    ridge, table = model.embedding_.ridge_, model.decoder_.hyperparameters_
    model.refit(X, y)
    assert model.embedding_.ridge_ == ridge
    assert model.decoder_.hyperparameters_ == table
    assert model.decoder == "auto"


def test_blocks_of_rows_change_nothing(monkeypatch):
    X, y = problem()
    sets = [{name} if k % 5 else {name, "A/0"} for k, name in enumerate(y)]
    forms = {
        "one": y,
        "sets": sets,
        "tuples": [tuple(sorted(each)) for each in sets],
        "dense": (y[:, None] == np.unique(y)).astype(int),
        "sparse": sp.csr_array((y[:, None] == np.unique(y)).astype(int)),
    }
    for name, labels in forms.items():
        model = quick().fit(X, labels)

        def answers(model=model):
            given = [model.predict(X), model.decide(X), *model.top_classes(X, 3), model.decision_function(X)]
            return [each.toarray() if sp.issparse(each) else each for each in given]

        expected = answers()
        monkeypatch.setattr(embedding_classifier, "_BATCH", 12 * 70)
        for one, other in zip(answers(), expected, strict=True):
            if isinstance(one, list):
                assert one == other, name
            elif one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
            else:
                np.testing.assert_array_equal(one, other)
        monkeypatch.undo()


def test_data_frames_of_several_labels(monkeypatch):
    pd = pytest.importorskip("pandas")
    X, y = problem()
    frame = pd.DataFrame({name: (y == name).astype(int) for name in np.unique(y)})
    model = quick().fit(X, frame)
    whole = model.predict(X)
    monkeypatch.setattr(embedding_classifier, "_BATCH", 12 * 70)
    pd.testing.assert_frame_equal(model.predict(X), whole)


def test_any_number_of_labels():
    X, y = problem()
    sets = [[name] if k % 3 else [name, "B"] for k, name in enumerate(y)]
    model = quick(taxonomy=TREE).fit(X, sets)
    assert model.is_multilabel_
    assert isinstance(model.decoder_, RecursiveRegularizationClassifier)
    assert sorted(model.classes_.tolist()) == sorted(TREE.names[1:].tolist())
    proba = model.predict_proba(X)
    above = model.predict_node_proba(X)
    assert above.shape == (len(X), TREE.n_nodes)
    assert (above[:, TREE.index("A")] >= above[:, TREE.index("A/1")]).all()
    assert proba.shape == (len(X), len(model.classes_))
    assert 0 <= model.score(X, sets) <= 1
    assert len(model.decide(X[:4], "f1")) == 4
    with pytest.raises(ValueError, match="one label per row, but the model"):
        model.score(X, y)


def test_one_label_and_independent_decoder():
    X, y = problem()
    model = quick(decoder="independent").fit(X, y)
    assert isinstance(model.decoder_, RecursiveRegularizationClassifier)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_classes_without_rows_have_probabilities_and_neighbours():
    X, y = problem()
    seen = np.isin(y, ["A/0", "B/2"], invert=True)
    model = quick(taxonomy=TREE).fit(X[seen], y[seen])
    assert len(model.classes_) == 12
    p = model.predict_proba(X[y == "A/0"]).mean(axis=0)
    assert p[model.classes_ == "A/0"] > p[model.classes_ == "B/2"]
    assert {name[0] for name, _ in model.embedding_.nearest_classes("A/0", k=3)} == {"A"}
    np.testing.assert_allclose(model.predict_node_proba(X)[:, 0], 1.0)


@pytest.mark.parametrize("kind", ["gaussian", "cauchy"])
def test_random_features_approximate_their_kernel(kind):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20, 3))
    features = RandomFeatures.draw(kind, 200_000, 3, 1.7, rng).transform(Z)
    if kind == "gaussian":
        expected = np.exp(-cdist(Z, Z, "sqeuclidean") / (2 * 1.7**2))
    else:
        expected = np.exp(-cdist(Z, Z, "cityblock") / 1.7)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features @ features.T, expected, atol=0.02)


@pytest.mark.parametrize("kind", ["gaussian", "cauchy"])
def test_bandwidth_by_rows_left_out(kind):
    """Against explicit fits without each row, at the bandwidth that is chosen and others."""
    rng = np.random.default_rng(1)
    Z = rng.uniform(-1, 1, (60, 2))
    labels = (np.sin(4 * Z[:, 0]) > Z[:, 1]).astype(int)
    chosen = best_bandwidth(kind, Z, labels, rng)
    Y = np.eye(2)[labels] - np.eye(2)[labels].mean(axis=0)

    def error(h):
        distances = cdist(Z, Z, "sqeuclidean" if kind == "gaussian" else "cityblock")
        K = np.exp(-distances / (2 * h * h if kind == "gaussian" else h))
        best = np.inf
        for ridge in 10.0 ** np.arange(-4, 2):
            total = 0.0
            for i in range(len(Z)):
                rest = np.arange(len(Z)) != i
                a = np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(len(Z) - 1), Y[rest])
                total += ((Y[i] - K[i, rest] @ a) ** 2).sum()
            best = min(best, total)
        return best

    assert error(chosen) <= 1.000001 * min(error(chosen / 2), error(chosen * 2))


def test_random_features_bend_boundaries():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((600, 2))
    y = np.digitize((X**2).sum(axis=1), [1.0, 3.0])
    flat = LabelEmbeddingClassifier(LabelEmbedding(2, ridge=0.0), tuning=None).fit(X, y)
    model = LabelEmbeddingClassifier(LabelEmbedding(2, "pca"), random_features=("gaussian", 200)).fit(X, y)
    assert model.random_features_.bandwidth > 0
    assert model.score(X, y) > 0.9 > 0.8 > flat.score(X, y)
    refitted = model.refit(X, y)
    assert refitted.random_features_.bandwidth == model.random_features_.bandwidth


def test_blocks_of_inputs():
    X, y = problem()
    blocks = Blocks({"a": X[:, :4], "b": sp.csr_matrix(X[:, 4:])})
    model = quick().fit(blocks, y)
    np.testing.assert_allclose(model.predict_proba(blocks), quick().fit(X, y).predict_proba(X), atol=1e-5)


def test_top_down_decoder_is_top_down_on_embedded_rows():
    X, y = problem()
    model = quick(decoder="top-down", taxonomy=TREE).fit(X, y)
    Z = LabelEmbedding(6, ridge=0.01).fit(X, y).transform(X)
    by_hand = TopDownClassifier(TREE, tuning=None, tol=1e-5).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(Z), atol=1e-9)
    labels, values = model.top_classes(X, 3)
    expected = np.sort(by_hand.predict_proba(Z), axis=1)[:, ::-1][:, :3]
    np.testing.assert_allclose(values, expected, atol=1e-9)
    np.testing.assert_array_equal(labels[:, 0], by_hand.predict(Z))


def test_top_down_decoder_makes_a_tree_of_like_classes(monkeypatch):
    """With a branching of four, the clusters of sixteen classes are the four groups that the data have."""
    monkeypatch.setattr(embedding_decoders, "_BRANCHING", 4)
    monkeypatch.setattr(embedding_decoders, "_ENTRIES", 0)
    rng = np.random.default_rng(3)
    branch, leaf = np.repeat(np.arange(4), 120), np.tile(np.repeat(np.arange(4), 30), 4)
    y = np.array([f"{'ABCD'[b]}{k}" for b, k in zip(branch, leaf, strict=True)])
    X = 8.0 * np.eye(4, 8)[branch] + 0.3 * (np.eye(4, 8, 4)[leaf] + rng.standard_normal((480, 8)))
    model = quick(7).fit(X, y)
    assert isinstance(model.decoder_, TopDownClassifier)
    found = {frozenset(name[0] for name in model.taxonomy_.leaves(node)) for node in model.taxonomy_.names[1:5]}
    assert found == {frozenset(name) for name in "ABCD"}
    assert model.score(X, y) > 0.3
    refitted = model.refit(X, y)
    assert refitted.taxonomy_.to_edges() == model.taxonomy_.to_edges()


def test_labels_in_parts_have_the_same_minimum(monkeypatch):
    X, y = problem()
    sets = [{name} if k % 5 else {name, "A/0"} for k, name in enumerate(y)]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    whole = quick(tol=1e-10).fit(X, sets, weights)
    monkeypatch.setattr(embedding_decoders, "_ENTRIES", 5 * len(X))
    parts = quick(tol=1e-10).fit(X, sets, weights)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(parts.classes_, whole.classes_)
    assert parts.predict(X) == whole.predict(X)
    one, other = parts.decoder_.result_, whole.decoder_.result_
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    assert one.relative_gap <= 1e-10
    assert parts.decoder_.get_params()["tuning"] is None


def test_labels_in_parts_learn_from_some_rows(monkeypatch, tmp_path):
    X, y = problem()
    sets = [{name} for name in y]
    monkeypatch.setattr(embedding_decoders, "_ENTRIES", 5 * len(X))
    monkeypatch.setattr(embedding_decoders, "_WORK", 150 * 12)
    monkeypatch.setattr(embedding_decoders, "_LEAST_ROWS", 150)
    model = quick(tuning="cv").fit(X, sets)
    assert model.decoder_.coef_.shape == (12, 6)
    assert model.decoder_.C_ > 0
    assert len(model.decoder_.thresholds_) == 12
    assert model.score(X, sets) > 0.5
    assert isinstance(model.decide(X, thresholds="s-cut"), list)
    taxolearn.save(model, tmp_path / "model.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "model.taxo")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert model.refit(X, sets).decoder_.C_ == model.decoder_.C_


def test_variance_is_learned_on_all_rows_of_some_classes(monkeypatch):
    X, y = problem(n=400)
    monkeypatch.setattr(embedding_decoders, "_WORK", 100)
    monkeypatch.setattr(embedding_decoders, "_CLASS_WORK", 25 * 400 / 12)  # five classes
    seen = []
    learn = KernelLogisticClassifier.tuned

    def watched(model, Z, labels, weights=None, folds=None):
        seen.append((len(Z), len(np.unique(labels))))
        return learn(model, Z, labels, weights, folds)

    monkeypatch.setattr(KernelLogisticClassifier, "tuned", watched)
    model = quick(tuning="cv").fit(X, y)
    ((rows, classes),) = seen
    counts = np.sort(np.unique(y, return_counts=True)[1])
    assert classes == 5
    assert counts[:5].sum() <= rows <= counts[-5:].sum()
    assert model.decoder_.kernel.variance == model.decoder_.hyperparameters_.kernel.variance
    assert model.score(X, y) > 0.6


def test_expert_of_a_pool(tmp_path):
    X, y = problem()
    experts = [("softmax", KernelLogisticClassifier(tuning=None)), ("embedding", quick())]
    pool = PoolClassifier(experts).fit(X[:200], y[:200])
    assert pool.score(X[200:], y[200:]) > 0.5
    assert {row.name for row in pool.table_} == {"softmax", "embedding"}
    alone = PoolClassifier(experts[1:]).fit(X[:200], y[:200])
    taxolearn.save(alone, tmp_path / "pool.taxo", dtype="float64")
    np.testing.assert_array_equal(taxolearn.load(tmp_path / "pool.taxo").predict(X), alone.predict(X))


def test_loaded_weights_stay_in_the_file(tmp_path):
    X, y = problem()
    taxolearn.save(quick().fit(X, y), tmp_path / "model.taxo")
    loaded = taxolearn.load(tmp_path / "model.taxo")
    for array in (loaded.embedding_.coef_, loaded.embedding_.components_, loaded.decoder_.coef_):
        base = array
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        assert isinstance(getattr(base, "obj", base), mmap)
    assert loaded.embedding_.coef_.T.flags.c_contiguous


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "given", [{}, {"random_features": ("cauchy", 30)}, {"taxonomy": TREE}, {"decoder": "top-down"}]
)
def test_files(tmp_path, given, several):
    if several and "decoder" in given:
        given = {"decoder": "independent"}
    X, y = problem()
    labels = [{name} for name in y] if several else y
    model = quick(**given).fit(X, labels)
    taxolearn.save(model, tmp_path / "model.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "model.taxo")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert list(loaded.predict(X)) == list(model.predict(X))
    assert loaded.embedding_.nearest_classes("A/1") == model.embedding_.nearest_classes("A/1")
    np.testing.assert_array_equal(loaded.embedding_.transform_labels(labels), model.embedding_.transform_labels(labels))
    report = taxolearn.read_report(tmp_path / "model.taxo")
    assert report["functions"] == "label embedding"
    assert report["embedding"] == {"components": 6, "ridge": 0.01}
    assert loaded.refit(X, labels).score(X, labels) == pytest.approx(model.score(X, labels), abs=0.02)
    taxolearn.save(model, tmp_path / "small.taxo")
    np.testing.assert_allclose(
        taxolearn.load(tmp_path / "small.taxo").predict_proba(X), model.predict_proba(X), atol=1e-4
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embedding": "rembrandt"}, "embedding must be"),
        ({"decoder": "hinge"}, "decoder"),
        ({"decoder": LabelEmbedding()}, "decoder must be"),
        ({"random_features": 100}, "random_features"),
        ({"random_features": ("uniform", 100)}, "random_features"),
        ({"random_features": ("gaussian", 0)}, "random_features"),
        ({"random_features": ("gaussian", 10), "bandwidth": 0.0}, "bandwidth"),
        ({"taxonomy": "tree"}, "taxonomy"),
    ],
)
def test_bad_arguments(arguments, message):
    X, y = problem()
    with pytest.raises((ValueError, TypeError), match=message):
        LabelEmbeddingClassifier(**arguments).fit(X, y)


@pytest.mark.parametrize("decoder", ["softmax", "top-down"])
def test_some_decoders_are_for_one_label(decoder):
    X, y = problem()
    with pytest.raises(ValueError, match="one label per row"):
        quick(decoder=decoder).fit(X, [{name} for name in y])
