"""OffsetCommit (key 8): store how far a group has got.

Versions 2-10; flexible from 8. v2-4 may give the commit its own retention (KIP-211 ended that); v6
leader epoch; v7 static members; v9 members of consumer groups, and GROUP_ID_NOT_FOUND; v10 topic
ids instead of names (KIP-848).

Behaviour: partitions that do not exist or may not be read are answered each with its error, the
others are committed; errors stand before them in the answer, as in Kafka. Offsets are not compared
with the log. An error of the group is repeated on every partition that was sent on.
`coordinator.group.offset_commit` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.committable_offsets import OffsetCommitAnswer, committable_topics
from broker.handlers.group_context import group_context, require_group
from broker.security.authorizer import Operation
from wire.errors import KafkaError
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

TOPIC_IDS_FROM = 10


async def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    """Authorise, sort out what cannot be committed, have the group commit the rest."""
    group_id = request.group_id
    require_group(Operation.READ, group_id, context)
    by_id = context.api_version >= TOPIC_IDS_FROM
    response = OffsetCommitResponse()
    answer = OffsetCommitAnswer(response, OffsetCommitResponseTopic, OffsetCommitResponsePartition, by_id=by_id)
    request.topics = committable_topics(request.topics, answer, context, by_id=by_id)
    if not request.topics:
        return response
    try:
        committed: OffsetCommitResponse = await context.node.groups.write(group_id, request, group_context(context))
    except KafkaError as error:
        answer.add_refused(request.topics, error.code)
    else:
        answer.add_committed(committed.topics)
    return response
