"""Early stopping as Keras has it: ends a run once an evaluation has not improved for so long.

    python examples/python/early_stopping.py
"""

import numpy as np

import trireme


class EarlyStopping:
    """Give it to `train` in `callbacks`; a model with `train.evaluate_every` evaluates on the validation data."""

    def __init__(self, monitor="loss", patience=3, min_delta=0.0, mode="min"):
        self.monitor, self.patience, self.min_delta = monitor, patience, min_delta
        self.sign = 1 if mode == "min" else -1
        self.best, self.best_step, self.waited = np.inf, 0, 0

    def __call__(self, event):
        if event.kind != "evaluation" or event.name != "validation":
            return False
        value = self.sign * {"loss": event.loss, "accuracy": event.accuracy, **event.metrics}[self.monitor]
        if value < self.best - self.min_delta:
            self.best, self.best_step, self.waited = value, event.step, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 20)).astype(np.float32)
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = {
        "layers": [{"dense": {"units": 64, "activation": "relu"}}, {"dense": 2}],
        "optimizer": {"rule": "adam", "rate": 0.01},
        "train": {"batch": 20, "epochs": 100, "evaluate_every": 10, "keep_best": "always"},
    }
    stopping = EarlyStopping(patience=3)
    run = trireme.train(model, x[:100], y[:100], validation=(x[100:], y[100:]), callbacks=[stopping])
    best = trireme.load(run.directory, best=True)
    print(f"ended after step {run.step} of {run.steps}; the best was step {best.step}, and is kept")
    return stopping, run, best


if __name__ == "__main__":
    main()
