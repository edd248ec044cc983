# needs: tensorflow numpy
"""TFRecord files of tf.train.Example: ours read by TensorFlow, its own read by us; plain, gzip and zlib."""

import json

import numpy as np
import tensorflow as tf

from common import close, data, mnist, place, predict, trireme, write

COUNT = 300
PACKINGS = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}


def ours_to_tensorflow():
    """All that `trireme data convert` writes of MNIST's test digits, through the calls of an input pipeline."""
    pixels, labels = mnist(count=10000)
    features = {
        "image_raw": tf.io.FixedLenFeature([], tf.string),
        "pixels": tf.io.FixedLenFeature([], tf.int64),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    for packing, theirs in PACKINGS.items():
        path = place(f"digits-{packing}.tfrecord")
        trireme("data", "convert", "mnist", path, "--part", "test", "--dir", data(""), "--packing", packing)
        seen = 0
        for record in tf.data.TFRecordDataset(path, compression_type=theirs):
            example = tf.io.parse_single_example(record, features)
            assert example["image_raw"].numpy() == pixels[seen], f"{packing}: image {seen} differs"
            assert int(example["label"]) == labels[seen] and int(example["pixels"]) == 784
            seen += 1
        assert seen == len(labels), f"{packing}: {seen} records"
        print(f"{packing}: {seen} records of ours read by TensorFlow {tf.__version__}")


def int64_feature(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def write_theirs(path, packing, pixels, labels):
    options = tf.io.TFRecordOptions(compression_type=PACKINGS[packing])
    with tf.io.TFRecordWriter(path, options) as writer:
        for image, label in zip(pixels, labels):
            feature = {
                "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "label": int64_feature([label]),
                "comment": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"not looked at"])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


MODEL = """
name: digits
data:
  train: {{tfrecord: {{path: {path}, height: 28, width: 28}}}}
  test: {{tfrecord: {{path: {path}, height: 28, width: 28}}}}
layers: [{{dense: 10}}]
optimizer: {{rule: sgd, rate: 0.1}}
train: {{batch: 50, steps: 20}}
"""


def theirs_to_us():
    """Files that TensorFlow wrote: every example arrives, and the packing does not change a run."""
    pixels, labels = mnist(count=COUNT)
    hashes = set()
    for packing in PACKINGS:
        path = place(f"theirs-{packing}.tfrecord")
        write_theirs(path, packing, pixels, labels)
        text = f"{{tfrecord: {{path: {path}, height: 28, width: 28}}}}"
        trireme("data", "convert", text, place("back"), "--format", "idx")
        with open(place("back-images-idx3-ubyte"), "rb") as file:
            assert file.read()[16:] == b"".join(pixels), f"{packing}: images differ"
        with open(place("back-labels-idx1-ubyte"), "rb") as file:
            assert list(file.read()[8:]) == labels, f"{packing}: labels differ"
        model = write(f"{packing}.yaml", MODEL.format(path=path))
        out = trireme("train", model, "--out", packing, "--log", "json")
        hashes.add(json.loads(out.splitlines()[-1])["hash"])
        print(f"{packing}: {COUNT} records of TensorFlow's read by us")
    assert len(hashes) == 1, "the packing of the data changed the weights"


def floats():
    """Lists of floats, as a table of numbers would be written."""
    rows = np.random.default_rng(1).standard_normal((40, 3)).astype(np.float32)
    path = place("floats.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for row in rows:
            feature = {
                "values": tf.train.Feature(float_list=tf.train.FloatList(value=row)),
                "label": int64_feature([int(row.sum() > 0)]),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    model = write(
        "floats.yaml",
        MODEL.replace("height: 28, width: 28", "floats: values").replace("dense: 10", "dense: 2").format(path=path),
    )
    trireme("train", model, "--out", "floats", "--set", "train.batch=10")
    trireme("export", "floats", "--safetensors", place("floats.safetensors"))
    with open(place("floats.safetensors"), "rb") as file:
        content = file.read()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])

    def tensor(name):
        begin, end = header[name]["data_offsets"]
        return np.frombuffer(content[8 + size + begin : 8 + size + end], np.float32).reshape(header[name]["shape"])

    scores = rows[:10] @ tensor("dense1.weights") + tensor("dense1.bias")
    expected = np.exp(scores - scores.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    close("a table of floats of TensorFlow's", predict("floats", 10), expected.tolist())


ours_to_tensorflow()
theirs_to_us()
floats()
