# needs: numpy
"""Runs and networks in other processes and as copies: pickle, copy, joblib, multiprocessing with spawn and fork."""

import concurrent.futures
import copy
import importlib.util
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

import numpy as np

import trireme
from checks import raises

MODEL = """
name: job
layers: [{dense: {units: 6, activation: tanh}}, {dense: 3}]
optimizer: {rule: adam, rate: 5e-2}
train: {batch: 20, microbatches: 2, steps: 12, log_every: 3, evaluate_every: 6}
"""
rng = np.random.default_rng(5)
x = rng.normal(size=(60, 4)).astype(np.float32)
y = np.argmax(x[:, :3], 1).astype(np.int32)


def hash_of(seed):
    return trireme.train(MODEL, x, y, seed=seed).hash


def predicted(network):
    return network.predict(x)


def test_copies():
    run = trireme.train(MODEL, x, np.array(["a", "b", "c"])[y], test=(x, np.array(["a", "b", "c"])[y]))
    for other in (pickle.loads(pickle.dumps(run)), copy.copy(run), copy.deepcopy(run)):
        assert other.hash == run.hash and other.history == run.history and other.class_names == ["a", "b", "c"]
        assert other.directory != run.directory
        assert np.array_equal(other.predict(x), run.predict(x))
        assert all(np.array_equal(other.weights[name], values) for name, values in run.weights.items())
        assert other.report() and "equal" in other.diff(run)
    network = run.network
    for other in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network)):
        assert other.hash == network.hash and np.array_equal(other.predict(x), network.predict(x))
    assert pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(network)))).hash == network.hash


def test_copy_goes_on():
    stopped = trireme.train(MODEL, x, y, callbacks=[lambda event: event.kind == "step" and event.step >= 6])
    other = pickle.loads(pickle.dumps(stopped))
    assert trireme.train(x=x, y=y, resume=other).hash == trireme.train(MODEL, x, y).hash


def test_copy_outlives_the_first():
    run = trireme.train(MODEL, x, y)
    place, expected, other = run.directory, run.predict(x), copy.copy(run)
    weights = run.weights
    del run
    assert not os.path.exists(place)
    assert np.array_equal(other.predict(x), expected)
    assert weights["dense1.weights"].shape == (4, 6)


def test_what_cannot_be_copied():
    """What is in the library's hands has no copy, and says so."""
    from trireme._arrays import Examples

    with Examples(x, y).open() as source:
        raises((TypeError, ValueError), lambda: pickle.dumps(source), "pickle")


def test_spawn():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(hash_of, [1, 2, 1]) == [hash_of(1), hash_of(2), hash_of(1)]
        network = trireme.train(MODEL, x, y).network
        assert np.array_equal(pool.map(predicted, [network])[0], network.predict(x))


def test_fork_before_use():
    """Children of a process that has used nothing of the library yet."""
    script = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import concurrent.futures, multiprocessing
import numpy as np, trireme
MODEL = {MODEL!r}
rng = np.random.default_rng(5)
x = rng.normal(size=(60, 4)).astype(np.float32)
y = np.argmax(x[:, :3], 1).astype(np.int32)
def hash_of(seed):
    return trireme.train(MODEL, x, y, seed=seed).hash
with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
    print(*pool.map(hash_of, [1, 2]))
print(hash_of(1), hash_of(2))
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    lines = said.stdout.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1] == f"{hash_of(1)} {hash_of(2)}", said.stderr


def refusal_of_the_inherited():
    """What a child hears that predicts with its parent's network."""
    try:
        inherited.predict(x)
    except trireme.UnsupportedError as error:
        return str(error)
    return ""


def test_fork_after_use():
    """A child of a process whose runs are over trains as any other; a network of its parent is refused to it by name."""
    global inherited
    expected = hash_of(1)
    inherited = trireme.train(MODEL, x, y).network
    inherited.predict(x)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        assert pool.submit(hash_of, 1).result(timeout=300) == expected
        said = pool.submit(refusal_of_the_inherited).result(timeout=300)
        assert "predictor was made in process" in said and "forked" in said, said
    assert inherited.predict(x).shape == (60, 3)


def test_joblib():
    if importlib.util.find_spec("joblib") is None:
        print("skipped: joblib is not there", flush=True)
        return
    import joblib

    found = joblib.Parallel(n_jobs=2)(joblib.delayed(hash_of)(seed) for seed in (1, 2))
    assert found == [hash_of(1), hash_of(2)]
    network = trireme.train(MODEL, x, y).network
    with tempfile.TemporaryDirectory() as place:
        joblib.dump(network, os.path.join(place, "network.joblib"))
        assert joblib.load(os.path.join(place, "network.joblib")).hash == network.hash


def test_threads():
    """Runs in threads of one process: each with its own hash, while the others go on."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(hash_of, [1, 2, 3, 4])) == [hash_of(seed) for seed in (1, 2, 3, 4)]
        network = trireme.train(MODEL, x, y).network
        runs = [trireme.train(MODEL, x, y, workers=2, seed=seed).hash for seed in (1,)]
        assert runs == [hash_of(1)] and network


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name, "ok", flush=True)
