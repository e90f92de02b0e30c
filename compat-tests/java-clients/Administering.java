import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeProducersResult;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListConsumerGroupsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/** Every method of the admin client; a scenario has the name of its method. */
final class Administering {
    private Administering() {
    }

    /** Fails when the client has a method that no scenario is named after. */
    static void everyMethodHasAScenario(World world) throws Exception {
        Set<String> tried = new TreeSet<>(Set.of("close", "create", "metrics", "registerMetricForSubscription",
                "unregisterMetricFromSubscription", "clientInstanceId", "alterConfigs"));
        for (String place : List.of("Administering", "AdministeringSince44")) {
            try {
                for (Method method : Class.forName(place).getDeclaredMethods()) {
                    tried.add(method.getName());
                }
            } catch (ClassNotFoundException olderClient) {
                continue;
            }
        }
        Set<String> missing = new TreeSet<>();
        for (Method method : Admin.class.getMethods()) {
            if (Modifier.isPublic(method.getModifiers()) && !tried.contains(method.getName())) {
                missing.add(method.getName());
            }
        }
        world.say("without a scenario: %s", missing);
    }

    private static ConfigResource topicConfig(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    static void createTopics(World world) throws Exception {
        Admin admin = world.admin();
        NewTopic plain = new NewTopic(world.name("plain"), Optional.of(2), Optional.empty());
        NewTopic placed = new NewTopic(world.name("placed"), Map.of(0, List.of(1), 1, List.of(1)));
        NewTopic set = new NewTopic(world.name("set"), Optional.empty(), Optional.empty())
                .configs(Map.of("cleanup.policy", "compact", "max.message.bytes", "1234"));
        NewTopic bad = new NewTopic(world.name("bad"), 0, (short) 1);
        NewTopic wide = new NewTopic(world.name("wide"), 1, (short) 3);
        NewTopic wrong = new NewTopic(world.name("wrong"), 1, (short) 1).configs(Map.of("no.such.setting", "1"));
        NewTopic gap = new NewTopic(world.name("gap"), Map.of(0, List.of(1), 2, List.of(1)));
        NewTopic both = new NewTopic("no spaces" + world.name(""), 1, (short) 1);
        CreateTopicsResult made = admin.createTopics(List.of(plain, placed, set, bad, wide, wrong, gap, both));
        for (Map.Entry<String, KafkaFuture<Void>> topic : new TreeMap<>(made.values()).entrySet()) {
            world.tell(topic.getKey(), () -> World.get(topic.getValue()));
        }
        world.say("%d %d %s", World.get(made.numPartitions(plain.name())), World.get(made.replicationFactor(plain.name())),
                !World.get(made.topicId(plain.name())).equals(Uuid.ZERO_UUID));
        world.say("%s", World.get(made.config(set.name())).get("cleanup.policy"));
        CreateTopicsResult checked = admin.createTopics(List.of(new NewTopic(world.name("checked"), 5, (short) 1), plain),
                new CreateTopicsOptions().validateOnly(true));
        world.say("%d", World.get(checked.numPartitions(world.name("checked"))));
        world.tell("again", () -> World.get(checked.values().get(plain.name())));
        world.say("made: %s", World.get(admin.listTopics().names()).contains(world.name("checked")));
    }

    static void deleteTopics(World world) throws Exception {
        Admin admin = world.admin();
        String byName = world.topic("by-name", 1);
        String byId = world.topic("by-id", 1);
        Uuid id = World.get(admin.describeTopics(List.of(byId)).allTopicNames()).get(byId).topicId();
        world.tell("by name", () -> World.get(admin.deleteTopics(List.of(byName)).all()));
        world.tell("by id", () -> World.get(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all()));
        world.tell("by name again", () -> World.get(admin.deleteTopics(List.of(byName)).all()));
        world.tell("by id again", () -> World.get(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all()));
        world.tell("no name", () -> World.get(admin.deleteTopics(List.of("")).all()));
    }

    static void listTopics(World world) throws Exception {
        String topic = world.topic("listed", 1);
        world.say("%s", World.get(world.admin().listTopics().namesToListings()).get(topic).isInternal());
        Set<String> all = World.get(world.admin().listTopics(new ListTopicsOptions().listInternal(true)).names());
        world.say("%s", all.contains(topic));
    }

    static void describeTopics(World world) throws Exception {
        Admin admin = world.admin();
        String topic = world.topic("described", 3);
        TopicDescription found = World.get(admin.describeTopics(List.of(topic),
                new DescribeTopicsOptions().includeAuthorizedOperations(true)).allTopicNames()).get(topic);
        world.say("%s internal %s", found.name(), found.isInternal());
        for (TopicPartitionInfo partition : found.partitions()) {
            world.say("%d leader %d replicas %d isr %d elr %s %s", partition.partition(), partition.leader().id(),
                    partition.replicas().size(), partition.isr().size(), partition.elr(), partition.lastKnownElr());
        }
        world.say("%s", World.sorted(found.authorizedOperations()));
        world.say("%d", World.get(admin.describeTopics(TopicCollection.ofTopicIds(List.of(found.topicId())))
                .allTopicIds()).get(found.topicId()).partitions().size());
        world.say("%d", World.get(admin.describeTopics(List.of(topic),
                new DescribeTopicsOptions().partitionSizeLimitPerResponse(1)).allTopicNames()).get(topic).partitions().size());
        world.tell("absent", () -> World.get(admin.describeTopics(List.of(world.name("absent"))).allTopicNames()));
        world.tell("absent id",
                () -> World.get(admin.describeTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds()));
    }

    static void describeCluster(World world) throws Exception {
        var cluster = world.admin().describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        world.say("nodes %d, controller %s, id %d characters", World.get(cluster.nodes()).size(),
                World.get(cluster.controller()).id() > 0, World.get(cluster.clusterId()).length());
        world.say("%s", World.sorted(World.get(cluster.authorizedOperations())));
    }

    private static final AclBinding ACL = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, "acl", PatternType.LITERAL),
            new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));

    static void createAcls(World world) throws Exception {
        world.tell("without an authorizer", () -> World.get(world.admin().createAcls(List.of(ACL)).all()));
    }

    static void deleteAcls(World world) throws Exception {
        world.tell("without an authorizer",
                () -> World.get(world.admin().deleteAcls(List.of(AclBindingFilter.ANY)).all()));
    }

    static void describeAcls(World world) throws Exception {
        world.tell("without an authorizer", () -> World.get(world.admin().describeAcls(AclBindingFilter.ANY).values()));
    }

    private static void sayConfig(World world, Config config, String... names) {
        for (String name : names) {
            ConfigEntry entry = config.get(name);
            world.say(entry == null ? name + " absent" : String.format("%s=%s %s %s default %s read-only %s sensitive %s %s",
                    name, entry.value(), entry.source(), entry.type(), entry.isDefault(), entry.isReadOnly(),
                    entry.isSensitive(), entry.synonyms().stream().map(synonym -> synonym.name() + "=" + synonym.value()
                            + " " + synonym.source()).toList()));
        }
    }

    static void describeConfigs(World world) throws Exception {
        Admin admin = world.admin();
        ConfigResource topic = topicConfig(world.topic("config", 1, "retention.ms", "777"));
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        ConfigResource absent = topicConfig(world.name("absent"));
        DescribeConfigsOptions everything = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        Map<ConfigResource, KafkaFuture<Config>> found =
                admin.describeConfigs(List.of(topic, broker, absent), everything).values();
        Config settings = World.get(found.get(topic));
        sayConfig(world, settings, "retention.ms", "cleanup.policy", "segment.bytes", "compression.type");
        world.say("topic settings: %s", settings.entries().stream().map(ConfigEntry::name).sorted().toList());
        world.say("documented: %s", settings.entries().stream().allMatch(entry -> entry.documentation() != null));
        sayConfig(world, World.get(found.get(broker)), "num.partitions", "log.retention.hours",
                "ssl.key.password", "background.threads", "log.cleaner.threads");
        world.tell("absent", () -> World.get(found.get(absent)));
        world.tell("a broker that is not there", () -> World.get(admin.describeConfigs(
                List.of(new ConfigResource(ConfigResource.Type.BROKER, "many"))).all()));
        sayConfig(world, World.get(admin.describeConfigs(List.of(topic)).all()).get(topic), "retention.ms");
    }

    static void incrementalAlterConfigs(World world) throws Exception {
        Admin admin = world.admin();
        ConfigResource topic = topicConfig(world.topic("altered", 1));
        String[][] steps = {
            {"retention.ms", "5", "SET"}, {"cleanup.policy", "compact", "APPEND"}, {"cleanup.policy", "delete", "SUBTRACT"},
            {"cleanup.policy", "compact", "SUBTRACT"}, {"retention.ms", "6", "APPEND"}, {"retention.ms", "", "DELETE"},
            {"retention.ms", "soon", "SET"}, {"no.such.setting", "1", "SET"}, {"no.such.setting", "", "DELETE"},
            {"min.insync.replicas", "0", "SET"}, {"retention.ms", null, "SET"},
        };
        for (String[] step : steps) {
            AlterConfigOp change =
                    new AlterConfigOp(new ConfigEntry(step[0], step[1]), AlterConfigOp.OpType.valueOf(step[2]));
            world.tell(String.join(" ", step[2], step[0], String.valueOf(step[1])),
                    () -> World.get(admin.incrementalAlterConfigs(Map.of(topic, List.of(change))).all()));
        }
        sayConfig(world, World.get(admin.describeConfigs(List.of(topic)).all()).get(topic), "cleanup.policy", "retention.ms");
        AlterConfigOp one = new AlterConfigOp(new ConfigEntry("retention.ms", "5"), AlterConfigOp.OpType.SET);
        world.tell("twice the same", () -> World.get(admin.incrementalAlterConfigs(Map.of(topic, List.of(one, one))).all()));
        world.tell("absent", () -> World.get(
                admin.incrementalAlterConfigs(Map.of(topicConfig(world.name("absent")), List.of(one))).all()));
    }

    static void describeLogDirs(World world) throws Exception {
        String topic = world.topic("dirs", 2);
        world.fill(topic, 2, 4);
        Map<String, LogDirDescription> found = World.get(world.admin().describeLogDirs(List.of(1)).allDescriptions()).get(1);
        LogDirDescription directory = found.values().iterator().next();
        world.say("directories %d, error %s, total %s, usable %s", found.size(), directory.error(),
                directory.totalBytes().isPresent(), directory.usableBytes().isPresent());
        for (TopicPartition partition : World.partitions(topic, 2)) {
            var replica = directory.replicaInfos().get(partition);
            world.say("%d size %d lag %d future %s", partition.partition(), replica.size(), replica.offsetLag(),
                    replica.isFuture());
        }
    }

    static void describeReplicaLogDirs(World world) throws Exception {
        String topic = world.topic("replica", 1);
        TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, 1);
        World.until("the replica is in a directory", () -> {
            try {
                return World.get(world.admin().describeReplicaLogDirs(List.of(replica)).all()).get(replica)
                        .getCurrentReplicaLogDir() != null;
            } catch (Exception fault) {
                throw new AssertionError(fault);
            }
        });
        var found = World.get(world.admin().describeReplicaLogDirs(List.of(replica)).all()).get(replica);
        world.say("in a directory %s, lag %d, future %s %d", found.getCurrentReplicaLogDir() != null,
                found.getCurrentReplicaOffsetLag(), found.getFutureReplicaLogDir(), found.getFutureReplicaOffsetLag());
    }

    static void alterReplicaLogDirs(World world) throws Exception {
        String topic = world.topic("moved", 1);
        TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, 1);
        world.tell("to where there is none",
                () -> World.get(world.admin().alterReplicaLogDirs(Map.of(replica, "/no/such/directory")).all()));
    }

    static void createPartitions(World world) throws Exception {
        Admin admin = world.admin();
        String topic = world.topic("grown", 1);
        world.tell("three", () -> World.get(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all()));
        world.tell("two", () -> World.get(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all()));
        world.tell("three again", () -> World.get(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all()));
        world.tell("placed wrongly", () -> World.get(
                admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4, List.of(List.of(9))))).all()));
        world.tell("placed twice", () -> World.get(admin.createPartitions(
                Map.of(topic, NewPartitions.increaseTo(4, List.of(List.of(1), List.of(1))))).all()));
        world.tell("absent", () -> World.get(
                admin.createPartitions(Map.of(world.name("absent"), NewPartitions.increaseTo(4))).all()));
        world.say("%d", World.get(admin.describeTopics(List.of(topic)).allTopicNames()).get(topic).partitions().size());
    }

    static void deleteRecords(World world) throws Exception {
        Admin admin = world.admin();
        String topic = world.topic("trimmed", 1);
        world.fill(topic, 1, 10);
        TopicPartition partition = new TopicPartition(topic, 0);
        for (long before : new long[] {4, 2, 99, -5, -1}) {
            world.say("before %d: %s", before, world.outcome(() -> World.get(
                    admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(before))).lowWatermarks()
                            .get(partition)).lowWatermark()));
        }
    }

    static void listOffsets(World world) throws Exception {
        Admin admin = world.admin();
        String topic = world.topic("offsets", 1);
        KafkaProducer<String, String> producer = world.producer();
        for (long time : new long[] {1000, 3000, 2000}) {
            World.get(producer.send(new org.apache.kafka.clients.producer.ProducerRecord<>(topic, 0, time, "k", "v")));
        }
        TopicPartition partition = new TopicPartition(topic, 0);
        List<OffsetSpec> specs = List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp(),
                OffsetSpec.forTimestamp(1500), OffsetSpec.forTimestamp(9999), OffsetSpec.earliestLocal(),
                OffsetSpec.latestTiered());
        for (OffsetSpec spec : specs) {
            world.say("%s: %s", spec.getClass().getSimpleName(), world.outcome(() -> {
                ListOffsetsResult.ListOffsetsResultInfo found =
                        World.get(admin.listOffsets(Map.of(partition, spec)).partitionResult(partition));
                return found.offset() + " " + found.timestamp() + " " + found.leaderEpoch();
            }));
        }
        world.tell("a partition that is not there", () -> World.get(admin.listOffsets(
                Map.of(new TopicPartition(topic, 7), OffsetSpec.latest()),
                new org.apache.kafka.clients.admin.ListOffsetsOptions().timeoutMs(3000)).all()));
    }

    // --- groups --------------------------------------------------------------------------------

    private static KafkaConsumer<String, String> member(World world, String topic, String group, String protocol,
            String... more) {
        List<String> settings = new ArrayList<>(List.of("group.id", group, "group.protocol", protocol, "client.id", "me"));
        settings.addAll(List.of(more));
        KafkaConsumer<String, String> consumer = world.consumer(settings.toArray(String[]::new));
        consumer.subscribe(List.of(topic));
        World.until("a member", () -> {
            consumer.poll(World.MOMENT);
            return !consumer.assignment().isEmpty();
        });
        return consumer;
    }

    static void describeConsumerGroups(World world, String protocol) throws Exception {
        Admin admin = world.admin();
        String group = world.name("group");
        KafkaConsumer<String, String> consumer = member(world, world.topic("described", 2), group, protocol);
        ConsumerGroupDescription found = World.get(admin.describeConsumerGroups(List.of(group)).all()).get(group);
        world.say("%s %s %s simple %s, coordinator %d", found.groupId(), found.partitionAssignor(), found.state(),
                found.isSimpleConsumerGroup(), found.coordinator().id());
        found.members().forEach(member -> world.say("%s %s %s %s", member.clientId(), member.host(),
                member.groupInstanceId(), World.sorted(member.assignment().topicPartitions())));
        consumer.close();
        World.until("it is empty", () -> {
            try {
                return World.get(admin.describeConsumerGroups(List.of(group)).all()).get(group).members().isEmpty();
            } catch (Exception fault) {
                throw new AssertionError(fault);
            }
        });
        world.say("%s", World.get(admin.describeConsumerGroups(List.of(group)).all()).get(group).state());
        world.tell("absent", () -> world.say("%s",
                World.get(admin.describeConsumerGroups(List.of(world.name("absent"))).all()).values().iterator().next().state()));
    }

    static void listConsumerGroups(World world, String protocol) throws Exception {
        Admin admin = world.admin();
        String group = world.name("listed");
        member(world, world.topic("listed", 1), group, protocol);
        World.get(admin.listConsumerGroups().all()).stream().filter(found -> found.groupId().equals(group)).forEach(
                found -> world.say("%s %s %s", found.groupId(), found.isSimpleConsumerGroup(), found.state()));
        for (String state : List.of("Stable", "Empty")) {
            ListConsumerGroupsOptions options = new ListConsumerGroupsOptions()
                    .inStates(Set.of(org.apache.kafka.common.ConsumerGroupState.parse(state)));
            world.say("%s: %s", state, World.get(admin.listConsumerGroups(options).all()).stream()
                    .anyMatch(found -> found.groupId().equals(group)));
        }
    }

    static void listConsumerGroupOffsets(World world) throws Exception {
        Admin admin = world.admin();
        String topic = world.topic("offsets", 2);
        String group = world.name("offsets");
        TopicPartition partition = new TopicPartition(topic, 0);
        World.get(admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(3, Optional.of(0), "m"))).all());
        world.say("%s", World.get(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()));
        Map<String, ListConsumerGroupOffsetsSpec> specs = new TreeMap<>();
        specs.put(group, new ListConsumerGroupOffsetsSpec().topicPartitions(World.partitions(topic, 2)));
        specs.put(world.name("absent"), new ListConsumerGroupOffsetsSpec());
        var found = World.get(admin.listConsumerGroupOffsets(specs).all());
        world.say("%d %s", found.get(group).size(), found.get(world.name("absent")));
        world.say("%s", found.get(group).get(new TopicPartition(topic, 1)));
    }

    static void alterConsumerGroupOffsets(World world, String protocol) throws Exception {
        Admin admin = world.admin();
        String topic = world.topic("moved", 1);
        String group = world.name("moved");
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(5));
        world.tell("of a group that is not there", () -> World.get(admin.alterConsumerGroupOffsets(group, offsets).all()));
        KafkaConsumer<String, String> consumer = member(world, topic, group, protocol);
        world.tell("of a group with members", () -> World.get(admin.alterConsumerGroupOffsets(group, offsets).all()));
        consumer.close();
        world.tell("of a topic that is not there", () -> World.get(admin.alterConsumerGroupOffsets(group,
                Map.of(new TopicPartition(world.name("absent"), 0), new OffsetAndMetadata(5))).all()));
    }

    static void deleteConsumerGroupOffsets(World world, String protocol) throws Exception {
        Admin admin = world.admin();
        String topic = world.topic("forgotten", 1);
        String group = world.name("forgotten");
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaConsumer<String, String> consumer = member(world, topic, group, protocol);
        consumer.commitSync(Map.of(partition, new OffsetAndMetadata(0)));
        world.tell("while it reads the topic",
                () -> World.get(admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all()));
        consumer.close();
        world.tell("when it is empty", () -> World.get(admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all()));
        world.say("%s", World.get(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()));
        world.tell("of a group that is not there",
                () -> World.get(admin.deleteConsumerGroupOffsets(world.name("absent"), Set.of(partition)).all()));
    }

    static void deleteConsumerGroups(World world, String protocol) throws Exception {
        Admin admin = world.admin();
        String group = world.name("deleted");
        KafkaConsumer<String, String> consumer = member(world, world.topic("deleted", 1), group, protocol);
        world.tell("with members", () -> World.get(admin.deleteConsumerGroups(List.of(group)).all()));
        consumer.close();
        world.tell("empty", () -> World.get(admin.deleteConsumerGroups(List.of(group)).all()));
        world.tell("again", () -> World.get(admin.deleteConsumerGroups(List.of(group)).all()));
    }

    static void removeMembersFromConsumerGroup(World world) throws Exception {
        Admin admin = world.admin();
        String group = world.name("removed");
        member(world, world.topic("removed", 1), group, "classic", "group.instance.id", "one");
        world.tell("one that is not there", () -> World.get(admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("two")))).all()));
        world.tell("by name", () -> World.get(admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("one")))).all()));
        world.say("%s", World.get(admin.describeConsumerGroups(List.of(group)).all()).get(group).state());
        world.tell("all", () -> World.get(
                admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all()));
    }

    // --- partitions, features, the quorum --------------------------------------------------------

    static void electLeaders(World world) throws Exception {
        Admin admin = world.admin();
        TopicPartition partition = new TopicPartition(world.topic("elected", 1), 0);
        for (ElectionType type : ElectionType.values()) {
            Map<TopicPartition, Optional<Throwable>> found =
                    World.get(admin.electLeaders(type, Set.of(partition, new TopicPartition(world.name("absent"), 0))).partitions());
            new TreeMap<>(Map.of("partition", found.get(partition), "absent",
                    found.get(new TopicPartition(world.name("absent"), 0)))).forEach((name, fault) -> world.say("%s %s: %s",
                            type, name, fault.map(Throwable::getClass).map(Class::getSimpleName)));
        }
        world.say("all: %d", World.get(admin.electLeaders(ElectionType.PREFERRED, null).partitions()).size());
    }

    static void alterPartitionReassignments(World world) throws Exception {
        Admin admin = world.admin();
        TopicPartition partition = new TopicPartition(world.topic("reassigned", 1), 0);
        world.tell("where it is", () -> World.get(admin.alterPartitionReassignments(
                Map.of(partition, Optional.of(new NewPartitionReassignment(List.of(1))))).all()));
        world.tell("where nobody is", () -> World.get(admin.alterPartitionReassignments(
                Map.of(partition, Optional.of(new NewPartitionReassignment(List.of(9))))).all()));
        world.tell("nothing to cancel",
                () -> World.get(admin.alterPartitionReassignments(Map.of(partition, Optional.empty())).all()));
    }

    static void listPartitionReassignments(World world) throws Exception {
        world.say("%s", world.outcome(() -> World.get(world.admin().listPartitionReassignments().reassignments())));
    }

    static void describeFeatures(World world) throws Exception {
        var found = World.get(world.admin().describeFeatures().featureMetadata());
        for (String name : List.of("metadata.version", "group.version", "transaction.version")) {
            FinalizedVersionRange range = found.finalizedFeatures().get(name);
            world.say("%s %s", name, range == null ? null : range.minVersionLevel() + " " + range.maxVersionLevel());
        }
        world.say("an epoch: %s", found.finalizedFeaturesEpoch().isPresent());
    }

    static void updateFeatures(World world) throws Exception {
        Admin admin = world.admin();
        for (int level : new int[] {2, 9, 1}) {
            world.tell("transaction.version " + level, () -> World.get(admin.updateFeatures(
                    Map.of("transaction.version", new FeatureUpdate((short) level, FeatureUpdate.UpgradeType.UPGRADE)),
                    new UpdateFeaturesOptions().validateOnly(true)).all()));
        }
        world.tell("no.such.feature", () -> World.get(admin.updateFeatures(
                Map.of("no.such.feature", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)),
                new UpdateFeaturesOptions()).all()));
    }

    static void describeMetadataQuorum(World world) throws Exception {
        var quorum = World.get(world.admin().describeMetadataQuorum().quorumInfo());
        world.say("leader %s, voters %d, observers %d, epoch %s", quorum.leaderId() > 0, quorum.voters().size(),
                quorum.observers().size(), quorum.leaderEpoch() > 0);
        world.say("the voter has all: %s", quorum.voters().get(0).logEndOffset() >= quorum.highWatermark());
    }

    static void addRaftVoter(World world) throws Exception {
        world.tell("one that is there", () -> World.get(world.admin().addRaftVoter(1, Uuid.randomUuid(),
                Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1))).all()));
    }

    static void removeRaftVoter(World world) throws Exception {
        world.tell("one that is not there",
                () -> World.get(world.admin().removeRaftVoter(99, Uuid.randomUuid()).all()));
    }

    static void unregisterBroker(World world) throws Exception {
        world.tell("one that is not there", () -> World.get(world.admin().unregisterBroker(7).all()));
    }

    // --- transactions --------------------------------------------------------------------------

    private static KafkaProducer<String, String> open(World world, String id, String topic) throws Exception {
        KafkaProducer<String, String> producer = world.producer("transactional.id", id);
        producer.initTransactions();
        producer.beginTransaction();
        world.send(producer, topic, 0, "open");
        return producer;
    }

    static void describeTransactions(World world) throws Exception {
        String topic = world.topic("open", 1);
        KafkaProducer<String, String> producer = open(world, world.name("open"), topic);
        TransactionDescription found =
                World.get(world.admin().describeTransactions(List.of(world.name("open"))).all()).get(world.name("open"));
        world.say("%s %d %d %s %s", found.state(), found.producerEpoch(), found.transactionTimeoutMs(),
                found.topicPartitions(), found.transactionStartTimeMs().isPresent());
        producer.abortTransaction();
        world.tell("absent", () -> World.get(world.admin().describeTransactions(List.of(world.name("absent"))).all()));
    }

    static void listTransactions(World world) throws Exception {
        String topic = world.topic("open", 1);
        KafkaProducer<String, String> producer = open(world, world.name("open"), topic);
        World.get(world.admin().listTransactions().all()).stream()
                .filter(found -> found.transactionalId().equals(world.name("open")))
                .forEach(found -> world.say("%s", found.state()));
        producer.commitTransaction();
    }

    static void describeProducers(World world) throws Exception {
        String topic = world.topic("open", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer = open(world, world.name("open"), topic);
        DescribeProducersResult.PartitionProducerState found =
                World.get(world.admin().describeProducers(List.of(partition)).all()).get(partition);
        for (ProducerState state : found.activeProducers()) {
            world.say("epoch %d sequence %d start %s coordinator %s", state.producerEpoch(), state.lastSequence(),
                    state.currentTransactionStartOffset(), state.coordinatorEpoch());
        }
        producer.commitTransaction();
    }

    static void abortTransaction(World world) throws Exception {
        String topic = world.topic("hanging", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer = open(world, world.name("hanging"), topic);
        ProducerState state = World.get(world.admin().describeProducers(List.of(partition)).all()).get(partition)
                .activeProducers().get(0);
        world.tell("an older epoch of its coordinator", () -> World.get(world.admin().abortTransaction(
                new AbortTransactionSpec(partition, state.producerId(), (short) 99, -5)).all()));
        world.tell("aborted", () -> World.get(world.admin().abortTransaction(new AbortTransactionSpec(
                partition, state.producerId(), (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))).all()));
        world.say("%s", world.values(topic, "read_committed"));
        world.say("%d", World.get(world.admin().listOffsets(Map.of(partition, OffsetSpec.latest()))
                .partitionResult(partition)).offset());
        world.tell("then the producer commits", producer::commitTransaction);
    }

    static void fenceProducers(World world) throws Exception {
        String topic = world.topic("fenced", 1);
        KafkaProducer<String, String> producer = open(world, world.name("fenced"), topic);
        var fenced = world.admin().fenceProducers(List.of(world.name("fenced"), world.name("never-seen")));
        world.tell("fenced", () -> World.get(fenced.all()));
        world.say("%d %d", World.get(fenced.epochId(world.name("fenced"))), World.get(fenced.epochId(world.name("never-seen"))));
        world.tell("it commits", producer::commitTransaction);
        world.say("%s", world.values(topic, "read_committed"));
    }

    // --- quotas, credentials, tokens, metrics ----------------------------------------------------

    static void alterClientQuotas(World world) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, world.name("app")));
        for (Double rate : new Double[] {1024.0, -1.0, null}) {
            world.tell("producer_byte_rate " + rate, () -> World.get(world.admin().alterClientQuotas(List.of(
                    new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", rate))))).all()));
        }
    }

    static void describeClientQuotas(World world) throws Exception {
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(
                List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, world.name("none"))));
        world.say("%s", world.outcome(() -> World.get(world.admin().describeClientQuotas(filter).entities())));
    }

    static void alterUserScramCredentials(World world) throws Exception {
        world.tell("put", () -> World.get(world.admin().alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
                world.name("alice"), new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).all()));
        world.tell("removed", () -> World.get(world.admin().alterUserScramCredentials(List.of(
                new UserScramCredentialDeletion(world.name("alice"), ScramMechanism.SCRAM_SHA_256))).all()));
        world.tell("removed again", () -> World.get(world.admin().alterUserScramCredentials(List.of(
                new UserScramCredentialDeletion(world.name("alice"), ScramMechanism.SCRAM_SHA_256))).all()));
    }

    static void describeUserScramCredentials(World world) throws Exception {
        world.tell("of nobody", () -> World.get(world.admin().describeUserScramCredentials(List.of(world.name("bob"))).all()));
    }

    static void createDelegationToken(World world) throws Exception {
        world.tell("unauthenticated", () -> World.get(world.admin().createDelegationToken().delegationToken()));
    }

    static void renewDelegationToken(World world) throws Exception {
        world.tell("unauthenticated",
                () -> World.get(world.admin().renewDelegationToken(new byte[] {1}).expiryTimestamp()));
    }

    static void expireDelegationToken(World world) throws Exception {
        world.tell("unauthenticated",
                () -> World.get(world.admin().expireDelegationToken(new byte[] {1}).expiryTimestamp()));
    }

    static void describeDelegationToken(World world) throws Exception {
        world.tell("unauthenticated", () -> World.get(world.admin().describeDelegationToken().delegationTokens()));
    }

    static void listClientMetricsResources(World world) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, world.name("watch"));
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry("interval.ms", "60000"), AlterConfigOp.OpType.SET);
        World.get(world.admin().incrementalAlterConfigs(Map.of(resource, List.of(change))).all());
        Collection<?> found = World.get(world.admin().listClientMetricsResources().all());
        world.say("%s", found.stream().map(String::valueOf).filter(text -> text.contains(world.name("watch"))).toList());
        AlterConfigOp gone = new AlterConfigOp(new ConfigEntry("interval.ms", ""), AlterConfigOp.OpType.DELETE);
        World.get(world.admin().incrementalAlterConfigs(Map.of(resource, List.of(gone))).all());
    }

    static void closing(World world) throws Exception {
        Admin admin = Admin.create(world.settings());
        World.get(admin.listTopics().names());
        admin.close(Duration.ofSeconds(2));
        world.tell("after its end", () -> World.get(admin.listTopics().names()));
        world.say("%s", Collections.emptyList());
    }
}
