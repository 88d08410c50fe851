"""What can go wrong in a command, and the exit code it has."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "BAD_DATA",
    "BAD_MODEL",
    "BROKEN_PIPE",
    "CODES",
    "INTERRUPTED",
    "SYSTEM",
    "USAGE",
    "CommandError",
    "writing",
]

USAGE = 2  # the arguments do not fit together, or not to the model
BAD_DATA = 3  # a data file or a taxonomy is malformed
BAD_MODEL = 4  # a model file cannot be used
SYSTEM = 5  # a file cannot be read or written
INTERRUPTED = 130
BROKEN_PIPE = 141

CODES = {
    0: "done",
    USAGE: "wrong usage",
    BAD_DATA: "a data file is malformed",
    BAD_MODEL: "a model file cannot be used",
    SYSTEM: "a file cannot be read or written",
    INTERRUPTED: "interrupted",
}


class CommandError(Exception):
    """An error that is printed in one line.

    Parameters
    ----------
    message : str
        What is wrong and what to do.
    code : int
        The exit code.
    """

    def __init__(self, message: str, code: int = BAD_DATA) -> None:
        super().__init__(" ".join(message.split()))
        self.code = code


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn errors of the system into errors of commands that name the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(reason if path in reason else f"{path}: cannot be written: {reason}", SYSTEM) from None
