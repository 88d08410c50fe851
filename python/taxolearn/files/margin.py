"""Fitted max-margin classifiers as JSON and arrays, and back."""

from dataclasses import asdict
from typing import Any

import numpy as np

from taxolearn.estimators.margin import MaxMarginTreeClassifier, label_order
from taxolearn.files.container import ContentError, Packer, Unpacker, expect
from taxolearn.files.estimators import pack_common, pack_functions, unpack_common, unpack_functions
from taxolearn.files.label_form import pack_label_form, unpack_label_form
from taxolearn.fitting.margin import MarginResult

__all__ = ["describe_margin", "pack_margin", "unpack_margin"]


def pack_margin(model: MaxMarginTreeClassifier, packer: Packer, dtype: Any) -> dict[str, Any]:
    """Parameters and what was fitted; weights in the given type."""
    assert model.label_form_ is not None
    return pack_common(model, packer) | {
        "label_form": pack_label_form(model.label_form_, packer),
        "functions": pack_functions(model.functions_, packer, dtype),
        "fit": packer.value(asdict(model.result_)),
        "C": float(model.C_),
        "held_out_losses": None if model.held_out_losses_ is None else packer.value(model.held_out_losses_),
        "calibration": None if model.calibration_ is None else packer.value(model.calibration_),
        "thresholds": None if model.thresholds_ is None else packer.array("thresholds", model.thresholds_),
    }


def unpack_margin(entry: Any, unpacker: Unpacker, version: int) -> MaxMarginTreeClassifier:
    """The classifier, ready to predict."""
    model = MaxMarginTreeClassifier()
    unpack_common(model, entry, unpacker, version, are_leaves=False)
    n_classes = len(model.classes_)
    model.label_form_ = unpack_label_form(entry["label_form"], unpacker, n_classes)
    model.result_ = MarginResult(**expect(unpacker.value(entry["fit"]), dict))
    model.n_iter_ = expect(model.result_.iterations, int)
    model.C_ = float(expect(entry["C"], float))
    losses, calibration = entry["held_out_losses"], entry["calibration"]
    model.held_out_losses_ = None if losses is None else expect(unpacker.value(losses), dict)
    model.calibration_ = None if calibration is None else expect(unpacker.value(calibration), tuple)
    if model.calibration_ is not None and not (len(model.calibration_) == 2 and np.isfinite(model.calibration_).all()):
        raise ContentError("its calibration is not two finite numbers")
    thresholds = entry["thresholds"]
    model.thresholds_ = None if thresholds is None else unpacker.array(thresholds, n_classes).astype(np.float64)
    n_pairs = int((label_order(model.taxonomy_, model.classes_)[1] >= 0).sum())
    model.functions_ = unpack_functions(model, entry, unpacker, n_classes + n_pairs)
    return model


def describe_margin(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about it."""
    return {
        "functions": expect(entry["functions"]["kind"], str),
        "hyperparameters": {"C": expect(entry["C"], float)},
        "fit": dict(entry["fit"]["mapping"]),
        "several_labels": True,
    }
