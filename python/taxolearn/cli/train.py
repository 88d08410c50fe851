"""``taxolearn train``: from a data file to a model file."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import taxolearn
from taxolearn import CrossValidation, KernelLogisticClassifier, Taxonomy
from taxolearn.cli.inputs import TABLES, Batch, DataFile, Schema, read_whole, reading
from taxolearn.cli.main import (
    BAD_DATA,
    USAGE,
    Command,
    CommandError,
    Page,
    above_zero,
    check_output,
    figure,
    json_option,
    lengths,
    option,
    options_of,
    output_option,
    positive,
    seed_option,
    size_text,
    threads_option,
    whole_number,
    writing,
)
from taxolearn.features.tables import TableFeatures
from taxolearn.files.models import DTYPES
from taxolearn.kernels.argument import kernel_names, start_kernel
from taxolearn.taxonomy.files import FORMATS as TAXONOMY_FORMATS

__all__ = ["COMMAND", "TrainOptions", "run"]

_WORK = 4_000_000  # rows times classes that hyperparameters are learned on
_LEAST_ROWS = 2_000
_LONG = 1_000_000  # rows times classes from which on an evaluation takes long
_USUAL = CrossValidation()
_FEW_FOLDS, _FEW_EVALUATIONS = 3, 10  # where each takes long
_FEATURES = TableFeatures()

_COLUMNS = "columns of a table"
_TREE = "tree of classes"
_TEXTS = "features of texts"
_MODEL = "model"
_LEARNING = "learning of hyperparameters, by cross-validation"


def _characters(text: str) -> tuple[int, int] | str | None:
    """Two lengths as in ``lengths``, or "auto"."""
    return text if text == "auto" else lengths(text)


@dataclass(frozen=True)
class TrainOptions:
    """Arguments of the command."""

    data: DataFile = options_of(DataFile)
    output: str = output_option("MODEL", "model file to write")
    text: list[str] = option(
        "--text", action="append", default=[], metavar="COLUMN", group=_COLUMNS, help="column of texts; may be repeated"
    )
    numeric: list[str] = option(
        "--numeric",
        action="append",
        default=[],
        metavar="COLUMN",
        group=_COLUMNS,
        help="column of numbers; may be repeated",
    )
    label: list[str] = option(
        "--label",
        action="append",
        default=[],
        metavar="COLUMN",
        group=_COLUMNS,
        help="column of the classes; repeated, those of the levels of a path, from the top down",
    )
    taxonomy: str | None = option(
        "--taxonomy", metavar="FILE", group=_TREE, help="file with the tree (default: made of labels such as A/B/C)"
    )
    taxonomy_format: str | None = option(
        "--taxonomy-format", choices=tuple(TAXONOMY_FORMATS), group=_TREE, help="format of that file (default: guessed)"
    )
    separator: str = option(
        "--separator",
        default="/",
        metavar="S",
        group=_TREE,
        help="text between levels of a path (default: %(default)s)",
    )
    flat: bool = option("--flat", action="store_true", group=_TREE, help="use no tree, whatever the labels look like")
    words: tuple[int, int] | None = option(
        "--words",
        type=lengths,
        default=_FEATURES.words,
        metavar="A-B",
        group=_TEXTS,
        help="count sequences of A to B words; none for no words (default: 1-2)",
    )
    characters: tuple[int, int] | str | None = option(
        "--characters",
        type=_characters,
        default=_FEATURES.characters,
        metavar="A-B",
        group=_TEXTS,
        help="count sequences of A to B characters within words; none for none (default: 3-5 if texts are short, else "
        "none)",
    )
    max_features: int | None = option(
        "--max-features",
        type=positive,
        metavar="N",
        group=_TEXTS,
        help="keep the N most frequent sequences of words, and of characters (default: all)",
    )
    kernel: str = option(
        "--kernel",
        default=kernel_names()[0],
        choices=kernel_names(),
        group=_MODEL,
        help="how rows are compared; linear is right for texts (default: %(default)s)",
    )
    variance: float | None = option(
        "--variance",
        type=above_zero,
        metavar="V",
        group=_MODEL,
        help="learn no hyperparameters: give the kernel this variance, and take its other parameters from the data",
    )
    tol: float = option(
        "--tol",
        type=above_zero,
        default=1e-5,
        metavar="G",
        group=_MODEL,
        help="certified relative gap at which the fit stops (default: %(default)s)",
    )
    dtype: str = option(
        "--dtype",
        default=next(iter(DTYPES)),
        choices=tuple(DTYPES),
        group=_MODEL,
        help="precision of the weights in the model file (default: %(default)s)",
    )
    samples: int | None = option(
        "--samples",
        type=positive,
        metavar="N",
        group=_LEARNING,
        help="number of rows to learn from (default: all, or as many as take minutes)",
    )
    folds: int | None = option(
        "--folds",
        type=whole_number(2),
        metavar="Q",
        group=_LEARNING,
        help=f"number of folds (default: {_USUAL.folds}, or {_FEW_FOLDS} where that would take long)",
    )
    evaluations: int | None = option(
        "--evaluations",
        type=positive,
        metavar="N",
        group=_LEARNING,
        help="most evaluations of the cross-validated log loss "
        f"(default: {_USUAL.max_evaluations}, or {_FEW_EVALUATIONS} where each takes long)",
    )
    time_limit: float | None = option(
        "--time-limit", type=above_zero, metavar="S", group=_LEARNING, help="stop learning after S seconds"
    )
    checkpoint: str | None = option(
        "--checkpoint", metavar="FILE", group=_LEARNING, help="keep the state of learning here, to continue if killed"
    )
    seed: int = seed_option("seed of folds and samples")
    threads: int | None = threads_option()
    json: bool = json_option()


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
    classifier = _classifier(options, taxonomy, X, len(np.unique(labels)))
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
    """Make the tree from a file or from paths; None if there is none."""
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


def _classifier(options: TrainOptions, taxonomy: Taxonomy | None, X: Any, n_classes: int) -> KernelLogisticClassifier:
    n_rows = X.shape[0]
    samples = options.samples
    if samples is None:
        most = max(_WORK // max(n_classes, 1), _LEAST_ROWS)
        samples = most if most < n_rows else None
    is_long = min(samples or n_rows, n_rows) * n_classes >= _LONG
    kernel: Any = options.kernel
    if options.variance is not None:
        with reading(options.data.path):
            kernel = replace(start_kernel(options.kernel, X), variance=options.variance)  # type: ignore[type-var]
    tuning = CrossValidation(
        options.folds or (_FEW_FOLDS if is_long else _USUAL.folds),
        subset=samples,
        max_evaluations=options.evaluations or (_FEW_EVALUATIONS if is_long else _USUAL.max_evaluations),
        time_limit=options.time_limit,
        checkpoint=options.checkpoint,
    )
    return KernelLogisticClassifier(
        kernel,
        taxonomy=taxonomy,
        tuning=tuning if options.variance is None else None,
        tol=options.tol,
        n_threads=options.threads,
        random_state=options.seed,
    )


def _fit(classifier: KernelLogisticClassifier, X: Any, labels: Any, options: TrainOptions) -> list[str]:
    """Fit, and return warnings as remarks."""
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
            f"{unknown} rows have the root of the tree for a label, which says nothing: they have no influence"
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


COMMAND = Command(
    TrainOptions,
    run,
    "Learn from a table (CSV, TSV, JSON lines, Parquet) or a matrix (svmlight, LSHTC, ARFF, npz), and write a model "
    "file. All hyperparameters are learned by cross-validation, unless --variance is given.",
    example="taxolearn train goods.csv --text title --text body --label category -o goods.taxo",
)
