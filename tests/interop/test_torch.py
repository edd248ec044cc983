# needs: torch numpy safetensors
"""Networks in PyTorch: tensors of --layout torch in modules written by hand and in those of --torch give the same logits."""

import json
import os

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import networks
from by_torch import load_module
from common import close, data, log, mnist, place, predict, trireme, write
from networks import COUNT, HEAD, IMAGES, MNIST_AS_IDX, SEEING, SENTENCES, checkpoint_of, model, with_layers

torch.manual_seed(0)


def train(path, *sets):
    """Trains a few steps; returns the directory of the run and the tensors, as PyTorch loads them."""
    name = os.path.basename(path).removesuffix(".yaml")
    trireme("train", path, "--out", name, "--quiet", *(f"--set={item}" for item in sets))
    trireme("export", name, "--layout", "torch", "--safetensors", f"{name}.safetensors", "--torch", f"{name}.py")
    return name, load_file(place(f"{name}.safetensors"))


def judge(what, run, net, tensors, *inputs):
    """Compares the logarithms of our probabilities with those of the module's logits."""
    net.load_state_dict(tensors)
    net.eval()
    with torch.no_grad():
        theirs = torch.log_softmax(net(*inputs).flatten(1).double(), 1)
    close(what, log(predict(run, len(inputs[0]))), theirs.tolist())


def judge_both(what, run, by_hand, tensors, *inputs):
    judge(f"{what}, a module by hand", run, by_hand, tensors, *inputs)
    judge(f"{what}, the exported module", run, load_module(place(f"{run}.py")), tensors, *inputs)


def coloured_digits():
    return torch.tensor(networks.coloured_digits({"train": 500, "test": COUNT}))


def sentences(run, name):
    return tuple(torch.tensor(array) for array in networks.sentences(run, name))


def digits(count=COUNT):
    return torch.tensor(np.frombuffer(b"".join(mnist(count=count)[0]), np.uint8).reshape(count, 28, 28, 1).copy())


# ---- the networks that ship, by hand ----


class Cnn(nn.Module):
    """As one would write models/mnist-cnn.yaml in PyTorch."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, padding="same")
        self.conv2 = nn.Conv2d(32, 64, 5, padding="same")
        self.dense1 = nn.Linear(7 * 7 * 64, 1024)
        self.dense2 = nn.Linear(1024, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        return self.dense2(self.dense1(x.flatten(1)).relu())


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense1 = nn.Linear(784, 500)
        self.dense2 = nn.Linear(500, 10)

    def forward(self, x):
        return self.dense2(self.dense1(x.flatten(1)).relu())


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 5)
        self.conv2 = nn.Conv2d(64, 256, 3)
        self.conv3 = nn.Conv2d(256, 512, 3)
        self.dense1 = nn.Linear(4 * 4 * 512, 2048)
        self.dense2 = nn.Linear(2048, 1024)
        self.dense3 = nn.Linear(1024, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv3(self.conv2(x).relu()).relu(), 2)
        return self.dense3(self.dense2(self.dense1(x.flatten(1))))


class Lstm(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding1 = nn.Embedding(words, 128)
        self.lstm1 = nn.LSTM(128, 128, batch_first=True)
        self.dense1 = nn.Linear(128, 2)

    def forward(self, tokens, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding1(tokens), lengths, batch_first=True, enforce_sorted=False)
        return self.dense1(self.lstm1(packed)[1][0][0])


def shipped_networks():
    pixels = digits()
    unit = pixels.permute(0, 3, 1, 2).float() / 255
    run, tensors = train(model("mnist-cnn"), "train.steps=30")
    judge_both("mnist-cnn", run, Cnn(), tensors, unit)

    # Its moving averages are what counts, here as in prediction.
    run, tensors = train(model("mnist-mlp"), *MNIST_AS_IDX, "train.steps=60", "input.scale=1/255", "optimizer.rate=0.1")
    judge_both("mnist-mlp", run, Mlp(), tensors, unit)
    trireme("export", run, "--layout", "torch", "--safetensors", "parameters.safetensors", "--no-average")
    plain = load_file(place("parameters.safetensors"))
    assert not torch.equal(plain["dense1.weight"], tensors["dense1.weight"]), "averages are not the parameters"

    run, tensors = train(model("mnist-cnn-wide"), "train.steps=2", "train.batch=16", "train.microbatches=1")
    judge_both("mnist-cnn-wide", run, Wide(), tensors, unit[:10])

    run, tensors = train(model("sst2-lstm"), "train.epochs=1")
    tokens, lengths = sentences(run, "sst2/test.tsv")
    judge_both("sst2-lstm", run, Lstm(len(tensors["embedding1.weight"])), tensors, tokens, lengths)


# ---- every layer, and what is awkward about it ----


def all_layers_on_images():
    pixels = coloured_digits()
    for name, text in IMAGES.items():
        run, tensors = train(write(f"{name}.yaml", HEAD.format(name=name) + text))
        net = load_module(place(f"{name}.py"))
        judge(name, run, net, tensors, net.prepare(pixels))
        for key, theirs in net.state_dict().items():
            assert theirs.shape == tensors[key].shape, key


def all_layers_on_sentences():
    path = write("sentences.yaml", SENTENCES.format(data("sst2/train.tsv"), data("sst2/test.tsv")))
    run, tensors = train(path)
    net = load_module(place("sentences.py"))
    judge("sentences", run, net, tensors, *sentences(run, "sst2/test.tsv"))
    for name, layers in SEEING.items():
        run, tensors = train(write(f"{name}.yaml", with_layers(open(path, encoding="utf-8").read(), layers)))
        judge(name, run, load_module(place(f"{name}.py")), tensors, *sentences(run, "sst2/test.tsv"))


def headers():
    """What people and libraries find in the header."""
    with safe_open(place("norms.safetensors"), "pt") as file:
        notes = file.metadata()
    assert notes["format"] == "pt" and notes["layout"] == "torch" and notes["step"] == "40", notes
    assert json.loads(notes["layers"])[1] == {"batch_norm": {"momentum": 0.3, "epsilon": 1e-3}}, notes["layers"]
    # As they are in a checkpoint, too.
    trireme("export", "norms", "--safetensors", "own.safetensors")
    own, theirs = load_file(place("own.safetensors")), load_file(place("norms.safetensors"))
    assert torch.equal(own["conv1.weights"].permute(3, 2, 0, 1), theirs["conv1.weight"])
    assert int(theirs["batch_norm1.num_batches_tracked"]) == 40


def refusals():
    """What has no counterpart is refused by name, and no file is left."""
    text = HEAD.format(name="mixed") + """
layers:
- conv: {filters: 3, kernel: 3, name: a}
- flatten: {name: f}
- dense: 432
- add: f
- dense: 10
"""
    trireme("train", write("mixed.yaml", text), "--out", "mixed", "--quiet")
    said = trireme("export", "mixed", "--layout", "torch", "--safetensors", "mixed.safetensors", code=2)
    assert 'layer "add1"' in said and "use the layout trireme" in said, said
    assert not os.path.exists(place("mixed.safetensors"))
    trireme("export", "mixed", "--safetensors", "mixed.safetensors")


# ---- the other way round ----


class Digits(nn.Module):
    """A network that PyTorch begins; its names are those that nn.Sequential gives."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(4, 6, (3, 2), bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.head = nn.Sequential(nn.Linear(6 * 6 * 6, 20), nn.LayerNorm(20), nn.Linear(20, 10))

    def forward(self, x):
        return self.head(self.features(x))


DIGITS = HEAD.format(name="digits") + """
layers:
- conv: {filters: 6, kernel: [3, 2], use_bias: false}
- batch_norm
- relu
- max_pool: 2
- flatten
- dense: 20
- layer_norm
- dense: {units: 10, name: out}
"""

NAMES = {"features.0": "conv1", "features.1": "batch_norm1", "head.0": "dense1", "head.1": "layer_norm1", "head.2": "out"}


def into_trireme():
    """Networks of PyTorch's, of its own making and after some training there, predict the same here."""
    pixels = coloured_digits()
    x = pixels.permute(0, 3, 1, 2).float() / 255
    net = Digits()
    for _ in range(20):  # so that running statistics and biases are no round numbers
        loss = nn.functional.cross_entropy(net(x), torch.arange(COUNT) % 10)
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= 0.1 * parameter.grad
    net.eval()
    save_file(net.state_dict(), place("digits.safetensors"))
    path = write("digits.yaml", DIGITS)
    renames = [f"--rename={theirs}={ours}" for theirs, ours in NAMES.items()]
    trireme("import", "digits.safetensors", "--model", path, "--out", "digits", *renames)
    with torch.no_grad():
        theirs = torch.log_softmax(net(x).double(), 1)
    close("a network of PyTorch's", log(predict("digits", COUNT)), theirs.tolist())

    # And out again, number by number; PyTorch alone counts batches.
    trireme("export", "digits", "--layout", "torch", "--safetensors", "back.safetensors")
    back, sent = load_file(place("back.safetensors")), net.state_dict()
    ours = {f"{NAMES[key.rsplit('.', 1)[0]]}.{key.rsplit('.', 1)[1]}": value for key, value in sent.items()}
    assert set(back) == set(ours)
    for key, value in ours.items():
        assert key.endswith("num_batches_tracked") or torch.equal(back[key], value), key

    # It trains on.
    trireme("train", "--resume", "digits", "--quiet")
    assert checkpoint_of("digits") == "checkpoint-00000040"

    # What does not fit is refused by name, with both shapes.
    said = trireme("import", "digits.safetensors", "--model", path, "--out", "no", code=2)
    assert 'has no tensor "conv1.weight", of which the network wants F32[6,4,3,2]' in said, said
    wider = "--set=layers[5].dense=21"
    said = trireme("import", "digits.safetensors", "--model", path, "--out", "no", *renames, wider, code=2)
    assert 'tensor "head.0.weight" is F32[20,216], the network wants F32[21,216]' in said, said
    save_file(dict(sent, surplus=torch.zeros(2)), place("more.safetensors"))
    said = trireme("import", "more.safetensors", "--model", path, "--out", "no", *renames, code=2)
    assert 'has a tensor "surplus", F32[2]' in said, said
    half = {key: value.half() if value.is_floating_point() else value for key, value in sent.items()}
    save_file(half, place("half.safetensors"))
    said = trireme("import", "half.safetensors", "--model", path, "--out", "no", *renames, code=2)
    assert "is F16[6,4,3,2], the network wants F32[6,4,3,2]" in said, said
    assert not os.path.exists(place("no"))


LSTM = """
name: lstm
data:
  train: {{text: {{path: {0}, max_words: 3000}}}}
  test: {{text: {{path: {1}}}}}
layers: [{{embedding: 128}}, {{lstm: 128}}, last, {{dense: 2}}]
optimizer: {{rule: sgd, rate: 0.1}}
train: {{batch: 64, steps: 1}}
"""


def sentences_into_trireme():
    """An LSTM of PyTorch's has two biases; they are added here."""
    net = Lstm(3000)
    path = write("lstm.yaml", LSTM.format(data("sst2/train.tsv"), data("sst2/test.tsv")))
    save_file(net.state_dict(), place("lstm.safetensors"))
    trireme("import", "lstm.safetensors", "--model", path, "--out", "lstm")
    tokens, lengths = sentences("lstm", "sst2/test.tsv")
    net.eval()
    with torch.no_grad():
        theirs = torch.log_softmax(net(tokens, lengths).double(), 1)
    close("an LSTM of PyTorch's", log(predict("lstm", COUNT)), theirs.tolist())


COLUMNS = """
name: columns
data:
  train: {csv: {path: columns.csv, label: value, standardize: true}}
  test: {csv: {path: columns.csv, label: value, standardize: true}}
layers: [{dense: {units: 5, activation: tanh}}, {dense: 1}]
loss: mean_squared_error
optimizer: {rule: sgd, rate: 0.1}
train: {batch: 4, steps: 20}
"""


def standardized_columns():
    """prepare() takes numbers as they are in the data."""
    rows = np.random.default_rng(2).normal(size=(COUNT, 4)).astype(np.float32)
    rows[:, :3] = 20000 + 300 * rows[:, :3]
    write("columns.csv", "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist()))
    run, tensors = train(write("columns.yaml", COLUMNS))
    net = load_module(place("columns.py"))
    net.load_state_dict(tensors)
    net.eval()
    with torch.no_grad():
        theirs = net(net.prepare(torch.tensor(rows[:, :3])))
    close("standardized columns", predict(run, COUNT), theirs.tolist())


def joined():
    """prepare() takes the sources of joined data; probabilities() gives what `predict` does of several losses."""
    path, left, right, facts, more = networks.joined()
    run, tensors = train(path)
    net = load_module(place("joined.py"))
    net.load_state_dict(tensors)
    net.eval()
    images = [torch.tensor(pixels.astype(np.uint8)) for pixels in (left, right)]
    with torch.no_grad():
        x = net.prepare(left=images[0], probabilities=images[1], facts=torch.tensor(facts), source_3=torch.tensor(more))
        theirs = net.probabilities(net(x))
    close("joined data", predict(run, COUNT), theirs.tolist())


all_layers_on_images()
joined()
standardized_columns()
into_trireme()
sentences_into_trireme()
all_layers_on_sentences()
headers()
refusals()
shipped_networks()
