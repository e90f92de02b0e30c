"""What handlers of transaction requests have in common. Not a handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

PRODUCER_FENCED_FROM = 2
"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn know PRODUCER_FENCED from this version on (KIP-588)."""


def require_transactional_id_write(transactional_id: str, context: RequestContext) -> None:
    """Raises TRANSACTIONAL_ID_AUTHORIZATION_FAILED unless the principal may write under the id."""
    if not context.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def transaction_error(
    error: KafkaError, context: RequestContext, producer_fenced_from: int = PRODUCER_FENCED_FROM
) -> ErrorCode:
    """The code for the request's version: older clients know INVALID_PRODUCER_EPOCH only."""
    if error.code is ErrorCode.PRODUCER_FENCED and context.api_version < producer_fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
