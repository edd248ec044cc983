"""Arrays of others as examples.

Whatever NumPy can look at without a copy (NumPy, PyTorch and JAX on the processor, all that has `__array_interface__`,
the buffer protocol, DLPack or Arrow's C interface) is used where it lies if it is C-contiguous float32, uint8 or int32
(tokens, classes); else the library or NumPy makes one copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrow
from . import _layouts as L
from ._errors import MismatchError, OutOfMemoryError
from ._sources import Source, describe

TYPES = {
    np.dtype(np.float32): L.TR_ARRAY_FLOAT32,
    np.dtype(np.float64): L.TR_ARRAY_FLOAT64,
    np.dtype(np.uint8): L.TR_ARRAY_UINT8,
    np.dtype(np.uint16): L.TR_ARRAY_UINT16,
    np.dtype(np.int16): L.TR_ARRAY_INT16,
    np.dtype(np.int32): L.TR_ARRAY_INT32,
    np.dtype(np.int64): L.TR_ARRAY_INT64,
}


class Tokens:
    """Sequences of tokens: integers from 0, below `vocabulary`.

    Parameters
    ----------
    values : integers [count, longest], list of sequences of integers, or column of lists of Arrow
        the tokens of each example
    lengths : integers [count]
        how many of a row are tokens; all where it is not given
    vocabulary : int
        one more than the largest token; that of the values where it is not given
    """

    def __init__(self, values: Any, lengths: Any = None, vocabulary: int = 0) -> None:
        self.offsets: np.ndarray | None = None
        self.lengths: np.ndarray | None = None
        self.vocabulary = vocabulary
        lists = _arrow.to_lists(values) if _arrow.is_arrow(values) and not hasattr(values, "iloc") else None
        if lists is not None:
            self.values, self.offsets = lists
        elif isinstance(values, Sequence) and not isinstance(values, np.ndarray):
            rows = [np.asarray(row) for row in values]
            if any(row.ndim != 1 or (row.size and row.dtype.kind not in "iu") for row in rows):
                raise TypeError("tokens: each sequence is a list of integers")
            self.offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
            self.values = np.concatenate(rows).astype(np.int64) if rows else np.empty(0, np.int64)
        else:
            self.values = look_at("tokens", values)
        if lengths is not None:
            if self.offsets is not None:
                raise ValueError("tokens: lists have their lengths; give none beside them")
            self.lengths = look_at("lengths", lengths)
        for name, array in (("tokens", self.values), ("lengths", self.lengths)):
            if array is not None and array.size and array.dtype.kind not in "iu":
                raise TypeError(f"{name}: integers are wanted, not {array.dtype}")

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1


def _of_pandas(name: str, values: Any) -> np.ndarray:
    """A frame or a series. Columns with missing numbers may have pandas' own types."""
    array = values.to_numpy()
    if array.dtype != object:
        return np.asarray(array)
    if array.ndim == 1:
        return np.asarray(array)
    for title, kind in values.dtypes.items():
        if getattr(kind, "kind", "O") not in "biuf":
            raise TypeError(f"{name}: column {title!r} has {kind}; leave it out or make numbers of it")
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def look_at(name: str, values: Any) -> np.ndarray:
    """Values as an array of any type, without a copy if possible."""
    if isinstance(values, np.ma.MaskedArray):
        if values.mask is np.ma.nomask or not values.mask.any():
            return np.asarray(values.data)
        wide: Any = values.astype(values.dtype if values.dtype.kind == "f" else np.float64)
        return np.asarray(wide.filled(np.nan))
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if hasattr(values, "iloc") and hasattr(values, "to_numpy"):
        return _of_pandas(name, values)
    if _arrow.is_arrow(values):
        return _arrow.to_array(name, values)
    if isinstance(values, memoryview):
        values.shape  # NumPy would take a released array for an object; this raises ValueError
    if hasattr(values, "detach"):  # PyTorch: a tensor may require gradients
        values = values.detach()
    others = ("__array__", "__array_interface__", "__array_struct__")
    if hasattr(values, "__dlpack__") and not any(hasattr(values, other) for other in others):
        return np.from_dlpack(values)
    return np.asarray(values)


def as_array(name: str, values: Any) -> np.ndarray:
    """Values as an array of a type that the library reads."""
    array = look_at(name, values)
    if array.dtype in TYPES and array.dtype.isnative:
        return array
    if array.dtype.kind == "f":
        return array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    if array.dtype.kind in "iub":
        largest = array.size and int(array.max())
        if largest > np.iinfo(np.int64).max:
            raise OverflowError(f"{name}: {largest} is beyond 64-bit integers")
        # Smaller types are widened to one that holds their numbers.
        return array.astype(np.int64 if array.dtype.itemsize > 4 or array.dtype == np.uint32 else np.int32)
    if array.dtype == object:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            pass
    if array.dtype.kind in "US":
        raise TypeError(f"{name}: an array of texts; give numbers, of words or characters as trireme.Tokens")
    raise TypeError(f"{name}: an array of {array.dtype}; give numbers")


class Classes:
    """Labels as classes from 0, with their names unless they are such numbers."""

    def __init__(self, labels: np.ndarray, names: Sequence[str] | None = None) -> None:
        self.names = list(names) if names is not None else None
        if labels.dtype.kind in "iub":
            self.numbers = labels
            return
        if labels.ndim != 1:
            raise ValueError(f"labels: names of classes are [count], not {list(labels.shape)}")
        values = labels.tolist()
        for i, value in enumerate(values):
            if value is None or isinstance(value, float) or type(value).__name__ == "NAType":
                raise ValueError(f"labels: example {i} has none")
        texts = [str(value) for value in values]
        if self.names is None:
            self.names = sorted(set(texts))
        place = {name: number for number, name in enumerate(self.names)}
        unknown = [text for text in texts if text not in place]
        if unknown:
            raise ValueError(f"labels: {unknown[0]!r} is none of the classes {self.names}")
        self.numbers = np.array([place[text] for text in texts], np.int32)


def check_room(what: str, wanted: int) -> None:
    """Refuses a copy that does not fit into memory, before the system kills a process."""
    if wanted < 1 << 30:
        return
    with open("/proc/meminfo", encoding="ascii") as file:
        free = {line.split(":")[0]: int(line.split()[1]) << 10 for line in file}.get("MemAvailable", wanted)
    if wanted > free:
        raise OutOfMemoryError(f"{what} take a copy of {wanted >> 20} MiB, and {free >> 20} MiB are free; give fewer examples")


class Examples:
    """Arrays that the library can read, and their meaning."""

    def __init__(self, x: Any, y: Any = None, class_names: Sequence[str] | None = None) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.tokens = isinstance(x, Tokens)
        self.vocabulary = 0
        self.class_names: list[str] | None = None
        if isinstance(x, Tokens):
            self.vocabulary = x.vocabulary
            self.arrays["features"] = as_array("x", x.values)
            if x.offsets is not None:
                self.arrays["offsets"] = as_array("offsets", x.offsets)
            if x.lengths is not None:
                self.arrays["lengths"] = as_array("lengths", x.lengths)
        else:
            self.arrays["features"] = as_array("x", x)
        if y is not None:
            self._take_labels(y, class_names)
        counted, labels = self.arrays["features"], self.arrays.get("labels")
        if labels is not None and "offsets" not in self.arrays and counted.ndim and labels.ndim:
            if len(counted) != len(labels) and counted.ndim <= L.TR_ARRAY_DIMENSIONS:
                raise MismatchError(f"features are of {len(counted)} examples, labels of {len(labels)}")

    def _take_labels(self, y: Any, class_names: Sequence[str] | None) -> None:
        labels = look_at("y", y.values if isinstance(y, Tokens) else y)
        named = labels.dtype.kind in "US" or (labels.dtype == object and not _are_numbers(labels))
        if named or (class_names is not None and labels.dtype.kind in "iub"):
            classes = Classes(labels, class_names)
            labels, self.class_names = classes.numbers, classes.names
        self.arrays["labels"] = as_array("y", labels)

    def open(self) -> Source:
        """A source over them."""
        for member, array in self.arrays.items():
            # One number that is repeated by strides of 0 only; to the library these mean "one after the other".
            if array.size > 1 and not any(array.strides):
                check_room(f"{member}: {list(array.shape)} by strides", array.size * array.itemsize)
                self.arrays[member] = np.ascontiguousarray(array)
        described = {
            member: describe(array.ctypes.data, TYPES[array.dtype], array.shape, array.strides)
            for member, array in self.arrays.items()
        }
        return Source(
            described,
            tokens=self.tokens,
            vocabulary=self.vocabulary,
            class_names=self.class_names,
            keep=list(self.arrays.values()),
        )


def _are_numbers(labels: np.ndarray) -> bool:
    """Whether objects are numbers, as in lists with a float among integers."""
    return all(isinstance(value, (int, float, np.number)) for value in labels.ravel()[:100].tolist())
