# needs: torch numpy safetensors onnxruntime PIL
"""Labels of pixels: a U-Net learns as in PyTorch, with pixels that have no class and with weights of classes; its scores are those of
PyTorch and ONNX Runtime on what we export; metrics and masks are those of NumPy and Pillow."""

import json
import os

import numpy as np
import onnxruntime
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

from by_torch import STEPS, after_steps, judge_steps, load_module
from common import place, trireme, write

BATCH, COUNT, SIDE, CLASSES, NONE = 10, 100, 16, 3, 255
RATE, MOMENTUM = 0.05, 0.9
WEIGHTS = [0.5, 2.0, 1.25]
random = np.random.default_rng(7)
torch.manual_seed(3)

MODEL = """
name: {name}
data:
  train: {{{data}}}
  test: {{{data}}}
input: {{scale: 1/255}}
layers:
  - conv: {{filters: 6, kernel: 3, padding: same, activation: tanh, name: fine}}
  - max_pool: 2
  - conv: {{filters: 8, kernel: 3, padding: same, activation: tanh, name: coarse}}
  - conv_transpose: {{filters: 6, kernel: 2, stride: 2, name: up}}
  - concat: [fine]
  - conv: {{filters: 6, kernel: 3, padding: same, activation: tanh, name: both}}
  - conv: {{filters: 3, kernel: 1, name: scores}}
loss: {{per: pixel, class_weights: {weights}}}
optimizer: {{rule: momentum, rate: {rate}, momentum: {momentum}}}
train: {{batch: {batch}, steps: {steps}, microbatches: 1, shuffle: false, log_every: 0}}
"""
ARRAYS = f"npy: {{features: pixels.npy, labels: classes.npy, ignore: {NONE}}}"


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine = nn.Conv2d(1, 6, 3, padding=1)
        self.coarse = nn.Conv2d(6, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 6, 2, 2, bias=False)
        self.both = nn.Conv2d(12, 6, 3, padding=1)
        self.scores = nn.Conv2d(6, CLASSES, 1)

    def forward(self, x):
        fine = torch.tanh(self.fine(x))
        coarse = torch.tanh(self.coarse(F.max_pool2d(fine, 2)))
        return self.scores(torch.tanh(self.both(torch.cat([self.up(coarse), fine], 1))))


def pictures():
    """A disk and a square on noise; pixels at the edge of the disk have no class, and all of one picture."""
    pixels = random.normal(60, 20, (COUNT, SIDE, SIDE))
    classes = np.zeros((COUNT, SIDE, SIDE), np.int64)
    down, right = np.mgrid[:SIDE, :SIDE]
    for i in range(COUNT):
        (y, x), (top, left) = random.integers(3, SIDE - 3, 2), random.integers(0, SIDE - 4, 2)
        away = np.hypot(down - y, right - x)
        classes[i][(away > 3) & (away <= 4)] = NONE
        classes[i][away <= 3] = 1
        classes[i][top : top + 4, left : left + 4] = 2
    pixels += 80 * (classes == 1) + 120 * (classes == 2)
    classes[17] = NONE
    return pixels.clip(0, 255).astype(np.uint8), classes


def steps(weights):
    name = "weighed" if weights else "plain"
    text = MODEL.format(name=name, data=ARRAYS, weights=weights, rate=RATE, momentum=MOMENTUM, batch=BATCH, steps=STEPS)
    first = UNet().state_dict()
    x = torch.tensor(PIXELS)[:, None].double() * float(np.float32(1 / 255))
    y = torch.tensor(CLASS)

    def by_torch(kind):
        weight = torch.tensor(weights, dtype=kind) if weights else None

        def loss_of(net, step):
            rows = slice(step * BATCH % COUNT, step * BATCH % COUNT + BATCH)
            each = F.cross_entropy(net(x[rows].to(kind)), y[rows], weight=weight, ignore_index=NONE, reduction="none")
            labelled = (y[rows] != NONE).sum((1, 2))
            return (each.sum((1, 2)) / labelled.clamp(min=1)).mean()

        return after_steps(UNet(), first, kind, lambda net: torch.optim.SGD(net.parameters(), RATE, MOMENTUM), loss_of)

    judge_steps(name, write(f"{name}.yaml", text), first, by_torch)


def exports():
    """The scores of a picture that `predict` turns into probabilities."""
    trireme("export", "plain", "--onnx", "plain.onnx", "--torch", "plain.py")
    trireme("predict", "plain", "--set-name", "test", "--output", "each.csv", "--index", "0-3")
    table = np.genfromtxt(place("each.csv"), delimiter=",", skip_header=1)
    ours = table[:, -CLASSES:].reshape(4, SIDE, SIDE, CLASSES)
    x = PIXELS[:4, None].astype(np.float32)
    session = onnxruntime.InferenceSession(place("plain.onnx"))
    logits, probabilities = session.run(["logits", "probabilities"], {session.get_inputs()[0].name: x})
    net = load_module(place("plain.py")).eval()
    net.load_state_dict(load_file(place("plain-end.safetensors")))
    with torch.no_grad():
        scores = net(torch.tensor(x) * float(np.float32(1 / 255)))  # modules take scaled numbers, graphs of ONNX the pixels
        theirs = net.probabilities(scores).numpy()
    assert scores.shape == (4, CLASSES, SIDE, SIDE) and logits.shape == scores.shape
    for found in (probabilities, theirs, torch.softmax(torch.tensor(logits), 1).numpy()):
        assert np.abs(found.transpose(0, 2, 3, 1) - ours).max() < 1e-5
    return ours


def metrics(ours):
    trireme("predict", "plain", "--set-name", "test", "--output", "answers.npy", "--masks", "answers")
    answers = np.load(place("answers.npy"))
    assert answers.shape == (COUNT, SIDE, SIDE) and (answers[:4] == ours.argmax(3)).all()
    for i in (0, 17, COUNT - 1):
        assert (np.array(Image.open(place(f"answers/{i:06}.png"))) == answers[i]).all()
    found = json.loads(trireme("eval", "plain", "--json", "--confusion"))
    known = CLASS != NONE
    table = np.zeros((CLASSES, CLASSES), int)
    np.add.at(table, (CLASS[known], answers[known]), 1)
    iou = np.diag(table) / (table.sum(0) + table.sum(1) - np.diag(table))
    assert found["confusion"] == table.tolist()
    assert np.allclose(found["outputs"]["iou"], iou, rtol=1e-12) and found["outputs"]["support"] == table.sum(1).tolist()
    assert np.isclose(found["metrics"]["mean_iou"], iou.mean(), rtol=1e-12)
    assert np.isclose(found["metrics"]["pixel_accuracy"], np.trace(table) / known.sum(), rtol=1e-12)
    each = [(answers[i] == CLASS[i])[known[i]].mean() for i in range(COUNT) if known[i].any()]
    assert np.isclose(found["accuracy"], np.mean(each), rtol=1e-6)


def numbers():
    """Images of 16 bits, scaled and shifted, and cropped in another run: PyTorch's steps, and the scores of both exports. Files of the
    same values, which Pillow wrote, give the hash of the array."""
    deep = (PIXELS.astype(np.uint16) * 257 + random.integers(0, 257, PIXELS.shape)).clip(0, 65535).astype(np.uint16)
    np.save(place("deep.npy"), deep[..., None])
    arrays = ARRAYS.replace("pixels", "deep")
    scale, shift = np.float32(1 / 65535), np.float32(-0.25)

    def model(name, data, entrance, steps):
        text = MODEL.format(name=name, data=data, weights="[]", rate=RATE, momentum=MOMENTUM, batch=BATCH, steps=steps)
        return write(f"{name}.yaml", text.replace("{scale: 1/255}", entrance))

    first = UNet().state_dict()
    x = torch.tensor(deep.astype(np.float64))[:, None] * float(scale) + float(shift)
    y = torch.tensor(CLASS)

    def by_torch(kind):
        def loss_of(net, step):
            rows = slice(step * BATCH % COUNT, step * BATCH % COUNT + BATCH)
            each = F.cross_entropy(net(x[rows].to(kind)), y[rows], ignore_index=NONE, reduction="none")
            return (each.sum((1, 2)) / (y[rows] != NONE).sum((1, 2)).clamp(min=1)).mean()

        return after_steps(UNet(), first, kind, lambda net: torch.optim.SGD(net.parameters(), RATE, MOMENTUM), loss_of)

    judge_steps("deep", model("deep", arrays, "{scale: 1/65535, shift: -0.25}", STEPS), first, by_torch)
    trireme("train", model("cut", arrays, "{scale: 1/65535, shift: -0.25, crop: 12, pad: 2, rotate: 10}", 5), "--out", "cut")
    trireme("export", "cut", "--onnx", "cut.onnx", "--torch", "cut.py", "--safetensors", "cut.safetensors", "--layout", "torch")
    trireme("predict", "cut", "--set-name", "test", "--output", "cut.csv", "--index", "0-3")
    ours = np.genfromtxt(place("cut.csv"), delimiter=",", skip_header=1)[:, -CLASSES:].reshape(4, 12, 12, CLASSES)
    rows = deep[:4].reshape(4, -1).astype(np.float32)
    session = onnxruntime.InferenceSession(place("cut.onnx"))
    logits = session.run(["logits"], {session.get_inputs()[0].name: rows})[0]
    net = load_module(place("cut.py")).eval()
    net.load_state_dict(load_file(place("cut.safetensors")))
    with torch.no_grad():
        theirs = net.probabilities(net(net.prepare(torch.tensor(rows)))).numpy()
    for found in (theirs, torch.softmax(torch.tensor(logits), 1).numpy()):
        assert np.abs(found.transpose(0, 2, 3, 1) - ours).max() < 1e-5
    os.makedirs(place("deep-pictures"), exist_ok=True)
    os.makedirs(place("deep-masks"), exist_ok=True)
    for i in range(COUNT):
        Image.fromarray(deep[i]).save(place(f"deep-pictures/{i:03}.png"))
        Image.fromarray(CLASS[i].astype(np.uint8)).save(place(f"deep-masks/{i:03}.png"))
    files = f"folder: {{path: deep-pictures, masks: deep-masks, classes: {CLASSES}, ignore: {NONE}}}"
    entrance = "{scale: 1/65535, flip: true, pad: 2, rotate: 10, brightness: 0.2}"
    hashes = {hash_of(trireme("train", model(name, data, entrance, 5))) for name, data in (("deep-array", arrays), ("deep-files", files))}
    assert len(hashes) == 1, hashes


def hash_of(lines):
    return next(line for line in lines.splitlines() if line.startswith("hash"))


def folders():
    """Masks as indices of a palette and as grey give the network that arrays give, on any device and by any strategy."""
    for kind in ("pictures", "masks"):
        os.makedirs(place(kind), exist_ok=True)
    for i in range(COUNT):
        Image.fromarray(PIXELS[i]).save(place(f"pictures/{i:03}.png"))
        mask = Image.fromarray(CLASS[i].astype(np.uint8))
        if i % 2:
            mask.putpalette([9, 9, 9] * 256)
        mask.save(place(f"masks/{i:03}.png"))
    data = f"folder: {{path: pictures, masks: masks, classes: {CLASSES}, ignore: {NONE}}}"
    hashes = set()
    more = ["--set", "train.microbatches=2", "--set", "input.pad=2", "--set", "input.flip=true", "--overwrite"]
    for name, source in (("of-arrays", ARRAYS), ("of-files", data), ("of-memory", data.replace("path", "memory: true, path"))):
        write(f"{name}.yaml", MODEL.format(name=name, data=source, weights="[]", rate=RATE, momentum=MOMENTUM, batch=BATCH, steps=5))
        hashes.add(hash_of(trireme("train", f"{name}.yaml", *more)))
    hashes.add(hash_of(trireme("train", "of-files.yaml", "--device", "ref", *more)))
    for strategy in ("allreduce", "pipeline"):
        hashes.add(hash_of(trireme("launch", "-n", "2", "train", "of-arrays.yaml", "--strategy", strategy, *more)))
    assert len(hashes) == 1, hashes


PIXELS, CLASS = pictures()
np.save(place("pixels.npy"), PIXELS)
np.save(place("classes.npy"), CLASS)
steps([])
steps(WEIGHTS)
metrics(exports())
folders()
numbers()
