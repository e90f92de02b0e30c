"""The aborted transactions of a segment, for readers of committed data (`<base>.txnindex`).

34-byte entries ordered by last offset; the file is made with the first one. Source: TransactionIndex,
AbortedTxn (KIP-98).
"""

from __future__ import annotations

from broker.storage.files import File, Files
from wire.log_files import (
    TRANSACTION_INDEX_ENTRY,
    AbortedTransactionEntry,
    MalformedFile,
    decode_aborted_transactions,
    encode_aborted_transaction,
)


class CorruptTransactionIndex(ValueError):
    """A file that is no transaction index; its segment is to be scanned again."""


class TransactionIndex:
    """Entries are few: they are read once and kept."""

    __slots__ = ("_entries", "_file", "_files", "path", "start_offset")

    def __init__(self, files: Files, path: str, start_offset: int) -> None:
        self.path = path
        self.start_offset = start_offset
        self._files = files
        self._entries: list[AbortedTransactionEntry] | None = None
        self._file: File | None = None

    @property
    def entries(self) -> list[AbortedTransactionEntry]:
        """All entries. Raises CorruptTransactionIndex."""
        if self._entries is None:
            self._entries = self._load()
        return self._entries

    def _load(self) -> list[AbortedTransactionEntry]:
        try:
            content = self._files.read(self.path)
        except FileNotFoundError:
            return []
        entries: list[AbortedTransactionEntry] = []
        previous = -1
        try:
            for version, entry in decode_aborted_transactions(content):
                last = entry.last_offset
                if version < 0 or last <= previous or (entry.first_offset < self.start_offset > last):
                    raise MalformedFile(f"has a bad entry at offset {last}")
                previous = last
                entries.append(entry)
        except MalformedFile as error:
            raise CorruptTransactionIndex(f"{self.path} {error}") from error
        return entries

    def append(self, entry: AbortedTransactionEntry) -> None:
        """Add an entry to the file; entries come in the order of their last offsets."""
        entries = self.entries
        if entries and entry.last_offset <= entries[-1].last_offset:
            raise ValueError(f"aborted transaction at {entry.last_offset} after {entries[-1].last_offset}")
        if self._file is None:
            self._file = self._files.open(self.path)
        self._file.append([encode_aborted_transaction(entry)])
        entries.append(entry)

    def collect(self, first_offset: int, upper_offset: int, found: list[AbortedTransactionEntry]) -> bool:
        """Add the entries that overlap [first_offset, upper_offset) to ``found``.

        True if the search is complete: an entry's last stable offset lies at or above ``upper_offset``,
        so later segments hold nothing more.
        """
        for entry in self.entries:
            if entry.last_offset >= first_offset and entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker lies at or above ``offset``."""
        entries = self.entries
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            if self._file is None:
                self._file = self._files.open(self.path)
            self._file.truncate(len(kept) * TRANSACTION_INDEX_ENTRY.size)
            self._entries = kept

    def reset(self) -> None:
        """Forget everything; the segment is about to be scanned."""
        self._entries = []
        if self._files.exists(self.path):
            if self._file is None:
                self._file = self._files.open(self.path)
            self._file.truncate(0)

    def pin(self) -> None:
        """Open the file and hold it open, so that a thread may write and sync it."""
        if self._file is None:
            self._file = self._files.open(self.path)
        self._file.acquire()

    def unpin(self) -> None:
        """Hold it no longer; without an entry there is no file. Raises OSError."""
        if self._file is not None:
            self._file.release()
            if not self.entries:
                self.close()
                self._files.delete(self.path)

    def sync(self) -> None:
        """Bring the file to the device, if there is one."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.release()
            self._file = None
