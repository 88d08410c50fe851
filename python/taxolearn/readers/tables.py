"""Tables: CSV, TSV, JSON lines and Parquet in chunks of rows, with constant memory, and plain tables as a whole.

Every error names the file, the line and, where one is to blame, the column.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from taxolearn.raw_files import Source, name_of, read_blocks, read_lines

__all__ = ["CHUNK_ROWS", "DELIMITERS", "Chunk", "read_chunks", "read_table"]

DELIMITERS = (",", ";", "\t", "|")
CHUNK_ROWS = 10_000  # read, and by commands classified, at a time
_FIELD_LIMIT = 1 << 30  # characters of a field of a CSV file


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table.

    Attributes
    ----------
    columns : dict of str to list
        Values by the names of the columns: texts, of JSON and Parquet also numbers and None.
    lines : list of int
        Where each row begins: its line, or its number in a Parquet file.
    """

    columns: dict[str, list[Any]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)


def read_chunks(
    source: Source,
    kind: str,
    *,
    columns: list[str] | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    quote: str | None = '"',
    rows: int = CHUNK_ROWS,
) -> Iterator[Chunk]:
    """Read a table in chunks of rows.

    Parameters
    ----------
    source : path or binary file
        Compressed files (gzip) are recognised by their content.
    kind : {"csv", "tsv", "jsonl", "parquet"}
        CSV and TSV have a line with the names of the columns, and quotes around fields with delimiters, quotes or line
        ends. JSON lines have one object per line.
    columns : list of str, optional
        The columns to keep, all of which must be there; by default all.
    encoding : str, default="utf-8"
        Encoding of the text. A byte order mark is passed over.
    delimiter : str, optional
        One character between the fields of CSV and TSV. By default a tab for TSV, and for CSV the one of comma,
        semicolon, tab and bar that makes most of the wanted columns, or else most columns, out of the first line.
    quote : str or None, default='"'
        One character around fields of CSV and TSV that hold others; None if quotes have no meaning.
    rows : int, default=10000
        Number of rows of a chunk.
    """
    name = name_of(source)
    if kind == "parquet":
        yield from _read_parquet(source, name, columns, rows)
        return
    lines = _Lines(source, name, encoding)
    if kind == "jsonl":
        yield from _read_json(lines, name, columns, rows)
    else:
        if delimiter is not None and delimiter == quote:
            raise ValueError(f"{name}: {delimiter!r} cannot be both the delimiter and the quote")
        if delimiter is None and kind == "tsv":
            delimiter = "\t"
        yield from _read_csv(lines, name, delimiter, quote, columns, rows)


def read_table(source: Source, *, delimiter: str = "\t", encoding: str = "utf-8") -> dict[str, list[str]]:
    """Read a table whose first line names the columns.

    Fields are kept as they are written: quotes are ordinary characters, so a field holds neither the delimiter nor a
    line end. Blank lines at the end are passed over. (``read_chunks`` is for tables with quotes.)

    Parameters
    ----------
    source : path or binary file
        Compressed files (gzip) are recognised by their content.
    delimiter : str, default tab
        What stands between two fields.
    encoding : str, default "utf-8"
        Encoding of the text.

    Returns
    -------
    dict of str to list of str
        The columns by name, in the order of the file.

    Raises
    ------
    ValueError
        If a line has more or fewer fields than the header, with line and column.
    """
    if not delimiter or "\n" in delimiter:
        raise ValueError(f"delimiter must be at least one character and no line end, got {delimiter!r}")
    name = name_of(source)
    lines = read_lines(source, encoding)
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise ValueError(f"{name}, line 1, column 1: expected a line with the names of the columns, found none")
    header = lines[0].split(delimiter)
    for position, title in enumerate(header):
        if title in header[:position]:
            column = len(delimiter.join(header[:position])) + len(delimiter) + 1
            raise ValueError(f"{name}, line 1, column {column}: expected names that differ, found {title!r} again")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        row = line.split(delimiter)
        if len(row) != len(header):
            whole = len(delimiter.join(row[: len(header)]))
            raise ValueError(
                f"{name}, line {number}, column {whole + 1}: expected {len(header)} fields as in the header, "
                f"found {len(row)}"
            )
        rows.append(row)
    return {title: [row[position] for row in rows] for position, title in enumerate(header)}


class _Lines:
    """Lines of decoded text with their ends, counted."""

    def __init__(self, source: Source, name: str, encoding: str) -> None:
        self._source = source
        self._name = name
        self._encoding = encoding
        try:
            self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        except LookupError:
            raise ValueError(f"encoding is {encoding!r}, which Python does not know; try utf-8 or latin-1") from None

    def __iter__(self) -> Iterator[str]:
        rest: list[str] = []
        number = 0
        for block in self._texts():
            pieces = block.split("\n")
            if len(pieces) == 1:
                rest.append(block)
                continue
            rest.append(pieces[0])
            for line in ("".join(rest), *pieces[1:-1]):
                number += 1
                self._check(line, number)
                yield line + "\n"
            rest = [pieces[-1]]
        last = "".join(rest)
        if last:
            self._check(last, number + 1)
            yield last

    def _check(self, line: str, number: int) -> None:
        place = line.find("\0")
        if place >= 0:
            raise ValueError(
                f"{self._name}, line {number}, column {place + 1}: found a NUL character, so this is not text in "
                f"{self._encoding}; convert the file, or give its encoding"
            )

    def _texts(self) -> Iterator[str]:
        done = since = 0  # lines, and bytes since the last
        is_first = True
        for block in chain(read_blocks(self._source), [b""]):
            text = self._decoded(block, done, since)
            done += block.count(b"\n")
            end = block.rfind(b"\n")
            since = len(block) - end - 1 if end >= 0 else since + len(block)
            if text:
                yield text.removeprefix("\ufeff") if is_first else text
                is_first = False

    def _decoded(self, block: bytes, done: int, since: int) -> str:
        pending = len(self._decoder.getstate()[0])
        try:
            return self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            line = done + error.object.count(b"\n", 0, error.start) + 1
            end = error.object.rfind(b"\n", 0, error.start)
            column = error.start - end if end >= 0 else since - pending + error.start + 1
            is_utf16 = (line, column) == (1, 1) and error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            raise ValueError(
                f"{self._name}, line {line}, column {column}: expected text in {self._encoding}, found the byte "
                f"0x{error.object[error.start]:02x}; give the file's encoding (on the command line: --encoding "
                f"{'utf-16, since the file begins like that' if is_utf16 else 'NAME, perhaps latin-1'})"
            ) from None


def _read_csv(
    lines: Iterable[str], name: str, delimiter: str | None, quote: str | None, columns: list[str] | None, rows: int
) -> Iterator[Chunk]:
    csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
    if delimiter is None:
        lines = iter(lines)
        first = next(lines, "")
        delimiter = _find_delimiter(first, quote, columns)
        lines = chain([first], lines)
    records = _records(_csv_reader(lines, delimiter, quote), name)
    _, header = next(records, (1, []))
    if not header:
        raise ValueError(f"{name}, line 1: expected the names of the columns, found none")
    for place, title in enumerate(header):
        if title in header[:place]:
            raise ValueError(f"{name}, line 1: the column {title!r} is there twice; rename one")
    kept = columns if columns is not None else header
    places = [_place(title, header, name, delimiter) for title in kept]
    builder = _Builder(kept, rows)
    for line, record in records:
        if not record:  # a blank line
            continue
        if len(record) != len(header):
            raise ValueError(
                f"{name}, line {line}: found {len(record)} fields, expected {len(header)} as in the header; look for a "
                "delimiter or line end in a field without quotes around it"
            )
        yield from builder.add(line, [record[place] for place in places])
    yield from builder.rest()


def _csv_reader(lines: Iterable[str], delimiter: str, quote: str | None) -> Any:
    if quote is None:
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
    return csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=True)


def _find_delimiter(first: str, quote: str | None, columns: list[str] | None) -> str:
    """Find the delimiter that makes most of the wanted columns out of the first line; if none does, most columns."""

    def columns_by(delimiter: str) -> tuple[int, int]:
        try:
            header: list[str] = next(_csv_reader([first], delimiter, quote), [])
        except csv.Error:
            return 0, 0
        return len(set(columns or ()) & set(header)), len(header)

    return max(DELIMITERS, key=columns_by)


def _place(title: str, header: list[str], name: str, delimiter: str) -> int:
    if title in header:
        return header.index(title)
    shown = ", ".join(map(repr, header[:10])) + (", ..." if len(header) > 10 else "")
    hint = ""
    for other, what in zip(DELIMITERS, ("commas", "semicolons", "tabs", "bars"), strict=True):
        if other != delimiter and len(header) == 1 and other in header[0]:
            hint = f"; there seem to be {what} between fields"
    raise ValueError(f"{name}, line 1: there is no column {title!r}; there is {shown}{hint}")


def _records(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield records with the line they begin at."""
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{name}, line {line}: the quotes are wrong ({error}); a quote within a quoted field is written twice; "
                "if quotes have no meaning here, say so (on the command line: --quote none)"
            ) from None
        yield line, record


def _read_json(lines: Iterable[str], name: str, columns: list[str] | None, rows: int) -> Iterator[Chunk]:
    builder: _Builder | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{name}, line {number}, column {error.colno}: not JSON ({error.msg})") from None
        except (RecursionError, ValueError) as error:
            raise ValueError(f"{name}, line {number}: not JSON that can be read ({error})") from None
        if not isinstance(record, dict):
            raise ValueError(f"{name}, line {number}: expected an object like {{...}}, found a {type(record).__name__}")
        if builder is None:
            builder = _Builder(list(record) if columns is None else columns, rows)
        values = []
        for title in builder.names:
            if title not in record:
                raise ValueError(f"{name}, line {number}: the object has no {title!r}")
            value = record[title]
            if isinstance(value, (dict, list)):
                raise ValueError(
                    f"{name}, line {number}: {title!r} is a {type(value).__name__}, expected a plain value"
                )
            values.append(value)
        yield from builder.add(number, values)
    if builder is None:
        raise ValueError(f"{name}: expected lines with JSON objects, found none")
    yield from builder.rest()


def _read_parquet(source: Source, name: str, columns: list[str] | None, rows: int) -> Iterator[Chunk]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        raise ValueError(f'{name}: Parquet files need pyarrow: pip install "taxolearn[parquet]"') from None
    try:
        file = parquet.ParquetFile(source)
        known = file.schema_arrow.names
        for title in columns or ():
            if title not in known:
                raise ValueError(f"{name}: there is no column {title!r}; there is {', '.join(map(repr, known[:10]))}")
        row = 0
        for batch in file.iter_batches(rows, columns=columns):
            yield Chunk(batch.to_pydict(), list(range(row + 1, row + 1 + batch.num_rows)))
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system; what is wrong in a file comes without a number
        raise ValueError(f"{name}: not a Parquet file that can be read ({error})".replace("\n", " ")) from None


class _Builder:
    """Collects rows into chunks."""

    def __init__(self, names: list[str], rows: int) -> None:
        self.names = names
        self._rows = rows
        self._begin()

    def _begin(self) -> None:
        self._columns: list[list[Any]] = [[] for _ in self.names]
        self._lines: list[int] = []

    def add(self, line: int, values: list[Any]) -> Iterator[Chunk]:
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        self._lines.append(line)
        if len(self._lines) >= self._rows:
            yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        if self._lines:
            yield Chunk(dict(zip(self.names, self._columns, strict=True)), self._lines)
            self._begin()
