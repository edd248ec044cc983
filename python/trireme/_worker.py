"""One of the processes that `train(workers=N)` starts: it reads its orders from standard input, does its part, and
reports the end in one line of standard output. It loads neither NumPy nor other packages.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


def _follow(parent: int) -> None:
    """Dies with the process that started it, which also handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _sources(orders: dict[str, Any]) -> list[Any]:
    """The examples, from the memory that the processes share."""
    from ._sources import Source, describe

    if not orders["data"]:
        return []
    # A private mapping, since ctypes gives no addresses in others; no process writes, so that the pages stay shared.
    shared = mmap.mmap(orders["memory"], orders["bytes"], access=mmap.ACCESS_COPY)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(shared))
    found = []
    for one in orders["data"]:
        described = {
            member: describe(begin + place["offset"], place["type"], place["shape"])
            for member, place in one["arrays"].items()
        }
        source = Source(
            described,
            tokens=one["tokens"],
            vocabulary=one["vocabulary"],
            class_names=one["class_names"],
            keep=[shared],
        )
        found.append((one["name"], source))
    return found


def _work(orders: dict[str, Any]) -> int:
    from . import _layouts as L
    from ._library import lib
    from ._settings import Settings

    sources = _sources(orders)
    settings = Settings(**orders["settings"]).raw(orders["transport"], sources)
    trainer = ctypes.c_void_p()
    status: int = lib.tr_trainer_create(ctypes.byref(settings), ctypes.byref(trainer))
    if status == L.TR_OK:
        status = lib.tr_trainer_run(trainer, L.tr_train_listener(0), None)
    if status in (L.TR_OK, L.TR_EINTERRUPTED):
        lib.tr_trainer_destroy(ctypes.byref(trainer))
    return status


def main() -> None:
    from . import _errors
    from . import _layouts as L
    from ._library import lib

    orders = json.load(sys.stdin)
    _follow(orders["parent"])
    try:
        status = _work(orders)
        message = "" if status == L.TR_OK else lib.tr_error_message().decode("utf-8", "replace")
    except _errors.Error as error:
        status, message = error.status, str(error)
    print(json.dumps({"status": status, "message": message}), flush=True)
    # A broken job cannot be left in good order.
    os._exit(0 if status in (L.TR_OK, L.TR_EINTERRUPTED) else 1)
