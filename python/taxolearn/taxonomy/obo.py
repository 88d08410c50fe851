"""Ontologies in files of the OBO format: their terms, and what these are and are part of."""

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from taxolearn.raw_files import read_text

__all__ = ["read_obo"]


def read_obo(
    path: str | PathLike[str], relations: Sequence[str], encoding: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Identifiers of the terms that are not obsolete, and edges from what a term is related to down to the term."""
    if isinstance(relations, str):
        raise TypeError(f"relations is {relations!r}, expected a sequence of names such as ('is_a', 'part_of')")
    names: list[str] = []
    edges: list[tuple[str, str]] = []
    for stanza in re.split(r"^\s*\[", read_text(Path(path), encoding), flags=re.MULTILINE)[1:]:
        kind, _, rest = stanza.partition("]")
        if kind.strip() != "Term":
            continue
        tags = [_tag(line) for line in rest.splitlines()]
        values = dict(reversed(tags))  # the first of each
        if values.get("is_obsolete") == "true":
            continue
        if not values.get("id"):
            raise ValueError(f"{path}: a term has no id; is this a file of the OBO format?")
        names.append(values["id"])
        for tag, value in tags:
            related = [tag, *value.split()] if tag == "is_a" else value.split()
            if tag in ("is_a", "relationship") and len(related) > 1 and related[0] in relations:
                edges.append((related[1], values["id"]))
    if not names:
        raise ValueError(f"{path}: there are no terms; is this a file of the OBO format?")
    known = set(names)
    return names, [(parent, child) for parent, child in edges if parent in known]


def _tag(line: str) -> tuple[str, str]:
    """A tag and its value, without the comment and the qualifiers at its end."""
    tag, _, value = re.sub(r"(?<!\\)[!{].*", "", line).partition(":")
    return tag.strip(), value.strip()
