# needs: torch numpy safetensors
"""Fifty steps of every update rule, schedule and pace of layers that PyTorch has, too, against PyTorch in float64.

The batch is the whole set, so that no order of examples matters. Ours may differ from PyTorch in float64 by twice as much as
PyTorch in float32 does."""

import json

import numpy as np
import torch

from by_torch import STEPS, after_steps, judge_steps
from common import trireme, write

COUNT = 64

JOB = """
name: {name}
data: {{train: {{csv: {{path: values.csv, label: value}}}}}}
layers:
  - dense: {{units: 12, activation: tanh, name: one{one}}}
  - dense: {{units: 8, activation: tanh, name: two{two}}}
  - dense: {{units: 1, name: three}}
loss: mean_squared_error
optimizer: {optimizer}
train: {{batch: 64, microbatches: 1, steps: 50, log_every: 0}}
"""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = torch.nn.Linear(3, 12), torch.nn.Linear(12, 8), torch.nn.Linear(8, 1)

    def forward(self, x):
        return self.three(torch.tanh(self.two(torch.tanh(self.one(x)))))


def values():
    numbers = np.random.default_rng(5).uniform(-1, 1, (COUNT, 4)).astype(np.float32)
    numbers[:, 3] = np.sin(2 * numbers[:, 0]) + numbers[:, 1] * numbers[:, 2]
    write("values.csv", "".join(",".join(map(repr, row)) + "\n" for row in numbers.tolist()))
    return torch.tensor(numbers)


NUMBERS = values()
torch.manual_seed(3)
INITIAL = Net().state_dict()


def same(name, ours, optimizer, schedule=None, frozen=(), one="", two=""):
    def by_torch(kind):
        net, numbers = Net(), NUMBERS.to(kind)
        for layer in frozen:
            getattr(net, layer).requires_grad_(False)
        loss = lambda net, _: torch.nn.functional.mse_loss(net(numbers[:, :3]), numbers[:, 3:])
        return after_steps(net, INITIAL, kind, optimizer, loss, schedule)

    path = write(f"{name}.yaml", JOB.format(name=name, optimizer=ours, one=one, two=two))
    tensors = judge_steps(name, path, INITIAL, by_torch)
    for layer in frozen:
        for part in ("weight", "bias"):
            assert torch.equal(tensors[f"{layer}.{part}"], INITIAL[f"{layer}.{part}"]), f"{name}: {layer} moved"


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen and others, "Symbolic Discovery of Optimization Algorithms", 2023."""

    def __init__(self, parameters):
        super().__init__(parameters, {"rate": 0.001, "decay": 0.1, "beta1": 0.9, "beta2": 0.99})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                m = self.state[w].setdefault("m", torch.zeros_like(w))
                w -= group["rate"] * ((group["beta1"] * m + (1 - group["beta1"]) * w.grad).sign() + group["decay"] * w)
                m.copy_(group["beta2"] * m + (1 - group["beta2"]) * w.grad)


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You and others, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020. Tensors
    with so many sizes decay and have a ratio."""

    def __init__(self, net, rate, decay, sizes, beta1=0.9, beta2=0.999, epsilon=1e-6):
        super().__init__(net.parameters(), {"lr": rate})
        self.decay, self.sizes, self.beta1, self.beta2, self.epsilon, self.steps = decay, sizes, beta1, beta2, epsilon, 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for w in self.param_groups[0]["params"]:
            state = self.state[w]
            m = self.beta1 * state.get("m", 0) + (1 - self.beta1) * w.grad
            v = self.beta2 * state.get("v", 0) + (1 - self.beta2) * w.grad**2
            state["m"], state["v"] = m, v
            u = m / (1 - self.beta1**self.steps) / ((v / (1 - self.beta2**self.steps)).sqrt() + self.epsilon)
            ratio = 1
            if w.dim() in self.sizes:
                u = u + self.decay * w
                if w.norm() > 0 and u.norm() > 0:
                    ratio = w.norm() / u.norm()
            w -= self.param_groups[0]["lr"] * ratio * u


class Muon(torch.optim.Optimizer):
    """Jordan and others, "Muon: An optimizer for hidden layers in neural networks", 2024, with AdamW for biases and the last
    layer. PyTorch's own orthogonalizes in bfloat16."""

    def __init__(self, net, rate, adam_rate, momentum=0.95, nesterov=True, betas=(0.9, 0.95), epsilon=1e-10, decay=0.01,
                 all_decay=False):
        hidden = [net.one.weight, net.two.weight]
        super().__init__(hidden, {"lr": rate})
        self.momentum, self.nesterov, self.decay = momentum, nesterov, decay
        biases = [net.one.bias, net.two.bias, net.three.bias]
        self.rest = torch.optim.AdamW([{"params": [net.three.weight]},
                                       {"params": biases, "weight_decay": decay if all_decay else 0}],
                                      lr=adam_rate, betas=betas, eps=epsilon, weight_decay=decay)

    @staticmethod
    def orthogonal(x):
        x = x / x.norm()
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x

    @torch.no_grad()
    def step(self):
        self.rest.step()
        rate = self.param_groups[0]["lr"]
        for w in self.param_groups[0]["params"]:
            m = self.momentum * self.state[w].get("m", 0) + w.grad
            self.state[w]["m"] = m
            u = self.momentum * m + w.grad if self.nesterov else m
            outputs, inputs = w.shape
            w *= 1 - rate * self.decay
            w -= rate * max(1, outputs / inputs)**0.5 * self.orthogonal(u)

    def zero_grad(self, set_to_none=True):
        super().zero_grad(set_to_none)
        self.rest.zero_grad(set_to_none)


class Sam(torch.optim.Optimizer):
    """Foret and others, "Sharpness-Aware Minimization for Efficiently Improving Generalization", 2021, around another rule."""

    def __init__(self, net, rho, rule):
        super().__init__(net.parameters(), {"lr": 0})
        self.net, self.rho, self.rule = net, rho, rule

    def step(self):
        parameters = [w for w in self.param_groups[0]["params"] if w.requires_grad]
        norm = torch.cat([w.grad.flatten() for w in parameters]).norm()
        kept = [w.detach().clone() for w in parameters]
        with torch.no_grad():
            for w in parameters:
                w += self.rho * w.grad / norm
        self.net.zero_grad()
        numbers = NUMBERS.to(parameters[0].dtype)
        torch.nn.functional.mse_loss(self.net(numbers[:, :3]), numbers[:, 3:]).backward()
        with torch.no_grad():
            for w, before in zip(parameters, kept):
                w.copy_(before)
        self.rule.step()


OPTIM = torch.optim
same("rmsprop", "{rule: rmsprop, rate: 0.003}", lambda net: OPTIM.RMSprop(net.parameters(), lr=0.003))
same("rmsprop-momentum", "{rule: rmsprop, rate: 0.001, momentum: 0.9, beta2: 0.95, epsilon: 1e-6}",
     lambda net: OPTIM.RMSprop(net.parameters(), lr=0.001, momentum=0.9, alpha=0.95, eps=1e-6))
same("rmsprop-decay", "{rule: rmsprop, rate: 0.003, l2: 0.01, l2_biases: true}",
     lambda net: OPTIM.RMSprop(net.parameters(), lr=0.003, weight_decay=0.01))
same("amsgrad", "{rule: adam, rate: 0.01, amsgrad: true, beta2: 0.9}",
     lambda net: OPTIM.Adam(net.parameters(), lr=0.01, betas=(0.9, 0.9), amsgrad=True))
same("amsgrad-decay", "{rule: adamw, rate: 0.01, amsgrad: true, weight_decay: 0.05, l2_biases: true}",
     lambda net: OPTIM.AdamW(net.parameters(), lr=0.01, weight_decay=0.05, amsgrad=True))
same("lion", "{rule: lion, rate: 0.001, weight_decay: 0.1, l2_biases: true}", lambda net: Lion(net.parameters()))
same("lamb", "{rule: lamb, rate: 0.01, weight_decay: 0.05}", lambda net: Lamb(net, 0.01, 0.05, (2,)))
same("lamb-biases", "{rule: lamb, rate: 0.01, weight_decay: 0.05, beta2: 0.9, epsilon: 1e-4, l2_biases: true}",
     lambda net: Lamb(net, 0.01, 0.05, (1, 2), beta2=0.9, epsilon=1e-4))
same("muon", "{rule: muon, rate: 0.02, adam_rate: 0.003}", lambda net: Muon(net, 0.02, 0.003))
same("muon-plain", "{rule: muon, rate: 0.02, momentum: 0.8, nesterov: false, adam_rate: 0.003, beta1: 0.8, beta2: 0.99, "
     "epsilon: 1e-8, weight_decay: 0.1, l2_biases: true}",
     lambda net: Muon(net, 0.02, 0.003, momentum=0.8, nesterov=False, betas=(0.8, 0.99), epsilon=1e-8, decay=0.1, all_decay=True))
same("sam", "{rule: momentum, rate: 0.05, sam: 0.1}", lambda net: Sam(net, 0.1, OPTIM.SGD(net.parameters(), lr=0.05, momentum=0.9)))
same("sam-decay", "{rule: adamw, rate: 0.01, sam: 0.5, weight_decay: 0.1, l2_biases: true}",
     lambda net: Sam(net, 0.5, OPTIM.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)))
same("adagrad", "{rule: adagrad, rate: 0.05}", lambda net: OPTIM.Adagrad(net.parameters(), lr=0.05))
same("adagrad-decay", "{rule: adagrad, rate: 0.05, l2: 0.01, l2_biases: true, epsilon: 1e-8}",
     lambda net: OPTIM.Adagrad(net.parameters(), lr=0.05, weight_decay=0.01, eps=1e-8))
same("restarts", "{rule: sgd, rate: 0.3, schedule: {kind: cosine_restarts, every: 7, growth: 2, final: 0.1}}",
     lambda net: OPTIM.SGD(net.parameters(), lr=0.3),
     lambda rule: OPTIM.lr_scheduler.CosineAnnealingWarmRestarts(rule, T_0=7, T_mult=2, eta_min=0.03))
same("linear", "{rule: sgd, rate: 0.3, schedule: {kind: linear, final: 0.2}}",
     lambda net: OPTIM.SGD(net.parameters(), lr=0.3),
     lambda rule: OPTIM.lr_scheduler.LinearLR(rule, start_factor=1, end_factor=0.2, total_iters=STEPS))
same("one-cycle", "{rule: sgd, rate: 0.3, schedule: {kind: one_cycle, form: pytorch}}",
     lambda net: OPTIM.SGD(net.parameters(), lr=0.3),
     lambda rule: OPTIM.lr_scheduler.OneCycleLR(rule, max_lr=0.3, total_steps=STEPS, cycle_momentum=False))
same("one-cycle-options",
     "{rule: momentum, rate: 0.1, schedule: {kind: one_cycle, form: pytorch, start: 0.1, rise: 0.5, final: 0.01}}",
     lambda net: OPTIM.SGD(net.parameters(), lr=0.1, momentum=0.9),
     lambda rule: OPTIM.lr_scheduler.OneCycleLR(rule, max_lr=0.1, total_steps=STEPS, cycle_momentum=False, div_factor=10,
                                                pct_start=0.5, final_div_factor=10))
same("frozen", "{rule: adam, rate: 0.01}",
     lambda net: OPTIM.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01), frozen=("one",), one=", frozen: true")
same("paces", "{rule: adamw, rate: 0.01, weight_decay: 0.1, l2_biases: true}",
     lambda net: OPTIM.AdamW([{"params": net.one.parameters(), "lr": 0.002}, {"params": net.two.parameters(), "weight_decay": 0.3},
                              {"params": net.three.parameters()}], lr=0.01, weight_decay=0.1),
     one=", rate_factor: 0.2", two=", decay_factor: 3")


def plateaus():
    """The rates of a plateau schedule against ReduceLROnPlateau, fed with the losses that our evaluations gave."""
    job = JOB.replace("{{train: {{csv", "{{test: {{csv: {{path: values.csv, label: value}}}}, train: {{csv").replace(
        "log_every: 0", "log_every: 1, evaluate_every: 1")
    path = write("plateau.yaml", job.format(
        name="plateau", one="", two="", optimizer="{rule: sgd, rate: 0.9, schedule: {kind: plateau, patience: 2, factor: 0.5, "
        "threshold: 0.02, final: 0.01}}"))
    said = trireme("train", path, "--log", "json", "--out", "plateau")
    rule = OPTIM.SGD([torch.zeros(1, requires_grad=True)], lr=0.9)
    schedule = OPTIM.lr_scheduler.ReduceLROnPlateau(rule, patience=2, factor=0.5, threshold=0.02, min_lr=0.009)
    falls = steps = 0
    for line in said.splitlines():
        event = json.loads(line)
        rate = rule.param_groups[0]["lr"]
        if event["event"] == "step":
            assert abs(event["rate"] - rate) < 1e-12, (event, rate)
            steps += 1
        if event["event"] == "evaluation" and event["step"] < STEPS:
            schedule.step(event["loss"])
            falls += rule.param_groups[0]["lr"] < rate
    assert steps == STEPS and falls >= 3, (steps, falls)
    print(f"plateau: the rate fell {falls} times, always when PyTorch's did")


plateaus()
