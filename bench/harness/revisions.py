"""Revisions of this project, each built and installed in an environment of its own below ``build/compare``."""

import json
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench.harness.isolated import ROOT

FOLDER = ROOT / "build" / "compare"
WORKING_TREE = "working tree"
_SAME = ("numpy", "scipy", "scikit-learn", "threadpoolctl")  # packages that must not make a difference


@dataclass(frozen=True)
class Revision:
    """What is compared, and the interpreter that has it installed."""

    name: str
    python: Path


def commit(revision: str) -> str:
    """The full name of a revision's commit."""
    return _git("rev-parse", "--verify", f"{revision}^{{commit}}")


def install(revision: str | None) -> Revision:
    """Build and install a revision, or, for None, the working tree.

    A commit that is installed already is used again; the working tree is installed anew each time. All environments
    have the versions of numpy and its kin that this interpreter has.
    """
    if revision is None:
        folder, source = FOLDER / "working-tree", ROOT
        name = f"{WORKING_TREE} at {commit('HEAD')[:9]}"
    else:
        sha = commit(revision)
        folder, name = FOLDER / sha, f"{revision} ({sha[:9]})" if not sha.startswith(revision) else sha[:9]
        source = folder / "source"
    done = folder / "installed.json"
    command = _command(source)
    python = folder / "venv" / "bin" / "python"
    if revision is None or not done.exists() or json.loads(done.read_text()) != command:
        print(f"  installing {name}", flush=True)
        done.unlink(missing_ok=True)
        if revision is not None:
            _extract(sha, source)
        if not python.exists():
            _run([sys.executable, "-m", "venv", str(folder / "venv")])
        _run([str(python), *command])
        done.write_text(json.dumps(command))
    place = Path(_run([str(python), "-c", "import taxolearn; print(taxolearn.__file__)"]).strip())
    if not place.is_relative_to(folder):
        raise RuntimeError(f"{python} imports taxolearn from {place.parent}, not its own; is PYTHONPATH set?")
    return Revision(name, python)


def _command(source: Path) -> list[str]:
    """The command that installs the source, compiled for this machine."""
    options = ["--config-settings=cmake.define.TAXOLEARN_LEVELS=native"]
    if shutil.which("ccache"):
        options.append("--config-settings=cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache")
    return ["-m", "pip", "install", "--quiet", *options, str(source), *(f"{name}=={version(name)}" for name in _SAME)]


def _extract(sha: str, source: Path) -> None:
    """Write the files of a commit, in place of what was there."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    archive = source.with_suffix(".tar")
    _git("archive", f"--output={archive}", sha)
    with tarfile.open(archive) as file:
        file.extractall(source, filter="data")
    archive.unlink()


def _git(*arguments: str) -> str:
    return _run(["git", *arguments]).strip()


def _run(command: list[str]) -> str:
    """Return the output of a command, which must succeed."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
    return done.stdout
