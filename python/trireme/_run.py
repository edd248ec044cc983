"""Runs: what training gives back, and trained networks in use."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _layouts as L
from ._arrays import Source
from ._library import check, lib, path_of, sized, text_of


@dataclasses.dataclass(frozen=True)
class Event:
    """What happens in a run, see docs/python.md. Figures that mean nothing for a kind are NaN, 0 or empty."""

    kind: str  #: "step", "progress", "evaluation", "checkpoint", "warning", "shares" or "end"
    step: int  #: steps done
    steps: int  #: to do in all
    epoch: float
    loss: float
    accuracy: float
    rate: float
    gradient_norm: float
    examples: int
    seconds: float
    examples_per_second: float
    name: str  #: the data of an evaluation, the path of a checkpoint, the text of a warning
    hash: str
    best: bool
    perplexity: float
    metrics: dict[str, float]

    def record(self) -> dict[str, Any]:
        """The figures that mean something, as a record of the history."""
        record: dict[str, Any] = {"kind": self.kind, "step": self.step, "epoch": self.epoch, "loss": self.loss}
        if not math.isnan(self.accuracy):
            record["accuracy"] = self.accuracy
        if self.kind == "evaluation":
            record["set"] = self.name
            record.update(self.metrics)
        else:
            record["examples_per_second"] = self.examples_per_second
        return record


class History(list):  # type: ignore[type-arg]
    """Records of a run, dicts: of each reported step and each evaluation."""

    def to_pandas(self) -> Any:
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame(list(self))


class Run:
    """A finished or stopped run.

    Attributes
    ----------
    hash : SHA-256 of the parameters: equal runs have equal hashes, on any machine
    history : records of steps and evaluations
    weights : parameters by name, float32 arrays
    step, steps : steps done, and to do in all
    directory : where its checkpoints and its journal are
    """

    def __init__(
        self,
        *,
        directory: Any,
        history: Sequence[dict[str, Any]],
        weights: dict[str, np.ndarray],
        hash: str,
        step: int,
        steps: int,
        name: str,
        class_names: list[str] | None,
    ) -> None:
        self._directory = directory
        self.history = History(history)
        self.weights = weights
        self.hash = hash
        self.step = step
        self.steps = steps
        self.name = name
        self.class_names = class_names
        self._network: Network | None = None

    @property
    def directory(self) -> str:
        return str(self._directory.path)

    def __repr__(self) -> str:
        return f"<trireme.Run {self.name!r}: step {self.step} of {self.steps}, hash {self.hash[:12]}>"

    @property
    def network(self) -> Network:
        """The network of its newest checkpoint."""
        if self._network is None:
            self._network = Network(self.directory)
        return self._network

    def predict(self, x: Any) -> np.ndarray:
        """As `Network.predict`."""
        return self.network.predict(x)

    def evaluate(self, x: Any, y: Any) -> dict[str, float]:
        """As `Network.evaluate`."""
        return self.network.evaluate(x, y, class_names=self.class_names)

    def generate(self, prompt: str = "\n", **options: Any) -> str:
        """As `Network.generate`."""
        return self.network.generate(prompt, **options)

    def export(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Writes the network for other programs: the format follows from the name's ending unless it is given."""
        self.network.export(path, format)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Copies its directory, checkpoints and journal, to a new one; `load` reads it."""
        import shutil

        shutil.copytree(self.directory, directory, symlinks=True)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The run as a page of HTML; also written to `path` if that is given."""
        settings = sized(L.tr_report_settings, examples=True)
        runs = (ctypes.c_char_p * 1)(path_of(self.directory))
        page = text_of(lib.tr_report, runs, 1, ctypes.byref(settings))
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def diff(self, other: Run) -> str:
        """Whether two runs are equal, and where they part, in words."""
        equal = ctypes.c_bool()
        return text_of(lib.tr_diff, path_of(self.directory), path_of(other.directory), ctypes.byref(equal))

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a run's network lives in a directory: save(directory) it, and load(directory) it there")

    def _repr_html_(self) -> str:
        import base64

        page = base64.b64encode(self.report().encode()).decode()
        return f'<iframe src="data:text/html;base64,{page}" width="100%" height="600" style="border:0"></iframe>'


_FORMATS = {".safetensors": "safetensors", ".onnx": "onnx", ".py": "torch", ".npz": "npz", ".c": "c"}


class Network:
    """A trained network: of a run's directory, or of one checkpoint.

    Parameters
    ----------
    path : a checkpoint, or a directory of checkpoints whose newest good one is taken
    best : take the checkpoint of the best evaluation
    threads, device : as for `train`
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        best: bool = False,
        threads: int = 0,
        device: str = "cpu",
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._path = path_of(path)
        self._best = best
        settings = sized(
            L.tr_predict_settings,
            checkpoint=self._path,
            device=device.encode(),
            threads=threads,
            use_average=True,
            best=best,
        )
        check(lib.tr_predictor_create(ctypes.byref(settings), ctypes.byref(self._handle)))
        info = sized(L.tr_predict_info)
        check(lib.tr_predictor_info(self._handle, ctypes.byref(info)))
        self.name: str = info.name.decode()
        self.hash: str = info.hash.decode()
        self.step: int = info.step
        self.outputs: int = info.outputs
        self.classification: bool = info.classification
        self.features: int = info.features
        self._of_tokens: bool = info.of_tokens
        self.class_names: list[str] | None = (
            [info.class_names[i].decode("utf-8", "replace") for i in range(info.outputs)] if info.class_names else None
        )

    def close(self) -> None:
        """Lets the network go. It may be called twice."""
        if self._handle:
            lib.tr_predictor_destroy(ctypes.byref(self._handle))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _view(self, x: Any, y: Any = None, class_names: Sequence[str] | None = None) -> ctypes.c_void_p:
        view = ctypes.c_void_p()
        with Source(x, y, class_names) as source:
            check(lib.tr_predictor_view(self._handle, source.handle, ctypes.byref(view)))
        return view

    def _texts(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.empty((len(texts), self.outputs), np.float32)
        for row, text in zip(rows, texts):
            address = row.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
            check(lib.tr_predictor_text(self._handle, text.encode(), address))
        return rows

    def predict(self, x: Any) -> np.ndarray:
        """The outputs of the network, float32 [count, outputs]: probabilities of classes, or values.

        `x` is as for `train`; a list of strings for a network that reads text. Of networks whose outputs are of tokens
        the rows are those of all tokens, one example after the other.
        """
        if isinstance(x, str):
            x = [x]
        if isinstance(x, (list, tuple)) and x and isinstance(x[0], str):
            return self._texts(x)
        parts: list[np.ndarray] = []

        def take(_user: Any, raw: Any) -> int:
            found = ctypes.cast(raw, ctypes.POINTER(L.tr_prediction)).contents
            rows = np.ctypeslib.as_array(found.output, (found.rows, self.outputs))
            parts.append(rows.copy())
            return 0

        listener = L.tr_prediction_listener(take)
        view = self._view(x)
        try:
            count = lib.tr_source_info(view).contents.count
            every = L.tr_example_range(0, count)
            check(lib.tr_predictor_run(self._handle, view, ctypes.byref(every), 1, listener, None))
        finally:
            lib.tr_source_close(ctypes.byref(view))
        return np.concatenate(parts)

    def evaluate(self, x: Any, y: Any, class_names: Sequence[str] | None = None) -> dict[str, float]:
        """Loss, accuracy (of classes) and metrics over examples with what is true of them."""
        loss, accuracy = ctypes.c_double(), ctypes.c_double()
        view = self._view(x, y, class_names)
        try:
            check(
                lib.tr_predictor_evaluate(self._handle, view, ctypes.byref(loss), ctypes.byref(accuracy), None)
            )
        finally:
            lib.tr_source_close(ctypes.byref(view))
        figures = {"loss": loss.value}
        if not math.isnan(accuracy.value):
            figures["accuracy"] = accuracy.value
        metrics = lib.tr_predictor_metrics(self._handle)
        if metrics:
            figures.update({name: value for name, value in _metrics(metrics.contents)})
        return figures

    def generate(
        self, prompt: str = "\n", *, tokens: int = 500, temperature: float = 1.0, top_k: int = 0, seed: int = 1
    ) -> str:
        """Text that a language model goes on with after the prompt, which is not repeated."""
        pieces: list[bytes] = []

        def take(_user: Any, piece: Any, length: int) -> int:
            pieces.append(ctypes.string_at(piece, length))
            return 0

        settings = sized(
            L.tr_generate_settings,
            prompt=prompt.encode(),
            tokens=tokens,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
        )
        listener = L.tr_text_listener(take)
        check(lib.tr_predictor_generate(self._handle, ctypes.byref(settings), listener, None))
        return b"".join(pieces).decode("utf-8", "replace")

    def export(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """As `Run.export`."""
        ending = os.path.splitext(os.fspath(path))[1]
        chosen = format or _FORMATS.get(ending)
        if chosen is None:
            raise ValueError(f"no format goes with {ending!r}; give format=, one of {sorted(_FORMATS.values())}")
        exporter = ctypes.c_void_p()
        settings = sized(L.tr_export_settings, checkpoint=self._path, use_average=True, best=self._best)
        check(lib.tr_exporter_create(ctypes.byref(settings), ctypes.byref(exporter)))
        try:
            check(lib.tr_exporter_write(exporter, chosen.encode(), path_of(path)))
        finally:
            lib.tr_exporter_destroy(ctypes.byref(exporter))


def _metrics(found: Any) -> Iterator[tuple[str, float]]:
    for i in range(found.count):
        yield found.metric[i].name.decode(), found.metric[i].value


def load(path: str | os.PathLike[str], *, best: bool = False, threads: int = 0, device: str = "cpu") -> Network:
    """The network of a run's directory or of a checkpoint."""
    return Network(path, best=best, threads=threads, device=device)
