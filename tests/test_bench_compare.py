"""The suite ``compare``: verdicts, turns, and what passes between it and its workers."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from bench import compare, revisions
from bench.compare_cases import CASES, Inputs, made_up


class Recorded:
    """Answers from a list of seconds; keeps who was asked when."""

    def __init__(self, name, seconds, log):
        self.name, self.seconds, self.log = name, iter(seconds), log

    def ask(self):
        self.log.append(self.name)
        return {"seconds": next(self.seconds), "answer": len(self.log)}


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (1.0, 1.0, "same"),
        (1.0, 1.14, "same"),
        (1.0, 1.16, "slower"),
        (0.1, 0.14, "same"),  # 40 %, but only 0.04 s
        (0.1, 0.16, "slower"),
        (10.0, 11.0, "same"),  # 1 s, but only 10 %
        (1.16, 1.0, "faster"),
        (0.14, 0.1, "same"),
    ],
)
def test_verdict(base, head, expected):
    assert compare.verdict(base, head) == expected


def test_turns():
    log = []
    outcome = compare.take_turns(Recorded("base", [1.0, 9.0, 2.0], log), Recorded("head", [1.0, 1.0, 5.0], log), 3)
    assert log == ["base", "head", "head", "base", "base", "head"]
    assert (outcome["base"], outcome["head"]) == (2.0, 1.0)
    assert outcome["ratio"] == 0.5
    assert outcome["verdict"] == "faster"
    assert (outcome["base_answer"], outcome["head_answer"]) == (5, 6)


@pytest.mark.parametrize(("again", "expected"), [([1.0] * 4, "same"), ([2.0] * 4, "slower")])
def test_slower_is_believed_the_second_time(again, expected):
    log = []
    outcome = compare.believed(Recorded("base", [1.0] * 6, log), Recorded("head", [2.0, 2.0, *again], log), 2)
    assert outcome["verdict"] == expected
    assert outcome["repeats"] == 4
    assert len(log) == 12


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
