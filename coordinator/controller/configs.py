"""IncrementalAlterConfigs and AlterConfigs decided as ConfigRecords, in Kafka's order of errors (I.4).

Each resource is decided on its own, whole or not at all. What only the broker in question can judge
(its dynamic settings, doubled keys, authorisation) its handler has judged before. Source:
ControllerApis, ConfigurationControlManager, ControllerConfigurationValidator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.controller.topic_names import name_problem
from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import Event, MetadataRecord
from coordinator.metadata.features import ELR_VERSION
from coordinator.settings import resources
from coordinator.settings.values import integer
from wire.errors import ErrorCode, KafkaError
from wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.records.cluster_metadata import ClearElrRecord, ConfigRecord

SET, DELETE, APPEND, SUBTRACT = range(4)
OPERATION_NAMES = ("SET", "DELETE", "APPEND", "SUBTRACT")

MIN_INSYNC_REPLICAS = "min.insync.replicas"
VALUE_LENGTH_MAX = 32_767

Changes = dict[str, str | None]
"""New values by name; None removes."""


def incremental_alter_configs(request: IncrementalAlterConfigsRequest, view: ControllerView) -> Outcome:
    """Change the named settings of each resource and leave its others."""
    records: list[MetadataRecord] = []
    events: list[Event] = []
    responses = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        code, message = ErrorCode.NONE, None
        try:
            before = view.image.configs.of(kind, name)
            changes = {
                config.name: _new_value(kind, config, before.get(config.name), view) for config in resource.configs
            }
            kept = _checked(kind, name, before, changes, changes, view)
            records += kept
            events += _events(kind, name, kept)
        except KafkaError as error:
            code, message = error.code, error.message
        responses.append(
            IncrementalResourceResponse(error_code=code, error_message=message, resource_type=kind, resource_name=name)
        )
    response = IncrementalAlterConfigsResponse(responses=responses)
    return Outcome(response) if request.validate_only else Outcome(response, _with_elr(records, view), events=events)


def alter_configs(request: AlterConfigsRequest, view: ControllerView) -> Outcome:
    """Replace all dynamic settings of each resource by the given ones (deprecated since 2.3, KIP-339)."""
    records: list[MetadataRecord] = []
    events: list[Event] = []
    responses = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        code, message = ErrorCode.NONE, None
        try:
            before = view.image.configs.of(kind, name)
            given: Changes = {config.name: config.value for config in resource.configs}
            removed: Changes = {key: None for key in before if key not in given}
            kept = _checked(kind, name, before, given, {**given, **removed}, view)
            records += kept
            events += _events(kind, name, kept)
        except KafkaError as error:
            code, message = error.code, error.message
        responses.append(
            AlterConfigsResourceResponse(error_code=code, error_message=message, resource_type=kind, resource_name=name)
        )
    response = AlterConfigsResponse(responses=responses)
    return Outcome(response) if request.validate_only else Outcome(response, _with_elr(records, view), events=events)


# --- one setting -----------------------------------------------------------------------------------


def _new_value(kind: int, config: Any, current: str | None, view: ControllerView) -> str | None:
    """What one operation makes of a setting's value."""
    operation, name = config.config_operation, config.name
    if operation == SET:
        return str(config.value)
    if operation == DELETE:
        return None
    if operation not in (APPEND, SUBTRACT):
        # Kafka falls over it and answers this; its own clients cannot send it.
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Unknown operation {operation} for configuration {name}: 0 SET, 1 DELETE, 2 APPEND, 3 SUBTRACT are known.",
        )
    rules = view.settings.topic_settings
    if kind == resources.TOPIC and rules.is_list_of_topic(name):
        start = rules.topic_list_start
    elif kind == resources.BROKER and rules.is_list_of_broker(name):
        start = rules.broker_list_start
    else:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {OPERATION_NAMES[operation]} to key {name} because its type is not LIST.",
        )
    elements = start(name) if current is None else [element for element in current.split(",") if element]
    return ",".join(changed_list(operation, elements, config.value))


def changed_list(operation: int, elements: list[str], given: str) -> list[str]:
    """A list after APPEND or SUBTRACT: appending what is there and removing what is not change nothing.

    Commas at the end of what is given count for nothing (String.split), the empty text is one empty element.
    """
    changed = list(elements)
    without_end = given.rstrip(",")
    for element in without_end.split(",") if without_end or not given else ():
        if operation == APPEND:
            if element not in changed:
                changed.append(element)
        elif element in changed:
            changed.remove(element)
    return changed


# --- one resource ----------------------------------------------------------------------------------


def _checked(
    kind: int, name: str, before: Mapping[str, str], given: Changes, changes: Changes, view: ControllerView
) -> list[MetadataRecord]:
    """The records of one resource's changes; raises KafkaError. `given` are those that were asked for,
    `changes` also those that follow (a legacy AlterConfigs removes what it does not name)."""
    for key, value in changes.items():
        _check_min_insync_replicas(kind, name, key, value, view)
        if value is not None and len(value) > VALUE_LENGTH_MAX:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"The value of configuration {key} has {len(value)} characters: it may have {VALUE_LENGTH_MAX}.",
            )
    after = {key: value for key, value in {**before, **changes}.items() if value is not None}
    check_resource(kind, name, after, before, view)
    return [
        MetadataRecord(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
        for key, value in changes.items()
        # A broker's setting is written even if unchanged: it lets the broker load a key store anew (KAFKA-14136).
        if before.get(key) != value or (kind == resources.BROKER and key in given)
    ]


def check_resource(
    kind: int, name: str, after: Mapping[str, str], before: Mapping[str, str], view: ControllerView
) -> None:
    """Raise KafkaError unless the resource exists and may have the settings `after`: the settings first."""
    rules = view.settings.topic_settings
    if kind == resources.TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        problem = name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        rules.check(after, before)
        if view.image.topics.by_name(name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif kind == resources.BROKER:
        _check_broker(name, view)
    elif kind == resources.CLIENT_METRICS:
        rules.check_client_metrics(name, after)
    elif kind == resources.GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        rules.check_group(after)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _check_broker(name: str, view: ControllerView) -> None:
    """A broker's own settings need a registered node; those for all brokers (no name) need nothing."""
    if not name:
        return
    try:
        node_id = integer(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unable to parse broker name {name!r} as a base 10 number."
        ) from None
    if node_id < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid negative broker ID {node_id}.")
    if node_id not in view.image.brokers and node_id not in view.image.controllers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {node_id} found.")


# --- eligible leader replicas (KIP-966) --------------------------------------------------------------


def _has_elr(view: ControllerView) -> bool:
    return view.image.features.level(ELR_VERSION) >= 1


def _check_min_insync_replicas(kind: int, name: str, key: str, value: str | None, view: ControllerView) -> None:
    """With ELR the controller decides by the cluster-wide value: it must be there, and no broker's own (I34)."""
    if kind != resources.BROKER or key != MIN_INSYNC_REPLICAS or not _has_elr(view):
        return
    if name:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled: "
            "set it for all brokers (no broker id) or for a topic.",
        )
    if not name and value is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled: set it to another value.",
        )


def _with_elr(records: list[MetadataRecord], view: ControllerView) -> list[MetadataRecord]:
    """A changed min.insync.replicas makes the eligible leaders doubtful: those of the topic, or all."""
    if not _has_elr(view):
        return records
    cleared = []
    for record in records:
        message = record.message
        if message.name == MIN_INSYNC_REPLICAS and message.resource_type in (resources.TOPIC, resources.BROKER):
            topic = message.resource_name if message.resource_type == resources.TOPIC else ""
            cleared.append(MetadataRecord(ClearElrRecord(topic_name=topic)))
    return records + cleared


def _events(kind: int, name: str, records: list[MetadataRecord]) -> list[Event]:
    what = resources.NAMES[kind]
    changed = [
        f"{record.message.name} is removed" if record.message.value is None else f"{record.message.name} is set"
        for record in records
    ]
    return [Event(f"Settings of {what} {name or '(all)'}: {', '.join(changed)}.")] if changed else []
