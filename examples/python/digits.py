# %% Digits
# The digits of MNIST, which ship with the package, as arrays. The model that ships reads 99 % of the test digits after one
# epoch; on every machine it ends with the hash that is printed here.
import gzip

import numpy as np

import trireme

mnist = trireme.shipped() / "data" / "mnist"


def read(kind):
    images = np.frombuffer(gzip.open(mnist / f"{kind}-images-idx3-ubyte.gz").read(), np.uint8, offset=16)
    labels = np.frombuffer(gzip.open(mnist / f"{kind}-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)
    return images.reshape(-1, 28, 28), labels


train, test = read("train"), read("t10k")
print(train[0].shape, train[0].dtype, test[0].shape)

# %%
# What a model file says about data is replaced by the arrays. `progress=True` shows a bar.
run = trireme.train("mnist-quick", *train, test=test)
print(f"accuracy {run.history[-1]['accuracy']:.2%}")
print("hash", run.hash)

# %%
# The network in use: probabilities of the ten digits for three images, and the digits that it takes for others.
images, digits = test
print(run.predict(images[:3]).round(3).argmax(axis=1), digits[:3])
wrong = np.flatnonzero(run.predict(images).argmax(axis=1) != digits)
print(len(wrong), "of", len(digits), "are read wrong, the first of them number", wrong[0])
