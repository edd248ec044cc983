"""The files that ship with the package."""

from __future__ import annotations

import os
import pathlib

from ._library import NATIVE


def shipped() -> pathlib.Path:
    """The folder with `models/` and `data/` that ship with the package.

    Returns
    -------
    pathlib.Path
        the environment variable `TRIREME_SHIPPED` names another, for development
    """
    named = os.environ.get("TRIREME_SHIPPED")
    return pathlib.Path(named) if named else pathlib.Path(NATIVE, "share", "trireme")
