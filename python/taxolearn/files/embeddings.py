"""Sentence embeddings in model files: the name of their model, and by what to recognize it, but not the model."""

import os
from typing import Any

import numpy as np

from taxolearn.features.embeddings import SentenceEmbeddings
from taxolearn.files.container import ContentError, NotStorableError, Packer, Unpacker, expect

__all__ = ["pack_embeddings", "unpack_embeddings"]


def pack_embeddings(transformer: SentenceEmbeddings, packer: Packer) -> dict[str, Any]:
    """Settings, version and fingerprint. The folder of the cache is not stored, only that there is none."""
    if not isinstance(transformer.model, (str, os.PathLike)):
        raise NotStorableError(
            f"SentenceEmbeddings has the model {transformer.model!r}, which a model file cannot hold; use the name or "
            "the path of a model, or embed before the pipeline and save the classifier alone"
        )
    return {
        "kind": "SentenceEmbeddings",
        "model": os.fspath(transformer.model),
        "normalize": bool(transformer.normalize),
        "batch_size": int(transformer.batch_size),
        "has_cache": transformer.cache is not None,
        "version": transformer.version_,
        "fingerprint": packer.array("fingerprint", transformer.fingerprint_),
    }


def unpack_embeddings(entry: Any, unpacker: Unpacker) -> SentenceEmbeddings:
    """The transformer. Its model is loaded when it is needed, and then compared with the fingerprint."""
    embeddings = SentenceEmbeddings(
        expect(entry["model"], str),
        normalize=expect(entry["normalize"], bool),
        batch_size=expect(entry["batch_size"], int),
        cache="auto" if expect(entry["has_cache"], bool) else None,
    )
    embeddings.version_ = expect(entry["version"], str)
    fingerprint = unpacker.array(entry["fingerprint"], None, None)
    if 0 in fingerprint.shape or not np.isfinite(fingerprint).all() or embeddings.batch_size < 1:
        raise ContentError("its embeddings are wrong")
    embeddings.fingerprint_ = fingerprint.astype(np.float32)
    return embeddings
