"""Fitted classifiers of hierarchical Bayes as JSON and arrays, and back."""

from dataclasses import asdict
from typing import Any

import numpy as np

from taxolearn.estimators.hierarchical_bayes import HierarchicalBayesClassifier
from taxolearn.files.container import ContentError, Packer, Unpacker, expect
from taxolearn.files.estimators import (
    pack_common,
    pack_functions,
    unpack_common,
    unpack_functions,
    unpack_hyperparameters,
)
from taxolearn.files.label_form import pack_label_form, unpack_label_form
from taxolearn.fitting.bayes import BayesResult, GammaValues, WeightPosterior
from taxolearn.fitting.fit import FitResult
from taxolearn.fitting.functions import LinearFunctions

__all__ = ["describe_bayes", "pack_bayes", "unpack_bayes"]


def pack_bayes(model: HierarchicalBayesClassifier, packer: Packer, dtype: Any) -> dict[str, Any]:
    """Parameters and what was fitted; weights and their variances in the given type."""
    posterior, form = model.posterior_, model.label_form_
    return pack_common(model, packer) | {
        "functions": pack_functions(LinearFunctions(model.coef_, model.intercept_, model._link), packer, dtype),
        "hyperparameters": packer.value(model.hyperparameters_.to_dict()),
        "fit": None if model.result_ is None else packer.value(asdict(model.result_)),
        "inference": packer.value(asdict(model.bayes_result_)),
        "label_form": None if form is None else pack_label_form(form, packer),
        "posterior": {
            "coef": packer.array("coef_variances", posterior.coef_variances.astype(dtype)),
            "intercept": packer.array("intercept_variances", posterior.intercept_variances),
            "names": packer.value(posterior.precisions.names),
            "precisions": _pack_gamma(posterior.precisions, "precisions", packer),
            "prior": _pack_gamma(posterior.prior, "prior", packer),
        },
        "variances": packer.array("variances", model._state[1]),
    }


def unpack_bayes(entry: Any, unpacker: Unpacker, version: int) -> HierarchicalBayesClassifier:
    """The classifier, ready to predict."""
    model = HierarchicalBayesClassifier()
    form = entry["label_form"]
    unpack_common(model, entry, unpacker, version, are_leaves=form is None)
    n_classes = len(model.classes_)
    model.label_form_ = None if form is None else unpack_label_form(form, unpacker, n_classes)
    model.hyperparameters_ = unpack_hyperparameters(entry, unpacker, version)
    fit = unpacker.value(entry["fit"])
    certified: Any = None if fit is None else FitResult(**fit | {"ranks": tuple(fit["ranks"])})
    model.result_ = certified
    model.bayes_result_ = BayesResult(**expect(unpacker.value(entry["inference"]), dict))
    result = model.bayes_result_
    model.n_iter_ = expect(result.rounds if fit is None else result.iterations, int)
    functions = unpack_functions(model, entry, unpacker)
    if not isinstance(functions, LinearFunctions):
        raise ContentError("it has functions of another kind")
    model.coef_, model.intercept_ = functions.coef, functions.intercept
    posterior = expect(entry["posterior"], dict)
    names = tuple(expect(unpacker.value(posterior["names"]), tuple))
    model.posterior_ = WeightPosterior(
        _positive(unpacker.array(posterior["coef"], n_classes, model.n_features_in_)),
        _positive(unpacker.array(posterior["intercept"], n_classes)),
        _unpack_gamma(posterior["precisions"], names, unpacker),
        _unpack_gamma(posterior["prior"], names, unpacker),
    )
    variances = unpacker.array(entry["variances"], *model.posterior_.precisions.rate.shape).astype(np.float64)
    model._state = (names, _positive(variances))
    return model


def describe_bayes(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about it."""
    return {
        "functions": expect(entry["functions"]["kind"], str),
        "hyperparameters": unpack_hyperparameters(entry, unpacker, version).to_dict(),
        "inference": expect(unpacker.value(entry["inference"]), dict),
        "several_labels": entry["label_form"] is not None,
    }


def _pack_gamma(values: GammaValues, name: str, packer: Packer) -> dict[str, Any]:
    return {
        "shape": packer.array(f"{name}_shape", values.shape),
        "rate": packer.array(f"{name}_rate", values.rate),
    }


def _unpack_gamma(entry: Any, names: tuple[Any, ...], unpacker: Unpacker) -> GammaValues:
    shape = unpacker.array(entry["shape"], len(names)).astype(np.float64)
    rate = unpacker.array(entry["rate"], None, len(names)).astype(np.float64)
    if not ((shape > 0).all() and (rate > 0).all()):
        raise ContentError("it has precisions that are not positive")
    return GammaValues(names, shape, rate)


def _positive(values: Any) -> Any:
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ContentError("it has variances that are negative or not finite")
    return values
