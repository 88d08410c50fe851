"""Reader of ARFF files with a hierarchical class attribute, as the CLUS system uses them.

The declaration of the class lists the hierarchy. A tree is a list of paths (``1,1/1,1/2,2``), where a class is known
by its whole path. A DAG is a list of pairs of parent and child (``root/GO1,GO1/GO2,root/GO3,GO3/GO2``), where a class
is known by its name. In the rows, labels are joined by ``@``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from taxolearn.raw_files import Source
from taxolearn.readers.arff_syntax import ArffFile, ArffRows, Attribute, read_header
from taxolearn.readers.labelled import LabelledData
from taxolearn.validation import check_choice

__all__ = ["ArffData", "read_arff"]

_ROOT = "root"


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

    ``Taxonomy.from_edges(data.edges)`` is the tree. Of a DAG, ``data.classes`` and ``data.edges`` are the nodes and the
    pairs of parent and child. Labels are not closed upwards: a row has those that the file names.

    Values that are missing (``?``) are NaN, which classifiers refuse; put them in by
    ``sklearn.impute.SimpleImputer().fit(X)`` of the training rows, say.

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
    file = ArffFile(source, encoding)
    relation, attributes, first = read_header(file)
    target = _find_target(file, attributes, first)
    classes, edges, is_dag = _read_hierarchy(file, attributes[target], hierarchy)
    hint = f" (the hierarchy was taken for a {'DAG' if is_dag else 'tree'}: see the option hierarchy)"
    rows = ArffRows(file, attributes, first, target=target, classes=classes, hint=hint if hierarchy == "auto" else "")
    expand = [k for k, attribute in enumerate(attributes) if attribute.kind == "nominal" and nominal == "onehot"]
    X, names, _ = rows.matrix(expand)
    return ArffData(X, rows.labels, names, classes, edges, is_dag, relation, rows.strings)


def _find_target(file: ArffFile, attributes: Sequence[Attribute], first: int) -> int:
    targets = [position for position, attribute in enumerate(attributes) if attribute.kind == "hierarchical"]
    if len(targets) == 1:
        return targets[0]
    if not targets:
        expected = "one attribute of the type hierarchical before @data (labels that are attributes: see read_mulan)"
        raise file.error(first - 1, 0, expected, "none")
    raise file.error(attributes[targets[1]].line, 0, "one attribute of the type hierarchical", "a second one")


def _read_hierarchy(
    file: ArffFile, attribute: Attribute, hierarchy: str
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
