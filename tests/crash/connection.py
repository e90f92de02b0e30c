"""A pipelined connection to a node that may die at any moment: requests in, futures of answers out."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from wire.frames import decode_response, encode_request

ANSWER_TIMEOUT_S = 60.0


class Lost(ConnectionError):
    """The node went away; whether a request without an answer was served is not known."""


class Connection:
    """Requests may be sent without waiting for the answers to earlier ones; answers come in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0
        self._waiting: dict[int, tuple[asyncio.Future[Any], int, int]] = {}
        self._is_lost = False
        self._receiving = asyncio.get_running_loop().create_task(self._receive())

    @classmethod
    async def open(cls, port: int) -> Connection:
        """Connect; raises Lost where nobody listens."""
        try:
            return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 24))
        except OSError as error:
            raise Lost(str(error)) from error

    async def close(self) -> None:
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        self._writer.close()

    def send(self, request: Any, version: int) -> asyncio.Future[Any]:
        """The answer, once it comes; the future raises Lost if it never does."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._is_lost:
            _fail(future)
            return future
        self._correlation_id += 1
        self._waiting[self._correlation_id] = (future, request.API_KEY, version)
        frame = b"".join(map(bytes, encode_request(request, version, self._correlation_id, "crash")))
        try:
            self._writer.write(frame)
        except OSError:
            self._lose()
        return future

    async def call(self, request: Any, version: int) -> Any:
        """The answer. Raises Lost, and TimeoutError where a node that lives says nothing."""
        return await asyncio.wait_for(self.send(request, version), ANSWER_TIMEOUT_S)

    async def _receive(self) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await self._reader.readexactly(4))
                frame = await self._reader.readexactly(size)
                correlation_id = int.from_bytes(frame[:4], "big")
                future, api_key, version = self._waiting.pop(correlation_id)
                if not future.done():
                    future.set_result(decode_response(frame, api_key, version)[1])
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._lose()

    def _lose(self) -> None:
        self._is_lost = True
        for future, _, _ in self._waiting.values():
            if not future.done():
                _fail(future)
        self._waiting.clear()
        self._writer.close()


def _fail(future: asyncio.Future[Any]) -> None:
    future.set_exception(Lost("the node is gone"))
    future.exception()  # taken note of: whoever sent the request may be gone as well
