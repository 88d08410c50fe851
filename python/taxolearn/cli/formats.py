"""Formats of the data files that commands read, and what the user says about a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from taxolearn.cli.main import USAGE, CommandError, delimiter, option, quote
from taxolearn.raw_files import Source
from taxolearn.readers.arff import read_arff
from taxolearn.readers.labelled import LabelledData
from taxolearn.readers.npz import read_npz
from taxolearn.readers.svmlight import read_lshtc, read_svmlight

__all__ = ["FORMATS", "LINES", "MATRICES", "TABLES", "DataFile", "FileFormat", "format_of", "read_matrix"]

_GROUP = "data file"
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")


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
TABLES = tuple(name for name, form in FORMATS.items() if form.read is None)
MATRICES = tuple(name for name in FORMATS if name not in TABLES)
LINES = tuple(name for name, form in FORMATS.items() if form.is_lines)


def format_of(path: str) -> str | None:
    """The format by the ending of a file's name, None if that is unknown."""
    path = path.lower().removesuffix(".gz")
    return next((name for name, form in FORMATS.items() if path.endswith(form.endings or ("\0",))), None)


def read_matrix(source: Source, name: str, n_features: int | None = None) -> LabelledData:
    """Inputs and labels of a file in one of the formats of ``MATRICES``."""
    read = FORMATS[name].read
    if read is None:
        raise ValueError(f"the format is {name!r}, expected one of {', '.join(MATRICES)}")
    return read(source, n_features)


@dataclass(frozen=True)
class DataFile:
    """A data file, and what the user said about it.

    Attributes
    ----------
    path : str
        "-" is the standard input.
    format : str or None
        None if the name says it.
    encoding : str
        Of a table.
    delimiter, quote : str or None
        Of CSV and TSV, as in ``read_chunks``.
    label_names : str or None
        The XML file that names the labels of an ARFF file in which they are attributes.
    """

    path: str = option("data", help="data file to read; - for the standard input")
    format: str | None = option(
        "--format", choices=tuple(FORMATS), group=_GROUP, help="format of the data, if the name does not tell"
    )
    encoding: str = option(
        "--encoding", default="utf-8", metavar="NAME", group=_GROUP, help="encoding of a table (default: %(default)s)"
    )
    delimiter: str | None = option(
        "--delimiter",
        type=delimiter,
        metavar="C",
        group=_GROUP,
        help="character between the fields of a table, or the word tab (default: found from the header)",
    )
    quote: str | None = option(
        "--quote",
        type=quote,
        default='"',
        metavar="C",
        group=_GROUP,
        help="character around fields that hold delimiters, or the word none (default: %(default)s)",
    )

    label_names: str | None = option(
        "--label-names",
        metavar="XML",
        group=_GROUP,
        help="file that names the attributes of an ARFF file that are labels, as Mulan has it",
    )

    @property
    def kind(self) -> str:
        """The format: as given, or by the ending of the name."""
        if self.label_names is not None and (self.format or format_of(self.path)) != "arff":
            raise CommandError(f"--label-names is for ARFF files, and {self.path} is none", USAGE)
        if self.format is not None:
            return self.format
        found = format_of(self.path)
        if found is None:
            if self.path.lower().endswith(_SPREADSHEETS):
                raise CommandError(f"{self.path}: spreadsheets (Excel) are not read; save the table as CSV", USAGE)
            shown = "standard input" if self.path == "-" else self.path
            raise CommandError(
                f"{shown}: the format is not clear from the name; give --format {'|'.join(FORMATS)}", USAGE
            )
        return found
