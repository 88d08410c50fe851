"""A real sentence model, from a table to answers. Without the packages that it needs, these tests are skipped."""

import csv
import json
import shutil

import numpy as np
import pytest
from goods import run, write_table

import taxolearn
from taxolearn.datasets import read_text_pairs
from taxolearn.features import SentenceEmbeddings, encoders

INTENTS, TRAIN, TEST = 12, 20, 15  # classes, and rows of each

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.filterwarnings("default")]


@pytest.fixture
def tables(data_file, tmp_path):
    """Some intents of clinc150 as two tables."""
    source = data_file("clinc150/data_full.json.gz")
    paths = []
    for part, count in (("train", TRAIN), ("test", TEST)):
        texts, labels = (np.array(column) for column in read_text_pairs(source, part))
        chosen = np.unique(labels)[:: len(np.unique(labels)) // INTENTS][:INTENTS]
        rows = np.concatenate([np.flatnonzero(labels == label)[:count] for label in chosen])
        paths.append(tmp_path / f"{part}.csv")
        with paths[-1].open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "intent"), *zip(texts[rows], labels[rows], strict=True)])
    return paths


def figures(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_training_evaluation_and_loading(sentence_model_folder, tables, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    train, test = tables
    words, both = tmp_path / "words.taxo", tmp_path / "both.taxo"
    model = tmp_path / "sentences"  # a copy, whose place can be taken by another
    shutil.copytree(sentence_model_folder, model)
    embed = ["--embed", "text", "--embedding-model", model]
    common = ["--label", "intent", "--model", "softmax", "--evaluations", 5, "--hold-out", 0]
    figures(capsys, "train", train, "--text", "text", *common, "-o", words)
    trained = figures(capsys, "train", train, "--text", "text", *embed, *common, "-o", both)
    assert list(trained["shares"]) == ["words", "characters", "embedding"]
    assert trained["shares"]["embedding"] > 0.3
    scores = {path: figures(capsys, "evaluate", path, test) for path in (words, both)}
    assert scores[both]["accuracy"] > 0.93
    assert scores[both]["log_loss"] < 0.7 * scores[words]["log_loss"]

    pipeline = taxolearn.load(both)
    with test.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = {"text": [row["text"] for row in rows]}
    truth = np.array([row["intent"] for row in rows])
    assert np.mean(pipeline.predict(table) == truth) == pytest.approx(scores[both]["accuracy"])
    taxolearn.save(pipeline, tmp_path / "again.taxo")
    again = taxolearn.load(tmp_path / "again.taxo")
    np.testing.assert_allclose(again.predict_proba(table), pipeline.predict_proba(table), rtol=1e-6, atol=1e-9)

    _shift_weights(model)
    assert figures(capsys, "evaluate", both, test)["accuracy"] == scores[both]["accuracy"]  # by the cache, of the first
    new = write_table(tmp_path / "new.csv", [{"text": "a text that nobody has embedded"}])
    code, _, err = run(capsys, "predict", both, new)
    assert code == 3
    assert "gives other embeddings than the model that was used in fit" in err


def _shift_weights(folder):
    """Make another model of the one in a folder."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder))
    for weights in model.parameters():
        weights.data *= 1.05
    shutil.rmtree(folder)
    model.save(str(folder))
    encoders._sentence_transformer.cache_clear()  # as in a new process


def test_the_order_and_the_company_of_texts_do_not_matter(sentence_model_folder):
    """Texts of about the same length share a batch, in which shorter ones are padded."""
    texts = ["a", "how much money do I have", "word " * 300, "", "book a table for two at eight", "a b " * 40]
    embedder = SentenceEmbeddings(sentence_model_folder, cache=None, batch_size=2).fit(texts)
    together = embedder.transform(texts)
    np.testing.assert_allclose(embedder.transform(texts[::-1]), together[::-1], atol=1e-5)
    alone = np.vstack([embedder.transform([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
