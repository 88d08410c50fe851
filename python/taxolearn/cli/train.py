"""``taxolearn train``: from a data file to a model file."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

import taxolearn
from taxolearn.cli.classifiers import (
    USES_INNER_LABELS,
    ModelOptions,
    chosen_model,
    fit,
    fit_again,
    make_classifier,
)
from taxolearn.cli.inputs import TABLES, Batch, DataFile, Schema, read_whole, reading
from taxolearn.cli.labels import LEVELS, LabelOptions, Labels, read_labels
from taxolearn.cli.main import (
    USAGE,
    Command,
    CommandError,
    Page,
    check_output,
    column_option,
    figure,
    json_option,
    lengths,
    option,
    options_of,
    output_option,
    positive,
    size_text,
    writing,
)
from taxolearn.features.tables import TableFeatures
from taxolearn.files.models import DTYPES
from taxolearn.readers.tables import CHUNK_ROWS
from taxolearn.report.scores import RunningScores

__all__ = ["COMMAND", "TrainOptions", "held_out_rows", "run"]

_FEATURES = TableFeatures()
_HELD_OUT = 0.1  # share of the rows
_FEW = 100  # rows, below which none are held out unasked
_SCORES = (  # of rows held out that are stored with the model
    "rows",
    "accuracy",
    "accuracy_interval",
    "baseline_accuracy",
    "log_loss",
    "log_loss_interval",
    "baseline_log_loss",
)

_TEXTS = "features of texts"


def _lengths_or_auto(text: str) -> tuple[int, int] | str | None:
    """Two lengths as in ``lengths``, or "auto"."""
    return text if text == "auto" else lengths(text)


def _share(text: str) -> float:
    """A number from 0 to below 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a share such as 0.1, from 0 to below 1, got {text}")
    return value


@dataclass(frozen=True)
class TrainOptions:
    """Arguments of the command."""

    data: DataFile = options_of(DataFile)
    output: str = output_option("MODEL", "model file to write")
    text: list[str] = column_option("--text", "column of texts; may be repeated")
    numeric: list[str] = column_option("--numeric", "column of numbers; may be repeated")
    categorical: list[str] = column_option("--categorical", "column of values such as countries; may be repeated")
    label: list[str] = column_option(
        "--label", "column of the classes; repeated, those of the levels of a path, from the top down"
    )
    tree: LabelOptions = options_of(LabelOptions)
    words: tuple[int, int] | str | None = option(
        "--words",
        type=_lengths_or_auto,
        default=_FEATURES.words,
        metavar="A-B",
        group=_TEXTS,
        help="count sequences of A to B words; none for no words (default: 1-2 if texts are short, else 1-1)",
    )
    characters: tuple[int, int] | str | None = option(
        "--characters",
        type=_lengths_or_auto,
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
    classifier: ModelOptions = options_of(ModelOptions)
    hold_out: float | None = option(
        "--hold-out",
        type=_share,
        metavar="SHARE",
        help="share of the rows to score the model on, before it is fitted to all of them; 0 for none "
        f"(default: {_HELD_OUT}, or 0 with fewer than {_FEW} rows)",
    )
    dtype: str = option(
        "--dtype",
        default=next(iter(DTYPES)),
        choices=tuple(DTYPES),
        help="precision of the weights in the model file (default: %(default)s)",
    )
    json: bool = json_option()


def run(options: TrainOptions) -> None:
    """Read, learn, score, fit, save, and say how it went."""
    begin = time.perf_counter()
    page = Page(options.json)
    path = options.data.path
    check_output(options.output, path, options.tree.taxonomy or "")
    model = chosen_model(options.classifier)
    schema = _schema(options, options.data.kind, model)
    with page.stage(f"Reading {path}"):
        everything = read_whole(options.data, schema, allow_unlabelled=True)
        labels = read_labels(options.tree, everything, path, len(options.label))
    if model == "top-down" and labels.taxonomy is None:
        raise CommandError(
            f"--model top-down needs a tree, and the labels of {path} are no paths; give --taxonomy FILE, --separator "
            "S, a --label for each level, or choose another --model",
            USAGE,
        )
    remarks = list(labels.notes)
    used, about_rows = _used_rows(labels, model)
    remarks += about_rows
    batch = replace(everything, labels=labels.names).take(used)
    remarks += _empty_texts(batch, options.text)
    _check_cells(batch, schema, path)
    schema = replace(schema, separator=labels.separator, n_features=None if schema.is_table else batch.X.shape[1])
    split, about_split = _split(options, batch, labels.leaves_below[used] == 1)
    remarks += about_split
    training = _Training(options, model, labels, schema, page)
    held_out = None
    if split is None:
        fitted = training.first(batch)
    else:
        held_out = training.scores(batch.take(np.flatnonzero(~split)), batch.take(np.flatnonzero(split)))
        fitted = training.again(batch)
    # Of remarks that differ in figures only, those of the last fit count.
    remarks = list({remark.partition(" (")[0]: remark for remark in [*remarks, *training.remarks]}.values())
    figures = {
        "classifier": model,
        "rows": len(batch),
        "rows_read": len(everything),
        **_figures(fitted[-1], training.n_features),
        "hold_out": held_out,
        "reading_seconds": round(training.feature_seconds + training.begin - begin, 3),
        "fit_seconds": round(training.fit_seconds, 3),
    }
    known = {name: value for name, value in figures.items() if value is not None and name != "experts"}  # it has them
    report = {"input": schema.to_json(), "training": {"data": Path(path).name, **known, "remarks": remarks}}
    with writing(options.output):
        taxolearn.save(fitted, options.output, dtype=options.dtype, report=report)
    figures["size_bytes"] = Path(options.output).stat().st_size
    page.result(
        {"model": options.output, **figures, "remarks": remarks},
        title=f"Model written to {options.output}",
        rows=_rows(figures),
        remarks=remarks,
    )


def _schema(options: TrainOptions, kind: str, model: str) -> Schema:
    inputs = [*options.text, *options.numeric, *options.categorical]
    if kind not in TABLES:
        if inputs or options.label:
            raise CommandError(
                f"--text, --numeric, --categorical and --label are for tables; {kind} files say themselves", USAGE
            )
        return Schema([], [], [], [], None, 0)
    if not options.label:
        raise CommandError("--label is needed: the column with the class, or one for each level", USAGE)
    if not inputs:
        raise CommandError("give columns to learn from: --text, --numeric or --categorical COLUMN", USAGE)
    both = sorted(set(inputs) & set(options.label))
    if both:
        raise CommandError(f"the column {both[0]!r} is both a label and an input", USAGE)
    if model == "naive-bayes" and options.numeric:
        raise CommandError(
            "--model naive-bayes counts words, so it takes no --numeric columns; choose another --model", USAGE
        )
    text, numeric, categorical = (
        list(dict.fromkeys(each)) for each in (options.text, options.numeric, options.categorical)
    )
    return Schema(text, numeric, categorical, options.label, LEVELS if len(options.label) > 1 else None, None)


def _used_rows(labels: Labels, model: str) -> tuple[NDArray[np.intp], list[str]]:
    """The rows that the model learns from, and notes on the others."""
    below, notes = labels.leaves_below, []
    unknown = 0
    if labels.taxonomy is not None:
        unknown = int(((below == labels.taxonomy.n_classes) & (below > 1)).sum())
    inner = int((below > 1).sum()) - unknown
    uses_inner = model in USES_INNER_LABELS
    if inner:
        what = (
            "each is taken for one of the classes below it (--inner-labels own makes them classes)"
            if uses_inner
            else f"--model {model} leaves them out ({' and '.join(USES_INNER_LABELS)} take each for one of the classes "
            "below it, --inner-labels own makes them classes)"
        )
        notes.append(f"{inner:,} rows end at an inner node of the tree: {what}")
    if unknown:
        notes.append(
            f"{unknown:,} rows have the root of the tree for a label, which says nothing: they have no influence"
        )
    is_used = (below > 0) if uses_inner else below == 1
    if not is_used.any():
        raise CommandError("no row has a class for a label, so there is nothing to learn from; see --inner-labels")
    return np.flatnonzero(is_used), notes


def _empty_texts(batch: Batch, text: list[str]) -> list[str]:
    if not text:
        return []
    columns = [batch.X[name] for name in text]
    empty = sum(all(value is None or not str(value).strip() for value in row) for row in zip(*columns, strict=True))
    return [f"{empty:,} of {len(batch):,} rows have no text"] if empty else []


def _check_cells(batch: Batch, schema: Schema, path: str) -> None:
    """Find what cannot be read before learning begins, also in rows that are held out."""
    if schema.numeric or schema.categorical:
        with reading(path, batch.lines):
            TableFeatures(None, schema.numeric or None, schema.categorical or None, min_df=1).fit(batch.X)


# -- Rows held out ----------------------------------------------------------------------------------------------------


def _split(
    options: TrainOptions, batch: Batch, is_certain: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_] | None, list[str]]:
    """Which rows are held out, None for none, and a note if that is not what the user expects."""
    share = options.hold_out
    if share is None:
        if len(batch) < _FEW:
            why = f"no rows were held out to score the model, since there are fewer than {_FEW}"
            return None, [f"{why}; evaluate it on other rows, or give --hold-out 0.2"]
        share = _HELD_OUT
    if share == 0:
        return None, []
    out = held_out_rows(batch.labels, share, options.classifier.seed, is_certain)
    if not out.any():
        return None, ["no rows were held out to score the model, since no class has rows to spare"]
    return out, []


def held_out_rows(
    labels: NDArray[Any], share: float, seed: int, is_certain: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Choose rows at random, from every class about the same share, but never all of its rows.

    Parameters
    ----------
    labels : ndarray
        Of all rows.
    share : float
        Below 1.
    seed : int
        The same rows for the same seed.
    is_certain : ndarray of bool, optional
        Rows with one class, which alone are held out; by default all.
    """
    random = np.random.default_rng(seed)
    numbers = np.unique(labels, return_inverse=True)[1].ravel()
    counts = np.bincount(numbers)
    may = counts[numbers] > 1
    if is_certain is not None:
        may &= is_certain
    order = random.permutation(np.flatnonzero(may))
    order = order[np.argsort(random.permutation(len(counts))[numbers[order]], kind="stable")]
    # Every so-manieth row in the order of classes: their shares differ by less than a row.
    passed = np.floor(np.arange(len(order) + 1) * share + random.random())
    out = np.zeros(len(labels), dtype=bool)
    out[order[np.diff(passed) > 0]] = True
    for number in np.flatnonzero(np.bincount(numbers[out], minlength=len(counts)) == counts):
        out[np.flatnonzero(out & (numbers == number))[:1]] = False
    return out


class _Training:
    """Fits features and classifier, and keeps count of time and of what is to be said."""

    def __init__(self, options: TrainOptions, model: str, labels: Labels, schema: Schema, page: Page) -> None:
        self._options, self._model, self._labels, self._schema, self._page = options, model, labels, schema, page
        self._features: TableFeatures | None = None
        self._classifier: Any = None
        self.begin = time.perf_counter()
        self.feature_seconds = self.fit_seconds = 0.0
        self.n_features = 0
        self.remarks: list[str] = []

    def first(self, batch: Batch) -> Pipeline:
        """Learn all that there is to learn."""
        self._learn(self._transformed(batch), batch, f"Learning from {len(batch):,} rows")
        return self._pipeline()

    def scores(self, batch: Batch, held_out: Batch) -> dict[str, Any]:
        """Learn from some rows, and say how good the model is on others."""
        X = self._transformed(batch)
        with reading(self._options.data.path, held_out.lines):
            X_held_out = held_out.X if self._features is None else self._features.transform(held_out.X)
        self._learn(X, batch, f"Learning from {len(batch):,} rows, {len(held_out):,} are held out")
        running = RunningScores(self._classifier)
        with self._page.stage(f"Scoring {len(held_out):,} rows"), reading(self._options.data.path):
            for first in range(0, len(held_out), CHUNK_ROWS):
                rows = slice(first, first + CHUNK_ROWS)
                running.add(held_out.labels[rows], self._classifier.predict_log_proba(X_held_out[rows]))
        summary = running.summary()
        return {name: summary[name] for name in _SCORES}

    def again(self, batch: Batch) -> Pipeline:
        """Fit to all rows, with what was learned. Only the vocabulary of texts is made anew."""
        if self._features is None or self._schema.text:
            X = self._transformed(batch)
        else:
            X = self._features.transform(batch.X)
        self._page.say(f"Fitting the model to all {len(batch):,} rows")
        begin = time.perf_counter()
        self._classifier, remarks = fit_again(self._classifier, X, batch.labels, self._options.data.path)
        self.remarks += remarks
        self.fit_seconds += time.perf_counter() - begin
        return self._pipeline()

    def _learn(self, X: Any, batch: Batch, what: str) -> None:
        options, path, labels = self._options.classifier, self._options.data.path, self._labels
        self._page.say(what)
        begin = time.perf_counter()
        with reading(path):
            self._classifier = make_classifier(options, self._model, labels.taxonomy, X, labels.n_classes)
        self.remarks += fit(self._classifier, X, batch.labels, path)
        self.fit_seconds += time.perf_counter() - begin

    def _transformed(self, batch: Batch) -> Any:
        options, schema = self._options, self._schema
        begin = time.perf_counter()
        X = batch.X
        if schema.is_table:
            self._features = TableFeatures(
                schema.text or None,
                schema.numeric or None,
                schema.categorical or None,
                words=options.words,
                characters=options.characters,
                max_features=options.max_features,
                n_threads=options.classifier.threads,
            )
            with self._page.stage("Computing features"), reading(options.data.path, batch.lines):
                X = self._features.fit_transform(X)
        self.n_features = int(X.shape[1])
        self.feature_seconds += time.perf_counter() - begin
        return X

    def _pipeline(self) -> Pipeline:
        steps: list[tuple[str, Any]] = [] if self._features is None else [("features", self._features)]
        return Pipeline([*steps, ("classifier", self._classifier)])


# -- What is said about it --------------------------------------------------------------------------------------------


def _figures(classifier: Any, n_features: int) -> dict[str, Any]:
    taxonomy = classifier.taxonomy_
    learned, result = getattr(classifier, "cv_result_", None), getattr(classifier, "result_", None)
    best = None if learned is None else learned.best
    cv_log_loss = None if learned is None or best is None else float(learned.values[best])
    table = getattr(classifier, "table_", None)
    if table is not None and np.isfinite(classifier.cv_log_loss_):
        cv_log_loss = float(classifier.cv_log_loss_)
    return {
        "features": n_features,
        "classes": len(classifier.classes_),
        "nodes": None if taxonomy is None else int(taxonomy.n_nodes),
        "cv_log_loss": cv_log_loss,
        "experts": None
        if table is None
        else {row.name: {"weight": _number(row.weight), "cv_log_loss": _number(row.log_loss)} for row in table},
        "learned": None if learned is None or best is None else len(learned.names),
        "evaluations": None if learned is None else len(learned.evaluations),
        "learning_status": None if learned is None else learned.status,
        "objective": getattr(result, "objective", None),
        "relative_gap": getattr(result, "relative_gap", None),
        "products": getattr(result, "products", None),
    }


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """The closing table."""
    rows = [
        ("model", figures["classifier"]),
        ("training rows", figure(figures["rows"])),
        ("features", figure(figures["features"])),
        ("classes", figure(figures["classes"])),
        ("nodes of the tree", figure(figures["nodes"])),
    ]
    for name, expert in (figures["experts"] or {}).items():
        weight = f"weight {expert['weight']:.2f}" if expert["weight"] else "not used"
        rows.append((f"  {name}", f"{weight}, log loss {figure(expert['cv_log_loss'])}"))
    if figures["cv_log_loss"] is not None:
        rows.append(("log loss, cross-validated", figure(figures["cv_log_loss"])))
    if figures["learned"] is not None:
        rows.append(("hyperparameters", f"{figures['learned']} learned"))
    scores = figures["hold_out"]
    if scores is not None:
        low, high = scores["accuracy_interval"]
        rows += [
            (f"accuracy on {scores['rows']:,} rows held out", f"{scores['accuracy']:.1%} ({low:.1%} to {high:.1%})"),
            ("  of always the most frequent class", f"{scores['baseline_accuracy']:.1%}"),
            ("log loss on these rows", figure(scores["log_loss"])),
            ("  of the shares of the classes", figure(scores["baseline_log_loss"])),
        ]
    if figures["relative_gap"] is not None:
        rows.append(("certified relative gap", f"{figures['relative_gap']:.1e}"))
    return [
        *rows,
        ("reading and features", f"{figures['reading_seconds']:.1f} s"),
        ("learning and fit", f"{figures['fit_seconds']:.1f} s"),
        ("size of the file", size_text(figures["size_bytes"])),
    ]


COMMAND = Command(
    TrainOptions,
    run,
    "Learn from a table (CSV, TSV, JSON lines, Parquet) or a matrix (svmlight, LSHTC, ARFF, npz), and write a model "
    "file. By default several classifiers are pooled. All hyperparameters are learned by cross-validation, and a tenth "
    "of the rows tells how good the model is before it is fitted to all of them.",
    example="taxolearn train goods.csv --text title --text body --label category -o goods.taxo",
)
