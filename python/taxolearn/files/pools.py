"""Naive Bayes, centres of classes and pools of classifiers as JSON and arrays, and back."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from taxolearn.estimators.centroid import CentroidClassifier
from taxolearn.estimators.naive_bayes import NaiveBayesClassifier
from taxolearn.estimators.pool import PoolClassifier, PoolRow, PoolTable
from taxolearn.estimators.pooling.experts import FREQUENCIES
from taxolearn.estimators.pooling.weights import PoolResult
from taxolearn.files.container import ContentError, NotStorableError, Packer, Unpacker, expect
from taxolearn.files.estimators import pack_common, unpack_common

__all__ = [
    "describe_centroid",
    "describe_naive_bayes",
    "describe_pool",
    "pack_centroid",
    "pack_naive_bayes",
    "pack_pool",
    "unpack_centroid",
    "unpack_naive_bayes",
    "unpack_pool",
]


def _finite(array: Any) -> Any:
    if not np.isfinite(array).all():
        raise ContentError("it has numbers that are not finite")
    return array


def _positive(value: Any) -> float:
    if not 0 < expect(value, float) < np.inf:
        raise ContentError("it has a smoothing or a temperature that is not positive")
    return float(value)


def _weights(entry: Any, unpacker: Unpacker, model: Any) -> Any:
    """A matrix of a row for each class and a column for each feature."""
    weights = unpacker.matrix(entry)
    if weights.shape != (len(model.classes_), model.n_features_in_):
        raise ContentError("it has another number of features than weights")
    return weights


# -- Naive Bayes ------------------------------------------------------------------------------------------------------


def pack_naive_bayes(model: NaiveBayesClassifier, packer: Packer, dtype: Any) -> dict[str, Any]:
    """Parameters and what was fitted; weights in the given type."""
    return pack_common(model, packer) | {
        "smoothing": float(model.smoothing_),
        "temperature": float(model.temperature_),
        "log_ratios": packer.matrix("log_ratios", model.log_ratios_.astype(dtype, copy=False)),
        "length_coef": packer.array("length_coef", model.length_coef_),
        "intercept": packer.array("intercept", model.intercept_),
    }


def unpack_naive_bayes(entry: Any, unpacker: Unpacker, version: int) -> NaiveBayesClassifier:
    """The classifier, ready to predict."""
    model = NaiveBayesClassifier()
    unpack_common(model, entry, unpacker, version)
    n_classes = len(model.classes_)
    model.smoothing_, model.temperature_ = _positive(entry["smoothing"]), _positive(entry["temperature"])
    model.log_ratios_ = _weights(entry["log_ratios"], unpacker, model)
    if not sp.issparse(model.log_ratios_):
        raise ContentError("it has weights of naive Bayes that are not sparse")
    model.length_coef_ = _finite(unpacker.array(entry["length_coef"], n_classes))
    model.intercept_ = _finite(unpacker.array(entry["intercept"], n_classes))
    return model


def describe_naive_bayes(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about it."""
    values = {name: expect(entry[name], float) for name in ("smoothing", "temperature")}
    return {"functions": "naive Bayes", "hyperparameters": values, "fit": {}}


# -- Centres of classes -----------------------------------------------------------------------------------------------


def pack_centroid(model: CentroidClassifier, packer: Packer, dtype: Any) -> dict[str, Any]:
    """Parameters and what was fitted; weights in the given type."""
    return pack_common(model, packer) | {
        "temperature": float(model.temperature_),
        "centroids": packer.matrix("centroids", model.centroids_.astype(dtype, copy=False)),
    }


def unpack_centroid(entry: Any, unpacker: Unpacker, version: int) -> CentroidClassifier:
    """The classifier, ready to predict."""
    model = CentroidClassifier()
    unpack_common(model, entry, unpacker, version)
    model.temperature_ = _positive(entry["temperature"])
    model.centroids_ = _weights(entry["centroids"], unpacker, model)
    return model


def describe_centroid(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about it."""
    values = {"temperature": expect(entry["temperature"], float)}
    return {"functions": "nearest centre", "hyperparameters": values, "fit": {}}


# -- Pools ------------------------------------------------------------------------------------------------------------


def pack_pool(
    model: PoolClassifier, packer: Packer, dtype: Any, pack_model: Callable[[Any, Packer, Any], Any]
) -> dict[str, Any]:
    """Parameters and what was fitted; ``pack_model`` packs its experts."""

    def pack_expert(name: str, expert: Any) -> list[Any]:
        try:
            return [name, pack_model(expert, packer, dtype)]
        except NotStorableError as error:
            raise NotStorableError(f"the pool has the expert {name!r}, {error}") from None

    return pack_common(model, packer) | {
        "experts": [pack_expert(name, expert) for name, expert in model.experts_.items()],
        "weights": packer.value(model.weights_),
        "temperatures": packer.value(model.temperatures_),
        "uniform_shares": packer.value(model._uniform_shares),
        "floor": float(model._floor),
        "prior_share": float(model._prior_share),
        "log_prior": packer.array("log_prior", model._log_prior),
        "mean": _pack_scaling("mean", model.mean_, packer),
        "scale": _pack_scaling("scale", model.scale_, packer),
        "result": packer.value(asdict(model.pool_result_)),
        "table": [packer.value(asdict(row)) for row in model.table_],
        "skipped": list(model.skipped_),
        "views": [[name, list(blocks)] for name, blocks in model.views_.items()],
        "block_variances": packer.value(model.block_variances_),
        "cv_log_loss": packer.value(float(model.cv_log_loss_)),
    }


def unpack_pool(
    entry: Any, unpacker: Unpacker, version: int, unpack_model: Callable[[Any, Unpacker, int], Any]
) -> PoolClassifier:
    """The classifier, ready to predict; ``unpack_model`` makes its experts."""
    model = PoolClassifier()
    unpack_common(model, entry, unpacker, version)
    n_classes = len(model.classes_)
    model.experts_ = {
        expect(name, str): unpack_model(expect(expert, dict), unpacker, version)
        for name, expert in expect(entry["experts"], list)
    }
    model.weights_ = _numbers(entry["weights"], unpacker)
    model.temperatures_ = _numbers(entry["temperatures"], unpacker)
    model._uniform_shares = _numbers(entry["uniform_shares"], unpacker)
    model._floor = _positive(entry["floor"])
    model._prior_share = _positive(entry["prior_share"])
    model._log_prior = _finite(unpacker.array(entry["log_prior"], n_classes))
    model.mean_, model.scale_ = (_unpack_scaling(entry[name], model, unpacker) for name in ("mean", "scale"))
    model.pool_result_ = PoolResult(**expect(unpacker.value(entry["result"]), dict))
    model.table_ = PoolTable(PoolRow(**expect(unpacker.value(row), dict)) for row in expect(entry["table"], list))
    model.skipped_ = [expect(name, str) for name in expect(entry.get("skipped", []), list)]
    model.views_ = {
        expect(name, str): tuple(expect(block, str) for block in expect(blocks, list))
        for name, blocks in expect(entry.get("views", []), list)
    }
    variances = entry.get("block_variances")
    model.block_variances_ = None if variances is None else _numbers(variances, unpacker)
    model.cv_log_loss_ = expect(unpacker.value(entry["cv_log_loss"]), float)
    _check_pool(model)
    return model


def describe_pool(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about it."""
    result = expect(unpacker.value(entry["result"]), dict)
    rows = [expect(unpacker.value(row), dict) for row in expect(entry["table"], list)]
    return {
        "functions": "pool",
        "hyperparameters": {name: expect(unpacker.value(entry[name]), dict) for name in ("weights", "temperatures")},
        "experts": [{name: _without_nan(value) for name, value in row.items()} for row in rows],
        "fit": {name: _without_nan(value) for name, value in result.items() if name != "weights"},
    }


def _pack_scaling(name: str, value: Any, packer: Packer) -> Any:
    """An array, or one for each of some blocks."""
    if isinstance(value, dict):
        return {"blocks": [[block, packer.array(f"{name} of {block}", each)] for block, each in value.items()]}
    return None if value is None else packer.array(name, value)


def _unpack_scaling(entry: Any, model: PoolClassifier, unpacker: Unpacker) -> Any:
    if entry is None:
        return None
    counts = getattr(model, "blocks_in_", None)
    if counts is None:
        return _finite(unpacker.array(entry, model.n_features_in_))
    blocks = expect(entry["blocks"], list)
    if not {name for name, _ in blocks} <= set(counts):
        raise ContentError("it has scales of blocks that there are not")
    return {name: _finite(unpacker.array(each, counts[name])) for name, each in blocks}


def _without_nan(value: Any) -> Any:
    """None for a number that nobody knows, so that JSON can hold it."""
    return None if isinstance(value, float) and np.isnan(value) else value


def _numbers(entry: Any, unpacker: Unpacker) -> dict[str, float]:
    values = expect(unpacker.value(entry), dict)
    if not all(type(name) is str and type(value) is float and 0 <= value < np.inf for name, value in values.items()):
        raise ContentError("it has weights or temperatures of experts that are wrong")
    return values


def _is_scaling(mean: Any, scale: Any) -> bool:
    if isinstance(mean, dict):
        return isinstance(scale, dict) and set(mean) == set(scale) and all((each > 0).all() for each in scale.values())
    return (mean is None) == (scale is None) and (scale is None or bool((scale > 0).all()))


def _features_seen(model: PoolClassifier, expert: str) -> int:
    """Features of the blocks that the expert sees, -1 if there are no such blocks."""
    blocks = getattr(model, "blocks_in_", {})
    names = model.views_.get(expert)
    if names is None:
        return int(model.n_features_in_)
    return sum(blocks[name] for name in names) if names and set(names) <= set(blocks) else -1


def _check_pool(model: PoolClassifier) -> None:
    names = set(model.experts_)
    is_valid = (
        set(model.weights_) - {FREQUENCIES} == names
        and set(model.temperatures_) == names == set(model._uniform_shares)
        and all(value > 0 for value in model.temperatures_.values())
        and all(value < 1 for value in model._uniform_shares.values())
        and _is_scaling(model.mean_, model.scale_)
        and model._floor * len(model.classes_) <= 1
        and model._prior_share < 1
        and all(
            each.n_features_in_ == _features_seen(model, name) and np.isin(each.classes_, model.classes_).all()
            for name, each in model.experts_.items()
        )
    )
    if not is_valid:
        raise ContentError("it has experts that do not fit together")
