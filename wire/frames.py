"""Frames and headers: an int32 size, a header whose form depends on the API, then the body.

Source: KIP-482 (flexible headers), KIP-511 (ApiVersions always answers with header v0),
RequestHeader and ResponseHeader.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from wire.api import API_SPECS, ApiSpec
from wire.errors import MalformedMessage
from wire.message import Message
from wire.primitives import NO_TAGS, Buffer, read_string, read_uvarint

FRAME_SIZE_BYTES = 4
JOINED_BYTES_MAX = 4096

_head = Struct(">hhi")
_size = Struct(">i")
_response = Struct(">ii")


class RequestHeader(NamedTuple):
    """Who asks what: a null client id is read as the empty string."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str


def _skip_tags(buffer: bytes, position: int) -> int:
    if not buffer[position]:
        return position + 1
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > len(buffer):
            raise MalformedMessage("a tagged header field is longer than the frame")
    return position


def decode_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Decode the header of a request frame (without its size); returns it and the body's position.

    The header's form is that of the API's version; of an unknown API or version only what all
    forms share is read, and the position is that after the client id. Raises MalformedMessage.
    """
    if len(frame) < _head.size:
        raise MalformedMessage(f"frame of {len(frame)} bytes is too short for a request header")
    key, version, correlation_id = _head.unpack_from(frame)
    spec = API_SPECS.get(key)
    try:
        client_id, position = read_string(frame, _head.size)
        if spec is not None and version >= spec.flexible_from:
            if frame[position]:
                position = _skip_tags(frame, position)
            else:
                position += 1
    except (IndexError, ValueError, StructError) as error:
        raise MalformedMessage(f"request header of API key {key}: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id or ""), position


def _framed(out: list[Buffer], head: bytes) -> list[Buffer]:
    out[0] = _size.pack(sum(map(len, out)) + len(head)) + head
    return out


def encode_response(
    spec: ApiSpec, correlation_id: int, response: Message, version: int
) -> list[Buffer]:
    """The buffers of a whole response frame, size first; long byte fields are not copied.

    A short frame is one buffer: so it costs the least to write.
    """
    out: list[Buffer] = [b""]
    if spec.response_header_version(version):
        out.append(NO_TAGS)
    response.write(out, version)
    size = sum(map(len, out)) + 4
    out[0] = _response.pack(size, correlation_id)
    return out if size > JOINED_BYTES_MAX else [b"".join(out)]


def encode_request(
    request: Message, version: int, correlation_id: int, client_id: str | None
) -> list[Buffer]:
    """The buffers of a whole request frame, size first."""
    spec = API_SPECS[request.API_KEY]
    head = _head.pack(request.API_KEY, version, correlation_id)
    if client_id is None:
        head += b"\xff\xff"
    else:
        encoded = client_id.encode()
        head += len(encoded).to_bytes(2, "big") + encoded
    if spec.request_header_version(version) == 2:
        head += NO_TAGS
    out: list[Buffer] = [b""]
    request.write(out, version)
    return _framed(out, head)


def decode_response(frame: bytes, api_key: int, version: int) -> tuple[int, Any]:
    """Correlation id and response of a frame (without its size); raises MalformedMessage."""
    spec = API_SPECS[api_key]
    if len(frame) < 4:
        raise MalformedMessage(f"frame of {len(frame)} bytes is too short for a response header")
    (correlation_id,) = _size.unpack_from(frame, 0)
    position = 4
    if spec.response_header_version(version):
        try:
            position = _skip_tags(frame, position)
        except IndexError as error:
            raise MalformedMessage("the response header ends too early") from error
    return correlation_id, spec.load()[1].decode(frame, version, position)


class FrameSplitter:
    """Cuts a byte stream into frames; refuses sizes below zero or above ``size_bytes_max``.

    ``feed`` returns the complete frames (without their sizes). Nothing is allocated for a frame
    before its size was checked. Raises MalformedMessage.
    """

    def __init__(self, size_bytes_max: int) -> None:
        self._pending = bytearray()
        self._size_bytes_max = size_bytes_max

    def feed(self, data: Buffer) -> list[bytes]:
        """Add received bytes; returns the frames they complete, in order."""
        pending = self._pending
        pending += data
        frames: list[bytes] = []
        position = 0
        while len(pending) - position >= FRAME_SIZE_BYTES:
            (size,) = _size.unpack_from(pending, position)
            if size < 0 or size > self._size_bytes_max:
                raise MalformedMessage(
                    f"frame of {size} bytes, allowed are 0 to {self._size_bytes_max}"
                )
            if len(pending) - position - FRAME_SIZE_BYTES < size:
                break
            start = position + FRAME_SIZE_BYTES
            frames.append(bytes(pending[start : start + size]))
            position = start + size
        if position:
            del pending[:position]
        return frames
