# needs: numpy
"""NumPy: .npz files of ours, and data in .npy files of its own."""

import json
import os
import zipfile

import numpy as np

from common import close, data, mnist, place, predict, trireme, write

COUNT = 1000


def digits(count=COUNT, part="train"):
    images, labels = mnist(part, count)
    return np.frombuffer(b"".join(images), np.uint8).reshape(count, 28, 28), np.array(labels)


MODEL = """
name: {name}
seed: 3
data:
  train: {{npy: {{features: {name}-x.npy, labels: {name}-y.npy, classes: 10}}}}
  test: {{npy: {{features: {name}-x.npy, labels: {name}-y.npy}}}}
input: {{scale: 1/255}}
layers: [{layers}]
optimizer: {{rule: adam, rate: 1e-3}}
train: {{batch: 50, steps: 30}}
"""

CONV = "{conv: {filters: 4, kernel: 3, activation: relu}}, {max_pool: 2}, {dense: 10}"
DENSE = "{dense: {units: 16, activation: tanh}}, {dense: 10}"


def run(name, x, y, layers):
    """Trains on two arrays; returns the hash."""
    np.save(place(f"{name}-x.npy"), x)
    np.save(place(f"{name}-y.npy"), y)
    path = write(f"{name}.yaml", MODEL.format(name=name, layers=layers))
    out = trireme("train", path, "--out", name, "--log", "json")
    return json.loads(out.splitlines()[-1])["hash"]


def images():
    """Images in .npy files train to the weights of the same images in IDX files, whatever the type of the labels."""
    x, y = digits()
    types = ("u1", "<i4", ">i4", "<i8", ">i8")
    hashes = {run(f"labels-{i}", x, y.astype(t), CONV) for i, t in enumerate(types)}
    hashes.add(run("one-channel", x[..., None], y, CONV))
    idx = MODEL.format(name="idx", layers=CONV)
    for kind, head, values in (("x", [3, COUNT, 28, 28], x), ("y", [1, COUNT], y.astype(np.uint8))):
        with open(place(f"idx-{kind}"), "wb") as file:
            file.write(bytes([0, 0, 8, head[0]]) + np.array(head[1:], ">i4").tobytes() + values.tobytes())
    idx = idx.replace("npy: {features: idx-x.npy, labels: idx-y.npy", "idx: {images: idx-x, labels: idx-y")
    out = trireme("train", write("idx.yaml", idx), "--out", "idx", "--log", "json")
    hashes.add(json.loads(out.splitlines()[-1])["hash"])
    assert len(hashes) == 1, hashes
    print("images: one hash for labels of u1, i4 and i8 of both byte orders, and for IDX files")


def numbers():
    """Vectors of numbers: all types give the same weights, and these predict what NumPy computes with them."""
    x, y = digits()
    rows = (x.reshape(COUNT, 784) // 16).astype(np.float32)
    types = ("<f4", ">f4", "<f8", ">f8", "u1", "<i4", ">i8")
    hashes = {run(f"numbers-{i}", rows.astype(t), y, DENSE) for i, t in enumerate(types)}
    assert len(hashes) == 1, hashes
    trireme("export", "numbers-0", "--npz", "numbers.npz", "--safetensors", "numbers.safetensors")
    with np.load(place("numbers.npz")) as file:
        tensors = dict(file)
    assert sorted(tensors) == ["dense1.bias", "dense1.weights", "dense2.bias", "dense2.weights"], sorted(tensors)
    hidden = np.tanh(rows[:20] @ tensors["dense1.weights"] + tensors["dense1.bias"])
    scores = (hidden @ tensors["dense2.weights"] + tensors["dense2.bias"]).astype(np.float64)
    expected = np.exp(scores - scores.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    close("a network in NumPy", predict("numbers-0", 20), expected.tolist())


def values():
    """Regression: floats as labels, in one dimension and in two."""
    generator = np.random.default_rng(5)
    x = generator.standard_normal((200, 3))
    slope = np.array([[1.0, -2.0], [0.5, 0.25], [3.0, 1.0]])
    model = (
        MODEL.replace("classes: 10", "classes: 0")
        .replace("optimizer: {{rule: adam, rate: 1e-3}}", "loss: mean_squared_error\noptimizer: {{rule: sgd, rate: 0.1}}")
        .replace("steps: 30", "steps: 400")
        .replace("input: {{scale: 1/255}}\n", "")
    )
    for name, y in (("plane", x @ slope), ("line", x @ slope[:, 0])):
        np.save(place(f"{name}-x.npy"), x)
        np.save(place(f"{name}-y.npy"), y)
        outputs = 1 if y.ndim == 1 else y.shape[1]
        path = write(f"{name}.yaml", model.format(name=name, layers=f"{{dense: {outputs}}}"))
        trireme("train", path, "--out", name, "--quiet")
        trireme("export", name, "--npz", f"{name}.npz")
        learned = np.load(place(f"{name}.npz"))["dense1.weights"]
        close(f"a {name}", learned.tolist(), slope[:, :outputs].tolist(), 1e-4)


def archives():
    """What is in an .npz file, byte by byte as NumPy would write the arrays; and PyTorch's layout."""
    run("archive", *digits(), CONV)
    trireme("export", "archive", "--npz", "archive.npz")
    trireme("export", "archive", "--npz", "theirs.npz", "--layout", "torch")
    own, theirs = np.load(place("archive.npz")), np.load(place("theirs.npz"))
    assert np.array_equal(own["conv1.weights"].transpose(3, 2, 0, 1), theirs["conv1.weight"])
    dense = own["dense1.weights"].reshape(13, 13, 4, 10).transpose(3, 2, 0, 1).reshape(10, -1)
    assert np.array_equal(dense, theirs["dense1.weight"])
    with zipfile.ZipFile(place("archive.npz")) as file:
        assert file.testzip() is None
        for member in file.namelist():
            np.save(place("again.npy"), own[member.removesuffix(".npy")])
            with open(place("again.npy"), "rb") as again:
                ours, other = file.read(member), again.read()
            # NumPy 1.25 and later leave room in the header for a longer first dimension.
            assert ours[-own[member.removesuffix(".npy")].nbytes :] == other[128:]
            assert ours[10:].split(b"}")[0] == other[10:].split(b"}")[0]
    trireme("export", "archive", "--npz", "archive2.npz")
    with open(place("archive.npz"), "rb") as one, open(place("archive2.npz"), "rb") as two:
        assert one.read() == two.read(), "equal networks make equal files"


def refusals():
    """What cannot be read is told with what to do about it."""
    x, y = digits(20)
    numbers_of = x.reshape(20, -1).astype(np.float32)
    cases = [
        (np.asfortranarray(numbers_of), y, "Fortran order; save numpy.ascontiguousarray"),
        (numbers_of.astype(np.complex64), y, "complex numbers"),
        (np.array([str(i) for i in range(20)]), y, "texts"),
        (np.array([None] * 20, object), y, "Python objects"),
        (np.zeros(20, [("a", "f4"), ("b", "i4")]), y, "array of records"),
        (numbers_of.astype(np.float16), y, "holds F16"),
        (x.astype(np.float32), y, "images are unsigned bytes"),
        (np.where(numbers_of == 0, np.nan, numbers_of), y, "number 0 of example 0 is NaN"),
        (np.full((20, 2), 1e300), y, "too large for float32"),
        (numbers_of[:0], y, "no examples"),
        (numbers_of[:, :0], y, "0 numbers an example"),
        (numbers_of, y[:19], "labels for 19 examples"),
        (numbers_of, y - 1, "is not from 0 to"),
        (numbers_of, np.stack([y, y], 1), "classes have one"),
        (np.float32(1), y, "no examples"),
    ]
    for features, labels, words in cases:
        np.save(place("x.npy"), features, allow_pickle=True)
        np.save(place("y.npy"), labels)
        said = trireme("data", "show", "{npy: {features: x.npy, labels: y.npy}}", code=2)
        assert words in said, f"{words}: {said}"
    with open(place("x.npy"), "wb") as file:
        np.lib.format.write_array(file, numbers_of, version=(2, 0))
    np.save(place("y.npy"), y)
    assert trireme("data", "show", "{npy: {features: x.npy, labels: y.npy}}")
    with open(place("x.npy"), "r+b") as file:
        file.truncate(5000)
    said = trireme("data", "show", "{npy: {features: x.npy, labels: y.npy}}", code=2)
    assert "is it complete?" in said, said


images()
numbers()
values()
archives()
refusals()
