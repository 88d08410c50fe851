"""Pools and top-down classifiers over blocks of features."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import taxolearn
from taxolearn import Blocks, KernelLogisticClassifier, PoolClassifier, Taxonomy, TopDownClassifier
from taxolearn.estimators.block_variances import (
    as_block_kernel,
    learn_block_variances,
    rows_of_some_classes,
    start_block_variances,
)
from taxolearn.estimators.pooling.folds import pool_folds
from taxolearn.kernels import RBF

CLASSES = np.array(["a/one", "a/two", "b/one", "b/two"])
TREE = Taxonomy.from_labels(CLASSES)


def evidence(n=600, noise=40):
    """Words, an embedding and noise, each as large as the others; the first two tell the class together."""
    random = np.random.default_rng(0)
    words = sp.random(n, 60, 0.1, format="csr", random_state=np.random.RandomState(0))
    embedding = random.normal(size=(n, 40)) / 6 + 3.0
    u = 9 * (words @ random.normal(size=(60, 4))) + 5 * (embedding - 3.0) @ random.normal(size=(40, 4))
    labels = CLASSES[(u + random.gumbel(size=u.shape)).argmax(axis=1)]
    blocks = {"words": words, "embedding": embedding, "noise": random.normal(size=(n, noise))}
    return Blocks(blocks), labels


@pytest.fixture(scope="module")
def pool():
    X, y = evidence()
    return PoolClassifier(taxonomy=TREE).fit(X, y), X, y


def test_the_pool_finds_which_blocks_matter(pool):
    model, _, _ = pool
    X, y = evidence(3000)
    assert set(model.block_variances_) == {"words", "embedding", "noise"}
    assert model.block_variances_["noise"] < 0.2 * model.block_variances_["embedding"]
    rest = slice(600, None)
    glued = sp.hstack(X.matrices, format="csr")
    one = PoolClassifier(taxonomy=TREE).fit(glued[:600], y[:600])
    own = PoolClassifier(taxonomy=TREE).fit(X[:600], y[:600])
    losses = [log_loss(y[rest], m.predict_proba(z[rest])) for m, z in ((own, X), (one, glued))]
    assert losses[0] < 0.95 * losses[1]


def test_experts_of_all_blocks_and_of_single_ones(pool):
    model, X, _ = pool
    tried = [row.name for row in model.table_]
    assert tried == [
        "naive Bayes",
        "centroid",
        "top-down",
        "centroid of embedding",
        "softmax of embedding",
        "centroid of noise",
        "softmax of noise",
        "softmax",
        "independent",
    ]
    assert set(model.views_) <= set(model.experts_)
    for name, expert in model.experts_.items():
        seen = model.views_.get(name, X.names)
        assert expert.n_features_in_ == sum(X.n_features[block] for block in seen)


def test_the_pool_is_the_mixture_of_what_its_experts_say_about_their_blocks(pool):
    model, X, _ = pool
    scaled = Blocks(
        {
            name: matrix if sp.issparse(matrix) else (matrix - model.mean_[name]) / model.scale_[name]
            for name, matrix in X.items()
        }
    )
    u = np.zeros((len(X), 4))
    for name, expert in model.experts_.items():
        blocks = model.views_.get(name)
        part = scaled if blocks is None else scaled[blocks[0]]
        assert blocks is None or len(blocks) == 1
        u += model.weights_[name] / model.temperatures_[name] * expert.predict_log_proba(part)
    assert "class frequencies" not in model.weights_
    p = np.exp(u - np.logaddexp.reduce(u, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), p, atol=3e-3)  # shares of the classes are mixed in
    np.testing.assert_array_equal(model.predict(X), CLASSES[p.argmax(axis=1)])


def test_file_keeps_every_bit(pool, tmp_path):
    model, X, _ = pool
    taxolearn.save(model, tmp_path / "m.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert loaded.views_ == model.views_
    assert loaded.block_variances_ == model.block_variances_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_blocks_in_another_order_and_wrong_ones(pool):
    model, X, _ = pool
    turned = X.select(["noise", "words", "embedding"])
    np.testing.assert_array_equal(model.predict_proba(turned), model.predict_proba(X))
    with pytest.raises(ValueError, match="X has the blocks 'words', expected 'words', 'embedding', 'noise'"):
        model.predict(X.select(["words"]))
    with pytest.raises(TypeError, match=r"must be taxolearn\.Blocks with the blocks 'words', 'embedding', 'noise'"):
        model.predict(np.zeros((2, 140)))


def test_reasons_name_blocks(pool):
    model, X, _ = pool
    names = {"words": [f"w{k}" for k in range(60)]}
    for steps in model.explain(X[:3], feature_names=names):
        assert [step.node for step in steps] in [path.split("/") and [path.split("/")[0], path] for path in CLASSES]
        for step in steps:
            assert set(step.blocks) == {"words", "embedding", "noise"}
            assert all(isinstance(name, str) for (block, name), _ in step.contributions if block == "words")


def test_refit_is_the_same_model_on_the_same_rows(pool):
    model, X, y = pool
    expected = model.predict_proba(X)
    again = PoolClassifier(taxonomy=TREE).fit(X, y).refit(X, y)
    np.testing.assert_allclose(again.predict_proba(X), expected, atol=1e-9)


def test_refit_takes_other_words_but_no_other_numbers(pool):
    _, X, y = pool
    model = PoolClassifier(taxonomy=TREE).fit(X, y)
    fewer = Blocks(dict(X.items()) | {"words": X["words"][:, :50]})
    assert model.refit(fewer, y).predict_proba(fewer).shape == (len(y), 4)
    with pytest.raises(ValueError, match=r"X\['noise'\] has 39 features, expected the 40 that fit has seen"):
        model.refit(Blocks(dict(X.items()) | {"noise": X["noise"][:, 1:]}), y)


def test_rows_at_inner_nodes_are_used():
    X, y = evidence(300)
    labels = y.astype(object)
    labels[::5] = [name.split("/")[0] for name in y[::5]]
    model = PoolClassifier(taxonomy=TREE).fit(X, labels)
    assert model.predict_proba(X).shape == (300, 4)


def test_listed_experts_see_all_blocks_and_reasons_come_from_changes():
    X, y = evidence(200)
    words = make_pipeline(FunctionTransformer(lambda blocks: blocks["words"]), LogisticRegression())
    kernel = {"words": "linear", "embedding": RBF(3.0), "noise": "linear"}
    model = PoolClassifier([("words", words), ("mixed", KernelLogisticClassifier(kernel, tuning=None))]).fit(X, y)
    assert set(model.experts_) <= {"words", "mixed"}
    assert model.block_variances_ is None
    (step,) = model.explain(X[:1], top=200)[0]
    usual = X[:1].copy()
    log_odds = model.decision_function(X[:1])[0]
    place = int(np.argmax(log_odds))

    def odds(u):
        return u[place] - np.logaddexp.reduce(np.delete(u, place))

    (block, feature), value = step.contributions[0]
    matrix = usual[block].tolil() if sp.issparse(usual[block]) else usual[block]
    matrix[0, feature] = 0.0 if sp.issparse(usual[block]) else model.mean_[block][feature]
    changed = Blocks({name: matrix if name == block else each for name, each in usual.items()})
    assert value == pytest.approx(odds(log_odds) - odds(model.decision_function(changed)[0]), abs=1e-9)
    assert sum(step.blocks.values()) == pytest.approx(sum(part for _, part in step.contributions) + step.rest)


def test_dense_blocks_have_a_radial_kernel_of_all_their_columns(tmp_path):
    """Rings, of which no linear function tells anything; each coordinate is a block."""
    points = np.random.default_rng(0).normal(size=(300, 2))
    y = np.where(np.hypot(*points.T) < 1.1, "in", "out")
    X = Blocks({"east": points[:, :1], "north": points[:, 1:]})
    model = PoolClassifier().fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.9
    assert model.views_["rbf"] == ("east", "north")
    taxolearn.save(model, tmp_path / "m.taxo", dtype="float64")
    np.testing.assert_array_equal(taxolearn.load(tmp_path / "m.taxo").predict_proba(X), model.predict_proba(X))
    assert {block for (block, _), _ in model.explain(X[:1])[0][0].contributions} <= {"east", "north"}


def test_equal_rows_are_held_out_together():
    X, y = evidence(40)
    twice = X[np.r_[0:40, 0:40]]
    numbers = np.unique(np.r_[y, y], return_inverse=True)[1]
    folds = pool_folds(twice, numbers, 4, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(folds[:40], folds[40:])
    other = Blocks(dict(twice.items()) | {"noise": np.arange(80.0)[:, None]})  # they differ in one block
    folds = pool_folds(other, numbers, 4, 3, np.random.RandomState(0))
    assert (folds[:40] != folds[40:]).any()


# -- Variances of blocks ----------------------------------------------------------------------------------------------


def test_learned_variances_are_better_than_those_to_begin_with():
    X, y = evidence(2000)
    start, learned = start_block_variances(X), learn_block_variances(X[:1000], y[:1000], None)
    losses = []
    for variances in (start, learned):
        model = KernelLogisticClassifier(as_block_kernel(variances), tuning=None).fit(X[:1000], y[:1000])
        losses.append(log_loss(y[1000:], model.predict_proba(X[1000:])))
    assert losses[1] < 0.97 * losses[0]
    assert learned == learn_block_variances(X[:1000], y[:1000], None)


@pytest.mark.parametrize(("n_classes", "n"), [(2, 9000), (7, 300), (500, 9000), (4000, 5000)])
def test_variances_are_learned_from_different_rows_of_whole_classes(n_classes, n):
    y = np.random.default_rng(0).integers(n_classes, size=n)
    rows = rows_of_some_classes(y, np.random.RandomState(0))
    assert len(np.unique(rows)) == len(rows)
    assert min(n, 400) <= len(rows) <= 3100
    counts, all_counts = np.bincount(y[rows], minlength=n_classes), np.bincount(y, minlength=n_classes)
    seen = counts > 0
    np.testing.assert_array_equal(counts[seen], np.minimum(all_counts[seen], max(40, 3000 // len(np.unique(y)))))
    assert seen.sum() <= 300


@pytest.mark.parametrize("y", [np.arange(60), np.r_[np.zeros(59), 1]], ids=["one row each", "one row of a class"])
def test_variances_stay_where_nothing_can_be_learned(y):
    X, _ = evidence(60)
    learned = learn_block_variances(X, y, None)
    assert set(learned) == set(X.names)
    if len(np.unique(y)) == 60:
        assert learned == pytest.approx(start_block_variances(X))


def test_rows_of_weight_zero_have_no_influence_on_variances():
    X, y = evidence(400)
    weights = np.repeat([1.0, 0.0], 200)
    both = learn_block_variances(X, y, weights)
    first = learn_block_variances(X[:200], y[:200], np.ones(200))
    assert both == pytest.approx(first, rel=1e-6)


# -- Top-down ---------------------------------------------------------------------------------------------------------


def scaled_matrix(X, variances):
    return sp.hstack([sp.csr_matrix(m) * np.sqrt(variances[name]) for name, m in X.items()], format="csr")


def test_top_down_over_blocks_is_that_of_the_scaled_matrix():
    X, y = evidence(300)
    variances = {"words": 1.0, "embedding": 0.5, "noise": 0.01}
    given = {"variance": 2.0, "tuning": None, "tol": 1e-9}
    own = TopDownClassifier(TREE, block_variances=variances, **given).fit(X, y)
    one = TopDownClassifier(TREE, **given).fit(scaled_matrix(X, variances), y)
    np.testing.assert_allclose(own.predict_proba(X), one.predict_proba(scaled_matrix(X, variances)), atol=1e-4)
    assert own.result_.objective == pytest.approx(one.result_.objective, rel=1e-8)
    best, _ = own.top_classes(X[:5], k=2, beam=1)
    np.testing.assert_array_equal(best[:, 0], own.predict(X[:5]))
    assert own.explain(X[:1])[0][0].blocks.keys() == variances.keys()
    # What counts is how the variances compare.
    double = TopDownClassifier(TREE, block_variances={k: 2 * v for k, v in variances.items()}, **given).fit(X, y)
    np.testing.assert_allclose(double.predict_proba(X), own.predict_proba(X), atol=1e-9)


def test_top_down_learns_variances_of_blocks(tmp_path):
    X, y = evidence(800)
    model = TopDownClassifier(TREE).fit(X, y)
    factors = model.hyperparameters_.block_variances
    assert factors["words"] == 1.0
    assert factors["noise"] < 0.1 * factors["embedding"]
    assert TopDownClassifier(TREE).tuned(X, y).block_variances == factors
    taxolearn.save(model, tmp_path / "m.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert loaded.hyperparameters_ == model.hyperparameters_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_top_down_with_a_block_that_is_zero_at_a_node():
    X, y = evidence(200)
    words = X["words"].tolil()
    words[np.flatnonzero(np.char.startswith(y, "a/"))] = 0
    X = Blocks({"words": words.tocsr(), "embedding": X["embedding"]})
    model = TopDownClassifier(TREE, tuning=None).fit(X, y)
    assert model.result_.status == "converged"
    assert np.isfinite(model.predict_proba(X)).all()


def test_wrong_block_variances():
    X, y = evidence(50)
    with pytest.raises(ValueError, match="block_variances are given, but X is one matrix"):
        TopDownClassifier(block_variances={"words": 1.0}).fit(X["words"], y)
    with pytest.raises(ValueError, match="block_variances has 'words', expected a number for each of the blocks"):
        TopDownClassifier(block_variances={"words": 1.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"block_variances\['noise'\] must be finite and above 0, got -1"):
        TopDownClassifier(block_variances={"words": 1.0, "embedding": 1.0, "noise": -1.0}).fit(X, y)
    with pytest.raises(TypeError, match="block_variances must be a mapping"):
        TopDownClassifier(block_variances=2.0).fit(X, y)
