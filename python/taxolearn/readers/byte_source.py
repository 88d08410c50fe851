"""Files as the readers want them: bytes in blocks or lines of text, decompressed where they are gzip."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

__all__ = ["Source", "name_of", "read_all", "read_blocks", "read_lines", "read_text"]

Source: TypeAlias = "str | os.PathLike[str] | IO[bytes]"

_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 22


def name_of(source: Source) -> str:
    """What messages call the source."""
    name: Any = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else f"<{type(source).__name__}>"


@contextmanager
def _open(source: Source) -> Iterator[_Stream]:
    """Open the source at its first byte. Files that were opened elsewhere stay open."""
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file:
            yield _Stream(file)
        return
    if not hasattr(source, "read"):
        raise TypeError(f"source must be a path or a file open for reading bytes, got {type(source).__name__}")
    yield _Stream(source)


class _Stream:
    """A binary file that is read forward only and needs no method but ``read``."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        while len(self._ahead) < size:
            more = self._take(size - len(self._ahead))
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def read(self, size: int = -1) -> bytes:
        if not self._ahead:
            return self._take(size)
        ahead, self._ahead = self._ahead, b""
        if size < 0:
            return ahead + self._take(size)
        self._ahead = ahead[size:]
        return ahead[:size]

    def _take(self, size: int) -> bytes:
        content = self._source.read(size)
        if not isinstance(content, bytes):
            raise TypeError(f'source must give bytes (open it with mode "rb"), got {type(content).__name__}')
        return content


def read_blocks(source: Source) -> Iterator[bytes]:
    """Read bytes, a few megabytes at a time, decompressed if they begin like gzip, whatever the name of the file is."""
    with _open(source) as file:
        stream: Any = file
        if file.peek(len(_GZIP)) == _GZIP:
            stream = gzip.GzipFile(fileobj=stream)
        done = 0
        while True:
            try:
                block: bytes = stream.read(_BLOCK)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(
                    f"{name_of(source)}: the gzip data are cut short or damaged, after {done} bytes of text or a "
                    f"little more ({error}); fetch the file again"
                ) from error
            if not block:
                return
            done += len(block)
            yield block


def read_all(source: Source) -> bytes:
    """Read the decompressed bytes."""
    return b"".join(read_blocks(source))


def read_text(source: Source, encoding: str) -> str:
    """Read the decompressed and decoded text, without a byte order mark."""
    content = read_all(source)
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ValueError(
            f"{name_of(source)}, line {line}, column {column}: expected text in {encoding}, "
            f"found the byte 0x{content[error.start]:02x}; give the file's encoding"
        ) from None


def read_lines(source: Source, encoding: str) -> list[str]:
    """Read lines of text without their ends (line feed, with or without a carriage return)."""
    lines = read_text(source, encoding).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
