"""The cluster, its topics and features: described, made, grown, deleted, elected; which refusal wins."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.produce_and_fetch import batch, create, produce
from tests.parity.corpus.rules_i_settings import node_id, settle
from tests.parity.player import Connection, Player
from wire.messages.create_acls import AclCreation, CreateAclsRequest
from wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.describe_acls import DescribeAclsRequest
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.unregister_broker import UnregisterBrokerRequest
from wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


def scenario_describe_cluster(player: Player) -> None:
    """Every version, endpoint types, authorized operations."""
    connection = player.connect()
    for version in range(3):
        for operations in (False, True):
            for kind in (1, 2, 0, 3, -1) if version else (1,):
                request = DescribeClusterRequest(include_cluster_authorized_operations=operations, endpoint_type=kind)
                connection.call(request, version, f"type {kind} operations {operations} v{version}")
    connection.call(DescribeClusterRequest(include_fenced_brokers=True), 2, "fenced ones too")


def scenario_authorized_operations(player: Player) -> None:
    """Metadata with the operations of topics and cluster, in every version that has them."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic)
    for version in range(8, 14):
        names = [MetadataRequestTopic(name=name) for name in (topic, player.name("nosuch"), "bad name")]
        request = MetadataRequest(
            topics=names, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )
        request.include_cluster_authorized_operations = version <= 10
        connection.call(request, version, f"operations v{version}")


def scenario_metadata_corners(player: Player) -> None:
    """Names twice, names with ids, internal topics, colliding and invalid names, what is not created."""
    connection, topic = player.connect(), player.name("t")
    topic_id = create(connection, topic, 2)

    def ask(what: str, *topics: tuple[str | None, bytes], version: int = 12, create: bool = False) -> None:
        named = [MetadataRequestTopic(name=name, topic_id=identity) for name, identity in topics]
        connection.call(MetadataRequest(topics=named, allow_auto_topic_creation=create), version, what)

    none = bytes(16)
    ask("name twice", (topic, none), (topic, none))
    ask("id twice", (None, topic_id), (None, topic_id))
    ask("name and id", (topic, topic_id))
    ask("name and another id", (topic, b"\x01" * 16))
    ask("a name, and an id", (topic, none), (None, topic_id))
    ask("neither", (None, none))
    ask("id below v12", (topic, topic_id), version=11)
    ask("null name below v12", (None, none), version=11)
    ask("empty name", ("", none))
    for name in ("", ".", "..", "a" * 249 + "b", "with space", "sla/sh", "ü"):
        ask(f"invalid {name[:8]!r}, creating", (name, none), create=True)
    dotted = player.name("d.x")
    create_topic = CreatableTopic(name=dotted, num_partitions=1, replication_factor=1)
    connection.call(CreateTopicsRequest(topics=[create_topic], timeout_ms=30_000), 7, "create")
    settle(connection)
    ask("colliding name", (player.name("d_x"), none))
    for version in range(4):
        for topics in ([], None) if version else ([MetadataRequestTopic(name=topic)],):
            if topics is not None:
                connection.call(MetadataRequest(topics=topics), version, f"{len(topics)} v{version}")


def scenario_describe_topic_partitions(player: Player) -> None:
    """Pages and cursors, unknown and invalid names."""
    connection = player.connect()
    names = [player.name(text) for text in ("a", "b", "c")]
    for name in names:
        create(connection, name, 3)

    def page(what: str, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        at = (
            None
            if cursor is None
            else DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1])
        )
        wanted = [TopicRequest(name=topic) for topic in topics]
        connection.call(
            DescribeTopicPartitionsRequest(topics=wanted, response_partition_limit=limit, cursor=at), 0, what
        )

    nosuch = player.name("b0")
    page("all named", *reversed(names))
    page("name twice", names[0], names[0])
    page("unknown", nosuch, names[0])
    page("invalid", "bad name", names[0])
    page("invalid alone", "bad name")
    page("dots", "..")
    for limit in (1, 2, 3, 4, 6, 9, 10, 0, -1):
        page(f"limit {limit}", *names, limit=limit)
    for index in (0, 1, 2, 3, 7, -1):
        page(f"cursor at {index}", *names, cursor=(names[1], index))
        page(f"cursor at {index}, limit 2", *names, cursor=(names[1], index), limit=2)
    page("cursor at an unknown topic that is named", *names, nosuch, cursor=(nosuch, 0))
    page("cursor at a topic that is not named", names[0], cursor=(names[1], 0))
    page("cursor at the last", *names, cursor=(names[2], 2), limit=1)
    page("unknown ones count not", nosuch, *names, limit=3)
    page("internal", "__consumer_offsets", limit=1)


def scenario_describe_log_dirs(player: Player) -> None:
    """Named, unknown and no topics, in every version."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    connection.call(produce(topic, (0, batch(b"a", b"b"))), 9)
    wanted = [
        DescribableLogDirTopic(topic=topic, partitions=[0, 1, 9, 0]),
        DescribableLogDirTopic(topic=player.name("nosuch"), partitions=[0]),
    ]
    for version in range(1, 6):
        connection.call(DescribeLogDirsRequest(topics=wanted), version, f"named v{version}")
        connection.call(DescribeLogDirsRequest(topics=[]), version, f"none v{version}")
    nothing = [DescribableLogDirTopic(topic=topic, partitions=[])]
    connection.call(DescribeLogDirsRequest(topics=nothing), 5, "no partitions")


def scenario_acls_without_authorizer(player: Player) -> None:
    """SECURITY_DISABLED, for every item."""
    connection = player.connect()
    for version in (1, 2, 3):
        any_acl = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        connection.call(DescribeAclsRequest(**any_acl), version, f"describe v{version}")
        made = AclCreation(
            resource_type=2, resource_name="t", resource_pattern_type=3,
            principal="User:a", host="*", operation=3, permission_type=3,
        )  # fmt: skip
        connection.call(CreateAclsRequest(creations=[made, made]), version, f"create v{version}")
        connection.call(CreateAclsRequest(creations=[]), version, f"create none v{version}")
        filters = [DeleteAclsFilter(**any_acl)]
        connection.call(DeleteAclsRequest(filters=filters), version, f"delete v{version}")
        connection.call(DeleteAclsRequest(filters=[]), version, f"delete none v{version}")


def scenario_elect_leaders(player: Player) -> None:
    """Elections that are not needed, of unknown partitions, of unknown kinds."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)

    def elect(kind: int, *topics: tuple[str, list[int]]) -> ElectLeadersRequest:
        partitions = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics]
        return ElectLeadersRequest(election_type=kind, topic_partitions=partitions, timeout_ms=30_000)

    connection.call(elect(0, (topic, [0])), 0, "v0")
    for version in (1, 2):
        for kind in (0, 1):
            connection.call(elect(kind, (topic, [0, 1])), version, f"type {kind} v{version}")
            mixed = elect(kind, (topic, [0, 9]), (player.name("nosuch"), [0]))
            connection.call(mixed, version, f"type {kind}, unknown ones v{version}")
    connection.call(elect(0, (topic, [0, 0])), 2, "partition twice")
    connection.call(elect(0, (topic, [])), 2, "no partitions")
    connection.call(elect(0), 2, "no topics")
    connection.call(elect(2, (topic, [0])), 2, "type 2")
    connection.call(elect(-1, (topic, [0])), 2, "type -1")
    everything = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=30_000)
    answer = connection.call(everything, 2, "all")
    found = [item for item in answer.replica_election_results if item.topic == topic]
    player.transcript.entries[-1]["response"] = [len(item.partition_result) for item in found]


def scenario_features_and_brokers(player: Player) -> None:
    """Features that cannot be had, brokers that are not there, the quorum's partition and others."""
    connection = player.connect()
    for version in (0, 1, 2):
        for name, level, kind, what in (
            ("nosuch", 1, 1, "unknown feature"),
            ("metadata.version", 999, 1, "too high"),
            ("transaction.version", 2, 1, "as it is"),
            ("transaction.version", 99, 1, "level not known"),
            ("transaction.version", -1, 1, "negative"),
            ("", 1, 1, "no name"),
            ("metadata.version", 7, 1, "down without being allowed"),
            ("metadata.version", 0, 2, "removed"),
            ("transaction.version", 1, 0, "upgrade type 0"),
            ("transaction.version", 1, 9, "upgrade type 9"),
        ):
            if version == 0 and kind not in (1, 2):
                continue
            update = FeatureUpdateKey(feature=name, max_version_level=level)
            if version == 0:
                update.allow_downgrade = kind == 2
            else:
                update.upgrade_type = kind
            request = UpdateFeaturesRequest(feature_updates=[update], validate_only=version > 0, timeout_ms=30_000)
            if version == 0 and what == "as it is":
                continue
            connection.call(request, version, f"{what} v{version}")
    twice = UpdateFeaturesRequest(validate_only=True, timeout_ms=30_000)
    twice.feature_updates = [FeatureUpdateKey(feature="transaction.version", max_version_level=2)] * 2
    connection.call(twice, 2, "feature twice")
    connection.call(UpdateFeaturesRequest(timeout_ms=30_000), 2, "no features")
    connection.call(UnregisterBrokerRequest(broker_id=9999), 0, "unknown broker")
    connection.call(UnregisterBrokerRequest(broker_id=-1), 0, "negative broker")
    for version in range(3):
        for topic, partition in (("__cluster_metadata", 1), ("other", 0)):
            topics = [
                DescribeQuorumRequestTopicData(
                    topic_name=topic, partitions=[DescribeQuorumRequestPartitionData(partition_index=partition)]
                )
            ]
            connection.call(DescribeQuorumRequest(topics=topics), version, f"quorum of {topic}-{partition} v{version}")
        connection.call(DescribeQuorumRequest(topics=[]), version, f"quorum of nothing v{version}")


def topic(label: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    """A topic to create, with settings."""
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=label, num_partitions=partitions, replication_factor=factor, configs=settings)


def make(connection: Connection, what: str, *topics: CreatableTopic, **fields: Any) -> Any:
    """CreateTopics."""
    return connection.call(CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, **fields), 7, what)


def scenario_create_topic_corners(player: Player) -> None:
    """Which error wins when topics are made; repeated names; what only validates."""
    connection, name = player.connect(), player.name

    make(connection, "create", topic(name("there")))
    make(connection, "exists wins over settings", topic(name("there"), retention_ms="x"))
    make(connection, "exists wins over no partitions", topic(name("there"), 0))
    make(connection, "settings win over factor", topic(name("a"), 1, 99, retention_ms="x"))
    make(connection, "settings win over partitions", topic(name("a"), 0, 1, retention_ms="x"))
    make(connection, "invalid name wins over settings", topic("bad name", 0, 0, retention_ms="x"))
    make(connection, "factor -2", topic(name("a"), 1, -2))
    make(connection, "factor 2, validated", topic(name("a"), 1, 2), validate_only=True)
    make(connection, "the same key twice", CreatableTopic(
        name=name("twice-key"), num_partitions=1, replication_factor=1,
        configs=[CreatableTopicConfig(name="retention.ms", value=value) for value in ("1000", "2000")],
    ))  # fmt: skip
    make(
        connection,
        "two of one name, one other",
        topic(name("x")),
        topic(name("x"), 0),
        topic(name("y")),
        topic(name("x")),
    )
    make(connection, "two of a bad name", topic("bad name"), topic("bad name"))
    make(connection, "metadata topic", topic("__cluster_metadata"))
    make(connection, "metadata topic twice", topic("__cluster_metadata"), topic("__cluster_metadata"))
    make(connection, "10001 partitions", topic(name("huge"), 10_001))
    make(
        connection,
        "10001 partitions of two",
        topic(name("huge"), 5_000),
        topic(name("huge2"), 5_001),
        validate_only=True,
    )
    make(connection, "10001 partitions and a bad one", topic(name("huge"), 10_001), topic("bad name"))
    make(connection, "two that collide", topic(name("c.d")), topic(name("c_d")))
    make(connection, "nothing")
    make(connection, "segment too small", topic(name("a"), segment_bytes="100"))
    make(connection, "lags crossed", topic(name("a"), min_compaction_lag_ms="10", max_compaction_lag_ms="5"))
    make(
        connection, "settings shown", topic(name("shown"), -1, -1, retention_ms="5000", cleanup_policy="compact,delete")
    )
    make(connection, "min.insync.replicas above the factor", topic(name("isr"), 1, 1, min_insync_replicas="5"))


def scenario_create_assigned_corners(player: Player) -> None:
    """Assignments that are refused beside counts, with odd indexes, with brokers that there are not."""
    connection, name = player.connect(), player.name
    this = int(node_id(connection))
    assigned = CreatableTopic(name=name("m"), num_partitions=-1, replication_factor=-1)
    assigned.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[this])]
    for field, value in (("num_partitions", 2), ("replication_factor", 1), ("num_partitions", 0)):
        refused = CreatableTopic(
            name=name("m"), num_partitions=-1, replication_factor=-1, assignments=assigned.assignments
        )
        setattr(refused, field, value)
        make(connection, f"assignment and {field} {value}", refused)
    for label, partitions in (
        ("starts at 1", [(1, [this])]),
        ("negative index", [(-1, [this])]),
        ("negative broker", [(0, [-1])]),
        ("second unknown", [(0, [this]), (1, [9999])]),
        ("different factors", [(0, [this]), (1, [])]),
    ):
        bad = CreatableTopic(name=name("m"), num_partitions=-1, replication_factor=-1)
        bad.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in partitions
        ]
        make(connection, label, bad)
    make(connection, "validated with an assignment", assigned, validate_only=True)
    make(connection, "created with an assignment", assigned)


def scenario_grow_topic_corners(player: Player) -> None:
    """Counts and assignments that CreatePartitions refuses, and those it takes."""
    connection, name = player.connect(), player.name
    this = int(node_id(connection))
    there = name("there")
    make(connection, "create", topic(there), topic(name("y")))

    def grow(what: str, *topics: CreatePartitionsTopic, **fields: Any) -> None:
        settle(connection)
        connection.call(CreatePartitionsRequest(topics=list(topics), timeout_ms=30_000, **fields), 3, what)

    def to(label: str, count: int, *brokers: list[int]) -> CreatePartitionsTopic:
        given = [CreatePartitionsAssignment(broker_ids=ids) for ids in brokers] if brokers else None
        return CreatePartitionsTopic(name=label, count=count, assignments=given)

    grow("validated", to(there, 3), validate_only=True)
    grow("zero", to(there, 0))
    grow("negative", to(there, -1))
    grow("too few assignments", to(there, 3, [this]))
    grow("too many assignments", to(there, 2, [this], [this]))
    grow("no assignments", CreatePartitionsTopic(name=there, count=2, assignments=[]))
    grow("unknown broker", to(there, 2, [9999]))
    grow("broker twice", to(there, 2, [this, this]))
    grow("no broker", to(there, 2, []))
    grow("negative broker", to(there, 2, [-5]))
    grow("assigned, validated", to(there, 2, [this]), validate_only=True)
    grow("assigned", to(there, 2, [this]))
    grow("by more than 10000", to(there, 10_003))
    grow("twice, and another", to(there, 9), to(name("y"), 2), to(there, 4))
    grow("unknown, invalid, empty", to(name("nosuch"), 2), to("bad name", 2), to("", 2))
    grow("nothing")
    settle(connection)
    connection.call(MetadataRequest(topics=[MetadataRequestTopic(name=there)]), 12, "as it is now")


def scenario_delete_topic_corners(player: Player) -> None:
    """Names and ids twice, both, neither; nothing that is ambiguous is deleted."""
    connection, name = player.connect(), player.name
    there = name("there")
    there_id = make(connection, "create", topic(there), topic(name("y"))).topics[0].topic_id

    def drop(what: str, *topics: DeleteTopicState) -> None:
        settle(connection)
        connection.call(DeleteTopicsRequest(topics=list(topics), timeout_ms=30_000), 6, what)

    drop("name and id", DeleteTopicState(name=there, topic_id=there_id))
    drop("name and another id", DeleteTopicState(name=there, topic_id=b"\x01" * 16))
    drop("name twice", DeleteTopicState(name=there), DeleteTopicState(name=there))
    drop("id twice", *[DeleteTopicState(name=None, topic_id=there_id)] * 2)
    drop("by name, and by id", DeleteTopicState(name=there), DeleteTopicState(name=None, topic_id=there_id))
    drop("unknown id twice", *[DeleteTopicState(name=None, topic_id=b"\x01" * 16)] * 2)
    drop("unknown name twice", *[DeleteTopicState(name=name("nosuch"))] * 2)
    drop("neither, twice", *[DeleteTopicState(name=None)] * 2)
    drop("unknown, and a good one", DeleteTopicState(name=name("nosuch")), DeleteTopicState(name=name("y")))
    drop("empty and invalid names", DeleteTopicState(name=""), DeleteTopicState(name="bad name"))
    connection.call(DeleteTopicsRequest(topic_names=[there, there], timeout_ms=30_000), 5, "name twice v5")
    connection.call(DeleteTopicsRequest(topic_names=[], timeout_ms=30_000), 5, "nothing v5")
    connection.call(DeleteTopicsRequest(topic_names=["", "bad name"], timeout_ms=30_000), 5, "bad names v5")
    settle(connection)
    connection.call(MetadataRequest(topics=[MetadataRequestTopic(name=there)]), 12, "still there")
