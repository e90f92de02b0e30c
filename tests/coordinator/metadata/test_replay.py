"""The one replay: whatever way records come, the same image; snapshots bring it back; nonsense is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.metadata.delta import KNOWN_RECORDS, MetadataDelta
from coordinator.metadata.image import EMPTY_IMAGE, RESOURCE_TOPIC, MetadataImage, PartitionImage
from coordinator.metadata.replay import MetadataReplay
from coordinator.metadata.replay_errors import MetadataReplayError
from coordinator.metadata.snapshot import snapshot_records
from tests.coordinator.metadata.record_stories import stories
from wire.messages.records import cluster_metadata as records

TOPIC_ID = b"\x0a" * 16


def image_of(story: list[Any]) -> MetadataImage:
    """All records as one delta."""
    delta = MetadataDelta(EMPTY_IMAGE)
    for record in story:
        delta.replay(record)
    return delta.apply(len(story) - 1, 1)


def contents(image: MetadataImage) -> tuple[Any, ...]:
    """Everything but where in the log it comes from."""
    return (
        image.topics, image.brokers, image.controllers, image.configs, image.features, image.client_quotas,
        image.next_producer_id, image.acls, image.scram, image.delegation_tokens,
    )  # fmt: skip


@given(stories(), st.data())
def test_deltas_of_any_size_lead_to_the_image_of_one_replay(story: list[Any], data: st.DataObject) -> None:
    replay = MetadataReplay()
    for offset, record in enumerate(story):
        replay.replay(record, offset)
        if data.draw(st.booleans()):
            replay.take_change(1)
    replay.take_change(1)
    assert contents(replay.image) == contents(image_of(story))
    assert replay.image.offset == len(story) - 1


@given(stories())
def test_a_snapshot_loads_to_the_same_image(story: list[Any]) -> None:
    image = image_of(story)
    loaded = image_of([record.message for record in snapshot_records(image)])
    assert contents(loaded) == contents(image)


@given(stories())
def test_the_whole_delta_is_the_way_from_nothing(story: list[Any]) -> None:
    image = image_of(story)
    assert contents(MetadataDelta.whole(image).apply(image.offset, image.epoch)) == contents(image)


@given(stories(), stories())
def test_a_delta_says_which_topics_changed(first: list[Any], second: list[Any]) -> None:
    before = image_of(first)
    delta = MetadataDelta(before)
    for record in second:
        try:
            delta.replay(record)
        except MetadataReplayError:
            # The second run was made for another beginning; what fits is enough.
            continue
    after = delta.apply(100, 1)
    for topic in before.topics:
        if after.topics.by_id(topic.topic_id) is None:
            assert topic.topic_id in delta.deleted_topics
        elif after.topics.by_id(topic.topic_id) != topic:
            assert delta.topics[topic.topic_id].changed
    for topic in after.topics:
        if before.topics.by_id(topic.topic_id) is None:
            assert delta.topics[topic.topic_id].created


def test_every_record_type_of_kafka_is_known() -> None:
    written = {kind.API_KEY for kind in vars(records).values() if isinstance(getattr(kind, "API_KEY", None), int)}
    assert set(KNOWN_RECORDS) == written
    assert len(KNOWN_RECORDS) == 27


def partition(**fields: Any) -> records.PartitionRecord:
    values: dict[str, Any] = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return records.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, **{**values, **fields})


BEGINNING = [records.TopicRecord(name="t", topic_id=TOPIC_ID), partition()]

EFFECTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"isr": [1]}, {"isr": (1,)}),
    ({"leader": 2}, {"leader": 2, "leader_epoch": 1}),
    ({"leader": 1}, {"leader": 1, "leader_epoch": 1}),
    ({"leader": -1, "isr": []}, {"leader": -1, "leader_epoch": 1, "isr": ()}),
    ({"leader_recovery_state": 1}, {"leader_recovery_state": 1}),
    ({"eligible_leader_replicas": [2], "last_known_elr": [1]}, {"elr": (2,), "last_known_elr": (1,)}),
    ({"adding_replicas": [3], "removing_replicas": [1]}, {"adding_replicas": (3,), "removing_replicas": (1,)}),
    ({"directories": [b"\x01" * 16, b"\x02" * 16]}, {"directories": (b"\x01" * 16, b"\x02" * 16)}),
    ({"replicas": [2, 3]}, {"replicas": (2, 3)}),
]


@pytest.mark.parametrize(("fields", "effect"), EFFECTS)
def test_a_partition_change_changes_what_it_names_and_the_epochs(
    fields: dict[str, Any], effect: dict[str, Any]
) -> None:
    before = image_of(BEGINNING).topics.partition("t", 0)
    change = records.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)
    after = image_of([*BEGINNING, change]).topics.partition("t", 0)
    assert isinstance(before, PartitionImage)
    assert after == before._replace(partition_epoch=1, **effect)


def test_a_topic_deleted_and_made_again_in_one_delta_has_only_the_new_settings() -> None:
    config = records.ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name="t", name="a", value="1")
    other = b"\x0b" * 16
    before = image_of([*BEGINNING, config])
    delta = MetadataDelta(before)
    for record in (
        records.RemoveTopicRecord(topic_id=TOPIC_ID),
        records.TopicRecord(name="t", topic_id=other),
        records.ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name="t", name="b", value="2"),
    ):
        delta.replay(record)
    after = delta.apply(9, 1)
    topic = after.topics.by_name("t")
    assert topic is not None
    assert (topic.topic_id, len(topic.partitions)) == (other, 0)
    assert dict(after.configs.of(RESOURCE_TOPIC, "t")) == {"b": "2"}


IMPOSSIBLE = [
    (records.TopicRecord(name="t", topic_id=b"\x0b" * 16), "t, which exists"),
    (records.TopicRecord(name="u", topic_id=TOPIC_ID), "is that of t"),
    (records.RemoveTopicRecord(topic_id=b"\x0b" * 16), "CwsLCwsLCwsLCwsLCwsLCw"),
    (records.PartitionRecord(partition_id=0, topic_id=b"\x0b" * 16), "unknown"),
    (records.PartitionChangeRecord(partition_id=4, topic_id=TOPIC_ID), "t-4"),
    (partition(directories=[b"\x01" * 16]), "2 replicas and 1 directories"),
    (records.FenceBrokerRecord(id=8, epoch=1), "broker 8"),
    (records.UnregisterBrokerRecord(broker_id=8, broker_epoch=1), "broker 8"),
    (records.RemoveAccessControlEntryRecord(id=TOPIC_ID), "unknown"),
    (records.ClearElrRecord(topic_name="u"), "topic u"),
]


@pytest.mark.parametrize(("record", "words"), IMPOSSIBLE)
def test_a_record_that_contradicts_the_log_is_refused_in_one_sentence(record: Any, words: str) -> None:
    delta = MetadataDelta(image_of(BEGINNING))
    with pytest.raises(MetadataReplayError) as raised:
        delta.replay(record)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("name", "level"), [("metadata.version", 99), ("of.tomorrow", 1)])
def test_a_feature_that_is_not_served_is_refused_unless_it_was_lowered_since(name: str, level: int) -> None:
    replay = MetadataReplay()
    replay.replay(records.FeatureLevelRecord(name=name, feature_level=level), 0)
    with pytest.raises(MetadataReplayError, match=f"{name} is finalized at level {level}"):
        replay.take_change(1)
    replay = MetadataReplay()
    replay.replay(records.FeatureLevelRecord(name=name, feature_level=level), 0)
    lowered = {"metadata.version": 33, "of.tomorrow": 0}[name]
    replay.replay(records.FeatureLevelRecord(name=name, feature_level=lowered), 1)
    assert replay.take_change(1) is not None


def test_old_epochs_of_a_broker_are_refused() -> None:
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay(records.RegisterBrokerRecord(broker_id=1, broker_epoch=5))
    with pytest.raises(MetadataReplayError, match="epoch 4 of broker 1"):
        delta.replay(records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4, fenced=-1))


def test_records_of_a_transaction_show_together_or_not_at_all() -> None:
    replay = MetadataReplay()
    first, second = (records.TopicRecord(name=name, topic_id=name.encode() * 16) for name in "ab")
    replay.replay(first, 0)
    replay.replay(records.BeginTransactionRecord(name="x"), 1)
    replay.replay(second, 2)
    assert replay.take_change(1) is None
    replay.replay(records.AbortTransactionRecord(), 3)
    assert replay.take_change(1) is not None
    assert sorted(replay.image.topics.names()) == ["a"]
    replay.replay(records.BeginTransactionRecord(), 4)
    replay.replay(second, 5)
    assert replay.in_transaction
    replay.replay(records.EndTransactionRecord(), 6)
    change = replay.take_change(2)
    assert change is not None
    assert (sorted(change[1].topics.names()), change[1].offset, change[1].epoch) == (["a", "b"], 6, 2)


@pytest.mark.parametrize(
    "story",
    [
        [records.EndTransactionRecord()],
        [records.AbortTransactionRecord()],
        [records.BeginTransactionRecord(), records.BeginTransactionRecord()],
    ],
)
def test_transactions_that_do_not_pair_are_refused(story: list[Any]) -> None:
    replay = MetadataReplay()
    *before, last = story
    for offset, record in enumerate(before):
        replay.replay(record, offset)
    with pytest.raises(MetadataReplayError, match="metadata transaction"):
        replay.replay(last, len(before))
