"""Settings of a training as plain values, equal in every process of a job, and as structures of the library."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from . import _layouts as L
from ._library import sized
from ._sources import Source


@dataclasses.dataclass
class Settings:
    """Members as those of struct tr_train_settings; they can be written as JSON."""

    model: str | None = None
    model_text: str | None = None
    model_name: str = "model"
    set: list[str] = dataclasses.field(default_factory=list)
    device: str = "cpu"
    threads: int = 0
    isa: str | None = None
    out: str | None = None
    resume: str | None = None
    from_: str | None = None
    teacher: str | None = None
    seed: int | None = None
    steps: int = 0
    epochs: int = 0
    strategy: str | None = None

    def raw(self, transport: str | None, data: Sequence[tuple[str, Source]], stop: Any = None) -> Any:
        """The structure; it keeps the objects that it points to, except `stop`."""
        changes = [change.encode() for change in self.set]
        return sized(
            L.tr_train_settings,
            model=_path(self.model),
            model_text=_text(self.model_text),
            model_name=self.model_name.encode(),
            set=(ctypes.c_char_p * len(changes))(*changes),
            set_count=len(changes),
            device=self.device.encode(),
            threads=self.threads,
            isa=_text(self.isa),
            out=_path(self.out),
            resume=_path(self.resume),
            **{"from": _path(self.from_)},
            teacher=_path(self.teacher),
            has_seed=self.seed is not None,
            seed=self.seed or 0,
            steps=self.steps,
            epochs=self.epochs,
            strategy=_text(self.strategy),
            transport=_text(transport),
            trace_steps=100,
            data=(L.tr_named_source * len(data))(
                *[L.tr_named_source(name.encode(), source.handle) for name, source in data]
            ),
            data_count=len(data),
            stop=stop,
        )


def _text(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def _path(value: str | None) -> bytes | None:
    return None if value is None else os.fsencode(value)
