"""Terms counted by the core, against scikit-learn's vectorizers: the same matrices, bit by bit."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from taxolearn import _core
from taxolearn.features import TableFeatures
from taxolearn.features.term_weights import WORD, TermWeights

# Letters of one to four bytes, what lower() makes longer, lone surrogates, and all that splits words.
LETTERS = "abAB1_-.,'éßİẞﬁΣ中🍎\ud800\udfff"
SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
TEXTS = st.lists(st.text(st.sampled_from(LETTERS + LETTERS + SPACES + "\0\u200b"), max_size=25), min_size=1, max_size=8)


def vectorizer_of(analyzer, lengths, **options):
    common = {"analyzer": analyzer, "ngram_range": lengths, "dtype": np.float32, "sublinear_tf": True}
    return TfidfVectorizer(**common | ({"token_pattern": WORD} if analyzer == "word" else {}) | options)


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
@given(TEXTS, TEXTS, st.integers(1, 4), st.integers(0, 3))
@settings(deadline=None, max_examples=300)
def test_as_scikit_learn(analyzer, known, texts, shortest, more):
    vectorizer = vectorizer_of(analyzer, (shortest, shortest + more))
    try:
        vectorizer.fit([*known, "some words to know"])
    except ValueError:  # no term that long
        return
    weights = TermWeights(vectorizer)
    assert weights._vocabulary is not None
    for each in (texts, known):
        assert_same(weights.transform(each, 1), vectorizer.transform(each))


@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
@pytest.mark.parametrize("options", [{}, {"norm": "l1"}, {"norm": None}, {"sublinear_tf": False}, {"max_features": 50}])
def test_many_texts_on_threads(analyzer, options):
    generator = np.random.default_rng(0)
    words = np.array([f"w{k % 97}é{k % 31}" for k in range(500)])
    texts = [" ".join(generator.choice(words, int(generator.integers(30)))) for _ in range(2000)]
    vectorizer = vectorizer_of(analyzer, (1, 3), **options).fit(texts[:500])
    weights = TermWeights(vectorizer)
    one, two = (weights.transform(texts, n_threads) for n_threads in (1, 2))
    assert_same(one, vectorizer.transform(texts))
    assert_same(two, one)
    assert weights.transform([], 2).shape == (0, one.shape[1])


@pytest.mark.parametrize(
    "options",
    [
        {"lowercase": False},
        {"strip_accents": "unicode"},
        {"stop_words": ["the"]},
        {"tokenizer": str.split, "token_pattern": None},
        {"preprocessor": str.upper},
        {"analyzer": "char"},
        {"analyzer": str.split},
        {"binary": True},
        {"use_idf": False},
        {"dtype": np.float64},
        {"token_pattern": r"(?u)\b\w\w+\b"},
    ],
)
def test_other_settings_are_left_to_scikit_learn(options):
    texts = ["The café, the Café", "a tea in the café", "THE TEA"]
    words = {"token_pattern": WORD} if "analyzer" not in options else {}
    vectorizer = TfidfVectorizer(**{"dtype": np.float32} | words | options).fit(texts)
    weights = TermWeights(vectorizer)
    assert weights._vocabulary is None
    assert_same(weights.transform(texts, 1), vectorizer.transform(texts))


def test_copies_and_new_fits():
    features = TableFeatures().fit(["red apples", "green pears"])
    before = features.transform(["red pears"])
    for other in (pickle.loads(pickle.dumps(features)), copy.deepcopy(features)):
        assert_same(other.transform(["red pears"]), before)
    features.fit(["blue plums", "red plums"])
    assert features.transform(["red pears"]).shape[1] == len(features.get_feature_names_out())
    with pytest.raises(ValueError, match="n_threads"):
        features.set_params(n_threads=0).transform(["x"])


def test_core_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="terms 0 and 1 are the same"):
        _core.Vocabulary([b"a", b"a"])
    vocabulary = _core.Vocabulary([b"a", b"b c", b""])
    assert len(vocabulary) == 3
    with pytest.raises(ValueError, match="lengths must be"):
        vocabulary.count([b"a"], "words", 2, 1, 1)
    with pytest.raises(ValueError, match="unit"):
        vocabulary.count([b"a"], "lines", 1, 1, 1)
    with pytest.raises(TypeError):
        vocabulary.count(["a"], "words", 1, 1, 1)
    counts, terms, offsets = vocabulary.count([b"b c a a", b"", b"\xff\xe2\x80"], "words", 1, 2, 1)
    assert (counts.tolist(), terms.tolist(), offsets.tolist()) == ([2.0, 1.0], [0, 1], [0, 2, 2, 2])
    assert _core.Vocabulary([]).count([b"a"], "characters", 1, 3, 1)[2].tolist() == [0, 0]
