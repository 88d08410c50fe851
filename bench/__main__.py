"""Command line: ``python -m bench <suite>`` from the root of the repository; ``--help`` lists the suites."""

import argparse
import importlib
import pkgutil
import sys

from threadpoolctl import threadpool_limits

from bench import suites
from bench.harness.report import write


def make_parser() -> argparse.ArgumentParser:
    """Make a subcommand for each module of ``bench.suites``, which adds its own arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of taxolearn.")
    commands = parser.add_subparsers(dest="suite", required=True, metavar="suite")
    for found in pkgutil.iter_modules(suites.__path__):
        suite = importlib.import_module(f"{suites.__name__}.{found.name}")
        command = commands.add_parser(
            found.name,
            help=suite.HELP,
            description=suite.__doc__,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        suite.add_arguments(command)
        command.set_defaults(run=suite.run)
    return parser


def main() -> None:
    """Run one suite and write its results."""
    options = make_parser().parse_args()
    with threadpool_limits(getattr(options, "threads", None)):
        results = options.run(options)
    for result in results:
        write(result, options.output)
    sys.exit(max((result.exit_code for result in results), default=0))


if __name__ == "__main__":
    main()
