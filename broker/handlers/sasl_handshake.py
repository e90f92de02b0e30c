"""SaslHandshake (key 17): refused on a connection that is not being authenticated.

Versions 0-1.

On a listener without SASL, and on a connection already authenticated whose listener does not ask
for it again, the handshake is refused with ILLEGAL_SASL_STATE and an empty list of mechanisms;
the connection stays open. The handshake of a SASL listener never gets here: it belongs to the
authentication that stands before dispatch.

Left out: listeners with SASL. Source: `KafkaApis.handleSaslHandshakeRequest`.
"""

from __future__ import annotations

from broker.handlers.context import RequestContext
from wire.errors import ErrorCode
from wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


async def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    """Always ILLEGAL_SASL_STATE."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
