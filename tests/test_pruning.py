"""Smaller models: right, saved and loaded again, explained, and honest about what they lost."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import taxolearn
from taxolearn import (
    CentroidClassifier,
    KernelLogisticClassifier,
    NaiveBayesClassifier,
    PoolClassifier,
    Taxonomy,
    TopDownClassifier,
)
from taxolearn.cli import main
from taxolearn.datasets import make_hierarchy
from taxolearn.estimators.prune import is_linear
from taxolearn.estimators.top_down import node_weights
from taxolearn.kernels import Linear


@pytest.fixture(scope="module")
def problem():
    """Sparse rows over a small tree, and a model of them."""
    data = make_hierarchy(n_samples=300, n_features=40, branching=(2, 3), random_state=0)
    X = sp.csr_matrix(np.where(np.abs(data.X) > 1.0, data.X, 0.0))
    model = KernelLogisticClassifier(Linear(), taxonomy=data.taxonomy, tuning=None).fit(X, data.y)
    return X, data.y, model


def dense_oracle(model, share):
    """Weights without the smallest, one by one."""
    weights = model.coef_ - np.median(model.coef_, axis=0)
    order = np.argsort(np.abs(weights), axis=None)
    weights.flat[order[: int(share * weights.size)]] = 0.0
    return weights


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, lambda X: X.toarray()])
def test_predictions_are_those_of_the_weights_that_stay(problem, share, form):
    X, _, model = problem
    small = taxolearn.prune(model, share)
    coef = dense_oracle(model, share)
    np.testing.assert_array_equal(small.coef_.toarray(), coef)
    u = X @ coef.T + model.intercept_
    expected = np.exp(u) / np.exp(u).sum(axis=1, keepdims=True)
    given = form(X)
    np.testing.assert_allclose(small.predict_proba(given), expected, rtol=1e-10)
    np.testing.assert_allclose(small.predict_log_proba(given), np.log(expected), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(small.decision_function(given), u, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(small.predict(given), model.classes_[u.argmax(axis=1)])
    if share == 0.0:
        np.testing.assert_allclose(small.predict_proba(X), model.predict_proba(X), rtol=1e-9)


def test_the_model_itself_does_not_change(problem):
    X, _, model = problem
    before = model.predict_proba(X)
    small = taxolearn.prune(model, 0.9)
    assert isinstance(model.coef_, np.ndarray)
    assert sp.issparse(small.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    again = taxolearn.prune(small, 0.95)
    np.testing.assert_array_equal(again.coef_.toarray(), taxolearn.prune(model, 0.95).coef_.toarray())


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 0)])
def test_saved_and_loaded(problem, tmp_path, dtype, tolerance):
    X, _, model = problem
    small = taxolearn.prune(model, 0.8)
    taxolearn.save(small, tmp_path / "m.taxo", dtype=dtype)
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert loaded.coef_.dtype == dtype
    assert loaded.coef_.nnz == small.coef_.nnz
    np.testing.assert_allclose(loaded.predict_proba(X), small.predict_proba(X), rtol=tolerance)
    assert taxolearn.read_report(tmp_path / "m.taxo")["functions"] == "sparse linear"
    taxolearn.save(loaded, tmp_path / "again.taxo", dtype=dtype)
    np.testing.assert_array_equal(taxolearn.load(tmp_path / "again.taxo").predict_proba(X), loaded.predict_proba(X))


def test_explained_and_decided(problem):
    X, _, model = problem
    nothing = taxolearn.prune(model, 0.0)
    for one, other in zip(nothing.explain(X[:5]), model.explain(X[:5]), strict=True):
        for node, expected in zip(one, other, strict=True):
            assert node.node == expected.node
            assert dict(node.contributions) == pytest.approx(dict(expected.contributions), rel=1e-8)
    np.testing.assert_array_equal(nothing.decide(X, "taxo"), model.decide(X, "taxo"))


def test_warm_start_from_a_pruned_model(problem):
    X, y, model = problem
    small = taxolearn.prune(model, 0.5)
    small.warm_start = True
    small.fit(X, y)
    np.testing.assert_allclose(small.predict_proba(X), model.predict_proba(X), atol=1e-4)


def test_bad_arguments(problem):
    X, y, model = problem
    with pytest.raises(ValueError, match="share must be below 1, got 1"):
        taxolearn.prune(model, 1.0)
    with pytest.raises(ValueError, match="share must be finite and at least 0"):
        taxolearn.prune(model, -0.1)
    with pytest.raises(TypeError, match="Pipeline that ends in one, got TfidfVectorizer"):
        taxolearn.prune(TfidfVectorizer(), 0.5)
    bent = KernelLogisticClassifier("rbf", tuning=None).fit(X[:30].toarray(), y[:30])
    with pytest.raises(ValueError, match="not linear"):
        taxolearn.prune(bent, 0.5)


# -- Other kinds of models --------------------------------------------------------------------------------------------

TREE = Taxonomy.from_labels(["a/x", "a/y", "b/z"])


def stored(model):
    """The number of weights that a model holds; of a pool, those of its linear experts."""
    if isinstance(model, PoolClassifier):
        return sum(stored(expert) for expert in model.experts_.values() if is_linear(expert))
    if isinstance(model, TopDownClassifier):
        weights = node_weights(model).weights
    else:
        names = {NaiveBayesClassifier: "log_ratios_", CentroidClassifier: "centroids_"}
        weights = getattr(model, names.get(type(model), "coef_"))
    return weights.nnz if sp.issparse(weights) else weights.size


@pytest.mark.parametrize(
    "model",
    [
        KernelLogisticClassifier(loss="independent", taxonomy=TREE, tuning=None),
        TopDownClassifier(TREE, tuning=None),
        TopDownClassifier(tuning=None),
        NaiveBayesClassifier(taxonomy=TREE),
        CentroidClassifier(taxonomy=TREE),
        PoolClassifier(taxonomy=TREE),
        PoolClassifier([("bayes", NaiveBayesClassifier()), ("rbf", KernelLogisticClassifier("rbf", tuning=None))]),
    ],
    ids=["independent", "top-down", "flat top-down", "naive Bayes", "centroid", "pool", "pool with a kernel"],
)
def test_other_kinds(model, tmp_path):
    generator = np.random.default_rng(0)
    rates = generator.dirichlet(np.full(40, 0.2), 3) * 15
    numbers = np.arange(120) % 3
    X = generator.poisson(rates[numbers]).astype(float)
    model = clone(model).fit(X, np.array(["a/x", "a/y", "b/z"])[numbers])
    proba, size = model.predict_proba(X), stored(model)
    np.testing.assert_allclose(taxolearn.prune(model, 0.0).predict_proba(X), proba, atol=1e-12)
    small = taxolearn.prune(model, 0.8)
    assert 0 < stored(small) < 0.5 * size
    assert stored(model) == size  # the model itself stays as it is
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    pruned = small.predict_proba(X)
    np.testing.assert_allclose(pruned.sum(axis=1), 1.0)
    assert np.abs(pruned - proba).max() > 1e-6
    assert small.score(X, model.classes_[numbers]) > 0.8
    taxolearn.save(small, tmp_path / "m.taxo", dtype="float64")
    np.testing.assert_array_equal(taxolearn.load(tmp_path / "m.taxo").predict_proba(X), pruned)


def test_the_smallest_weights_go():
    X = np.random.default_rng(0).poisson(1.0, (60, 5)).astype(float)
    model = NaiveBayesClassifier().fit(X, np.arange(60) % 3)
    sizes = np.sort(model.log_ratios_.data)
    assert len(sizes) == 15
    np.testing.assert_array_equal(np.sort(taxolearn.prune(model, 0.4).log_ratios_.data), sizes[6:])


# -- The command ------------------------------------------------------------------------------------------------------


def write_table(path, seed, rows=300):
    generator = np.random.default_rng(seed)
    kinds = [f"{a}/{b}" for a in ("food", "tool") for b in ("one", "two", "three")]
    lines = ["words,kind"]
    for _ in range(rows):
        kind = kinds[generator.integers(len(kinds))]
        noise = " ".join(f"w{k}" for k in generator.integers(0, 200, 8))
        lines.append(f"{kind.replace('/', ' ')} {noise},{kind if generator.random() < 0.9 else kinds[0]}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned")
    write_table(folder / "train.csv", 0)
    write_table(folder / "test.csv", 1)
    arguments = ["--text", "words", "--label", "kind", "--variance", "30", "-o", f"{folder}/m.taxo"]
    assert main(["train", f"{folder}/train.csv", *arguments]) == 0
    return folder


def test_the_command_says_what_it_cost(trained, capsys):
    capsys.readouterr()
    arguments = [f"{trained}/m.taxo", f"{trained}/test.csv", "-o", f"{trained}/small.taxo", "--json", "--rise", "0.05"]
    assert main(["prune", *arguments]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["share"] >= 0.5
    assert figures["after"]["log_loss"] <= figures["before"]["log_loss"] * 1.05
    assert figures["size_bytes"] == (trained / "small.taxo").stat().st_size
    for name, part in (("m", "before"), ("small", "after")):
        assert main(["evaluate", f"{trained}/{name}.taxo", f"{trained}/test.csv", "--json"]) == 0
        scores = json.loads(capsys.readouterr().out)
        assert scores["log_loss"] == pytest.approx(figures[part]["log_loss"], rel=1e-5)
    assert taxolearn.read_report(trained / "small.taxo")["report"]["pruning"]["share"] == figures["share"]
    assert main(["inspect", f"{trained}/small.taxo"]) == 0
    assert "left out" in capsys.readouterr().out
    assert main(["report", f"{trained}/small.taxo", f"{trained}/test.csv", "-o", f"{trained}/r.html"]) == 0


def test_the_command_obeys_and_refuses(trained, capsys):
    capsys.readouterr()
    arguments = ["prune", f"{trained}/m.taxo", f"{trained}/test.csv", "-o", f"{trained}/x.taxo"]
    assert main([*arguments, "--share", "0.97", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["share"] == 0.97
    assert abs(figures["after"]["log_loss"] - figures["before"]["log_loss"]) > 0.01
    assert figures["size_bytes"] < figures["size_before"]
    (trained / "x.taxo").unlink()
    assert main([*arguments, "--rise", "1e-12"]) == 2
    error = capsys.readouterr().err
    assert "allow more by --rise" in error
    assert not (trained / "x.taxo").exists()


def test_pipelines_keep_their_steps():
    texts = ["red apple", "green apple", "iron saw", "steel saw"]
    model = make_pipeline(TfidfVectorizer(), KernelLogisticClassifier(Linear(), tuning=None))
    model.fit(texts, ["fruit/a", "fruit/a", "tool/s", "tool/s"])
    small = taxolearn.prune(model, 0.5)
    assert small.predict(["blue apple"]).tolist() == ["fruit/a"]
    assert small[0] is model[0]
    tree = Taxonomy.from_labels(["fruit/a", "tool/s"])
    model[-1].set_params(taxonomy=tree).fit(model[0].transform(texts), ["fruit/a", "fruit/a", "tool/s", "tool/s"])
    assert taxolearn.prune(model, 0.5)[-1].predict_node_proba(model[0].transform(texts)).shape == (4, 5)
