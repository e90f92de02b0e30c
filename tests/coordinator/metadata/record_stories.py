"""Strategies for runs of metadata records that a controller could have written, one after the other."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from coordinator.metadata.delta import MetadataDelta
from coordinator.metadata.image import EMPTY_IMAGE
from wire.messages.records import cluster_metadata as records

NAMES = ["alpha", "beta", "gamma", "de.lta"]
BROKERS = [1, 2, 3]
IDS = [bytes([value]) * 16 for value in range(10, 16)]
small_lists = st.lists(st.sampled_from(BROKERS), unique=True, max_size=3)
optional_lists = st.none() | small_lists


def _new_topic(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    name, topic_id = draw(st.sampled_from(NAMES)), draw(st.sampled_from(IDS))
    if delta.topic_id(name) is not None or delta.topic(topic_id) is not None:
        return None
    # An id is never used twice in the life of a cluster.
    if topic_id in delta.deleted_topics or topic_id in delta.base.topics.topics:
        return None
    return records.TopicRecord(name=name, topic_id=topic_id)


def _known_topic(draw: st.DrawFn, delta: MetadataDelta) -> bytes | None:
    known = [topic_id for topic_id in IDS if delta.topic(topic_id) is not None]
    return draw(st.sampled_from(known)) if known else None


def _remove_topic(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    topic_id = _known_topic(draw, delta)
    return None if topic_id is None else records.RemoveTopicRecord(topic_id=topic_id)


def _partition(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    topic_id = _known_topic(draw, delta)
    if topic_id is None:
        return None
    topic = delta.topic(topic_id)
    assert topic is not None
    index = next(number for number in range(100) if topic.partition(number) is None)
    replicas = draw(st.lists(st.sampled_from(BROKERS), unique=True, min_size=1, max_size=3))
    return records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes([200 + replica]) * 16 for replica in replicas],
        eligible_leader_replicas=draw(optional_lists),
    )


def _partition_change(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    topic_id = _known_topic(draw, delta)
    topic = None if topic_id is None else delta.topic(topic_id)
    if topic is None or topic.partition(0) is None:
        return None
    return records.PartitionChangeRecord(
        partition_id=0,
        topic_id=topic.topic_id,
        isr=draw(optional_lists),
        leader=draw(st.sampled_from([-2, -1, 1, 2, 3])),
        adding_replicas=draw(optional_lists),
        removing_replicas=draw(optional_lists),
        eligible_leader_replicas=draw(optional_lists),
        last_known_elr=draw(optional_lists),
        leader_recovery_state=draw(st.sampled_from([-1, 0, 1])),
    )


def _config(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    resource_type = draw(st.sampled_from([2, 4, 16, 32]))
    return records.ConfigRecord(
        resource_type=resource_type,
        resource_name=draw(st.sampled_from(["", *NAMES])),
        name=draw(st.sampled_from(["retention.ms", "min.insync.replicas"])),
        value=draw(st.none() | st.sampled_from(["1", "2"])),
    )


def _register_broker(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    broker_id = draw(st.sampled_from(BROKERS))
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=draw(st.binary(min_size=16, max_size=16)),
        broker_epoch=draw(st.integers(0, 2**40)),
        end_points=[records.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)],
        features=[records.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=33)],
        rack=draw(st.none() | st.just("r")),
        fenced=draw(st.booleans()),
        log_dirs=[bytes([200 + broker_id]) * 16],
        cordoned_log_dirs=draw(st.none() | st.just([])),
    )


def _change_broker(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    broker = delta.broker(draw(st.sampled_from(BROKERS)))
    if broker is None:
        return None
    kind = draw(st.sampled_from(["change", "fence", "unfence", "unregister"]))
    if kind == "fence":
        return records.FenceBrokerRecord(id=broker.broker_id, epoch=broker.broker_epoch)
    if kind == "unfence":
        return records.UnfenceBrokerRecord(id=broker.broker_id, epoch=broker.broker_epoch)
    if kind == "unregister":
        return records.UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
    return records.BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        fenced=draw(st.sampled_from([-1, 0, 1])),
        in_controlled_shutdown=draw(st.sampled_from([0, 1])),
        cordoned_log_dirs=draw(st.none() | st.just([])),
    )


def _controller(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    controller_id = draw(st.sampled_from(BROKERS))
    known = delta.controllers.get(controller_id) or delta.base.controllers.get(controller_id)
    if known is not None and draw(st.booleans()):
        return records.UnregisterControllerRecord(controller_id=controller_id)
    return records.RegisterControllerRecord(
        controller_id=controller_id,
        incarnation_id=bytes([controller_id]) * 16,
        end_points=[records.ControllerEndpoint(name="CONTROLLER", host="h", port=9093)],
    )


def _security(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    acl_id = draw(st.sampled_from(IDS))
    known_acl = acl_id in delta.acls or acl_id in delta.base.acls
    kind = draw(st.sampled_from(["acl", "remove acl", "scram", "remove scram", "token", "remove token", "quota"]))
    if kind == "remove acl":
        return records.RemoveAccessControlEntryRecord(id=acl_id) if known_acl else None
    user = draw(st.sampled_from(["ann", "bob"]))
    return {
        "acl": records.AccessControlEntryRecord(id=acl_id, resource_type=2, resource_name=user, operation=3),
        "scram": records.UserScramCredentialRecord(name=user, mechanism=1, salt=b"s", iterations=4096),
        "remove scram": records.RemoveUserScramCredentialRecord(name=user, mechanism=1),
        "token": records.DelegationTokenRecord(token_id=user, owner="User:o", renewers=["User:r"]),
        "remove token": records.RemoveDelegationTokenRecord(token_id=user),
        "quota": records.ClientQuotaRecord(
            entity=[records.EntityData(entity_type="user", entity_name=draw(st.none() | st.just(user)))],
            key="producer_byte_rate",
            value=draw(st.sampled_from([1.0, 2.5])),
            remove=draw(st.booleans()),
        ),
    }[kind]


def _others(draw: st.DrawFn, delta: MetadataDelta) -> Any:
    return draw(
        st.sampled_from(
            [
                records.FeatureLevelRecord(name="metadata.version", feature_level=33),
                records.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
                records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000),
                records.NoOpRecord(),
                records.ZkMigrationStateRecord(zk_migration_state=0),
                records.ClearElrRecord(topic_name=""),
            ]
        )
    )


_MAKERS = [
    _new_topic, _new_topic, _partition, _partition, _partition_change, _remove_topic, _config, _register_broker,
    _change_broker, _controller, _security, _others,
]  # fmt: skip


@st.composite
def stories(draw: st.DrawFn, max_size: int = 40) -> list[Any]:
    """A run of records, each of which is possible after those before it."""
    story: list[Any] = [records.FeatureLevelRecord(name="metadata.version", feature_level=33)]
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay(story[0])
    for maker in draw(st.lists(st.sampled_from(_MAKERS), max_size=max_size)):
        record = maker(draw, delta)
        if record is not None:
            delta.replay(record)
            story.append(record)
    return story
