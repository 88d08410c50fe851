"""The command line, run in this process."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, log_loss, top_k_accuracy_score

import taxolearn
from taxolearn import cli, datasets
from taxolearn.cli import main


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> datasets.TextCollection:
    """Six classes of ten documents in place of the whole collection."""
    words = ["[bold]matrix", "random", "signal", "cluster", "kernel", "string"]
    texts = [f"Compute the {word} of order {i % 4}.\nMore on case {i * i}." for word in words for i in range(10)]
    labels = np.repeat([f"package/{k}" for k in range(6)], 10)
    names = [f"package.{i}" for i in range(60)]
    collection = datasets.TextCollection(texts, labels, names, "Small.")
    monkeypatch.setattr(datasets, "load_docstrings", lambda: collection)
    return collection


def test_demo_reports_good_figures_on_the_embedded_collection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json", "--threads", "1"]) == 0
    output = capsys.readouterr()
    figures = json.loads(output.out)
    assert output.err == ""
    assert figures["documents"] == figures["training_documents"] + figures["test_documents"] > 3000
    assert figures["test_documents"] == pytest.approx(0.25 * figures["documents"], rel=0.02)
    assert figures["classes"] >= 70
    assert figures["features"] > 5000
    assert 0 <= figures["relative_gap"] < 1e-2
    assert figures["products"] > 0
    assert 0 < figures["fit_seconds"] < figures["total_seconds"] < 60
    assert 0.85 < figures["accuracy"] < figures["top5_accuracy"] <= 1
    assert figures["top5_accuracy"] > 0.95
    assert 0 < figures["log_loss"] < 0.6


def test_demo_prints_plain_text_when_piped(small: datasets.TextCollection, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--test-fraction", "0.3"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert "\x1b" not in output.out
    for row in (r"documents +60", r"held out +18", r"classes +6", r"kernel products +\d+"):
        assert re.search(row, output.out), row
    assert re.search(r"certified relative gap +\d\.\de[-+]\d\d", output.out)
    assert output.out.count("true class: package/") == 3
    assert len(re.findall(r"^ +\d+\.\d% .* package/\d", output.out, re.MULTILINE)) == 9
    for line in cli.DEMO_NEXT.splitlines():
        assert f"    {line}\n" in output.out


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
        answers.append(json.loads(capsys.readouterr().out)["log_loss"])
    assert answers[0] == pytest.approx(answers[1], rel=1e-6)
    assert answers[0] != pytest.approx(answers[2], rel=1e-6)


def test_texts_with_brackets_are_printed_as_they_are(
    small: datasets.TextCollection, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    cli._print_example(Console(), small, 0, np.unique(small.labels), np.array([0.5, 0.3, 0.2, 0, 0, 0]))
    output = capsys.readouterr().out
    assert '"Compute the [bold]matrix of order 0."' in output
    assert re.search(r"50\.0% ..........  +package/0  \(true\)", output)


def test_the_closing_snippet_runs(small: datasets.TextCollection) -> None:
    names = {
        "TfidfVectorizer": TfidfVectorizer,
        "KernelLogisticClassifier": taxolearn.KernelLogisticClassifier,
        "kernels": taxolearn.kernels,
        "texts": small.texts,
        "labels": small.labels,
    }
    exec(cli.DEMO_NEXT, names)
    assert len(names["clf"].classes_) == 6


@pytest.mark.parametrize("fraction", [0.001, 0.25, 0.5, 0.999])
def test_split_holds_out_the_same_part_of_every_class(fraction: float) -> None:
    labels = np.repeat(["a", "b", "c"], [5, 40, 200])
    training, test = cli._split(labels, fraction, seed=1)
    np.testing.assert_array_equal(np.sort(np.concatenate([training, test])), np.arange(245))
    for label, size in (("a", 5), ("b", 40), ("c", 200)):
        held_out = int((labels[test] == label).sum())
        assert 1 <= held_out <= size - 1
        assert abs(held_out - fraction * size) <= 1


def test_split_follows_the_seed() -> None:
    labels = np.repeat(["a", "b"], 50)
    np.testing.assert_array_equal(cli._split(labels, 0.25, 1)[1], cli._split(labels, 0.25, 1)[1])
    assert not np.array_equal(cli._split(labels, 0.25, 1)[1], cli._split(labels, 0.25, 2)[1])


def test_scores_agree_with_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet(np.full(12, 0.3), size=300)
    truth = generator.integers(12, size=300)
    classes = np.arange(12)
    expected = (
        accuracy_score(truth, probabilities.argmax(axis=1)),
        log_loss(truth, probabilities, labels=classes),
        top_k_accuracy_score(truth, probabilities, k=5, labels=classes),
    )
    np.testing.assert_allclose(cli._scores(probabilities, truth), expected)


def test_scores_give_no_credit_for_uniform_probabilities() -> None:
    truth = np.repeat(np.arange(10), 3)
    accuracy, _, top5_accuracy = cli._scores(np.full((30, 10), 0.1), truth)
    assert (accuracy, top5_accuracy) == pytest.approx((0.1, 0.5))


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
    assert "usage: taxolearn" in output.err


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
