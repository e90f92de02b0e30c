"""What a broker judges of a change of settings before the controller decides it: for both Alter APIs.

Malformed requests, resources that are for another broker, this broker's own dynamic settings, its
loggers; then authorisation. Source: ConfigAdminManager (preprocess), ControllerApis (authorization).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.config_loggers import LEVELS, ROOT, logger_exists, set_logger_level
from broker.security.authorizer import Operation, ResourceType
from coordinator.controller.configs import APPEND, DELETE, OPERATION_NAMES, SET, SUBTRACT, changed_list
from coordinator.settings import resources
from coordinator.settings.alter_broker import check_broker_change
from coordinator.settings.definition import SettingType
from coordinator.settings.layers import find_setting
from coordinator.settings.values import InvalidSetting, integer
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

Judged = dict[int, KafkaError | None]
"""By a resource's place in the request: its refusal, or None where it is done with."""


def doubled_resources(requested: Sequence[Any]) -> Judged:
    """A resource named twice is refused each time."""
    counts = Counter((resource.resource_type, resource.resource_name) for resource in requested)
    return {
        place: KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Each resource must appear at most once: {_named(resource)} is named "
            f"{counts[resource.resource_type, resource.resource_name]} times.",
        )
        for place, resource in enumerate(requested)
        if counts[resource.resource_type, resource.resource_name] > 1
    }


def check_keys(resource: Any, *, deletes: bool) -> None:
    """No key twice, and no null but to delete; raises KafkaError INVALID_REQUEST."""
    names = [config.name for config in resource.configs]
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        text = f"Error due to duplicate config keys of {_named(resource)}: {', '.join(doubled)}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    nulls = [
        config.name
        for config in resource.configs
        if config.value is None and not (deletes and config.config_operation == DELETE)
    ]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def check_node_id(resource: Any, context: RequestContext) -> None:
    """The resource is this node; raises KafkaError INVALID_REQUEST."""
    name, node_id = resource.resource_name, context.node.broker_id
    try:
        named = integer(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}") from None
    if named != node_id:
        text = f"Unexpected broker id, expected {node_id}, but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)


# --- dynamic settings of this broker -------------------------------------------------------------------


def check_broker_settings(resource: Any, proposed: Mapping[str, str], context: RequestContext) -> None:
    """`proposed` may be all the dynamic settings of the broker resource; raises KafkaError INVALID_REQUEST."""
    try:
        check_broker_change(context.node.config.values, proposed, per_broker=resource.resource_name != "")
    except InvalidSetting as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


def incremented(resource: Any, context: RequestContext) -> dict[str, str]:
    """The dynamic settings of a broker resource after the operations; raises KafkaError."""
    texts = dict(context.node.metadata.image.configs.of(resources.BROKER, resource.resource_name))
    for config in resource.configs:
        operation, name = config.config_operation, config.name
        if operation == SET:
            texts[name] = config.value
        elif operation == DELETE:
            texts.pop(name, None)
        elif operation in (APPEND, SUBTRACT):
            setting = find_setting(name)
            if setting is None:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
            if setting.type is not SettingType.LIST:
                verb = OPERATION_NAMES[operation].lower()
                text = f"Config value {verb} is not allowed for config key: {name}, which is no list"
                raise KafkaError(ErrorCode.INVALID_CONFIG, text)
            elements = [element for element in (texts.get(name) or setting.default or "").split(",") if element]
            texts[name] = ",".join(changed_list(operation, elements, config.value))
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation} for {name}")
    return texts


# --- loggers of this node -------------------------------------------------------------------------------


def change_loggers(resource: Any, context: RequestContext, *, validate_only: bool) -> None:
    """Check and set levels of loggers; raises KafkaError and then has set none."""
    if not context.authorize_cluster(Operation.ALTER_CONFIGS):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ALTER_CONFIGS on the cluster is needed.")
    check_node_id(resource, context)
    for config in resource.configs:
        _check_logger(config)
    if not validate_only:
        for config in resource.configs:
            set_logger_level(config.name, config.value if config.config_operation == SET else None)


def _check_logger(config: Any) -> None:
    name, level, operation = config.name, config.value, config.config_operation
    if operation == SET:
        _check_logger_exists(name)
        if level not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
                f"Valid log levels are {', '.join(LEVELS)}",
            )
    elif operation == DELETE:
        _check_logger_exists(name)
        if name == ROOT:
            text = "Removing the log level of the root logger is not allowed"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    elif operation in (APPEND, SUBTRACT):
        text = f"{OPERATION_NAMES[operation]} operation is not allowed for the BROKER_LOGGER resource"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {operation} for logger {name}")


def _check_logger_exists(name: str) -> None:
    if not logger_exists(name):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


# --- authorisation --------------------------------------------------------------------------------------


def check_authorized(resource: Any, context: RequestContext) -> None:
    """ALTER_CONFIGS on what is changed; raises KafkaError."""
    name = resource.resource_name
    if resource.resource_type == resources.TOPIC:
        allowed = context.authorize(Operation.ALTER_CONFIGS, ResourceType.TOPIC, name)
        code, what = ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"topic {name}"
    elif resource.resource_type == resources.GROUP:
        allowed = context.authorize(Operation.ALTER_CONFIGS, ResourceType.GROUP, name)
        code, what = ErrorCode.GROUP_AUTHORIZATION_FAILED, f"group {name}"
    else:
        allowed = context.authorize_cluster(Operation.ALTER_CONFIGS)
        code, what = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the cluster"
    if not allowed:
        raise KafkaError(code, f"ALTER_CONFIGS on {what} is needed.")


def _named(resource: Any) -> str:
    kind = resources.NAMES.get(resource.resource_type, f"resource type {resource.resource_type}")
    return f"{kind} {resource.resource_name}"
