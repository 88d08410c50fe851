"""The file formats that commands read: their names, the endings of file names, and the reader of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from taxolearn.readers.arff import read_arff
from taxolearn.readers.byte_source import Source
from taxolearn.readers.labelled import LabelledData
from taxolearn.readers.npz import read_npz
from taxolearn.readers.svmlight import read_lshtc, read_svmlight

__all__ = ["FORMATS", "LINES", "MATRICES", "TABLES", "FileFormat", "format_of", "read_matrix"]


@dataclass(frozen=True)
class FileFormat:
    """A file format.

    Attributes
    ----------
    endings : tuple of str
        Endings of file names that tell the format; ".gz" may follow.
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
TABLES = tuple(name for name, form in FORMATS.items() if form.read is None)
MATRICES = tuple(name for name in FORMATS if name not in TABLES)
LINES = tuple(name for name, form in FORMATS.items() if form.is_lines)


def format_of(path: str) -> str | None:
    """Find the format by the ending of a file name; None if the ending is unknown."""
    path = path.lower().removesuffix(".gz")
    return next((name for name, form in FORMATS.items() if path.endswith(form.endings or ("\0",))), None)


def read_matrix(source: Source, name: str, n_features: int | None = None) -> LabelledData:
    """Read inputs and labels from a file in one of the formats of ``MATRICES``."""
    read = FORMATS[name].read
    if read is None:
        raise ValueError(f"the format is {name!r}, expected one of {', '.join(MATRICES)}")
    return read(source, n_features)
