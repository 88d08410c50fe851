"""The command line: ``taxolearn COMMAND ...``, with one module of this package per command.

Only the module of the command that is called is imported, so that no command waits for what another one needs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from taxolearn.cli.errors import BROKEN_PIPE, CODES, INTERRUPTED, USAGE, CommandError

if TYPE_CHECKING:
    from taxolearn.cli.options import Command

__all__ = ["COMMANDS", "main"]

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
