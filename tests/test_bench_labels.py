"""The suites with several labels per row: data, scores, thresholds, tuning on held-out rows, baselines, whole runs."""

import json

import numpy as np
import pytest
from scipy import sparse

from bench.__main__ import make_parser
from bench.harness.label_scores import f1_scores, finite_logarithms, label_scores, reliability
from bench.harness.report import write
from bench.libraries import GENE_MODELS, LABEL_MODELS, PAPER_MODELS
from bench.libraries.contracts import LabelRows, PaperRows, fit_labels_with_rows, labels_chosen_by_a_tenth
from bench.libraries.liblinear_baselines import top_down
from bench.problems.label_jobs import LabelJob, _ancestors, held_out_label_rows, indicator
from bench.problems.paper import PAPER_JOBS, PUBLISHED
from bench.suites import gene_functions, recursive_paper, several_labels
from taxolearn import Taxonomy

EDGES = [("root", "a"), ("root", "b"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")]
TREE = Taxonomy.from_edges(EDGES)
NODES = ["a", "a1", "a2", "b", "b1", "b2"]


def label_job(n=150, hierarchy=TREE, d=8, seed=0):
    """Leaves that depend on linear functions, with the nodes above them."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((2 * n, d))
    leaves = [name for name in NODES if len(name) == 2]
    has = 2.0 * X @ np.random.default_rng(7).standard_normal((d, 4)) + random.logistic(size=(2 * n, 4)) > 1.0
    has[np.arange(2 * n), np.arange(2 * n) % 4] |= ~has.any(axis=1)
    sets = [{name for k in np.flatnonzero(row) for name in (leaves[k], leaves[k][0])} for row in has]
    Y = indicator(sets, NODES)
    return LabelJob("made up", X[:n], Y[:n], X[n:], Y[n:], NODES, hierarchy)


def one_label_job(n=150):
    random = np.random.default_rng(0)
    leaves = ["a1", "a2", "b1", "b2"]
    y = np.arange(2 * n) % 4
    X = random.standard_normal((2 * n, 5)) + 3.0 * np.eye(4, 5)[y]
    Y = indicator(([leaves[k]] for k in y), leaves)
    return LabelJob("one", X[:n], Y[:n], X[n:], Y[n:], leaves, TREE)


def options(suite, output, *arguments):
    return make_parser().parse_args([suite, "--threads", "1", "--output", str(output), *arguments])


class TestData:
    def test_labels_of_a_graph_are_closed_upwards(self):
        edges = [("root", "x"), ("root", "y"), ("x", "both"), ("y", "both"), ("both", "low")]
        assert _ancestors(edges) == {
            "x": {"x"},
            "y": {"y"},
            "both": {"both", "x", "y"},
            "low": {"low", "both", "x", "y"},
        }

    def test_indicator_and_sets(self):
        Y = indicator([["b", "a"], [], ["unknown", "c"]], ["a", "b", "c"])
        np.testing.assert_array_equal(Y.toarray(), [[1, 1, 0], [0, 0, 0], [0, 0, 1]])
        job = LabelJob("sets", np.zeros((3, 1)), Y, np.zeros((3, 1)), Y, ["a", "b", "c"])
        assert job.label_sets() == [("a", "b"), (), ("c",)]
        assert not job.has_one_label
        assert one_label_job().has_one_label

    def test_held_out_rows(self):
        held_out, rest = held_out_label_rows(43)
        assert len(held_out) == 4
        assert sorted([*held_out, *rest]) == list(range(43))

    def test_published_figures_are_of_data_that_are_here(self):
        assert set(PUBLISHED) == set(PAPER_JOBS)
        assert set(gene_functions.PUBLISHED) == set(gene_functions.CLUS_JOBS)
        assert PUBLISHED["rcv1"]["RR-SVM"] == (56.56, 81.66)


class TestScores:
    def test_by_hand(self):
        Y = sparse.csr_array(np.array([[1.0, 0, 0], [1, 1, 0]]))
        job = LabelJob("three", np.zeros((8, 1)), sparse.csr_array((8, 3)), np.zeros((2, 1)), Y, list("abc"))
        proba = np.array([[0.8, 0.6, 0.1], [0.4, 0.7, 0.2]])
        scores = label_scores(job, proba, np.array([0.3, 0.65, 0.5]))
        assert scores["precision_1"] == 100
        assert scores["precision_3"] == pytest.approx(50)
        assert scores["micro_f1"] == pytest.approx(100 * 4 / 6)
        assert scores["macro_f1"] == pytest.approx(100 * (2 / 3 + 2 / 3) / 2)
        assert scores["micro_f1_cut"] == scores["macro_f1_cut"] == 100
        right = np.where(Y.toarray() > 0, proba, 1 - proba)
        assert scores["log_loss"] == pytest.approx(-np.log(right).sum() / 2)
        assert scores["zeros"] == 0
        assert "log_loss" not in label_scores(job, proba, None, is_probability=False)

    def test_certain_answers_are_mixed(self):
        positive, negative, certain = finite_logarithms([[0.0, 0.5, 1.0]], 8)
        np.testing.assert_allclose(np.exp(positive), [[0.05, 0.5, 0.95]])
        np.testing.assert_allclose(np.exp(positive) + np.exp(negative), 1)
        assert certain == pytest.approx(2 / 3)

    def test_reliability_is_that_of_a_plain_loop(self):
        random = np.random.default_rng(0)
        proba = random.random((40, 5)) ** 3
        Y = sparse.csr_array((random.random((40, 5)) < proba**2).astype(float))
        found = reliability(Y, proba)
        bins = {}
        for p, y in zip(proba.ravel(), Y.toarray().ravel(), strict=True):
            bins.setdefault(np.clip(np.ceil(np.log(p / (1 - p))), -10, 11), []).append((p, y))
        expected = [np.mean(bins[key], axis=0) for key in sorted(bins)]
        np.testing.assert_allclose(np.column_stack(found[:2]), expected)
        assert found.count.sum() == 200
        wrong = sum(len(part) * abs(np.subtract(*np.mean(part, axis=0))) for part in bins.values())
        assert found.error == pytest.approx(wrong / Y.sum())


class TestThresholds:
    def test_none_has_fewer_mistakes(self):
        random = np.random.default_rng(0)
        scores, has = random.standard_normal((50, 6)), random.random((50, 6)) < 0.3
        thresholds = recursive_paper.fewest_mistakes(scores, has)
        for row, true, threshold in zip(scores, has, thresholds, strict=True):
            tried = [*row, row.max() + 1, row.min() - 1]
            assert ((row > threshold) != true).sum() == min(((row > t) != true).sum() for t in tried)

    def test_rows_have_thresholds_of_their_own(self):
        answers = recursive_paper._answers(np.array([[1.0, 2.0], [1.0, 2.0]]), False, np.array([0.0, 1.5]))
        np.testing.assert_array_equal(answers.toarray(), [[1, 1], [0, 1]])
        one = recursive_paper._answers(np.array([[1.0, 2.0], [3.0, 2.0]]), True)
        np.testing.assert_array_equal(one.toarray(), [[0, 1], [1, 0]])


class TestTuning:
    def test_labels_without_rows_get_nothing(self):
        rows = LabelRows(np.zeros((3, 1)), sparse.csr_array(np.array([[0, 1.0, 0], [0, 1, 1], [0, 0, 0]])), 1)
        seen = []

        def fit(some, C):
            seen.append(some.Y.toarray())
            return lambda X: np.full((len(X), 2), C)

        np.testing.assert_array_equal(
            fit_labels_with_rows(fit, rows, C=0.3)(np.zeros((2, 1))), [[0, 0.3, 0.3], [0, 0.3, 0.3]]
        )
        np.testing.assert_array_equal(seen[0], [[1, 0], [1, 1], [0, 0]])

    @pytest.mark.parametrize("is_probability", [True, False])
    def test_the_penalty_is_chosen_on_held_out_rows(self, is_probability):
        """A model that knows the shares of labels for one penalty, and is fitted to all rows at last."""
        job, sizes = label_job(), []

        def fit(rows, C):
            sizes.append(rows.X.shape[0])
            shares = np.asarray(rows.Y.mean(axis=0)).ravel() if C == 10 else np.full(rows.Y.shape[1], 0.01)
            return lambda X: np.tile(shares, (X.shape[0], 1))

        grid = tuple({"C": C} for C in (1.0, 10.0, 100.0))
        fitted = labels_chosen_by_a_tenth(fit, grid, (), is_probability=is_probability)(job, 1)()
        assert fitted.setting == "C 10"
        assert sizes == [135, 135, 135, 150]
        answer = fitted.answer(job.X_test)
        assert answer.proba.shape == job.Y_test.shape
        assert answer.thresholds.shape == (6,)


class TestModels:
    @pytest.mark.parametrize("make", [label_job, one_label_job])
    @pytest.mark.parametrize("name", [name for name in PAPER_MODELS if name != "taxolearn, RR-SVM"])
    def test_of_the_paper(self, name, make):
        job, entry = make(), PAPER_MODELS[name]
        assert entry.takes(job) == (make is one_label_job or (name.split(", ")[0] != "MSVM" and "MLR" not in name))
        if not entry.takes(job):
            return
        rows = PaperRows(job, job.X, job.Y, 1)
        C = [1.0, 1.0, 1.0] if entry.learn is not None and make is one_label_job else 1.0  # the root has one, too
        scores = entry.fit(rows, C)(job.X_test)
        assert scores.shape == job.Y_test.shape
        micro, _ = f1_scores(job.Y_test, recursive_paper._answers(scores, job.has_one_label))
        assert micro > 75

    def test_top_down_answers_are_consistent(self):
        job = label_job()
        found = top_down(PaperRows(job, job.X, job.Y, 1), 1.0)(job.X_test) > 0
        for leaf in ("a1", "a2", "b1", "b2"):
            assert not (found[:, NODES.index(leaf)] & ~found[:, NODES.index(leaf[0])]).any()

    def test_ours_have_all_labels_and_are_consistent(self):
        job = label_job()
        answer = LABEL_MODELS["taxolearn, logistic, tree"].make(job, 1)().answer(job.X_test)
        assert answer.facts["child_above_parent"] <= 0
        assert answer.thresholds.shape == (6,)
        assert label_scores(job, answer.proba, answer.thresholds)["micro_f1"] > 75

    def test_forest(self):
        job = label_job()
        proba = GENE_MODELS["RandomForest"].make(job, 1)().answer(job.X_test).proba
        assert f1_scores(job.Y_test, proba > 0.5)[0] > 70


class TestRuns:
    @pytest.fixture(autouse=True)
    def _here(self, monkeypatch):
        def here(function, arguments, n_threads, limit, python=None):
            return function(**arguments)

        monkeypatch.setattr("bench.harness.label_runs.isolated", here)
        monkeypatch.setattr(recursive_paper, "isolated", here)

    def test_means_over_splits(self, monkeypatch, tmp_path):
        splits = [label_job(seed=seed) for seed in (0, 1)]
        monkeypatch.setitem(several_labels.LABEL_JOBS, "bibtex", lambda: splits)
        given = options("several_labels", tmp_path, "--only", "bibtex", "--models", "taxolearn, logistic")
        results = several_labels.run(given)
        (row,) = results[0].rows
        alone = []
        for split in splits:
            monkeypatch.setitem(several_labels.LABEL_JOBS, "bibtex", lambda split=split: [split])
            alone.append(several_labels.measure("bibtex", "taxolearn, logistic", quick=False, n_threads=1))
        assert row["log_loss"] == pytest.approx(np.mean([each["log_loss"] for each in alone]))
        assert row["spread"]["log_loss"] == pytest.approx(np.std([each["log_loss"] for each in alone], ddof=1))
        for result in results:
            write(result, tmp_path)
        assert (tmp_path / "several_labels_reliability.svg").read_text().count("<!-- taxolearn, logistic -->") == 1
        kept = json.loads((tmp_path / "several_labels_reliability.json").read_text())["rows"]
        assert [entry["library"] for entry in kept] == ["taxolearn, logistic"]
        assert sum(kept[0]["count"]) == splits[0].Y_test.shape[0] * 6

    def test_published_areas_are_beside_ours(self, monkeypatch, tmp_path):
        monkeypatch.setitem(gene_functions.CLUS_JOBS, "church_FUN", label_job)
        given = options(
            "gene_functions", tmp_path, "--only", "church_FUN", "--models", "taxolearn, logistic;RandomForest"
        )
        (result,) = gene_functions.run(given)
        ours, forest, published = result.rows
        assert [ours["library"], forest["library"]] == ["taxolearn, logistic", "RandomForest"]
        assert 0.5 < ours["area_steps"] < 1
        assert ours["child_above_parent"] <= 0
        assert (published["library"], published["area_interpolated"]) == ("Clus-HMC, published", 0.1705)
        write(result, tmp_path)
        assert "| church_FUN | Clus-HMC, published | - | 0.1705 |" in (tmp_path / "gene_functions.md").read_text()

    @pytest.mark.parametrize("make", [label_job, one_label_job])
    def test_the_table_of_the_paper(self, monkeypatch, tmp_path, make):
        monkeypatch.setitem(recursive_paper.PAPER_JOBS, "clef", make)
        models = "TD, liblinear;taxolearn, RR-LR;taxolearn, a variance per level"
        given = options("recursive_paper", tmp_path, "--quick", "--only", "clef", "--models", models)
        (result,) = recursive_paper.run(given)
        rows = {row["library"]: row for row in result.rows}
        assert rows["taxolearn, RR-LR"]["published_macro"] == rows["HBLR"]["published_macro"] - 3.82 == 55.83
        assert rows["TD, liblinear"]["published_micro"] == 70.11
        for name in models.split(";"):
            assert rows[name]["micro_f1"] > 70
        write(result, tmp_path)
        assert "| clef | HSVM | - | - | 57.23 | 79.72 |" in (tmp_path / "recursive_paper.md").read_text()
