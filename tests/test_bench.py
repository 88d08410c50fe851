"""Benchmarks against other libraries, by what needs none but scikit-learn and SciPy."""

import json
import os
import sys

import pytest

from bench import partial, peer_fits, peer_models
from bench.cases import Cases
from bench.environments import Environments
from bench.model_libraries import CLASSIFIERS
from bench.peer_solvers import OURS, PEERS
from bench.report import machine, write
from bench.workers import FailedError, LateError, Worker

pytestmark = pytest.mark.skipif(os.name == "nt", reason="answers of workers are waited for with select")
HERE = {"n_threads": 1, "quick": True}


@pytest.fixture
def cases(tmp_path):
    return Cases(tmp_path / "cases.jsonl")


class TestCalibration:
    """A library that reaches the gap with tolerances up to ``enough``, and is late with those below ``slow``."""

    def calibrate(self, enough, slow=0.0):
        tried = []

        def attempt(tol):
            tried.append(tol)
            return "late" if tol < slow else "enough" if tol <= enough else "too loose"

        return (*peer_fits.calibrate(attempt, [1.0, 0.1, 0.01]), tried)

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
        worker = Worker("threading:Event", {}, 1)
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
def fits(tmp_path_factory):
    """A small part of the first problem, twice: the second time everything is known."""
    folder = tmp_path_factory.mktemp("fits")
    limits = peer_fits.Limits(times=100.0, least=60.0, most=60.0, repeats=2, enough=60.0)
    libraries = [OURS, "scikit-learn newton-cg", "scikit-learn newton-cholesky", "scipy L-BFGS-B"]

    def run():
        return peer_fits.run(
            problems=["news20"],
            libraries=libraries,
            gap=1e-4,
            limits=limits,
            python=sys.executable,
            machine=machine(),
            cases=Cases(folder / "peers.cases.jsonl"),
            **HERE,
        )

    return folder, run(), run()


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
def test_a_library_that_fails_has_a_row(cases, tmp_path, monkeypatch):
    monkeypatch.setitem(PEERS, "absent", PEERS["scipy L-BFGS-B"])  # which its process does not know
    limits = peer_fits.Limits(times=1.0, least=1.0, most=1.0, repeats=1, enough=1.0)
    result = peer_fits.run(
        problems=["news20"],
        libraries=["absent"],
        gap=1e-4,
        limits=limits,
        python=sys.executable,
        machine=machine(),
        cases=cases,
        **HERE,
    )
    (row,) = result.rows
    assert row["status"] == "failed: KeyError: 'absent'"
    assert "ratio" not in row


@pytest.mark.slow
@pytest.mark.data
def test_models(cases, tmp_path, data_dir):
    if not (data_dir / "news20").is_dir():
        pytest.skip("news20 is absent")
    result = peer_models.run(
        data=["news20"],
        models=["taxolearn, flat", "taxolearn, tree"],
        limit=120.0,
        environments=Environments(most=sys.executable, pecos=sys.executable),
        machine=machine(),
        cases=cases,
        **HERE,
    )
    for row in result.rows:
        assert row["accuracy"] > 40
        assert 0 < row["log_loss"] < 2.5
        assert row["mean_sum"] == pytest.approx(1.0)
    assert set(CLASSIFIERS) >= {row["library"] for row in result.rows}
    write(result, tmp_path)
    assert (tmp_path / "peers_models.md").is_file()


@pytest.mark.slow
def test_parents_that_are_kept_beat_those_that_are_dropped(news20, cases, tmp_path):
    result = partial.run(data=["news20"], shares=[0.6], cases=cases, **HERE)
    full, kept, branching, dropped = result.rows
    assert branching["unlabelled"] > kept["unlabelled"] == 0
    assert full["log_loss"] < kept["log_loss"] < dropped["log_loss"]
    assert (full["level"], kept["percent"], dropped["rounds"]) == (True, 60.0, None)
    assert kept["rounds"] > 1
    write(result, tmp_path)
    assert "| taxolearn, parents kept | 60 |" in (tmp_path / "partial.md").read_text()
