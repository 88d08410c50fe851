"""Formats of data files, and matrices as the commands read them: with the features of the model, and one label per row
or several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taxolearn.cli.main import CommandError
from taxolearn.features.missing import has_missing
from taxolearn.raw_files import Source, read_blocks
from taxolearn.readers.arff import ArffData, read_arff
from taxolearn.readers.labelled import LabelledData
from taxolearn.readers.mulan import read_mulan
from taxolearn.readers.npz import read_npz
from taxolearn.readers.svmlight import read_lshtc, read_svmlight
from taxolearn.taxonomy.graph import ClassGraph

__all__ = [
    "FORMATS",
    "FileFormat",
    "has_label_lists",
    "inputs_and_labels",
    "read_matrix",
]

_LOOKED_AT = 2**20  # bytes


@dataclass(frozen=True)
class FileFormat:
    """A file format.

    Attributes
    ----------
    endings : tuple of str
        Endings of the names of such files; ".gz" may follow.
    read : callable or None
        Reads a matrix with its labels, from a source and the number of features, None if that is not known. None for
        tables, which ``tables.read_chunks`` reads by the name of the format.
    is_lines : bool
        Whether it is a table in lines of text, which is read and written from front to back, also by pipes.
    """

    endings: tuple[str, ...]
    read: Callable[[Source, int | None], LabelledData] | None = None
    is_lines: bool = False


FORMATS = {
    "csv": FileFormat((".csv",), is_lines=True),
    "tsv": FileFormat((".tsv", ".tab"), is_lines=True),
    "jsonl": FileFormat((".jsonl", ".ndjson"), is_lines=True),
    "parquet": FileFormat((".parquet", ".pq")),
    "svmlight": FileFormat(
        (".svm", ".svmlight", ".libsvm"), lambda source, n_features: read_svmlight(source, n_features=n_features)
    ),
    "lshtc": FileFormat((), lambda source, n_features: read_lshtc(source, n_features=n_features)),
    "arff": FileFormat((".arff",), lambda source, _: read_arff(source)),
    "npz": FileFormat((".npz",), lambda source, n_features: read_npz(source, n_features=n_features)),
}


def read_matrix(source: Source, name: str, n_features: int | None = None) -> LabelledData:
    """Inputs and labels of a file in one of the formats of matrices."""
    read = FORMATS[name].read
    if read is None:
        expected = ", ".join(name for name, form in FORMATS.items() if form.read is not None)
        raise ValueError(f"the format is {name!r}, expected one of {expected}")
    return read(source, n_features)


def inputs_and_labels(
    path: str, kind: str, label_names: str | None, n_features: int | None, *, several: bool, fills_missing: bool
) -> tuple[Any, Any, ClassGraph | None]:
    """Read the inputs, the labels if there are any, and their graph, if they have one, of a file of this kind.

    ``label_names`` is the XML file that names those attributes of an ARFF file that are labels. Labels are an array
    with one for each row, or of objects that are tuples of texts: if ``several`` are expected, or some row does not
    have exactly one.
    """
    wanted = n_features or None
    found = _read(Path(path), kind, label_names, wanted, several)
    if wanted is not None and found.X.shape[1] != wanted:
        raise CommandError(f"{path}: there are {found.X.shape[1]} features, the model has {wanted}")
    if not fills_missing:
        _check_missing(found, path)
    labels = found.y
    if labels is None or (isinstance(labels, np.ndarray) and not several):
        return found.X, labels, None
    if isinstance(labels, np.ndarray):
        labels = [(label,) for label in labels.tolist()]
    if not several and all(len(each) == 1 for each in labels):
        return found.X, np.array([each[0] for each in labels]), None
    cells = np.empty(len(labels), dtype=object)
    cells[:] = [tuple(map(str, each)) for each in labels]
    return found.X, cells, _graph_of(found)


def _graph_of(found: LabelledData) -> ClassGraph | None:
    """The graph that an ARFF file lists, without the root, which says nothing."""
    if not (isinstance(found, ArffData) and found.is_dag):
        return None
    classes = set(found.classes)
    return ClassGraph.from_edges([pair for pair in found.edges if pair[0] in classes], names=found.classes)


def _read(source: Path, kind: str, label_names: str | None, n_features: int | None, several: bool) -> LabelledData:
    if label_names is not None:
        return read_mulan(source, label_names)
    if kind == "svmlight" and (several or has_label_lists(source)):
        return read_svmlight(source, n_features=n_features, multilabel=True)
    try:
        return read_matrix(source, kind, n_features)
    except ValueError as error:
        raise ValueError(str(error).replace("see read_mulan", "give --label-names XML")) from None


def _check_missing(found: LabelledData, path: str) -> None:
    """Name the first missing value, which models refuse that were trained without any."""
    if not has_missing(found.X):
        return
    where = ""
    if isinstance(found.X, np.ndarray):
        row, column = np.argwhere(np.isnan(found.X))[0].tolist()
        names = getattr(found, "feature_names", None)
        where = f", row {row + 1}, {'column ' + str(column + 1) if names is None else repr(names[column])}"
    raise CommandError(
        f"{path}{where}: the value is missing, but none was in training, so the model does not know what to put in; "
        "put values in first (in Python by sklearn.impute.SimpleImputer), or train on rows with missing values"
    )


def has_label_lists(source: Path) -> bool:
    """Whether lines of an svmlight file have any number of labels, by the first ones.

    They begin with labels joined by commas, or at once with a feature, or the file with three sizes.
    """
    beginning = b""
    for block in read_blocks(source):  # the first may be short
        beginning += block
        if len(beginning) >= _LOOKED_AT:
            break
    for number, line in enumerate(beginning[:_LOOKED_AT].split(b"\n")):
        fields = line.partition(b"#")[0].split()
        if fields and (b"," in fields[0] or b":" in fields[0]):
            return True
        if number == 0 and len(fields) == 3 and all(field.isdigit() for field in fields):
            return True
    return False
