# needs: numpy
"""Several processes from Python: the hash of one, strategies, errors of a worker, its death, Ctrl-C, callbacks, going on."""

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

place = pathlib.Path(tempfile.mkdtemp(prefix="trireme-workers-"))
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


def children():
    """Processes that this one has started and that are there."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
    return [int(word) for word in found.split() if os.path.exists(f"/proc/{word}/cmdline")]


def test_one_hash():
    expected = trireme.train(MODEL, x, y).hash
    for workers in (2, 3, 4):
        run = trireme.train(MODEL, x, y, workers=workers, test=(x, y))
        assert run.hash == expected
        assert run.history[-1]["set"] == "test" and run.evaluate(x, y)["accuracy"] == run.history[-1]["accuracy"]
    # Numbers that the network does not compute in are converted for all, before a mean is taken of them, too.
    wide = x.astype(np.float64) + 1e-9
    alone = trireme.train(MODEL, wide[::-1], y[::-1], standardize=True)
    assert trireme.train(MODEL, wide[::-1], y[::-1], standardize=True, workers=2).hash == alone.hash
    whole = (x * 100).astype(np.int64)
    assert trireme.train(MODEL, whole, y, workers=2).hash == trireme.train(MODEL, whole, y).hash


def test_strategies():
    alone = trireme.train(MODEL, x, y)
    for strategy in ("allreduce", "parameter-server", "pipeline", {"pipeline": {"stages": 2}}):
        run = trireme.train(MODEL, x, y, workers=2, strategy=strategy)
        assert run.hash == alone.hash, strategy
        # Also where no process has all of them.
        assert all(np.array_equal(run.weights[name], values) for name, values in alone.weights.items())
    for strategy in ("local-sgd,every=3", {"gossip": None}):
        runs = [trireme.train(MODEL, x, y, workers=2, strategy=strategy) for _ in range(2)]
        assert runs[0].hash == runs[1].hash != alone.hash, strategy
    run = trireme.train(MODEL, x, y, workers=3, strategy={"parameter-server": {"mode": "async"}})
    assert run.step == 24 and run.evaluate(x, y)["accuracy"] > 0.7
    raises(ValueError, lambda: trireme.train(MODEL, x, y, workers=2, strategy={"a": 1, "b": 2}), "one name")


def test_all_kinds_of_data():
    texts = [rng.integers(0, 30, rng.integers(1, 9)) for _ in range(80)]
    names = np.array(["even", "odd"])[[int(text.sum()) % 2 for text in texts]]
    model = {
        "layers": [{"embedding": 5}, {"lstm": 6}, "last", {"dense": 2}],
        "optimizer": {"rule": "adam", "rate": 0.01},
        "train": {"batch": 20, "microbatches": 4, "steps": 6},
    }
    runs = [trireme.train(model, trireme.Tokens(texts), names, workers=workers) for workers in (1, 2)]
    assert runs[0].hash == runs[1].hash and runs[1].class_names == ["even", "odd"]
    images = rng.integers(0, 256, (64, 6, 6), np.uint8)
    model = {
        "layers": [{"conv": {"filters": 3, "kernel": 3}}, "flatten", {"dense": 3}],
        "optimizer": {"rule": "sgd", "rate": 0.01},
        "train": {"batch": 16, "microbatches": 2, "steps": 5},
    }
    runs = [trireme.train(model, images, y[:64], workers=workers) for workers in (1, 2)]
    assert runs[0].hash == runs[1].hash
    # 16 bits say their range, also in shared memory.
    model["input"] = {"scale": 1e-4, "contrast": 0.5, "rotate": 10}
    for kind in (np.int16, np.uint16):
        deep = (images * np.uint16(120)).astype(kind)[..., None]
        runs = [trireme.train(model, deep, y[:64], workers=workers) for workers in (1, 2)]
        assert runs[0].hash == runs[1].hash, kind


def test_errors():
    raises(ValueError, lambda: trireme.train(MODEL, x, y, workers=0), "workers")
    raises(trireme.ModelError, lambda: trireme.train(MODEL.replace("units", "unit"), x, y, workers=2), "did you mean")
    # Found by all processes alike: the message is the calling one's.
    raises(trireme.Error, lambda: trireme.train(MODEL, x[:9], y, workers=2), "9 examples")
    raises(trireme.Error, lambda: trireme.train(MODEL, x, y, workers=5), "5")
    gaps = x.copy()
    gaps[7, 2] = np.nan
    raises(trireme.DataError, lambda: trireme.train(MODEL, gaps, y, workers=2), "example 7", "NaN")
    assert not children()


def test_error_of_one():
    """What only a worker meets comes out with its number."""
    from trireme import _workers

    start = _workers.Workers._start

    def other(self, rank, settings):
        import dataclasses

        start(self, rank, dataclasses.replace(settings, isa="nonsense") if rank == 2 else settings)

    _workers.Workers._start = other
    try:
        raises(trireme.Error, lambda: trireme.train(MODEL, x, y, workers=3), "worker 2: ", "nonsense")
    finally:
        _workers.Workers._start = start
    assert not children()


def test_death_of_one():
    def kill(event):
        if event.kind == "step" and event.step >= 5 and children():
            os.kill(children()[-1], signal.SIGKILL)

    longer = {"train.epochs": 100000}
    error = raises(trireme.PeerError, lambda: trireme.train(MODEL, x, y, workers=3, callbacks=[kill], set=longer), "signal 9")
    assert "worker " in str(error)
    assert not children()


def test_callbacks():
    def enough(event):
        return event.kind == "step" and event.step >= 10

    stopped = trireme.train(MODEL, x, y, workers=2, callbacks=[enough], out=place / "stopped")
    assert 10 <= stopped.step < 24
    run = trireme.train(x=x, y=y, resume=stopped, workers=3)
    assert run.hash == trireme.train(MODEL, x, y).hash

    def fails(event):
        raise KeyError("mine")

    raises(KeyError, lambda: trireme.train(MODEL, x, y, workers=2, callbacks=[fails]), "mine")
    seen = []
    trireme.train(
        MODEL,
        x,
        y,
        workers=2,
        strategy="parameter-server,mode=async",
        set={"train.epochs": 100000},
        callbacks=[lambda event: seen.append(event.step) or event.step >= 20],
    )
    assert seen[-1] < 100000
    assert not children()


def test_interrupt():
    """Ctrl-C reaches all processes, and only this one acts on it."""
    out = place / "interrupted"

    def press():
        time.sleep(1.5)
        for process in (*children(), os.getpid()):
            os.kill(process, signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    longer = {"train.epochs": 1000000}
    raises(KeyboardInterrupt, lambda: trireme.train(MODEL, x, y, workers=2, out=out, set=longer), "resume")
    assert any(name.startswith("checkpoint-") for name in os.listdir(out))
    assert not children()


def test_interrupt_while_workers_join():
    """Ctrl-C does not wait for a worker that never comes."""
    from multiprocessing import spawn

    sleeper = place / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 1000\n")
    sleeper.chmod(0o755)
    before = spawn.get_executable()
    spawn.set_executable(str(sleeper))
    try:
        threading.Thread(target=lambda: (time.sleep(1), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()
        raises(KeyboardInterrupt, lambda: trireme.train(MODEL, x, y, workers=2), "before the first step")
    finally:
        spawn.set_executable(before)
    assert not children()


def test_nobody_is_left():
    """Workers end with the process that started them, however that ends."""
    script = f"""
import numpy as np, trireme, os, signal, subprocess
x = np.random.default_rng(1).normal(size=(240, 6)).astype(np.float32)
def die(event):
    if event.kind == "step" and event.step > 3:
        print(subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
trireme.train({MODEL!r}, x, np.arange(240) % 3, workers=2, callbacks=[die], set={{"train.epochs": 100000}})
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said.returncode == -signal.SIGKILL, said.stderr
    worker = int(said.stdout.split()[0])
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{worker}") and "trireme" in pathlib.Path(f"/proc/{worker}/cmdline").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_release():
    from trireme import _sources

    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        trireme.train(MODEL, x, y, workers=2)
    assert not _sources._kept
    assert len(os.listdir("/proc/self/fd")) <= before


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
