"""Rows with several labels each, as their owners publish them: texts or columns, and the hierarchy if there is one."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bench.problems.data import data_directory
from taxolearn import ClassGraph, Taxonomy
from taxolearn.datasets import read_arff, read_mulan

Rows = npt.NDArray[np.int64]

_PARTS = ("train", "test")


@dataclass(frozen=True)
class LabelJob:
    """Inputs, and indicators of labels (n x L, sparse), for training and test; ``classes`` are the names of columns.

    A ``hierarchy`` has the labels among its nodes. Where it holds inner nodes too, these are labels that rows have
    with those below.
    """

    name: str
    X: Any
    Y: Any
    X_test: Any
    Y_test: Any
    classes: list[str]
    hierarchy: Taxonomy | ClassGraph | None = None

    @property
    def is_text(self) -> bool:
        return isinstance(self.X, list)

    @property
    def has_one_label(self) -> bool:
        """Whether every row has just one label."""
        return bool((np.diff(self.Y.indptr) == 1).all() and (np.diff(self.Y_test.indptr) == 1).all())

    @property
    def has_counts(self) -> bool:
        """Whether the inputs are sparse and whole numbers, which weights of terms are made of."""
        return sparse.issparse(self.X) and bool((self.X.data == np.rint(self.X.data)).all())

    @property
    def description(self) -> str:
        columns = "texts" if self.is_text else f"{self.X.shape[1]} features"
        kind = "tree" if isinstance(self.hierarchy, Taxonomy) else "graph"
        nodes = "no hierarchy" if self.hierarchy is None else f"{kind} of {self.hierarchy.n_nodes} nodes"
        return (
            f"{self.Y.shape[0]} / {self.Y_test.shape[0]} rows, {columns}, {self.Y.shape[1]} labels, "
            f"{self.Y.sum() / self.Y.shape[0]:.2f} a row, {nodes}"
        )

    def first_rows(self, count: int) -> LabelJob:
        """A random subset of the training rows, always the same."""
        rows = np.sort(np.random.default_rng(0).permutation(self.Y.shape[0])[:count])
        return replace(self, X=take_rows(self.X, rows), Y=self.Y[rows])

    def label_sets(self) -> list[tuple[str, ...]]:
        """The labels of each training row by name."""
        names = np.array(self.classes, dtype=object)
        return [tuple(names[row]) for row in np.split(self.Y.indices, self.Y.indptr[1:-1])]


def take_rows(X: Any, rows: Rows) -> Any:
    """Some rows of a matrix, or of a list of texts."""
    return [X[i] for i in rows] if isinstance(X, list) else X[rows]


def held_out_label_rows(n: int) -> tuple[Rows, Rows]:
    """A random tenth of the rows, always the same, and the others: to choose settings by."""
    held_out, rest = np.split(np.random.default_rng(0).permutation(n), [n // 10])
    return np.sort(held_out), np.sort(rest)


def indicator(sets: Iterable[Iterable[str]], classes: Sequence[str]) -> Any:
    """The indicator of sets of labels (n x L); labels that are not among the classes are left out."""
    column = {name: k for k, name in enumerate(classes)}
    columns = [sorted({column[name] for name in each if name in column}) for each in sets]
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in columns])])
    indices = np.array([k for each in columns for k in each], dtype=np.int32)
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(columns), len(classes)))


# -- Labels without a hierarchy, or with a small one -------------------------------------------------------------------


def _delicious() -> list[LabelJob]:
    folder = data_directory() / "mulan"
    train, test = (read_mulan(folder / f"delicious-{part}.arff.gz", folder / "delicious.xml") for part in _PARTS)
    Y, Y_test = (indicator(part.y, train.classes) for part in (train, test))
    return [LabelJob("delicious", sparse.csr_matrix(train.X), Y, sparse.csr_matrix(test.X), Y_test, train.classes)]


def _bibtex() -> list[LabelJob]:
    """The ten splits of the repository of extreme classification, of the rows for training and test together."""
    import h5py

    folder = data_directory() / "mulan"
    with h5py.File(folder / "bibtex.mat") as file:
        X = sparse.csr_matrix(np.vstack([file[name][()].T for name in ("xt", "xs")]))
        Y = sparse.vstack([_of_matlab(file[name]) for name in ("yt", "ys")], format="csr")
    parts = []
    for part in ("tr", "tst"):
        with gzip.open(folder / f"Bibtex_{part}Split.txt.gz", "rt") as file:
            parts.append(np.loadtxt(file, dtype=np.int64) - 1)
    names = [f"{k:03d}" for k in range(Y.shape[1])]
    return [
        LabelJob("bibtex", X[train], Y[train], X[test], Y[test], names)
        for train, test in zip(parts[0].T, parts[1].T, strict=True)
    ]


def _of_matlab(group: Any) -> Any:
    """A sparse matrix of MATLAB, which stores columns one after the other."""
    data, rows, starts = (group[name][()] for name in ("data", "ir", "jc"))
    shape = (int(group.attrs["MATLAB_sparse"]), len(starts) - 1)
    return sparse.csc_array((data.astype(np.float64), rows.astype(np.int32), starts.astype(np.int32)), shape=shape)


def _reuters() -> list[LabelJob]:
    """R90: articles with some of the 90 topics that have articles on both sides."""
    with gzip.open(data_directory() / "reuters21578" / "modapte.tsv.gz", "rt", encoding="utf-8") as file:
        header = next(file).rstrip("\n").split("\t")
        rows = [dict(zip(header, line.rstrip("\n").split("\t"), strict=False)) for line in file]
    sides = {side: [row for row in rows if row["split"].startswith(side)] for side in _PARTS}
    topics = {side: {topic for row in part for topic in row["topics"].split()} for side, part in sides.items()}
    classes = sorted(topics["train"] & topics["test"])
    given: list[Any] = []
    for part in sides.values():
        some = [row for row in part if not topics["train"].isdisjoint(row["topics"].split())]
        sets = [row["topics"].split() for row in some]
        kept = [k for k, each in enumerate(sets) if not set(classes).isdisjoint(each)]
        given += [
            [f"{some[k]['title']}\n{some[k].get('body', '')}" for k in kept],
            indicator([sets[k] for k in kept], classes),
        ]
    return [LabelJob("reuters", *given, classes)]


def _goemotions() -> list[LabelJob]:
    folder = data_directory() / "goemotions"
    lines = [line.split("\t") for line in (folder / "tree.tsv").read_text().splitlines()[1:]]
    path_of = {emotion: f"{group}/{ekman}/{emotion}" for emotion, ekman, group in lines}
    names = [path_of[name] for name in (folder / "labels_original.txt").read_text().split()]
    given: list[Any] = []
    for part in _PARTS:
        with gzip.open(folder / f"{part}.tsv.gz", "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        sets = [[names[int(number)] for number in row[1].split(",")] for row in rows]
        given += [[row[0] for row in rows], indicator(sets, sorted(names))]
    return [LabelJob("goemotions", *given, sorted(names), Taxonomy.from_labels(names))]


LABEL_JOBS: dict[str, Callable[[], list[LabelJob]]] = {
    "delicious": _delicious,
    "bibtex": _bibtex,
    "reuters": _reuters,
    "goemotions": _goemotions,
}


# -- Functions of genes, and mails: labels on all nodes of a tree or a graph ------------------------------------------


def clus(name: str) -> LabelJob:
    """A set of the CLUS collection: training rows are those for training and validation; missing values are means.

    Labels are closed upwards, and are all nodes but the root.
    """
    folder = data_directory() / "hmc"
    parts = ("trainvalid", "test") if name.startswith("Enron") else ("train", "valid", "test")
    dot = "_" if name.startswith("Enron") else "."
    read = [read_arff(folder / f"{name}{dot}{part}.arff.gz") for part in parts]
    *train, test = read
    edges = dict.fromkeys(edge for part in read for edge in part.edges)
    hierarchy: Any = (ClassGraph if test.is_dag else Taxonomy).from_edges(list(edges))
    above = _ancestors(list(edges))
    classes = sorted(above)
    X = np.vstack([part.X for part in train])
    middle = np.nan_to_num(np.nanmean(X, axis=0))
    filled = [np.where(np.isnan(part), middle, part) for part in (X, test.X)]
    given = [row for part in train for row in part.y]
    Y, Y_test = (
        indicator((set().union(*(above[label] for label in row)) for row in part), classes) for part in (given, test.y)
    )
    return LabelJob(name, filled[0], Y, filled[1], Y_test, classes, hierarchy)


def _ancestors(edges: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    """Every node but the root, with itself and all above it but the root."""
    parents: dict[str, list[str]] = {}
    for parent, child in edges:
        parents.setdefault(child, []).append(parent)
    found: dict[str, set[str]] = {}

    def above(node: str) -> set[str]:
        if node not in found:
            found[node] = {node}.union(*(above(parent) for parent in parents[node] if parent in parents))
        return found[node]

    for node in parents:
        above(node)
    return found


CLUS_JOBS: dict[str, Callable[[], LabelJob]] = {
    name: partial(clus, name)
    for name in (
        *("Enron_corr", "church_FUN", "cellcycle_FUN", "eisen_FUN", "gasch1_FUN", "seq_FUN"),
        *("cellcycle_GO", "eisen_GO", "gasch1_GO", "seq_GO"),
    )
}
