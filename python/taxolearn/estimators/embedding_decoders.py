"""Decoders of label embeddings: the model of the classes given embedded rows, and its fit for very many classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state, gen_batches

from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.label_embedding import LabelEmbedding
from taxolearn.estimators.recursive import RecursiveRegularizationClassifier
from taxolearn.estimators.top_down import TopDownClassifier
from taxolearn.fitting.fit import FitResult
from taxolearn.fitting.functions import LinearFunctions
from taxolearn.targets import LabelForm, LabelSets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation, make_folds
from taxolearn.validation import check_choice

__all__ = ["DECODERS", "Decoder", "EmbeddedRows", "fit_decoder", "held_out_rows", "unfitted_decoder"]

Floats = npt.NDArray[np.float64]
Decoder = KernelLogisticClassifier | RecursiveRegularizationClassifier | TopDownClassifier

DECODERS = (KernelLogisticClassifier, RecursiveRegularizationClassifier, TopDownClassifier)

_NAMES = ("auto", "softmax", "independent", "top-down")
_ENTRIES = 2**28  # rows times classes of one fit
_WORK = 4_000_000  # the same that hyperparameters are learned on
_CLASS_WORK = 2 * _WORK  # where they are learned on some classes
_PARTS = 5  # of which one is held out
_LEARNING_GAP = 1e-3
_LEAST_ROWS = 2_000
_BRANCHING = 128  # of a tree of clusters: fits go through fewer children, flatter trees are more accurate


def unfitted_decoder(model: Any, is_multilabel: bool, n_rows: int, n_classes: int) -> Decoder:
    """The decoder that the arguments of a classifier mean."""
    if not isinstance(model.decoder, str):
        if not isinstance(model.decoder, DECODERS):
            raise TypeError(
                "decoder must be a name, a KernelLogisticClassifier, a RecursiveRegularizationClassifier or a "
                f"TopDownClassifier, got {type(model.decoder).__name__}"
            )
        given: Decoder = clone(model.decoder)
        return given
    name = check_choice("decoder", model.decoder, _NAMES)
    if name in ("softmax", "top-down") and is_multilabel:
        raise ValueError(f'decoder="{name}" is for one label per row, but y has any number; use "independent"')
    if name == "auto" and not is_multilabel:
        name = "softmax" if n_rows * n_classes <= _ENTRIES else "top-down"
    common: dict[str, Any] = {
        "taxonomy": model.taxonomy,
        "class_weight": model.class_weight,
        "tuning": model.tuning,
        "tol": model.tol,
        "max_iter": model.max_iter,
        "n_threads": model.n_threads,
        "random_state": model.random_state,
        "verbose": model.verbose,
    }
    if name == "top-down":
        return TopDownClassifier(labels="own", **common)
    if name == "softmax":
        return KernelLogisticClassifier("linear", labels="own", **common)
    return RecursiveRegularizationClassifier(**common)


@dataclass(frozen=True)
class EmbeddedRows:
    """Embedded rows Z, the labels as they were given, their weights, and the labels as places in ``classes``."""

    Z: Any
    y: Any
    weights: Floats | None
    classes: npt.NDArray[Any]
    form: LabelForm | None
    sets: LabelSets

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def labels(self) -> Any:
        """One label per row as it was given; of several an indicator."""
        return self.y if self.form is None else self.sets.matrix()

    def take(self, rows: npt.NDArray[np.intp]) -> tuple[Any, Any, Floats | None]:
        """Embeddings, labels and weights of some rows."""
        labels = np.asarray(self.y)[rows] if self.form is None else self.labels[rows]
        return self.Z[rows], labels, None if self.weights is None else self.weights[rows]


def held_out_rows(sets: LabelSets, random_state: Any) -> npt.NDArray[np.bool_]:
    """A fifth of the rows, to learn hyperparameters by."""
    folds = make_folds(sets.rarest() + 1, sets.n_labels + 1, _PARTS, check_random_state(random_state))
    return np.asarray(folds == 0)


def fit_decoder(
    decoder: Decoder, embedding: LabelEmbedding, rows: EmbeddedRows, honest: tuple[Any, npt.NDArray[np.bool_]] | None
) -> Decoder:
    """Fit the decoder to embedded rows.

    ``honest`` are embeddings by a regression that has not seen the held-out rows, and which rows these are: the
    decoder's hyperparameters are learned by them. Without a tree, a top-down decoder has one of clusters of classes.
    """
    if isinstance(decoder, TopDownClassifier) and decoder.taxonomy is None:
        seed = int(check_random_state(decoder.random_state).randint(2**31 - 1))
        decoder.set_params(taxonomy=class_clusters(embedding, seed))
    learned = decoder if honest is None else _learned(decoder, replace(rows, Z=honest[0]), honest[1])
    has_parts = (
        isinstance(decoder, RecursiveRegularizationClassifier)
        and rows.form is not None
        and decoder.class_weight is None
        and (decoder.taxonomy, decoder.loss, decoder.kernel) == (None, "logistic", "linear")
        and len(rows) * len(rows.classes) > _ENTRIES
    )
    if has_parts:
        learned = _fit_in_parts(decoder, learned, rows)
    elif isinstance(learned, RecursiveRegularizationClassifier) and learned is not decoder:
        with _silent_about_labels():
            learned.refit(rows.Z, rows.labels, rows.weights)
    else:
        return learned.fit(rows.Z, rows.y, rows.weights)
    # An indicator knows numbers of labels, or those of the tree.
    learned.classes_, learned.label_form_ = rows.classes, rows.form
    learned.set_params(**decoder.get_params(deep=False))
    return learned


def _learned(decoder: Decoder, rows: EmbeddedRows, held: npt.NDArray[np.bool_]) -> Any:
    """The decoder with hyperparameters by the rows held out: unfitted, or fitted if that is what they come from."""
    folds = np.where(held, 0, -1)
    if isinstance(decoder, TopDownClassifier):
        return decoder.tuned(rows.Z, rows.y, rows.weights, folds)
    random = check_random_state(decoder.random_state)
    n, n_classes = len(rows), len(rows.classes)
    if n * n_classes <= _WORK:
        some = np.arange(n)
    elif isinstance(decoder, KernelLogisticClassifier) and decoder.taxonomy is None:
        # Some rows of all classes would be as much work, but the fewer rows a class has, the smaller is the best
        # variance.
        count = int(np.clip(np.sqrt(_CLASS_WORK * n_classes / n), 2, n_classes))
        some = np.flatnonzero(np.isin(rows.sets.labels, random.permutation(n_classes)[:count]))
    else:
        some = np.sort(random.permutation(n)[: max(_WORK // n_classes, _LEAST_ROWS)])
    search = "scale" if decoder.taxonomy is None else "gradient"
    tuning = CrossValidation(folds[some], search=search)
    tol = decoder.tol if decoder.tol is None else max(decoder.tol, _LEARNING_GAP)
    learner = clone(decoder).set_params(tuning=tuning, tol=tol)
    if isinstance(learner, KernelLogisticClassifier):
        return learner.tuned(*rows.take(some)).set_params(tol=decoder.tol)
    with _silent_about_labels():
        return learner.fit(*rows.take(some)).set_params(tol=decoder.tol)


def class_clusters(embedding: LabelEmbedding, seed: int) -> Taxonomy:
    """A balanced tree of the classes, in which those that the inputs confuse are close together."""
    return Taxonomy.from_clusters(embedding.class_points(), embedding.classes_, branching=_BRANCHING, random_state=seed)


@contextmanager
def _silent_about_labels() -> Iterator[None]:
    """The embedding has told which labels no row has, by their names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y: no row has the label")
        yield


def _fit_in_parts(
    decoder: RecursiveRegularizationClassifier, learned: RecursiveRegularizationClassifier, rows: EmbeddedRows
) -> Any:
    """Fit some classes after the other, with hyperparameters that were learned before.

    Without a tree nothing ties the classes to each other, so this is the same minimum, and gaps add up.
    """
    if decoder.tuning is not None and learned is decoder:
        random = check_random_state(decoder.random_state)
        some = np.sort(random.permutation(len(rows))[: max(_WORK // len(rows.classes), _LEAST_ROWS)])
        learned = clone(decoder).fit(*rows.take(some))
    settings: dict[str, Any] = {} if learned is decoder else learned._learned_arguments()
    Y = rows.labels
    parts, results = [], []
    for columns in gen_batches(Y.shape[1], max(1, _ENTRIES // len(rows))):
        part = clone(decoder).set_params(**settings)
        with _silent_about_labels():
            part.fit(rows.Z, Y[:, columns], rows.weights)
        parts.append(part)
        results.append(part.result_)
    fitted: Any = parts[0] if learned is decoder else learned
    coef = np.concatenate([part.coef_.T for part in parts], axis=1).T
    intercept = np.concatenate([part.intercept_ for part in parts])
    fitted._functions = LinearFunctions(coef, intercept, "logistic", fitted.hyperparameters_.temperature)
    fitted.result_ = _together(results)
    fitted.n_iter_ = fitted.result_.iterations
    return fitted


def _together(results: Sequence[FitResult]) -> FitResult:
    """The fits of parts that have nothing to do with each other, as one."""
    statuses = {each.status for each in results}
    objective, gap = (float(sum(getattr(each, name) for each in results)) for name in ("objective", "gap"))
    return replace(
        results[0],
        status=next((each for each in ("max_iter", "stalled") if each in statuses), "converged"),
        iterations=max(each.iterations for each in results),
        products=sum(each.products for each in results),
        objective=objective,
        gap=gap,
        relative_gap=gap / objective if objective > 0 else 0.0,
        timings={name: sum(each.timings[name] for each in results) for name in results[0].timings},
    )
