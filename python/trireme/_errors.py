"""Exceptions: the library's statuses and messages as types."""

from __future__ import annotations


class Error(Exception):
    """A call of the library failed. The message names the thing, the values, and the next step."""

    status: int = 0


class ModelError(Error, ValueError):
    """An argument, an option or the model is wrong. `line` and `column` are the place in the model's text, if known."""

    line: int | None = None
    column: int | None = None


class DataError(Error, ValueError):
    """Data or a file are damaged, or not in the expected format."""


class MismatchError(Error, ValueError):
    """Two things that must agree do not: data and a network, a checkpoint and a model."""


class NotFoundError(Error, LookupError):
    """A named thing does not exist."""


class UnsupportedError(Error, NotImplementedError):
    """This build, machine or network does not support the request."""


class NonFiniteError(Error, ArithmeticError):
    """A loss or a gradient became NaN or infinite; the message names the step and the tensor."""


class FileError(Error, OSError):
    """A file could not be read or written."""


class OutOfMemoryError(Error, MemoryError):
    """The job needs more memory than there is."""


class PeerError(Error, ConnectionError):
    """Another process of the job died or gave up."""


_TYPES = {
    1: ModelError,
    2: OutOfMemoryError,
    3: FileError,
    4: DataError,
    5: DataError,
    6: MismatchError,
    7: UnsupportedError,
    8: NonFiniteError,
    10: NotFoundError,
    11: PeerError,
}


def make(status: int, message: str) -> Error:
    """The exception of a status with the library's message."""
    error = _TYPES.get(status, Error)(message)
    error.status = status
    if isinstance(error, ModelError):
        import re

        place = re.match(r"[^:\n]*:(\d+):(\d+): ", message)
        if place:
            error.line, error.column = int(place[1]), int(place[2])
    return error
