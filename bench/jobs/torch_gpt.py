"""GPTs on PyTorch, as rivals in speed: torch_gpt.py THREADS [DATA_DIRECTORY [eager|compile [gpt|gpt-large|gpt2]]]

gpt is the network of models/shakespeare-gpt.yaml, gpt-large that of bench/jobs/gpt-large.yaml, gpt2 GPT-2 small, whose text is
noise. Prints one line: windows of text per second of the best of four rounds, and the peak memory in MiB.
"""
import gzip
import sys

import rivals
import torch
from torch import nn
from torch.nn import functional as F

RATE = 1e-3
# steps: those before the rounds, and those of a round
SIZES = {
    "gpt": {"layers": 4, "heads": 4, "width": 128, "window": 64, "batch": 12, "dropout": 0.0, "steps": (5, 20)},
    "gpt-large": {"layers": 6, "heads": 6, "width": 384, "window": 256, "batch": 16, "dropout": 0.2, "steps": (2, 2)},
    "gpt2": {"layers": 12, "heads": 12, "width": 768, "window": 128, "batch": 1, "dropout": 0.0, "steps": (2, 4), "tokens": 50257},
}


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        width, bias = size["width"], "tokens" in size
        self.heads, self.dropout, self.approximate = size["heads"], size["dropout"], "tanh" if bias else "none"
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.project(self.norm1(x)).split(width, 2)
        q, k, v = (z.view(batch, tokens, self.heads, -1).transpose(1, 2) for z in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        x = x + F.dropout(self.out(y.transpose(1, 2).reshape(batch, tokens, width)), self.dropout)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)), approximate=self.approximate)), self.dropout)


class GPT(nn.Module):
    def __init__(self, size, characters):
        super().__init__()
        width = size["width"]
        self.tokens, self.places = nn.Embedding(characters, width), nn.Embedding(size["window"], width)
        self.blocks = nn.Sequential(*(Block(size) for _ in range(size["layers"])))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)
        if "tokens" in size:  # GPT-2 scores with the vectors of its embedding
            self.head.weight = self.tokens.weight

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(torch.arange(x.shape[1])))))


def main():
    threads = int(sys.argv[1])
    directory = sys.argv[2] if len(sys.argv) > 2 else "data"
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    size = SIZES[sys.argv[4] if len(sys.argv) > 4 else "gpt"]
    if "tokens" in size:
        count = size["tokens"]
        data = torch.randint(count, (8192,))
    else:
        with gzip.open(f"{directory}/shakespeare/input.txt.gz", "rt") as file:
            text = file.read()
        code = {c: i for i, c in enumerate(sorted(set(text)))}
        data = torch.tensor([code[c] for c in text[: len(text) * 9 // 10]])
        count = len(code) + 1
    window, batch, (before, steps) = size["window"], size["batch"], size["steps"]
    model = GPT(size, count)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    network = torch.compile(model) if sys.argv[3:4] == ["compile"] else model

    def step(_):
        first = torch.randint(len(data) - window, (batch,))
        x = torch.stack([data[i : i + window] for i in first])
        y = torch.stack([data[i + 1 : i + 1 + window] for i in first])
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(network(x).flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    rivals.tell(rivals.time_steps(step, rivals.Job(batch, RATE, steps), before))


main()
