"""ListTransactions (key 66): the transactional ids that this broker coordinates (KIP-664).

Versions 0-2, flexible. v1 only those that run longer than a duration (KIP-994); v2 only those whose id
matches a regular expression of RE2 (KIP-1152), INVALID_REGULAR_EXPRESSION if it is none.

Behaviour: names of states that do not exist are returned as unknown. Ids without DESCRIBE are left out
silently. While any partition of `__transaction_state` loads: COORDINATOR_LOAD_IN_PROGRESS.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from coordinator.regular_expression import InvalidRegularExpression, RegularExpression, shown
from coordinator.transaction.descriptions import TransactionFilter, states_of_names
from wire.errors import ErrorCode, KafkaError
from wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    """Ask every shard, leave out what may not be seen."""
    states, unknown = states_of_names(request.state_filters)
    wanted = TransactionFilter(
        producer_ids=frozenset(request.producer_id_filters),
        states=states,
        duration_ms=request.duration_filter,
        pattern=_pattern(request.transactional_id_pattern),
    )
    listed = [
        each
        for each in context.node.transactions.list(wanted)
        if context.authorize(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id)
    ]
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed)


def _pattern(text: str | None) -> RegularExpression | None:
    """An empty pattern is none."""
    if not text:
        return None
    try:
        return RegularExpression(text)
    except InvalidRegularExpression as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Transactional ID pattern `{shown(text)}` is not a valid regular expression: {shown(str(error))}.",
        ) from error
