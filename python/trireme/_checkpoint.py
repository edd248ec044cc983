"""Checkpoints as files: found in a run's directory, read whole, written again, their tensors as arrays."""

from __future__ import annotations

import json
import os
import pathlib
import struct
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def newest(directory: str | os.PathLike[str]) -> pathlib.Path:
    """The newest checkpoint of a run's directory, or the checkpoint that `directory` is."""
    place = pathlib.Path(directory)
    if (place / "manifest.json").exists():
        return place
    # Numbers of steps have one width, so the last name is the newest; "checkpoint-best" is a link to one of them.
    folders = [path for path in place.glob("checkpoint-*[0-9]") if path.is_dir()]
    if not folders:
        raise FileNotFoundError(f"{directory} has no checkpoint")
    return max(folders, key=lambda path: path.name)


def read(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """The files of a checkpoint by name."""
    return {file.name: file.read_bytes() for file in pathlib.Path(folder).iterdir() if file.is_file()}


def write(files: dict[str, bytes], folder: str | os.PathLike[str]) -> None:
    """Writes such files into a new folder."""
    place = pathlib.Path(folder)
    place.mkdir(parents=True)
    for name, content in files.items():
        (place / name).write_bytes(content)


def tensors(folder: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The parameters of a checkpoint by name, float32, mapped from its file and read-only."""
    import numpy as np

    path = pathlib.Path(folder) / "parameters.safetensors"
    content = np.memmap(path, np.uint8, "r")
    (length,) = struct.unpack("<Q", content[:8].tobytes())
    head: dict[str, Any] = json.loads(content[8 : 8 + length].tobytes())
    found = {}
    for name, tensor in head.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        values = np.asarray(content[begin:end]).view("<f4").reshape(tensor["shape"])
        found[name] = values
    return found


class Directory:
    """The directory of a run's files: the caller's, or one that is removed with the run."""

    def __init__(self, path: str | None = None) -> None:
        self.temporary = tempfile.TemporaryDirectory(prefix="trireme-") if path is None else None
        self.path = path if self.temporary is None else os.path.join(self.temporary.name, "run")

    def is_used(self) -> bool:
        place = self.path or ""
        return os.path.isdir(place) and any(name.startswith("checkpoint-") for name in os.listdir(place))

    def clear(self) -> None:
        import shutil

        for entry in pathlib.Path(str(self.path)).iterdir():
            if entry.name.startswith("checkpoint-") or entry.name == "journal.jsonl":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
