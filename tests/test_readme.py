"""What the README promises is run as it stands there."""

import re
import warnings
from pathlib import Path

import pytest
from pages import read_page, run_page

from taxolearn.cli import main

README = Path(__file__).parents[1] / "README.md"


def test_the_first_example_runs_and_learns(capsys):
    example = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL).group(1)
    exec(compile(example, "README.md", "exec"), {})
    accuracy, header, *experts = capsys.readouterr().out.splitlines()
    assert float(accuracy.removeprefix("accuracy ")) > 0.85
    assert header.startswith("expert")
    assert len(experts) >= 3


def test_example_has_about_ten_lines():
    example = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL).group(1)
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


def test_the_page_on_taxonomies_runs(capsys):
    assert run_page("taxonomies.md") >= 6
    drawing = re.search(r"```\n(root\n.*?)```", read_page("taxonomies.md"), flags=re.DOTALL).group(1)
    assert drawing in capsys.readouterr().out


def test_the_page_on_kernels_runs(capsys):
    assert run_page("kernels.md") >= 4
    printed = capsys.readouterr().out
    assert float(printed.splitlines()[0]) > 0.98
    for algorithm in ("gram", "tiled", "low_rank"):
        assert re.search(rf"^{algorithm} ", printed, flags=re.MULTILINE)


def test_the_page_on_learned_couplings_runs(capsys):
    assert run_page("learned-coupling.md") >= 1
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[:2]]
    said = [
        float(text)
        for text in re.findall(r"falls from ([\d.]+) \(flat\) to (\d+\.\d+)", read_page("learned-coupling.md"))[0]
    ]
    assert losses == pytest.approx(said, abs=0.01)


def test_the_page_on_hyperparameters_runs(capsys):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Learning hyperparameters: stopped after max_evaluations")
        assert run_page("hyperparameters.md") >= 4
    printed = capsys.readouterr().out
    assert "LearningResult: converged" in printed
    assert "20 parameters" in printed or "21 parameters" in printed


def test_the_page_on_commands_runs(capsys, tmp_path, monkeypatch):
    """Its commands on small tables with the columns they name, then its Python."""
    page = read_page("commands.md")
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
    assert run_page("commands.md") == 1
    assert capsys.readouterr().out == "['fruit']\n"


def test_the_tutorial_runs(capsys, tmp_path, monkeypatch):
    """Block by block; training is cut short."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, block in re.findall(r"```(python|)\n(.*?)```", read_page("tutorial.md"), flags=re.DOTALL):
        if language == "python":
            exec(compile(block, "tutorial.md", "exec"), names)
            continue
        for line in block.splitlines():
            arguments = line.split()[1:]
            short = ["--words", "1-1", "--tol", "1e-2", "--time-limit", "5"] if arguments[0] == "train" else []
            assert main(arguments + short) == 0
    printed = capsys.readouterr().out
    assert "taxo-loss" in printed
    assert "scipy/sparse" in printed
    assert Path("modules.html").stat().st_size > 100_000
    assert len(Path("answers.csv").read_text(encoding="utf-8").splitlines()) == 1001
