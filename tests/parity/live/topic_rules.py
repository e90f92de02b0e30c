"""Rules about topics, their settings, and the cluster as it is described."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.parity.live import data_requests as drawn
from tests.parity.live.group_requests import mostly, versions
from tests.parity.live.machine import ADMIN, Machine
from tests.parity.live.twins import CLOSED
from wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from wire.messages.create_acls import AclCreation, CreateAclsRequest
from wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic
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
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from wire.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from wire.messages.elect_leaders import ElectLeadersRequest
from wire.messages.elect_leaders import TopicPartitions as ElectedTopic
from wire.messages.incremental_alter_configs import AlterableConfig as ChangedConfig
from wire.messages.incremental_alter_configs import AlterConfigsResource as ChangedResource
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from wire.messages.list_config_resources import ListConfigResourcesRequest
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

TOPIC, BROKER = 2, 4
SETTINGS = ("max.message.bytes", "cleanup.policy", "retention.ms", "compression.type", "message.timestamp.type")
SETTINGS += ("min.insync.replicas", "segment.bytes", "segment.ms", "no.such", "", "min.cleanable.dirty.ratio")
SETTINGS += ("message.timestamp.after.max.ms", "unclean.leader.election.enable", "flush.messages")
VALUES = ("200", "1048588", "compact", "delete", "compact,delete", "gzip", "producer", "LogAppendTime", "1", "2")
VALUES += ("-1", "-2", "", " 1 ", "true", "TRUE", "0.5", "zstd", "CreateTime", "x", "9999999999999", None)
TOPIC_NAMES = mostly(st.sampled_from(["a", "b", "b", "c"]), "", "bad name", ".", "a" * 250, "a_b", "a.b", weight=11)
CONFIGS = st.lists(st.tuples(st.sampled_from(SETTINGS), st.sampled_from(VALUES)), max_size=2)


class TopicRules(Machine):
    """Topics come and go; each answer that orders something is followed by waiting until it is so."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: dict[str, int] = {}
        for name in ("A", "B", "C"):
            self.twins.choose(name, b"\x02" * 15 + name.encode())
        self.created("a", CreatableTopic(name=self.topic("a"), num_partitions=2, replication_factor=1))

    def topic(self, name: str) -> str:
        return self.prefix + name if name and " " not in name and name != "." else name

    def created(self, name: str, topic: CreatableTopic, version: int = 7, *, validate_only: bool = False) -> None:
        """CreateTopics of one topic."""
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=validate_only)
        answer = self.ask(ADMIN, request, version)
        if answer in (None, CLOSED) or validate_only or any(each.error_code for each in answer.topics):
            return
        self.topics[name] = max(topic.num_partitions, len(topic.assignments), 1)
        self.wait_for_leaders(name)
        if name.upper() in ("A", "B", "C"):
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic(name))])
            self.ask(ADMIN, asked, 12, captures={name.upper(): lambda found: found.topics[0].topic_id})

    def wait_for_leaders(self, name: str) -> None:
        """Wait until every partition answers on both brokers."""
        parts = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(self.topics[name])]
        ends = ListOffsetsRequest(topics=[ListOffsetsTopic(name=self.topic(name), partitions=parts)], replica_id=-1)
        self.twins.each_until(ends, 7, lambda found: not any(part.error_code for part in found.topics[0].partitions))

    @rule(
        name=TOPIC_NAMES,
        version=versions(2, 7),
        count=mostly(st.sampled_from([1, 2]), -1, 0, -2),
        factor=mostly(st.just(1), -1, 0, 2, -2),
        configs=CONFIGS,
        assigned=mostly(st.none(), [[0, [1]]], [[1, [1]]], [[0, []]], [[0, [1]], [1, [9]]], [[0, [1, 1]]], weight=9),
        validate_only=st.booleans(),
    )
    def create_topic(
        self, name: str, version: int, count: int, factor: int, configs: Any, assigned: Any, validate_only: bool
    ) -> None:
        """CreateTopics, with settings and assignments that may be bad."""
        topic = CreatableTopic(
            name=self.topic(name),
            num_partitions=count if assigned is None else -1,
            replication_factor=factor if assigned is None else -1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
        )
        for index, brokers in assigned or []:
            topic.assignments.append(CreatableReplicaAssignment(partition_index=index, broker_ids=brokers))
        self.created(name, topic, version, validate_only=validate_only)

    @rule(names=st.lists(TOPIC_NAMES, max_size=2), version=versions(1, 6), by_id=st.booleans())
    def delete_topics(self, names: list[str], version: int, by_id: bool) -> None:
        """DeleteTopics by name or id."""
        request = DeleteTopicsRequest(timeout_ms=30_000)
        if version < 6:
            request.topic_names = [self.topic(name) for name in names]
        elif by_id:
            states = [drawn.Ref(name.upper()) if name in ("a", "b", "c") else b"\x01" * 16 for name in names]
            request.topics = [DeleteTopicState(name=None, topic_id=state) for state in states]
        else:
            request.topics = [DeleteTopicState(name=self.topic(name)) for name in names]
        answer = self.ask(ADMIN, request, version)
        if answer in (None, CLOSED):
            return
        gone = {each.name for each in answer.responses if not each.error_code}
        for name in [name for name in self.topics if self.topic(name) in gone]:
            del self.topics[name]
            self.wait_until_gone(self.topic(name))

    def wait_until_gone(self, topic: str) -> None:
        part = ListOffsetsPartition(partition_index=0, timestamp=-1)
        ends = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[part])], replica_id=-1)
        self.twins.each_until(ends, 7, lambda found: found.topics[0].partitions[0].error_code == 3)

    @rule(
        name=TOPIC_NAMES,
        version=versions(0, 3),
        more=mostly(st.just(1), 0, -1, -9),
        assigned=mostly(st.none(), [[1]], [[9]], [[]], [[1], [1]], weight=5),
        validate_only=st.booleans(),
    )
    def create_partitions(self, name: str, version: int, more: int, assigned: Any, validate_only: bool) -> None:
        """CreatePartitions."""
        count = self.topics.get(name, 1) + more
        topic = CreatePartitionsTopic(name=self.topic(name), count=count, assignments=None)
        if assigned is not None:
            topic.assignments = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assigned]
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=validate_only)
        answer = self.ask(ADMIN, request, version)
        if answer not in (None, CLOSED) and not validate_only and not answer.results[0].error_code:
            self.topics[name] = count
            self.wait_for_leaders(name)

    @rule(
        name=TOPIC_NAMES,
        version=versions(0, 1),
        changes=st.lists(
            st.tuples(st.sampled_from(SETTINGS), st.sampled_from(VALUES), st.sampled_from([0, 0, 0, 1, 2, 3, 7])),
            max_size=3,
        ),
        kind=mostly(st.just(TOPIC), 0, 1, 3, 99, weight=15),
        validate_only=st.booleans(),
    )
    def change_settings(self, name: str, version: int, changes: Any, kind: int, validate_only: bool) -> None:
        """IncrementalAlterConfigs of a topic."""
        configs = [ChangedConfig(name=key, value=value, config_operation=how) for key, value, how in changes]
        resource = ChangedResource(resource_type=kind, resource_name=self.topic(name), configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        if self.ask(ADMIN, request, version) is not None and not validate_only:
            self.settings_are_equal(name)

    @rule(name=TOPIC_NAMES, version=versions(0, 2), configs=CONFIGS, validate_only=st.booleans())
    def replace_settings(self, name: str, version: int, configs: Any, validate_only: bool) -> None:
        """AlterConfigs of a topic."""
        values = [AlterableConfig(name=key, value=value) for key, value in configs]
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=self.topic(name), configs=values)
        request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
        if self.ask(ADMIN, request, version) is not None and not validate_only:
            self.settings_are_equal(name)

    def settings_are_equal(self, name: str) -> None:
        """Wait until what was changed is described alike."""
        if not self.is_over and name in self.topics:
            resource = DescribeConfigsResource(
                resource_type=TOPIC, resource_name=self.topic(name), configuration_keys=None
            )
            try:
                self.twins.ask_until_equal(ADMIN, DescribeConfigsRequest(resources=[resource]), 4, 0.02)
            except AssertionError as fault:
                self.end(fault)  # type: ignore[arg-type]

    @rule(
        name=TOPIC_NAMES,
        version=versions(1, 4),
        kind=mostly(st.just(TOPIC), 0, 1, 3, 99),
        keys=mostly(st.none(), [], ["max.message.bytes"], ["no.such", "retention.ms"], weight=2),
        synonyms=st.booleans(),
    )
    def describe_settings(self, name: str, version: int, kind: int, keys: Any, synonyms: bool) -> None:
        """DescribeConfigs of a topic."""
        resource = DescribeConfigsResource(resource_type=kind, resource_name=self.topic(name), configuration_keys=keys)
        self.ask(ADMIN, DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms), version)

    @rule(data=st.data(), names=st.lists(TOPIC_NAMES, max_size=2), version=versions(0, 13), operations=st.booleans())
    def metadata(self, data: Any, names: list[str], version: int, operations: bool) -> None:
        """Metadata of topics by name or id, none created."""
        request = MetadataRequest(allow_auto_topic_creation=version < 4)
        if version >= 10 and data.draw(st.booleans()):
            ids = data.draw(st.lists(drawn.TOPIC_IDS, max_size=2))
            request.topics = [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
        else:
            known = [name for name in names if name in self.topics or version >= 4]
            request.topics = [MetadataRequestTopic(name=self.topic(name)) for name in known]
        if version == 0 and not request.topics:
            return
        request.include_topic_authorized_operations = operations and version >= 8
        self.ask(ADMIN, request, version)

    @rule(
        names=st.lists(TOPIC_NAMES.filter(bool), min_size=1, max_size=3),
        limit=mostly(st.just(2000), 1, 0, -1, 2, weight=2),
    )
    def describe_topic_partitions(self, names: list[str], limit: int) -> None:
        """DescribeTopicPartitions."""
        topics = [DescribedTopic(name=self.topic(name)) for name in names]
        self.ask(ADMIN, DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit), 0)

    @rule(name=TOPIC_NAMES, version=versions(1, 5), partitions=st.lists(drawn.PARTITIONS, max_size=2))
    def describe_log_dirs(self, name: str, version: int, partitions: list[int]) -> None:
        """DescribeLogDirs of a topic."""
        topic = DescribableLogDirTopic(topic=self.topic(name), partitions=partitions)
        self.ask(ADMIN, DescribeLogDirsRequest(topics=[topic]), version)

    @rule(
        name=TOPIC_NAMES,
        version=versions(0, 2),
        partitions=st.lists(drawn.PARTITIONS, max_size=2),
        kind=mostly(st.sampled_from([0, 1]), 2),
    )
    def elect_leaders(self, name: str, version: int, partitions: list[int], kind: int) -> None:
        """ElectLeaders."""
        topics = [ElectedTopic(topic=self.topic(name), partitions=partitions)]
        request = ElectLeadersRequest(election_type=kind if version else 0, topic_partitions=topics, timeout_ms=10_000)
        self.ask(ADMIN, request, version)

    @rule(version=versions(0, 2), operations=st.booleans(), endpoint=mostly(st.just(1), 0, 2, 3), fenced=st.booleans())
    def describe_cluster(self, version: int, operations: bool, endpoint: int, fenced: bool) -> None:
        """DescribeCluster."""
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=operations,
            endpoint_type=endpoint if version >= 1 else 1,
            include_fenced_brokers=fenced and version >= 2,
        )
        self.ask(ADMIN, request, version)

    @rule(
        version=versions(0, 2),
        feature=st.sampled_from(["transaction.version", "group.version", "metadata.version", "no.such", ""]),
        level=st.sampled_from([-1, 0, 1, 2, 3, 99]),
        kind=st.sampled_from([0, 1, 1, 2, 3, 4]),
        times=st.integers(1, 2),
    )
    def update_features(self, version: int, feature: str, level: int, kind: int, times: int) -> None:
        """UpdateFeatures, checked only."""
        update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind if version else 1)
        if version:
            self.ask(ADMIN, UpdateFeaturesRequest(feature_updates=[update] * times, validate_only=True), version)

    @rule(
        version=versions(0, 2),
        topic=mostly(st.just("__cluster_metadata"), "", "other"),
        indexes=mostly(st.just([0]), [], [1], [0, 0]),
    )
    def describe_quorum(self, version: int, topic: str, indexes: list[int]) -> None:
        """DescribeQuorum, of which what a single voter is to say is compared: offsets are each broker's own."""
        parts = [DescribeQuorumRequestPartitionData(partition_index=index) for index in indexes]
        request = DescribeQuorumRequest(topics=[DescribeQuorumRequestTopicData(topic_name=topic, partitions=parts)])

        def without_offsets(answer: Any, _: str) -> Any:
            answer.nodes = []
            for part in (part for each in answer.topics for part in each.partitions):
                part.high_watermark = part.leader_epoch = 0
                part.current_voters, part.observers = [], []
            return answer

        self.ask(ADMIN, request, version, shorten=without_offsets)

    @rule(
        version=versions(1, 3),
        kind=st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 9, -1]),
        pattern=st.sampled_from([0, 1, 2, 3, 4, 9]),
        name=st.sampled_from([None, "", "x", "*"]),
        operation=st.sampled_from([0, 1, 2, 3, 12, 99]),
        permission=st.sampled_from([0, 1, 2, 3, 9]),
        what=st.sampled_from(["describe", "create", "delete"]),
    )
    def access_rules(
        self, version: int, kind: int, pattern: int, name: str | None, operation: int, permission: int, what: str
    ) -> None:
        """Access rules, which neither broker keeps: there is no authorizer."""
        fields: dict[str, Any] = {"operation": operation, "permission_type": permission}
        if what == "create":
            rule_made = AclCreation(
                resource_type=kind,
                resource_name=name or "",
                resource_pattern_type=pattern,
                principal="User:x",
                host="*",
                **fields,
            )
            self.ask(ADMIN, CreateAclsRequest(creations=[rule_made]), version)
            return
        fields |= {"resource_type_filter": kind, "resource_name_filter": name, "pattern_type_filter": pattern}
        if what == "delete":
            self.ask(ADMIN, DeleteAclsRequest(filters=[DeleteAclsFilter(**fields)]), version)
        else:
            self.ask(ADMIN, DescribeAclsRequest(**fields), version)

    @rule(version=versions(0, 1), kinds=st.lists(st.sampled_from([2, 4, 8, 16, 32, 0, 99, -1]), max_size=2))
    def list_config_resources(self, version: int, kinds: list[int]) -> None:
        """ListConfigResources, of which this sequence's own and the code are compared."""

        def own(answer: Any, prefix: str) -> Any:
            listed = answer.config_resources
            answer.config_resources = [each for each in listed if each.resource_name.startswith(prefix)]
            answer.config_resources.sort(key=lambda each: str(each.resource_name))
            return answer

        request = ListConfigResourcesRequest(resource_types=kinds if version else [])
        self.ask(ADMIN, request, version, shorten=own)

    def teardown(self) -> None:
        """Delete the topics."""
        try:
            for name in self.topics if not self.is_over else ():
                self.describe_log_dirs_of(name)
            states = [DeleteTopicState(name=self.topic(name)) for name in self.topics]
            if states:
                self.twins.each_until(DeleteTopicsRequest(topics=states, timeout_ms=30_000), 6, lambda _: True)
        finally:
            super().teardown()

    def describe_log_dirs_of(self, name: str) -> None:
        """How many bytes each partition has."""
        topic = DescribableLogDirTopic(topic=self.topic(name), partitions=list(range(self.topics[name])))
        self.ask(ADMIN, DescribeLogDirsRequest(topics=[topic]), 5)
