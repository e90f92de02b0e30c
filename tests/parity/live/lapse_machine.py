"""Groups whose members fall silent: each rule lets one kind of timer fire on both brokers, and compares what is left.

Every timer runs in a group of its own for one rule, so that nothing else is asked while it may fire.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.parity.live import group_requests as drawn
from tests.parity.live.group_machine import GroupMachine
from tests.parity.live.group_requests import versions
from tests.parity.live.machine import ADMIN
from tests.parity.live.values import Ref
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SHORT_MS = 700
GROUP_RESOURCE = 32
FIRED_S = 8.0


class LapseMachine(GroupMachine):
    """The rules of groups, and timers."""

    share = 10

    def __init__(self) -> None:
        super().__init__()
        self.lapses = 0

    def new_group(self) -> str:
        self.lapses += 1
        return f"{self.prefix}lapse{self.lapses}"

    def joining(self, group: str, version: int, instance: str | None, **timeouts: int) -> JoinGroupRequest:
        metadata = drawn.subscription(self.stage.prefix, ["t1"], 1)
        return JoinGroupRequest(
            group_id=group,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
            group_instance_id=instance if version >= 5 else None,
            **{"session_timeout_ms": drawn.LONG_MS, "rebalance_timeout_ms": drawn.LONG_MS, **timeouts},
        )

    def enters(self, connection: str, request: JoinGroupRequest, version: int, name: str) -> Any:
        """Join, with the id that a first JoinGroup may have to ask for."""

        barrier = DescribeGroupsRequest(groups=[request.group_id])
        captures = {name: lambda answer: answer.member_id}
        answer = self.ask(connection, request, version, captures=captures, barrier=barrier)
        if answer is not None and answer.error_code == 79:
            request.member_id = Ref(name)
            answer = self.ask(connection, request, version, captures=captures, barrier=barrier)
        return answer

    def synced(self, group: str, name: str, generation: int, instance: str | None) -> None:
        part = SyncGroupRequestAssignment(
            member_id=Ref(name), assignment=drawn.assignment(self.stage.prefix, "t1", [0])
        )
        request = SyncGroupRequest(
            group_id=group,
            member_id=Ref(name),
            generation_id=generation,
            group_instance_id=instance,
            assignments=[part],
        )
        self.ask(ADMIN, request, 3)

    def wait_until_empty(self, group: str) -> None:
        """Wait until each broker has removed every member, and compare the descriptions."""
        request = DescribeGroupsRequest(groups=[group])
        if not self.is_over:
            self.twins.each_until(request, 6, lambda found: not found.groups[0].members)
        self.ask(ADMIN, request, 6)

    @rule(
        version=versions(3, 9), instance=st.sampled_from([None, None, "i1"]), syncs=st.booleans(), commits=st.booleans()
    )
    def session_ends(self, version: int, instance: str | None, syncs: bool, commits: bool) -> None:
        """A classic member that has joined, and may have synced and committed, is not heard of again."""
        group, name = self.new_group(), f"lapsed{self.lapses}"
        request = self.joining(group, version, instance, session_timeout_ms=SHORT_MS)
        answer = self.enters("one-lapse", request, version, name)
        if answer is None:
            return
        instance = request.group_instance_id
        if syncs:
            self.synced(group, name, answer.generation_id, instance)
        if commits:
            part = OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
            topic = OffsetCommitRequestTopic(name=self.topic("t1"), partitions=[part])
            commit = OffsetCommitRequest(group_id=group, topics=[topic], member_id=Ref(name))
            commit.generation_id_or_member_epoch, commit.group_instance_id = answer.generation_id, instance
            self.ask(ADMIN, commit, 9)
        self.wait_until_empty(group)
        self.ask("one-lapse", self.joining(group, version, instance), version)

    @rule(version=versions(5, 9), statics=st.tuples(st.booleans(), st.booleans()), syncs=st.booleans())
    def join_phase_ends(self, version: int, statics: tuple[bool, bool], syncs: bool) -> None:
        """One member does not join again in time: another that waited goes on without it."""
        group, first, second = self.new_group(), f"first{self.lapses}", f"second{self.lapses}"
        instances = ["i1" if statics[0] else None, "i2" if statics[1] else None]
        short = {"rebalance_timeout_ms": SHORT_MS}
        answer = self.enters("one-lapse", self.joining(group, version, instances[0], **short), version, first)
        if answer is None:
            return
        if syncs:
            self.synced(group, first, answer.generation_id, instances[0])
        self.enters("two-lapse", self.joining(group, version, instances[1], **short), version, second)
        if not self.is_over:
            self.twins.wait_for("two-lapse", FIRED_S)
        self.ask(ADMIN, DescribeGroupsRequest(groups=[group]), 6)

    @rule(version=versions(5, 9), instance=st.sampled_from([None, "i1"]))
    def sync_phase_ends(self, version: int, instance: str | None) -> None:
        """A member has joined and does not sync: it is removed when the rebalance should be over."""
        group, name = self.new_group(), f"silent{self.lapses}"
        request = self.joining(group, version, instance, rebalance_timeout_ms=SHORT_MS)
        if self.enters("one-lapse", request, version, name) is not None:
            self.wait_until_empty(group)

    @rule(version=versions(0, 1), instances=st.lists(st.sampled_from([None, "i1"]), min_size=1, max_size=2))
    def consumer_session_ends(self, version: int, instances: list[str | None]) -> None:
        """Members of a consumer group are not heard of again."""
        group = self.new_group()
        config = AlterableConfig(name="consumer.session.timeout.ms", value=str(SHORT_MS))
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=[config])
        beat = AlterableConfig(name="consumer.heartbeat.interval.ms", value="60")
        resource.configs.append(beat)
        self.ask(ADMIN, IncrementalAlterConfigsRequest(resources=[resource]), 1)
        if self.is_over:
            return
        probe = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id="probe", rebalance_timeout_ms=1_000, subscribed_topic_names=["x"]
        )
        probe.topic_partitions = []
        self.twins.each_until(probe, 1, lambda found: found.heartbeat_interval_ms == 60)
        for index, instance in enumerate(instances):
            request = ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id=f"c{index}",
                instance_id=instance and f"{instance}{index}",
                rebalance_timeout_ms=1_000,
                subscribed_topic_names=[self.topic("t2")],
                topic_partitions=[],
            )
            self.twins.each_until(request, version, lambda found: found.error_code == 0)
        described = ConsumerGroupDescribeRequest(group_ids=[group])
        self.twins.each_until(described, 1, lambda found: found.groups[0].group_state == "Empty")
