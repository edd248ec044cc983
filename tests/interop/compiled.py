"""The C export of a run, compiled: the logits of the trainer, to the bit."""

import ctypes
import subprocess

import numpy as np

from common import place


class Ours:
    """The logits of the trainer, to the bit: the C export, compiled."""

    def __init__(self, name):
        source, library = place(f"{name}.c"), place(f"{name}.so")
        subprocess.run(["cc", "-O1", "-march=native", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        program = ctypes.CDLL(library)
        self.predict, self.probabilities = program.net_predict, getattr(program, "net_probabilities", None)
        sizes = {}  # some are made of others
        with open(source, encoding="utf-8") as file:
            for line in file:
                words = line.split("/*")[0].split(None, 2)
                if words[:1] == ["#define"] and words[1].startswith("NET_"):
                    sizes[words[1]] = eval(words[2], {}, sizes)
        self.output = np.zeros(sizes["NET_OUTPUTS"], np.float32)
        self.workspace = np.zeros(sizes["NET_WORKSPACE"], np.float32)

    def __call__(self, example):
        """`example`: pixels [height, width, channels] or tokens [length]."""
        example = np.ascontiguousarray(example, np.int32 if example.ndim == 1 else np.float32)
        length = [ctypes.c_int32(len(example))] if example.ndim == 1 else []
        self.predict(example.ctypes, *length, self.output.ctypes, self.workspace.ctypes)
        return self.output.tolist()

    def of_numbers(self, example):
        """Scores and probabilities of numbers [inputs]."""
        example = np.ascontiguousarray(example, np.float32)
        probabilities = np.zeros_like(self.output)
        self.predict(example.ctypes, self.output.ctypes, self.workspace.ctypes)
        self.probabilities(self.output.ctypes, probabilities.ctypes)
        return self.output.tolist(), probabilities.tolist()

    def of_tokens(self, example):
        """Scores behind every token."""
        example = np.ascontiguousarray(example, np.int32)
        output = np.zeros((len(example), len(self.output)), np.float32)
        self.predict(example.ctypes, ctypes.c_int32(len(example)), output.ctypes, self.workspace.ctypes)
        return output.tolist()
