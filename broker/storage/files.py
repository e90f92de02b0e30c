"""The seam to the file system: everything the log engine reads and writes goes through here.

Three kinds exist: `DiskFiles` (here), `MemoryFiles` (memory_files.py; the same engine without a disk, with
a cap on memory) and `FaultyFiles` (faulty_files.py; errors, short writes and crashes on demand for tests).

Open files are counted: whoever opens or acquires one releases it, and the descriptor goes with the last
reference, so that a reader never meets a closed file, whatever is renamed or deleted meanwhile. A path that
is open already is shared. Only the owner's reference may lose its descriptor to the bound on open ones;
the next use opens it again.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Protocol, cast

Buffer = bytes | bytearray | memoryview

DESCRIPTORS_WANTED = 16_384
"""More than this many open segments at once save nothing: reopening one costs a few microseconds."""

_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_IOV_MAX = 512
_synchronize = getattr(os, "fdatasync", os.fsync)

REFUSED_WRITES = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors that mean "no room": the write is refused, but what is there stays readable and whole."""


class StorageFault(Exception):
    """A directory that cannot be used as it stands; the text says which, why, and what to do."""


def reason_of(error: OSError) -> str:
    """An I/O error in words: what is wrong, and with which file if the system named one."""
    what = error.strerror or str(error)
    return f"{what} ({error.filename})" if error.filename else what


class File(Protocol):
    """One open file: reads anywhere, writes at the end. The opener holds the first reference."""

    path: str

    @property
    def size(self) -> int:
        """Known good bytes; bytes of a failed write beyond it do not exist for readers."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``position`` on, never beyond ``self.size``."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all buffers at the end, or raise OSError and leave ``size`` as it was."""

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes; also removes what a failed append left beyond the end."""

    def sync(self) -> None:
        """Return when the content is on the device."""

    def acquire(self) -> None:
        """One reference more; while more than the owner's exists the descriptor stays open."""

    def release(self) -> None:
        """One reference less; the last one closes the file."""


class Files(Protocol):
    """A tree of directories and files. Paths are absolute, with ``/``; every call may raise OSError."""

    def open(self, path: str) -> File:
        """Open for reading and appending, made empty if missing. Shared if open already."""

    def read(self, path: str) -> bytes:
        """The whole content; raises FileNotFoundError."""

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names of files and directories in a directory, sorted."""

    def size(self, path: str) -> int: ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; no error if it is there."""

    def rename(self, source: str, target: str) -> None:
        """Move a file (replacing the target) or a directory; open files follow."""

    def delete(self, path: str) -> None:
        """Remove a file's name; no error if missing. Open references go on reading."""

    def delete_directory(self, path: str) -> None:
        """Remove a directory and all in it; no error if missing."""

    def sync_directory(self, path: str) -> None:
        """Make renames and new names in a directory durable."""

    def sync_volume(self, path: str) -> bool:
        """Bring everything on the volume of a directory to the device, in one go; False where that cannot be."""

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...

    def space(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume that a directory is on."""

    def lock(self, path: str) -> bool:
        """Take the exclusive lock of a lock file; False if another holder has it."""

    def unlock(self, path: str) -> None: ...


def replace_file(files: Files, path: str, content: bytes, *, durable: bool = True) -> None:
    """Write ``<path>.tmp``, sync it, move it over ``path`` (Kafka's way with all small text files).

    ``durable=False`` leaves the syncing to a later call, for content that can be derived again.
    """
    temporary = path + ".tmp"
    files.delete(temporary)
    file = files.open(temporary)
    try:
        file.append([content])
        if durable:
            file.sync()
    finally:
        file.release()
    files.rename(temporary, path)
    if durable:
        files.sync_directory(os.path.dirname(path))


def _descriptor_bound() -> int:
    """Half of what the process may open: the rest is for connections."""
    try:
        import resource
    except ImportError:  # Windows has no such limit to ask for.
        return 2048
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return DESCRIPTORS_WANTED
    return max(64, min(soft // 2, DESCRIPTORS_WANTED))


class DiskFile:
    """A file of `DiskFiles`; ``_descriptor`` is -1 while the bound on open descriptors has closed it."""

    __slots__ = ("_deleted", "_descriptor", "_files", "_recently_used", "_references", "path", "size")

    def __init__(self, files: DiskFiles, path: str) -> None:
        self.path = path
        self._files = files
        self._references = 1
        self._recently_used = True
        self._deleted = False
        self._descriptor = os.open(path, _OPEN_FLAGS, 0o644)
        self.size = os.fstat(self._descriptor).st_size

    def _open(self) -> int:
        self._recently_used = True
        if self._descriptor < 0:
            # No O_CREAT: a file that vanished under us must fail, not come back empty.
            self._descriptor = os.open(self.path, _OPEN_FLAGS & ~os.O_CREAT)
            self._files.opened(self)
        return self._descriptor

    def read_at(self, position: int, size: int) -> bytes:
        size = min(size, self.size - position)
        if size <= 0:
            return b""
        data = _read(self._open(), size, position)
        if len(data) < size:
            raise OSError(errno.EIO, f"file ends {size - len(data)} bytes before its known end", self.path)
        return data

    def append(self, buffers: Sequence[Buffer]) -> None:
        total = sum(map(len, buffers))
        descriptor = self._open()
        written = _write(descriptor, buffers, self.size) if len(buffers) <= _IOV_MAX else 0
        if written < total:
            rest = memoryview(b"".join(buffers))
            while written < total:
                step = _write(descriptor, [rest[written:]], self.size + written)
                if step <= 0:
                    raise OSError(errno.EIO, "write made no progress", self.path)
                written += step
        self.size += total

    def truncate(self, size: int) -> None:
        os.ftruncate(self._open(), size)
        self.size = size

    def sync(self) -> None:
        _synchronize(self._open())

    def acquire(self) -> None:
        self._open()
        self._references += 1

    def release(self) -> None:
        self._references -= 1
        if self._references == 0:
            self._files.forget(self)
            self.close_descriptor()

    @property
    def pinned(self) -> bool:
        """Whether the descriptor must stay: someone reads, or there is no name left to reopen."""
        return self._references > 1 or self._deleted

    def spare(self) -> bool:
        """For the bound: True if not used since last asked."""
        recently_used, self._recently_used = self._recently_used, False
        return not recently_used and not self.pinned

    def unlinked(self) -> None:
        """The name goes: hold the descriptor, so that reading goes on."""
        self._open()
        self._deleted = True

    def close_descriptor(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if hasattr(os, "pwritev"):

    def _write(descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
        return os.pwritev(descriptor, buffers, position)

    def _read(descriptor: int, size: int, position: int) -> bytes:
        return os.pread(descriptor, size, position)

else:  # Windows: no positional calls, and one loop thread that owns the descriptor.

    def _write(descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.write(descriptor, buffers[0] if len(buffers) == 1 else b"".join(buffers))

    def _read(descriptor: int, size: int, position: int) -> bytes:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, size)


class DiskFiles:
    """Real files, with at most ``max_open`` descriptors of unpinned files kept open."""

    def __init__(self, max_open: int | None = None) -> None:
        self._max_open = _descriptor_bound() if max_open is None else max_open
        self._by_directory: dict[str, dict[str, DiskFile]] = {}
        self._open: dict[DiskFile, None] = {}
        self._locks: dict[str, int] = {}

    def open(self, path: str) -> DiskFile:
        directory, name = os.path.split(path)
        siblings = self._by_directory.setdefault(directory, {})
        shared = siblings.get(name)
        if shared is not None:
            shared.acquire()
            return shared
        try:
            file = DiskFile(self, path)
        except OSError:
            if not siblings:
                del self._by_directory[directory]
            raise
        siblings[name] = file
        self.opened(file)
        return file

    def opened(self, file: DiskFile) -> None:
        """Count a newly opened descriptor and close those unused for longest when over the bound."""
        self._open[file] = None
        if len(self._open) <= self._max_open:
            return
        for candidate in list(self._open)[: max(16, self._max_open // 8)]:
            if candidate is not file and candidate.spare():
                candidate.close_descriptor()
                del self._open[candidate]
            else:
                self._open[candidate] = self._open.pop(candidate)

    def forget(self, file: DiskFile) -> None:
        """The last reference went."""
        self._open.pop(file, None)
        self._unregister(file)

    def _unregister(self, file: DiskFile) -> None:
        directory, name = os.path.split(file.path)
        siblings = self._by_directory.get(directory)
        if siblings is not None and siblings.get(name) is file:
            del siblings[name]
            if not siblings:
                del self._by_directory[directory]

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        if source != target:
            self._drop_name(target)
        os.replace(source, target)
        moved = self._by_directory.pop(source, None)
        if moved is not None:
            for name, file in moved.items():
                file.path = f"{target}/{name}"
            self._by_directory[target] = moved
            return
        directory, name = os.path.split(source)
        renamed = self._by_directory.get(directory, {}).get(name)
        if renamed is not None:
            self._unregister(renamed)
            renamed.path = target
            directory, name = os.path.split(target)
            self._by_directory.setdefault(directory, {})[name] = renamed

    def _drop_name(self, path: str) -> None:
        """A name is about to mean nothing, or another file: readers keep their descriptor."""
        directory, name = os.path.split(path)
        file = self._by_directory.get(directory, {}).get(name)
        if file is not None:
            file.unlinked()
            self._unregister(file)

    def delete(self, path: str) -> None:
        self._drop_name(path)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def delete_directory(self, path: str) -> None:
        try:
            names = os.listdir(path)
        except FileNotFoundError:
            return
        for name in names:
            child = f"{path}/{name}"
            if os.path.isdir(child) and not os.path.islink(child):
                self.delete_directory(child)
            else:
                self.delete(child)
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        if os.name == "nt":  # Directories cannot be opened there.
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_volume(self, path: str) -> bool:
        syncfs = _system_call("syncfs")
        if syncfs is None:
            return False
        import ctypes

        descriptor = os.open(path, os.O_RDONLY)
        try:
            if syncfs(descriptor):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(descriptor)
        return True

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def space(self, path: str) -> tuple[int, int]:
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def lock(self, path: str) -> bool:
        real = os.path.realpath(path)
        # A record lock (what Java's FileChannel.tryLock takes, so that Kafka and we exclude each other)
        # does not exclude its own process: that is what the set is for.
        if real in _LOCKED:
            return False
        descriptor = os.open(path, _OPEN_FLAGS, 0o644)
        try:
            _lock_descriptor(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        _LOCKED.add(real)
        self._locks[path] = descriptor
        return True

    def unlock(self, path: str) -> None:
        descriptor = self._locks.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)
            _LOCKED.discard(os.path.realpath(path))


def _system_call(name: str) -> Callable[[int], int] | None:
    """A function of the C library that takes a descriptor; None where it has none. (syncfs is Linux's.)"""
    import ctypes

    try:
        return cast("Callable[[int], int]", getattr(ctypes.CDLL(None, use_errno=True), name))
    except (AttributeError, OSError, TypeError):
        return None


_LOCKED: set[str] = set()


def _lock_descriptor(descriptor: int) -> None:
    """Take the whole-file record lock without waiting; OSError EACCES or EAGAIN if it is held."""
    try:
        import fcntl
    except ImportError:
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
