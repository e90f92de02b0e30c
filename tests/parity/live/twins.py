"""Two brokers that are asked the same at the same time, and the comparison of what they answer."""

from __future__ import annotations

import functools
import itertools
import json
import re
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.parity.differences import without_kinder_texts
from tests.parity.live.values import Ref, resolved, source
from tests.parity.normalise import UNORDERED, Normaliser
from wire.api import API_SPECS
from wire.errors import UnsupportedField
from wire.frames import decode_response, encode_request
from wire.message import Message, Struct

ANSWER_TIMEOUT_S = 20.0
SECOND_ANSWER_TIMEOUT_S = 8.0
"""How long the second broker has after the first one answered."""
SILENCE_S = 0.3
"""How long nothing is answered where neither broker answers."""
GRACE_S = 0.015
"""How long an answer may be on its way after a later question to the same coordinator was answered."""
OVERTAKING_S = 0.005
BARRIERS = "barriers"
"""The connection of questions that only wait for what was asked before them."""
CLOSED = "closed"
HASHED = UNORDERED | {"topic_partitions", "subscribed_topic_names", "topic_results", "results_by_topic_v3_and_below"}
"""Lists in the order of Java hash maps."""

Captures = dict[str, Callable[[Any], Any]]


class Step(NamedTuple):
    """A call of one of the methods of Twins that are `played`."""

    method: str
    arguments: tuple[Any, ...]
    fields: dict[str, Any]


def played(method: Callable[..., Any]) -> Callable[..., Any]:
    """Note the call, unless it is part of another one."""

    @functools.wraps(method)
    def noted(twins: Twins, *arguments: Any, **fields: Any) -> Any:
        if not twins.depth:
            twins.steps.append(Step(method.__name__, arguments, fields))
        twins.depth += 1
        try:
            return method(twins, *arguments, **fields)
        finally:
            twins.depth -= 1

    return noted


class Difference(AssertionError):
    """The brokers answered differently; the text is the sequence and what differs. One subclass per kind."""

    signature = ""
    places: tuple[str, ...] = ()
    """Where in the answer it is, indexes left out."""
    steps: tuple[Step, ...] = ()
    """The sequence, to play it again."""
    own = ""
    """What its own names begin with."""


_kinds: dict[str, type[Difference]] = {}


def difference(signature: str, text: str) -> Difference:
    """A Difference whose class is that of its signature: Hypothesis tells failures apart by their classes."""
    kind = _kinds.get(signature)
    if kind is None:
        name = "Difference_" + re.sub(r"\W+", "_", signature)
        kind = _kinds[signature] = type(name, (Difference,), {"signature": signature})
    return kind(text)


class PairNormaliser(Normaliser):
    """Makes answers comparable that nothing was recorded of: hash orders and chosen values leave no trace."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self.chosen: dict[Any, str] = {}
        self._peeking = False

    def _field(self, name: str, value: Any, *, answer: bool) -> Any:
        if isinstance(value, str) and value in self.chosen:
            return f"<{self.chosen[value]}>"
        if answer and isinstance(value, list) and name in HASHED and not self._peeking:
            value = sorted(value, key=self._order)
            return [super(PairNormaliser, self)._field(name, item, answer=answer) for item in value]
        return super()._field(name, value, answer=answer)

    def _order(self, item: Any) -> str:
        """Sorts by what an item says; identities not seen before count for nothing."""
        self._peeking = True
        try:
            shown = self.message(item, answer=True) if isinstance(item, Struct) else item
            member = shown.get("member_id", "") if isinstance(shown, dict) else ""
            return member + json.dumps(shown, sort_keys=True, default=repr)
        finally:
            self._peeking = False

    def _text(self, text: str) -> str:
        return f"<{self.chosen[text]}>" if text in self.chosen else super()._text(text)

    def _identity(self, kind: str, value: Any) -> str:
        if value in self.chosen and not isinstance(value, int):
            return f"<{self.chosen[value]}>"
        if self._peeking and value not in self._seen.get(kind, {}):
            return f"<{kind} new>"
        return super()._identity(kind, value)


class Wire:
    """One connection to one broker, read without blocking."""

    def __init__(self, address: tuple[str, int], client_id: str) -> None:
        self.socket = socket.create_connection(address, timeout=ANSWER_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_ids = itertools.count(1)
        self._buffer = bytearray()
        self._closed = False

    def frame_of(self, request: Message, version: int) -> bytes:
        return b"".join(encode_request(request, version, next(self._correlation_ids), self._client_id))

    def read(self) -> bytes | str | None:
        """A whole frame without its size, CLOSED, or None when nothing has come yet."""
        while select.select([self.socket], [], [], 0)[0] and not self._closed:
            try:
                received = self.socket.recv(1 << 20)
            except ConnectionError:
                received = b""
            self._buffer += received
            self._closed = not received
        size = int.from_bytes(self._buffer[:4], "big")
        if len(self._buffer) >= 4 and len(self._buffer) >= 4 + size:
            frame = bytes(self._buffer[4 : 4 + size])
            del self._buffer[: 4 + size]
            return frame
        return CLOSED if self._closed else None


@dataclass(slots=True)
class Side:
    """One broker: its connections, what it chose, how its answers are made comparable."""

    name: str
    address: tuple[str, int]
    normaliser: PairNormaliser
    values: dict[str, Any] = field(default_factory=dict)
    wires: dict[str, Wire] = field(default_factory=dict)

    def wire(self, connection: str) -> Wire:
        """The connection of this name, opened when first used."""
        if connection not in self.wires:
            self.wires[connection] = Wire(self.address, connection)
        return self.wires[connection]

    def keep(self, name: str, value: Any) -> None:
        """Keep what the broker chose, so that later requests and answers can name it."""
        self.values[name] = value
        if isinstance(value, (str, bytes)) and value:
            self.normaliser.chosen[value] = name


@dataclass(slots=True)
class Asked:
    """A request that both brokers have, and what is to be done with the answers."""

    connection: str
    request: Message
    version: int
    line: int
    captures: Captures
    shorten: Callable[[Any, str], Any] | None
    done: Callable[[Any], None] | None
    passes: Callable[[Any], bool] | None = None
    is_raw: bool = False
    answers: dict[str, Any] = field(default_factory=dict)


class Twins:
    """The pair: `ask` sends one step to both, compares, and says what the reference answered."""

    def __init__(
        self, addresses: tuple[tuple[str, int], tuple[str, int]], names: tuple[str, str], prefix: str, own: str
    ) -> None:
        """`prefix` begins the names of the run, `own` those of this sequence."""
        self.prefix = prefix
        self.own = own
        self.renamed = "", ""
        self.patience_s = SECOND_ANSWER_TIMEOUT_S
        self.steps: list[Step] = []
        self.depth = 0
        self.sides = [
            Side(name, address, PairNormaliser(prefix)) for name, address in zip(names, addresses, strict=True)
        ]
        self.waiting: dict[str, Asked] = {}
        self.script: list[str] = []
        self._names = re.compile(re.escape(prefix) + r"(?:\d+-)?")

    # --- asking -------------------------------------------------------------------------------

    @played
    def ask(
        self,
        connection: str,
        request: Message,
        version: int,
        *,
        captures: Captures | None = None,
        barrier: Message | None = None,
        shorten: Callable[[Any, str], Any] | None = None,
        done: Callable[[Any], None] | None = None,
        passes: Callable[[Any], bool] | None = None,
    ) -> Any:
        """Send to both and compare the answers; returns the reference's answer, CLOSED, or None.

        With a `barrier` (a question that the same coordinator answers after this request) a request
        may stay unanswered by both: it waits, its connection with it, and `done` is called when the
        answers come. An answer that `passes` by itself is asked for again. Raises Difference; ValueError
        when the version cannot say the request.
        """
        frames = []
        for side in self.sides:
            try:
                frames.append(side.wire(connection).frame_of(self._for(side, request), version))
            except UnsupportedField as fault:
                raise ValueError(str(fault)) from fault
        text = f"{connection}.call({source(request, self._names)}, {version})"
        self.script.append(text)
        asked = Asked(connection, request, version, len(self.script) - 1, captures or {}, shorten, done, passes)
        for side, frame in zip(self.sides, frames, strict=True):
            side.wire(connection).socket.sendall(frame)
        self.waiting[connection] = asked
        if barrier is None:
            self._collect(asked, ANSWER_TIMEOUT_S)
            if len(asked.answers) < len(self.sides):
                self._differ("no answer", f"neither broker answers within {ANSWER_TIMEOUT_S:.0f} s: {text}")
        elif not self._collect(asked, GRACE_S):
            # Requests of different connections may overtake each other on their way: asked until equal.
            for _ in range(2):
                self.ask_until_equal(BARRIERS, barrier, API_SPECS[barrier.API_KEY].max_version, OVERTAKING_S)
            self._collect(asked, GRACE_S)
        answer = self._settle(asked)
        self.settle()
        return answer

    def _for(self, side: Side, request: Message) -> Any:
        return resolved(request, side.values, self.renamed)

    @played
    def choose(self, name: str, value: Any) -> None:
        """Say what a reference stands for until a broker has chosen something: a value, or another reference."""
        for side in self.sides:
            side.keep(name, side.values[value.name] if isinstance(value, Ref) else value)
        self.script.append(f"{name} = {source(value, self._names)}")

    @played
    def throw(self, data: bytes, api_key: int, version: int) -> None:
        """Send bytes on a connection of their own; both brokers close it, both wait for more, or both answer.

        Of answers that can be read as those of this API and version the error code is compared: an empty
        request may be answered with all that a broker has.
        """
        self.script.append(
            f'player.connect().exchange_bytes(bytes.fromhex("{data.hex()}"), "frame", {int(api_key), version})'
        )
        asked = Asked("raw", API_SPECS[api_key].load()[0](), version, len(self.script) - 1, {}, None, None)
        asked.is_raw = True
        for side in self.sides:
            side.wire("raw").socket.sendall(data)
        self._collect(asked, SILENCE_S)
        for side in self.sides:
            if "raw" in side.wires:
                side.wires.pop("raw").socket.close()
        if asked.answers:
            one, other = (asked.answers[side.name] for side in self.sides)
            if isinstance(one, Struct) and isinstance(other, Struct):
                codes = [getattr(each, "error_code", 0) for each in (one, other)]
                self.compare(asked, *({"error_code": int(code)} for code in codes))
            elif CLOSED in (one, other) and one != other:
                self._differ(f"frame of {API_SPECS[api_key].name} closed by one", f"{one!r} here {other!r}")

    @played
    def tell(self, connection: str, request: Message, version: int) -> None:
        """Send a request that has no answer to both. Raises ValueError as `ask`."""
        try:
            frames = [side.wire(connection).frame_of(self._for(side, request), version) for side in self.sides]
        except UnsupportedField as fault:
            raise ValueError(str(fault)) from fault
        self.script.append(f"{connection}.expect_no_answer({source(request, self._names)}, {version})")
        for side, frame in zip(self.sides, frames, strict=True):
            side.wire(connection).socket.sendall(frame)

    @played
    def ask_until_equal(self, connection: str, request: Message, version: int, each_s: float) -> Any:
        """Ask again, after a while each time, until the answers are equal; raises the last Difference."""
        deadline = time.monotonic() + self.patience_s
        while True:
            select.select([], [], [], each_s)
            before = len(self.script)
            try:
                return self.ask(connection, request, version)
            except Difference:
                if time.monotonic() > deadline:
                    raise
                del self.script[before:]

    @played
    def each_until(self, request: Message, version: int, done: Callable[[Any], bool]) -> None:
        """Ask each broker by itself until its answer is `done`: what was ordered takes effect a little later.

        Nothing is compared, and nothing stands in the script. Raises a Difference if that does not come about.
        """
        for side in self.sides:
            deadline = time.monotonic() + self.patience_s
            while not done(answer := self._asked_alone(side, request, version)):
                if time.monotonic() > deadline:
                    self._differ("not effective", f"{side.name} stays at {answer} to {request}")
                select.select([], [], [], GRACE_S)

    def _asked_alone(self, side: Side, request: Message, version: int) -> Any:
        wire = side.wire("waits")
        wire.socket.sendall(wire.frame_of(self._for(side, request), version))
        while (frame := wire.read()) is None:
            select.select([wire.socket], [], [], ANSWER_TIMEOUT_S)
        if isinstance(frame, str):
            self._differ("closed", f"{side.name} closes the connection at {request}")
        return decode_response(frame, request.API_KEY, version)[1]

    def settle(self) -> None:
        """Compare the answers that have come to requests that waited."""
        for asked in list(self.waiting.values()):
            self._collect(asked, 0)
            self._settle(asked)

    @played
    def wait_for(self, connection: str, timeout_s: float) -> bool:
        """Wait for the answers to a waiting request; whether they came."""
        asked = self.waiting.get(connection)
        if asked is not None:
            self._collect(asked, timeout_s)
            self._settle(asked)
        return connection not in self.waiting

    def _collect(self, asked: Asked, timeout_s: float) -> bool:
        """Read answers until both are there or the time is over; once one is there the other is awaited."""
        deadline = time.monotonic() + timeout_s
        while len(asked.answers) < len(self.sides):
            missing = [side for side in self.sides if side.name not in asked.answers]
            for side in missing:
                frame = side.wires[asked.connection].read()
                if frame is not None:
                    answer = self._decoded(frame, asked, side)
                    if asked.passes is not None and answer != CLOSED and asked.passes(answer):
                        self._ask_once_more(asked, side)
                        continue
                    asked.answers[side.name] = answer
                    deadline = time.monotonic() + SECOND_ANSWER_TIMEOUT_S
            if len(asked.answers) == len(self.sides):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                break
            sockets = [side.wires[asked.connection].socket for side in missing if side.name not in asked.answers]
            select.select(sockets, [], [], left)
        if len(asked.answers) == 1:
            (answered,) = asked.answers
            self._differ(
                f"{API_SPECS[asked.request.API_KEY].name} answered by one",
                f"only {answered} answers {self.script[asked.line]}\n{self._shown(asked, answered)}",
            )
        return len(asked.answers) == len(self.sides)

    def _ask_once_more(self, asked: Asked, side: Side) -> None:
        select.select([], [], [], GRACE_S)
        wire = side.wires[asked.connection]
        wire.socket.sendall(wire.frame_of(self._for(side, asked.request), asked.version))

    def _decoded(self, frame: bytes | str, asked: Asked, side: Side) -> Any:
        if isinstance(frame, str):
            side.wires.pop(asked.connection).socket.close()
            return CLOSED
        try:
            return decode_response(frame, asked.request.API_KEY, asked.version)[1]
        except Exception as fault:
            if asked.is_raw:
                return frame
            self._differ("undecodable", f"{side.name} answers {frame.hex()}, which is no answer: {fault}")

    # --- comparing ----------------------------------------------------------------------------

    def _settle(self, asked: Asked) -> Any:
        if len(asked.answers) < len(self.sides):
            return None
        self.waiting.pop(asked.connection, None)
        shown = []
        for side in self.sides:
            answer = asked.answers[side.name]
            if answer != CLOSED:
                for name, part in asked.captures.items():
                    side.keep(name, part(answer))
                    if side is self.sides[0]:
                        self.script[asked.line] += f"  # keeps {name}"
            shown.append(self._normal(asked, side))
        self.compare(asked, *shown)
        answer = asked.answers[self.sides[0].name]
        if len({side.name for side in self.sides if asked.connection in side.wires}) == 1:
            for side in self.sides:
                side.wires.pop(asked.connection, None)
        if asked.done is not None and answer != CLOSED:
            asked.done(answer)
        return answer

    def _normal(self, asked: Asked, side: Side) -> Any:
        answer = asked.answers[side.name]
        if answer == CLOSED:
            return CLOSED
        if asked.shorten is not None:
            answer = asked.shorten(answer, self.own)
        return side.normaliser.message(answer, answer=True)

    def _shown(self, asked: Asked, name: str) -> str:
        side = next(side for side in self.sides if side.name == name)
        return json.dumps(self._normal(asked, side))

    def compare(self, asked: Asked, expected: Any, answered: Any) -> None:
        """Raise Difference unless the normal forms are equal, kinder texts aside."""
        if expected != CLOSED and answered != CLOSED:
            answered = without_kinder_texts(expected, answered)
        found = list(differing("", expected, answered))
        if not found:
            return
        api = API_SPECS[asked.request.API_KEY].name
        lines = [f"  {path or 'answer'}: {left!r} here {right!r}" for path, left, right in found]
        places = sorted({(re.sub(r"\[\d+\]", "", path), brief(left), brief(right)) for path, left, right in found})
        signature = f"{api} " + " ".join(f"{path}:{left}/{right}" for path, left, right in places[:2])
        whole = [
            f"  {side.name}: {json.dumps(shown)}" for side, shown in zip(self.sides, (expected, answered), strict=True)
        ]
        text = f"{signature}\n{self.script[asked.line]}\n" + "\n".join(lines + whole)
        self._differ(signature, text, tuple(place for place, _left, _right in places))

    def _differ(self, signature: str, text: str, places: tuple[str, ...] = ()) -> Any:
        fault = difference(signature, f"{text}\n--- the sequence\n" + "\n".join(self.script))
        fault.places = places
        fault.steps, fault.own = tuple(self.steps), self.own
        raise fault

    def close(self) -> None:
        """Close every connection."""
        for side in self.sides:
            for each in side.wires.values():
                each.socket.close()
            side.wires.clear()


def brief(value: Any) -> str:
    """A value short enough for a signature; texts and lists are only what they are."""
    return str(value) if value is None or isinstance(value, (int, bool)) else type(value).__name__


def differing(path: str, left: Any, right: Any) -> Any:
    """The places at which two plain values differ, with what stands there."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from differing(f"{path}.{key}", left.get(key, "<default>"), right.get(key, "<default>"))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differing(f"{path}[{index}]", one, other)
    elif left != right:
        yield path, left, right
