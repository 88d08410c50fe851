"""Embeddings of texts on disk, found by what the texts are and by what the model gives for fixed sentences.

In the folder of a cache every model has a folder, which holds ``fingerprint.npz`` and files of some thousand embeddings
each: hashes of the texts, and an array. They are written as a whole or not at all, and checksummed; one that is damaged
counts as missing. Processes may share a cache.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxolearn.raw_files import replaced

__all__ = ["EmbeddingCache", "default_folder", "is_same", "text_keys"]

_DIFFERENCE = 1e-3  # of the largest number, up to which embeddings are those of the same model on another machine
_FINGERPRINT = "fingerprint.npz"
_KEY = "S32"
# What files of any content can raise.
_DAMAGED = (
    AttributeError,
    OSError,
    ValueError,
    KeyError,
    EOFError,
    MemoryError,
    RuntimeError,
    TypeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class EmbeddingCache:
    """Embeddings of one model in a folder.

    Parameters
    ----------
    folder : Path
        Of the cache; made if it is not there.
    fingerprint : ndarray of shape (n_sentences, n_features)
        What the model gives for fixed sentences; an existing part of the cache with the same fingerprint is used.

    Raises
    ------
    OSError
        The folder cannot be written.
    """

    def __init__(self, folder: Path, fingerprint: NDArray[np.float32]) -> None:
        self._width = fingerprint.shape[1]
        self._folder = folder / hashlib.sha256(fingerprint.tobytes()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        for known in sorted(folder.glob(f"*/{_FINGERPRINT}")):
            stored = _read(known, "embeddings")
            if stored is not None and is_same(stored, fingerprint):
                self._folder = known.parent
                return
        self._folder.mkdir(exist_ok=True)
        with replaced(self._folder / _FINGERPRINT, "SentenceEmbeddings") as file:
            np.savez(file, embeddings=fingerprint)

    def find(self, keys: NDArray[Any], out: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Look for texts by their keys, each of which occurs once.

        Parameters
        ----------
        keys : ndarray of shape (n_texts,)
            Of ``text_keys``.
        out : ndarray of shape (n_texts, n_features)
            Receives the embeddings that are found.

        Returns
        -------
        ndarray of bool, shape (n_texts,)
            Which were found.
        """
        found = np.zeros(len(keys), dtype=np.bool_)
        order = np.argsort(keys)
        ordered = keys[order]
        for path in sorted(self._folder.glob("*.npz")):
            if path.name == _FINGERPRINT or found.all():
                continue
            stored = _read(path, "keys")
            if stored is None or stored.dtype != _KEY or stored.ndim != 1:
                continue
            place = np.minimum(np.searchsorted(ordered, stored), len(keys) - 1)
            rows = np.flatnonzero(ordered[place] == stored)
            wanted = order[place[rows]]
            rows, wanted = rows[~found[wanted]], wanted[~found[wanted]]
            if len(rows) == 0:
                continue
            embeddings = _read(path, "embeddings")
            if embeddings is not None and embeddings.shape == (len(stored), self._width):
                out[wanted] = embeddings[rows]
                found[wanted] = True
        return found

    def add(self, keys: NDArray[Any], embeddings: NDArray[np.float32]) -> None:
        """Keep embeddings of texts that are not there yet."""
        path = self._folder / f"{hashlib.sha256(keys.tobytes()).hexdigest()[:24]}.npz"
        with replaced(path, "SentenceEmbeddings") as file:
            np.savez(file, keys=keys, embeddings=embeddings)


def text_keys(texts: Sequence[str], settings: str) -> NDArray[Any]:
    """A hash of each text and of settings that its embedding depends on."""
    first = hashlib.blake2b(settings.encode("utf-8", "surrogatepass"), digest_size=16)
    out = np.empty(len(texts), dtype=_KEY)
    for row, text in enumerate(texts):
        digest = first.copy()
        digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
        out[row] = digest.hexdigest()
    return out


def is_same(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two models gave the same embeddings, but for what differs between machines."""
    if first.shape != second.shape:
        return False
    return bool(np.abs(first - second).max(initial=0.0) <= _DIFFERENCE * np.abs(second).max(initial=1e-30))


def default_folder() -> Path:
    """Where a user's programs keep what can be computed again."""
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "taxolearn" / "embeddings"


def _read(path: Path, name: str) -> NDArray[Any] | None:
    """An array of a file, None if the file is damaged."""
    with suppress(*_DAMAGED), path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        array = file[name]
        if array.dtype == _KEY or (array.dtype == np.float32 and np.isfinite(array).all()):
            return np.asarray(array)
    return None
