"""A client that builds its frames with `struct` alone, so that no fault of our codec hides itself."""

from __future__ import annotations

import asyncio
import struct

GUARD_SECONDS = 20.0
"""Against hanging only; no test waits for it to pass."""


def string(text: str | None) -> bytes:
    """A nullable string with an int16 length."""
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def compact_string(text: str | None) -> bytes:
    """A compact nullable string; short ones only, whose length fits one byte."""
    if text is None:
        return b"\x00"
    data = text.encode()
    assert len(data) < 127, "a length of one byte is all this helper writes"
    return bytes([len(data) + 1]) + data


def frame(
    api_key: int,
    version: int,
    body: bytes = b"",
    *,
    correlation_id: int = 1,
    client_id: str | None = "raw",
    flexible: bool = False,
) -> bytes:
    """A request frame, size first; `flexible` adds the header's empty tag section (header v2)."""
    payload = struct.pack(">hhi", api_key, version, correlation_id) + string(client_id)
    if flexible:
        payload += b"\x00"
    payload += body
    return struct.pack(">i", len(payload)) + payload


def api_versions_body(version: int, name: str = "raw-client", software_version: str = "1.0") -> bytes:
    """The body of an ApiVersions request."""
    if version < 3:
        return b""
    body = compact_string(name) + compact_string(software_version)
    if version >= 5:
        body += compact_string(None) + struct.pack(">i", -1)
    return body + b"\x00"


class RawClient:
    """One socket: sends bytes as they are, reads whole answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int, host: str = "127.0.0.1", read_limit_bytes: int = 2**16) -> RawClient:
        """Connect; raises OSError where nobody listens."""
        return cls(*await asyncio.open_connection(host, port, limit=read_limit_bytes))

    def send(self, data: bytes) -> None:
        """Queue bytes to be sent."""
        self.writer.write(data)

    async def answer(self) -> bytes:
        """The next answer without its size: correlation id, then the rest."""
        async with asyncio.timeout(GUARD_SECONDS):
            size = struct.unpack(">i", await self.reader.readexactly(4))[0]
            return await self.reader.readexactly(size)

    async def call(self, request: bytes) -> bytes:
        """Send one frame and read its answer."""
        self.send(request)
        return await self.answer()

    async def rest(self) -> bytes:
        """Everything until the node closes the connection; then this end is closed too."""
        received = b""
        async with asyncio.timeout(GUARD_SECONDS):
            try:
                while chunk := await self.reader.read(65536):
                    received += chunk
            except ConnectionResetError:
                pass
        await self.close()
        return received

    async def close(self) -> None:
        """Close the socket."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass
