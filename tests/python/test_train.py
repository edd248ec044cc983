# needs: numpy
"""Training from arrays in Python: the hash of the command on the same numbers from files, and the manners of a library."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import trireme
from checks import raises

program = sys.argv[1]
place = pathlib.Path(tempfile.mkdtemp(prefix="trireme-python-"))
rng = np.random.default_rng(5)

MODEL = """
name: job
seed: 3
layers: [{dense: {units: 12, activation: tanh}}, {dense: 3}]
loss: softmax_cross_entropy
optimizer: {rule: adam, rate: 5e-2}
train: {batch: 40, microbatches: 4, epochs: 4, log_every: 5}
"""
x = rng.normal(size=(240, 6)).astype(np.float32)
y = np.argmax(x[:, :3] + 0.1 * rng.normal(size=(240, 3)), 1).astype(np.int64)


def command_hash():
    """The hash that the command prints for the same numbers from files."""
    np.save(place / "x.npy", x)
    np.save(place / "y.npy", y)
    (place / "job.yaml").write_text(MODEL + "data: {train: {npy: {features: x.npy, labels: y.npy}}}\n")
    out = subprocess.run(
        [program, "train", "job.yaml", "--out", "run"], cwd=place, check=True, capture_output=True, text=True
    ).stdout
    return next(line.split()[1] for line in out.splitlines() if line.startswith("hash"))


def test_one_hash():
    expected = command_hash()
    run = trireme.train(MODEL, x, y)
    assert run.hash == expected, (run.hash, expected)
    assert run.step == run.steps == 24
    # Other types and layouts of the same numbers; other threads.
    wide = np.empty((240, 13), np.float64)[:, ::2][:, :6]
    wide[...] = x
    for other, labels in ((wide, y.astype(np.uint8)), (np.asfortranarray(x), y.astype(np.int32)), (x.tolist(), y.tolist())):
        values = np.asarray(other, np.float64) if isinstance(other, list) else other
        assert trireme.train(MODEL, values, labels, threads=1).hash == expected
    assert trireme.train(MODEL, x[::-1], y[::-1]).hash != expected


def test_what_a_run_has():
    run = trireme.train(MODEL, x, y, test=(x, y))
    last = run.history[-1]
    assert last["kind"] == "evaluation" and last["set"] == "test"
    figures = run.evaluate(x, y)
    assert abs(figures["accuracy"] - last["accuracy"]) < 1e-12 and figures["accuracy"] > 0.8
    # The outputs, restated from the weights.
    hidden = np.tanh(x.astype(np.float64) @ run.weights["dense1.weights"] + run.weights["dense1.bias"])
    scores = hidden @ run.weights["dense2.weights"] + run.weights["dense2.bias"]
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert np.abs(run.predict(x) - probabilities).max() < 1e-5
    run.export(place / "net.onnx")
    assert (place / "net.onnx").stat().st_size > 300
    run.save(place / "kept")
    with trireme.load(place / "kept") as network:
        assert network.hash == run.hash
        assert np.array_equal(network.predict(x[:7]), run.predict(x)[:7])
    assert "<html" in run.report()


def test_names_and_gaps():
    names = np.array(["cat", "dog", "eel"])[y]
    run = trireme.train(MODEL, x, names)
    assert run.class_names == ["cat", "dog", "eel"]
    assert run.hash == trireme.train(MODEL, x, y).hash
    assert run.evaluate(x, names)["accuracy"] > 0.8
    gaps = x.copy()
    gaps[7, 2] = np.nan
    raises(trireme.DataError, lambda: trireme.train(MODEL, gaps, y), "example 7", "NaN")
    filled = gaps.copy()
    filled[7, 2] = np.float32(np.nanmean(gaps[:, 2].astype(np.float64)))
    with_mean = trireme.train(MODEL, gaps, y, missing="mean")
    assert with_mean.hash == trireme.train(MODEL, filled, y).hash
    assert np.array_equal(with_mean.predict(gaps[7:8]), with_mean.predict(filled[7:8]))


def test_tokens_and_inputs():
    texts = [rng.integers(0, 30, rng.integers(1, 9)) for _ in range(80)]
    labels = np.array([int(text.sum()) % 2 for text in texts])
    model = {
        "layers": [{"embedding": 5}, {"lstm": 6}, "last", {"dense": 2}],
        "loss": "softmax_cross_entropy",
        "optimizer": {"rule": "adam", "rate": 0.01},
        "train": {"batch": 20, "steps": 6},
    }
    padded = np.zeros((80, 8), np.int32)
    for row, text in zip(padded, texts):
        row[: len(text)] = text
    ragged = trireme.train(model, trireme.Tokens(texts, vocabulary=30), labels)
    square = trireme.train(model, trireme.Tokens(padded, [len(text) for text in texts], vocabulary=30), labels)
    assert ragged.hash == square.hash
    assert ragged.predict(trireme.Tokens(texts[:3], vocabulary=30)).shape == (3, 2)

    joined = {
        "layers": [
            {"dense": {"units": 4, "from": "left", "name": "a"}},
            {"dense": {"units": 4, "from": "right", "name": "b"}},
            {"concat": {"from": ["a", "b"]}},
            {"dense": 3},
        ],
        "loss": "softmax_cross_entropy",
        "optimizer": {"rule": "adam", "rate": 0.01},
        "train": {"batch": 40, "steps": 5},
    }
    inputs = {"left": x[:, :2], "right": x[:, 2:]}
    run = trireme.train(joined, inputs, y, test=(inputs, y))
    assert run.step == 5
    rows = run.predict(dict(reversed(inputs.items())))
    assert rows.shape == (240, 3) and np.allclose(rows.sum(1), 1, atol=1e-5)
    assert run.evaluate(inputs, y)["loss"] == run.history[-1]["loss"]
    assert list(run.predict_by_name(inputs)) == [run.network.heads[0].name]
    raises(trireme.NotFoundError, lambda: run.predict({"left": x[:, :2]}), "right")
    raises(trireme.ModelError, lambda: run.predict({**inputs, "more": x}), "takes 2")
    raises(trireme.MismatchError, lambda: run.predict(x))


def test_values():
    """Of values there are no accuracies."""
    model = MODEL.replace("dense: 3", "dense: 1").replace("softmax_cross_entropy", "mean_squared_error")
    seen = []
    pair = (x[:50], x[:50, 0])
    run = trireme.train(model, x, x[:, 0], validation=pair, set={"train.evaluate_every": 6}, callbacks=[seen.append])
    assert {record["set"] for record in run.history if record["kind"] == "evaluation"} == {"validation"}
    assert all("accuracy" not in record for record in run.history), run.history
    assert all(np.isnan(event.accuracy) for event in seen)
    assert set(run.evaluate(*pair)) == {"loss", "mae", "rmse", "r2"}


def test_several_outputs():
    model = {
        "layers": [
            {"dense": {"units": 8, "activation": "relu", "name": "shared"}},
            {"dense": {"units": 3, "name": "kind"}},
            {"dense": {"units": 2, "from": "shared", "name": "place"}},
            {"concat": {"from": ["kind", "place"]}},
        ],
        "loss": [{"kind": "softmax_cross_entropy", "outputs": 3}, {"kind": "huber", "outputs": 2}],
        "optimizer": {"rule": "adam", "rate": 0.01},
        "train": {"batch": 40, "steps": 5},
    }
    run = trireme.train(model, x, np.column_stack([y, x[:, 3:5]]))
    kind, place = run.network.heads
    assert (kind.name, kind.columns, kind.classification) == ("kind", slice(0, 3), True)
    assert (place.name, place.loss, place.columns) == ("place", "huber", slice(3, 5))
    found = run.predict_by_name(x[:7])
    assert found["kind"].shape == (7, 3) and np.allclose(found["kind"].sum(1), 1, atol=1e-5)
    assert np.array_equal(found["place"], run.predict(x[:7])[:, 3:])


def test_errors():
    raises(trireme.MismatchError, lambda: trireme.train(MODEL, x[:9], y), "240", "9 examples")
    error = raises(trireme.ModelError, lambda: trireme.train(MODEL.replace("units", "unit", 1), x, y), 'did you mean "units"')
    assert error.line == 4 and error.column
    raises(trireme.NotFoundError, lambda: trireme.train("no-such-model", x, y), "no-such-model", "mnist-quick")
    raises(TypeError, lambda: trireme.train(MODEL, np.array(["a", "b"]), y), "give numbers", "Tokens")
    raises(ValueError, lambda: trireme.train(MODEL, np.zeros((2, 2, 2, 2, 2), np.float32), y), "5 dimensions")
    raises(trireme.ModelError, lambda: trireme.train(MODEL, np.full((240, 6), np.inf), y), "infinite")
    raises(trireme.ModelError, lambda: trireme.train(MODEL, x, -y), "labels")
    raises(FileExistsError, lambda: [trireme.train(MODEL, x, y, out=place / "twice") for _ in range(2)], "overwrite")


def test_callbacks():
    seen = []
    run = trireme.train(MODEL, x, y, callbacks=[seen.append])
    assert {event.kind for event in seen} >= {"step", "end"} and seen[-1].hash == run.hash
    stopped = trireme.train(MODEL, x, y, out=place / "stopped", callbacks=[lambda event: event.kind == "step" and event.step >= 10])
    assert stopped.step == 10

    def fails(event):
        raise KeyError("mine")

    raises(KeyError, lambda: trireme.train(MODEL, x, y, callbacks=[fails]), "mine")


def test_resume():
    expected = trireme.train(MODEL, x, y).hash
    stopped = trireme.train(MODEL, x, y, out=place / "resumed", callbacks=[lambda event: event.kind == "step" and event.step >= 10])
    assert stopped.hash != expected
    run = trireme.train(x=x, y=y, resume=stopped)
    assert run.hash == expected and run.step == 24


def test_teacher():
    wise = trireme.train(MODEL.replace("units: 12", "units: 40"), x, y, seed=8)
    taught = trireme.train(MODEL, x, y, teacher=wise)
    assert taught.hash not in (trireme.train(MODEL, x, y).hash, wise.hash)
    assert trireme.train(MODEL, x, y, teacher=wise.directory, workers=2).hash == taught.hash
    section = {"distill": {"teacher": wise.directory, "temperature": 2}}
    colder = trireme.train(MODEL, x, y, teacher=wise, set={"distill.temperature": 2}).hash
    assert trireme.train(MODEL, x, y, set=section).hash == colder != taught.hash
    raises(trireme.MismatchError, lambda: trireme.train(MODEL, x[:, :5], y, teacher=wise), "takes 6", "the network 5")


def test_from():
    """Parameters of another run, or arrays, in the place of initial values."""
    first = trireme.train(MODEL, x, y)
    other = {"train.epochs": 1, "seed": 8}
    plain = trireme.train(MODEL, x, y, set=other).hash
    expected = trireme.train(MODEL, x, y, set=other, from_=first)
    assert expected.hash != plain
    for start in (first.directory, first.network, first.weights, {name: value.tolist() for name, value in first.weights.items()}):
        assert trireme.train(MODEL, x, y, set=other, from_=start).hash == expected.hash
    for start in (first, first.weights):
        assert trireme.train(MODEL, x, y, set=other, from_=start, workers=2).hash == expected.hash
    half = {name: value for name, value in first.weights.items() if name.startswith("dense1.")}
    assert trireme.train(MODEL, x, y, set=other, from_=half).hash not in (plain, expected.hash)
    wrong = {**half, "dense1.bias": np.zeros(5)}
    raises(trireme.MismatchError, lambda: trireme.train(MODEL, x, y, from_=wrong), "dense1.bias", "[5]", "[12]")
    raises(trireme.MismatchError, lambda: trireme.train(MODEL, x, y, from_={"no.such": x}), "no.such", "dense1.weights")
    raises(ValueError, lambda: trireme.train(MODEL, x, y, from_=first, resume=first), "resume")


def press_later():
    threading.Thread(target=lambda: (time.sleep(1), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()


def test_interrupt():
    """Ctrl-C ends the run in good order, and it goes on later."""
    out = place / "interrupted"
    longer = ["train.epochs=100000"]
    press_later()
    error = raises(KeyboardInterrupt, lambda: trireme.train(MODEL, x, y, out=out, set=longer), str(out), "resume")
    assert any(name.startswith("checkpoint-") for name in os.listdir(out))
    assert isinstance(error, trireme.Interrupted) and 0 < error.run.step < error.run.steps == 600000
    assert error.run.hash and len(error.run.history) >= error.run.step // 5
    # Without a directory of its own, too.
    press_later()
    error = raises(trireme.Interrupted, lambda: trireme.train(MODEL, x, y, set=longer))
    on = trireme.train(x=x, y=y, resume=error.run, set=["train.epochs=0", f"train.steps={error.run.step + 5}"])
    assert on.step == error.run.step + 5


def test_interrupt_of_a_prediction():
    """Ctrl-C while a network is in use is not lost where it calls back."""
    run = trireme.train(MODEL, x, y)
    many = np.zeros((1000000, 6), np.float32)

    def use():
        for _ in range(100):
            run.predict(many)

    press_later()
    raises(KeyboardInterrupt, use)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_release():
    """Nothing of the caller's is kept once the run has ended."""
    from trireme import _sources

    trireme.train(MODEL, x, y)
    raises(trireme.MismatchError, lambda: trireme.train(MODEL, x[:9], y))
    assert not _sources._kept, len(_sources._kept)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
