"""The suite ``compare``: verdicts, turns, and what passes between it and its workers."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from bench.harness import revisions
from bench.problems import revision_cases
from bench.problems.revision_cases import CASES, Inputs, made_up
from bench.suites import compare


class Recorded:
    """Answers from a list of seconds; keeps who was asked when."""

    def __init__(self, name, seconds, log):
        self.name, self.seconds, self.log = name, iter(seconds), log

    def ask(self):
        self.log.append(self.name)
        seconds = next(self.seconds)
        return {"seconds": seconds, "processor_seconds": 2 * seconds, "answer": len(self.log)}


class TestInterval:
    @pytest.mark.parametrize(
        ("n", "skipped"), [(2, 0), (5, 0), (6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (14, 2), (15, 3), (21, 5)]
    )
    def test_is_that_of_the_binomial_law(self, n, skipped):
        """The largest d with P(binomial(n, 1/2) <= d) of at most 2.5 %."""
        assert compare.interval(list(range(n))) == (skipped, n - 1 - skipped)

    def test_holds_the_median(self):
        draws = np.random.default_rng(0).lognormal(0.3, 0.2, size=(4000, 9))
        low, high = np.array([compare.interval(row.tolist()) for row in draws]).T
        assert np.mean((low <= np.exp(0.3)) & (np.exp(0.3) <= high)) == pytest.approx(0.961, abs=0.01)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([1.0] * 7, "same"),
        ([1.04] * 7, "same"),  # beyond the noise, but too little
        ([1.06] * 7, "slower"),
        ([0.99, 1.06, 1.06, 1.06, 1.06, 1.06, 1.06], "same"),  # enough, but within the noise
        ([1.01, 1.06, 1.06, 1.06, 1.06, 1.06, 3.00], "slower"),
        ([0.94] * 7, "faster"),
        ([0.96] * 7, "same"),
        ([0.90, 0.90, 0.90, 0.90, 0.90, 0.90, 1.01], "same"),
        ([0.99, *([1.06] * 8)], "slower"),  # of nine, one may be off
    ],
)
def test_verdict(ratios, expected):
    assert compare.verdict(ratios) == expected


def test_turns():
    log = []
    outcome = compare.take_turns(Recorded("base", [1.0, 9.0, 2.0], log), Recorded("head", [1.5, 9.9, 3.0], log), 3)
    assert log == ["base", "head", "head", "base", "base", "head"]
    assert (outcome["base"], outcome["head"]) == (2.0, 3.0)
    assert outcome["ratio"] == outcome["processor_ratio"] == 1.5
    assert outcome["interval"] == "1.100 to 1.500"
    assert outcome["verdict"] == "slower"
    assert (outcome["base_answer"], outcome["head_answer"]) == (5, 6)


def test_the_clock_decides():
    class Waiting(Recorded):
        def ask(self):
            return super().ask() | {"processor_seconds": 1.0}

    for clock, expected in (("wall", "slower"), ("processor", "same")):
        outcome = compare.take_turns(Waiting("base", [1.0] * 6, []), Waiting("head", [2.0] * 6, []), 6, clock)
        assert (outcome["verdict"], outcome["ratio"], outcome["processor_ratio"]) == (expected, 2.0, 1.0)


@pytest.mark.parametrize(("again", "expected"), [([1.0] * 4, "same"), ([2.0] * 4, "slower")])
def test_slower_is_believed_the_second_time(again, expected):
    log = []
    outcome = compare.believed(Recorded("base", [1.0] * 6, log), Recorded("head", [2.0, 2.0, *again], log), 2)
    assert outcome["verdict"] == expected
    assert outcome["repeats"] == 4
    assert len(log) == 12


class Former:
    """The estimator as it was before ``tuning`` and ``solver``: keeps what it was given."""

    def __init__(self, kernel=None, **given):
        self.given = given

    def get_params(self, deep=True):
        return {"sigma2": 1.0, "hyperparameters": "cv", "state": "auto"}


def test_former_names(monkeypatch):
    monkeypatch.setattr(revision_cases, "KernelLogisticClassifier", Former)
    solver = {"space": "weights", "products": "gram", "method": "ncg"}
    fixed = revision_cases.make_model(None, 2, intercept_variance=3.0, solver=solver, variances=[1.0], tol=0.1)
    assert fixed.given == {
        "n_threads": 2,
        "sigma2": 3.0,
        "hyperparameters": "fixed",
        "tol": 0.1,
        "variances": [1.0],
        "state": "weights",
        "algorithm": "gram",
        "method": "ncg",
    }
    learned = revision_cases.make_model(None, 2, intercept_variance=3.0, evaluations=1)
    assert learned.given == {
        "n_threads": 2,
        "sigma2": 3.0,
        "hyperparameters": "cv",
        "max_evaluations": 1,
        "learn_sigma2": False,
    }


def test_exit_code():
    assert compare.exit_code([]) == 0
    assert compare.exit_code([{"verdict": verdict} for verdict in ("same", "faster", "not in base")]) == 0
    assert compare.exit_code([{"verdict": "same"}, {"verdict": "slower"}]) == 1
    assert compare.exit_code([{"verdict": "fails"}]) == 1


@pytest.mark.parametrize("form", [sp.csr_matrix, np.asarray])
def test_inputs_come_back(tmp_path, form):
    inputs = Inputs(form(np.eye(3)), np.array(["a", "b", "c"]), form(np.ones((2, 3))), [("root", "a"), ("root", "b")])
    inputs.write(tmp_path / "data.npz")
    back = Inputs.read(tmp_path / "data.npz")
    for one, other in ((inputs.X, back.X), (inputs.X_test, back.X_test)):
        assert sp.issparse(one) == sp.issparse(other)
        assert abs(one - other).sum() == 0
    assert back.y.tolist() == ["a", "b", "c"]
    assert back.edges == inputs.edges


def test_workers(tmp_path):
    """This interpreter's own taxolearn against itself, and cases that fail."""
    here = revisions.Revision("here", Path(sys.executable))
    made_up(quick=True).write(tmp_path / "text.npz")
    outcome = compare._run_case("predict-many", here, here, tmp_path, 1, 1)
    assert outcome["verdict"] in ("same", "slower", "faster")
    assert outcome["base_answer"] == outcome["head_answer"] > 1
    failed = compare._run_case("news20-5", here, here, tmp_path, 1, 1)
    assert failed["verdict"] == "fails"
    assert "news20.npz" in failed["remark"]


def test_cases_need_known_data():
    assert {case.data for case in CASES.values()} <= {"text", "satimage", *compare.OF_WORDS}


def test_commits():
    with pytest.raises(RuntimeError, match="no-such-revision"):
        revisions.commit("no-such-revision")


def test_files_of_a_commit_replace_what_was_there(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "of another commit").touch()
    revisions._extract(revisions.commit("HEAD"), source)
    assert (source / "pyproject.toml").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    assert not (source / "of another commit").exists()
