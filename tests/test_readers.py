"""Readers of file formats: against slow obvious parsers and other libraries, on broken files, on real ones."""

import gzip
import io
import json
import math
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from taxolearn import _core
from taxolearn.datasets import (
    LabelledData,
    read_arff,
    read_lshtc,
    read_npz,
    read_svmlight,
    read_table,
    read_text_pairs,
    read_vw,
)
from taxolearn.readers.sparse_rows import SparseRows

PLACE = r"line \d+, column \d+: "


def file_of(text):
    return io.BytesIO(text if isinstance(text, bytes) else text.encode())


# ---- Slow obvious parsers: split, float, dict


def slow_svmlight(text, first_id, multilabel=False, skip_zero=False):
    """Labels and dictionaries of features; ValueError for anything wrong."""
    labels, rows = [], []
    for line in text.split("\n"):
        words = line.split("#")[0].split()
        if not words:
            continue
        found = []
        if not (multilabel and ":" in words[0]):
            found = [slow_number(word) for word in words.pop(0).split(",")]
        if len(found) != 1 and not multilabel:
            raise ValueError(found)
        labels.append(tuple(found) if multilabel else found[0])
        if words and words[0].startswith("qid:"):
            words.pop(0)
        if skip_zero and words and words[0].startswith("0:"):
            slow_number(words.pop(0)[2:])
        rows.append(slow_features(words, first_id))
    return labels, rows


def slow_features(words, first_id):
    row = {}
    for word in words:
        name, _, value = word.partition(":")
        if not name.isdecimal() or not value or int(name) - first_id in row:
            raise ValueError(word)
        row[int(name) - first_id] = slow_number(value)
    return row


def slow_number(text):
    value = float(text)
    if not math.isfinite(value) or not re.fullmatch(r"[-+.0-9eE]+", text):
        raise ValueError(text)
    return value


def slow_vw(text, first_id):
    labels, weights, rows = [], [], []
    for line in filter(str.strip, text.split("\n")):
        before, _, after = line.partition("|")
        numbers = [float(word) for word in before.split() if not word.startswith("'")]
        labels.append(numbers[0])
        weights.append(numbers[1] if len(numbers) > 1 else 1.0)
        words = after.split() if after.startswith(" ") else after.split()[1:]
        rows.append(slow_features([word if ":" in word else word + ":1" for word in words], first_id))
    return labels, weights, rows


def random_lines(generator, form, n_rows=60, multilabel=False):
    """Text with everything the format allows; ids from 1 on."""
    lines = []
    for _ in range(n_rows):
        ids = generator.permutation(np.arange(1, 200))[: generator.integers(0, 12)]
        formats = ["{:.3g}", "{!r}", "{:.25f}", "{:e}", "{:+.1f}"]
        values = [str(generator.choice(formats)).format(float(v)) for v in generator.standard_normal(len(ids)) * 1e3]
        pairs = [f"{j}:{v}" for j, v in zip(ids, values, strict=True)]
        labels = [str(label) for label in generator.integers(-3, 1000, generator.integers(0, 4) if multilabel else 1)]
        gap = str(generator.choice([" ", "  ", "\t"]))
        if form == "vw":
            pairs = [pair if generator.random() < 0.7 else pair.split(":")[0] for pair in pairs]
            middle = str(generator.choice([" ", " 2.5 ", " 0.5 'tag", " 'tag "])) + "| "
            lines.append(labels[0] + middle + gap.join(pairs))
            continue
        if form == "lshtc":
            pairs = [f"0:{generator.integers(1, 99)}", *pairs]
        elif generator.random() < 0.2:
            pairs = ["qid:3", *pairs]
        if not labels and not pairs:
            continue
        tail = str(generator.choice(["", " ", " # note 7:1", "#x", "\r"]))
        lines.append(gap.join([",".join(labels), *pairs]) + tail)
        if generator.random() < 0.1:
            lines.append(str(generator.choice(["", "# whole line", "  "])))
    return "\n".join(lines) + str(generator.choice(["\n", ""]))


def assert_same(X, rows):
    """The matrix equals the dictionaries, bit by bit, and is in canonical form."""
    assert X.shape[0] == len(rows)
    for first, last, row in zip(X.indptr, X.indptr[1:], rows, strict=False):
        assert X.indices[first:last].tolist() == sorted(row)
        assert X.data[first:last].tolist() == [row[column] for column in sorted(row)]
    assert sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape).has_canonical_format
    assert X.indices.dtype == X.indptr.dtype


# ---- Line formats


@pytest.mark.parametrize("seed", range(8))
def test_svmlight_against_a_slow_parser(seed):
    text = random_lines(np.random.default_rng(seed), "svmlight")
    labels, rows = slow_svmlight(text, 1)
    for content in (text.encode(), gzip.compress(text.encode())):
        data = read_svmlight(io.BytesIO(content))
        assert_same(data.X, rows)
        assert data.y.tolist() == labels
        assert data.y.dtype == np.int64
        assert data.zero_based is False
        assert data.X.shape[1] == 1 + max(max(row, default=0) for row in rows)
    assert_same(read_svmlight(file_of(text), zero_based=True).X, slow_svmlight(text, 0)[1])


@pytest.mark.parametrize("seed", range(4))
def test_multilabel_against_a_slow_parser(seed):
    text = random_lines(np.random.default_rng(seed), "svmlight", multilabel=True)
    labels, rows = slow_svmlight(text, 1, multilabel=True)
    X, y = read_svmlight(file_of(text), multilabel=True, zero_based=False)
    assert_same(X, rows)
    assert y == labels
    assert () in y
    assert any(len(row) > 1 for row in y)


@pytest.mark.parametrize("seed", range(4))
def test_lshtc_against_a_slow_parser(seed):
    text = random_lines(np.random.default_rng(seed), "lshtc")
    labels, rows = slow_svmlight(text, 1, skip_zero=True)
    data = read_lshtc(file_of(text), n_features=500)
    assert_same(data.X, rows)
    assert data.y.tolist() == labels
    assert data.X.shape[1] == 500
    assert data.totals.tolist() == [float(n) for n in re.findall(r"[ \t]0:(\d+)", text)]


@pytest.mark.parametrize("seed", range(4))
def test_vw_against_a_slow_parser(seed):
    text = random_lines(np.random.default_rng(seed), "vw")
    labels, weights, rows = slow_vw(text, 1)
    data = read_vw(file_of(text), zero_based=False)
    assert_same(data.X, rows)
    assert data.y.tolist() == labels
    assert data.sample_weight.tolist() == weights
    assert data.vocabulary is None


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("multilabel", [True, False])
def test_svmlight_agrees_with_scikit_learn(tmp_path, zero_based, multilabel):
    generator = np.random.default_rng(5)
    X = sp.random(200, 50, 0.2, format="csr", random_state=3)
    X.data *= 1e3
    y = generator.integers(0, 2, (200, 6)) if multilabel else generator.standard_normal(200)
    path = tmp_path / "data.svm.gz"
    with gzip.open(path, "wb") as file:
        dump_svmlight_file(X, y, file, zero_based=zero_based, multilabel=multilabel, comment="note")
    expected, labels = load_svmlight_file(str(path), n_features=50, zero_based=zero_based, multilabel=multilabel)
    data = read_svmlight(path, n_features=50, zero_based=zero_based, multilabel=multilabel)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(data.X, name), getattr(expected, name))
    assert data.X.shape == expected.shape
    if multilabel:
        assert data.y == labels
    else:
        np.testing.assert_array_equal(data.y, labels)
        assert data.y.dtype == np.float64


def test_a_file_across_blocks_and_members(tmp_path, monkeypatch):
    text = random_lines(np.random.default_rng(1), "svmlight", n_rows=400)
    monkeypatch.setattr("taxolearn.raw_files._BLOCK", 97)
    path = tmp_path / "rows.txt"
    half = len(text) // 2
    path.write_bytes(gzip.compress(text[:half].encode()) + gzip.compress(text[half:].encode()))
    assert_same(read_svmlight(path).X, slow_svmlight(text, 1)[1])


def test_vw_with_names():
    train = read_vw(file_of("1 |text cat:2 dog |size:0.5 cat:3\n2 |text dog:4\n"), features="names")
    assert train.vocabulary == ["text^cat", "text^dog", "size^cat"]
    assert train.X.toarray().tolist() == [[2, 1, 1.5], [0, 4, 0]]
    test = read_vw(file_of("1 |text fox dog:7\n1 |text fox\n"), features="names", vocabulary=train.vocabulary)
    assert test.X.toarray().tolist() == [[0, 7, 0], [0, 0, 0]]
    assert test.vocabulary == train.vocabulary
    odd = read_vw(file_of(b"1 | \xff:2 \xc3\xa9\n"), features="names")
    assert odd.vocabulary == ["\udcff", "é"]
    same = read_vw(file_of("1 |a x\n2 | a^x:3\n"), features="names")  # as the documentation warns
    assert same.vocabulary == ["a^x"]
    assert same.X.toarray().tolist() == [[1], [3]]
    with pytest.raises(ValueError, match='vocabulary goes with features="names"'):
        read_vw(file_of("1 | 1\n"), vocabulary=["a"])
    with pytest.raises(ValueError, match="the vocabulary holds 'a' twice"):
        read_vw(file_of("1 | 1\n"), features="names", vocabulary=["a", "a"])
    with pytest.raises(ValueError, match="n_features=3 goes with"):
        read_vw(file_of("1 | 1\n"), features="names", n_features=3)


def test_first_id_and_number_of_features():
    assert read_svmlight(file_of("1 0:1 2:1\n")).zero_based is True
    assert read_svmlight(file_of("1 1:1 2:1\n")).X.shape == (1, 2)
    assert read_svmlight(file_of("1 1:1 2:1\n"), zero_based=True).X.shape == (1, 3)
    assert read_svmlight(file_of("1\n2\n")).X.shape == (2, 0)
    assert read_svmlight(file_of("1\n2\n"), n_features=4).X.shape == (2, 4)
    with pytest.raises(ValueError, match=r"line 2, column 7: expected ids from 1 to 3 \(n_features=3\), found 4"):
        read_svmlight(file_of("1 1:1\n1 2:1 4:1\n"), n_features=3)
    with pytest.raises(ValueError, match=r"line 2, column 7: expected ids from 1 on, found 0; .*zero_based=True"):
        read_svmlight(file_of("1 1:1\n1 2:1 0:1\n"), zero_based=False)
    for wrong in ("yes", None, 1):
        with pytest.raises(ValueError, match="zero_based must be"):
            read_svmlight(file_of("1 1:1\n"), zero_based=wrong)
    with pytest.raises(ValueError, match="n_features must be finite and at least 0, got -1"):
        read_svmlight(file_of("1 1:1\n"), n_features=-1)
    with pytest.raises(TypeError, match="n_features must be an integer"):
        read_svmlight(file_of("1 1:1\n"), n_features=2.5)


def test_large_ids_and_types():
    wide = read_svmlight(file_of("1 3000000000:1\n"))
    assert wide.X.shape == (1, 3_000_000_000)
    assert wide.X.indices.dtype == wide.X.indptr.dtype == np.int64
    narrow = read_svmlight(file_of("1 3:0.1\n"), dtype=np.float32)
    assert narrow.X.data.dtype == np.float32
    assert narrow.X.indices.dtype == np.int32
    with pytest.raises(ValueError, match="beyond the range of float32"):
        read_svmlight(file_of("1 3:1e300\n"), dtype=np.float32)
    for width in (4, 3_000_000_000):  # the parsed rows stay as they are, so that a second matrix is the same
        rows = SparseRows(file_of("1 3:2\n1 1:5 4:6\n"), form="svmlight", multilabel=False)
        first, second = (rows.matrix(first_id=1, n_features=width, dtype=np.float64) for _ in range(2))
        assert first.indices.tolist() == second.indices.tolist() == [2, 0, 3]
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int64"):
        read_svmlight(file_of("1 3:1\n"), dtype=np.int64)


def test_labels_are_integers_if_all_are():
    assert read_svmlight(file_of("1 1:1\n-3.0 1:1\n")).y.dtype == np.int64
    assert read_svmlight(file_of("1 1:1\n0.5 1:1\n")).y.tolist() == [1.0, 0.5]


def test_labels_that_floats_do_not_tell_apart():
    largest = 2**53 - 1
    assert read_svmlight(file_of(f"{largest} 1:1\n-{largest} 1:1\n")).y.tolist() == [largest, -largest]
    for wrong in ("9007199254740993", "9007199254740992", "-9007199254740993", "1e300"):
        with pytest.raises(ValueError, match=r"^<BytesIO>: expected labels below 2\*\*53 .*, found -?[\de+]+ .*anew"):
            read_svmlight(file_of(f"1 1:1\n{wrong} 1:1\n"))
        with pytest.raises(ValueError, match=r"^<BytesIO>: expected labels below 2\*\*53"):
            read_lshtc(file_of(f"1, {wrong} 1:1\n2 1:1\n"), multilabel=True)
    with pytest.raises(ValueError, match="found 9007199254740992 or"):
        read_vw(file_of("0.5 | 1\n9007199254740993 | 1\n"))
    assert read_svmlight(file_of("1:1\n"), multilabel=True).y == [()]


def test_query_ids():
    assert read_svmlight(file_of("1 qid:4 1:1\n")).X.toarray().tolist() == [[1]]
    with pytest.raises(ValueError, match=r'line 1, column 3: query ids .* qid="ignore"'):
        read_svmlight(file_of("1 qid:4 1:1\n"), qid="error")
    with pytest.raises(ValueError, match="qid is 'keep'"):
        read_svmlight(file_of("1 1:1\n"), qid="keep")


MALFORMED = {
    "missing colon": ("1 1:2\n1 3\n", 2, 4),
    "missing value": ("1 1:2\n1 3:\n", 2, 5),
    "missing id": ("1 :2\n", 1, 3),
    "two colons": ("1 1:2:3\n", 1, 6),
    "negative id": ("1 -1:2\n", 1, 3),
    "fractional id": ("1 1.5:2\n", 1, 4),
    "huge id": ("1 1:1 99999999999999999999:2\n", 1, 7),
    "id at the limit": ("1 9223372036854775807:2\n", 1, 3),
    "nan": ("1 1:nan\n", 1, 5),
    "inf": ("1 1:1 2:-inf\n", 1, 9),
    "overflow": ("1 1:1e400\n", 1, 5),
    "hexadecimal": ("1 1:0x10\n", 1, 6),
    "underscore": ("1 1:1_0\n", 1, 6),
    "comma": ("1 1:1,5\n", 1, 6),
    "word as value": ("1 1:one\n", 1, 5),
    "word as label": ("spam 1:1\n", 1, 1),
    "nan label": ("nan 1:1\n", 1, 1),
    "no label": (" 1:1\n", 1, 3),
    "several labels": ("1,2 1:1\n", 1, 2),
    "duplicate": ("1 1:1 5:1\n1 5:1 2:1 5:3\n", 2, 11),
    "duplicate in order": ("1 5:1 5:1\n", 1, 7),
    "zero byte": (b"1 1:1\n1 1:1\x00\n", 2, 6),
    "not ASCII": ("1 1:½\n".encode(), 1, 5),
    "carriage return within": ("1 1:1\r2:1\n", 1, 6),
    "empty": ("", 1, 1),
    "only comments": ("# a\n\n", 1, 1),
    "wide": ("1 1:1\ufeff\n", 1, 6),
}


@pytest.mark.parametrize("reader", [read_svmlight, read_lshtc])
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_rows_are_named(reader, case):
    text, line, column = MALFORMED[case]
    with pytest.raises(ValueError, match=rf"^<BytesIO>, line {line}, column {column}: "):
        reader(file_of(text))


VW_MALFORMED = {
    "no bar": ("1 | 1\n1 2\n", 2, 4),
    "label touches bar": ("1| 1\n", 1, 2),
    "weight touches bar": ("1 2| 1\n", 1, 3),
    "initial prediction": ("1 2 3 | 1\n", 1, 5),
    "negative weight": ("1 -2 | 1\n", 1, 3),
    "weight is infinite": ("1 inf | 1\n", 1, 3),
    "costs": ("1:0.5 2:1 | 1\n", 1, 2),
    "no label": ("| 1\n", 1, 1),
    "name": ("1 | cat\n", 1, 5),
    "name after digits": ("1 | 1cat\n", 1, 6),
    "two namespaces": ("1 |a 1\n1 |b 1\n", 2, 3),
    "nan": ("1 | 1:nan\n", 1, 7),
    "scale is a word": ("1 |a:b 1\n", 1, 6),
    "negative index": ("1 | -1:2\n", 1, 5),
    "huge index": ("1 | 99999999999999999999\n", 1, 5),
    "duplicate": ("1 | 3 2 3\n", 1, 9),
    "several labels": ("1,2 | 3\n", 1, 2),
    "empty": ("\n", 1, 1),
}


@pytest.mark.parametrize("case", VW_MALFORMED)
def test_malformed_vw_is_named(case):
    text, line, column = VW_MALFORMED[case]
    with pytest.raises(ValueError, match=rf"^<BytesIO>, line {line}, column {column}: "):
        read_vw(file_of(text))


def test_a_text_cut_anywhere_is_read_as_it_stands_or_refused():
    text = "1 3:4.5 12:-1e2\n-1 7:1 2:3 # x\r\n2 qid:5 9:.25"
    refused = 0
    for length in range(len(text)):
        cut = text[:length]
        try:
            labels, rows = slow_svmlight(cut, 1)
            assert labels
        except (ValueError, AssertionError):
            refused += 1
            with pytest.raises(ValueError, match=PLACE):
                read_svmlight(file_of(cut), zero_based=False)
            continue
        if cut.endswith("qid:"):
            continue  # an empty query id is passed over by the slow parser only
        data = read_svmlight(file_of(cut), zero_based=False)
        assert_same(data.X, rows)
        assert data.y.tolist() == labels
    assert refused > 10


def test_random_changes_never_give_a_wrong_answer():
    generator = np.random.default_rng(0)
    text = random_lines(generator, "svmlight", n_rows=6).replace("qid:3", " ").replace("\r", "")
    alphabet = "0123456789 .:-+e#,\n\tx"
    agreed = refused = 0
    for _ in range(3000):
        at = generator.integers(0, len(text))
        changed = text[:at] + generator.choice(list(alphabet)) + text[at + generator.integers(0, 3) :]
        try:
            labels, rows = slow_svmlight(changed, 0)
        except ValueError:
            refused += 1
            with pytest.raises(ValueError, match=PLACE):
                read_svmlight(file_of(changed), zero_based=True)
            continue
        if max(map(abs, labels)) >= 2**53:
            with pytest.raises(ValueError, match="expected labels below"):
                read_svmlight(file_of(changed), zero_based=True)
            continue
        data = read_svmlight(file_of(changed), zero_based=True)
        assert_same(data.X, rows)
        assert data.y.tolist() == labels
        agreed += 1
    assert agreed > 100
    assert refused > 100


@pytest.mark.parametrize("reader", [read_svmlight, read_lshtc, read_vw, read_arff, read_npz, read_table])
def test_binary_files_are_refused(reader):
    generator = np.random.default_rng(0)
    for size in (1, 10, 1000, 100_000):
        content = b"\x80" + generator.integers(0, 256, size, dtype=np.uint8).tobytes()
        with pytest.raises(ValueError, match="<BytesIO>"):
            reader(io.BytesIO(content))


@pytest.mark.parametrize(
    "reader", [read_svmlight, read_lshtc, read_vw, read_arff, read_npz, read_table, read_text_pairs]
)
def test_damaged_gzip_is_named(tmp_path, reader):
    content = gzip.compress(random_lines(np.random.default_rng(2), "lshtc", n_rows=500).encode())
    path = tmp_path / "rows.gz"
    damaged = bytearray(content)
    damaged[-6] ^= 1  # the check sum
    for broken in (content[: len(content) // 2], content[:5], bytes(damaged), content + b"more"):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"rows\.gz"):
            reader(path)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"rows\.gz: the gzip data are cut short or damaged"):
        read_table(path)


def test_sources_of_the_wrong_kind(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "absent")
    with pytest.raises(TypeError, match="source must be a path or a file"):
        read_svmlight(7)
    with pytest.raises(TypeError, match='mode "rb"'):
        read_svmlight(io.StringIO("1 1:1\n"))
    with pytest.raises(ValueError, match="form is"):
        _core.SparseTextParser(form="csv")


def test_results_unpack_and_describe_themselves():
    data = read_svmlight(file_of("1 1:1 4:1\n"))
    X, y = data
    assert X is data.X
    assert y is data.y
    assert isinstance(data, LabelledData)
    assert repr(data) == "SvmlightData(1 rows, 4 features)"
    with pytest.raises(AttributeError):
        data.X = None


def test_ctrl_c_stops_the_reading(run_python, tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"1 " + b" ".join(b"%d:1.25" % j for j in range(200_000)) + b"\n")
    done = run_python(
        """
        import os, signal, sys, threading, time
        from taxolearn import _core
        text = open(sys.argv[1], "rb").read() * 40
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.perf_counter()
        try:
            while time.perf_counter() - begin < 60:
                _core.SparseTextParser(form="svmlight").feed(text)
            print("ended")
        except KeyboardInterrupt:
            print("interrupted")
        """,
        path,
    )
    assert done.stdout.strip() == "interrupted", done.stderr


# ---- ARFF

HEADER = """% a comment
@RELATION 'two words'
@attribute a numeric
@ATTRIBUTE 'b c' REAL
@attribute colour {red, 'light blue' ,green}
@attribute class hierarchical 1,1/1,1/2,2/3/4
@data
"""


def test_arff_dense():
    data = read_arff(file_of(HEADER + "1,-2.5,red,1/1@2/3\n\n% note\n?, 3 ,'light blue',1\r\n0,1e2,?,?\n"))
    nan = math.nan
    expected = [[1, -2.5, 1, 0, 0], [nan, 3, 0, 1, 0], [0, 100, nan, nan, nan]]
    np.testing.assert_array_equal(data.X, expected)
    assert data.feature_names == ["a", "b c", "colour=red", "colour=light blue", "colour=green"]
    assert data.y == [("1/1", "2/3"), ("1",), ()]
    assert data.relation == "two words"
    assert data.classes == ["1", "1/1", "1/2", "2", "2/3", "2/3/4"]
    assert data.edges == [
        ("root", "1"), ("1", "1/1"), ("1", "1/2"), ("root", "2"), ("2", "2/3"), ("2/3", "2/3/4"),
    ]  # fmt: skip
    assert data.is_dag is False
    codes = read_arff(file_of(HEADER + "1,2,green,1\n1,2,?,1\n"), nominal="code")
    np.testing.assert_array_equal(codes.X, [[1, 2, 2], [1, 2, nan]])
    assert codes.feature_names == ["a", "b c", "colour"]


def test_arff_sparse_rows_equal_dense_ones():
    dense = read_arff(file_of(HEADER + "0,5,red,1/1\n3,0,green,2/3@1\n0,?,?,1\n0,0,red,2\n"))
    text = HEADER + "{1 5, 3 1/1}\n{ 3 '2/3@1' ,0 3,2 'green'}\n{1 ?,2 ?,3 1}\n{3 2}\n"
    for nominal in ("onehot", "code"):
        sparse = read_arff(file_of(text), nominal=nominal)
        assert sp.issparse(sparse.X)
        assert sparse.X.has_canonical_format
        same = (
            dense
            if nominal == "onehot"
            else read_arff(file_of(HEADER + "0,5,red,1/1\n3,0,green,2/3@1\n0,?,?,1\n0,0,red,2\n"), nominal="code")
        )
        np.testing.assert_array_equal(sparse.X.toarray(), same.X)
        assert sparse.y == same.y
        assert sparse.feature_names == same.feature_names


def test_arff_dag():
    text = "@relation go\n@attribute x numeric\n@attribute class hierarchical {}\n@data\n1,c@b\n"
    pairs = "root/a,a/b,a/c,b/d,c/d"
    data = read_arff(file_of(text.format(pairs)))
    assert data.is_dag is True
    assert data.classes == ["a", "b", "c", "d"]
    assert data.edges == [("root", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    assert data.y == [("c", "b")]
    assert read_arff(file_of(text.format("a/b,a/c")), hierarchy="dag").classes == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"line 5, column 3: .*taken for a tree: see the option hierarchy.*'c'"):
        read_arff(file_of(text.format("a/b,a/c")))
    with pytest.raises(ValueError, match="line 3, column 1: expected a hierarchy without cycles"):
        read_arff(file_of(text.format("root/a,a/b,b/a")))
    with pytest.raises(ValueError, match=r"line 3, column 1: expected pairs parent/child"):
        read_arff(file_of(text.format("a,a/b")), hierarchy="dag")


def test_arff_with_an_attribute_declared_twice():
    header = "@attribute a numeric\n@attribute a real\n@attribute a string\n@attribute c hierarchical 1\n@data\n"
    data = read_arff(file_of(header + "1,2,x,1\n3,4,y,1\n"))
    assert data.feature_names == ["a", "a"]
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert data.strings == {"a": ["x", "y"]}


def test_arff_strings_stay_out_of_the_matrix():
    text = "@relation r\n@attribute id key\n@attribute x numeric\n@attribute c hierarchical 1,2\n@data\n"
    data = read_arff(file_of(text + "'a, b',3,1\nc,?,2\n"))
    assert data.strings == {"id": ["a, b", "c"]}
    np.testing.assert_array_equal(data.X, [[3], [math.nan]])


ARFF_MALFORMED = {
    "too few fields": ("1,2,1\n", 8, 5),
    "too many fields": ("1,2,red,1,1\n", 8, 11),
    "cut in a quote": ("1,2,'red,1\n", 8, 5),
    "nan": ("1,nan,red,1\n", 8, 3),
    "infinite": ("1,1e999,red,1\n", 8, 3),
    "underscore": ("1_0,2,red,1\n", 8, 1),
    "word": ("1,2,red,1\n1,two,red,1\n", 9, 3),
    "empty field": ("1,,red,1\n", 8, 3),
    "unknown value": ("1,2,pink,1\n", 8, 5),
    "unknown class": ("1,2,red,1@7\n", 8, 9),
    "empty class": ("1,2,red,\n", 8, 9),
    "no rows": ("\n", 8, 1),
    "sparse after dense": ("1,2,red,1\n{3 1}\n", 9, 1),
    "dense after sparse": ("{3 1}\n1,2,red,1\n", 9, 1),
    "open brace": ("{3 1\n", 8, 5),
    "attribute out of range": ("{3 1, 4 1}\n", 8, 7),
    "negative attribute": ("{-1 1, 3 1}\n", 8, 2),
    "attribute twice": ("{0 1, 0 1, 3 1}\n", 8, 7),
    "no value": ("{0, 3 1}\n", 8, 2),
    "no class": ("{0 1}\n", 8, 5),
    "empty row": ("{}\n", 8, 2),
    "sparse word": ("{0 x, 3 1}\n", 8, 4),
}


@pytest.mark.parametrize("case", ARFF_MALFORMED)
def test_malformed_arff_is_named(case):
    text, line, column = ARFF_MALFORMED[case]
    with pytest.raises(ValueError, match=rf"^<BytesIO>, line {line}, column {column}: expected "):
        read_arff(file_of(HEADER + text))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1, column 1: expected a line @data"),
        ("@relation r\nhello\n", "line 2, column 1: expected @relation, @attribute or @data"),
        ("@attribute x numeric\n@data\n1\n", "line 2, column 1: expected one attribute of the type hierarchical"),
        ("@attribute x date\n", "line 1, column 14: expected a type"),
        ("@attribute x\n", "line 1, column 13: expected a type"),
        ("@attribute\n", "line 1, column 1: expected @attribute, a name and a type"),
        ("@attribute x {a,a}\n", "line 1, column 15: expected values that differ"),
        ("@attribute x string\n  @attribute  'x' key\n", "line 2, column 15: expected text attributes with names that"),
        ("@attribute x hierarchical 1,1//2\n@data\n", "line 1, column 29: expected a path"),
        ("@attribute x hierarchical\n@data\n", "line 1, column 1: expected a path"),
        ("@attribute x hierarchical 1\n@attribute y hierarchical 1\n@data\n", "line 2, column 1: expected one"),
        (b"@relation \xff\n", "line 1, column 11: expected text in utf-8, found the byte 0xff"),
    ],
)
def test_malformed_arff_header_is_named(text, place):
    with pytest.raises(ValueError, match=re.escape("<BytesIO>, " + place)):
        read_arff(file_of(text))


def test_arff_cut_anywhere_is_never_a_crash():
    text = HEADER + "1,-2.5,red,1/1@2/3\n3,4,green,1\n"
    whole = read_arff(file_of(text))
    read = 0
    for length in range(len(text)):
        try:
            data = read_arff(file_of(text[:length]))
        except ValueError as error:  # noqa: PERF203
            assert re.search(PLACE, str(error))  # noqa: PT017
        else:
            read += 1
            assert len(data.y) == len(data.X) <= 2
            assert set(data.y) <= {("1/1",), ("1/1", "2"), *whole.y}
    assert read == 6


# ---- npz


def saved(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    file.seek(0)
    return file


GOOD = {
    "train_data": np.array([1, 2, 3], dtype=np.int16),
    "train_indices": np.array([2, 0, 1]),
    "train_indptr": np.array([0, 2, 2, 3]),
    "train_y": np.array([5, 6, 7]),
}


def test_npz_with_prefix():
    X, y = read_npz(saved(**GOOD), "train", n_features=4)
    assert X.toarray().tolist() == [[2, 0, 1, 0], [0, 0, 0, 0], [0, 3, 0, 0]]
    assert X.has_canonical_format
    assert y.tolist() == [5, 6, 7]
    assert read_npz(saved(**GOOD), "train").X.shape == (3, 3)


def test_npz_of_scipy(tmp_path):
    X = sp.random(30, 20, 0.2, format="csr", random_state=0)
    path = tmp_path / "X.npz"
    sp.save_npz(path, X)
    data = read_npz(path)
    assert data.y is None
    assert data.X.shape == X.shape
    assert abs(data.X - X).max() == 0
    assert abs(read_npz(io.BytesIO(gzip.compress(path.read_bytes()))).X - X).max() == 0
    sp.save_npz(path, X.tocsc())
    with pytest.raises(ValueError, match="expected a matrix in the format csr, found 'csc'"):
        read_npz(path)


def test_npz_adds_up_entries_stored_twice():
    X, _ = read_npz(saved(data=np.array([1.0, 2.0]), indices=np.array([1, 1]), indptr=np.array([0, 2])))
    assert X.toarray().tolist() == [[0, 3]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.ones((3, 1))}, "train_data to be one-dimensional"),
        ({"data": np.array([1.0, np.nan, 2.0])}, "train_data to be finite"),
        ({"data": np.array(["a", "b", "c"])}, "train_data to be an array of numbers"),
        ({"data": np.array([1j, 2, 3])}, "train_data to be an array of numbers"),
        ({"data": np.array([1, None, 3], dtype=object)}, r"array 'train_data' holds Python objects, .* plain"),
        ({"data": np.ones(2)}, r"train_indices to be as long as train_data \(2\), found 3"),
        ({"indices": np.array([0.0, 1, 2])}, "train_indices to be an array of integers"),
        ({"indices": np.array([0, -1, 2])}, "train_indices to be at least 0, found -1"),
        ({"indices": np.array([0, 9, 2])}, "train_indices to be below n_features=4, found 9"),
        ({"indptr": np.array([], dtype=int)}, "train_indptr to be one longer"),
        ({"indptr": np.array([1, 2, 2, 3])}, "train_indptr to be 0 at the start, found 1"),
        ({"indptr": np.array([0, 2, 1, 3])}, "train_indptr to be never falling, found a fall at 2"),
        ({"indptr": np.array([0, 2, 2, 4])}, "train_indptr to be 3 .* at the end, found 4"),
        ({"indptr": np.array([0, 2, 2, 2])}, "train_indptr to be 3 .* at the end, found 2"),
        ({"indices": np.array([0, 2**63 - 1, 2])}, f"train_indices to be below {2**63 - 1}, found {2**63 - 1}"),
        ({"shape": np.array([3, 2**63], dtype=np.uint64)}, f"train_shape to be at most .* columns, found {2**63}"),
        ({"shape": np.array([2, 4])}, r"train_shape to be 3 rows"),
        ({"shape": np.array([3, 2])}, r"train_shape to be at least 3 columns"),
        ({"shape": np.array([3, 5])}, r"train_shape to be n_features=4 columns, found 5"),
        ({"shape": np.array([3])}, r"train_shape to be two integers"),
        ({"y": np.array([1, 2])}, r"expected 3 labels in train_y, one per row, found the shape \(2,\)"),
    ],
)
def test_npz_arrays_must_be_a_matrix(change, message):
    arrays = {**GOOD, **{f"train_{key}": value for key, value in change.items()}}
    with pytest.raises(ValueError, match=message):
        read_npz(saved(**arrays), "train", n_features=4)


def test_npz_files_that_are_none(tmp_path):
    with pytest.raises(ValueError, match="expected the array 'test_data', found train_data, train_indices"):
        read_npz(saved(**GOOD), "test")
    content = saved(**GOOD).getvalue()
    cut = [content[:length] for length in (0, 1, 4, 50, len(content) // 2, -1)]
    for wrong in (b"1 1:1\n", b"\x80\x04K\x01.", b"x" + content, *cut):
        with pytest.raises(ValueError, match=r"<BytesIO>: expected an npz file of plain arrays") as caught:
            read_npz(io.BytesIO(wrong), "train")
        assert "pickle" not in str(caught.value)
    single = io.BytesIO()
    np.save(single, np.ones(3))
    with pytest.raises(ValueError, match="expected an npz file of plain arrays, found a single array without a name"):
        read_npz(io.BytesIO(single.getvalue()))
    huge = {**GOOD, "train_indices": np.array([0, 2**63, 2], dtype=np.uint64)}
    with pytest.raises(ValueError, match=f"expected train_indices to be below {2**63 - 1}, found {2**63}"):
        read_npz(saved(**huge), "train")
    with pytest.raises(ValueError, match=f"n_features must be at most .*, got {2**63}"):
        read_npz(saved(**GOOD), "train", n_features=2**63)


# ---- Tables and pairs


def test_table():
    text = 'code\ttitle\n01\t"quoted"\n02\té, b\r\n\n'
    expected = {"code": ["01", "02"], "title": ['"quoted"', "é, b"]}
    assert read_table(file_of(text)) == expected
    assert read_table(io.BytesIO(gzip.compress(text.encode()))) == expected
    assert read_table(file_of("\ufeffa;;b\n1;;2"), delimiter=";;") == {"a": ["1"], "b": ["2"]}
    assert read_table(file_of("é\n".encode("latin-1")), encoding="latin-1") == {"é": []}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1, column 1: expected a line with the names"),
        ("a\tb\n1\t2\n1\n", "line 3, column 2: expected 2 fields as in the header, found 1"),
        ("a\tb\n1\t2\t3\n", "line 2, column 4: expected 2 fields as in the header, found 3"),
        ("a\tb\n\n1\t2\n", "line 2, column 1: expected 2 fields"),
        ("a\tb\ta\n", "line 1, column 5: expected names that differ, found 'a' again"),
        (b"a\n\xff\n", "line 2, column 1: expected text in utf-8, found the byte 0xff"),
    ],
)
def test_malformed_table_is_named(text, place):
    with pytest.raises(ValueError, match=re.escape("<BytesIO>, " + place)):
        read_table(file_of(text))


def test_text_pairs():
    pairs = [["some text", "a"], ["ünd", "b"]]
    for content, key in ((pairs, None), ({"train": pairs, "test": []}, "train")):
        texts, labels = read_text_pairs(file_of(json.dumps(content)), key)
        assert texts == ["some text", "ünd"]
        assert labels.tolist() == ["a", "b"]
    assert read_text_pairs(file_of("[]"))[1].shape == (0,)


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ('[["a", "b"],\n ["c"', None, "<BytesIO>, line 2, column 6: "),
        ("", None, "<BytesIO>, line 1, column 1: "),
        ('{"a": []}', None, "key is None, expected one of 'a'"),
        ('{"a": []}', "b", "key is 'b', expected one of 'a'"),
        ("[]", "b", "key is 'b', but the file is a list"),
        ('{"a": 3}', "a", "['a']: expected a list of [text, label], found a int"),
        ('[["a", "b"], ["c"]]', None, "[1]: expected [text, label], found ['c']"),
        ('[["a", 1]]', None, "[0]: expected [text, label], found ['a', 1]"),
        ("[" * 100_000, None, "nested too deeply"),
    ],
)
def test_malformed_pairs_are_named(text, key, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_text_pairs(file_of(text), key)


# ---- Real files, with the sizes of their description


@pytest.mark.data
@pytest.mark.parametrize(("part", "rows"), [("train_reconstructed", 10_000), ("test", 1006)])
def test_real_svmlight(data_file, part, rows):
    path = data_file(f"clef/hiercost_{part}.txt.gz")
    data = read_svmlight(path)
    assert data.X.shape == (rows, 80)
    expected, labels = load_svmlight_file(str(path))
    assert abs(data.X - expected).max() == 0
    np.testing.assert_array_equal(data.y, labels)


@pytest.mark.data
@pytest.mark.parametrize(("part", "rows"), [("train", 97_200), ("test", 10_800)])
def test_real_vw(data_file, part, rows):
    path = data_file(f"aloi/aloi_{part}.vw.gz")
    data = read_vw(path, n_features=128)
    assert data.X.shape == (rows, 128)
    assert np.unique(data.y).tolist() == list(range(1, 1001))
    assert data.sample_weight is None
    with gzip.open(path, "rt") as file:
        labels, _, expected = slow_vw("".join(next(file) for _ in range(200)), 1)
    assert_same(data.X[:200], expected)
    assert data.y[:200].tolist() == labels


@pytest.mark.data
def test_real_lshtc(data_file):
    path = data_file("lshtc_dryrun/validation.txt.gz")
    data = read_lshtc(path)
    assert data.X.shape[0] == 1860
    assert len(np.unique(data.y)) == 1139
    with gzip.open(path, "rt") as file:
        labels, expected = slow_svmlight(file.read(), 1, skip_zero=True)
    assert_same(data.X, expected)
    assert data.y.tolist() == labels
    assert not np.isnan(data.totals).any()
    test = read_lshtc(data_file("lshtc_dryrun/test.txt.gz"), n_features=1_200_000)
    assert test.X.shape == (1858, 1_200_000)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "columns", "classes", "is_dag"),
    [
        ("clef/ImCLEF07A_Train", 10_000, 80, 96, False),
        ("clef/ImCLEF07A_Test", 1006, 80, 96, False),
        ("hmc/Enron_corr_trainvalid", 988, 1001, 56, False),
        ("hmc/Enron_corr_test", 660, 1001, 56, False),
        ("hmc/seq_FUN.valid", 879, 529, 499, False),
        ("hmc/gasch1_GO.valid", 846, 173, 4125, True),
    ],
)
def test_real_arff(data_file, name, rows, columns, classes, is_dag):
    path = data_file(f"{name}.arff.gz")
    data = read_arff(path)
    assert data.X.shape == (rows, columns)
    assert len(data.y) == rows
    assert len(data.classes) == classes
    assert data.is_dag is is_dag
    assert len(data.edges) > classes if is_dag else len(data.edges) == classes
    with gzip.open(path, "rt") as file:
        body = re.split(r"@DATA\s*\n", file.read())[1].split("\n")
    fields = [line.split(",") for line in body if line]
    assert data.y == [tuple(row[-1].split("@")) for row in fields]
    for column, feature in enumerate(data.feature_names):
        if "=" not in feature:  # numeric attributes come first in these files
            expected = [math.nan if row[column] == "?" else float(row[column]) for row in fields]
            np.testing.assert_array_equal(data.X[:, column], expected)
        else:
            break


@pytest.mark.data
def test_real_npz(data_file):
    path = data_file("news20/news20_rennie_vocab_counts.npz")
    for part, rows in (("train", 11_314), ("test", 7532)):
        X, y = read_npz(path, part, n_features=61_188)
        assert X.shape == (rows, 61_188)
        assert y.shape == (rows,)
        assert len(np.unique(y)) == 20
    assert read_npz(data_file("rcv1/rcv1_30k_clean.npz")).X.shape == (30_000, 47_236)


@pytest.mark.data
def test_real_tables_and_texts(data_file):
    titles = read_table(data_file("onet/Alternate_Titles.txt.gz"))
    assert {len(column) for column in titles.values()} == {52_754}
    assert len(set(titles["O*NET-SOC Code"])) == 1016
    tasks = read_table(data_file("onet/Task_Statements.txt.gz"))
    assert len(tasks["Task"]) == 19_265
    assert len(set(tasks["O*NET-SOC Code"])) == 923
    for key, rows in (("train", 15_000), ("val", 3000), ("test", 4500)):
        texts, labels = read_text_pairs(data_file("clinc150/data_full.json.gz"), key)
        assert len(texts) == rows
        assert len(np.unique(labels)) == 150
