"""The command line, run in this process."""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, log_loss, top_k_accuracy_score

import taxolearn
from taxolearn import datasets
from taxolearn.cli import demo, main
from taxolearn.cli.main import COMMANDS


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> datasets.TextCollection:
    """Six classes of ten documents in place of the whole collection; the third class lies on an inner node."""
    words = ["[bold]matrix", "random", "signal", "cluster", "kernel", "string"]
    paths = ["left/a", "left/b", "right", "right/a", "right/b", "right/ü"]
    texts = [f"Compute the {word} of order {i % 4}.\nMore on case {i * i}." for word in words for i in range(10)]
    names = [f"package.{i}" for i in range(60)]
    collection = datasets.TextCollection(texts, np.repeat(paths, 10), names, "Small ü.")
    monkeypatch.setattr(datasets, "load_docstrings", lambda: collection)
    return collection


def fitted(collection: datasets.TextCollection) -> tuple[taxolearn.KernelLogisticClassifier, object]:
    X = TfidfVectorizer().fit_transform(collection.texts)
    taxonomy = taxolearn.Taxonomy.from_labels(collection.labels)
    kernel = taxolearn.kernels.Linear(variance=0.3)
    return taxolearn.KernelLogisticClassifier(kernel, taxonomy=taxonomy, tuning=None).fit(X, collection.labels), X


def test_demo_reports_good_figures_on_the_embedded_collection(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "TOL", 1e-2)  # nearly the same figures in half the time
    assert main(["demo", "--json", "--threads", "1"]) == 0
    output = capsys.readouterr()
    figures = json.loads(output.out)
    assert output.err == ""
    assert figures["documents"] == figures["training_documents"] + figures["test_documents"] > 3000
    assert figures["test_documents"] == pytest.approx(0.25 * figures["documents"], rel=0.02)
    assert figures["classes"] >= 70
    assert figures["inner_nodes"] > 10
    assert figures["height"] == 3
    assert figures["features"] > 5000
    assert figures["flat"]["variances"] is None
    assert list(figures["tree"]["variances"]) == ["level 1", "level 2", "level 3"]
    models = [figures[name] for name in ("flat", "tree", "pool", "naive_bayes")]
    assert sum(model["fit_seconds"] for model in models) < figures["total_seconds"]
    assert figures["pool"]["weight"] is None
    assert all(model["weight"] >= 0 for model in models if model is not figures["pool"])
    assert figures["tree"]["weight"] > 0
    for model in (figures["flat"], figures["tree"]):
        assert 0 <= model["relative_gap"] <= demo.TOL
        assert model["products"] > 0
    for model in models[:3]:
        assert model["fit_seconds"] > 0
        assert 0.85 < model["accuracy"] < model["parent_accuracy"] < 1
        assert 0.95 < model["top5_accuracy"] < 1
        assert 0 < model["taxo_loss"] < 0.25
        assert 0 < model["taxo_loss_decided"] < 0.25
        assert 0 < model["log_loss"] < 0.6
    assert figures["tree"]["log_loss"] < figures["flat"]["log_loss"] < figures["naive_bayes"]["log_loss"]
    assert figures["pool"]["log_loss"] <= figures["tree"]["log_loss"] * 1.01


def test_demo_prints_plain_text_when_piped(small: datasets.TextCollection, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--test-fraction", "0.3"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert "\x1b" not in output.out
    assert output.out.isascii()
    assert "Small ?." in output.out
    words = " ".join(output.out.split())
    assert re.search(r"Trained on 42 documents with \d+ features, tested on the other 18;", words)
    for row in (
        r"naive Bayes +flat +tree +pool",
        r"accuracy( +[\d.]+%){4}",
        r"log loss( +\d\.\d{3}){4}",
        r"weight in the pool( +\d\.\d\d){3} +-",
        r"certified relative gap +- +\d\.\de[-+]\d\d +\d\.\de[-+]\d\d +-",
    ):
        assert re.search(row, output.out), row
    assert re.search(r"^  root +#+ 100\.0 %", output.out, re.MULTILINE)
    for line in demo.DEMO_NEXT.splitlines():
        assert f"    {line}\n" in output.out


def test_the_longest_path_fits_on_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    longest = "sklearn/feature_extraction/image"
    taxonomy = taxolearn.Taxonomy.from_labels(["sklearn/feature_extraction", longest])
    demo._print_tree(demo._Page(), taxonomy, np.ones(taxonomy.n_nodes), longest, longest)
    output = capsys.readouterr().out
    assert re.search(f"`-- {longest}  #+ 100.0 %  true, stop\n", output)
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode_gets_ascii(
    small: datasets.TextCollection, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any stream for a terminal
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for name in ("out", "err")}
    monkeypatch.setattr(sys, "stdout", streams["out"])
    monkeypatch.setattr(sys, "stderr", streams["err"])
    assert main(["demo"]) == 0
    for stream in streams.values():
        assert stream.buffer.getvalue().isascii()  # type: ignore[attr-defined]
        assert b"\x1b" in stream.buffer.getvalue()  # type: ignore[attr-defined]


def test_a_unicode_terminal_gets_lines_and_blocks(
    small: datasets.TextCollection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["demo"]) == 0
    output = capsys.readouterr().out
    assert "Small ü." in output
    assert re.search("└── .*█+ ", output)
    assert "─────" in output


def test_json_stays_alone_even_on_a_terminal(
    small: datasets.TextCollection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any stream for a terminal
    assert main(["demo"]) == 0
    output = capsys.readouterr()
    assert "\x1b" in output.out
    assert "Predicting" in output.err
    assert main(["demo", "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["documents"] == 60
    assert output.err == ""


def test_demo_gives_the_same_figures_for_the_same_seed(
    small: datasets.TextCollection, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for seed in ("3", "3", "4"):
        assert main(["demo", "--json", "--seed", seed, "--test-fraction", "0.4"]) == 0
        answers.append(json.loads(capsys.readouterr().out)["pool"]["log_loss"])
    assert answers[0] == pytest.approx(answers[1], rel=1e-6)
    assert answers[0] != pytest.approx(answers[2], rel=1e-6)


def test_examples_show_one_document_of_each_kind(
    small: datasets.TextCollection, capsys: pytest.CaptureFixture[str]
) -> None:
    model, X = fitted(small)
    # Two documents trade places with strangers: the model is wrong about them, and the labels are what is true.
    labels = small.labels.copy()
    labels[[0, 59]] = labels[[59, 0]]
    collection = datasets.TextCollection(small.texts, labels, small.names, small.description)
    demo._print_examples(demo._Page(), collection, model.taxonomy_, np.arange(60), model, X, seed=0)
    output = capsys.readouterr().out
    wrong = output[output.index("Wrong: ") :].splitlines()
    document = small.names.index(wrong[0].split()[1])
    assert document in (0, 59)
    assert wrong[1] == '  "' + small.texts[document].splitlines()[0] + '"'  # brackets are no markup
    stops = model.decide(X, confidence=demo.CONFIDENCE)
    for title, names in (
        ("Sure of the class", np.flatnonzero(np.isin(stops, model.classes_))),
        ("Sure of a node above the class", np.flatnonzero(np.isin(stops, ["left", "right/*"]))),
    ):
        found = re.search(rf"{title}: package\.(\d+)", output)
        assert (found is not None) == (len(names) > 0)
        assert found is None or int(found[1]) in names


def test_trees_mark_the_true_path_and_the_stop(
    small: datasets.TextCollection, capsys: pytest.CaptureFixture[str]
) -> None:
    taxonomy = taxolearn.Taxonomy.from_labels(small.labels)
    leaves = {"left/a": 0.5, "left/b": 0.04, "right": 0.0, "right/a": 0.02, "right/b": 0.4, "right/ü": 0.04}
    probabilities = taxolearn.decisions.node_proba([list(leaves.values())], classes=list(leaves), taxonomy=taxonomy)[0]
    demo._print_tree(demo._Page(), taxonomy, probabilities, "right/ü", "left")
    assert capsys.readouterr().out.splitlines() == [
        "  root                ############ 100.0 %",
        "  |-- left            ######......  54.0 %  stop",
        "  |   `-- left/a      ######......  50.0 %",
        "  `-- right/*         ######......  46.0 %  true",
        "      |-- right/b     #####.......  40.0 %",
        "      `-- right/\\xfc  ............   4.0 %  true",
    ]


def test_the_closing_snippet_runs(small: datasets.TextCollection) -> None:
    names = {"texts": small.texts, "labels": small.labels}
    exec(demo.DEMO_NEXT, names)
    assert len(names["clf"].classes_) == 6
    assert names["clf"].taxonomy_.n_inner == 3
    assert max(map(len, demo.DEMO_NEXT.splitlines())) < 76


@pytest.mark.parametrize("fraction", [0.001, 0.25, 0.5, 0.999])
def test_split_holds_out_the_same_part_of_every_class(fraction: float) -> None:
    labels = np.repeat(["a", "b", "c"], [5, 40, 200])
    training, test = demo._split(labels, fraction, seed=1)
    np.testing.assert_array_equal(np.sort(np.concatenate([training, test])), np.arange(245))
    for label, size in (("a", 5), ("b", 40), ("c", 200)):
        held_out = int((labels[test] == label).sum())
        assert 1 <= held_out <= size - 1
        assert abs(held_out - fraction * size) <= 1


def test_split_follows_the_seed() -> None:
    labels = np.repeat(["a", "b"], 50)
    np.testing.assert_array_equal(demo._split(labels, 0.25, 1)[1], demo._split(labels, 0.25, 1)[1])
    assert not np.array_equal(demo._split(labels, 0.25, 1)[1], demo._split(labels, 0.25, 2)[1])


def test_figures_agree_with_scikit_learn_and_with_slow_ones(small: datasets.TextCollection) -> None:
    generator = np.random.default_rng(0)
    X, truth = generator.normal(size=(60, 4)), generator.permutation(small.labels)
    model = fitted(small)[0].fit(X, small.labels)
    figures = demo._measure(model, model.taxonomy_, X, truth, seconds=1.0, weight=0.5)
    probabilities, answers = model.predict_proba(X), model.predict(X)
    assert figures.accuracy == pytest.approx(accuracy_score(truth, answers))
    assert figures.log_loss == pytest.approx(log_loss(truth, probabilities, labels=model.classes_))
    expected = top_k_accuracy_score(truth, probabilities, k=5, labels=model.classes_)
    assert figures.top5_accuracy == pytest.approx(expected)

    def parent(label: str) -> str:
        return label.partition("/")[0]

    def loss(one: str, other: str) -> int:
        return 0 if one == other else 1 if parent(one) == parent(other) else 2

    pairs = list(zip(truth, answers, strict=True))
    assert figures.parent_accuracy == pytest.approx(np.mean([parent(a) == parent(b) for a, b in pairs]))
    assert figures.taxo_loss == pytest.approx(np.mean([loss(a, b) for a, b in pairs]))
    costs = np.array([[loss(a, b) for b in model.classes_] for a in model.classes_])
    decided = model.classes_[(probabilities @ costs).argmin(axis=1)]
    assert figures.taxo_loss_decided == pytest.approx(
        np.mean([loss(a, b) for a, b in zip(truth, decided, strict=True)])
    )
    assert figures.variances == {"level 1": 1.0, "level 2": 1.0}


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"taxolearn \d+\.\d+\S*\n", capsys.readouterr().out)


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--help"]) == 0
    output = capsys.readouterr().out
    for option in ("--test-fraction", "--seed", "--threads", "--json"):
        assert option in output


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["nonsense"],
        ["demo", "--nonsense"],
        ["demo", "--test-fraction", "0"],
        ["demo", "--test-fraction", "1"],
        ["demo", "--test-fraction", "nan"],
        ["demo", "--test-fraction", "half"],
        ["demo", "--seed", "-1"],
        ["demo", "--threads", "0"],
    ],
)
def test_wrong_usage_ends_with_code_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("taxolearn: ")
    assert output.err.count("\n") == 1
    assert "--help" in output.err
    assert "_" not in output.err.replace("test_fraction", "")  # no names of functions


def test_interrupt_ends_with_code_130_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "load_docstrings", interrupted)
    assert main(["demo"]) == 130
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "taxolearn: interrupted\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_its_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Options are declared once, as fields, and each has a help text that is a phrase of its own."""
    module = import_module(f"taxolearn.cli.{command}")
    assert main([command, "--help"]) == 0
    output = capsys.readouterr().out
    parser = argparse.ArgumentParser()
    module.COMMAND.register(parser)
    for action in parser._actions:
        assert action.help
        assert not action.help.startswith("of ")
        assert all(flag in output for flag in action.option_strings)
    assert "".join(module.COMMAND.description.split()) in "".join(output.split())


def test_help_imports_no_command(run_python: Callable[..., Any]) -> None:
    program = """
        import sys
        from taxolearn.cli import main
        assert main(["--help"]) == 0 and main(["--version"]) == 0 and main([]) == 2
        loaded = [name for name in sys.modules if name.startswith("taxolearn.cli.")]
        assert loaded == ["taxolearn.cli.main"], loaded
        assert main(["inspect", "--help"]) == 0
        assert "taxolearn.cli.inspect" in sys.modules and "taxolearn.cli.train" not in sys.modules
    """
    done = run_python(program)
    assert done.returncode == 0, done.stderr
