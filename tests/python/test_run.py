# needs: numpy
"""What a run gives back: its history, curves, report, networks for others, text; what it logs, prints and shows meanwhile."""

import contextlib
import importlib.util
import io
import itertools
import logging
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import trireme
from checks import raises

place = pathlib.Path(tempfile.mkdtemp(prefix="trireme-run-"))
rng = np.random.default_rng(5)
MODEL = """
name: job
layers: [{dense: {units: 8, activation: tanh}}, {dense: 2}]
optimizer: {rule: adam, rate: 2e-2}
train: {batch: 20, epochs: 20, log_every: 20, evaluate_every: 40}
"""
x = rng.normal(size=(200, 4)).astype(np.float32)
y = (x[:, 0] * x[:, 1] > 0).astype(int)


def test_history():
    run = trireme.train(MODEL, x, y, validation=(x, y))
    steps = [record for record in run.history if record["kind"] == "step"]
    found = [record for record in run.history if record["kind"] == "evaluation"]
    assert [record["step"] for record in steps] == [1, *range(20, 201, 20)]
    assert [record["step"] for record in found if record["set"] == "validation"] == list(range(40, 201, 40))
    assert steps[0]["rate"] == np.float32(2e-2) or abs(steps[0]["rate"] - 2e-2) < 1e-9
    assert found[-1]["loss"] < found[0]["loss"]


def test_receipt():
    import json

    run = trireme.train(MODEL.replace("epochs: 20", "epochs: 20, receipt: true, receipt_every: 50"), x, y)
    with open(run.receipt, encoding="utf-8") as file:
        receipt = json.load(file)
    assert receipt["parameters"] == run.hash and list(receipt["boundaries"]) == ["0", "50", "100", "150", "200"]
    assert trireme.train(MODEL, x, y).receipt is None


def test_curves():
    run = trireme.train(MODEL, x, y, validation=(x, y))
    text = run.curves()
    lines = text.splitlines()
    assert lines[0] == "loss (* training, o evaluated)" and len(lines) == 15 and max(map(len, lines)) <= 72
    losses = [record["loss"] for record in run.history]
    assert lines[1].startswith(f"{max(losses):.4g}".rjust(8)) and lines[12].startswith(f"{min(losses):.4g}".rjust(8))
    # The first step is at the left, the last one at the right; the greatest value above, the least below.
    assert lines[1 + 11 - round(11 * (losses[0] - min(losses)) / (max(losses) - min(losses)))][10] == "*"
    assert text.count("o") >= 5 and "200 steps" in lines[-1]
    assert "accuracy" in run.curves("accuracy", width=40, height=5)
    assert run.curves("nonsense") == "nonsense: nothing was recorded"


def test_pictures():
    run = trireme.train(MODEL, x, y)
    shown = run._repr_html_()
    page = run.report(place / "report.html")
    assert (place / "report.html").read_text() == page
    figure = re.search(r"<figure><figcaption>Loss</figcaption>.*?</figure>", page, flags=re.S)[0]
    import html

    # The report's own picture, in a frame of its own.
    assert shown.startswith("<iframe srcdoc=") and figure in html.unescape(shown) and run.hash[:12] in shown


def test_diff_and_save():
    run, other = trireme.train(MODEL, x, y), trireme.train(MODEL, x, y, seed=9)
    assert "equal" in run.diff(trireme.train(MODEL, x, y))
    assert run.diff(other) != run.diff(run)
    other.save(place / "other")
    assert run.diff(place / "other") == run.diff(other).replace(other.directory, str(place / "other"))
    assert trireme.load(place / "other").hash == other.hash


def test_exports():
    run = trireme.train(MODEL, x, y)
    for name in ("net.safetensors", "net.onnx", "net.npz", "net.c", "net.py"):
        run.export(place / name)
        assert (place / name).stat().st_size > 0
    with np.load(place / "net.npz") as arrays:
        assert np.array_equal(arrays["dense1.weights"], run.weights["dense1.weights"])
    run.export(place / "net.any", format="onnx")
    assert (place / "net.any").read_bytes() == (place / "net.onnx").read_bytes()
    raises(ValueError, lambda: run.export(place / "net.xyz"), "'.xyz'", "format=")


def test_weights():
    run = trireme.train(MODEL, x, y)
    assert {name: values.shape for name, values in run.weights.items()} == {
        "dense1.weights": (4, 8),
        "dense1.bias": (8,),
        "dense2.weights": (8, 2),
        "dense2.bias": (2,),
    }
    raises(ValueError, lambda: run.weights["dense1.bias"].__setitem__(0, 1.0), "read-only")


def test_text():
    """A language model by its path: it generates, and equal seeds say the same."""
    (place / "text.txt").write_text("the cat sat on the mat. " * 60)
    words = 1 + len(set("the cat sat on the mat. "))  # with the unknown one
    model = {
        "data": {"train": {"corpus": {"path": str(place / "text.txt"), "window": 16}}},
        "layers": [{"embedding": 8}, {"lstm": 16}, {"dense": words}],
        "optimizer": {"rule": "adam", "rate": 1e-2},
        "train": {"batch": 8, "steps": 30},
    }
    run = trireme.train(model)
    said = run.generate("the ", tokens=20, seed=3)
    assert len(said) == 20 and said == run.generate("the ", tokens=20, seed=3)
    assert said != run.generate("the ", tokens=20, seed=4)
    raises(trireme.Error, lambda: trireme.train(MODEL, x, y).generate("a"))


def test_translation():
    """A network of two texts writes one for the other, and says where a source is missing."""
    pairs = [("".join(p), "".join(reversed(p))) for p in itertools.product("abc", repeat=3)]
    (place / "pairs.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    text = {"path": str(place / "pairs.csv"), "layout": "table", "header": True, "unit": "characters"}
    model = {
        "data": {
            "train": {
                "join": {
                    "sources": {
                        "a": {"text": {**text, "text_columns": "a", "labels": False}},
                        "b": {"text": {**text, "text_columns": "b", "next": True}},
                    }
                }
            }
        },
        "layers": [
            {"embedding": {"width": 16, "from": "a"}},
            {"position": {"length": 3, "weights": {"normal": 0.5}, "name": "memory"}},
            {"embedding": {"width": 16, "from": "b"}},
            {"position": {"length": 4, "weights": {"normal": 0.5}, "name": "x"}},
            {"cross_attention": {"heads": 2, "with": "memory"}},
            {"add": "x"},
            {"dense": {"units": 32, "activation": "relu"}},
            {"dense": 5},
        ],
        "optimizer": {"rule": "adam", "rate": 2e-2},
        "train": {"batch": 27, "steps": 200},
    }
    run = trireme.train(model)
    right = sum(run.generate(source=a) == b for a, b in pairs)
    assert right > 20, right
    raises(trireme.Error, lambda: run.generate("a"), "takes another text", '"a"')


def test_logging():
    """Nothing is printed; who sets up logging hears."""
    script = (
        "import numpy, trireme; x = numpy.zeros((8, 2), 'f4'); x[:, 0] = range(8);"
        "trireme.train('layers: [{dense: 2}]\\noptimizer: {rule: sgd, rate: 1e-3}\\ntrain: {batch: 4, steps: 2}', x, numpy.arange(8) % 2)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said.returncode == 0 and not said.stdout and not said.stderr, said
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append((record.levelno, record.getMessage()))
    log = logging.getLogger("trireme")
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        trireme.train(MODEL, x, y, validation=(x, y))
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    levels = {level for level, _ in records}
    assert logging.DEBUG in levels and logging.INFO in levels
    assert any("validation loss" in text for _, text in records) and any("saved" in text for _, text in records)


def test_progress():
    if importlib.util.find_spec("tqdm") is None:
        print("skipped: tqdm is not there", flush=True)
        return
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        trireme.train(MODEL, x, y, progress=True)
    assert "200/200" in errors.getvalue()


def test_import():
    """The package loads neither NumPy nor logging until they are needed; all its names are there."""
    heavy = "print(sorted({'numpy', 'logging', 'typing', 'json', 'ctypes'} & {*sys.modules}))"
    script = f"import sys, trireme, trireme._command; {heavy}; trireme.__version__; {heavy}; trireme.train; print('numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True)
    assert said.stdout.splitlines()[:2] == ["[]", "['ctypes']"], said
    assert all(hasattr(trireme, name) for name in trireme.__all__) and set(trireme.__all__) <= set(dir(trireme))
    raises(AttributeError, lambda: trireme.nonsense, "nonsense")


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
