"""The control endpoint over real sockets, spoken to with bytes and with the standard library's client."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from broker.http.endpoint import ControlEndpoint, Refused, Route


@asynccontextmanager
async def endpoint(*routes: Route) -> AsyncIterator[ControlEndpoint]:
    running = ControlEndpoint(routes)
    running.bind()
    await running.start()
    try:
        yield running
    finally:
        await running.close()


async def ready(_parameters: dict[str, str]) -> Any:
    return {"ready": True}


async def say(parameters: dict[str, str]) -> Any:
    return {"said": parameters}


async def refuse(_parameters: dict[str, str]) -> Any:
    raise Refused(409, "not while a test watches")


async def fail(_parameters: dict[str, str]) -> Any:
    raise RuntimeError("broken on purpose")


ROUTES = (
    Route("GET", "/ready", ready, needs_token=False),
    Route("POST", "/say", say),
    Route("POST", "/refuse", refuse),
    Route("POST", "/fail", fail),
)


async def ask(running: ControlEndpoint, line: str, *headers: str, host: str = "127.0.0.1", body: bytes = b"") -> Any:
    address = urlsplit(running.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = [f"{line} HTTP/1.1", f"Host: {host}:{address.port}", *headers]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
    async with asyncio.timeout(20):
        answer = await reader.read(-1)
    writer.close()
    await writer.wait_closed()
    first, _, content = answer.partition(b"\r\n\r\n")
    status = int(first.split(b" ")[1])
    return status, json.loads(content)


async def test_anyone_here_may_ask_whether_it_is_ready() -> None:
    async with endpoint(*ROUTES) as running:
        assert await ask(running, "GET /ready") == (200, {"ready": True})


async def test_an_action_needs_the_token_of_the_ready_line() -> None:
    async with endpoint(*ROUTES) as running:
        token = running.token
        assert (await ask(running, "POST /say"))[0] == 401
        assert (await ask(running, "POST /say?token=wrong"))[0] == 401
        assert (await ask(running, "POST /say", "Authorization: Bearer wrong"))[0] == 401
        assert await ask(running, f"POST /say?token={token}&a=b%20c") == (200, {"said": {"a": "b c"}})
        assert await ask(running, "POST /say", f"Authorization: Bearer {token}") == (200, {"said": {}})
        assert urlsplit(running.url).query == f"token={token}"


async def test_a_web_page_under_another_name_is_refused() -> None:
    async with endpoint(*ROUTES) as running:
        status, content = await ask(running, f"POST /say?token={running.token}", host="evil.example")
        assert status == 403
        assert "localhost" in content["error"]


async def test_unknown_paths_and_methods_are_told_what_there_is() -> None:
    async with endpoint(*ROUTES) as running:
        assert await ask(running, "GET /no") == (
            404,
            {"error": "there is no /no; there are /fail, /ready, /refuse, /say"},
        )
        assert await ask(running, "GET /say") == (405, {"error": "/say takes POST, not GET"})


async def test_a_refusal_and_a_fault_are_one_sentence_each(caplog: pytest.LogCaptureFixture) -> None:
    async with endpoint(*ROUTES) as running:
        token = running.token
        assert await ask(running, f"POST /refuse?token={token}") == (409, {"error": "not while a test watches"})
        with caplog.at_level(logging.ERROR):
            assert await ask(running, f"POST /fail?token={token}") == (
                500,
                {"error": "/fail failed: broken on purpose"},
            )
        assert len(caplog.records) == 1


async def test_a_body_is_read_and_a_huge_one_refused() -> None:
    async with endpoint(*ROUTES) as running:
        line = f"POST /say?token={running.token}"
        assert (await ask(running, line, "Content-Length: 3", body=b"abc"))[0] == 200
        assert (await ask(running, line, "Content-Length: 100000", body=bytes(100_000)))[0] == 413


async def test_garbage_gets_a_bad_request_and_the_next_one_is_answered() -> None:
    async with endpoint(*ROUTES) as running:
        address = urlsplit(running.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(b"\x00\x00\x00\x12 no http at all\r\n\r\n")
        async with asyncio.timeout(20):
            assert (await reader.read(-1)).startswith(b"HTTP/1.1 400 ")
        writer.close()
        await writer.wait_closed()
        assert (await ask(running, "GET /ready"))[0] == 200


async def test_the_web_stack_is_not_loaded_before_it_is_asked() -> None:
    process = await asyncio.create_subprocess_exec(
        __import__("sys").executable,
        "-c",
        "import broker.http.endpoint, sys; print('h11' in sys.modules)",
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert output.strip() == b"False"


async def test_a_stop_in_the_middle_of_an_action_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    begun = asyncio.Event()

    async def last(_parameters: dict[str, str]) -> Any:
        begun.set()
        await asyncio.get_running_loop().create_future()

    running = ControlEndpoint((Route("POST", "/last", last, needs_token=False),))
    running.bind()
    await running.start()
    address = urlsplit(running.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(b"POST /last HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n")
    await asyncio.wait_for(begun.wait(), 20)
    await running.close()
    assert await asyncio.wait_for(reader.read(-1), 20) == b""
    writer.close()
    assert caplog.text == ""
