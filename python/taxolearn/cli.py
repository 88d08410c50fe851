"""The command line: ``taxolearn demo``.

Commands are imported when they are called, so that ``--version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process if left out.

    Returns
    -------
    code : int
        0 on success, 2 on wrong usage, 130 if interrupted from the keyboard.
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else 0
    try:
        from taxolearn import demo

        demo.run(
            test_fraction=arguments.test_fraction,
            seed=arguments.seed,
            threads=arguments.threads,
            as_json=arguments.json,
        )
    except KeyboardInterrupt:
        print("taxolearn: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="taxolearn", description="Classify into large, structured sets of classes.")
    parser.add_argument("--version", action=_Version, help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="train and test on the docstrings of numpy, scipy and scikit-learn",
        description="Train two classifiers on most docstrings of numpy, scipy and scikit-learn, one that knows the "
        "tree of modules and one that does not, and let them name the module of the others. "
        "Needs no data and no network.",
    )
    demo.add_argument(
        "--test-fraction",
        type=_fraction,
        default=0.25,
        metavar="F",
        help="held-out part of each class (%(default)s)",
    )
    demo.add_argument("--seed", type=_natural, default=0, metavar="S", help="seed of the split (%(default)s)")
    demo.add_argument("--threads", type=_positive, metavar="N", help="number of threads (default: the library's)")
    demo.add_argument("--json", action="store_true", help="print the figures as one JSON object and nothing else")
    return parser


class _Version(argparse.Action):
    """Like argparse's own, but looks the version up only when asked."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"taxolearn {version('taxolearn')}")
        parser.exit()


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, got {text}")
    return value


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {text}")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
