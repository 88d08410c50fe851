"""Files that are replaced as a whole, so that nobody ever finds half of one."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["remove_partial", "replaced"]


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
