"""``taxolearn train``: from a data file to a model file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from taxolearn import (
    CentroidClassifier,
    ClassGraph,
    CrossValidation,
    KernelLogisticClassifier,
    LabelEmbedding,
    LabelEmbeddingClassifier,
    NaiveBayesClassifier,
    PoolClassifier,
    RecursiveRegularizationClassifier,
    Taxonomy,
    TopDownClassifier,
    save,
)
from taxolearn.blocks import Blocks
from taxolearn.cli.inputs import (
    BETWEEN_LABELS,
    Batch,
    Columns,
    DataFile,
    Schema,
    check_cells,
    empty_texts,
    read_whole,
    reading,
)
from taxolearn.cli.labels import LabelOptions, Labels, read_labels, used_rows
from taxolearn.cli.main import (
    STOPPED_EARLY,
    USAGE,
    Command,
    CommandError,
    Page,
    above_zero,
    check_output,
    figure,
    json_option,
    option,
    options_of,
    output_option,
    plain_warning,
    positive,
    seed_option,
    share,
    size_text,
    threads_option,
    whole_number,
    writing,
)
from taxolearn.cli.several_labels import rarest_labels, read_label_cells, score_rows
from taxolearn.estimators.pool import contributions
from taxolearn.features.missing import ColumnMeans, has_missing
from taxolearn.features.tables import TableFeatures
from taxolearn.files.save_and_load import DTYPES
from taxolearn.kernels.argument import kernel_names, start_kernel
from taxolearn.readers.tables import CHUNK_ROWS
from taxolearn.report.scores import RunningScores
from taxolearn.report.set_scores import RunningSetScores
from taxolearn.tuning.cross_validation import held_out_rows

__all__ = ["COMMAND", "ModelOptions", "TrainOptions", "run"]

_LOGISTIC = ("softmax", "independent")
_SIMPLE: dict[str, Any] = {"naive-bayes": NaiveBayesClassifier, "centroid": CentroidClassifier}
_OF_SETS = "recursive"  # the model of any number of labels per row
_LOSSES = ("logistic", "hinge", "squared_hinge")
_EMBEDDING = "embedding"  # of the labels, one per row or any number
_MODELS = ("pool", *_LOGISTIC, "top-down", _OF_SETS, _EMBEDDING, *_SIMPLE)
_USES_INNER_LABELS = ("pool", "softmax", "top-down")  # others learn from rows with one class only

_WORK = 4_000_000  # rows times classes that hyperparameters are learned on
_LEAST_ROWS = 2_000
_LONG = 1_000_000  # rows times classes from which on an evaluation takes long
_USUAL = CrossValidation()
_FEW_FOLDS, _FEW_EVALUATIONS = 3, 10  # where each takes long
_TOL = 1e-5  # of the logistic models

_MODEL = "model"
_LEARNING = "learning of hyperparameters, by cross-validation"
_OF_LOGISTIC = "; with softmax and independent only"

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


# -- Options ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelOptions:
    """What the user says about the model. None stands for what suits the model and the data."""

    model: str | None = option(
        "--model",
        choices=_MODELS,
        group=_MODEL,
        help="a pool of several classifiers, or one of them (default: pool; softmax, if an option is given that only "
        f"softmax and independent take; {_OF_SETS} with --labels, or {_EMBEDDING})",
    )
    kernel: str | None = option(
        "--kernel",
        choices=kernel_names(),
        group=_MODEL,
        help=f"how rows are compared; linear is right for texts (default: {kernel_names()[0]}{_OF_LOGISTIC})",
    )
    variance: float | None = option(
        "--variance",
        type=above_zero,
        metavar="V",
        group=_MODEL,
        help="learn no hyperparameters: give the kernel this variance, and take its other parameters from the data"
        f"{_OF_LOGISTIC}, and {_OF_SETS}, whose C it is",
    )
    loss: str | None = option(
        "--loss",
        choices=_LOSSES,
        group=_MODEL,
        help=f"loss of a label (default: {_LOSSES[0]}; with {_OF_SETS} only)",
    )
    components: int | None = option(
        "--components",
        type=positive,
        metavar="K",
        group=_MODEL,
        help=f"dimension of the labels' embedding (default: 100; with --model {_EMBEDDING} only)",
    )
    tol: float | None = option(
        "--tol",
        type=above_zero,
        metavar="G",
        group=_MODEL,
        help=f"certified relative gap at which a fit stops (default: 1e-4; of softmax and independent {_TOL:g})",
    )
    folds: int | None = option(
        "--folds",
        type=whole_number(2),
        metavar="Q",
        group=_LEARNING,
        help=f"number of folds (default: {_FEW_FOLDS}; of softmax and independent {_USUAL.folds}, or "
        f"{_FEW_FOLDS} where that would take long)",
    )
    time_limit: float | None = option(
        "--time-limit", type=above_zero, metavar="S", group=_LEARNING, help="stop learning after about S seconds"
    )
    samples: int | None = option(
        "--samples",
        type=positive,
        metavar="N",
        group=_LEARNING,
        help=f"number of rows to learn from (default: all, or as many as take minutes{_OF_LOGISTIC})",
    )
    evaluations: int | None = option(
        "--evaluations",
        type=positive,
        metavar="N",
        group=_LEARNING,
        help="most evaluations of the cross-validated log loss "
        f"(default: {_USUAL.max_evaluations}, or {_FEW_EVALUATIONS} where each takes long{_OF_LOGISTIC})",
    )
    checkpoint: str | None = option(
        "--checkpoint",
        metavar="FILE",
        group=_LEARNING,
        help="keep the state of learning here, to continue if killed" + _OF_LOGISTIC,
    )
    seed: int = seed_option("seed of the rows held out, of folds and samples")
    threads: int | None = threads_option()


@dataclass(frozen=True)
class TrainOptions:
    """Arguments of the command."""

    data: DataFile = options_of(DataFile)
    output: str = output_option("MODEL", "model file to write")
    columns: Columns = options_of(Columns)
    tree: LabelOptions = options_of(LabelOptions)
    classifier: ModelOptions = options_of(ModelOptions)
    hold_out: float | None = option(
        "--hold-out",
        type=share,
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


# Options that some models do not take, and the models that do.
_TAKEN_BY = {
    **dict.fromkeys(("kernel", "samples", "evaluations", "checkpoint"), _LOGISTIC),
    "variance": (*_LOGISTIC, _OF_SETS),
    "loss": (_OF_SETS,),
    **dict.fromkeys(("tol", "folds", "time_limit"), ("pool", *_LOGISTIC, "top-down", _OF_SETS, _EMBEDDING)),
    "components": (_EMBEDDING,),
}


def _chosen_model(options: ModelOptions, schema: Schema, several: str = "--labels is") -> str:
    """The model that is meant; an error for options that it does not take."""
    given = [name for name in _TAKEN_BY if getattr(options, name) is not None]
    model = options.model
    if schema.label_separator is not None:
        if model not in (None, _OF_SETS, _EMBEDDING):
            raise CommandError(f"{several} for --model {_OF_SETS} or {_EMBEDDING}, not {model}; leave one out", USAGE)
        model = model or (_OF_SETS if options.components is None else _EMBEDDING)
    if model is None and options.components is not None:
        model = _EMBEDDING
    if model is None:
        is_logistic = any(_LOGISTIC[0] in _TAKEN_BY[name] and _MODELS[0] not in _TAKEN_BY[name] for name in given)
        model = _LOGISTIC[0] if is_logistic else _MODELS[0]
    for name in given:
        if model not in _TAKEN_BY[name]:
            flag, known = "--" + name.replace("_", "-"), " or ".join(_TAKEN_BY[name])
            raise CommandError(f"{flag} is for --model {known}, not {model}; leave one of them out", USAGE)
    return model


# -- From reading to saving -------------------------------------------------------------------------------------------


def run(options: TrainOptions) -> None:
    """Read, learn, score, fit, save, and say how it went."""
    begin = time.perf_counter()
    page = Page(options.json)
    path = options.data.path
    check_output(options.output, path, options.tree.taxonomy or "")
    schema = options.columns.schema(options.data.kind)
    model = _chosen_model(options.classifier, schema)
    if model == "naive-bayes" and (schema.numeric or schema.dates or schema.has_embeddings):
        what = "--numeric columns" if schema.numeric else "--date columns" if schema.dates else "embeddings"
        raise CommandError(f"--model naive-bayes counts words, so it takes no {what}; choose another --model", USAGE)
    with page.stage(f"Reading {path}"):
        everything = read_whole(options.data, schema, allow_unlabelled=True)
        if everything.labels.dtype.kind == "O" and schema.label_separator is None:  # a matrix says so itself
            schema = replace(schema, label_separator=BETWEEN_LABELS)
            model = _chosen_model(options.classifier, schema, "rows with any number of labels are")
        if schema.label_separator is None:
            labels = read_labels(options.tree, everything, path, len(schema.label))
        else:
            labels = read_label_cells(options.tree, everything, path)
    if model == "top-down" and labels.taxonomy is None:
        raise CommandError(
            f"--model top-down needs a tree, and the labels of {path} are no paths; give --taxonomy FILE, --separator "
            "S, a --label for each level, or choose another --model",
            USAGE,
        )
    used, about_rows = used_rows(labels, model, _USES_INNER_LABELS)  # all of those with any number of labels
    batch = replace(everything, labels=labels.names).take(used)
    check_cells(batch, schema, path)
    schema = replace(schema, separator=labels.separator, n_features=None if schema.is_table else batch.X.shape[1])
    schema = replace(schema, fills_missing=not schema.is_table and has_missing(batch.X))
    split, about_split = _split(options, batch, labels.leaves_below[used] == 1)
    training = _Training(options, model, labels, schema, page)
    held_out = None
    if split is None:
        fitted = training.first(batch)
    else:
        held_out = training.scores(batch.take(np.flatnonzero(~split)), batch.take(np.flatnonzero(split)))
        fitted = training.again(batch)
    remarks = [
        *labels.notes,
        *about_rows,
        *empty_texts(batch, schema.text or schema.embed),
        *(["numbers are missing: the mean of their column counts in their place"] if schema.fills_missing else []),
        *about_split,
        *training.remarks,
    ]
    # Of those that differ in figures only, that of the last fit counts.
    remarks = list({remark.partition(" (")[0]: remark for remark in remarks}.values())
    figures = {
        "classifier": model,
        "rows": len(batch),
        "rows_read": len(everything),
        **_figures(fitted[-1], training.n_features),
        "hold_out": held_out,
        "shares": training.shares,
        "reading_seconds": round(training.feature_seconds + training.begin - begin, 3),
        "fit_seconds": round(training.fit_seconds, 3),
    }
    known = {name: value for name, value in figures.items() if value is not None and name != "experts"}  # it has them
    report = {"input": schema.to_json(), "training": {"data": Path(path).name, **known, "remarks": remarks}}
    with writing(options.output):
        save(fitted, options.output, dtype=options.dtype, report=report)
    figures["size_bytes"] = Path(options.output).stat().st_size
    page.result(
        {"model": options.output, **figures, "remarks": remarks},
        title=f"Model written to {options.output}",
        rows=_rows(figures),
        remarks=remarks,
    )


def _split(
    options: TrainOptions, batch: Batch, is_certain: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_] | None, list[str]]:
    """Which rows are held out, None for none, and a note if that is not what the user expects."""
    wanted = options.hold_out
    if wanted is None and len(batch) < _FEW:
        why = f"no rows were held out to score the model, since there are fewer than {_FEW}"
        return None, [f"{why}; evaluate it on other rows, or give --hold-out 0.2"]
    if wanted == 0:
        return None, []
    strata = batch.labels if batch.labels.dtype.kind != "O" else rarest_labels(batch.labels)
    out = held_out_rows(strata, _HELD_OUT if wanted is None else wanted, options.classifier.seed, is_certain)
    if not out.any():
        return None, ["no rows were held out to score the model, since no class has rows to spare"]
    return out, []


class _Training:
    """Fits features and classifier, and keeps count of time and of what is to be said."""

    def __init__(self, options: TrainOptions, model: str, labels: Labels, schema: Schema, page: Page) -> None:
        self._options, self._model, self._labels, self._schema, self._page = options, model, labels, schema, page
        self._features: TableFeatures | ColumnMeans | None = None
        self._classifier: Any = None
        self.begin = time.perf_counter()
        self.feature_seconds = self.fit_seconds = 0.0
        self.n_features = 0
        self.shares: dict[str, float] | None = None
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
        chunks = [slice(first, first + CHUNK_ROWS) for first in range(0, len(held_out), CHUNK_ROWS)]
        with self._page.stage(f"Scoring {len(held_out):,} rows"), reading(self._options.data.path):
            if self._schema.label_separator is not None:
                of_sets = RunningSetScores(self._classifier)
                for rows in chunks:
                    of_sets.add(held_out.labels[rows], self._classifier.predict_proba(X_held_out[rows]))
                return of_sets.summary()
            running = RunningScores(self._classifier)
            for rows in chunks:
                running.add(held_out.labels[rows], self._classifier.predict_log_proba(X_held_out[rows]))
        summary = running.summary()
        return {name: summary[name] for name in _SCORES}

    def again(self, batch: Batch) -> Pipeline:
        """Fit to all rows, with what was learned. Only the vocabulary of texts is made anew."""
        if self._features is None or self._schema.text:
            X = self._transformed(batch)
        else:
            X = self._features.transform(batch.X)
        self._fit(f"Fitting the model to all {len(batch):,} rows", lambda: self._classifier.refit(X, batch.labels))
        self._note_shares(X)
        return self._pipeline()

    def _learn(self, X: Any, batch: Batch, what: str) -> None:
        options, labels = self._options.classifier, self._labels

        def fit() -> None:
            self._classifier = _make_classifier(options, self._model, labels.structure, X, labels.n_classes)
            self._classifier.fit(X, batch.labels)

        self._fit(what, fit)
        self._note_shares(X)

    def _fit(self, what: str, fit: Callable[[], Any]) -> None:
        """Say what is done, do it, and keep its time and what there is to say about it."""
        self._page.say(what)
        begin = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught, reading(self._options.data.path):
            warnings.simplefilter("always", UserWarning)
            fit()
        self.remarks += [plain_warning(str(each.message)) for each in caught if issubclass(each.category, UserWarning)]
        self.remarks += _notes_on_fit(self._classifier)
        self.fit_seconds += time.perf_counter() - begin

    def _note_shares(self, X: Any) -> None:
        """How much each kind of features contributes, on some of the rows, where they are apart and linear."""
        if isinstance(X, Blocks):
            shares = contributions(self._classifier, X[:: len(X) // _LEAST_ROWS + 1])
            self.shares = {name: round(value, 4) for name, value in shares.items()} or None

    def _transformed(self, batch: Batch) -> Any:
        options = self._options
        begin = time.perf_counter()
        X = batch.X
        if self._schema.is_table:
            # Kinds of features have variances of their own, if these are learned.
            takes_blocks = self._model not in (*_SIMPLE, _OF_SETS, _EMBEDDING) and options.classifier.variance is None
            output = "blocks" if takes_blocks and self._schema.is_mixed else "matrix"
            self._features = options.columns.features(self._schema, options.classifier.threads, output)
            with self._stage_of_features(), reading(options.data.path, batch.lines):
                X = self._features.fit_transform(X)
        elif self._schema.fills_missing:
            self._features = ColumnMeans()
            X = self._features.fit_transform(X)
        self.n_features = int(X.shape[1])
        self.feature_seconds += time.perf_counter() - begin
        return X

    def _stage_of_features(self) -> AbstractContextManager[Any]:
        if not self._schema.embed:
            return self._page.stage("Computing features")
        self._page.say("Computing features and embedding texts")  # the latter has a bar
        return nullcontext()

    def _pipeline(self) -> Pipeline:
        steps: list[tuple[str, Any]] = [] if self._features is None else [("features", self._features)]
        return Pipeline([*steps, ("classifier", self._classifier)])


def _make_classifier(
    options: ModelOptions, model: str, taxonomy: Taxonomy | ClassGraph | None, X: Any, n_classes: int
) -> Any:
    """The classifier, not yet fitted."""
    common: dict[str, Any] = {"taxonomy": taxonomy, "n_threads": options.threads, "random_state": options.seed}
    if model in _SIMPLE:
        return _SIMPLE[model](**common)
    if options.tol is not None:
        common["tol"] = options.tol
    if model == "pool":
        if options.folds is not None:
            common["folds"] = options.folds
        return PoolClassifier(time_limit=options.time_limit, **common)
    if model == _OF_SETS:
        usual = {"tol": _TOL} if options.loss in (None, "logistic") else {"loss": options.loss}  # which has its own
        if options.variance is not None:
            return RecursiveRegularizationClassifier(C=options.variance, tuning=None, **usual | common)
        learning: Any = "cv"
        if options.folds is not None or options.time_limit is not None:
            search = "scale" if taxonomy is None else "steps"
            learning = CrossValidation(options.folds or _FEW_FOLDS, search=search, time_limit=options.time_limit)
        return RecursiveRegularizationClassifier(tuning=learning, **usual | common)
    if model == _EMBEDDING:
        embedding = LabelEmbedding(options.components or 100, random_state=options.seed)
        by_level = _tuning(options, X.shape[0], n_classes)
        tuning = by_level if taxonomy is not None else by_level.set_params(search="scale")
        return LabelEmbeddingClassifier(embedding, tuning=tuning, **{"tol": _TOL} | common)
    if model == "top-down":
        by_node = CrossValidation(options.folds or _FEW_FOLDS, time_limit=options.time_limit)
        return TopDownClassifier(tuning=by_node, **common)
    kernel: Any = options.kernel or kernel_names()[0]
    if options.variance is not None:
        kernel = replace(start_kernel(kernel, X), variance=options.variance)  # type: ignore[type-var]
    tuning = None if options.variance is not None else _tuning(options, X.shape[0], n_classes)
    return KernelLogisticClassifier(kernel, loss=model, tuning=tuning, **{"tol": _TOL} | common)


def _tuning(options: ModelOptions, n_rows: int, n_classes: int) -> CrossValidation:
    samples = options.samples
    if samples is None:
        most = max(_WORK // max(n_classes, 1), _LEAST_ROWS)
        samples = most if most < n_rows else None
    is_long = min(samples or n_rows, n_rows) * n_classes >= _LONG
    return CrossValidation(
        options.folds or (_FEW_FOLDS if is_long else _USUAL.folds),
        subset=samples,
        max_evaluations=options.evaluations or (_FEW_EVALUATIONS if is_long else _USUAL.max_evaluations),
        time_limit=options.time_limit,
        checkpoint=options.checkpoint,
    )


# -- What is said about it --------------------------------------------------------------------------------------------


def _notes_on_fit(classifier: Any) -> list[str]:
    """What is to be said about a fitted classifier."""
    remarks = []
    if isinstance(classifier, PoolClassifier) and not classifier.experts_:
        remarks.append(
            "the columns tell nothing about the classes that could not be chance, so every answer is the shares of the "
            "classes"
        )
    if isinstance(classifier, PoolClassifier) and classifier.skipped_:
        skipped = ", ".join(classifier.skipped_)
        remarks.append(f"there was no time to try {skipped}: a larger --time-limit may gain a little")
    learned = getattr(classifier, "cv_result_", None)
    if learned is not None and learned.best is None:
        remarks.append("there was no time to learn, so hyperparameters have their start values")
    elif learned is not None and learned.status in ("time_limit", "interrupted"):
        remarks.append(f"{STOPPED_EARLY}: a longer search may gain a little")
    return remarks


def _figures(classifier: Any, n_features: int) -> dict[str, Any]:
    taxonomy, graph = classifier.taxonomy_, getattr(classifier, "graph_", None)
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
        "edges": None if graph is None else int(graph.n_edges),
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
        *((f"  share of {name} in the answers", f"{value:.1%}") for name, value in (figures["shares"] or {}).items()),
        ("classes", figure(figures["classes"])),
        ("nodes of the tree", figure(figures["nodes"])),
        *([] if figures["edges"] is None else [("edges of the graph", figure(figures["edges"]))]),
    ]
    for name, expert in (figures["experts"] or {}).items():
        weight = f"weight {expert['weight']:.2f}" if expert["weight"] else "not used"
        rows.append((f"  {name}", f"{weight}, log loss {figure(expert['cv_log_loss'])}"))
    if figures["cv_log_loss"] is not None:
        rows.append(("log loss, cross-validated", figure(figures["cv_log_loss"])))
    if figures["learned"] is not None:
        rows.append(("hyperparameters", f"{figures['learned']} learned"))
    scores = figures["hold_out"]
    if scores is not None and "micro_f1" in scores:
        rows += [
            (f"on {scores['rows']:,} rows held out", ""),
            *((f"  {name}", told) for name, told in score_rows(scores)),
        ]
    elif scores is not None:
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
