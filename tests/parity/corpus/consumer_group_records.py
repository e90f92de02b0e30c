"""What consumer groups leave in `__consumer_offsets`: the same records, in the same order, as Apache Kafka's."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from immutables import Map

from coordinator.group.topic_hash import TopicHashes
from coordinator.metadata.image import MetadataImage, PartitionImage, TopicImage, TopicsImage
from coordinator.record_codec import RecordCodec
from tests.parity.corpus.classic_groups import heartbeat as classic_heartbeat
from tests.parity.corpus.classic_groups import join as classic_join
from tests.parity.corpus.classic_groups import sync as classic_sync
from tests.parity.corpus.consumer_groups import beat, classic_member, enter, prepare, subscription
from tests.parity.corpus.produce_and_fetch import fetch, offsets
from tests.parity.player import Connection, Player
from wire.errors import ErrorCode
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.records import consumer_offsets
from wire.primitives import coordinator_partition
from wire.records import batches

OFFSETS_TOPIC, OFFSETS_PARTITIONS = "__consumer_offsets", 50
LATEST = -1
CODEC = RecordCodec(consumer_offsets)
TIMES = ("assignment_timestamp", "timestamp", "current_state_timestamp", "version")
PER_MEMBER = (
    "ConsumerGroupTargetAssignmentMemberKey",
    "ConsumerGroupMemberMetadataKey",
    "ConsumerGroupCurrentMemberAssignmentKey",
)


class Log:
    """The records about one group from now on."""

    def __init__(self, connection: Connection, group: str, hashes: dict[int, str]) -> None:
        """`hashes` names the hashes of topics that may occur."""
        self._connection = connection
        self._group = group
        self._hashes = hashes
        self._partition = coordinator_partition(group, OFFSETS_PARTITIONS)
        request = offsets(OFFSETS_TOPIC, (self._partition, LATEST))
        answer = connection.player.unwritten(lambda: connection.call(request, 6))
        self._position = answer.topics[0].partitions[0].offset

    def write_down(self, label: str) -> None:
        """Write down what has come since the last time, group by group of equal keys in the order of members."""
        request = fetch(OFFSETS_TOPIC, (self._partition, self._position))
        answer = self._connection.call(request, 12, label)
        records = []
        for batch in batches(answer.responses[0].partitions[0].records or b""):
            for record in batch.records():
                if record.offset < self._position:
                    continue
                decoded = CODEC.decode(record.key, record.value)
                if decoded is not None and self._is_of_group(decoded.key):
                    records.append(self._shown(decoded))
            self._position = batch.last_offset + 1
        entry = self._connection.player.transcript.entries[-1]
        entry["request"] = {}
        entry["response"] = {"records": _in_order(records)}

    def _is_of_group(self, key: Any) -> bool:
        return bool(self._group == (key.group if hasattr(key, "group") else key.group_id))

    def _shown(self, record: Any) -> dict[str, Any]:
        normal = self._connection.player._normaliser.message
        shown = {"kind": type(record.key).__name__, "key": normal(record.key, answer=True), "value": None}
        if record.value is not None:
            value = normal(record.value, answer=True)
            for name in TIMES:
                if value.get(name, 0) not in (0, -1):
                    value[name] = f"<{name}>"
            if "metadata_hash" in value:
                value["metadata_hash"] = self._hashes.get(record.value.metadata_hash, "another hash")
            shown["value"] = {**value, "value_version": record.value_version}
        return shown


def _in_order(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kafka writes records of several members in the order of a hash map: here in the order of their ids."""

    def kind(record: dict[str, Any]) -> tuple[str, bool]:
        return record["kind"], record["value"] is None

    ordered: list[dict[str, Any]] = []
    for (name, _), run in groupby(records, kind):
        together = list(run)
        if name in PER_MEMBER:
            together.sort(key=lambda each: str(each["key"]["member_id"]))
        ordered += together
    return ordered


def hashes_of(name: str, topic_id: bytes, count: int) -> dict[int, str]:
    """The hashes that a group may have which is subscribed to this topic at most."""
    partition = PartitionImage((1,), (1,), 1, 0, 0)
    topic = TopicImage(name, topic_id, Map(dict.fromkeys(range(count), partition)))
    image = MetadataImage(TopicsImage(Map({name: topic_id}), Map({topic_id: topic})))
    return {0: "no topic", TopicHashes().of_group([name], image): "the topic"}


def scenario_consumer_group_records(player: Player) -> None:
    """Two members, revocation, an assignor, static members, leaving, deletion."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 4})
    log = Log(connection, group, hashes_of(topic, topic_id, 4))

    def step(label: str, request: Any, version: int = 1) -> None:
        player.unwritten(lambda: connection.call(request, version))
        log.write_down(label)

    step("A joins", enter(group, "A", topic, rack_id="r"))
    step("A stays", beat(group, "A", 2))
    step("B joins", enter(group, "B", topic, server_assignor="uniform"))
    step("A is told to give up", beat(group, "A", 2))
    step("A says nothing", beat(group, "A", 2))
    step("A has given up", beat(group, "A", 2, owned=[(topic_id, [0, 1])]))
    step("A stays", beat(group, "A", 3))
    step("B gets the rest", beat(group, "B", 3))
    step("B stays", beat(group, "B", 3))
    step("C joins with an instance", enter(group, "C", topic, instance_id="i"))
    step("A gives one up", beat(group, "A", 3, owned=[(topic_id, [0])]))
    step("C gets it", beat(group, "C", 4, instance_id="i"))
    step("C leaves for a while", beat(group, "C", -2, instance_id="i"))
    step("D takes over", enter(group, "D", topic, instance_id="i"))
    step("A changes its topics", beat(group, "A", 4, subscribed_topic_names=[player.name("nosuch")]))
    step("A leaves", beat(group, "A", -1))
    step("D leaves", beat(group, "D", -1, instance_id="i"))
    step("B leaves", beat(group, "B", -1))
    step("the group is deleted", DeleteGroupsRequest(groups_names=[group]), 2)


def scenario_consumer_group_records_of_expressions(player: Player) -> None:
    """A regular expression is resolved, dropped by one of two members, then by the other."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t1")
    (topic_id,) = prepare(connection, group, topics={topic: 2})
    log = Log(connection, group, hashes_of(topic, topic_id, 2))
    regex = player.name("t") + "[0-9]"
    ask = ConsumerGroupDescribeRequest(group_ids=[group])

    def join() -> None:
        connection.call(enter(group, "A", subscribed_topic_regex=regex), 1)
        player.until(lambda: connection.call(ask, 1), lambda answer: answer.groups[0].group_epoch == 2)

    player.unwritten(join)
    log.write_down("A joins, and the expression is resolved")
    for label, request in (
        ("A gets them", beat(group, "A", 1)),
        ("B wants the same", enter(group, "B", subscribed_topic_regex=regex)),
        ("A wants names", beat(group, "A", 2, subscribed_topic_regex="", subscribed_topic_names=[topic])),
        ("B leaves", beat(group, "B", -1)),
        ("A leaves", beat(group, "A", -1)),
    ):
        player.unwritten(lambda request=request: connection.call(request, 1))
        log.write_down(label)


def scenario_consumer_group_records_of_migration(player: Player) -> None:
    """A classic group becomes a consumer group and a classic group again."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 4})
    old, generation = player.unwritten(lambda: classic_member(connection, group, topic))
    log = Log(connection, group, hashes_of(topic, topic_id, 4))

    def step(label: str, request: Any, version: int = 1) -> Any:
        answer = player.unwritten(lambda: connection.call(request, version))
        log.write_down(label)
        return answer

    step("A joins by the consumer protocol", enter(group, "A", topic))
    step("the old one is told to rejoin", classic_heartbeat(group, old, generation), 4)
    owning = {"metadata": subscription(topic, version=1, owned={topic: [0, 1, 2, 3]})}
    joined = step("it rejoins", classic_join(group, old, **owning), 9)
    step("it syncs", classic_sync(group, old, joined.generation_id, protocol_type="consumer", protocol_name="range"), 5)
    giving = {"metadata": subscription(topic, version=1, owned={topic: [0, 1]})}
    joined = step("it has given up", classic_join(group, old, **giving), 9)
    assert joined.error_code == ErrorCode.NONE
    step("A gets the rest", beat(group, "A", joined.generation_id))
    step("A leaves", beat(group, "A", -1))
    gone = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=old)])
    step("the last one leaves", gone, 5)
    step("B makes it a consumer group again", enter(group, "B", topic))
