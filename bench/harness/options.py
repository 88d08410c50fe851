"""Options that suites share, and the types of their values."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bench.harness.cases import Cases


def numbers(text: str) -> list[float]:
    """Parse numbers separated by commas."""
    return [float(part) for part in text.split(",")]


def whole_numbers(text: str) -> list[int]:
    """Parse whole numbers separated by commas."""
    return [int(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    """Parse names separated by commas."""
    return text.split(",")


def add_common(parser: ArgumentParser, repeats: int | None = None) -> None:
    """Add the options of every suite that measures something, and ``--repeats`` if it has them."""
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="directory for the results")
    parser.add_argument("--threads", type=int, default=2, help="threads that every library may use")
    parser.add_argument("--quick", action="store_true", help="a small part of the data, to see that it works")
    if repeats is not None:
        parser.add_argument("--repeats", type=int, default=repeats, help="of what is timed")


def add_resumable(parser: ArgumentParser, repeats: int | None = None) -> None:
    """Add the options of a suite whose cases are kept one by one; see ``known_cases``."""
    add_common(parser, repeats)
    parser.add_argument("--fresh", action="store_true", help="forget the cases that are done, and start anew")


def known_cases(options: Namespace) -> Cases:
    """Find the cases that earlier runs of the suite have done."""
    return Cases(options.output / f"{options.suite}.cases.jsonl", fresh=options.fresh)


def add_folder(parser: ArgumentParser) -> None:
    """Add the folder of the environments of other libraries."""
    parser.add_argument("--folder", type=Path, default=Path("build/peers"), help="of the environments of the libraries")
