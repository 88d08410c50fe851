"""Proteins with their Enzyme Commission numbers, and 16S DNA with its taxonomy."""

import csv
import gzip
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.problems.data import data_directory
from taxolearn import Taxonomy

__all__ = ["Genera", "Proteins", "enzymes", "genera"]

_LEVELS = 3  # of Enzyme Commission numbers
_FEWEST = 10  # proteins of a class
_FEWEST_OF_GENUS = 5


@dataclass(frozen=True)
class Proteins:
    """Sequences, the indicator of their classes (closed upwards), and the classes; depth 0 is the first level."""

    sequences: list[str]
    Y: npt.NDArray[np.bool_]
    new_sequences: list[str]  # a test set of its own
    Y_new: npt.NDArray[np.bool_]
    names: list[str]
    parents: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int64]
    taxonomy: Taxonomy


@dataclass(frozen=True)
class Genera:
    """Sequences with a path of names each, from the domain to the genus."""

    sequences: list[str]
    paths: list[tuple[str, ...]]


def _rows(path: Path) -> list[list[str]]:
    csv.field_size_limit(10**9)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))[1:]


def _classes(numbers: str) -> set[str]:
    """Classes of all levels: "3.5.2.6" is in 3, 3.5 and 3.5.2."""
    found = set()
    for number in numbers.split(";"):
        parts = number.strip().split(".")[:_LEVELS]
        known = parts[: next((k for k, part in enumerate(parts) if not part.isdigit()), len(parts))]
        found |= {".".join(known[: k + 1]) for k in range(len(known))}
    return found


def enzymes() -> Proteins:
    """Proteins no two of which are alike, and 392 that were found later; classes with ten proteins or more."""
    folder = data_directory() / "enzyme"
    rows, new = (_rows(folder / f"{name}.csv.gz") for name in ("split10", "new"))
    sets = [_classes(row[1]) for row in rows]
    counts = Counter(name for each in sets for name in each)
    names = sorted(name for name, count in counts.items() if count >= _FEWEST)
    place = {name: k for k, name in enumerate(names)}

    def indicator(of: list[set[str]]) -> npt.NDArray[np.bool_]:
        return np.array([[name in each for name in names] for each in of])

    above = [name.rpartition(".")[0] for name in names]
    return Proteins(
        [row[2] for row in rows],
        indicator(sets),
        [row[2] for row in new],
        indicator([_classes(row[1]) for row in new]),
        names,
        np.array([place.get(name, -1) for name in above]),
        np.array([name.count(".") for name in names]),
        Taxonomy.from_edges([(parent or "root", name) for parent, name in zip(above, names, strict=True)]),
    )


def genera() -> Genera:
    """The training set 9 of the Ribosomal Database Project: full paths, genera with five sequences or more."""
    rows = _rows(data_directory() / "rdp16s" / "trainset9_rdp.tsv.gz")
    paths = [tuple(row[1].split(";")) for row in rows]
    full = [path for path in paths if len(path) == 6]
    counts = Counter(full)
    kept = [k for k, path in enumerate(paths) if counts[path] >= _FEWEST_OF_GENUS]
    return Genera([rows[k][2].upper() for k in kept], [paths[k] for k in kept])
