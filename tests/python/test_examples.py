# needs: numpy
"""The examples in examples/python: test_examples.py TRIREME SOURCE. Each is skipped where its package is not there."""

import importlib.util
import os
import pathlib
import sys
import tempfile

place = tempfile.mkdtemp(prefix="trireme-examples-")
os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{place}/mlflow.db"
os.chdir(place)
folder = pathlib.Path(sys.argv[2]) / "examples" / "python"


def load(name, *needed):
    """An example as a module, or None."""
    missing = [package for package in needed if importlib.util.find_spec(package) is None]
    if missing:
        print(f"skipped: {name} without {missing[0]}", flush=True)
        return None
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_early_stopping():
    stopping, run, best = load("early_stopping").main()
    evaluations = [record for record in run.history if record["kind"] == "evaluation" and record["set"] == "validation"]
    losses = [record["loss"] for record in evaluations]
    lowest = losses.index(min(losses))
    # Three evaluations behind the best one, none of them better.
    assert run.step < run.steps and len(losses) == lowest + 4
    assert best.step == stopping.best_step == evaluations[lowest]["step"]


def test_optuna_pruning():
    example = load("optuna_pruning", "optuna")
    if example is None:
        return
    study = example.main()
    states = [trial.state.name for trial in study.trials]
    assert states.count("PRUNED") >= 1 and states.count("COMPLETE") >= 4 and "FAIL" not in states
    pruned = next(trial for trial in study.trials if trial.state.name == "PRUNED")
    assert max(pruned.intermediate_values) < 120 and study.best_value < min(pruned.intermediate_values.values())


def test_mlflow_tracking():
    example = load("mlflow_tracking", "mlflow")
    if example is None:
        return
    tracked, run = example.main()
    import mlflow

    client = mlflow.MlflowClient()
    kept = client.get_run(tracked.info.run_id)
    assert kept.data.tags["hash"] == run.hash
    history = client.get_metric_history(tracked.info.run_id, "loss")
    steps = [record for record in run.history if record["kind"] == "step"]
    assert [(one.step, one.value) for one in history] == [(record["step"], record["loss"]) for record in steps]
    assert kept.data.metrics["test_accuracy"] == run.history[-1]["accuracy"]
    assert [artifact.path for artifact in client.list_artifacts(tracked.info.run_id)] == ["net.onnx"]


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
