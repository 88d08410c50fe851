"""What a model is, in words for those who read its report."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from taxolearn.estimators.centroid import CentroidClassifier
from taxolearn.estimators.embedding_classifier import LabelEmbeddingClassifier
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.naive_bayes import NaiveBayesClassifier
from taxolearn.estimators.pool import PoolClassifier, linear_expert
from taxolearn.estimators.pooling.experts import FREQUENCIES
from taxolearn.estimators.recursive import RecursiveRegularizationClassifier
from taxolearn.estimators.top_down import TopDownClassifier
from taxolearn.kernels import Linear, PerBlock, Product, Sum
from taxolearn.kernels.leaf import Leaf

__all__ = ["Description", "Expert", "Setting", "cross_validated_log_loss", "describe", "explained_by"]

_VARIANCE = "the larger, the more closely the answers follow the training rows"
_RELATIVE = "how much answers of nodes may differ from those of their parents"
_INTERCEPT = "the larger, the more freely the frequencies of the classes are learned"
_SMOOTHING = "added to every count of a feature in a class; the larger, the less rare features say"
_OFFSET = "added to the predictors of all labels: the larger, the more probable they are"
_OF_COSINES = "what cosines are divided by; the smaller, the more a small difference in likeness counts"
_GROUPS = 12  # of nodes whose variances are listed
_OF_KERNELS = {
    "variance": _VARIANCE,
    "length_scale": "how far apart rows may be and still be alike",
    "scale": "the smaller, the more features count together instead of one by one",
}


@dataclass(frozen=True)
class Expert:
    """A row of the table of experts; None stands for what is not known.

    Attributes
    ----------
    name, kind : str
        The name in the pool, and what it is in words.
    log_loss, accuracy : float or None
        Of training rows that it was not fitted to.
    weight : float
        In the pool, 0 if it was left out.
    """

    name: str
    kind: str
    log_loss: float | None
    accuracy: float | None
    weight: float


@dataclass(frozen=True)
class Setting:
    """A hyperparameter: what it belongs to and is called, its value, and what that means."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Description:
    """What a model is; nothing where that is not known.

    Attributes
    ----------
    sentences : list of str
        Paragraphs.
    experts : list of Expert
        Those of a pool, the heaviest first.
    settings : list of Setting
        Hyperparameters.
    """

    sentences: list[str] = field(default_factory=list)
    experts: list[Expert] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)


def describe(classifier: Any) -> Description:
    """Describe a fitted classifier."""
    kind = _kind(classifier)
    if isinstance(classifier, PoolClassifier):
        return _of_pool(classifier)
    return Description([] if kind is None else [f"The model is {kind}."], [], _settings(classifier))


def cross_validated_log_loss(classifier: Any) -> float | None:
    """The mean log loss of training rows that were held out, None if there were none."""
    learned = getattr(classifier, "cv_result_", None)
    if learned is not None and learned.best is not None:
        return _number(learned.values[learned.best])
    return _number(getattr(classifier, "cv_log_loss_", None))


def explained_by(classifier: Any) -> tuple[bool, str]:
    """Whether features can be shown for answers, and a sentence that says of which model, if it is not the whole."""
    if not isinstance(classifier, PoolClassifier):
        kinds = (NaiveBayesClassifier, CentroidClassifier, TopDownClassifier)
        return isinstance(classifier, kinds) or hasattr(classifier, "coef_"), ""
    name = linear_expert(classifier)
    if not classifier.experts_:
        return False, "The answer is the same for all rows, so there are no reasons to show."
    if name is None:
        return True, "A feature counts by how much the answer would change if it had its usual value instead."
    if len(classifier.weights_) == 1:
        return True, ""
    return True, (
        f"The features are those of the expert {name}, the linear one with the largest weight; other experts may have "
        "had other reasons."
    )


# -- Pools ------------------------------------------------------------------------------------------------------------


def _of_pool(pool: PoolClassifier) -> Description:
    experts = [
        Expert(row.name, _expert_kind(pool, row.name), _number(row.log_loss), _number(row.accuracy), row.weight)
        for row in pool.table_
    ]
    experts.sort(key=lambda each: -each.weight)
    settings = []
    for name, expert in pool.experts_.items():
        temperature = pool.temperatures_[name]
        if not _is_one(temperature):
            settings.append(Setting(f"{name}: temperature in the pool", f"{temperature:.3g}", _sureness(temperature)))
        settings += [Setting(f"{name}: {each.name}", each.value, each.meaning) for each in _settings(expert)]
    return Description(_pool_sentences(pool, [each.name for each in experts if each.weight == 0]), experts, settings)


def _pool_sentences(pool: PoolClassifier, dropped: list[str]) -> list[str]:
    names = list(pool.weights_)
    if names == [FREQUENCIES]:
        text = (
            "The model gives the same answer for every row: the frequencies of the classes in training. No expert was "
            "clearly better than that on rows it had not seen, so the columns that it was given say little, or there "
            "were too few rows."
        )
        return [text]
    if len(names) == 1:
        text = f"The model is a pool of which one expert was kept, {names[0]}: {_expert_kind(pool, names[0])}."
    else:
        text = (
            f"The model is a pool of {len(names)} experts, different models of the same rows. It multiplies their "
            "probabilities, each raised to the power of the expert's weight, and scales the products so that they sum "
            "to one."
        )
    if pool.pool_result_.status == "equal":
        return [f"{text} Every class had one training row, so nothing could be held out, and all weights are equal."]
    text += (
        " Weights, log losses and accuracies come from training rows that the experts had not seen (cross-validation)."
    )
    if dropped:
        reason = "it helps little or there was no time for it"
        if len(dropped) > 1:
            reason = "they help little or there was no time for them"
        text += f" Not used, since {reason}: {', '.join(dropped)}."
    return [text]


def _expert_kind(pool: PoolClassifier, name: str) -> str:
    if name == FREQUENCIES:
        return "the same for every row: how frequent each class was in training"
    return _kind(pool.experts_.get(name)) or ""


# -- Single models ----------------------------------------------------------------------------------------------------


def _kind(classifier: Any) -> str | None:
    """What a classifier is, in words; None if that is not known."""
    if isinstance(classifier, NaiveBayesClassifier):
        return "naive Bayes: it counts how often features occur in each class"
    if isinstance(classifier, CentroidClassifier):
        return "a nearest centre: it compares the row with the mean of each class"
    tree = "" if getattr(classifier, "taxonomy_", None) is None else " along the tree"
    if isinstance(classifier, RecursiveRegularizationClassifier):
        way = "each label against the rest" if classifier.is_multilabel_ else "each class against the rest"
        lean = ", where the weights of a node lean on those of its parent" if tree else ""
        kind = "logistic regression" if classifier.loss == "logistic" else "a linear model"
        basis = _basis(classifier.hyperparameters_.kernel)
        return f"{kind}, {way}{tree}{lean}{basis}"
    if isinstance(classifier, LabelEmbeddingClassifier):
        k = len(classifier.embedding_.intercept_)
        return f"an embedding of the labels in {k} dimensions that the features predict, and a logistic model by it"
    if isinstance(classifier, TopDownClassifier):
        way = "one decision at every inner node of the tree, from the top down" if tree else "one decision"
        return f"logistic regression, {way}"
    if isinstance(classifier, KernelLogisticClassifier):
        way = "each class against the rest" if classifier.loss == "independent" else "all classes at once"
        return f"logistic regression, {way}{tree}{_basis(classifier.hyperparameters_.kernel)}"
    return None


def _basis(kernel: Any) -> str:
    """What answers go by, where it is not the features."""
    kernels = kernel.parts if isinstance(kernel, PerBlock) else () if kernel is None else (kernel,)
    return "" if all(isinstance(each, Linear) for each in kernels) else ", by the likeness of rows"


def _settings(classifier: Any) -> list[Setting]:
    """The hyperparameters of one model; of the variances of nodes the first ones."""
    if isinstance(classifier, NaiveBayesClassifier):
        temperature = classifier.temperature_
        return [
            Setting("smoothing", f"{classifier.smoothing_:.3g}", _SMOOTHING),
            Setting("temperature", f"{temperature:.3g}", _sureness(temperature)),
        ]
    if isinstance(classifier, CentroidClassifier):
        return [Setting("temperature", f"{classifier.temperature_:.3g}", _OF_COSINES)]
    if isinstance(classifier, TopDownClassifier):
        values = classifier.hyperparameters_
        levels = [_level(depth) for depth in range(len(values.variances))]
        return [
            *(
                Setting(f"{level}: variance", f"{value:.3g}", _VARIANCE)
                for level, value in zip(levels, values.variances, strict=True)
            ),
            *(
                Setting(f"{level}: temperature", f"{value:.3g}", _sureness(value))
                for level, value in zip(levels, values.temperatures, strict=True)
            ),
            Setting("variance of the intercepts", f"{values.intercept_variance:.3g}", _INTERCEPT),
        ]
    if isinstance(classifier, RecursiveRegularizationClassifier):
        return _of_recursive(classifier)
    if isinstance(classifier, KernelLogisticClassifier):
        parameters = classifier.hyperparameters_
        return [
            *_of_kernel(parameters.kernel),
            *(
                Setting(f"variance of {group}, relative", f"{value:.3g}", _RELATIVE)
                for group, value in list(parameters.variances.items())[:_GROUPS]
            ),
            Setting("variance of the intercepts", f"{parameters.intercept_variance:.3g}", _INTERCEPT),
            Setting("temperature", f"{parameters.temperature:.3g}", _sureness(parameters.temperature)),
        ]
    return []


def _of_recursive(classifier: RecursiveRegularizationClassifier) -> list[Setting]:
    """Variances, and what makes probabilities of predictors."""
    learned, parameters = classifier.C_, classifier.hyperparameters_
    values = learned if isinstance(learned, dict) else {"": learned}
    temperature = parameters.temperature
    settings = [
        *(
            Setting(f"C of {group}" if group else "C", f"{value:.3g}", _VARIANCE)
            for group, value in list(values.items())[:_GROUPS]
        ),
        *([] if _basis(parameters.kernel) == "" else _of_kernel(parameters.kernel)),
        Setting("variance of the intercepts", f"{parameters.intercept_variance:.3g}", _INTERCEPT),
        Setting("temperature", f"{temperature:.3g}", _sureness(temperature)),
    ]
    if classifier.is_multilabel_:
        settings.append(Setting("offset", f"{classifier.offset_:.3g}", _OFFSET))
    return settings


def _of_kernel(kernel: Any) -> list[Setting]:
    """The numbers of a kernel, or of the kernels that it is made of."""
    if isinstance(kernel, PerBlock):
        return [
            replace(setting, name=f"{setting.name} for the block {block!r}")
            for block in kernel.names
            for setting in _of_kernel(kernel[block])
        ]
    if isinstance(kernel, (Sum, Product)):
        return [setting for part in kernel.parts for setting in _of_kernel(part)]
    if not isinstance(kernel, Leaf):
        return []
    name = type(kernel).__name__
    values = {each.name: getattr(kernel, each.name) for each in fields(kernel) if not each.kw_only}
    return [
        Setting(f"{each.replace('_', ' ')} of the kernel {name}", _range(value), _OF_KERNELS.get(each, ""))
        for each, value in values.items()
    ]


def _range(value: Any) -> str:
    """A number, or the least and the largest of several."""
    numbers = np.unique(value)
    return " to ".join(f"{number:.3g}" for number in numbers[[0, -1][: len(numbers)]])


def _level(depth: int) -> str:
    return "first level of the tree" if depth == 0 else f"level {depth + 1} of the tree"


def _sureness(temperature: float) -> str:
    if _is_one(temperature):
        return "probabilities are left as they are"
    if temperature > 1:
        return "above 1: it was too sure of its answers, and probabilities are evened out"
    return "below 1: it was not sure enough of its answers, and probabilities are sharpened"


def _is_one(temperature: float) -> bool:
    """Whether a temperature changes next to nothing."""
    return 0.99 < temperature < 1.01


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
