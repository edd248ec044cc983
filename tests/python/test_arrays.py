# needs: numpy
"""Data in every form that Python has them: the hash of the plain array, a copy only where there must be one, and clear
exceptions for what makes no examples.
"""

import ctypes
import importlib.util
import mmap
import os
import tempfile

import numpy as np

import trireme
from checks import raises
from trireme import _arrays, _sources

rng = np.random.default_rng(5)
MODEL = """
name: job
layers: [{dense: {units: 6, activation: tanh}}, {dense: 3}]
optimizer: {rule: adam, rate: 5e-2}
train: {batch: 20, steps: 6}
"""
VALUES = MODEL.replace("dense: 3", "dense: 1") + "loss: mean_squared_error\n"
x = rng.normal(size=(60, 4)).astype(np.float32)
y = np.argmax(x[:, :3], 1).astype(np.int32)
expected = trireme.train(MODEL, x, y).hash


def has(module):
    found = importlib.util.find_spec(module) is not None
    if not found:
        print(f"skipped: {module} is not there", flush=True)
    return found


def address(values):
    return _arrays.as_array("x", values).ctypes.data


class Interface:
    """Something with `__array_interface__` alone."""

    def __init__(self, array, **changes):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, **changes}


class Exporter:
    """Something with DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_without_copies():
    for other in (x, Interface(x), Exporter(x), memoryview(x)):
        assert address(other) == x.ctypes.data, type(other)
        assert trireme.train(MODEL, other, y).hash == expected
    # Strides are the library's to follow.
    wide = np.zeros((120, 8), np.float32)[::2, ::2]
    wide[...] = x
    assert address(wide) == wide.ctypes.data
    assert trireme.train(MODEL, wide, y[::-1][::-1]).hash == expected
    assert trireme.train(MODEL, np.asfortranarray(x), y).hash == expected
    assert trireme.train(MODEL, x.astype(">f4"), y.astype(">i8")).hash == expected
    for kind in (np.int8, np.uint8, np.uint16, np.uint32, np.uint64, np.int64):
        assert trireme.train(MODEL, x, y.astype(kind)).hash == expected


IMAGES = """
name: pixels
input: {{scale: 1/65535, pad: 1, flip: true, rotate: 10, brightness: 0.3{more}}}
layers: [{{conv: {{filters: 3, kernel: 3, padding: same}}}}]
loss: {{per: pixel}}
optimizer: {{rule: adam, rate: 5e-2}}
train: {{batch: 10, steps: 6}}
"""


def test_images_of_numbers():
    """Integers of 16 bits say their range, floats of the same values need one; masks move alike; images are predicted as they came."""
    deep = rng.integers(0, 65536, (20, 6, 5, 1)).astype(np.uint16)
    masks = rng.integers(-1, 3, (20, 6, 5))
    run = trireme.train(IMAGES.format(more=""), deep, masks)
    given = IMAGES.format(more=", range: [0, 65535]")
    for other in (deep.astype(np.float32), deep.astype(np.int64), deep[:, ::-1][:, ::-1]):
        assert trireme.train(given, other, masks).hash == run.hash, other.dtype
    assert trireme.train(IMAGES.format(more=", range: [0, 4095]"), deep, masks).hash != run.hash
    raises(ValueError, lambda: trireme.train(IMAGES.format(more=""), deep.astype(np.float64), masks), "brightness", "range: [0, 1]")
    assert run.predict(deep).shape == (20, 6, 5, 3)
    assert np.array_equal(run.predict(deep[:4]), run.predict(deep.astype(np.float32))[:4])


def test_torch():
    if not has("torch"):
        return
    import torch

    tensor = torch.from_numpy(x.copy()).requires_grad_()
    assert address(tensor) == tensor.data_ptr()
    assert trireme.train(MODEL, tensor, torch.from_numpy(y)).hash == expected
    assert trireme.train(MODEL, tensor.T.contiguous().T, torch.from_numpy(y).long()).hash == expected


def test_jax():
    if not has("jax"):
        return
    import jax.numpy

    assert trireme.train(MODEL, jax.numpy.asarray(x), jax.numpy.asarray(y)).hash == expected


def test_pandas():
    if not has("pandas"):
        return
    import pandas

    frame = pandas.DataFrame(x, columns=list("abcd"))
    assert trireme.train(MODEL, frame, pandas.Series(y)).hash == expected
    names = pandas.Series(np.array(["cat", "dog", "eel"])[y])
    for labels in (names, names.astype("category"), names.astype("string")):
        run = trireme.train(MODEL, frame, labels)
        assert run.hash == expected and run.class_names == ["cat", "dog", "eel"]
    gaps = frame.astype(object).convert_dtypes()
    gaps.loc[7, "c"] = pandas.NA
    plain = x.astype(np.float64)
    plain[7, 2] = np.nan
    assert trireme.train(MODEL, gaps, y, missing="mean").hash == trireme.train(MODEL, plain, y, missing="mean").hash
    mixed = frame.assign(city="Rome")
    raises(TypeError, lambda: trireme.train(MODEL, mixed, y), "x", "'city'")
    raises(ValueError, lambda: trireme.train(MODEL, frame, names.where(names != "dog")), "labels: example", "has none")
    assert len(trireme.train(MODEL, x, y).history.to_pandas()) == len(trireme.train(MODEL, x, y).history)


def test_names():
    """A frame with strings is what the table was: a network with categories takes it, unknown names and gaps included."""
    if not has("pandas"):
        return
    import pandas

    with tempfile.TemporaryDirectory() as place:
        table = os.path.join(place, "birds.csv")
        islands = np.array(["Dream", "Biscoe", "Tor, \u00e9"])[np.arange(60) % 3]
        frame = pandas.DataFrame({"mass": np.arange(60) % 7 * 1.5, "island": islands})
        frame.assign(kind=np.arange(60) % 3).to_csv(table, index=False)
        source = f"{{csv: {{path: {table}, categories: island, missing: mean, standardize: true}}}}"
        run = trireme.train(MODEL.replace("layers:", f"data: {{train: {source}}}\nlayers:"))
        gaps = pandas.DataFrame({"mass": [1.5, None, 3], "island": ["Dream", "Mars", None]})
        gaps.assign(kind=0).to_csv(os.path.join(place, "gaps.csv"), index=False)
        for strings in (frame, frame.astype({"island": "category"}), frame.astype({"island": "string"})):
            rows = run.predict(strings)
            assert rows.shape == (60, 3) and np.array_equal(rows[:3], run.predict(frame.iloc[:3]))
        numbers = np.array([1.0, 0, 2])[np.arange(60) % 3]  # in the order of their bytes: Biscoe, Dream, Tor
        assert np.array_equal(run.predict(frame), run.predict(np.stack([frame["mass"], numbers], 1)))
        numbers = np.array([[1.5, 1], [np.nan, -1], [3, np.nan]])
        assert np.array_equal(run.predict(gaps), run.predict(numbers))


def test_sequences():
    """[count, steps, n] is a sequence for recurrent layers, and one row for predictions that say so."""
    model = MODEL.replace("{dense: {units: 6, activation: tanh}}", "{lstm: 5}, last")
    series = rng.normal(size=(60, 4, 3)).astype(np.float32)
    run = trireme.train(model, series, y)
    assert run.hash == trireme.train(model, series.astype(np.float64), y).hash
    assert run.hash == trireme.train(model, series.reshape(60, 12), y, set={"input.steps": 4, "input.shape": [12]}).hash
    assert np.array_equal(run.predict(series), run.predict(series.reshape(60, 12)))
    raises(trireme.Error, lambda: run.predict(series[:, :3]), "9 numbers")


def arrow_tables():
    if has("pyarrow"):
        import pyarrow

        yield pyarrow.table({name: x[:, i] for i, name in enumerate("abcd")}), pyarrow.array, pyarrow.table
    if has("polars"):
        import polars

        yield polars.DataFrame({name: x[:, i] for i, name in enumerate("abcd")}), polars.Series, polars.DataFrame


def test_arrow():
    for frame, column, table in arrow_tables():
        assert trireme.train(MODEL, frame, column(y)).hash == expected
        names = ["a class with a name that is long", "dog", "eel"]
        run = trireme.train(MODEL, frame, column([names[label] for label in y]))
        assert run.hash == expected and run.class_names == names
        # One column of numbers is looked at where it lies.
        values = np.arange(60, dtype=np.float32)
        one = column(values)
        assert np.array_equal(_arrays.as_array("x", one), values)
        assert address(one) == address(one)
        # Missing numbers are NaN, and so they are in whole numbers.
        gaps = table({"a": [1, None, 3], "b": [0.5, 1.5, None], "c": [True, False, None]})
        found = _arrays.as_array("x", gaps)
        wanted = np.array([[1, 0.5, 1], [np.nan, 1.5, 0], [3, np.nan, np.nan]])
        assert np.array_equal(found, wanted, equal_nan=True), found
        raises(TypeError, lambda: trireme.train(MODEL, table({"a": [1, 2], "city": ["x", "y"]}), y), "'city'", "strings")
        raises(ValueError, lambda: trireme.train(MODEL, x, column(["a", None] * 30)), "example 1", "has none")
        lists = column([[1, 2, 3], [4], [0, 2]])
        assert trireme.Tokens(lists).offsets.tolist() == [0, 3, 4, 6]
        assert trireme.Tokens(lists).values.tolist() == [1, 2, 3, 4, 0, 2]


def test_arrow_of_pyarrow():
    if not has("pyarrow"):
        return
    import pyarrow

    flat = pyarrow.array(x.ravel())
    rows = pyarrow.FixedSizeListArray.from_arrays(flat, 4)
    assert address(rows) == flat.buffers()[1].address
    assert trireme.train(MODEL, rows, pyarrow.array(y)).hash == expected
    assert address(rows.slice(5)) == flat.buffers()[1].address + 5 * 16
    parts = pyarrow.chunked_array([flat[:7], flat[7:100], flat[100:]])
    assert np.array_equal(_arrays.as_array("x", parts), x.ravel())
    table = pyarrow.table({"a": flat}).slice(3, 20)
    assert np.array_equal(_arrays.as_array("x", table)[:, 0], x.ravel()[3:23])
    words = pyarrow.array(["b", "a", None, "b"]).dictionary_encode()
    assert _arrays.look_at("y", words).tolist() == ["b", "a", None, "b"]
    assert _arrays.look_at("y", words.slice(1)).tolist() == ["a", None, "b"]
    bits = pyarrow.array([True, None, False] * 9).slice(2)
    assert np.array_equal(_arrays.as_array("x", bits)[:3], [0, 1, np.nan], equal_nan=True)
    assert _arrays.look_at("y", pyarrow.array(["x", "yy", "zzz"], pyarrow.large_string()).slice(1)).tolist() == ["yy", "zzz"]
    raises(TypeError, lambda: _arrays.as_array("x", pyarrow.array([1], pyarrow.timestamp("s"))), "x", "tss")
    # What looks at memory of Arrow keeps it.
    kept = _arrays.as_array("x", pyarrow.array(np.arange(100000, dtype=np.float32)))
    assert kept.sum(dtype=np.float64) == 99999 * 50000


def test_masked():
    masked = np.ma.masked_array(x, np.zeros_like(x, bool))
    assert address(masked) == x.ctypes.data
    masked[7, 2] = np.ma.masked
    filled = x.copy()
    filled[7, 2] = np.nan
    assert trireme.train(MODEL, masked, y, missing="mean").hash == trireme.train(MODEL, filled, y, missing="mean").hash
    raises(trireme.DataError, lambda: trireme.train(MODEL, masked, y), "example 7", "NaN")


def test_bad_types():
    for values in (x.astype(complex), np.zeros((60, 4), "M8[s]"), np.array([["a"]] * 60), {1, 2}, object(), None):
        if values is not None:
            raises(TypeError, lambda: trireme.train(MODEL, values, y), "x: ", "give numbers")
    raises(OverflowError, lambda: trireme.train(MODEL, x, np.full(60, 2**63, np.uint64)), "y: ", str(2**63))
    raises(ValueError, lambda: trireme.train(MODEL, [[1, 2], [3]], y))
    raises(TypeError, lambda: trireme.Tokens([[0.5]]), "integers")
    raises(TypeError, lambda: trireme.Tokens(np.zeros((2, 3))), "integers")
    raises(TypeError, lambda: trireme.Tokens(np.zeros((2, 3), int), [0.5, 1]), "lengths")


def test_bad_shapes():
    raises(ValueError, lambda: trireme.train(MODEL, np.zeros((2, 2, 2, 2, 2), np.float32), y), "5 dimensions")
    raises(ValueError, lambda: trireme.train(MODEL, np.float32(1), y), "0 dimensions")
    raises(trireme.Error, lambda: trireme.train(MODEL, x, y[:50]), "60", "50")
    raises(trireme.Error, lambda: trireme.train(MODEL, x[:0], y[:0]))
    raises(trireme.Error, lambda: trireme.train(MODEL, x[:, :0], y))
    raises(trireme.Error, lambda: trireme.train(MODEL, x, np.zeros((60, 2, 2))), "labels")
    raises(trireme.Error, lambda: trireme.train(MODEL, x, y, test=(x[:, :3], y)), "3", "4")
    run = trireme.train(MODEL, x, y)
    raises(trireme.MismatchError, lambda: run.predict(x[:, :3]), "3", "4")
    raises(ValueError, lambda: trireme.train(MODEL, {"a": x}, y), "two or more")


def test_bad_values():
    labels = x[:, 0].copy()
    labels[11] = np.nan
    raises(trireme.Error, lambda: trireme.train(VALUES, x, labels), "11", "NaN")
    raises(trireme.Error, lambda: trireme.train(MODEL, x, np.where(y == 0, -5, y)), "labels")
    raises(trireme.Error, lambda: trireme.train(MODEL, np.where(x > 2, np.inf, x), y), "infinite")
    raises(trireme.Error, lambda: trireme.train(MODEL, x, y + 5))  # three outputs for eight classes


def test_bad_lengths():
    tokens = np.zeros((6, 5), np.int32)
    model = {
        "layers": [{"embedding": 3}, "last", {"dense": 2}],
        "optimizer": {"rule": "sgd", "rate": 0.1},
        "train": {"batch": 2, "steps": 2},
    }

    def train(lengths, values=tokens):
        return trireme.train(model, trireme.Tokens(values, lengths), np.arange(6) % 2)

    assert train([1, 2, 3, 4, 5, 5]).step == 2
    for bad in (-1, 0, 6, 2**40, -(2**63)):
        raises(trireme.Error, lambda: train([1, 2, bad, 4, 5, 5]), "2", str(bad))
    raises(trireme.Error, lambda: train([1, 2, 3]), "3")
    raises(trireme.Error, lambda: train([1] * 6, tokens - 1), "element 0 is -1")
    raises(ValueError, lambda: trireme.Tokens([[1], [2]], [1, 1]), "lengths")


def test_released_memory():
    view = memoryview(x.copy())
    view.release()
    raises(ValueError, lambda: trireme.train(MODEL, view, y), "released")
    raises((ValueError, TypeError), lambda: trireme.train(MODEL, Interface(x, data=None), y))
    mapped = mmap.mmap(-1, x.nbytes)
    array = np.frombuffer(mapped, np.float32).reshape(x.shape)
    # What looks at it keeps it: it cannot be taken away under a run.
    raises(BufferError, mapped.close)
    array[...] = x
    assert trireme.train(MODEL, array, y).hash == expected
    # Arrays live as long as the library looks at them, and no longer.
    source = _arrays.Examples(x.copy(), y.copy()).open()
    assert len(_sources._kept) == 1
    source.close()
    assert not _sources._kept
    network = trireme.train(MODEL, x, y).network
    network.close()
    raises(ValueError, lambda: network.predict(x), "closed")


def test_strides():
    # One row, 2^31 and more times; and one number, whose strides are all 0.
    many, zeros = np.broadcast_to(x[:1], (2**38 + 8, 4)), np.broadcast_to(y[:1], 2**38 + 8)
    raises(trireme.OutOfMemoryError, lambda: trireme.train(MODEL, many, zeros), str(2**38 + 8), "MiB")
    raises(trireme.OutOfMemoryError, lambda: trireme.train(MODEL, many, zeros, workers=2), "workers share", "MiB")
    with trireme.train(MODEL, x, y).network as network:
        raises(trireme.OutOfMemoryError, lambda: network.predict(many), str((2**38 + 8) * 16), "free")
    raises(trireme.Error, lambda: trireme.train(MODEL, np.broadcast_to(x[:1, :1], (2**31 + 8, 1)), y), str(2**31 + 8), "60")
    run = trireme.train(MODEL, np.broadcast_to(np.float32(0.5), (60, 4)), np.broadcast_to(np.int32(1), 60))
    assert run.hash == trireme.train(MODEL, np.full((60, 4), 0.5), np.ones(60, int)).hash
    assert trireme.train(MODEL, np.broadcast_to(x[:1], (60, 4)), y).hash == trireme.train(MODEL, x[[0] * 60], y).hash
    odd = (ctypes.c_char * (x.nbytes + 1))()
    unaligned = np.frombuffer(odd, np.float32, x.size, 1).reshape(x.shape)
    unaligned[...] = x
    assert not unaligned.flags.aligned
    assert trireme.train(MODEL, unaligned, y).hash == expected


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
