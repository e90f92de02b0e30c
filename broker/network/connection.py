"""One connection: bytes in, frames out, one request at a time, answers in request order.

Bytes are read into one buffer that all connections of the loop share; a frame that is complete
in it is copied out once. The rest of a longer frame is read straight into that frame's own
buffer, which grows with what has arrived, so that a size prefix alone costs no memory.
While a request is being answered, frames behind it are read ahead up to `READ_AHEAD_BYTES`, then
reading pauses. An answer that the client does not take pauses the next request.
Source: `SocketServer.Processor`, `Selector`, `NetworkReceive`, KafkaChannel's mute state.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, cast

from broker.network.first_step import run_to_first_wait
from broker.network.peer import CloseConnection, Peer

if TYPE_CHECKING:
    from broker.network.connection_set import ConnectionSet

logger = logging.getLogger(__name__)

Answer = Callable[[bytes, Peer], Awaitable["list[Any] | None"]]
"""`dispatch`: a request frame and its peer give the answer's buffers, or None for no answer."""

SHARED_BUFFER_BYTES = 256 * 1024
READ_AHEAD_BYTES = 64 * 1024
"""Frames waiting behind the request in progress: enough for a pipelining client to keep the node
busy, little enough that 5,000 such clients are no burden."""
UNSENT_BUFFERS_MAX = 16
"""So many short answers are written together at most."""
FIRST_ALLOCATION_BYTES = 1024 * 1024
"""What a long frame is given at first; it doubles as bytes arrive, so slow senders own little."""

PAUSED_BY_READ_AHEAD = 1
PAUSED_BY_BUDGET = 2
PAUSED_BY_ADMISSION = 4
PAUSED_BY_CLOSING = 8

_SIZE = Struct(">i")


class ReadBuffer:
    """The one buffer of a loop into which sockets are read. Nothing may be left in it."""

    __slots__ = ("view",)

    def __init__(self, size_bytes: int = SHARED_BUFFER_BYTES) -> None:
        self.view = memoryview(bytearray(size_bytes))


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    __slots__ = (
        "_answer",
        "_budget",
        "_carry",
        "_clock",
        "_close_reason",
        "_drained",
        "_frame",
        "_frame_filled",
        "_frame_size",
        "_is_write_paused",
        "_loop",
        "_paused",
        "_pending",
        "_pending_bytes",
        "_received_eof",
        "_task",
        "_unsent",
        "connection_set",
        "is_answering",
        "is_placed",
        "last_active_ms",
        "listener_name",
        "peer",
        "transport",
        "written_backlog_bytes",
    )

    def __init__(
        self, connection_set: ConnectionSet, listener_name: str, security_protocol: str, answer: Answer
    ) -> None:
        self.connection_set = connection_set
        self.listener_name = listener_name
        self.peer = Peer(listener_name=listener_name, client_host="", security_protocol=security_protocol)
        self.transport: asyncio.Transport
        self.last_active_ms = 0.0
        self.written_backlog_bytes = 0
        self._answer = answer
        self._budget = connection_set.budget
        self._clock = connection_set.clock
        self._loop = connection_set.loop
        self.is_placed = False
        self._carry = b""
        self._frame: bytearray | None = None
        self._frame_size = 0
        self._frame_filled = 0
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._paused = 0
        self._is_write_paused = False
        self._drained: asyncio.Future[None] | None = None
        self.is_answering = False
        """Whether a request of this connection is being answered."""
        self._task: asyncio.Task[None] | None = None
        """What answers it, once it has had to wait."""
        self._unsent: list[Any] = []
        self._received_eof = False
        self._close_reason = ""

    # --- the transport's calls -------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Learn the peer's address and ask to be let in."""
        self.transport = cast(asyncio.Transport, transport)
        # Limit 0: writing is paused until an answer has left whole, so that no second answer is
        # made while a slow reader still holds the first.
        self.transport.set_write_buffer_limits(high=0)
        address = transport.get_extra_info("peername")
        peer = self.peer
        if address:
            peer.client_host, peer.client_port = str(address[0]).removeprefix("::ffff:"), int(address[1])
        self.last_active_ms = self._clock.monotonic_ms()
        self.connection_set.admit(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go: the shared buffer, or the long frame being read."""
        frame = self._frame
        if frame is None:
            return self.connection_set.read_buffer.view
        if self._frame_filled == len(frame):
            growth = max(len(frame), FIRST_ALLOCATION_BYTES)
            frame.extend(bytes(min(growth, self._frame_size - len(frame))))
        return memoryview(frame)[self._frame_filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have arrived where `get_buffer` said."""
        self.last_active_ms = self._clock.monotonic_ms()
        if self._frame is not None:
            self._frame_filled += nbytes
            if self._frame_filled == self._frame_size:
                frame = bytes(self._frame)
                self._frame = None
                self._enqueue(frame)
                self._answer_in_hand()
            return
        data = self.connection_set.read_buffer.view[:nbytes]
        if self._carry:
            data = memoryview(self._carry + data)
            self._carry = b""
        self._split(data)
        self._answer_in_hand()

    def eof_received(self) -> bool:
        """The client sends no more: what it has sent is answered, then the connection closes."""
        self._received_eof = True
        return self.is_answering

    def pause_writing(self) -> None:
        """The client does not take the answer as fast as it is written."""
        self._is_write_paused = True

    def resume_writing(self) -> None:
        """The answer has left whole."""
        self._is_write_paused = False
        self.last_active_ms = self._clock.monotonic_ms()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The socket is gone. A request in progress runs to its end; its answer is dropped."""
        peer = self.peer
        peer.is_connected = False
        self._budget.forget(self._begin_waiting_frame)
        if self._frame is not None and not self._paused & PAUSED_BY_BUDGET:
            self._budget.give_back(self._frame_size)
        self._frame = None
        self._drop_pending()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self.connection_set.remove(self)
        listeners, peer.disconnect_listeners = peer.disconnect_listeners, []
        for listener in listeners:
            listener(peer)

    # --- frames ----------------------------------------------------------------------------

    def _split(self, data: memoryview) -> None:
        """Cut complete frames out of the bytes read; keep the beginning of the next one."""
        size_max = self.connection_set.limits.socket_request_max_bytes
        position, end = 0, len(data)
        while end - position >= 4 and not self._close_reason:
            size = _SIZE.unpack_from(data, position)[0]
            if size < 0 or size > size_max:
                prefix = bytes(data[position : position + 8])
                self.connection_set.report_refused_size(self.peer, size, prefix)
                self.close(f"a frame of {size} bytes")
                return
            start = position + 4
            position = start + size
            if position > end:
                self._begin_frame(size, data[start:end])
                return
            self._budget.take(size)
            self._enqueue(bytes(data[start:position]))
        if position < end:
            self._carry = bytes(data[position:end])

    def _begin_frame(self, size: int, received: memoryview) -> None:
        """A frame longer than what has been read gets its own buffer, if the budget allows."""
        self._frame_size, self._frame_filled = size, len(received)
        if self._budget.may_begin(size):
            self._budget.take(size)
            self._frame = bytearray(min(size, max(FIRST_ALLOCATION_BYTES, len(received))))
            self._frame[: len(received)] = received
        else:
            self._frame = bytearray(received)
            self._pause(PAUSED_BY_BUDGET)
            self._budget.wait(self._begin_waiting_frame)

    def _begin_waiting_frame(self) -> None:
        self._budget.take(self._frame_size)
        self._resume(PAUSED_BY_BUDGET)

    def _enqueue(self, frame: bytes) -> None:
        """A whole frame, already charged."""
        self._pending.append(frame)
        self._pending_bytes += len(frame)

    def _answer_in_hand(self) -> None:
        """Answer what has been read whole: now, as far as nothing has to wait, or in its turn."""
        if self._pending and not self.is_answering:
            self.is_answering = True
            self._task = run_to_first_wait(self._answer_pending(), self._loop)
            if self._task is not None:
                self._write_unsent()
        if self._pending_bytes > READ_AHEAD_BYTES:
            self._pause(PAUSED_BY_READ_AHEAD)

    def _drop_pending(self) -> None:
        self._budget.give_back(self._pending_bytes)
        self._pending.clear()
        self._pending_bytes = 0

    # --- answers ---------------------------------------------------------------------------

    async def _answer_pending(self) -> None:
        """Answer the frames in hand one after the other; runs while there are any."""
        try:
            while self._pending:
                frame = self._pending.popleft()
                size = len(frame)
                self._pending_bytes -= size
                if self._paused & PAUSED_BY_READ_AHEAD and self._pending_bytes <= READ_AHEAD_BYTES:
                    self._resume(PAUSED_BY_READ_AHEAD)
                try:
                    answer = await self._answer(frame, self.peer)
                    del frame
                    if answer is not None:
                        is_long = len(answer) > 1
                        self._unsent += answer
                        del answer
                        # Short answers to what was read at once leave together, unless one has to wait.
                        if is_long or not self._pending or self._task or len(self._unsent) >= UNSENT_BUFFERS_MAX:
                            self._write_unsent()
                            if self._is_write_paused:
                                await self._wait_for_drained()
                finally:
                    self._budget.give_back(size)
                if self._task is not None:  # time has passed since the request came
                    self.last_active_ms = self._clock.monotonic_ms()
        except CloseConnection as close:
            self._drop_pending()
            self._close_reason = self._close_reason or close.reason
        except Exception as error:
            logger.error("connection from %s closed: %s: %s", self.peer.client_host, type(error).__name__, error)
            logger.debug("where it failed", exc_info=error)
            self._close_reason = self._close_reason or "a fault of the node"
        finally:
            self._write_unsent()
            self._task = None
            self.is_answering = False
        if self._close_reason or self._received_eof:
            self._close_now()

    def _write_unsent(self) -> None:
        if self._unsent:
            unsent, self._unsent = self._unsent, []
            if not self.transport.is_closing():
                self.transport.writelines(unsent)

    async def _wait_for_drained(self) -> None:
        if self.transport.is_closing():
            return
        self._drained = self._loop.create_future()
        try:
            await self._drained
        finally:
            self._drained = None

    # --- pausing and closing ---------------------------------------------------------------

    def _pause(self, reason: int) -> None:
        if not self._paused and not self.transport.is_closing():
            self.transport.pause_reading()
        self._paused |= reason

    def _resume(self, reason: int) -> None:
        if not self._paused & reason:
            return
        self._paused &= ~reason
        if not self._paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def hold(self) -> None:
        """Accepted but not let in yet (`max.connections`): nothing is read.

        Called while the connection is made: uvloop starts reading right after that whatever was
        said before, so the transport is told at the loop's next turn.
        """
        self._paused |= PAUSED_BY_ADMISSION
        self._loop.call_soon(self._pause_held)

    def _pause_held(self) -> None:
        if self._paused & PAUSED_BY_ADMISSION and not self.transport.is_closing():
            self.transport.pause_reading()

    def let_in(self) -> None:
        """A place has become free."""
        self.last_active_ms = self._clock.monotonic_ms()
        self._resume(PAUSED_BY_ADMISSION)

    def close(self, reason: str) -> None:
        """Close once the requests already in hand are answered (at once if there are none)."""
        self._close_reason = reason
        if self.is_answering or self._pending:
            self._pause(PAUSED_BY_CLOSING)
        else:
            self._close_now()

    def _close_now(self) -> None:
        logger.debug("connection from %s closed: %s", self.peer.client_host, self._close_reason or "end of input")
        self.transport.close()

    def drop(self, reason: str) -> None:
        """Close at once. A request in progress runs to its end; its answer is dropped."""
        self._close_reason = reason
        self._close_now()

    def abort(self) -> None:
        """Close without another byte and give up the request in progress: the node stops."""
        if self._task is not None:
            self._task.cancel()
        self.transport.abort()

    @property
    def held_bytes(self) -> int:
        """Bytes of requests in memory that are not being answered yet."""
        return self._pending_bytes + len(self._frame or b"") + len(self._carry)

    def is_taking_bytes(self) -> bool:
        """Whether the client has taken some of a waiting answer since this was last asked."""
        backlog_bytes = self.transport.get_write_buffer_size()
        taken = 0 < backlog_bytes < self.written_backlog_bytes
        self.written_backlog_bytes = backlog_bytes
        return taken
