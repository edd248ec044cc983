"""Writes the model files of the jobs of real size, and their data: networks.py JOB FOLDER

    resnet18, resnet50    He et al. 2015 on images of 96x96
    unet                  Ronneberger et al. 2015 with padding: 128x128 pixels, 32 to 256 channels, an answer for each pixel
    gpt2                  GPT-2 small (Radford et al. 2019): 124 million parameters, 128 tokens
    lstm2                 two LSTMs of 512 units over 50 tokens

FOLDER/JOB.yaml is the model file. All data are noise of the right shape: these are jobs for measuring speed.
"""
import os
import random
import sys

BATCH = {"resnet18": 16, "resnet50": 8, "unet": 8, "gpt2": 1, "lstm2": 64}
IMAGES, PIXELS, MASKS, SIDE = 256, 96, 32, 128


def array(path, kind, shape, content):
    """A file of NumPy, version 1.0."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00\x76\x00" + f"{head:<117}\n".encode() + content)


def conv(filters, kernel, stride=1, **options):
    words = "".join(f", {key}: {value}" for key, value in options.items())
    pad = f", pad: {kernel // 2}" if kernel > 1 else ""
    return f"conv: {{filters: {filters}, kernel: {kernel}, stride: {stride}{pad}, use_bias: false, weights: he_normal{words}}}"


def resnet(depth):
    wide, counts = (4, [3, 4, 6, 3]) if depth == 50 else (1, [2, 2, 2, 2])
    layers = [conv(64, 7, 2), "batch_norm", "relu", "max_pool: {size: 3, stride: 2, pad: 1, name: b0}"]
    channels, last = 64, "b0"
    for stage, count in enumerate(counts):
        for block in range(count):
            filters, stride = 64 << stage, 2 if stage > 0 and block == 0 else 1
            name = f"b{stage + 1}_{block + 1}"
            shortcut = last
            if stride > 1 or channels != filters * wide:
                shortcut = f"{name}_shortcut"
                layers += [conv(filters * wide, 1, stride), f"batch_norm: {{name: {shortcut}}}"]
            path = [(1, 1), (3, stride), (1, 1)] if wide > 1 else [(3, stride), (3, 1)]
            for number, (kernel, step) in enumerate(path):
                width = filters * (wide if number == 2 else 1)
                options = {"from": last} if number == 0 and shortcut != last else {}
                layers += [conv(width, kernel, step, **options), "batch_norm"]
                layers += ["relu"] if number + 1 < len(path) else [f"add: {shortcut}", f"relu: {{name: {name}}}"]
            channels, last = filters * wide, name
    return [*layers, "global_average_pool", "dense: 10"]


def unet():
    def twice(filters, name):
        rest = f"filters: {filters}, kernel: 3, padding: same, activation: relu, weights: he_normal"
        return [f"conv: {{{rest}}}", f"conv: {{{rest}, name: {name}}}"]

    layers = []
    for level, filters in enumerate([32, 64, 128]):
        layers += [*twice(filters, f"down{level}"), "max_pool"]
    layers += twice(256, "bottom")
    for level, filters in reversed(list(enumerate([32, 64, 128]))):
        layers += [f"conv_transpose: {{filters: {filters}, kernel: 2, stride: 2}}", f"concat: [down{level}]"]
        layers += twice(filters, f"up{level}")
    return [*layers, "conv: {filters: 1, kernel: 1}", "flatten"]


def gpt2():
    normal = "weights: {normal: 0.02}"
    layers = [f"embedding: {{width: 768, {normal}, name: tokens}}", f"position: {{length: 128, {normal}, name: x0}}"]
    for block in range(1, 13):
        layers += [
            "layer_norm",
            f"attention: {{heads: 12, causal: true, {normal}, output_weights: {{normal: 0.02}}}}",
            f"add: {{with: x{block - 1}, name: y{block}}}",
            "layer_norm",
            f"dense: {{units: 3072, {normal}}}",
            "gelu: {approximate: tanh}",
            f"dense: {{units: 768, {normal}}}",
            f"add: {{with: y{block}, name: x{block}}}",
        ]
    return [*layers, "layer_norm", "unembedding: tokens"]


def lstm2():
    return ["embedding: {width: 512, vocabulary: 16000}", "lstm: 512", "lstm: 512", "last", "dense: 2"]


def images(folder, draw):
    array(f"{folder}/real-images.npy", "|u1", (IMAGES, PIXELS, PIXELS, 3), draw.randbytes(IMAGES * PIXELS * PIXELS * 3))
    array(f"{folder}/real-classes.npy", "|u1", (IMAGES,), bytes(number % 10 for number in range(IMAGES)))
    return "npy: {features: real-images.npy, labels: real-classes.npy}"


def masks(folder, draw):
    bits = b"".join((b"\0\0\0\0", b"\0\0\x80?")[byte & 1] for byte in draw.randbytes(MASKS * SIDE * SIDE))  # 0 and 1
    array(f"{folder}/real-photos.npy", "|u1", (MASKS, SIDE, SIDE, 3), draw.randbytes(MASKS * SIDE * SIDE * 3))
    array(f"{folder}/real-masks.npy", "<f4", (MASKS, SIDE * SIDE), bits)
    return "npy: {features: real-photos.npy, labels: real-masks.npy}"


def tokens(folder, draw):
    numbers = [draw.randrange(50257) for _ in range(129 * 64)]
    with open(f"{folder}/real-tokens.bin", "wb") as file:
        file.write(b"".join(number.to_bytes(2, "little") for number in numbers))
    return "corpus: {path: real-tokens.bin, unit: ids, ids: 50257, window: 128}"


def sentences(folder, draw):
    with open(f"{folder}/real-sentences.tsv", "w") as file:
        for _ in range(3200):
            words = [draw.randrange(15999) for _ in range(50)]
            file.write(" ".join(f"w{word}" for word in words) + f"\t{words[0] % 2}\n")
    return "text: {path: real-sentences.tsv}"


def main():
    job, folder = sys.argv[1:]
    layers, source, loss, optimizer = {
        "resnet18": (lambda: resnet(18), images, "softmax_cross_entropy", "rule: momentum, rate: 0.05, momentum: 0.9"),
        "resnet50": (lambda: resnet(50), images, "softmax_cross_entropy", "rule: momentum, rate: 0.05, momentum: 0.9"),
        "unet": (unet, masks, "binary_cross_entropy", "rule: adam, rate: 1e-4"),
        "gpt2": (gpt2, tokens, "softmax_cross_entropy", "rule: adamw, rate: 1e-4, weight_decay: 0.1, clip_norm: 1"),
        "lstm2": (lstm2, sentences, "softmax_cross_entropy", "rule: adam, rate: 1e-3"),
    }[job]
    os.makedirs(folder, exist_ok=True)
    data = source(folder, random.Random(1))
    lines = [f"name: {job}", "seed: 1", f"data: {{train: {{{data}}}}}", "layers:"]
    lines += [f"  - {layer}" for layer in layers()]
    lines += [f"loss: {loss}", f"optimizer: {{{optimizer}}}", f"train: {{batch: {BATCH[job]}, steps: 100}}"]
    with open(f"{folder}/{job}.yaml", "w") as file:
        file.write("\n".join(lines) + "\n")


main()
