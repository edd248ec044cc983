"""Columnar tables as the text that the data format `csv` reads."""

from __future__ import annotations

import os
from typing import Any

# Rows that are converted at a time.
_ROWS = 1 << 16


def _pyarrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.compute  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.csv  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("tables of Parquet and Arrow are read by pyarrow; install it: pip install pyarrow") from error
    return pyarrow


def _batches(pyarrow: Any, table: Any) -> tuple[Any, Any]:
    """The schema, and the pieces one after the other, of a file or of an object with Arrow's interface."""
    if not isinstance(table, (str, os.PathLike)):
        if not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(f"a path, or a table with Arrow's interface, is wanted, not {type(table).__name__}")
        reader = pyarrow.RecordBatchReader.from_stream(table)
        return reader.schema, reader
    with open(table, "rb") as file:
        magic = file.read(6)
    if magic[:4] == b"PAR1":
        parquet = pyarrow.parquet.ParquetFile(table)
        return parquet.schema_arrow, parquet.iter_batches(_ROWS)
    if magic == b"ARROW1":
        arrow = pyarrow.ipc.open_file(pyarrow.memory_map(os.fspath(table)))
        return arrow.schema, (arrow.get_batch(i) for i in range(arrow.num_record_batches))
    stream = pyarrow.ipc.open_stream(pyarrow.memory_map(os.fspath(table)))
    return stream.schema, stream


def _plan(pyarrow: Any, schema: Any, columns: Any) -> list[tuple[str, Any]]:
    """Names of the columns to be written, and the types in which they are written."""
    types = pyarrow.types
    wanted = list(schema.names) if columns is None else list(columns)
    plan = []
    for name in wanted:
        index = schema.get_field_index(name)
        if index < 0:
            raise ValueError(f"there is no column {name!r}, or several; there are {', '.join(map(repr, schema.names))}")
        kind = schema.field(index).type
        while types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_boolean(kind):
            kind = pyarrow.int8()
        elif types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
            kind = pyarrow.float64()
        elif types.is_string(kind) or types.is_large_string(kind):
            kind = pyarrow.large_string()
        elif not types.is_integer(kind):
            raise TypeError(
                f"column {name!r} has {kind}, which is neither numbers nor texts; make such of it, or leave it out by `columns`"
            )
        plan.append((name, kind))
    if not plan:
        raise ValueError("there are no columns to write")
    return plan


def _converted(pyarrow: Any, name: str, kind: Any, column: Any, row: int) -> Any:
    """A piece of a column as texts of the format. `row`: the number of its first row."""
    compute = pyarrow.compute
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = column.cast(kind)
    if pyarrow.types.is_floating(kind):
        column = compute.if_else(compute.is_nan(column), pyarrow.scalar(None, kind), column)
        bad = compute.is_inf(column)
    elif kind == pyarrow.large_string():
        bad = compute.match_substring_regex(column, '["\\r\\n]')
    else:
        return column
    place = compute.index(compute.fill_null(bad, False), True).as_py()
    if place >= 0:
        raise ValueError(f"column {name!r}, row {row + place}: {column[place].as_py()!r} cannot stand in a table of text")
    return column


def write_csv(table: Any, path: str | os.PathLike[str], columns: list[str] | None = None) -> int:
    """Writes a columnar table as text, which the data format `csv` reads, so that it can be trained on like any other.

    Numbers keep their values, truth values become 1 and 0, categories (dictionaries) their texts, and what is missing or NaN an empty
    field. The table is read piece by piece; it may be larger than memory. The file appears only when it is complete.

    Parameters
    ----------
    table : path or table
        a file of Parquet or of Arrow (Feather, a file or a stream), or what has `__arrow_c_stream__`: tables of pyarrow, polars,
        pandas
    path : path
        the file to be written
    columns : list of str, optional
        columns to be written, in this order; all if left out

    Returns
    -------
    int
        the rows

    Raises
    ------
    ImportError
        without pyarrow
    TypeError
        a column of times, lists or anything else that is neither numbers nor texts
    ValueError
        a missing column; an infinite number; a text with a quote or a line feed; a file that is neither, or damaged
    """
    pyarrow = _pyarrow()
    schema, batches = _batches(pyarrow, table)
    plan = _plan(pyarrow, schema, columns)
    wanted = pyarrow.schema([pyarrow.field(name, kind) for name, kind in plan])
    for name, _ in plan:
        if any(letter in name for letter in '"\r\n'):
            raise ValueError(f"column {name!r}: a name with a quote or a line feed cannot stand in a table of text")
    path = os.fspath(path)
    rows = 0
    aside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(aside, "xb") as file:
            with pyarrow.csv.CSVWriter(file, wanted) as writer:
                for batch in batches:
                    batch.validate(full=True)  # lengths and offsets of a file may be anything
                    arrays = [_converted(pyarrow, name, kind, batch.column(batch.schema.get_field_index(name)), rows) for name, kind in plan]
                    writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=wanted))
                    rows += batch.num_rows
        os.replace(aside, path)
    except BaseException:
        if os.path.exists(aside):
            os.unlink(aside)
        raise
    return rows
