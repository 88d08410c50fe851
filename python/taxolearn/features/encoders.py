"""Sentence models: what turns a list of texts into an array, by the name or the path of a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Encoder", "load_encoder"]

Encoder = Callable[[list[str]], Any]
_ELSE = (
    "or give a Python function as the model, or numbers that other software has computed (embedding_columns of "
    "TableFeatures, --embedding-columns of the command line)"
)
_LONGEST = 512  # tokens of a text for an ONNX model whose tokenizer does not say


def load_encoder(model: Any, n_threads: int) -> tuple[Encoder, str]:
    """What embeds texts, and the version of what does so.

    Parameters
    ----------
    model : str, path or callable
        As for ``SentenceEmbeddings``.
    n_threads : int
        Of the computations; functions of users look after their threads themselves.
    """
    if not isinstance(model, (str, os.PathLike)):
        if hasattr(model, "encode"):
            return model.encode, type(model).__name__
        if callable(model):
            return model, "function"
        raise TypeError(
            f"SentenceEmbeddings: model must be a name, a path or a function, got {type(model).__name__} {model!r}"
        )
    name = os.fspath(model)
    path = Path(name).expanduser()
    is_path = isinstance(model, os.PathLike) or path.is_absolute() or name.startswith((".", "~"))
    is_file = path.suffix == ".onnx"
    if (is_path or is_file) and not path.exists():
        raise ValueError(f"SentenceEmbeddings: there is no sentence model at {name!r}; give the path where it is")
    if is_file:
        return _onnx(path, n_threads), f"onnxruntime {version('onnxruntime')}"
    encode = _sentence_transformer(str(path) if path.exists() else name)
    return _WithThreads(encode, n_threads), f"sentence-transformers {version('sentence-transformers')}"


class _WithThreads:
    """Embeds by torch with so many threads, and leaves their number as it was."""

    def __init__(self, encode: Encoder, n_threads: int) -> None:
        self._encode, self._n_threads = encode, n_threads

    def __call__(self, texts: list[str]) -> Any:
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self._n_threads)
        try:
            return self._encode(texts)
        finally:
            torch.set_num_threads(before)


@lru_cache(maxsize=1)  # the second fit of a training does not load it again
def _sentence_transformer(name: str) -> Encoder:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ValueError(
            f"SentenceEmbeddings: the model {name!r} needs the package sentence-transformers: pip install "
            f'"taxolearn[embeddings]"; {_ELSE} ({error})'
        ) from None
    try:
        with _without_bars_of_loading():
            model = SentenceTransformer(name)
    except Exception as error:
        # Packages below it raise errors of all kinds.
        raise ValueError(
            f"SentenceEmbeddings: the sentence model {name!r} cannot be loaded. Without a network, give the path of a "
            f"folder that holds a model, such as one that SentenceTransformer.save has written; {_ELSE}. The reason: "
            f"{str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"
        ) from error

    def encode(texts: list[str]) -> Any:
        return model.encode(texts, batch_size=max(len(texts), 1), show_progress_bar=False, convert_to_numpy=True)

    return encode


@contextmanager
def _without_bars_of_loading() -> Iterator[None]:
    """Keep quiet about the parts of a model that are read, which takes no time."""
    from transformers.utils import logging

    had_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if had_bars:
            logging.enable_progress_bar()


def _onnx(path: Path, n_threads: int) -> Encoder:
    """The mean of a transformer's outputs over the tokens; the tokenizer lies beside the model."""
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ValueError(
            f"SentenceEmbeddings: the model {str(path)!r} needs packages: pip install onnxruntime tokenizers; "
            f"{_ELSE} ({error})"
        ) from None
    beside = next((each for each in (path.parent, path.parent.parent) if (each / "tokenizer.json").is_file()), None)
    if beside is None:
        raise ValueError(f"SentenceEmbeddings: there is no tokenizer.json beside {str(path)!r}; copy it there")
    tokenizer = Tokenizer.from_file(str(beside / "tokenizer.json"))
    if tokenizer.truncation is None:
        tokenizer.enable_truncation(_LONGEST)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    inputs = {each.name for each in session.get_inputs()}

    def encode(texts: list[str]) -> Any:
        coded = tokenizer.encode_batch(texts)
        values = {
            "input_ids": np.array([each.ids for each in coded], dtype=np.int64),
            "attention_mask": np.array([each.attention_mask for each in coded], dtype=np.int64),
            "token_type_ids": np.array([each.type_ids for each in coded], dtype=np.int64),
        }
        (output, *_) = session.run(None, {name: values[name] for name in inputs})
        if output.ndim == 2:
            return output
        mask = values["attention_mask"][:, :, None]
        return (output * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)

    return encode
