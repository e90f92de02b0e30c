"""A random sequence of group requests, played to both brokers: classic groups, consumer groups, their offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, multiple, precondition, rule

from tests.parity.live import group_requests as drawn
from tests.parity.live.group_requests import mostly, versions
from tests.parity.live.machine import ADMIN, Machine
from tests.parity.live.twins import CLOSED, Difference
from tests.parity.live.values import Ref
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.end_txn import EndTxnRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

CONNECTIONS = ("one", "two", "three", "four", "five")
ASSIGNED = ("partitions", "assignment", "topic_id", "topic_name")
EXPRESSION_S = 0.06
"""Kafka resolves an expression in another thread, within this time."""


@dataclass(eq=False, slots=True)
class ClassicMember:
    """A member id that both brokers gave, and what the last answers said of it."""

    ref: str
    group: str
    generation: int = -1
    instance: str | None = None
    protocol: str | None = "range"
    is_leader: bool = False


@dataclass(slots=True)
class ConsumerMember:
    """What a consumer knows of itself: its epoch, and what it was told to own."""

    epoch: int = 0
    owned: Any = None


class GroupMachine(Machine):
    """The rules of groups. Sessions and rebalances are too long for any timer to fire within a sequence."""

    members: Bundle[Any] = Bundle("members")

    def __init__(self) -> None:
        super().__init__()
        self.kept = 0
        self.classic_groups: set[str] = set()
        self.classic: list[ClassicMember] = []
        self.consumers: dict[tuple[str, str], ConsumerMember] = {}

    # --- what the rules share -----------------------------------------------------------------

    def group_id(self, name: str) -> str:
        return self.prefix + name if name else ""

    def topic(self, name: str) -> str:
        return self.stage.prefix + name if name else ""

    def free(self) -> str | None:
        """A connection on which nothing waits."""
        return next((name for name in CONNECTIONS if name not in self.twins.waiting), None)

    def end(self, fault: Difference) -> None:
        """Which members a target gives which partitions depends on ids that each broker draws, if there are any."""
        asked, _, _sequence = str(fault).partition("--- the sequence")
        is_drawn = any(f"player.name('{group}')" in asked for group in self.classic_groups)
        if is_drawn and fault.places and all(place.endswith(ASSIGNED) for place in fault.places):
            self.is_over = True
            return
        super().end(fault)

    def blocking(self, request: Any, version: int, **how: Any) -> Any:
        """A step whose answer may have to wait for other members."""
        connection = self.free()
        if connection is None or self.is_waiting(request.member_id):
            return None
        return self.ask(connection, request, version, barrier=DescribeGroupsRequest(groups=[request.group_id]), **how)

    def is_waiting(self, member_id: Any) -> bool:
        """Whether the member has a request that waits: Kafka never answers the first of two."""
        values = self.twins.sides[0].values
        known = [each.request for each in self.twins.waiting.values()]
        waiting = [request.member_id for request in known if isinstance(request, JoinGroupRequest | SyncGroupRequest)]
        same = [values[each.name] for each in waiting if isinstance(each, Ref)]
        return isinstance(member_id, Ref) and values[member_id.name] in same

    def name_of(self, group: str) -> str:
        self.kept += 1
        self.classic_groups.add(group)
        return f"{'mnopq'[len(group) % 5]}{self.kept}"

    # --- classic groups -----------------------------------------------------------------------

    def joined(self, member: ClassicMember, answer: Any) -> None:
        """Take over what a JoinGroup answered."""
        if answer.error_code == 0:
            member.generation = answer.generation_id
            member.protocol = answer.protocol_name
            member.is_leader = answer.leader == answer.member_id
        if member not in self.classic and answer.member_id:
            self.classic.append(member)

    def join(self, member: ClassicMember, request: JoinGroupRequest, version: int) -> None:
        self.blocking(
            request,
            version,
            captures={member.ref: lambda answer: answer.member_id},
            done=lambda answer: self.joined(member, answer),
        )

    @rule(
        target=members,
        data=st.data(),
        version=versions(0, 9),
        group=drawn.GROUPS,
        instance=drawn.INSTANCES,
        names=drawn.PROTOCOL_NAMES,
        protocol_type=drawn.PROTOCOL_TYPES,
        session_timeout_ms=drawn.SESSION_TIMEOUTS_MS,
    )
    def join_anew(
        self,
        data: Any,
        version: int,
        group: str,
        instance: str | None,
        names: list[str],
        protocol_type: str,
        session_timeout_ms: int,
    ) -> Any:
        """A JoinGroup without a member id, and the second one that MEMBER_ID_REQUIRED asks for."""
        metadata = data.draw(drawn.metadata(self.stage.prefix))
        member = ClassicMember(self.name_of(group), group, instance=instance if version >= 5 else None)
        request = JoinGroupRequest(
            group_id=self.group_id(group),
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names],
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=drawn.LONG_MS if version else -1,
            group_instance_id=member.instance,
        )
        self.join(member, request, version)
        if member in self.classic and member.generation == -1 and data.draw(st.integers(0, 9)):
            request.member_id = Ref(member.ref)
            self.join(member, request, version)
        return member if member in self.classic else multiple()

    @rule(
        data=st.data(),
        version=versions(0, 9),
        member=members,
        names=drawn.PROTOCOL_NAMES,
        twist=mostly(st.just(""), "instance", "no instance", "group", "type", "unknown", weight=11),
    )
    def join_again(self, data: Any, version: int, member: ClassicMember, names: list[str], twist: str) -> None:
        """A JoinGroup with a member id that was given out."""
        instance = {"instance": "i1", "no instance": None}.get(twist, member.instance)
        metadata = data.draw(drawn.metadata(self.stage.prefix))
        request = JoinGroupRequest(
            group_id=self.group_id("g2" if twist == "group" else member.group),
            member_id="unknown" if twist == "unknown" else Ref(member.ref),
            protocol_type="connect" if twist == "type" else "consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names],
            session_timeout_ms=drawn.LONG_MS,
            rebalance_timeout_ms=drawn.LONG_MS if version else -1,
            group_instance_id=instance if version >= 5 else None,
            reason="why" if version >= 8 and twist == "type" else None,
        )
        again = ClassicMember(self.name_of(member.group), member.group, instance=request.group_instance_id)

        def done(answer: Any) -> None:
            if answer.error_code == 0:
                member.ref = again.ref
                self.joined(member, answer)

        self.blocking(request, version, captures={again.ref: lambda answer: answer.member_id}, done=done)

    def sync_request(self, member: ClassicMember, version: int, shift: int = 0) -> SyncGroupRequest:
        assignments = []
        if member.is_leader:
            parts = [drawn.assignment(self.stage.prefix, "t2", [0]), drawn.assignment(self.stage.prefix, "t1", [])]
            others = [each for each in self.classic if each.group == member.group]
            assignments = [
                SyncGroupRequestAssignment(member_id=Ref(each.ref), assignment=parts[index % 2])
                for index, each in enumerate(others)
            ]
        return SyncGroupRequest(
            group_id=self.group_id(member.group),
            member_id=Ref(member.ref),
            generation_id=member.generation + shift,
            group_instance_id=member.instance if version >= 3 else None,
            protocol_type="consumer" if version >= 5 else None,
            protocol_name=member.protocol if version >= 5 else None,
            assignments=assignments,
        )

    @rule(
        version=versions(0, 5),
        member=members,
        shift=drawn.EPOCH_SHIFTS,
        twist=mostly(st.just(""), "type", "name", "group", "none", "garbage", "instance", weight=9),
    )
    def sync(self, version: int, member: ClassicMember, shift: int, twist: str) -> None:
        """A SyncGroup; the leader's gives each known member a part."""
        request = self.sync_request(member, version, shift)
        if twist in ("type", "name", "none") and version >= 5:
            request.protocol_type = {"type": "connect", "none": None}.get(twist, "consumer")
            request.protocol_name = {"name": "other", "none": None}.get(twist, member.protocol)
        if twist == "group":
            request.group_id = self.group_id("g2")
        if twist == "instance" and version >= 3:
            request.group_instance_id = "i1"
        if twist == "garbage":
            request.assignments = [SyncGroupRequestAssignment(member_id="x", assignment=b"\x00")]
        self.blocking(request, version)

    @rule(group=st.sampled_from(["g1", "g2"]), version=versions(0, 9))
    def rebalance(self, group: str, version: int) -> None:
        """Every member of a group joins again and syncs, the leader last: the group becomes stable."""
        present = [member for member in self.classic if member.group == group]
        for member in present[: len(CONNECTIONS)]:
            protocols = [
                JoinGroupRequestProtocol(name=name, metadata=drawn.subscription(self.stage.prefix, ["t1", "t2"], 1))
                for name in ("range", "sticky")
            ]
            request = JoinGroupRequest(
                group_id=self.group_id(group),
                member_id=Ref(member.ref),
                protocol_type="consumer",
                protocols=protocols,
                session_timeout_ms=drawn.LONG_MS,
                rebalance_timeout_ms=drawn.LONG_MS if version else -1,
                group_instance_id=member.instance if version >= 5 else None,
            )
            self.blocking(request, version, done=lambda answer, member=member: self.joined(member, answer))
        for member in sorted(present, key=lambda member: member.is_leader):
            self.blocking(self.sync_request(member, 5), 5)

    @rule(version=versions(0, 4), member=members, shift=drawn.EPOCH_SHIFTS, instance=drawn.INSTANCES)
    def heartbeat(self, version: int, member: ClassicMember, shift: int, instance: str | None) -> None:
        """A Heartbeat of the known generation, or of another."""
        request = HeartbeatRequest(
            group_id=self.group_id(member.group),
            member_id=Ref(member.ref),
            generation_id=member.generation + shift,
            group_instance_id=(instance or member.instance) if version >= 3 else None,
        )
        self.ask(ADMIN, request, version)

    @rule(
        version=versions(0, 5),
        group=drawn.GROUPS,
        gone=st.lists(members, max_size=3),
        instances=st.lists(drawn.INSTANCES, min_size=3, max_size=3),
        twist=mostly(st.just(""), "by instance", "unknown", "none", weight=7),
    )
    def leave(
        self, version: int, group: str, gone: list[ClassicMember], instances: list[str | None], twist: str
    ) -> None:
        """LeaveGroup of one or several members, by id or by instance."""
        if gone and twist != "none":
            group = gone[0].group
        identities = [
            MemberIdentity(
                member_id="" if twist == "by instance" else "unknown" if twist == "unknown" else Ref(member.ref),
                group_instance_id=instance or member.instance,
                reason="over" if version >= 5 and instance else None,
            )
            for member, instance in zip(gone, instances, strict=False)
        ]
        request = LeaveGroupRequest(group_id=self.group_id(group))
        if version < 3:
            request.member_id = identities[0].member_id if identities else ""
        else:
            request.members = identities
        answer = self.ask(ADMIN, request, version)
        if answer not in (None, CLOSED) and answer.error_code == 0 and version < 3:
            self.classic = [member for member in self.classic if member not in gone]
        elif answer not in (None, CLOSED) and answer.error_code == 0 and len(answer.members) == len(gone):
            left = [member for member, one in zip(gone, answer.members, strict=True) if one.error_code == 0]
            self.classic = [member for member in self.classic if member not in left]

    # --- consumer groups ----------------------------------------------------------------------

    @rule(
        data=st.data(),
        version=mostly(st.just(1), 0),
        group=drawn.GROUPS,
        name=drawn.CONSUMER_MEMBERS,
        instance=mostly(st.sampled_from([None, None, None, "i1"]), "i2", "", "bad id", weight=15),
    )
    def enter(self, data: Any, version: int, group: str, name: str, instance: str | None) -> None:
        """A first ConsumerGroupHeartbeat, with everything that has to be there, or nearly."""
        names = data.draw(mostly(st.sampled_from([["t1"], ["t2"], ["t1", "t2"]]), [], None, ["none"], ["", "t1"]))
        regex = data.draw(mostly(st.none(), "t[12]", "", "[", "none.*", weight=9)) if version else None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id(group),
            member_id=name,
            member_epoch=0,
            instance_id=instance,
            rack_id=data.draw(mostly(st.none(), "r1", "", weight=11)),
            rebalance_timeout_ms=data.draw(mostly(st.just(drawn.LONG_MS), -1, weight=15)),
            subscribed_topic_names=None if names is None else [self.topic(each) for each in names],
            subscribed_topic_regex=self.stage.prefix + regex if regex and regex != "[" else regex,
            server_assignor=data.draw(mostly(st.none(), "range", "uniform", "sticky", "", weight=9)),
            topic_partitions=data.draw(mostly(st.just([]), None, weight=15)),
        )
        self.beat(group, name, request, version)

    def beat(self, group: str, name: str, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
        """A ConsumerGroupHeartbeat; keeps what the answer says."""
        captures = {}
        if version == 0 and not name.strip():
            name = f"c{self.kept}"
            self.kept += 1
            captures = {name: lambda answer: answer.member_id}
        answer = self.ask(ADMIN, request, version, captures=captures)
        if answer in (None, CLOSED) or answer.error_code:
            return
        if request.subscribed_topic_regex:
            self.resolve_expressions(self.group_id(group))
        if answer.member_epoch < 0:
            self.consumers.pop((group, name), None)
            return
        member = self.consumers.setdefault((group, name), ConsumerMember())
        member.epoch = answer.member_epoch
        if answer.assignment is not None:
            names = {value: key for key, value in self.stage.topic_ids[0].items()}
            member.owned = [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=Ref(names[each.topic_id]), partitions=list(each.partitions)
                )
                for each in answer.assignment.topic_partitions
                if each.topic_id in names
            ]

    def resolve_expressions(self, group: str) -> None:
        """Wait until both brokers have found the topics of a new expression, which they do apart from requests."""
        if self.is_over:
            return
        try:
            request = ConsumerGroupDescribeRequest(group_ids=[group])
            self.twins.ask_until_equal(ADMIN, request, 1, EXPRESSION_S)
        except Difference as fault:
            self.end(fault)

    def member_ref(self, name: str) -> Any:
        return Ref(name) if name.startswith("c") else name

    @precondition(lambda self: self.consumers)
    @rule(
        data=st.data(),
        version=mostly(st.just(1), 0),
        epoch=drawn.EPOCHS,
        shift=drawn.EPOCH_SHIFTS,
        instance=mostly(st.none(), "i1", "i2", "", "bad id", weight=11),
        owned=mostly(st.sampled_from(["same", "same", None]), "nothing", "foreign", "unknown", weight=7),
    )
    def beat_again(
        self, data: Any, version: int, epoch: int | None, shift: int, instance: str | None, owned: str | None
    ) -> None:
        """A later ConsumerGroupHeartbeat: what it owns, a new subscription, a wrong epoch, a leave."""
        group, name = data.draw(st.sampled_from(sorted(self.consumers)))
        member = self.consumers[group, name]
        names = data.draw(mostly(st.none(), ["t1"], ["t2", "t1"], [], ["none"], weight=3))
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id(group),
            member_id=self.member_ref(name),
            member_epoch=member.epoch + shift if epoch is None else epoch,
            instance_id=instance,
            rebalance_timeout_ms=data.draw(mostly(st.just(-1), drawn.LONG_MS, weight=3)),
            subscribed_topic_names=None if names is None else [self.topic(each) for each in names],
            server_assignor=data.draw(mostly(st.none(), "range", "uniform", "sticky", weight=9)),
        )
        request.topic_partitions = {
            "same": member.owned,
            "nothing": [],
            "foreign": [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=Ref("T3"), partitions=[0, 1])],
            "unknown": [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=b"\x01" * 16, partitions=[0])],
        }.get(owned or "")
        self.beat(group, name, request, version)

    @precondition(lambda self: self.consumers)
    @rule(group=st.sampled_from(["g1", "g2"]))
    def reconcile(self, group: str) -> None:
        """Every consumer of a group beats three times with what it owns: the group becomes stable."""
        for _ in range(3):
            for each, name in sorted(self.consumers):
                member = self.consumers.get((group, name))
                if each == group and member is not None:
                    request = ConsumerGroupHeartbeatRequest(
                        group_id=self.group_id(group),
                        member_id=self.member_ref(name),
                        member_epoch=member.epoch,
                        topic_partitions=member.owned or [],
                    )
                    self.beat(group, name, request, 1)

    # --- offsets ------------------------------------------------------------------------------

    def someone(self, data: Any) -> tuple[str, Any, int, str | None]:
        """Who commits: group, member id, generation or epoch, instance."""
        whos: list[tuple[str, Any, int, str | None]] = [("g1", "", -1, None), ("g1", "unknown", 1, None)]
        whos += [(each.group, Ref(each.ref), each.generation, each.instance) for each in self.classic]
        whos += [(key[0], self.member_ref(key[1]), each.epoch, None) for key, each in sorted(self.consumers.items())]
        who: tuple[str, Any, int, str | None] = data.draw(st.sampled_from(whos))
        return who

    @rule(
        data=st.data(),
        version=versions(2, 10),
        shift=drawn.EPOCH_SHIFTS,
        group=mostly(st.none(), "", "g2", "nobody", weight=11),
        instance=mostly(st.none(), "i1", weight=11),
    )
    def commit(self, data: Any, version: int, shift: int, group: str | None, instance: str | None) -> None:
        """An OffsetCommit of a member or of nobody."""
        own_group, member, epoch, own_instance = self.someone(data)
        request = OffsetCommitRequest(
            group_id=self.group_id(own_group if group is None else group),
            member_id=member,
            generation_id_or_member_epoch=epoch + shift,
            group_instance_id=(instance or own_instance) if version >= 7 else None,
            retention_time_ms=data.draw(mostly(st.just(-1), 1_000_000, 0)) if version < 5 else -1,
        )
        for _ in range(data.draw(st.integers(0, 3))):
            partitions = [
                OffsetCommitRequestPartition(
                    partition_index=data.draw(drawn.PARTITIONS),
                    committed_offset=data.draw(drawn.OFFSETS),
                    committed_leader_epoch=data.draw(mostly(st.just(-1), 0, 7, -2)) if version >= 6 else -1,
                    committed_metadata=data.draw(drawn.METADATA),
                )
                for _ in range(data.draw(st.integers(0, 3)))
            ]
            topic = OffsetCommitRequestTopic(partitions=partitions)
            if version >= 10:
                topic.topic_id = data.draw(drawn.TOPIC_IDS)
            else:
                topic.name = self.topic(data.draw(drawn.TOPIC_NAMES))
            request.topics.append(topic)
        self.ask(ADMIN, request, version)

    @rule(data=st.data(), version=versions(1, 7), group=drawn.GROUPS, stable=st.booleans())
    def fetch_old(self, data: Any, version: int, group: str, stable: bool) -> None:
        """An OffsetFetch of one group."""
        topics = None if version >= 2 and data.draw(st.booleans()) else self.fetched(data, OffsetFetchRequestTopic)
        request = OffsetFetchRequest(
            group_id=self.group_id(group), topics=topics, require_stable=stable and version >= 7
        )
        self.ask(ADMIN, request, version)

    def fetched(self, data: Any, kind: Any) -> list[Any]:
        names = data.draw(st.lists(drawn.TOPIC_NAMES, max_size=3))
        indexes = st.lists(drawn.PARTITIONS, max_size=3)
        return [kind(name=self.topic(name), partition_indexes=data.draw(indexes)) for name in names]

    @rule(data=st.data(), version=versions(8, 10), stable=st.booleans())
    def fetch(self, data: Any, version: int, stable: bool) -> None:
        """An OffsetFetch of several groups, as members or not."""
        request = OffsetFetchRequest(require_stable=stable)
        for _ in range(data.draw(st.integers(0, 3))):
            own_group, member, epoch, _instance = self.someone(data)
            group = OffsetFetchRequestGroup(group_id=self.group_id(own_group), topics=None)
            if version >= 9 and member:
                group.member_id = member
                group.member_epoch = epoch + data.draw(drawn.EPOCH_SHIFTS)
            if data.draw(st.booleans()):
                group.topics = self.fetched(data, OffsetFetchRequestTopics)
                for topic in group.topics if version >= 10 else []:
                    topic.name, topic.topic_id = "", data.draw(drawn.TOPIC_IDS)
            request.groups.append(group)
        self.ask(ADMIN, request, version)

    @rule(data=st.data(), group=drawn.GROUPS)
    def forget(self, data: Any, group: str) -> None:
        """OffsetDelete."""
        request = OffsetDeleteRequest(group_id=self.group_id(group))
        for name in data.draw(st.lists(drawn.TOPIC_NAMES, max_size=3)):
            indexes = data.draw(st.lists(drawn.PARTITIONS, max_size=3))
            partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            request.topics.append(OffsetDeleteRequestTopic(name=self.topic(name), partitions=partitions))
        self.ask(ADMIN, request, 0)

    @rule(
        data=st.data(),
        version=versions(0, 6),
        shift=drawn.EPOCH_SHIFTS,
        ends=st.sampled_from([None, True, False]),
        added=mostly(st.just(True), False, weight=5),
    )
    def commit_in_transaction(self, data: Any, version: int, shift: int, ends: bool | None, added: bool) -> None:
        """A producer commits a member's offsets in its transaction, which may end at once or stay open."""
        transactional_id = self.prefix + "x"
        if "producer" not in self.twins.sides[0].values:
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=drawn.LONG_MS)
            self.settled("x", request, 4, captures={"producer": lambda found: found.producer_id})
        group, member, epoch, instance = self.someone(data)
        identity: dict[str, Any] = {"transactional_id": transactional_id, "producer_id": Ref("producer")}
        identity["producer_epoch"] = 0
        if version < 5 and added:
            self.settled("x", AddOffsetsToTxnRequest(group_id=self.group_id(group), **identity), 3)
        request = TxnOffsetCommitRequest(group_id=self.group_id(group), **identity)
        if version >= 3:
            request.member_id, request.generation_id_or_member_epoch = member, epoch + shift
            request.group_instance_id = instance
        parts = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=data.draw(drawn.OFFSETS))]
        topic = TxnOffsetCommitRequestTopic(partitions=parts)
        if version >= 6:
            topic.topic_id = data.draw(drawn.TOPIC_IDS)
        else:
            topic.name = self.topic(data.draw(drawn.TOPIC_NAMES))
        request.topics = [topic]
        self.settled("x", request, version)
        if ends is not None:
            self.settled("x", EndTxnRequest(committed=ends, **identity), 4)

    # --- groups as a whole --------------------------------------------------------------------

    @rule(version=versions(0, 6), names=st.lists(drawn.GROUPS, max_size=3), operations=st.booleans())
    def describe_groups(self, version: int, names: list[str], operations: bool) -> None:
        """DescribeGroups."""
        request = DescribeGroupsRequest(
            groups=[self.group_id(name) for name in names],
            include_authorized_operations=operations and version >= 3,
        )
        self.ask(ADMIN, request, version)

    @rule(version=versions(0, 1), names=st.lists(drawn.GROUPS, max_size=3), operations=st.booleans())
    def describe_consumer_groups(self, version: int, names: list[str], operations: bool) -> None:
        """ConsumerGroupDescribe."""
        request = ConsumerGroupDescribeRequest(
            group_ids=[self.group_id(name) for name in names], include_authorized_operations=operations
        )
        self.ask(ADMIN, request, version)

    @rule(
        version=versions(0, 5),
        states=st.lists(st.sampled_from(drawn.STATES), max_size=2),
        types=st.lists(st.sampled_from(drawn.TYPES), max_size=2),
    )
    def list_groups(self, version: int, states: list[str], types: list[str]) -> None:
        """ListGroups, of which this sequence's own groups are compared."""
        request = ListGroupsRequest(
            states_filter=states if version >= 4 else [], types_filter=types if version >= 5 else []
        )

        def own(answer: Any, prefix: str) -> Any:
            answer.groups = [each for each in answer.groups if each.group_id.startswith(prefix)]
            return answer

        self.ask(ADMIN, request, version, shorten=own)

    @rule(version=versions(0, 2), names=st.lists(drawn.GROUPS, max_size=3))
    def delete_groups(self, version: int, names: list[str]) -> None:
        """DeleteGroups."""
        self.ask(ADMIN, DeleteGroupsRequest(groups_names=[self.group_id(name) for name in names]), version)

    @rule(version=versions(0, 6), key_type=mostly(st.just(0), 1, 3, -1), names=st.lists(drawn.GROUPS, max_size=3))
    def find_coordinator(self, version: int, key_type: int, names: list[str]) -> None:
        """FindCoordinator of each key type but share groups', which are not served."""
        keys = [self.group_id(name) for name in names]
        request = FindCoordinatorRequest(key_type=key_type if version else 0)
        if version >= 4:
            request.coordinator_keys = keys
        else:
            request.key = keys[0] if keys else ""
        self.ask(ADMIN, request, version)

    def teardown(self) -> None:
        """Compare what is left of the groups."""
        try:
            names = [self.group_id(name) for name in ("g1", "g2", "nobody")]
            self.ask(ADMIN, DescribeGroupsRequest(groups=names), 6)
            self.ask(ADMIN, ConsumerGroupDescribeRequest(group_ids=names), 1)
            groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
            self.ask(ADMIN, OffsetFetchRequest(groups=groups, require_stable=True), 9)
        finally:
            super().teardown()
