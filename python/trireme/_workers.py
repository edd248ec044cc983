"""`train(workers=N)`: processes of this host that share a job, as `trireme launch` starts them.

The calling process is rank 0, and N - 1 others are started for the run, each a Python that loads only the library. They
get the examples by shared memory without a name, into which they are copied once. They end with the run, and with the
calling process, however that ends; `train` raises their errors.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _errors
from . import _layouts as L
from ._arrays import TYPES, Examples, check_room
from ._library import PACKAGE, check, lib
from ._settings import Settings

#: Seconds for the others to end once this process has ended its part, well or not.
_LEAVE = 10.0
_ALIGNMENT = 64


class Memory:
    """Examples in memory that processes share; the given arrays are replaced by views of it."""

    def __init__(self, data: Sequence[tuple[str, Examples]]) -> None:
        self.described: list[dict[str, Any]] = []
        self.bytes = 0
        for name, examples in data:
            places = {}
            for member, array in examples.arrays.items():
                kind = self._kind(examples, member, array)
                places[member] = {"offset": self.bytes, "type": TYPES[kind], "shape": list(array.shape)}
                self.bytes += -(-array.size * kind.itemsize // _ALIGNMENT) * _ALIGNMENT
            described = {"name": name, "arrays": places, "tokens": examples.tokens}
            self.described.append({**described, "vocabulary": examples.vocabulary, "class_names": examples.class_names})
        self.descriptor = -1
        if self.bytes:
            check_room("the examples that the workers share", self.bytes)
            self._fill(data)

    @staticmethod
    def _kind(examples: Examples, member: str, array: np.ndarray) -> np.dtype[Any]:
        """Numbers are stored in the type in which the network computes."""
        whole = array.dtype.kind == "i" and array.dtype.itemsize > 2  # 16 bits are kept: they say their range
        wide = array.dtype == np.float64 or (member == "features" and not examples.tokens and whole)
        return np.dtype(np.float32) if wide else array.dtype

    def _fill(self, data: Sequence[tuple[str, Examples]]) -> None:
        self.descriptor = os.memfd_create("trireme-examples", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, self.bytes)
        shared = mmap.mmap(self.descriptor, self.bytes)
        kinds: dict[Any, Any] = {code: kind for kind, code in TYPES.items()}
        for (_, examples), described in zip(data, self.described):
            for member, place in described["arrays"].items():
                view = np.ndarray(place["shape"], kinds[place["type"]], shared, place["offset"])
                view[...] = examples.arrays[member]
                examples.arrays[member] = view

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class _Worker:
    """A process, and its result."""

    def __init__(self, rank: int, process: subprocess.Popen[str]) -> None:
        self.rank = rank
        self.process = process
        self.status: int | None = None
        self.message = ""
        self.thread: threading.Thread | None = None

    def attend(self, orders: str, group: Any) -> None:
        """Sends the process its orders, waits for its end, and reports that to the others."""
        try:
            said, errors = self.process.communicate(orders)
        except (OSError, ValueError):
            said, errors = "", ""
            self.process.wait()
        try:
            result = json.loads(said.splitlines()[-1])
            self.status, self.message = result["status"], result["message"]
        except (IndexError, ValueError, KeyError, TypeError):
            self.message = "\n".join(errors.strip().splitlines()[-3:])
        lib.tr_local_group_ended(group, self.rank)

    def failure(self) -> _errors.Error | None:
        """The error that this process had first, not because of others."""
        if self.status is not None:
            if self.status in (L.TR_OK, L.TR_EINTERRUPTED, L.TR_EPEER):
                return None
            return _errors.make(self.status, f"worker {self.rank}: {self.message}")
        code = self.process.returncode or 0
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return _errors.make(L.TR_EPEER, f"worker {self.rank} {how}" + (f": {self.message}" if self.message else ""))


class Workers:
    """The other processes of a job, until close()."""

    def __init__(self, count: int, settings: Settings, data: Sequence[tuple[str, Examples]]) -> None:
        self.workers: list[_Worker] = []
        self.killed = False
        self.group = ctypes.c_void_p()
        check(lib.tr_local_group_create(count, ctypes.byref(self.group)))
        self.memory: Memory | None = None
        try:
            self.memory = Memory(data)
            for rank in range(1, count):
                self._start(rank, settings)
        except BaseException:
            self.kill()
            self.close()
            raise

    def _transport(self, rank: int, descriptor: int) -> str:
        text = ctypes.create_string_buffer(L.TR_LOCAL_TRANSPORT_SIZE)
        check(lib.tr_local_group_transport(self.group, rank, descriptor, text, len(text)))
        return text.value.decode()

    def own_transport(self) -> str:
        """The transport of this process. The library takes and closes its descriptor."""
        return self._transport(0, os.dup(lib.tr_local_group_descriptor(self.group)))

    def _start(self, rank: int, settings: Settings) -> None:
        from multiprocessing import spawn

        memory: Any = self.memory
        orders = {
            "parent": os.getpid(),
            "transport": self._transport(rank, -1),
            "settings": dataclasses.asdict(settings),
            "memory": memory.descriptor,
            "bytes": memory.bytes,
            "data": memory.described,
        }
        shared = [lib.tr_local_group_descriptor(self.group), *([memory.descriptor] if memory.bytes else [])]
        begin = f"import sys; sys.path.insert(0, {os.path.dirname(PACKAGE)!r}); from trireme._worker import main; main()"
        executable = os.fsdecode(spawn.get_executable() or sys.executable)
        # `-S` leaves out other packages; Ctrl-C is blocked from the start.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(
                [executable, "-S", "-c", begin],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=shared,
                text=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        worker = _Worker(rank, process)
        self.workers.append(worker)
        worker.thread = threading.Thread(target=worker.attend, args=(json.dumps(orders), self.group), daemon=True)
        worker.thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether all have ended by then."""
        end = time.monotonic() + seconds
        for worker in self.workers:
            if worker.thread is not None:
                worker.thread.join(max(0.0, end - time.monotonic()))
        return not any(worker.thread is not None and worker.thread.is_alive() for worker in self.workers)

    def failure(self) -> _errors.Error | None:
        """The cause of the end, if it was one of them: its own error, rather than its mere end."""
        self.wait(_LEAVE)
        ended = [worker for worker in self.workers if worker.process.returncode is not None]
        found = [failure for failure in (worker.failure() for worker in ended) if failure is not None]
        return min(found, key=lambda failure: failure.status == L.TR_EPEER, default=None)

    def kill(self) -> None:
        for worker in self.workers:
            worker.process.kill()

    def close(self) -> None:
        """Waits for all, and ends those that do not leave."""
        if not self.wait(_LEAVE):
            self.kill()
            self.wait(_LEAVE)
        for worker in self.workers:
            if worker.thread is None:
                worker.process.wait()
        if self.memory is not None:
            self.memory.close()
        lib.tr_local_group_destroy(ctypes.byref(self.group))
