"""Readers of files with several labels per row: Mulan, the extreme classification repository, and the sets of CLUS."""

import gzip
import io
import re

import numpy as np
import pytest
import scipy.sparse as sp

from taxolearn.cli import main
from taxolearn.datasets import read_arff, read_mulan, read_svmlight
from taxolearn.taxonomy import Taxonomy

XML = '<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n{}\n</labels>\n'
NAMES = XML.format('<label name="sky"></label>\n<label name="old sea"></label>\n<label name="sun"/>')
HEADER = """@relation 'a set: -C 3'
% labels may come first, last or in between
@attribute sky {0,1}
@attribute width numeric
@attribute shape {round,flat}
@attribute 'old sea' {0, 1}
@attribute bright {0,1}
@attribute id string
@attribute sun numeric
@data
"""
DENSE = "1,2.5,flat,0,1,a,0\n0,?,round,1,0,'b c',1\n\n% none\n0,-1,flat,0,1,d,0\n"
SPARSE = "{0 1,1 2.5,2 flat,4 1,5 a}\n{1 ?, 3 1, 5 'b c', 6 1}\n{1 -1,2 flat,4 1,5 d}\n"


def file_of(text):
    return io.BytesIO(text.encode("utf-8"))


class InPieces(io.BytesIO):
    """A source that gives three bytes at a time."""

    def read(self, size=-1):
        return super().read(3)


# Mulan


@pytest.mark.parametrize("rows", [DENSE, SPARSE])
def test_mulan_by_hand(rows):
    data = read_mulan(file_of(HEADER + rows), file_of(NAMES))
    assert data.y == [("sky",), ("old sea", "sun"), ()]
    assert data.classes == ["sky", "old sea", "sun"]
    assert data.edges == []
    assert data.relation == "a set: -C 3"
    assert data.feature_names == ["width", "shape=round", "shape=flat", "bright"]
    assert data.strings == {"id": ["a", "b c", "d"]}
    assert sp.issparse(data.X) == rows.startswith("{")
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    np.testing.assert_array_equal(X, [[2.5, 0, 1, 1], [np.nan, 1, 0, 0], [-1, 0, 1, 1]])
    coded, _ = read_mulan(file_of(HEADER + rows), file_of(NAMES), nominal="code")
    coded = coded.toarray() if sp.issparse(coded) else coded
    np.testing.assert_array_equal(coded, [[2.5, 1, 1], [np.nan, 0, 0], [-1, 1, 1]])
    compressed = read_mulan(
        io.BytesIO(gzip.compress((HEADER + rows).encode())), io.BytesIO(gzip.compress(NAMES.encode()))
    )
    assert compressed.y == data.y


def test_nested_labels_of_mulan():
    nested = XML.format('<label name="sky"><label name="sun"><label name="old sea"/></label></label>')
    data = read_mulan(file_of(HEADER + DENSE), file_of(nested))
    assert data.classes == ["sky", "sun", "old sea"]
    assert data.edges == [("sky", "sun"), ("sun", "old sea")]
    assert data.y == [("sky",), ("sun", "old sea"), ()]
    assert Taxonomy.from_edges(data.edges, root="all").n_nodes == 4


@pytest.mark.parametrize("seed", range(4))
def test_mulan_against_the_matrix_that_was_written(seed):
    generator = np.random.default_rng(seed)
    n, n_features, n_labels = 30, 7, 5
    X = np.where(generator.random((n, n_features)) < 0.5, generator.standard_normal((n, n_features)), 0)
    Y = generator.random((n, n_labels)) < 0.3
    order = generator.permutation(n_features + n_labels)
    both = np.column_stack([X, Y])[:, order]
    names = [f"x{k}" for k in range(n_features)] + [f"l{k}" for k in range(n_labels)]
    header = "@relation r\n" + "".join(f"@attribute {names[k]} numeric\n" for k in order) + "@data\n"
    dense = "".join(",".join(repr(float(value)) for value in row) + "\n" for row in both)
    sparse = "".join(
        "{" + ", ".join(f"{k} {float(row[k])!r}" for k in generator.permutation(np.flatnonzero(row))) + "}\n"
        for row in both
    )
    xml = file_of("<labels>" + "".join(f'<label name="l{k}"/>' for k in range(n_labels)) + "</labels>").getvalue()
    features = [names[k] for k in order if k < n_features]
    for rows in (dense, sparse):
        data = read_mulan(file_of(header + rows), io.BytesIO(xml))
        found = data.X.toarray() if sp.issparse(data.X) else data.X
        assert data.feature_names == features
        np.testing.assert_array_equal(found, X[:, [int(name[1:]) for name in features]])
        assert data.y == [tuple(f"l{k}" for k in np.flatnonzero(row)) for row in Y]


@pytest.mark.parametrize(
    ("arff", "xml", "message"),
    [
        (HEADER + DENSE, "<labels><label name='sky'>", "line 1, column 27: expected XML, no element found"),
        (HEADER + DENSE, "", "line 1, column 1: expected XML, no element found"),
        (HEADER + DENSE, "<labels>\n<label/></labels>", "line 2, column 1: expected <label name=.*without a name"),
        (HEADER + DENSE, "<labels>\n<tag name='a'/></labels>", "line 2, column 1: expected <label>, found <tag>"),
        (HEADER + DENSE, "<label name='sky'/>", "expected <labels>, found <label>"),
        (HEADER + DENSE, "<labels></labels>", "expected at least one label"),
        (HEADER + DENSE, XML.format("<label name='a'/>\n<label name='a'/>"), "line 4, .*'a' again, after line 3"),
        (HEADER + DENSE, '<?xml version="1.0" encoding="klingon"?><labels/>', "encoding"),
        (HEADER + DENSE, '<!DOCTYPE l [<!ENTITY a "b">]><labels/>', "expected no declarations of entities, found 'a'"),
        (HEADER + DENSE, XML.format("<label name='moon'/>"), r"none for 'moon' \(<BytesIO>, line 3\)"),
        (HEADER + DENSE, XML.format("<label name='shape'/>"), r"line 5, column 1: expected the type \{0,1\}"),
        (HEADER + DENSE, XML.format("<label name='id'/>"), r"line 8, column 1: expected the type \{0,1\}"),
        (HEADER.replace("bright", "sky") + DENSE, NAMES, "line 7, column 1: .*'sky' again, after line 3"),
        (
            HEADER + DENSE.replace("d,0", "d,2"),
            NAMES,
            "line 15, column 1: expected 0 or 1 for the label 'sun', found 2",
        ),
        (
            HEADER + SPARSE.replace("6 1", "6 ?"),
            NAMES,
            "line 12, column 1: expected 0 or 1 for the label 'sun', found ?",
        ),
        (HEADER + DENSE.replace("0,-1", "2,-1"), NAMES, "line 15, column 1: expected one of 0, 1 for sky, found '2'"),
        (HEADER + "1,2\n", NAMES, "line 11, .*expected 7 fields"),
        (HEADER, NAMES, "expected at least one row after @data"),
        (HEADER.replace("string", "hierarchical 1,2") + DENSE, NAMES, "line 8, .*read_arff reads these"),
    ],
)
def test_bad_mulan(arff, xml, message):
    with pytest.raises(ValueError, match=message):
        read_mulan(file_of(arff), file_of(xml))


def test_files_of_the_other_kind_are_named():
    with pytest.raises(ValueError, match="labels that are attributes: see read_mulan"):
        read_arff(file_of(HEADER + DENSE))
    with pytest.raises(ValueError, match="nominal is 'x'"):
        read_mulan(file_of(HEADER + DENSE), file_of(NAMES), nominal="x")


# The extreme classification repository

SIZED = "3 6 10\n1,9 0:0.5 4:1\n 1:2\n3 \n"


def test_sizes_in_the_first_line():
    for source in (
        file_of(SIZED),
        file_of(SIZED.replace("\n", "\r\n")),
        InPieces(SIZED.encode()),
        file_of("\t" + SIZED),
    ):
        data = read_svmlight(source, multilabel=True)
        np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 0, 0, 1, 0], [0, 2, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]])
        assert data.y == [(1, 9), (), (3,)]
        assert data.n_labels == 10
        assert data.zero_based
    # Ids count from 0 even if the first feature does not occur.
    assert read_svmlight(file_of("1 2 3\n0 1:5\n"), multilabel=True).X.toarray().tolist() == [[0, 5]]
    assert read_svmlight(file_of("1 2 3\n0 1:5\n"), multilabel=True, n_features=4).X.shape == (1, 4)
    plain = read_svmlight(InPieces(b"1,2 1:1"), multilabel=True)
    assert plain.n_labels is None
    assert plain.y == [(1, 2)]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SIZED, {}, "line 1, column 1: .*pass multilabel=True"),
        ("4 6 10\n1 0:1\n", {"multilabel": True}, "expected 4 rows, as line 1 says, found 1"),
        ("1 6 10\n10 0:1\n", {"multilabel": True}, "row 1: expected labels from 0 to 9, as line 1 says, found 10"),
        ("2 6 10\n1 0:1\n1,-1 0:1\n", {"multilabel": True}, "row 2: .*found -1"),
        ("1 6 10\n1.5 0:1\n", {"multilabel": True}, "row 1: .*found 1.5"),
        ("1 6 10\n1 6:1\n", {"multilabel": True}, "line 2, column 3: expected ids from 0 to 5"),
        ("1 6 10\n1 x\n", {"multilabel": True}, "line 2"),
        ("1 6 10\n", {"multilabel": True}, "expected at least one row"),
        ("1 6\n1 1:1\n", {"multilabel": True}, "line 1"),
        ("1,2 1:1\n", {}, "line 1.*multilabel=True"),
    ],
)
def test_bad_sizes(text, options, message):
    with pytest.raises(ValueError, match=message):
        read_svmlight(file_of(text), **options)


def test_commands_read_several_labels(tmp_path, capsys):
    path = tmp_path / "data.arff"
    path.write_text(
        "@relation r\n@attribute a numeric\n@attribute c hierarchical 1,2\n@data\n1,1@2\n2,1\n", encoding="utf-8"
    )
    assert main(["train", str(path), "--variance", "100", "-o", str(tmp_path / "m.taxo")]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m.taxo"), str(path), "--threshold", "0.001"]) == 0
    assert capsys.readouterr().out.splitlines() == ["labels", "1;2", "1;2"]


# Real data


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "columns", "nodes", "several_parents"),
    [
        ("cellcycle_FUN", (1628, 848, 1281), 77, 499, 0),
        ("church_FUN", (1630, 844, 1281), 31, 499, 0),
        ("eisen_FUN", (1058, 529, 837), 79, 461, 0),
        ("gasch1_FUN", (1634, 846, 1284), 173, 499, 0),
        ("seq_FUN", (1701, 879, 1339), 529, 499, 0),
        ("cellcycle_GO", (1625, 848, 1278), 77, 4125, 1477),
        ("eisen_GO", (1055, 528, 835), 79, 3573, 1277),
        ("gasch1_GO", (1631, 846, 1281), 173, 4125, 1477),
        ("seq_GO", (1692, 876, 1332), 529, 4133, 1480),
    ],
)
def test_hierarchies_of_clus(data_file, name, rows, columns, nodes, several_parents):
    hierarchy = None
    for part, n in zip(("train", "valid", "test"), rows, strict=True):
        data = read_arff(data_file(f"hmc/{name}.{part}.arff.gz"))
        assert data.X.shape == (n, columns)
        assert hierarchy is None or hierarchy == data.edges
        hierarchy = data.edges
        assert len(data.classes) == nodes
        assert {label for labels in data.y for label in labels} <= set(data.classes)
        parents = [child for _, child in data.edges]
        assert len(set(parents)) == nodes
        assert sum(count > 1 for count in np.unique(parents, return_counts=True)[1]) == several_parents
    if several_parents == 0:
        assert set(Taxonomy.from_edges(hierarchy).names) == {*data.classes, "root"}


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "form", "rows", "columns", "labels", "mean"),
    [
        ("delicious", "delicious-{}", (12920, 3185), 500, 983, 19.02),
        ("Corel5k", "Corel5k-{}-sparse", (4500, 500), 499, 374, 3.52),
        ("yeast", "yeast-{}", (1500, 917), 103, 14, 4.24),
    ],
)
def test_sets_of_mulan(data_file, name, form, rows, columns, labels, mean):
    sizes = []
    for part, n in zip(("train", "test"), rows, strict=True):
        path = data_file(f"mulan/{form.format(part)}.arff.gz")
        data = read_mulan(path, data_file(f"mulan/{name}.xml"))
        assert data.X.shape == (n, columns)
        assert len(data.classes) == labels
        assert not data.edges
        sizes += map(len, data.y)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            attributes, body = re.split(r"@data\s*\n", file.read(), flags=re.IGNORECASE)
        names = re.findall(r"^@attribute\s+'?(.*?)'?\s+(?:numeric|\{)", attributes, re.MULTILINE)
        lines = [line for line in body.split("\n") if line]
        wanted = set(data.classes)
        for line, found in list(zip(lines, data.y, strict=True))[:200]:
            if line.startswith("{"):
                on = {int(pair.split()[0]) for pair in line.strip("{} \r").split(",")}
            else:
                on = {k for k, value in enumerate(line.split(",")) if names[k] in wanted and float(value) == 1}
            assert {names[k] for k in on} & wanted == set(found)
    assert np.mean(sizes) == pytest.approx(mean, abs=0.005)
