"""Model files as the commands read them."""

from __future__ import annotations

import os
from typing import Any

import taxolearn
from taxolearn.cli.inputs import Schema
from taxolearn.cli.main import BAD_MODEL, SYSTEM, CommandError

__all__ = ["load_model", "read_model_report"]


def read_model_report(path: str) -> dict[str, Any]:
    """Read what the file says about itself."""
    try:
        return taxolearn.read_report(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise CommandError(str(error).removeprefix("load: "), BAD_MODEL) from None


def _unreadable(path: str, error: OSError) -> CommandError:
    reason = str(error) if error.errno is None else os.strerror(error.errno)
    return CommandError(f"{path}: cannot be read: {reason}", SYSTEM)


def load_model(path: str, threads: int | None) -> tuple[Any, Schema]:
    """Load a model, and the schema of the files it was trained on."""
    report = read_model_report(path)
    schema = Schema.from_report(report, path)
    try:
        model = taxolearn.load(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise CommandError(str(error).removeprefix("load: "), BAD_MODEL) from None
    if threads is not None:
        for _, step in model.steps:
            if "n_threads" in step.get_params(deep=False):
                step.set_params(n_threads=threads)
    return model, schema
