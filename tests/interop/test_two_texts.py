# needs: torch numpy safetensors
"""50 steps of an encoder and a decoder over two texts of other lengths: we come as near to PyTorch in float64 as PyTorch in
float32 does, but for a factor of two. PyTorch computes with padded batches and masks, we without padding. Its network also
judges what ours writes: the likeliest token again and again, from each text to its end."""

import csv
import json
import math

import torch
from safetensors.torch import load_file
from torch.nn import functional

from by_torch import STEPS, after_steps, judge_steps
from common import data, place, trireme, write

EXAMPLES = 48
WIDTH = 16
MODEL = """
name: {name}
seed: 5
data:
  train:
    join:
      sources:
        written: {{text: {{path: pairs.csv, layout: table, header: true, unit: characters, labels: false, text_columns: written}}}}
        iso: {{text: {{path: pairs.csv, layout: table, header: true, unit: characters, next: true, text_columns: iso}}}}
optimizer: {rule}
train: {{batch: {examples}, steps: {steps}, microbatches: 3, shuffle: false}}
layers:
- embedding: {{width: 16, from: written, weights: {{normal: 0.5}}, name: from}}
- position: {{length: 40, weights: {{normal: 0.3}}, name: e0}}
- attention: {{heads: 4, name: look}}
- add: {{with: e0}}
- layer_norm: {{name: memory}}
- embedding: {{width: 16, from: iso, weights: {{normal: 0.5}}, name: to}}
- position: {{length: 12, weights: {{normal: 0.3}}, name: d0}}
- attention: {{heads: 2, causal: true, name: back}}
- add: {{with: d0, name: d1}}
- cross_attention: {{heads: 4, with: memory, name: across}}
- add: {{with: d1, name: d2}}
- cross_attention: {{heads: 4, kv_heads: 2, width: 8, use_bias: false, with: memory, name: again}}
- add: {{with: d2, name: d3}}
- dense: {{units: 24, activation: tanh, name: wide}}
- dense: {{units: 13, name: scores}}
"""


class Net(torch.nn.Module):
    """Our layout: matrices are [inputs][outputs], queries, keys and values side by side."""

    def __init__(self):
        super().__init__()
        self.values = torch.nn.ParameterDict()

    def load_state_dict(self, state):
        for key, value in state.items():
            self.values[key.replace(".", "/")] = torch.nn.Parameter(value.clone())

    def state_dict(self):
        return {key.replace("/", "."): value for key, value in self.values.items()}

    def heads(self, x, count):
        return x.unflatten(-1, (count, -1)).transpose(1, 2)

    def attend(self, q, k, v, heads, kv_heads, seen):
        q, k, v = self.heads(q, heads), self.heads(k, kv_heads), self.heads(v, kv_heads)
        k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in (k, v))
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~seen[:, None], -torch.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def forward(self, source, lengths, target):
        w = {key.replace("/", "."): value for key, value in self.values.items()}
        there = torch.arange(source.shape[1]) < lengths[:, None]
        e0 = w["from.weights"][source] + w["e0.weights"][: source.shape[1]]
        q, k, v = (e0 @ w["look.weights"] + w["look.bias"]).chunk(3, -1)
        y = self.attend(q, k, v, 4, 4, there[:, None].expand(-1, source.shape[1], -1))
        y = y @ w["look.output_weights"] + w["look.output_bias"] + e0
        memory = functional.layer_norm(y, (WIDTH,), w["memory.gamma"], w["memory.beta"], 1e-5)
        d0 = w["to.weights"][target] + w["d0.weights"][: target.shape[1]]
        q, k, v = (d0 @ w["back.weights"] + w["back.bias"]).chunk(3, -1)
        before = torch.ones(target.shape[1], target.shape[1]).tril().bool()[None]
        x = self.attend(q, k, v, 2, 2, before) @ w["back.output_weights"] + w["back.output_bias"] + d0
        seen = there[:, None].expand(-1, target.shape[1], -1)
        q, (k, v) = x @ w["across.weights"] + w["across.bias"], (memory @ w["across.memory_weights"] + w["across.memory_bias"]).chunk(2, -1)
        x = x + self.attend(q, k, v, 4, 4, seen) @ w["across.output_weights"] + w["across.output_bias"]
        k, v = (memory @ w["again.memory_weights"]).chunk(2, -1)
        x = x + self.attend(x @ w["again.weights"], k, v, 4, 2, seen) @ w["again.output_weights"]
        x = torch.tanh(x @ w["wide.weights"] + w["wide.bias"])
        return x @ w["scores.weights"] + w["scores.bias"]


def numbers(texts):
    """Characters by descending count, ties by their bytes, from 1."""
    counts = {}
    for character in "".join(texts):
        counts[character] = counts.get(character, 0) + 1
    order = sorted(counts, key=lambda c: (-counts[c], c.encode()))
    return {c: i + 1 for i, c in enumerate(order)}


with open(data("dates/train.csv"), encoding="utf-8") as file:
    rows = list(csv.reader(file))[1 :: 80][:EXAMPLES]
# Of unequal lengths on both sides: some years lose their centuries.
rows = [(written, iso if i % 3 else iso[2:]) for i, (written, iso) in enumerate(rows)]
assert len({len(written) for written, _ in rows}) > 10
with open(place("pairs.csv"), "w", encoding="utf-8", newline="") as file:
    csv.writer(file, lineterminator="\n").writerows([("written", "iso"), *rows])

of_source, of_target = numbers(w for w, _ in rows), numbers(i for _, i in rows)
boundary = len(of_target) + 1
longest = max(len(w) for w, _ in rows)
# Whatever stands in the padding, its token or more of it, must not matter.
source = torch.full((EXAMPLES, longest + 3), 2)
target = torch.full((EXAMPLES, 11), 1)
labels = torch.full((EXAMPLES, 11), -100)
for r, (written, iso) in enumerate(rows):
    source[r, : len(written)] = torch.tensor([of_source[c] for c in written])
    tokens = [of_target[c] for c in iso]
    target[r, : len(tokens) + 1] = torch.tensor([boundary] + tokens)
    labels[r, : len(tokens) + 1] = torch.tensor(tokens + [boundary])
lengths = torch.tensor([len(written) for written, _ in rows])

RULES = {
    "sgd": ("{rule: sgd, rate: 0.1}", lambda net: torch.optim.SGD(net.parameters(), 0.1)),
    "adam": ("{rule: adam, rate: 3e-3, epsilon: 1e-5}", lambda net: torch.optim.Adam(net.parameters(), 3e-3, eps=1e-5)),
}


def loss(net, _):
    return functional.cross_entropy(net(source, lengths, target).flatten(0, 1), labels.flatten())


def greedy(net, row):
    """The likeliest token again and again; the unknown one is never taken."""
    written = [boundary]
    while len(written) <= 12:  # as many places as positions tell apart
        scores = net(source[row : row + 1], lengths[row : row + 1], torch.tensor([written]))[0, -1]
        token = int(scores[1:].argmax()) + 1
        if token == boundary:
            break
        written.append(token)
    characters = {token: c for c, token in of_target.items()}
    return "".join(characters[token] for token in written[1:])


for rule, (ours, theirs) in RULES.items():
    name = f"two-texts-{rule}"
    path = write(f"{name}.yaml", MODEL.format(name=name, rule=ours, examples=EXAMPLES, steps=STEPS))
    trireme("train", path, "--out", f"{name}-first", "--quiet", "--set=train.steps=1")
    trireme("export", f"{name}-first", "--layout", "trireme", "--safetensors", f"{name}.safetensors")
    first = load_file(place(f"{name}.safetensors"))
    assert first["to.weights"].shape[0] == boundary + 1 == 13
    ended = judge_steps(name, path, first, lambda kind: after_steps(Net(), first, kind, theirs, loss), "trireme")
    net = Net()
    net.load_state_dict({key: value.double() for key, value in ended.items()})
    with torch.no_grad():
        wanted = [greedy(net, row) for row in range(EXAMPLES)]
        right = (net(source, lengths, target).argmax(-1) == labels) | (labels < 0)
    lines = trireme("predict", name, "--set-name", "train", "--json").splitlines()
    got = [json.loads(line)["text"] for line in lines]
    assert got == wanted, f"{name}: {got} of ours, {wanted} of PyTorch"
    measured = json.loads(trireme("eval", name, "--set-name", "train", "--json"))
    assert abs(measured["metrics"]["exact_match"] - right.all(1).double().mean().item()) < 1e-9
    assert abs(measured["accuracy"] - (right & (labels >= 0)).sum().item() / (labels >= 0).sum().item()) < 1e-6
    print(f"{name}: {EXAMPLES} texts as PyTorch's network writes them, for instance {got[0]!r}")
