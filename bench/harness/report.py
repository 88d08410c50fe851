"""Results: what a benchmark states besides its numbers, and how they are written."""

import json
import os
import platform
from argparse import Namespace
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.harness.figures import Figure, draw
from taxolearn import _core

_PACKAGES = (
    *("taxolearn", "numpy", "scipy", "scikit-learn", "sparse_dot_mkl", "torch", "gpytorch", "jax", "jaxopt", "optuna"),
    *("scikit-learn-intelex", "mkl", "liblinear-official", "hiclass", "napkinxc", "libpecos", "lightgbm"),
    *("libmultilabel", "liblinear-multicore", "omikuji"),
)


def machine() -> dict[str, Any]:
    """Describe processor, cores and versions."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = models[0] if models else processor
    found = {package: _version(package) for package in _PACKAGES}
    versions = {"python": platform.python_version()} | {name: number for name, number in found.items() if number}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"processor": processor, "cores": cores, "simd": _core.simd_level, "versions": versions}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@dataclass
class Result:
    """One suite's outcome.

    ``rows`` are dictionaries with the keys ``problem`` (a panel of the figure), ``library``, perhaps ``case``, those of
    ``columns``, and possibly more.
    """

    suite: str
    title: str
    columns: dict[str, str]  # key -> heading of the table
    figure: Figure
    settings: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=machine)  # with the versions of those who did the work
    exit_code: int = 0  # of the command, for suites that judge

    @classmethod
    def of(cls, options: Namespace, settings: dict[str, Any] | None = None, **given: Any) -> "Result":
        """Begin the result of the suite that the options choose; their numbers and names are its settings."""
        chosen = {name: value for name, value in vars(options).items() if isinstance(value, (int, float, str))}
        return cls(suite=str(chosen.pop("suite")), settings=chosen | (settings or {}), **given)

    def add_note(self, note: str) -> None:
        """Add a note, once."""
        if note not in self.notes:
            self.notes.append(note)

    def describe(self, answer: dict[str, Any]) -> None:
        """Note the ``description`` of the data in an answer, if it has one."""
        if "description" in answer:
            self.add_note(f"{answer['description']}.")


def markdown(result: Result) -> str:
    """Format the table, with machine, settings and notes."""
    about = result.machine
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    settings = ", ".join(f"{name} {value}" for name, value in result.settings.items())
    lines = [
        f"# {result.title}",
        "",
        f"{about['processor']}, {about['cores']} cores, compiled for {about['simd']}; {settings}; {versions}.",
        "",
        "| " + " | ".join(result.columns.values()) + " |",
        "|" + " --- |" * len(result.columns),
    ]
    lines += ["| " + " | ".join(_cell(row.get(key)) for key in result.columns) + " |" for row in result.rows]
    return "\n".join([*lines, "", *(f"{note}\n" for note in result.notes)])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"
    return str(value)


def write(result: Result, directory: Path) -> None:
    """Write ``<suite>.json``, ``<suite>.md`` and, where matplotlib is installed, ``<suite>.svg``."""
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        "suite": result.suite,
        "title": result.title,
        "machine": result.machine,
        "settings": result.settings,
        "notes": result.notes,
        "rows": result.rows,
    }
    (directory / f"{result.suite}.json").write_text(json.dumps(content, indent=1) + "\n")
    table = markdown(result)
    (directory / f"{result.suite}.md").write_text(table)
    print(table)
    draw(result.figure, result.title, result.rows, directory / f"{result.suite}.svg")
