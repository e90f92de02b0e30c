"""Batches of the record builders of kafka-python and aiokafka, against ours, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from record_strategies import HEADERS, NULLABLE_BYTES

from wire.records import Compression, NewRecord, RecordBatch, build_batch

RECORD_LISTS = st.lists(
    st.builds(NewRecord, key=NULLABLE_BYTES, value=NULLABLE_BYTES, headers=HEADERS, timestamp=st.integers(1, 2**45)),
    min_size=1,
    max_size=12,
)

BUILDERS: dict[str, Callable[..., Any]] = {"kafka-python": KafkaPythonBuilder, "aiokafka": AiokafkaBuilder}
READERS: dict[str, Callable[..., Any]] = {"kafka-python": KafkaPythonBatch, "aiokafka": AiokafkaBatch}


def _theirs(client: str, records: list[NewRecord], compression: int, is_transactional: bool) -> bytes:
    builder = BUILDERS[client](
        magic=2,
        compression_type=compression,
        is_transactional=is_transactional,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for index, record in enumerate(records):
        assert builder.append(
            index, timestamp=record.timestamp, key=record.key, value=record.value, headers=list(record.headers)
        )
    return bytes(builder.build())


@pytest.mark.parametrize("client", BUILDERS)
@given(records=RECORD_LISTS, compression=st.sampled_from(Compression), is_transactional=st.booleans())
def test_the_builders_of_clients_and_ours_agree(
    client: str, records: list[NewRecord], compression: Compression, is_transactional: bool
) -> None:
    ours = build_batch(
        records,
        compression=compression,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
        is_transactional=is_transactional,
    )
    theirs = RecordBatch(_theirs(client, records, compression, is_transactional))
    assert theirs.has_valid_crc()
    assert list(theirs.records()) == list(RecordBatch(ours).records())
    if compression is Compression.NONE:
        # They write 0 or -1 as the leader epoch, which no one reads.
        assert theirs.to_bytes()[:12] + theirs.to_bytes()[16:] == ours[:12] + ours[16:]


@pytest.mark.parametrize("client", READERS)
@given(records=RECORD_LISTS, compression=st.sampled_from(Compression))
def test_clients_read_what_we_build(client: str, records: list[NewRecord], compression: Compression) -> None:
    ours = build_batch(records, base_offset=900, compression=compression)
    theirs = READERS[client](ours)
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs] == [
        (900 + index, r.timestamp, r.key, r.value, r.headers) for index, r in enumerate(records)
    ]
