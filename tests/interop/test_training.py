# needs: torch numpy safetensors
"""50 steps of layers of tokens: we come as near to PyTorch in float64 as PyTorch in float32 does, but for a factor of two.

A batch is all of the data, so that the order of examples means nothing; each network is made by `export --torch`, and its
first weights go to Trireme by `import`."""

import torch
from safetensors.torch import load_file

import networks
from by_torch import STEPS, after_steps, judge_steps, load_module
from common import data, place, trireme, write

EXAMPLES = 48
HEADER = """
name: {name}
data:
  train: {{text: {{path: {file}, min_count: 2{tags}}}}}
  test: {{text: {{path: {file}{tags}}}}}
optimizer: {rule}
train: {{batch: {examples}, steps: {steps}, microbatches: 3}}
layers:
- embedding: {{width: 16, weights: {{normal: 0.5}}}}
"""

NETWORKS = {
    "attention": "- attention: {heads: 4, causal: true}\n- global_average_pool\n- dense: 2\n",
    "attention-to-all": "- attention: {heads: 2}\n- global_max_pool\n- dense: 2\n",
    "position": "- position: 60\n- dense: {units: 12, activation: tanh}\n- global_average_pool\n- dense: 2\n",
    "shared-layers": """- attention: {heads: 4, causal: true, name: a}
- layer_norm: {name: n}
- dense: {units: 16, activation: tanh, name: d}
- add: {with: embedding1, name: x}
- attention: {heads: 4, causal: true, share: a}
- layer_norm: {share: n}
- dense: {units: 16, activation: tanh, share: d}
- add: x
- dense: {units: 16, activation: tanh, share: d}
- global_average_pool
- dense: 2
""",
    "cross-attention": """- conv1d: {filters: 8, kernel: 3, activation: tanh, name: memory}
- attention: {heads: 4, causal: true, from: embedding1}
- add: {with: embedding1, name: x}
- cross_attention: {with: memory, heads: 4}
- add: {with: x, name: y}
- cross_attention: {from: [memory, y], heads: 4, kv_heads: 2, width: 16, use_bias: false}
- global_average_pool
- dense: 2
""",
    "transformer": """- position: {length: 60, name: a}
- layer_norm
- attention: {heads: 4, causal: true}
- add: {with: a, name: b}
- layer_norm
- dense: 32
- gelu
- dense: 16
- add: b
- rms_norm
- last
- dense: 2
""",
    "pools": "- global_average_pool: {name: mean}\n- global_max_pool: {from: embedding1, name: most}\n"
    "- concat: {from: [mean, most]}\n- dense: 2\n",
    "gru": "- gru: 12\n- last\n- dense: 2\n",
    "both-directions": "- bidirectional: 9\n- bidirectional: {units: 6, cell: gru}\n- global_average_pool\n- dense: 2\n",
    "conv1d": "- conv1d: {filters: 9, kernel: 3, activation: tanh}\n- conv1d: {filters: 6, kernel: 2, causal: true}\n"
    "- global_max_pool\n- dense: 2\n",
    "dilated": "- conv1d: {filters: 8, kernel: 3, dilation: 2, activation: tanh}\n"
    "- conv1d: {filters: 6, kernel: 2, dilation: 4, causal: true}\n- conv1d: {filters: 6, kernel: 2, dilation: 2, groups: 3}\n"
    "- global_max_pool\n- dense: 2\n",
}


# A label for each token, or none.
OF_TOKENS = {
    "tagging": "- lstm: 12\n- dense: 5\n",
    "tagging-both-ways": "- bidirectional: 7\n- rms_norm\n- dense: 5\n",
    "tied": "- position: {length: 60, name: a}\n- layer_norm\n- attention: {heads: 4, causal: true}\n- add: a\n"
    "- layer_norm\n- unembedding: embedding1\n",
}

# Attention that nn.MultiheadAttention does not know: its parameters are those of our own layout.
ROTARY = "- attention: {heads: 2, width: 24, causal: true, rotary: 100}\n- global_average_pool\n- dense: 2\n"


class Rotary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.values = torch.nn.ParameterDict()

    def load_state_dict(self, state):
        for key, value in state.items():
            self.values[key.replace(".", "/")] = torch.nn.Parameter(value.clone())

    def state_dict(self):
        return {key.replace("/", "."): value for key, value in self.values.items()}

    def turn(self, x):
        """x [batch, time, heads, size]: pairs turn by angles that grow with time."""
        half = x.shape[-1] // 2
        frequency = 100.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = (torch.arange(x.shape[1])[:, None] * frequency).to(x.dtype)[:, None]
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward(self, tokens, lengths):
        w = {key.replace("/", "."): value for key, value in self.values.items()}
        x = w["embedding1.weights"][tokens]
        batch, time = tokens.shape
        parts = (x @ w["attention1.weights"] + w["attention1.bias"]).view(batch, time, 3, 2, 12)
        q, k, v = self.turn(parts[:, :, 0]), self.turn(parts[:, :, 1]), parts[:, :, 2]
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, time, 24) @ w["attention1.output_weights"] + w["attention1.output_bias"]
        there = torch.arange(time)[None, :, None] < lengths[:, None, None]
        mean = (y * there).sum(1) / lengths[:, None]
        return mean @ w["dense1.weights"] + w["dense1.bias"]


# Two heads of queries on one of keys, tokens less than 5 places away, neighbours that turn at half the speed.
SHARED = """- attention: {heads: 4, kv_heads: 2, window: 5, causal: true, rotary: 100, rotary_style: pairs, rotary_factor: 2,
    use_output_bias: false}
- global_average_pool
- dense: 2
"""


class Shared(Rotary):
    def turn(self, x):
        """As complex numbers, which a multiplication turns."""
        speed = 100.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1]) / 2
        angle = torch.arange(x.shape[1])[:, None] * speed
        by = torch.polar(torch.ones_like(angle), angle)[:, None]
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * by.to(pairs.dtype)).flatten(-2)

    def forward(self, tokens, lengths):
        w = {key.replace("/", "."): value for key, value in self.values.items()}
        x = w["embedding1.weights"][tokens]
        q, k, v = (x @ w["attention1.weights"] + w["attention1.bias"]).split((16, 8, 8), -1)
        q, k, v = (part.unflatten(-1, (-1, 4)) for part in (q, k, v))
        q, k = self.turn(q), self.turn(k)
        place = torch.arange(tokens.shape[1])
        away = place[:, None] - place
        seen = (away >= 0) & (away < 5)
        heads = []
        for head in range(4):
            scores = q[:, :, head] @ k[:, :, head // 2].mT / 2
            heads.append(scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v[:, :, head // 2])
        y = torch.cat(heads, -1) @ w["attention1.output_weights"]
        mean = (y * (place[:, None] < lengths[:, None, None])).sum(1) / lengths[:, None]
        return mean @ w["dense1.weights"] + w["dense1.bias"]


def text():
    """The first sentences of a corpus, of at most 60 words."""
    with open(data("sst2/train.tsv"), encoding="utf-8") as file:
        lines = [line for _, line in zip(range(EXAMPLES), file)]
    write("train.tsv", "".join(lines))
    return torch.tensor([int(line.rsplit("\t", 1)[1]) for line in lines])


def tags():
    """The same sentences with a label for most tokens, one of five; returns them padded with what PyTorch ignores."""
    random = torch.Generator().manual_seed(8)
    with open(place("train.tsv"), encoding="utf-8") as file:
        texts = [line.rsplit("\t", 1)[0] for line in file]
    lengths = [len(words.split()) for words in texts]
    labels = torch.full((len(texts), max(lengths)), -100)
    lines = ""
    for row, (words, length) in enumerate(zip(texts, lengths)):
        drawn = torch.randint(-1, 5, (length,), generator=random)
        labels[row, :length] = torch.where(drawn < 0, -100, drawn)
        lines += words + "\t" + " ".join("-" if label < 0 else str(int(label)) for label in drawn) + "\n"
    write("tags.tsv", lines)
    return labels


def trained(net):
    """The parameters that PyTorch trains: of the two biases of an LSTM one is enough."""
    for module in net.modules():
        if isinstance(module, torch.nn.LSTM):
            for key, value in module.named_parameters():
                value.requires_grad = "bias_hh" not in key
    return net.parameters()


# The noise that is the gradient of a key's bias (softmax does not see it) must not become steps of Adam: hence the epsilon.
RULES = {
    "sgd": ("{rule: sgd, rate: 0.1}", lambda net: torch.optim.SGD(trained(net), 0.1)),
    "adam": ("{rule: adam, rate: 1e-3, epsilon: 1e-5}", lambda net: torch.optim.Adam(trained(net), 1e-3, eps=1e-5)),
}


def judge(name, layers, labels, rule="sgd", make=None, weights=None):
    """`make`: a module over our own layout, where PyTorch has none. `weights` of classes: the mean is over all labels."""
    run, layout = f"{name}-{rule}", "trireme" if make else "torch"
    ours, theirs = RULES[rule]
    of_tokens = dict(file="tags.tsv", tags=", tags: true") if labels.dim() > 1 else dict(file="train.tsv", tags="")
    if weights:
        layers += f"loss: {{class_weights: {weights}}}\n"
    path = write(f"{run}.yaml", HEADER.format(name=run, rule=ours, examples=EXAMPLES, steps=STEPS, **of_tokens) + layers)
    trireme("train", path, "--out", f"{run}-first", "--quiet", "--set=train.steps=1")
    trireme("export", f"{run}-first", "--layout", layout, "--safetensors", f"{run}.safetensors")
    if not make:
        trireme("export", f"{run}-first", "--torch", f"{run}.py")
        make = lambda: load_module(place(f"{run}.py"))
    first = load_file(place(f"{run}.safetensors"))
    tokens, lengths = (torch.tensor(x[:EXAMPLES]) for x in networks.sentences(f"{run}-first", place("train.tsv")))
    def loss(net, _):
        scores, there = net(tokens, lengths).flatten(0, -2), labels.flatten()
        if weights is None:
            return torch.nn.functional.cross_entropy(scores, there)
        weight = torch.tensor(weights, dtype=scores.dtype)
        return torch.nn.functional.cross_entropy(scores, there, weight, reduction="sum") / (there >= 0).sum()

    judge_steps(run, path, first, lambda kind: after_steps(make(), first, kind, theirs, loss), layout)


labels = text()
for name, layers in NETWORKS.items():
    judge(name, layers, labels)
judge("rotary", ROTARY, labels, make=Rotary)
judge("shared", SHARED, labels, make=Shared)
labels_of_tokens = tags()
for name, layers in OF_TOKENS.items():
    judge(name, layers, labels_of_tokens)
judge("weighed-tokens", OF_TOKENS["tagging"], labels_of_tokens, weights=[0.5, 3.0, 1.25, 1.0, 0.25])
for name in ("transformer", "gru"):
    judge(name, NETWORKS[name], labels, "adam")
