"""The command line, one module per command."""

from taxolearn.cli.main import main

__all__ = ["main"]
