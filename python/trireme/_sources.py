"""Sources of the library from addresses, types and shapes; without NumPy, which the processes of a job do not load."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from . import _layouts as L
from ._library import check, lib, sized

#: Members of struct tr_arrays that are arrays.
MEMBERS = ("features", "labels", "lengths", "offsets")


def describe(address: int, code: int, shape: Sequence[int], strides: Sequence[int] | None = None) -> L.tr_array:
    """An array as the library sees it; without strides its elements lie one after the other."""
    if not 1 <= len(shape) <= L.TR_ARRAY_DIMENSIONS:
        raise ValueError(f"an array of {len(shape)} dimensions; 1 to {L.TR_ARRAY_DIMENSIONS} are read")
    described = L.tr_array(data=address, type=code, dimensions=len(shape))
    for i, size in enumerate(shape):
        described.shape[i] = size
        described.stride[i] = strides[i] if strides else 0
    return described


# Objects that the library uses, by a number that release() receives.
_kept: dict[int, tuple[Any, ...]] = {}
_next_key = 1


def _release(key: int | None) -> None:
    _kept.pop(key or 0, None)


_release_callback = {field[0]: field[1] for field in L.tr_arrays._fields_}["release"](_release)


class Source:
    """Examples lent to the library, until close(). `keep` lives as long as the library uses the arrays."""

    def __init__(
        self,
        described: Mapping[str, L.tr_array],
        *,
        tokens: bool = False,
        vocabulary: int = 0,
        class_names: Sequence[str] | None = None,
        keep: Sequence[Any] = (),
    ) -> None:
        global _next_key
        arrays = sized(L.tr_arrays, tokens=int(tokens), vocabulary=vocabulary, release=_release_callback)
        for member, array in described.items():
            setattr(arrays, member, array)
        kept = [*keep]
        if class_names:
            names = (ctypes.c_char_p * len(class_names))(*[name.encode() for name in class_names])
            kept.append(names)
            arrays.class_names = names
            arrays.classes = len(class_names)
        arrays.user = key = _next_key
        _next_key += 1
        _kept[key] = tuple(kept)
        self.handle = ctypes.c_void_p()
        try:
            check(lib.tr_source_from_arrays(ctypes.byref(arrays), ctypes.byref(self.handle)))
        except BaseException:
            _kept.pop(key, None)
            raise

    def close(self) -> None:
        lib.tr_source_close(ctypes.byref(self.handle))

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
