"""Reader of ARFF files with a hierarchical class attribute, as the CLUS system uses them.

The declaration of the class lists the hierarchy. A tree is a list of paths (``1,1/1,1/2,2``), where a class is known
by its whole path. A DAG is a list of pairs of parent and child (``root/GO1,GO1/GO2,root/GO3,GO3/GO2``), where a class
is known by its name. In the rows, labels are joined by ``@``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.raw_files import Source, name_of, read_lines
from taxolearn.readers.labelled import LabelledData
from taxolearn.validation import check_choice

__all__ = ["ArffData", "read_arff"]

_ROOT = "root"
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE)
_FIELD = re.compile(rf"\s*({_QUOTED}|[^,'\"]*)\s*(,|$)")
_SPARSE_FIELD = re.compile(rf"\s*([^\s,]+)\s+({_QUOTED}|[^\s,'\"]+)\s*(,|$)")
_NO_NUMBER = re.compile(r"[^0-9eE+\-.,?\s]")

# Fields that are neither numbers nor one of a list go into `strings`.
_NUMERIC = ("numeric", "real", "integer")
_STRINGS = ("string", "key")


@dataclass(frozen=True, eq=False, repr=False)
class ArffData(LabelledData):
    """Inputs, labels and class hierarchy of an ARFF file.

    Attributes
    ----------
    X : ndarray of float64 or csr_array, shape (n_samples, n_features)
        The inputs; sparse if the rows of the file are. Missing values are NaN.
    y : list of tuples of str
        The labels of each row as they are written: paths such as "1/2", or names for a DAG. Empty if they are missing.
    feature_names : list of str
        Name of each column; "attribute=value" for the values of a nominal attribute. A name comes twice if the file
        declares it twice.
    classes : list of str
        All classes of the hierarchy without the root, in the order of the file.
    edges : list of (str, str)
        Pairs (parent, child). The parent of the highest classes is "root".
    is_dag : bool
        Whether the hierarchy is written as pairs of parent and child.
    relation : str
        Name of the data.
    strings : dict of str to list of str
        Columns of attributes that are text (types string and key), by name. They are not in ``X``.
    """

    feature_names: list[str]
    classes: list[str]
    edges: list[tuple[str, str]]
    is_dag: bool
    relation: str
    strings: dict[str, list[str]] = field(default_factory=dict)


def read_arff(
    source: Source,
    *,
    hierarchy: Literal["auto", "tree", "dag"] = "auto",
    nominal: Literal["onehot", "code"] = "onehot",
    encoding: str = "utf-8",
) -> ArffData:
    """Read an ARFF file that has one attribute of the type ``hierarchical``.

    Rows are dense (``1,?,a,1/2@3``) or sparse (``{0 1, 3 1/2@3}``, attributes counted from 0). In a sparse row an
    attribute that is left out is 0, and a nominal one has the first of its values.

    Parameters
    ----------
    source : path or binary file
        Compressed files (gzip) are recognised by their content.
    hierarchy : {"auto", "tree", "dag"}, default "auto"
        How the hierarchy is written. With "auto" it is a DAG if all its entries are pairs and one of them begins
        with "root", as CLUS demands.
    nominal : {"onehot", "code"}, default "onehot"
        A nominal attribute becomes one column of 0 and 1 per value, or one column with the value's position in the
        declaration.
    encoding : str, default "utf-8"
        Encoding of the text.

    Returns
    -------
    ArffData
        ``X, y = read_arff(...)`` works as well.

    Raises
    ------
    ValueError
        If the file is not of this form, with line, column and what was expected.
    """
    check_choice("hierarchy", hierarchy, ("auto", "tree", "dag"))
    check_choice("nominal", nominal, ("onehot", "code"))
    file = _File(name_of(source), read_lines(source, encoding))
    relation, attributes, first = _read_header(file)
    target = _find_target(file, attributes, first)
    classes, edges, is_dag = _read_hierarchy(file, attributes[target], hierarchy)
    rows = _Rows(file, attributes, target, frozenset(classes), hierarchy, is_dag)
    for number in range(first, len(file.lines)):
        line = file.lines[number].strip()
        if line and not line.startswith("%"):
            rows.read(number)
    if not rows.labels:
        raise file.error(len(file.lines) - 1, 0, "at least one row after @data", "none")
    X, names = rows.matrix(onehot=nominal == "onehot")
    return ArffData(X, rows.labels, names, classes, edges, is_dag, relation, rows.strings)


class _File:
    """Lines of a file, and errors that name the place."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.lines = lines

    def error(self, number: int, column: int, expected: str, found: str) -> ValueError:
        """Make an error for a line and column counted from 0; the message counts from 1."""
        shown = found if len(found) <= 60 else found[:60] + "..."
        return ValueError(
            f"{self.name}, line {max(number, 0) + 1}, column {column + 1}: expected {expected}, found {shown}"
        )


@dataclass
class _Attribute:
    name: str
    line: int
    kind: str  # numeric, nominal, string or hierarchical
    text: str = ""  # of a hierarchical attribute: its declaration
    codes: dict[str, int] = field(default_factory=dict)  # of a nominal attribute: its values


# ---- Header


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_header(file: _File) -> tuple[str, list[_Attribute], int]:
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


def _read_attribute(file: _File, number: int, line: str, texts: dict[str, int]) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise file.error(number, 0, "@attribute, a name and a type", repr(line))
    name, declaration = _unquoted(match[1]), match[2].strip()
    keyword = declaration.split(None, 1)[0].lower() if declaration else ""
    if keyword in _NUMERIC and declaration.lower() == keyword:
        return _Attribute(name, number, "numeric")
    if keyword in _STRINGS and declaration.lower() == keyword:
        if texts.setdefault(name, number) != number:
            column = file.lines[number].index(line) + match.start(1)
            found = f"{name!r} again, after line {texts[name] + 1}"
            raise file.error(number, column, "text attributes with names that differ", found)
        return _Attribute(name, number, "string")
    if keyword == "hierarchical":
        return _Attribute(name, number, "hierarchical", text=declaration[len(keyword) :].strip())
    if declaration.startswith("{") and declaration.endswith("}"):
        column = file.lines[number].find("{") + 1
        values = [text for text, _, _ in _fields(file, number, declaration[1:-1], column)]
        codes = {value: code for code, value in enumerate(values)}
        if len(codes) < len(values):
            raise file.error(number, column, "values that differ", repr(declaration))
        return _Attribute(name, number, "nominal", codes=codes)
    kinds = "numeric, real, integer, string, key, hierarchical or {value,value,...}"
    raise file.error(number, match.start(2), f"a type: {kinds}", repr(declaration))


def _find_target(file: _File, attributes: Sequence[_Attribute], first: int) -> int:
    targets = [position for position, attribute in enumerate(attributes) if attribute.kind == "hierarchical"]
    if len(targets) == 1:
        return targets[0]
    if not targets:
        raise file.error(first - 1, 0, "one attribute of the type hierarchical before @data", "none")
    raise file.error(attributes[targets[1]].line, 0, "one attribute of the type hierarchical", "a second one")


def _read_hierarchy(
    file: _File, attribute: _Attribute, hierarchy: str
) -> tuple[list[str], list[tuple[str, str]], bool]:
    """Read classes and edges, and whether they are written as pairs."""
    column = file.lines[attribute.line].find(attribute.text) if attribute.text else 0
    entries = []
    for entry in attribute.text.split(","):
        parts = entry.strip().split("/")
        if not all(parts):
            raise file.error(attribute.line, column, "a path such as 1/2", repr(entry.strip()))
        entries.append(parts)
        column += len(entry) + 1
    pairs = all(len(parts) == 2 for parts in entries)
    if hierarchy == "dag" and not pairs:
        wrong = next(parts for parts in entries if len(parts) != 2)
        raise file.error(attribute.line, 0, 'pairs parent/child (hierarchy="dag")', repr("/".join(wrong)))
    is_dag = hierarchy == "dag" or (hierarchy == "auto" and pairs and any(parts[0] == _ROOT for parts in entries))
    edges: dict[tuple[str, str], None] = {}
    for parts in entries:
        if is_dag:
            edges[parts[0], parts[1]] = None
            continue
        if parts[0] == _ROOT:
            raise file.error(attribute.line, 0, f'no class named {_ROOT!r} (hierarchy="tree")', repr("/".join(parts)))
        paths = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        edges.update(dict.fromkeys(zip([_ROOT, *paths[:-1]], paths, strict=True)))
    above: dict[str, list[str]] = {}
    for parent, child in edges:
        above.setdefault(child, []).append(parent)
    try:
        TopologicalSorter(above).prepare()
    except CycleError as error:
        raise file.error(attribute.line, 0, "a hierarchy without cycles", " -> ".join(error.args[1])) from None
    names = dict.fromkeys(node for edge in edges for node in edge if node != _ROOT)
    return list(names), list(edges), is_dag


# ---- Rows


def _fields(file: _File, number: int, text: str, column: int) -> list[tuple[str, bool, int]]:
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


class _Rows:
    """The rows read so far."""

    def __init__(
        self,
        file: _File,
        attributes: Sequence[_Attribute],
        target: int,
        classes: frozenset[str],
        hierarchy: str,
        is_dag: bool,
    ) -> None:
        self.file = file
        self.attributes = attributes
        self.target = target
        self.classes = classes
        self.hint = ""
        if hierarchy == "auto":
            self.hint = f" (the hierarchy was taken for a {'DAG' if is_dag else 'tree'}: see the option hierarchy)"
        self.labels: list[tuple[str, ...]] = []
        self.strings: dict[str, list[str]] = {a.name: [] for a in attributes if a.kind == "string"}
        # Attributes that make up X, and in sparse files which of them each entry belongs to.
        self.inputs = [k for k, attribute in enumerate(attributes) if attribute.kind in ("numeric", "nominal")]
        self.numeric = [slot for slot, k in enumerate(self.inputs) if attributes[k].kind == "numeric"]
        self.nominal = [slot for slot, k in enumerate(self.inputs) if attributes[k].kind == "nominal"]
        self.dense: list[npt.NDArray[np.float64]] = []
        self.sparse: list[dict[int, float]] = []

    def read(self, number: int) -> None:
        line = self.file.lines[number]
        is_sparse = line.lstrip().startswith("{")
        if self.labels and is_sparse != bool(self.sparse):
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
        labels = tuple(dict.fromkeys(fields[self.target].strip().split("@")))
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
        while text.strip():
            match = _SPARSE_FIELD.match(text, at)
            if match is None:
                raise self.file.error(number, start + at, "the number of an attribute and a value", repr(text[at:]))
            column = start + match.start(1)
            if not re.fullmatch("[0-9]{1,18}", match[1]) or int(match[1]) >= len(self.attributes):
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
            at = match.end()
            if match[3] != ",":
                break
        if labels is None:
            raise self.file.error(number, end - 1, f"labels (attribute {self.target}) in the row", "none")
        self.labels.append(labels)
        self.sparse.append(row)
        for name, string in strings.items():
            self.strings[name].append(string)

    def _value(self, attribute: _Attribute, number: int, text: str, quoted: bool, column: int) -> float:
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

    # ---- Matrix

    def matrix(self, onehot: bool) -> tuple[Any, list[str]]:
        """The inputs and the names of the columns."""
        names: list[str] = []
        first: dict[int, int] = {}
        expand = {k for k in self.inputs if onehot and self.attributes[k].kind == "nominal"}
        for k in self.inputs:
            attribute = self.attributes[k]
            first[k] = len(names)
            names += [f"{attribute.name}={value}" for value in attribute.codes] if k in expand else [attribute.name]
        build: Callable[..., Any] = self._sparse_matrix if self.sparse else self._dense_matrix
        return build(first, expand, len(names)), names

    def _dense_matrix(self, first: dict[int, int], expand: set[int], width: int) -> npt.NDArray[np.float64]:
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

    def _sparse_matrix(self, first: dict[int, int], expand: set[int], width: int) -> sp.csr_array:
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
