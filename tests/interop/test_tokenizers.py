# needs: numpy tokenizers tiktoken
"""Tokenizers: the libraries "tokenizers" and "tiktoken" judge ours on vocabularies that are trained here.

Training gives their vocabulary and merges; every character, random characters, mixed scripts and long rows give their
tokens, and the tokens give the text back. A network of subwords trains, writes, and its C file writes the same."""

import json
import os
import random
import subprocess
import sys
import unicodedata

import tiktoken
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from common import data, place, trireme, write

VERSION = "14.0.0"  # of our tables
SPECIAL = ["<|endoftext|>", "<|im_start|>"]
CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": CL100K,
    "qwen2": CL100K.replace("{1,3}", ""),
}
SCRIPTS = [
    (0x41, 0x7B), (0x370, 0x400), (0x400, 0x500), (0x590, 0x600), (0x620, 0x6FF), (0x900, 0x980), (0xE00, 0xE60),
    (0x3040, 0x3100), (0x4E00, 0x5000), (0xAC00, 0xAE00), (0x1F600, 0x1F650), (0x2150, 0x2190), (0x300, 0x370),
]  # fmt: skip
BETWEEN = [" ", " ", " ", "  ", "\n", "\n\n", " \n ", "\t", "\r\n", "", "'s ", "'LL ", "'ſ", "123", "4567 ", "\xa0", "\u3000", "...\n"]
draw = random.Random(7)
if unicodedata.unidata_version != VERSION:
    print(f"note: this Python knows Unicode {unicodedata.unidata_version}, our tables {VERSION}; newer characters may differ")
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) != "Cn"]


def mixed(words, source):
    """Words of a text and of many scripts, with all kinds of blanks and endings between."""
    parts = []
    for _ in range(words):
        if draw.random() < 0.5:
            parts.append(draw.choice(source))
        else:
            first, end = draw.choice(SCRIPTS)
            parts.append("".join(chr(draw.randrange(first, end)) for _ in range(draw.randrange(1, 8))))
        parts.append(draw.choice(BETWEEN))
    return "".join(parts)


def tokens_of(tokenizer, text):
    """Ours; the text must come back."""
    with open(place("text"), "w", encoding="utf-8", newline="") as file:
        file.write(text)
    numbers = trireme("data", "tokens", tokenizer, "text")
    with open(place("numbers"), "w", encoding="ascii") as file:
        file.write(numbers)
    return [int(number) for number in numbers.split()]


def text_of(tokenizer):
    done = subprocess.run([sys.argv[1], "data", "tokens", "--decode", tokenizer, place("numbers")], cwd=place(""),
                          capture_output=True, check=True)  # fmt: skip
    return done.stdout.decode("utf-8")


def compare(what, tokenizer, text, theirs):
    ours = tokens_of(tokenizer, text)
    if ours != theirs:
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        raise AssertionError(f"{what}: token {at} is {ours[at : at + 4]}, not {theirs[at : at + 4]}")
    assert text_of(tokenizer) == text, f"{what}: the text does not come back"
    print(f"{what}: {len(text):,} characters, {len(ours):,} tokens, all as theirs")


def trained_by_them(pattern, text, tokens):
    theirs = Tokenizer(models.BPE())
    if pattern == "gpt2":
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        split = pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated")
        theirs.pre_tokenizer = pre_tokenizers.Sequence(
            [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    trainer = trainers.BpeTrainer(
        vocab_size=tokens, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False, min_frequency=2,
    )  # fmt: skip
    theirs.train_from_iterator([text], trainer)
    return json.loads(theirs.to_str())["model"]


def pairs(merges):
    return [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in merges]


def letters():
    """The byte of each letter of tokenizer.json, as GPT-2's code has it."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(other)}


def judge_tiktoken(pattern, ours, texts):
    """It merges what is a token together, in the order of numbers: that is all ways to cut a token in two."""
    byte = letters()
    letter = {value: key for key, value in byte.items()}
    ranks = {bytes(byte[c] for c in token): i for token, i in ours["model"]["vocab"].items() if token not in SPECIAL}
    merges = []
    for token, _ in sorted(ranks.items(), key=lambda item: item[1]):
        for cut in range(1, len(token)):
            if token[:cut] in ranks and token[cut:] in ranks:
                merges.append([ranks[token], ranks[token[:cut]], ranks[token[cut:]], token[:cut], token[cut:]])
    word = lambda part: "".join(letter[b] for b in part)
    ours["model"]["merges"] = [word(left) + " " + word(right) for *_, left, right in sorted(merges)]
    ours["model"]["ignore_merges"] = True
    write(f"{pattern}-all.json", json.dumps(ours))
    theirs = tiktoken.Encoding(
        pattern, pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={s: i for i, s in enumerate(SPECIAL)}
    )
    for name, text in texts.items():
        compare(f"{pattern}, {name}, tiktoken", f"{pattern}-all.json", text, theirs.encode(text, allowed_special="all"))


def judge(pattern, sample, texts):
    path = f"{pattern}.json"
    trireme("data", "tokenizer", "sample", "--tokens", "3000", "--pattern", pattern, "--out", path,
            *(f"--special={text}" for text in SPECIAL))  # fmt: skip
    with open(place(path), encoding="utf-8") as file:
        ours = json.load(file)
    theirs = trained_by_them(pattern, sample, 3000)
    assert ours["model"]["vocab"] == theirs["vocab"], f"{pattern}: another vocabulary"
    assert pairs(ours["model"]["merges"]) == pairs(theirs["merges"]), f"{pattern}: other merges"
    library = Tokenizer.from_file(place(path))
    for name, text in texts.items():
        compare(f"{pattern}, {name}", path, text, library.encode(text, add_special_tokens=False).ids)
    judge_tiktoken(pattern, ours, {name: texts[name] for name in ("scripts", "random", "special")})


def judge_composed(texts):
    """Qwen2's normalizer: the composed form is what comes back."""
    with open(place("qwen2.json"), encoding="utf-8") as file:
        ours = json.load(file)
    ours["normalizer"] = {"type": "NFC"}
    write("nfc.json", json.dumps(ours))
    library = Tokenizer.from_file(place("nfc.json"))
    library.normalizer = None
    for name, text in texts.items():
        composed = unicodedata.normalize("NFC", text)
        assert tokens_of("nfc.json", text) == library.encode(composed, add_special_tokens=False).ids, f"nfc, {name}"
        assert text_of("nfc.json") == composed
    assert normalizers.NFC().normalize_str("e\u0301") == "é"


def judge_network():
    """A language model of subwords: its prompt is a text, what it writes one too, and its C file writes the same."""
    write("model.yaml", f"""
name: subwords
data:
  train: {{corpus: {{path: {data("shakespeare/input.txt.gz")}, unit: bpe, tokenizer: cl100k.json, window: 16, end: 0.05}}}}
layers:
- embedding: {{width: 16, name: words}}
- attention: {{heads: 4, kv_heads: 2, causal: true, rotary: 100, window: 8}}
- add: words
- rms_norm
- unembedding: words
optimizer: {{rule: adam, rate: 1e-2}}
train: {{batch: 16, steps: 20}}
""")  # fmt: skip
    trireme("train", "model.yaml", "--quiet", "--out", "run")
    prompt = "Before we proceed,  any further\n\n<|endoftext|>It's 12345  "
    ours = trireme("generate", "run", "--prompt", prompt, "--tokens", "40", "--temperature", "0", "--context", "24")
    assert ours.startswith(prompt)
    assert ours == trireme("generate", "run", "--prompt", prompt, "--tokens", "40", "--temperature", "0", "--context", "24")
    trireme("export", "run", "--c", "net.c", "--name", "net")
    library = Tokenizer.from_file(place("cl100k.json"))
    texts = [prompt, mixed(300, ["word", "it's"]).replace("\0", ""), "a  <|im_start|>\n \n<|endoftext|>", "'ſ'S 'Re", ""]
    write("main.c", """#define NET_DECLARATIONS
#include "net.c"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **text)
{
    static int32_t tokens[1 << 20];
    static char bytes[NET_TEXT];
    for (int i = 1; i < count; i++) {
        int32_t all = net_tokens(text[i], tokens);
        for (int32_t k = 0; k < all; k++) printf("%d ", (int)tokens[k]);
        printf("\\n");
        for (int32_t k = 0; k < all; k++) fwrite(bytes, 1, (size_t)net_text(tokens[k], bytes), stderr);
    }
    return 0;
}
""")
    subprocess.run(["cc", "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-I", ".", "main.c", "net.c", "-o", "net", "-lm"],
                   cwd=place(""), check=True)  # fmt: skip
    done = subprocess.run(["./net", *texts], cwd=place(""), capture_output=True, check=True)
    for text, line in zip(texts, done.stdout.decode().split("\n")):
        assert [int(n) for n in line.split()] == library.encode(text, add_special_tokens=False).ids, text[:40]
    assert done.stderr.decode("utf-8") == "".join(texts)
    print("a network of subwords: generate and C take and give texts")


with open(os.path.join(sys.argv[2], "README.md"), encoding="utf-8") as readme:
    WORDS = readme.read().split(" ")
SAMPLE = mixed(40000, WORDS)
with open(place("sample"), "w", encoding="utf-8", newline="") as out:
    out.write(SAMPLE)
LITTLE = [" ", " ", "\n", "\r", "'", "s", "S", "ſ", "l", "L", "1", "2", "\xa0", ".", "\t"]
TEXTS = {
    "every character": "".join(c + "a" for c in CHARACTERS),
    "every character in a contraction": "".join("x'" + c for c in CHARACTERS),
    "every character behind a blank": "".join(" " + c + "\n" for c in CHARACTERS),
    "random": "".join(draw.choices(CHARACTERS, k=300000)),
    "random, few": "".join(draw.choices(LITTLE, k=300000)),
    "special": "a<|endoftext|><|im_start|> b  <|im_start|>\n<|endoftext",
    "long rows": "ab" * 40000 + " " * 20000 + "\n" * 5000 + "é" * 20000,
    "scripts": mixed(400000, WORDS),
}
for one in PATTERNS:
    judge(one, SAMPLE, TEXTS)
judge_composed({name: TEXTS[name] for name in ("every character", "random", "special")})
judge_network()
