"""A file system that fails when told to: for tests and simulation.

It keeps its content in `MemoryFiles`, counts every changing call, and applies the faults planned for those
counts: an error before anything is written, a write cut short, or a crash (of the process, or of the
machine) between any two writes or within one. After a crash `survivor` gives the files a new start finds.

The model of a machine's crash: what was synced is there; of what was appended since, any prefix is there,
perhaps with its last bytes torn (garbage). Renames, deletions and truncations are journalled in order.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from broker.storage.files import Buffer
from broker.storage.memory_files import MemoryFile, MemoryFiles, wall_clock_ms


class Crash(BaseException):
    """The simulated process died; nothing of it may run on (hence not an Exception)."""


@dataclass(frozen=True)
class Fault:
    """What happens at one call. ``written`` bytes of an append get through before it."""

    kind: str
    """``error`` or ``crash``."""
    written: int = 0
    error_number: int = errno.EIO


class FaultyFile:
    """An open file of `FaultyFiles`."""

    __slots__ = ("_file", "_files", "known_size")

    def __init__(self, files: FaultyFiles, file: MemoryFile) -> None:
        self._files = files
        self._file = file
        self.known_size = file.size

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def size(self) -> int:
        return self.known_size

    def read_at(self, position: int, size: int) -> bytes:
        self._files.reading("read_at", self.path)
        return self._file.read_at(position, min(size, self.known_size - position))

    def append(self, buffers: Sequence[Buffer]) -> None:
        content = b"".join(buffers)
        fault = self._files.changing("append", self.path)
        if fault is not None:
            self._put(content[: fault.written])
            self._files.apply(fault, self.path)
        self._put(content)
        self.known_size += len(content)

    def _put(self, content: bytes) -> None:
        """Write at the known end, over what a failed append may have left there."""
        if self._file.size > self.known_size:
            self._file.truncate(self.known_size)
        self._file.append([content])

    def truncate(self, size: int) -> None:
        self._files.change("truncate", self.path)
        self._file.truncate(size)
        self.known_size = size
        synced = self._files.synced.get(self._file, 0)
        self._files.synced[self._file] = min(synced, size)

    def sync(self) -> None:
        self._files.change("sync", self.path)
        self._files.synced[self._file] = self._file.size

    def acquire(self) -> None:
        self._file.acquire()

    def release(self) -> None:
        self._files.released(self._file)
        self._file.release()


class FaultyFiles:
    """`MemoryFiles` with a plan of faults: ``faults[n]`` hits the nth changing call (from 0).

    ``calls`` holds the name and path of every changing call so far, for planning and for messages.
    ``fail(name, path part)`` plans an error at the next call of that name on such a path, for good
    until ``heal``.
    """

    def __init__(
        self,
        faults: dict[int, Fault] | None = None,
        *,
        content: MemoryFiles | None = None,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.faults = faults or {}
        self.calls: list[tuple[str, str]] = []
        self.content = content or MemoryFiles(clock_ms=clock_ms)
        self.synced: dict[MemoryFile, int] = {}
        self.crashed = False
        self._open: dict[MemoryFile, FaultyFile] = {}
        self._failing: list[tuple[str, str, Fault]] = []

    # --- the plan -------------------------------------------------------------------------------

    def fail(self, name: str, path_part: str = "", fault: Fault | None = None) -> None:
        """From now on every call ``name`` on a path that contains ``path_part`` meets ``fault``."""
        self._failing.append((name, path_part, fault or Fault("error")))

    def heal(self) -> None:
        """Forget what `fail` planned."""
        self._failing.clear()

    def reading(self, name: str, path: str) -> None:
        """A call that changes nothing: only `fail` and an earlier crash matter."""
        if self.crashed:
            raise Crash(f"{name} {path} after the crash")
        for failing, part, fault in self._failing:
            if failing == name and part in path:
                self.apply(fault, path)

    def changing(self, name: str, path: str) -> Fault | None:
        """Count a changing call and say what hits it."""
        if self.crashed:
            raise Crash(f"{name} {path} after the crash")
        number = len(self.calls)
        self.calls.append((name, path))
        for failing, part, fault in self._failing:
            if failing == name and part in path:
                return fault
        return self.faults.get(number)

    def change(self, name: str, path: str) -> None:
        """A changing call that happens whole or not at all."""
        fault = self.changing(name, path)
        if fault is not None:
            self.apply(fault, path)

    def apply(self, fault: Fault, path: str) -> None:
        """Raise what the fault says."""
        if fault.kind == "crash":
            self.crashed = True
            raise Crash(f"planned crash at {path}")
        raise OSError(fault.error_number, f"planned fault: {os.strerror(fault.error_number)}", path)

    def survivor(self, *, power_loss: Random | None = None) -> MemoryFiles:
        """What the next start finds: everything written, or after a loss of power what the model leaves."""
        if power_loss is not None:
            for file in self.content.all_files():
                synced = self.synced.get(file, 0)
                if file.size > synced:
                    keep = power_loss.randint(synced, file.size)
                    torn = min(keep - synced, power_loss.choice([0, 0, 1, 7, 512]))
                    file.truncate(keep)
                    if torn:
                        file.truncate(keep - torn)
                        file.append([power_loss.randbytes(torn)])
        self.content.forget_locks()
        return self.content

    def released(self, file: MemoryFile) -> None:
        """A reference goes; forget the handle with the last one."""
        if file.references == 1:
            self._open.pop(file, None)

    # --- Files ----------------------------------------------------------------------------------

    def open(self, path: str) -> FaultyFile:
        if not self.content.exists(path):
            self.change("open", path)
        else:
            self.reading("open", path)
        file = self.content.open(path)
        handle = self._open.get(file)
        if handle is None:
            handle = self._open[file] = FaultyFile(self, file)
        return handle

    def read(self, path: str) -> bytes:
        self.reading("read", path)
        return self.content.read(path)

    def exists(self, path: str) -> bool:
        self.reading("exists", path)
        return self.content.exists(path)

    def is_directory(self, path: str) -> bool:
        return self.content.is_directory(path)

    def list(self, path: str) -> list[str]:
        self.reading("list", path)
        return self.content.list(path)

    def size(self, path: str) -> int:
        return self.content.size(path)

    def make_directory(self, path: str) -> None:
        self.change("make_directory", path)
        self.content.make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self.change("rename", source)
        self.content.rename(source, target)

    def delete(self, path: str) -> None:
        if self.content.exists(path):
            self.change("delete", path)
            self.content.delete(path)

    def delete_directory(self, path: str) -> None:
        self.change("delete_directory", path)
        self.content.delete_directory(path)

    def sync_directory(self, path: str) -> None:
        self.change("sync_directory", path)
        self.content.sync_directory(path)

    def sync_volume(self, path: str) -> bool:
        self.change("sync_volume", path)
        for file in self.content.all_files():
            self.synced[file] = file.size
        return True

    def modified_ms(self, path: str) -> int:
        return self.content.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self.change("set_modified_ms", path)
        self.content.set_modified_ms(path, modified_ms)

    def space(self, path: str) -> tuple[int, int]:
        return self.content.space(path)

    def lock(self, path: str) -> bool:
        return self.content.lock(path)

    def unlock(self, path: str) -> None:
        self.content.unlock(path)
