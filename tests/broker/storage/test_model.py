"""The engine against a dumb model of a log, over a disk that fails and dies at random, from seeds.

*Flow*: a node with one partition appends, rolls, flushes, truncates, deletes and checkpoints. Any file call
may fail, be cut short, or be the last before a crash, of the process or of the machine. After each failure
the node starts again on what is left, and what it finds is compared with what the model says it may find:

- every batch that was promised durable (below the recovery point) is there;
- what is there is a run of consecutive batches of what was appended, byte for byte;
- no offset is there twice, and the next append goes on at the end.
"""

from __future__ import annotations

import errno
import os
from random import Random

import pytest
from log_fixture import NOW_MS, TOPIC_PARTITION, all_batches, batch_of

from broker.config_log import LogConfig
from broker.storage.faulty_files import Crash, Fault, FaultyFiles
from broker.storage.files import StorageFault
from broker.storage.log import Log
from broker.storage.log_manager import LogManager
from wire.errors import ErrorCode, KafkaError
from wire.records import Compression, RecordBatch, batches

SEEDS = int(os.environ.get("ODRADEK_STORAGE_SEEDS", "150"))
STEPS = 60
DIRECTORY = "/data"
CONFIG = LogConfig(segment_bytes=1200, index_interval_bytes=150, segment_index_bytes=200, file_delete_delay_ms=5)
TOPIC_ID = b"0123456789abcdef"


class Node:
    """A node under test, and the model: ``expected`` are the batches, by what was answered."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now_ms = NOW_MS
        self.files = FaultyFiles(clock_ms=lambda: NOW_MS)
        self.expected: list[bytes] = []
        self.after: list[bytes] = []
        """What ``expected`` becomes if the running call gets through."""
        self.epoch = 0
        self.start()

    def start(self) -> None:
        self.manager = LogManager(
            self.files, [DIRECTORY], config_for_topic=lambda topic: CONFIG, chance=Random(self.chance.random())
        )
        self.manager.open(cluster_id="cluster", node_id=1)
        self.manager.load(now_ms=self.now_ms)
        self.log = self.manager.get_or_create(TOPIC_PARTITION, TOPIC_ID, CONFIG, now_ms=self.now_ms)
        self.log.set_high_watermark(self.log.log_end_offset)

    # --- steps ----------------------------------------------------------------------------------

    def append(self) -> None:
        log, chance = self.log, self.chance
        count = chance.randint(1, 4)
        batch = batch_of(
            [chance.randbytes(chance.randint(0, 60)) for _ in range(count)],
            compression=chance.choice([Compression.NONE, Compression.NONE, Compression.GZIP]),
            timestamp=self.now_ms,
            producer_id=5,
            producer_epoch=0,
            base_sequence=self.next_sequence(),
        )
        patched = bytearray(batch)
        patched[0:8] = log.log_end_offset.to_bytes(8, "big")
        patched[12:16] = self.epoch.to_bytes(4, "big")
        self.after = [*self.expected, bytes(patched)]
        info = log.append_as_leader(batch, leader_epoch=self.epoch, now_ms=self.now_ms)
        assert info.first_offset == int.from_bytes(patched[0:8], "big")
        log.advance_high_watermark(log.log_end_offset)

    def next_sequence(self) -> int:
        """What the batches say; without any at the end, what the engine remembers."""
        if self.expected and RecordBatch(self.expected[-1]).next_offset == self.log.log_end_offset:
            return RecordBatch(self.expected[-1]).last_sequence + 1
        entry = self.log.producer_state.entries.get(5)
        return 0 if entry is None else entry.last_sequence + 1

    def truncate(self) -> None:
        if len(self.expected) > 1:
            offset = self.chance.randint(self.log.log_start_offset, self.log.log_end_offset)
            self.after = [content for content in self.expected if RecordBatch(content).last_offset < offset]
            self.log.truncate_to(offset, now_ms=self.now_ms)
            self.epoch += 1

    def retire(self) -> None:
        count = self.chance.randint(0, len(self.log.segments) - 1)
        base = self.log.segments.base_offsets[count]
        self.after = [content for content in self.expected if RecordBatch(content).base_offset >= base]
        self.log.retire_segments(count, now_ms=self.now_ms)

    def flush(self) -> None:
        self.log.flush(now_ms=self.now_ms)

    def flush_sealed(self) -> None:
        for log, task in self.manager.flush_tasks():
            try:
                task.run()
            except OSError as error:
                raise log.fail(error) from error
            finally:
                task.release()
            log.finish_flush(task)

    def roll(self) -> None:
        self.log.roll(now_ms=self.now_ms)

    def checkpoint(self) -> None:
        self.manager.checkpoint_recovery_points()
        self.manager.checkpoint_high_watermarks()
        self.manager.checkpoint_log_start_offsets()

    def wait(self) -> None:
        self.now_ms += self.chance.randint(1, 10)
        self.manager.run_due(now_ms=self.now_ms)

    def read(self) -> None:
        log = self.log
        offset = self.chance.randint(log.log_start_offset, log.log_end_offset)
        read = log.read(offset, max_bytes=self.chance.randint(1, 2000))
        found = [view.to_bytes() for view in batches(read.records)]
        wanted = [content for content in self.expected if RecordBatch(content).last_offset >= offset]
        assert found == wanted[: len(found)]
        assert bool(found) == bool(wanted)

    def stop(self) -> None:
        self.manager.close(now_ms=self.now_ms, broker_epoch=3)
        self.start()
        if self.files.calls[-1:] and self.log.offline is None:
            assert self.log.recovery_point <= self.log.log_end_offset

    STEPS = (append,) * 8 + (truncate, retire, flush, flush_sealed, roll, checkpoint, wait, read, read, stop)

    # --- failing --------------------------------------------------------------------------------

    def step(self) -> None:
        chance = self.chance
        self.after = self.expected
        fault = None
        if chance.random() < 0.2:
            kind = chance.choice(["error", "crash", "crash"])
            fault = Fault(kind, chance.choice([0, 1, 30, 61, 90, 500]), chance.choice([errno.EIO, errno.ENOSPC]))
            self.files.faults[len(self.files.calls) + chance.randint(0, 12)] = fault
        try:
            chance.choice(self.STEPS)(self)
        except Crash:
            self.restart()
            return
        except KafkaError as error:
            if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            if self.log.offline is None:
                self.after = self.expected  # Refused, and nothing may have come of it.
        except (OSError, StorageFault):
            self.restart()  # It did not start.
            return
        self.files.faults.clear()
        if self.log.offline is not None:
            self.restart()
            return
        self.expected = self.after
        self.check()

    def restart(self) -> None:
        """The node died, or its directory failed: start on what is left, until that works."""
        promised = [content for content in self.expected if RecordBatch(content).last_offset < self.log.recovery_point]
        promised = [content for content in promised if content in self.after]
        power_loss = self.chance.random() < 0.5
        survivor = self.files.survivor(power_loss=self.chance if power_loss else None)
        synced = self.files.synced  # What only the process forgot may still be lost with the machine.
        self.files = FaultyFiles(content=survivor)
        self.files.synced = {file: file.size for file in survivor.all_files()} if power_loss else synced
        self.start()
        found = all_batches(self.log)
        whole = self.expected if len(self.expected) >= len(self.after) else self.after
        self.check_order([whole.index(content) for content in found], found, power_loss)
        assert [content for content in promised if content not in found] == [], "promised and lost"
        self.expected = found
        self.epoch += 1
        self.check()

    def check_order(self, places: list[int], found: list[bytes], power_loss: bool) -> None:
        """Nothing twice, nothing out of order, nothing missing in between.

        With the power a sealed segment that was not synced yet may lose whole batches at its end, while the
        next one is there: Apache Kafka has the same hole. Only unpromised batches can be in it.
        """
        bases = self.log.segments.base_offsets
        for place, following, content in zip(places, places[1:], found[1:], strict=False):
            hole_allowed = power_loss and RecordBatch(content).base_offset in bases
            assert following > place if hole_allowed else following == place + 1, "not consecutive"

    def check(self) -> None:
        assert all_batches(self.log) == self.expected
        if self.expected:
            ends = (RecordBatch(self.expected[-1]).next_offset, self.log.segments.base_offsets[-1])
            assert self.log.log_end_offset == max(ends)


def held(log: Log) -> str:
    return f"{log.segments.base_offsets} {log.log_start_offset}..{log.log_end_offset}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_log_over_a_failing_disk_keeps_what_it_promised(seed: int) -> None:
    node = Node(seed)
    for number in range(STEPS):
        try:
            node.step()
        except BaseException as error:
            error.add_note(f"seed {seed}, step {number}, log {held(node.log)}, last calls {node.files.calls[-6:]}")
            raise
