"""A run's figures, its hash and its network in MLflow.

    python examples/python/mlflow_tracking.py
"""

import os
import tempfile

import mlflow
import numpy as np

import trireme


def track(event):
    """Give it to `train` in `callbacks`, within `mlflow.start_run()`."""
    if event.kind in ("step", "evaluation"):
        prefix = f"{event.name}_" if event.kind == "evaluation" else ""
        figures = {"loss": event.loss, "accuracy": event.accuracy}
        mlflow.log_metrics({prefix + name: value for name, value in figures.items() if value == value}, step=event.step)


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    model = {
        "layers": [{"dense": {"units": 16, "activation": "tanh"}}, {"dense": 2}],
        "optimizer": {"rule": "adam", "rate": 0.01},
        "train": {"batch": 50, "epochs": 20, "log_every": 20},
    }
    with mlflow.start_run() as tracked:
        mlflow.log_params({"rate": 0.01, "units": 16})
        run = trireme.train(model, x[:300], y[:300], test=(x[300:], y[300:]), callbacks=[track])
        mlflow.set_tag("hash", run.hash)
        with tempfile.TemporaryDirectory() as place:
            run.export(os.path.join(place, "net.onnx"))
            mlflow.log_artifact(os.path.join(place, "net.onnx"))
    print(f"tracked run {tracked.info.run_id}")
    return tracked, run


if __name__ == "__main__":
    main()
