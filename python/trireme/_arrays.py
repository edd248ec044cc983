"""Arrays of others as sources of the library.

Whatever NumPy can look at without a copy (NumPy, PyTorch and JAX on the processor, all that has
`__array_interface__`, the buffer protocol or DLPack) is used where it lies if it is C-contiguous float32, uint8 or
int32 (tokens, classes); else the library or NumPy makes one copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _layouts as L
from ._library import check, lib, sized

_TYPES = {
    np.dtype(np.float32): L.TR_ARRAY_FLOAT32,
    np.dtype(np.float64): L.TR_ARRAY_FLOAT64,
    np.dtype(np.uint8): L.TR_ARRAY_UINT8,
    np.dtype(np.int32): L.TR_ARRAY_INT32,
    np.dtype(np.int64): L.TR_ARRAY_INT64,
}


class Tokens:
    """Sequences of tokens: integers from 0, below `vocabulary`.

    Parameters
    ----------
    values : integers, [count, longest], or a list of sequences of integers, one an example
    lengths : integers [count], how many of a row are tokens; all where it is not given
    vocabulary : int, one more than the largest token; that of the values where it is not given
    """

    def __init__(self, values: Any, lengths: Any = None, vocabulary: int = 0) -> None:
        self.offsets: np.ndarray | None = None
        self.lengths: np.ndarray | None = None
        self.vocabulary = vocabulary
        if isinstance(values, Sequence) and not isinstance(values, np.ndarray):
            rows = [np.asarray(row) for row in values]
            if any(row.ndim != 1 or (row.size and row.dtype.kind not in "iu") for row in rows):
                raise TypeError("tokens: each sequence is a list of integers")
            self.offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
            self.values = np.concatenate(rows).astype(np.int32) if rows else np.empty(0, np.int32)
        else:
            self.values = np.asarray(values)
            if lengths is not None:
                self.lengths = np.asarray(lengths)

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1


def as_array(name: str, values: Any) -> np.ndarray:
    """Values as an array of a type that the library reads."""
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values.to_numpy()
    elif hasattr(values, "detach"):  # PyTorch: a tensor may ask for gradients
        values = values.detach()
    array = np.asarray(values)
    if array.dtype in _TYPES and array.dtype.isnative:
        return array
    if array.dtype.kind == "f":
        return array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    if array.dtype.kind in "iub":
        largest = array.size and int(array.max())
        if largest > np.iinfo(np.int64).max:
            raise OverflowError(f"{name}: {largest} is beyond 64-bit integers")
        return array.astype(np.int64 if array.dtype.itemsize > 4 else np.int32)
    if array.dtype == object:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise TypeError(f"{name}: an array of {array.dtype}; give numbers")


def describe(array: np.ndarray) -> L.tr_array:
    """An array as the library sees it. It must be kept alive as long as the library uses it."""
    if not 1 <= array.ndim <= L.TR_ARRAY_DIMENSIONS:
        raise ValueError(f"an array of {array.ndim} dimensions; 1 to {L.TR_ARRAY_DIMENSIONS} are read")
    described = L.tr_array(data=array.ctypes.data, type=_TYPES[array.dtype], dimensions=array.ndim)
    for i in range(array.ndim):
        described.shape[i] = array.shape[i]
        described.stride[i] = array.strides[i]
    return described


# What the library still uses, by a number that release() gets back.
_kept: dict[int, tuple[Any, ...]] = {}
_next_key = 1


def _release(key: int | None) -> None:
    _kept.pop(key or 0, None)


_release_callback = {field[0]: field[1] for field in L.tr_arrays._fields_}["release"](_release)


class Classes:
    """Labels as classes from 0, and their names where they are no such numbers."""

    def __init__(self, labels: Any, names: Sequence[str] | None = None) -> None:
        array = np.asarray(labels)
        self.names = list(names) if names is not None else None
        if array.dtype.kind in "iub":
            self.numbers = array
            return
        texts = array.astype(str)
        if self.names is None:
            self.names = sorted(set(texts.tolist()))
        place = {name: number for number, name in enumerate(self.names)}
        unknown = [text for text in texts.tolist() if text not in place]
        if unknown:
            raise ValueError(f"labels: {unknown[0]!r} is none of the classes {self.names}")
        self.numbers = np.array([place[text] for text in texts.tolist()], np.int32)


class Source:
    """Examples in the library's hands, until close()."""

    def __init__(self, x: Any, y: Any = None, class_names: Sequence[str] | None = None) -> None:
        global _next_key
        arrays = sized(L.tr_arrays)
        keep: list[Any] = []
        self.class_names: list[str] | None = None

        def take(name: str, values: Any) -> L.tr_array:
            array = as_array(name, values)
            keep.append(array)
            return describe(array)

        if isinstance(x, Tokens):
            arrays.tokens = 1
            arrays.vocabulary = x.vocabulary
            arrays.features = take("x", x.values)
            if x.offsets is not None:
                arrays.offsets = take("offsets", x.offsets)
            if x.lengths is not None:
                arrays.lengths = take("lengths", x.lengths)
        else:
            arrays.features = take("x", x)
        if y is not None:
            self._take_labels(arrays, take, y, class_names, keep)
        arrays.release = _release_callback
        arrays.user = key = _next_key
        _next_key += 1
        _kept[key] = tuple(keep)
        self.handle = ctypes.c_void_p()
        try:
            check(lib.tr_source_from_arrays(ctypes.byref(arrays), ctypes.byref(self.handle)))
        except BaseException:
            _kept.pop(key, None)
            raise

    def _take_labels(self, arrays: Any, take: Any, y: Any, class_names: Any, keep: list[Any]) -> None:
        labels = y.to_numpy() if hasattr(y, "to_numpy") and not isinstance(y, np.ndarray) else y
        kind = np.asarray(labels).dtype.kind if not hasattr(labels, "detach") else "?"
        if kind in "OUS" or class_names is not None:
            classes = Classes(labels, class_names)
            labels, self.class_names = classes.numbers, classes.names
        arrays.labels = take("y", labels)
        if self.class_names:
            names = (ctypes.c_char_p * len(self.class_names))(*[name.encode() for name in self.class_names])
            keep.append(names)
            arrays.class_names = names
            arrays.classes = len(self.class_names)

    def close(self) -> None:
        lib.tr_source_close(ctypes.byref(self.handle))

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def inputs_of(x: Any) -> Mapping[str, Any] | None:
    """Several inputs by name, or None where `x` is one."""
    if isinstance(x, Mapping):
        if len(x) < 2:
            raise ValueError("x: a mapping of inputs has two or more; give a single one as it is")
        return x
    return None
