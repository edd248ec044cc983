# needs: torch numpy safetensors
"""50 optimizer steps from equal weights: our parameters are as near to PyTorch's in float64 as PyTorch's own in float32 are.

A batch is all of the data, so that the order of examples means nothing; each network is made by `export --torch`, and its
first weights go to Trireme by `import`."""

import importlib.util
import torch
from safetensors.torch import load_file, save_file

import networks
from common import data, place, trireme, write

STEPS = 50
EXAMPLES = 48
HEADER = """
name: {name}
data:
  train: {{text: {{path: {file}, min_count: 2{tags}}}}}
  test: {{text: {{path: {file}{tags}}}}}
optimizer: {{rule: {rule}, rate: {rate}}}
train: {{batch: {examples}, steps: {steps}, microbatches: 3}}
layers:
- embedding: {{width: 16, weights: {{normal: 0.5}}}}
"""

NETWORKS = {
    "attention": "- attention: {heads: 4, causal: true}\n- global_average_pool\n- dense: 2\n",
    "attention-to-all": "- attention: {heads: 2}\n- global_max_pool\n- dense: 2\n",
    "position": "- position: 60\n- dense: {units: 12, activation: tanh}\n- global_average_pool\n- dense: 2\n",
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
    "gru": "- gru: 12\n- last\n- dense: 2\n",
    "both-directions": "- bidirectional: 9\n- bidirectional: {units: 6, cell: gru}\n- global_average_pool\n- dense: 2\n",
    "conv1d": "- conv1d: {filters: 9, kernel: 3, activation: tanh}\n- conv1d: {filters: 6, kernel: 2, causal: true}\n"
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


def load_module(path):
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Net()


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


def train(net, dtype, rule, rate, tokens, lengths, labels):
    net.to(dtype)
    for module in net.modules():
        if isinstance(module, torch.nn.LSTM):  # of whose two biases one is enough
            for key, value in module.named_parameters():
                value.requires_grad = "bias_hh" not in key
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[rule](net.parameters(), lr=rate)
    net.train()
    for _ in range(STEPS):
        scores = net(tokens, lengths)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {key: value.detach().double() for key, value in net.state_dict().items()}


def distance(a, b):
    """Root of the mean square over all parameters."""
    squares = [(a[key].double() - b[key]).square() for key in b]
    return (sum(s.sum() for s in squares) / sum(s.numel() for s in squares)).sqrt().item()


def judge(name, layers, rule, rate, labels, make=None):
    """`make`: a module over our own layout, where PyTorch has none."""
    run, layout = f"{name}-{rule}", "trireme" if make else "torch"
    of_tokens = dict(file="tags.tsv", tags=", tags: true") if labels.dim() > 1 else dict(file="train.tsv", tags="")
    header = HEADER.format(name=run, rule=rule, rate=rate, examples=EXAMPLES, steps=STEPS, **of_tokens)
    path = write(f"{run}.yaml", header + layers)
    trireme("train", path, "--out", f"{run}-first", "--quiet", "--set=train.steps=1")
    trireme("export", f"{run}-first", "--layout", layout, "--safetensors", f"{run}.safetensors")
    if not make:
        trireme("export", f"{run}-first", "--torch", f"{run}.py")
    first = load_file(place(f"{run}.safetensors"))
    tokens, lengths = (torch.tensor(x[:EXAMPLES]) for x in networks.sentences(f"{run}-first", place("train.tsv")))
    trireme("import", f"{run}.safetensors", "--model", path, "--out", run)
    trireme("train", "--resume", run, "--quiet")
    trireme("export", run, "--layout", layout, "--safetensors", f"{run}-ours.safetensors")
    ours = load_file(place(f"{run}-ours.safetensors"))

    theirs = {}
    for dtype in (torch.float64, torch.float32):
        net = make() if make else load_module(place(f"{run}.py"))
        net.load_state_dict(first)
        theirs[dtype] = train(net, dtype, rule, rate, tokens, lengths, labels)
    moved = distance(first, theirs[torch.float64])
    mine, other = (distance(state, theirs[torch.float64]) for state in (ours, theirs[torch.float32]))
    print(f"{run}: {STEPS} steps moved the parameters by {moved:.1e}; from float64 ours are {mine:.1e}, PyTorch's float32 {other:.1e}")
    assert moved > 1e-3 and mine <= 2 * other, run


labels = text()
for name, layers in NETWORKS.items():
    judge(name, layers, "sgd", 0.1, labels)
judge("rotary", ROTARY, "sgd", 0.1, labels, Rotary)
labels_of_tokens = tags()
for name, layers in OF_TOKENS.items():
    judge(name, layers, "sgd", 0.1, labels_of_tokens)
for name in ("transformer", "gru"):
    judge(name, NETWORKS[name], "adam", 1e-3, labels)
