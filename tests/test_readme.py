"""What the README promises is run as it stands there."""

import re
import warnings
from pathlib import Path

import pytest

from taxolearn.cli import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_the_first_example_runs_and_learns(capsys):
    example = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL).group(1)
    exec(compile(example, "README.md", "exec"), {})
    printed = re.fullmatch(r"accuracy (\S+), certified gap (\S+)\n", capsys.readouterr().out)
    assert float(printed.group(1)) > 0.85
    assert float(printed.group(2)) <= 1e-6


def test_example_has_about_ten_lines():
    example = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL).group(1)
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


def test_the_page_on_taxonomies_runs(capsys):
    page = (ROOT / "docs" / "taxonomies.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) >= 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "taxonomies.md", "exec"), names)
    drawing = re.search(r"```\n(root\n.*?)```", page, flags=re.DOTALL).group(1)
    assert drawing in capsys.readouterr().out


def test_the_page_on_kernels_runs(capsys):
    page = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "kernels.md", "exec"), names)
    printed = capsys.readouterr().out
    assert float(printed.splitlines()[0]) > 0.98
    for algorithm in ("gram", "tiled", "low_rank"):
        assert re.search(rf"^{algorithm} ", printed, flags=re.MULTILINE)


def test_the_page_on_learned_couplings_runs(capsys):
    page = (ROOT / "docs" / "learned-coupling.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(compile(block, "learned-coupling.md", "exec"), names)
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[:2]]
    said = [float(text) for text in re.findall(r"falls from ([\d.]+) \(flat\) to (\d+\.\d+)", page)[0]]
    assert losses == pytest.approx(said, abs=0.01)


def test_the_page_on_hyperparameters_runs(capsys):
    page = (ROOT / "docs" / "hyperparameters.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Learning hyperparameters: stopped after max_evaluations")
        for block in blocks:
            exec(compile(block, "hyperparameters.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "LearningResult: converged" in printed
    assert "20 parameters" in printed or "21 parameters" in printed


def test_the_page_on_commands_runs(capsys, tmp_path, monkeypatch):
    """Its commands on small tables with the columns they name, then its Python."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    goods = {"fruit/apple": "red apple cider", "fruit/pear": "yellow pear perry", "tool/saw": "steel saw blade"}
    rows = [f"{k},{label},{text},{text} {k % 5}" for k in range(10) for label, text in goods.items()]
    for name in ("reports", "held-out", "new"):
        Path(f"{name}.csv").write_text("\n".join(["id,category,title,body", *rows]) + "\n")
    commands = [
        line.split() for line in re.search(r"```\n(taxolearn train.*?)```", page, re.DOTALL).group(1).splitlines()
    ]
    assert [command[1] for command in commands] == ["train", "evaluate", "predict", "report", "inspect"]
    for _, *arguments in commands:
        assert main(arguments) == 0
    assert len(Path("answers.csv").read_text().splitlines()) == 31
    assert all(" ".join(command) in README.read_text(encoding="utf-8") for command in commands[:3])
    capsys.readouterr()
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(block, "commands.md", "exec"), {})
    assert capsys.readouterr().out == "['fruit']\n"


def test_the_tutorial_runs(capsys, tmp_path, monkeypatch):
    """Block by block; training is cut short."""
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, block in re.findall(r"```(python|)\n(.*?)```", page, flags=re.DOTALL):
        if language == "python":
            exec(compile(block, "tutorial.md", "exec"), names)
            continue
        for line in block.splitlines():
            arguments = line.split()[1:]
            short = ["--variance", "800", "--words", "1-1", "--tol", "1e-2"] if arguments[0] == "train" else []
            assert main(arguments + short) == 0
    printed = capsys.readouterr().out
    assert "taxo-loss" in printed
    assert "scipy/sparse" in printed
    assert Path("modules.html").stat().st_size > 100_000
    assert len(Path("answers.csv").read_text(encoding="utf-8").splitlines()) == 1001
