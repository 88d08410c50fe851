"""Model files as the commands read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import taxolearn
from taxolearn.cli.inputs import Schema
from taxolearn.cli.main import BAD_MODEL, SYSTEM, CommandError

__all__ = [
    "check_model",
    "load_model",
    "read_model_report",
    "training_of",
    "training_remarks",
    "unknown_remarks",
]


def read_model_report(path: str) -> dict[str, Any]:
    """Read what the file says about itself."""
    try:
        return taxolearn.read_report(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise CommandError(str(error).removeprefix("load: "), BAD_MODEL) from None


def training_of(report: dict[str, Any]) -> dict[str, Any]:
    """What ``train`` stored about the training; empty if there is nothing."""
    stored = report["report"]
    training = stored.get("training") if isinstance(stored, dict) else None
    return training if isinstance(training, dict) else {}


def training_remarks(report: dict[str, Any], path: str, rows: int) -> list[str]:
    """Say so if a file seems to be the one of the training: it has the same name and the same number of rows."""
    training = training_of(report)
    if Path(path).name != training.get("data") or rows != training.get("rows_read", training.get("rows")):
        return []
    return ["these are the rows the model was trained on; scores on them are too good"]


def unknown_remarks(scores: dict[str, Any], consequence: str) -> list[str]:
    """Say how many rows have labels that are no classes of the model, and name one of them."""
    unknown = scores["rows_of_unknown_classes"]
    if not unknown:
        return []
    if unknown == 1:
        found = "1 row has a class that the model does not know, or an inner node for a label"
    else:
        found = f"{unknown} rows have classes that the model does not know, or inner nodes for labels"
    return [f"{found}, such as {scores['unknown_class']!r}; {consequence}"]


def _unreadable(path: str, error: OSError) -> CommandError:
    reason = str(error) if error.errno is None else os.strerror(error.errno)
    return CommandError(f"{path}: cannot be read: {reason}", SYSTEM)


def check_model(path: str) -> Any:
    """Load a model, whoever wrote it, and compare the checksums of its file."""
    try:
        return taxolearn.load(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise CommandError(str(error).removeprefix("load: "), BAD_MODEL) from None


def load_model(path: str, threads: int | None) -> tuple[Any, Schema]:
    """Load a model, and the schema of the files it was trained on."""
    report = read_model_report(path)
    schema = Schema.from_report(report, path)
    model = check_model(path)
    if threads is not None:
        classifier = model.steps[-1][1]
        for step in [*(step for _, step in model.steps), *getattr(classifier, "experts_", {}).values()]:
            if "n_threads" in step.get_params(deep=False):
                step.set_params(n_threads=threads)
    return model, schema
