"""The batches of a segment file in order, and where the file holds something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from wire.errors import KafkaError
from wire.legacy_records import LegacyBatch
from wire.record_batch import MAGIC_POSITION, AnyBatch, RecordBatch, next_batch_size

BUFFER_BYTES = 4 * 1024 * 1024
HEAD_BYTES = MAGIC_POSITION + 1
"""As much as tells a batch's size and magic."""

Complain = Callable[[str, int], None]
"""Told a sentence and the position in the file."""


class Placed(NamedTuple):
    """A batch and where it starts in the file."""

    position: int
    batch: AnyBatch


def scan(path: Path, complain: Complain, *, first_position: int = 0) -> Iterator[Placed]:
    """Every whole batch of a file. `complain` hears of bytes that are no batch; the walk ends at them, as there is no
    telling where the next batch would begin. Raises OSError."""
    position = first_position
    with path.open("rb", buffering=BUFFER_BYTES) as file:
        size = path.stat().st_size
        file.seek(position)
        while position < size:
            head = file.read(HEAD_BYTES)
            try:
                wanted = next_batch_size(head, 0)
                if wanted is None or position + wanted > size:
                    need = "its header alone takes more" if wanted is None else f"it declares {wanted}"
                    complain(f"the last {size - position} bytes are no whole batch: {need}", position)
                    return
                content = head + file.read(wanted - HEAD_BYTES)
                batch = (RecordBatch if content[MAGIC_POSITION] == 2 else LegacyBatch)(content)
            except KafkaError as error:
                complain(f"bytes that are no batch, nothing behind them can be read: {error.message}", position)
                return
            yield Placed(position, batch)
            position += wanted
