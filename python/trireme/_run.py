"""Runs: the results of training."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _checkpoint
from . import _layouts as L
from ._checkpoint import Directory
from ._events import History
from ._library import lib, path_of, sized, text_of

if TYPE_CHECKING:
    import numpy as np

    from ._network import Network


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a notebook's stop button, ended a training after a step, which is saved.

    Attributes
    ----------
    run : Run
        up to that step: `train(..., resume=run)` continues it
    """

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


class Run:
    """A finished or stopped run.

    It can be pickled and copied: its newest checkpoint and its journal go along.

    Attributes
    ----------
    hash : str
        SHA-256 of the parameters: equal runs have equal hashes, on any machine
    history : History
        records of steps and evaluations, dicts; `history.to_pandas()`
    step, steps : int
        steps done, and to do in all
    name : str
        of the model
    class_names : list of str or None
        names of the classes where the labels were strings
    """

    def __init__(
        self,
        *,
        directory: Directory,
        history: Sequence[dict[str, Any]],
        hash: str,
        step: int,
        steps: int,
        name: str,
        class_names: list[str] | None,
    ) -> None:
        self._directory = directory
        self.history = History(history)
        self.hash = hash
        self.step = step
        self.steps = steps
        self.name = name
        self.class_names = class_names
        self._forget()

    def _forget(self) -> None:
        self._network: Network | None = None
        self._weights: dict[str, np.ndarray] | None = None

    @property
    def directory(self) -> str:
        """The directory of its checkpoints and its journal."""
        return str(self._directory.path)

    @property
    def receipt(self) -> str | None:
        """The path of its receipt, which `trireme verify` takes; None if the job has no `train.receipt`."""
        path = os.path.join(self.directory, "run.receipt")
        return path if os.path.exists(path) else None

    def __repr__(self) -> str:
        return f"<trireme.Run {self.name!r}: step {self.step} of {self.steps}, hash {self.hash[:12]}>"

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """Parameters by name, float32 arrays in the layers' shapes; read-only."""
        if self._weights is None:
            self._weights = _checkpoint.tensors(_checkpoint.newest(self.directory))
        return self._weights

    @property
    def network(self) -> Network:
        """The network of its newest checkpoint."""
        from ._network import Network

        if self._network is None:
            self._network = Network(self.directory)
            self._network._place = self._directory  # whose files are removed when they are not needed
        return self._network

    def predict(self, x: Any) -> np.ndarray:
        """The outputs of the network of its newest checkpoint.

        Parameters
        ----------
        x : array
            as for `Network.predict`

        Returns
        -------
        float32 array [count, outputs]
            as those of `Network.predict`
        """
        return self.network.predict(x)

    def predict_by_name(self, x: Any) -> dict[str, np.ndarray]:
        """The outputs of each loss.

        Parameters
        ----------
        x : array
            as for `Network.predict`

        Returns
        -------
        dict of float32 arrays [count, outputs of the loss]
            by the names that `Network.heads` gives the losses
        """
        return self.network.predict_by_name(x)

    def evaluate(self, x: Any, y: Any) -> dict[str, float]:
        """Figures over examples with their true classes or values.

        Parameters
        ----------
        x, y : arrays
            as for `train`; classes have the same numbers as there

        Returns
        -------
        dict
            as that of `Network.evaluate`
        """
        return self.network.evaluate(x, y, class_names=self.class_names)

    def generate(self, prompt: str | None = None, **options: Any) -> str:
        """Text with which a language model continues a prompt, or which it makes of another text.

        Parameters
        ----------
        prompt : str
            the beginning of the text; default: as for `Network.generate`
        **options
            as for `Network.generate`

        Returns
        -------
        str
            the text after the prompt
        """
        return self.network.generate(prompt, **options)

    def export(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Writes the network for other programs.

        Parameters
        ----------
        path : str or path
            its ending chooses the format, as for `Network.export`
        format : str
            the format instead of the ending
        """
        self.network.export(path, format)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Copies its directory, checkpoints and journal; `load` reads the copy, and the command.

        Parameters
        ----------
        directory : str or path
            the new one, which does not exist yet
        """
        import shutil

        shutil.copytree(self.directory, directory, symlinks=True)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The run as a page of HTML.

        Parameters
        ----------
        path : str or path
            a file that the page is written to, too

        Returns
        -------
        str
            the page
        """
        settings = sized(L.tr_report_settings, examples=True)
        runs = (ctypes.c_char_p * 1)(path_of(self.directory))
        page = text_of(lib.tr_report, runs, 1, ctypes.byref(settings))
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def diff(self, other: Run | str | os.PathLike[str]) -> str:
        """Whether this and another run are equal, and where they diverge.

        Parameters
        ----------
        other : Run, str or path
            a run, or its directory

        Returns
        -------
        str
            in words
        """
        equal = ctypes.c_bool()
        place = other.directory if isinstance(other, Run) else other
        return text_of(lib.tr_diff, path_of(self.directory), path_of(place), ctypes.byref(equal))

    def curves(self, key: str = "loss", width: int = 72, height: int = 12) -> str:
        """The curve of one figure as text, for a terminal.

        Parameters
        ----------
        key : str
            "loss", "accuracy" or another figure of the history
        width, height : int
            characters and lines

        Returns
        -------
        str
            lines: `*` training, `o` evaluations
        """
        return self.history.curves(key, width, height)

    def __getstate__(self) -> dict[str, Any]:
        folder = _checkpoint.newest(self.directory)
        journal = os.path.join(self.directory, "journal.jsonl")
        state = {**self.__dict__, "_network": None, "_weights": None, "_directory": None}
        state["_files"] = (folder.name, _checkpoint.read(folder))
        if os.path.exists(journal):
            with open(journal, "rb") as file:
                state["_journal"] = file.read()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        name, files = state.pop("_files")
        journal = state.pop("_journal", None)
        self.__dict__.update(state)
        self._directory = Directory()
        _checkpoint.write(files, os.path.join(self.directory, name))
        if journal is not None:
            with open(os.path.join(self.directory, "journal.jsonl"), "wb") as file:
                file.write(journal)

    def _repr_html_(self) -> str:
        from ._curves import pictures

        return pictures(self.report(), repr(self)[1:-1])
