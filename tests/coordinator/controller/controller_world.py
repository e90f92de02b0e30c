"""A controller without a log, a clock or chance: what tests of decisions drive.

world = ControllerWorld(brokers=3)
answer = world.submit(CreateTopicsRequest(...))
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.controller.bootstrap import Activate, bootstrap_records
from coordinator.controller.controller import Controller
from coordinator.controller.view import ControllerContext, ControllerSettings, EffectiveSetting
from coordinator.machine import Decision, MetadataRecord
from coordinator.metadata.features import SERVED_FEATURES
from coordinator.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage
from wire.errors import ErrorCode, KafkaError
from wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener

CLUSTER_ID = "the-cluster"
SESSION_TIMEOUT_MS = 9_000
START_MS = 1_700_000_000_000


class SeededIds:
    """Ids and chance from a seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> bytes:
        return bytes([1]) + self._random.randbytes(15)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


class FewTopicSettings:
    """Two settings, one of them a number: enough to tell an unknown key from a bad value."""

    def check(self, configs: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
        for name, value in configs.items():
            if name not in ("retention.ms", "min.insync.replicas", "unclean.leader.election.enable"):
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
            if name != "unclean.leader.election.enable" and not value.lstrip("-").isdigit():
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Invalid value {value} for configuration {name}")

    def effective(self, configs: Mapping[str, str], cluster_default: Mapping[str, str]) -> Sequence[EffectiveSetting]:
        return [EffectiveSetting("retention.ms", configs.get("retention.ms", "604800000"), False, 5, False)]


def directory_of(broker_id: int) -> bytes:
    """The one log directory of a broker in these tests."""
    return bytes([200]) * 15 + bytes([broker_id])


class ControllerWorld:
    """The controller, the records it has decided, and the brokers as they were told to be."""

    def __init__(self, brokers: int = 1, *, racks: Sequence[str | None] = (), **settings: Any) -> None:
        self.settings = ControllerSettings(
            cluster_id=CLUSTER_ID,
            topic_settings=FewTopicSettings(),  # type: ignore[arg-type]
            broker_session_timeout_ms=SESSION_TIMEOUT_MS,
            **settings,
        )
        self.now_ms = START_MS
        self.ids = SeededIds()
        self.records: list[MetadataRecord] = []
        self.epochs: dict[int, int] = {}
        self.controller = Controller(EMPTY_IMAGE, self.now_ms, broker_session_timeout_ms=SESSION_TIMEOUT_MS)
        self.submit(Activate(tuple(bootstrap_records())))
        for broker_id in range(1, brokers + 1):
            self.start_broker(broker_id, racks[broker_id - 1] if racks else None)

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def submit(self, request: Any, api_version: int = -1) -> Any:
        """Decide and append; the response. A refusal of the whole request is raised."""
        context = ControllerContext(self.settings, len(self.records), api_version)
        decision = self.controller.decide(request, context, self.now_ms, self.ids, 0)
        self._append(decision)
        return decision.replies[0][1]

    def expire(self) -> Decision[MetadataRecord]:
        """Let the controller do what is due."""
        context = ControllerContext(self.settings, len(self.records))
        decision = self.controller.expire(context, self.now_ms, self.ids)
        self._append(decision)
        return decision

    def _append(self, decision: Decision[MetadataRecord]) -> None:
        self.controller.settle(decision)
        for record in decision.records:
            self.controller.replay(record, len(self.records))
            self.records.append(record)
        self.controller.take_change(1, self.now_ms)

    def registration(self, broker_id: int, **fields: Any) -> BrokerRegistrationRequest:
        """A registration request that is in order; `fields` replace parts of it."""
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=self.ids.uuid(),
            listeners=[Listener(name="PLAINTEXT", host=f"host{broker_id}", port=9092)],
            features=[
                Feature(
                    name=feature.name,
                    min_supported_version=feature.min_level,
                    max_supported_version=feature.max_level,
                )
                for feature in SERVED_FEATURES
            ],
            log_dirs=[directory_of(broker_id)],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def start_broker(self, broker_id: int, rack: str | None = None) -> None:
        """Register a broker and unfence it."""
        response = self.submit(self.registration(broker_id, rack=rack))
        self.epochs[broker_id] = response.broker_epoch
        self.heartbeat(broker_id)

    def heartbeat(self, broker_id: int, **fields: Any) -> BrokerHeartbeatResponse:
        """A heartbeat of a broker that has applied everything and wants to be alive."""
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.epochs[broker_id],
            current_metadata_offset=len(self.records) - 1,
            want_fence=False,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        response: BrokerHeartbeatResponse = self.submit(request)
        return response

    def partition(self, topic: str, index: int = 0) -> PartitionImage:
        """A partition that has to be there."""
        partition = self.image.topics.partition(topic, index)
        assert partition is not None, f"{topic}-{index} is not there"
        return partition
