"""The classifiers that ``train`` knows: which options they take, how they are made, fitted, and fitted once more."""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from taxolearn import (
    CrossValidation,
    KernelLogisticClassifier,
    NaiveBayesClassifier,
    PoolClassifier,
    Taxonomy,
    TopDownClassifier,
    Tree,
)
from taxolearn.cli.inputs import reading
from taxolearn.cli.main import (
    USAGE,
    CommandError,
    above_zero,
    option,
    positive,
    seed_option,
    threads_option,
    whole_number,
)
from taxolearn.kernels.argument import kernel_names, start_kernel

__all__ = ["MODELS", "USES_INNER_LABELS", "ModelOptions", "chosen_model", "fit", "fit_again", "make_classifier"]

_LOGISTIC = ("softmax", "independent")
MODELS = ("pool", *_LOGISTIC, "top-down", "naive-bayes")
USES_INNER_LABELS = ("softmax", "top-down")  # others learn from rows with one class only

_WORK = 4_000_000  # rows times classes that hyperparameters are learned on
_LEAST_ROWS = 2_000
_LONG = 1_000_000  # rows times classes from which on an evaluation takes long
_USUAL = CrossValidation()
_FEW_FOLDS, _FEW_EVALUATIONS = 3, 10  # where each takes long
_TOL = 1e-5  # of the logistic models

_MODEL = "model"
_LEARNING = "learning of hyperparameters, by cross-validation"
_OF_LOGISTIC = "; with softmax and independent only"


@dataclass(frozen=True)
class ModelOptions:
    """What the user says about the model. None stands for what suits the model and the data."""

    model: str | None = option(
        "--model",
        choices=MODELS,
        group=_MODEL,
        help="a pool of several classifiers, or one of them (default: pool; softmax, if an option is given that only "
        "softmax and independent take)",
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
        + _OF_LOGISTIC,
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


# Options that some models do not take, and the models that do.
_TAKEN_BY = {
    "kernel": _LOGISTIC,
    "variance": _LOGISTIC,
    "samples": _LOGISTIC,
    "evaluations": _LOGISTIC,
    "checkpoint": _LOGISTIC,
    "tol": ("pool", *_LOGISTIC, "top-down"),
    "folds": ("pool", *_LOGISTIC, "top-down"),
    "time_limit": ("pool", *_LOGISTIC, "top-down"),
}


def chosen_model(options: ModelOptions) -> str:
    """The model that is meant; an error for options that it does not take."""
    given = [name for name in _TAKEN_BY if getattr(options, name) is not None]
    model = options.model
    if model is None:
        model = _LOGISTIC[0] if any(_TAKEN_BY[name] == _LOGISTIC for name in given) else MODELS[0]
    for name in given:
        takers = _TAKEN_BY[name]
        if model not in takers:
            flag = "--" + name.replace("_", "-")
            known = " or ".join(takers)
            raise CommandError(f"{flag} is for --model {known}, not {model}; leave one of them out", USAGE)
    return model


def make_classifier(options: ModelOptions, model: str, taxonomy: Taxonomy | None, X: Any, n_classes: int) -> Any:
    """The classifier, not yet fitted."""
    common: dict[str, Any] = {"taxonomy": taxonomy, "n_threads": options.threads, "random_state": options.seed}
    if model == "naive-bayes":
        return NaiveBayesClassifier(**common)
    if options.tol is not None:
        common["tol"] = options.tol
    if model == "pool":
        if options.folds is not None:
            common["folds"] = options.folds
        return PoolClassifier(time_limit=options.time_limit, **common)
    if model == "top-down":
        learning = CrossValidation(options.folds or _FEW_FOLDS, time_limit=options.time_limit)
        return TopDownClassifier(tuning=learning, **common)
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


def fit(classifier: Any, X: Any, labels: Any, path: str) -> list[str]:
    """Fit, and return what is to be said about it."""
    with warnings.catch_warnings(record=True) as caught, reading(path), _interrupts(classifier):
        warnings.simplefilter("always", UserWarning)
        classifier.fit(X, labels)
    remarks = [_plain(str(each.message)) for each in caught if issubclass(each.category, UserWarning)]
    if isinstance(classifier, PoolClassifier) and not classifier.experts_:
        remarks.append(
            "the columns tell nothing about the classes that could not be chance, so every answer is the shares of the "
            "classes"
        )
    learned = getattr(classifier, "cv_result_", None)
    if learned is not None and learned.best is None:
        remarks.append("there was no time to learn, so hyperparameters have their start values")
    elif learned is not None and learned.status in ("time_limit", "interrupted"):
        remarks.append(f"{_EARLY}: a longer search may gain a little")
    return list(dict.fromkeys(remarks))


def fit_again(classifier: Any, X: Any, labels: Any, path: str) -> tuple[Any, list[str]]:
    """The classifier fitted to other rows, with all that it has learned and chosen before."""
    if isinstance(classifier, PoolClassifier):
        with warnings.catch_warnings(record=True) as caught, reading(path), _interrupts(classifier):
            warnings.simplefilter("always", UserWarning)
            classifier.refit(X, labels)
        return classifier, [_plain(str(each.message)) for each in caught if issubclass(each.category, UserWarning)]
    again = clone(classifier).set_params(**_learned(classifier))
    remarks = fit(again, X, labels, path)
    if isinstance(classifier, KernelLogisticClassifier):
        again.cv_result_ = classifier.cv_result_
    return again, remarks


def _learned(classifier: Any) -> dict[str, Any]:
    """The parameters by which a classifier is fitted as it was, without learning them."""
    if isinstance(classifier, NaiveBayesClassifier):
        return {"smoothing": classifier.smoothing_, "temperature": classifier.temperature_}
    found = classifier.hyperparameters_
    if isinstance(classifier, TopDownClassifier):
        return {"variance": found.variances, "temperature": found.temperatures, "tuning": None}
    settings: dict[str, Any] = {
        "kernel": found.kernel,
        "intercept_variance": found.intercept_variance,
        "temperature": found.temperature,
        "tuning": None,
    }
    if found.variances:
        settings["coupling"] = Tree(variances=np.array(list(found.variances.values())))
    return settings


# -- Messages and interrupts ------------------------------------------------------------------------------------------

_EARLY = "the search for hyperparameters stopped early to save time"


def _plain(message: str) -> str:
    """What a warning of the package means to somebody at the command line."""
    if message.startswith("Learning hyperparameters: stopped"):
        return f"{_EARLY}: a longer search may gain a little (--evaluations)"
    if message.startswith("Learning hyperparameters: the start values"):
        return "no hyperparameters could be learned, so they have their start values; do the inputs tell anything?"
    if message.startswith("Expectation maximization stopped"):
        return "rows at inner nodes could be told apart a little further, had there been more rounds"
    if "max_iter" in message:
        gap = re.search(r"certified relative gap ([\d.e+-]+)", message)
        reached = f" (certified relative gap {gap[1]})" if gap else ""
        return f"the fit stopped before it had the accuracy that was asked for{reached}; a larger --tol asks for less"
    return message.replace('choose labels="own"', "choose --inner-labels own")


class _Stopped(BaseException):
    """Ctrl-C, while nothing is caught that could be continued without what is missing."""


@contextmanager
def _interrupts(classifier: Any) -> Iterator[None]:
    """Let Ctrl-C end the fit of a model that consists of several; one that stands alone keeps what it has learned."""

    def stop(*_: Any) -> None:
        raise _Stopped

    usual = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()  # which alone gets signals
    if isinstance(classifier, KernelLogisticClassifier) or usual is not signal.default_int_handler or not is_main:
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except _Stopped:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, usual)
