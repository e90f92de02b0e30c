"""IncrementalAlterConfigs (key 44): change single settings of topics, brokers, loggers, client metrics, groups.

Versions 0-1; 1 is flexible.

Behaviour: each resource is changed whole or not at all, and answered in the order of the request. Operations
are SET, DELETE, and for lists APPEND and SUBTRACT (KIP-339). What depends on this broker is refused here, in
the order of semantics I.4; loggers are changed here; the rest is decided by the controller and is in effect on
this broker when it is answered. `validate_only` does everything but the change.

Left out: alter.config.policy.class.name (no Java here), a change of listeners while the node runs.
Source: ConfigAdminManager.preprocess, ControllerApis.handleIncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.handlers import config_changes
from coordinator.settings import resources
from wire.errors import ErrorCode, KafkaError
from wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: IncrementalAlterConfigsRequest, context: RequestContext) -> IncrementalAlterConfigsResponse:
    """Judge here, let the controller decide what is left, answer in the order of the request."""
    judged = config_changes.doubled_resources(request.resources)
    for place, resource in enumerate(request.resources):
        if place in judged:
            continue
        try:
            if _preprocess(resource, context, validate_only=request.validate_only):
                judged[place] = None
            else:
                config_changes.check_authorized(resource, context)
        except KafkaError as error:
            judged[place] = error
    left = [resource for place, resource in enumerate(request.resources) if place not in judged]
    decided = []
    if left:
        forwarded = IncrementalAlterConfigsRequest(resources=left, validate_only=request.validate_only)
        decided = (await context.node.controller.request(forwarded, context)).responses
    answers = iter(decided)
    return IncrementalAlterConfigsResponse(
        responses=[
            _answer(resource, judged[place]) if place in judged else next(answers)
            for place, resource in enumerate(request.resources)
        ]
    )


def _preprocess(resource: Any, context: RequestContext, *, validate_only: bool) -> bool:
    """True where the resource is done with here; raises KafkaError."""
    config_changes.check_keys(resource, deletes=True)
    kind = resource.resource_type
    if kind == resources.BROKER_LOGGER:
        config_changes.change_loggers(resource, context, validate_only=validate_only)
        return True
    if kind == resources.BROKER:
        if resource.resource_name != "":
            config_changes.check_node_id(resource, context)
        config_changes.check_broker_settings(resource, config_changes.incremented(resource, context), context)
    elif kind not in resources.NAMES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return False


def _answer(resource: Any, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
