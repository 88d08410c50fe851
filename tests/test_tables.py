"""Tables row by row."""

import gzip
import io
import json
from pathlib import Path

import pytest

from taxolearn.cli.inputs import LINES, MATRICES, TABLES, format_of
from taxolearn.cli.matrices import FORMATS, read_matrix
from taxolearn.readers.tables import read_chunks


def read(content, kind="csv", **options):
    """All rows, by columns, and their lines."""
    data = content.encode() if isinstance(content, str) else content
    columns, lines = {}, []
    for chunk in read_chunks(io.BytesIO(data), kind, **options):
        assert all(len(column) == len(chunk) for column in chunk.columns.values())
        for name, column in chunk.columns.items():
            columns.setdefault(name, []).extend(column)
        lines += chunk.lines
    return columns, lines


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "csv"),
        ("A.CSV.GZ", "csv"),
        ("b.tsv", "tsv"),
        ("c.jsonl.gz", "jsonl"),
        ("d.parquet", "parquet"),
        ("f.libsvm.gz", "svmlight"),
        ("folder.npz/f.arff", "arff"),
        ("e", None),
        ("e.lshtc", None),
        (".csvx", None),
    ],
)
def test_format_of(name, kind):
    assert format_of(name) == kind


def test_formats_are_tables_or_matrices():
    assert (*TABLES, *MATRICES) == tuple(FORMATS)
    assert set(LINES) < set(TABLES)
    endings = [ending for form in FORMATS.values() for ending in form.endings]
    assert len(endings) == len(set(endings))
    assert all(not one.endswith(other) for one in endings for other in endings if one != other)
    with pytest.raises(ValueError, match="the format is 'csv', expected one of svmlight, lshtc, arff, npz"):
        read_matrix("t.csv", "csv")


def test_formats_are_documented():
    """Each format, with all endings, has a row in the table of the documentation."""
    text = (Path(__file__).parent.parent / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    for name, form in FORMATS.items():
        ((_, endings),) = [row for row in rows if f"`{name}`" in row[0]]
        assert set(form.endings) <= {ending.strip() for ending in endings.split(",")}


def test_csv():
    content = 'a,b\n1,"x, ""y""\nz"\n\n 2 ,ü\r\n'
    assert read(content) == ({"a": ["1", " 2 "], "b": ['x, "y"\nz', "ü"]}, [2, 5])
    assert read("\ufeff" + content)[0] == read(content)[0]
    assert read(content, columns=["b"])[0] == {"b": ['x, "y"\nz', "ü"]}
    assert read(gzip.compress(content.encode())) == read(content)
    assert read(content.encode("latin-1"), encoding="latin-1") == read(content)
    assert read(content.encode("utf-16"), encoding="utf-16") == read(content)
    assert read("a\tb\n1\t2", "tsv") == ({"a": ["1"], "b": ["2"]}, [2])
    assert read("a,b\n") == ({}, [])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter):
    """By the columns that are wanted, whatever else is in the header."""
    content = f'id{delimiter}"a,b;c|d\t"\n1{delimiter}"x; y, z"\n'.replace("\\t", "\t")
    expected = {"id": ["1"], "a,b;c|d\t": ["x; y, z"]}
    assert read(content, columns=list(expected)) == (expected, [2])
    assert read(content, columns=["id"])[0] == {"id": ["1"]}
    assert read(content, delimiter=delimiter)[0] == expected


def test_quotes():
    assert read('a,b\n5" pipe,"x\n', quote=None)[0] == {"a": ['5" pipe'], "b": ['"x']}
    assert read("a,b\n'x, y',5\" pipe\n", quote="'")[0] == {"a": ["x, y"], "b": ['5" pipe']}
    assert read("a~b\n1~2\n", delimiter="~")[0] == {"a": ["1"], "b": ["2"]}


def test_chunks():
    content = "a\n" + "".join(f"{k}\n" for k in range(10))
    chunks = list(read_chunks(io.BytesIO(content.encode()), "csv", rows=4))
    assert [len(chunk) for chunk in chunks] == [4, 4, 2]
    assert [value for chunk in chunks for value in chunk.columns["a"]] == [str(k) for k in range(10)]


def test_long_fields():
    content = "a,b\n" + "x" * 300_000 + ",y\n"
    assert len(read(content)[0]["a"][0]) == 300_000


def test_json_lines():
    content = '{"a": "x", "b": 1}\n\n{"b": null, "a": "ü", "c": 3}\n'
    assert read(content, "jsonl") == ({"a": ["x", "ü"], "b": [1, None]}, [1, 3])
    assert read(content, "jsonl", columns=["a"]) == ({"a": ["x", "ü"]}, [1, 3])


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": ["x", None, "z"], "b": [1.5, 2.5, None]}), tmp_path / "t.parquet")
    (chunk,) = read_chunks(tmp_path / "t.parquet", "parquet", columns=["b", "a"])
    assert chunk.columns == {"a": ["x", None, "z"], "b": [1.5, 2.5, None]}
    with pytest.raises(ValueError, match="no column 'c'; there is 'a', 'b'"):
        list(read_chunks(tmp_path / "t.parquet", "parquet", columns=["c"]))
    (tmp_path / "u.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ValueError, match="not a Parquet file"):
        list(read_chunks(tmp_path / "u.parquet", "parquet"))


@pytest.mark.parametrize(
    ("content", "kind", "options", "message"),
    [
        ("", "csv", {}, "line 1: expected the names"),
        ("\n", "csv", {}, "line 1: expected the names"),
        ("a,a\n", "csv", {}, "line 1: the column 'a' is there twice"),
        ("a,b\n1,2\n1,2,3\n", "csv", {}, "line 3: found 3 fields, expected 2"),
        ("a,b\n1\n", "csv", {}, "line 2: found 1 fields"),
        ('a,b\n1,"x\n2,3\n', "csv", {}, "line 2: the quotes are wrong"),
        ('a,b\n1,"x"y\n', "csv", {}, "line 2: the quotes are wrong"),
        ("a,b\n1,x\0y\n", "csv", {}, "line 2, column 4: found a NUL"),
        ("a;b\n1;2\n", "csv", {"columns": ["c"]}, "no column 'c'; there is 'a', 'b'"),
        ("a;b\n1;2\n", "csv", {"columns": ["a", "c"]}, "no column 'c'; there is 'a', 'b'"),
        ("a\tb\n1\t2\n", "csv", {"columns": ["c"], "delimiter": ";"}, "there seem to be tabs"),
        ("a;b\n1;2\n", "csv", {"columns": ["a"], "delimiter": ","}, "no column 'a'; there is 'a;b'"),
        ("a;b\n1;2\n", "tsv", {"columns": ["a"]}, "no column 'a'; there is 'a;b'"),
        ("a;b\n1;2\n", "csv", {"delimiter": '"'}, "cannot be both the delimiter and the quote"),
        ('a,b\n1,"x"y\n', "csv", {}, "--quote none"),
        (b"a,b\n1,\xe4\n", "csv", {}, "line 2, column 3: expected text in utf-8, found the byte 0xe4"),
        (b"a,b\n1,\xc3", "csv", {}, "line 2, column 3: expected text in utf-8"),
        (gzip.compress(b"a,b\n" + b"1,2\n" * 1000, mtime=0)[:-20], "csv", {}, "gzip data are cut short"),
        (b"\x1f\x8b", "csv", {}, "gzip data are cut short"),
        ("a\n1\n", "csv", {"encoding": "klingon"}, "encoding is 'klingon'"),
        ("", "jsonl", {}, "found none"),
        ('{"a": 1}\n{"a": }\n', "jsonl", {}, "line 2, column 7: not JSON"),
        ("[1]\n", "jsonl", {}, "line 1: expected an object"),
        ('{"a": 1}\n{"b": 1}\n', "jsonl", {}, "line 2: the object has no 'a'"),
        ('{"a": [1]}\n', "jsonl", {}, "line 1: 'a' is a list"),
        ("[" * 100_000 + "\n", "jsonl", {}, "line 1"),
        (json.dumps({"a": "x"}) + "\n" + '{"a": ' + "1" * 10_000 + "}\n", "jsonl", {}, "line 2"),
    ],
)
def test_errors_name_the_line(content, kind, options, message):
    with pytest.raises(ValueError, match=message):
        read(content, kind, **options)


class Trickle(io.RawIOBase):
    """A stream that cannot seek, and gives three bytes at a time."""

    def __init__(self, content):
        self._left = content

    def readable(self):
        return True

    def read(self, size=-1):
        size = 3 if size < 0 else min(size, 3)
        out, self._left = self._left[:size], self._left[size:]
        return out


def test_streams():
    content = 'a,b\n1,"ü\nx"\n2,ö\n'.encode()
    expected = read(content)
    for stream in (content, gzip.compress(content)):
        chunks = list(read_chunks(Trickle(stream), "csv"))
        assert (chunks[0].columns, chunks[0].lines) == expected
