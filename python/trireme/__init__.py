"""Trireme: trains neural networks in parallel; one run, one hash.

    import trireme

    run = trireme.train(model, x, y, test=(x_test, y_test))
    run.hash                       # equal jobs, equal hashes
    run.evaluate(x_test, y_test)   # {"loss": ..., "accuracy": ...}
    run.predict(x_new)             # probabilities, or values
"""

import logging as _logging

from ._arrays import Tokens
from ._errors import (
    DataError,
    Error,
    FileError,
    MismatchError,
    ModelError,
    NonFiniteError,
    NotFoundError,
    OutOfMemoryError,
    PeerError,
    UnsupportedError,
)
from ._library import lib as _lib
from ._run import Event, History, Network, Run, load
from ._train import train

# Nothing is printed where the program sets up no logging.
_logging.getLogger("trireme").addHandler(_logging.NullHandler())

__version__: str = _lib.tr_version().decode()

#: The version of the arithmetic: it changes when, and only when, equal jobs end with other hashes.
numerics_version: int = _lib.tr_numerics_version()

__all__ = [
    "DataError",
    "Error",
    "Event",
    "FileError",
    "History",
    "MismatchError",
    "ModelError",
    "Network",
    "NonFiniteError",
    "NotFoundError",
    "OutOfMemoryError",
    "PeerError",
    "Run",
    "Tokens",
    "UnsupportedError",
    "load",
    "numerics_version",
    "train",
]
