"""``taxolearn train``: from a data file to a model file."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import taxolearn
from taxolearn import KernelLogisticClassifier, Taxonomy
from taxolearn.cli.errors import BAD_DATA, USAGE, CommandError, writing
from taxolearn.cli.inputs import TABLES, Batch, DataFile, Schema, read_whole, reading
from taxolearn.cli.output import Page, check_output, figure, size_text
from taxolearn.features.tables import TableFeatures

__all__ = ["TrainOptions", "run"]

_WORK = 4_000_000  # rows times classes that hyperparameters are learned on
_LEAST_ROWS = 2_000
_LONG = 1_000_000  # rows times classes from which on an evaluation takes long
_FOLDS, _FEW_FOLDS = 5, 3
_EVALUATIONS, _FEW_EVALUATIONS = 100, 10


@dataclass(frozen=True)
class TrainOptions:
    """Arguments of the command."""

    data: DataFile
    output: str
    text: list[str]
    numeric: list[str]
    label: list[str]
    taxonomy: str | None
    taxonomy_format: str | None
    separator: str
    flat: bool
    kernel: str
    words: tuple[int, int] | None
    characters: tuple[int, int] | str | None
    max_features: int | None
    variance: float | None
    tol: float
    samples: int | None
    folds: int | None
    evaluations: int | None
    time_limit: float | None
    checkpoint: str | None
    dtype: str
    threads: int | None
    seed: int
    json: bool


def run(options: TrainOptions) -> None:
    """Read, learn, fit, save, and say how it went."""
    begin = time.perf_counter()
    page = Page(options.json)
    check_output(options.output, options.data.path, options.taxonomy or "")
    schema = _schema(options, options.data.kind)
    with page.stage(f"Reading {options.data.path}"):
        batch = read_whole(options.data, schema)
        labels = batch.labels
        taxonomy = _taxonomy(options, batch)
    steps: list[tuple[str, Any]] = []
    X = batch.X
    if schema.is_table:
        features = TableFeatures(
            schema.text or None,
            schema.numeric or None,
            words=options.words,
            characters=options.characters,
            max_features=options.max_features,
            n_threads=options.threads,
        )
        with page.stage("Computing features"), reading(options.data.path, batch.lines):
            X = features.fit_transform(X)
        steps.append(("features", features))
    else:
        schema = Schema([], [], [], schema.separator, int(X.shape[1]))
    classifier = _classifier(options, taxonomy, len(labels), len(np.unique(labels)))
    learning = time.perf_counter()
    remarks = _fit(classifier, X, labels, options)
    done = time.perf_counter()
    model = Pipeline([*steps, ("classifier", classifier)])
    figures = _figures(classifier, X, labels, learning - begin, done - learning)
    report = {
        "input": schema.to_json(),
        "training": {"data": Path(options.data.path).name, **figures, "remarks": remarks},
    }
    with writing(options.output):
        taxolearn.save(model, options.output, dtype=options.dtype, report=report)
    figures["size_bytes"] = Path(options.output).stat().st_size
    page.result(
        {"model": options.output, **figures, "remarks": remarks},
        title=f"Model written to {options.output}",
        rows=[
            ("training rows", figure(figures["rows"])),
            ("features", figure(figures["features"])),
            ("classes", figure(figures["classes"])),
            ("nodes of the tree", figure(figures["nodes"])),
            ("log loss, cross-validated", figure(figures["cv_log_loss"])),
            ("hyperparameters", str(figures["parameters"])),
            ("certified relative gap", f"{figures['relative_gap']:.1e}"),
            ("reading and features", f"{figures['reading_seconds']:.1f} s"),
            ("learning and fit", f"{figures['fit_seconds']:.1f} s"),
            ("size of the file", size_text(figures["size_bytes"])),
        ],
        remarks=remarks,
    )


def _schema(options: TrainOptions, kind: str) -> Schema:
    if kind in TABLES:
        if not options.label:
            raise CommandError("--label is needed: the column with the class, or one for each level", USAGE)
        if not options.text and not options.numeric:
            raise CommandError("give columns to learn from: --text COLUMN or --numeric COLUMN", USAGE)
        both = sorted({*options.text, *options.numeric} & set(options.label))
        if both:
            raise CommandError(f"the column {both[0]!r} is both a label and an input", USAGE)
        return Schema(options.text, options.numeric, options.label, options.separator, None)
    if options.text or options.numeric or options.label:
        raise CommandError(f"--text, --numeric and --label are for tables; {kind} files say themselves", USAGE)
    return Schema([], [], [], options.separator, 0)


def _taxonomy(options: TrainOptions, batch: Batch) -> Taxonomy | None:
    """The tree: from a file, from paths, or none."""
    labels = batch.labels
    if options.flat:
        return None
    if options.taxonomy is not None:
        with reading(options.taxonomy):
            taxonomy = Taxonomy.from_file(options.taxonomy, format=options.taxonomy_format)
        with reading(options.data.path):
            known = set(taxonomy.names.tolist())
            for line, label in zip(batch.lines, labels.tolist(), strict=True):
                if label not in known:
                    raise CommandError(
                        f"{options.data.path}, line {line}: the label {label!r} is not in {options.taxonomy}", BAD_DATA
                    )
        return taxonomy
    is_path = len(options.label) > 1 or _look_like_paths(labels, options.separator)
    if not is_path:
        return None
    with reading(options.data.path):
        return Taxonomy.from_labels(labels, separator=options.separator)


def _look_like_paths(labels: Any, separator: str) -> bool:
    """Whether at least half of the classes are paths, and some have an ancestor in common."""
    if labels.dtype.kind != "U":
        return False
    classes = np.unique(labels).tolist()
    tops = [top for top, found, _ in (label.partition(separator) for label in classes) if top and found]
    return len(tops) * 2 >= len(classes) and len(set(tops)) < len(tops)


def _classifier(
    options: TrainOptions, taxonomy: Taxonomy | None, n_rows: int, n_classes: int
) -> KernelLogisticClassifier:
    samples = options.samples
    if samples is None:
        most = max(_WORK // max(n_classes, 1), _LEAST_ROWS)
        samples = most if most < n_rows else None
    is_long = min(samples or n_rows, n_rows) * n_classes >= _LONG
    kernel: Any = options.kernel
    if options.variance is not None:
        kernel = options.variance * taxolearn.kernels.as_kernel(options.kernel)
    return KernelLogisticClassifier(
        kernel,
        taxonomy=taxonomy,
        hyperparameters="cv" if options.variance is None else "fixed",
        cv=options.folds or (_FEW_FOLDS if is_long else _FOLDS),
        max_evaluations=options.evaluations or (_FEW_EVALUATIONS if is_long else _EVALUATIONS),
        cv_samples=samples,
        time_limit=options.time_limit,
        checkpoint=options.checkpoint,
        tol=options.tol,
        n_threads=options.threads,
        random_state=options.seed,
    )


def _fit(classifier: KernelLogisticClassifier, X: Any, labels: Any, options: TrainOptions) -> list[str]:
    """Fit; warnings become remarks."""
    with warnings.catch_warnings(record=True) as caught, reading(options.data.path):
        warnings.simplefilter("always", UserWarning)
        classifier.fit(X, labels)
    remarks = [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
    if classifier.em_result_ is not None:
        remarks.append(
            f"{classifier.em_result_.uncertain} rows have an inner node of the tree for a label: each is taken for "
            "one of the classes below it"
        )
    taxonomy = classifier.taxonomy_
    unknown = 0 if taxonomy is None else int(np.sum(np.asarray(labels) == taxonomy.names[0]))
    if unknown > 0:
        remarks.append(
            f"{unknown} rows have the root of the tree for a label, which tells nothing: they have no influence"
        )
    learned = classifier.cv_result_
    if learned is not None and learned.best is None:
        remarks.append("learning ended before its first evaluation, so hyperparameters have their start values")
    return remarks


def _parameters(learned: Any) -> str:
    if learned is None:
        return "fixed"
    return f"{'none' if learned.best is None else len(learned.names)} learned, {learned.status}"


def _figures(classifier: Any, X: Any, labels: Any, reading_seconds: float, fit_seconds: float) -> dict[str, Any]:
    learned, result, taxonomy = classifier.cv_result_, classifier.result_, classifier.taxonomy_
    best = None if learned is None or learned.best is None else learned.best
    return {
        "rows": len(labels),
        "features": int(X.shape[1]),
        "classes": len(classifier.classes_),
        "nodes": None if taxonomy is None else int(taxonomy.n_nodes),
        "cv_log_loss": None if best is None else float(learned.values[best]),
        "evaluations": 0 if learned is None else len(learned.evaluations),
        "parameters": _parameters(learned),
        "objective": result.objective,
        "relative_gap": result.relative_gap,
        "products": result.products,
        "reading_seconds": round(reading_seconds, 3),
        "fit_seconds": round(fit_seconds, 3),
    }
