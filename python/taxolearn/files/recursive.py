"""Fitted classifiers of recursive regularization as JSON and arrays, and back."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.estimators.recursive import RecursiveRegularizationClassifier
from taxolearn.estimators.recursive_variances import variances_by_group
from taxolearn.files.container import ContentError, Packer, Unpacker, expect
from taxolearn.files.estimators import (
    describe_classifier,
    pack_common,
    pack_fit,
    pack_functions,
    unpack_common,
    unpack_fit,
    unpack_functions,
)
from taxolearn.files.label_form import pack_label_form, unpack_label_form
from taxolearn.fitting.node_functions import NodeFunctions

__all__ = ["describe_recursive", "pack_recursive", "unpack_recursive"]


def pack_recursive(model: RecursiveRegularizationClassifier, packer: Packer, dtype: Any) -> dict[str, Any]:
    """Parameters and what was fitted; weights in the given type."""
    form, functions = model.label_form_, model._functions
    return (
        pack_common(model, packer)
        | pack_fit(model, packer)
        | {
            "functions": _pack_nodes(functions, packer, dtype)
            if isinstance(functions, NodeFunctions)
            else pack_functions(functions, packer, dtype),
            "label_form": None if form is None else pack_label_form(form, packer),
            "graph": packer.value(model.graph_),
            "offset": float(model.offset_),
            "thresholds": None if model.thresholds_ is None else packer.array("thresholds", model.thresholds_),
        }
    )


def unpack_recursive(entry: Any, unpacker: Unpacker, version: int) -> RecursiveRegularizationClassifier:
    """The classifier, ready to predict."""
    model = RecursiveRegularizationClassifier()
    form = entry["label_form"]
    unpack_common(model, entry, unpacker, version, are_leaves=form is None)
    unpack_fit(model, entry, unpacker, version)
    if entry["functions"]["kind"] == "nodes":
        model._functions = _unpack_nodes(entry["functions"], unpacker, len(model.classes_), model.n_features_in_)
    else:
        model._functions = unpack_functions(model, entry, unpacker)
    model.graph_ = unpacker.value(entry.get("graph"))  # files of before have none
    if model.graph_ is not None:
        model.graph_.index(model.classes_.tolist(), argument="classes")
    model.C_ = variances_by_group(model.hyperparameters_)
    n_classes = len(model.classes_)
    model.label_form_ = None if form is None else unpack_label_form(form, unpacker, n_classes)
    model.offset_ = expect(entry["offset"], float)
    if not np.isfinite(model.offset_):
        raise ContentError("its offset is not finite")
    thresholds = entry["thresholds"]
    model.thresholds_ = None if thresholds is None else unpacker.array(thresholds, n_classes).astype(np.float64)
    return model


def _pack_nodes(functions: NodeFunctions, packer: Packer, dtype: Any) -> dict[str, Any]:
    """By features, so that a prediction reads the rows of the features it has."""
    parents = functions.parents
    return {
        "kind": "nodes",
        "weights": packer.matrix("weights", functions.weights.T.tocsr().astype(dtype, copy=False)),
        "intercepts": packer.array("intercepts", np.asarray(functions.intercepts, dtype=np.float64)),
        "parents": None if parents is None else packer.array("parents", parents.astype(np.int64)),
        "order": packer.array("order", functions.order.astype(np.int64)),
    }


def _unpack_nodes(entry: Any, unpacker: Unpacker, n_classes: int, n_features: int) -> NodeFunctions:
    weights = unpacker.matrix(entry["weights"])
    n_nodes = int(weights.shape[1])
    intercepts = unpacker.array(entry["intercepts"], n_nodes).astype(np.float64)
    order = unpacker.array(entry["order"], n_classes, kinds="i").astype(np.intp)
    parents = None
    if entry["parents"] is not None:
        parents = unpacker.array(entry["parents"], n_nodes, kinds="i").astype(np.int64)
    fits = n_nodes == n_classes if parents is None else _is_tree(parents, n_classes)
    is_order = np.array_equal(np.sort(order), np.arange(n_classes))
    if not (sp.issparse(weights) and weights.shape[0] == n_features and fits and is_order):
        raise ContentError("it has functions that do not fit together")
    if not np.isfinite(intercepts).all():
        raise ContentError("its intercepts are not finite")
    return NodeFunctions(sp.csr_array(weights.T), intercepts, parents, order)


def _is_tree(parents: npt.NDArray[np.int64], n_classes: int) -> bool:
    """Whether nodes come after their parents, and the classes last."""
    numbers = np.arange(len(parents))
    is_leaf = np.bincount(parents[parents >= 0], minlength=len(parents)) == 0
    return bool(
        len(parents) > n_classes
        and parents[0] == -1
        and (parents[1:] >= 0).all()
        and (parents < numbers).all()
        and np.array_equal(is_leaf, numbers >= len(parents) - n_classes)
    )


def describe_recursive(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about it."""
    return describe_classifier(entry, unpacker, version) | {"several_labels": entry["label_form"] is not None}
