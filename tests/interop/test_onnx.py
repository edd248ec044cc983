# needs: onnx onnxruntime numpy
"""ONNX files: accepted by the checker of the onnx package, and in ONNX Runtime the same logits as here, in batches of any size."""

import json
import os

import numpy as np
import onnx
import onnxruntime

import networks
from common import close, data, mnist, place, predict, trireme, write
from compiled import Ours
from networks import COUNT, HEAD, IMAGES, MNIST_AS_IDX, SEEING, SENTENCES, TEXTS, coloured_digits, model, sentences, with_layers

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
    run, session = train(model("mnist-vit"), "train.epochs=0", "train.steps=20", "optimizer.schedule.warmup=5")
    judge("mnist-vit", run, session, pixels, channels_first(pixels))
    for name in ("sst2-lstm", "sst2-transformer"):
        run, session = train(model(name), "train.epochs=0", "train.steps=40")
        judge_sentences(name, run, session)


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
    for name, layers in SEEING.items():
        run, session = train(write(f"{name}.yaml", with_layers(text, layers)))
        judge_sentences(name, run, session)


def judge_texts(what, run, session, vocabulary, longest):
    """Scores behind every token, of texts of different lengths in batches of any size."""
    random = np.random.default_rng(5)
    network = Ours(run)
    texts = [random.integers(0, min(vocabulary, 60), length) for length in random.integers(1, longest + 1, COUNT)]
    ours = [network.of_tokens(text) for text in texts]
    for batch in BATCHES:
        for first in range(0, len(texts), batch):
            part = texts[first : first + batch]
            lengths = np.array([len(text) for text in part], np.int64)
            tokens = np.full((len(part), lengths.max()), 59, np.int64)  # any token
            for row, text in zip(tokens, part):
                row[: len(text)] = text
            logits, probabilities = session.run(["logits", "probabilities"], {"tokens": tokens, "lengths": lengths})
            assert logits.shape == (*tokens.shape, vocabulary) and np.allclose(probabilities.sum(-1), 1, atol=1e-5)
            rows = np.concatenate([row[:length] for row, length in zip(logits, lengths)]).tolist()
            mine = [row for text in ours[first : first + batch] for row in text]
            if first == 0:
                close(f"{what}, scores of tokens in batches of {batch}", scaled(mine, mine), scaled(rows, mine))


def texts():
    """Networks that score the next token: the one that ships, and one with tied weights."""
    run, session = train(model("shakespeare-gpt"), "train.steps=10", "optimizer.schedule.warmup=5", "data.validation=null")
    judge_texts(run, run, session, 66, 150)  # of 64 positions
    text = TEXTS.format(data("shakespeare/input.txt.gz"))
    run, session = train(write("texts.yaml", text))
    vocabulary = session.get_outputs()[0].shape[2]
    judge_texts("tied weights", run, session, vocabulary, 40)  # of 16 positions
    layers = """
layers:
- embedding: {width: 12, name: x}
- gru: 9
- lstm: 8
- dense: 70
"""
    run, session = train(write("recurrent.yaml", with_layers(text, layers)))
    judge_texts("recurrent scores", run, session, 70, 30)


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
    # Columns that the job standardizes come as they are in the data.
    table[:, 0] = 20000 + 300 * table[:, 0]
    write("scaled.csv", "".join(",".join(map(repr, row)) + "\n" for row in table.tolist()))
    text = VALUES.replace("values", "scaled").replace("label: value,", "label: value, standardize: true,")
    run, session = train(write("scaled.yaml", text))
    close("scaled values", predict(run, COUNT), session.run(["output"], {"input": table[:, :3]})[0].tolist())


def joined():
    """Sources of joined data under their names, as they are in the data; answers of several losses as `predict` gives them."""
    path, left, right, facts, more = networks.joined()
    run, session = train(path)
    images = [np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32) for pixels in (left, right)]
    feeds = dict(zip(("left", "probabilities_input", "facts", "lambda"), (*images, facts, more)))
    assert {given.name for given in session.get_inputs()} == set(feeds)
    output, probabilities = session.run(["output", "probabilities"], feeds)
    close("joined data", predict(run, COUNT), probabilities.tolist())
    network = Ours(run)
    rows = np.concatenate([part.reshape(COUNT, -1) for part in (left, right, facts, more)], 1)
    ours = [network.of_numbers(row) for row in rows]
    close("joined data, scores", [scores for scores, _ in ours], output.tolist())
    close("joined data in C", predict(run, COUNT), [row for _, row in ours], 1e-7)


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
texts()
values()
joined()
graph()
