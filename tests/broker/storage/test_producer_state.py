"""Idempotence and transactions of one partition: repeats, gaps, epochs, markers, restarts. Errors first."""

from __future__ import annotations

import pytest
from log_fixture import NOW_MS, append, batch_of, idempotent, numbered, open_log

from broker.storage.log import AppendOrigin, Log
from broker.storage.memory_files import MemoryFiles
from broker.storage.producer_state import SEQUENCE_MAX
from wire.errors import ErrorCode, KafkaError
from wire.records import end_transaction_marker


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def log(files: MemoryFiles) -> Log:
    return open_log(files)


def refusal(log: Log, batch: bytes, **settings: object) -> ErrorCode:
    """The code an append is refused with; nothing is appended by it."""
    end = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        append(log, batch, **settings)
    assert log.log_end_offset == end
    return caught.value.code


def transactional(first_sequence: int, count: int = 1, **settings: object) -> bytes:
    return idempotent(first_sequence, count, is_transactional=True, **settings)


def begin(log: Log, first_sequence: int = 0, count: int = 1, *, producer_id: int = 7, epoch: int = 0) -> int:
    """First batch of a transaction, verified with the coordinator as the leader does."""
    guard = log.start_verification(producer_id, first_sequence, epoch, supports_epoch_bump=False, now_ms=NOW_MS)
    batch = transactional(first_sequence, count, producer_id=producer_id, epoch=epoch)
    return append(log, batch, verification_guard=guard)


def end(
    log: Log, *, commit: bool, producer_id: int = 7, epoch: int = 0, coordinator_epoch: int = 0, version: int = 0
) -> int:
    marker = end_transaction_marker(
        is_commit=commit,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=NOW_MS,
    )
    return append(log, marker, origin=AppendOrigin.COORDINATOR, transaction_version=version)


# --- idempotence ----------------------------------------------------------------------------------


def test_p01_the_last_five_batches_are_recognised_and_gaps_refused(log: Log) -> None:
    for sequence in range(6):
        assert append(log, idempotent(sequence)) == sequence
    for sequence in range(1, 6):
        info = log.append_as_leader(idempotent(sequence), leader_epoch=0, now_ms=NOW_MS)
        assert (info.first_offset, info.last_offset, info.duplicate) == (sequence, sequence, True)
    assert log.log_end_offset == 6
    assert refusal(log, idempotent(0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # the sixth from the end
    assert refusal(log, idempotent(7)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # a gap
    assert append(log, idempotent(6)) == 6


def test_a_duplicate_is_a_batch_of_the_same_bounds(log: Log) -> None:
    assert append(log, idempotent(0, 3)) == 0
    assert refusal(log, idempotent(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, idempotent(1, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    info = log.append_as_leader(idempotent(0, 3), leader_epoch=0, now_ms=NOW_MS + 5)
    # Kafka answers a duplicate with the timestamp of the first time in the place of the append time.
    assert (info.first_offset, info.last_offset, info.log_append_time_ms) == (0, 2, NOW_MS)


def test_a_sequence_without_a_number_is_an_invalid_record(log: Log) -> None:
    assert refusal(log, idempotent(-1)) is ErrorCode.INVALID_RECORD


def test_an_older_epoch_is_refused_and_a_newer_one_starts_at_zero(log: Log) -> None:
    append(log, idempotent(0, epoch=3))
    assert refusal(log, idempotent(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(log, idempotent(1, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, idempotent(0, epoch=4)) == 1
    assert refusal(log, idempotent(1, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_may_start_anywhere(log: Log) -> None:
    assert append(log, idempotent(1000, producer_id=1, epoch=9)) == 0
    assert refusal(log, idempotent(1002, producer_id=1, epoch=9)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_from_the_greatest_to_zero(log: Log) -> None:
    append(log, idempotent(SEQUENCE_MAX - 1, 4))  # SEQUENCE_MAX - 1, SEQUENCE_MAX, 0, 1
    assert refusal(log, idempotent(0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    repeated = log.append_as_leader(idempotent(SEQUENCE_MAX - 1, 4), leader_epoch=0, now_ms=NOW_MS)
    assert (repeated.first_offset, repeated.duplicate) == (0, True)
    assert append(log, idempotent(2)) == 4
    other = 8
    append(log, idempotent(SEQUENCE_MAX, producer_id=other))
    assert append(log, idempotent(0, producer_id=other)) == 6


def test_p02_state_is_per_producer(log: Log) -> None:
    for sequence in range(10):
        for producer_id in range(3):
            append(log, idempotent(sequence, producer_id=producer_id))
    assert log.log_end_offset == 30


def test_expired_producers_are_forgotten_unless_in_a_transaction(log: Log) -> None:
    append(log, idempotent(5))
    begin(log, producer_id=8)
    log.producer_state.remove_expired(NOW_MS + log.producer_state.settings.expiration_ms)
    assert list(log.producer_state.entries) == [8]
    assert append(log, idempotent(90)) == 2


@pytest.mark.parametrize("clean", [True, False])
def test_s05_after_a_restart_a_retry_is_recognised(files: MemoryFiles, clean: bool) -> None:
    log = open_log(files)
    for sequence in range(10):
        append(log, idempotent(sequence))
        append(log, numbered(1))
    if clean:
        log.close()
    again = open_log(files, clean=clean)
    info = again.append_as_leader(idempotent(9), leader_epoch=0, now_ms=NOW_MS)
    assert (info.first_offset, info.duplicate, again.log_end_offset) == (18, True, 20)
    # A snapshot keeps the last batch of a producer only; a recovery reads the last five.
    if clean:
        assert refusal(again, idempotent(8)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    else:
        assert again.append_as_leader(idempotent(8), leader_epoch=0, now_ms=NOW_MS).duplicate
    assert append(again, idempotent(10)) == 20


def test_s05_a_corrupt_snapshot_gives_way_to_an_older_one_and_the_log(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=1000)
    for sequence in range(40):
        append(log, idempotent(sequence))
    log.close()
    newest = f"{log.directory}/{40:020d}.snapshot"
    content = bytearray(files.read(newest))
    content[20] ^= 1
    files.delete(newest)
    damaged = files.open(newest)
    damaged.append([content])
    damaged.release()
    again = open_log(files, segment_bytes=1000)
    assert again.append_as_leader(idempotent(39), leader_epoch=0, now_ms=NOW_MS).duplicate
    assert append(again, idempotent(40)) == 40


def test_truncation_takes_producers_back(log: Log) -> None:
    for sequence in range(10):
        append(log, idempotent(sequence))
    log.truncate_to(5, now_ms=NOW_MS)
    assert refusal(log, idempotent(6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, idempotent(5)) == 5


# --- transactions ---------------------------------------------------------------------------------


def test_a_transactional_batch_needs_a_verified_transaction(log: Log) -> None:
    assert refusal(log, transactional(0)) is ErrorCode.INVALID_TXN_STATE
    guard = log.start_verification(7, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    assert append(log, transactional(0), verification_guard=guard) == 0
    assert log.start_verification(7, 1, 0, supports_epoch_bump=False, now_ms=NOW_MS) is None
    assert append(log, transactional(1)) == 1
    end(log, commit=True)
    # The guard was good for one transaction.
    assert refusal(log, transactional(2), verification_guard=guard) is ErrorCode.INVALID_TXN_STATE


def test_a_marker_takes_the_guard_of_a_running_verification(log: Log) -> None:
    guard = log.start_verification(7, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    end(log, commit=False)
    assert refusal(log, transactional(0), verification_guard=guard) is ErrorCode.INVALID_TXN_STATE


def test_a_later_batch_may_not_overtake_during_verification(log: Log) -> None:
    guard = log.start_verification(7, 3, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    assert log.start_verification(7, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS) is guard
    assert refusal(log, transactional(3), verification_guard=guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, transactional(0), verification_guard=guard) == 0


def test_with_implicit_add_an_unknown_producer_starts_at_zero(log: Log) -> None:
    guard = log.start_verification(7, 5, 0, supports_epoch_bump=True, now_ms=NOW_MS)
    assert refusal(log, transactional(5), verification_guard=guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_stale_epochs_are_refused_before_all_else(log: Log) -> None:
    begin(log, epoch=5)
    end(log, commit=True, epoch=5)
    assert refusal(log, transactional(1, epoch=4)) is ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(KafkaError) as caught:
        log.start_verification(7, 0, 4, supports_epoch_bump=False, now_ms=NOW_MS)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_plain_batch_within_a_transaction_is_refused(log: Log) -> None:
    begin(log)
    assert refusal(log, idempotent(1)) is ErrorCode.INVALID_TXN_STATE


def test_clients_may_not_write_markers(log: Log) -> None:
    marker = end_transaction_marker(
        is_commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
    )
    assert refusal(log, marker) is ErrorCode.INVALID_RECORD


def test_markers_of_stale_producers_and_coordinators_are_refused(log: Log) -> None:
    begin(log, epoch=2)
    end(log, commit=True, epoch=2, coordinator_epoch=4)
    marker = {"is_commit": True, "producer_id": 7, "timestamp": NOW_MS}
    old_epoch = end_transaction_marker(producer_epoch=1, coordinator_epoch=4, **marker)
    old_coordinator = end_transaction_marker(producer_epoch=2, coordinator_epoch=3, **marker)
    as_coordinator = {"origin": AppendOrigin.COORDINATOR, "transaction_version": 0}
    assert refusal(log, old_epoch, **as_coordinator) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(log, old_coordinator, **as_coordinator) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_with_transaction_version_2_a_marker_must_raise_the_epoch(log: Log) -> None:
    begin(log, epoch=2)
    same = end_transaction_marker(
        is_commit=True, producer_id=7, producer_epoch=2, coordinator_epoch=0, timestamp=NOW_MS
    )
    settings = {"origin": AppendOrigin.COORDINATOR, "transaction_version": 2}
    assert refusal(log, same, **settings) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, commit=True, epoch=3, version=2)
    # A repeated marker of an ended transaction is written once more, and changes nothing.
    assert end(log, commit=True, epoch=3, version=2) == 2
    assert log.aborted_transactions(0, 10) == []


def test_f11_the_last_stable_offset_waits_for_the_marker_to_be_replicated(log: Log) -> None:
    append(log, numbered(3))
    begin(log, count=5)
    log.advance_high_watermark(8)
    assert (log.high_watermark, log.last_stable_offset, log.first_unstable_offset) == (8, 3, 3)
    end(log, commit=True)
    assert log.last_stable_offset == 3
    log.advance_high_watermark(9)
    assert (log.last_stable_offset, log.first_unstable_offset) == (9, None)


def test_f17_aborted_transactions_that_overlap_are_listed(log: Log) -> None:
    begin(log, count=3, producer_id=1)  # 0..2
    begin(log, count=2, producer_id=2)  # 3..4
    end(log, commit=False, producer_id=2)  # 5
    append(log, numbered(4))  # 6..9
    end(log, commit=True, producer_id=1)  # 10
    begin(log, count=1, producer_id=3)  # 11
    end(log, commit=False, producer_id=3)  # 12
    assert log.aborted_transactions(0, 13) == [(2, 3, 5, 0), (3, 11, 12, 13)]
    assert [entry.producer_id for entry in log.aborted_transactions(0, 3)] == []
    assert [entry.producer_id for entry in log.aborted_transactions(5, 7)] == [2]
    assert [entry.producer_id for entry in log.aborted_transactions(6, 11)] == []
    assert [entry.producer_id for entry in log.aborted_transactions(12, 13)] == [3]


def test_a_marker_without_data_moves_the_epoch_and_aborts_nothing(log: Log) -> None:
    end(log, commit=False, epoch=4)
    assert log.aborted_transactions(0, 10) == []
    assert refusal(log, idempotent(0, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    # Only a marker was seen in this epoch: sequences start at zero.
    assert refusal(log, idempotent(1, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, idempotent(0, epoch=4)) == 1


@pytest.mark.parametrize("clean", [True, False])
def test_open_and_aborted_transactions_survive_a_restart(files: MemoryFiles, clean: bool) -> None:
    log = open_log(files, segment_bytes=400)
    for number in range(6):
        begin(log, number // 2 * 2, 2, producer_id=number % 2)
        end(log, commit=False, producer_id=number % 2)
    begin(log, 0, 2, producer_id=9)
    log.advance_high_watermark(log.log_end_offset)
    aborted, unstable = log.aborted_transactions(0, 100), log.first_unstable_offset
    assert len(aborted) == 6
    assert unstable == 18
    if clean:
        log.close()
    again = open_log(files, segment_bytes=400, clean=clean)
    again.advance_high_watermark(again.log_end_offset)
    assert again.aborted_transactions(0, 100) == aborted
    assert again.first_unstable_offset == unstable
    assert end(again, commit=True, producer_id=9) == 20
    again.advance_high_watermark(21)
    assert again.last_stable_offset == 21


def test_followers_apply_what_the_leader_decided(files: MemoryFiles) -> None:
    leader = open_log(files, directory="/logs/leader-0")
    begin(leader, count=3)
    end(leader, commit=False)
    append(leader, idempotent(5, producer_id=3))
    follower = open_log(files, directory="/logs/follower-0")
    content = leader.read(0, max_bytes=10**6).records
    follower.append_as_follower(content, leader_epoch=0, now_ms=NOW_MS)
    assert follower.aborted_transactions(0, 10) == leader.aborted_transactions(0, 10) != []
    assert follower.append_as_leader(
        idempotent(5, producer_id=3), leader_epoch=1, now_ms=NOW_MS
    ).duplicate  # R08: producer state travels with the log


def test_offsets_committed_in_a_transaction_have_no_sequence(log: Log) -> None:
    guard = log.start_verification(7, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    for expected in range(3):
        batch = batch_of([b"offset"], producer_id=7, producer_epoch=0, is_transactional=True)
        settings = {"origin": AppendOrigin.COORDINATOR, "verification_guard": guard}
        assert append(log, batch, **settings) == expected
