"""Write the matrix of news20 for ``taxolearn_bench --csr``."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bench.harness.report import Result
from bench.problems.data import dump_csr, news20

HELP = "write the matrix of news20 for taxolearn_bench --csr"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path)
    parser.add_argument("--quick", action="store_true", help="a small part of the data")


def run(options: Namespace) -> list[Result]:
    """Write the file; there is no result."""
    dump_csr(news20(options.quick).X, options.file)
    return []
