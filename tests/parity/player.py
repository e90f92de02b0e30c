"""Plays requests to a running broker over raw sockets and writes down what it answers.

A scenario is a function that takes a Player. It opens connections, sends requests (waiting for
each answer, or leaving some to wait), and every exchange becomes one entry of the transcript:
request, version, answer, or that the connection was closed.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

from tests.parity.normalise import Normaliser
from wire.api import API_SPECS
from wire.errors import MalformedMessage
from wire.frames import decode_response, encode_request
from wire.message import Message
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.init_producer_id import InitProducerIdRequest

ANSWER_TIMEOUT_S = 30.0
_size = Struct(">i")


@dataclass(slots=True)
class Pending:
    """A request whose answer has not been read yet."""

    connection: Connection
    request: Message
    version: int
    correlation_id: int
    label: str


@dataclass(slots=True)
class Transcript:
    """The normalised exchanges of one scenario, in the order in which answers were read."""

    entries: list[dict[str, Any]] = field(default_factory=list)


class Connection:
    """One socket; answers come in request order."""

    def __init__(self, player: Player, client_id: str | None) -> None:
        self.player = player
        self._client_id = client_id
        self._socket = socket.create_connection(player.address, timeout=ANSWER_TIMEOUT_S)
        self._correlation_ids = itertools.count(1)

    def send(self, request: Message, version: int, label: str = "") -> Pending:
        """Send without waiting; ``receive`` reads the answer."""
        correlation_id = next(self._correlation_ids)
        frame = encode_request(request, version, correlation_id, self._client_id)
        self._socket.sendall(b"".join(frame))
        return Pending(self, request, version, correlation_id, label)

    def receive(self, pending: Pending) -> Any:
        """Read the answer, write it down, return it; None when the broker closed instead."""
        frame = self._read_frame()
        if frame is None:
            self.player.write_down(pending, None)
            return None
        correlation_id, response = decode_response(frame, pending.request.API_KEY, pending.version)
        if correlation_id != pending.correlation_id:
            raise AssertionError(f"answer {correlation_id} to request {pending.correlation_id}")
        self.player.write_down(pending, response)
        return response

    def call(self, request: Message, version: int, label: str = "") -> Any:
        """Send and wait for the answer."""
        return self.receive(self.send(request, version, label))

    def expect_no_answer(self, request: Message, version: int) -> None:
        """Send a request that has no answer (acks=0); the next ``call`` proves that none came."""
        self.send(request, version)

    def exchange_bytes(self, sent: bytes, label: str, answer: tuple[int, int] = (18, 0)) -> Any:
        """Send bytes that no encoder makes; the answer, if one comes, is read as that (API key, version)'s."""
        self._socket.sendall(sent)
        frame = self._read_frame()
        try:
            response = None if frame is None else decode_response(frame, *answer)[1]
        except MalformedMessage as error:
            raise AssertionError(f"{label}: answered with {(frame or b'').hex()}: {error}") from error
        self.player.write_down_bytes(label, sent, response)
        return response

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _read_frame(self) -> bytes | None:
        head = self._read_exactly(4)
        return None if head is None else self._read_exactly(_size.unpack(head)[0])

    def _read_exactly(self, count: int) -> bytes | None:
        data = bytearray()
        while len(data) < count:
            try:
                received = self._socket.recv(count - len(data))
            except ConnectionError:
                return None
            if not received:
                return None
            data += received
        return bytes(data)


class Player:
    """What a scenario is given: connections to one broker, names that are its own."""

    def __init__(self, address: tuple[str, int], scenario: str, run_id: str) -> None:
        self.address = address
        self.transcript = Transcript()
        self._names = f"{scenario}-{run_id}"
        self._normaliser = Normaliser(self._names)
        self._connections: list[Connection] = []

    def name(self, suffix: str) -> str:
        """A topic, group or transactional id that no other scenario or run uses."""
        return f"{self._names}-{suffix}"

    def connect(self, client_id: str | None = "parity") -> Connection:
        """Open a connection; closed at the end of the scenario."""
        connection = Connection(self, client_id)
        self._connections.append(connection)
        return connection

    def write_down(self, pending: Pending, response: Message | None) -> None:
        """Add one exchange to the transcript."""
        api = API_SPECS[pending.request.API_KEY].name
        normal = self._normaliser.message
        self.transcript.entries.append(
            {
                "label": pending.label or f"{api} v{pending.version}",
                "api": api,
                "version": pending.version,
                "request": normal(pending.request, answer=False),
                "response": "closed" if response is None else normal(response, answer=True),
            }
        )

    def write_down_bytes(self, label: str, sent: bytes, response: Message | None) -> None:
        """Add an exchange whose request was given as bytes: it names no API."""
        answer = "closed" if response is None else self._normaliser.message(response, answer=True)
        entry = {"label": label, "api": "", "version": -1, "request": sent.hex(), "response": answer}
        self.transcript.entries.append(entry)

    def until(self, call: Callable[[], Any], done: Callable[[Any], bool]) -> Any:
        """Repeat an exchange until it is ``done``; only the last one is written down.

        Raises TimeoutError with the last answer when that does not come about.
        """
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            before = self._written()
            answer = call()
            if done(answer):
                return answer
            self._take_back(before)
            if time.monotonic() > deadline:
                raise TimeoutError(f"still {answer}")

    def unwritten(self, call: Callable[[], Any]) -> Any:
        """Make exchanges without writing them down."""
        before = self._written()
        try:
            return call()
        finally:
            self._take_back(before)

    def warm_up(self) -> None:
        """Bring the broker where every scenario starts, whatever it has answered before; nothing is written down.

        The topics of both coordinators exist, and a producer id was given out: a broker's first one is 0,
        which looks like none.
        """
        connection = self.connect()

        def coordinators() -> Any:
            answers = [
                connection.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["warm-up"]), 4)
                for key_type in (0, 1)
            ]
            return [coordinator for answer in answers for coordinator in answer.coordinators]

        def warm() -> None:
            self.until(coordinators, lambda found: not any(one.error_code for one in found))
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            self.until(lambda: connection.call(request, 4), lambda answer: answer.error_code == 0)

        self.unwritten(warm)

    def _written(self) -> tuple[int, dict[str, dict[Any, int]]]:
        return len(self.transcript.entries), self._normaliser.names()

    def _take_back(self, before: tuple[int, dict[str, dict[Any, int]]]) -> None:
        """Forget exchanges and the identities first seen in them: how often a wait asked must not show."""
        del self.transcript.entries[before[0] :]
        self._normaliser.restore(before[1])

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections:
            connection.close()
