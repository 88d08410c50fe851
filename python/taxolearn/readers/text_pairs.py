"""Reader of labelled texts in JSON."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from taxolearn.raw_files import Source, name_of, read_lines

__all__ = ["read_text_pairs"]


def read_text_pairs(source: Source, key: str | None = None) -> tuple[list[str], NDArray[np.str_]]:
    """Read texts and labels from JSON of the form ``[[text, label], ...]``.

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
