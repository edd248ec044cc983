"""train(): a job from a model and data, carried out."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _errors
from . import _layouts as L
from ._arrays import Examples
from ._checkpoint import Directory
from ._job import Data, Model, take_changes, take_model, take_strategy
from ._library import check, lib, sized
from ._interrupt import Interrupt
from ._listen import Callback, Listener, progress as bar
from ._network import Network
from ._run import Interrupted, Run
from ._settings import Settings
from ._start import Start, path_of, state_of
from ._workers import Workers


def train(
    model: Model | None = None,
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
    workers: int = 1,
    strategy: str | Mapping[str, Any] | None = None,
    threads: int = 0,
    device: str = "cpu",
    isa: str | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: Run | str | os.PathLike[str] | None = None,
    from_: Start | None = None,
    teacher: Run | Network | str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
) -> Run:
    """Trains a network. Equal models, data and seeds give equal weights, to the bit, on any machine.

    Parameters
    ----------
    model : path, str, dict or list of layers
        path of a model file, name of one that ships ("mnist-quick"), its text in YAML, a dict of the same form, or a list
        of layers, which stands for `layers.model(list)`. Not needed with `resume`
    x : array
        training examples; without them the model's own `data:` are taken. uint8 [count, height, width] or [count, height,
        width, channels]: images; numbers [count] or [count, n]: rows of a table; numbers but uint8 [count, steps, n]:
        sequences of vectors, and [count, height, width, channels]: images of numbers; `Tokens`; a dict of these: several
        inputs
    y : array
        the targets. Integers or strings [count]: classes; floats [count] or [count, n]: values; integers in the
        form of the tokens: a class of each token; integers [count, height, width]: a class of each pixel, none where they
        are negative
    validation, test : (x, y)
        further examples. Every `train.evaluate_every` steps of the model, if it is not 0, the validation examples are
        evaluated, or the test examples where there are none; in the end the test examples
    standardize : bool
        shift and scale each number to mean 0 and deviation 1 over the training data
    missing : str
        "mean": a number that is NaN becomes the mean of the training data; None: NaN is an error
    set : dict or list of str
        changes to the model: {"optimizer.rate": 1e-3} or ["optimizer.rate=1e-3"]
    seed, steps, epochs : int
        in place of the model's
    workers : int
        processes that share the job: this one and workers - 1 that are started for it; they get the examples by shared
        memory. At most as many as microbatches
    strategy : str or dict
        how they share it, in place of the model's: "pipeline", "local-sgd,every=8", {"parameter-server": {"mode": "async"}}.
        Synchronous ones end with the hash of one process
    threads : int
        of each process; 0: one per processor, shared out evenly. Changes the speed, never the result
    device, isa : str
        "cpu", "gpu", ...; likewise
    out : path
        directory for checkpoints and the journal; None: one that goes with the returned run
    overwrite : bool
        whether a directory with another run's checkpoints may be cleared
    resume : Run or path
        a run, or its directory, to go on with: to the hash that it would have had
    from_ : Run, Network, path or dict of arrays
        what parameters of this network begin with instead of initial values: those of another one with equal names
        and shapes, of which it takes the moving averages where there are some; or arrays by name, as `Run.weights`
    teacher : Run, Network or path
        a trained network whose scores are learned beside the labels (distillation), as `distill` of the model says
    callbacks : list of functions
        called with each `Event`; a true result ends the run after the step under way
    progress : bool
        show a bar (needs tqdm)

    Returns
    -------
    Run
        the network, its hash and the history of its training

    Raises
    ------
    Error
        and its kinds, with the library's message; what goes wrong in a worker has "worker N" in front. What a callback
        raises ends the run and comes out of here; so does `Interrupted`, a KeyboardInterrupt, after the step under way was
        finished and saved: its `run` is what `resume` takes.
    """
    if workers < 1:
        raise ValueError(f"workers: {workers}; 1 is this process alone")
    data = Data()
    options = {"standardize": standardize, "missing": missing}
    if x is not None:
        data.add("train", x, y, options)
    for name, pair in (("validation", validation), ("test", test)):
        if pair is not None:
            data.add(name, *pair, options)
    directory = _directory(out, resume)
    settings = Settings(
        **(take_model(model) if model is not None else {}),
        # Data of a checkpoint's job are found by their names in it.
        set=[*(data.set if model is not None else []), *take_changes(set)],
        device=device,
        threads=threads,
        isa=isa,
        out=directory.path,
        seed=seed,
        steps=steps or 0,
        epochs=epochs or 0,
        strategy=take_strategy(strategy),
    )
    if resume is not None:
        settings.resume = resume.directory if isinstance(resume, Run) else os.fspath(resume)
    elif directory.is_used():
        if not overwrite:
            raise FileExistsError(f"{directory.path} has checkpoints of a run; resume it, or set overwrite=True")
        directory.clear()
    if from_ is not None and resume is not None:
        raise ValueError("resume goes on with a run, from_ begins a new one; give one of them")
    settings.from_ = path_of(from_) if from_ is not None else None
    settings.teacher = path_of(teacher) if teacher is not None else None
    weights = from_ if isinstance(from_, Mapping) else None
    history: list[dict[str, Any]] = list(resume.history) if isinstance(resume, Run) else []
    listener = Listener([*callbacks, *([bar()] if progress else [])], history)
    class_names = data.class_names or (resume.class_names if isinstance(resume, Run) else None)
    return _Job(settings, data.examples, listener, directory, class_names, weights).carry_out(workers)


def _directory(out: Any, resume: Any) -> Directory:
    if out is not None:
        return Directory(os.fspath(out))
    if isinstance(resume, Run):
        return resume._directory
    return Directory(os.fspath(resume) if resume is not None else None)


class _Job:
    """A training in progress."""

    def __init__(
        self,
        settings: Settings,
        examples: list[tuple[str, Examples]],
        listener: Listener,
        directory: Directory,
        class_names: list[str] | None,
        weights: Mapping[str, Any] | None,
    ) -> None:
        self.settings = settings
        self.examples = examples
        self.listener = listener
        self.directory = directory
        self.class_names = class_names
        self.weights = weights
        self.begun = False

    def carry_out(self, workers: int) -> Run:
        if workers == 1:
            return self._train(None)
        # Errors in the model are reported before other processes are started.
        plan = sized(L.tr_train_plan)
        check(lib.tr_train_plan(ctypes.byref(self.settings.raw(None, [])), ctypes.byref(plan)))
        # The initial values of this process count; the others only need to know that there are some.
        from_ = "the first process" if self.weights is not None else self.settings.from_
        others = Workers(workers, dataclasses.replace(self.settings, from_=from_), self.examples)
        try:
            return self._train(others)
        except _errors.Error as error:
            cause = others.failure() if isinstance(error, _errors.PeerError) else None
            if cause is not None:
                raise cause from error
            others.kill()
            raise
        except KeyboardInterrupt:
            if not self.begun:
                others.kill()
            raise
        except BaseException:
            others.kill()
            raise
        finally:
            others.close()

    def _train(self, others: Workers | None) -> Run:
        with contextlib.ExitStack() as stack:
            data = [(name, stack.enter_context(examples.open())) for name, examples in self.examples]
            transport = others.own_transport() if others is not None else None
            stop, trainer = ctypes.c_void_p(), ctypes.c_void_p()
            check(lib.tr_stop_create(ctypes.byref(stop)))
            stack.callback(lib.tr_stop_destroy, ctypes.byref(stop))
            interrupt = stack.enter_context(Interrupt(lambda: lib.tr_stop_set(stop, 1)))
            settings = self.settings.raw(transport, data, stop)
            if self.weights is not None:
                settings.from_state = stack.enter_context(state_of(self.weights, self.settings, data))
            status, message = interrupt.call(lib.tr_trainer_create, ctypes.byref(settings), ctypes.byref(trainer))
            if interrupt.came and status == L.TR_EINTERRUPTED:
                raise KeyboardInterrupt("before the first step; nothing was trained")
            if status != L.TR_OK:
                raise _errors.make(status, message)
            stack.callback(lib.tr_trainer_destroy, ctypes.byref(trainer))
            self.begun = True
            self.listener.accuracies = self._info(trainer).classification
            self._run(trainer, interrupt)
            return self._result(trainer)

    def _run(self, trainer: Any, interrupt: Interrupt) -> None:
        status = lib.tr_trainer_run(trainer, self.listener.function, None)
        message = lib.tr_error_message().decode("utf-8", "replace")
        if self.listener.raised is not None:
            raise self.listener.raised
        if interrupt.came and status in (L.TR_OK, L.TR_EINTERRUPTED):
            run = self._result(trainer)
            where = f"stopped after step {run.step}, which is saved in {run.directory}"
            raise Interrupted(f"{where}; train(..., resume=error.run) goes on, where error is this exception", run)
        if status != L.TR_OK and not (status == L.TR_EINTERRUPTED and self.listener.stopped):
            raise _errors.make(status, message)

    @staticmethod
    def _info(trainer: Any) -> Any:
        info = sized(L.tr_train_info)
        check(lib.tr_trainer_info(trainer, ctypes.byref(info)))
        return info

    def _result(self, trainer: Any) -> Run:
        digits = ctypes.create_string_buffer(65)
        check(lib.tr_trainer_hash(trainer, digits))
        info = self._info(trainer)
        return Run(
            directory=self.directory,
            history=self.listener.history,
            hash=digits.value.decode(),
            step=info.step,
            steps=info.steps,
            name=info.name.decode(),
            class_names=self.class_names,
        )
