"""``train --labels``, ``evaluate`` and ``predict``: several labels in a cell."""

import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp
from goods import write_table
from sklearn.metrics import average_precision_score, f1_score, hamming_loss

import taxolearn
from taxolearn.cli import main
from taxolearn.features.missing import ColumnMeans

WORDS = {
    "food/apple": "red sweet crisp",
    "food/pear": "green juicy soft",
    "tool/saw": "iron teeth cut",
    "tool/hammer": "steel head nail",
    "gift": "ribbon paper box",
}
LABELS = list(WORDS)


def make_rows(count, separator=";", seed=0):
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        labels = [label for label in LABELS if generator.uniform() < 0.3]
        told = [label if generator.uniform() < 0.8 else generator.choice(LABELS) for label in labels]
        words = [word for label in told for word in generator.choice(WORDS[label].split(), 2)]
        text = " ".join([*words, *generator.choice(["a", "the", "some", "of"], 3)])
        rows.append({"text": text, "labels": separator.join(labels)})
    return rows


@pytest.fixture
def command(capsys):
    """A function that runs a command, and returns exit code, standard output and standard error."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def trained(command, tmp_path):
    data = write_table(tmp_path / "t.csv", make_rows(300))
    columns = ["--text", "text", "--labels", "labels"]
    code, out, err = command("train", data, *columns, "-o", tmp_path / "m.taxo", "--json")
    assert code == 0, err
    return tmp_path / "m.taxo", json.loads(out)


def test_from_table_to_answers(command, trained, tmp_path):
    model, figures = trained
    assert figures["classifier"] == "recursive"
    assert figures["rows"] == 300
    assert figures["classes"] == 7  # with food and tool
    assert figures["hold_out"]["micro_f1"] > 0.7
    assert any("no label at all" in remark for remark in figures["remarks"])
    rows = make_rows(80, seed=1)
    data = write_table(tmp_path / "new.csv", rows)
    code, out, _ = command("predict", model, data)
    assert code == 0
    answers = [row["labels"] for row in csv.DictReader(out.splitlines())]
    fitted = taxolearn.load(model)
    assert answers == [";".join(labels) for labels in fitted.predict({"text": [row["text"] for row in rows]})]
    code, out, _ = command("evaluate", model, data, "--json")
    assert code == 0
    found = json.loads(out)
    truth, answered = (
        np.array([[label in cell.split(";") for label in LABELS] for cell in cells])
        for cells in ([row["labels"] for row in rows], answers)
    )
    assert found["micro_f1"] == pytest.approx(f1_score(truth, answered, average="micro"))
    assert found["macro_f1"] == pytest.approx(f1_score(truth, answered, average="macro"))
    assert found["hamming_loss"] == pytest.approx(hamming_loss(truth, answered))
    assert found["subset_accuracy"] == pytest.approx((truth == answered).all(axis=1).mean())
    labels, _ = fitted[-1].top_classes(fitted[:-1].transform({"text": [row["text"] for row in rows]}), 3)
    hits = [[label in row["labels"].split(";") for label in top] for top, row in zip(labels, rows, strict=True)]
    assert found["precision_at_1"] == pytest.approx(np.mean(hits, axis=0)[0])
    assert found["precision_at_3"] == pytest.approx(np.mean(hits))


def test_other_answers(command, trained, tmp_path):
    model, _ = trained
    data = write_table(tmp_path / "new.csv", make_rows(20, seed=2))
    code, out, _ = command("predict", model, data, "--top", "2")
    assert code == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert list(rows[0]) == ["label_1", "probability_1", "label_2", "probability_2"]
    assert all(float(row["probability_1"]) >= float(row["probability_2"]) for row in rows)
    sizes = {}
    for options in (["--loss", "f1"], ["--loss", "hierarchical"], ["--threshold", "0.05"], ["--threshold", "0.95"]):
        code, out, _ = command("predict", model, data, *options)
        assert code == 0
        sizes[options[-1]] = sum(len(row["labels"].split(";")) for row in csv.DictReader(out.splitlines()))
    assert sizes["0.05"] > sizes["0.95"]
    for options, message in [
        (["--nodes"], "one label per row"),
        (["--loss", "taxo"], "choose hamming, f1"),
        (["--loss", "f1", "--top", "2"], "cannot be combined"),
    ]:
        code, _, err = command("predict", model, data, *options)
        assert code != 0
        assert message in err


def test_prune_and_inspect(command, trained, tmp_path):
    model, _ = trained
    data = write_table(tmp_path / "new.csv", make_rows(80, seed=2))
    code, out, err = command("prune", model, data, "-o", tmp_path / "p.taxo", "--rise", "0.05", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["after"]["log_loss"] <= found["before"]["log_loss"] * 1.05
    scores = json.loads(command("evaluate", tmp_path / "p.taxo", data, "--json")[1])
    assert scores["micro_f1"] == pytest.approx(found["after"]["micro_f1"])
    assert scores["log_loss"] == pytest.approx(found["after"]["log_loss"], rel=1e-5)
    small = taxolearn.load(tmp_path / "p.taxo")
    assert small[-1].coef_.nnz <= (1 - found["share"]) * small[-1].coef_.shape[0] * small[-1].coef_.shape[1]
    X = small[:-1].transform({"text": ["red sweet apple"]})
    assert small[-1].explain(X, ["food/apple"])[0][-1].node == "food/apple"
    assert command("report", tmp_path / "p.taxo", data, "-o", tmp_path / "r.html")[0] == 0
    for name in (model, tmp_path / "p.taxo"):
        code, out, _ = command("inspect", name, "--check")
        assert code == 0
        assert "micro F1" in out


def test_report(command, trained, tmp_path):
    model, _ = trained
    data = write_table(tmp_path / "new.csv", make_rows(80, seed=1))
    code, out, err = command("report", model, data, "-o", tmp_path / "r.html", "--id", "text", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 80
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    scores = json.loads(command("evaluate", model, data, "--json")[1])
    assert f"<dt>micro F1</dt><dd>{scores['micro_f1']:.1%}</dd>" in page
    assert f"<dt>nDCG of the first 3</dt><dd>{scores['ndcg_at_3']:.1%}</dd>" in page
    assert '"reasons":[{"node":' in page


def test_labels_that_training_has_not_seen(command, trained, tmp_path):
    model, _ = trained
    rows = [*make_rows(20, seed=3), {"text": "red", "labels": "food/apple;food/plum"}]
    code, out, _ = command("evaluate", model, write_table(tmp_path / "new.csv", rows), "--json")
    assert code == 0
    found = json.loads(out)
    assert found["unknown_labels"] == 1
    assert "'food/plum'" in found["remarks"][0]


def test_another_separator_and_a_flat_model(command, tmp_path):
    data = write_table(tmp_path / "t.csv", make_rows(120, " | "))
    columns = ["--text", "text", "--labels", "labels", "--label-separator", "|", "--flat"]
    code, out, _ = command("train", data, *columns, "-o", tmp_path / "m.taxo", "--json")
    assert code == 0
    assert json.loads(out)["classes"] == 5
    code, out, _ = command("predict", tmp_path / "m.taxo", data)
    assert any("|" in line for line in out.splitlines())


def test_labels_on_inner_nodes(command, tmp_path):
    rows = [row | {"labels": row["labels"].replace("tool/hammer", "tool")} for row in make_rows(150)]
    data = write_table(tmp_path / "t.csv", rows)
    code, out, err = command("train", data, "--text", "text", "--labels", "labels", "-o", tmp_path / "m.taxo", "--json")
    assert code == 0, err
    code, out, _ = command("predict", tmp_path / "m.taxo", data)
    cells = [row["labels"].split(";") for row in csv.DictReader(out.splitlines())]
    assert any("tool" in cell for cell in cells)
    assert not any({"tool", "tool/saw"} <= set(cell) for cell in cells)


def test_one_label_per_row(command, tmp_path):
    rows = [row | {"labels": row["labels"].split(";")[0]} for row in make_rows(150) if row["labels"]]
    data = write_table(tmp_path / "t.csv", rows)
    arguments = ["--text", "text", "--label", "labels", "--model", "recursive", "-o", tmp_path / "m.taxo", "--json"]
    code, out, err = command("train", data, *arguments)
    assert code == 0, err
    assert json.loads(out)["hold_out"]["accuracy"] > 0.5
    assert command("evaluate", tmp_path / "m.taxo", data)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--labels", "labels", "--label", "labels"], "give one of them"),
        (["--labels", "labels", "--model", "pool"], "--labels is for --model recursive or embedding"),
        (["--label", "labels", "--label-separator", ";"], "give both"),
        (["--labels", "text"], "both a label and an input"),
        (["--labels", "labels", "--kernel", "rbf"], "--kernel is for"),
        (["--label", "labels", "--loss", "hinge"], "--loss is for --model recursive"),
        (["--labels", "nothing"], "nothing"),
    ],
)
def test_wrong_arguments(command, tmp_path, arguments, message):
    data = write_table(tmp_path / "t.csv", make_rows(30))
    code, _, err = command("train", data, "--text", "text", *arguments, "-o", tmp_path / "m.taxo")
    assert code != 0
    assert message in err
    assert not (tmp_path / "m.taxo").exists()


def test_no_label_at_all(command, tmp_path):
    data = write_table(tmp_path / "t.csv", [{"text": "a", "labels": ""}] * 5)
    code, _, err = command("train", data, "--text", "text", "--labels", "labels", "-o", tmp_path / "m.taxo")
    assert code != 0
    assert "no row has a label" in err


def test_embedding_of_several_labels(command, tmp_path):
    data = write_table(tmp_path / "t.csv", make_rows(300))
    arguments = ["--text", "text", "--labels", "labels", "--components", "4", "-o", tmp_path / "m.taxo", "--json"]
    code, out, err = command("train", data, *arguments)
    assert code == 0, err
    assert json.loads(out)["classifier"] == "embedding"
    code, out, _ = command("evaluate", tmp_path / "m.taxo", data, "--json")
    assert code == 0
    assert json.loads(out)["micro_f1"] > 0.5
    code, out, _ = command("inspect", tmp_path / "m.taxo", "--json")
    assert json.loads(out)["embedding"]["components"] <= 4
    assert command("predict", tmp_path / "m.taxo", data, "-o", tmp_path / "p.csv")[0] == 0


# -- Other forms of labels --------------------------------------------------------------------------------------------


def test_several_columns_of_labels(command, tmp_path):
    """As if they were in one cell; an empty cell adds none, and a label of both columns counts once."""
    rows = make_rows(150)
    split = [
        {"text": row["text"], "first": labels[0] if labels else "", "rest": ";".join(labels)}
        for row in rows
        for labels in [row["labels"].split(";")]
    ]
    models = []
    for name, table, columns in (("a", rows, ["labels"]), ("b", split, ["first", "rest"])):
        data = write_table(tmp_path / f"{name}.csv", table)
        chosen = [part for column in columns for part in ("--labels", column)]
        code, _, err = command("train", data, "--text", "text", *chosen, "-o", tmp_path / f"{name}.taxo")
        assert code == 0, err
        models.append(taxolearn.load(tmp_path / f"{name}.taxo")[-1])
        assert command("evaluate", tmp_path / f"{name}.taxo", data)[0] == 0
    assert np.array_equal(models[0].coef_, models[1].coef_)


def test_a_label_that_occurs_once(command, tmp_path):
    rows = make_rows(150)
    rows[7]["labels"] = "food/quince"
    data = write_table(tmp_path / "t.csv", rows)
    code, out, err = command("train", data, "--text", "text", "--labels", "labels", "-o", tmp_path / "m.taxo", "--json")
    assert code == 0, err
    assert json.loads(out)["classes"] == 8


def write_matrix(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def random_sets(count, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3)).round(3)
    return X, X + generator.logistic(size=(count, 3)) * 0.3 > 0.5


@pytest.mark.parametrize("kind", ["svmlight", "mulan", "clus"])
def test_matrices_with_several_labels(kind, command, tmp_path):
    """Labels come with the file; answers are the same whichever file they came from."""
    X, has = random_sets(200)
    sets = [[name for name, is_there in zip(("1/2", "1/3", "4"), row, strict=True) if is_there] for row in has]
    options = []
    if kind == "svmlight":
        names = {"1/2": "2", "1/3": "3", "4": "4"}
        lines = [
            " ".join([",".join(names[label] for label in row), *(f"{k}:{value}" for k, value in enumerate(x, start=1))])
            for x, row in zip(X, sets, strict=True)
        ]
        data = write_matrix(tmp_path / "t.svm", lines)
    elif kind == "mulan":
        head = [
            "@relation r",
            *(f"@attribute x{k} numeric" for k in range(3)),
            *(f"@attribute {k} {{0,1}}" for k in "abc"),
        ]
        rows = [",".join([*map(str, x), *map(str, row.astype(int))]) for x, row in zip(X, has, strict=True)]
        data = write_matrix(tmp_path / "t.arff", [*head, "@data", *rows])
        names = "".join(f'<label name="{k}"></label>' for k in "abc")
        write_matrix(tmp_path / "t.xml", [f'<labels xmlns="http://mulan.sourceforge.net/labels">{names}</labels>'])
        options = ["--label-names", tmp_path / "t.xml"]
        code, _, err = command("train", data, "-o", tmp_path / "m.taxo")
        assert code != 0
        assert "--label-names" in err
    else:
        head = ["@relation r", *(f"@attribute x{k} numeric" for k in range(3)), "@attribute y hierarchical 1,1/2,1/3,4"]
        rows = [",".join([*map(str, x), "@".join(row) or "?"]) for x, row in zip(X, sets, strict=True)]
        data = write_matrix(tmp_path / "t.arff", [*head, "@data", *rows])
    code, out, err = command("train", data, *options, "-o", tmp_path / "m.taxo", "--json")
    assert code == 0, err
    figures = json.loads(out)
    assert figures["classifier"] == "recursive"
    assert figures["classes"] == (4 if kind == "clus" else 3)
    code, out, err = command("evaluate", tmp_path / "m.taxo", data, *options, "--json")
    assert code == 0, err
    assert json.loads(out)["micro_f1"] > 0.8
    code, out, _ = command("predict", tmp_path / "m.taxo", data, *options)
    assert code == 0
    expected = [";".join(map(str, row)) for row in taxolearn.load(tmp_path / "m.taxo").predict(X)]
    assert [row["labels"] for row in csv.DictReader(out.splitlines())] == expected
    code, _, err = command("train", data, *options, "--model", "pool", "-o", tmp_path / "p.taxo")
    assert code != 0
    assert "any number of labels" in err


def write_dag(path, count=200, seed=0):
    """An ARFF file of Clus in which the label "both" lies below two others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3)).round(3)
    has = np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0.5, (X[:, 0] > 0.5) & (X[:, 1] > 0.5), X[:, 2] > 1])
    covered = has[:, [2]] & np.array([True, True, False, False])  # what "both" implies is not written
    names = ["one", "two", "both", "other"]
    graph = "root/one,root/two,one/both,two/both,root/other"
    head = ["@relation r", *(f"@attribute x{k} numeric" for k in range(3)), f"@attribute y hierarchical {graph}"]
    sets = [[name for name, there in zip(names, row, strict=True) if there] for row in has & ~covered]
    rows = [",".join([*map(str, x), "@".join(row) or "?"]) for x, row in zip(X, sets, strict=True)]
    return write_matrix(path, [*head, "@data", *rows]), X, has


def test_a_graph_of_labels_in_a_file(command, tmp_path):
    data, X, has = write_dag(tmp_path / "t.arff")
    code, out, err = command("train", data, "-o", tmp_path / "m.taxo", "--json")
    assert code == 0, err
    figures = json.loads(out)
    assert (figures["classes"], figures["edges"]) == (4, 2)
    assert any("labels make a graph of 4 labels and 2 edges" in remark for remark in figures["remarks"])
    model = taxolearn.load(tmp_path / "m.taxo")
    assert model[-1].graph_.parents("both") == ["one", "two"]
    proba = dict(zip(model[-1].classes_.tolist(), model.predict_proba(X).T, strict=True))
    assert (proba["both"] <= np.minimum(proba["one"], proba["two"])).all()
    code, out, err = command("evaluate", tmp_path / "m.taxo", data, "--json")
    assert code == 0, err
    found = json.loads(out)
    order = [["one", "two", "both", "other"].index(name) for name in model[-1].classes_.tolist()]
    truth = has[:, order]  # a row with "both" has what is above it
    assert found["micro_f1"] == pytest.approx(f1_score(truth, model.predict_proba(X) > 0.5, average="micro"))
    pooled = average_precision_score(truth.ravel(), model.predict_proba(X).ravel())
    assert found["pooled_area"] == pytest.approx(pooled, abs=2e-3)
    code, _, err = command("report", tmp_path / "m.taxo", data, "-o", tmp_path / "r.html")
    assert code == 0, err
    assert '"level":2' in (tmp_path / "r.html").read_text(encoding="utf-8").replace(" ", "")
    code, out, err = command("train", data, "--flat", "-o", tmp_path / "f.taxo", "--json")
    assert code == 0, err
    assert taxolearn.load(tmp_path / "f.taxo")[-1].graph_ is None
    assert not any("graph" in remark for remark in json.loads(out)["remarks"])


def test_learned_thresholds(command, trained, tmp_path):
    model, _ = trained
    rows = make_rows(60, seed=4)
    data = write_table(tmp_path / "new.csv", rows)
    code, out, err = command("predict", model, data, "--thresholds", "s-cut")
    assert code == 0, err
    fitted = taxolearn.load(model)
    X = fitted[:-1].transform({"text": [row["text"] for row in rows]})
    expected = [";".join(row) for row in fitted[-1].decide(X, thresholds="s-cut")]
    assert [row["labels"] for row in csv.DictReader(out.splitlines())] == expected
    code, _, err = command("predict", model, data, "--thresholds", "s-cut", "--top", "2")
    assert code != 0
    assert "cannot be combined" in err
    table = write_table(tmp_path / "t.csv", make_rows(100))
    given = ["--text", "text", "--labels", "labels", "--variance", "1", "-o", tmp_path / "v.taxo"]
    assert command("train", table, *given)[0] == 0
    code, _, err = command("predict", tmp_path / "v.taxo", data, "--thresholds", "s-cut")
    assert code != 0
    assert "trained with --variance" in err


def test_every_loss_has_its_own_tolerance(command, tmp_path):
    data = write_table(tmp_path / "t.csv", make_rows(60))
    for loss, expected in (("hinge", None), ("squared_hinge", None), ("logistic", 1e-5)):
        given = ["--text", "text", "--labels", "labels", "--variance", "1", "--loss", loss]
        assert command("train", data, *given, "-o", tmp_path / "m.taxo")[0] == 0
        assert taxolearn.load(tmp_path / "m.taxo")[-1].tol == expected


def test_missing_values_of_a_matrix(command, tmp_path):
    head = ["@relation r", "@attribute height numeric", "@attribute y hierarchical 1/2,3", "@data"]
    data = write_matrix(tmp_path / "t.arff", [*head, "1,1/2@3", "?,3", "4,1/2"])
    whole = write_matrix(tmp_path / "w.arff", [*head, "1,1/2@3", "2,3", "4,1/2"])
    code, _, err = command("train", whole, "--variance", "1", "-o", tmp_path / "w.taxo")
    assert code == 0, err
    code, _, err = command("predict", tmp_path / "w.taxo", data)
    assert code != 0
    assert "row 2, 'height': the value is missing, but none was in training" in err
    code, out, err = command("train", data, "--variance", "1", "-o", tmp_path / "m.taxo", "--json")
    assert code == 0, err
    assert any("mean of their column" in remark for remark in json.loads(out)["remarks"])
    model = taxolearn.load(tmp_path / "m.taxo")
    assert model[0].mean_.tolist() == [2.5]
    np.testing.assert_array_equal(model.predict_proba([[np.nan]]), model.predict_proba([[2.5]]))
    for name in (data, whole):
        assert command("predict", tmp_path / "m.taxo", name)[0] == 0
        assert command("evaluate", tmp_path / "m.taxo", name)[0] == 0
        assert command("report", tmp_path / "m.taxo", name, "-o", tmp_path / "r.html")[0] == 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_means_of_columns(kind):
    X = np.array([[1.0, np.nan, 0.0], [3.0, np.nan, 0.0], [np.nan, np.nan, 6.0]])
    filled = ColumnMeans().fit(kind(X)).transform(kind(X))
    filled = filled.toarray() if sp.issparse(filled) else filled
    np.testing.assert_array_equal(filled, [[1, 0, 0], [3, 0, 0], [2, 0, 6]])


def test_a_variance_needs_no_learning(command, tmp_path):
    data = write_matrix(tmp_path / "t.svm", ["1,5 1:1 2:3", " 1:2 3:1", "5 2:1"])
    code, _, err = command("train", data, "-o", tmp_path / "m.taxo")
    assert code != 0
    assert "--variance" in err
    code, _, err = command("train", data, "--variance", 2, "-o", tmp_path / "m.taxo")
    assert code == 0, err
    assert taxolearn.load(tmp_path / "m.taxo")[-1].C_ == 2.0
