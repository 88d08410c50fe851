"""Environments of other libraries: made once, and again when something has changed."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench.harness.isolated import ROOT, isolated
from bench.harness.report import machine

_REQUIREMENTS = ROOT / "bench" / "libraries"  # a file per environment
_SOURCES = ("CMakeLists.txt", "pyproject.toml", "cpp", "python")  # that the wheel depends on
_DONE = "done.txt"  # in a folder that is complete: of what


@dataclass(frozen=True)
class Environments:
    """Interpreters: ``most`` has all libraries but PECOS, which is installed without its requirements."""

    most: Path
    pecos: Path

    def machine(self) -> dict[str, Any]:
        """What ``report.machine`` says there, with the versions of both."""
        about, other = (isolated(machine, {}, 1, python=python) for python in (self.most, self.pecos))
        return about | {"versions": other["versions"] | about["versions"]}


def setup(folder: Path) -> Environments:
    """Make the environments of the libraries to compare with; nothing is done twice."""
    return Environments(most=interpreter(folder, "most"), pecos=interpreter(folder, "pecos"))


def interpreter(folder: Path, name: str | None) -> Path:
    """That of the environment with this name, or this one; nothing is done twice in a run."""
    return Path(sys.executable) if name is None else _environment_of_libraries(folder, name)


@cache
def _environment_of_libraries(folder: Path, name: str) -> Path:
    return environment(folder, name, *(("--no-deps",) if name == "pecos" else ()))


def environment(folder: Path, name: str, *options: str) -> Path:
    """Make a virtual environment below ``folder``, with taxolearn of this checkout, unless it is there.

    What it needs is in bench/libraries/<name>.txt, and is installed with these options of pip. Returns the interpreter.
    """
    folder = folder.resolve()
    state = _digest(path for source in _SOURCES for path in sorted([ROOT / source, *(ROOT / source).rglob("*")]))
    wheels = folder / "wheel"
    _unless_done(wheels, state, partial(_build, wheels))
    requirements = _REQUIREMENTS / f"{name}.txt"
    here = folder / name
    python = here / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = partial(_install, here, python, requirements, options, wheels)
    _unless_done(here, state + _digest([requirements]), install)
    return python


def _digest(paths: Any) -> str:
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _unless_done(folder: Path, state: str, work: Callable[[], None]) -> None:
    note = folder / _DONE
    if note.exists() and note.read_text() == state:
        return
    note.unlink(missing_ok=True)
    work()
    note.write_text(state)


def _run(*command: Any) -> None:
    print("  " + " ".join(Path(part).name if isinstance(part, Path) else part for part in command), flush=True)
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True)


def _build(wheels: Path) -> None:
    wheels.mkdir(parents=True, exist_ok=True)
    for old in wheels.glob("*.whl"):
        old.unlink()
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, ROOT)


def _install(folder: Path, python: Path, requirements: Path, options: tuple[str, ...], wheels: Path) -> None:
    (wheel,) = wheels.glob("*.whl")
    if not python.exists():
        _run(sys.executable, "-m", "venv", folder)
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, *options, "--requirement", requirements)
    _run(*pip, wheel)
    _run(*pip, "--force-reinstall", "--no-deps", wheel)  # its version does not change with its sources
