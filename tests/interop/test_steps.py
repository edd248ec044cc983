# needs: torch numpy safetensors
"""50 steps of losses, and of layers with several inputs, from PyTorch's initial weights: we come as near to PyTorch in float64 as
PyTorch in float32 does, but for a factor of two."""

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from common import place, trireme, write

STEPS, BATCH, COUNT = 50, 20, 200
RATE, MOMENTUM = 0.05, 0.9
random = np.random.default_rng(11)
torch.manual_seed(3)

MODEL = """
name: {name}
data: {{train: {{{data}}}}}
layers: {layers}
loss: {loss}
optimizer: {{rule: momentum, rate: {rate}, momentum: {momentum}}}
train: {{batch: {batch}, steps: {steps}, microbatches: 1, shuffle: false, log_every: 0}}
"""


def steps_of(net, inputs, targets, loss, kind):
    """The parameters after 50 steps in a kind of numbers."""
    net = net.to(kind)
    optimizer = torch.optim.SGD(net.parameters(), RATE, MOMENTUM)
    convert = lambda value: value.to(kind) if value.is_floating_point() else value
    inputs, targets = [convert(value) for value in inputs], convert(targets)
    for step in range(STEPS):
        first = step * BATCH % COUNT
        rows = slice(first, first + BATCH)
        optimizer.zero_grad()
        loss(net(*(value[rows] for value in inputs)), targets[rows]).backward()
        optimizer.step()
    return {key: value.detach().double() for key, value in net.state_dict().items()}


def distance(parameters, exact):
    """The root of the mean square over all numbers: the largest of them alone is a matter of luck."""
    squares = torch.cat([(parameters[key].double() - exact[key]).flatten() ** 2 for key in exact])
    return squares.mean().sqrt().item()


def judge(name, make, data, layers, our_loss, inputs, targets, loss):
    net = make()
    save_file(net.state_dict(), place(f"{name}-begin.safetensors"))
    text = MODEL.format(name=name, data=data, layers=layers, loss=our_loss, rate=RATE, momentum=MOMENTUM, batch=BATCH, steps=STEPS)
    path = write(f"{name}.yaml", text)
    trireme("import", f"{name}-begin.safetensors", "--model", path, "--out", name)
    trireme("train", "--resume", name, "--quiet")
    trireme("export", name, "--layout", "torch", "--safetensors", f"{name}-end.safetensors")
    ours = load_file(place(f"{name}-end.safetensors"))
    state = {key: value.clone() for key, value in net.state_dict().items()}
    exact = steps_of(net, inputs, targets, loss, torch.float64)
    net = make()
    net.load_state_dict(state)
    single = steps_of(net, inputs, targets, loss, torch.float32)
    moved = max((exact[key] - state[key].double()).abs().max().item() for key in exact)
    mine, theirs = (distance(parameters, exact) for parameters in (ours, single))
    print(f"{name}: {mine:.1e} from float64, PyTorch's float32 {theirs:.1e}, moved by {moved:.2f}")
    assert moved > 1e-2 and set(ours) == set(exact), name
    assert mine <= 2 * theirs, name


def array(name, values):
    np.save(place(name), values)
    return torch.tensor(values)


# ---- losses, on numbers ----


class Numbers(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.dense1 = nn.Linear(6, 9)
        self.dense2 = nn.Linear(9, outputs)

    def forward(self, x):
        return self.dense2(torch.tanh(self.dense1(x)))


def losses():
    x = array("x.npy", random.normal(size=(COUNT, 6)).astype(np.float32))
    kind = array("kind.npy", random.integers(0, 4, COUNT))
    asked = array("asked.npy", (random.random((COUNT, 4)) < 0.4).astype(np.float32))
    far = array("far.npy", (random.standard_t(2, (COUNT, 4))).astype(np.float32))
    weights = [0.5, 3.0, 1.25, 1.0]
    weight = torch.tensor(weights)
    layers = "[{dense: {units: 9, activation: tanh}}, {dense: 4}]"
    data = "npy: {{features: x.npy, labels: {}}}"
    cases = {
        "binary": (asked, "asked.npy", "binary_cross_entropy", F.binary_cross_entropy_with_logits),
        "weighed-binary": (
            asked,
            "asked.npy",
            f"{{kind: binary_cross_entropy, class_weights: {weights}}}",
            lambda y, t: F.binary_cross_entropy_with_logits(y, t, pos_weight=weight.to(y.dtype)),
        ),
        "absolute": (far, "far.npy", "mean_absolute_error", F.l1_loss),
        "huber": (far, "far.npy", "{kind: huber, delta: 0.7}", lambda y, t: F.huber_loss(y, t, delta=0.7)),
        "weighed-classes": (
            kind,
            "kind.npy",
            f"{{class_weights: {weights}}}",
            lambda y, t: F.cross_entropy(y, t, weight=weight.to(y.dtype), reduction="sum") / len(y),
        ),
    }
    for name, (target, file, ours, theirs) in cases.items():
        judge(name, lambda: Numbers(4), data.format(file), layers, ours, [x], target, theirs)


# ---- graphs ----


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1)
        self.narrow = nn.Conv2d(4, 3, 1)
        self.wide = nn.Conv2d(4, 3, 3, padding=1)
        self.same = nn.Conv2d(6, 4, 1)
        self.dense1 = nn.Linear(8, 3)

    def forward(self, x):
        stem = torch.relu(self.stem(x))
        both = torch.cat([torch.tanh(self.narrow(stem)), self.wide(stem)], 1)
        total = self.same(both) + stem + stem
        return self.dense1(torch.cat([total.mean((2, 3)), total.amax((2, 3))], 1))


def branches():
    pixels = random.integers(0, 256, (COUNT, 6, 5, 2)).astype(np.uint8)
    np.save(place("pixels.npy"), pixels)
    label = array("label.npy", random.integers(0, 3, COUNT))
    x = torch.tensor(pixels).permute(0, 3, 1, 2).double() * float(np.float32(1 / 255))
    layers = """
- conv: {filters: 4, kernel: 3, padding: same, activation: relu, name: stem}
- conv: {filters: 3, kernel: 1, activation: tanh, name: narrow}
- conv: {filters: 3, kernel: 3, padding: same, from: stem, name: wide}
- concat: {from: [narrow, wide]}
- conv: {filters: 4, kernel: 1, name: same}
- add: {with: [stem, stem], name: total}
- global_average_pool: {name: mean}
- global_max_pool: {from: total}
- concat: {from: [mean, global_max_pool1]}
- dense: 3
"""
    judge("branches", Branches, "npy: {features: pixels.npy, labels: label.npy}", layers, "softmax_cross_entropy", [x], label, F.cross_entropy)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding1 = nn.Embedding(30, 5)
        self.dense1 = nn.Linear(10, 2)

    def forward(self, tokens, lengths):
        x = self.embedding1(tokens)
        there = torch.arange(x.shape[1])[None, :, None] < lengths[:, None, None]
        mean = (x * there).sum(1) / lengths[:, None]
        most = x.masked_fill(~there, -torch.inf).amax(1)
        return self.dense1(torch.cat([mean, most], 1))


def words():
    lengths = random.integers(1, 9, COUNT)
    label = random.integers(0, 2, COUNT)
    names = [f"w{i}" for i in range(29)]
    rows = [list(random.integers(0, 29, length)) for length in lengths]
    write("words.tsv", "".join(f"{' '.join(names[i] for i in row)}\t{k}\n" for row, k in zip(rows, label)))
    layers = "[{embedding: {width: 5, name: embedding1}}, {global_average_pool: {name: mean}}, {global_max_pool: {from: embedding1}}, {concat: mean}, {dense: 2}]"
    layers = layers.replace("{concat: mean}", "{concat: {from: [mean, global_max_pool1]}}")
    # The run's numbers of words, which its vocabulary tells.
    probe = MODEL.format(name="probe", data="text: {path: words.tsv}", layers=layers, loss="softmax_cross_entropy", rate=RATE,
                         momentum=MOMENTUM, batch=BATCH, steps=1)
    trireme("train", write("probe.yaml", probe), "--out", "probe", "--quiet")
    with open(place("probe/checkpoint-00000001/vocabulary.txt"), encoding="utf-8") as file:
        number = {word: i for i, word in enumerate(file.read().split("\n")[2:])}
    tokens = np.zeros((COUNT, lengths.max()), np.int64)
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = [number[names[k]] for k in row]
    judge("words", Words, "text: {path: words.tsv}", layers, "softmax_cross_entropy", [torch.tensor(tokens), torch.tensor(lengths)],
          torch.tensor(label), F.cross_entropy)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(6, 9)
        self.kind = nn.Linear(9, 3)
        self.price = nn.Linear(9, 2)

    def forward(self, x):
        x = torch.tanh(self.shared(x))
        return torch.cat([self.kind(x), self.price(x)], 1)


def heads():
    x = array("x.npy", random.normal(size=(COUNT, 6)).astype(np.float32))
    target = array("both.npy", np.column_stack([random.integers(0, 3, COUNT), random.normal(size=(COUNT, 2))]).astype(np.float32))
    layers = """
- dense: {units: 9, activation: tanh, name: shared}
- dense: {units: 3, name: kind}
- dense: {units: 2, from: shared, name: price}
- concat: {from: [kind, price]}
"""
    loss = "[{kind: softmax_cross_entropy, outputs: 3, weight: 0.7}, {kind: mean_squared_error, outputs: 2, weight: 1.5}]"
    both = lambda y, t: 0.7 * F.cross_entropy(y[:, :3], t[:, 0].long()) + 1.5 * F.mse_loss(y[:, 3:], t[:, 1:])
    judge("heads", Heads, "npy: {features: x.npy, labels: both.npy}", layers, loss, [x], target, both)


class Larger(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.ConvTranspose2d(2, 4, (3, 2), stride=2, bias=False)
        self.same = nn.ConvTranspose2d(4, 3, 3, stride=2, bias=False)
        self.last = nn.ConvTranspose2d(3, 3, 4, stride=2, padding=1, bias=False)
        self.dense1 = nn.Linear(3, 3)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        # What is larger than twice the image is cut off at its end.
        x = torch.tanh(self.same(x)[:, :, : 2 * x.shape[2], : 2 * x.shape[3]])
        x = F.interpolate(F.max_pool2d(x, 2), scale_factor=(2, 3))
        return self.dense1(torch.tanh(self.last(x)).mean((2, 3)))


def larger():
    pixels = random.integers(0, 256, (COUNT, 4, 3, 2)).astype(np.uint8)
    np.save(place("small.npy"), pixels)
    label = array("label.npy", random.integers(0, 3, COUNT))
    x = torch.tensor(pixels).permute(0, 3, 1, 2).double() * float(np.float32(1 / 255))
    layers = """
- conv_transpose: {filters: 4, kernel: [3, 2], stride: 2, name: first}
- tanh
- conv_transpose: {filters: 3, kernel: 3, stride: 2, padding: same, name: same}
- tanh
- max_pool: 2
- upsample: [2, 3]
- conv_transpose: {filters: 3, kernel: 4, stride: 2, pad: 1, name: last}
- tanh
- global_average_pool
- dense: {units: 3, name: dense1}
"""
    judge("larger", Larger, "npy: {features: small.npy, labels: label.npy}", layers, "softmax_cross_entropy", [x], label, F.cross_entropy)


# ---- several sources ----


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(2, 4, 3)
        self.dense1 = nn.Linear(4 + 3, 8)
        self.dense2 = nn.Linear(8, 1)

    def forward(self, photo, facts):
        seen = torch.relu(self.look(photo)).mean((2, 3))
        return self.dense2(torch.tanh(self.dense1(torch.cat([seen, facts], 1))))


def mixed():
    pixels = random.integers(0, 256, (COUNT, 6, 5, 2)).astype(np.uint8)
    np.save(place("photo.npy"), pixels)
    facts = random.normal(size=(COUNT, 3)).astype(np.float32)
    price = random.normal(size=(COUNT, 1)).astype(np.float32)
    rows = [",".join(repr(float(value)) for value in [*fact, *cost]) for fact, cost in zip(facts, price)]
    write("facts.csv", "\n".join(["a,b,c,price", *rows]) + "\n")
    photo = torch.tensor(pixels).permute(0, 3, 1, 2).double() * float(np.float32(1 / 255))
    data = "join: {sources: {photo: {npy: {features: photo.npy}}, facts: {csv: {path: facts.csv, label: value}}}}"
    layers = """
- conv: {filters: 4, kernel: 3, activation: relu, from: photo, name: look}
- global_average_pool: {name: seen}
- concat: {from: [seen, facts]}
- dense: {units: 8, activation: tanh, name: dense1}
- dense: {units: 1, name: dense2}
"""
    judge("mixed", Mixed, data, layers, "mean_squared_error", [photo, torch.tensor(facts)], torch.tensor(price), F.mse_loss)


losses()
heads()
larger()
mixed()
branches()
words()
