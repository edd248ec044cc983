# needs: tensorboard numpy
"""A run that the program writes for TensorBoard, read by the packages that draw its pages: the figures are those that the program
prints, the pictures those of the data, and a run that was killed and taken up again shows no step twice."""

import io
import json
import os
import signal
import struct
import subprocess
import time
import zlib

from common import PLACE, SOURCE, TRIREME, mnist, place, trireme, write

import numpy
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

ALL = {kind: 0 for kind in ("scalars", "histograms", "images", "tensors", "compressedHistograms")}
JOB = f"""
name: observed
seed: 5
data:
  train: {{idx: {{images: {SOURCE}/data/mnist/t10k-images-idx3-ubyte.gz, labels: {SOURCE}/data/mnist/t10k-labels-idx1-ubyte.gz}}}}
  test: {{idx: {{images: {SOURCE}/data/mnist/t10k-images-idx3-ubyte.gz, labels: {SOURCE}/data/mnist/t10k-labels-idx1-ubyte.gz}}}}
layers:
  - conv: {{filters: 4, kernel: 5, stride: 2, activation: relu, name: edges}}
  - max_pool: 2
  - dense: {{units: 16, activation: tanh}}
  - dense: 10
optimizer: {{rule: adam, rate: 1e-3}}
train: {{batch: 50, steps: 60, log_every: 10, evaluate_every: 30, shuffle: false, checkpoint_every: 20}}
"""


def read(directory):
    accumulator = event_accumulator.EventAccumulator(directory, size_guidance=ALL)
    accumulator.Reload()
    return accumulator


def values(accumulator, tag):
    return {event.step: event.value for event in accumulator.Scalars(tag)}


def close(a, b, what):
    assert abs(a - b) <= 1e-5 * max(1, abs(b)), f"{what}: {a}, not {b}"


def train(*arguments):
    """Trains and returns what the program logs: an object a line."""
    lines = trireme("train", "job.yaml", "--log", "json", *arguments).splitlines()
    return [json.loads(line) for line in lines]


def check_scalars(run, test, log):
    steps = {line["step"]: line for line in log if line.get("event") == "step"}
    tests = [line for line in log if line.get("event") == "evaluation"]
    assert sorted(values(run, "loss")) == sorted(steps) == [1, 10, 20, 30, 40, 50, 60], steps.keys()
    for step, value in values(run, "loss").items():
        close(value, steps[step]["loss"], f"loss of step {step}")
    for step, value in values(run, "accuracy").items():
        close(value, steps[step]["accuracy"], f"accuracy of step {step}")
    assert all(abs(value - 1e-3) < 1e-9 for value in values(run, "optimizer/learning_rate").values())
    assert all(value > 0 for value in values(run, "speed/examples_per_second").values())
    shown = values(test, "accuracy")
    assert sorted(shown) == [30, 60], shown
    for line in tests:
        close(shown[line["step"]], line["accuracy"], "test accuracy")
    print(f"scalars: {len(run.Tags()['scalars'])} tags, {len(steps)} steps, {len(tests)} evaluations")


def check_histograms(run, checkpoint):
    """Of the parameters after the last step: those in the checkpoint, read with NumPy."""
    trireme("export", checkpoint, "--npz", place("parameters.npz"))
    parameters = numpy.load(place("parameters.npz"))
    for name in parameters.files:
        array = parameters[name].astype(numpy.float64).ravel()
        event = run.Histograms(f"parameters/{name}")[-1]
        histogram = event.histogram_value
        assert event.step == 60 and histogram.num == array.size, name
        close(histogram.sum, array.sum(), f"sum of {name}")
        close(histogram.sum_squares, (array**2).sum(), f"squares of {name}")
        # What TensorBoard makes of it: the first and the last edge are the least and the greatest number.
        close(histogram.min, array.min(), f"least of {name}")
        close(histogram.max, array.max(), f"greatest of {name}")
        edges = numpy.array(histogram.bucket_limit)
        counts = [((array >= low) & (array < high)).sum() for low, high in zip([-numpy.inf, *edges[:-1]], [*edges[:-1], numpy.inf])]
        # Negative buckets hold their right edge, so a number that is an edge may be counted beside.
        assert numpy.abs(numpy.array(counts) - histogram.bucket).sum() <= 2, name
    norm = values(run, "optimizer/gradient_norm")[60]
    squares = sum(run.Histograms(f"gradients/{name}")[-1].histogram_value.sum_squares for name in parameters.files)
    close(norm, squares**0.5, "norm of the gradient")
    activation = run.Histograms("activations/edges")[-1].histogram_value
    assert activation.num == 50 * 12 * 12 * 4 and activation.min == 0
    print(f"histograms: {len(run.Tags()['histograms'])} tags")


def pixels_of(png):
    """The bytes of an 8-bit grey PNG, unpacked by hand: signature, chunks, rows with filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, width, height = 8, b"", 0, 0
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (8, 0)
        if kind == b"IDAT":
            packed += body
        at += 12 + length
    stream, rows, above = io.BytesIO(zlib.decompress(packed)), [], bytes(width)
    for _ in range(height):
        kind, row = stream.read(1)[0], bytearray(stream.read(width))
        for i in range(width):
            left, up, corner = row[i - 1] if i else 0, above[i], above[i - 1] if i else 0
            guess = left + up - corner
            paeth = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            row[i] = (row[i] + [0, left, up, (left + up) // 2, paeth][kind]) % 256
        rows.append(bytes(row))
        above = bytes(row)
    return b"".join(rows)


def check_images(run):
    images, labels = mnist("t10k", 16)
    tags = run.Tags()["images"]
    assert len(tags) == 32, tags
    for i in range(16):
        for when, step in (("before", 0), ("after", 60)):
            found = [tag for tag in tags if tag.startswith(f"samples {when} training/{i:02d} label {labels[i]}, prediction ")]
            assert len(found) == 1, (i, tags)
            event = run.Images(found[0])[-1]
            assert (event.step, event.width, event.height) == (step, 28, 28)
            assert pixels_of(event.encoded_image_string) == images[i], f"picture {i}"
    print(f"images: {len(tags)}")


def check_graph(run):
    graph = run.Graph()
    names = {node.name for node in graph.node}
    assert {"input", "labels", "edges/conv", "edges/relu", "edges/weights", "dense2/dense", "loss/softmax_cross_entropy"} <= names
    for node in graph.node:
        assert set(node.input) <= names, node.name
        assert "_output_shapes" in node.attr
    conv = next(node for node in graph.node if node.name == "edges/conv")
    assert conv.attr["filters"].i == 4 and conv.attr["kernel"].s == b"[5, 5]"
    assert [d.size for d in conv.attr["_output_shapes"].list.shape[0].dim] == [-1, 12, 12, 4]
    print(f"graph: {len(names)} nodes")


def check_text_and_hparams(run):
    job = tensor_util.make_ndarray(run.Tensors("job")[-1].tensor_proto).item().decode()
    assert job.startswith("    name: observed\n") and "\n      - conv:\n" in job, job
    found = {}
    for tag in ("session_start_info", "session_end_info"):
        content = run.SummaryMetadata(f"_hparams_/{tag}").plugin_data.content
        found[tag] = plugin_data_pb2.HParamsPluginData.FromString(content)
    hparams = found["session_start_info"].session_start_info.hparams
    assert hparams["optimizer.rate"].number_value == 1e-3 and hparams["optimizer.rule"].string_value == "adam"
    assert hparams["train.batch"].number_value == 50 and hparams["seed"].number_value == 5
    assert found["session_end_info"].session_end_info.status == 1  # success
    print(f"text, and {len(hparams)} hyperparameters")


def check_restart(undisturbed):
    """A run that is killed in the middle and goes on shows what an undisturbed one shows."""
    process = subprocess.Popen(
        [TRIREME, "train", "job.yaml", "--out", "killed", "--tensorboard", "--histograms", "10", "--set", "train.steps=60000",
         "--set", "train.log_every=1"],
        cwd=PLACE, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not os.path.isdir(place("killed/checkpoint-00000040")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    torn = values(read(place("killed")), "loss")
    assert len(torn) >= 40 and sorted(torn) == list(range(1, len(torn) + 1)), "whole records can be read"
    step = max(int(name[len("checkpoint-"):]) for name in os.listdir(place("killed")) if name.startswith("checkpoint-") and "." not in name)
    train("--resume", "killed", "--resume-changed", "--tensorboard", "--histograms", "10", "--set", f"train.steps={step + 20}",
          "--set", "train.log_every=1", "--quiet")
    run = read(place("killed"))
    steps = [event.step for event in run.Scalars("loss")]
    assert steps == list(range(1, step + 21)), f"every step once: {steps[-30:]}"
    for at, value in values(undisturbed, "loss").items():
        close(values(run, "loss")[at], value, f"loss of step {at}")
    print(f"killed after step {len(torn)}, taken up after {step}: every step once")


write("job.yaml", JOB)
log = train("--out", "run", "--tensorboard", "--histograms", "20", "--quiet")
run = read(place("run"))
check_scalars(run, read(place("run/test")), log)
check_histograms(run, place("run"))
check_images(run)
check_graph(run)
check_text_and_hparams(run)
check_restart(run)

# A new run in the place of an old one.
train("--out", "run", "--overwrite", "--tensorboard", "--steps", "20", "--quiet")
run = read(place("run"))
assert sorted(values(run, "loss")) == [1, 10, 20]
assert len(run.Tags()["images"]) == 32
print("overwritten: the old curves and pictures are gone")

# Another run into a directory that --overwrite does not know takes the curves back that are there.
for steps in (30, 10):
    train("--out", "elsewhere", "--overwrite", f"--tensorboard={place('events')}", "--steps", str(steps), "--quiet")
assert sorted(values(read(place("events")), "loss")) == [1, 10]
print("written over: the old curves are taken back")
