"""Files as bytes: read in blocks or lines, decompressed where they are gzip; replaced as a whole or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias

__all__ = ["Source", "name_of", "read_all", "read_blocks", "read_lines", "read_text", "remove_partial", "replaced"]

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


@contextmanager
def replaced(path: Path, what: str) -> Iterator[BinaryIO]:
    """Yield a new file, to be written and read, that takes the place of ``path`` if nothing goes wrong.

    Whatever happens meanwhile, the path holds the whole old file or the whole new one. A link stays a link: what it
    points to is replaced. Devices, pipes and folders are left alone.

    Parameters
    ----------
    path : Path
        Where the file will be.
    what : str
        Begins the message of an ``OSError``.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, f"{what}: cannot write {path}: it is not a regular file; choose another path")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb+") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        message = f"{what}: cannot write {path}: {error.strerror or error}; a file from before is as it was"
        raise OSError(error.errno, message) from error
    finally:
        with suppress(OSError):
            partial.unlink()
    _sync_folder(path.parent)


def remove_partial(path: Path) -> None:
    """Remove what killed processes left half-written next to a path."""
    for partial in path.parent.glob("*.partial"):
        if partial.name.startswith(f".{path.name}."):
            with suppress(OSError):
                partial.unlink()


def _sync_folder(folder: Path) -> None:
    """Make sure that the new name of a file lasts, where the system lets us."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
