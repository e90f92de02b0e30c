"""Members with aiokafka, each a task of its own."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalStateError
from speaking import Arguments, Handled, listed, one_line, say, watch_turns

POLL_MS = 100
OUTSIDE = (CommitFailedError, IllegalStateError)
"""Why a commit of one is refused that is no longer, or not now, a member; the listener is told."""
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Member(ConsumerRebalanceListener):
    """The listener is called while records are handled: a lock keeps them apart, as the client's own text advises."""

    def __init__(self, arguments: Arguments, name: str, instance: str | None) -> None:
        self.arguments = arguments
        self.name = name
        self.handled = Handled(name)
        self.ending = False
        self.closing = False
        self.lock = asyncio.Lock()
        self.owned: set[int] = set()
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=arguments.address,
            client_id=name,
            group_id=arguments.group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=[ASSIGNORS[arguments.options["assignor"]]],
            session_timeout_ms=arguments.milliseconds("session_ms"),
            heartbeat_interval_ms=arguments.milliseconds("heartbeat_ms"),
            metadata_max_age_ms=1000,
        )
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        try:
            await self.consume()
            say(self.name, "left")
        except Exception as fault:
            say(self.name, "fault", one_line(fault))

    async def consume(self) -> None:
        self.consumer.subscribe([self.arguments.topic], listener=self)
        await self.consumer.start()
        while not self.ending:
            polled = await self.consumer.getmany(timeout_ms=POLL_MS)
            async with self.lock:
                await self.handle(polled)
        async with self.lock:
            # Its stop() tells no listener, and waits for one that is being told.
            await self.give_up()
            self.closing = True
        await self.consumer.stop()

    async def handle(self, polled: dict[TopicPartition, list[Any]]) -> None:
        for partition, records in polled.items():
            # Given up between the poll and now; whoever has it next begins at the commit.
            if partition.partition in self.owned:
                for record in records:
                    self.handled.add(partition.partition, record.offset)
        self.handled.tell()
        due = self.handled.due()
        try:
            await self.commit(due)
        except OUTSIDE:
            self.handled.keep(due)

    async def commit(self, positions: dict[int, int]) -> None:
        if positions:
            await self.consumer.commit(
                {TopicPartition(self.arguments.topic, each): offset for each, offset in positions.items()}
            )

    async def give_up(self) -> None:
        try:
            await self.commit(self.handled.taken(self.owned))
        except OUTSIDE as fault:
            say(self.name, "lost", listed(self.owned), one_line(fault))
        else:
            say(self.name, "revoked", listed(self.owned))
        self.owned = set()

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        async with self.lock:
            if self.owned:
                await self.give_up()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        async with self.lock:
            if self.closing:
                return
            self.owned = {each.partition for each in assigned}
            say(self.name, "assigned", listed(self.owned))

    def epoch(self) -> int:
        return int(self.consumer._coordinator.generation)


async def main(arguments: Arguments) -> None:
    """Do what standard input says, until it ends."""
    watch_turns()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    members: dict[str, Member] = {}
    while line := (await lines.readline()).decode():
        command, *words = line.split()
        if command == "join":
            members[words[0]] = Member(arguments, words[0], words[1] if len(words) > 1 else None)
        elif command == "leave":
            members[words[0]].ending = True
        elif command == "epoch":
            say(words[0], "epoch", members[words[0]].epoch())
        elif command == "stop":
            break
    for member in members.values():
        member.ending = True
    await asyncio.gather(*(member.task for member in members.values()))


if __name__ == "__main__":
    asyncio.run(main(Arguments.read(sys.argv[1:])))
