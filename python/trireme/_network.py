"""Trained networks in use."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _checkpoint
from . import _layouts as L
from ._arrays import Examples
from ._events import metrics_of
from ._interrupt import Interrupt
from ._library import check, lib, path_of, sized

_FORMATS = {".safetensors": "safetensors", ".onnx": "onnx", ".py": "torch", ".npz": "npz", ".c": "c", ".gguf": "gguf"}


@dataclasses.dataclass(frozen=True)
class Head:
    """One of the losses of a network, and its outputs."""

    #: Of the layer that gives them, or the index of the loss if no layer gives exactly these.
    name: str
    #: "softmax_cross_entropy", ...
    loss: str
    #: Their place in a row of `Network.predict`.
    columns: slice
    #: Whether they are the probabilities of classes.
    classification: bool
    #: Whether each of them is the probability of yes.
    yes_or_no: bool


class Network:
    """A trained network: of a run's directory, or of one checkpoint. It can be pickled and copied.

    Parameters
    ----------
    path : str or path
        a checkpoint, or a directory of checkpoints whose newest good one is taken
    best : bool
        take the checkpoint of the best evaluation
    threads : int
        0: one per processor
    device : str
        as for `train`

    Attributes
    ----------
    name, hash, step
        of the run
    outputs : int
        numbers of the network's answer for an example
    inputs : str
        its input: "28 x 28 x 1 images", "4 numbers", "tokens", "several inputs"
    heads : list of Head
        its losses with their outputs; a network with one loss has one
    classification : bool
        whether the outputs are probabilities of classes
    class_names : list of str or None
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
        self._options: dict[str, Any] = {"best": best, "threads": threads, "device": device}
        self._place: object = None
        self._open()

    def _open(self) -> None:
        settings = sized(
            L.tr_predict_settings,
            checkpoint=self._path,
            device=self._options["device"].encode(),
            threads=self._options["threads"],
            use_average=True,
            best=self._options["best"],
        )
        check(lib.tr_predictor_create(ctypes.byref(settings), ctypes.byref(self._handle)))
        info = sized(L.tr_predict_info)
        check(lib.tr_predictor_info(self._handle, ctypes.byref(info)))
        self.name: str = info.name.decode()
        self.hash: str = info.hash.decode()
        self.step: int = info.step
        self.outputs: int = info.outputs
        self.pixels: tuple[int, int] | None = (info.pixel_height, info.pixel_width) if info.pixel_height else None
        self.classification: bool = info.classification
        self.inputs = _inputs_of(info)
        self._has_accuracy: bool = info.accuracy
        self._columns: int = info.floats
        self.heads = [self._head(number) for number in range(info.heads)]
        self.class_names: list[str] | None = (
            [info.class_names[i].decode("utf-8", "replace") for i in range(info.outputs)] if info.class_names else None
        )

    def __repr__(self) -> str:
        return f"<trireme.Network {self.name!r}: {self.inputs} to {self.outputs}, hash {self.hash[:12]}>"

    def _head(self, number: int) -> Head:
        raw = sized(L.tr_predict_head)
        check(lib.tr_predictor_head(self._handle, number, ctypes.byref(raw)))
        columns = slice(raw.first_output, raw.first_output + raw.outputs)
        name = raw.name.decode() or str(number)
        return Head(name, raw.loss.decode(), columns, raw.classification, raw.yes_or_no)

    def close(self) -> None:
        """Closes the network. It may be called twice."""
        if self._handle:
            lib.tr_predictor_destroy(ctypes.byref(self._handle))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _folder(self) -> str:
        """The checkpoint from which it was read."""
        path = os.fsdecode(self._path)
        best = os.path.join(path, "checkpoint-best")
        return best if self._options["best"] and os.path.exists(best) else str(_checkpoint.newest(path))

    def __getstate__(self) -> dict[str, Any]:
        return {"options": {**self._options, "best": False}, "files": _checkpoint.read(self._folder())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        place = tempfile.TemporaryDirectory(prefix="trireme-")
        self._place = place
        self._handle = ctypes.c_void_p()
        self._options = state["options"]
        folder = os.path.join(place.name, "network")
        _checkpoint.write(state["files"], folder)
        self._path = path_of(folder)
        self._open()

    def _check_open(self) -> None:
        if not self._handle:
            raise ValueError("the network is closed")

    def _frame(self, frame: Any) -> Any:
        """A frame whose columns of names become their numbers; others are not changed."""
        counts = [lib.tr_predictor_category_count(self._handle, column) for column in range(self._columns)]
        if not any(counts) or frame.shape[1] != self._columns:
            return frame
        rows = np.empty(frame.shape, np.float64)
        for column, count in enumerate(counts):
            values = frame.iloc[:, column]
            if not count:
                rows[:, column] = values.to_numpy(dtype=np.float64, na_value=np.nan)
                continue
            known: dict[Any, float] = {}
            for row, (value, missing) in enumerate(zip(values, values.isna())):
                if missing:
                    rows[row, column] = np.nan
                    continue
                if value not in known:
                    number = ctypes.c_float()
                    check(lib.tr_predictor_category(self._handle, column, str(value).encode(), ctypes.byref(number)))
                    known[value] = number.value
                rows[row, column] = known[value]
        return rows

    def _view(self, x: Any, y: Any = None, class_names: Sequence[str] | None = None) -> ctypes.c_void_p:
        self._check_open()
        view = ctypes.c_void_p()
        if hasattr(x, "iloc") and len(x.shape) == 2:
            x = self._frame(x)
        if not isinstance(x, Mapping) or hasattr(x, "iloc"):
            with Examples(x, y, class_names).open() as source:
                check(lib.tr_predictor_view(self._handle, source.handle, ctypes.byref(view)))
            return view
        with contextlib.ExitStack() as stack:
            given = (L.tr_named_source * len(x))()
            for number, (name, values) in enumerate(x.items()):
                source = stack.enter_context(Examples(values, y if number == 0 else None, class_names).open())
                given[number] = L.tr_named_source(name.encode(), source.handle)
            check(lib.tr_predictor_view_inputs(self._handle, given, len(x), ctypes.byref(view)))
        return view

    def _texts(self, texts: Sequence[str]) -> np.ndarray:
        self._check_open()
        rows = np.empty((len(texts), self.outputs), np.float32)
        for row, text in zip(rows, texts):
            address = row.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
            check(lib.tr_predictor_text(self._handle, text.encode(), address))
        return rows

    def predict(self, x: Any) -> np.ndarray:
        """The outputs of the network.

        Parameters
        ----------
        x : array
            as for `train`; a list of strings for a network that reads text; a dict for one that takes several inputs; a
            frame of pandas whose columns are those of the table, with strings where `categories` has names

        Returns
        -------
        float32 array [count, outputs]
            probabilities of classes, or values. Of networks whose outputs are of tokens the rows are those of all tokens,
            one example after the other; of networks whose outputs are of pixels [count, height, width, outputs].
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
            return int(interrupt.came)

        listener = L.tr_prediction_listener(take)
        view = self._view(x)
        try:
            count = lib.tr_source_info(view).contents.count
            every = L.tr_example_range(0, count)
            with Interrupt() as interrupt:
                status = lib.tr_predictor_run(self._handle, view, ctypes.byref(every), 1, listener, None)
            if interrupt.came:
                raise KeyboardInterrupt
            check(status)
        finally:
            lib.tr_source_close(ctypes.byref(view))
        rows = np.concatenate(parts)
        return rows.reshape(count, *self.pixels, self.outputs) if self.pixels else rows

    def predict_by_name(self, x: Any) -> dict[str, np.ndarray]:
        """The outputs of each loss.

        Parameters
        ----------
        x : array
            as for `predict`

        Returns
        -------
        dict of float32 arrays [count, outputs of the loss]
            by the names that `heads` gives the losses; views of the array that `predict` returns
        """
        rows = self.predict(x)
        return {head.name: rows[:, head.columns] for head in self.heads}

    def evaluate(self, x: Any, y: Any, class_names: Sequence[str] | None = None) -> dict[str, float]:
        """Figures over examples with their true classes or values.

        Parameters
        ----------
        x, y : arrays
            as for `train`
        class_names : list of str
            the classes in their order, if y has names; default: those of the network

        Returns
        -------
        dict
            "loss", "accuracy" of classes, 0..1, and the metrics that the job has
        """
        loss, accuracy = ctypes.c_double(), ctypes.c_double()
        view = self._view(x, y, class_names if class_names is not None else self.class_names)
        try:
            check(lib.tr_predictor_evaluate(self._handle, view, ctypes.byref(loss), ctypes.byref(accuracy), None))
        finally:
            lib.tr_source_close(ctypes.byref(view))
        figures = {"loss": loss.value}
        if self._has_accuracy and not math.isnan(accuracy.value):
            figures["accuracy"] = accuracy.value
        metrics = lib.tr_predictor_metrics(self._handle)
        if metrics:
            figures.update(metrics_of(metrics.contents))
        return figures

    def generate(
        self,
        prompt: str | None = None,
        *,
        source: str | None = None,
        tokens: int = 500,
        temperature: float | None = None,
        top_k: int = 0,
        seed: int = 1,
    ) -> str:
        """Text with which a language model continues a prompt, or which it makes of another text.

        Parameters
        ----------
        prompt : str
            the beginning of the text; default: a line feed, or nothing where the network writes whole texts
        source : str
            the other text, of a network that takes two
        tokens : int
            how many at most; a network that writes whole texts may end before
        temperature : float
            scores are divided by it; 0 takes the likeliest token each time; default: 0 with a source, else 1
        top_k : int
            draw among so many likeliest tokens; 0: among all
        seed : int
            equal seeds draw equal texts

        Returns
        -------
        str
            the text after the prompt, which is not repeated
        """
        self._check_open()
        pieces: list[bytes] = []

        def take(_user: Any, piece: Any, length: int) -> int:
            pieces.append(ctypes.string_at(piece, length))
            return int(interrupt.came)

        settings = sized(
            L.tr_generate_settings,
            prompt=None if prompt is None else prompt.encode(),
            source=None if source is None else source.encode(),
            tokens=tokens,
            temperature=temperature if temperature is not None else 1.0 if source is None else 0.0,
            top_k=top_k,
            seed=seed,
        )
        listener = L.tr_text_listener(take)
        with Interrupt() as interrupt:
            status = lib.tr_predictor_generate(self._handle, ctypes.byref(settings), listener, None)
        if interrupt.came:
            raise KeyboardInterrupt
        check(status)
        return b"".join(pieces).decode("utf-8", "replace")

    def export(self, path: str | os.PathLike[str], format: str | None = None, *, merge: bool = False) -> None:
        """Writes the network for other programs.

        Parameters
        ----------
        path : str or path
            its ending chooses the format: .safetensors, .onnx, .py (PyTorch), .npz, .c, .gguf
        format : str
            the format instead of the ending: "safetensors", "onnx", "torch", "npz", "c", "gguf", "hub",
            "peft"
        merge : bool
            merge adapters into the weights beside them
        """
        ending = os.path.splitext(os.fspath(path))[1]
        chosen = format or _FORMATS.get(ending)
        if chosen is None:
            raise ValueError(f"no format goes with {ending!r}; give format=, one of {sorted(_FORMATS.values())}")
        exporter = ctypes.c_void_p()
        settings = sized(L.tr_export_settings, checkpoint=self._path, use_average=True, best=self._options["best"], merge=merge)
        check(lib.tr_exporter_create(ctypes.byref(settings), ctypes.byref(exporter)))
        try:
            check(lib.tr_exporter_write(exporter, chosen.encode(), path_of(path)))
        finally:
            lib.tr_exporter_destroy(ctypes.byref(exporter))


def _inputs_of(info: Any) -> str:
    if info.features == L.TR_FEATURE_IMAGE:
        return f"{info.height} x {info.width} x {info.channels} images"
    if info.features == L.TR_FEATURE_TOKENS:
        return "tokens"
    if info.height:
        return f"{info.height} x {info.width} x {info.channels} images of numbers"
    return f"{info.floats} numbers" if info.floats else "several inputs"


def load(path: str | os.PathLike[str], *, best: bool = False, threads: int = 0, device: str = "cpu") -> Network:
    """The network of a run's directory or of a checkpoint.

    Parameters
    ----------
    path : str or path
        a checkpoint, or a directory of checkpoints whose newest good one is taken
    best : bool
        take the checkpoint of the best evaluation
    threads : int
        0: one per processor
    device : str
        as for `train`

    Returns
    -------
    Network
        opened; close it by `close` or a `with`
    """
    return Network(path, best=best, threads=threads, device=device)
