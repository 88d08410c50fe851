"""``taxolearn inspect``: what is in a model file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taxolearn.cli.main import Command, Page, figure, json_option, model_argument, size_text
from taxolearn.cli.models import read_model_report

__all__ = ["COMMAND", "InspectOptions", "run"]

_SHOWN = ("remarks", "classes", "features")  # of the training: nowhere, or from elsewhere


@dataclass(frozen=True)
class InspectOptions:
    """Arguments of the command."""

    model: str = model_argument()
    json: bool = json_option()


def run(options: InspectOptions) -> None:
    """Print what the file says about itself; the weights are not read."""
    report = read_model_report(options.model)
    training = (report["report"] or {}).get("training", {}) if isinstance(report["report"], dict) else {}
    schema = (report["report"] or {}).get("input", {}) if isinstance(report["report"], dict) else {}
    pruning = (report["report"] or {}).get("pruning") if isinstance(report["report"], dict) else None
    hyperparameters = {name: _plain(value) for name, value in report["hyperparameters"].items()}
    rows = [
        ("written by", str(report["written_by"])),
        ("format version", str(report["version"])),
        ("size", size_text(report["size"])),
        ("classes", figure(report["classes"])),
        ("features", figure(report["features"])),
        ("functions", report["functions"]),
        ("steps", ", ".join(report["steps"]) or "-"),
        *(
            (f"columns, {name}", ", ".join(schema.get(name, [])))
            for name in ("text", "numeric", "label")
            if schema.get(name)
        ),
        *((name.replace("_", " "), _shown(value)) for name, value in training.items() if name not in _SHOWN),
        *((name, _shown(value)) for name, value in hyperparameters.items()),
        *([("weights left out", _cost(pruning))] if isinstance(pruning, dict) else []),
    ]
    figures = report | {"model": options.model, "hyperparameters": hyperparameters}
    Page(options.json).result(figures, title=options.model, rows=rows)


def _cost(pruning: dict[str, Any]) -> str:
    """Say what pruning did to the scores."""
    before, after = pruning.get("before", {}), pruning.get("after", {})
    scores = [f"{name.replace('_', ' ')}: {_shown(before[name])}, now {_shown(after.get(name))}" for name in before]
    return "\n".join([f"{_shown(pruning.get('share'))} of them, judged on {pruning.get('data')}", *scores])


def _plain(value: Any) -> Any:
    """Turn a value into one that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        parts = [f"{key}: {_shown(each)}" for key, each in list(value.items())[:8]]
        return "\n".join([*parts, "..."] if len(value) > 8 else parts)
    return figure(value) if value is None or isinstance(value, (int, float)) else str(value)


COMMAND = Command(InspectOptions, run, "Say what is in a model file.")
