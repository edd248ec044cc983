# needs: torch numpy safetensors transformers tokenizers gguf accelerate
"""Directories of Hugging Face: small networks with random weights, saved by transformers, are imported with their tokenizers,
and give the same scores and the same greedy text. What is exported again is the same network for transformers, as a directory
and as GGUF."""

import copy
import json
import os
import shutil
import subprocess
import sys

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import load_file
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
    again(name, net)
    as_gguf(name, kind, net)
    trireme("train", "--resume", f"{name}-run", "--quiet", "--set=train.steps=2")
    print(f"{name}: the greedy text is theirs, and training goes on")


def hash_of(run):
    return json.loads(trireme("inspect", run, "--json"))["hash"]


def same_scores(what, net, other, least=0.0):
    """Two networks of transformers in float64, up to what their tables of angles round to."""
    tokens = torch.tensor(np.random.default_rng(7).integers(0, VOCABULARY, (1, 40)))
    with torch.no_grad():
        far = (net.double()(tokens).logits - other.double().eval()(tokens).logits).abs().max().item()
    assert far <= least, f"{what}: scores differ by {far}"


def again(name, net):
    """Out as a directory, which transformers loads, and in again, which gives the same run."""
    trireme("export", f"{name}-run", "--hub", f"{name}-out")
    ours = transformers.AutoModelForCausalLM.from_pretrained(place(f"{name}-out"), attn_implementation="eager")
    assert type(ours) is type(net)
    for key, value in net.state_dict().items():
        assert torch.equal(ours.state_dict()[key].double(), value.double()), f"{name}: {key}"
    same_scores(f"{name}, as a directory", net, ours)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place(f"{name}-out"))
    library = Tokenizer.from_file(place(f"{name}/tokenizer.json"))
    ids = library.encode(PROMPT, add_special_tokens=False).ids
    assert tokenizer(PROMPT, add_special_tokens=False)["input_ids"] == ids
    assert tokenizer.eos_token == "<|endoftext|>" and ours.config.eos_token_id == library.token_to_id("<|endoftext|>")
    with torch.no_grad():
        theirs, written = (one.float().generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False, eos_token_id=None,
                                                pad_token_id=0) for one in (net, ours))  # fmt: skip
    assert torch.equal(theirs, written), f"{name}: the greedy text of the directory"
    trireme("import", f"{name}-out", "--out", f"{name}-again", "--text", data("shakespeare/input.txt.gz"))
    assert hash_of(f"{name}-again") == hash_of(f"{name}-run"), name
    first, second = (open(place(f"{name}-{end}/model.yaml"), encoding="utf-8").read() for end in ("run", "again"))
    assert second.replace(f"{name}-out", name) == first, name
    net.float().save_pretrained(place(f"{name}-shards"), max_shard_size="20KB")
    shutil.copy(place(f"{name}/tokenizer.json"), place(f"{name}-shards/tokenizer.json"))
    assert os.path.exists(place(f"{name}-shards/model.safetensors.index.json"))
    trireme("import", f"{name}-shards", "--out", f"{name}-shards-run", "--text", data("shakespeare/input.txt.gz"))
    assert hash_of(f"{name}-shards-run") == hash_of(f"{name}-run"), f"{name}, in several files"
    trireme("export", f"{name}-run", "--hub", f"{name}-half", "--half")
    halves = load_file(place(f"{name}-half/model.safetensors"))
    for key, value in halves.items():
        assert torch.equal(value, net.state_dict()[key].to(torch.float16)), f"{name}: {key} of 16 bits"


def as_gguf(name, kind, net):
    """The file by llama.cpp's own reader, and as the network that transformers makes of it."""
    os.makedirs(place(f"{name}-gguf"), exist_ok=True)
    trireme("export", f"{name}-run", "--gguf", f"{name}-gguf/net.gguf")
    reader = gguf.GGUFReader(place(f"{name}-gguf/net.gguf"))

    def value(key):
        return reader.get_field(key).contents()

    architecture = {"GPT2": "gpt2", "Qwen2": "qwen2"}.get(kind, "llama")
    config = net.config
    assert value("general.architecture") == architecture and value("general.file_type") == 0
    assert value(f"{architecture}.block_count") == 2 and value(f"{architecture}.vocab_size") == VOCABULARY
    assert value(f"{architecture}.attention.head_count") == config.num_attention_heads
    context = getattr(config, "sliding_window", None) if kind == "Mistral" else config.max_position_embeddings
    assert value(f"{architecture}.context_length") == context
    library = Tokenizer.from_file(place(f"{name}/tokenizer.json"))
    tokens = value("tokenizer.ggml.tokens")
    assert tokens[:TOKENS] == [library.id_to_token(i) for i in range(TOKENS)] and len(tokens) == VOCABULARY
    types = value("tokenizer.ggml.token_type")
    assert types == [3] + [1] * (TOKENS - 1) + [5] * (VOCABULARY - TOKENS)
    merges = json.loads(library.to_str())["model"]["merges"]
    assert value("tokenizer.ggml.merges") == [" ".join(pair) for pair in merges]
    assert value("tokenizer.ggml.pre") == {"gpt2": "gpt-2", "mistral": "gpt-2", "qwen2": "qwen2"}.get(name, "dbrx")
    assert value("tokenizer.ggml.eos_token_id") == 0
    full = {tensor.name: tensor.data for tensor in reader.tensors}
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, architecture.upper()), 2)
    for key, number in net.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        wanted = number.float().numpy()
        if kind == "GPT2" and ("attn.c" in key or "mlp.c" in key):
            wanted = wanted.T
        elif architecture == "llama" and ("q_proj" in key or "k_proj" in key):  # neighbours turn together
            size = net.model.layers[0].self_attn.head_dim
            wanted = wanted.reshape(-1, 2, size // 2, wanted.shape[1]).swapaxes(1, 2).reshape(wanted.shape)
        assert np.array_equal(full.pop(names.get_name(key, try_suffixes=(".weight", ".bias"))), wanted), key
    assert list(full) == (["rope_freqs.weight"] if name == "llama" else []), full
    if name in ("llama-wide", "qwen2"):  # of the others transformers reads less than llama.cpp
        ours = transformers.AutoModelForCausalLM.from_pretrained(place(f"{name}-gguf"), gguf_file="net.gguf",
                                                                 attn_implementation="eager")  # fmt: skip
        for key, number in net.state_dict().items():
            assert torch.equal(ours.state_dict()[key].double(), number.double()), f"{name}: {key} of the file"
    if name == "llama":
        turns = {tensor.name: tensor.data for tensor in reader.tensors}["rope_freqs.weight"]
        plain = LLAMA3["rope_theta"] ** -(np.arange(0, 8, 2) / 8)
        wanted = plain / net.model.rotary_emb.inv_freq.double().numpy()
        assert np.allclose(turns, wanted, rtol=1e-6), turns
    trireme("export", f"{name}-run", "--gguf", f"{name}.half.gguf", "--half")
    full = {tensor.name: tensor.data for tensor in reader.tensors}
    for tensor in gguf.GGUFReader(place(f"{name}.half.gguf")).tensors:
        kept = full[tensor.name]
        assert tensor.data.dtype == (np.float16 if kept.ndim == 2 else np.float32)
        assert np.array_equal(tensor.data, kept.astype(tensor.data.dtype)), tensor.name


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
BY_HAND = """
name: hand
data: {{train: {{corpus: {{path: {text}, unit: characters, window: 32, end: 0.1}}}}}}
layers:
- embedding: {{width: 24, name: words}}
- position: 32
- dropout: {{rate: 0.1, name: x0}}
- layer_norm: {{epsilon: 1e-6}}
- attention: {{heads: 3, causal: true, use_bias: false, dropout: 0.1}}
- add: x0
- layer_norm: {{epsilon: 1e-6}}
- dense: {{units: 40, use_bias: false}}
- {middle}
- dense: 24
- dropout: 0.1
- add: add1
- layer_norm: {{epsilon: 1e-6}}
- unembedding: words
optimizer: {{rule: adam, rate: 1e-3}}
train: {{batch: 4, steps: 3}}
"""


def by_hand():
    """A network that nobody imported, like GPT-2 but for biases that are not there, gelu without tanh, and no tokenizer."""
    path = write("hand.yaml", BY_HAND.format(text=data("shakespeare/input.txt.gz"), middle="gelu"))
    trireme("train", path, "--quiet", "--out", "hand")
    trireme("export", "hand", "--hub", "hand-out")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(place("hand-out"), attn_implementation="eager").double()
    assert theirs.config.activation_function == "gelu" and not os.path.exists(place("hand-out/tokenizer.json"))
    trireme("export", "hand", "--c", "hand-run.c", "--name", "net")
    ours = Ours("hand-run")
    tokens = np.random.default_rng(8).integers(0, theirs.config.vocab_size, 30)
    with torch.no_grad():
        close("by hand", ours.of_tokens(tokens), theirs.eval()(torch.tensor(tokens)[None]).logits[0].tolist(), 3e-5)
    assert "computes the `gelu` of a network like gpt2 by tanh" in trireme("export", "hand", "--gguf", "hand.gguf", code=2)
    write("hand-out/notes.txt", "of somebody else")
    assert 'has a "notes.txt"' in trireme("export", "hand", "--hub", "hand-out", code=2)
    path = write("hand.yaml", BY_HAND.format(text=data("shakespeare/input.txt.gz"), middle="relu"))
    trireme("train", path, "--quiet", "--out", "hand-relu")
    said = trireme("export", "hand-relu", "--hub", "no", code=2)
    assert 'layer "relu1" is a relu; a network like gpt2 has gelu there' in said and not os.path.exists(place("no")), said


by_hand()
refused("another model", "known are gpt2, llama, mistral, qwen2, bert", model_type="gemma")
refused("another activation", "hidden_act", hidden_act="gelu")
refused("another scaling", "rope_type", rope_parameters={"rope_type": "yarn", "factor": 2.0})
refused("a missing tensor", "has no tensor", num_hidden_layers=3)
refused("another shape", "by config.json it has", intermediate_size=60)
said = trireme("import", "llama", "--model", "llama-run/model.yaml", "--out", "no", code=2)
assert "leave out yours" in said, said
