"""Fitted classifiers of recursive regularization as JSON and arrays, and back."""

from typing import Any

import numpy as np

from taxolearn.estimators.recursive import RecursiveRegularizationClassifier, variances_by_group
from taxolearn.files.container import ContentError, Packer, Unpacker, expect
from taxolearn.files.estimators import describe_classifier, pack_common, pack_fit, unpack_common, unpack_fit
from taxolearn.files.label_form import pack_label_form, unpack_label_form
from taxolearn.fitting.functions import LinearFunctions

__all__ = ["describe_recursive", "pack_recursive", "unpack_recursive"]


def pack_recursive(model: RecursiveRegularizationClassifier, packer: Packer, dtype: Any) -> dict[str, Any]:
    """Parameters and what was fitted; weights in the given type."""
    form = model.label_form_
    return (
        pack_common(model, packer)
        | pack_fit(model, LinearFunctions(model.coef_, model.intercept_), packer, dtype)
        | {
            "label_form": None if form is None else pack_label_form(form, packer),
            "offset": float(model.offset_),
            "thresholds": None if model.thresholds_ is None else packer.array("thresholds", model.thresholds_),
        }
    )


def unpack_recursive(entry: Any, unpacker: Unpacker, version: int) -> RecursiveRegularizationClassifier:
    """The classifier, ready to predict."""
    model = RecursiveRegularizationClassifier()
    form = entry["label_form"]
    unpack_common(model, entry, unpacker, version, are_leaves=form is None)
    functions = unpack_fit(model, entry, unpacker, version)
    if not isinstance(functions, LinearFunctions):
        raise ContentError("it has functions that are not linear")
    model.coef_, model.intercept_ = functions.coef, functions.intercept
    model.C_ = variances_by_group(model.hyperparameters_)
    n_classes = len(model.classes_)
    model.label_form_ = None if form is None else unpack_label_form(form, unpacker, n_classes)
    model.offset_ = expect(entry["offset"], float)
    if not np.isfinite(model.offset_):
        raise ContentError("its offset is not finite")
    thresholds = entry["thresholds"]
    model.thresholds_ = None if thresholds is None else unpacker.array(thresholds, n_classes).astype(np.float64)
    return model


def describe_recursive(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about it."""
    return describe_classifier(entry, unpacker, version) | {"several_labels": entry["label_form"] is not None}
