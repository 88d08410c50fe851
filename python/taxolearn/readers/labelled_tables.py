"""Readers of labelled texts: tables with a header, and JSON files of text and label."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from taxolearn.readers.byte_source import Source, name_of, read_lines

__all__ = ["read_table", "read_text_pairs"]


def read_table(source: Source, *, delimiter: str = "\t", encoding: str = "utf-8") -> dict[str, list[str]]:
    """Reads a table whose first line names the columns.

    Fields are kept as they are written: quotes are ordinary characters, so a field holds neither the delimiter nor a
    line end. Blank lines at the end are passed over.

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


def read_text_pairs(source: Source, key: str | None = None) -> tuple[list[str], NDArray[np.str_]]:
    """Reads texts and labels from JSON of the form ``[[text, label], ...]``.

    Parameters
    ----------
    source : path or binary file
        Compressed files (gzip) are recognised by their content. The encoding is UTF-8.
    key : str, optional
        For an object of such lists, ``{"train": [[text, label], ...], ...}``: which of them.

    Returns
    -------
    texts : list of str
    labels : ndarray of str, shape (n_texts,)

    Raises
    ------
    ValueError
        If the file is not JSON (with line and column) or not of this form (with the place in the list).
    """
    name = name_of(source)
    try:
        content = json.loads("\n".join(read_lines(source, "utf-8")))
    except json.JSONDecodeError as error:
        raise ValueError(f"{name}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"{name}: expected [[text, label], ...], found lists nested too deeply") from None
    place = ""
    if isinstance(content, dict):
        if key not in content:
            raise ValueError(f"{name}: key is {key!r}, expected one of {', '.join(map(repr, content)) or 'none'}")
        content, place = content[key], f"[{key!r}]"
    elif key is not None:
        raise ValueError(f"{name}: key is {key!r}, but the file is a {type(content).__name__} and has no keys")
    if not isinstance(content, list):
        raise ValueError(f"{name}{place}: expected a list of [text, label], found a {type(content).__name__}")
    for position, pair in enumerate(content):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise ValueError(f"{name}{place}[{position}]: expected [text, label], found {repr(pair)[:60]}")
    return [text for text, _ in content], np.array([label for _, label in content], dtype=np.str_)
