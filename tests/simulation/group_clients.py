"""What all clients of groups share: the world they are in, offsets, zombies, and what they do that is not nice.

A client is as honest as a real one: it owns what it was given, says what it gave up, begins anew when it is told
to. What else it does (pause, vanish, disobey) is what happens to processes.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.group_history import GroupHistory, Membership, Partition
from tests.simulation.offset_history import NONE
from tests.simulation.transport import Client, Disconnected, Transport
from wire.errors import ErrorCode
from wire.messages.metadata import MetadataRequest
from wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Said by a coordinator that is not there yet."""
NOT_A_MEMBER = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    }
)
"""What a coordinator says to those who are not in, or not any more."""
COMMIT_VERSION = 9
FETCH_VERSION = 9
WRONG_OFFSET = -7
"""What is committed by those who may not."""
SLACK_MS = 300.0
"""Timers may be late by this, in virtual time."""
STABLE_TOPICS = ("a", "b")
"""Never deleted."""
REBALANCE_MS = (6_000, 10_000)
"""Rebalance timeouts of members."""


class Gone(Exception):
    """The process has ended, or is to end."""


@dataclass(slots=True)
class GroupWorld:
    """What all clients share."""

    transport: Transport
    random: Random
    retention_ms: float
    history: GroupHistory = field(default_factory=GroupHistory)
    trace: list[str] = field(default_factory=list)
    slack_ms: float = SLACK_MS
    loss: float = 0.0
    topics: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """What exists, as clients know it: id and number of partitions."""
    names: dict[bytes, str] = field(default_factory=dict)
    assigned: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    """Which partitions leaders of classic groups knew of when they assigned a generation."""
    is_calm: bool = False
    """No more faults; everybody keeps to the rules."""
    is_over: bool = False
    """Members are to leave."""
    background: list[asyncio.Task[Any]] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)
    counts: dict[str, int] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """A line of the trace, with the moment."""
        self.trace.append(f"{self.transport.time():10.3f} {text}")

    def count(self, what: str) -> None:
        """One more of something that the report tells."""
        self.counts[what] = self.counts.get(what, 0) + 1

    @property
    def now_ms(self) -> float:
        """Virtual milliseconds since the run began."""
        return self.transport.time() * 1000

    def chance(self, probability: float) -> bool:
        """Whether something unusual happens; never when all is calm."""
        return not self.is_calm and self.random.random() < probability

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Something that goes on by itself; the run waits for it, and fails with it."""
        self.background.append(self.transport.spawn(work, name))

    async def ask(self, client: Client, request: Any, version: int, *, patience_s: float | None = None) -> Any:
        """The answer; None where none comes, or the client has no more patience."""
        call = client.call(request, version, lose_request=self.chance(self.loss), lose_answer=self.chance(self.loss))
        try:
            if patience_s is None:
                return await call
            waiting = self.transport.spawn(call, "impatient")
            await asyncio.wait([waiting], timeout=patience_s)
            if waiting.done():
                return waiting.result()
            waiting.cancel()
        except Disconnected:
            pass
        finally:
            self.notice_restart()
        return None

    def notice_restart(self) -> None:
        """Sessions begin anew when the coordinator comes back."""
        self.history.starts = self.transport.starts

    async def back_off(self) -> None:
        """Wait a moment, and until the node is there."""
        await asyncio.sleep(self.random.choice([0.05, 0.1, 0.3]))
        await self.transport.is_up.wait()
        self.notice_restart()

    async def refresh(self, client: Client) -> None:
        """Learn which topics there are."""
        answer = await self.ask(client, MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
        if answer is not None:
            self.topics = {
                topic.name: (topic.topic_id, len(topic.partitions))
                for topic in answer.topics
                if not topic.is_internal and not topic.error_code
            }
            self.names |= {topic_id: name for name, (topic_id, _) in self.topics.items()}

    def partitions_of(self, topics: frozenset[str]) -> list[Partition]:
        """All partitions of those topics that exist."""
        return [
            (name, index) for name in sorted(topics) if name in self.topics for index in range(self.topics[name][1])
        ]

    def may_expire(self, group: str, partition: Partition) -> bool:
        """Whether retention can have taken an offset by now."""
        committed_ms = self.history.offsets.register(group, partition).newest_commit_ms
        members = [each for each in self.history.memberships if each.group == group]
        if not members:
            return self.now_ms - committed_ms >= self.retention_ms
        return not any(
            each.since_ms <= committed_ms and partition[0] in each.topics
            for each in self.history.surely_in(group, self.now_ms)
        )


# --- offsets ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a client says it is."""

    group: str
    member_id: str = ""
    epoch: int = -1
    instance_id: str | None = None


def commit_request(who: Identity, partition: Partition, value: int) -> OffsetCommitRequest:
    """A commit of one offset."""
    return OffsetCommitRequest(
        group_id=who.group,
        generation_id_or_member_epoch=who.epoch,
        member_id=who.member_id,
        group_instance_id=who.instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=partition[0],
                partitions=[OffsetCommitRequestPartition(partition_index=partition[1], committed_offset=value)],
            )
        ],
    )


async def commit(world: GroupWorld, client: Client, who: Identity, partition: Partition) -> ErrorCode | None:
    """Commit a new offset, once; None where no answer comes."""
    value = next(world.numbers)
    offsets = world.history.offsets
    write = offsets.writing(who.group, partition, value, world.now_ms)
    answer = await world.ask(client, commit_request(who, partition, value), COMMIT_VERSION)
    if answer is None:
        offsets.lost(write, world.now_ms)
        return None
    code = ErrorCode(answer.topics[0].partitions[0].error_code)
    if code is ErrorCode.NONE:
        offsets.done(who.group, partition, write, world.now_ms)
        world.count("commits")
    elif code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        offsets.lost(write, world.now_ms)
    else:
        offsets.refused(who.group, partition, write)
    return code


async def check_committed(world: GroupWorld, client: Client, group: str, partition: Partition) -> int | None:
    """Fetch an offset, which must be one that it can be; None where no answer comes."""
    topics = [OffsetFetchRequestTopics(name=partition[0], partition_indexes=[partition[1]])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=world.random.random() < 0.5
    )
    sent_ms = world.now_ms
    answer = await world.ask(client, request, FETCH_VERSION)
    if answer is None or answer.groups[0].error_code:
        code = None if answer is None else ErrorCode(answer.groups[0].error_code)
        assert code is None or code in AGAIN, code
        return None
    found = answer.groups[0].topics[0].partitions[0]
    assert not found.error_code or ErrorCode(found.error_code) in AGAIN, found
    if found.error_code:
        return None
    may_expire = found.committed_offset == NONE and world.may_expire(group, partition)
    world.history.offsets.read(group, partition, found.committed_offset, sent_ms, world.now_ms, may_expire=may_expire)
    return int(found.committed_offset)


async def commit_simply(world: GroupWorld, group: str) -> None:
    """A client that assigns its partitions itself and only commits; nobody is ever a member of its group."""
    client = world.transport.client()
    while not world.is_calm:
        partition = world.random.choice(world.partitions_of(frozenset(STABLE_TOPICS)))
        code = await commit(world, client, Identity(group), partition)
        assert code is None or code is ErrorCode.NONE or code in AGAIN, f"a commit without a group gets {code.name}"
        await check_committed(world, client, group, partition)
        await asyncio.sleep(world.random.choice([0.5, 2, 5]))
        await world.back_off()


# --- zombies ------------------------------------------------------------------------------------


async def haunt(world: GroupWorld, requests: list[tuple[Any, int]], ended: Membership, *, partition: Partition) -> None:
    """Send what a process sends that does not know of its end; nothing of it may be carried out.

    The end must be one that the log knows: what the members of a classic group are is written with the assignment.
    """
    client = world.transport.client()
    who = Identity(ended.group, ended.member_id, max(ended.epoch, 1), ended.instance_id)
    requests = [*requests, (commit_request(who, partition, WRONG_OFFSET), COMMIT_VERSION)]
    for _ in range(world.random.randint(1, 6)):
        await asyncio.sleep(world.random.choice([0, 0.2, 1, 4]))
        await world.transport.is_up.wait()
        request, version = world.random.choice(requests)
        answer = await world.ask(client, request, version)
        if ended.kind == "classic" and world.history.starts != ended.ended_starts:
            # A classic group that was loaded knows its last assignment, and who had to do with that.
            note_wrong_commit(world, request, partition)
            return
        if any(each.member_id == ended.member_id for each in world.history.live(ended.group)):
            # The process has joined anew with its id: the two cannot be told apart.
            return
        if answer is None:
            continue
        code = code_of(answer)
        assert code in NOT_A_MEMBER or code in AGAIN, (
            f"NoZombies: {ended}, which ended by {ended.ended}, gets {code.name} for {type(request).__name__}"
        )
        world.count("zombies refused")


def note_wrong_commit(world: GroupWorld, request: Any, partition: Partition) -> None:
    """The coordinator has forgotten a generation: a commit of the one before may have been carried out."""
    if isinstance(request, OffsetCommitRequest):
        offsets = world.history.offsets
        offsets.lost(offsets.writing(request.group_id, partition, WRONG_OFFSET, 0), world.now_ms)


def code_of(answer: Any) -> ErrorCode:
    """The error of an answer to one member, or of the one partition of a commit."""
    if hasattr(answer, "error_code"):
        return ErrorCode(answer.error_code)
    if hasattr(answer, "topics"):
        return ErrorCode(answer.topics[0].partitions[0].error_code)
    return ErrorCode(answer.members[0].error_code)
