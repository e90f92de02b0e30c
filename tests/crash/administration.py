"""Who commits offsets, belongs to a group, and makes and deletes topics while the node is killed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.crash.connection import Connection
from tests.crash.requests import GROUP, Broken, create_topic, find_coordinator, settled
from wire.errors import ErrorCode
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.metadata import MetadataRequest
from wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TOPIC_RESOURCE = 2


@dataclass
class Offsets:
    """The offsets that a group has committed: rising, so that what is there must be the last acknowledged or later."""

    group: str
    acknowledged: int = 0
    sent: int = 0

    async def commit(self, connection: Connection, offset: int, member: str = "", generation: int = -1) -> int:
        """The code of one commit; it counts as sent from now on."""
        self.sent = offset
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="kept")
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            topics=[OffsetCommitRequestTopic(name="idempotent", partitions=[partition])],
        )
        code = int((await connection.call(request, 8)).topics[0].partitions[0].error_code)
        if code == ErrorCode.NONE:
            self.acknowledged = offset
        return code

    async def check(self, connection: Connection) -> None:
        """Raises Broken for an offset that was never sent, or is older than the last acknowledged."""
        if not self.sent:
            return

        async def ask() -> tuple[int, Any]:
            wanted = [OffsetFetchRequestTopic(name="idempotent", partition_indexes=[0])]
            response = await connection.call(OffsetFetchRequest(group_id=self.group, topics=wanted), 7)
            return response.error_code, response.topics[0].partitions[0] if not response.error_code else None

        await find_coordinator(connection, self.group, GROUP)
        found = await settled(ask, f"OffsetFetch of {self.group}")
        offset = max(found.committed_offset, 0)
        if not self.acknowledged <= offset <= self.sent or (offset and found.metadata != "kept"):
            raise Broken(
                f"group {self.group} is at {offset} ({found.metadata!r}); {self.acknowledged} was acknowledged, "
                f"{self.sent} sent"
            )


@dataclass
class Committer:
    """Commits for a group without members."""

    offsets: Offsets = field(default_factory=lambda: Offsets("alone"))

    async def work(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            await find_coordinator(connection, self.offsets.group, GROUP)
            while True:
                offset = self.offsets.sent + 1

                async def ask(offset: int = offset) -> tuple[int, None]:
                    return await self.offsets.commit(connection, offset), None

                await settled(ask, "OffsetCommit")
        finally:
            await connection.close()

    async def check(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            await self.offsets.check(connection)
        finally:
            await connection.close()


@dataclass
class Member:
    """The one member of a group. Once it is in, it stays in over every kill: same id, same generation."""

    group: str = "members"
    offsets: Offsets = field(default_factory=lambda: Offsets("members"))
    member_id: str = ""
    generation: int = -1
    """-1 until the assignment has come."""
    heartbeats: int = 0

    async def work(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            await find_coordinator(connection, self.group, GROUP)
            if self.generation < 0:
                await self._join(connection)
            while True:
                await self._heartbeat(connection)
                offset = self.offsets.sent + 1

                async def ask(offset: int = offset) -> tuple[int, None]:
                    return await self.offsets.commit(connection, offset, self.member_id, self.generation), None

                await settled(ask, "OffsetCommit of a member")
                await asyncio.sleep(0.005)
        finally:
            await connection.close()

    async def _join(self, connection: Connection) -> None:
        async def join() -> tuple[int, Any]:
            request = JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=60_000,
                rebalance_timeout_ms=3_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"any")],
            )
            response = await connection.call(request, 5)
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                return ErrorCode.REBALANCE_IN_PROGRESS, None
            if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""  # An id that was given out, and not written down yet.
                return ErrorCode.REBALANCE_IN_PROGRESS, None
            return response.error_code, response

        joined = await settled(join, "JoinGroup")
        self.member_id = joined.member_id

        async def sync() -> tuple[int, Any]:
            assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
            request = SyncGroupRequest(
                group_id=self.group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[assignment],
            )
            response = await connection.call(request, 3)
            return response.error_code, response

        await settled(sync, "SyncGroup")
        self.generation = joined.generation_id

    async def _heartbeat(self, connection: Connection) -> None:
        async def ask() -> tuple[int, None]:
            request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
            return (await connection.call(request, 4)).error_code, None

        await settled(ask, f"Heartbeat of {self.member_id} in generation {self.generation}")
        self.heartbeats += 1

    async def check(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            await self.offsets.check(connection)
            if self.generation >= 0:
                await self._heartbeat(connection)
        except Broken as broken:
            raise Broken(f"after {self.heartbeats} heartbeats: {broken}") from broken
        finally:
            await connection.close()


@dataclass
class TopicMaker:
    """Makes topics, alters their settings, deletes them. What was acknowledged must be so after the kill."""

    chance: Random
    number: int = 0
    there: dict[str, bytes] = field(default_factory=dict)
    """Topic to id (empty until it was seen)."""
    gone: set[str] = field(default_factory=set)
    uncertain: set[str] = field(default_factory=set)
    """Made or deleted without an answer."""

    async def work(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            while True:
                if len(self.there) < 12 or self.chance.random() < 0.4:
                    await self._make(connection)
                elif self.chance.random() < 0.5:
                    await self._delete(connection, self.chance.choice(sorted(self.there)))
                else:
                    await self._alter(connection, self.chance.choice(sorted(self.there)))
                await asyncio.sleep(0.01)
        finally:
            await connection.close()

    async def _make(self, connection: Connection) -> None:
        self.number += 1
        name = f"made-{self.number}"
        self.uncertain.add(name)
        code = await create_topic(connection, name, self.chance.randint(1, 3))
        if code:
            raise Broken(f"topic {name} was not made: {ErrorCode(code).name}")
        self.uncertain.discard(name)
        self.there[name] = b""

    async def _delete(self, connection: Connection, name: str) -> None:
        del self.there[name]
        self.uncertain.add(name)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000)
        code = (await connection.call(request, 6)).responses[0].error_code
        if code:
            raise Broken(f"topic {name} was not deleted: {ErrorCode(code).name}")
        self.uncertain.discard(name)
        self.gone.add(name)

    async def _alter(self, connection: Connection, name: str) -> None:
        value = str(self.chance.randint(3_600_000, 7_200_000))
        change = AlterableConfig(name="retention.ms", config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=[change])
        code = (await connection.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)).responses[0].error_code
        if code:
            raise Broken(f"retention.ms of {name} was not set: {ErrorCode(code).name}")

    async def check(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            response = await connection.call(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
        finally:
            await connection.close()
        found = {topic.name: topic for topic in response.topics if topic.name.startswith("made-")}
        for name, topic_id in self.there.items():
            if name not in found:
                raise Broken(f"topic {name} was made and is gone")
            if topic_id and found[name].topic_id != topic_id:
                raise Broken(f"topic {name} has another id than before")
            if any(partition.leader_id < 0 for partition in found[name].partitions):
                raise Broken(f"topic {name} has a partition without a leader")
            self.there[name] = found[name].topic_id
        if back := self.gone & found.keys():
            raise Broken(f"topics {sorted(back)} were deleted and are back")
        # What was uncertain is decided now.
        for name in self.uncertain:
            if name in found:
                self.there[name] = found[name].topic_id
            else:
                self.gone.add(name)
        self.uncertain.clear()
