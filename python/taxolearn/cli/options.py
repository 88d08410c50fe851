"""Options of commands, each declared once: as a field of the class that holds the options of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from taxolearn.readers.tables import CHUNK_ROWS

__all__ = [
    "Command",
    "above_zero",
    "character",
    "chunk_option",
    "fraction",
    "json_option",
    "lengths",
    "model_argument",
    "natural",
    "option",
    "options_of",
    "output_option",
    "positive",
    "seed_option",
    "threads_option",
    "whole_number",
]


@dataclass(frozen=True)
class Command:
    """A command: the class of its options, the function that runs it, and what its help says.

    Attributes
    ----------
    options : type
        A dataclass whose fields are made by ``option`` and ``options_of``.
    run : callable
        Takes an instance of that class.
    description, example : str
        Texts before and after the list of options.
    """

    options: type[Any]
    run: Callable[[Any], None]
    description: str
    example: str = ""

    def register(self, parser: argparse.ArgumentParser) -> None:
        """Add all options to the parser of the command."""
        parser.description = self.description
        parser.epilog = f"example: {self.example}" if self.example else None
        _add(parser, self.options, {})

    def __call__(self, arguments: Mapping[str, Any]) -> None:
        """Run with parsed arguments."""
        self.run(_filled(self.options, arguments))


def option(*flags: str, group: str | None = None, **settings: Any) -> Any:
    """Declare a field that an option, or an argument without dashes, of the command line fills.

    Parameters
    ----------
    flags : str
        As for ``ArgumentParser.add_argument``.
    group : str, optional
        Title of the group of the help in which it is listed.
    settings
        Passed on to ``ArgumentParser.add_argument``.
    """
    return field(metadata={"flags": flags, "group": group, "settings": settings})


def options_of(kind: type[Any]) -> Any:
    """Declare a field that holds options of a class of their own."""
    return field(metadata={"options": kind})


def _add(parser: argparse.ArgumentParser, kind: type[Any], groups: dict[str, Any]) -> None:
    for each in fields(kind):
        if "options" in each.metadata:
            _add(parser, each.metadata["options"], groups)
            continue
        flags, title = each.metadata["flags"], each.metadata["group"]
        if title is not None and title not in groups:
            groups[title] = parser.add_argument_group(title)
        target: Any = parser if title is None else groups[title]
        settings = dict(each.metadata["settings"])
        if flags[0].startswith("-"):
            settings["dest"] = each.name
        target.add_argument(*flags, **settings)


def _filled(kind: type[Any], arguments: Mapping[str, Any]) -> Any:
    values = {}
    for each in fields(kind):
        if "options" in each.metadata:
            values[each.name] = _filled(each.metadata["options"], arguments)
        else:
            flag = each.metadata["flags"][0]
            values[each.name] = arguments[each.name if flag.startswith("-") else flag]
    return kind(**values)


# -- Options of several commands --------------------------------------------------------------------------------------


def model_argument() -> Any:
    return option("model", help="model file to read")


def output_option(metavar: str, what: str) -> Any:
    return option("-o", "--output", required=True, metavar=metavar, help=what)


def threads_option() -> Any:
    return option("--threads", type=positive, metavar="N", help="number of threads (default: one per core)")


def chunk_option() -> Any:
    text = "number of rows to read and classify at a time (default: %(default)s)"
    return option("--chunk", type=positive, default=CHUNK_ROWS, metavar="N", help=text)


def seed_option(what: str) -> Any:
    return option("--seed", type=natural, default=0, metavar="S", help=f"{what} (default: %(default)s)")


def json_option(text: str = "print the results as one JSON object and nothing else") -> Any:
    return option("--json", action="store_true", help=text)


# -- Types of values --------------------------------------------------------------------------------------------------


def character(text: str) -> str:
    """A single character."""
    if len(text) != 1 or text in "\r\n\0":
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return text


def lengths(text: str) -> tuple[int, int] | None:
    """Two lengths like 3-5, one like 2, or "none"."""
    if text == "none":
        return None
    first, _, last = text.partition("-")
    try:
        low, high = int(first), int(last or first)
    except ValueError:
        low = high = 0
    if not 1 <= low <= high:
        raise argparse.ArgumentTypeError(f"must be like 1-2, or none, got {text}")
    return low, high


def _number(kind: Callable[[str], Any], text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"must be {expected}, got {text}") from None


def above_zero(text: str) -> float:
    """A positive number."""
    value: float = _number(float, text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


def fraction(text: str) -> float:
    """A number between 0 and 1, without the ends."""
    value: float = _number(float, text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, got {text}")
    return value


def whole_number(least: int) -> Callable[[str], int]:
    """The type of whole numbers that are not below ``least``."""

    def read(text: str) -> int:
        value: int = _number(int, text)
        if value < least:
            expected = "not be negative" if least == 0 else f"be at least {least}"
            raise argparse.ArgumentTypeError(f"must {expected}, got {text}")
        return value

    return read


natural = whole_number(0)
positive = whole_number(1)
