"""The life of brokers and controllers: registration, heartbeats, fencing, shutdown (K18 to K22).

Source: Kafka's ClusterControlManager and BrokerHeartbeatManager; KIP-631, KIP-966, KIP-858.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator.controller.leader_election import (
    leads_any,
    records_with_broker,
    records_without_broker,
    records_without_directories,
)
from coordinator.controller.sessions import BrokerContact
from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import Event, MetadataRecord
from coordinator.metadata import features
from coordinator.metadata.image import BrokerImage, ControllerImage, Endpoint, FeatureRange
from coordinator.metadata.snapshot import broker_record, controller_record
from wire.errors import ErrorCode, KafkaError
from wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from wire.messages.records.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    UnregisterBrokerRecord,
)
from wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from wire.primitives import uuid_text

FENCE = 1
UNFENCE = -1


def endpoints_of(listeners: Sequence[Any]) -> tuple[Endpoint, ...]:
    """The endpoints in a registration request."""
    return tuple(
        Endpoint(listener.name, listener.host, listener.port, listener.security_protocol) for listener in listeners
    )


def _features_of(supported: Sequence[Any]) -> tuple[tuple[str, FeatureRange], ...]:
    return tuple(
        (feature.name, FeatureRange(feature.min_supported_version, feature.max_supported_version))
        for feature in supported
    )


def register_broker(request: BrokerRegistrationRequest, view: ControllerView) -> Outcome:
    """A broker has started. A new incarnation starts fenced, with the offset of its record as epoch."""
    settings = view.settings
    if request.cluster_id != settings.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Broker {request.broker_id} wants to register in cluster {request.cluster_id}, "
            f"but this is cluster {settings.cluster_id}.",
        )
    existing = view.image.brokers.get(request.broker_id)
    same = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and not same:
        _refuse_duplicate(existing, request, view)
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "Brokers that use ZooKeeper cannot be registered.")
    _check_log_dirs(request, view)
    supported = _features_of(request.features)
    check_features(request.broker_id, supported, view)
    records: list[MetadataRecord] = []
    if existing is not None and not same and features.supports_elr(view.metadata_version):
        # The epoch that the last clean stop left behind shows that nothing was lost since.
        clean = request.previous_broker_epoch == existing.broker_epoch
        records.extend(records_without_broker(view, request.broker_id, unclean=not clean))
    # Its own record comes after those that clean up behind its last incarnation.
    epoch = view.context.next_offset + len(records)
    broker = BrokerImage(
        broker_id=request.broker_id,
        broker_epoch=existing.broker_epoch if existing is not None and same else epoch,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_of(request.listeners),
        features=supported,
        rack=request.rack,
        fenced=existing.fenced if existing is not None and same else True,
        in_controlled_shutdown=(existing.in_controlled_shutdown if existing is not None and same else False),
        log_dirs=tuple(request.log_dirs),
    )
    records.append(broker_record(broker, view.metadata_version))
    return Outcome(
        BrokerRegistrationResponse(broker_epoch=broker.broker_epoch),
        records,
        events=(Event(f"Broker {broker.broker_id} registered with epoch {broker.broker_epoch}."),),
        contacts=(_contact(request.broker_id, -1, view),),
    )


def _contact(broker_id: int, metadata_offset: int, view: ControllerView, shutdown_offset: int = -1) -> BrokerContact:
    in_process = broker_id == view.settings.local_broker_id
    return BrokerContact(broker_id, view.now_ms, metadata_offset, in_process, shutdown_offset)


def _refuse_duplicate(existing: BrokerImage, request: BrokerRegistrationRequest, view: ControllerView) -> None:
    timeout_ms = view.settings.broker_session_timeout_ms
    if view.sessions.is_valid(existing.broker_id, view.now_ms, timeout_ms):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker is registered with broker id {existing.broker_id}: incarnation "
            f"{uuid_text(existing.incarnation_id)} is alive, {uuid_text(request.incarnation_id)} "
            f"must wait until its session lapses (broker.session.timeout.ms={timeout_ms}).",
        )


def _check_log_dirs(request: BrokerRegistrationRequest, view: ControllerView) -> None:
    if not features.supports_directory_assignment(view.metadata_version):
        return
    log_dirs = request.log_dirs
    problem = None
    if not log_dirs:
        problem = "no log directory is named"
    elif any(directory[:15] == bytes(15) and directory[15] < 100 for directory in log_dirs):
        problem = "a log directory has a reserved id"
    elif len(set(log_dirs)) != len(log_dirs):
        problem = "a log directory id is named twice"
    for other in view.image.brokers.values():
        taken = set(log_dirs) & set(other.log_dirs)
        if taken and other.broker_id != request.broker_id:
            problem = f"log directory {uuid_text(min(taken))} belongs to broker {other.broker_id}"
    if problem is not None:
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION,
            f"Broker {request.broker_id} cannot be registered: {problem}.",
        )


def check_features(node_id: int, supported: Sequence[tuple[str, FeatureRange]], view: ControllerView) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION unless the node supports every finalized feature."""
    ranges = dict(supported)
    lowest = features.MINIMUM_METADATA_VERSION
    ranges.setdefault(features.METADATA_VERSION, FeatureRange(lowest, lowest))
    for name, level in view.image.features.levels.items():
        levels = ranges.get(name, FeatureRange(0, 0))
        if not levels.min_level <= level <= levels.max_level:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register node {node_id} because it does not support the finalized "
                f"version {level} of {name}: it supports {levels.min_level} to {levels.max_level}.",
            )


def register_controller(request: ControllerRegistrationRequest, view: ControllerView) -> Outcome:
    """A controller makes itself known, so that brokers and tools find it."""
    if not features.supports_controller_registration(view.metadata_version):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Controller {request.controller_id} cannot be registered: metadata.version "
            f"{view.metadata_version} is below 15 (3.7-IV0).",
        )
    controller = ControllerImage(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        endpoints=endpoints_of(request.listeners),
        features=_features_of(request.features),
    )
    return Outcome(ControllerRegistrationResponse(), [controller_record(controller)])


def registered_broker(view: ControllerView, broker_id: int, broker_epoch: int) -> BrokerImage:
    """The broker that sends a request. Raises KafkaError STALE_BROKER_EPOCH when it is not
    registered or has registered anew since (ClusterControlManager.checkBrokerEpoch)."""
    broker = view.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"No broker registration found for broker id {broker_id}.",
        )
    if broker.broker_epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.broker_epoch} of broker {broker_id}, but got broker epoch {broker_epoch}.",
        )
    return broker


def heartbeat(request: BrokerHeartbeatRequest, view: ControllerView) -> Outcome:
    """A broker is alive, and says what it wants to be. It is unfenced once it has applied its own
    registration, and may stop once it leads nothing and the others know (K19, K20)."""
    broker = registered_broker(view, request.broker_id, request.broker_epoch)
    caught_up = request.current_metadata_offset >= broker.broker_epoch
    fenced, stopping, may_stop = broker.fenced, broker.in_controlled_shutdown, False
    known = view.sessions.contact(broker.broker_id)
    shutdown_offset = -1 if known is None else known.shutdown_offset
    records: list[MetadataRecord] = []
    if broker.fenced:
        if request.want_shut_down:
            may_stop = True
        elif not request.want_fence and caught_up:
            records = _unfence(broker, view)
            fenced = False
    elif broker.in_controlled_shutdown or request.want_shut_down or request.want_fence:
        leads = leads_any(view, broker.broker_id)
        gently = request.want_shut_down and not request.want_fence
        if gently and not broker.in_controlled_shutdown and leads:
            records = _begin_controlled_shutdown(broker, view)
            stopping = True
            shutdown_offset = view.context.next_offset + len(records) - 1
        elif not broker.in_controlled_shutdown or not (leads or _others_lag_behind(broker, view)):
            records = fence(broker, view)
            fenced = True
            may_stop = request.want_shut_down or broker.in_controlled_shutdown
    if not records and not fenced:
        records = _directories_failed(broker, request.offline_log_dirs, view)
    return Outcome(
        BrokerHeartbeatResponse(
            is_caught_up=caught_up,
            is_fenced=fenced,
            should_shut_down=may_stop,
        ),
        records,
        events=_state_events(broker, fenced=fenced, stopping=stopping),
        contacts=(_contact(broker.broker_id, request.current_metadata_offset, view, shutdown_offset),),
    )


def _state_events(broker: BrokerImage, *, fenced: bool, stopping: bool) -> tuple[Event, ...]:
    if fenced != broker.fenced:
        return (Event(f"Broker {broker.broker_id} is {'fenced' if fenced else 'unfenced'}."),)
    if stopping != broker.in_controlled_shutdown:
        return (Event(f"Broker {broker.broker_id} begins a controlled shutdown."),)
    return ()


def _directories_failed(broker: BrokerImage, offline: Sequence[bytes], view: ControllerView) -> list[MetadataRecord]:
    """The records for log directories that were online until now (KIP-858)."""
    failed = [directory for directory in broker.log_dirs if directory in offline]
    left = [directory for directory in broker.log_dirs if directory not in offline]
    # A broker without a directory stops; its record could not say so, as no directories mean no change.
    if not failed or not left or not features.supports_directory_assignment(view.metadata_version):
        return []
    change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, log_dirs=left)
    return [*records_without_directories(view, broker.broker_id, failed), MetadataRecord(change, 2)]


def _others_lag_behind(broker: BrokerImage, view: ControllerView) -> bool:
    """Whether a broker that stays has not yet seen the partitions move away from this one."""
    others = [
        other.broker_id for other in view.image.brokers.values() if other.active and other.broker_id != broker.broker_id
    ]
    own = view.sessions.contact(broker.broker_id)
    moved_at = -1 if own is None else own.shutdown_offset
    return view.sessions.lowest_metadata_offset(others) < moved_at


def _registration_change(
    broker: BrokerImage, version: int, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> MetadataRecord:
    return MetadataRecord(
        BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id,
            broker_epoch=broker.broker_epoch,
            fenced=fenced,
            in_controlled_shutdown=in_controlled_shutdown,
        ),
        version,
    )


def _unfence(broker: BrokerImage, view: ControllerView) -> list[MetadataRecord]:
    return [
        _registration_change(broker, 0, fenced=UNFENCE),
        *records_with_broker(view, broker.broker_id),
    ]


def fence(broker: BrokerImage, view: ControllerView) -> list[MetadataRecord]:
    """The records that take a broker out: its partitions first, then its registration."""
    return [
        *records_without_broker(view, broker.broker_id),
        _registration_change(broker, 0, fenced=FENCE),
    ]


def _begin_controlled_shutdown(broker: BrokerImage, view: ControllerView) -> list[MetadataRecord]:
    return [
        _registration_change(broker, 1, in_controlled_shutdown=1),
        *records_without_broker(view, broker.broker_id),
    ]


def unregister_broker(request: UnregisterBrokerRequest, view: ControllerView) -> Outcome:
    """Remove a broker for good; raises KafkaError BROKER_ID_NOT_REGISTERED (K21)."""
    broker = view.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker id {request.broker_id} is not currently registered.",
        )
    records = [
        *records_without_broker(view, broker.broker_id, unclean=True),
        MetadataRecord(UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)),
    ]
    return Outcome(
        UnregisterBrokerResponse(error_message=None),
        records,
        events=(Event(f"Broker {broker.broker_id} is unregistered."),),
    )
