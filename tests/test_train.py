"""``taxolearn train``: the models, the rows held out, and what is made of labels."""

import json
import signal
import subprocess
import sys
import textwrap
import time

import goods
import numpy as np
import pytest
from goods import write_table
from sklearn.metrics import log_loss

import taxolearn
from taxolearn.cli import main
from taxolearn.cli.inputs import tidy_path
from taxolearn.estimators import top_down_tuning
from taxolearn.tuning.cross_validation import held_out_rows

WORDS = goods.WORDS | {"water/sea": goods.WORDS["water"]}  # so that all classes have the same depth
del WORDS["water"]


def make_rows(count, seed=0):
    """Texts that mostly tell the class."""
    generator = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        label = list(WORDS)[k % len(WORDS)]
        told = label if generator.random() < 0.8 else list(WORDS)[generator.integers(len(WORDS))]
        text = " ".join(generator.choice(WORDS[told].split(), 4))
        rows.append({"text": text, "size": f"{len(label) + generator.normal():.2f}", "label": label})
    return rows


@pytest.fixture
def train(tmp_path, capsys):
    """A function that trains on rows, and returns exit code, figures and standard error."""

    def run(rows, *arguments, text="text", label="label"):
        data = write_table(tmp_path / "t.csv", rows) if isinstance(rows, list) else rows
        columns = [] if text is None else ["--text", text]
        columns += [] if label is None else ["--label", label]
        capsys.readouterr()
        code = main(["train", str(data), *columns, "-o", str(tmp_path / "m.taxo"), "--json", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if code == 0 else None, printed.err

    return run


def labelled(labels, repeats=4):
    """Rows with these labels, which the texts tell."""
    return [{"text": f"w{k} v{k}", "label": label} for k, label in enumerate(labels) for _ in range(repeats)]


# -- Models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("pool", taxolearn.PoolClassifier),
        ("softmax", taxolearn.KernelLogisticClassifier),
        ("independent", taxolearn.KernelLogisticClassifier),
        ("top-down", taxolearn.TopDownClassifier),
        ("embedding", taxolearn.LabelEmbeddingClassifier),
        ("naive-bayes", taxolearn.NaiveBayesClassifier),
        ("centroid", taxolearn.CentroidClassifier),
    ],
)
def test_every_model_is_trained_scored_and_saved(model, kind, train, tmp_path):
    rows = make_rows(200)
    options = [] if model in ("naive-bayes", "centroid") else ["--folds", 2]
    code, figures, err = train(rows, "--model", model, *options)
    assert (code, err, figures["classifier"]) == (0, "", model)
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert type(loaded[-1]) is kind
    assert loaded[-1].taxonomy_.n_nodes == 9
    scores = figures["hold_out"]
    assert scores["rows"] == 20
    assert 0.5 < scores["accuracy"] <= 1
    low, high = scores["accuracy_interval"]
    assert low < scores["accuracy"] <= high
    assert scores["log_loss"] < scores["baseline_log_loss"] == pytest.approx(np.log(5))
    assert scores["baseline_accuracy"] == pytest.approx(0.2)
    stored = taxolearn.read_report(tmp_path / "m.taxo")["report"]["training"]
    assert (stored["data"], stored["rows"], stored["hold_out"]["log_loss"]) == ("t.csv", 200, scores["log_loss"])
    other = make_rows(100, seed=1)
    table = {"text": [row["text"] for row in other]}
    assert np.mean(loaded.predict(table) == [row["label"] for row in other]) > 0.6


def test_the_pool_tells_its_experts(train, tmp_path, capsys):
    _, figures, _ = train(make_rows(200))
    pool = taxolearn.load(tmp_path / "m.taxo")[-1]
    assert list(figures["experts"]) == [row.name for row in pool.table_]
    assert {"naive Bayes", "centroid", "softmax", "independent"} <= set(figures["experts"])
    for row in pool.table_:
        assert figures["experts"][row.name] == {"weight": row.weight, "cv_log_loss": row.log_loss}
    assert figures["cv_log_loss"] == pool.cv_log_loss_
    arguments = ["--text", "text", "--label", "label", "-o", str(tmp_path / "m.taxo")]
    assert main(["train", str(tmp_path / "t.csv"), *arguments]) == 0
    out = capsys.readouterr().out
    assert "naive Bayes" in out
    assert "log loss 0." in out
    assert "evaluation" not in out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "pool"),
        (["--folds", "2"], "pool"),
        (["--time-limit", "60"], "pool"),
        (["--kernel", "rbf"], "softmax"),
        (["--variance", "3"], "softmax"),
        (["--evaluations", "1"], "softmax"),
        (["--samples", "50"], "softmax"),
    ],
)
def test_options_of_one_model_imply_it(options, expected, train):
    _, figures, _ = train(make_rows(60), *options)
    assert figures["classifier"] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "pool", "--kernel", "rbf"], "--kernel is for --model softmax or independent, not pool"),
        (
            ["--model", "top-down", "--variance", "1"],
            "--variance is for --model softmax or independent or recursive, not",
        ),
        (["--model", "pool", "--checkpoint", "c"], "--checkpoint is for"),
        (["--model", "naive-bayes", "--folds", "3"], "--folds is for --model pool or softmax or independent or top"),
        (["--model", "naive-bayes", "--time-limit", "3"], "--time-limit is for"),
        (
            ["--model", "centroid", "--tol", "1e-3"],
            "--tol is for --model pool or softmax or independent or top-down or recursive or embedding, not",
        ),
        (["--model", "naive-bayes", "--numeric", "size"], "counts words, so it takes no --numeric"),
        (["--model", "top-down", "--flat"], "--model top-down needs a tree"),
        (["--hold-out", "1"], "from 0 to below 1, got 1"),
        (["--hold-out", "-0.1"], "from 0 to below 1, got -0.1"),
        (["--hold-out", "some"], "got some"),
    ],
)
def test_options_that_do_not_fit(options, message, train, tmp_path):
    code, _, err = train(make_rows(20), *options)
    assert code == 2
    assert err.count("\n") == 1
    assert message in err
    assert not (tmp_path / "m.taxo").exists()


def test_the_nearest_centre_takes_numbers(train, tmp_path):
    generator = np.random.default_rng(0)
    points = [(k % 3, *(2 * np.eye(3)[k % 3] + generator.normal(size=3))) for k in range(150)]
    rows = [{"label": f"c{k}", "u": u, "v": v, "w": w} for k, u, v, w in points]
    numeric = [part for name in "uvw" for part in ("--numeric", name)]
    code, figures, err = train(rows, "--model", "centroid", *numeric, text=None)
    assert (code, err) == (0, "")
    assert isinstance(taxolearn.load(tmp_path / "m.taxo")[-1].centroids_, np.ndarray)
    assert figures["hold_out"]["log_loss"] < figures["hold_out"]["baseline_log_loss"]


def test_messages_are_without_jargon(train):
    _, figures, _ = train(make_rows(200), "--evaluations", 1)
    (note,) = [remark for remark in figures["remarks"] if "hyperparameters" in remark]
    assert "stopped early to save time: a longer search may gain a little" in note
    assert "max_evaluations" not in note


# -- Rows held out ----------------------------------------------------------------------------------------------------


def test_held_out_rows_are_a_share_of_every_class():
    labels = np.random.default_rng(0).permutation(np.repeat([f"c{k}" for k in range(40)], np.arange(1, 41)))
    out = held_out_rows(labels, 0.1, seed=3)
    assert out.sum() == pytest.approx(0.1 * len(labels), abs=2)
    for label, count in zip(*np.unique(labels, return_counts=True), strict=True):
        assert abs(int(out[labels == label].sum()) - 0.1 * count) < 1
    np.testing.assert_array_equal(held_out_rows(labels, 0.1, seed=3), out)
    assert not np.array_equal(held_out_rows(labels, 0.1, seed=4), out)
    # Not the first rows of the file, or the first classes.
    assert out[: len(out) // 2].any()
    assert out[len(out) // 2 :].any()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95, 0.999])
def test_no_class_loses_all_its_rows(share):
    labels = np.repeat(np.arange(30), [1] * 10 + [2] * 10 + [5] * 10)
    for seed in range(20):
        out = held_out_rows(labels, share, seed)
        assert out.any()
        assert set(labels[~out].tolist()) == set(range(30))
    only = np.arange(len(labels)) % 2 == 0
    assert not (held_out_rows(labels, share, 0, only) & ~only).any()


def test_figures_are_those_of_a_model_that_never_saw_the_rows(train, tmp_path):
    """Trained by hand on the other rows, with the settings that were learned, the same scores come out."""
    rows = make_rows(150)
    _, figures, _ = train(rows, "--variance", 5, "--seed", 7, "--hold-out", 0.3, "--tol", 1e-8)
    labels = np.array([row["label"] for row in rows])
    out = held_out_rows(labels, 0.3, 7)
    scores = figures["hold_out"]
    assert scores["rows"] == out.sum() == 45
    part, rest = ([rows[k]["text"] for k in np.flatnonzero(which)] for which in (~out, out))
    features = taxolearn.features.TableFeatures()
    kernel = taxolearn.kernels.Linear(variance=5.0)
    tree = taxolearn.Taxonomy.from_labels(labels)
    model = taxolearn.KernelLogisticClassifier(kernel, taxonomy=tree, tuning=None, tol=1e-8)
    model.fit(features.fit_transform(part), labels[~out])
    proba = model.predict_proba(features.transform(rest))
    assert scores["accuracy"] == pytest.approx(np.mean(model.classes_[proba.argmax(axis=1)] == labels[out]))
    assert scores["log_loss"] == pytest.approx(log_loss(labels[out], proba, labels=model.classes_), rel=1e-5)
    # What is saved has seen all rows.
    texts = [row["text"] for row in rows]
    model.fit(features.fit_transform(texts), labels)
    loaded = taxolearn.load(tmp_path / "m.taxo")
    np.testing.assert_allclose(loaded.predict_proba(texts), model.predict_proba(features.transform(texts)), atol=1e-5)


@pytest.mark.parametrize("model", ["pool", "softmax", "top-down", "naive-bayes", "centroid"])
def test_the_last_fit_learns_nothing_anew(model, train, monkeypatch, tmp_path):
    """It has the settings of the first, so nothing is tuned a second time."""
    rows = make_rows(120)
    kinds = (taxolearn.PoolClassifier, taxolearn.KernelLogisticClassifier, taxolearn.TopDownClassifier)
    seen = []
    for kind in (*kinds, taxolearn.NaiveBayesClassifier, taxolearn.CentroidClassifier):

        def recorded(self, *arguments, fit=kind.fit, **options):
            seen.append((type(self), self.get_params(deep=False)))
            return fit(self, *arguments, **options)

        monkeypatch.setattr(kind, "fit", recorded)
    assert train(rows, "--model", model)[0] == 0
    kind, parameters = seen[-1]
    if kind is taxolearn.NaiveBayesClassifier:
        assert parameters["smoothing"] is not None
    elif kind is taxolearn.CentroidClassifier:
        assert parameters["temperature"] is not None
    else:
        assert kind in (taxolearn.KernelLogisticClassifier, taxolearn.TopDownClassifier)
        assert parameters["tuning"] is None
    assert sum(each is taxolearn.PoolClassifier for each, _ in seen) == (model == "pool")
    loaded = taxolearn.load(tmp_path / "m.taxo")[-1]
    if model == "softmax":
        assert loaded.cv_result_.best is not None


def test_few_rows_are_all_learned_from(train):
    _, figures, _ = train(make_rows(99), "--variance", 1)
    assert figures["hold_out"] is None
    assert any(
        "no rows were held out to score the model, since there are fewer than 100" in x for x in figures["remarks"]
    )
    _, figures, _ = train(make_rows(99), "--variance", 1, "--hold-out", 0.2)
    assert figures["hold_out"]["rows"] == pytest.approx(20, abs=1)
    _, figures, _ = train(make_rows(120), "--variance", 1, "--hold-out", 0)
    assert figures["hold_out"] is None
    assert not any("held out" in remark for remark in figures["remarks"])


def test_bad_cells_are_found_before_learning_begins(train):
    """Whether the row is held out or not."""
    rows = make_rows(100)
    out = held_out_rows(np.array([row["label"] for row in rows]), 0.1, 0)
    bad = int(np.flatnonzero(out)[0])
    rows[bad]["size"] = "large"
    code, _, err = train(rows, "--numeric", "size", text=None)
    assert code == 3
    assert f"line {bad + 2}, column 'size': the value is 'large'" in err


# -- Labels -----------------------------------------------------------------------------------------------------------

PATHS = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "z"), ("b", "w")]


@pytest.mark.parametrize("separator", ["/", ">", " > ", "->", "::", "|", " / "])
def test_separators_are_found(separator, train, tmp_path):
    labels = [separator.join(path) for path in PATHS]
    _, figures, _ = train(labelled(labels), "--variance", 1)
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert loaded[-1].taxonomy_.height == 2
    assert loaded.classes_.tolist() == sorted(labels)  # as they were written
    note = f'labels are paths separated by "{separator.strip()}": 2 levels, 8 nodes'
    assert any(remark.startswith(note) for remark in figures["remarks"])


def test_dots_between_words(train, tmp_path):
    labels = ["comp.graphics", "comp.sys.mac", "rec.autos", "rec.sport.hockey", "misc.forsale", "talk.politics.misc"]
    labels += ["comp.os", "rec.motorcycles"]
    assert train(labelled(labels), "--variance", 1)[0] == 0
    assert taxolearn.load(tmp_path / "m.taxo")[-1].taxonomy_.height == 3


@pytest.mark.parametrize(
    "labels",
    [
        ["v1.2", "v1.3", "v2.0", "v1.4"],
        ["1.5", "1.25", "2.75", "2.5"],
        ["U.S", "U.K", "U.N", "E.U"],
        ["St. Louis", "St. Paul", "St. John", "Mt. Bold"],
        ["a.txt", "b.txt", "c.txt", "d.txt"],
        ["mail.example.com", "www.other.org", "ftp.third.net", "www.fourth.org"],
        ["red|green", "green|red", "red|blue", "blue|green"],
        ["x>=1", "x>=2", "x<1", "x>=3"],
        ["plain", "labels", "only", "a/b"],
    ],
)
def test_labels_that_are_no_paths(labels, train, tmp_path):
    _, figures, _ = train(labelled(labels), "--variance", 1)
    assert figures["nodes"] is None
    assert taxolearn.load(tmp_path / "m.taxo").classes_.tolist() == sorted(labels)


def test_a_given_separator(train, tmp_path):
    labels = ["1.1", "1.2", "2.1", "2.2"]
    _, figures, _ = train(labelled(labels), "--variance", 1, "--separator", ".")
    assert figures["nodes"] == 7
    code, _, err = train(labelled(labels), "--variance", 1, "--separator", "|")
    assert code == 2
    assert "--separator '|': no label of" in err
    assert "such as '1.1'" in err
    assert train(labelled(["a - b", "a - c"]), "--variance", 1, "--separator", "-")[1]["nodes"] == 4
    assert taxolearn.load(tmp_path / "m.taxo").classes_.tolist() == ["a - b", "a - c"]


def test_blanks_do_not_matter(train, tmp_path, capsys):
    """Neither in training nor in what is evaluated."""
    labels = ["A/b", " A / b", "A/ b ", "A/c", "/B/d/", "B/d"]
    assert train(labelled(labels), "--variance", 1)[0] == 0
    assert taxolearn.load(tmp_path / "m.taxo").classes_.tolist() == ["A/b", "A/c", "B/d"]
    data = write_table(tmp_path / "e.csv", labelled(["A /b", "B / d"]))
    assert main(["evaluate", str(tmp_path / "m.taxo"), str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows_of_unknown_classes"] == 0
    assert tidy_path(" a>b ", " > ") == "a > b"
    assert tidy_path(" a / b ", None) == "a / b"


def test_labels_equal_up_to_case_are_told(train):
    _, figures, _ = train(labelled(["A/b", "A/B", "a/c", "d/e"]), "--variance", 1)
    (note,) = [remark for remark in figures["remarks"] if "case" in remark]
    assert "'A/B' and 'A/b'" in note
    assert "a/c" not in note


def test_empty_parts_of_paths(train):
    code, _, err = train(labelled(["a/b", "a/c", "a//d"]), "--variance", 1)
    assert code == 3
    assert "line 10: the label 'a//d' has an empty part" in err


def inner_rows():
    """Every third row is known to the first level only."""
    rows = make_rows(90)
    for row in rows:
        row["top"], row["sub"] = row["label"].split("/")
    for row in rows[::3]:
        row["label"], row["sub"] = row["top"], ""
    return rows


LEVELS = ["--label", "top", "--label", "sub"]


@pytest.mark.parametrize("columns", [["--label", "label"], LEVELS])
@pytest.mark.parametrize("model", ["softmax", "top-down", "pool", "independent"])
def test_inner_labels(columns, model, train, tmp_path):
    rows = inner_rows()
    code, figures, _ = train(rows, "--model", model, *columns, "--folds", 2, label=None)
    assert code == 0
    # Nothing but "water" and its one class: there is no doubt about these.
    n_inner = sum("/" not in row["label"] and row["label"] != "water" for row in rows)
    assert n_inner > 20
    certain, note = sorted((x for x in figures["remarks"] if "inner node" in x), key=lambda x: "of the tree" in x)
    assert f"{30 - n_inner} rows end at an inner node with one class below it, such as 'water' above" in certain
    assert note.startswith(f"{n_inner} rows end at an inner node of the tree: ")
    assert "--inner-labels own makes them classes" in note
    if model == "independent":
        assert "leaves them out" in note
        assert figures["rows"] == 90 - n_inner
    else:
        assert "each is taken for one of the classes below it" in note
        assert figures["rows"] == 90
    assert figures["rows_read"] == 90
    assert taxolearn.load(tmp_path / "m.taxo").classes_.tolist() == sorted(WORDS)


@pytest.mark.parametrize("columns", [["--label", "label"], LEVELS])
def test_inner_labels_as_classes(columns, train, tmp_path):
    rows = inner_rows()
    edges = [("all", top) for top in ("fruit", "tool", "water")] + [(label.split("/")[0], label) for label in WORDS]
    (tmp_path / "tree.txt").write_text("".join(f"{parent}\t{child}\n" for parent, child in edges))
    for more in ([], ["--taxonomy", tmp_path / "tree.txt"]):
        _, figures, _ = train(rows, "--variance", 5, *columns, *more, "--inner-labels", "own", label=None)
        assert not any("inner node" in remark for remark in figures["remarks"])
        loaded = taxolearn.load(tmp_path / "m.taxo")
        assert loaded.classes_.tolist() == sorted([*WORDS, "fruit", "tool", "water"])
        assert loaded[-1].taxonomy_.height == 2


def test_rows_with_one_class_below_are_scored_as_that_class(train):
    rows = labelled(["a/x", "b/y", "b/z"], 20)
    for row in rows[:20:2]:
        row["label"] = "a"
    _, figures, _ = train(rows, "--variance", 10, "--hold-out", 0.5)
    assert figures["hold_out"]["accuracy"] == 1


def test_levels_with_slashes(train, tmp_path):
    rows = [row | {"top": row["label"].split("/")[0], "sub": row["label"]} for row in make_rows(50)]
    _, figures, _ = train(rows, "--variance", 1, *LEVELS, label=None)
    assert taxolearn.load(tmp_path / "m.taxo").classes_[0] == "fruit > fruit/apple"
    assert any("the columns of labels make a tree: 2 levels, 9 nodes" in remark for remark in figures["remarks"])
    code, _, err = train(rows, "--variance", 1, *LEVELS, "--separator", "/", label=None)
    assert code == 3
    assert "the label columns contain '/'" in err


def test_a_list_of_paths_as_taxonomy(train, tmp_path):
    (tmp_path / "tree.txt").write_text("\n".join([*WORDS, "water/river"]))
    _, figures, _ = train(make_rows(50), "--variance", 1, "--taxonomy", tmp_path / "tree.txt")
    assert (figures["classes"], figures["nodes"]) == (6, 10)


def test_numbers_as_names_of_nodes(train, tmp_path):
    (tmp_path / "tree.txt").write_text("0\t1\n0\t2\n1\t11\n1\t12\n2\t21\n")
    _, figures, _ = train(labelled(["11", "12", "21"]), "--variance", 1, "--taxonomy", tmp_path / "tree.txt")
    assert (figures["classes"], figures["nodes"]) == (3, 6)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 6 + ["b"] * 5 + [""] * 2, "2 of 13 rows have no label and are left out"),
        (["a", "b"] * 4 + [""] * 8, "8 of 16 rows have no label and are left out; that is a lot"),
        (["a"] * 8 + ["b"] * 8 + ["NaN"] * 4, "4 of 20 rows have the label 'NaN', which is taken for a class"),
        ([f"{k % 3}.5" for k in range(12)], "labels are numbers such as '0.5': each of the 3 different ones"),
        ([f"id{k}" for k in range(12)], "there are 12 different labels in 12 rows"),
    ],
)
def test_notes_on_labels(labels, message, train):
    code, figures, _ = train(labelled(labels, 1), "--variance", 1)
    assert code == 0
    assert any(remark.startswith(message) for remark in figures["remarks"]), figures["remarks"]
    assert figures["rows"] == sum(label != "" for label in labels)


def test_ordinary_labels_need_no_notes(train):
    _, figures, _ = train(labelled(["1", "2", "cat", "dog"], 30), "--variance", 1)
    assert figures["remarks"] == []


def test_empty_texts_are_told(train):
    rows = make_rows(30)
    rows[3]["text"] = "  "
    assert "1 of 30 rows have no text" in train(rows, "--variance", 1)[1]["remarks"]


# -- Columns ----------------------------------------------------------------------------------------------------------


def test_categorical_columns(train, tmp_path, capsys):
    generator = np.random.default_rng(0)
    rows = []
    for k in range(200):
        country = ["France", "Peru", "Chad", ""][generator.integers(4)]
        label = "x" if (country in ("France", "")) != (generator.random() < 0.1) else "y"
        rows.append({"country": country, "size": f"{k}", "label": label})
    code, figures, _ = train(rows, "--categorical", "country", "--numeric", "size", text=None)
    assert (code, figures["features"]) == (0, 5)
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert loaded[-1].mean_ is not None  # a dense matrix
    assert loaded.predict({"country": ["France", "Chad", ""], "size": [3, 4, 5]}).tolist() == ["x", "y", "x"]
    assert main(["predict", str(tmp_path / "m.taxo"), str(tmp_path / "t.csv"), "-o", str(tmp_path / "a.csv")]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "m.taxo"), str(tmp_path / "t.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.8
    code, _, err = train(rows, "--categorical", "label", text=None)
    assert code == 2
    assert "both a label and an input" in err


def dated_rows(count=200):
    """Skis are sold in winter, and swimsuits in summer; some rows have no date."""
    generator = np.random.default_rng(0)
    rows = []
    for k in range(count):
        day = np.datetime64("2020-01-01") + int(generator.integers(1500))
        label = "swimsuit" if 4 <= day.item().month <= 9 else "ski"
        rows.append({"sold": str(day) if k % 10 else "", "label": label})
    return rows


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_of_dates(train, tmp_path, capsys, ending):
    rows, data, model = dated_rows(), tmp_path / f"t.{ending}", tmp_path / "m.taxo"
    if ending == "csv":
        write_table(data, rows)
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(rows).assign(sold=lambda table: pandas.to_datetime(table["sold"])).to_parquet(data)
    code, figures, _ = train(data, "--date", "sold", "--model", "softmax", text=None)
    assert (code, figures["features"]) == (0, 10)
    loaded = taxolearn.load(model)
    names = loaded[0].get_feature_names_out().tolist()
    assert names[:4] == ["sold", "sold=missing", "sold sin(year)", "sold cos(year)"]
    assert loaded.predict({"sold": ["2031-01-15", "2031-07-15T12:00:00+02:00"]}).tolist() == ["ski", "swimsuit"]
    assert main(["evaluate", str(model), str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.85
    assert main(["inspect", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["input"]["dates"] == ["sold"]
    assert main(["inspect", str(model)]) == 0
    assert "columns, dates" in capsys.readouterr().out
    assert main(["report", str(model), str(data), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "sold=missing" in page  # why rows are where they do not belong
    assert "sold 2020-" in page


def test_errors_about_dates(train, tmp_path, capsys):
    rows = dated_rows()
    assert train(rows, "--date", "sold", "--variance", 1, text=None)[0] == 0
    other = write_table(tmp_path / "other.csv", [{"bought": "2024-05-31", "label": "ski"}])
    for command in ("predict", "evaluate"):
        capsys.readouterr()
        assert main([command, str(tmp_path / "m.taxo"), str(other)]) == 3
        assert "there is no column 'sold'" in capsys.readouterr().err
    wrong = write_table(tmp_path / "other.csv", [{"sold": "", "label": "ski"}, {"sold": "31.05.2024", "label": "ski"}])
    assert main(["evaluate", str(tmp_path / "m.taxo"), str(wrong)]) == 3
    assert "other.csv, line 3, column 'sold': the value is '31.05.2024', expected a date" in capsys.readouterr().err
    rows[150]["sold"] = "5/31/2024"
    code, _, err = train(rows, "--date", "sold", text=None)
    assert code == 3
    assert "t.csv, line 152, column 'sold': the value is '5/31/2024', expected a date such as 2024-05-31" in err
    assert "--date columns" in train(dated_rows(), "--date", "sold", "--model", "naive-bayes", text=None)[2]


def test_rare_categories_of_rows_held_out(train, tmp_path):
    """A value that is frequent enough only with the rows held out does not change the columns of the last fit."""
    rows = make_rows(120)
    out = np.flatnonzero(held_out_rows(np.array([row["label"] for row in rows]), 0.1, 0))
    for k, row in enumerate(rows):
        row["kind"] = "rare" if k in (out[0], out[1]) else row["label"].split("/")[0]
    code, figures, err = train(rows, "--categorical", "kind", "--numeric", "size", text=None)
    assert (code, err) == (0, "")
    assert figures["features"] == 4


def test_the_training_file_is_recognized(train, tmp_path, capsys):
    """Though not all of its rows were learned from."""
    rows = [{"text": row["text"], "label": row["label"]} for row in inner_rows()]
    assert train(rows, "--model", "independent")[1]["rows"] < 90
    files = [str(tmp_path / name) for name in ("m.taxo", "t.csv")]
    assert main(["evaluate", *files]) == 0
    assert "these are the rows the model was trained on" in capsys.readouterr().err


def test_tables_of_numbers_are_dense(train, tmp_path):
    """So that the pool can try a radial kernel on standardized columns."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 2))
    rows = [{"a": a, "b": 1000 * b, "label": "in" if a * a + b * b < 1.4 else "out"} for a, b in X.tolist()]
    _, figures, _ = train(rows, "--numeric", "a", "--numeric", "b", text=None)
    assert "rbf" in figures["experts"]
    assert figures["hold_out"]["accuracy"] > 0.8
    loaded = taxolearn.load(tmp_path / "m.taxo")
    assert loaded.predict({"a": [0.0, 3.0], "b": [0.0, 3000.0]}).tolist() == ["in", "out"]


@pytest.mark.parametrize("name", ["t.xlsx", "t.XLS", "t.ods"])
def test_spreadsheets_are_not_read(name, train, tmp_path):
    (tmp_path / name).write_bytes(b"PK")
    code, _, err = train(tmp_path / name)
    assert code == 2
    assert "are not read; save the table as CSV" in err


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_recognized(encoding, train, tmp_path):
    path = tmp_path / "t16.csv"
    path.write_bytes(("\ufeff" + "text,label\n" + "ü,a\nv,b\n" * 4).encode(encoding))
    code, _, err = train(path)
    assert code == 3
    assert "--encoding utf-16" in err
    assert train(path, "--encoding", "utf-16", "--variance", 1)[0] == 0


def test_columns_that_tell_nothing(train, tmp_path):
    rows = [{"text": "always the same", "label": "ab"[k % 3 == 0]} for k in range(120)]
    code, figures, _ = train(rows)
    assert code == 0
    assert any("the columns tell nothing about the classes" in remark for remark in figures["remarks"])
    proba = taxolearn.load(tmp_path / "m.taxo").predict_proba(["always the same", "other"])
    np.testing.assert_allclose(proba, [[2 / 3, 1 / 3]] * 2, atol=0.01)
    assert not any("tell nothing" in remark for remark in train(make_rows(120))[1]["remarks"])


# -- Processes --------------------------------------------------------------------------------------------------------


def test_the_package_is_a_program(tmp_path):
    done = subprocess.run([sys.executable, "-m", "taxolearn", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("taxolearn ")


def test_ctrl_c_ends_a_pool_whose_experts_would_go_on(train, interrupted, tmp_path):
    """Learning keeps what it has when it is interrupted, but the pool would then go on with the next expert."""
    code, _, err = train(make_rows(60), "--numeric", "size", text=None)
    assert (code, err, interrupted.evaluations) == (130, "taxolearn: interrupted\n", 2)
    assert not (tmp_path / "m.taxo").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_ends_a_top_down_classifier(train, monkeypatch, tmp_path):
    fit_rows = top_down_tuning.fit_rows

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        return fit_rows(*given)

    monkeypatch.setattr(top_down_tuning, "fit_rows", interrupted)
    code, _, err = train(make_rows(60), "--model", "top-down")
    assert (code, err) == (130, "taxolearn: interrupted\n")
    assert not (tmp_path / "m.taxo").exists()


INTERRUPTED = """
    import sys
    from taxolearn import PoolClassifier
    from taxolearn.cli import main

    fit = PoolClassifier.fit

    def announced(self, *arguments, **options):
        print("learning", flush=True)
        return fit(self, *arguments, **options)

    PoolClassifier.fit = announced
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("sent", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_an_interrupted_training_leaves_nothing_behind(sent, expected, tmp_path):
    """The signal comes while a pool learns."""
    generator = np.random.default_rng(0)
    words = generator.integers(0, 4000, (8_000, 60)).tolist()
    rows = [{"text": " ".join(f"w{k}" for k in row), "label": f"a{n % 3}/c{n % 60}"} for n, row in enumerate(words)]
    data = write_table(tmp_path / "t.csv", rows)
    arguments = ["train", data, "--text", "text", "--label", "label", "--words", "1-1", "--threads", "1"]
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), *arguments, "-o", tmp_path / "m.taxo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"learning\n"
            time.sleep(0.3)
            process.send_signal(sent)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == expected
    assert out == b""
    assert err == (b"taxolearn: interrupted\n" if sent == signal.SIGINT else b"")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_experts_without_time_are_told(train):
    _, figures, _ = train(make_rows(120), "--time-limit", 1e-9)
    assert any(remark.startswith("there was no time to try ") for remark in figures["remarks"])
