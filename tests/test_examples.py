"""Every example runs in an interpreter of its own and shows what its docstring says."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def numbers(pattern: str, printed: str) -> list[float]:
    """What the pattern's only group caught, wherever it fits."""
    found = [float(number) for number in re.findall(pattern, printed)]
    assert found, f"{pattern} is nowhere in:\n{printed}"
    return found


def check_text_probabilities(printed):
    (accuracy,) = numbers(r"accuracy (\S+)", printed)
    (frequent,) = numbers(r"most frequent class (\S+)", printed)
    assert accuracy > max(0.85, frequent)
    assert numbers(r"log loss (\S+)", printed)[0] < 0.5
    assert numbers(r"gap (\S+)", printed)[0] <= 1e-6
    first, *_ = re.findall(r"^  (\S+) +\S+$", printed, flags=re.MULTILINE)
    assert first == "numpy/random"


def check_tree_decisions(printed):
    for score in ("log loss", "taxo-loss"):
        flat, tree = numbers(rf"{score} ([\d.]+)", printed)
        assert tree < flat
    asked = numbers(r"confidence (\S+):", printed)
    right = numbers(r"right ([\d.]+)", printed)
    inner = numbers(r"inner nodes (\S+)", printed)
    assert all(share >= confidence for share, confidence in zip(right, asked, strict=True))
    assert right == sorted(right)
    assert inner == sorted(inner)


def check_learned_kernel(printed):
    given, learned = numbers(r"log loss (\S+)", printed)
    assert learned < 0.1 < given
    assert "converged after" in printed
    assert "the same parameters True" in printed


def check_low_rank(printed):
    low, enough, found, exact = numbers(r"log loss (\S+)", printed)
    assert low > 1.2 * exact
    assert enough < 1.02 * exact
    assert exact < found < low
    assert [line.split()[0] for line in printed.splitlines()] == ["low_rank"] * 3 + ["tiled"]
    assert max(numbers(r"(\S+) MB", printed)) < 32


def check_explanations(printed):
    nodes = re.findall(r"^(\S+): \S+$", printed, flags=re.MULTILINE)
    assert nodes == ["scipy", "scipy/sparse/*", "scipy/sparse/linalg"]
    assert printed.count("all the rest") == len(nodes)
    assert max(numbers(r"(\S+) sparse\n", printed)) > 1


def check_serving(printed):
    assert re.search(r"report: {'trained on': '\d+ docstrings'}", printed)
    assert numbers(r"difference of a probability: (\S+)", printed)[0] < 1e-6
    answers = dict(line.split() for line in printed.splitlines()[2:])
    assert list(answers) == ["numpy/random", "numpy/fft"]
    assert all(float(probability) > 0.5 for probability in answers.values())


def check_label_embedding(printed):
    by_words, by_chance = numbers(r"is a sibling (\S+)", printed)
    assert by_words > by_chance
    assert len(numbers(r"like numpy/linalg: \S+ (\S+),", printed)) == 1
    assert numbers(r"accuracy (\S+)", printed)[0] > 0.7
    few, many = numbers(r"with (\d+) weights", printed) + numbers(r"instead of (\d+)", printed)
    assert few < many / 2


def check_unsure_answers(printed):
    assert numbers(r"calibration error (\S+)", printed)[0] < 0.08
    sure, right = numbers(r"sure to (\S+):", printed), numbers(r"right (\S+) of", printed)
    assert all(abs(a - b) < 0.1 for a, b in zip(sure, right, strict=True))
    errors = numbers(r"error ([\d.]+), if", printed)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 2
    assert numbers(r"curve (\S+)", printed)[0] < errors[0]


def check_partial_labels(printed):
    kept, dropped, full = numbers(r"log loss (\S+)", printed)
    assert full < kept < dropped
    assert "rounds, converged" in printed
    inside, outside = numbers(r"([\d.]+) (?:in its group|elsewhere)", printed)
    assert inside > 5 * outside


def check_own_kernel(printed):
    assert numbers(r"accuracy (\S+)", printed)[0] > 0.92
    assert numbers(r"variance (\S+)", printed)[0] > 1
    answers = dict(re.findall(r"^(\w+): (English|Latin)$", printed, flags=re.MULTILINE))
    assert answers == {"weather": "English", "father": "English", "servus": "Latin", "oppidum": "Latin"}


def check_several_labels(printed):
    assert "answer ('travel/flights', 'work/budget')" in printed
    fixed, best, learned = numbers(r"F1 [\d.]+, per mail ([\d.]+)", printed)
    assert best > fixed
    assert learned > fixed
    fixed, _, learned = numbers(r"macro F1 ([\d.]+)", printed)
    assert learned > fixed + 0.03


def check_enzymes(printed):
    substrings, gapped, both = numbers(r"log loss (\S+),", printed)
    assert max(gapped, both) < 0.7 * substrings
    assert 0.4 < numbers(r"learned decay (\S+)", printed)[0] <= 1
    assert len(re.findall(r"^protein\d: \d \d\.\d\d, \d\.\d", printed, flags=re.MULTILINE)) == 3
    assert numbers(r"a report of (\d+) kB", printed)[0] > 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_shows_what_it_says(path, tmp_path):
    check = globals().get(f"check_{path.stem}")
    assert check is not None, f"say in check_{path.stem} what {path.name} prints"
    done = subprocess.run(
        [sys.executable, "-W", "error", path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir()), "an example leaves files behind"
    check(done.stdout)


def test_there_are_examples_and_no_checks_without():
    stems = {path.stem for path in EXAMPLES}
    assert len(stems) >= 6
    assert {name.removeprefix("check_") for name in globals() if name.startswith("check_")} == stems


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_short_and_says_what_one_learns(path):
    source = path.read_text(encoding="utf-8")
    assert 20 <= len(source.splitlines()) <= 60
    docstring = ast.get_docstring(ast.parse(source))
    title, empty, rest = docstring.split("\n", 2)
    assert title
    assert not empty
    assert "One learns" in " ".join(rest.split())
