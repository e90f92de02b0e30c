"""The controller: the deciding machine behind `__cluster_metadata-0`.

It applies records at append: the next decision builds on them. If the leadership of the quorum is
lost, the machine is dropped with what was not committed. Source: Kafka's QuorumController.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.controller import brokers, configs, topics
from coordinator.controller.alter_partition import alter_partition
from coordinator.controller.assign_replicas import assign_replicas_to_dirs
from coordinator.controller.bootstrap import Activate, activate
from coordinator.controller.elect_leaders import elect_leaders
from coordinator.controller.feature_updates import update_features
from coordinator.controller.producer_ids import allocate_producer_ids
from coordinator.controller.sessions import BrokerContact, BrokerSessions
from coordinator.controller.view import ControllerContext, ControllerView, Outcome
from coordinator.machine import Decision, Event, Ids, MetadataRecord, ReplayAt, Ticket
from coordinator.metadata.delta import MetadataDelta
from coordinator.metadata.image import MetadataImage
from coordinator.metadata.replay import MetadataReplay
from wire.errors import KafkaError
from wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from wire.messages.alter_configs import AlterConfigsRequest
from wire.messages.alter_partition import AlterPartitionRequest
from wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from wire.messages.broker_registration import BrokerRegistrationRequest
from wire.messages.controller_registration import ControllerRegistrationRequest
from wire.messages.create_partitions import CreatePartitionsRequest
from wire.messages.create_topics import CreateTopicsRequest
from wire.messages.elect_leaders import ElectLeadersRequest
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from wire.messages.unregister_broker import UnregisterBrokerRequest
from wire.messages.update_features import UpdateFeaturesRequest

Decider = Callable[[Any, ControllerView], Outcome]

DECIDERS: Mapping[type, Decider] = {
    Activate: activate,
    BrokerRegistrationRequest: brokers.register_broker,
    BrokerHeartbeatRequest: brokers.heartbeat,
    UnregisterBrokerRequest: brokers.unregister_broker,
    ControllerRegistrationRequest: brokers.register_controller,
    CreateTopicsRequest: topics.create_topics,
    topics.DeleteTopics: topics.delete_topics,
    CreatePartitionsRequest: topics.create_partitions,
    AlterPartitionRequest: alter_partition,
    AssignReplicasToDirsRequest: assign_replicas_to_dirs,
    AllocateProducerIdsRequest: allocate_producer_ids,
    ElectLeadersRequest: elect_leaders,
    UpdateFeaturesRequest: update_features,
    IncrementalAlterConfigsRequest: configs.incremental_alter_configs,
    AlterConfigsRequest: configs.alter_configs,
}
"""Which function decides which request."""


class Controller:
    """The active controller; a `coordinator.machine.Machine`.

    `image` is what has been appended; the runtime publishes what `take_change` returns when it is
    committed.
    """

    replay_at = ReplayAt.APPEND

    def __init__(
        self,
        image: MetadataImage,
        now_ms: int,
        *,
        broker_session_timeout_ms: int,
        local_broker_id: int | None = None,
        deciders: Mapping[type, Decider] = DECIDERS,
    ) -> None:
        self._replay = MetadataReplay(image)
        self._sessions = BrokerSessions()
        self._session_timeout_ms = broker_session_timeout_ms
        self._deciders = deciders
        # A new controller gives every live broker a full session before it fences it. The broker
        # of this process has just started: what is registered is its last incarnation, long dead.
        for broker in image.brokers.values():
            self._sessions.set_fenced(broker.broker_id, broker.fenced)
            if broker.broker_id != local_broker_id:
                self._sessions.touch(BrokerContact(broker.broker_id, now_ms, -1))

    @property
    def image(self) -> MetadataImage:
        """The metadata as of the last append."""
        return self._replay.image

    def decide(
        self,
        request: Any,
        context: ControllerContext,
        now_ms: int,
        ids: Ids,
        ticket: Ticket,
    ) -> Decision[MetadataRecord]:
        """Decide one request of the kinds in `DECIDERS`; raises KafkaError when it is refused as a
        whole."""
        decider = self._deciders[type(request)]
        view = ControllerView(self.image, self._sessions, context, now_ms, ids)
        return _decision(decider(request, view), ticket)

    def settle(self, decision: Decision[MetadataRecord]) -> None:
        """Note the signs of life."""
        for contact in decision.volatile:
            self._sessions.touch(contact)

    def unsettle(self, decision: Decision[MetadataRecord], error: KafkaError) -> Decision[MetadataRecord]:
        """Every request is answered with the error: nothing of it has happened."""
        return Decision(replies=[(ticket, error) for ticket, _ in decision.replies])

    def replay(self, record: MetadataRecord, offset: int) -> None:
        """Add one appended record; see `take_change`."""
        self._replay.replay(record.message, offset)

    def take_change(self, epoch: int, timestamp_ms: int) -> tuple[MetadataDelta, MetadataImage] | None:
        """End an appended batch: what it changed, to be published when it is committed."""
        change = self._replay.take_change(epoch, timestamp_ms)
        if change is not None:
            for broker_id, broker in change[0].brokers.items():
                self._sessions.set_fenced(broker_id, broker is None or broker.fenced)
        return change

    def next_deadline_ms(self) -> int | None:
        """When the next broker session lapses."""
        return self._sessions.first_expiry_ms(self._session_timeout_ms)

    def expire(self, context: ControllerContext, now_ms: int, ids: Ids) -> Decision[MetadataRecord]:
        """Fence one broker whose session has lapsed: the next is decided with that in effect."""
        view = ControllerView(self.image, self._sessions, context, now_ms, ids)
        broker_id = self._sessions.first_expired(now_ms, self._session_timeout_ms)
        if broker_id is None:
            return Decision()
        text = (
            f"Broker {broker_id} is fenced: nothing was heard of it for "
            f"broker.session.timeout.ms={self._session_timeout_ms}."
        )
        records = brokers.fence(self.image.brokers[broker_id], view)
        return Decision(records=records, events=(Event(text),))


def _decision(outcome: Outcome, ticket: Ticket) -> Decision[MetadataRecord]:
    return Decision(
        records=outcome.records,
        replies=((ticket, outcome.response),),
        events=outcome.events,
        volatile=outcome.contacts,
    )
