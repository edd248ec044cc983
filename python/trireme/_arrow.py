"""Tables of others by Arrow's C interface (pyarrow, polars, and all that has `__arrow_c_stream__` or `__arrow_c_array__`).

https://arrow.apache.org/docs/format/CDataInterface.html; no package of Arrow is needed. Columns of numbers in one piece
are used in place; memory of Arrow is released when the last array that uses it is freed.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))),
    ("private_data", ctypes.c_void_p),
]

_NUMBERS = dict(c="i1", C="u1", s="i2", S="u2", i="i4", I="u4", l="i8", L="u8", e="f2", f="f4", g="f8")


def is_arrow(values: Any) -> bool:
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def _pointer(capsule: Any, name: bytes, kind: Any) -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, name), ctypes.POINTER(kind))


class _Held:
    """A producer's structures, until no array uses them."""

    def __init__(self, kind: Any) -> None:
        self.raw = kind()

    def __del__(self) -> None:
        if self.raw.release:
            self.raw.release(ctypes.byref(self.raw))


class _Moved(_Held):
    """A structure taken from its capsule, which is left empty."""

    def __init__(self, capsule: Any, name: bytes, kind: Any) -> None:
        super().__init__(kind)
        found = _pointer(capsule, name, kind)
        ctypes.memmove(ctypes.byref(self.raw), found, ctypes.sizeof(kind))
        members = dict(kind._fields_)
        found.contents.release = members["release"](0)


def _chunks(values: Any) -> tuple[_Held, list[_Held]]:
    """The schema and the pieces of an object with the interface."""
    if hasattr(values, "__arrow_c_stream__"):
        stream = _Moved(values.__arrow_c_stream__(), b"arrow_array_stream", _Stream)
        schema = _Held(_Schema)
        pieces: list[_Held] = []

        def ask(call: Any, out: Any) -> None:
            status = call(ctypes.byref(stream.raw), ctypes.byref(out))
            if status != 0:
                why = stream.raw.get_last_error(ctypes.byref(stream.raw)) or b""
                raise ValueError(f"Arrow's stream failed with {status}: {why.decode('utf-8', 'replace')}")

        ask(stream.raw.get_schema, schema.raw)
        while True:
            piece = _Held(_Array)
            ask(stream.raw.get_next, piece.raw)
            if not piece.raw.release:
                return schema, pieces
            pieces.append(piece)
    capsules = values.__arrow_c_array__()
    return (
        _Moved(capsules[0], b"arrow_schema", _Schema),
        [_Moved(capsules[1], b"arrow_array", _Array)],
    )


# ---- buffers ----


def _buffer(array: Any, index: int, kind: str, count: int, held: _Held) -> np.ndarray:
    """`count` elements of a buffer, which keep `held`."""
    address = array.buffers[index] if index < array.n_buffers else None
    if count == 0 or not address:
        return np.zeros(count, kind)
    place: Any = (ctypes.c_ubyte * (count * np.dtype(kind).itemsize)).from_address(address)
    place._held = held
    found: np.ndarray = np.frombuffer(place, kind)
    return found


def _bits(array: Any, index: int, held: _Held) -> np.ndarray:
    first, last = array.offset, array.offset + array.length
    return np.unpackbits(_buffer(array, index, "u1", (last + 7) // 8, held), bitorder="little")[first:last].astype(bool)


def _nulls(array: Any, held: _Held) -> np.ndarray | None:
    """Which elements are missing, or None."""
    if array.null_count == 0 or array.n_buffers == 0 or not array.buffers[0]:
        return None
    missing = ~_bits(array, 0, held)
    return missing if missing.any() else None


def _strings(form: str, array: Any, held: _Held) -> np.ndarray:
    first, count = array.offset, array.length
    found = np.empty(count, object)
    if form == "vu":
        return _views(array, held, found)
    width = "i4" if form == "u" else "i8"
    ends = _buffer(array, 1, width, first + count + 1, held)[first:]
    text = _buffer(array, 2, "u1", int(ends[-1]) if count else 0, held).tobytes()
    for i in range(count):
        found[i] = text[ends[i] : ends[i + 1]].decode()
    return found


def _views(array: Any, held: _Held, found: np.ndarray) -> np.ndarray:
    """Texts of 16 bytes each: the length and the text itself, or four bytes of it, its buffer and its place there."""
    rows = _buffer(array, 1, "u1", 16 * (array.offset + array.length), held).reshape(-1, 16)[array.offset :]
    lengths = rows.view("<i4")[:, 0]
    for i, length in enumerate(lengths.tolist()):
        if length <= 12:
            found[i] = rows[i, 4 : 4 + length].tobytes().decode()
        else:
            number, place = rows[i].view("<i4")[2:].tolist()
            found[i] = ctypes.string_at(array.buffers[2 + number] + place, length).decode()
    return found


# ---- columns ----


def _column(name: str, schema: Any, array: Any, held: _Held) -> np.ndarray:
    """A piece of a column: numbers, NaN where one is missing; texts, None where one is; lists of a fixed size as rows."""
    form = schema.format.decode()
    missing = _nulls(array, held)
    if schema.dictionary:
        places = _column(name, _plain(schema), array, held)
        texts = _column(name, schema.dictionary.contents, array.dictionary.contents, held)
        found = np.full(array.length, None, object)
        there = ~missing if missing is not None else slice(None)
        found[there] = texts[places[there].astype(np.int64)]
        return found
    if form in ("u", "U", "vu"):
        found = _strings(form, array, held)
        if missing is not None:
            found[missing] = None
        return found
    if form.startswith("+w:"):
        size = int(form[3:])
        child = array.children[0].contents
        rows = _column(name, schema.children[0].contents, child, held)
        if missing is not None:
            raise ValueError(f"{name}: example {int(np.argmax(missing))} is missing")
        return rows[array.offset * size : (array.offset + array.length) * size].reshape(array.length, size)
    if form == "b":
        found = _bits(array, 1, held).astype(np.uint8)
    elif form == "n":
        return np.full(array.length, np.nan)
    elif form in _NUMBERS:
        found = _buffer(array, 1, _NUMBERS[form], array.offset + array.length, held)[array.offset :]
    else:
        raise TypeError(f"{name}: a column of Arrow's format {form!r}; give numbers, or strings as labels")
    if missing is not None:
        found = found.astype(np.float32 if form in "ef" else np.float64)
        found[missing] = np.nan
    return found


def _plain(schema: Any) -> Any:
    """The schema of the numbers of a dictionary's entries."""
    plain = _Schema()
    ctypes.memmove(ctypes.byref(plain), ctypes.byref(schema), ctypes.sizeof(_Schema))
    plain.dictionary = None
    return plain


def _together(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0)


def to_array(name: str, values: Any) -> np.ndarray:
    """A column as [count] or [count, n], a table of columns as [count, columns] of one type."""
    schema, pieces = _chunks(values)
    if schema.raw.format != b"+s":
        return _together([_column(name, schema.raw, piece.raw, piece) for piece in pieces])
    columns = []
    for i in range(schema.raw.n_children):
        child = schema.raw.children[i].contents
        title = f"{name}: column {(child.name or b'').decode('utf-8', 'replace')!r}"
        column = _together([_in_table(title, child, piece, i) for piece in pieces])
        if column.dtype == object:
            raise TypeError(f"{title} has strings; leave it out or make numbers of it")
        columns.append(column if column.ndim == 2 else column.reshape(-1, 1))
    if not columns:
        raise ValueError(f"{name}: a table without columns")
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


def _in_table(title: str, schema: Any, piece: _Held, index: int) -> np.ndarray:
    table = piece.raw
    if _nulls(table, piece) is not None:
        raise ValueError(f"{title}: a row is missing as a whole")
    column = _column(title, schema, table.children[index].contents, piece)
    return column[table.offset : table.offset + table.length]


def to_lists(values: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Integers and offsets of a column of lists; None for other columns."""
    schema, pieces = _chunks(values)
    if schema.raw.format not in (b"+l", b"+L"):
        return None
    width = "i4" if schema.raw.format == b"+l" else "i8"
    parts, offsets = [], [np.zeros(1, np.int64)]
    for piece in pieces:
        raw = piece.raw
        missing = _nulls(raw, piece)
        if missing is not None:
            raise ValueError(f"tokens: example {int(np.argmax(missing))} is missing")
        ends = _buffer(raw, 1, width, raw.offset + raw.length + 1, piece)[raw.offset :]
        numbers = _column("tokens", schema.raw.children[0].contents, raw.children[0].contents, piece)
        if numbers.dtype.kind not in "iu":
            raise TypeError("tokens: each sequence is a list of integers")
        parts.append(numbers[ends[0] : ends[-1]])
        offsets.append(ends[1:].astype(np.int64) - int(ends[0]) + offsets[-1][-1])
    return _together(parts), np.concatenate(offsets)
