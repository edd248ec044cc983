"""Networks that several scripts carry to other programs: every kind of layer and what is awkward about it, on real data."""

import os

import numpy as np

from common import SOURCE, data, mnist, place, write

COUNT = 50  # test examples


def model(name):
    return os.path.join(SOURCE, "models", name + ".yaml")


def idx_of(prefix):
    images, labels = (data(f"mnist/{prefix}-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))
    return f"{{idx: {{images: {images}, labels: {labels}}}}}"


# For a model file whose own data would have to be made first.
MNIST_AS_IDX = [f"data.train={idx_of('train')}", f"data.test={idx_of('t10k')}"]


# ---- images ----


def coloured_digits(parts):
    """Real digits in four channels: every second row and column of a digit is a channel of its own. Written as IDX files.
    Returns those of the last part."""
    for part, count in parts.items():
        images, labels = mnist("train" if part == "train" else "t10k", count)
        image = np.frombuffer(b"".join(images), np.uint8).reshape(count, 14, 2, 14, 2)
        image = image.transpose(0, 1, 3, 2, 4).reshape(count, 14, 14, 4)
        with open(place(f"{part}.images"), "wb") as file:
            file.write(bytes([0, 0, 8, 4]) + np.array(image.shape, ">i4").tobytes() + image.tobytes())
        with open(place(f"{part}.labels"), "wb") as file:
            file.write(bytes([0, 0, 8, 1]) + np.array([count], ">i4").tobytes() + bytes(labels))
    return image.copy()


HEAD = """
name: {name}
data:
  train: {{idx: {{images: train.images, labels: train.labels}}}}
  test: {{idx: {{images: test.images, labels: test.labels}}}}
loss: softmax_cross_entropy
optimizer: {{rule: adam, rate: 2e-3}}
train: {{batch: 25, steps: 40, microbatches: 2}}
"""

IMAGES = {
    "windows": """
input: {scale: [0.01, 0.02, 0.004, 0.003], shift: [-1, 0, 0.5, 0.25]}
layers:
- conv: {filters: 6, kernel: [2, 3], stride: [1, 2], padding: same, activation: leaky_relu, slope: 0.2}
- max_pool: {size: 3, stride: 2, padding: same}
- conv: {filters: 5, kernel: 2, dilation: 2, pad: 1, use_bias: false, activation: tanh}
- average_pool: {size: 2, stride: 1, padding: same}
- conv: {filters: 7, kernel: 4, padding: same, activation: sigmoid}
- average_pool: {size: 2, padding: same}
- max_pool: {size: 2, stride: 1, padding: same}
- dense: {units: 12, activation: relu}
- leaky_relu: 0.3
- dense: 10
""",
    "norms": """
input: {crop: [12, 10]}
layers:
- conv: {filters: 6, kernel: 3, use_bias: false}
- batch_norm: {momentum: 0.3, epsilon: 1e-3}
- relu
- layer_norm
- group_norm: {groups: 3, epsilon: 1e-3}
- max_pool: 2
- softmax
- dropout: 0.2
- flatten
- batch_norm
- layer_norm: 0.01
- rms_norm: 0.01
- dense: {units: 16, activation: tanh}
- batch_norm
- gelu
- dense: {units: 10, use_bias: false}
""",
    "groups": """
layers:
- conv: {filters: 8, kernel: 3, padding: same, groups: 4, activation: relu}
- conv: {filters: 8, kernel: 5, stride: 2, padding: same, groups: 8, use_bias: false}
- batch_norm
- conv: {filters: 12, kernel: [2, 3], groups: 2, activation: leaky_relu, slope: 0.2}
- conv_transpose: {filters: 6, kernel: 3, stride: 2, groups: 3}
- tanh
- conv: {filters: 6, kernel: 3, dilation: 2, pad: 1, groups: 6, activation: sigmoid}
- dense: 10
""",
    "gates": """
layers:
- conv: {filters: 6, kernel: 3, stride: 2, padding: same, use_bias: false}
- batch_norm
- silu: {name: a}
- global_average_pool
- dense: 4
- hard_swish
- dense: {units: 6, activation: sigmoid, name: gate}
- multiply: {from: [a, gate]}
- conv: {filters: 6, kernel: 7, activation: tanh}
- multiply: a
- hard_swish
- relu6
- stochastic_depth: 0.2
- instance_norm: {epsilon: 1e-3, name: b}
- multiply: {from: [gate, b]}
- multiply: b
- flatten
- dense: 10
""",
    "fewer-tokens": """
layers:
- conv: {filters: 6, kernel: 2, stride: 2}
- tokens: {name: places}
- conv1d: {filters: 8, kernel: 3, stride: 2, activation: tanh, name: shorter}
- attention: {heads: 2, causal: true}
- add: shorter
- conv1d: {filters: 6, kernel: 4, stride: 3, dilation: 2, groups: 2, causal: true, activation: leaky_relu}
- conv1d: {filters: 8, kernel: 3}
- gru: 6
- conv1d: {filters: 8, kernel: 2, stride: 4, use_bias: false}
- global_max_pool
- dense: 10
""",
    "residual": """
layers:
- conv: {filters: 6, kernel: 3, padding: same, name: stem}
- conv: {filters: 6, kernel: 3, padding: same, activation: relu}
- add: stem
- max_pool: {size: 3, stride: 2, pad: 1, name: image}
- flatten: {name: flat}
- sigmoid
- add: flat
- batch_norm
- dense: {units: 10, name: 1st, weights: {uniform: 0.01}}
- tanh
- add: 1st
- dense: {units: 10, name: class}
""",
    "branches": """
layers:
- conv: {filters: 6, kernel: 3, padding: same, activation: relu, name: stem}
- conv: {filters: 3, kernel: 1, name: narrow}
- conv: {filters: 4, kernel: 3, padding: same, activation: tanh, from: stem, name: wide}
- concat: {from: [narrow, wide, stem, input], name: all}
- global_average_pool: {name: mean}
- global_max_pool: {from: all, name: most}
- flatten: {from: narrow}
- dense: {units: 7, activation: tanh, name: seven}
- concat: [mean, most, seven]
- slice: {begin: 3, size: 24}
- reshape: [2, 4, 3]
- conv: {filters: 5, kernel: 2, name: small}
- add: {from: [small, small, small]}
- dense: 10
""",
    "images-become-larger": """
layers:
- max_pool: 4
- conv_transpose: {filters: 5, kernel: [3, 2], stride: 2}
- relu
- conv_transpose: {filters: 4, kernel: 3, padding: same, stride: 2}
- tanh
- max_pool: 3
- upsample: [2, 3]
- conv_transpose: {filters: 3, kernel: 4, pad: 1, stride: 2}
- sigmoid
- average_pool: 3
- conv_transpose: {filters: 3, kernel: 2, padding: same, stride: 3}
- upsample: [1, 2]
- conv: {filters: 4, kernel: 3, stride: 3, activation: relu}
- dense: 10
""",
    "no-layers-between": """
layers:
- dense: 10
""",
    "larger-crop": """
input: {crop: 17, pad: 2, shift: 0.1}
layers:
- average_pool: {size: 3, stride: 3, pad: 1}
- conv: {filters: 10, kernel: 6}
- flatten
""",
    "border": """
layers:
- average_pool: {size: 3, stride: 2, pad: 1, count_border: true}
- conv: {filters: 6, kernel: 2, activation: tanh}
- average_pool: {size: 2, stride: 1, padding: same, count_border: true}
- average_pool: {size: [4, 3], padding: same, count_border: true}
- dense: 10
""",
}


# ---- sentences ----

SENTENCES = """
name: sentences
data:
  train: {{text: {{path: {0}, min_count: 3}}}}
  test: {{text: {{path: {1}}}}}
layers:
- embedding: {{width: 12, name: words}}
- dense: {{units: 12, activation: tanh}}
- add: words
- layer_norm
- lstm: 16
- dropout: 0.1
- lstm: {{units: 9, truncate: 4}}
- gelu
- last
- layer_norm
- dense: 2
optimizer: {{rule: adam, rate: 3e-3}}
train: {{batch: 64, steps: 40}}
"""


# In the place of the layers of SENTENCES: networks whose tokens see each other.
SEEING = {
    "both-ways": """
layers:
- embedding: {width: 12, name: words}
- position: {length: 20, name: x}
- attention: {heads: 3}
- add: x
- bidirectional: 5
- rms_norm
- group_norm: 1
- bidirectional: {units: 4, cell: gru}
- global_average_pool: {name: mean}
- global_max_pool: {from: rms_norm1, name: most}
- concat: [mean, most]
- dense: 2
""",
    "neighbours": """
layers:
- embedding: 10
- conv1d: {filters: 9, kernel: 4, activation: tanh}
- conv1d: {filters: 6, kernel: 3, causal: true, activation: leaky_relu}
- gru: 7
- gelu: {approximate: tanh}
- last
- dense: 2
""",
    "dilated": """
layers:
- embedding: 10
- conv1d: {filters: 8, kernel: 3, dilation: 2, activation: tanh}
- conv1d: {filters: 8, kernel: 2, dilation: 3, groups: 4}
- conv1d: {filters: 6, kernel: 3, dilation: 4, causal: true}
- global_average_pool
- dense: 2
""",
    "rotary": """
layers:
- embedding: {width: 12, name: words}
- attention: {heads: 2, width: 16, causal: true, rotary: 100, use_bias: false}
- add: words
- attention: {heads: 3, rotary: 10000}
- global_max_pool
- dense: 2
""",
    "shared-layers": """
layers:
- embedding: {width: 12, name: words}
- attention: {heads: 3, causal: true, name: a}
- layer_norm: {name: n}
- dense: {units: 12, activation: tanh, name: d}
- add: {with: words, name: x}
- attention: {heads: 3, causal: true, share: a}
- layer_norm: {share: n}
- dense: {units: 12, activation: tanh, share: d}
- add: x
- conv1d: {filters: 12, kernel: 3, name: c}
- conv1d: {filters: 12, kernel: 3, share: c}
- gru: {units: 12, name: g}
- gru: {units: 12, share: g}
- global_max_pool
- dense: 2
""",
    "two-branches": """
layers:
- embedding: {width: 12, name: words}
- conv1d: {filters: 8, kernel: 3, activation: tanh, name: memory}
- attention: {heads: 3, causal: true, from: words}
- add: {with: words, name: x}
- cross_attention: {with: memory, heads: 3, dropout: 0.1}
- add: {with: x, name: y}
- cross_attention: {from: [memory, y], heads: 4, kv_heads: 2, width: 16, use_bias: false}
- global_max_pool
- dense: 2
""",
    "shared-heads": """
layers:
- embedding: {width: 12, name: words}
- attention: {heads: 4, kv_heads: 2, width: 16, causal: true, rotary: 100, rotary_style: pairs, rotary_factor: 2}
- add: {with: words, name: x}
- attention: {heads: 6, kv_heads: 2, window: 3}
- add: x
- attention: {heads: 3, kv_heads: 1, causal: true, window: 5, use_output_bias: false, rotary: 50, rotary_factor: 4, rotary_original: 9}
- global_max_pool
- dense: 2
""",
}


def with_layers(text, layers):
    """A model file with other layers."""
    return text[: text.index("layers:")] + layers.lstrip() + text[text.index("optimizer:") :]


TEXTS = """
name: texts
data:
  train: {{corpus: {{path: {0}, window: 16, stride: 5, end: 0.1}}}}
layers:
- embedding: {{width: 16, weights: {{normal: 0.3}}, name: tokens}}
- position: {{length: 16, weights: {{normal: 0.1}}, name: x}}
- layer_norm
- attention: {{heads: 4, causal: true}}
- add: {{with: x, name: y}}
- layer_norm
- dense: 32
- gelu: {{approximate: tanh}}
- dense: 16
- add: y
- layer_norm
- unembedding: tokens
optimizer: {{rule: adamw, rate: 3e-3}}
train: {{batch: 32, steps: 30}}
"""


# Two images and a table, and answers of three kinds. One source has a name that Python and ONNX keep for themselves.
JOINED = """
name: joined
data:
  train: &set
    join:
      sources:
        left: {idx: {images: left.idx}}
        probabilities: {idx: {images: right.idx}}
        facts: {csv: {path: facts.csv, label: value, label_columns: [4, 5, 6, 7], standardize: true}}
        lambda: {csv: {path: more.csv, label: none}}
  test: *set
input: {crop: [4, 5], scale: 0.015625, shift: 0.25}
layers:
- conv: {filters: 3, kernel: 3, activation: tanh, from: left}
- global_average_pool: {name: a}
- dense: {units: 4, activation: tanh, from: probabilities, name: b}
- dense: {units: 3, from: lambda, name: c}
- concat: {from: [a, b, c, facts]}
- dense: {units: 8, activation: tanh, name: shared}
- dense: {units: 3, from: shared, name: kind}
- dense: {units: 2, from: shared, name: questions}
- dense: {units: 1, from: shared, name: price}
- concat: {from: [kind, questions, price]}
loss:
- {kind: softmax_cross_entropy, outputs: 3}
- {kind: binary_cross_entropy, outputs: 2}
- {kind: huber, outputs: 1, weight: 0.5}
optimizer: {rule: adam, rate: 0.01}
train: {batch: 20, steps: 30}
"""


def joined():
    """Writes JOINED and its data; returns its sources as they are in the data, an array for each, an example each."""
    random = np.random.default_rng(3)
    left, right = random.integers(0, 256, (COUNT, 6, 5, 1)), random.integers(0, 256, (COUNT, 4, 8, 2))
    facts = np.round(random.normal(size=(COUNT, 4)) * [3000, 1, 0.01, 5] + [20000, 0, 1, 0], 4).astype(np.float32)
    more = np.round(random.normal(size=(COUNT, 2)), 3).astype(np.float32)
    for name, images in (("left", left), ("right", right)):
        sizes = images.shape if images.shape[3] > 1 else images.shape[:3]
        head = bytes([0, 0, 8, len(sizes)]) + np.array(sizes, ">u4").tobytes()
        with open(place(f"{name}.idx"), "wb") as file:
            file.write(head + images.astype(np.uint8).tobytes())
    answers = np.stack([np.arange(COUNT) % 3, facts[:, 1] > 0, left.mean((1, 2, 3)) > 127, facts[:, 2]], 1)
    for name, rows in (("facts", np.concatenate([facts, answers], 1)), ("more", more)):
        write(f"{name}.csv", "".join(",".join(f"{float(value):.9g}" for value in row) + "\n" for row in rows))
    return write("joined.yaml", JOINED), left, right, facts, more


def checkpoint_of(run):
    return max(name for name in os.listdir(place(run)) if name.startswith("checkpoint-"))


def sentences(run, name):
    """The first sentences of a file as numbers of the run's words, padded: tokens [COUNT, time] and lengths."""
    with open(os.path.join(place(run), checkpoint_of(run), "vocabulary.txt"), encoding="utf-8") as file:
        words = file.read().split("\n")[2:]
    number = {word: i for i, word in enumerate(words)}
    with open(data(name), encoding="utf-8") as file:
        lines = [line.split("\t")[0] for _, line in zip(range(COUNT), file)]
    rows = [[number.get(word, 0) for word in line.split()] for line in lines]
    longest = max(len(row) for row in rows)
    tokens = np.array([row + [1] * (longest - len(row)) for row in rows], np.int64)
    return tokens, np.array([len(row) for row in rows], np.int64)
