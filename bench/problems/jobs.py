"""Whole jobs: data as users have them, texts or plain columns, with labels and the tree if there is one."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bench.problems.data import data_directory, satimage, usps
from bench.problems.trees import TREES
from taxolearn import Taxonomy
from taxolearn.datasets import load_docstrings, read_npz, read_table, read_text_pairs

Labels = npt.NDArray[Any]

QUICK_ROWS = 600  # of a job that is only tried out


@dataclass(frozen=True)
class EmbeddedTexts:
    """Texts, and what a sentence model makes of them (n x d)."""

    texts: list[str]
    embedding: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: Any) -> EmbeddedTexts:
        return EmbeddedTexts([self.texts[i] for i in rows], self.embedding[rows])


@dataclass(frozen=True)
class Job:
    """Rows for training and test: lists of texts, texts with embeddings, matrices, or data frames."""

    name: str
    X: Any
    y: Labels
    X_test: Any
    y_test: Labels
    taxonomy: Taxonomy | None = None

    @property
    def is_text(self) -> bool:
        return isinstance(self.X, list)

    @property
    def is_sparse(self) -> bool:
        """Whether the inputs are texts or a sparse matrix."""
        return self.is_text or sparse.issparse(self.X)

    @property
    def has_counts(self) -> bool:
        """Whether the inputs are sparse and whole numbers, which weights of terms are made of."""
        return sparse.issparse(self.X) and bool((self.X.data == np.rint(self.X.data)).all())

    @property
    def description(self) -> str:
        is_text = self.is_text or isinstance(self.X, EmbeddedTexts)
        columns = "texts" if is_text else f"{self.X.shape[1]} features"
        tree = "flat" if self.taxonomy is None else f"tree of {self.taxonomy.n_nodes - 1} nodes"
        return f"{len(self.y)} / {len(self.y_test)} rows, {columns}, {len(np.unique(self.y))} classes, {tree}"

    def first_rows(self, count: int) -> Job:
        """A random subset of the training rows, always the same."""
        rows = np.sort(np.random.default_rng(0).permutation(len(self.y))[:count])
        X = [self.X[i] for i in rows] if self.is_text else self.X[rows]
        return Job(self.name, X, self.y[rows], self.X_test, self.y_test, self.taxonomy)


def held_out_share(y: Labels, share: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A random share of the rows, always the same, and the others, among which every class has a row."""
    order = np.random.default_rng(0).permutation(len(y))
    first = np.unique(y[order], return_index=True)[1]
    held_out = np.sort(np.delete(order, first)[: max(1, int(share * len(y)))])
    return held_out, np.setdiff1d(order, held_out)


def held_out_tenth(y: Labels) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A tenth of the rows, to choose settings by."""
    return held_out_share(y, 0.1)


def _split(name: str, X: Any, y: Labels, taxonomy: Taxonomy | None, share: float = 0.2) -> Job:
    """A random share of the rows for the test, always the same."""
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.sort(order[: int(share * len(y))]), np.sort(order[int(share * len(y)) :])
    if isinstance(X, list):
        return Job(name, [X[i] for i in train], y[train], [X[i] for i in test], y[test], taxonomy)
    return Job(name, X[train], y[train], X[test], y[test], taxonomy)


def _news20_raw() -> Job:
    parts: dict[str, tuple[list[str], list[str]]] = {"train": ([], []), "test": ([], [])}
    with tarfile.open(data_directory() / "news20" / "20news-bydate.tar.gz") as archive:
        for member in archive:
            *_, folder, group, name = ("", "", *member.name.split("/"))
            if member.isfile() and name.isdigit() and (file := archive.extractfile(member)) is not None:
                texts, labels = parts[folder.rpartition("-")[2]]
                texts.append(file.read().decode("latin-1"))
                labels.append(group)
    (X, y), (X_test, y_test) = parts["train"], parts["test"]
    return Job("news20", X, np.array(y), X_test, np.array(y_test), Taxonomy.from_labels(y, separator="."))


def _news20_counts() -> Job:
    """Counts of words, as published; weights of terms are part of the job."""
    path = data_directory() / "news20" / "news20_rennie_vocab_counts.npz"
    names = np.array((path.parent / "rennie_newsgrouplabels.txt").read_text().split()[1::2])
    train, test = (read_npz(path, part, n_features=61188) for part in ("train", "test"))
    y, y_test = (names[part.y - train.y.min()] for part in (train, test))
    return Job("news20 counts", train.X, y, test.X, y_test, Taxonomy.from_labels(names, separator="."))


def _clinc150() -> Job:
    folder = data_directory() / "clinc150"
    (X, y), (X_test, y_test) = (read_text_pairs(folder / "data_full.json.gz", part) for part in ("train", "test"))
    return Job(
        "clinc150", list(X), np.array(y), list(X_test), np.array(y_test), Taxonomy.from_file(folder / "domains.json")
    )


def _occupation_tree(codes: Sequence[str]) -> Taxonomy:
    paths = (tuple(dict.fromkeys((c[:2], c[:4], c[:6], c[:7], c))) for c in sorted(set(codes)))
    return Taxonomy.from_paths(paths)


def _onet_titles() -> Job:
    table = read_table(data_directory() / "onet" / "Alternate_Titles.txt.gz")
    codes = np.array(table["O*NET-SOC Code"])
    return _split("onet titles", list(table["Alternate Title"]), codes, _occupation_tree(codes.tolist()))


def _onet_tasks() -> Job:
    table = read_table(data_directory() / "onet" / "Task_Statements.txt.gz")
    codes = np.array(table["O*NET-SOC Code"])
    return _split("onet tasks", list(table["Task"]), codes, _occupation_tree(codes.tolist()), share=0.25)


def _tree(name: str) -> Job:
    data = TREES[name]()
    return Job(name, data.X, data.y, data.X_test, data.y_test, data.taxonomy)


def write_docstrings(path: Path) -> None:
    """Write the docstrings of the packages that are installed here, unless the file is there."""
    if not path.exists():
        texts, labels = load_docstrings(return_X_y=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([list(texts), np.asarray(labels).tolist()]))


def read_docstrings(path: Path) -> Job:
    """The docstrings that ``write_docstrings`` wrote, perhaps where other versions are installed."""
    texts, labels = json.loads(path.read_text())
    return _of_docstrings(texts, labels)


def _docstrings() -> Job:
    return _of_docstrings(*load_docstrings(return_X_y=True))


def _of_docstrings(texts: Sequence[str], labels: Sequence[str]) -> Job:
    return _split("docstrings", list(texts), np.asarray(labels), Taxonomy.from_labels(labels), share=0.25)


def _reuters() -> Job:
    """Articles with one topic; topics that have rows on both sides."""
    with gzip.open(data_directory() / "reuters21578" / "modapte.tsv.gz", "rt", encoding="utf-8") as file:
        header = next(file).rstrip("\n").split("\t")
        rows = [dict(zip(header, line.rstrip("\n").split("\t"), strict=False)) for line in file]
    one = [row for row in rows if row["topics"] and not any(sign in row["topics"] for sign in ",; ")]
    text = [f"{row['title']}\n{row.get('body', '')}" for row in one]
    y = np.array([row["topics"] for row in one])
    is_train = np.array([row["split"].lower().startswith("train") for row in one])
    both = np.isin(y, y[is_train]) & np.isin(y, y[~is_train])
    train, test = np.flatnonzero(is_train & both), np.flatnonzero(~is_train & both)
    return Job("reuters", [text[i] for i in train], y[train], [text[i] for i in test], y[test])


def _goemotions() -> Job:
    folder = data_directory() / "goemotions"
    rows = [line.split("\t") for line in (folder / "tree.tsv").read_text().splitlines()[1:]]
    path_of = {emotion: f"{group}/{ekman}/{emotion}" for emotion, ekman, group in rows}
    names = (folder / "labels_original.txt").read_text().split()
    parts: list[Any] = []
    for part in ("train", "test"):
        with gzip.open(folder / f"{part}.tsv.gz", "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        one = [line for line in lines if line[1].isdigit()]
        parts += [[line[0] for line in one], np.array([path_of[names[int(line[1])]] for line in one])]
    return Job("goemotions", *parts, Taxonomy.from_labels(parts[1]))


def _covtype() -> Job:
    """20,000 random rows for training, as many for the test."""
    with gzip.open(data_directory() / "covtype" / "covtype.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(table))
    train, test = table[order[:20_000]], table[order[20_000:40_000]]
    return Job("covtype", train[:, :-1], train[:, -1].astype(np.int64), test[:, :-1], test[:, -1].astype(np.int64))


def _dense(load: Callable[[], Any]) -> Job:
    data = load()
    return Job(data.name.lower(), data.X, data.y, data.X_test, data.y_test)


JOBS: dict[str, Callable[[], Job]] = {
    "news20": _news20_raw,
    "news20-counts": _news20_counts,
    "clinc150": _clinc150,
    "onet-titles": _onet_titles,
    "onet-tasks": _onet_tasks,
    "lshtc": partial(_tree, "lshtc"),
    "docstrings": _docstrings,
    "reuters": _reuters,
    "goemotions": _goemotions,
    "clef": partial(_tree, "clef"),
    "satimage": partial(_dense, satimage),
    "usps": partial(_dense, usps),
    "covtype": _covtype,
}
