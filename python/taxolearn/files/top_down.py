"""Fitted top-down classifiers as JSON and arrays, and back."""

from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from taxolearn.estimators.top_down import TopDownClassifier, branches_of, node_weights, set_node_weights
from taxolearn.estimators.top_down_nodes import NodeWeights, TopDownResult
from taxolearn.estimators.top_down_tuning import LevelParameters
from taxolearn.files.container import ContentError, Packer, Unpacker, expect
from taxolearn.files.estimators import pack_common, unpack_common
from taxolearn.fitting.fit import FitResult

__all__ = ["describe_top_down", "pack_top_down", "unpack_top_down"]

_WORDS = ("status", "method", "algorithm", "reason", "space", "precision")
_COUNTS = ("iterations", "products")
_NUMBERS = ("objective", "gap", "relative_gap", "kernel_bytes")
_PHASES = ("setup", "products", "likelihood", "vectors", "certificate", "total")


def pack_top_down(model: TopDownClassifier, packer: Packer, dtype: Any) -> dict[str, Any]:
    """Parameters and what was fitted; weights in the given type."""
    functions = node_weights(model)
    return pack_common(model, packer) | {
        "hyperparameters": packer.value(model.hyperparameters_.to_dict()),
        "fit": packer.value(asdict(model.result_)),
        "nodes": _pack_results(model.node_results_, packer),
        "functions": {
            "intercept": packer.array("intercept", functions.intercepts),
            "weights": packer.matrix("weights", functions.weights.astype(dtype, copy=False)),
        },
    }


def unpack_top_down(entry: Any, unpacker: Unpacker, version: int) -> TopDownClassifier:
    """The classifier, ready to predict."""
    model = TopDownClassifier()
    unpack_common(model, entry, unpacker, version)
    model.hyperparameters_ = _unpack_level_parameters(entry, unpacker)
    model.result_ = TopDownResult(**expect(unpacker.value(entry["fit"]), dict))
    model.node_results_ = _unpack_results(entry["nodes"], unpacker)
    model.n_iter_ = max((each.iterations for each in model.node_results_.values()), default=0)
    n_functions = branches_of(model.taxonomy_, len(model.classes_)).n_functions
    weights = unpacker.matrix(entry["functions"]["weights"])
    intercepts = unpacker.array(entry["functions"]["intercept"], n_functions).astype(np.float64)
    if weights.shape != (model.n_features_in_, n_functions) or not np.isfinite(intercepts).all():
        raise ContentError("it has functions that do not fit together")
    if not sp.issparse(weights):
        weights = np.ascontiguousarray(weights)
    set_node_weights(model, NodeWeights(weights, intercepts))
    return model


def describe_top_down(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about it."""
    return {
        "functions": "top-down",
        "hyperparameters": _unpack_level_parameters(entry, unpacker).to_dict(),
        "fit": expect(unpacker.value(entry["fit"]), dict),
    }


def _unpack_level_parameters(entry: Any, unpacker: Unpacker) -> LevelParameters:
    return LevelParameters(**expect(unpacker.value(entry["hyperparameters"]), dict))


def _pack_results(results: dict[Any, FitResult], packer: Packer) -> Any:
    """A row of numbers for each node; what is said in words is mostly the same for many of them."""
    words: dict[tuple[str, ...], int] = {}
    rows = []
    for each in results.values():
        said = words.setdefault(tuple(getattr(each, name) for name in _WORDS), len(words))
        numbers = [getattr(each, name) for name in _COUNTS + _NUMBERS]
        rows.append([said, *numbers, *(each.timings[phase] for phase in _PHASES)])
    shape = (len(rows), 1 + len(_COUNTS + _NUMBERS + _PHASES))
    return {
        "names": [packer.value(name) for name in results],
        "words": [list(said) for said in words],
        "numbers": packer.array("nodes", np.array(rows, dtype=np.float64).reshape(shape)),
    }


def _unpack_results(entry: Any, unpacker: Unpacker) -> dict[Any, FitResult]:
    names = [unpacker.value(name) for name in expect(entry["names"], list)]
    words = [[expect(word, str) for word in said] for said in expect(entry["words"], list)]
    rows = unpacker.array(entry["numbers"], len(names), 1 + len(_COUNTS + _NUMBERS + _PHASES))
    out = {}
    for name, (said, *numbers) in zip(names, rows.tolist(), strict=True):
        fields: dict[str, Any] = dict(zip(_WORDS, words[int(said)], strict=True))
        fields |= {field: int(value) for field, value in zip(_COUNTS, numbers, strict=False)}
        fields |= dict(zip(_NUMBERS, numbers[len(_COUNTS) :], strict=False))
        timings = dict(zip(_PHASES, numbers[len(_COUNTS + _NUMBERS) :], strict=True))
        out[name] = FitResult(**fields, ranks=(), timings=timings)
    return out
