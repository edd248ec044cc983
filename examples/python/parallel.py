# %% Two workers, one hash
# A job of four microbatches, on one process and on two that `train` starts. They share the examples in memory.
import numpy as np

import trireme

rng = np.random.default_rng(0)
x = rng.normal(size=(4000, 20)).astype(np.float32)
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int)

model = """
layers: [{dense: {units: 64, activation: relu}}, {dense: {units: 64, activation: relu}}, {dense: 2}]
optimizer: {rule: adam, rate: 3e-3}
train: {batch: 100, microbatches: 4, epochs: 5}
"""
alone = trireme.train(model, x, y)
print("1 process   ", alone.hash)

# %%
# Synchronous strategies share the steps in different ways, and come to equal weights, bit for bit.
for strategy in ("allreduce", "parameter-server", "pipeline"):
    run = trireme.train(model, x, y, workers=2, strategy=strategy)
    print(f"{strategy:16}", run.hash[:32], run.hash == alone.hash)

# %%
# A run that was stopped goes on with another number of workers, to the hash that it would have had.
stopped = trireme.train(model, x, y, workers=2, callbacks=[lambda event: event.kind == "step" and event.step >= 100])
print(stopped.step < stopped.steps, trireme.train(x=x, y=y, resume=stopped, workers=4).hash == alone.hash)
