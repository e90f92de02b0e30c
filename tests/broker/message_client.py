"""Requests as values to a node in this process: through frames and dispatch, without a socket."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from broker.network.peer import Peer
from wire.api import API_SPECS
from wire.frames import decode_response, encode_request

if TYPE_CHECKING:
    from broker.handlers.dispatch import Dispatcher
    from wire.message import Message

SIZE_BYTES = 4


class MessageClient:
    """One connection; requests are answered in the order in which they are awaited."""

    def __init__(self, dispatcher: Dispatcher, *, client_id: str = "test", listener_name: str = "PLAINTEXT") -> None:
        self._dispatcher = dispatcher
        self._client_id = client_id
        self._correlation_ids = itertools.count(1)
        self._peer = Peer(listener_name=listener_name, client_host="127.0.0.1")

    async def call(self, request: Message, version: int | None = None) -> Any:
        """The answer at a version, the highest one that is stable by default; None where there is none.

        Raises CloseConnection where the node would close the connection.
        """
        if version is None:
            spec = API_SPECS[request.API_KEY]
            version = spec.max_version - 1 if spec.latest_unstable else spec.max_version
        frame = b"".join(encode_request(request, version, next(self._correlation_ids), self._client_id))
        answer = await self._dispatcher.answer(frame[SIZE_BYTES:], self._peer)
        if answer is None:
            return None
        return decode_response(b"".join(answer)[SIZE_BYTES:], request.API_KEY, version)[1]
