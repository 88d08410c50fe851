"""The suites on blocks of evidence, by small problems: texts with embeddings, a catalogue, noise, and memory."""

import datetime as dt
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from bench.__main__ import make_parser
from bench.harness.embed import embedded_job, known_embedding
from bench.harness.report import write
from bench.libraries import EMBEDDING_MODELS
from bench.problems import features as table_features
from bench.problems.catalogue import CATEGORIES, NUMBERS, TITLE, Catalogue
from bench.problems.jobs import EmbeddedTexts, Job
from bench.problems.synthetic import made_up_blocks
from bench.suites import blocks_large, embeddings, max_margin
from taxolearn import Taxonomy

WORDS = {"fruit.apple": "red round sweet", "fruit.pear": "green long sweet", "tool.saw": "sharp steel teeth"}


def texts(n, seed):
    random = np.random.default_rng(seed)
    y = random.choice(list(WORDS), n)
    common = " ".join(WORDS.values()).split()
    return [" ".join([*random.choice(WORDS[label].split(), 2), *random.choice(common, 4)]) for label in y], y


@pytest.fixture
def text_job():
    (X, y), (X_test, y_test) = texts(120, 0), texts(60, 1)
    return Job("texts", X, y, X_test, y_test, Taxonomy.from_labels(WORDS, separator="."))


def write_embedding(folder, job):
    """What ``embed`` writes, with vectors that nearly know the class."""
    random = np.random.default_rng(2)
    both = [np.eye(3, 5)[np.unique(y, return_inverse=True)[1]] for y in (job.y, job.y_test)]
    train, test = ((each + 0.4 * random.standard_normal(each.shape)).astype(np.float32) for each in both)
    np.savez(folder / "clinc150.npz", train=train, test=test)
    spent = {"texts": 180, "embedding_seconds": 100.0, "embedding_processor_seconds": 200.0, "versions": {"torch": "0"}}
    (folder / "clinc150.json").write_text(json.dumps(spent))


@pytest.fixture
def embedded(monkeypatch, tmp_path, text_job):
    """The suite in this process, with one job whose texts are embedded already."""
    folder = tmp_path / "texts"
    folder.mkdir()
    monkeypatch.setattr("bench.harness.embed.JOBS", {"clinc150": lambda: text_job})
    monkeypatch.setattr(embeddings, "isolated", lambda function, arguments, *_: function(**arguments))
    write_embedding(folder, text_job)
    return tmp_path


def run_embeddings(folder, *arguments):
    given = ["embeddings", "--threads", "1", "--output", str(folder), "--folder", str(folder), "--only", "clinc150"]
    return embeddings.run(make_parser().parse_args([*given, *arguments]))


class TestEmbeddings:
    def test_rows_of_texts_and_embeddings_go_together(self, embedded, text_job):
        job = embedded_job("clinc150", str(embedded / "texts"), quick=False)
        some = job.first_rows(10)
        assert isinstance(some.X, EmbeddedTexts)
        rows = [job.X.texts.index(text) for text in some.X.texts]
        assert len(some.X) == len(some.X.embedding) == 10
        assert [text_job.X[row] for row in rows] == some.X.texts
        assert job.description == text_job.description

    def test_seconds_of_embedding_are_added(self, embedded):
        models = "taxolearn, pool of tf-idf;taxolearn, blocks;LogisticRegressionCV on embedding"
        (result,) = run_embeddings(embedded, "--models", models)
        rows = {row["library"]: row for row in result.rows}
        assert list(rows) == models.split(";")
        alone, blocks, rival = rows.values()
        assert "embedding_seconds" not in alone
        assert alone["seconds"] < 60
        for row in (blocks, rival):
            assert row["embedding_seconds"] == 100.0
            assert 100 < row["seconds"] < 160
            assert row["processor_seconds"] > 200
            assert row["log_loss"] < alone["log_loss"]
        assert "embedding" in blocks["setting"]
        write(result, embedded)
        assert "Texts a second: clinc150 2." in (embedded / "embeddings.md").read_text()
        assert result.machine["versions"]["torch"] == "0"

    def test_texts_are_embedded_once_by_the_interpreter_that_is_named(self, embedded, monkeypatch, text_job):
        note = embedded / "texts" / "clinc150.json"
        note.unlink()
        asked = []

        def here(function, arguments, n_threads, limit=None, python=sys.executable):
            asked.append((function.__name__, str(python)))
            if function is embeddings.embed:
                write_embedding(note.parent, text_job)
                return known_embedding("clinc150", str(note.parent))
            return function(**arguments)

        monkeypatch.setattr(embeddings, "isolated", here)
        for _ in range(2):
            run_embeddings(embedded, "--models", "taxolearn, pool of tf-idf", "--python", "elsewhere")
        assert asked == [("embed", "elsewhere"), ("measure", sys.executable)]

    def test_texts_that_cannot_be_embedded_end_the_run(self, embedded, monkeypatch):
        (embedded / "texts" / "clinc150.json").unlink()
        monkeypatch.setattr(embeddings, "isolated", lambda *_, **__: {"status": "failed: no model"})
        with pytest.raises(RuntimeError, match=r"clinc150 cannot be embedded: failed: no model"):
            run_embeddings(embedded, "--python", "elsewhere")

    def test_those_that_read_embeddings_say_so(self):
        assert [name for name, entry in EMBEDDING_MODELS.items() if not entry.embeds] == ["taxolearn, pool of tf-idf"]


class TestCatalogue:
    made = Catalogue()

    def loss(self, products, y):
        logs = self.made.log_proba(products)
        return -float(np.mean(logs[np.arange(len(y)), y]))

    def test_every_column_tells_something(self):
        frame, products, y = self.made.draw(4000, 0)
        assert list(frame.columns) == [TITLE, *NUMBERS, *CATEGORIES, "listed"]
        whole = self.loss(products, y)
        unknown = {name: np.full_like(getattr(products, name), -1) for name in ("words", "brand")}
        unknown |= {name: np.full(4000, np.nan) for name in ("log_price", "log_weight")}
        for name, values in unknown.items():
            assert self.loss(replace(products, **{name: values}), y) > 1.1 * whole
        shuffled = {name: np.random.default_rng(1).permutation(getattr(products, name)) for name in ("day", "country")}
        for name, values in shuffled.items():
            assert self.loss(replace(products, **{name: values}), y) > 1.03 * whole

    def test_true_probabilities_are_calibrated(self):
        _, products, y = self.made.draw(20_000, 3)
        proba = np.exp(self.made.log_proba(products))
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        sure, is_right = proba.max(axis=1), proba.argmax(axis=1) == y
        for low, high in ((0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
            rows = (sure >= low) & (sure < high)
            assert is_right[rows].mean() == pytest.approx(sure[rows].mean(), abs=4 * (0.25 / rows.sum()) ** 0.5)

    def test_tables_are_what_was_drawn(self):
        frame, products, _ = self.made.draw(500, 0)
        assert frame["price"].isna().tolist() == np.isnan(products.log_price).tolist()
        assert 0.05 < frame["price"].isna().mean() < 0.3
        np.testing.assert_allclose(
            frame["price"].dropna(), np.exp(products.log_price[frame["price"].notna()]), atol=6e-3
        )
        assert frame[TITLE].str.split().str.len().tolist() == (products.words >= 0).sum(axis=1).tolist()
        parts = table_features._date_parts(frame[["listed"]])
        np.testing.assert_array_equal(parts[:, 2], products.day)
        dates = [dt.date.fromisoformat(each) for each in frame["listed"]]
        expected = [(each.year - 1970, each.month - 1, each.timetuple().tm_yday - 1, each.weekday()) for each in dates]
        np.testing.assert_array_equal(parts, expected)

    def test_features_for_other_libraries(self):
        job = self.made.job(400, 50)
        wide = table_features.sparse_table_features()
        assert wide.fit_transform(job.X).shape[1] == wide.transform(job.X_test).shape[1] > 500
        dense, codes = table_features.dense_table_features(5)
        X, X_test = dense.fit_transform(job.X), dense.transform(job.X_test)
        assert X.shape[1] == X_test.shape[1] == 5 + 2 + 2 + 4
        assert np.isnan(X[:, 7:9]).any()
        assert all(
            (X_test[:, code] == np.rint(X_test[:, code])).all() and X_test[:, code].min() == -1 for code in codes[:1]
        )


def test_made_up_blocks():
    X, y = made_up_blocks(300, 3, 5, 40, 8, seed=0)
    assert X["words"].dtype == X["embedding"].dtype == np.float32
    assert X["words"].has_sorted_indices
    assert (X["words"].toarray()[np.arange(300), y] > 0).all()
    np.testing.assert_allclose((X["embedding"] ** 2).sum(axis=1).mean(), 1.0, atol=0.15)


def test_fits_of_many_rows_say_what_they_take():
    answer = blocks_large.measure(rows=2000, inputs="both", space="weights", iterations=2, n_threads=1)
    assert answer["iterations"] == 2
    assert answer["algorithm"] == "blocks"
    assert answer["input_megabytes"] == pytest.approx(1e-6 * 2000 * (30 * 8 + 384 * 4), rel=1e-2)
    assert 0 < answer["iteration_seconds"] < answer["seconds"]


def test_max_margin_trees_beside_their_baselines(tmp_path, data_file):
    data_file("rcv1/rcv1_30k_clean.npz")
    options = make_parser().parse_args(
        ["max_margin", "--quick", "--parts", "tables", "--threads", "1", "--output", str(tmp_path)]
    )
    (result,) = max_margin.run(options)
    rows = {row["library"]: row for row in result.rows}
    assert len(rows) == 8 + 7
    assert rows["H-SVM, published"]["zero_one"] == 29.8
    for name in ("SVM per node", "H-RLS", "H-M3, symmetric difference"):
        row = rows[name]
        assert 0 < row["zero_one"] < 100
        assert 0 < row["subtree"] <= row["uniform"] <= row["difference"]
        assert row["levels"].count(";") == 3
    assert rows["H-M3, symmetric difference"]["gap"] <= 0.01
