"""Trireme: trains neural networks in parallel; one run, one hash.

    import trireme

    run = trireme.train(model, x, y, test=(x_test, y_test))
    run.hash                       # equal jobs, equal hashes
    run.evaluate(x_test, y_test)   # {"loss": ..., "accuracy": ...}
    run.predict(x_new)             # probabilities, or values

The library, and NumPy where it is needed, are loaded when one of these is used for the first time.
"""

from __future__ import annotations

import sys as _sys

if _sys.version_info < (3, 9):
    raise ImportError("trireme needs Python 3.9 or newer")

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

# The module typing takes longer to load than the rest of this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import layers
    from ._arrays import Tokens
    from ._events import Event, History
    from ._network import Network, load
    from ._run import Interrupted, Run
    from ._shipped import shipped
    from ._tables import write_csv
    from ._train import train
    from ._version import __version__, numerics_version

_LATER = {
    "Event": "_events",
    "History": "_events",
    "Interrupted": "_run",
    "Network": "_network",
    "Run": "_run",
    "Tokens": "_arrays",
    "__version__": "_version",
    "layers": "layers",
    "load": "_network",
    "numerics_version": "_version",
    "shipped": "_shipped",
    "train": "_train",
    "write_csv": "_tables",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'trireme' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f".{_LATER[name]}", __name__)
    globals()[name] = found = module if name == "layers" else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "DataError",
    "Error",
    "Event",
    "FileError",
    "History",
    "Interrupted",
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
    "layers",
    "load",
    "numerics_version",
    "shipped",
    "train",
    "write_csv",
]
