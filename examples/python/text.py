# %% Text
# Sentences of film reviews, good or bad. Words become numbers: the 2,000 that come most often, and 0 for all others.
import collections

import numpy as np

import trireme
from trireme import layers


def read(name):
    lines = (trireme.shipped() / "data" / "sst2" / name).read_text(encoding="utf-8").splitlines()
    sentences, labels = zip(*(line.split("\t") for line in lines))
    return [sentence.split() for sentence in sentences], np.array(labels, int)


(sentences, labels), (new, answers) = read("train.tsv"), read("test.tsv")
counts = collections.Counter(word for sentence in sentences for word in sentence)
numbers = {word: number for number, (word, _) in enumerate(counts.most_common(2000), 1)}


def tokens(sentences):
    return trireme.Tokens([[numbers.get(word, 0) for word in sentence] for sentence in sentences], vocabulary=2001)


print(len(sentences), "sentences; the first:", " ".join(sentences[0][:6]), "...")

# %%
# Sentences have as many words as they have: `Tokens` takes a list of lists.
net = [layers.embedding(32), layers.global_average_pool(), layers.dropout(0.3), layers.dense(2)]
model = layers.model(net, optimizer={"rule": "adam", "rate": 3e-3}, train={"batch": 64, "epochs": 6})
run = trireme.train(model, tokens(sentences), labels, test=(tokens(new), answers))
print(f"accuracy {run.history[-1]['accuracy']:.3f}")

# %%
# The probability that a sentence is meant well.
for sentence in ("a moving and beautiful film", "dull and far too long"):
    print(f"{run.predict(tokens([sentence.split()]))[0, 1]:.2f}", sentence)
