# needs: numpy sklearn
"""Metrics of `trireme eval` are those of scikit-learn for what `trireme predict` gives, on one process and on two."""

import json

import numpy as np
from sklearn import metrics

from common import place, predict, trireme, write

TOLERANCE = 1e-6
random = np.random.default_rng(5)


def table(name, columns, rows):
    write(name, ",".join(columns) + "\n" + "".join(",".join(f"{value:g}" for value in row) + "\n" for row in rows))


def model(name, label, layers, loss, train, test):
    source = "{{csv: {{path: {0}, {1}}}}}"
    return write(
        f"{name}.yaml",
        f"name: {name}\ndata: {{train: {source.format(train, label)}, test: {source.format(test, label)}}}\n"
        f"layers: {layers}\nloss: {loss}\noptimizer: {{rule: adam, rate: 1e-2}}\n"
        "train: {batch: 40, microbatches: 4, steps: 120}\n",
    )


def evaluate(name, path, count):
    """Trains alone and with two processes, whose evaluations must be the same; returns that and the predictions."""
    trireme("train", path, "--out", name, "--quiet")
    found = json.loads(trireme("eval", name, "--json"))
    trireme("launch", "-n", "2", "--", "train", path, "--out", f"{name}-two", "--quiet")
    with open(place(f"{name}-two/journal.jsonl"), encoding="utf-8") as file:
        together = [json.loads(line) for line in file if '"evaluation"' in line][-1]
    assert together["metrics"] == found["metrics"], (together["metrics"], found["metrics"])
    assert together.get("outputs") == found.get("outputs")
    assert together["loss"] == found["loss"]
    return found, np.array(predict(name, count), np.float32)


def close(what, ours, theirs):
    assert abs(ours - theirs) <= TOLERANCE, f"{what}: {ours} of ours, {theirs} of scikit-learn's"
    print(f"{what}: {ours:.6f}, difference {abs(ours - theirs):.1e}")


def all_close(what, ours, theirs):
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        close(f"{what} of output {i}", mine, other)


def classes():
    count, kinds = 500, 7
    x = random.normal(size=(count, 2))
    label = np.clip(np.round(3 + 2 * x[:, 0] + x[:, 1] + random.normal(0, 0.5, count)), 0, kinds - 1)
    label[label == 5] = 4  # a class that never occurs
    label[:kinds] = np.where(np.arange(kinds) == 5, 6, np.arange(kinds))
    table("classes.csv", ["a", "b", "y"], np.column_stack([x, label]))
    label = label.astype(int)
    path = model("classes", f"classes: {kinds}", f"[{{dense: {{units: 8, activation: tanh}}}}, {{dense: {kinds}}}]",
                 "softmax_cross_entropy", "classes.csv", "classes.csv")
    found, score = evaluate("classes", path, count)
    answer, ours, outputs = score.argmax(1), found["metrics"], found["outputs"]
    close("accuracy", found["accuracy"], metrics.accuracy_score(label, answer))
    close("top_5", ours["top_5"], metrics.top_k_accuracy_score(label, score, k=5, labels=range(kinds)))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(label, answer, labels=range(kinds), zero_division=0)
    all_close("precision", outputs["precision"], precision)
    all_close("recall", outputs["recall"], recall)
    all_close("f1", outputs["f1"], f1)
    assert outputs["support"] == support.tolist()
    for key, function in (("precision", metrics.precision_score), ("recall", metrics.recall_score), ("f1", metrics.f1_score)):
        close(key, ours[key], function(label, answer, average="macro", zero_division=0))
    there = [k for k in range(kinds) if k != 5]
    areas = [metrics.roc_auc_score(label == k, score[:, k]) for k in there]
    all_close("roc_auc", [outputs["roc_auc"][k] for k in there], areas)
    assert outputs["roc_auc"][5] is None
    close("roc_auc", ours["roc_auc"], np.mean(areas))
    loss = metrics.log_loss(label, score.astype(np.float64) / score.astype(np.float64).sum(1, keepdims=True), labels=range(kinds))
    close("perplexity", ours["perplexity"] / np.exp(loss), 1)


def two_classes():
    count = 300
    x = random.normal(size=(count, 2))
    label = (x[:, 0] + random.normal(0, 1, count) > 0.5).astype(int)
    table("two.csv", ["a", "b", "y"], np.column_stack([np.round(x, 1), label]))  # equal rows: ties
    path = model("two", "classes: 2", "[{dense: 2}]", "softmax_cross_entropy", "two.csv", "two.csv")
    found, score = evaluate("two", path, count)
    close("roc_auc of two classes", found["metrics"]["roc_auc"], metrics.roc_auc_score(label, score[:, 1]))
    assert "top_5" not in found["metrics"]


def questions():
    count = 400
    x = random.normal(size=(count, 3))
    label = np.column_stack([x[:, 0] > 0.3, x[:, 1] - x[:, 2] > 1, x[:, 2] + random.normal(0, 1, count) > 0]).astype(int)
    table("questions.csv", ["a", "b", "c", "p", "q", "r"], np.column_stack([x, label]))
    path = model("questions", "label: value, label_columns: [p, q, r]", "[{dense: {units: 6, activation: tanh}}, {dense: 3}]",
                 "{kind: binary_cross_entropy, class_weights: [1, 4, 1]}", "questions.csv", "questions.csv")
    found, score = evaluate("questions", path, count)
    answer, ours, outputs = (score > 0.5).astype(int), found["metrics"], found["outputs"]
    close("exact_match", ours["exact_match"], metrics.accuracy_score(label, answer))
    close("accuracy of answers", found["accuracy"], 1 - metrics.hamming_loss(label, answer))
    for key, function in (("precision", metrics.precision_score), ("recall", metrics.recall_score), ("f1", metrics.f1_score)):
        close(key, ours[key], function(label, answer, average="macro", zero_division=0))
        all_close(key, outputs[key], function(label, answer, average=None, zero_division=0))
    close("roc_auc", ours["roc_auc"], metrics.roc_auc_score(label, score))
    all_close("roc_auc", outputs["roc_auc"], metrics.roc_auc_score(label, score, average=None))
    close("loss", found["loss"], np.mean([metrics.log_loss(label[:, k], score[:, k].astype(np.float64)) for k in range(3)]))


def values():
    count = 350
    x = random.normal(size=(count, 2))
    target = np.column_stack([x[:, 0] ** 2 + x[:, 1] + random.normal(0, 0.1, count), 100 + 10 * np.sin(x[:, 0])])
    table("values.csv", ["a", "b", "y", "z"], np.column_stack([x, target]))
    target = np.loadtxt(place("values.csv"), delimiter=",", skiprows=1)[:, 2:].astype(np.float32)
    path = model("values", "label: value, label_columns: [y, z]", "[{dense: {units: 12, activation: tanh}}, {dense: 2}]", "huber",
                 "values.csv", "values.csv")
    found, guess = evaluate("values", path, count)
    ours, outputs = found["metrics"], found["outputs"]
    target, guess = target.astype(np.float64), guess.astype(np.float64)
    close("mae", ours["mae"], metrics.mean_absolute_error(target, guess))
    all_close("mae", outputs["mae"], metrics.mean_absolute_error(target, guess, multioutput="raw_values"))
    all_close("rmse", outputs["rmse"], np.sqrt(metrics.mean_squared_error(target, guess, multioutput="raw_values")))
    close("r2", ours["r2"], metrics.r2_score(target, guess))
    all_close("r2", outputs["r2"], metrics.r2_score(target, guess, multioutput="raw_values"))


classes()
two_classes()
questions()
values()
