"""A search by Optuna that ends hopeless runs early.

    python examples/python/optuna_pruning.py
"""

import numpy as np
import optuna

import trireme


class Pruning:
    """Tells a trial of each evaluation; what it raises for one that is to be pruned comes out of `train`."""

    def __init__(self, trial):
        self.trial = trial

    def __call__(self, event):
        if event.kind == "evaluation":
            self.trial.report(event.loss, event.step)
            if self.trial.should_prune():
                raise optuna.TrialPruned()


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    model = {
        "layers": [{"dense": {"units": 16, "activation": "tanh"}}, {"dense": 2}],
        "optimizer": {"rule": "adam", "rate": 0.01},
        "train": {"batch": 50, "epochs": 20, "evaluate_every": 12},
    }

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
        sets = dict(x=x[:300], y=y[:300], validation=(x[300:], y[300:]))
        run = trireme.train(model, **sets, set={"optimizer.rate": rate}, callbacks=[Pruning(trial)])
        return run.evaluate(x[300:], y[300:])["loss"]

    sampler, pruner = optuna.samplers.RandomSampler(seed=1), optuna.pruners.MedianPruner(n_startup_trials=4)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    study.optimize(objective, n_trials=12)
    pruned = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.PRUNED]
    print(f"{len(pruned)} of {len(study.trials)} runs were pruned; best rate {study.best_params['rate']:.2g}")
    return study


if __name__ == "__main__":
    main()
