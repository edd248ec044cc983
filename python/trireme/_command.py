"""The command `trireme` of the package, in place of this process. It loads nothing else of the package."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "_native", "bin", "trireme")
    try:
        os.execv(program, ["trireme", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"trireme: {program} cannot be run: {error.strerror}; install the package again")
