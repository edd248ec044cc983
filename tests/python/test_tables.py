# needs: numpy pyarrow
"""Files of Parquet and Arrow as tables: the numbers, names and gaps of the same table in CSV, to the hash; what has no place in a
table is refused, and so are damaged files."""

import atexit
import csv
import datetime
import os
import shutil
import tempfile

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet

import trireme
from checks import raises

PLACE = tempfile.mkdtemp(prefix="trireme-tables-")
atexit.register(shutil.rmtree, PLACE, ignore_errors=True)
ROWS = 200
MODEL = """
name: tables
data:
  train: {csv: {path: PATH, label: name, label_columns: [kind], categories: [town], missing: mean, standardize: true}}
layers: [{dense: {units: 6, activation: tanh}}, {dense: 3}]
optimizer: {rule: adam, rate: 5e-2}
train: {batch: 20, steps: 12}
"""


def place(name):
    return os.path.join(PLACE, name)


rng = np.random.default_rng(9)
single = rng.normal(size=ROWS).astype(np.float32)
double = rng.normal(size=ROWS) * 1e-3
whole = rng.integers(-(2**40), 2**40, ROWS)
truth = whole % 3 == 0
gaps = [None if i % 7 == 2 else float(i) / 3 for i in range(ROWS)]
town = [None if i % 11 == 5 else ["Bonn", "Kiel, north", "Ulm"][i % 3] for i in range(ROWS)]
kind = ["wet" if value < -0.5 else "dry" if value < 0.5 else "mild" for value in single]
TABLE = pyarrow.table(
    {
        "single": single,
        "double": pyarrow.array([float("nan") if i == 3 else v for i, v in enumerate(double)]),
        "whole": whole,
        "truth": truth,
        "gaps": pyarrow.array(gaps),
        "town": pyarrow.array(town).dictionary_encode(),
        "kind": kind,
        "when": pyarrow.array([datetime.datetime(2026, 1, 1)] * ROWS),
    }
)
COLUMNS = [name for name in TABLE.column_names if name != "when"]


def hash_of(path):
    return trireme.train(MODEL.replace("PATH", path)).hash


def by_hand():
    """The same table in CSV, written without pyarrow."""
    with open(place("hand.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for i in range(ROWS):
            numbers = [repr(float(single[i])), "" if i == 3 else repr(float(double[i])), int(whole[i]), int(truth[i])]
            writer.writerow(numbers + ["" if gaps[i] is None else repr(gaps[i]), town[i] or "", kind[i]])
    return hash_of(place("hand.csv"))


def test_hash():
    expected = by_hand()
    pyarrow.parquet.write_table(TABLE, place("a.parquet"), row_group_size=37)
    pyarrow.feather.write_feather(TABLE, place("a.feather"), compression="zstd")
    with pyarrow.ipc.new_stream(place("a.arrows"), TABLE.schema) as stream:
        for batch in TABLE.to_batches(max_chunksize=41):
            stream.write_batch(batch)
    for source in (place("a.parquet"), place("a.feather"), place("a.arrows"), TABLE, TABLE.select(COLUMNS[::-1])):
        assert trireme.write_csv(source, place("out.csv"), columns=COLUMNS) == ROWS
        assert hash_of(place("out.csv")) == expected, source
    assert sorted(os.listdir(PLACE)) == ["a.arrows", "a.feather", "a.parquet", "hand.csv", "out.csv"]


def test_numbers():
    """Every number comes back as it was."""
    values = np.frombuffer(rng.integers(0, 2**32, 4000, dtype=np.uint32).tobytes(), np.float32)
    values = values[np.isfinite(values)]
    trireme.write_csv(pyarrow.table({"a": values, "b": values.astype(np.float64)}), place("numbers.csv"))
    with open(place("numbers.csv"), encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["a", "b"]
    found = np.array(rows[1:], np.float64)
    assert np.array_equal(found[:, 0].astype(np.float32).view(np.uint32), values.view(np.uint32))
    assert np.array_equal(found[:, 1].astype(np.float32).view(np.uint32), values.view(np.uint32))


def test_refused():
    raises(TypeError, lambda: trireme.write_csv(TABLE, place("no.csv")), "'when'", "timestamp", "`columns`")
    raises(ValueError, lambda: trireme.write_csv(TABLE, place("no.csv"), columns=["size"]), "'size'", "'gaps'")
    for texts in (["a", 'b"c'], ["a", "b\nc"]):
        raises(ValueError, lambda: trireme.write_csv(pyarrow.table({"t": texts}), place("no.csv")), "'t'", "row 1")
    raises(ValueError, lambda: trireme.write_csv(pyarrow.table({"n": [1.0, np.inf]}), place("no.csv")), "'n'", "row 1")
    raises(TypeError, lambda: trireme.write_csv(pyarrow.table({"l": [[1], [2, 3]]}), place("no.csv")), "'l'", "list")
    raises(TypeError, lambda: trireme.write_csv([[1]], place("no.csv")), "list")
    raises(FileNotFoundError, lambda: trireme.write_csv(place("nowhere.parquet"), place("no.csv")))
    assert not [name for name in os.listdir(PLACE) if name.startswith("no.csv")]


def test_damaged():
    """Cut anywhere, or with another byte: an error of Python's, or a table; never a part of one under the name."""
    for name in ("a.parquet", "a.feather", "a.arrows"):
        with open(place(name), "rb") as file:
            good = file.read()
        for at in range(0, len(good), max(1, len(good) // 60)):
            changed = bytearray(good)
            changed[at] ^= 0x55
            for bad in (good[:at], bytes(changed)):
                with open(place("bad"), "wb") as file:
                    file.write(bad)
                if os.path.exists(place("bad.csv")):
                    os.unlink(place("bad.csv"))
                try:
                    rows = trireme.write_csv(place("bad"), place("bad.csv"), columns=["single", "kind"])
                    assert os.path.exists(place("bad.csv")) and rows <= ROWS
                except (ValueError, TypeError, OSError, KeyError, MemoryError, NotImplementedError, pyarrow.ArrowException):
                    assert not os.path.exists(place("bad.csv"))


for test in (test_hash, test_numbers, test_refused, test_damaged):
    test()
    print(f"{test.__name__}: passed")
