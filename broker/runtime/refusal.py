"""How a waiting request is refused: its future gets the error, whether or not somebody still waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

from wire.errors import KafkaError


def refuse(future: asyncio.Future[Any], error: KafkaError) -> None:
    """Raise `error` in whoever awaits the future, unless it is done.

    Who asked may be gone: the client left, the node stops, the time is over. A refusal is an answer then that nobody
    wants, not a fault of the node: the loop does not complain of a future whose exception was never seen.
    """
    if not future.done():
        future.set_exception(error)
        future.exception()


def resolve(future: asyncio.Future[Any], response: Any) -> None:
    """Give the future its response, unless it is done; a response that is a KafkaError is raised."""
    if isinstance(response, KafkaError):
        refuse(future, response)
    elif not future.done():
        future.set_result(response)
