# needs: torch numpy safetensors transformers
"""Encoders of Hugging Face: small BERT, DistilBERT and RoBERTa with random weights, saved by transformers, are imported and give
the same scores, of texts and of tokens. One whose classes are missing begins with new ones, and only where that is asked for."""

import json

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

from common import close, place, trireme, write
from compiled import Ours

VOCABULARY = 90
BERT = {
    "vocab_size": VOCABULARY, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 40,
    "max_position_embeddings": 34, "initializer_range": 0.3, "num_labels": 4,
}  # fmt: skip
DISTILBERT = {
    "vocab_size": VOCABULARY, "dim": 24, "n_layers": 2, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 34,
    "initializer_range": 0.3, "num_labels": 3,
}  # fmt: skip
KINDS = {
    "bert": ("Bert", BERT, "ForSequenceClassification"),
    "bert-tags": ("Bert", BERT | {"hidden_act": "gelu_new", "type_vocab_size": 3}, "ForTokenClassification"),
    "distilbert": ("DistilBert", DISTILBERT, "ForSequenceClassification"),
    "distilbert-tags": ("DistilBert", DISTILBERT, "ForTokenClassification"),
    "roberta": ("Roberta", BERT | {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "num_labels": 2}, "ForSequenceClassification"),
    "roberta-tags": ("Roberta", BERT | {"type_vocab_size": 1, "pad_token_id": 1}, "ForTokenClassification"),
}
random = np.random.default_rng(4)
LONGEST = 32


def texts(name, classes, tags):
    """A file as a tokenizer's numbers make it, and the numbers; none is one that pads."""
    rows = [random.integers(5, VOCABULARY, length).tolist() for length in (1, 2, 9, 20, LONGEST, 13)]
    lines = ""
    for row in rows:
        labels = random.integers(0, classes, len(row) if tags else 1)
        lines += " ".join(map(str, row)) + "\t" + " ".join(map(str, labels)) + "\n"
    write(f"{name}.tsv", lines)
    return rows


def network(name, family, settings, task):
    torch.manual_seed(5)
    config = getattr(transformers, f"{family}Config")(**settings, attn_implementation="eager")
    net = getattr(transformers, family + task)(config).eval()
    with torch.no_grad():
        for value in net.parameters():
            if value.dim() == 1:  # norms and biases begin as ones and zeros
                value.add_(torch.randn_like(value) * 0.2)
    net.save_pretrained(place(name))
    return net


def scores(net, rows):
    with torch.no_grad():
        return [net.double()(torch.tensor(row)[None]).logits[0].tolist() for row in rows]


def judge(name, family, settings, task):
    net, tags = network(name, family, settings, task), task == "ForTokenClassification"
    rows = texts(name, settings["num_labels"], tags)
    message = trireme("import", name, "--out", f"{name}-run", code=2)
    assert "is an encoder" in message, message
    trireme("import", name, "--out", f"{name}-run", "--text", f"{name}.tsv")
    trireme("export", f"{name}-run", "--c", f"{name}-run.c", "--name", "net")
    ours = Ours(f"{name}-run")
    for row, theirs in zip(rows, scores(net, rows)):
        mine = ours.of_tokens(row) if tags else [ours(np.array(row))]
        close(f"{name}, {len(row)} tokens", mine, theirs if tags else [theirs], 2e-5)
    trireme("train", "--resume", f"{name}-run", "--quiet")
    said = trireme("predict", f"{name}-run", "--text", f"7 {VOCABULARY}", code=2)
    assert f"no number from 0 to {VOCABULARY - 1}" in said, said
    print(f"{name}: scores are theirs, and training goes on")


for kind, what in KINDS.items():
    judge(kind, *what)

# Without classes: of BertModel the names lack the family, and the pooled vector may be missing as of a masked language model.
for task in ("Model", "ForMaskedLM"):
    whole = network(f"bert-{task}", "Bert", BERT, task)
    texts(f"bert-{task}", 4, False)
    arguments = ["import", f"bert-{task}", "--out", f"bert-{task}-run", "--text", f"bert-{task}.tsv"]
    lacks = trireme(*arguments, code=2)
    assert "makes no classes" in lacks, lacks
    trireme(*arguments, "--partial")
    trireme("export", f"bert-{task}-run", "--layout", "torch", "--safetensors", f"bert-{task}.safetensors")
    tensors, state = load_file(place(f"bert-{task}.safetensors")), whole.state_dict()
    front = "" if task == "Model" else "bert."
    assert torch.equal(tensors["down2.weight"], state[f"{front}encoder.layer.2.output.dense.weight"])
    if task == "Model":
        assert torch.equal(tensors["pooled.weight"], state["pooler.dense.weight"])
    assert tensors["classes.weight"].std() > 0

# Refused by name.
for key, value in {"position_embedding_type": "relative_key", "is_decoder": True, "hidden_act": "relu",
                   "problem_type": "regression", "architectures": ["BertForQuestionAnswering"]}.items():  # fmt: skip
    network("other", "Bert", BERT, "ForSequenceClassification")
    with open(place("other/config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(place("other/config.json"), "w", encoding="utf-8") as file:
        json.dump(config | {key: value}, file)
    said = trireme("import", "other", "--out", "other-run", "--text", "bert.tsv", code=2)
    assert key in said, said
print("what is another network is refused by name")
