"""DescribeConfigs (key 32): settings of topics, brokers, loggers, client metrics and groups.

Versions 1-4; 3 adds types and documentation, 4 is flexible (v0 with `is_default` is gone: I31).

Behaviour: each resource is answered on its own, those that may not be seen last. Null or empty keys mean
all, unknown keys are left out. A broker tells its own settings and those for all brokers (empty name);
groups and client metrics need not exist (KIP-848, KIP-1000). Values of passwords and of settings that
no table knows are null. Settings that begin with `odradek.` are ours and follow Kafka's.

Source: ConfigHelper.handleDescribeConfigsRequest. Documentation is worded by us.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from broker.config_loggers import logger_levels
from broker.security.authorizer import Operation, ResourceType
from coordinator.controller.topic_names import name_problem
from coordinator.settings import resources
from coordinator.settings.definition import SettingType
from coordinator.settings.describe import (
    DescribedSetting,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from coordinator.settings.layers import ConfigSource
from coordinator.settings.values import integer
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    """Every resource's settings or error; an unknown type of resource refuses the whole request."""
    for resource in request.resources:
        if resource.resource_type not in resources.NAMES:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected resource type {resource.resource_type} for resource {resource.resource_name}",
            )
    seen, hidden = [], []
    for resource in request.resources:
        denied = _denial(resource, context)
        if denied is not None:
            hidden.append(_failed(resource, denied))
            continue
        try:
            described = _describe(resource, context)
        except KafkaError as error:
            seen.append(_failed(resource, error))
            continue
        seen.append(
            DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=_results(described, request, resource.resource_type),
            )
        )
    return DescribeConfigsResponse(results=seen + hidden)


def _denial(resource: DescribeConfigsResource, context: RequestContext) -> KafkaError | None:
    name = resource.resource_name
    if resource.resource_type == resources.TOPIC:
        if not context.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
            text = f"DESCRIBE_CONFIGS on topic {name} is needed."
            return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text)
    elif resource.resource_type == resources.GROUP:
        if not context.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, name):
            text = f"DESCRIBE_CONFIGS on group {name} is needed."
            return KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, text)
    elif not context.authorize_cluster(Operation.DESCRIBE_CONFIGS):
        return KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "DESCRIBE_CONFIGS on the cluster is needed.")
    return None


def _describe(resource: DescribeConfigsResource, context: RequestContext) -> list[DescribedSetting]:
    """The settings of one resource; raises KafkaError."""
    kind, name, keys = resource.resource_type, resource.resource_name, resource.configuration_keys
    node = context.node
    values = node.config.values
    if kind == resources.BROKER:
        if name == "":
            return describe_cluster_default(values, keys)
        if _broker_id(name) != node.broker_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {node.broker_id} or empty string, but received {name}",
            )
        return describe_broker(values, keys)
    if kind == resources.BROKER_LOGGER:
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        if _broker_id(name) != node.broker_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {node.broker_id} but received {name}",
            )
        return _loggers(keys)
    overrides = node.metadata.image.configs.of(kind, name)
    if kind == resources.TOPIC:
        problem = name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if node.metadata.image.topics.by_name(name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
        return describe_topic(values, overrides, keys)
    if kind == resources.GROUP:
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return describe_group(values, overrides, keys)
    if name == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    return describe_client_metrics(overrides, keys)


def _broker_id(name: str) -> int:
    try:
        return integer(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}") from None


def _loggers(keys: Collection[str] | None) -> list[DescribedSetting]:
    return [
        DescribedSetting(name, level, False, ConfigSource.BROKER_LOGGER, False, [], SettingType.UNKNOWN)
        for name, level in logger_levels().items()
        if not keys or name in keys
    ]


def _results(
    described: Sequence[DescribedSetting], request: DescribeConfigsRequest, kind: int
) -> list[DescribeConfigsResourceResult]:
    documented: Callable[[int, str], str | None]
    if kind == resources.BROKER_LOGGER:
        documented = _no_documentation
    elif request.include_documentation:
        from coordinator.settings.documentation import documentation as documented
    else:
        documented = _not_asked_for

    return [
        DescribeConfigsResourceResult(
            name=setting.name,
            value=setting.value,
            read_only=setting.read_only,
            config_source=setting.source,
            is_sensitive=setting.is_sensitive,
            synonyms=[
                DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
                for synonym in setting.synonyms
            ]
            if request.include_synonyms
            else [],
            config_type=setting.type,
            documentation=documented(kind, setting.name),
        )
        for setting in described
    ]


def _no_documentation(_kind: int, _name: str) -> str:
    """Kafka leaves the field of loggers at its default, which is the empty text."""
    return ""


def _not_asked_for(_kind: int, _name: str) -> None:
    return None


def _failed(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )
