"""A client of typed requests: encodes with the product's messages, over a real socket."""

from __future__ import annotations

from typing import Any

from tests.broker.raw_client import RawClient
from wire.errors import ErrorCode
from wire.frames import decode_response, encode_request


class WireClient:
    """One connection; requests one after the other."""

    def __init__(self, raw: RawClient) -> None:
        self._raw = raw
        self._correlation_id = 0

    @classmethod
    async def connect(cls, port: int) -> WireClient:
        return cls(await RawClient.connect(port, read_limit_bytes=2**20))

    async def call(self, request: Any, version: int) -> Any:
        """The response; raises asyncio.IncompleteReadError when the node closes instead."""
        self._correlation_id += 1
        frame = b"".join(map(bytes, encode_request(request, version, self._correlation_id, "wire-client")))
        correlation_id, response = decode_response(await self._raw.call(frame), request.API_KEY, version)
        assert correlation_id == self._correlation_id
        return response

    async def close(self) -> None:
        self._raw.writer.close()
        await self._raw.writer.wait_closed()


def codes(items: Any) -> list[ErrorCode]:
    """The error codes of a response's items."""
    return [ErrorCode(item.error_code) for item in items]
