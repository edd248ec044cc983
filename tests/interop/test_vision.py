# needs: torch torchvision numpy safetensors
"""MobileNetV2 and EfficientNet-B0 as model files: with the weights of torchvision's networks they give the same logits, as near to
those in float64 as PyTorch in float32 comes; and what we export goes back into torchvision's networks."""

import numpy as np
import torch
import torchvision
from safetensors.torch import load_file, save_file
from torch import nn

from by_torch import load_module
from common import log, place, predict, trireme, write

SIZE, CLASSES, COUNT = 64, 10, 12
torch.manual_seed(5)

HEAD = """
name: {name}
data:
  train: {{npy: {{features: pixels.npy, labels: label.npy}}}}
  test: {{npy: {{features: pixels.npy, labels: label.npy}}}}
input: {{scale: 1/255}}
loss: softmax_cross_entropy
optimizer: {{rule: sgd, rate: 0.01}}
train: {{batch: 4, steps: 1}}
layers:
"""


def conv(filters, kernel, stride=1, groups=1):
    pad = "" if kernel == 1 else f", pad: {kernel // 2}"
    steps = "" if stride == 1 else f", stride: {stride}"
    own = "" if groups == 1 else f", groups: {groups}"
    return [f"- conv: {{filters: {filters}, kernel: {kernel}{steps}{pad}{own}, use_bias: false}}", "- batch_norm"]


def called(lines, name):
    """The last layer gets a name."""
    last = lines[-1]
    return [*lines[:-1], last.replace(": {", f": {{name: {name}, ") if ": {" in last else f"{last}: {{name: {name}}}"]


def mobilenet_v2():
    """Sandler et al. 2018."""
    lines = [*conv(32, 3, 2), *called(["- relu6"], "block0")]
    channels, number = 32, 0
    for factor, filters, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for repeat in range(repeats):
            step = stride if repeat == 0 else 1
            wide = channels * factor
            if factor > 1:
                lines += [*conv(wide, 1), "- relu6"]
            lines += [*conv(wide, 3, step, wide), "- relu6", *conv(filters, 1)]
            if step == 1 and channels == filters:
                lines.append(f"- add: {{with: block{number}}}")
            number, channels = number + 1, filters
            lines = called(lines, f"block{number}")
    return [*lines, *conv(1280, 1), "- relu6", "- global_average_pool", "- dropout: 0.2", f"- dense: {CLASSES}"]


def efficientnet_b0():
    """Tan, Le 2019."""
    lines = [*conv(32, 3, 2), *called(["- silu"], "block0")]
    channels, number = 32, 0
    stages = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))
    blocks = sum(stage[-1] for stage in stages)
    for factor, kernel, stride, filters, repeats in stages:
        for repeat in range(repeats):
            step = stride if repeat == 0 else 1
            wide = channels * factor
            if factor > 1:
                lines += [*conv(wide, 1), "- silu"]
            lines += [*conv(wide, kernel, step, wide), f"- silu: {{name: wide{number}}}"]
            lines += ["- global_average_pool", f"- dense: {channels // 4}", "- silu", f"- dense: {{units: {wide}, activation: sigmoid}}"]
            lines += [f"- multiply: wide{number}", *conv(filters, 1)]
            if step == 1 and channels == filters:
                lines += [f"- stochastic_depth: {0.2 * number / blocks}", f"- add: {{with: block{number}}}"]
            number, channels = number + 1, filters
            lines = called(lines, f"block{number}")
    return [*lines, *conv(1280, 1), "- silu", "- global_average_pool", "- dropout: 0.2", f"- dense: {CLASSES}"]


def our_names(net, lines):
    """Pairs of torchvision's names and ours, by the order of modules; a convolution with a bias is a dense layer of ours."""
    named = {"conv": [], "batch_norm": [], "dense": []}
    counts = dict.fromkeys(named, 0)
    for line in lines:
        kind = line[2:].split(":")[0]
        if kind in named:
            counts[kind] += 1
            own = line.split("name: ")[1].split(",")[0].rstrip("}") if "name: " in line else f"{kind}{counts[kind]}"
            named[kind].append(own)
    order = {kind: iter(names) for kind, names in named.items()}
    pairs = {}
    for path, module in net.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            pairs[path] = next(order["batch_norm"])
        elif isinstance(module, nn.Linear) or (isinstance(module, nn.Conv2d) and module.bias is not None):
            pairs[path] = next(order["dense"])
        elif isinstance(module, nn.Conv2d):
            pairs[path] = next(order["conv"])
    assert all(next(names, None) is None for names in order.values()), "layers that torchvision's network lacks"
    return pairs


def with_numbers(net):
    """Random ones, and the statistics of the images, such that deep layers tell these apart."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
    for norm in norms:
        norm.momentum = 1.0
        nn.init.uniform_(norm.weight, 0.8, 1.2)
        nn.init.uniform_(norm.bias, -0.1, 0.1)
    with torch.no_grad():
        net.train()(torch.tensor(PIXELS).permute(0, 3, 1, 2) / 255)
    return net


def judge(name, make, lines):
    path = write(f"{name}.yaml", HEAD.format(name=name) + "\n".join(f"  {line}" for line in lines) + "\n")
    net = with_numbers(make(weights=None, num_classes=CLASSES)).eval()
    pairs = our_names(net, lines)
    first = {}
    for key, value in net.state_dict().items():
        module, member = key.rsplit(".", 1)
        flat = value.dim() == 4 and pairs[module].startswith("dense")
        first[f"{pairs[module]}.{member}"] = (value.flatten(1) if flat else value).clone().contiguous()
    save_file(first, place(f"{name}.safetensors"))
    trireme("import", f"{name}.safetensors", "--layout", "torch", "--model", path, "--out", name)

    x = torch.tensor(PIXELS).permute(0, 3, 1, 2).double() * float(np.float32(1 / 255))
    with torch.no_grad():
        theirs = torch.log_softmax(net(x.float()).double(), 1)
        exact = torch.log_softmax(net.double()(x), 1)
    net.float()
    ours = torch.tensor(log(predict(name, COUNT)), dtype=torch.float64)
    mine, other = ((value - exact).square().mean().sqrt().item() for value in (ours, theirs))
    spread = (exact - exact.mean(0)).abs().max().item()
    print(f"{name}: logits {mine:.1e} from float64, PyTorch's float32 {other:.1e}; images differ by {spread:.2g}")
    assert spread > 1e-2, f"{name}: all images look alike"
    assert mine <= 4 * other, f"{name}: farther from float64 than float32's error"

    trireme("export", name, "--layout", "torch", "--safetensors", f"{name}-back.safetensors", "--torch", f"{name}.py")
    back = load_file(place(f"{name}-back.safetensors"))
    for key, value in net.state_dict().items():
        module, member = key.rsplit(".", 1)
        if member != "num_batches_tracked":
            assert torch.equal(back[f"{pairs[module]}.{member}"].reshape(value.shape), value), f"{name}: {key} came back different"
    exported = load_module(place(f"{name}.py")).eval()
    exported.load_state_dict(back)
    with torch.no_grad():
        again = torch.log_softmax(exported(x.float()).double(), 1)
    assert (again - theirs).abs().max() < 1e-4, f"{name}: the exported module gives other logits"
    print(f"{name}: {len(pairs)} modules imported, exported and equal")


PIXELS = np.random.default_rng(3).integers(0, 256, (COUNT, 4, 4, 3)).astype(np.uint8).repeat(SIZE // 4, 1).repeat(SIZE // 4, 2)
np.save(place("pixels.npy"), PIXELS)
np.save(place("label.npy"), np.arange(COUNT) % CLASSES)
judge("mobilenet-v2", torchvision.models.mobilenet_v2, mobilenet_v2())
judge("efficientnet-b0", torchvision.models.efficientnet_b0, efficientnet_b0())
