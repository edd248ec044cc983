# needs: torch numpy safetensors transformers tokenizers
"""Directories of Hugging Face: small networks with random weights, saved by transformers, are imported with their tokenizers,
and give the same scores and the same greedy text."""

import copy
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

from common import close, data, place, trireme, write
from compiled import Ours

TOKENS, VOCABULARY = 600, 620  # the network has some without a text
PROMPT = "First Citizen:\nWe are 12 accounted  poor"
SMALL = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None}
LLAMA = SMALL | {
    "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.2,
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}  # fmt: skip
KINDS = {
    "gpt2": ("GPT2", SMALL | {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 48, "initializer_range": 0.2}, "gpt2"),
    "llama": ("Llama", LLAMA | {"rope_parameters": LLAMA3, "tie_word_embeddings": False}, "cl100k"),
    "llama-wide": ("Llama", LLAMA | {"head_dim": 12, "num_key_value_heads": 1, "tie_word_embeddings": True}, "cl100k"),
    "mistral": ("Mistral", LLAMA | {"sliding_window": 7, "tie_word_embeddings": False}, "gpt2"),
    "qwen2": ("Qwen2", LLAMA | {"tie_word_embeddings": True}, "qwen2"),
}


def network(name, kind, settings, pattern):
    """A directory as save_pretrained() writes it, with a tokenizer of ours."""
    torch.manual_seed(3)
    config = getattr(transformers, f"{kind}Config")(**settings, attn_implementation="eager")
    causal = {"GPT2": "GPT2LMHeadModel"}.get(kind, f"{kind}ForCausalLM")
    net = getattr(transformers, causal)(config).eval()
    with torch.no_grad():
        for key, value in net.named_parameters():
            if value.dim() == 1:  # norms and biases begin as ones and zeros
                value.add_(torch.randn_like(value) * 0.2)
    if name == "mistral":  # numbers that bfloat16 can hold, in a file of bfloat16; what else the network has stays
        with torch.no_grad():
            for value in net.parameters():
                value.copy_(value.to(torch.bfloat16))
        copy.deepcopy(net).to(torch.bfloat16).save_pretrained(place(name))
    else:
        net.save_pretrained(place(name))
    trireme("data", "tokenizer", data("shakespeare/input.txt.gz"), "--tokens", str(TOKENS), "--pattern", pattern,
            "--special=<|endoftext|>", "--out", f"{name}/tokenizer.json")  # fmt: skip
    return net


def text_of(library, token):
    """The bytes of a token, which may be part of a character; of one that only the network has, none."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(256) if byte not in plain]
    byte = {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(other)}
    return bytes(byte[letter] for letter in library.id_to_token(token) or "")


def judge(name, kind, settings, pattern):
    net = network(name, kind, settings, pattern)
    trireme("import", name, "--out", f"{name}-run", "--text", data("shakespeare/input.txt.gz"))
    assert os.path.exists(place(f"{name}-run/model.yaml"))
    trireme("export", f"{name}-run", "--c", f"{name}-run.c", "--name", "net")
    ours = Ours(f"{name}-run")
    random = np.random.default_rng(6)
    for length in (1, 9, 40):
        tokens = random.integers(0, VOCABULARY, length)
        with torch.no_grad():
            theirs = net.double()(torch.tensor(tokens)[None]).logits[0]
        close(f"{name}, {length} tokens", ours.of_tokens(tokens), theirs.tolist(), 3e-5)  # their angles are float32
    library = Tokenizer.from_file(place(f"{name}/tokenizer.json"))
    tokens = library.encode(PROMPT, add_special_tokens=False).ids
    with torch.no_grad():
        for _ in range(20):
            scores = net(torch.tensor(tokens)[None]).logits[0, -1]
            tokens.append(int(scores.argmax()))
    wanted = b"".join(text_of(library, token) for token in tokens) + b"\n"
    command = [sys.argv[1], "generate", f"{name}-run", "--prompt", PROMPT, "--tokens", "20", "--temperature", "0"]
    said = subprocess.run(command, cwd=place(""), capture_output=True, check=True).stdout
    assert said == wanted, f"{name}: {said!r}, not {wanted!r}"
    trireme("train", "--resume", f"{name}-run", "--quiet", "--set=train.steps=2")
    print(f"{name}: the greedy text is theirs, and training goes on")


def refused(what, part, **changes):
    """A config.json that says something else."""
    shutil.rmtree(place("other"), ignore_errors=True)
    shutil.copytree(place("llama"), place("other"))
    with open(place("other/config.json"), encoding="utf-8") as file:
        config = json.load(file) | changes
    write("other/config.json", json.dumps(config))
    said = trireme("import", "other", "--out", "other-run", code=2)
    assert part in said, f"{what}: {said}"
    assert not os.path.exists(place("other-run")), what


for one, (family, options, cut) in KINDS.items():
    judge(one, family, options, cut)
refused("another model", "known are gpt2, llama, mistral and qwen2", model_type="gemma")
refused("another activation", "hidden_act", hidden_act="gelu")
refused("another scaling", "rope_type", rope_parameters={"rope_type": "yarn", "factor": 2.0})
refused("a missing tensor", "has no tensor", num_hidden_layers=3)
refused("another shape", "by config.json it has", intermediate_size=60)
said = trireme("import", "llama", "--model", "llama-run/model.yaml", "--out", "no", code=2)
assert "leave out yours" in said, said
