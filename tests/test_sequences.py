"""Sequences in tables, such as DNA and proteins."""

import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp
from goods import write_table
from hypothesis import given, settings
from hypothesis import strategies as st

import taxolearn
from taxolearn import CentroidClassifier
from taxolearn.cli import main
from taxolearn.features import TableFeatures
from taxolearn.features.sequences import usual_lengths


def words_of(sequence, k):
    padded = f" {sequence.lower()} "
    return {padded[at : at + k] for at in range(max(len(padded) - k + 1, 1))}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("acgtACGTn", min_size=1, max_size=12), min_size=1, max_size=6), st.integers(1, 4))
def test_words_of_letters_are_counted(sequences, k):
    features = TableFeatures(sequences="dna", letters=(k, k), min_df=1).fit({"dna": sequences})
    names = features.get_feature_names_out().tolist()
    assert set(names) == {f"sequence '{word}'" for each in sequences for word in words_of(each, k)}
    X = features.transform({"dna": sequences})
    assert sp.issparse(X)
    assert X.dtype == np.float32
    np.testing.assert_allclose(sp.linalg.norm(X, axis=1), 1.0, rtol=1e-5)
    for row, sequence in enumerate(sequences):
        found = {names[k] for k in X[[row]].indices}
        assert found == {f"sequence '{word}'" for word in words_of(sequence, k)}
        np.testing.assert_array_equal(features.transform({"dna": [sequence]}).toarray(), X[[row]].toarray())


def test_blanks_and_cases_do_not_matter():
    features = TableFeatures(sequences=["dna"], letters=(2, 3)).fit({"dna": ["acgta", "ggcat"]})
    X = features.transform({"dna": ["acgta", " ACG\nTA ", "", None]}).toarray()
    np.testing.assert_array_equal(X[0], X[1])
    np.testing.assert_array_equal(X[2:], 0)
    np.testing.assert_array_equal(features.transform(["acgta"]).toarray()[0], X[0])  # a plain list
    # Words do not reach from one column to the next.
    two = TableFeatures(sequences=["a", "b"], letters=(2, 2)).fit({"a": ["ac"], "b": ["gt"]})
    assert two.get_feature_names_out().tolist() == [
        f"sequence '{word}'" for word in (" a", " g", "ac", "c ", "gt", "t ")
    ]


def test_lengths_follow_the_alphabet():
    random = np.random.default_rng(0)

    def made_of(letters, shares=None):
        return ["".join(random.choice(list(letters), 500, p=shares)) for _ in range(20)]

    assert usual_lengths(made_of("acgt")) == (8, 8)
    assert usual_lengths(made_of("ACGT")) == (8, 8)
    assert usual_lengths(made_of("acgtn", [0.2475] * 4 + [0.01])) == (8, 8)
    assert usual_lengths(made_of("ACDEFGHIKLMNPQRSTVWY")) == (4, 4)
    assert usual_lengths(["aaaa"]) == usual_lengths([""]) == (12, 12)
    assert usual_lengths(["".join(map(chr, range(0x4E00, 0x9E00)))] * 40) == (1, 1)
    assert TableFeatures(sequences="x").fit({"x": made_of("acgt")}).vectorizers_["sequences"].ngram_range == (8, 8)


def test_sequences_are_a_block():
    table = {"dna": ["acgtac", "ggcata"], "name": ["one thing", "another"], "n": [1.0, 2.0]}
    features = TableFeatures("name", ["n"], sequences="dna", letters=(3, 3), words=(1, 1), characters=None)
    X = features.set_params(output="blocks").fit_transform(table)
    assert X.n_features == {"words": 3, "sequences": 12, "numbers": 1}
    assert len(features.get_feature_names_out()) == 16
    assert features.transform(table).n_features == X.n_features


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"letters": "all"}, ["acgt"], "letters must be a pair or \"auto\", got 'all'"),
        ({"letters": None}, ["acgt"], 'letters must be a pair or "auto", got None'),
        ({}, ["", ""], "the sequences cannot be learned from"),
        ({}, [["acgt"]], "row 0 of dna is a list"),
        ({"sequences": ["dna", "rna"]}, ["acgt"], "no column 'rna'"),
    ],
)
def test_errors(options, table, message):
    with pytest.raises(ValueError, match=f"TableFeatures: .*{message}"):
        TableFeatures(**{"sequences": "dna"} | options).fit({"dna": table})


def species(count=160):
    """Two kinds with a word of their own in each sequence."""
    random = np.random.default_rng(0)
    rows = []
    for k in range(count):
        letters = "".join(random.choice(list("acgt"), 120))
        rows.append(
            {"dna": letters[:50] + ("gattacagattaca", "ccatggccatgg")[k % 2] + letters[50:], "label": "xy"[k % 2]}
        )
    return rows


def test_commands(tmp_path, capsys):
    data, model = write_table(tmp_path / "t.csv", species()), tmp_path / "m.taxo"
    arguments = ["--sequence", "dna", "--label", "label", "-o", str(model), "--model", "centroid", "--json"]
    assert main(["train", str(data), *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["hold_out"]["accuracy"] > 0.9
    loaded = taxolearn.load(model)
    assert loaded[0].vectorizers_["sequences"].ngram_range == (8, 8)
    assert loaded.predict({"dna": ["ACGATTACAGATTACAGG", "CCATGGCCATGG"]}).tolist() == ["x", "y"]
    assert main(["inspect", str(model)]) == 0
    assert "columns, sequences" in capsys.readouterr().out
    assert main(["report", str(model), str(data), "-o", str(tmp_path / "r.html")]) == 0
    capsys.readouterr()
    other = write_table(tmp_path / "other.csv", [{"rna": "acgu", "label": "x"}])
    assert main(["predict", str(model), str(other)]) == 3
    assert "there is no column 'dna'" in capsys.readouterr().err
    assert main(["train", str(data), *arguments, "--letters", "3-4"]) == 0
    assert taxolearn.load(model)[0].letters == (3, 4)


@pytest.mark.slow
def test_ribosomal_dna(data_file):
    """10,049 sequences of 1,440 letters by family."""
    with gzip.open(data_file("rdp16s/trainset9_rdp.tsv.gz"), "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    y = np.array([";".join(taxonomy.split(";")[:5]) for _, taxonomy, _ in rows])
    test = np.random.default_rng(0).random(len(rows)) < 0.2
    features = TableFeatures(sequences="dna", n_threads=2)
    X = features.fit_transform({"dna": [row[2] for row in rows]})
    assert X.shape[0] == len(rows)
    model = CentroidClassifier(n_threads=2).fit(X[~test], y[~test])
    known = test & np.isin(y, model.classes_)
    assert model.score(X[known], y[known]) > 0.96
