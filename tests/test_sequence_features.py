"""Substrings as features: against counting by hand and another toolbox's kernels, and the reader of FASTA."""

import gzip
import io
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from taxolearn import MaxMarginTreeClassifier, load, save
from taxolearn.datasets import read_fasta
from taxolearn.features import SequenceFeatures

WORDS = st.lists(st.text(alphabet="abc ", max_size=9), min_size=2, max_size=6)


def kernel(left, right, lengths, positions, unit):
    """By its definition."""
    left, right = (text.split() if unit == "words" else text for text in (left, right))
    largest, total = max(lengths), 0.0
    for length in lengths:
        counts = []
        for text in (left, right):
            found = [(tuple(text[i : i + length]), i * positions) for i in range(len(text) - length + 1)]
            counts.append(Counter(found))
        weight = 2 * (largest - length + 1) / (largest * (largest + 1)) if positions else 1
        total += weight * sum(count * counts[1][key] for key, count in counts[0].items())
    return total


def inner_products(X):
    """Of sparse rows with any number of columns."""
    columns, places = np.unique(X.indices, return_inverse=True)
    dense = np.zeros((X.shape[0], len(columns)))
    dense[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), places] = X.data
    return dense @ dense.T


@settings(max_examples=60, deadline=None)
@given(texts=WORDS, lengths=st.sets(st.integers(1, 4), min_size=1), positions=st.booleans(), words=st.booleans())
def test_inner_products_are_kernels(texts, lengths, positions, words):
    unit = "words" if words else "letters"
    texts = [*texts, "a a a a b"]
    features = SequenceFeatures(
        sorted(lengths), positions=positions, unit=unit, normalized=False, dtype=np.float64
    ).fit(texts)
    expected = [[kernel(a, b, lengths, positions, unit) for b in texts] for a in texts]
    X = features.transform(texts)
    np.testing.assert_allclose(inner_products(X), expected, atol=1e-12)
    names = features.get_feature_names_out()
    assert len(set(names)) == len(names) == X.shape[1]
    hashed = clone(features).set_params(n_hashed=2**40).fit(texts).transform(texts)
    np.testing.assert_allclose(inner_products(hashed), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("CommWordString_DNA_10_0_False_3_60_False", {"lengths": 3}),
        ("CommUlongString_DNA_10_0_False_3_60_False", {"lengths": 3}),
        ("WeightedDegreeString_DNA_1_60", {"lengths": range(1, 2), "positions": True}),
        ("WeightedDegreeString_DNA_20_60", {"lengths": range(1, 21), "positions": True, "n_hashed": 2**40}),
        ("FixedDegreeString_3_DNA_10_60", {"lengths": 3, "positions": True}),
    ],
)
def test_values_of_another_toolbox(name, given, data_file):
    """Its files round to nine digits."""
    text = data_file(f"string_kernel_values/{name}.m").read_text()
    features = SequenceFeatures(**given, dtype=np.float64)
    strings = re.findall("'([A-Z]+)'", re.search(r"kernel_data_train = \{(.*?)\};", text, re.DOTALL)[1])
    matrix = re.search(r"kernel_matrix_train = \[(.*?)\];", text, re.DOTALL)[1]
    expected = np.array([[float(value) for value in row.split(",")] for row in matrix.split(";")])
    np.testing.assert_allclose(inner_products(features.fit_transform(strings)), expected, atol=1e-9)


def test_names_and_what_fit_has_not_seen():
    features = SequenceFeatures((1, 2), normalized=False).fit(["aba"])
    assert features.get_feature_names_out().tolist() == ["a", "b", "ba", "ab"]
    assert features.transform(["abxab", ""]).toarray().tolist() == [[2, 2, 0, 2], [0, 0, 0, 0]]
    placed = SequenceFeatures(1, positions=True).fit(["ab"])
    assert placed.get_feature_names_out().tolist() == ["a@0", "b@1"]
    assert placed.transform(["aab"]).toarray().tolist() == [[1, 0]]


def test_linear_models_of_others_take_them():
    X = SequenceFeatures(2).fit_transform(["abab", "cdcd", "aba", "cdc"])
    assert LinearSVC().fit(X, [0, 1, 0, 1]).score(X, [0, 1, 0, 1]) == 1


def test_in_a_pipeline():
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(list("ACGT"), 30)) for _ in range(80)]
    y = [[name for name in ("AC", "GT", "TTT") if name in text] for text in texts]
    model = make_pipeline(SequenceFeatures((2, 3)), MaxMarginTreeClassifier(C=30.0)).fit(texts, y)
    assert model.score(texts, y) > 0.8


@pytest.mark.parametrize(
    ("given", "X", "error", "message"),
    [
        ({}, "ABC", TypeError, "list or a column of strings"),
        ({}, ["ABC", 3], TypeError, "row 1 is 3"),
        ({}, ["A", "B"], ValueError, "no sequence has a substring"),
        ({"lengths": 0}, ["A"], ValueError, "lengths must be"),
        ({"lengths": ()}, ["A"], ValueError, "lengths is empty"),
        ({"lengths": 40}, ["ABCDE" * 20], ValueError, "give n_hashed"),
        ({"unit": "bytes"}, ["A"], ValueError, "unit is 'bytes'"),
        ({"n_hashed": 0}, ["A"], ValueError, "n_hashed must be"),
    ],
)
def test_errors(given, X, error, message):
    with pytest.raises(error, match=message):
        SequenceFeatures(**given).fit(X)


FASTA = b";a comment\n>P1 first one\nMKV\nLA A\n\n>P2\r\nMM\r\n>empty of letters\n"


@pytest.mark.parametrize("content", [FASTA, gzip.compress(FASTA)], ids=["plain", "gzip"])
def test_fasta(content):
    data = read_fasta(io.BytesIO(content))
    assert data.names == ["P1", "P2", "empty"]
    assert data.descriptions == ["first one", "", "of letters"]
    assert data.sequences == ["MKVLAA", "MM", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"MKV\n", "line 1: expected a header"), (b">\nMKV\n", "line 1: a header without a name"), (b"", "no sequences")],
)
def test_what_is_no_fasta(content, message):
    with pytest.raises(ValueError, match=message):
        read_fasta(io.BytesIO(content))


@pytest.mark.parametrize(
    "given",
    [{}, {"lengths": 2, "unit": "words", "positions": True}, {"n_hashed": 50, "dtype": np.float64}],
)
def test_they_are_part_of_model_files(given, tmp_path):
    texts = ["a b ab ba", "ab ba ba", "\u00e9 b a", "b b b b"]
    pipeline = make_pipeline(SequenceFeatures(**given), MaxMarginTreeClassifier())
    pipeline.fit(texts, [["x"], ["x", "y"], [], ["y"]])
    save(pipeline, tmp_path / "model.taxo")
    loaded = load(tmp_path / "model.taxo")
    ours, theirs = pipeline[0], loaded[0]
    assert theirs.get_params() == ours.get_params()
    new = [*texts, "c ab", ""]
    np.testing.assert_array_equal(theirs.transform(new).toarray(), ours.transform(new).toarray())
    assert theirs.get_feature_names_out().tolist() == ours.get_feature_names_out().tolist()
    assert loaded.predict(new) == pipeline.predict(new)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_features_": 4}, "shape"),
        ({"codes_": np.array([2, 1, 3])}, "substrings"),
        ({"codes_": np.array([1, 2, 10**6])}, "substrings"),
        ({"codes_": np.array([-1, 2, 3])}, "substrings"),
        ({"units_": ["b", "a"]}, "letters"),
        ({"units_": ["a", "a"]}, "letters"),
        ({"_longest": -1}, "letters"),
        ({"lengths": 400}, "substrings"),
        ({"n_hashed": 8}, "hashed"),
    ],
)
def test_files_of_substrings_that_cannot_be_are_refused(change, message, tmp_path):
    pipeline = make_pipeline(SequenceFeatures(2), MaxMarginTreeClassifier()).fit(["aba", "bb"], [["x"], ["y"]])
    assert len(pipeline[0].codes_) == 3
    for name, value in change.items():
        setattr(pipeline[0], name, value)
    save(pipeline, tmp_path / "model.taxo")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "model.taxo")
