"""The commands on model files of every kind: pools, top-down classifiers, naive Bayes and single logistic models."""

import csv
import io
import json
import re

import numpy as np
import pytest
from goods import WORDS, run, write_table
from sklearn.pipeline import Pipeline

import taxolearn
from taxolearn import (
    CentroidClassifier,
    KernelLogisticClassifier,
    NaiveBayesClassifier,
    PoolClassifier,
    Taxonomy,
    TopDownClassifier,
)
from taxolearn.features import TableFeatures
from taxolearn.kernels import RBF

TREE = Taxonomy.from_labels(list(WORDS))
HELD_OUT = {
    "rows": 50,
    "log_loss": 0.4321,
    "accuracy": 0.8765,
    "baseline_log_loss": 1.6,
    "baseline_accuracy": 0.2,
}
KINDS = {
    "pool": lambda: PoolClassifier(taxonomy=TREE),
    "flat pool": PoolClassifier,
    "top-down": lambda: TopDownClassifier(TREE),
    "flat top-down": TopDownClassifier,
    "naive Bayes": lambda: NaiveBayesClassifier(taxonomy=TREE),
    "centroid": lambda: CentroidClassifier(taxonomy=TREE),
    "logistic": lambda: KernelLogisticClassifier(taxonomy=TREE, tuning=None),
}


def make_rows(count, seed):
    generator = np.random.default_rng(seed)
    every = " ".join(WORDS.values()).split()
    labels = [list(WORDS)[k % len(WORDS)] for k in range(count)]
    texts = [" ".join([*generator.choice(WORDS[label].split(), 2), *generator.choice(every, 3)]) for label in labels]
    return texts, labels


def write_labelled(path, texts, labels):
    return write_table(path, [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)])


def write_model(path, classifier, **training):
    texts, labels = make_rows(150, 0)
    model = Pipeline([("features", TableFeatures("text")), ("classifier", classifier)]).fit({"text": texts}, labels)
    schema = {"text": ["text"], "numeric": [], "label": ["label"], "separator": "/", "n_features": None}
    stored = {"data": "train.csv", "rows": 150, "hold_out": HELD_OUT, "remarks": [], **training}
    taxolearn.save(model, path, report={"input": schema, "training": stored})
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    write_labelled(folder / "train.csv", *make_rows(150, 0))
    write_labelled(folder / "test.csv", *make_rows(100, 1))
    for name, make in KINDS.items():
        write_model(folder / f"{name}.taxo", make())
    return folder


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def data_of(page):
    """What the page knows."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL).group(1))


# -- Every command on every kind --------------------------------------------------------------------------------------


def test_predict_and_evaluate(kind, folder, capsys):
    path = folder / f"{kind}.taxo"
    model, (texts, labels) = taxolearn.load(path), make_rows(100, 1)
    proba = model.predict_proba({"text": texts})
    code, out, err = run(capsys, "predict", path, folder / "test.csv", "--top", 2, "--threads", 1)
    assert (code, err) == (0, "")
    answers = list(csv.DictReader(io.StringIO(out)))
    assert [row["label_1"] for row in answers] == model.classes_[proba.argmax(axis=1)].tolist()
    np.testing.assert_allclose([float(row["probability_1"]) for row in answers], proba.max(axis=1), rtol=1e-5)
    code, out, err = run(capsys, "evaluate", path, folder / "test.csv", "--json")
    scores = json.loads(out)
    assert (code, err, scores["remarks"]) == (0, "", [])
    assert scores["accuracy"] == pytest.approx(np.mean(model.predict({"text": texts}) == np.array(labels)))
    places = np.searchsorted(model.classes_, labels)
    assert scores["log_loss"] == pytest.approx(-np.log(proba[np.arange(100), places]).mean(), rel=1e-6)
    assert scores["log_loss"] < scores["baseline_log_loss"]


def test_answers_along_the_tree(folder, capsys):
    for kind in ("pool", "top-down", "naive Bayes", "centroid"):
        code, out, err = run(capsys, "predict", folder / f"{kind}.taxo", folder / "test.csv", "--nodes")
        assert (code, err) == (0, "")
        for row in csv.DictReader(io.StringIO(out)):
            assert row["node_1"] == row["label"].split("/")[0]
            assert float(row["node_probability_1"]) >= float(row["probability"]) - 1e-5
        code, out, _ = run(capsys, "predict", folder / f"{kind}.taxo", folder / "test.csv", "--loss", "taxo")
        model = taxolearn.load(folder / f"{kind}.taxo")
        expected = model[-1].decide(model[:-1].transform({"text": make_rows(100, 1)[0]}), "taxo")
        assert [row["label"] for row in csv.DictReader(io.StringIO(out))] == expected.tolist()


def test_report_of_every_kind(kind, folder, tmp_path, capsys):
    page = tmp_path / "r.html"
    code, _, err = run(capsys, "report", folder / f"{kind}.taxo", folder / "test.csv", "-o", page, "--chunk", 30)
    assert (code, err) == (0, "")
    found = data_of(page)
    assert found["rows"] == 100
    assert found["model"]["sentences"][0].startswith("The model is ")
    assert found["mistakes"]
    for each in found["mistakes"]:  # all these have weights of features
        assert [len(reason["words"]) > 0 for reason in each["reasons"]] == [True, True]
    text = page.read_text(encoding="utf-8")
    assert '<section id="model"' in text
    assert 'id="expert-table"' in text if "pool" in kind else 'id="expert-table"' not in text


def test_prune_of_every_kind(kind, folder, tmp_path, capsys):
    path, small = folder / f"{kind}.taxo", tmp_path / "small.taxo"
    arguments = ("prune", path, folder / "test.csv", "-o", small, "--share", 0.9, "--json")
    code, out, err = run(capsys, *arguments)
    figures = json.loads(out)
    assert (code, err) == (0, "")
    assert figures["size_bytes"] < figures["size_before"]
    code, out, _ = run(capsys, "evaluate", small, folder / "test.csv", "--json")
    assert json.loads(out)["log_loss"] == pytest.approx(figures["after"]["log_loss"], rel=1e-5)
    assert run(capsys, "inspect", small, "--check")[0] == 0


def test_inspect_of_every_kind(kind, folder, capsys):
    code, out, err = run(capsys, "inspect", folder / f"{kind}.taxo")
    assert (code, err) == (0, "")
    assert "checksums" not in out
    shown = re.sub(r"\s+", " ", out)
    assert "trained on train.csv training rows 150" in shown
    assert "held-out rows 50 accuracy 87.65% (most frequent class: 20.00%)" in shown
    assert "log loss 0.4321 (class frequencies: 1.6)" in shown
    code, out, _ = run(capsys, "inspect", folder / f"{kind}.taxo", "--json")
    assert json.loads(out)["report"]["training"]["hold_out"] == HELD_OUT


# -- Pools ------------------------------------------------------------------------------------------------------------


def test_inspect_lists_experts(folder, capsys):
    model = taxolearn.load(folder / "pool.taxo")[-1]
    shown = re.sub(r"\s+", " ", run(capsys, "inspect", folder / "pool.taxo")[1])
    assert len(model.table_) == 5
    for row in model.table_:
        weight = f"weight {row.weight:.3f}" if row.weight else "not used"
        assert f"expert {row.name} {weight}, log loss {row.log_loss:.4g}, accuracy {row.accuracy:.2%}" in shown
    found = json.loads(run(capsys, "inspect", folder / "pool.taxo", "--json")[1])
    assert [row["name"] for row in found["experts"]] == [row.name for row in model.table_]
    assert found["hyperparameters"]["weights"] == model.weights_


def test_inspect_names_levels(folder, capsys):
    values = taxolearn.load(folder / "top-down.taxo")[-1].hyperparameters_
    shown = re.sub(r"\s+", " ", run(capsys, "inspect", folder / "top-down.taxo")[1])
    assert f"variances, from the root down {', '.join(f'{value:,.4g}' for value in values.variances)} " in shown


def test_experts_without_scores_are_json(tmp_path, capsys):
    """One row per class: nothing was held out, and nobody knows how good the experts are."""
    model = PoolClassifier().fit(np.eye(3), ["a", "b", "c"])
    taxolearn.save(model, tmp_path / "m.taxo")
    found = json.loads(run(capsys, "inspect", tmp_path / "m.taxo", "--json")[1])
    assert {row["log_loss"] for row in found["experts"]} == {None}
    assert "NaN" not in json.dumps(found)
    shown = re.sub(r"\s+", " ", run(capsys, "inspect", tmp_path / "m.taxo")[1])
    assert "expert softmax weight 0." in shown


def test_threads_reach_the_experts(tmp_path, folder, capsys, monkeypatch):
    path = write_model(tmp_path / "m.taxo", PoolClassifier([KernelLogisticClassifier(taxonomy=TREE, tuning=None)]))
    seen = []
    output = KernelLogisticClassifier._output

    def watched(self, X, kind):
        seen.append(self.n_threads)
        return output(self, X, kind)

    monkeypatch.setattr(KernelLogisticClassifier, "_output", watched)
    run(capsys, "evaluate", path, folder / "test.csv", "--threads", 1)
    assert seen
    assert set(seen) == {1}


def test_prune_refuses_what_has_no_weights(tmp_path, folder, capsys):
    path = write_model(tmp_path / "m.taxo", PoolClassifier([KernelLogisticClassifier(RBF(1.0), tuning=None)]))
    code, out, err = run(capsys, "prune", path, folder / "test.csv", "-o", tmp_path / "small.taxo")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "not linear" in err
    page = tmp_path / "r.html"
    assert run(capsys, "report", path, folder / "test.csv", "-o", page)[0] == 0
    mistakes = data_of(page)["mistakes"]
    assert mistakes
    assert all(each["reasons"] for each in mistakes)
    assert "A feature counts by how much the answer would change" in page.read_text(encoding="utf-8")


def test_a_pool_that_knows_frequencies_only(tmp_path, folder, capsys):
    """Texts that are all the same, and labels that are numbers."""
    labels = [1, 2, 2, 3] * 20
    model = Pipeline([("features", TableFeatures("text")), ("classifier", PoolClassifier())])
    model.fit({"text": ["same"] * 80}, np.array(labels))
    assert list(model[-1].weights_) == ["class frequencies"]
    schema = {"text": ["text"], "numeric": [], "label": ["label"], "separator": "/", "n_features": None}
    taxolearn.save(model, tmp_path / "m.taxo", report={"input": schema, "training": {}})
    path, page = write_labelled(tmp_path / "t.csv", ["same", "other"] * 40, labels), tmp_path / "r.html"
    assert run(capsys, "evaluate", tmp_path / "m.taxo", path)[0::2] == (0, "")
    assert run(capsys, "report", tmp_path / "m.taxo", path, "-o", page)[0::2] == (0, "")
    found = data_of(page)
    assert found["model"]["sentences"][0].startswith("The model gives the same answer for every row")
    assert "not used" in page.read_text(encoding="utf-8")
    code, out, _ = run(capsys, "predict", tmp_path / "m.taxo", path)
    assert (code, {row["label"] for row in csv.DictReader(io.StringIO(out))}) == (0, {"2"})
    shown = re.sub(r"\s+", " ", run(capsys, "inspect", tmp_path / "m.taxo", "--check")[1])
    assert "expert class frequencies weight 1.000, log loss" in shown
    code, out, err = run(capsys, "prune", tmp_path / "m.taxo", path, "-o", tmp_path / "small.taxo")
    assert (code, out, err.count("\n")) == (2, "", 1)


# -- The rows of the training, and labels that nobody knows -----------------------------------------------------------

TRAINED_ON = "these are the rows the model was trained on; scores on them are too good"


def test_rows_of_the_training_are_noticed(folder, tmp_path, capsys):
    page = tmp_path / "r.html"
    for command in (("evaluate",), ("report", "-o", page), ("prune", "-o", tmp_path / "small.taxo", "--share", 0.9)):
        arguments = (command[0], folder / "pool.taxo", folder / "train.csv", *command[1:])
        code, _, err = run(capsys, *arguments)
        assert (code, err) == (0, f"note: {TRAINED_ON}\n")
        assert json.loads(run(capsys, *arguments, "--json")[1])["remarks"] == [TRAINED_ON]
    assert f'<p class="warning" role="alert">T{TRAINED_ON[1:]}.</p>' in page.read_text(encoding="utf-8")
    shorter = write_labelled(tmp_path / "train.csv", *make_rows(149, 0))
    renamed = write_labelled(tmp_path / "other.csv", *make_rows(150, 0))
    for path in (shorter, renamed, folder / "test.csv"):
        assert run(capsys, "evaluate", folder / "pool.taxo", path)[2] == ""
        assert run(capsys, "report", folder / "pool.taxo", path, "-o", page)[2] == ""
        assert 'class="warning"' not in page.read_text(encoding="utf-8")


def test_models_that_say_nothing_about_their_training(folder, tmp_path, capsys):
    path = tmp_path / "m.taxo"
    report = taxolearn.read_report(folder / "pool.taxo")["report"]
    model = taxolearn.load(folder / "pool.taxo")
    for training in (None, {}, {"rows": "many", "data": 7}, [1]):
        taxolearn.save(model, path, report={"input": report["input"], "training": training})
        assert run(capsys, "evaluate", path, folder / "train.csv")[0::2] == (0, "")
        assert run(capsys, "report", path, folder / "train.csv", "-o", tmp_path / "r.html")[0::2] == (0, "")
        assert run(capsys, "inspect", path)[0::2] == (0, "")


def test_unknown_labels_are_named(folder, tmp_path, capsys):
    texts, labels = make_rows(100, 1)
    path = write_labelled(tmp_path / "t.csv", texts, [*labels[:3], *["fruit/lemon"] * 97])
    arguments = ("prune", folder / "pool.taxo", path, "-o", tmp_path / "small.taxo", "--share", 0.6)
    code, _, err = run(capsys, *arguments)
    found = "97 rows have classes that the model does not know, or inner nodes for labels, such as 'fruit/lemon'; "
    assert code == 0
    assert err.startswith(f"note: {found}log loss and calibration error are those of the other 3\n")
    code, _, err = run(capsys, "evaluate", folder / "pool.taxo", path)
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith(f"note: {found}such rows count as errors")
    path = write_labelled(tmp_path / "t.csv", texts, ["fruit"] * 100)
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "no row has a class that the model knows, so nothing can be compared; the first label is 'fruit'" in err


# -- Damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pool", "naive Bayes", "centroid"])
def test_check_finds_a_flipped_bit(kind, folder, tmp_path, capsys):
    whole = (folder / f"{kind}.taxo").read_bytes()
    path = tmp_path / "m.taxo"
    generator = np.random.default_rng(0)
    path.write_bytes(whole)
    code, out, err = run(capsys, "inspect", path, "--check")
    assert (code, err) == (0, "")
    assert re.search(r"checksums\s+right", out)
    assert json.loads(run(capsys, "inspect", path, "--check", "--json")[1])["checksums"] == "right"
    for place in generator.integers(len(whole), size=40).tolist():
        changed = bytearray(whole)
        changed[place] ^= 1 << int(generator.integers(8))
        path.write_bytes(changed)
        code, out, err = run(capsys, "inspect", path, "--check")
        assert (code, out, err.count("\n")) == (4, "", 1)
        assert str(path) in err
