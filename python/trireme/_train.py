"""train(): a job from a model and data, carried out."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import pathlib
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _layouts as L
from ._arrays import Source, inputs_of
from ._library import check, lib, path_of, sized
from ._run import Event, Run

log = logging.getLogger("trireme")

Callback = Callable[[Event], Any]

_KINDS = {
    L.TR_EVENT_STEP: "step",
    L.TR_EVENT_PROGRESS: "progress",
    L.TR_EVENT_EVALUATION: "evaluation",
    L.TR_EVENT_CHECKPOINT: "checkpoint",
    L.TR_EVENT_WARNING: "warning",
    L.TR_EVENT_END: "end",
    L.TR_EVENT_SHARES: "shares",
}


def _event(raw: Any) -> Event:
    metrics: dict[str, float] = {}
    if raw.metrics:
        found = raw.metrics.contents
        for i in range(found.count):
            metrics[found.metric[i].name.decode()] = found.metric[i].value
    return Event(
        kind=_KINDS.get(raw.kind, str(raw.kind)),
        step=raw.step,
        steps=raw.steps,
        epoch=raw.epoch,
        loss=raw.loss,
        accuracy=raw.accuracy,
        rate=raw.rate,
        gradient_norm=raw.gradient_norm,
        examples=raw.examples,
        seconds=raw.seconds,
        examples_per_second=raw.examples_per_second,
        name=(raw.name or b"").decode("utf-8", "replace"),
        hash=(raw.hash or b"").decode(),
        best=raw.best,
        perplexity=raw.perplexity,
        metrics=metrics,
    )


class _Model:
    """A model file, by path, name or text."""

    def __init__(self, model: str | os.PathLike[str] | Mapping[str, Any]) -> None:
        self.path: bytes | None = None
        self.text: bytes | None = None
        self.name = b"model"
        if isinstance(model, Mapping):
            self.text = json.dumps(model, ensure_ascii=False, indent=1).encode()
        elif isinstance(model, str) and ("\n" in model or ": " in model):
            self.text = model.encode()
        else:
            self.path = self._find(model)

    @staticmethod
    def _find(model: str | os.PathLike[str]) -> bytes:
        """A file, or the name of a model that ships."""
        path = pathlib.Path(model)
        shipped = _shipped() / "models" / f"{model}.yaml"
        if not path.exists() and path.name == str(model) and not path.suffix and shipped.exists():
            path = shipped
        return os.fsencode(path)


def _shipped() -> pathlib.Path:
    """Where the models and data are that ship with the package."""
    named = os.environ.get("TRIREME_SHIPPED")
    return pathlib.Path(named) if named else pathlib.Path(__file__).resolve().parent / "_native" / "share" / "trireme"


class _Data:
    """The sets that come from memory, and how the model file names them."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.names: list[bytes] = []
        self.set: list[str] = []
        self.class_names: list[str] | None = None

    def add(self, name: str, x: Any, y: Any, options: Mapping[str, Any]) -> None:
        inputs = inputs_of(x)
        extra = "".join(f", {key}: {json.dumps(value)}" for key, value in options.items() if value not in (None, False))
        if inputs is None:
            self._source(name, x, y)
            self.set.append(f"data.{name}={{memory: {{name: {name}{extra}}}}}")
            return
        parts = []
        for number, (key, values) in enumerate(inputs.items()):
            self._source(f"{name}.{key}", values, y if number == 0 else None)
            parts.append(f"{key}: {{memory: {{name: {json.dumps(f'{name}.{key}')}}}}}")
        self.set.append(f"data.{name}={{join: {{sources: {{{', '.join(parts)}}}}}}}")

    def _source(self, name: str, x: Any, y: Any) -> None:
        source = Source(x, y, self.class_names if name != "train" and y is not None else None)
        self.class_names = self.class_names or source.class_names
        self.sources.append(source)
        self.names.append(name.encode())

    def described(self) -> Any:
        return (L.tr_named_source * len(self.sources))(
            *[L.tr_named_source(name, source.handle) for name, source in zip(self.names, self.sources)]
        )

    def close(self) -> None:
        for source in self.sources:
            source.close()


class _Listener:
    """Hears the run, tells the callbacks, and keeps what they raise until the run has ended."""

    def __init__(self, callbacks: Sequence[Callback], history: list[dict[str, Any]]) -> None:
        self.callbacks = callbacks
        self.history = history
        self.raised: BaseException | None = None
        self.stopped = False
        self.hash = ""
        self.checkpoint = ""
        self.function = L.tr_train_listener(self._hear)

    def _hear(self, _user: Any, raw: Any) -> int:
        try:
            return int(self._tell(_event(ctypes.cast(raw, ctypes.POINTER(L.tr_train_event)).contents)))
        except BaseException as error:  # noqa: B036 - it is raised again when the run has ended in good order
            self.raised = self.raised or error
            return 1

    def _tell(self, event: Event) -> bool:
        if event.kind in ("step", "evaluation"):
            self.history.append(event.record())
        elif event.kind == "warning":
            log.warning("%s", event.name)
        elif event.kind == "checkpoint":
            self.checkpoint = event.name
            log.info("step %d: saved %s", event.step, event.name)
        elif event.kind == "end":
            self.hash = event.hash
        # All are told, also when one of them asks for the end.
        self.stopped |= any([bool(callback(event)) for callback in self.callbacks])
        return self.stopped


def _progress() -> Callback:
    from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

    bar: Any = None

    def tell(event: Event) -> None:
        nonlocal bar
        if event.kind not in ("progress", "step", "end"):
            return
        if bar is None:
            bar = tqdm(total=event.steps, initial=0, unit="step")
        bar.update(event.step - bar.n)
        if event.kind != "end":
            bar.set_postfix(loss=f"{event.loss:.4g}", refresh=False)
        else:
            bar.close()

    return tell


def train(
    model: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    x: Any = None,
    y: Any = None,
    *,
    validation: tuple[Any, Any] | None = None,
    test: tuple[Any, Any] | None = None,
    standardize: bool = False,
    missing: str | None = None,
    set: Mapping[str, Any] | Iterable[str] = (),
    seed: int | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    threads: int = 0,
    device: str = "cpu",
    isa: str | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: Run | str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
) -> Run:
    """Trains a network. Equal models, data and seeds give equal weights, to the bit, on any machine.

    Parameters
    ----------
    model : path of a model file, name of one that ships ("mnist-quick"), its text in YAML, or a dict of the same
        form. Not needed with `resume`.
    x, y : training examples and what is to be learned of them; without `x` the model's own `data:` are taken.
        x: uint8 [count, height, width(, channels)] images, numbers [count, n], `Tokens`, or a dict of several inputs.
        y: integers or strings [count] as classes, floats [count(, n)] as values.
    validation, test : pairs (x, y) of further examples
    standardize : shift and scale each number to mean 0 and deviation 1 over the training data
    missing : "mean": a number that is NaN becomes the mean of the training data; None: NaN is an error
    set : changes to the model: {"optimizer.rate": 1e-3} or ["optimizer.rate=1e-3"]
    seed, steps, epochs : in place of the model's
    threads : 0 for one per processor; changes the speed, never the result
    device, isa : "cpu", "opencl", ...; likewise
    out : directory for checkpoints and the journal; None: one that goes with the returned run
    overwrite : whether a directory with another run's checkpoints may be cleared
    resume : a run, or its directory, to go on with: to the hash that it would have had
    callbacks : called with each `Event`; a true result ends the run after the step under way
    progress : show a bar (needs tqdm)

    Returns
    -------
    Run

    Raises
    ------
    Error
        and its kinds, with the library's message. What a callback raises ends the run and comes out of here; so does
        KeyboardInterrupt, after the step under way was finished and saved: `train(..., resume=directory)` goes on.
    """
    settings = sized(L.tr_train_settings, device=device.encode(), threads=threads, trace_steps=100)
    data = _Data()
    options = {"standardize": standardize, "missing": missing}
    directory = _directory(out, resume)
    try:
        if model is not None:
            found = _Model(model)
            settings.model, settings.model_text, settings.model_name = found.path, found.text, found.name
        if x is not None:
            data.add("train", x, y, options)
        for name, pair in (("validation", validation), ("test", test)):
            if pair is not None:
                data.add(name, *pair, options)
        changes = [f"{key}={_value(value)}" for key, value in set.items()] if isinstance(set, Mapping) else list(set)
        # Data of a checkpoint's job are found by the names that it has.
        changes = [*(data.set if model is not None else []), *changes]
        settings.set = (ctypes.c_char_p * len(changes))(*[change.encode() for change in changes])
        settings.set_count = len(changes)
        settings.data = data.described()
        settings.data_count = len(data.sources)
        settings.isa = isa.encode() if isa else None
        settings.has_seed, settings.seed = seed is not None, seed or 0
        settings.steps, settings.epochs = steps or 0, epochs or 0
        settings.out = path_of(directory.path)
        if resume is not None:
            settings.resume = path_of(resume.directory if isinstance(resume, Run) else resume)
        elif _is_used(directory.path):
            if not overwrite:
                raise FileExistsError(f"{directory.path} has checkpoints of a run; resume it, or set overwrite=True")
            directory.clear()
        history: list[dict[str, Any]] = list(resume.history) if isinstance(resume, Run) else []
        listener = _Listener([*callbacks, *([_progress()] if progress else [])], history)
        return _carry_out(settings, listener, directory, data)
    finally:
        data.close()


class _Directory:
    """Where a run's files are: the caller's, or one that is removed with the run."""

    def __init__(self, path: str, temporary: tempfile.TemporaryDirectory[str] | None) -> None:
        self.path = path
        self.temporary = temporary

    def clear(self) -> None:
        import shutil

        for entry in pathlib.Path(self.path).iterdir():
            if entry.name.startswith("checkpoint-") or entry.name == "journal.jsonl":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def _directory(out: Any, resume: Any) -> _Directory:
    if out is not None:
        return _Directory(os.fspath(out), None)
    if isinstance(resume, Run):
        directory: _Directory = resume._directory
        return directory
    if resume is not None:
        return _Directory(os.fspath(resume), None)
    temporary = tempfile.TemporaryDirectory(prefix="trireme-")
    return _Directory(os.path.join(temporary.name, "run"), temporary)


def _is_used(path: str) -> bool:
    return os.path.isdir(path) and any(name.startswith("checkpoint-") for name in os.listdir(path))


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _step(trainer: Any) -> int:
    info = sized(L.tr_train_info)
    check(lib.tr_trainer_info(trainer, ctypes.byref(info)))
    return int(info.step)


def _weights(trainer: Any) -> dict[str, Any]:
    import numpy as np

    weights = {}
    for index in range(lib.tr_trainer_parameter_count(trainer)):
        info = sized(L.tr_parameter_info)
        check(lib.tr_trainer_parameter_at(trainer, index, ctypes.byref(info)))
        values = np.empty(tuple(info.shape[: info.dimensions]), np.float32)
        address = values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        check(lib.tr_trainer_parameter(trainer, info.name, address, info.count))
        weights[info.name.decode()] = values
    return weights


class _Interrupt:
    """Ctrl-C during a run asks it to end. Python's own handler would raise where a callback of the library begins, and be
    lost there; this one notes it, and `train` raises after the run has ended in good order."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.came = False
        self.before: Any = None

    def __enter__(self) -> _Interrupt:
        mine = threading.current_thread() is threading.main_thread()
        if mine and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: Any) -> None:
        self.came = True
        lib.tr_trainer_stop(self.trainer)

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)


def _carry_out(settings: Any, listener: _Listener, directory: _Directory, data: _Data) -> Run:
    trainer = ctypes.c_void_p()
    check(lib.tr_trainer_create(ctypes.byref(settings), ctypes.byref(trainer)))
    try:
        with _Interrupt(trainer) as interrupt:
            status = lib.tr_trainer_run(trainer, listener.function, None)
        if listener.raised is not None:
            raise listener.raised
        if interrupt.came:
            raise KeyboardInterrupt(f"step {_step(trainer)} is saved in {directory.path}; resume goes on with it")
        if not (status == L.TR_EINTERRUPTED and listener.stopped):
            check(status)
        digits = ctypes.create_string_buffer(65)
        check(lib.tr_trainer_hash(trainer, digits))
        info = sized(L.tr_train_info)
        check(lib.tr_trainer_info(trainer, ctypes.byref(info)))
        return Run(
            directory=directory,
            history=listener.history,
            weights=_weights(trainer),
            hash=digits.value.decode(),
            step=info.step,
            steps=info.steps,
            name=info.name.decode(),
            class_names=data.class_names,
        )
    finally:
        lib.tr_trainer_destroy(ctypes.byref(trainer))


if sys.version_info < (3, 9):
    raise ImportError("trireme needs Python 3.9 or newer")
