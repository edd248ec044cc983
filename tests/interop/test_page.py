# needs: torch numpy safetensors onnxruntime tensorflow tensorboard
"""docs/how-to/interop.md: its commands and its lines of Python, run as they stand there."""

import os
import re
import shlex
import sys

import numpy as np
import torch

from common import PLACE, SOURCE, close, data, log, mnist, predict, trireme, write
from networks import MNIST_AS_IDX, model

COUNT = 20


def sections():
    """The blocks of code under each heading: {heading: [(language, text), ...]}."""
    with open(os.path.join(SOURCE, "docs", "how-to", "interop.md"), encoding="utf-8") as file:
        page = file.read()
    found = {}
    for part in re.split(r"^#{2,3} ", page, flags=re.M)[1:]:
        heading, _, text = part.partition("\n")
        found[heading] = re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.M | re.S)
    return found


def run(blocks, names):
    """Runs the blocks of a section in their order; the names are those that its Python sees, and gets."""
    for language, text in blocks:
        if language == "console":
            for line in text.splitlines():
                assert line.startswith("$ trireme "), line
                trireme(*shlex.split(line)[2:])
        elif language == "yaml" and text.startswith("# "):
            write(text.split("\n")[0][2:], text)
        elif language == "python":
            exec(compile(text, "docs/how-to/interop.md", "exec"), names)  # pylint: disable=exec-used


def prepare():
    """What the page takes for granted: trained networks, and the data sets."""
    os.chdir(PLACE)
    sys.path.insert(0, PLACE)
    os.symlink(data(""), os.path.join(PLACE, "data"))
    trireme("train", model("mnist-quick"), "--quiet", "--set=train.epochs=0", "--set=train.steps=100", "--tensorboard")
    small = ["--set=train.steps=100", "--set=layers[1].units=64", "--set=optimizer.rate=1e-3"]
    trireme("train", model("mnist-mlp"), "--quiet", *small, *(f"--set={item}" for item in MNIST_AS_IDX))
    trireme("train", model("sst2-lstm"), "--quiet", "--set=train.epochs=0", "--set=train.steps=10")


def judge(what, checkpoint, scores, tolerance=1e-5):
    """Compares scores of the first test digits with what the program predicts."""
    # Below exp(-80) float32 has no precise probabilities.
    ours = [[max(value, -80.0) for value in row] for row in log(predict(checkpoint, COUNT))]
    theirs = torch.log_softmax(torch.as_tensor(scores).double(), 1).clamp(min=-80)
    close(f"the page, {what}", ours, theirs.tolist(), tolerance)


def main():
    page = sections()
    images = np.frombuffer(b"".join(mnist(count=COUNT)[0]), np.uint8).reshape(COUNT, 28, 28).copy()
    labels = np.array(mnist(count=COUNT)[1])
    prepare()

    names = {}
    run(page["PyTorch"], names)
    assert names["scores"].shape == (1, 10)
    with torch.no_grad():
        judge("PyTorch", "runs/mnist-quick", names["net"](names["net"].prepare(torch.tensor(images)[..., None])))

    names = {}
    torch.manual_seed(0)
    back = page["From PyTorch"]
    run(back[:2], names)
    run([("console", back[2][1].splitlines()[0])], names)
    with torch.no_grad():
        judge("back again", "runs/digits", names["net"](torch.tensor(images).float() / 255))
    run([("console", "\n".join(back[2][1].splitlines()[1:]))], names)

    names = {}
    run(page["ONNX: ONNX Runtime, Netron"], names)
    assert names["logits"].shape == (2, 2) and np.allclose(names["probabilities"].sum(1), 1)

    names = {"images": images, "labels": labels}
    run(page["NumPy"], names)
    # Sums of pixels up to 255: their rounding is as much larger.
    judge("NumPy", "runs/mnist-mlp", names["scores"], 1e-4)
    shown = trireme("data", "show", "{npy: {features: x.npy, labels: y.npy}}")
    assert shown.strip()

    names = {}
    run(page["TensorFlow: TFRecord"], names)
    image, label = next(iter(names["digits"]))
    train = mnist("train", 1)
    assert image.numpy().tobytes() == train[0][0] and int(label) == train[1][0]
    print("the page, TensorFlow: the first record")

    names = {}
    run([block for block in page["TensorBoard"] if block[0] == "python"], names)
    assert [step for step, _ in names["loss"]] == [1, 100], names["loss"]
    print("the page, TensorBoard: the losses")


main()
