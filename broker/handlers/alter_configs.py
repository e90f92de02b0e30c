"""AlterConfigs (key 33): replace all dynamic settings of topics, brokers, client metrics and groups.

Versions 0-2; 2 is flexible. Superseded by IncrementalAlterConfigs (KIP-339) and still served.

Behaviour: what a request does not name goes back to its default (I35). Each resource is changed whole or not
at all. Loggers cannot be changed this way. What depends on this broker is refused here, the rest is decided by
the controller. `validate_only` does everything but the change.

Left out: as in IncrementalAlterConfigs.
Source: ConfigAdminManager.preprocess, ControllerApis.handleLegacyAlterConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.handlers import config_changes
from coordinator.settings import resources
from wire.errors import ErrorCode, KafkaError
from wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Judge here, let the controller decide what is left, answer in the order of the request."""
    judged = config_changes.doubled_resources(request.resources)
    for place, resource in enumerate(request.resources):
        if place in judged:
            continue
        try:
            _preprocess(resource, context)
            config_changes.check_authorized(resource, context)
        except KafkaError as error:
            judged[place] = error
    left = [resource for place, resource in enumerate(request.resources) if place not in judged]
    decided = []
    if left:
        forwarded = AlterConfigsRequest(resources=left, validate_only=request.validate_only)
        decided = (await context.node.controller.request(forwarded, context)).responses
    answers = iter(decided)
    return AlterConfigsResponse(
        responses=[
            _answer(resource, judged[place]) if place in judged else next(answers)
            for place, resource in enumerate(request.resources)
        ]
    )


def _preprocess(resource: Any, context: RequestContext) -> None:
    """Raises KafkaError where the resource is refused here."""
    config_changes.check_keys(resource, deletes=False)
    kind = resource.resource_type
    if kind == resources.BROKER:
        if resource.resource_name != "":
            config_changes.check_node_id(resource, context)
        proposed = {config.name: config.value for config in resource.configs}
        config_changes.check_broker_settings(resource, proposed, context)
    elif kind == resources.BROKER_LOGGER or kind not in resources.NAMES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _answer(resource: Any, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
