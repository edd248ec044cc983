# needs: torch numpy safetensors
"""50 steps of losses, and of layers with several inputs, from PyTorch's initial weights: we come as near to PyTorch in float64 as
PyTorch in float32 does, but for a factor of two."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from by_torch import STEPS, after_steps, judge_steps
from common import place, write

BATCH, COUNT = 20, 200
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


def judge(name, make, data, layers, our_loss, inputs, targets, loss):
    text = MODEL.format(name=name, data=data, layers=layers, loss=our_loss, rate=RATE, momentum=MOMENTUM, batch=BATCH, steps=STEPS)
    first = make().state_dict()

    def by_torch(kind):
        *x, y = (value.to(kind) if value.is_floating_point() else value for value in (*inputs, targets))

        def loss_of(net, step):
            rows = slice(step * BATCH % COUNT, step * BATCH % COUNT + BATCH)
            return loss(net(*(value[rows] for value in x)), y[rows])

        return after_steps(make(), first, kind, lambda net: torch.optim.SGD(net.parameters(), RATE, MOMENTUM), loss_of)

    judge_steps(name, write(f"{name}.yaml", text), first, by_torch)


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


class Rates(Numbers):
    def forward(self, x):
        return torch.sigmoid(super().forward(x))


def losses():
    x = array("x.npy", random.normal(size=(COUNT, 6)).astype(np.float32))
    kind = array("kind.npy", random.integers(0, 4, COUNT))
    asked = array("asked.npy", (random.random((COUNT, 4)) < 0.4).astype(np.float32))
    far = array("far.npy", (random.standard_t(2, (COUNT, 4))).astype(np.float32))
    soft = array("soft.npy", random.dirichlet(np.ones(4), COUNT).astype(np.float32))
    counts = array("counts.npy", random.poisson(1.5, (COUNT, 4)).astype(np.float32))
    two = array("two.npy", random.normal(size=(COUNT, 2)).astype(np.float32))
    quantiles = torch.tensor([0.2, 0.9])

    def pinball(y, t):
        away = t[:, :, None] - y.reshape(len(y), 2, 2)
        return torch.maximum(quantiles.to(y.dtype) * away, (quantiles.to(y.dtype) - 1) * away).mean()

    def focal(y, t):
        log = torch.log_softmax(y, 1)[torch.arange(len(y)), t]
        return -((1 - log.exp()) ** 1.5 * log).mean()

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
        "soft": (soft, "soft.npy", "soft_cross_entropy", F.cross_entropy),
        "smoothed-soft": (
            soft,
            "soft.npy",
            "{kind: soft_cross_entropy, label_smoothing: 0.1}",
            lambda y, t: F.cross_entropy(y, t, label_smoothing=0.1),
        ),
        "quantile": (two, "two.npy", "{kind: quantile, quantiles: [0.2, 0.9]}", pinball),
        "poisson": (counts, "counts.npy", "poisson", F.poisson_nll_loss),
        "focal": (kind, "kind.npy", "{kind: focal, gamma: 1.5}", focal),
        "weighed-classes": (
            kind,
            "kind.npy",
            f"{{class_weights: {weights}}}",
            lambda y, t: F.cross_entropy(y, t, weight=weight.to(y.dtype), reduction="sum") / len(y),
        ),
    }
    for name, (target, file, ours, theirs) in cases.items():
        judge(name, lambda: Numbers(4), data.format(file), layers, ours, [x], target, theirs)
    same = array("same.npy", random.integers(0, 2, COUNT))

    def contrastive(y, t):
        away = torch.pairwise_distance(y[:, :2], y[:, 2:], eps=0)
        return (t * away**2 / 2 + (1 - t) * torch.relu(0.8 - away) ** 2 / 2).mean()

    def squared(y, t):
        anchor, like, unlike = y.split(2, 1)
        return torch.relu(((anchor - like) ** 2).sum(1) - ((anchor - unlike) ** 2).sum(1) + 1).mean()

    pairs = "[{dense: {units: 9, activation: tanh}}, {dense: 4}]"
    triples = "[{dense: {units: 9, activation: tanh}}, {dense: 6}]"
    judge("contrastive", lambda: Numbers(4), data.format("same.npy"), pairs, "{kind: contrastive, margin: 0.8}", [x], same,
          contrastive)
    judge("triplet", lambda: Numbers(6), data.format("same.npy"), triples, "triplet", [x], same, squared)
    judge("triplet-distances", lambda: Numbers(6), data.format("same.npy"), triples,
          "{kind: triplet, margin: 0.5, squared: false}", [x], same,
          lambda y, t: F.triplet_margin_loss(*y.split(2, 1), margin=0.5, eps=0))
    rates = "[{dense: {units: 9, activation: tanh}}, {dense: {units: 4, activation: sigmoid}}]"
    judge("poisson-rates", lambda: Rates(4), data.format("counts.npy"), rates, "{kind: poisson, logs: false}", [x], counts,
          lambda y, t: F.poisson_nll_loss(y, t, log_input=False, eps=float(np.float32(1e-8))))


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


class Fewer(nn.Module):
    def __init__(self):
        super().__init__()
        self.shorter = nn.Conv1d(2, 6, 3, stride=2)
        self.third = nn.Conv1d(6, 6, 4, stride=3, dilation=2, groups=3)
        self.dense1 = nn.Linear(6, 3)

    def forward(self, x):
        x = torch.tanh(self.shorter(F.pad(x.flatten(2), (1, 1))))
        return self.dense1(torch.tanh(self.third(F.pad(x, (6, 0)))).mean(2))


def fewer():
    pixels = random.integers(0, 256, (COUNT, 5, 7, 2)).astype(np.uint8)
    np.save(place("row.npy"), pixels)
    label = array("label.npy", random.integers(0, 3, COUNT))
    x = torch.tensor(pixels).permute(0, 3, 1, 2).double() * float(np.float32(1 / 255))
    layers = """
- tokens
- conv1d: {filters: 6, kernel: 3, stride: 2, activation: tanh, name: shorter}
- conv1d: {filters: 6, kernel: 4, stride: 3, dilation: 2, groups: 3, causal: true, activation: tanh, name: third}
- global_average_pool
- dense: 3
"""
    judge("fewer", Fewer, "npy: {features: row.npy, labels: label.npy}", layers, "softmax_cross_entropy", [x], label, F.cross_entropy)


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


# ---- light convolutions and gates ----


class Light(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 6, 5, padding=2, groups=6)
        self.dense1 = nn.Linear(6, 3)
        self.dense2 = nn.Linear(3, 6)
        self.conv3 = nn.Conv2d(6, 4, (3, 2), stride=(2, 1), groups=2)
        self.conv_transpose1 = nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2, bias=False)
        self.dense3 = nn.Linear(6, 3)

    def forward(self, x):
        image = F.hardswish(self.conv2(F.silu(self.conv1(x))))
        gate = torch.sigmoid(self.dense2(F.silu(self.dense1(image.mean((2, 3))))))
        seen = self.conv_transpose1(torch.tanh(self.conv3(image * gate[:, :, None, None])))
        return self.dense3((seen * F.silu(seen)).mean((2, 3)))


def light():
    pixels = random.integers(0, 256, (COUNT, 6, 5, 2)).astype(np.uint8)
    np.save(place("light.npy"), pixels)
    label = array("kind.npy", random.integers(0, 3, COUNT))
    x = torch.tensor(pixels).permute(0, 3, 1, 2).double() * float(np.float32(1 / 255))
    layers = """
- conv: {filters: 6, kernel: 3, padding: same}
- silu
- conv: {filters: 6, kernel: 5, padding: same, groups: 6}
- hard_swish: {name: image}
- global_average_pool
- dense: 3
- silu
- dense: {units: 6, activation: sigmoid, name: dense2}
- multiply: image
- conv: {filters: 4, kernel: [3, 2], stride: [2, 1], groups: 2, activation: tanh}
- conv_transpose: {filters: 6, kernel: 2, stride: 2, groups: 2, name: conv_transpose1}
- silu
- multiply: conv_transpose1
- global_average_pool
- dense: {units: 3, name: dense3}
"""
    judge("light", Light, "npy: {features: light.npy, labels: kind.npy}", layers, "softmax_cross_entropy", [x], label, F.cross_entropy)


class Beside(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 5)
        self.known = nn.Linear(3, 4)
        self.dense2 = nn.Linear(9, 2)

    def forward(self, words, facts):
        there = (words >= 0).to(facts.dtype)[:, :, None]
        mean = (self.words(words.clamp(min=0)) * there).sum(1) / there.sum(1)
        return self.dense2(torch.cat([mean, torch.tanh(self.known(facts))], 1))


def beside():
    """Texts of 1 to 6 words, and columns of the same rows; the shorter ones end with -1."""
    facts = random.normal(size=(COUNT, 3)).astype(np.float32)
    words, label = np.full((COUNT, 6), -1), random.integers(0, 2, COUNT)
    with open(place("beside.csv"), "w") as file:
        print("text,a,b,c,label", file=file)
        for i in range(COUNT):
            length = random.integers(1, 7)
            words[i, :length] = random.integers(0, 9, length)
            print(" ".join(map(str, words[i, :length])), *map(repr, map(float, facts[i])), label[i], sep=",", file=file)
    layers = """
- embedding: {width: 5, from: review, name: words}
- global_average_pool: {name: mean}
- dense: {units: 4, activation: tanh, from: facts, name: known}
- concat: {from: [mean, known]}
- dense: {units: 2, name: dense2}
"""
    data = ("join: {sources: {review: {text: {path: beside.csv, layout: table, header: true, unit: ids, ids: 9, text_columns: text}}, "
            "facts: {csv: {path: beside.csv, label: none, skip_columns: [text, label]}}}}")
    judge("beside", Beside, data, layers, "softmax_cross_entropy", [torch.tensor(words), torch.tensor(facts)], torch.tensor(label), F.cross_entropy)


beside()
light()
losses()
heads()
larger()
fewer()
mixed()
branches()
