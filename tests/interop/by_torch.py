"""What the scripts share that judge by PyTorch: exported modules, and steps of training beside those of PyTorch in float64."""

import importlib.util

import torch
from safetensors.torch import load_file, save_file

from common import place, trireme

STEPS = 50


def load_module(path):
    """The network of a file that `export --torch` wrote."""
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Net()


def distance(tensors, exact):
    """The root of the mean square over all numbers: the largest of them alone is a matter of luck."""
    squares = torch.cat([(tensors[key].double() - exact[key]).flatten() ** 2 for key in exact])
    return squares.mean().sqrt().item()


def after_steps(net, first, kind, optimizer, loss, schedule=None):
    """The tensors of a network that begins with `first` and is trained in a kind of numbers: `optimizer(net)`, of
    whose rates `schedule(optimizer)` may decide, follows the gradients of `loss(net, step)`."""
    net.load_state_dict(first)
    net.to(kind).train()
    rule = optimizer(net)
    follows = schedule(rule) if schedule else None
    for step in range(STEPS):
        rule.zero_grad()
        loss(net, step).backward()
        rule.step()
        if follows:
            follows.step()
    return {key: value.detach().double() for key, value in net.state_dict().items()}


def judge_steps(name, path, first, by_torch, layout="torch"):
    """The job of the model file `path` trains `first`, tensors in a layout of ours. It must end at most twice as far from
    `by_torch(torch.float64)` as `by_torch(torch.float32)` does. Returns the tensors."""
    save_file(first, place(f"{name}-begin.safetensors"))
    trireme("import", f"{name}-begin.safetensors", "--layout", layout, "--model", path, "--out", name)
    trireme("train", "--resume", name, "--quiet")
    trireme("export", name, "--layout", layout, "--safetensors", f"{name}-end.safetensors")
    ours = load_file(place(f"{name}-end.safetensors"))
    exact = by_torch(torch.float64)
    mine, theirs = distance(ours, exact), distance(by_torch(torch.float32), exact)
    moved = max((first[key].double() - value).abs().max().item() for key, value in exact.items())
    print(f"{name}: {STEPS} steps end {mine:.1e} from float64, PyTorch's float32 {theirs:.1e}; moved by {moved:.2g}")
    assert set(ours) == set(exact), f"{name}: {sorted(ours)} of ours, {sorted(exact)} of PyTorch"
    assert moved > 1e-2, f"{name}: nothing was learned"
    assert mine <= 2 * theirs, f"{name}: farther from float64 than twice PyTorch's float32"
    return ours
