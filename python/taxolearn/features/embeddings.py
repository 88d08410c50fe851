"""Embeddings of texts by a sentence model."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from taxolearn.features.embedding_cache import EmbeddingCache, default_folder, is_same, text_keys
from taxolearn.features.encoders import Encoder, load_encoder
from taxolearn.progress import stage_progress
from taxolearn.validation import check_number, check_threads

__all__ = ["SentenceEmbeddings"]

_PROBES = [  # sentences whose embeddings tell models apart; the last one is longer than models read
    "A short sentence.",
    "The price of 20 green apples has fallen by 3.5 percent since Monday!",
    "Größere Häuser stehen am Ufer des Flusses.",
    "def mean(values): return sum(values) / len(values)",
    " ".join(f"word {k}," for k in range(400)),
]
_FILE = 4096  # embeddings of a file of the cache
_LEAST_KEPT = 32  # new texts of a call, below which they are not kept


class SentenceEmbeddings(TransformerMixin, BaseEstimator):
    """Turns texts into arrays of single precision by a sentence model.

    The same text is embedded once: equal ones of a call together, and what was embedded before is found in a cache on
    disk by a hash of the text. Texts themselves are not stored.

    ``fit`` learns nothing from the texts. It notes what the model gives for some fixed sentences, and later a model
    that gives something else is refused: it would make nonsense of a classifier that was fitted to the first one.

    Parameters
    ----------
    model : str, path or callable
        - a folder with a model, or the name of one, for the package ``sentence-transformers``, which comes with
          ``pip install "taxolearn[embeddings]"``; with a folder no network is needed;
        - a file that ends in ``.onnx``, with ``tokenizer.json`` beside it, for ``onnxruntime`` and ``tokenizers``;
          outputs by token are averaged;
        - a function of a list of texts that returns an array with a row for each, or an object with such a method
          ``encode``. It must give the same for the same text. Model files cannot hold it.
    normalize : bool, default=True
        Whether embeddings are divided by their length.
    batch_size : int, default=32
        Texts that the model is given at a time.
    cache : str, path or None, default="auto"
        Folder of the cache; "auto" for one in the user's folder of caches, None for no cache. A call with fewer than 32
        new texts leaves them out. Nothing is ever removed; remove the folder when it is too large.
    n_threads : int, optional
        Threads of the model, None for as many as the machine grants. A function looks after its own.

    Attributes
    ----------
    fingerprint_ : ndarray of float32, shape (n_sentences, n_features)
        Embeddings of the fixed sentences.
    version_ : str
        The package that computed them, with its version.

    Examples
    --------
    >>> import numpy as np
    >>> from taxolearn.features import SentenceEmbeddings
    >>> def lengths(texts):
    ...     return np.array([[len(text), text.count(" ") + 1] for text in texts])
    >>> SentenceEmbeddings(lengths, normalize=False, cache=None).fit_transform(["red apples", "pears"])
    array([[10.,  2.],
           [ 5.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        model: Any,
        *,
        normalize: bool = True,
        batch_size: int = 32,
        cache: str | os.PathLike[str] | None = "auto",
        n_threads: int | None = None,
    ) -> None:
        self.model = model
        self.normalize = normalize
        self.batch_size = batch_size
        self.cache = cache
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None) -> SentenceEmbeddings:
        """Load the model, and note what it gives for fixed sentences.

        Parameters
        ----------
        X : list of str
            Texts, which are checked only.
        y : ignored
        """
        _texts(X)
        check_number("SentenceEmbeddings: batch_size", self.batch_size, least=1, integer=True)
        self.__dict__.pop("_loaded", None)
        encode = self._encoder()
        self.fingerprint_ = self._encoded(encode, _PROBES, None)
        self._loaded = self.model, self.n_threads, encode
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed texts.

        Returns
        -------
        ndarray of float32, shape (n_texts, n_features)
        """
        check_is_fitted(self)
        texts = _texts(X)
        place: dict[str, int] = {}
        rows = [place.setdefault(text, len(place)) for text in texts]
        unique = list(place)
        out = np.empty((len(unique), self.fingerprint_.shape[1]), dtype=np.float32)
        found = np.zeros(len(unique), dtype=np.bool_)
        keep: Callable[[list[int]], None] | None = None
        cache = self._opened_cache()
        if cache is not None and unique:
            keys = text_keys(unique, f"normalize={bool(self.normalize)}")
            found = cache.find(keys, out)

            def keep(done: list[int]) -> None:
                try:
                    cache.add(keys[done], out[done])
                except OSError as error:
                    _warn(error)

        missing = np.flatnonzero(~found).tolist()
        if missing:
            self._embed(unique, missing, out, keep if len(missing) >= _LEAST_KEPT else None)
        embeddings: NDArray[np.float32] = out[rows]
        return embeddings

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the numbers by their places: ``embedding0`` and so on."""
        check_is_fitted(self)
        return np.array([f"embedding{k}" for k in range(self.fingerprint_.shape[1])], dtype=object)

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_loaded"}

    def _embed(
        self, texts: list[str], missing: list[int], out: NDArray[np.float32], keep: Callable[[list[int]], None] | None
    ) -> None:
        """Embed the missing texts, long ones first, so that those of a batch have about the same length."""
        encode = self._checked_encoder()
        missing.sort(key=lambda k: (-len(texts[k]), k))
        total = sum(len(texts[k]) + 1 for k in missing)
        done, new = 0, []
        begin = time.perf_counter()
        with stage_progress(0) as stages:
            try:
                for first in range(0, len(missing), self.batch_size):
                    batch = missing[first : first + self.batch_size]
                    out[batch] = self._encoded(encode, [texts[k] for k in batch], out.shape[1])
                    new += batch
                    done += sum(len(texts[k]) + 1 for k in batch)
                    left = (time.perf_counter() - begin) * (total - done) / done
                    stages.update(f"embedding {first + len(batch):,} of {len(missing):,} texts", left, False)
                    if keep is not None and len(new) >= _FILE:
                        keep(new)
                        new = []
            finally:  # also of a run that is interrupted
                if keep is not None and new:
                    keep(new)

    def _encoder(self) -> Encoder:
        encode, self.version_ = load_encoder(self.model, check_threads(self.n_threads))
        return encode

    def _checked_encoder(self) -> Encoder:
        """The model, once it is known to be the one of ``fit``."""
        loaded = getattr(self, "_loaded", None)
        if loaded is not None and loaded[0] is self.model and loaded[1] == self.n_threads:
            known: Encoder = loaded[2]
            return known
        before = self.version_
        encode = self._encoder()
        found, self.version_ = self.version_, before
        if not is_same(self._encoded(encode, _PROBES, None), self.fingerprint_):
            raise ValueError(
                f"SentenceEmbeddings: {self.model!r} ({found}) gives other embeddings than the model that was used in "
                f"fit ({before}); name that one by set_params(model=...), or fit again"
            )
        self._loaded = self.model, self.n_threads, encode
        return encode

    def _encoded(self, encode: Encoder, texts: list[str], width: int | None) -> NDArray[np.float32]:
        """What the model gives, checked and of length 1; ``width`` is the number of features, None if not yet known."""
        given = np.asarray(encode(texts))
        is_right = given.ndim == 2 and len(given) == len(texts) and given.dtype.kind in "fiu"
        if not is_right or given.shape[1] == 0 or (width is not None and given.shape[1] != width):
            raise ValueError(
                f"SentenceEmbeddings: model gave an array of shape {given.shape} and type {given.dtype} for "
                f"{len(texts)} texts, expected a row of numbers for each, always as many"
            )
        out = given.astype(np.float32)
        if not np.isfinite(out).all():
            raise ValueError("SentenceEmbeddings: model gave numbers that are not finite")
        if self.normalize:
            lengths = np.linalg.norm(out.astype(np.float64), axis=1, keepdims=True)
            out = (out / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
        return out

    def _opened_cache(self) -> EmbeddingCache | None:
        if self.cache is None:
            return None
        folder = default_folder() if self.cache == "auto" else Path(self.cache)
        try:
            return EmbeddingCache(folder, self.fingerprint_)
        except OSError as error:
            _warn(error)
            return None


def _warn(error: OSError) -> None:
    warnings.warn(
        f"SentenceEmbeddings: the cache cannot be used ({error}), so texts are embedded anew each time; name another "
        "folder by cache, or give None",
        UserWarning,
        stacklevel=4,
    )


def _texts(X: Any) -> list[str]:
    """Texts as a list; nothing and NaN are empty ones."""
    if isinstance(X, (str, bytes)):
        raise TypeError("SentenceEmbeddings: X must be a list of texts, got a single one; put it in a list")
    if hasattr(X, "columns") or isinstance(X, Mapping):
        raise TypeError("SentenceEmbeddings: X must be a list of texts, got a table; choose one of its columns")
    out = ["" if value is None or value != value else value for value in X]
    for row, value in enumerate(out):
        if not isinstance(value, str):
            raise TypeError(f"SentenceEmbeddings: row {row} of X is a {type(value).__name__}, expected a text")
    return out
