"""Reader of ARFF files in which labels are attributes, with the XML that names them, as the Mulan library has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from xml.parsers import expat

import numpy as np
import scipy.sparse as sp

from taxolearn.raw_files import Source, name_of, read_all
from taxolearn.readers.arff_syntax import ArffFile, ArffRows, Attribute, read_header
from taxolearn.readers.labelled import LabelledData
from taxolearn.validation import check_choice

__all__ = ["MulanData", "read_mulan"]

_BINARY = ["0", "1"]


@dataclass(frozen=True, eq=False, repr=False)
class MulanData(LabelledData):
    """Inputs and labels of an ARFF file with one attribute per label.

    Attributes
    ----------
    X : ndarray of float64 or csr_array, shape (n_samples, n_features)
        The inputs; sparse if the rows of the file are. Missing values are NaN.
    y : list of tuples of str
        The labels of each row, in the order of ``classes``; a tuple may be empty.
    feature_names : list of str
        Name of each column; "attribute=value" for the values of a nominal attribute.
    classes : list of str
        All labels, in the order of the XML.
    edges : list of (str, str)
        Pairs (parent, child) of labels that are nested in the XML; empty if none are.
    relation : str
        Name of the data.
    strings : dict of str to list of str
        Columns of attributes that are text, by name. They are not in ``X``.
    """

    feature_names: list[str]
    classes: list[str]
    edges: list[tuple[str, str]]
    relation: str
    strings: dict[str, list[str]] = field(default_factory=dict)


def read_mulan(
    source: Source,
    labels: Source,
    *,
    nominal: Literal["onehot", "code"] = "onehot",
    encoding: str = "utf-8",
) -> MulanData:
    """Read an ARFF file in which each label is an attribute with the values 0 and 1.

    Parameters
    ----------
    source : path or binary file
        The ARFF file, with dense or sparse rows. Compressed files (gzip) are recognised by their content.
    labels : path or binary file
        The XML file that names the labels, ``<labels><label name="a"/><label name="b"/></labels>``. They may be nested.
    nominal : {"onehot", "code"}, default "onehot"
        A nominal attribute becomes one column of 0 and 1 per value, or one column with the value's position in the
        declaration. One that is declared ``{0,1}`` is a number.
    encoding : str, default "utf-8"
        Encoding of the ARFF file. XML files name their own.

    Returns
    -------
    MulanData
        ``X, y = read_mulan(...)`` works as well.

    Raises
    ------
    ValueError
        If a file is not of this form, with line, column and what was expected.
    """
    check_choice("nominal", nominal, ("onehot", "code"))
    named, edges = _read_names(labels)
    file = ArffFile(source, encoding)
    relation, attributes, first = read_header(file)
    targets = _find_targets(file, attributes, named, name_of(labels))
    rows = ArffRows(file, attributes, first)
    expand = [
        k
        for k, attribute in enumerate(attributes)
        if attribute.kind == "nominal" and nominal == "onehot" and list(attribute.codes) != _BINARY
    ]
    matrix, names, owners = rows.matrix(expand)
    column_of = {owner: column for column, owner in enumerate(owners)}
    columns = [column_of[target] for target in targets]
    inputs = [column for column in range(len(names)) if column not in set(columns)]
    y = _label_sets(file, rows.lines, matrix[:, columns], list(named))
    return MulanData(matrix[:, inputs], y, [names[c] for c in inputs], list(named), edges, relation, rows.strings)


def _read_names(source: Source) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Read the labels with the lines that name them, counted from 1, and the pairs of nested ones."""
    file = name_of(source)
    names: dict[str, int] = {}
    edges: list[tuple[str, str]] = []
    above: list[str] = []  # names of the open elements, "" for the outermost
    parser = expat.ParserCreate(namespace_separator=" ")

    def fail(expected: str, found: str) -> None:
        place = f"line {parser.CurrentLineNumber}, column {parser.CurrentColumnNumber + 1}"
        raise ValueError(f"{file}, {place}: expected {expected}, found {found[:60]}")

    def start(tag: str, values: dict[str, str]) -> None:
        tag, wanted = tag.rpartition(" ")[2], "label" if above else "labels"
        if tag != wanted:
            fail(f"<{wanted}>", f"<{tag}>")
        name = values.get("name", "") if above else ""
        if above:
            if not name:
                fail('<label name="...">', "a label without a name")
            if name in names:
                fail("names that differ", f"{name!r} again, after line {names[name]}")
            names[name] = parser.CurrentLineNumber
            if above[-1]:
                edges.append((above[-1], name))
        above.append(name)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: above.pop()
    parser.EntityDeclHandler = lambda *entity: fail("no declarations of entities", repr(entity[0]))
    try:
        parser.Parse(read_all(source), True)
    except expat.ExpatError as error:
        problem = expat.errors.messages[error.code] if error.code in expat.errors.messages else str(error)
        raise ValueError(f"{file}, line {error.lineno}, column {error.offset + 1}: expected XML, {problem}") from None
    except LookupError as error:
        raise ValueError(f"{file}: expected XML in a known encoding, {error}") from None
    if not names:
        raise ValueError(f"{file}: expected at least one label, found none")
    return names, edges


def _find_targets(file: ArffFile, attributes: Sequence[Attribute], named: dict[str, int], labels: str) -> list[int]:
    """Find the position of each label's attribute."""
    places: dict[str, int] = {}
    for position, attribute in enumerate(attributes):
        if attribute.kind == "hierarchical":
            raise file.error(
                attribute.line, 0, "no hierarchical attribute (read_arff reads these)", repr(attribute.name)
            )
        if attribute.name not in named:
            continue
        if places.setdefault(attribute.name, position) != position:
            found = f"{attribute.name!r} again, after line {attributes[places[attribute.name]].line + 1}"
            raise file.error(attribute.line, 0, "one attribute per label", found)
        if attribute.kind != "numeric" and list(attribute.codes) != _BINARY:
            raise file.error(attribute.line, 0, f"the type {{0,1}} for the label {attribute.name!r}", "another")
    missing = [name for name in named if name not in places]
    if missing:
        line = named[missing[0]]
        raise ValueError(
            f"{file.name}: expected an attribute for every label, found none for {missing[0]!r} ({labels}, line {line})"
        )
    return [places[name] for name in named]


def _label_sets(file: ArffFile, lines: list[int], values: Any, names: list[str]) -> list[tuple[str, ...]]:
    """Turn the columns of the labels into names."""
    table = sp.csr_array(values)
    wrong = np.flatnonzero(table.data != 1)
    wrong = wrong[table.data[wrong] != 0]
    if len(wrong) > 0:
        row = int(np.searchsorted(table.indptr, wrong[0], side="right")) - 1
        value, name = table.data[wrong[0]], names[table.indices[wrong[0]]]
        raise file.error(lines[row], 0, f"0 or 1 for the label {name!r}", "?" if np.isnan(value) else f"{value:g}")
    table.eliminate_zeros()
    table.sort_indices()
    return [
        tuple(names[column] for column in table.indices[begin:end].tolist())
        for begin, end in zip(table.indptr[:-1].tolist(), table.indptr[1:].tolist(), strict=True)
    ]
