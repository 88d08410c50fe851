"""Labels as they are found in files: paths or names, the tree that they make, and what there is to say about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn import Taxonomy
from taxolearn.cli.inputs import LEVELS, Batch, reading, tidy_path
from taxolearn.cli.main import BAD_DATA, USAGE, CommandError, option
from taxolearn.taxonomy.files import FORMATS as TAXONOMY_FORMATS
from taxolearn.taxonomy.graph import ClassGraph

__all__ = ["INNER_LABELS", "LabelOptions", "Labels", "labels_like", "read_labels", "used_rows"]

INNER_LABELS = ("below", "own")

_GROUP = "tree of classes"
_SEPARATORS = ("/", "->", ">", "::", "|", ".")  # that are looked for
_JOINS = ("/", " > ", " | ", " :: ")  # that may stand between the levels of several columns
_MISSING = ("nan", "null", "none", "na", "n/a", "<na>")
_MANY_MISSING = 1 / 3  # of the rows: then something went wrong
_SHOWN = 3  # examples in a note


@dataclass(frozen=True)
class LabelOptions:
    """What the user says about the tree."""

    taxonomy: str | None = option(
        "--taxonomy", metavar="FILE", group=_GROUP, help="file with the tree (default: made of labels such as A/B/C)"
    )
    taxonomy_format: str | None = option(
        "--taxonomy-format",
        choices=tuple(TAXONOMY_FORMATS),
        group=_GROUP,
        help="format of that file (default: guessed)",
    )
    separator: str | None = option(
        "--separator",
        metavar="S",
        group=_GROUP,
        help=f"text between levels of a path (default: found, one of {' '.join(_SEPARATORS)})",
    )
    flat: bool = option("--flat", action="store_true", group=_GROUP, help="use no tree, whatever the labels look like")
    inner_labels: str = option(
        "--inner-labels",
        choices=INNER_LABELS,
        default=INNER_LABELS[0],
        group=_GROUP,
        help="what a label means that others lie below: one of the classes below it, or a class of its own "
        "(default: %(default)s)",
    )


@dataclass(frozen=True)
class Labels:
    """The labels of all rows.

    Attributes
    ----------
    names : ndarray of str or int
        One per row, tidied; empty for rows without one.
    taxonomy : Taxonomy or None
        With a node for each of them.
    separator : str or None
        Between the levels of a path; None if labels are no paths.
    leaves_below : ndarray of int
        How many classes the label of each row leaves open: 1 for a class, 0 for no label.
    notes : list of str
        What the user may want to know.
    graph : ClassGraph or None
        In place of a tree, for any number of labels per row.
    """

    names: NDArray[Any]
    taxonomy: Taxonomy | None
    separator: str | None
    leaves_below: NDArray[np.int64]
    notes: list[str] = field(default_factory=list)
    graph: ClassGraph | None = None

    @property
    def structure(self) -> Taxonomy | ClassGraph | None:
        """The graph, or the tree."""
        return self.taxonomy if self.graph is None else self.graph

    @property
    def n_classes(self) -> int:
        if self.graph is not None:
            return self.graph.n_nodes
        known = self.names[self.leaves_below > 0]
        return len(np.unique(known)) if self.taxonomy is None else self.taxonomy.n_classes


def read_labels(options: LabelOptions, batch: Batch, path: str, n_columns: int) -> Labels:
    """Tidy the labels of a file, and make their tree.

    Parameters
    ----------
    options : LabelOptions
    batch : Batch
        All rows of the file; levels of several columns are joined by ``LEVELS``.
    path : str
        Of the file, for messages.
    n_columns : int
        Number of columns that the labels come from.
    """
    raw: NDArray[Any] = batch.labels
    if raw.dtype.kind != "U":
        taxonomy = _from_file(options, None)[0] if options.taxonomy is not None and not options.flat else None
        if options.separator is not None:
            raise CommandError(f"--separator: the labels of {path} are numbers, not paths", USAGE)
        return _in_tree(options, batch, path, raw, taxonomy, None, [])
    is_labelled = raw != ""
    if not is_labelled.any():
        raise CommandError(f"{path}: no row has a label")
    notes = _notes_on_missing(raw)
    separator = _separator(options, np.unique(raw[is_labelled]).tolist(), path, n_columns)
    taxonomy = None
    if options.taxonomy is not None and not options.flat:
        taxonomy, separator = _from_file(options, separator)
    if n_columns > 1:
        tidy = {label: (separator or "/").join(label.split(LEVELS)) for label in np.unique(raw).tolist()}
    else:
        tidy = {label: tidy_path(label, separator) for label in np.unique(raw).tolist()}
    names = np.array([tidy[label] for label in raw.tolist()])
    if separator is not None and n_columns == 1:
        _check_paths(names, is_labelled, separator, batch, path)
    classes = np.unique(names[is_labelled]).tolist()
    if options.taxonomy is None and separator is not None and not options.flat:
        leaves = classes
        if options.inner_labels == "below":
            above = {up for label in classes for up in _ancestors(label, separator)}
            leaves = [label for label in classes if label not in above]
        with reading(path):
            taxonomy = Taxonomy.from_labels(leaves, separator=separator)
        shape = f"{_count(taxonomy.height, 'level')}, {taxonomy.n_nodes:,} nodes"
        if n_columns > 1:
            notes.append(f"the columns of labels make a tree: {shape}")
        elif options.separator is None:
            notes.append(f'labels are paths separated by "{separator.strip()}": {shape} (--flat ignores the tree)')
    notes += [*_notes_on_case(classes), *_notes_on_numbers(classes)]
    if len(classes) * 2 > is_labelled.sum():
        notes.append(
            f"there are {len(classes):,} different labels in {is_labelled.sum():,} rows, so that most classes have one "
            "row; is it the right column?"
        )
    return _in_tree(options, batch, path, names, taxonomy, separator, notes)


def used_rows(labels: Labels, model: str, inner_models: Sequence[str]) -> tuple[NDArray[np.intp], list[str]]:
    """The rows that the model learns from, and notes on the others; ``inner_models`` also use those at inner nodes."""
    below, notes = labels.leaves_below, []
    unknown = 0
    if labels.taxonomy is not None:
        unknown = int(((below == labels.taxonomy.n_classes) & (below > 1)).sum())
    inner = int((below > 1).sum()) - unknown
    uses_inner = model in inner_models
    if inner:
        what = (
            "each is taken for one of the classes below it (--inner-labels own makes them classes)"
            if uses_inner
            else f"--model {model} leaves them out ({', '.join(inner_models)} take each for one of the classes "
            "below it, --inner-labels own makes them classes)"
        )
        notes.append(f"{inner:,} rows end at an inner node of the tree: {what}")
    if unknown:
        notes.append(
            f"{unknown:,} rows have the root of the tree for a label, which says nothing: they have no influence"
        )
    is_used = (below > 0) if uses_inner else below == 1
    if not is_used.any():
        raise CommandError("no row has a class for a label, so there is nothing to learn from; see --inner-labels")
    return np.flatnonzero(is_used), notes


def labels_like(classes: Any, batch: Batch, path: str) -> Any:
    """Convert the labels of a batch to the type of a model's classes."""
    labels = batch.labels
    if classes.dtype.kind == "U":
        return labels if labels.dtype.kind == "U" else labels.astype(str)
    if labels.dtype.kind != "U":
        return labels
    for line, label in zip(batch.lines, labels.tolist(), strict=True):
        if not label.lstrip("-").isdecimal():
            raise CommandError(f"{path}, line {line}: the label is {label!r}, expected a number as in training")
    return labels.astype(np.int64)


def _in_tree(
    options: LabelOptions,
    batch: Batch,
    path: str,
    names: NDArray[Any],
    taxonomy: Taxonomy | None,
    separator: str | None,
    notes: list[str],
) -> Labels:
    """Find the labels among the nodes of the tree."""
    is_labelled = names != "" if names.dtype.kind == "U" else np.ones(len(names), dtype=bool)
    if taxonomy is None:
        return Labels(names, None, separator, is_labelled.astype(np.int64), notes)
    are_numbers = taxonomy.classes.dtype.kind != "U" and names.dtype.kind == "U"
    if are_numbers and all(name.lstrip("-").isdecimal() for name in np.unique(names).tolist()):
        names = names.astype(np.int64)
    known = set(taxonomy.names.tolist())
    for line, name in zip(batch.lines, names.tolist(), strict=True):
        if name != "" and name not in known:
            raise CommandError(f"{path}, line {line}: the label {name!r} is not in {options.taxonomy}", BAD_DATA)
    distinct, of = np.unique(names[is_labelled], return_inverse=True)
    if options.inner_labels == "own":
        with reading(path):
            taxonomy = taxonomy.with_classes(distinct.tolist())
    nodes = np.atleast_1d(taxonomy.index(distinct.tolist()))
    below = np.zeros(len(names), dtype=np.int64)
    below[is_labelled] = (taxonomy.leaf_end - taxonomy.leaf_begin)[nodes][of]
    single = {
        name: taxonomy.classes[taxonomy.leaf_begin[node]].item()
        for name, node in zip(distinct.tolist(), nodes.tolist(), strict=True)
        if node < taxonomy.n_inner and taxonomy.leaf_end[node] - taxonomy.leaf_begin[node] == 1
    }
    if single:
        listed = names.tolist()
        count = sum(name in single for name in listed)
        node, leaf = next(iter(single.items()))
        notes.append(
            f"{count:,} rows end at an inner node with one class below it, such as {node!r} above {leaf!r}: each is "
            "taken for that class (--inner-labels own makes them classes)"
        )
        names = np.array([single.get(name, name) for name in listed])
    return Labels(names, taxonomy, separator, below, notes)


def _from_file(options: LabelOptions, separator: str | None) -> tuple[Taxonomy, str | None]:
    """The tree in the file, and the separator if the file is a list of paths."""
    file = str(options.taxonomy)
    with reading(file):
        taxonomy = Taxonomy.from_file(file, format=options.taxonomy_format)
        names = taxonomy.classes.tolist()
        if taxonomy.height > 1 or taxonomy.classes.dtype.kind != "U":
            return taxonomy, separator
        found = options.separator or _found_separator(names)
        if found is None or not any(found.strip() in name for name in names):
            return taxonomy, separator
        found = _with_blanks(found, names)
        return Taxonomy.from_labels([tidy_path(name, found) for name in names], separator=found), found


# -- Separators -------------------------------------------------------------------------------------------------------


def _separator(options: LabelOptions, labels: list[str], path: str, n_columns: int) -> str | None:
    """What stands between the levels: as given, or found; None if labels are no paths."""
    given = options.separator
    if given is not None and not given:
        raise CommandError("--separator is empty; give the text between levels, such as /", USAGE)
    if n_columns > 1:
        cells = {cell for label in labels for cell in label.split(LEVELS)}
        free = [each for each in ([given] if given else _JOINS) if not any(_core(each) in cell for cell in cells)]
        if not free:
            inside = next(cell for cell in sorted(cells) if _core(given or _JOINS[0]) in cell)
            what = f"{given!r}" if given else f"every usual separator, as in {inside!r}"
            raise CommandError(f"{path}: the label columns contain {what}; give another --separator", BAD_DATA)
        return free[0]
    if given is not None:
        if not any(_core(given) in label for label in labels):
            raise CommandError(
                f"--separator {given!r}: no label of {path} contains it; labels are such as {labels[0]!r}", USAGE
            )
        return _with_blanks(given, labels)
    if options.flat or options.taxonomy is not None:
        return None
    found = _found_separator(labels)
    return None if found is None else _with_blanks(found, labels)


def _core(separator: str) -> str:
    return separator.strip() or separator


def _with_blanks(separator: str, labels: list[str]) -> str:
    """The separator with a blank on either side, if it is mostly written like that."""
    core = _core(separator)
    spaced = sum(f" {core} " in label for label in labels)
    return f" {core} " if spaced * 2 > sum(core in label for label in labels) else separator


def _found_separator(labels: list[str]) -> str | None:
    """The separator that makes paths of most labels; None if none does."""
    counts = {separator: _count_paths(labels, separator) for separator in _SEPARATORS}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] > 0 else None


def _count_paths(labels: list[str], separator: str) -> int:
    """How many labels are paths; 0 unless these are at least half, some have a common ancestor, and it makes sense."""
    paths = [path for path in (tidy_path(label, separator).split(separator) for label in labels) if len(path) > 1]
    if separator == ".":
        as_written = set(labels)
        paths = [path for path in paths if separator.join(path) in as_written and _is_dotted_path(path)]
    tops = {path[0] for path in paths}
    if len(paths) * 2 < len(labels) or len(tops) == len(paths):
        return 0
    if separator == ".":  # names of files and hosts: many tops with one label each
        return len(paths) if len(tops) * 2 <= len(paths) else 0
    # Lists such as "red|green" and "green|blue" have the same words in any place.
    lower = {part for path in paths for part in path[1:]}
    is_list = separator != "/" and len(tops & lower) * 2 >= len(tops)
    is_comparison = separator == ">" and any(part.startswith("=") for part in lower)
    return 0 if is_list or is_comparison else len(paths)


def _is_dotted_path(path: list[str]) -> bool:
    """Whether it is no version, number or abbreviation."""
    return all(re.fullmatch(r"[^\W\d][\w -]*", part) for part in path) and any(len(part) > 1 for part in path)


def _check_paths(names: NDArray[Any], used: NDArray[np.bool_], separator: str, batch: Batch, path: str) -> None:
    for line, name, is_used in zip(batch.lines, names.tolist(), used.tolist(), strict=True):
        if is_used and not all(name.split(separator)):
            raise CommandError(
                f"{path}, line {line}: the label {name!r} has an empty part between its separators; fix it, or use "
                "--flat",
                BAD_DATA,
            )


def _ancestors(label: str, separator: str) -> list[str]:
    parts = label.split(separator)
    return [separator.join(parts[:end]) for end in range(1, len(parts))]


# -- Notes ------------------------------------------------------------------------------------------------------------


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _notes_on_missing(raw: NDArray[Any]) -> list[str]:
    notes = []
    missing = int((raw == "").sum())
    if missing:
        doubt = "; that is a lot: is it the right column?" if missing > _MANY_MISSING * len(raw) else ""
        notes.append(f"{missing:,} of {len(raw):,} rows have no label and are left out{doubt}")
    for label, count in Counter(raw.tolist()).most_common():
        if label.lower() in _MISSING:
            notes.append(
                f"{count:,} of {len(raw):,} rows have the label {label!r}, which is taken for a class; leave these "
                "rows out if it stands for a missing label"
            )
    return notes


def _notes_on_case(classes: list[str]) -> list[str]:
    alike: dict[str, list[str]] = {}
    for label in classes:
        alike.setdefault(label.casefold(), []).append(label)
    groups = [" and ".join(map(repr, each)) for each in alike.values() if len(each) > 1]
    if not groups:
        return []
    more = f" and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
    return [f"some labels are equal up to upper and lower case, but different classes: {'; '.join(groups[:3])}{more}"]


def _notes_on_numbers(classes: list[str]) -> list[str]:
    numbers = [label for label in classes if re.fullmatch(r"[+-]?[0-9]*[.,][0-9]+(?:[eE][+-]?[0-9]+)?", label)]
    if len(numbers) * 2 <= len(classes):
        return []
    count = f"{len(classes):,} different ones"
    return [f"labels are numbers such as {numbers[0]!r}: each of the {count} is taken for a class of its own"]
