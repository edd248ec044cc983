# needs: torch numpy safetensors transformers peft
"""Adapters: directories of PEFT in and out, merged and apart, and 50 steps of training them, beside PEFT itself, for each family of
networks that `trireme import` knows."""

import copy
import json
import os
import shutil

import numpy as np
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

from by_torch import distance
from common import close, place, trireme, write
from compiled import Ours

VOCABULARY, WINDOW, BATCH, STEPS = 260, 12, 4, 50
SMALL = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None, "initializer_range": 0.2}
LLAMA = SMALL | {
    "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
GPT2 = SMALL | {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 48, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
KINDS = {
    "gpt2": ("GPT2", GPT2, ["c_attn", "c_proj", "c_fc"]),
    "llama": ("Llama", LLAMA | {"tie_word_embeddings": False}, ["q_proj", "v_proj", "down_proj"]),
    "mistral": ("Mistral", LLAMA | {"sliding_window": 7, "tie_word_embeddings": False}, ["k_proj", "o_proj", "lm_head"]),
    "qwen2": ("Qwen2", LLAMA | {"tie_word_embeddings": True}, ["gate_proj", "up_proj", "v_proj"]),
}


def tokenizer(name):
    """A directory needs one, and the tests give numbers."""
    bytes_ = [chr(b) if 33 <= b < 127 or 161 <= b < 173 or 174 <= b else None for b in range(256)]
    extra = iter(range(256, 600))
    vocab = {letter or chr(next(extra)): i for i, letter in enumerate(bytes_)}
    pre = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    write(f"{name}/tokenizer.json", json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": pre,
        "post_processor": None, "decoder": pre, "model": {"type": "BPE", "dropout": None, "unk_token": None,
        "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "vocab": vocab, "merges": []}}))  # fmt: skip


def network(name, kind, settings):
    torch.manual_seed(3)
    config = getattr(transformers, f"{kind}Config")(**settings, attn_implementation="eager" if kind == "GPT2" else "sdpa")
    causal = {"GPT2": "GPT2LMHeadModel"}.get(kind, f"{kind}ForCausalLM")
    net = getattr(transformers, causal)(config).eval()
    net.save_pretrained(place(name))
    trireme("import", name, "--out", f"{name}-run")
    return net


def adapted(net, kind, targets, dropout=0.0):
    config = LoraConfig(r=3, lora_alpha=6, lora_dropout=dropout, target_modules=targets, fan_in_fan_out=kind == "GPT2",
                        task_type="CAUSAL_LM")  # fmt: skip
    return get_peft_model(copy.deepcopy(net).float(), config)


def scores(net, tokens):
    with torch.no_grad():
        return net.double()(torch.tensor(tokens)[None]).logits[0].tolist()


def in_and_out(name, net, kind, targets):
    theirs = adapted(net, kind, targets, 0.25)
    with torch.no_grad():
        for key, value in theirs.named_parameters():
            if "lora_" in key:
                value.copy_(torch.randn_like(value) * 0.3)
    theirs.eval().save_pretrained(place(f"{name}-peft"), save_embedding_layers=False)
    trireme("import", f"{name}-peft", "--base", f"{name}-run", "--out", f"{name}-adapted")
    trireme("export", f"{name}-adapted", "--merge", "--c", f"{name}-merged.c", "--name", "net")
    ours = Ours(f"{name}-merged")
    random = np.random.default_rng(6)
    tokens = random.integers(0, VOCABULARY, 20)
    wanted = scores(theirs, tokens)
    plain = scores(net, tokens)
    assert max(abs(a - b) for x, y in zip(wanted, plain) for a, b in zip(x, y)) > 0.1, "the adapters do nothing"
    close(f"{name}: merged", ours.of_tokens(tokens), wanted, 3e-5)
    trireme("export", f"{name}-adapted", "--peft", f"{name}-back")
    first, back = (load_file(place(f"{name}-{d}/adapter_model.safetensors")) for d in ("peft", "back"))
    assert first.keys() == back.keys(), sorted(first.keys() ^ back.keys())
    assert all(torch.equal(first[key], back[key]) for key in first), "the tensors are not those that came in"
    again = PeftModel.from_pretrained(copy.deepcopy(net).float(), place(f"{name}-back"))
    close(f"{name}: back", scores(again, tokens), wanted, 1e-12)
    config = json.load(open(place(f"{name}-back/adapter_config.json"), encoding="utf-8"))
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (3, 6.0, 0.25), config


def in_its_numbers(model):
    """transformers takes norms and the angles of positions in float32, whatever the numbers are, so that a network in float64 is
    none. Angles are those of float64 here, as ours are."""
    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            norm = lambda x, at=module: at.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + at.variance_epsilon))
            module.forward = norm
        if not hasattr(module, "inv_freq"):
            continue
        half = module.inv_freq.shape[0]
        speed = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)

        def forward(x, position_ids, *_, speed=speed, **__):
            angles = position_ids[..., None].double() * speed
            both = torch.cat([angles, angles], -1)
            return both.cos().to(x.dtype), both.sin().to(x.dtype)

        module.forward = forward


def train(name, net, kind, targets, rule, make):
    """From the same adapters, over the same windows: as near to PEFT in float64 as twice PEFT in float32."""
    text = np.random.default_rng(8).integers(0, VOCABULARY, WINDOW * BATCH * 10 + 1)
    np.save(place("train.npy"), text)
    adapted(net, kind, targets).save_pretrained(place(f"{name}-first"), save_embedding_layers=False)
    first = load_file(place(f"{name}-first/adapter_model.safetensors"))
    corpus = f"{{corpus: {{path: {place('train.npy')}, unit: ids, ids: {VOCABULARY}, window: {WINDOW}}}}}"
    changes = [f"data.train={corpus}", f"optimizer={rule}",
               f"train={{batch: {BATCH}, microbatches: 2, steps: {STEPS}, shuffle: false, log_every: 0}}"]  # fmt: skip
    trireme("import", f"{name}-first", "--base", f"{name}-run", "--out", f"{name}-trained", "--overwrite",
            *(f"--set={change}" for change in changes))  # fmt: skip
    trireme("train", "--resume", f"{name}-trained", "--quiet")
    trireme("export", f"{name}-trained", "--peft", f"{name}-last")
    ours = load_file(place(f"{name}-last/adapter_model.safetensors"))

    def theirs(number):
        model = PeftModel.from_pretrained(copy.deepcopy(net).to(number), place(f"{name}-first"), is_trainable=True).to(number)
        in_its_numbers(model)
        learned = [value for value in model.parameters() if value.requires_grad]
        optimizer = make(learned)
        for step in range(STEPS):
            begin = step * BATCH % (BATCH * 10) * WINDOW
            x = torch.tensor(text[begin : begin + BATCH * WINDOW]).reshape(BATCH, WINDOW)
            y = torch.tensor(text[begin + 1 : begin + BATCH * WINDOW + 1])
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x).logits.flatten(0, 1), y).backward()
            optimizer.step()
        return {key.replace(".default", ""): value.detach().double() for key, value in model.named_parameters() if "lora_" in key}

    exact, single = theirs(torch.float64), theirs(torch.float32)
    moved = max(float((first[key].double() - exact[key]).abs().max()) for key in exact)
    mine, their = distance(ours, exact), distance(single, exact)
    print(f"{name}, {rule}: moved by {moved:.2e}; from float64 ours {mine:.1e}, PEFT in float32 {their:.1e}")
    assert ours.keys() == exact.keys()
    assert moved > 1e-2 and mine <= 2 * their, f"{name}: {mine} of ours, {their} of theirs"
    # Apart: an evaluation computes the products beside the weights.
    x, y = (torch.tensor(text[begin : begin + WINDOW * BATCH * 10]) for begin in (0, 1))
    model = PeftModel.from_pretrained(copy.deepcopy(net).float(), place(f"{name}-last")).double().eval()
    in_its_numbers(model)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(x.reshape(-1, WINDOW)).logits.flatten(0, 1), y)
    said = trireme("eval", f"{name}-trained", "--json", "--set-name", "train")
    close(f"{name}: apart", [[json.loads(said)["loss"]]], [[float(loss)]], 1e-5)


def refused(part, change=None, weights=None, *options):
    shutil.rmtree(place("other"), ignore_errors=True)
    shutil.copytree(place("gpt2-peft"), place("other"))
    config = json.load(open(place("other/adapter_config.json"), encoding="utf-8")) | (change or {})
    write("other/adapter_config.json", json.dumps(config))
    if weights:
        save_file(weights(load_file(place("other/adapter_model.safetensors"))), place("other/adapter_model.safetensors"))
    said = trireme("import", "other", *(options or ("--base", "gpt2-run")), "--out", "no", code=2)
    assert part in said, f"{part}: {said}"
    assert not os.path.exists(place("no")), part


for one, (family, options, modules) in KINDS.items():
    os.makedirs(place(one))
    tokenizer(one)
    base = network(one, family, options)
    in_and_out(one, base, family, modules)
    train(one, base, family, modules, "{rule: sgd, rate: 0.5}", lambda p: torch.optim.SGD(p, 0.5))
    train(one, base, family, modules, "{rule: adam, rate: 1e-2}", lambda p: torch.optim.Adam(p, 1e-2))
refused("use_dora", {"use_dora": True})
refused("modules_to_save", {"modules_to_save": ["lm_head"]})
refused("rank_pattern", {"rank_pattern": {"c_fc": 4}})
refused("peft_type", {"peft_type": "IA3"})
refused("an adapter of rank 4 has", {"r": 4})
refused("none of an adapter", None, lambda t: t | {"base_model.model.transformer.h.0.ln_1.lora_A.weight": torch.zeros(3, 24)})
refused("attention0.input_lora_a", None, lambda t: {k: v for k, v in list(t.items())[1:]})
refused("as `--base`", None, None, "--partial")
refused("the network wants", None, None, "--base", "llama-run")
said = trireme("export", "gpt2-adapted", "--onnx", "no.onnx", code=2)
assert "merge" in said, said
