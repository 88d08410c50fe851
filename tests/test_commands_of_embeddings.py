"""The commands on tables with embeddings, by a small function in the place of a sentence model."""

import json
import re

import numpy as np
import pytest
from goods import WORDS, run, write_table

import taxolearn
from taxolearn.cli.embedding import EmbeddingOptions
from taxolearn.features import embeddings

LABELS = list(WORDS)
TOPICS = {word: k for k, words in enumerate(WORDS.values()) for word in words.split()}


class Topics:
    """Counts of words of each class, which knows what the texts mean."""

    def __init__(self, shift=0):
        self.shift, self.texts = shift, []

    def __call__(self, texts):
        self.texts += [text for text in texts if text not in embeddings._PROBES]
        out = np.full((len(texts), len(WORDS)), 0.1 + self.shift * np.arange(len(WORDS)))
        for row, text in enumerate(texts):
            for word in text.split():
                out[row, TOPICS.get(word, 0)] += word in TOPICS
        return out


@pytest.fixture
def sentence_model(tmp_path, monkeypatch):
    """The path of a model, and what stands behind it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    folder = tmp_path / "sentences"
    folder.mkdir()
    models = {str(folder): Topics()}
    monkeypatch.setattr(embeddings, "load_encoder", lambda model, n_threads: (models[model], "topics 1.0"))
    return folder, models


def write_goods(path, count, seed):
    generator = np.random.default_rng(seed)
    every = " ".join(WORDS.values()).split()
    rows = []
    for k in range(count):
        label = LABELS[k % len(LABELS)]
        words = [*generator.choice(WORDS[label].split(), 2), *generator.choice(every, 2)]
        numbers = {f"e{j}": round(float(TOPICS[words[0]] == j) + 0.1 * generator.normal(), 3) for j in range(5)}
        rows.append({"text": " ".join(words), "price": k % 7, **numbers, "label": label})
    return write_table(path, rows)


@pytest.fixture
def tables(tmp_path):
    return write_goods(tmp_path / "train.csv", 150, 0), write_goods(tmp_path / "test.csv", 60, 1)


def figures(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_texts_are_embedded_by_the_model_that_the_file_names(sentence_model, tables, tmp_path, capsys, monkeypatch):
    folder, models = sentence_model
    train, test = tables
    model, path = str(folder), tmp_path / "m.taxo"
    monkeypatch.chdir(tmp_path)  # the model is named by a relative path, and used from elsewhere
    options = ["--text", "text", "--numeric", "price", "--embed", "text", "--embedding-model", folder.name]
    trained = figures(
        capsys, "train", train, *options, "--label", "label", "-o", path, "--evaluations", 5, "--hold-out", 0.3
    )
    assert trained["classifier"] == "softmax"
    assert trained["hold_out"]["accuracy"] > 0.6
    assert list(trained["shares"]) == ["words", "characters", "numbers", "curves", "embedding"]
    assert sum(trained["shares"].values()) == pytest.approx(1.0, abs=1e-3)
    assert trained["shares"]["embedding"] > trained["shares"]["numbers"]  # prices say nothing
    pipeline = taxolearn.load(path)
    assert list(pipeline[-1].blocks_in_) == ["words", "characters", "numbers", "curves", "embedding"]
    assert pipeline[0].embedder_.model == model
    embedded = models[model].texts
    assert len(embedded) == len(set(embedded))  # once, though rows were held out first
    monkeypatch.chdir(tmp_path.parent)
    models[model] = Topics()
    scores = figures(capsys, "evaluate", path, train)
    assert scores["accuracy"] > 0.7
    assert models[model].texts == []  # from the cache
    assert figures(capsys, "evaluate", path, test)["accuracy"] > 0.6
    assert figures(capsys, "predict", path, test, "-o", tmp_path / "answers.csv")["rows"] == 60
    assert figures(capsys, "report", path, test, "-o", tmp_path / "page.html")["rows"] == 60
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "variance of the kernel Linear for the block 'embedding'" in page.replace("&#x27;", "'").replace(
        "&#39;", "'"
    )
    assert "share of embedding in the answers" in page
    assert f"{trained['shares']['embedding']:.1%}" in page
    code, out, _ = run(capsys, "inspect", path)
    assert code == 0
    assert "columns, embed" in out
    assert f"embedding: {trained['shares']['embedding']:.4g}" in out
    models[model] = Topics(shift=1)
    new = write_table(tmp_path / "new.csv", [{"text": "never seen before", "price": 1}])
    code, _, err = run(capsys, "predict", path, new)
    assert code == 3
    assert "gives other embeddings than the model that was used in fit" in err


@pytest.mark.parametrize("model", ["softmax", "top-down", "centroid", "pool"])
def test_columns_of_embeddings(tables, tmp_path, capsys, model):
    train, test = tables
    path = tmp_path / "m.taxo"
    options = ["--embedding-columns", "e0-e3", "--embedding-columns", "e4", "--text", "text", "--label", "label"]
    few = ["--evaluations", 5] if model == "softmax" else []
    figures(capsys, "train", train, *options, "-o", path, "--model", model, *few)
    pipeline = taxolearn.load(path)
    assert pipeline[0].embedding_columns == ["e0", "e1", "e2", "e3", "e4"]
    assert pipeline[0].output == ("matrix" if model == "centroid" else "blocks")
    assert figures(capsys, "evaluate", path, test)["accuracy"] > 0.6


def test_embeddings_alone_and_with_a_given_variance(tables, tmp_path, capsys):
    train, test = tables
    path = tmp_path / "m.taxo"
    figures(capsys, "train", train, "--embedding-columns", "e0-4", "--label", "label", "-o", path, "--variance", "10")
    assert taxolearn.load(path)[-1].n_features_in_ == 5
    assert figures(capsys, "evaluate", path, test)["accuracy"] > 0.6
    figures(capsys, "report", path, test, "-o", tmp_path / "page.html")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--embed", "text"], "--embed COLUMN and --embedding-model PATH_OR_NAME go together"),
        (["--text", "text", "--embedding-model", "m"], "go together"),
        (["--embedding-columns", "e0-e4", "--model", "naive-bayes"], "counts words, so it takes no embeddings"),
        (["--embedding-columns", "label"], "both a label and an input"),
        (["--embedding-columns", "e0-e9"], "e5"),
        (["--embedding-columns", "text"], "column 'text': the value is .*, expected a number"),
        (["--embed", "text", "--embedding-model", "./none"], "there is no sentence model at './none'"),
    ],
)
def test_what_makes_no_sense_is_said(tables, tmp_path, capsys, options, message):
    code, _, err = run(capsys, "train", tables[0], "--label", "label", "-o", tmp_path / "m.taxo", *options)
    assert code in (2, 3)
    assert len(err.splitlines()) == 1
    assert re.search(message, err)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["e0-e2"], ["e0", "e1", "e2"]),
        (["e0-2", "e1"], ["e0", "e1", "e2"]),
        (["x08-x11"], ["x08", "x09", "x10", "x11"]),
        (["1-3"], ["1", "2", "3"]),
        (["a b 9-a b 10"], ["a b 9", "a b 10"]),
        (["e3-e1", "first-last", "a1-b2", "plain"], ["e3-e1", "first-last", "a1-b2", "plain"]),
    ],
)
def test_ranges_of_columns(given, expected):
    assert EmbeddingOptions([], None, given).columns() == ([], expected)
