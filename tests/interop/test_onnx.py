# needs: onnx onnxruntime numpy
"""ONNX files: accepted by the checker of the onnx package, and in ONNX Runtime the same logits as here, in batches of any size."""

import ctypes
import json
import os
import subprocess

import numpy as np
import onnx
import onnxruntime

from common import close, data, mnist, place, predict, trireme, write
from networks import COUNT, HEAD, IMAGES, MNIST_AS_IDX, SENTENCES, coloured_digits, model, sentences

BATCHES = (1, 7, COUNT)


def train(path, *sets):
    """Trains a few steps, exports and checks; returns the name of the run and the session."""
    name = os.path.basename(path).removesuffix(".yaml")
    trireme("train", path, "--out", name, "--quiet", *(f"--set={item}" for item in sets))
    trireme("export", name, "--onnx", f"{name}.onnx", "--c", f"{name}.c", "--name", "net")
    file = place(f"{name}.onnx")
    onnx.checker.check_model(file, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return name, onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


class Ours:
    """The logits of the trainer, to the bit: the C export, compiled."""

    def __init__(self, name):
        source, library = place(f"{name}.c"), place(f"{name}.so")
        subprocess.run(["cc", "-O1", "-march=native", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        self.predict = ctypes.CDLL(library).net_predict
        with open(source, encoding="utf-8") as file:
            lines = [line.split() for line in file if line.startswith("#define NET_")]
        sizes = {words[1]: int(words[2]) for words in lines}
        self.output = np.zeros(sizes["NET_OUTPUTS"], np.float32)
        self.workspace = np.zeros(sizes["NET_WORKSPACE"], np.float32)

    def __call__(self, example):
        """`example`: pixels [height, width, channels] or tokens [length]."""
        example = np.ascontiguousarray(example, np.int32 if example.ndim == 1 else np.float32)
        length = [ctypes.c_int32(len(example))] if example.ndim == 1 else []
        self.predict(example.ctypes, *length, self.output.ctypes, self.workspace.ctypes)
        return self.output.tolist()


def scaled(rows, by):
    return [[value / max(1.0, *map(abs, other)) for value in row] for row, other in zip(rows, by)]


def judge(what, run, session, examples, feeds):
    """Compares logits, relative to the largest of an example, and probabilities; `feeds` are arrays for the inputs, an example each."""
    network = Ours(run)
    ours = [network(example) for example in examples]
    for batch in BATCHES:
        theirs = []
        for first in range(0, len(examples), batch):
            part = {key: array[first : first + batch] for key, array in feeds.items()}
            if "tokens" in part:
                part["tokens"] = part["tokens"][:, : part["lengths"].max()]
            logits, probabilities = session.run(["logits", "probabilities"], part)
            theirs += zip(logits.tolist(), probabilities.tolist())
        close(f"{what}, logits in batches of {batch}", scaled(ours, ours), scaled([row for row, _ in theirs], ours))
        close(f"{what}, probabilities", predict(run, len(examples)), [row for _, row in theirs])


def channels_first(pixels):
    return {"input": np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32)}


def shipped_networks():
    pixels = np.frombuffer(b"".join(mnist(count=COUNT)[0]), np.uint8).reshape(COUNT, 28, 28, 1)
    for name, *sets in (
        ("mnist-quick", "train.epochs=0", "train.steps=100"),
        ("mnist-cnn", "train.steps=30"),
        ("mnist-mlp", *MNIST_AS_IDX, "train.steps=60", "input.scale=1/255", "optimizer.rate=0.1"),
    ):
        run, session = train(model(name), *sets)
        judge(name, run, session, pixels, channels_first(pixels))
    run, session = train(model("sst2-lstm"), "train.epochs=0", "train.steps=60")
    judge_sentences("sst2-lstm", run, session)


def widest_network():
    """Its C file would keep a compiler busy for a minute; probabilities have to do."""
    run = "mnist-cnn-wide"
    trireme("train", model(run), "--out", run, "--quiet", "--set=train.steps=2", "--set=train.batch=16")
    trireme("export", run, "--onnx", "wide.onnx")
    onnx.checker.check_model(place("wide.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(place("wide.onnx"), providers=["CPUExecutionProvider"])
    pixels = np.frombuffer(b"".join(mnist(count=7)[0]), np.uint8).reshape(7, 28, 28, 1)
    close(run, predict(run, 7), session.run(["probabilities"], channels_first(pixels))[0].tolist())


def judge_sentences(what, run, session):
    tokens, lengths = sentences(run, "sst2/test.tsv")
    examples = [row[:length] for row, length in zip(tokens, lengths)]
    judge(what, run, session, examples, {"tokens": tokens, "lengths": lengths})


def all_layers_on_images():
    pixels = coloured_digits({"train": 500, "test": COUNT})
    for name, text in IMAGES.items():
        run, session = train(write(f"{name}.yaml", HEAD.format(name=name) + text))
        judge(name, run, session, pixels, channels_first(pixels))


# The last vector of something that is no LSTM, and an LSTM of which everything is wanted.
LAYERS = """
layers:
- embedding: 12
- lstm: {units: 12, name: first}
- lstm: 12
- add: first
- last
- dense: 2
"""


def all_layers_on_sentences():
    text = SENTENCES.format(data("sst2/train.tsv"), data("sst2/test.tsv"))
    run, session = train(write("sentences.yaml", text))
    judge_sentences("sentences", run, session)
    before, after = text.index("layers:"), text.index("optimizer:")
    run, session = train(write("twice.yaml", text[:before] + LAYERS + text[after:]))
    judge_sentences("sums over two LSTMs", run, session)


VALUES = """
name: values
data:
  train: {csv: {path: values.csv, label: value, label_columns: [3, 4]}}
  test: {csv: {path: values.csv, label: value, label_columns: [3, 4]}}
layers: [{dense: {units: 5, activation: sigmoid}}, {layer_norm: 1e-3}, {dense: 2}]
loss: mean_squared_error
optimizer: {rule: sgd, rate: 0.1}
train: {batch: 4, steps: 20}
"""


def values():
    """Numbers in, numbers out."""
    table = np.random.default_rng(1).normal(size=(COUNT, 5)).astype(np.float32)
    write("values.csv", "".join(",".join(map(repr, row)) + "\n" for row in table.tolist()))
    run, session = train(write("values.yaml", VALUES))
    assert [output.name for output in session.get_outputs()] == ["output"]
    close("values", predict(run, COUNT), session.run(["output"], {"input": table[:, :3]})[0].tolist())


def graph():
    """What a reader of the file is shown: no transposition of images, names and shapes, where it comes from."""
    shown = onnx.load(place("mnist-cnn.onnx"))
    kinds = [node.op_type for node in shown.graph.node]
    stack = ["Conv", "Relu", "MaxPool"]
    assert kinds == ["Mul", *stack, *stack, "Flatten", "Gemm", "Relu", "Gemm", "Softmax"], kinds
    sizes = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in shown.graph.value_info}
    assert sizes["max_pool2/MaxPool"] == ["batch", 64, 7, 7], sizes
    assert shown.ir_version == 8 and shown.opset_import[0].version == 13 and shown.producer_name == "trireme"
    notes = {note.key: note.value for note in shown.metadata_props}
    facts = json.loads(trireme("inspect", "mnist-cnn", "--json"))
    assert notes["hash"] == facts["hash"] and notes["step"] == "30" and notes["name"] == "mnist-cnn", notes


shipped_networks()
widest_network()
all_layers_on_images()
all_layers_on_sentences()
values()
graph()
