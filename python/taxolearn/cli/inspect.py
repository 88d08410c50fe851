"""``taxolearn inspect``: what is in a model file, and whether it is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taxolearn.cli.main import Command, Page, figure, json_option, model_argument, option, size_text
from taxolearn.cli.models import check_model, read_model_report, training_of

__all__ = ["COMMAND", "InspectOptions", "run"]

_SHOWN = ("remarks", "classes", "features", "hold_out")  # of the training: nowhere, or from elsewhere
_NAMES = {
    "data": "trained on",
    "rows": "training rows",
    "cv_log_loss": "log loss, cross-validated",
    "shares": "share of each kind of features",
}


@dataclass(frozen=True)
class InspectOptions:
    """Arguments of the command."""

    model: str = model_argument()
    check: bool = option("--check", action="store_true", help="read the whole file and compare its checksums")
    json: bool = json_option()


def run(options: InspectOptions) -> None:
    """Print what the file says about itself; the weights are read only to be checked."""
    if options.check:
        check_model(options.model)
    report = read_model_report(options.model)
    stored = report["report"] if isinstance(report["report"], dict) else {}
    training, schema, pruning = training_of(report), stored.get("input", {}), stored.get("pruning")
    held_out = training.get("hold_out")
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
            for name in ("text", "sequences", "numeric", "dates", "categorical", "embed", "label")
            if schema.get(name)
        ),
        *((_name(name, value), _shown(value)) for name, value in training.items() if name not in _SHOWN),
        *([("held-out rows", _held_out(held_out))] if isinstance(held_out, dict) else []),
        *((f"expert {row['name']}", _expert(row)) for row in report.get("experts", [])),
        *(
            (_name(name, value), _shown(value))
            for name, value in hyperparameters.items()
            if not (name == "weights" and "experts" in report)
        ),
        *([("weights left out", _cost(pruning))] if isinstance(pruning, dict) else []),
        *([("checksums", "right")] if options.check else []),
    ]
    figures = report | {"model": options.model, "hyperparameters": hyperparameters}
    if options.check:
        figures["checksums"] = "right"
    Page(options.json).result(figures, title=options.model, rows=rows)


def _name(name: str, value: Any) -> str:
    """What a figure is called for people; lists have one value for each level of the tree."""
    shown = _NAMES.get(name, name.replace("_", " "))
    return f"{shown}, from the root down" if isinstance(value, list) else shown


def _held_out(scores: dict[str, Any]) -> str:
    """What the model scored on rows that were set aside in training, and what a model without inputs would."""
    lines = [_shown(scores.get("rows"))]
    for name, baseline, what in (
        ("accuracy", "baseline_accuracy", "most frequent class"),
        ("micro_f1", "", ""),
        ("macro_f1", "", ""),
        ("precision_at_1", "baseline_precision_at_1", "most frequent label"),
        ("log_loss", "baseline_log_loss", "class frequencies"),
    ):
        if scores.get(name) is not None:
            other = f" ({what}: {_score(baseline, scores[baseline])})" if scores.get(baseline) is not None else ""
            lines.append(f"{name.replace('_', ' ').replace('f1', 'F1')} {_score(name, scores[name])}{other}")
    return "\n".join(lines)


def _score(name: str, value: float) -> str:
    return figure(value) if name.endswith("log_loss") else f"{value:.2%}"


def _expert(row: dict[str, Any]) -> str:
    """The cross-validated scores of an expert, and its weight in the pool."""
    weight = f"weight {row['weight']:.3f}" if row["weight"] else "not used"
    if row["log_loss"] is None:
        return weight
    return f"{weight}, log loss {figure(row['log_loss'])}, accuracy {row['accuracy']:.2%}"


def _cost(pruning: dict[str, Any]) -> str:
    """Say what pruning did to the scores."""
    before, after = pruning.get("before", {}), pruning.get("after", {})
    scores = [f"{name.replace('_', ' ')}: {_shown(before[name])}, now {_shown(after.get(name))}" for name in before]
    return "\n".join([f"{_shown(pruning.get('share'))} of them, judged on {pruning.get('data')}", *scores])


def _plain(value: Any) -> Any:
    """Turn a value into one that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        parts = [f"{key}: {_shown(each)}" for key, each in list(value.items())[:8]]
        return "\n".join([*parts, "..."] if len(value) > 8 else parts)
    if isinstance(value, list):
        return ", ".join(_shown(each) for each in value)
    return figure(value) if value is None or isinstance(value, (int, float)) else str(value)


COMMAND = Command(InspectOptions, run, "Say what is in a model file, and with --check whether it is damaged.")
