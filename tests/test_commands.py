"""The commands on files, run in this process: from a table to answers, and what goes wrong on the way."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from goods import WORDS, run, write_table
from sklearn.metrics import top_k_accuracy_score

import taxolearn
from taxolearn.cli import main
from taxolearn.kernels.argument import start_kernel
from taxolearn.report.scores import RunningScores


def make_rows(count, seed=0):
    generator = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        label = list(WORDS)[k % len(WORDS)]
        text = " ".join(generator.choice(WORDS[label].split(), 4))
        rows.append({"id": str(k), "text": f'{text}, "no {k}"\nübrig', "size": f"{k % 7}", "label": label})
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    write_table(folder / "train.csv", make_rows(100))
    write_table(folder / "test.csv", make_rows(40, seed=1))
    model = folder / "model.taxo"
    arguments = ["--text", "text", "--label", "label", "--variance", "10", "--threads", "1"]
    assert main(["train", str(folder / "train.csv"), *arguments, "-o", str(model)]) == 0
    return folder


def table_of(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def test_train_learns_and_tells(tmp_path, folder, capsys):
    model = tmp_path / "m.taxo"
    code, out, err = run(
        capsys, "train", folder / "train.csv", "--text", "text", "--numeric", "size", "--label", "label", "-o", model,
        "--json", "--threads", 1,
    )  # fmt: skip
    figures = json.loads(out)
    assert (code, err) == (0, "")
    assert (figures["rows"], figures["classes"], figures["nodes"]) == (100, 5, 8)
    assert figures["classifier"] == "pool"
    assert figures["cv_log_loss"] < 0.5
    assert {"softmax", "independent"} <= set(figures["experts"])
    assert figures["hold_out"]["rows"] == 10
    assert figures["hold_out"]["accuracy"] > 0.5
    assert figures["size_bytes"] == model.stat().st_size
    loaded = taxolearn.load(model)
    assert loaded.predict({"text": ["cider and perry, red apple"], "size": [3.0]}).tolist() == ["fruit/apple"]
    assert taxolearn.read_report(model)["report"]["input"]["text"] == ["text"]


def test_train_prints_a_table(tmp_path, folder, capsys):
    code, out, _ = run(
        capsys, "train", folder / "train.csv", "--text", "text", "--label", "label", "--variance", 1,
        "-o", tmp_path / "m.taxo",
    )  # fmt: skip
    assert code == 0
    assert "training rows" in out
    assert out.isascii()


def test_evaluate(folder, capsys):
    code, out, err = run(capsys, "evaluate", folder / "model.taxo", folder / "test.csv", "--json", "--chunk", 7)
    figures = json.loads(out)
    assert (code, err) == (0, "")
    model = taxolearn.load(folder / "model.taxo")
    rows = make_rows(40, seed=1)
    table, truth = {"text": [row["text"] for row in rows]}, np.array([row["label"] for row in rows])
    proba = model.predict_proba(table)
    columns = np.searchsorted(model.classes_, truth)
    assert figures["rows"] == 40
    assert figures["accuracy"] == pytest.approx(np.mean(model.predict(table) == truth))
    assert figures["log_loss"] == pytest.approx(-np.log(proba[np.arange(40), columns]).mean())
    assert figures["top5_accuracy"] == 1.0
    assert 0 <= figures["taxo_loss_decided"] <= figures["taxo_loss"] + 0.2
    code, out, _ = run(capsys, "evaluate", folder / "model.taxo", folder / "test.csv")
    assert code == 0
    assert "accuracy of the parent" in out


def test_evaluate_unknown_classes(tmp_path, folder, capsys):
    rows = [*make_rows(9, seed=1), {"id": "x", "text": "what", "size": "1", "label": "new"}]
    path = write_table(tmp_path / "t.csv", rows)
    code, out, err = run(capsys, "evaluate", folder / "model.taxo", path)
    assert code == 0
    assert "1 row has a class that the model does not know, or an inner node for a label, such as 'new'; " in err
    code, out, _ = run(capsys, "evaluate", folder / "model.taxo", path, "--json")
    assert json.loads(out)["rows_of_unknown_classes"] == 1
    assert json.loads(out)["accuracy"] <= 0.9


def test_predict(folder, capsys):
    model = taxolearn.load(folder / "model.taxo")
    rows = make_rows(40, seed=1)
    table = {"text": [row["text"] for row in rows]}
    proba = model.predict_proba(table)
    code, out, err = run(capsys, "predict", folder / "model.taxo", folder / "test.csv", "--keep", "id", "--chunk", 7)
    assert (code, err) == (0, "")
    answers = table_of(out)
    assert list(answers[0]) == ["id", "label", "probability"]
    assert [row["id"] for row in answers] == [row["id"] for row in rows]
    assert [row["label"] for row in answers] == model.predict(table).tolist()
    np.testing.assert_allclose([float(row["probability"]) for row in answers], proba.max(axis=1), rtol=1e-5)


def test_predict_top(folder, capsys):
    _, out, _ = run(capsys, "predict", folder / "model.taxo", folder / "test.csv", "--top", 3)
    answers = table_of(out)
    assert list(answers[0]) == [f"{name}_{k}" for k in (1, 2, 3) for name in ("label", "probability")]
    for row in answers:
        values = [float(row[f"probability_{k}"]) for k in (1, 2, 3)]
        assert values == sorted(values, reverse=True)
        assert len({row[f"label_{k}"] for k in (1, 2, 3)}) == 3


def test_predict_nodes_and_losses(folder, capsys):
    model = taxolearn.load(folder / "model.taxo")
    table = {"text": [row["text"] for row in make_rows(40, seed=1)]}
    X = model[:-1].transform(table)
    _, out, _ = run(capsys, "predict", folder / "model.taxo", folder / "test.csv", "--nodes", "--loss", "taxo")
    answers = table_of(out)
    assert [row["label"] for row in answers] == model[-1].decide(X, "taxo").tolist()
    for row in answers:
        path = row["label"].split("/")
        assert row["node_1"] == path[0]
        assert row["node_2"] == (row["label"] if len(path) == 2 else "")
        assert float(row["node_probability_1"]) >= float(row["probability"]) - 1e-5
    _, out, _ = run(capsys, "predict", folder / "model.taxo", folder / "test.csv", "--threshold", 0.8)
    answers = table_of(out)
    assert [row["label"] for row in answers] == model[-1].decide(X, confidence=0.8).tolist()
    assert all(float(row["probability"]) >= 0.8 for row in answers)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl", "out.csv.gz", "out.jsonl.gz", "out"])
def test_predict_to_files(name, tmp_path, folder, capsys):
    path = tmp_path / name
    code, out, err = run(capsys, "predict", folder / "model.taxo", folder / "test.csv", "-o", path, "--keep", "text")
    assert (code, err) == (0, "")
    assert f"Answers written to {path}" in out.replace("\n", "")
    assert "40" in out
    content = path.read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    if "jsonl" in name:
        rows = [json.loads(line) for line in text.splitlines()]
        assert isinstance(rows[0]["probability"], float)
    else:
        rows = table_of(text, "\t" if "tsv" in name else ",")
    assert [row["text"] for row in rows] == [row["text"] for row in make_rows(40, seed=1)]
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_predict_to_devices(folder, capsys):
    code, out, err = run(capsys, "predict", folder / "model.taxo", folder / "test.csv", "-o", "/dev/null", "--json")
    assert (code, json.loads(out)["rows"], err) == (0, 40, "")
    code, out, err = run(capsys, "predict", folder / "model.taxo", folder / "test.csv", "-o", "/dev/full")
    one_line(code, out, err, 5)
    assert "/dev/full: cannot be written" in err
    code, out, err = run(capsys, "report", folder / "model.taxo", folder / "test.csv", "-o", "/dev/full")
    one_line(code, out, err, 5)
    for device in ("/dev/null", "/dev/full"):
        assert Path(device).is_char_device()


def test_semicolons_and_quotes(tmp_path, folder, capsys):
    _, expected, _ = run(capsys, "predict", folder / "model.taxo", folder / "test.csv", "--keep", "text")
    path = write_table(tmp_path / "t.csv", make_rows(40, seed=1), ";")
    assert run(capsys, "predict", folder / "model.taxo", path, "--keep", "text")[1] == expected
    path = write_table(tmp_path / "t.tsv", make_rows(40, seed=1), "~")
    arguments = ["--keep", "text", "--delimiter", "~"]
    assert run(capsys, "predict", folder / "model.taxo", path, *arguments)[1] == expected
    path.write_text("text\tlabel\n" + '5" saw blade of "iron\ttool/saw\n' * 3, encoding="utf-8")
    code, out, _ = run(capsys, "evaluate", folder / "model.taxo", path, "--quote", "none", "--json")
    assert (code, json.loads(out)["rows"], json.loads(out)["accuracy"]) == (0, 3, 1.0)


def test_report_in_figures(tmp_path, folder, capsys):
    page = tmp_path / "r.html"
    code, out, err = run(capsys, "report", folder / "model.taxo", folder / "test.csv", "-o", page, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"report": str(page), "size_bytes": page.stat().st_size, "rows": 40, "remarks": []}


def test_bad_numbers_name_their_place(tmp_path, capsys):
    rows = make_rows(30)
    rows[20]["size"] = "a lot"
    path = write_table(tmp_path / "t.csv", rows)
    code, out, err = run(capsys, "train", path, "--numeric", "size", "--label", "label", "-o", tmp_path / "m")
    one_line(code, out, err, 3)
    line = 2 + 2 * 20  # every text has two lines
    assert f"{path}, line {line}, column 'size': the value is 'a lot', expected a number" in err


def test_other_formats_give_the_same(tmp_path, folder, capsys):
    _, expected, _ = run(capsys, "predict", folder / "model.taxo", folder / "test.csv")
    rows = make_rows(40, seed=1)
    write_table(tmp_path / "t.tsv", rows, "\t")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((folder / "test.csv").read_bytes()))
    (tmp_path / "latin").write_bytes((folder / "test.csv").read_bytes().decode().encode("latin-1"))
    for arguments in (["t.tsv"], ["t.jsonl"], ["t.csv.gz"], ["latin", "--format", "csv", "--encoding", "latin-1"]):
        code, out, _ = run(capsys, "predict", folder / "model.taxo", tmp_path / arguments[0], *arguments[1:])
        assert (code, out) == (0, expected)


def test_pipes(folder):
    """Standard input and output of a real process, and a reader that has had enough."""
    command = [sys.executable, "-m", "taxolearn.cli", "predict", str(folder / "model.taxo"), "-", "--format", "csv"]
    done = subprocess.run(command, input=(folder / "test.csv").read_bytes(), capture_output=True, check=True)
    assert len(table_of(done.stdout.decode())) == 40
    many = (folder / "test.csv").read_bytes() + b"1,apple,2,fruit/apple\n" * 20_000
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        _, err = process.communicate(many)
    assert process.returncode == 141
    assert err == b""


def test_output_is_utf8_whatever_the_terminal(folder):
    command = [sys.executable, "-m", "taxolearn.cli", "predict", str(folder / "model.taxo"), str(folder / "test.csv")]
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([*command, "--keep", "text"], capture_output=True, check=True, env=environment)
    assert "übrig" in done.stdout.decode("utf-8")
    assert done.stderr == b""


def test_many_rows(tmp_path, capsys):
    """More than one chunk, in training too."""
    data = write_table(tmp_path / "t.csv", make_rows(12_000))
    model = tmp_path / "m.taxo"
    arguments = ["--numeric", "size", "--label", "label", "--variance", 1, "--tol", 0.1]
    code, out, _ = run(capsys, "train", data, *arguments, "-o", model, "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 12_000
    code, out, _ = run(capsys, "predict", model, data)
    assert len(table_of(out)) == 12_000


def test_levels_and_taxonomy_files(tmp_path, capsys):
    rows = [row | dict(zip(("top", "sub"), (*row["label"].split("/"), "")[:2], strict=True)) for row in make_rows(50)]
    data = write_table(tmp_path / "t.csv", rows)
    common = ["train", data, "--text", "text", "--variance", 10, "--threads", 1, "--json", "-o", tmp_path / "m.taxo"]
    code, out, _ = run(capsys, *common, "--label", "top", "--label", "sub")
    assert code == 0
    assert json.loads(out)["nodes"] == 8
    assert taxolearn.load(tmp_path / "m.taxo").classes_.tolist() == sorted(WORDS)
    code, out, _ = run(capsys, *common, "--label", "label", "--flat")
    assert json.loads(out)["nodes"] is None
    (tmp_path / "tree.txt").write_text("".join(f"all\t{label}\n" for label in [*WORDS, "other"]))
    code, out, _ = run(capsys, *common, "--label", "label", "--taxonomy", tmp_path / "tree.txt")
    assert json.loads(out)["classes"] == 6
    (tmp_path / "tree.txt").write_text("".join(f"all\t{label}\n" for label in list(WORDS)[1:]))
    code, out, err = run(capsys, *common, "--label", "label", "--taxonomy", tmp_path / "tree.txt")
    assert code == 3
    assert "t.csv, line 2: the label 'fruit/apple' is not in" in err


def test_labels_on_inner_nodes(tmp_path, capsys):
    rows = make_rows(60)
    for row in rows[::3]:
        row["label"] = row["label"].split("/")[0]
    data = write_table(tmp_path / "t.csv", rows)
    tops = dict.fromkeys(label.split("/")[0] for label in WORDS)
    edges = [("all", top) for top in tops] + [(label.split("/")[0], label) for label in WORDS if "/" in label]
    (tmp_path / "tree.txt").write_text("".join(f"{parent}\t{child}\n" for parent, child in edges))
    common = ["train", data, "--text", "text", "--label", "label", "--variance", 10, "-o", tmp_path / "m.taxo"]
    code, out, _ = run(capsys, *common, "--taxonomy", tmp_path / "tree.txt", "--json")
    inner = sum("/" not in row["label"] and row["label"] not in WORDS for row in rows)
    assert code == 0
    assert inner > 0
    assert taxolearn.load(tmp_path / "m.taxo").classes_.tolist() == sorted(WORDS)
    note = f"{inner} rows end at an inner node of the tree: each is taken for one of the classes below it"
    assert any(remark.startswith(note) for remark in json.loads(out)["remarks"])
    rows[1]["label"] = "all"
    write_table(tmp_path / "t.csv", rows)
    code, out, _ = run(capsys, *common, "--taxonomy", tmp_path / "tree.txt", "--json")
    assert any("1 rows have the root of the tree" in remark for remark in json.loads(out)["remarks"])
    rows[1]["label"] = rows[2]["label"]
    write_table(tmp_path / "t.csv", rows)
    code, _, err = run(capsys, "evaluate", tmp_path / "m.taxo", data)
    assert code == 0
    assert f"{inner} rows have classes that the model does not know, or inner nodes for labels, such as " in err


def test_matrices(tmp_path, capsys):
    generator = np.random.default_rng(0)
    for name in ("train", "test"):
        lines = []
        for k in range(60):
            values = generator.normal(size=4) + 3 * np.eye(4)[k % 3]
            lines.append(f"{k % 3} " + " ".join(f"{j + 1}:{value:.3f}" for j, value in enumerate(values)))
        (tmp_path / f"{name}.svm").write_text("\n".join(lines) + "\n")
    model = tmp_path / "m.taxo"
    assert run(capsys, "train", tmp_path / "train.svm", "-o", model, "--kernel", "rbf", "--time-limit", 5)[0] == 0
    code, out, _ = run(capsys, "evaluate", model, tmp_path / "test.svm", "--json")
    assert code == 0
    assert json.loads(out)["accuracy"] > 0.8
    code, out, _ = run(capsys, "predict", model, tmp_path / "test.svm")
    assert len(table_of(out)) == 60
    code, _, err = run(capsys, "predict", model, tmp_path / "test.svm", "--keep", "id")
    assert code == 2
    page = tmp_path / "r.html"
    assert run(capsys, "report", model, tmp_path / "test.svm", "-o", page)[0] == 0
    found = data_of(page)
    assert found["id_name"] == "row"
    assert [document[:2] for document in found["documents"][:3]] == [["1", ""], ["2", ""], ["3", ""]]
    code, _, err = run(capsys, "report", model, tmp_path / "test.svm", "-o", page, "--id", "id")
    assert (code, err.count("\n")) == (2, 1)
    assert "--id is for tables" in err
    (tmp_path / "wide.svm").write_text("1 9:1\n")
    code, _, err = run(capsys, "predict", model, tmp_path / "wide.svm")
    assert code == 3
    assert "wide.svm" in err


def test_calibration_error_is_that_of_the_metrics(folder, tmp_path, capsys):
    """With the same bins, from the command as from Python."""
    rows = make_rows(40, seed=1)
    for k in range(0, 40, 3):
        rows[k]["label"] = "water"
    path = write_table(tmp_path / "t.csv", rows)
    model = taxolearn.load(folder / "model.taxo")
    proba = model.predict_proba({"text": [row["text"] for row in rows]})
    truth = [row["label"] for row in rows]
    expected = taxolearn.metrics.expected_calibration_error(truth, proba, classes=model.classes_)
    figures = json.loads(run(capsys, "evaluate", folder / "model.taxo", path, "--json")[1])
    assert figures["calibration_error"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "matern", "rational_quadratic", "polynomial"])
def test_a_given_variance_leaves_other_parameters_to_the_data(kernel, tmp_path, capsys):
    """The length scale, or scale, is the start value of learning, whatever the units of the inputs are."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(60, 4)) * 1000, np.arange(60) % 3
    lines = [
        f"{k} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(x))
        for k, x in zip(y, X.tolist(), strict=True)
    ]
    (tmp_path / "t.svm").write_text("\n".join(lines) + "\n")
    arguments = ["--kernel", kernel, "--variance", 3, "--dtype", "float64", "-o", tmp_path / "m.taxo"]
    assert run(capsys, "train", tmp_path / "t.svm", *arguments)[0] == 0
    found = taxolearn.load(tmp_path / "m.taxo")[-1].hyperparameters_.kernel
    start = start_kernel(kernel, X)
    assert found.variance == 3
    name = "scale" if kernel == "polynomial" else "length_scale"
    assert getattr(found, name) == pytest.approx(getattr(start, name))
    assert not 0.1 < getattr(found, name) < 10


def test_report(folder, tmp_path, capsys):
    page = tmp_path / "r.html"
    code, out, err = run(capsys, "report", folder / "model.taxo", folder / "test.csv", "-o", page, "--title", "Ünder")
    assert (code, err) == (0, "")
    assert "taxo-loss" in out
    assert "<h1>Ünder</h1>" in page.read_text(encoding="utf-8")
    code, out, err = run(capsys, "report", folder / "model.taxo", folder / "test.csv", "-o", tmp_path / "no" / "r.html")
    assert code == 5
    assert err.count("\n") == 1


def data_of(page):
    """What the page knows."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL).group(1))


def test_report_names_rows(folder, tmp_path, capsys):
    """By a column, or by their lines in the file; texts of two lines count as two."""
    page = tmp_path / "r.html"
    arguments = ("report", folder / "model.taxo", folder / "test.csv", "-o", page)
    assert run(capsys, *arguments, "--id", "id", "--chunk", 7)[0] == 0
    found = data_of(page)
    assert found["id_name"] == "id"
    assert [document[0] for document in found["documents"]] == [str(k) for k in range(40)]
    assert [document[1].split("no ")[1] for document in found["documents"]] == [f'{k}" übrig' for k in range(40)]
    assert run(capsys, *arguments)[0] == 0
    found = data_of(page)
    assert found["id_name"] == "line"
    lines = (folder / "test.csv").read_text(encoding="utf-8").splitlines()
    for k, document in enumerate(found["documents"]):
        assert lines[int(document[0]) - 1].startswith(f"{k},")


def test_report_can_be_reproduced(folder, tmp_path, capsys, monkeypatch):
    page = tmp_path / "r.html"
    arguments = ("report", folder / "model.taxo", folder / "test.csv", "-o", page)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert run(capsys, *arguments)[0] == 0
    assert "on <time>2001-09-09</time>" in page.read_text(encoding="utf-8")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "now")
    code, _, err = run(capsys, *arguments)
    assert (code, err) == (2, "taxolearn: SOURCE_DATE_EPOCH must be a number of seconds since 1970, got 'now'\n")


def test_inspect(folder, capsys):
    code, out, _ = run(capsys, "inspect", folder / "model.taxo")
    assert code == 0
    assert "format version" in out
    code, out, _ = run(capsys, "inspect", folder / "model.taxo", "--json")
    assert json.loads(out)["classes"] == 5
    assert "Linear" in json.loads(out)["hyperparameters"]["kernel"]


# -- What goes wrong --------------------------------------------------------------------------------------------------


def one_line(code, out, err, expected):
    assert code == expected
    assert out == ""
    assert err.startswith("taxolearn: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "train.csv", "--text", "text", "-o", "x"], 2, "--label is needed"),
        (["train", "train.csv", "--label", "label", "-o", "x"], 2, "give columns to learn from"),
        (["train", "train.csv", "--label", "label", "--text", "label", "-o", "x"], 2, "both a label and an input"),
        (["train", "train.csv", "--label", "nolabel", "--text", "text", "-o", "x"], 3, "no column 'nolabel'"),
        (["train", "train.csv", "--label", "label", "--numeric", "text", "-o", "x"], 3,
         "train.csv, line 2, column 'text': the value is"),
        (["train", "none.csv", "--label", "label", "--text", "text", "-o", "x"], 5, "none.csv: cannot be read"),
        (["train", ".", "--format", "csv", "--label", "label", "--text", "text", "-o", "x"], 5, "cannot be read"),
        (["train", "train.csv", "--label", "label", "--text", "text", "-o", "no/x"], 5, "no folder 'no'"),
        (["train", "train.csv", "--label", "label", "--text", "text", "-o", "."], 5, "is a folder"),
        (["train", "train.csv", "--label", "id", "--text", "text", "--variance", "1", "-o", "x", "--taxonomy", "none"],
         5, "none: cannot be read"),
        (["train", "model.taxo", "--label", "id", "--text", "text", "-o", "x"], 2, "the format is not clear"),
        (["train", "model.taxo", "--format", "csv", "--label", "id", "--text", "text", "-o", "x"], 3, ", line"),
        (["predict", "model.taxo", "none.csv"], 5, "none.csv: cannot be read"),
        (["predict", "none.taxo", "test.csv"], 5, "taxolearn: none.taxo: cannot be read"),
        (["predict", "test.csv", "test.csv"], 4, "not a model file"),
        (["predict", "model.taxo", "test.csv", "--keep", "nothing"], 3, "no column 'nothing'"),
        (["predict", "model.taxo", "test.csv", "--keep", "label"], 2, "--keep label"),
        (["predict", "model.taxo", "test.csv", "--top", "2", "--loss", "taxo"], 2, "--top"),
        (["predict", "model.taxo", "test.csv", "--top", "2", "--threshold", "0.5"], 2, "--threshold"),
        (["predict", "model.taxo", "test.csv", "-o", "no/x.csv"], 5, "no folder 'no'"),
        (["predict", "model.taxo", "test.csv", "--json"], 2, "-o"),
        (["predict", "model.taxo", "test.csv", "-o", "test.csv"], 2, "would be replaced"),
        (["predict", "model.taxo", "test.csv", "-o", "./model.taxo"], 2, "would be replaced"),
        (["report", "model.taxo", "test.csv", "-o", "test.csv"], 2, "would be replaced"),
        (["report", "model.taxo", "test.csv", "--id", "nothing", "-o", "x"], 3, "no column 'nothing'"),
        (["prune", "model.taxo", "test.csv", "-o", "model.taxo"], 2, "would be replaced"),
        (["train", "train.csv", "--text", "text", "--label", "label", "-o", "train.csv"], 2, "would be replaced"),
        (["predict", "model.taxo", "test.csv", "-o", "x.xlsx"], 2, "--output-format"),
        (["predict", "model.taxo", "test.csv", "--threshold", "80%"], 2, "must be a number, got 80%"),
        (["train", "train.csv", "--text", "text", "--label", "id", "--model", "softmax", "-o", "x"], 3, "--variance"),
        (["predict", "model.taxo", "-", "--format", "parquet"], 2, "not read from the standard input"),
        (["train", "-", "--format", "npz", "-o", "x"], 2, "not read from the standard input"),
        (["predict", "model.taxo", "test.csv", "--delimiter", ";"], 3, "there seem to be commas"),
        (["predict", "model.taxo", "test.csv", "--delimiter", '"'], 3, "both the delimiter and the quote"),
        (["report", "model.taxo", "test.csv", "--quote", "none", "-o", "x"], 3, "test.csv, line 2: found"),
        (["predict", "model.taxo", "test.csv", "--format", "svmlight"], 2, "the model reads csv"),
        (["evaluate", "model.taxo", "test.csv", "--encoding", "klingon"], 3, "klingon"),
        (["inspect", "test.csv"], 4, "not a model file"),
        (["inspect", "none"], 5, "none"),
    ],
)  # fmt: skip
def test_errors_are_one_line(arguments, code, message, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    got, out, err = run(capsys, *arguments)
    one_line(got, out, err, code)
    assert message in err
    assert not (folder / "x").exists()


def damaged_tables():
    """200 files that are not what they should be."""
    generator = np.random.default_rng(0)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, ["id", "text", "size", "label"])
    writer.writeheader()
    writer.writerows(make_rows(30))
    good = buffer.getvalue().encode()
    lines = good.split(b"\r\n")
    for k in range(40):  # cut gzip
        packed = gzip.compress(good)
        yield f"cut {k}", "t.csv.gz", packed[: 1 + int(generator.integers(2, len(packed) - 1))]
    for k in range(30):  # flipped bits of gzip: the checksum tells
        packed = bytearray(gzip.compress(good))
        packed[int(generator.integers(12, len(packed)))] ^= 1 << int(generator.integers(8))
        yield f"flip {k}", "t.csv.gz", bytes(packed)
    for k in range(30):  # NUL bytes
        place = int(generator.integers(len(good)))
        yield f"nul {k}", "t.csv", good[:place] + b"\0" + good[place:]
    for k in range(30):  # other encodings
        place = int(generator.integers(len(good)))
        while good[place : place + 1] >= b"\x80" or good[place - 1 : place] >= b"\x80":
            place = int(generator.integers(len(good)))
        yield (
            f"byte {k}",
            "t.csv",
            good[:place] + bytes([int(generator.choice([0xFF, 0xFE, 0xC0, 0xE4]))]) + good[place:],
        )
    for k in range(30):  # a quote that is opened and never closed
        row = int(generator.integers(1, len(lines) - 1))
        yield f"quote {k}", "t.csv", b"\r\n".join([*lines[:row], b'7,"open,1,water', *lines[row:]])
    for k in range(20):  # a field too much or too little
        row = int(generator.integers(1, len(lines) - 1))
        extra = [b"7,a,b,1,water", b"7,a", b"7,a,1", b",,,,,"][k % 4]
        yield f"fields {k}", "t.csv", b"\r\n".join([*lines[:row], extra, *lines[row:]])
    for k in range(20):  # JSON that is none
        rows = [json.dumps(row) for row in make_rows(10)]
        place = int(generator.integers(10))
        rows[place] = [
            "{",
            "[1]",
            '"x"',
            rows[place][:-1],
            '{"text": 1}',
            "nul",
            "{}",
            "1e999",
            '{"text": {}, "label": 1}',
        ][k % 9]
        yield f"json {k}", "t.jsonl", "\n".join(rows).encode()


DAMAGED = list(damaged_tables())


def test_there_are_many_damaged_files():
    assert len(DAMAGED) == 200


@pytest.mark.parametrize(("name", "content"), [each[1:] for each in DAMAGED], ids=[each[0] for each in DAMAGED])
def test_damaged_tables(name, content, tmp_path, folder, capsys):
    path = tmp_path / name
    path.write_bytes(content)
    for arguments in (
        ["train", path, "--text", "text", "--label", "label", "--variance", 1, "-o", tmp_path / "m.taxo"],
        ["evaluate", folder / "model.taxo", path],
    ):
        code, out, err = run(capsys, *arguments)
        one_line(code, out, err, 3)
        assert str(path) in err
    code, _, err = run(capsys, "predict", folder / "model.taxo", path, "-o", tmp_path / "out.csv", "--keep", "label")
    assert code in (2, 3)
    assert err.count("\n") == 1
    assert {each.name for each in tmp_path.iterdir()} == {name}


def test_damaged_models(folder, tmp_path, capsys):
    whole = (folder / "model.taxo").read_bytes()
    generator = np.random.default_rng(0)
    path = tmp_path / "m.taxo"
    for _ in range(30):
        changed = bytearray(whole)
        changed[int(generator.integers(len(whole)))] ^= 1 << int(generator.integers(8))
        for content in (changed, whole[: int(generator.integers(len(whole)))]):
            path.write_bytes(content)
            code, out, err = run(capsys, "predict", path, folder / "test.csv")
            one_line(code, out, err, 4)


def test_decimal_commas_are_told(tmp_path, capsys):
    path = write_table(tmp_path / "t.csv", [{"size": "2,52", "label": "a"}, {"size": "3", "label": "b"}], ";")
    code, out, err = run(capsys, "train", path, "--numeric", "size", "--label", "label", "-o", tmp_path / "m")
    one_line(code, out, err, 3)
    assert "the value is '2,52', expected a number; write it with a point" in err


def test_paths_that_share_a_grandparent_make_a_tree(tmp_path, capsys):
    labels = ["Food/Fruit/Apple", "Food/Vegetable/Carrot", "Tool/Hand/Saw"]
    rows = [{"text": f"{label.lower()} {k}", "label": label} for label in labels for k in range(4)]
    path, model = write_table(tmp_path / "t.csv", rows), tmp_path / "m.taxo"
    arguments = ["--text", "text", "--label", "label", "--variance", 1, "-o", model]
    assert run(capsys, "train", path, *arguments)[0] == 0
    assert taxolearn.load(model)[-1].taxonomy_.height == 3


def test_no_time_to_learn_is_told(folder, tmp_path, capsys):
    arguments = [
        "--text",
        "text",
        "--label",
        "label",
        "-o",
        tmp_path / "m.taxo",
        "--time-limit",
        "1e-9",
        "--model",
        "softmax",
    ]
    code, out, err = run(capsys, "train", folder / "train.csv", *arguments)
    assert code == 0
    assert "hyperparameters" not in out
    assert "there was no time to learn, so hyperparameters have their start values" in err


def test_labels_that_cannot_be(tmp_path, capsys):
    for rows, message in (
        ([{"text": "a", "label": ""}], "no row has a label"),
        ([{"text": "a", "label": "x"}] * 3, "one class only, 'x'"),
    ):
        path = write_table(tmp_path / "t.csv", rows)
        code, out, err = run(capsys, "train", path, "--text", "text", "--label", "label", "-o", tmp_path / "m")
        one_line(code, out, err, 3)
        assert message in err
    path = write_table(tmp_path / "t.csv", [{"text": "a", "l1": "", "l2": "x"}])
    code, out, err = run(
        capsys, "train", path, "--text", "text", "--label", "l1", "--label", "l2", "-o", tmp_path / "m"
    )
    one_line(code, out, err, 3)
    assert "'l1' is empty above" in err


def test_scores_of_many_classes():
    """The right class among the first five, against scikit-learn."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(60, 3)), np.array([f"c{k % 12:02d}" for k in range(60)])
    model = taxolearn.KernelLogisticClassifier(tuning=None).fit(X, y)
    scores = RunningScores(model)
    log_proba = model.predict_log_proba(X)
    scores.add(y, log_proba)
    expected = top_k_accuracy_score(y, log_proba, k=5, labels=model.classes_)
    assert 0.2 < expected < 0.95
    assert scores.summary()["top5_accuracy"] == pytest.approx(expected)
