"""The tree is the architecture: includes and imports point one way, Python stays in the bindings, files have a size."""

import ast
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
    ("bayes", "margin", "operators", "recursive"),
    ("embedding", "fit"),
    ("select",),
)
RANK_OF = {folder: rank for rank, folders in enumerate(RANKS) for folder in folders}

# The same for python/taxolearn, by folders and by modules that lie in none. "taxolearn" is the package's own __init__.
PACKAGE = ROOT / "python" / "taxolearn"
ROOM_RANKS = (
    ("_core", "sequence_codes"),
    ("blocks",),
    ("progress", "raw_files", "validation"),
    ("features", "readers"),
    ("taxonomy",),
    ("couplings", "datasets", "metrics", "targets"),
    ("decisions", "kernels", "set_decisions"),
    ("fitting",),
    ("tuning",),
    ("estimators", "model_selection"),
    ("files", "plotting", "report"),
    ("taxolearn",),
    ("cli",),
    ("__main__",),
)
ROOM_RANK_OF = {room: rank for rank, rooms in enumerate(ROOM_RANKS) for room in rooms}

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
        if not (path.is_relative_to(CPP / "bindings") or path.is_relative_to(CPP / "tests" / "python"))
    ]
    wrong = [
        relative(path)
        for path in outside
        for match in INCLUDE.finditer(path.read_text(encoding="utf-8"))
        if match["name"] == "Python.h" or match["name"].startswith("pybind11/")
    ]
    assert not wrong


def test_only_likelihoods_know_softmax():
    """The rest of the library asks the contract, so that another likelihood changes nothing else."""
    wrong = [
        relative(path)
        for path in LAYERED
        if layer_of(path) != "likelihood" and "taxolearn/likelihood/softmax.hpp" in path.read_text(encoding="utf-8")
    ]
    assert not wrong


# -- Rooms of the Python package --------------------------------------------------------------------------------------


def room_of(module: str) -> str:
    """The room that a module such as ``taxolearn.kernels.base`` lies in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__init__" else "taxolearn"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def exists(module: str) -> bool:
    path = PACKAGE.parent / Path(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports_of(source: str) -> list[tuple[str, str | None]]:
    """Pairs (module, name) of the package's own that a source imports anywhere, also in functions.

    The name is None where a module is imported as a whole.
    """
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(each.name, None) for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                found.append((inner, None) if exists(inner) else (str(node.module), each.name))
    return [pair for pair in found if pair[0].split(".")[0] == "taxolearn"]


def private_attributes(source: str) -> list[str]:
    """Private names that are reached through modules of other rooms, such as ``metrics._name``."""
    tree = ast.parse(source)
    modules = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "taxolearn"
        for each in node.names
        if exists(f"{node.module}.{each.name}")
    }
    return [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
        if node.attr.startswith("_") and not node.attr.startswith("__")
    ]


def may_import(importer: str, imported: str) -> bool:
    return importer == imported or ROOM_RANK_OF[imported] < ROOM_RANK_OF[importer]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


MODULES = files_below(PACKAGE, (".py",))


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("cli", "estimators", True),
        ("estimators", "tuning", True),
        ("tuning", "fitting", True),
        ("fitting", "kernels", True),
        ("kernels", "couplings", True),
        ("kernels", "kernels", True),
        ("couplings", "kernels", False),
        ("kernels", "decisions", False),
        ("taxonomy", "metrics", False),
        ("fitting", "tuning", False),
        ("estimators", "files", False),
        ("files", "taxolearn", False),
    ],
)
def test_rule_of_rooms_itself(importer, imported, allowed):
    assert may_import(importer, imported) is allowed


def test_imports_are_found():
    source = """
        import taxolearn
        from taxolearn import _core, metrics, load
        from numpy import array
        def function():
            from taxolearn.kernels.base import _private
            return metrics._name
    """
    text = "\n".join(line[8:] for line in source.splitlines())
    assert imports_of(text) == [
        ("taxolearn", None),
        ("taxolearn._core", None),
        ("taxolearn.metrics", None),
        ("taxolearn", "load"),
        ("taxolearn.kernels.base", "_private"),
    ]
    assert private_attributes(text) == ["metrics._name"]


def test_every_room_has_a_rank():
    rooms = {room_of(module_of(path)) for path in MODULES}
    assert rooms == set(ROOM_RANK_OF), "give each room a place in ROOM_RANKS"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_imports_point_one_way(path):
    here = room_of(module_of(path))
    imported = imports_of(path.read_text(encoding="utf-8"))
    wrong = [module for module, _ in imported if not may_import(here, room_of(module))]
    assert not wrong, f"{relative(path)} ({here}) may not import {', '.join(wrong)}"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_private_names_stay_in_their_room(path):
    source = path.read_text(encoding="utf-8")
    here = room_of(module_of(path))
    wrong = [name for module, name in imports_of(source) if name and is_private(name) and room_of(module) != here]
    if here != "_core":
        wrong += private_attributes(source)
    assert not wrong, f"{relative(path)} uses private names of other rooms: {', '.join(wrong)}"


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
