"""What the reader of the reference's docstrings would get wrong, said in a way that it understands.

The reference is made by griffe, which calls ``on_object`` for every object that it finds (extensions in .mkdocs.yml).
"""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":\w+:`~?([\w.]+)`")
_ENTRY = re.compile(
    r"^(?P<names>\w+(?:, \w+)+)(?P<type> : .+)?\n(?P<text>(?: {4,}.*\n|\n(?= {4}))+)", flags=re.MULTILINE
)
_CHOICES = re.compile(r"^(?P<name>\w+ : )\{(?P<choices>[^}\n]+)\}(?P<rest>.*)$", flags=re.MULTILINE)


class Docstrings(griffe.Extension):
    """Changes docstrings before they are parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)


def plain(text: str) -> str:
    """The docstring without roles, with an entry for each parameter, and with choices as plain words.

    Of several parameters in one entry the reader gives all the type and the default of the first, and of a choice such
    as ``{"a", "b"} or array, default="b"`` it forgets all but the braces. "One of" keeps it from reading a tuple.
    """
    text = _ROLE.sub(lambda found: f"``{found[1]}``", text + "\n")
    text = _ENTRY.sub(_apart, text)
    return _CHOICES.sub(r"\g<name>one of \g<choices>\g<rest>", text).rstrip("\n")


def _apart(entry: re.Match[str]) -> str:
    kind = entry["type"] or ""
    return "".join(f"{name}{kind}\n{entry['text']}" for name in entry["names"].split(", "))
