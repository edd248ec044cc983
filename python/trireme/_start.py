"""Replacements for initial values of parameters: those of another run, or arrays by name."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Union

import numpy as np

from . import _layouts as L
from ._errors import MismatchError
from ._library import check, lib, sized
from ._network import Network
from ._run import Run
from ._settings import Settings
from ._sources import Source

#: The types that `train` takes for `from_`.
Start = Union[Run, Network, str, "os.PathLike[str]", Mapping[str, Any]]


def path_of(start: Start) -> str | None:
    """The directory of a run or a checkpoint; None for arrays."""
    if isinstance(start, Mapping):
        return None
    if isinstance(start, Run):
        return start.directory
    return start._folder() if isinstance(start, Network) else os.fspath(start)


def _shapes(trainer: Any) -> dict[str, tuple[int, ...]]:
    found = {}
    for number in range(lib.tr_trainer_parameter_count(trainer)):
        info = sized(L.tr_parameter_info)
        check(lib.tr_trainer_parameter_at(trainer, number, ctypes.byref(info)))
        found[info.name.decode()] = tuple(info.shape[: info.dimensions])
    return found


def _give(trainer: Any, weights: Mapping[str, Any]) -> None:
    shapes = _shapes(trainer)
    for name, values in weights.items():
        array = np.ascontiguousarray(values, np.float32)
        if name not in shapes:
            raise MismatchError(f"from_: the network has no parameter {name!r}; it has {', '.join(shapes)}")
        if array.shape != shapes[name]:
            raise MismatchError(f"from_: {name!r} has shape {list(array.shape)}, the network wants {list(shapes[name])}")
        address = array.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        check(lib.tr_trainer_set_parameter(trainer, name.encode(), address, array.size))


@contextmanager
def state_of(weights: Mapping[str, Any], settings: Settings, data: Sequence[tuple[str, Source]]) -> Iterator[Any]:
    """A checkpoint in memory with these parameters, and the others initialized by the model."""
    alone = dataclasses.replace(settings, out=None, strategy="allreduce")
    trainer, memory, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    check(lib.tr_trainer_create(ctypes.byref(alone.raw(None, data)), ctypes.byref(trainer)))
    try:
        _give(trainer, weights)
        check(lib.tr_trainer_save_state(trainer, ctypes.byref(memory), ctypes.byref(size)))
    finally:
        lib.tr_trainer_destroy(ctypes.byref(trainer))
    try:
        yield L.tr_run_state(bytes=memory, size=size.value)
    finally:
        lib.tr_state_free(memory)
