"""A group shard with a log and a clock of its own: tests tell stories with it.

The log keeps encoded records, so that every story also proves that what was written can be read. After
every step the invariants of the machine are checked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coordinator.group.classic_group import ClassicGroup, ClassicGroupState
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.context import GroupContext, GroupSettings
from coordinator.group.requests import FetchStableOffsets
from coordinator.group.settlement import GroupDecision
from coordinator.group.shard import GroupShard
from coordinator.machine import NO_PRODUCER_ID
from coordinator.metadata.image import EMPTY_IMAGE, MetadataImage
from coordinator.record_codec import RecordCodec
from tests.coordinator.group.consumer_invariants import check_consumer_group
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_groups import DescribedGroup
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from wire.messages.records import consumer_offsets
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

START_MS = 1_700_000_000_000
CODEC = RecordCodec(consumer_offsets)
STEPS_MAX = 1000


def subscription(*topics: str) -> bytes:
    """The consumer protocol's subscription, version 0, written by hand."""
    body = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\x00\x00" + len(topics).to_bytes(4, "big") + body + b"\xff\xff\xff\xff"


class SeededIds:
    """Ids that are the same in every run."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> bytes:
        return self._random.randbytes(16)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


@dataclass(slots=True)
class Logged:
    """One entry of the log: a record, or the marker that ends a transaction."""

    key: bytes | None
    value: bytes | None
    producer_id: int = NO_PRODUCER_ID
    is_commit: bool | None = None


@dataclass(slots=True)
class World:
    """The shard and everything around it."""

    settings: GroupSettings = field(default_factory=GroupSettings)
    image: MetadataImage = EMPTY_IMAGE
    now_ms: int = START_MS
    log: list[Logged] = field(default_factory=list)
    replies: dict[int, Any] = field(default_factory=dict)
    refuse_with: ErrorCode | None = None
    """The next append is refused with this."""
    replicated: bool = True
    """Appends are below the high watermark at once."""
    may_describe: Callable[[str], bool] = lambda topic: True
    """Whether whoever asks may know of a topic."""
    shard: GroupShard = field(init=False)
    ids: SeededIds = field(default_factory=SeededIds)
    _last_ticket: int = 0
    _asked: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.shard = GroupShard(self.settings)
        self._apply(self.shard.loaded(self._context(), self.now_ms, self.ids))

    # --- driving ------------------------------------------------------------------------------

    def ask(self, request: Any, api_version: int = 0, client_id: str = "client") -> int:
        """Hand in a request; returns its ticket. A refusal counts as an answer."""
        self._last_ticket += 1
        ticket = self._last_ticket
        self._asked.add(ticket)
        context = self._context(api_version, client_id, "/127.0.0.1")
        try:
            decision = self.shard.decide(request, context, self.now_ms, self.ids, ticket)
        except KafkaError as error:
            self._reply([(ticket, error)])
        else:
            self._apply(decision)
        self._run_due()
        return ticket

    def call(self, request: Any, api_version: int = 0, client_id: str = "client") -> Any:
        """Hand in a request that is answered at once; a refusal is returned as the KafkaError."""
        ticket = self.ask(request, api_version, client_id)
        assert ticket in self.replies, f"{request} waits"
        return self.replies[ticket]

    def code(self, request: Any, api_version: int = 0) -> ErrorCode:
        """The error code with which the whole request is answered."""
        response = self.call(request, api_version)
        return response.code if isinstance(response, KafkaError) else ErrorCode(response.error_code)

    def is_waiting(self, ticket: int) -> bool:
        return ticket not in self.replies

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass; what becomes due happens when it is due."""
        end_ms = self.now_ms + milliseconds
        for _ in range(STEPS_MAX):
            deadline_ms = self.shard.next_deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self.now_ms = max(deadline_ms, self.now_ms)
            self._run_due()
        self.now_ms = end_ms

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """The transaction coordinator's marker reaches this log."""
        offset = len(self.log)
        self.log.append(Logged(None, None, producer_id, is_commit))
        self.shard.replay_marker(offset, producer_id, 0, is_commit)
        self._replicate()

    def replicate(self) -> None:
        """Everything in the log is replicated now."""
        self.shard.committed(len(self.log))

    def reload(self) -> None:
        """Another node takes over: a new machine replays the log; waiting requests are lost."""
        self._asked -= self._asked - set(self.replies)
        self.shard = replayed(self.log, self.settings)
        self._apply(self.shard.loaded(self._context(), self.now_ms, self.ids))
        self._run_due()

    def _context(self, api_version: int = 0, client_id: str = "", client_host: str = "") -> GroupContext:
        return GroupContext(
            self.settings, api_version, client_id, client_host, image=self.image, may_describe=self.may_describe
        )

    def _run_due(self) -> None:
        for _ in range(STEPS_MAX):
            deadline_ms = self.shard.next_deadline_ms()
            if deadline_ms is None or deadline_ms > self.now_ms:
                return
            self._apply(self.shard.expire(self._context(), self.now_ms, self.ids))
        raise AssertionError("what is due never ends")

    def _apply(self, decision: GroupDecision) -> None:
        if decision.records and self.refuse_with is not None:
            error = KafkaError(self.refuse_with)
            self.refuse_with = None
            decision = self.shard.unsettle(decision, error)
            assert not decision.records, "a refused decision writes nothing"
        self.shard.settle(decision)
        for record in decision.records:
            offset = len(self.log)
            self.log.append(Logged(*CODEC.encode(record), producer_id=decision.producer_id))
            if decision.producer_id == NO_PRODUCER_ID:
                self.shard.replay(record, offset)
            else:
                self.shard.replay_transactional(record, offset, decision.producer_id, decision.producer_epoch)
        self._replicate()
        self._reply(decision.replies)
        check_invariants(self)

    def _replicate(self) -> None:
        if self.replicated:
            self.replicate()

    def _reply(self, replies: Sequence[tuple[int, Any]]) -> None:
        for ticket, response in replies:
            assert ticket in self._asked, f"nobody asked with ticket {ticket}"
            assert ticket not in self.replies, f"ticket {ticket} is answered twice"
            self.replies[ticket] = response

    # --- questions ----------------------------------------------------------------------------

    def group(self, group_id: str = "g") -> ClassicGroup:
        group = self.shard._groups.get(group_id)
        assert isinstance(group, ClassicGroup), f"there is no group {group_id}"
        return group

    def exists(self, group_id: str = "g") -> bool:
        return self.shard._groups.get(group_id) is not None

    def state(self, group_id: str = "g") -> str:
        return self.describe(group_id).group_state

    def describe(self, group_id: str = "g", api_version: int = 6) -> DescribedGroup:
        return self.shard.describe_group(group_id, api_version)

    def events(self, group_id: str = "g") -> list[str]:
        return [event.text for event in self.shard.group_events(group_id)]

    def offset(self, topic: str = "t", partition: int = 0, group_id: str = "g") -> int:
        """The committed offset as a fetch without `require_stable` sees it; -1 for none."""
        return self.fetch(topic, partition, group_id)[0]

    def fetch(self, topic: str = "t", partition: int = 0, group_id: str = "g") -> tuple[int, int]:
        """Committed offset and error code of a fetch without `require_stable`."""
        response = self.shard.fetch_offsets(fetch_request(group_id, topic, partition))
        found = response.topics[0].partitions[0]
        return found.committed_offset, found.error_code

    def fetch_stable(self, topic: str = "t", partition: int = 0, group_id: str = "g") -> tuple[int, int]:
        """Committed offset and error code of a fetch with `require_stable`."""
        response = self.call(FetchStableOffsets(fetch_request(group_id, topic, partition)))
        found = response.topics[0].partitions[0]
        return found.committed_offset, found.error_code

    # --- stories ------------------------------------------------------------------------------

    def stable(self, *names: str, group_id: str = "g", **fields: Any) -> list[str]:
        """Bring a group of so many dynamic members to Stable; returns their ids, the leader first."""
        member_ids = [self.call(join(group_id, **fields), 9, name).member_id for name in names]
        for member_id in member_ids:
            self.ask(join(group_id, member_id, **fields), 9)
        self.rejoin_all(group_id, **fields)
        self.sync_all(group_id)
        group = self.group(group_id)
        return sorted(group.members, key=lambda member_id: member_id != group.leader_id)

    def rejoin_all(self, group_id: str = "g", **fields: Any) -> None:
        """All members that do not wait in the join phase join again, until it is over."""
        group = self.group(group_id)
        if group.initial_delay is not None:
            self.pass_time(group.initial_delay.delay_ms)
        for member_id in list(group.members):
            present = self.group(group_id)
            member = present.members[member_id]
            if present.state is ClassicGroupState.PREPARING_REBALANCE and member.join_ticket is None:
                self.ask(join(group_id, member_id, **fields), 9)

    def sync_all(self, group_id: str = "g") -> None:
        """All members ask for their assignment; the leader gives each its own id."""
        group = self.group(group_id)
        assert group.leader_id is not None
        everybody = list(group.members)
        followers = [member_id for member_id in everybody if member_id != group.leader_id]
        assignments = {member_id: member_id.encode() for member_id in everybody}
        tickets = [self.ask(sync(group_id, each, group.generation_id), 5) for each in followers]
        tickets.append(self.ask(sync(group_id, group.leader_id, group.generation_id, assignments), 5))
        assert all(self.replies[ticket].error_code == 0 for ticket in tickets)


def replayed(log: list[Logged], settings: GroupSettings | None = None) -> GroupShard:
    """A machine that has read this log, as a node does that takes over."""
    shard = GroupShard(settings or GroupSettings())
    replay_log(shard, log)
    return shard


def replay_log(shard: GroupShard, log: list[Logged], start: int = 0) -> None:
    """Have the machine read the log from a place on."""
    for offset, entry in enumerate(log[start:], start):
        if entry.is_commit is not None:
            shard.replay_marker(offset, entry.producer_id, 0, entry.is_commit)
            continue
        record = CODEC.decode(entry.key, entry.value)
        if record is None:
            continue
        if entry.producer_id == NO_PRODUCER_ID:
            shard.replay(record, offset)
        else:
            shard.replay_transactional(record, offset, entry.producer_id, 0)
    shard.committed(len(log))


def check_invariants(world: World) -> None:
    """What holds of every group after every step."""
    waiting = world._asked - set(world.replies)
    held: list[int] = []
    for group in world.shard._groups:
        if isinstance(group, ConsumerGroup):
            check_consumer_group(group)
            continue
        assert isinstance(group, ClassicGroup)
        check_group(group)
        for member in group.members.values():
            held += [ticket for ticket in (member.join_ticket, member.sync_ticket) if ticket is not None]
    assert len(held) == len(set(held)), "NoTicketHeldTwice"
    assert set(held) <= waiting, "AnsweredTicketsAreForgotten"
    # The ticket of the request that is being decided may be answered by what is due right after.
    assert waiting <= set(held), f"NoRequestIsLost: {waiting - set(held)}"


def check_group(group: ClassicGroup) -> None:
    """What holds of one group."""
    members = group.members
    assert set(group.session_deadlines) <= set(members), "SessionsAreOfMembers"
    assert group.pending_syncs <= set(members), "PendingSyncsAreOfMembers"
    assert not set(group.pending_joins) & set(members), "PendingIdsAreNoMembers"
    assert (group.leader_id in members) if members else group.leader_id is None, "TheLeaderIsAMember"
    static = {m.group_instance_id: m.member_id for m in members.values() if m.group_instance_id is not None}
    assert group.static_members == static, "StaticMembersAreMapped"
    counts: dict[str, int] = {}
    for member in members.values():
        for name, _ in member.protocols:
            counts[name] = counts.get(name, 0) + 1
    assert group.protocol_counts == counts, "ProtocolsAreCounted"
    assert (group.state is not ClassicGroupState.EMPTY) or not members, "EmptyHasNoMembers"
    if group.state is ClassicGroupState.STABLE:
        assert all(m.join_ticket is None and m.sync_ticket is None for m in members.values()), "NobodyWaitsWhenStable"
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        assert group.join_deadline_ms is not None, "TheJoinPhaseEnds"
        assert all(m.sync_ticket is None for m in members.values()), "NobodySyncsWhileJoining"
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        assert group.sync_deadline_ms is not None, "TheSyncPhaseEnds"
        assert all(m.join_ticket is None for m in members.values()), "NobodyJoinsWhileSyncing"


# --- requests ---------------------------------------------------------------------------------


def join(group_id: str = "g", member_id: str = "", **fields: Any) -> JoinGroupRequest:
    """A JoinGroup; `protocols` is a dict of name to metadata, or a tuple of names."""
    protocols = fields.pop("protocols", ("range",))
    if not isinstance(protocols, dict):
        protocols = dict.fromkeys(protocols, subscription("t"))
    values = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", **fields}
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()],
        **values,
    )


def sync(
    group_id: str, member_id: str, generation_id: int, assignments: dict[str, bytes] | None = None, **fields: Any
) -> SyncGroupRequest:
    """A SyncGroup; only the leader gives assignments."""
    return SyncGroupRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id=generation_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=each, assignment=assignment)
            for each, assignment in (assignments or {}).items()
        ],
        **fields,
    )


def heartbeat(group_id: str, member_id: str, generation_id: int, instance_id: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group_id, member_id=member_id, generation_id=generation_id, group_instance_id=instance_id
    )


def leave(group_id: str, *members: str | tuple[str, str | None]) -> LeaveGroupRequest:
    """A LeaveGroup of member ids, or of (member id, instance id)."""
    pairs = [(each, None) if isinstance(each, str) else each for each in members]
    return LeaveGroupRequest(
        group_id=group_id,
        members=[MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in pairs],
    )


def commit(
    group_id: str = "g",
    offsets: dict[tuple[str, int], int] | None = None,
    *,
    member_id: str = "",
    generation_id: int = -1,
    instance_id: str | None = None,
    metadata: str | None = "",
    retention_time_ms: int = -1,
    topic_id: bytes = bytes(16),
) -> OffsetCommitRequest:
    """An OffsetCommit of {(topic, partition): offset}."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, partition), offset in (offsets or {("t", 0): 1}).items():
        wanted = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[]))
        wanted.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id_or_member_epoch=generation_id,
        group_instance_id=instance_id,
        retention_time_ms=retention_time_ms,
        topics=list(topics.values()),
    )


def commit_in_transaction(
    producer_id: int, offset: int, *, group_id: str = "g", topic: str = "t", partition: int = 0, **fields: Any
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=""
                    )
                ],
            )
        ],
        **fields,
    )


def fetch_request(group_id: str, topic: str, partition: int) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        group_id=group_id, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    )
