"""The one pattern of every deciding state machine: groups, transactions, shares, controller.

A machine is a plain object that owns the state behind one log (a partition of an internal topic,
or `__cluster_metadata-0`). It never waits, never reads a clock, never draws a random number and
never touches the log. A runtime drives it:

    decision = machine.decide(request, context, now_ms, ids, ticket)    changes nothing
    append(decision.records)                                            one batch, all or nothing
      appended  -> machine.settle(decision), then replay(record, offset) of every record
      refused   -> answer machine.unsettle(decision, error).replies
    when the high watermark passes the append -> release decision.replies
    arm one timer for machine.next_deadline_ms(); when it fires, run machine.expire(...) likewise

What a runtime guarantees, and a machine may rely on:

* Decide, append, settle and replay of one decision run without another decision in between, so a
  decision is never stale when it is applied.
* Replies are released in the order of their decisions, and not before everything that the machine
  had replayed when it decided is committed. So a decision without records (a read, or a join that
  only waits) also never answers from state that could be lost.
* `replay` sees every record exactly once and in offset order, and the same sequence on the leader,
  on load and on a follower.

Durable state may change in `replay` alone, volatile state (what Kafka keeps in memory only: joining
members, waiting syncs, pending ids) in `settle` and `unsettle` alone. Source: Kafka's
CoordinatorRuntime and QuorumController; etcd's raft library for the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from wire.errors import KafkaError

Ticket = int
"""Names one waiting request; opaque to the machine. 0 where nobody waits."""

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """One record of `__consumer_offsets`, `__transaction_state` or `__share_group_state`.

    The record type is the key's `API_KEY` and keys are always written at version 0. A value of
    None is a tombstone; `value_version` says nothing then.
    """

    key: Any
    value: Any | None
    value_version: int = 0


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record of `__cluster_metadata`: the message and the version it is written at."""

    message: Any
    version: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """Why something happened, as one sentence that names the object, the value and the limit.

    Runtimes write it to the log of the process; tests compare it. A machine that wants tests or
    metrics to tell events apart derives its own frozen dataclasses from this one.
    """

    text: str


RecordT = TypeVar("RecordT")
RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
ContextT_contra = TypeVar("ContextT_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[RecordT]):
    """What a machine wants to happen; making one changes nothing.

    records   appended as one batch, in this order; empty if nothing durable changes.
    replies   (ticket, response) in the order in which they are to be answered. The tickets may be
              of earlier requests: the last JoinGroup of a round answers the others. A request
              whose ticket is absent goes on waiting for a later decision.
    events    sentences for the log of the process, written once the append has succeeded.
    volatile  the machine's own description of the in-memory change, read by its `settle` and
              `unsettle` only.
    producer_id, producer_epoch
              if set, the records are part of this producer's transaction (TxnOffsetCommit): they
              are written in a transactional batch and replayed as such.
    """

    records: Sequence[RecordT] = ()
    replies: Sequence[tuple[Ticket, Any]] = ()
    events: Sequence[Event] = ()
    volatile: Sequence[Any] = field(default=())
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class Ids(Protocol):
    """Where identifiers and chance come from; seeded in simulations."""

    def uuid(self) -> bytes:
        """A new random 16-byte id that is not reserved and whose text form has no leading '-'
        (Kafka: Uuid.randomUuid)."""
        ...

    def below(self, limit: int) -> int:
        """A random integer in 0 .. limit-1; `limit` is at least 1."""
        ...


class ReplayAt(Enum):
    """When a machine's records take effect on the leader."""

    APPEND = "append"
    """As soon as they are in the local log (groups, shares, controller): the next decision builds
    on them. If they are lost the leadership is lost too, and the machine is dropped and reloaded."""

    COMMIT = "commit"
    """When the high watermark has passed them (transactions): until then the machine knows the
    change as a pending, volatile one."""


class Machine(Protocol[RequestT_contra, ContextT_contra, RecordT]):
    """A deciding state machine; see the module docstring for the contract with its runtime."""

    replay_at: ReplayAt

    def decide(
        self,
        request: RequestT_contra,
        context: ContextT_contra,
        now_ms: int,
        ids: Ids,
        ticket: Ticket,
    ) -> Decision[RecordT]:
        """Decide one request. Changes nothing.

        `context` is what the machine may know of the world besides its own state: metadata image,
        settings, features, who asks. `now_ms` is wall-clock milliseconds. A request that is
        refused as a whole may be answered by a reply with an error code or by raising KafkaError;
        either way nothing has changed.
        """
        ...

    def settle(self, decision: Decision[RecordT]) -> None:
        """Apply the volatile part of a decision whose records (if any) are now in the local log.
        Called once per decision, before its records are replayed, also when it has no records."""
        ...

    def unsettle(self, decision: Decision[RecordT], error: KafkaError) -> Decision[RecordT]:
        """Answer for a decision whose append was refused (called instead of `settle`), or, for
        `ReplayAt.COMMIT`, whose commit failed after `settle` (then take the change back).

        Returns a decision without records whose replies answer every ticket that `decision` would
        have answered or left waiting, with the code that Kafka gives for `error`. Its volatile
        part, if it has one, is settled by the runtime.
        """
        ...

    def replay(self, record: RecordT, offset: int) -> None:
        """Apply one record; the only place where durable state changes. `offset` is its place in
        the log, or -1 when it comes from a snapshot. Never raises for a record it wrote itself."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Wall-clock milliseconds at which `expire` has something to do; None for never. Must be
        cheap: it is read after every decision."""
        ...

    def expire(self, context: ContextT_contra, now_ms: int, ids: Ids) -> Decision[RecordT]:
        """Decide what is due at `now_ms` (session and rebalance timeouts, expiry of offsets). It
        may do part of the work and leave `next_deadline_ms()` due. Changes nothing."""
        ...


class TransactionalMachine(Machine[RequestT_contra, ContextT_contra, RecordT], Protocol):
    """A machine whose log also takes records of producers' transactions (committed offsets)."""

    def replay_transactional(self, record: RecordT, offset: int, producer_id: int, producer_epoch: int) -> None:
        """Apply one record that counts only once its transaction has committed."""
        ...

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Apply the control record that ends the producer's transaction on this log."""
        ...
