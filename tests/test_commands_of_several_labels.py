"""``train --labels``, ``evaluate`` and ``predict``: several labels in a cell."""

import csv
import json

import numpy as np
import pytest
from goods import write_table
from sklearn.metrics import f1_score, hamming_loss

import taxolearn
from taxolearn.cli import main

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


def test_commands_for_one_label_say_so(command, trained, tmp_path):
    model, _ = trained
    data = write_table(tmp_path / "new.csv", make_rows(20, seed=2))
    for arguments in (["report", model, data, "-o", tmp_path / "r.html"], ["prune", model, data, "-o", tmp_path / "p"]):
        code, _, err = command(*arguments)
        assert code != 0
        assert "one label per row" in err
    assert command("inspect", model)[0] == 0


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
        (["--labels", "labels", "--variance", "2"], "--variance is for"),
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
