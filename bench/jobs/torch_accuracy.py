"""What PyTorch reaches with the recipes of our transformers, as a rival in accuracy:

    torch_accuracy.py [--epochs N] TRIREME MODEL SEED...     MODEL: a key of RECIPES, found in models/

The network is the one that `trireme export --torch` writes and begins with the weights that Trireme draws from the
seed; the order of the examples, dropout, shifts and windows are PyTorch's own. One thread. Prints a line for each seed,
to compare with the end of `trireme train MODEL --seed SEED` (and `--set train.epochs=N`).
"""
import argparse
import collections
import gzip
import importlib.util
import math
import os
import subprocess
import tempfile

import rivals
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DATA = os.path.join(SOURCE, "data")

# From optimizer and train in the model files. `decay`: of AdamW, only for weights; `ema`: of the averages that are
# evaluated.
Recipe = collections.namedtuple("Recipe", "batch epochs steps beta2 decay warmup final clip ema", defaults=[0, 0, 0.999, 0.01, 0, 1, 0, 0])
RATE = 1e-3
RECIPES = {
    "mnist-vit": Recipe(100, epochs=4, warmup=200, final=0),
    "sst2-transformer": Recipe(128, epochs=6, ema=0.98),
    "shakespeare-gpt": Recipe(12, steps=2000, beta2=0.99, decay=0.1, warmup=100, final=0.1, clip=1),
}


class Digits:
    """Shifted by up to two pixels in training."""

    def __init__(self, _):
        read = lambda part: [torch.frombuffer(x, dtype=torch.uint8) for x in rivals.mnist(DATA, part)]
        self.part = [(images.view(-1, 1, 28, 28), labels.long()) for images, labels in map(read, ("train", "t10k"))]
        self.count = len(self.part[0][1])

    def batch(self, rows):
        images, labels = self.part[0][0][rows], self.part[0][1][rows]
        padded = F.pad(images, (2, 2, 2, 2))
        down, right = (torch.randint(0, 5, (len(rows), 1)) + torch.arange(28) for _ in range(2))
        images = padded[torch.arange(len(rows))[:, None, None], 0, down[:, :, None], right[:, None, :]]
        return (images[:, None].float() / 255,), labels

    def test(self):
        for images, labels in zip(self.part[1][0].split(500), self.part[1][1].split(500)):
            yield (images.float() / 255,), labels


class Reviews:
    def __init__(self, words):
        number = {word: i for i, word in enumerate(words)}
        self.part = [self.read(name, number) for name in ("train", "test")]
        self.count = len(self.part[0])

    @staticmethod
    def read(name, number):
        with open(f"{DATA}/sst2/{name}.tsv", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        return [([number.get(word, 0) for word in text.split()], int(label)) for text, label in lines]

    @staticmethod
    def padded(examples):
        lengths = torch.tensor([len(tokens) for tokens, _ in examples])
        tokens = torch.zeros(len(examples), int(lengths.max()), dtype=torch.long)
        for row, (numbers, _) in zip(tokens, examples):
            row[: len(numbers)] = torch.tensor(numbers)
        return (tokens, lengths), torch.tensor([label for _, label in examples])

    def batch(self, rows):
        return self.padded([self.part[0][i] for i in rows.tolist()])

    def test(self):
        for first in range(0, len(self.part[1]), 256):
            yield self.padded(self.part[1][first : first + 256])


class Text:
    """Windows from anywhere in the first nine tenths for training; those of the last tenth, one after the other,
    for evaluation."""

    WINDOW = 64

    def __init__(self, words):
        number = {chr(int(word[2:], 16)): i for i, word in enumerate(words) if word.startswith("U+")}
        with gzip.open(f"{DATA}/shakespeare/input.txt.gz", "rt", encoding="utf-8") as file:
            tokens = torch.tensor([number.get(character, 0) for character in file.read()])
        self.part = tokens.split([len(tokens) * 9 // 10, len(tokens) - len(tokens) * 9 // 10])
        self.count = len(self.part[0]) - self.WINDOW

    def windows(self, tokens, first):
        rows = tokens[first[:, None] + torch.arange(self.WINDOW + 1)]
        return (rows[:, :-1], torch.full((len(rows),), self.WINDOW)), rows[:, 1:]

    def batch(self, rows):
        return self.windows(self.part[0], rows)

    def test(self):
        for first in torch.arange(0, len(self.part[1]) - self.WINDOW, self.WINDOW).split(250):
            yield self.windows(self.part[1], first)


SETS = {"mnist-vit": Digits, "sst2-transformer": Reviews, "shakespeare-gpt": Text}


def begin(trireme, model, seed, place):
    """The network with Trireme's initial weights, and the words with its numbers: from a checkpoint after a step
    of rate 0."""
    run = lambda *arguments: subprocess.run([trireme, *arguments], cwd=place, check=True, stdout=subprocess.DEVNULL)
    still = ["optimizer.rate=1e-30", "optimizer.schedule=null", "train.evaluate_every=0", "data.validation=null", "data.test=null"]
    run("train", f"{SOURCE}/models/{model}.yaml", "--seed", str(seed), "--steps=1", "--quiet", "--out=run", *(f"--set={x}" for x in still))
    run("export", "run", "--torch", "net.py")
    run("export", "run", "--layout=torch", "--safetensors=first.safetensors")
    spec = importlib.util.spec_from_file_location("exported", f"{place}/net.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net = module.Net()
    net.load_state_dict(load_file(f"{place}/first.safetensors"))
    vocabulary = f"{place}/run/checkpoint-00000001/vocabulary.txt"
    if not os.path.exists(vocabulary):
        return net, []
    with open(vocabulary, encoding="utf-8") as file:
        return net, file.read().split("\n")[2:]


def batches(data, recipe):
    """A new order in every epoch, which may end with a smaller batch; `recipe.steps` of them, or `recipe.epochs` epochs."""
    step, epoch = 0, 0
    while epoch < recipe.epochs or step < recipe.steps:
        for rows in torch.randperm(data.count).split(recipe.batch):
            yield data.batch(rows)
            step += 1
            if step == recipe.steps:
                return
        epoch += 1


def train(net, data, recipe):
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": recipe.decay},
              {"params": [p for p in net.parameters() if p.dim() == 1], "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, RATE, betas=(0.9, recipe.beta2), foreach=True)
    steps = recipe.steps or recipe.epochs * math.ceil(data.count / recipe.batch)

    def factor(step):
        if step < recipe.warmup:
            return (step + 1) / recipe.warmup
        return recipe.final + (1 - recipe.final) * (1 + math.cos(math.pi * (step - recipe.warmup) / (steps - recipe.warmup))) / 2

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    averages = [p.detach().clone() for p in net.parameters()]
    net.train()
    for inputs, labels in batches(data, recipe):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(*inputs).flatten(0, -2), labels.flatten()).backward()
        if recipe.clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), recipe.clip)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            torch._foreach_lerp_(averages, list(net.parameters()), 1 - recipe.ema)
    with torch.no_grad():
        for parameter, average in zip(net.parameters(), averages):
            parameter.copy_(average)


@torch.no_grad()
def judge(net, data):
    """Accuracy and mean loss on data that was not trained on."""
    net.eval()
    right, loss, count = 0, 0.0, 0
    for inputs, labels in data.test():
        scores, labels = net(*inputs).flatten(0, -2), labels.flatten()
        right += (scores.argmax(1) == labels).sum().item()
        loss += F.cross_entropy(scores, labels, reduction="sum").item()
        count += len(labels)
    return right / count, loss / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    parser.add_argument("trireme")
    parser.add_argument("model", choices=RECIPES)
    parser.add_argument("seeds", type=int, nargs="+")
    choice = parser.parse_args()
    model, recipe = choice.model, RECIPES[choice.model]
    if choice.epochs:
        recipe = recipe._replace(epochs=choice.epochs, steps=0)
    torch.set_num_threads(1)
    for seed in choice.seeds:
        torch.manual_seed(seed)
        with tempfile.TemporaryDirectory() as place:
            net, words = begin(os.path.abspath(choice.trireme), model, seed, place)
        data = SETS[model](words)
        train(net, data, recipe)
        accuracy, loss = judge(net, data)
        print(f"PyTorch, {model}, seed {seed}: accuracy {accuracy:.4f}, loss {loss:.4f}", flush=True)


main()
