# needs: torch numpy safetensors
"""Fifty steps under a teacher against PyTorch in float64: the loss of Hinton and others, "Distilling the Knowledge in a Neural
Network", 2015. Ours may differ from PyTorch in float64 by twice as much as PyTorch in float32 does."""

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy, log_softmax, softmax

from by_torch import after_steps, judge_steps
from common import place, trireme, write

COUNT, CLASSES = 64, 5

JOB = """
name: {name}
data: {{train: {{csv: {{path: points.csv, classes: 5}}}}}}
layers:
{layers}
{more}
optimizer: {{rule: adam, rate: {rate}}}
train: {{batch: 64, microbatches: 1, steps: {steps}, log_every: 0, checkpoint_every: {steps}}}
"""
TEACHER = """  - dense: {units: 24, name: wide}
  - batch_norm: {name: norm}
  - tanh
  - dropout: 0.3
  - dense: {units: 5, name: out}"""
STUDENT = """  - dense: {units: 7, activation: tanh, name: one}
  - dense: {units: 5, name: two}"""


class Teacher(torch.nn.Module):
    """As in evaluations: running statistics, and nothing dropped."""

    def __init__(self):
        super().__init__()
        self.wide, self.norm, self.out = torch.nn.Linear(3, 24), torch.nn.BatchNorm1d(24), torch.nn.Linear(24, CLASSES)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.wide(x))))


class Student(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(3, 7), torch.nn.Linear(7, CLASSES)

    def forward(self, x):
        return self.two(torch.tanh(self.one(x)))


def points():
    numbers = np.random.default_rng(6).uniform(-1, 1, (COUNT, 3)).astype(np.float32)
    labels = np.floor((np.sin(3 * numbers[:, 0]) + numbers[:, 1] * numbers[:, 2] + 2) / 4 * CLASSES).astype(int)
    write("points.csv", "".join(",".join(map(repr, row)) + f",{label}\n" for row, label in zip(numbers.tolist(), labels)))
    return torch.tensor(numbers), torch.tensor(labels)


NUMBERS, LABELS = points()
trireme("train", write("teacher.yaml", JOB.format(name="teacher", layers=TEACHER, more="", rate=0.02, steps=60)), "--out", "teacher",
        "--quiet")
trireme("export", "teacher", "--layout", "torch", "--safetensors", "teacher.safetensors")
TENSORS = load_file(place("teacher.safetensors"))
torch.manual_seed(4)
INITIAL = Student().state_dict()


def same(name, temperature, alpha, more="", weights=None):
    def by_torch(kind):
        teacher = Teacher()
        teacher.load_state_dict(TENSORS, strict=False)
        teacher.to(kind).eval()
        net, numbers = Student(), NUMBERS.to(kind)

        def loss(net, _):
            scores = net(numbers)
            with torch.no_grad():
                wanted = softmax(teacher(numbers) / temperature, 1)
            hard = cross_entropy(scores, LABELS, reduction="none")
            soft = -(wanted * log_softmax(scores / temperature, 1)).sum(1)
            each = (1 - alpha) * hard + alpha * temperature**2 * soft
            if weights:
                each = each * torch.tensor(weights, dtype=kind)[LABELS]
            return each.mean()

        return after_steps(net, INITIAL, kind, lambda net: torch.optim.Adam(net.parameters(), lr=0.01), loss)

    distill = f"distill: {{teacher: {place('teacher')}, temperature: {temperature}, alpha: {alpha}}}\n{more}"
    path = write(f"{name}.yaml", JOB.format(name=name, layers=STUDENT, more=distill, rate=0.01, steps=50))
    judge_steps(name, path, INITIAL, by_torch)


same("hinton", 4, 0.9)
same("cold", 0.5, 0.3)
same("teacher-alone", 2, 1)
same("weighed", 3, 0.5, "loss: {kind: softmax_cross_entropy, class_weights: [1, 2, 0.5, 1, 3]}", [1, 2, 0.5, 1, 3])
