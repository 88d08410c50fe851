"""The targets of ``fuzz.py`` on files that were changed at random: each is read, or refused by a ``ValueError``."""

import importlib.util
import warnings

import numpy as np
import pytest
from fuzz import make_targets

from taxolearn.cli import main

FILES = 60


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return make_targets(tmp_path_factory.mktemp("fuzz"))


def changed(seed, generator):
    """Some bytes replaced, left out, repeated or inserted."""
    content = bytearray(seed)
    for _ in range(int(generator.integers(1, 5))):
        begin = int(generator.integers(len(content) + 1))
        end = begin + int(generator.integers(1, 12))
        kind = generator.integers(5)
        if kind == 0:
            content[begin:end] = generator.bytes(end - begin)
        elif kind == 1:
            del content[begin:end]
        elif kind == 2:
            content[begin:begin] = content[begin:end]
        elif kind == 3:
            content[begin:end] = str(generator.choice([0, -1, 2**31, 2**63, "NaN", '"', "\n", "[", "1e999"])).encode()
        elif content:
            content[begin % len(content)] ^= 1 << int(generator.integers(8))
    return bytes(content)


@pytest.mark.parametrize("number", range(24))
def test_changed_files(number, targets):
    assert len(targets) == 24
    target = list(targets.values())[number]
    generator = np.random.default_rng(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, about settings that make no sense
        for seed in target.seeds:
            target.run(seed)
            for _ in range(FILES):
                target.run(changed(seed, generator))


COMMANDS = {
    "svmlight": ("svmlight", ["train", "{file}", "--format", "svmlight", "--variance", "1", "-o", "{model}"]),
    "lshtc": ("lshtc", ["train", "{file}", "--format", "lshtc", "--variance", "1", "-o", "{model}"]),
    "arff": ("arff", ["train", "{file}", "--format", "arff", "--variance", "1", "-o", "{model}"]),
    "npz": ("npz", ["train", "{file}", "--format", "npz", "--variance", "1", "-o", "{model}"]),
    "taxonomy-paths": ("taxonomy", ["--taxonomy-format", "paths"]),
    "taxonomy-edges": ("taxonomy", ["--taxonomy-format", "edges"]),
    "taxonomy-adjacency": ("taxonomy", ["--taxonomy-format", "adjacency"]),
    "taxonomy-newick": ("taxonomy", ["--taxonomy-format", "newick"]),
    "taxonomy-json": ("taxonomy", ["--taxonomy-format", "json"]),
    "model": ("model", ["predict", "{file}", "{table}"]),
}
if importlib.util.find_spec("pyarrow") is not None:
    table = [
        "train",
        "{file}",
        "--format",
        "parquet",
        "--variance",
        "1",
        "-o",
        "{model}",
        "--text",
        "a",
        "--label",
        "b",
    ]
    COMMANDS["parquet"] = ("parquet", table)


@pytest.mark.parametrize("name", COMMANDS)
def test_changed_files_on_the_command_line(name, targets, tmp_path, capsys):
    """One line and an exit code that means something, whatever is in the file."""
    kind, arguments = COMMANDS[name]
    (tmp_path / "t.csv").write_text(
        "text,label\n" + "".join(f"word{k},c\nother,d\n" for k in range(4)), encoding="utf-8"
    )
    names = {"file": tmp_path / "file", "table": tmp_path / "t.csv", "model": tmp_path / "m.taxo"}
    if kind == "taxonomy":
        table = ["train", "{table}", "--text", "text", "--label", "label", "--variance", "1", "-o", "{model}"]
        arguments = [*table, "--taxonomy", "{file}", *arguments]
    generator = np.random.default_rng(0)
    codes = set()
    for seed in targets[name].seeds:
        for _ in range(25):
            names["file"].write_bytes(changed(seed[1:] if kind == "parquet" else seed, generator))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = main([argument.format(**names) for argument in arguments])
            printed = capsys.readouterr()
            assert code in (0, 2, 3, 4)
            assert code == 0 or (printed.err.count("\n") == 1 and printed.err.startswith("taxolearn: "))
            codes.add(code)
    assert codes - {0}
