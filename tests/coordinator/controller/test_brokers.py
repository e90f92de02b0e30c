"""Registration, heartbeats, fencing, controlled shutdown, sessions (K18 to K21)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.controller.controller import Controller
from coordinator.controller.view import ControllerContext
from coordinator.machine import MetadataRecord
from coordinator.metadata.image import NO_LEADER, BrokerImage
from tests.coordinator.controller.controller_world import (
    SESSION_TIMEOUT_MS,
    ControllerWorld,
    directory_of,
)
from wire.errors import ErrorCode, KafkaError
from wire.messages.broker_registration import Feature
from wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from wire.messages.records.cluster_metadata import PartitionChangeRecord
from wire.messages.unregister_broker import UnregisterBrokerRequest


def create(world: ControllerWorld, name: str, *replicas: int) -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment])
    assert world.submit(CreateTopicsRequest(topics=[topic])).topics[0].error_code == ErrorCode.NONE


def broker(world: ControllerWorld, broker_id: int) -> BrokerImage:
    return world.image.brokers[broker_id]


def test_a_new_incarnation_is_fenced_and_has_the_offset_of_its_record_as_epoch() -> None:
    world = ControllerWorld(brokers=0)
    offset = len(world.records)
    response = world.submit(world.registration(4))
    assert response.broker_epoch == offset
    assert (broker(world, 4).fenced, broker(world, 4).broker_epoch) == (True, offset)


REFUSED = [
    ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
    ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
    ({"log_dirs": [bytes(15) + b"\x01"]}, ErrorCode.INVALID_REGISTRATION),
    ({"log_dirs": [b"\xbb" * 16] * 2}, ErrorCode.INVALID_REGISTRATION),
    ({"log_dirs": [directory_of(1)]}, ErrorCode.INVALID_REGISTRATION),
    ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
    (
        {"features": [Feature(name="metadata.version", min_supported_version=7, max_supported_version=20)]},
        ErrorCode.UNSUPPORTED_VERSION,
    ),
]


@pytest.mark.parametrize(("fields", "code"), REFUSED)
def test_registrations_that_are_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    world = ControllerWorld(brokers=1)
    before = list(world.records)
    with pytest.raises(KafkaError) as raised:
        world.submit(world.registration(2, **fields))
    assert raised.value.code is code
    assert world.records == before


def test_a_second_broker_of_the_same_id_waits_for_the_session_of_the_first() -> None:
    world = ControllerWorld(brokers=1)
    with pytest.raises(KafkaError) as raised:
        world.submit(world.registration(1))
    assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    world.now_ms += SESSION_TIMEOUT_MS
    assert world.submit(world.registration(1)).broker_epoch > world.epochs[1]


def test_the_same_incarnation_keeps_epoch_and_fencing() -> None:
    world = ControllerWorld(brokers=1)
    request = world.registration(1, incarnation_id=broker(world, 1).incarnation_id)
    assert world.submit(request).broker_epoch == world.epochs[1]
    assert not broker(world, 1).fenced


def test_a_broker_is_unfenced_only_when_it_has_applied_its_registration() -> None:
    world = ControllerWorld(brokers=0)
    world.epochs[1] = world.submit(world.registration(1)).broker_epoch
    behind = world.heartbeat(1, current_metadata_offset=world.epochs[1] - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    unwilling = world.heartbeat(1, want_fence=True)
    assert (unwilling.is_caught_up, unwilling.is_fenced) == (True, True)
    assert not world.heartbeat(1).is_fenced


def test_heartbeats_of_strangers_and_of_old_incarnations_are_stale() -> None:
    world = ControllerWorld(brokers=1)
    world.epochs[9] = 3
    for broker_id, fields in ((9, {}), (1, {"broker_epoch": 0})):
        with pytest.raises(KafkaError) as raised:
            world.heartbeat(broker_id, **fields)
        assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_lapsed_session_fences_and_moves_the_leaders() -> None:
    world = ControllerWorld(brokers=2)
    create(world, "t", 1, 2)
    create(world, "alone", 1)
    world.now_ms += SESSION_TIMEOUT_MS - 1
    world.heartbeat(2)
    assert world.controller.next_deadline_ms() == world.now_ms + 1
    assert not world.expire().records
    world.now_ms += 1
    (event,) = world.expire().events
    assert "Broker 1" in event.text
    assert "broker.session.timeout.ms=9000" in event.text
    assert broker(world, 1).fenced
    assert (world.partition("t").leader, world.partition("t").isr) == (2, (2,))
    assert (world.partition("alone").leader, world.partition("alone").elr) == (NO_LEADER, (1,))
    assert not world.expire().records


def test_a_returning_broker_leads_what_nobody_leads() -> None:
    world = ControllerWorld(brokers=2)
    create(world, "alone", 1)
    world.now_ms += SESSION_TIMEOUT_MS
    world.heartbeat(2)
    world.expire()
    assert world.partition("alone").leader == NO_LEADER
    world.start_broker(1)
    assert (world.partition("alone").leader, world.partition("alone").isr) == (1, (1,))


@pytest.mark.parametrize(("knows_epoch", "recovering"), [(True, 0), (False, 1)])
def test_whether_a_stop_was_clean_is_shown_by_the_previous_epoch(knows_epoch: bool, recovering: int) -> None:
    world = ControllerWorld(brokers=1)
    create(world, "t", 1)
    world.now_ms += SESSION_TIMEOUT_MS
    previous = world.epochs[1] if knows_epoch else -1
    world.epochs[1] = world.submit(world.registration(1, previous_broker_epoch=previous)).broker_epoch
    assert (world.partition("t").leader, world.partition("t").isr) == (NO_LEADER, ())
    world.heartbeat(1)
    partition = world.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), recovering)


def test_a_controlled_shutdown_moves_leaders_and_waits_for_the_others_to_know() -> None:
    world = ControllerWorld(brokers=2)
    create(world, "t", 1, 2)
    first = world.heartbeat(1, want_shut_down=True)
    assert (first.should_shut_down, broker(world, 1).in_controlled_shutdown) == (False, True)
    assert (world.partition("t").leader, world.partition("t").isr) == (2, (2,))
    moved_at = len(world.records) - 1
    world.heartbeat(2, current_metadata_offset=moved_at - 1)
    assert not world.heartbeat(1, want_shut_down=True).should_shut_down
    world.heartbeat(2, current_metadata_offset=moved_at)
    last = world.heartbeat(1, want_shut_down=True)
    assert (last.should_shut_down, last.is_fenced, broker(world, 1).fenced) == (True, True, True)


def test_a_broker_that_leads_nothing_may_stop_at_once() -> None:
    world = ControllerWorld(brokers=2)
    create(world, "t", 2)
    assert world.heartbeat(1, want_shut_down=True).should_shut_down
    assert broker(world, 1).fenced


def test_an_unregistered_broker_is_gone_from_isr_and_brokers() -> None:
    world = ControllerWorld(brokers=2)
    create(world, "t", 1, 2)
    world.submit(UnregisterBrokerRequest(broker_id=1))
    assert 1 not in world.image.brokers
    assert (world.partition("t").leader, world.partition("t").isr) == (2, (2,))
    with pytest.raises(KafkaError) as raised:
        world.submit(UnregisterBrokerRequest(broker_id=1))
    assert raised.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_the_broker_of_the_controllers_own_process_needs_no_heartbeat() -> None:
    world = ControllerWorld(brokers=0, local_broker_id=1)
    world.start_broker(1)
    assert world.controller.next_deadline_ms() is None
    world.now_ms += 100 * SESSION_TIMEOUT_MS
    assert not world.expire().records


def test_a_new_controller_gives_every_live_broker_a_full_session() -> None:
    world = ControllerWorld(brokers=2)
    later = world.now_ms + 10 * SESSION_TIMEOUT_MS
    controller = Controller(world.image, later, broker_session_timeout_ms=SESSION_TIMEOUT_MS, local_broker_id=1)
    assert controller.next_deadline_ms() == later + SESSION_TIMEOUT_MS
    context = ControllerContext(world.settings, len(world.records))
    assert not controller.expire(context, later, world.ids).records
    assert controller.decide(world.registration(1), context, later, world.ids, 0).records


def test_k22_replicas_in_a_failed_directory_are_offline() -> None:
    world = ControllerWorld(brokers=1)
    first, second = b"\xb1" * 16, b"\xb2" * 16
    world.epochs[2] = world.submit(world.registration(2, log_dirs=[first, second])).broker_epoch
    world.heartbeat(2)
    create(world, "t", 2, 1)
    topic = world.image.topics.by_name("t")
    assert topic is not None
    # The broker has put the replica into its second directory (AssignReplicasToDirs).
    placed = PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, directories=[second, directory_of(1)])
    world.controller.replay(MetadataRecord(placed, 2), len(world.records))
    world.controller.take_change(1, world.now_ms)
    world.heartbeat(2, offline_log_dirs=[first])
    assert (world.partition("t").leader, broker(world, 2).log_dirs) == (2, (second,))
    world.heartbeat(1)
    before = len(world.records)
    world.heartbeat(2, offline_log_dirs=[first])
    assert len(world.records) == before
    world.epochs[2] = world.submit(
        world.registration(2, incarnation_id=broker(world, 2).incarnation_id, log_dirs=[first, second])
    ).broker_epoch
    world.heartbeat(2, offline_log_dirs=[second])
    assert (world.partition("t").leader, world.partition("t").isr) == (1, (1,))
    assert broker(world, 2).log_dirs == (first,)
