"""Decoders of label embeddings: the model of the classes given embedded rows, and its fit for very many classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
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

__all__ = ["DECODERS", "Decoder", "fit_decoder", "unfitted_decoder"]

Floats = npt.NDArray[np.float64]
Decoder = KernelLogisticClassifier | RecursiveRegularizationClassifier | TopDownClassifier

DECODERS = (KernelLogisticClassifier, RecursiveRegularizationClassifier, TopDownClassifier)

_NAMES = ("auto", "softmax", "independent", "top-down")
_ENTRIES = 2**28  # rows times classes of one fit
_WORK = 4_000_000  # the same that hyperparameters are learned on
_CLASS_WORK = 2 * _WORK  # where it is learned on some classes
_PARTS = 5  # of which one is held out there
_LEARNING_GAP = 1e-3
_LEAST_ROWS = 2_000
_FOLDS = 3
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
    if isinstance(model.tuning, str) and model.tuning == "cv":
        most = max(_WORK // n_classes, _LEAST_ROWS)
        search = "scale" if model.taxonomy is None else "gradient"
        common["tuning"] = CrossValidation(_FOLDS, subset=most if most < n_rows else None, search=search)
    if name == "softmax":
        return KernelLogisticClassifier("linear", labels="own", **common)
    return RecursiveRegularizationClassifier(**common)


def fit_decoder(
    model: Any,
    decoder: Decoder,
    embedding: LabelEmbedding,
    Z: Any,
    y: Any,
    labels: tuple[npt.NDArray[Any], LabelForm | None, LabelSets],
    sample_weight: Any,
) -> Decoder:
    """Fit the decoder of a classifier to embedded rows.

    Without a tree, a top-down one has a tree of clusters of the classes.
    """
    classes, form, sets = labels
    is_default = isinstance(model.decoder, str) and isinstance(model.tuning, str) and model.taxonomy is None
    if is_default and isinstance(decoder, KernelLogisticClassifier) and len(sets) * len(classes) > _WORK:
        decoder = _tuned_on_classes(decoder, Z, classes, sets, sample_weight)
    if isinstance(decoder, TopDownClassifier) and decoder.taxonomy is None:
        seed = int(check_random_state(decoder.random_state).randint(2**31 - 1))
        decoder.set_params(taxonomy=class_clusters(embedding, seed))
    has_parts = (
        isinstance(decoder, RecursiveRegularizationClassifier)
        and form is not None
        and (decoder.taxonomy, decoder.loss, decoder.kernel) == (None, "logistic", "linear")
        and len(sets) * len(classes) > _ENTRIES
    )
    if not has_parts:
        return decoder.fit(Z, y, sample_weight)
    assert isinstance(decoder, RecursiveRegularizationClassifier)
    fitted = _fit_in_parts(decoder, Z, sets, sample_weight)
    # The parts know numbers of labels only.
    fitted.classes_, fitted.label_form_ = classes, form
    return fitted


def class_clusters(embedding: LabelEmbedding, seed: int) -> Taxonomy:
    """A balanced tree of the classes, in which those that the inputs confuse are close together."""
    return Taxonomy.from_clusters(
        embedding.class_points(), embedding.classes_, branching=_BRANCHING, random_state=seed
    )


def _tuned_on_classes(
    decoder: KernelLogisticClassifier, Z: Any, classes: npt.NDArray[Any], sets: LabelSets, sample_weight: Any
) -> KernelLogisticClassifier:
    """Learn the hyperparameters on all rows of some classes.

    Some rows of all classes would be as much work, but the fewer rows a class has, the smaller is the best variance.
    """
    random = check_random_state(decoder.random_state)
    per_class = len(sets) / len(classes)
    count = int(np.clip(np.sqrt(_CLASS_WORK / per_class), 2, len(classes)))
    chosen = random.permutation(len(classes))[:count]
    rows = np.flatnonzero(np.isin(sets.labels, chosen))
    folds = make_folds(sets.labels[rows], len(classes), _PARTS, random)
    tuning = CrossValidation(np.where(folds == 0, 0, -1), search="scale")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[rows]
    learner = clone(decoder).set_params(tuning=tuning, tol=max(decoder.tol, _LEARNING_GAP))
    learned = learner.tuned(Z[rows], classes[sets.labels[rows]], weights)
    return learned.set_params(tol=decoder.tol)


def _fit_in_parts(
    decoder: RecursiveRegularizationClassifier, Z: Any, sets: LabelSets, sample_weight: Any
) -> RecursiveRegularizationClassifier:
    """Fit some classes after the other, with hyperparameters that are learned from some rows.

    Without a tree nothing ties the classes to each other, so this is the same minimum, and gaps add up.
    """
    Y = sets.matrix()
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    learned = decoder
    if decoder.tuning is not None:
        random = check_random_state(decoder.random_state)
        most = min(len(sets), max(_WORK // Y.shape[1], _LEAST_ROWS))
        rows = np.sort(random.permutation(len(sets))[:most])
        tuning = decoder.tuning
        if isinstance(tuning, CrossValidation):
            tuning = clone(tuning)
            tuning.subset = None
        learned = clone(decoder).set_params(tuning=tuning)
        learned.fit(Z[rows], Y[rows], None if weights is None else weights[rows])
    settings: dict[str, Any] = learned._learned_arguments() if learned is not decoder else {}
    parts, results = [], []
    for columns in gen_batches(Y.shape[1], max(1, _ENTRIES // len(sets))):
        part = clone(decoder).set_params(**settings)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "y: no row has the label")
            part.fit(Z, Y[:, columns], weights)
        parts.append(part)
        results.append(part.result_)
    fitted: Any = parts[0] if learned is decoder else learned
    coef = np.concatenate([part.coef_.T for part in parts], axis=1).T
    intercept = np.concatenate([part.intercept_ for part in parts])
    fitted._functions = LinearFunctions(coef, intercept, "logistic", fitted.hyperparameters_.temperature)
    fitted.result_ = _together(results)
    fitted.n_iter_ = fitted.result_.iterations
    return fitted.set_params(**decoder.get_params(deep=False))


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
