"""Ctrl-C, and a notebook's stop button, while the library works."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

from ._library import lib


class Interrupt:
    """Python's own handler would raise where a callback of the library begins, and the exception would be lost
    there. This one notes Ctrl-C and calls `tell`; the caller of the library raises after the call has ended in good
    order. If the program has another handler, or in other threads than the main one, nothing is changed."""

    def __init__(self, tell: Callable[[], object] | None = None) -> None:
        self.tell = tell
        self.came = False
        self.before: Any = None

    def __enter__(self) -> Interrupt:
        mine = threading.current_thread() is threading.main_thread()
        if mine and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: Any) -> None:
        self.came = True
        if self.tell is not None:
            self.tell()

    def call(self, function: Any, *arguments: Any) -> tuple[int, str]:
        """The status and the message of a function of the library without callbacks. It works in a separate thread,
        since Python handles no signal while its main thread is in the library."""
        found: list[tuple[int, str]] = []

        def work() -> None:
            status = function(*arguments)
            found.append((status, lib.tr_error_message().decode("utf-8", "replace")))

        if self.before is None:
            work()
        else:
            thread = threading.Thread(target=work, name="trireme")
            thread.start()
            thread.join()
        return found[0]

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)
