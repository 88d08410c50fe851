"""What ARFF files have in common: attributes, rows that are dense or sparse, and errors that name the place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.raw_files import Source, name_of, read_lines

__all__ = ["ArffFile", "ArffRows", "Attribute", "read_header"]

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE)
_FIELD = re.compile(rf"\s*({_QUOTED}|[^,'\"]*)\s*(,|$)")
_SPARSE_FIELD = re.compile(rf"\s*([^\s,]+)\s+({_QUOTED}|[^\s,'\"]+)\s*(,|$)")
_POSITION = re.compile("[0-9]{1,18}")
_NO_NUMBER = re.compile(r"[^0-9eE+\-.,?\s]")

# Fields that are neither numbers nor one of a list go into `strings`.
_NUMERIC = ("numeric", "real", "integer")
_STRINGS = ("string", "key")


class ArffFile:
    """Lines of a file, and errors that name the place."""

    def __init__(self, source: Source, encoding: str) -> None:
        self.name = name_of(source)
        self.lines = read_lines(source, encoding)

    def error(self, number: int, column: int, expected: str, found: str) -> ValueError:
        """Make an error for a line and column counted from 0; the message counts from 1."""
        shown = found if len(found) <= 60 else found[:60] + "..."
        return ValueError(
            f"{self.name}, line {max(number, 0) + 1}, column {column + 1}: expected {expected}, found {shown}"
        )


@dataclass
class Attribute:
    """One attribute as the header declares it."""

    name: str
    line: int
    kind: str  # numeric, nominal, string or hierarchical
    text: str = ""  # of a hierarchical attribute: its declaration
    codes: dict[str, int] = field(default_factory=dict)  # of a nominal attribute: its values


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def read_header(file: ArffFile) -> tuple[str, list[Attribute], int]:
    """Read relation and attributes, and find the line after @data."""
    relation, attributes = "", []
    texts: dict[str, int] = {}  # the lines of text attributes
    for number, raw in enumerate(file.lines):
        line = raw.strip()
        keyword = line.split(None, 1)[0].lower() if line else ""
        if not line or line.startswith("%"):
            continue
        if keyword == "@relation":
            relation = _unquoted(line[len(keyword) :].strip())
        elif keyword == "@attribute":
            attributes.append(_read_attribute(file, number, line, texts))
        elif keyword == "@data":
            return relation, attributes, number + 1
        else:
            raise file.error(number, 0, "@relation, @attribute or @data", repr(line))
    raise file.error(len(file.lines) - 1, 0, "a line @data", "the end of the file")


def _read_attribute(file: ArffFile, number: int, line: str, texts: dict[str, int]) -> Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise file.error(number, 0, "@attribute, a name and a type", repr(line))
    name, declaration = _unquoted(match[1]), match[2].strip()
    keyword = declaration.split(None, 1)[0].lower() if declaration else ""
    if keyword in _NUMERIC and declaration.lower() == keyword:
        return Attribute(name, number, "numeric")
    if keyword in _STRINGS and declaration.lower() == keyword:
        if texts.setdefault(name, number) != number:
            column = file.lines[number].index(line) + match.start(1)
            found = f"{name!r} again, after line {texts[name] + 1}"
            raise file.error(number, column, "text attributes with names that differ", found)
        return Attribute(name, number, "string")
    if keyword == "hierarchical":
        return Attribute(name, number, "hierarchical", text=declaration[len(keyword) :].strip())
    if declaration.startswith("{") and declaration.endswith("}"):
        column = file.lines[number].find("{") + 1
        values = [text for text, _, _ in _fields(file, number, declaration[1:-1], column)]
        codes = {value: code for code, value in enumerate(values)}
        if len(codes) < len(values):
            raise file.error(number, column, "values that differ", repr(declaration))
        return Attribute(name, number, "nominal", codes=codes)
    kinds = "numeric, real, integer, string, key, hierarchical or {value,value,...}"
    raise file.error(number, match.start(2), f"a type: {kinds}", repr(declaration))


def _fields(file: ArffFile, number: int, text: str, column: int) -> list[tuple[str, bool, int]]:
    """Split a line at commas: text, whether it is quoted, and column."""
    found, at = [], 0
    while True:
        match = _FIELD.match(text, at)
        if match is None:
            raise file.error(number, column + at, "a field and a comma", repr(text[at:]))
        raw = match[1].strip()
        found.append((_unquoted(raw), raw[:1] in ("'", '"'), column + match.start(1)))
        at = match.end()
        if match[2] != ",":
            return found


class ArffRows:
    """The rows of a file.

    Parameters
    ----------
    file, attributes
        The file, and what its header declares.
    first : int
        The line after @data.
    target : int, optional
        Position of the hierarchical attribute, whose values are the labels.
    classes : collection of str
        The classes of the hierarchy.
    hint : str
        Ends the message about labels that are none of these.
    """

    def __init__(
        self,
        file: ArffFile,
        attributes: Sequence[Attribute],
        first: int,
        *,
        target: int | None = None,
        classes: Collection[str] = (),
        hint: str = "",
    ) -> None:
        self.file = file
        self.attributes = attributes
        self.target = target
        self.classes = frozenset(classes)
        self.hint = hint
        self.lines: list[int] = []  # of the rows, counted from 0
        self.labels: list[tuple[str, ...]] = []
        self.strings: dict[str, list[str]] = {a.name: [] for a in attributes if a.kind == "string"}
        # Attributes that make up X, and in sparse files which of them each entry belongs to.
        self.inputs = [k for k, attribute in enumerate(attributes) if attribute.kind in ("numeric", "nominal")]
        self.numeric = [slot for slot, k in enumerate(self.inputs) if attributes[k].kind == "numeric"]
        self.nominal = [slot for slot, k in enumerate(self.inputs) if attributes[k].kind == "nominal"]
        self.dense: list[npt.NDArray[np.float64]] = []
        self.sparse: list[dict[int, float]] = []
        for number in range(first, len(file.lines)):
            line = file.lines[number].strip()
            if line and not line.startswith("%"):
                self._read(number)
                self.lines.append(number)
        if not self.lines:
            raise file.error(len(file.lines) - 1, 0, "at least one row after @data", "none")

    def _read(self, number: int) -> None:
        line = self.file.lines[number]
        is_sparse = line.lstrip().startswith("{")
        if self.lines and is_sparse != bool(self.sparse):
            raise self.file.error(
                number, 0, f"a {'sparse' if self.sparse else 'dense'} row like those before", repr(line)
            )
        if is_sparse:
            self._read_sparse(number, line)
        elif "'" in line or '"' in line or not self._read_plain(line.split(",")):
            self._read_dense(number, _fields(self.file, number, line, 0))

    def _read_plain(self, fields: list[str]) -> bool:
        """Read a row the fast way; false if it has anything but plain numbers, known values and known labels."""
        if len(fields) != len(self.attributes) or self.strings:
            return False
        labels = () if self.target is None else tuple(dict.fromkeys(fields[self.target].strip().split("@")))
        numbers = [fields[self.inputs[slot]] for slot in self.numeric]
        if not self.classes.issuperset(labels) or _NO_NUMBER.search(",".join(numbers)):
            return False
        row = np.empty(len(self.inputs))
        try:
            row[self.numeric] = [math.nan if text == "?" else float(text) for text in numbers]
            for slot in self.nominal:
                row[slot] = self.attributes[self.inputs[slot]].codes[fields[self.inputs[slot]]]
        except (ValueError, KeyError):
            return False
        if np.isinf(row).any():
            return False
        self.dense.append(row)
        self.labels.append(labels)
        return True

    def _read_dense(self, number: int, fields: list[tuple[str, bool, int]]) -> None:
        if len(fields) != len(self.attributes):
            column = fields[len(self.attributes)][2] if len(fields) > len(self.attributes) else fields[-1][2]
            raise self.file.error(
                number, column, f"{len(self.attributes)} fields, one per attribute", f"{len(fields)} fields"
            )
        row = []
        for attribute, (text, quoted, column) in zip(self.attributes, fields, strict=True):
            if attribute.kind == "hierarchical":
                self.labels.append(self._labels(number, text, quoted, column))
            elif attribute.kind == "string":
                self.strings[attribute.name].append(text)
            else:
                row.append(self._value(attribute, number, text, quoted, column))
        self.dense.append(np.array(row))

    def _read_sparse(self, number: int, line: str) -> None:
        start, end = line.index("{") + 1, len(line.rstrip())
        if line[end - 1] != "}":
            raise self.file.error(number, end, "'}' at the end of a sparse row", "the end of the line")
        row: dict[int, float] = {}
        strings = dict.fromkeys(self.strings, "")
        labels, text, at = None, line[start : end - 1], 0
        seen: set[int] = set()
        more = bool(text.strip())
        while more:
            match = _SPARSE_FIELD.match(text, at)
            if match is None:
                raise self.file.error(number, start + at, "the number of an attribute and a value", repr(text[at:]))
            column = start + match.start(1)
            if not _POSITION.fullmatch(match[1]) or int(match[1]) >= len(self.attributes):
                numbers = f"the number of an attribute, 0 to {len(self.attributes) - 1}"
                raise self.file.error(number, column, numbers, repr(match[1]))
            position = int(match[1])
            if position in seen:
                raise self.file.error(number, column, "each attribute once", f"{position} again")
            seen.add(position)
            attribute = self.attributes[position]
            value = (_unquoted(match[2]), match[2][0] in "'\"", start + match.start(2))
            if attribute.kind == "hierarchical":
                labels = self._labels(number, *value)
            elif attribute.kind == "string":
                strings[attribute.name] = value[0]
            else:
                row[position] = self._value(attribute, number, *value)
            at, more = match.end(), match[3] == ","
        if labels is None and self.target is not None:
            raise self.file.error(number, end - 1, f"labels (attribute {self.target}) in the row", "none")
        self.labels.append(labels or ())
        self.sparse.append(row)
        for name, string in strings.items():
            self.strings[name].append(string)

    def _value(self, attribute: Attribute, number: int, text: str, quoted: bool, column: int) -> float:
        if text == "?" and not quoted:
            return math.nan
        if attribute.kind == "nominal":
            code = attribute.codes.get(text)
            if code is None:
                values = ", ".join(attribute.codes)
                expected = f"one of {values[:80]}{'...' if len(values) > 80 else ''} for {attribute.name}"
                raise self.file.error(number, column, expected, repr(text))
            return float(code)
        try:
            value = math.nan if _NO_NUMBER.search(text) else float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.file.error(number, column, f"a finite number or ? for {attribute.name}", repr(text))
        return value

    def _labels(self, number: int, text: str, quoted: bool, column: int) -> tuple[str, ...]:
        if text == "?" and not quoted:
            return ()
        labels = tuple(dict.fromkeys(text.split("@")))
        for label in labels:
            if label not in self.classes:
                raise self.file.error(number, column, f"classes of the hierarchy joined by @{self.hint}", repr(label))
        return labels

    def matrix(self, expand: Collection[int]) -> tuple[Any, list[str], list[int]]:
        """Make the inputs, the names of their columns, and the position of the attribute that each column comes from.

        The attributes at the positions ``expand``, which are nominal, become one column per value.
        """
        names: list[str] = []
        owners: list[int] = []
        first: dict[int, int] = {}
        for k in self.inputs:
            attribute = self.attributes[k]
            first[k] = len(names)
            names += [f"{attribute.name}={value}" for value in attribute.codes] if k in expand else [attribute.name]
            owners += [k] * (len(names) - len(owners))
        build: Callable[..., Any] = self._sparse_matrix if self.sparse else self._dense_matrix
        return build(first, frozenset(expand), len(names)), names, owners

    def _dense_matrix(self, first: dict[int, int], expand: frozenset[int], width: int) -> npt.NDArray[np.float64]:
        values = np.vstack(self.dense)
        if not expand:
            return values
        X = np.empty((len(values), width))
        for column, k in zip(values.T, self.inputs, strict=True):
            if k in expand:
                size = len(self.attributes[k].codes)
                hits = (column[:, None] == np.arange(size)).astype(np.float64)
                hits[np.isnan(column)] = np.nan
                X[:, first[k] : first[k] + size] = hits
            else:
                X[:, first[k]] = column
        return X

    def _sparse_matrix(self, first: dict[int, int], expand: frozenset[int], width: int) -> sp.csr_array:
        indices: list[int] = []
        values: list[float] = []
        indptr = [0]
        for row in self.sparse:
            entries = {first[k]: value for k, value in row.items() if k not in expand and value != 0.0}
            for k in expand:
                code = row.get(k, 0.0)
                if math.isnan(code):
                    entries.update(dict.fromkeys(range(first[k], first[k] + len(self.attributes[k].codes)), math.nan))
                else:
                    entries[first[k] + int(code)] = 1.0
            indices += sorted(entries)
            values += [entries[column] for column in sorted(entries)]
            indptr.append(len(indices))
        types = np.int32 if max(len(indices), width) <= np.iinfo(np.int32).max else np.int64
        return sp.csr_array(
            (np.array(values, dtype=np.float64), np.array(indices, dtype=types), np.array(indptr, dtype=types)),
            shape=(len(self.sparse), width),
        )
