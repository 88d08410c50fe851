"""Fitted classifiers by label embeddings as JSON and arrays, and back."""

from collections.abc import Callable
from typing import Any

import numpy as np

from taxolearn.estimators.embedding_classifier import LabelEmbeddingClassifier
from taxolearn.estimators.embedding_decoders import DECODERS
from taxolearn.estimators.label_embedding import LabelEmbedding
from taxolearn.estimators.random_features import RandomFeatures
from taxolearn.files.container import ContentError, Packer, Unpacker, expect
from taxolearn.files.estimators import pack_common, unpack_common

__all__ = ["describe_label_embedding", "pack_label_embedding", "unpack_label_embedding"]

_OF_FIT = ("taxonomy", "random_state")  # arguments that are not stored with an embedding


def pack_label_embedding(
    model: LabelEmbeddingClassifier, packer: Packer, dtype: Any, pack_model: Callable[[Any, Packer, Any], Any]
) -> dict[str, Any]:
    """Parameters and what was fitted, matrices in the given type; ``pack_model`` packs the decoder."""
    embedding, features = model.embedding_, model.random_features_
    arguments = {name: value for name, value in embedding.get_params(deep=False).items() if name not in _OF_FIT}
    common = pack_common(model, packer)
    for name in ("embedding", "decoder"):
        common["parameters"].pop(name, None)
    return common | {
        "embedding": {
            "arguments": packer.value(arguments),
            "ridge": float(embedding.ridge_),
            "components": packer.array("components", embedding.components_.astype(dtype)),
            "weights": packer.array("embedding_weights", embedding.coef_.T.astype(dtype)),
            "intercept": packer.array("embedding_intercept", embedding.intercept_),
            "singular_values": packer.array("singular_values", embedding.singular_values_),
            "mean": packer.array("embedding_mean", embedding.mean_),
            "whitening": packer.array("whitening", embedding.whitening_),
            "class_counts": packer.array("class_counts", embedding.class_counts_),
        },
        "random_features": None
        if features is None
        else {
            "frequencies": packer.array("frequencies", features.frequencies),
            "shift": packer.array("shift", features.shift),
            "bandwidth": float(features.bandwidth),
        },
        "decoder": pack_model(model.decoder_, packer, dtype),
    }


def unpack_label_embedding(
    entry: Any, unpacker: Unpacker, version: int, unpack_model: Callable[[Any, Unpacker, int], Any]
) -> LabelEmbeddingClassifier:
    """The classifier, ready to predict; ``unpack_model`` makes the decoder."""
    model = LabelEmbeddingClassifier()
    decoder = unpack_model(expect(entry["decoder"], dict), unpacker, version)
    if not isinstance(decoder, DECODERS):
        raise ContentError("its decoder is of another kind")
    model.decoder_ = decoder
    unpack_common(model, entry, unpacker, version, are_leaves=not getattr(decoder, "is_multilabel_", False))
    if decoder.classes_.tolist() != model.classes_.tolist():
        raise ContentError("its decoder has other classes")
    model.embedding_ = _unpack_embedding(entry["embedding"], model, unpacker)
    features = entry["random_features"]
    model.random_features_ = None
    width = len(model.embedding_.intercept_)
    if features is not None:
        frequencies = unpacker.array(features["frequencies"], width, None)
        bandwidth = expect(features["bandwidth"], float)
        if not bandwidth > 0:
            raise ContentError("its bandwidth is not positive")
        shift = unpacker.array(features["shift"], frequencies.shape[1])
        model.random_features_ = RandomFeatures(frequencies, shift, bandwidth)
        width = frequencies.shape[1]
    if decoder.n_features_in_ != width:
        raise ContentError("its decoder has another number of features than its embedding")
    return model


def _unpack_embedding(entry: Any, model: LabelEmbeddingClassifier, unpacker: Unpacker) -> LabelEmbedding:
    embedding = LabelEmbedding(**expect(unpacker.value(entry["arguments"]), dict))
    embedding.taxonomy = embedding.taxonomy_ = model.taxonomy_
    embedding.classes_, embedding.n_features_in_ = model.classes_, model.n_features_in_
    if hasattr(model, "blocks_in_"):
        embedding.blocks_in_ = model.blocks_in_
    embedding.label_form_ = getattr(model.decoder_, "label_form_", None)
    embedding.ridge_ = expect(entry["ridge"], float)
    embedding.coef_ = unpacker.array(entry["weights"], model.n_features_in_, None).T
    k = len(embedding.coef_)
    embedding.components_ = unpacker.array(entry["components"], len(model.classes_), k)
    for name, key, shape in (
        ("intercept_", "intercept", (k,)),
        ("singular_values_", "singular_values", (k,)),
        ("mean_", "mean", (k,)),
        ("whitening_", "whitening", (k, k)),
        ("class_counts_", "class_counts", (len(model.classes_),)),
    ):
        values = unpacker.array(entry[key], *shape)
        if not np.isfinite(values).all():
            raise ContentError(f"its {key} is not finite")
        setattr(embedding, name, values)
    return embedding


def describe_label_embedding(
    entry: Any, unpacker: Unpacker, version: int, describe_model: Callable[[Any, Unpacker, int], dict[str, Any]]
) -> dict[str, Any]:
    """What ``read_report`` says about it: what it says of the decoder, and the embedding's dimension and ridge."""
    decoder = describe_model(expect(entry["decoder"], dict), unpacker, version)
    components = unpacker.array(entry["embedding"]["components"], None, None)
    return decoder | {
        "functions": "label embedding",
        "embedding": {"components": components.shape[1], "ridge": expect(entry["embedding"]["ridge"], float)},
    }
