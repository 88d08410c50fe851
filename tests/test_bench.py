"""Benchmarks against other libraries, by what needs none but scikit-learn and SciPy."""

import importlib
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from bench import libraries
from bench.__main__ import make_parser
from bench.harness.calibrate import calibrate
from bench.harness.environments import Environments
from bench.harness.report import write
from bench.harness.workers import FailedError, LateError, Worker
from bench.libraries import CLASSIFIERS, OURS, SOLVERS
from bench.suites import partial, peers, peers_models

pytestmark = pytest.mark.skipif(os.name == "nt", reason="answers of workers are waited for with select")
LIBRARIES = f"{OURS};scikit-learn newton-cg;scikit-learn newton-cholesky;scipy L-BFGS-B"


def options(suite, output, *arguments):
    return make_parser().parse_args([suite, "--quick", "--threads", "1", "--output", str(output), *arguments])


@pytest.fixture(scope="module")
def environments():
    """This interpreter in place of those with other libraries."""
    with pytest.MonkeyPatch.context() as patch:
        for suite in (peers, peers_models):
            patch.setattr(suite, "setup", lambda _: Environments(most=sys.executable, pecos=sys.executable))
        yield


class TestCommandLine:
    def test_a_suite_is_a_file(self):
        (commands,) = [action for action in make_parser()._actions if action.dest == "suite"]
        files = {path.stem for path in (Path(partial.__file__).parent).glob("*.py")} - {"__init__"}
        assert set(commands.choices) == files >= {"fit", "peers", "compare"}

    def test_results_are_those_of_suites(self):
        """A picture and a table belong to a suite that can be run again."""
        folder = Path(partial.__file__).parents[1]
        suites = {path.stem for path in (folder / "suites").glob("*.py")}
        results = {path.stem for path in (folder / "results").iterdir()}
        parts = {name for name in results for suite in suites if name.startswith(f"{suite}_")}
        assert results <= suites | parts
        assert {path.suffix for path in (folder / "results").iterdir()} == {".json", ".md", ".svg"}


def test_a_library_is_a_file():
    """Every module registers something, under names of its own."""
    folder = Path(libraries.__file__).parent
    names = {path.stem for path in folder.glob("*.py")} - {"__init__", "contracts"}
    modules = {name: importlib.import_module(f"bench.libraries.{name}") for name in names}
    tables = (
        "SOLVERS",
        "CLASSIFIERS",
        "TOP_MODELS",
        "RBF_MODELS",
        "JOB_MODELS",
        "EMBEDDING_MODELS",
        "TABLE_MODELS",
        "LABEL_MODELS",
        "GENE_MODELS",
        "PAPER_MODELS",
    )
    for table in tables:
        of_module = {name: getattr(module, table, {}) for name, module in modules.items()}
        registered = getattr(libraries, table)
        assert sum(map(len, of_module.values())) == len(registered)
        assert list(registered)[: len(of_module["ours"])] == list(of_module["ours"])
        names -= {name for name, entries in of_module.items() if entries}
    assert names == set()


class TestCalibration:
    """A library that reaches the gap with tolerances up to ``enough``, and is late with those below ``slow``."""

    def calibrate(self, enough, slow=0.0):
        tried = []

        def attempt(tol):
            tried.append(tol)
            return "late" if tol < slow else "enough" if tol <= enough else "too loose"

        return (*calibrate(attempt, [1.0, 0.1, 0.01]), tried)

    def test_the_first_is_enough(self):
        assert self.calibrate(2.0) == (1.0, "enough", [1.0])

    def test_between_two(self):
        assert self.calibrate(0.4) == (0.316, "enough", [1.0, 0.1, 0.316, 0.562])

    def test_late(self):
        assert self.calibrate(0.15, slow=0.2)[:2] == (None, "late")
        assert self.calibrate(0.4, slow=0.2)[:2] == (0.316, "enough")
        assert self.calibrate(2.0, slow=2.0) == (None, "late", [1.0])

    def test_never(self):
        assert self.calibrate(0.001) == (None, "too loose", [1.0, 0.1, 0.01])


class TestWorkers:
    @pytest.fixture
    def worker(self):
        worker = Worker(threading.Event, {}, 1)
        yield worker
        worker.stop()

    def test_keeps_its_object(self, worker):
        assert worker.ask("is_set") is False
        worker.ask("set")
        assert worker.ask("is_set") is True

    def test_late(self, worker):
        worker.ask("is_set")
        with pytest.raises(LateError):
            worker.ask("wait", 0.2, timeout=60.0)

    def test_failed(self, worker):
        with pytest.raises(FailedError, match="no attribute 'sleep'"):
            worker.ask("sleep")


@pytest.fixture(scope="module")
def fits(tmp_path_factory, environments):
    """A small part of the first problem, twice: the second time everything is known."""
    folder = tmp_path_factory.mktemp("fits")
    limits = ["--patience", "100", "--least-limit", "60", "--most-limit", "60", "--repeats", "2"]
    given = options("peers", folder, "--only", "news20", "--libraries", LIBRARIES, "--gap", "1e-4", *limits)
    return folder, *(peers.run(given)[0] for _ in range(2))


@pytest.mark.slow
def test_fits_reach_the_gap_on_the_same_objective(fits):
    _, result, again = fits
    assert [row["library"] for row in result.rows] == [OURS, "scikit-learn newton-cg", "scipy L-BFGS-B"]  # X is sparse
    assert all(row["repeats"] == 2 and row["relative_gap"] <= 1e-4 for row in result.rows)
    objectives = [row["objective"] for row in result.rows]
    assert max(objectives) <= (1 + 2e-4) * min(objectives)
    assert result.rows[0]["ratio"] == 1.0
    assert again.rows == result.rows


@pytest.mark.slow
def test_fits_are_written(fits):
    folder, result, _ = fits
    bound = result.rows[-1] | {"bound": 5.0, "ratio": 50.0, "ratio_shown": "> 50", "library": "another"}
    result.rows.append(bound)
    write(result, folder)
    assert "| > 50 |" in (folder / "peers.md").read_text()
    assert len(json.loads((folder / "peers.json").read_text())["rows"]) == len(result.rows)
    assert (folder / "peers.svg").read_text().count("times as long") == 1


@pytest.mark.slow
def test_a_library_that_fails_has_a_row(tmp_path, environments, monkeypatch):
    monkeypatch.setitem(SOLVERS, "absent", SOLVERS["scipy L-BFGS-B"])  # which its process does not know
    given = options("peers", tmp_path, "--only", "news20", "--libraries", "absent", "--most-limit", "1")
    (result,) = peers.run(given)
    (row,) = result.rows
    assert row["status"] == "failed: KeyError: 'absent'"
    assert "ratio" not in row


@pytest.mark.slow
@pytest.mark.data
def test_models(tmp_path, data_dir, environments):
    if not (data_dir / "news20").is_dir():
        pytest.skip("news20 is absent")
    models = "taxolearn, flat;taxolearn, tree"
    given = options("peers_models", tmp_path, "--only", "news20", "--models", models, "--limit", "120")
    (result,) = peers_models.run(given)
    assert len(result.rows) == 2
    for row in result.rows:
        assert row["accuracy"] > 40
        assert 0 < row["log_loss"] < 2.5
        assert row["mean_sum"] == pytest.approx(1.0)
    assert set(CLASSIFIERS) >= {row["library"] for row in result.rows}
    write(result, tmp_path)
    assert (tmp_path / "peers_models.md").is_file()


@pytest.mark.slow
def test_parents_that_are_kept_beat_those_that_are_dropped(news20, tmp_path):
    (result,) = partial.run(options("partial", tmp_path, "--only", "news20", "--shares", "0.6"))
    full, kept, branching, dropped = result.rows
    assert branching["unlabelled"] > kept["unlabelled"] == 0
    assert full["log_loss"] < kept["log_loss"] < dropped["log_loss"]
    assert (full["level"], kept["percent"], dropped["rounds"]) == (True, 60.0, None)
    assert kept["rounds"] > 1
    write(result, tmp_path)
    assert "| taxolearn, parents kept | 60 |" in (tmp_path / "partial.md").read_text()
