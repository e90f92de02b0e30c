"""Files kept in memory: `--memory` nodes and tests run the same log engine over them."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from threading import Lock

from broker.storage.files import Buffer


def wall_clock_ms() -> int:
    """What a disk would stamp a changed file with."""
    return time.time_ns() // 1_000_000


class MemoryFile:
    """A file of `MemoryFiles`: bytes, and a count of who still reads them."""

    __slots__ = ("_files", "content", "deleted", "modified_ms", "path", "references")

    def __init__(self, files: MemoryFiles, path: str) -> None:
        self.path = path
        self.content = bytearray()
        self.modified_ms = files.clock_ms()
        self._files = files
        self.references = 0
        self.deleted = False

    @property
    def size(self) -> int:
        return len(self.content)

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(memoryview(self.content)[position : position + max(size, 0)])

    def append(self, buffers: Sequence[Buffer]) -> None:
        total = sum(map(len, buffers))
        self._files.reserve(total)
        for buffer in buffers:
            self.content += buffer
        self.modified_ms = self._files.clock_ms()

    def truncate(self, size: int) -> None:
        if size > len(self.content):
            raise OSError(errno.EINVAL, f"cannot cut {len(self.content)} bytes to {size}", self.path)
        self._files.free(len(self.content) - size)
        del self.content[size:]
        self.modified_ms = self._files.clock_ms()

    def sync(self) -> None:
        """Memory is as durable as it gets."""

    def acquire(self) -> None:
        self.references += 1

    def release(self) -> None:
        self.references -= 1
        if self.references == 0 and self.deleted:
            self.discard()

    def discard(self) -> None:
        """The bytes of a nameless file that nobody reads any more."""
        self._files.free(len(self.content))
        self.content = bytearray()


class MemoryFiles:
    """A tree in memory. ``max_bytes`` caps the content of all files; past it appends raise OSError ENOSPC
    with a text that names ``setting``."""

    def __init__(
        self,
        max_bytes: int | None = None,
        *,
        setting: str = "max_bytes",
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        self.clock_ms = clock_ms
        self._setting = setting
        # The one thing that a thread of the cleaner shares with the loop: both write, each its own files.
        self._counting = Lock()
        # Directory -> name -> file, or None for a directory.
        self._directories: dict[str, dict[str, MemoryFile | None]] = {"/": {}}
        self._locks: set[str] = set()

    def reserve(self, size: int) -> None:
        """Count ``size`` bytes more; OSError ENOSPC when the cap would be passed."""
        with self._counting:
            if self.max_bytes is not None and self.used_bytes + size > self.max_bytes:
                raise OSError(
                    errno.ENOSPC,
                    f"memory for logs is used up: {self.used_bytes} bytes held, {size} more wanted, "
                    f"{self._setting} is {self.max_bytes}",
                )
            self.used_bytes += size

    def free(self, size: int) -> None:
        """Count ``size`` bytes less."""
        with self._counting:
            self.used_bytes -= size

    def all_files(self) -> list[MemoryFile]:
        """Every file of the tree, in the order of paths."""
        return [
            file
            for _directory, names in sorted(self._directories.items())
            for _name, file in sorted(names.items(), key=lambda item: item[0])
            if file is not None
        ]

    def forget_locks(self) -> None:
        """Whoever held a lock is gone, and so are the open references."""
        self._locks.clear()
        for file in self.all_files():
            file.references = 0

    def _file(self, path: str) -> MemoryFile:
        directory, name = os.path.split(path)
        file = self._directories.get(directory, {}).get(name)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return file

    def open(self, path: str) -> MemoryFile:
        directory, name = os.path.split(path)
        names = self._directories.get(directory)
        if names is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", directory)
        if name in names and names[name] is None:
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        file = names.get(name)
        if file is None:
            file = names[name] = MemoryFile(self, path)
        file.references += 1
        return file

    def read(self, path: str) -> bytes:
        return bytes(self._file(path).content)

    def exists(self, path: str) -> bool:
        directory, name = os.path.split(path)
        return path in self._directories or name in self._directories.get(directory, {})

    def is_directory(self, path: str) -> bool:
        return path in self._directories

    def list(self, path: str) -> list[str]:
        names = self._directories.get(path)
        if names is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return sorted(names)

    def size(self, path: str) -> int:
        return self._file(path).size

    def make_directory(self, path: str) -> None:
        if path in self._directories:
            return
        parent, name = os.path.split(path)
        self.make_directory(parent)
        if self._directories[parent].get(name) is not None:
            raise FileExistsError(errno.EEXIST, "is a file", path)
        self._directories[path] = {}
        self._directories[parent][name] = None

    def rename(self, source: str, target: str) -> None:
        source_parent, source_name = os.path.split(source)
        target_parent, target_name = os.path.split(target)
        if source in self._directories:
            if self._directories.get(target):
                raise OSError(errno.ENOTEMPTY, "directory is not empty", target)
            self._move_directory(source, target)
            del self._directories[source_parent][source_name]
            self._directories[target_parent][target_name] = None
            return
        file = self._file(source)
        if source == target:
            return
        self.delete(target)
        del self._directories[source_parent][source_name]
        self._directories[target_parent][target_name] = file
        file.path = target

    def _move_directory(self, source: str, target: str) -> None:
        names = self._directories[target] = self._directories.pop(source)
        for name, file in names.items():
            if file is None:
                self._move_directory(f"{source}/{name}", f"{target}/{name}")
            else:
                file.path = f"{target}/{name}"

    def delete(self, path: str) -> None:
        directory, name = os.path.split(path)
        file = self._directories.get(directory, {}).pop(name, None)
        if file is not None:
            file.deleted = True
            if file.references == 0:
                file.discard()

    def delete_directory(self, path: str) -> None:
        if path not in self._directories:
            return
        for name, file in list(self._directories[path].items()):
            if file is None:
                self.delete_directory(f"{path}/{name}")
            else:
                self.delete(f"{path}/{name}")
        del self._directories[path]
        parent, name = os.path.split(path)
        self._directories[parent].pop(name, None)

    def sync_directory(self, path: str) -> None:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)

    def sync_volume(self, path: str) -> bool:
        return True

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._file(path).modified_ms = modified_ms

    def space(self, path: str) -> tuple[int, int]:
        total = self.max_bytes if self.max_bytes is not None else 1 << 62
        return total, total - self.used_bytes

    def lock(self, path: str) -> bool:
        if path in self._locks:
            return False
        self.open(path).release()
        self._locks.add(path)
        return True

    def unlock(self, path: str) -> None:
        self._locks.discard(path)
