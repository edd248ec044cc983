# needs: torch torchvision numpy safetensors
"""MobileNetV2, EfficientNet-B0 and ConvNeXt-T as model files: with the weights of torchvision's networks they give the same
logits, as near to those in float64 as PyTorch in float32 comes; and what we export goes back into torchvision's networks."""

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


def convnext_tiny():
    """Liu et al. 2022. The gain of each channel at the end of a branch is a convolution of each channel by itself."""
    norm = "- layer_norm: {per: pixel, epsilon: 1e-6}"
    lines = ["- conv: {filters: 96, kernel: 4, stride: 4}", norm.replace("{", "{name: block0, ")]
    widths, repeats, number = (96, 192, 384, 768), (3, 3, 9, 3), 0
    for stage, (width, count) in enumerate(zip(widths, repeats)):
        if stage > 0:
            lines += [norm, f"- conv: {{name: block{number + 1}, filters: {width}, kernel: 2, stride: 2}}"]
            number += 1
        for _ in range(count):
            lines += [f"- conv: {{filters: {width}, kernel: 7, pad: 3, groups: {width}}}", norm]
            lines += [f"- conv: {{filters: {4 * width}, kernel: 1}}", "- gelu", f"- conv: {{filters: {width}, kernel: 1}}"]
            lines += [f"- conv: {{filters: {width}, kernel: 1, groups: {width}, use_bias: false}}", "- stochastic_depth: 0.05"]
            lines += [f"- add: {{name: block{number + 1}, with: block{number}}}"]
            number += 1
    return [*lines, "- global_average_pool", "- layer_norm: {epsilon: 1e-6}", f"- dense: {CLASSES}"]


def our_keys(net, lines, biased):
    """Pairs of torchvision's tensors and ours, by the order of modules. A convolution with a bias is a layer of the kind `biased`; what
    torchvision computes of each pixel by itself is a convolution of ours."""
    named = {"conv": [], "batch_norm": [], "layer_norm": [], "dense": []}
    counts = dict.fromkeys(named, 0)
    for line in lines:
        kind = line[2:].split(":")[0]
        if kind in named:
            counts[kind] += 1
            own = line.split("name: ")[1].split(",")[0].rstrip("}") if "name: " in line else f"{kind}{counts[kind]}"
            named[kind].append(own)
    order = {kind: iter(names) for kind, names in named.items()}
    keys = {}
    for path, module in net.named_modules():
        inside = ".block." in path
        if isinstance(module, nn.BatchNorm2d):
            own = next(order["batch_norm"])
        elif isinstance(module, nn.LayerNorm):
            own = next(order["layer_norm"])
        elif isinstance(module, nn.Linear):
            own = next(order["conv" if inside else "dense"])
        elif isinstance(module, nn.Conv2d):
            own = next(order[biased if module.bias is not None else "conv"])
        else:
            continue
        for member in module.state_dict():
            keys[f"{path}.{member}"] = f"{own}.{member}"
        if inside and path.endswith(".5") and isinstance(module, nn.Linear):
            keys[path.replace(".block.5", ".layer_scale")] = f"{next(order['conv'])}.weight"
    assert all(next(names, None) is None for names in order.values()), "layers that torchvision's network lacks"
    assert set(keys) == set(net.state_dict()), "tensors that our network lacks"
    return keys


def as_ours(key, own, value):
    """A tensor of torchvision's in the shape that our layer has."""
    if key.endswith("layer_scale"):
        return value.reshape(-1, 1, 1, 1)
    if own.startswith("dense") and value.dim() == 4:
        return value.flatten(1)
    return value[:, :, None, None] if own.startswith("conv") and value.dim() == 2 else value


def with_numbers(net):
    """Random ones, and the statistics of the images, such that deep layers tell these apart."""
    norms = [module for module in net.modules() if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm))]
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
    for norm in norms:
        norm.momentum = 1.0
        nn.init.uniform_(norm.weight, 0.8, 1.2)
        nn.init.uniform_(norm.bias, -0.1, 0.1)
    for key, value in net.named_parameters():
        if key.endswith("layer_scale"):
            nn.init.uniform_(value, 0.2, 0.4)
    with torch.no_grad():
        net.train()(torch.tensor(PIXELS).permute(0, 3, 1, 2) / 255)
    return net


def judge(name, make, lines, biased="dense"):
    path = write(f"{name}.yaml", HEAD.format(name=name) + "\n".join(f"  {line}" for line in lines) + "\n")
    net = with_numbers(make(weights=None, num_classes=CLASSES)).eval()
    keys = our_keys(net, lines, biased)
    first = {keys[key]: as_ours(key, keys[key], value).clone().contiguous() for key, value in net.state_dict().items()}
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
        if not key.endswith("num_batches_tracked"):
            assert torch.equal(back[keys[key]].reshape(value.shape), value), f"{name}: {key} came back different"
    exported = load_module(place(f"{name}.py")).eval()
    exported.load_state_dict(back)
    with torch.no_grad():
        again = torch.log_softmax(exported(x.float()).double(), 1)
    assert (again - theirs).abs().max() < 1e-4, f"{name}: the exported module gives other logits"
    print(f"{name}: {len(keys)} tensors imported, exported and equal")


PIXELS = np.random.default_rng(3).integers(0, 256, (COUNT, 4, 4, 3)).astype(np.uint8).repeat(SIZE // 4, 1).repeat(SIZE // 4, 2)
np.save(place("pixels.npy"), PIXELS)
np.save(place("label.npy"), np.arange(COUNT) % CLASSES)
judge("mobilenet-v2", torchvision.models.mobilenet_v2, mobilenet_v2())
judge("efficientnet-b0", torchvision.models.efficientnet_b0, efficientnet_b0())
judge("convnext-tiny", torchvision.models.convnext_tiny, convnext_tiny(), "conv")
