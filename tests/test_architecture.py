"""The tree is the architecture: includes point one way, Python stays in the bindings, files have a size."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CPP = ROOT / "cpp"
LAYER_ROOTS = (CPP / "include" / "taxolearn", CPP / "src")

# From the lowest up. A folder may include itself and every lower rank, never another folder of its own rank.
RANKS = (
    ("base",),
    ("classes", "data"),
    ("couplings", "kernels", "likelihood", "solver"),
    ("operators",),
    ("fit",),
    ("select",),
)
RANK_OF = {folder: rank for rank, folders in enumerate(RANKS) for folder in folders}

HEADERS = (".h", ".hpp")
SOURCES = (".cpp",)
INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>[<"])(?P<name>[^>"]+)[>"]', re.MULTILINE)


def files_below(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in suffixes)


def may_include(includer: str, included: str) -> bool:
    return includer == included or RANK_OF[included] < RANK_OF[includer]


def layer_of(path: Path) -> str | None:
    """Folder of the architecture that a file lies in, None for files outside of all."""
    for root in LAYER_ROOTS:
        if path.is_relative_to(root):
            parts = path.relative_to(root).parts
            return parts[0] if len(parts) > 1 else None
    return None


def included_layers(path: Path) -> list[tuple[str, str | None]]:
    """Pairs (name as written, layer) of the project's own files that a file includes."""
    found = []
    for match in INCLUDE.finditer(path.read_text(encoding="utf-8")):
        name = match["name"]
        if name.startswith("taxolearn/"):
            found.append((name, layer_of(CPP / "include" / name)))
        elif match["open"] == '"':
            found.append((name, layer_of((path.parent / name).resolve())))
    return found


LAYERED = [path for root in LAYER_ROOTS for path in files_below(root, HEADERS + SOURCES) if layer_of(path)]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_check():
    assert LAYERED
    assert files_below(CPP / "bindings", SOURCES)


@pytest.mark.parametrize(
    ("includer", "included", "allowed"),
    [
        ("select", "fit", True),
        ("fit", "solver", True),
        ("operators", "base", True),
        ("solver", "solver", True),
        ("solver", "operators", False),
        ("likelihood", "solver", False),
        ("classes", "operators", False),
        ("data", "base", True),
        ("data", "classes", False),
        ("operators", "kernels", True),
        ("kernels", "operators", False),
        ("base", "classes", False),
    ],
)
def test_rule_itself(includer, included, allowed):
    assert may_include(includer, included) is allowed


def test_every_folder_has_a_rank():
    unknown = {layer_of(path) for path in LAYERED} - set(RANK_OF)
    assert not unknown, f"give these folders a place in RANKS: {sorted(unknown)}"


@pytest.mark.parametrize("path", LAYERED, ids=relative)
def test_includes_point_one_way(path):
    here = layer_of(path)
    wrong = [name for name, layer in included_layers(path) if layer not in RANK_OF or not may_include(here, layer)]
    assert not wrong, f"{relative(path)} ({here}) may not include {', '.join(wrong)}"


def test_only_the_bindings_know_python():
    outside = [
        path
        for folder in (CPP, ROOT / "bench")
        for path in files_below(folder, HEADERS + SOURCES)
        if not path.is_relative_to(CPP / "bindings")
    ]
    wrong = [
        relative(path)
        for path in outside
        for match in INCLUDE.finditer(path.read_text(encoding="utf-8"))
        if match["name"] == "Python.h" or match["name"].startswith("pybind11/")
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("folders", "suffixes", "limit"),
    [
        (("cpp", "bench"), HEADERS, 300),
        (("cpp", "bench"), SOURCES, 500),
        (("python/taxolearn",), (".py",), 600),
    ],
    ids=["headers", "sources", "python modules"],
)
def test_files_have_a_size(folders, suffixes, limit):
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines())
        for folder in folders
        for path in files_below(ROOT / folder, suffixes)
    }
    too_long = {name: lines for name, lines in lengths.items() if lines > limit}
    assert not too_long, f"more than {limit} lines, so it is two things: {too_long}"
