"""SaslAuthenticate (key 36): refused on a connection that is not being authenticated.

Versions 0-2.

Refused with ILLEGAL_SASL_STATE; the connection stays open. The token exchange of a SASL listener
never gets here: it belongs to the authentication that stands before dispatch.

Left out: listeners with SASL. Source: `KafkaApis.handleSaslAuthenticateRequest`.
"""

from __future__ import annotations

from broker.handlers.context import RequestContext
from wire.errors import ErrorCode
from wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


async def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    """Always ILLEGAL_SASL_STATE."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
