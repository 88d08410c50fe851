"""The command line: ``taxolearn COMMAND ...``, with one module of this package per command; and what these share.

Only the module of the command that is called is imported, so that no command waits for what another one needs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from taxolearn.progress import without_bars
from taxolearn.readers.tables import CHUNK_ROWS

__all__ = [
    "BAD_DATA",
    "BAD_MODEL",
    "BROKEN_PIPE",
    "CODES",
    "COMMANDS",
    "INTERRUPTED",
    "STOPPED_EARLY",
    "SYSTEM",
    "USAGE",
    "Command",
    "CommandError",
    "Page",
    "above_zero",
    "character",
    "check_output",
    "chunk_option",
    "column_option",
    "delimiter",
    "figure",
    "fraction",
    "json_option",
    "lengths",
    "main",
    "model_argument",
    "natural",
    "option",
    "options_of",
    "output_option",
    "plain_warning",
    "positive",
    "quote",
    "seed_option",
    "share",
    "size_text",
    "threads_option",
    "whole_number",
    "writing",
]

# The names are those of modules beside this one, each of which has a COMMAND.
COMMANDS = {
    "train": "learn from a data file and write a model",
    "predict": "classify the rows of a file",
    "evaluate": "score a model on labelled rows",
    "report": "write a page that shows how good a model is",
    "prune": "make a linear model smaller, and say what that costs",
    "inspect": "say what is in a model file",
    "demo": "train and test on the docstrings of numpy, scipy and scikit-learn",
}

USAGE = 2  # the arguments do not fit together, or not to the model
BAD_DATA = 3  # a data file or a taxonomy is malformed
BAD_MODEL = 4  # a model file cannot be used
SYSTEM = 5  # a file cannot be read or written
INTERRUPTED = 130
BROKEN_PIPE = 141

STOPPED_EARLY = "the search for hyperparameters stopped early to save time"

CODES = {
    0: "done",
    USAGE: "wrong usage",
    BAD_DATA: "a data file is malformed",
    BAD_MODEL: "a model file cannot be used",
    SYSTEM: "a file cannot be read or written",
    INTERRUPTED: "interrupted",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process if left out.

    Returns
    -------
    code : int
        0 on success, 2 on wrong usage, 3 for malformed data, 4 for a model file that cannot be used, 5 if a file cannot
        be read or written, 130 if interrupted from the keyboard.
    """
    argv = sys.argv[1:] if argv is None else argv
    # No option before the command takes a value, so the first word without a dash is the command.
    name = next((word for word in argv if not word.startswith("-")), "")
    try:
        command: Command | None = None
        if name in COMMANDS:
            command = import_module(f"taxolearn.cli.{name}").COMMAND
        arguments = vars(_parser(name, command).parse_args(argv))
        if command is not None:
            command(arguments)
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        print("taxolearn: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has had enough
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  the interpreter flushes it once more
        return BROKEN_PIPE
    except CommandError as error:
        print(f"taxolearn: {error}", file=sys.stderr)
        return error.code
    return 0


def _parser(called: str, command: Command | None) -> argparse.ArgumentParser:
    """Build the parser of all commands, with the options of the one that is called."""
    codes = ", ".join(f"{code} {meaning}" for code, meaning in CODES.items())
    parser = _Parser(
        prog="taxolearn", description="Classify into large, structured sets of classes.", epilog=f"exit codes: {codes}"
    )
    parser.add_argument("--version", action=_Version, default=argparse.SUPPRESS, help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, text in COMMANDS.items():
        each = commands.add_parser(name, help=text)
        if name == called and command is not None:
            command.register(each)
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"taxolearn: {message}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Prints the version like argparse's own action, but looks it up only when asked."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"taxolearn {version('taxolearn')}")
        parser.exit()


# -- Errors -----------------------------------------------------------------------------------------------------------


class CommandError(Exception):
    """An error that is printed in one line.

    Parameters
    ----------
    message : str
        What is wrong and what to do.
    code : int
        The exit code.
    """

    def __init__(self, message: str, code: int = BAD_DATA) -> None:
        super().__init__(" ".join(message.split()))
        self.code = code


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn errors of the system into errors of commands that name the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(reason if path in reason else f"{path}: cannot be written: {reason}", SYSTEM) from None


# -- Options, each declared once: as a field of the class that holds the options of a command -------------------------


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


def model_argument() -> Any:
    return option("model", help="model file to read")


def output_option(metavar: str, what: str) -> Any:
    return option("-o", "--output", required=True, metavar=metavar, help=what)


def column_option(flag: str, text: str) -> Any:
    return option(flag, action="append", default=[], metavar="COLUMN", group="columns of a table", help=text)


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


def delimiter(text: str) -> str:
    """A character, or the word for a tab."""
    return character("\t" if text in ("tab", "\\t") else text)


def quote(text: str) -> str | None:
    """A character, or the word for none."""
    return None if text == "none" else character(text)


def lengths(text: str) -> tuple[int, int] | str | None:
    """Two lengths like 3-5, one like 2, "auto", or "none"."""
    if text == "none":
        return None
    if text == "auto":
        return text
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


def share(text: str) -> float:
    """A number from 0 to below 1."""
    value: float = _number(float, text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a share such as 0.1, from 0 to below 1, got {text}")
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


# -- Output: a table for people, or one JSON object for machines ------------------------------------------------------


def figure(value: Any, form: str = ",.4g") -> str:
    """Format a number for people; a dash stands for None."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else format(value, form)


class Page:
    """Prints results to the standard output, and what is going on to the standard error."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._out = Console()
        self._err = Console(stderr=True)
        encoding = self._out.encoding.lower()
        self.plain = not (self._out.is_terminal and encoding.startswith("utf"))

    @contextmanager
    def stage(self, what: str) -> Iterator[Callable[[int], None]]:
        """Say on a terminal what is going on and, by the function that it yields, how many rows are done."""
        if self._as_json or not self._err.is_terminal:
            yield lambda rows: None
            return
        begin, done = time.perf_counter(), 0
        with without_bars(), self._err.status(f"{what} ...") as status:

            def count(rows: int) -> None:
                nonlocal done
                done += rows
                speed = done / max(time.perf_counter() - begin, 1e-9)
                status.update(f"{what}: {done:,} rows, {speed:,.0f} per second")

            yield count

    def say(self, what: str) -> None:
        """Say on a terminal what begins now, and shows its progress itself."""
        if not self._as_json and self._err.is_terminal:
            self._err.print(Text(self._shown(f"{what} ...")))

    def result(
        self, figures: dict[str, Any], *, title: str, rows: list[tuple[str, str]], remarks: list[str] | None = None
    ) -> None:
        """Print the outcome: figures as JSON, or rows of a table."""
        if self._as_json:
            print(json.dumps(figures, indent=2))
            return
        self._out.print(Text(self._shown(title), style="bold"))
        lines = box.Box(str(box.SIMPLE).replace("─", "-"), ascii=True) if self.plain else box.SIMPLE
        table = Table(box=lines, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(justify="right")
        for name, value in rows:
            table.add_row(self._shown(name), self._shown(value))
        self._out.print(table)
        for remark in remarks or []:
            print(f"note: {remark}", file=sys.stderr)

    def _shown(self, text: str) -> str:
        return text.encode("ascii", "replace").decode() if self.plain else text


def check_output(path: str, *inputs: str) -> None:
    """Check before hours of work, not after, that a file can be written and is none of the inputs."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {folder.name!r} to write to", SYSTEM)
    if Path(path).is_dir():
        raise CommandError(f"{path}: is a folder, expected the name of a file to write", SYSTEM)
    for each in inputs:
        if Path(path).is_file() and Path(each).is_file() and Path(path).samefile(each):
            raise CommandError(f"{path}: is read by this command, and would be replaced; write to another file", USAGE)


def plain_warning(message: str) -> str:
    """What a warning of the package means to somebody at the command line."""
    if message.startswith("Learning hyperparameters: stopped"):
        return f"{STOPPED_EARLY}: a longer search may gain a little (--evaluations)"
    if message.startswith("Learning hyperparameters: the start values"):
        return "no hyperparameters could be learned, so they have their start values; do the inputs tell anything?"
    if message.startswith("Expectation maximization stopped"):
        return "rows at inner nodes could be told apart a little further, had there been more rounds"
    if "max_iter" in message:
        gap = re.search(r"certified relative gap ([\d.e+-]+)", message)
        reached = f" (certified relative gap {gap[1]})" if gap else ""
        return f"the fit stopped before it had the accuracy that was asked for{reached}; a larger --tol asks for less"
    return message.replace('choose labels="own"', "choose --inner-labels own")


def size_text(size: int) -> str:
    """Format a number of bytes for people."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
