"""One HTTP request on one connection, answered with JSON. Imported at the first request.

h11 parses and writes HTTP/1.1: it is the sans-IO library under httpx and uvicorn, and all that a
handful of routes needs; a framework would cost ten times its memory.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import h11

from broker.http.endpoint import Refused, Route

logger = logging.getLogger(__name__)

REQUEST_TIMEOUT_SECONDS = 30
BODY_BYTES_MAX = 64 * 1024
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


async def serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, routes: Sequence[Route], token: str
) -> None:
    """Read one request, act, answer, and let the caller close. Raises ConnectionError, TimeoutError."""
    connection = h11.Connection(h11.SERVER)
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            request = await _read_request(connection, reader)
        status, content = await _respond(request, routes, token)
    except h11.RemoteProtocolError as error:
        status, content = error.error_status_hint, {"error": f"no HTTP request: {error}"}
    except Refused as refused:
        status, content = refused.status, {"error": refused.sentence}
    if connection.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
        return
    body = json.dumps(content).encode() + b"\n"
    headers = [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    for event in (
        h11.Response(status_code=status, headers=headers),
        h11.Data(data=body),
        h11.EndOfMessage(),
    ):
        writer.write(connection.send(event) or b"")
    await writer.drain()


async def _read_request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request:
    """The request once its body has come (and was dropped: parameters are in the query)."""
    request: h11.Request | None = None
    body_bytes = 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body_bytes += len(event.data)
            if body_bytes > BODY_BYTES_MAX:
                raise Refused(413, f"a body of more than {BODY_BYTES_MAX} bytes")
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return request
        else:
            raise ConnectionError("closed before a request")


async def _respond(request: h11.Request, routes: Sequence[Route], token: str) -> tuple[int, Any]:
    target = urlsplit(request.target.decode("ascii", "replace"))
    method = request.method.decode("ascii", "replace")
    parameters = dict(parse_qsl(target.query))
    headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
    # A page in a browser may make requests to this machine under a name of its own (DNS rebinding).
    if headers.get("host", "").rsplit(":", 1)[0] not in LOOPBACK_NAMES:
        raise Refused(403, "the control endpoint answers to 127.0.0.1 and localhost only")
    path = target.path.rstrip("/") or "/"
    here = [route for route in routes if route.path == path]
    if not here:
        known = ", ".join(sorted({route.path for route in routes}))
        raise Refused(404, f"there is no {path}; there are {known}")
    for route in here:
        if route.method == method:
            break
    else:
        allowed = ", ".join(route.method for route in here)
        raise Refused(405, f"{path} takes {allowed}, not {method}")
    if route.needs_token and not _knows_token(parameters.pop("token", ""), headers, token):
        raise Refused(401, "the token is missing or wrong: use the control_url of the node's ready line")
    try:
        return 200, await route.act(parameters)
    except Refused:
        raise
    except Exception as error:
        logger.error("%s %s failed: %s: %s", method, path, type(error).__name__, error)
        logger.debug("where it failed", exc_info=error)
        raise Refused(500, f"{path} failed: {error}") from error


def _knows_token(given: str, headers: dict[str, str], token: str) -> bool:
    given = given or headers.get("authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode(), token.encode())
