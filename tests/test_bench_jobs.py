"""The suite ``jobs`` on made-up jobs: scores, tuning on held-out rows, parts of a model, and which cases run again."""

import json
import timeit
from argparse import ArgumentTypeError
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from bench.__main__ import make_parser
from bench.harness.cases import Cases
from bench.harness.isolated import isolated
from bench.harness.job_scores import job_scores, log_probabilities
from bench.harness.report import write
from bench.harness.whole_jobs import chosen_models
from bench.libraries import JOB_MODELS
from bench.libraries.contracts import Predict, Rows, chosen_by_a_tenth
from bench.problems.features import usual_features
from bench.problems.jobs import Job, held_out_tenth, read_docstrings, write_docstrings
from bench.problems.wordnet import _path
from bench.suites import jobs, wordnet
from taxolearn import Taxonomy

POOL = "taxolearn, pool"
WORDS = {"fruit.apple": "red round sweet", "fruit.pear": "green long sweet", "tool.saw": "sharp steel teeth"}


def texts(n, seed):
    """Three words of the class out of its four and those of all."""
    random = np.random.default_rng(seed)
    y = random.choice(list(WORDS), n)
    common = " ".join(WORDS.values()).split()
    return [" ".join([*random.choice(WORDS[label].split(), 3), *random.choice(common, 4)]) for label in y], y


@pytest.fixture
def text_job():
    X, y = texts(300, 0)
    X_test, y_test = texts(60, 1)
    return Job("texts", X, y, X_test, y_test, Taxonomy.from_labels(WORDS, separator="."))


def dense_job(n=120):
    random = np.random.default_rng(0)
    y = np.arange(2 * n) % 3
    X = random.standard_normal((2 * n, 4)) + 2.0 * np.eye(3, 4)[y]
    return Job("columns", X[:n], y[:n], X[n:], y[n:])


@pytest.fixture
def suite(monkeypatch, text_job):
    """The suite with two made-up jobs, in this process; ``asked`` are the cases that ran."""
    asked = []

    def here(function, arguments, n_threads, limit, python):
        asked.append((arguments["job"], arguments["model"]))
        return function(**arguments)

    monkeypatch.setattr(jobs, "JOBS", {"texts": lambda: text_job, "columns": dense_job})
    monkeypatch.setattr(jobs, "isolated", here)
    monkeypatch.setattr(jobs, "_python", lambda *_: "python")
    monkeypatch.setattr(jobs, "write_docstrings", lambda path: None)
    return asked


def options(output, *arguments):
    given = ["jobs", "--threads", "1", "--output", str(output), "--only", "texts,columns", *arguments]
    return make_parser().parse_args(given)


class TestScores:
    job = Job("three", np.zeros((8, 1)), np.array(list("aaaabbbb")), np.zeros((3, 1)), np.array(["a", "b", "new"]))

    def test_sums_and_zeros(self):
        logs, zeros = log_probabilities([[2.0, 2.0], [0.1, 0.3]], 8)
        np.testing.assert_allclose(np.exp(logs), [[0.5, 0.5], [0.25, 0.75]])
        assert zeros == 0
        logs, zeros = log_probabilities([[1.0, 0.0], [0.0, 0.0]], 8)
        np.testing.assert_allclose(np.exp(logs), [[0.95, 0.05], [0.5, 0.5]])
        assert zeros == 0.25

    @pytest.mark.parametrize("classes", [["a", "b"], ["b", "new", "a"]])
    def test_a_class_without_training_rows_costs_all_the_same(self, classes):
        proba = np.full((3, len(classes)), 0.2 / (len(classes) - 1))
        proba[:, classes.index("a")] = 0.8
        scores = job_scores(self.job, np.log(proba), classes)
        of_b = -np.log(proba[1, classes.index("b")])
        assert scores["log_loss"] == pytest.approx((-np.log(0.8) + of_b + np.log(8 + 2)) / 3)
        assert scores["accuracy"] == pytest.approx(100 / 3)
        assert scores["macro_f1"] == pytest.approx(100 * (2 / 4) / 3)
        assert scores["calibration"] == pytest.approx(100 * (0.8 - 1 / 3))
        assert scores["unseen"] == 1


class TestFeatures:
    def test_short_and_long_texts(self, text_job):
        short = usual_features(text_job).fit(text_job.X).get_feature_names_out()
        assert {"words__red", "characters__ red"} <= set(short)
        long = Job("long", [60 * f"{text} " for text in text_job.X], text_job.y, [], text_job.y)
        names = [set(usual_features(long, pairs).fit(long.X).get_feature_names_out()) for pairs in (False, True)]
        assert names[0] == set(" ".join(WORDS.values()).split())
        assert names[0] < names[1]

    def test_counts_are_weighted_and_weights_are_not(self):
        for factor, is_same in ((1.0, False), (0.5, True)):
            X = sparse.csr_matrix(factor * np.array([[1.0, 2.0], [0.0, 3.0]]))
            job = Job("sparse", X, np.array([0, 1]), X, np.array([0, 1]))
            assert (abs(usual_features(job).fit_transform(X) - X).max() == 0) == is_same


def test_docstrings_of_another_environment(tmp_path):
    path = tmp_path / "folder" / "docstrings.json"
    path.parent.mkdir()
    path.write_text(json.dumps([["one", "two", "three", "four"], ["a.x", "a.y", "a.x", "b"]]))
    write_docstrings(path)  # which leaves it alone
    job = read_docstrings(path)
    assert sorted([*job.X, *job.X_test]) == ["four", "one", "three", "two"]
    assert len(job.X_test) == 1
    assert job.taxonomy.n_classes == 3


def test_held_out_rows_leave_a_row_of_every_class():
    y = np.array([0] * 30 + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    held_out, rest = held_out_tenth(y)
    assert len(held_out) == 4
    assert sorted([*held_out, *rest]) == list(range(40))
    assert set(y[rest]) == set(y)


def test_the_penalty_is_chosen_on_held_out_rows(text_job):
    """A model that knows the answer for one penalty, and is fitted to all rows at last."""
    sizes = []

    def fit(rows: Rows, C: float) -> Predict:
        sizes.append(len(rows.y))
        shares = np.bincount(rows.y) / len(rows.y) if C == 10 else np.array([1.0, 0.0, 0.0])
        return lambda X: np.tile(shares, (X.shape[0], 1))

    fitted = chosen_by_a_tenth(fit, (1.0, 10.0, 100.0), ())(text_job, 1)()
    (answer,) = fitted.answers(text_job.X_test)
    assert fitted.setting == "C 10"
    assert sizes == [270, 270, 270, 300]
    assert answer.log_proba.shape == (60, 3)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["LinearSVC", "LogisticRegressionCV"])
@pytest.mark.parametrize("rare", [False, True])
def test_rivals_on_texts(text_job, model, rare):
    """Classes with one row are a case of its own for both."""
    y = np.where(np.arange(300) == 0, "fruit.fig", text_job.y) if rare else text_job.y
    job = Job("texts", text_job.X, y, text_job.X_test, text_job.y_test)
    fitted = JOB_MODELS[model].make(job, 1)()
    (answer,) = fitted.answers(job.X_test)
    scores = job_scores(job, answer.log_proba, answer.classes)
    assert scores["accuracy"] > 65
    assert scores["log_loss"] < 0.9
    assert len(answer.classes) == 3 + rare
    assert ("temperature" in fitted.setting) == (rare and model == "LinearSVC")


@pytest.mark.slow
def test_boosted_trees():
    job = dense_job()
    assert JOB_MODELS["HistGradientBoosting"].takes(job)
    with threadpool_limits(1):
        (answer,) = JOB_MODELS["HistGradientBoosting"].make(job, 1)().answers(job.X_test)
    assert job_scores(job, answer.log_proba, answer.classes)["accuracy"] > 70


def test_who_is_given_up_has_used_the_processor():
    answer = isolated(timeit.timeit, {"number": 10**12}, 1, limit=2.0)
    assert answer["status"].startswith("gave up after")
    assert answer["processor_seconds"] > 0.1


class TestRuns:
    def test_the_pool_and_its_experts(self, suite, tmp_path):
        (result,) = jobs.run(options(tmp_path, "--models", "ours"))
        assert suite == [("texts", POOL), ("columns", POOL)]
        rows = {(row["problem"], row["library"]): row for row in result.rows}
        whole = rows["texts", POOL]
        assert whole["accuracy"] > 65
        assert whole["seconds"] > 0
        assert whole["processor_seconds"] > 0
        experts = [row for row in result.rows if row["problem"] == "texts" and row is not whole]
        assert {"taxolearn, naive Bayes", "taxolearn, softmax"} <= {row["library"] for row in experts}
        kept = [row for row in experts if row.get("status") != "not kept"]
        assert kept
        for row in kept:
            assert row["log_loss"] < 1.0
            assert row["seconds"] < whole["seconds"]
        assert min(row["relative_loss"] for row in [whole, *kept]) == 1.0

    def test_known_cases_are_shown_and_not_run_again(self, suite, tmp_path, monkeypatch):
        monkeypatch.setitem(JOB_MODELS, "other", JOB_MODELS["LinearSVC"])
        jobs.run(options(tmp_path, "--models", "LinearSVC"))
        (result,) = jobs.run(options(tmp_path, "--models", "LinearSVC;other"))
        assert [model for _, model in suite] == ["LinearSVC"] * 2 + ["other"] * 2
        suite.clear()
        (result,) = jobs.run(options(tmp_path, "--models", "LinearSVC", "--only", "texts", "--fresh"))
        assert suite == [("texts", "LinearSVC")]
        assert [(row["problem"], row["library"]) for row in result.rows] == [
            (job, model) for job in ("texts", "columns") for model in ("LinearSVC", "other")
        ]
        write(result, tmp_path)
        assert "| texts | LinearSVC |" in (tmp_path / "jobs.md").read_text()
        assert json.loads((tmp_path / "jobs.json").read_text())["rows"] == result.rows
        assert (tmp_path / "jobs.svg").read_text().count("<!-- LinearSVC -->") == 1

    def test_who_takes_too_long_has_a_bound(self, suite, tmp_path, monkeypatch):
        monkeypatch.setattr(jobs, "isolated", lambda *_: {"status": "gave up after 7 s", "processor_seconds": 9.2})
        (result,) = jobs.run(options(tmp_path, "--models", "LinearSVC"))
        assert [row["seconds_shown"] for row in result.rows] == ["> 7", "> 7"]
        write(result, tmp_path)
        assert "| > 7 | > 9 |" in (tmp_path / "jobs.md").read_text()

    def test_seconds_of_several_rounds_are_medians(self, suite, tmp_path, monkeypatch):
        seen = []

        def answer(_, given, *__):
            seen.append((given.get("turn", 0), given["job"]))
            return {"seconds": 3.0 - given.get("turn", 0), "processor_seconds": 5.0, "log_loss": 1.0}

        monkeypatch.setattr(jobs, "isolated", answer)
        (result,) = jobs.run(options(tmp_path, "--models", "LinearSVC", "--rounds", "3"))
        assert [turn for turn, _ in seen] == [0, 0, 1, 1, 2, 2], "models take turns"
        assert [(row["seconds"], row["rounds"]) for row in result.rows] == [(2.0, 3), (2.0, 3)]
        (result,) = jobs.run(options(tmp_path, "--models", "LinearSVC"))
        assert len(seen) == 6
        assert [row["rounds"] for row in result.rows] == [3, 3]

    def test_a_higher_limit_tries_again(self, suite, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(jobs, "isolated", lambda *_: {"status": "gave up after 7 s", "processor_seconds": 9.2})
            jobs.run(options(tmp_path, "--models", "LinearSVC", "--limit", "7"))
        jobs.run(options(tmp_path, "--models", "LinearSVC", "--limit", "7"))
        assert suite == []
        (result,) = jobs.run(options(tmp_path, "--models", "LinearSVC", "--limit", "70"))
        assert len(suite) == 2
        assert all(row["seconds"] > 0 for row in result.rows)

    def test_a_model_that_takes_no_such_inputs_has_no_row(self, suite, tmp_path, monkeypatch):
        picky = replace(JOB_MODELS["LinearSVC"], takes=lambda job: not job.is_sparse)
        monkeypatch.setitem(JOB_MODELS, "LinearSVC", picky)
        (result,) = jobs.run(options(tmp_path, "--models", "LinearSVC"))
        assert [row["problem"] for row in result.rows] == ["columns"]

    def test_names_of_models(self):
        assert chosen_models("ours;LinearSVC", JOB_MODELS) == [POOL, "LinearSVC"]
        assert set(chosen_models("rivals", JOB_MODELS)) == set(JOB_MODELS) - {POOL}
        with pytest.raises(ArgumentTypeError, match="no such"):
            chosen_models("no such", JOB_MODELS)


def test_wordnet(text_job, monkeypatch):
    """A class on an inner node, above another, and the true class among the two best."""
    y, y_test = (np.where(part == "fruit.pear", "fruit", part) for part in (text_job.y, text_job.y_test))
    tree = Taxonomy.from_edges([("root", "fruit"), ("root", "tool.saw"), ("fruit", "fruit.apple")])
    job = Job("nouns", text_job.X, y, text_job.X_test, y_test, tree)
    monkeypatch.setattr(wordnet, "wordnet", lambda least_rows: job)
    monkeypatch.setattr(wordnet, "_ANSWERS", 2)
    answer = wordnet.measure("taxolearn, top-down", quick=False, n_threads=1, least_rows=2)
    assert 65 < answer["accuracy"] < answer["in_top"] < 100
    assert answer["seconds"] > 0


def test_the_path_in_wordnet():
    assert _path("dog", {"dog": "animal", "animal": "entity"}) == ["dog", "animal", "entity"]


def test_cases_are_forgotten_by_their_arguments(tmp_path):
    path = tmp_path / "some.cases.jsonl"
    cases = Cases(path)
    for a, b in ((1, 1), (1, 2), (2, 1)):
        cases.keep("", "bench.suites.jobs:measure", {"a": a, "b": b}, lambda a=a: {"answer": a})
    cases.forget(jobs.measure, a=1)
    for known in (cases, Cases(path)):
        assert known.known(jobs.measure, {"a": 2, "b": 1}) == {"answer": 2}
        assert known.known(jobs.measure, {"a": 1, "b": 2}) is None
    cases.keep("", "bench.suites.jobs:measure", {"a": 3}, lambda: {"answer": 3})
    assert Cases(path).known(jobs.measure, {"a": 3}) == {"answer": 3}
