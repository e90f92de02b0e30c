"""The log directories of a node: found, identified, locked; one that cannot be used goes offline, the others go on.

Source: LogManager (which directories live), MetaPropertiesEnsemble.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from broker.storage.files import Files, StorageFault, reason_of
from broker.storage.log_directory import LogDirectory, new_uuid
from wire.primitives import uuid_text

WAY_OUT = "mend it, or name another (--data, log.dirs)"


class LogDirectories:
    """``by_path`` holds every directory of log.dirs, those that failed included."""

    def __init__(
        self,
        files: Files,
        paths: Sequence[str],
        metadata_path: str | None,
        chance: Random,
        *,
        on_failure: Callable[[LogDirectory, OSError], None],
    ) -> None:
        """``metadata_path`` is that of metadata.log.dir: without it there is no node. ``on_failure`` hears of each
        directory that goes offline, once; of those that cannot be used at the start when another can."""
        self.by_path = {path: LogDirectory(files, path) for path in paths}
        self.cluster_id = ""
        self._metadata_path = metadata_path
        # One that holds no partitions of topics: it is identified and locked as the others, and no more.
        self._metadata_directory: LogDirectory | None = None
        if metadata_path is not None and metadata_path not in self.by_path:
            self._metadata_directory = LogDirectory(files, metadata_path)
        self._chance = chance
        self._on_failure = on_failure
        self._untold: list[tuple[LogDirectory, OSError]] = []

    def look(self, *, cluster_id: str | None, node_id: int) -> None:
        """Read each directory's meta.properties and what is in it; nothing is changed.

        Without ``cluster_id`` the directories say it, or a new one is made. Raises StorageFault for a directory that is
        another broker's or holds something else, if that of the metadata cannot be used, and if none can.
        """
        for directory in self._used():
            self._try(directory, directory.look)
        known = next((each.identity.cluster_id for each in self._used() if each.identity.cluster_id), None)
        self.cluster_id = cluster_id or known or uuid_text(new_uuid(self._chance))
        for directory in self._used():
            directory.refuse_foreign(self.cluster_id, node_id)
        self.require_one()

    def open(self, *, cluster_id: str | None, node_id: int) -> None:
        """Lock the directories, and say in new ones whose they are.

        Raises StorageFault as ``look`` does, and if a directory is in use.
        """
        if not self.cluster_id:
            self.look(cluster_id=cluster_id, node_id=node_id)
        for directory in self._used():
            self._try(directory, directory.lock)
        for directory in self._used():
            self._try(directory, partial(directory.settle_identity, self.cluster_id, node_id, self._chance))
        self.require_one()

    def live(self) -> list[LogDirectory]:
        """Those that can be used for the partitions of topics."""
        return [directory for directory in self.by_path.values() if directory.failure is None]

    def _used(self) -> list[LogDirectory]:
        return [*self.live(), *([] if self._metadata_directory is None else [self._metadata_directory])]

    def _try(self, directory: LogDirectory, act: Callable[[], None]) -> None:
        """A directory that cannot be used goes offline. Raises StorageFault for that of the metadata."""
        try:
            act()
        except OSError as error:
            if directory.path == self._metadata_path:
                settings = "--data, log.dirs" if directory.path in self.by_path else "metadata.log.dir"
                raise StorageFault(
                    f"log directory {directory.path} cannot be used: {reason_of(error)}; the cluster's metadata is to "
                    f"lie there: mend it, or name another ({settings})"
                ) from error
            directory.failure = reason_of(error)
            self._untold.append((directory, error))

    def require_one(self) -> None:
        """Raise StorageFault if no directory is left."""
        if not self.live():
            why = "; ".join(f"{path}: {each.failure}" for path, each in self.by_path.items())
            raise StorageFault(f"no log directory of log.dirs can be used: {why}; {WAY_OUT}")
        untold, self._untold = self._untold, []
        for directory, error in untold:
            self._on_failure(directory, error)

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """A directory goes offline, if it is not yet."""
        if directory.failure is None:
            directory.failure = reason_of(error)
            self._on_failure(directory, error)

    def ids(self, *, failed: bool) -> Mapping[str, bytes]:
        """Directory id of each that failed, or of each that did not, by path; zeros where it was never read."""
        return {
            each.path: each.identity.directory_id or bytes(16)
            for each in self.by_path.values()
            if (each.failure is not None) == failed
        }

    @property
    def previous_broker_epoch(self) -> int:
        """Broker epoch of the last clean stop; -1 if a directory had none, failed, or they differ."""
        epochs = {each.last_broker_epoch if each.failure is None else -1 for each in self.by_path.values()}
        return epochs.pop() if len(epochs) == 1 else -1

    def unlock(self) -> None:
        """Let other processes have them."""
        for directory in filter(None, (*self.by_path.values(), self._metadata_directory)):
            directory.unlock()
