"""Embeddings of texts. The model is a small function, but for tests that need packages of their own."""

import doctest
import hashlib
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import taxolearn
from taxolearn import KernelLogisticClassifier
from taxolearn.features import SentenceEmbeddings, TableFeatures, embeddings, encoders
from taxolearn.features.embedding_cache import default_folder, is_same, text_keys
from taxolearn.kernels import Linear

WIDTH = 8
TEXTS = [f"{colour} {fruit} {k % 25}" for k, colour in enumerate(["red", "green"] * 25) for fruit in ("apple", "pear")]


def vector(text, seed=0):
    digest = hashlib.sha256(f"{seed}{text}".encode()).digest()
    return np.frombuffer(digest[: 4 * WIDTH], dtype=np.uint8).reshape(WIDTH, -1).astype(float).sum(axis=1) - 200.0


class Counting:
    """A model that remembers what it was given."""

    def __init__(self, seed=0):
        self.seed, self.batches = seed, []

    def __call__(self, texts):
        self.batches.append(list(texts))
        return np.array([vector(text, self.seed) for text in texts])

    def __deepcopy__(self, memo):
        return self

    @property
    def texts(self):
        """Those of all calls but for the fixed sentences."""
        return [text for batch in self.batches if batch != embeddings._PROBES for text in batch]


def expected(texts, seed=0):
    rows = np.array([vector(text, seed) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def make(model=None, **options):
    return SentenceEmbeddings(Counting() if model is None else model, **{"cache": None} | options)


# -- Embedding --------------------------------------------------------------------------------------------------------


def test_texts_become_rows_of_length_1():
    X = make().fit_transform(TEXTS)
    assert X.dtype == np.float32
    np.testing.assert_allclose(X, expected(TEXTS), rtol=1e-5)
    plain = make(normalize=False).fit_transform(TEXTS)
    np.testing.assert_array_equal(plain, [vector(text) for text in TEXTS])
    assert make().fit(TEXTS).transform([]).shape == (0, WIDTH)
    assert make().fit(TEXTS).get_feature_names_out().tolist()[:2] == ["embedding0", "embedding1"]


def test_each_text_is_embedded_once_in_batches():
    model = Counting()
    X = make(model, batch_size=7).fit(TEXTS).transform(TEXTS + TEXTS[::-1])
    np.testing.assert_array_equal(X[: len(TEXTS)], X[len(TEXTS) :][::-1])
    assert sorted(model.texts) == sorted(set(TEXTS))
    assert max(map(len, model.batches)) == 7
    lengths = [len(text) for text in model.texts]
    assert lengths == sorted(lengths, reverse=True)


def test_missing_texts_are_empty():
    X = make().fit_transform(["", None, float("nan"), "a"])
    np.testing.assert_array_equal(X[0], X[1])
    np.testing.assert_array_equal(X[0], X[2])
    assert not np.array_equal(X[0], X[3])


def test_rows_of_zeros_stay_zeros():
    zeros = make(lambda texts: np.array([[1.0, 0.0] if text else [0.0, 0.0] for text in texts]))
    np.testing.assert_array_equal(zeros.fit_transform(["", "a"]), [[0, 0], [1, 0]])


def test_an_object_with_encode_is_a_model():
    class Model:
        def encode(self, texts):
            return np.array([vector(text) for text in texts])

        def __call__(self, texts):
            raise AssertionError

    np.testing.assert_allclose(make(Model()).fit_transform(TEXTS), expected(TEXTS), rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda texts: np.zeros(len(texts)), r"an array of shape \(5,\)"),
        (lambda texts: np.zeros((1, 3)), r"shape \(1, 3\) and type float64 for 5 texts"),
        (lambda texts: np.zeros((len(texts), 0)), "a row of numbers for each"),
        (lambda texts: np.array([["a"]] * len(texts)), "a row of numbers for each"),
        (lambda texts: np.full((len(texts), 2), np.nan), "not finite"),
        (lambda texts: np.zeros((len(texts), 2 if len(texts) == 5 else 3)), r"shape \(2, 3\)"),
    ],
)
def test_models_that_give_no_rows_are_rejected(model, message):
    with pytest.raises(ValueError, match=f"SentenceEmbeddings: model gave .*{message}"):
        make(model).fit(["a", "b"]).transform(["a", "b"])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("a", "got a single one"),
        ([1], "row 0 of X is a int"),
        ({"a": ["b"]}, "got a table"),
        ([["a"]], "row 0 of X is a list"),
    ],
)
def test_what_are_no_texts_is_rejected(X, message):
    with pytest.raises(TypeError, match=message):
        make().fit(X)


def test_arguments_are_checked():
    with pytest.raises(TypeError, match=r"must be a name, a path or a function, got int 3"):
        make(3).fit(["a"])
    with pytest.raises(ValueError, match="batch_size must be"):
        make(batch_size=0).fit(["a"])


# -- The same model ---------------------------------------------------------------------------------------------------


def test_other_models_are_refused():
    fitted = make(Counting()).fit(TEXTS)
    fitted.set_params(model=Counting()).transform(TEXTS)
    other = fitted.set_params(model=Counting(seed=1))
    with pytest.raises(ValueError, match="gives other embeddings than the model that was used in fit"):
        other.transform(TEXTS)
    with pytest.raises(ValueError, match="gives other embeddings"):
        fitted.set_params(model=lambda texts: np.ones((len(texts), 3))).transform(TEXTS)
    other.set_params(model=Counting(seed=1)).fit(TEXTS).transform(TEXTS)


def test_small_differences_are_those_of_machines():
    first = make().fit(TEXTS).fingerprint_
    assert is_same(first * np.float32(1 + 1e-5), first)
    assert not is_same(first * np.float32(1.01), first)
    assert not is_same(first[:, 1:], first)
    noisy = make(lambda texts: np.array([vector(text) for text in texts]) * (1 + 1e-6), normalize=False)
    fitted = make(normalize=False).fit(TEXTS).set_params(model=noisy.model)
    np.testing.assert_allclose(fitted.transform(TEXTS), [vector(text) for text in TEXTS], rtol=1e-5)


def test_the_model_is_checked_once():
    model = Counting()
    fitted = make(model).fit(TEXTS)
    for _ in range(3):
        fitted.transform(TEXTS[:3])
    assert model.batches.count(embeddings._PROBES) == 1
    assert "_loaded" not in fitted.__getstate__()


def test_clones_and_copies():
    fitted = make(vector_model).fit(TEXTS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(TEXTS), fitted.transform(TEXTS))
    assert not hasattr(clone(fitted), "fingerprint_")


def vector_model(texts):
    return np.array([vector(text) for text in texts])


# -- The cache --------------------------------------------------------------------------------------------------------


def files_of(folder):
    return sorted(path for path in Path(folder).rglob("*.npz") if path.name != "fingerprint.npz")


def test_texts_are_not_embedded_twice(tmp_path):
    first, second = Counting(), Counting()
    X = make(first, cache=tmp_path).fit_transform(TEXTS)
    assert len(first.texts) == len(set(TEXTS))
    again = make(second, cache=str(tmp_path)).fit(TEXTS).transform([*TEXTS, "a new one"])
    assert second.texts == ["a new one"]
    np.testing.assert_array_equal(again[:-1], X)
    assert not any("apple" in path.read_bytes().decode("latin-1") for path in files_of(tmp_path))


def test_other_models_and_settings_have_other_entries(tmp_path):
    make(Counting(), cache=tmp_path).fit_transform(TEXTS)
    other = make(Counting(seed=1), cache=tmp_path).fit_transform(TEXTS)
    np.testing.assert_allclose(other, expected(TEXTS, seed=1), rtol=1e-5)
    plain = make(Counting(), cache=tmp_path, normalize=False).fit_transform(TEXTS)
    np.testing.assert_array_equal(plain, [vector(text) for text in TEXTS])
    assert text_keys(["a"], "x")[0] != text_keys(["a"], "y")[0]


def test_models_on_other_machines_share_a_cache(tmp_path):
    make(Counting(), cache=tmp_path).fit_transform(TEXTS)
    given = []

    def noisy(texts):
        given.append(texts)
        return np.array([vector(text) for text in texts]) + 1e-5

    make(noisy, cache=tmp_path).fit_transform(TEXTS)
    assert given == [embeddings._PROBES]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other"])
def test_damaged_entries_are_computed_again(tmp_path, damage):
    X = make(Counting(), cache=tmp_path).fit_transform(TEXTS)
    (path,) = files_of(tmp_path)
    content = bytearray(path.read_bytes())
    if damage == "flipped":  # a byte of the last embedding
        place = content.rfind(X[min(range(len(TEXTS)), key=lambda k: len(TEXTS[k]))].tobytes()[:4])
        assert place > 0
        content[place] ^= 1
    path.write_bytes({"cut": content[:-50], "flipped": content, "empty": b"", "other": b"x" * 5000}[damage])
    model = Counting()
    np.testing.assert_array_equal(make(model, cache=tmp_path).fit_transform(TEXTS), X)
    assert len(model.texts) == len(set(TEXTS))
    third = Counting()  # and are whole afterwards
    np.testing.assert_array_equal(make(third, cache=tmp_path).fit_transform(TEXTS), X)
    assert third.texts == []


def test_what_was_done_is_kept_when_a_run_is_interrupted(tmp_path):
    class Interrupted(Counting):
        def __call__(self, texts):
            if len(self.texts) >= 40:
                raise KeyboardInterrupt
            return super().__call__(texts)

    with pytest.raises(KeyboardInterrupt):
        make(Interrupted(), cache=tmp_path, batch_size=10).fit_transform(TEXTS)
    model = Counting()
    make(model, cache=tmp_path).fit_transform(TEXTS)
    assert len(model.texts) == len(set(TEXTS)) - 40


def test_large_calls_are_kept_in_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(embeddings, "_FILE", 20)
    X = make(Counting(), cache=tmp_path, batch_size=10).fit_transform(TEXTS)
    assert len(files_of(tmp_path)) == -(-len(set(TEXTS)) // 20)
    model = Counting()
    np.testing.assert_array_equal(make(model, cache=tmp_path).fit_transform(TEXTS), X)
    assert model.texts == []


def test_a_few_texts_are_not_kept(tmp_path):
    make(Counting(), cache=tmp_path).fit(TEXTS).transform(TEXTS[:5])
    assert files_of(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="the cache cannot be used"):
        X = make(Counting(), cache=tmp_path / "file").fit_transform(TEXTS)
    np.testing.assert_allclose(X, expected(TEXTS), rtol=1e-5)


def test_the_usual_folder_is_that_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "taxolearn" / "embeddings"
    SentenceEmbeddings(Counting()).fit_transform(TEXTS)
    assert len(files_of(tmp_path / "taxolearn")) == 1


# -- Tables and model files -------------------------------------------------------------------------------------------


@pytest.fixture
def local_model(tmp_path, monkeypatch):
    """The path of a model, which stands for a folder of sentence-transformers."""
    folder = tmp_path / "model"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    models = {str(folder): Counting()}

    def load(model, n_threads):
        return models[model], "counting 1.0"

    monkeypatch.setattr(embeddings, "load_encoder", load)
    return str(folder), models


TABLE = {"name": TEXTS, "price": list(range(100)), "e0": [2.0] * 100, "e1": [0.0] * 100}
LABELS = ["a" if "apple" in text else "p" for text in TEXTS]


def test_tables_have_a_block_of_embeddings():
    options = {"words": (1, 1), "characters": None, "curves": False, "output": "blocks"}
    features = TableFeatures(text="name", numeric=["price"], embedding_model=make(), **options)
    X = features.fit_transform(TABLE)
    assert X.n_features == {"words": 29, "numbers": 1, "embedding": WIDTH}
    np.testing.assert_allclose(X["embedding"], expected(TEXTS), rtol=1e-5)
    np.testing.assert_array_equal(features.transform(TABLE)["embedding"], X["embedding"])
    assert features.get_feature_names_out().tolist()[-WIDTH - 1 :][:2] == ["price", "embedding0"]
    whole = features.set_params(output="matrix").transform(TABLE)
    assert whole.shape == (100, 30 + WIDTH)
    np.testing.assert_allclose(whole[:, -WIDTH:].toarray(), expected(TEXTS), rtol=1e-5)


def test_texts_may_be_embedded_only():
    for options, table in (
        ({"embed": "name"}, TABLE),
        ({"embed": ["name"]}, TEXTS),
        ({"words": None, "characters": None}, TEXTS),
        ({"text": "name", "words": None, "characters": None}, TABLE),
    ):
        features = TableFeatures(**options, embedding_model=make())
        np.testing.assert_allclose(features.fit_transform(table), expected(TEXTS), rtol=1e-5)
        np.testing.assert_allclose(features.transform(table), expected(TEXTS), rtol=1e-5)
    two = TableFeatures(embed=["name", "name"], embedding_model=make()).fit_transform(TABLE)
    np.testing.assert_allclose(two, expected([f"{text}\n{text}" for text in TEXTS]), rtol=1e-5)


def test_columns_of_embeddings_have_one_scale():
    table = {"x": [3.0, 4.0, 0.0], "y": [4.0, "", -1.0], "n": [1.0, 2.0, 3.0]}
    features = TableFeatures(numeric=["n"], embedding_columns=["x", "y"], output="blocks")
    X = features.fit_transform(table)
    assert X.n_features == {"numbers": 1, "curves": 1, "embedding_columns": 2}
    rows = np.array([[3.0, 4.0], [4.0, 0.0], [0.0, -1.0]])
    np.testing.assert_allclose(X["embedding_columns"], rows / np.sqrt((25 + 16 + 1) / 3), rtol=1e-6)
    np.testing.assert_array_equal(features.transform(table)["embedding_columns"], X["embedding_columns"])
    assert features.get_feature_names_out().tolist() == ["n", "n near 2", "x", "y"]
    with pytest.raises(ValueError, match="row 1 of x is 'a', expected a number"):
        features.fit({"x": [1.0, "a"], "y": [1.0, 1.0], "n": [1.0, 1.0]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embed": "name"}, "embed needs embedding_model"),
        ({"embedding_model": vector_model, "numeric": ["price"]}, "needs the columns with texts, by embed or text"),
        ({"embed": "nam", "embedding_model": vector_model}, "there is no column 'nam'"),
        ({"embedding_columns": ["e0", "e7"]}, "there is no column 'e7'"),
        ({"text": "name", "words": None, "characters": None, "embed": "name", "embedding_model": vector_model}, "None"),
    ],
)
def test_tables_without_what_embeddings_need_are_rejected(options, message):
    with pytest.raises(ValueError, match=f"TableFeatures: .*{message}"):
        TableFeatures(**options).fit(TABLE)


@pytest.mark.parametrize("output", ["matrix", "blocks"])
def test_model_files_know_their_sentence_model(local_model, tmp_path, output):
    path, models = local_model
    features = TableFeatures(text="name", embedding_model=path, embedding_columns=["e0", "e1"], output=output)
    model = make_pipeline(features, KernelLogisticClassifier(Linear(), tuning=None)).fit(TABLE, LABELS)
    taxolearn.save(model, tmp_path / "m.taxo", dtype="float64")
    models[path] = Counting()
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert models[path].batches == []
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), model.predict_proba(TABLE))
    assert models[path].batches == []  # all is in the cache
    new = {"name": ["a new apple"], "e0": [1.0], "e1": [2.0]}
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    embedder = loaded[0].embedder_
    assert (embedder.model, embedder.version_, embedder.n_threads) == (path, "counting 1.0", None)
    models[path] = Counting(seed=1)
    with pytest.raises(ValueError, match="gives other embeddings than the model that was used in fit"):
        taxolearn.load(tmp_path / "m.taxo").predict(new)
    models["elsewhere"] = Counting()
    moved = taxolearn.load(tmp_path / "m.taxo").set_params(tablefeatures__embedding_model__model="elsewhere")
    np.testing.assert_array_equal(moved.predict_proba(new), model.predict_proba(new))
    models["elsewhere"] = Counting()
    assert moved.fit(TABLE, LABELS)[0].embedder_.model == "elsewhere"


def test_embeddings_alone_are_stored(local_model, tmp_path):
    path, _ = local_model
    model = make_pipeline(
        SentenceEmbeddings(path, normalize=False, batch_size=5, cache=None), KernelLogisticClassifier(tuning=None)
    ).fit(TEXTS, LABELS)
    taxolearn.save(model, tmp_path / "m.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert loaded[0].get_params() == model[0].get_params()
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_functions_cannot_be_stored(tmp_path):
    model = make_pipeline(make(vector_model), KernelLogisticClassifier(tuning=None)).fit(TEXTS, LABELS)
    with pytest.raises(TypeError, match=r"SentenceEmbeddings has the model .*vector_model.*use the name or the path"):
        taxolearn.save(model, tmp_path / "m.taxo")


# -- Models of other packages -----------------------------------------------------------------------------------------


def test_without_packages_it_says_what_to_install(tmp_path, monkeypatch):
    encoders._sentence_transformer.cache_clear()
    for name in ("sentence_transformers", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r'pip install "taxolearn\[embeddings\]"; or give a Python function'):
        make("all-MiniLM-L6-v2").fit(TEXTS)
    (tmp_path / "m.onnx").touch()
    with pytest.raises(ValueError, match="pip install onnxruntime tokenizers"):
        make(tmp_path / "m.onnx").fit(TEXTS)


@pytest.mark.parametrize("model", [Path("not/there"), "./not-there", "m.onnx", "~/not/there"])
def test_paths_that_are_not_there_are_not_looked_for_elsewhere(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="there is no sentence model at"):
        make(model).fit(TEXTS)


def test_outputs_of_onnx_models_are_averaged_over_tokens(tmp_path, monkeypatch):
    """By stand-ins for the packages: a token is a letter, its output its code."""

    class Tokenizer:
        truncation = None

        @staticmethod
        def from_file(path):
            assert Path(path) == tmp_path / "tokenizer.json"
            return Tokenizer()

        def enable_truncation(self, length):
            self.length = length

        def enable_padding(self):
            self.pads = True

        def encode_batch(self, texts):
            texts = [text[: self.length] for text in texts]
            longest = max(map(len, texts)) if self.pads else 0
            rows = [[*map(ord, text), *[0] * (longest - len(text))] for text in texts]
            masks = [[int(code > 0) for code in row] for row in rows]
            return [
                SimpleNamespace(ids=row, attention_mask=mask, type_ids=[0] * len(row))
                for row, mask in zip(rows, masks, strict=True)
            ]

    class InferenceSession:
        def __init__(self, path, options, providers):
            assert options.intra_op_num_threads == 2

        def get_inputs(self):
            return [SimpleNamespace(name="input_ids"), SimpleNamespace(name="attention_mask")]

        def run(self, names, inputs):
            assert set(inputs) == {"input_ids", "attention_mask"}
            return [np.stack([inputs["input_ids"] + 7.0, inputs["input_ids"] * 0 + 1.0], axis=2)]

    runtime = SimpleNamespace(SessionOptions=SimpleNamespace, InferenceSession=InferenceSession)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Tokenizer))
    monkeypatch.setattr(encoders, "version", lambda name: "1.0")
    (tmp_path / "m.onnx").touch()
    features = make(tmp_path / "m.onnx", normalize=False, n_threads=2)
    with pytest.raises(ValueError, match=r"there is no tokenizer\.json beside"):
        features.fit(TEXTS)
    (tmp_path / "tokenizer.json").touch()
    X = features.fit_transform(["ac", "a", ""])
    np.testing.assert_allclose(X, [[(ord("a") + ord("c")) / 2 + 7, 1], [ord("a") + 7, 1], [0, 0]])
    assert features.version_ == "onnxruntime 1.0"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_sentence_model_knows_what_is_alike(sentence_model_folder, tmp_path):
    features = SentenceEmbeddings(sentence_model_folder, cache=tmp_path).fit(["a"])
    assert features.version_.startswith("sentence-transformers ")
    X = features.transform(["my card was stolen", "somebody took my credit card", "how do I bake bread"])
    assert X[0] @ X[1] > X[0] @ X[2] + 0.2
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-5)
    one = features.set_params(n_threads=1).transform(["my card was stolen"])
    np.testing.assert_allclose(one[0], X[0], atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("sentence_model_folder")
def test_a_folder_without_a_model_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"cannot be loaded\. Without a network, give the path of a folder"):
        make(tmp_path).fit(TEXTS)


def test_the_example_is_true():
    result = doctest.testmod(embeddings)
    assert result.attempted > 0
    assert result.failed == 0
