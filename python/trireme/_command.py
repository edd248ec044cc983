"""The command `trireme` of the package, in place of this process."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).resolve().parent / "_native" / "bin" / "trireme"
    try:
        os.execv(program, ["trireme", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"trireme: {program} cannot be run: {error.strerror}; install the package again")
