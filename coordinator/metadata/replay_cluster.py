"""Replay of the records about nodes, features and producer ids. Source: Kafka's ClusterDelta,
FeaturesDelta and ProducerIdsDelta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordinator.metadata.image import BrokerImage, ControllerImage, Endpoint, FeatureRange
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.messages.records import cluster_metadata as records

if TYPE_CHECKING:
    from coordinator.metadata.delta import MetadataDelta


def _endpoints(end_points: Sequence[Any]) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol) for endpoint in end_points
    )


def _features(features: Sequence[Any]) -> tuple[tuple[str, FeatureRange], ...]:
    return tuple(
        (feature.name, FeatureRange(feature.min_supported_version, feature.max_supported_version))
        for feature in features
    )


def register_broker(delta: MetadataDelta, record: records.RegisterBrokerRecord) -> None:
    """A broker has registered, for the first time or again; what was known of it is replaced."""
    cordoned = record.cordoned_log_dirs
    delta.brokers[record.broker_id] = BrokerImage(
        broker_id=record.broker_id,
        broker_epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=tuple(record.log_dirs),
        cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
    )


def _registered(delta: MetadataDelta, broker_id: int, broker_epoch: int, what: str) -> BrokerImage:
    broker = delta.broker(broker_id)
    if broker is None:
        raise MetadataReplayError(f"{what} names broker {broker_id}, which is not registered")
    if broker.broker_epoch != broker_epoch:
        raise MetadataReplayError(
            f"{what} names epoch {broker_epoch} of broker {broker_id}, "
            f"which is registered with epoch {broker.broker_epoch}"
        )
    return broker


def unregister_broker(delta: MetadataDelta, record: records.UnregisterBrokerRecord) -> None:
    """A broker has been removed for good."""
    _registered(delta, record.broker_id, record.broker_epoch, "UnregisterBrokerRecord")
    delta.brokers[record.broker_id] = None


def fence_broker(delta: MetadataDelta, record: records.FenceBrokerRecord) -> None:
    """A broker has been fenced (the form of metadata.version 3.0; later ones change registrations)."""
    broker = _registered(delta, record.id, record.epoch, "FenceBrokerRecord")
    delta.brokers[record.id] = replace(broker, fenced=True)


def unfence_broker(delta: MetadataDelta, record: records.UnfenceBrokerRecord) -> None:
    """A broker has been unfenced (the old form, see `fence_broker`)."""
    broker = _registered(delta, record.id, record.epoch, "UnfenceBrokerRecord")
    delta.brokers[record.id] = replace(broker, fenced=False)


def broker_registration_change(delta: MetadataDelta, record: records.BrokerRegistrationChangeRecord) -> None:
    """A broker's state has changed. `fenced` is 1 to fence, -1 to unfence, 0 for no change;
    `in_controlled_shutdown` is 1 when the shutdown begins."""
    what = "BrokerRegistrationChangeRecord"
    broker = _registered(delta, record.broker_id, record.broker_epoch, what)
    if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
        raise MetadataReplayError(
            f"{what} for broker {record.broker_id} has fenced {record.fenced} and "
            f"in_controlled_shutdown {record.in_controlled_shutdown}, which mean nothing"
        )
    cordoned = record.cordoned_log_dirs
    delta.brokers[record.broker_id] = replace(
        broker,
        fenced=broker.fenced if record.fenced == 0 else record.fenced == 1,
        in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        log_dirs=tuple(record.log_dirs) or broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else tuple(cordoned),
    )


def register_controller(delta: MetadataDelta, record: records.RegisterControllerRecord) -> None:
    """A controller has registered."""
    delta.controllers[record.controller_id] = ControllerImage(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
    )


def unregister_controller(delta: MetadataDelta, record: records.UnregisterControllerRecord) -> None:
    """A controller has been removed for good."""
    delta.controllers[record.controller_id] = None


def feature_level(delta: MetadataDelta, record: records.FeatureLevelRecord) -> None:
    """A feature has been finalized at a level; whether that is served is asked when the change is taken."""
    delta.features[record.name] = record.feature_level


def producer_ids(delta: MetadataDelta, record: records.ProducerIdsRecord) -> None:
    """A block of producer ids has been handed out; the next one starts here."""
    delta.next_producer_id = record.next_producer_id
