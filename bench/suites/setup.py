"""Make the environments that the suites ``peers``, ``peers_models`` and ``jobs`` need."""

from argparse import ArgumentParser, Namespace

from bench.harness import environments
from bench.harness.options import add_folder
from bench.harness.report import Result

HELP = "make the environments that peers, peers_models and jobs need"


def add_arguments(parser: ArgumentParser) -> None:
    add_folder(parser)


def run(options: Namespace) -> list[Result]:
    """Make the environments, unless they are there; there is no result."""
    environments.setup(options.folder)
    return []
