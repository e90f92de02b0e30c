"""The frame of a metadata record, and the table of features."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.machine import MetadataRecord
from coordinator.metadata.features import SERVED_FEATURES, partition_version, refusal, register_broker_version
from coordinator.metadata.framing import decode_record, encode_record
from coordinator.metadata.replay_errors import MetadataReplayError
from tests.coordinator.metadata.record_stories import stories
from wire.messages.records import cluster_metadata as records


@given(stories())
def test_records_come_back_as_they_went_at_their_newest_version(story: list[Any]) -> None:
    for message in story:
        record = MetadataRecord(message, message.MAX_VERSION)
        assert decode_record(encode_record(record)) == record


def test_the_frame_is_kafkas() -> None:
    # Written by Apache Kafka 4.4.0 into the snapshot of a format.
    value = bytes.fromhex("010c00116d657461646174612e76657273696f6e002100")
    record = decode_record(value)
    assert record == MetadataRecord(records.FeatureLevelRecord(name="metadata.version", feature_level=33), 0)
    assert encode_record(record) == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "no value"),
        (b"", "no value"),
        (b"\x02\x0c\x00", "frame version 2"),
        (b"\x01\x63\x00", "type 99"),
        (b"\x01\x0c\x07", "FeatureLevelRecord has version 7"),
        (b"\x01", "broken"),
        (b"\x01\x0c\x00\x11meta", "FeatureLevelRecord is broken"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(value: bytes | None, words: str) -> None:
    with pytest.raises(MetadataReplayError) as raised:
        decode_record(value)
    assert words in str(raised.value)


@given(st.binary(max_size=60))
def test_garbage_is_a_record_or_a_refusal(value: bytes) -> None:
    try:
        record = decode_record(value)
    except MetadataReplayError:
        return
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("feature", SERVED_FEATURES)
def test_a_feature_is_served_exactly_within_its_levels(feature: Any) -> None:
    assert feature.min_level <= feature.initial_level <= feature.max_level
    for level in range(feature.min_level, feature.max_level + 1):
        assert refusal(feature.name, level) is None
    text = refusal(feature.name, feature.max_level + 1)
    assert text is not None
    assert feature.name in text
    assert str(feature.max_level + 1) in text


def test_an_unknown_feature_is_refused_unless_it_is_off() -> None:
    assert refusal("of.tomorrow", 0) is None
    assert "of.tomorrow" in (refusal("of.tomorrow", 1) or "")


@pytest.mark.parametrize(
    ("metadata_version", "register", "partition"), [(7, 1, 0), (8, 2, 0), (17, 3, 1), (23, 3, 2), (30, 4, 2)]
)
def test_record_versions_follow_the_metadata_version(metadata_version: int, register: int, partition: int) -> None:
    assert register_broker_version(metadata_version) == register
    assert partition_version(metadata_version) == partition
