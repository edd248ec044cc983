# needs: torch numpy safetensors
"""GPT-2's layout: a small network of its shape with random weights, written under the names and in the shapes of the published
files, gives the same scores here as in PyTorch, and goes on with a text of token numbers as PyTorch does."""

import json
import math

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from common import close, place, trireme, write
from compiled import Ours

LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY = 2, 24, 3, 16, 300
torch.manual_seed(4)


class Conv1D(nn.Module):
    """A linear layer whose weight is [in, out]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.3)
        self.bias = nn.Parameter(torch.randn(outputs) * 0.1)

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(WIDTH, 3 * WIDTH), Conv1D(WIDTH, WIDTH)
        self.register_buffer("bias", torch.ones(CONTEXT, CONTEXT).tril().view(1, 1, CONTEXT, CONTEXT))

    def forward(self, x):
        batch, time, _ = x.shape
        q, k, v = (part.view(batch, time, HEADS, -1).transpose(1, 2) for part in self.c_attn(x).split(WIDTH, 2))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        scores = scores.masked_fill(self.bias[:, :, :time, :time] == 0, -torch.inf)
        return self.c_proj((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, time, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-5), nn.LayerNorm(WIDTH, eps=1e-5)
        self.attn = Attention()
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(WIDTH, 4 * WIDTH), "c_proj": Conv1D(4 * WIDTH, WIDTH)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH, eps=1e-5)
        for norm in (self.ln_f, *(norm for block in self.h for norm in (block.ln_1, block.ln_2))):
            nn.init.normal_(norm.weight, 1, 0.2)
            nn.init.normal_(norm.bias, 0, 0.2)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def layers():
    text = f"- embedding: {{width: {WIDTH}, name: wte}}\n- position: {{length: {CONTEXT}, name: wpe}}\n"
    before = "wpe"
    for i in range(LAYERS):
        text += f"""- layer_norm: {{epsilon: 1e-5, name: first_norm{i}}}
- attention: {{heads: {HEADS}, causal: true, name: attention{i}}}
- add: {{with: {before}, name: attended{i}}}
- layer_norm: {{epsilon: 1e-5, name: second_norm{i}}}
- dense: {{units: {4 * WIDTH}, name: inner{i}}}
- gelu: {{approximate: tanh}}
- dense: {{units: {WIDTH}, name: outer{i}}}
- add: {{with: attended{i}, name: block{i}}}
"""
        before = f"block{i}"
    return text + "- layer_norm: {epsilon: 1e-5, name: last_norm}\n- unembedding: wte\n"


MODEL = f"""
name: gpt2
data: {{train: {{corpus: {{path: tokens.npy, unit: ids, ids: {VOCABULARY}, window: {CONTEXT}}}}}}}
layers:
{layers()}optimizer: {{rule: adamw, rate: 1e-3}}
train: {{batch: 4, steps: 3}}
"""

RENAMES = {
    "h.*.ln_1": "first_norm*",
    "h.*.ln_2": "second_norm*",
    "ln_f": "last_norm",
    "h.*.attn.c_attn.weight^T": "attention*.in_proj_weight",
    "h.*.attn.c_attn.bias": "attention*.in_proj_bias",
    "h.*.attn.c_proj.weight^T": "attention*.out_proj.weight",
    "h.*.attn.c_proj.bias": "attention*.out_proj.bias",
    "h.*.mlp.c_fc^T": "inner*",
    "h.*.mlp.c_proj^T": "outer*",
    "h.*.attn.bias": "",  # the triangle of what is seen
}


def import_network(net, path):
    save_file(net.state_dict(), place("gpt2.safetensors"))
    renames = [f"--rename={theirs}={ours}" for theirs, ours in RENAMES.items()]
    trireme("import", "gpt2.safetensors", "--model", path, "--out", "gpt2", *renames)
    # As save_pretrained() of a GPT2LMHeadModel has the names, into the same directory: the same network.
    head = {"lm_head.weight": net.wte.weight.detach().clone()}
    save_file({f"transformer.{key}": value for key, value in net.state_dict().items()} | head, place("saved.safetensors"))
    again = ["import", "saved.safetensors", "--model", path, "--out", "gpt2", *renames, "--rename=lm_head.weight="]
    said = trireme(*again, code=2)
    assert "let `--overwrite` remove them" in said, said
    said = trireme(*again, "--overwrite", code=2)
    assert 'it has "transformer.wte.weight": give `--prefix` transformer.' in said, said
    hash_of = lambda: json.loads(trireme("inspect", "gpt2", "--json"))["hash"]
    before = hash_of()
    trireme(*again, "--overwrite", "--prefix", "transformer.")
    assert hash_of() == before
    said = trireme("import", "gpt2.safetensors", "--model", path, "--out", "no", *renames[:-1], code=2)
    assert 'has a tensor "h.0.attn.bias", F32[1,1,16,16]' in said, said
    straight = [rename.replace("^T", "") for rename in renames]
    said = trireme("import", "gpt2.safetensors", "--model", path, "--out", "no", *straight, code=2)
    assert 'tensor "h.0.attn.c_attn.weight" is F32[24,72], the network wants F32[72,24]' in said, said
    said = trireme("import", "gpt2.safetensors", "--model", path, "--out", "no", *renames, "--rename=a.*=b*", code=2)
    assert 'there is no layer "b*"' in said, said


def same_scores(net):
    trireme("export", "gpt2", "--c", "gpt2.c", "--name", "net")
    ours = Ours("gpt2")
    random = np.random.default_rng(6)
    for length in (1, 7, CONTEXT):
        tokens = random.integers(0, VOCABULARY, length)
        with torch.no_grad():
            theirs = net.double()(torch.tensor(tokens)[None])[0]
        close(f"scores of GPT-2, {length} tokens", ours.of_tokens(tokens), theirs.tolist())


def same_text(net):
    """The likeliest tokens, beyond the context."""
    tokens = [5, 17, 299, 0]
    prompt = " ".join(map(str, tokens))
    said = trireme("generate", "gpt2", "--prompt", prompt, "--tokens", "30", "--temperature", "0").strip()
    with torch.no_grad():
        for _ in range(30):
            tokens.append(int(net(torch.tensor(tokens[-CONTEXT:])[None])[0, -1].argmax()))
    assert said == " ".join(map(str, tokens)), f"{said}\n{tokens}"
    said = trireme("generate", "gpt2", "--prompt", "5 300", code=2)
    assert '300", is none of the 300' in said, said


def trains_on():
    """And out again under our names, after some training as before it."""
    trireme("export", "gpt2", "--layout", "torch", "--safetensors", "ours.safetensors", "--torch", "gpt2.py")
    ours, theirs = load_file(place("ours.safetensors")), load_file(place("gpt2.safetensors"))
    assert torch.equal(ours["attention1.in_proj_weight"], theirs["h.1.attn.c_attn.weight"].T)
    assert torch.equal(ours["outer0.weight"], theirs["h.0.mlp.c_proj.weight"].T)
    assert torch.equal(ours["wte.weight"], theirs["wte.weight"])
    trireme("train", "--resume", "gpt2", "--quiet")


tokens = np.random.default_rng(3).integers(0, VOCABULARY, 400)
np.save(place("tokens.npy"), tokens.astype(np.uint16))
tokens.astype("<u2").tofile(place("tokens.bin"))
gpt2 = Gpt2()
model = write("gpt2.yaml", MODEL)
import_network(gpt2, model)
same_scores(gpt2)
same_text(gpt2)
trains_on()
hashes = []
for name in ("tokens.npy", "tokens.bin"):  # the same tokens in both forms
    trireme("train", model, "--out", f"run-{name}", f"--set=data.train.corpus.path={name}", "--quiet")
    hashes.append(json.loads(trireme("inspect", f"run-{name}", "--json"))["hash"])
assert hashes[0] == hashes[1], hashes
