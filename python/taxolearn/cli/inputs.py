"""Data files as the commands read them: tables in chunks, matrices whole, with labels where there are any."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from taxolearn.cli.embedding import EmbeddingOptions
from taxolearn.cli.main import (
    BAD_DATA,
    BAD_MODEL,
    SYSTEM,
    USAGE,
    CommandError,
    column_option,
    delimiter,
    lengths,
    option,
    options_of,
    positive,
    quote,
)
from taxolearn.cli.matrices import FORMATS, inputs_and_labels
from taxolearn.features.tables import CellError, TableFeatures
from taxolearn.readers.tables import CHUNK_ROWS, Chunk, read_chunks
from taxolearn.taxonomy.graph import ClassGraph

__all__ = [
    "BETWEEN_LABELS",
    "LEVELS",
    "LINES",
    "MATRICES",
    "TABLES",
    "Batch",
    "Columns",
    "DataFile",
    "Schema",
    "check_cells",
    "empty_texts",
    "format_of",
    "read_batches",
    "read_whole",
    "reading",
    "tidy_path",
]

LEVELS = "\x1f"  # between the levels of several columns, until a separator is chosen

_TEXTS = "features of texts"
_USUAL = TableFeatures()
# What files of before do not have.
_LATER_KINDS = ("embed", "embedding_columns", "dates", "sequences")
_LATER = {"label_separator": None, "fills_missing": False}
BETWEEN_LABELS = ";"
TABLES = tuple(name for name, form in FORMATS.items() if form.read is None)
MATRICES = tuple(name for name in FORMATS if name not in TABLES)
LINES = tuple(name for name, form in FORMATS.items() if form.is_lines)
_GROUP = "data file"
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")


def format_of(path: str) -> str | None:
    """The format by the ending of a file's name, None if that is unknown."""
    path = path.lower().removesuffix(".gz")
    return next((name for name, form in FORMATS.items() if path.endswith(form.endings or ("\0",))), None)


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


@dataclass(frozen=True)
class Schema:
    """Where features and labels are; it travels with the model.

    Attributes
    ----------
    text, numeric, categorical, label, embed, embedding_columns, dates, sequences : list of str
        Names of columns; several labels are the levels of a path. Empty for a matrix, which brings its labels along.
    separator : str or None
        Between the levels of a path; None if labels are no paths.
    n_features : int or None
        Columns of a matrix, None for a table.
    label_separator : str or None
        Between the labels of a cell that holds several; None where a row has one label.
    fills_missing : bool
        Whether numbers of a matrix may be missing.
    """

    text: list[str]
    numeric: list[str]
    categorical: list[str]
    label: list[str]
    separator: str | None
    n_features: int | None
    embed: list[str] = field(default_factory=list)
    embedding_columns: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    sequences: list[str] = field(default_factory=list)
    label_separator: str | None = None
    fills_missing: bool = False

    @property
    def is_table(self) -> bool:
        return self.n_features is None

    @property
    def has_embeddings(self) -> bool:
        return bool(self.embed or self.embedding_columns)

    @property
    def inputs(self) -> list[str]:
        """The columns that a model learns from, each once."""
        features = (self.text, self.sequences, self.numeric, self.dates, self.categorical)
        return list(dict.fromkeys(name for kind in (*features, self.embed, self.embedding_columns) for name in kind))

    @property
    def is_mixed(self) -> bool:
        """Whether the columns are evidence of several kinds, which count differently."""
        others = bool(self.numeric or self.dates or self.categorical)
        return self.has_embeddings or bool(self.text) + bool(self.sequences) + others > 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_report(cls, report: Any, model: str) -> Schema:
        """Take the schema from the report of a model that ``train`` has written."""
        try:
            found = (
                {name: [] for name in _LATER_KINDS}
                | {"label_separator": None, "fills_missing": False}
                | report["report"]["input"]
            )
            if "categorical" not in found:  # files of before: labels of one column were taken as they are
                separator = found["separator"] if len(found["label"]) > 1 else None
                found = found | {"categorical": [], "separator": separator}
            schema = cls(**{name: found[name] for name in cls.__dataclass_fields__})
            names = [*schema.inputs, *schema.label, schema.separator or "", schema.label_separator or ""]
            if not all(isinstance(name, str) for name in names):
                raise TypeError
        except (KeyError, TypeError):
            raise CommandError(
                f"{model}: the model was not written by taxolearn train, so there is nothing in it about columns of "
                "files; use it from Python",
                BAD_MODEL,
            ) from None
        return schema


@dataclass(frozen=True)
class Columns:
    """The columns of a table to learn from, and what becomes of texts."""

    text: list[str] = column_option("--text", "column of texts; may be repeated")
    numeric: list[str] = column_option("--numeric", "column of numbers; may be repeated")
    sequences: list[str] = column_option("--sequence", "column of DNA, proteins or codes; may be repeated")
    dates: list[str] = column_option("--date", "column of dates such as 2024-05-31; may be repeated")
    categorical: list[str] = column_option("--categorical", "column of values such as countries; may be repeated")
    label: list[str] = column_option(
        "--label", "column of the classes; repeated, those of the levels of a path, from the top down"
    )
    labels: list[str] = column_option(
        "--labels", "column of any number of labels per row, in place of --label; may be repeated"
    )
    label_separator: str | None = option(
        "--label-separator",
        metavar="S",
        group="columns of a table",
        help=f"text between the labels of a row, with --labels (default: {BETWEEN_LABELS})",
    )
    embedding: EmbeddingOptions = options_of(EmbeddingOptions)
    words: tuple[int, int] | str | None = option(
        "--words",
        type=lengths,
        default=_USUAL.words,
        metavar="A-B",
        group=_TEXTS,
        help="count sequences of A to B words; none for no words (default: 1-2 if texts are short, else 1-1)",
    )
    characters: tuple[int, int] | str | None = option(
        "--characters",
        type=lengths,
        default=_USUAL.characters,
        metavar="A-B",
        group=_TEXTS,
        help="count sequences of A to B characters within words; none for none (default: 3-5 if texts are short, else "
        "none)",
    )
    max_features: int | None = option(
        "--max-features",
        type=positive,
        metavar="N",
        group=_TEXTS,
        help="keep the N most frequent sequences of words, of characters, and of letters (default: all)",
    )
    letters: tuple[int, int] | str = option(
        "--letters",
        type=lengths,
        default=_USUAL.letters,
        metavar="A-B",
        group=_TEXTS,
        help="count words of A to B letters in sequences (default: one length, 8 for DNA, 4 for proteins)",
    )

    def schema(self, kind: str) -> Schema:
        """Where features and labels are in a file of this format."""
        embed, vectors = self.embedding.columns() if any(vars(self.embedding).values()) else ([], [])
        kinds = (self.text, self.numeric, self.categorical, self.dates, self.sequences)
        inputs = [*(name for kind in kinds for name in kind), *embed, *vectors]
        if kind not in TABLES:
            if inputs or self.label or self.labels:
                raise CommandError(
                    f"--text, --numeric, --categorical, --label and other columns are for tables; {kind} files say "
                    "themselves",
                    USAGE,
                )
            return Schema([], [], [], [], None, 0, fills_missing=True)
        label = self._label_columns()
        if not inputs:
            raise CommandError(
                "give columns to learn from: --text, --sequence, --numeric, --date, --categorical or --embed COLUMN",
                USAGE,
            )
        both = sorted(set(inputs) & set(label))
        if both:
            raise CommandError(f"the column {both[0]!r} is both a label and an input", USAGE)
        text, numeric, categorical, dates, sequences = (list(dict.fromkeys(kind)) for kind in kinds)
        separator = LEVELS if len(label) > 1 else None
        between = (self.label_separator or BETWEEN_LABELS) if self.labels else None
        return Schema(text, numeric, categorical, label, separator, None, embed, vectors, dates, sequences, between)

    def _label_columns(self) -> list[str]:
        if self.labels and self.label:
            raise CommandError("--labels is for any number of labels per row, --label for one; give one of them", USAGE)
        if self.label_separator is not None and not (self.labels and self.label_separator):
            raise CommandError("--label-separator is the text between the labels of --labels COLUMN; give both", USAGE)
        if not (self.labels or self.label):
            raise CommandError("--label is needed: the column with the class, or one for each level", USAGE)
        return list(dict.fromkeys(self.labels)) or self.label

    def features(self, schema: Schema, n_threads: int | None, output: str) -> TableFeatures:
        """The step that makes a matrix of a table, or blocks."""
        settings = self.embedding.settings(schema.embed, schema.embedding_columns) if schema.has_embeddings else {}
        return TableFeatures(
            schema.text or None,
            schema.numeric or None,
            schema.categorical or None,
            words=self.words,
            characters=self.characters,
            max_features=self.max_features,
            n_threads=n_threads,
            output=output,
            dates=schema.dates or None,
            sequences=schema.sequences or None,
            letters=self.letters,
            **settings,
        )


@dataclass(frozen=True)
class Batch:
    """Some rows.

    Attributes
    ----------
    X : dict of columns, or sparse or dense matrix
        What the model takes.
    labels : ndarray of str or int, or None
    kept : dict of str to list
        Columns that are passed through.
    lines : list of int
        Where the rows are in the file.
    graph : ClassGraph or None
        Of the labels, where the file has one.
    """

    X: Any
    labels: Any
    kept: dict[str, list[Any]]
    lines: list[int]
    graph: ClassGraph | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, rows: Any) -> Batch:
        """Some of the rows, by their numbers."""
        chosen = rows.tolist()
        if isinstance(self.X, dict):
            X: Any = {name: [column[row] for row in chosen] for name, column in self.X.items()}
        else:
            X = self.X[rows]
        kept = {name: [column[row] for row in chosen] for name, column in self.kept.items()}
        return replace(self, X=X, labels=self.labels[rows], kept=kept, lines=[self.lines[row] for row in chosen])


@contextmanager
def reading(path: str, lines: list[int] | None = None) -> Iterator[None]:
    """Turn errors of readers into errors of commands; ``lines`` says where the rows are in the file."""
    try:
        yield
    except CommandError:
        raise
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror or error}", SYSTEM) from None
    except MemoryError:
        raise CommandError(f"{path}: not enough memory for what the file describes", BAD_DATA) from None
    except CellError as error:
        place = f"row {error.row + 1}" if lines is None else f"line {lines[error.row]}"
        raise CommandError(f"{path}, {place}, column {error.column!r}: the value {error.problem}") from None
    except (ValueError, TypeError, OverflowError) as error:
        message = str(error)
        raise CommandError(message if path in message else f"{path}: {message}", BAD_DATA) from None


def read_batches(
    data: DataFile,
    schema: Schema,
    *,
    rows: int = CHUNK_ROWS,
    with_labels: bool = True,
    keep: list[str] | None = None,
    allow_unlabelled: bool = False,
) -> Iterator[Batch]:
    """Read the rows of a file, some at a time.

    Parameters
    ----------
    data : DataFile
    schema : Schema
        Where features and labels are.
    rows : int
        Number of rows of a batch.
    with_labels : bool
        Whether labels are needed.
    keep : list of str, optional
        Columns of a table to pass through.
    allow_unlabelled : bool
        Whether rows of a table without a label, which then is empty, are no error.
    """
    keep = keep or []
    path, kind = data.path, data.kind
    with reading(path):
        if (kind in TABLES) != schema.is_table:
            expected = TABLES if schema.is_table else MATRICES
            raise CommandError(f"{path}: the format is {kind}, but the model reads {', '.join(expected)}", USAGE)
        if path == "-" and kind not in LINES:
            raise CommandError(f"{kind} files are not read from the standard input; give a path", USAGE)
        if kind in TABLES:
            wanted = list(dict.fromkeys([*schema.inputs, *(schema.label if with_labels else ()), *keep]))
            source: Any = sys.stdin.buffer if path == "-" else path
            chunks = read_chunks(
                source,
                kind,
                columns=wanted,
                encoding=data.encoding,
                delimiter=data.delimiter,
                quote=data.quote,
                rows=rows,
            )
            for chunk in chunks:
                labels = _labels(chunk, schema, path, allow_unlabelled) if with_labels else None
                features = {name: chunk.columns[name] for name in schema.inputs}
                yield Batch(features, labels, {name: chunk.columns[name] for name in keep}, chunk.lines)
            return
        if keep:
            raise CommandError("--keep is for tables: a matrix has no columns to pass through", USAGE)
        several = schema.label_separator is not None
        X, labels, graph = inputs_and_labels(
            path, kind, data.label_names, schema.n_features, several=several, fills_missing=schema.fills_missing
        )
        if with_labels and labels is None:
            raise CommandError(f"{path}: the file has no labels")
        if labels is not None and labels.dtype.kind == "O":
            labels = _tidy_cells(labels.tolist(), schema.separator)
        elif labels is not None and labels.dtype.kind == "U":
            labels = np.array([tidy_path(label, schema.separator) for label in labels.tolist()])
        for first in range(0, X.shape[0], rows):
            part = slice(first, min(first + rows, X.shape[0]))
            lines = list(range(part.start + 1, part.stop + 1))
            yield Batch(X[part], None if labels is None else labels[part], {}, lines, graph)


def read_whole(data: DataFile, schema: Schema, *, allow_unlabelled: bool = False) -> Batch:
    """Read all rows of a file, with their labels."""
    rows = CHUNK_ROWS if schema.is_table else sys.maxsize
    batches = list(read_batches(data, schema, rows=rows, allow_unlabelled=allow_unlabelled))
    if not batches:
        raise CommandError(f"{data.path}: the file has no rows")
    if len(batches) == 1:
        return batches[0]
    X = {name: [value for batch in batches for value in batch.X[name]] for name in batches[0].X}
    labels = np.concatenate([batch.labels for batch in batches])
    return Batch(X, labels, {}, [line for batch in batches for line in batch.lines])


def empty_texts(batch: Batch, text: list[str]) -> list[str]:
    """A note on rows whose texts are all empty, if there are any."""
    if not text:
        return []
    columns = [batch.X[name] for name in text]
    empty = sum(all(value is None or not str(value).strip() for value in row) for row in zip(*columns, strict=True))
    return [f"{empty:,} of {len(batch):,} rows have no text"] if empty else []


def check_cells(batch: Batch, schema: Schema, path: str) -> None:
    """Find what cannot be read before learning begins, also in rows that are held out."""
    columns = {name: getattr(schema, name) for name in ("numeric", "dates", "categorical", "embedding_columns")}
    if any(columns.values()):
        with reading(path, batch.lines):
            TableFeatures(min_df=1, **columns).fit(batch.X)


def tidy_path(label: str, separator: str | None) -> str:
    """The label without blanks around it or its parts, and without separators at its ends."""
    if separator is None:
        return label.strip()
    parts = [part.strip() for part in label.split(separator.strip() or separator)]
    while parts and not parts[0]:
        del parts[0]
    while parts and not parts[-1]:
        del parts[-1]
    return separator.join(parts)


def _labels(chunk: Chunk, schema: Schema, path: str, allow_unlabelled: bool) -> Any:
    """The label of every row; several columns make a path, which ends where one is empty."""
    columns = [chunk.columns[name] for name in schema.label]
    separator = schema.separator
    if schema.label_separator is not None:
        rows = zip(*(_label_cells(column, schema.label_separator) for column in columns), strict=True)
        return _tidy_cells([[label for cell in row for label in cell] for row in rows], separator)
    if len(columns) == 1:
        labels = [tidy_path(_label(value), separator) for value in columns[0]]
    else:
        separator = separator or "/"
        labels = []
        for line, row in zip(chunk.lines, zip(*columns, strict=True), strict=True):
            levels = [_label(value) for value in row]
            while levels and not levels[-1]:
                levels.pop()
            for name, level in zip(schema.label, levels, strict=False):
                if not level or separator in level:
                    problem = "is empty above a level that is not" if not level else f"contains {separator!r}"
                    raise CommandError(f"{path}, line {line}: {name!r} {problem}; fix it, or give another --separator")
            labels.append(separator.join(levels))
    for line, label in zip(chunk.lines, labels, strict=True):
        if not label and not allow_unlabelled:
            raise CommandError(f"{path}, line {line}: the label is empty; leave out rows without one")
    return np.array(labels, dtype=np.str_)


def _label_cells(column: list[Any], between: str) -> list[list[str]]:
    """The labels in each cell of a column. A cell of JSON may be a list."""
    return [list(map(_label, value)) if isinstance(value, list) else _label(value).split(between) for value in column]


def _tidy_cells(cells: Iterable[Iterable[str]], separator: str | None) -> Any:
    """An array of tuples of labels, none empty and none twice."""
    tidy = [(tidy_path(part, separator) for part in cell) for cell in cells]
    sets = [tuple(dict.fromkeys(label for label in cell if label)) for cell in tidy]
    out = np.empty(len(sets), dtype=object)
    out[:] = sets
    return out


def _label(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()
