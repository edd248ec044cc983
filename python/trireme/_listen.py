"""The listeners of a run: the history, callbacks, a bar."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

from . import _layouts as L
from ._events import Event, event_at

log = logging.getLogger("trireme")
log.addHandler(logging.NullHandler())  # nothing is printed unless the program sets up logging

#: Called with each event; a true result ends the run after the current step.
Callback = Callable[[Event], Any]


class Listener:
    """Receives the events of the run, calls the callbacks, and keeps their exceptions until the run has ended."""

    def __init__(self, callbacks: Sequence[Callback], history: list[dict[str, Any]]) -> None:
        self.callbacks = callbacks
        self.history = history
        self.raised: BaseException | None = None
        self.stopped = False
        self.accuracies = True
        self.function = L.tr_train_listener(self._hear)

    def _hear(self, _user: Any, raw: Any) -> int:
        try:
            return int(self._tell(event_at(raw, self.accuracies)))
        except BaseException as error:  # noqa: B036 - it is raised again when the run has ended in good order
            self.raised = self.raised or error
            return 1

    def _tell(self, event: Event) -> bool:
        if event.kind in ("step", "evaluation"):
            self.history.append(event.record())
        if event.kind == "step":
            log.debug("step %d of %d: loss %.6g", event.step, event.steps, event.loss)
        elif event.kind == "evaluation":
            accuracy = "" if math.isnan(event.accuracy) else f" accuracy {event.accuracy:.4g}"
            log.info("step %d: %s loss %.6g%s", event.step, event.name, event.loss, accuracy)
        elif event.kind == "warning":
            log.warning("%s", event.name)
        elif event.kind == "checkpoint":
            log.info("step %d: saved %s", event.step, event.name)
        # All are called, also if one of them asks for the end.
        self.stopped |= any([bool(callback(event)) for callback in self.callbacks])
        return self.stopped


def progress() -> Callback:
    """A bar of tqdm, for a terminal or a notebook."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

    bar: Any = None

    def tell(event: Event) -> None:
        nonlocal bar
        if event.kind not in ("progress", "step", "end"):
            return
        if bar is None:
            bar = tqdm(total=event.steps, unit="step")
        bar.update(event.step - bar.n)
        if event.kind != "end":
            bar.set_postfix(loss=f"{event.loss:.4g}", refresh=False)
        else:
            bar.close()

    return tell
