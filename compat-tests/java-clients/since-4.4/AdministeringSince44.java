import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ClassicGroupDescription;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The methods of the admin client that 3.9 has not. */
final class AdministeringSince44 {
    private AdministeringSince44() {
    }

    private static KafkaConsumer<String, String> member(World world, String topic, String group, String protocol) {
        KafkaConsumer<String, String> consumer = world.consumer("group.id", group, "group.protocol", protocol);
        consumer.subscribe(List.of(topic));
        World.until("a member", () -> {
            consumer.poll(World.MOMENT);
            return !consumer.assignment().isEmpty();
        });
        return consumer;
    }

    static void listGroups(World world, String protocol) throws Exception {
        String group = world.name("listed");
        member(world, world.topic("listed", 1), group, protocol);
        for (GroupType type : List.of(GroupType.CLASSIC, GroupType.CONSUMER)) {
            World.get(world.admin().listGroups(new ListGroupsOptions().withTypes(Set.of(type))).all()).stream()
                    .filter(found -> found.groupId().equals(group)).forEach(found -> world.say("%s %s %s %s",
                            found.groupId(), found.type(), found.protocol(), found.groupState()));
        }
    }

    static void describeClassicGroups(World world, String protocol) throws Exception {
        String group = world.name("classic");
        member(world, world.topic("classic", 1), group, protocol);
        world.say("%s", world.outcome(() -> {
            ClassicGroupDescription found =
                    World.get(world.admin().describeClassicGroups(List.of(group)).all()).get(group);
            return found.protocol() + " " + found.protocolData() + " " + found.state() + " " + found.members().size();
        }));
        world.tell("absent", () -> World.get(world.admin().describeClassicGroups(List.of(world.name("absent"))).all()));
    }

    static void listConfigResources(World world) throws Exception {
        String topic = world.topic("resource", 1);
        world.say("%s", World.get(world.admin().listConfigResources(
                Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions()).all())
                .contains(new ConfigResource(ConfigResource.Type.TOPIC, topic)));
        world.say("%s", World.get(world.admin().listConfigResources(
                Set.of(ConfigResource.Type.BROKER, ConfigResource.Type.BROKER_LOGGER), new ListConfigResourcesOptions()).all()).size());
        world.say("%s", World.get(world.admin().listConfigResources().all())
                .contains(new ConfigResource(ConfigResource.Type.TOPIC, topic)));
    }

    static void forceTerminateTransaction(World world) throws Exception {
        String topic = world.topic("forced", 1);
        KafkaProducer<String, String> producer = world.producer("transactional.id", world.name("forced"));
        producer.initTransactions();
        producer.beginTransaction();
        world.send(producer, topic, 0, "open");
        world.tell("forced", () -> World.get(world.admin().forceTerminateTransaction(world.name("forced")).result()));
        world.tell("it commits", producer::commitTransaction);
        world.say("%s", world.values(topic, "read_committed"));
        world.tell("absent", () -> World.get(world.admin().forceTerminateTransaction(world.name("absent")).result()));
    }

    static void unregisterController(World world) throws Exception {
        world.tell("one that is not there", () -> World.get(world.admin().unregisterController(99).all()));
    }

    // --- share groups --------------------------------------------------------------------------

    static void describeShareGroups(World world) throws Exception {
        world.tell("absent", () -> World.get(world.admin().describeShareGroups(List.of(world.name("absent"))).all()));
    }

    static void listShareGroupOffsets(World world) throws Exception {
        world.tell("absent", () -> World.get(world.admin().listShareGroupOffsets(
                Map.of(world.name("absent"), new ListShareGroupOffsetsSpec())).all()));
    }

    static void alterShareGroupOffsets(World world) throws Exception {
        TopicPartition partition = new TopicPartition(world.topic("shared", 1), 0);
        world.tell("of a new group",
                () -> World.get(world.admin().alterShareGroupOffsets(world.name("new"), Map.of(partition, 0L)).all()));
    }

    static void deleteShareGroupOffsets(World world) throws Exception {
        world.tell("absent", () -> World.get(
                world.admin().deleteShareGroupOffsets(world.name("absent"), Set.of(world.topic("shared", 1))).all()));
    }

    static void deleteShareGroups(World world) throws Exception {
        world.tell("absent", () -> World.get(world.admin().deleteShareGroups(List.of(world.name("absent"))).all()));
    }

    // --- streams groups ------------------------------------------------------------------------

    static void describeStreamsGroups(World world) throws Exception {
        world.tell("absent", () -> World.get(world.admin().describeStreamsGroups(List.of(world.name("absent"))).all()));
    }

    static void listStreamsGroupOffsets(World world) throws Exception {
        world.say("%s", world.outcome(() -> World.get(world.admin().listStreamsGroupOffsets(
                Map.of(world.name("absent"), new ListStreamsGroupOffsetsSpec())).all())));
    }

    static void alterStreamsGroupOffsets(World world) throws Exception {
        Admin admin = world.admin();
        TopicPartition partition = new TopicPartition(world.topic("streamed", 1), 0);
        world.tell("of a new group", () -> World.get(
                admin.alterStreamsGroupOffsets(world.name("new"), Map.of(partition, new OffsetAndMetadata(0))).all()));
    }

    static void deleteStreamsGroupOffsets(World world) throws Exception {
        TopicPartition partition = new TopicPartition(world.topic("streamed", 1), 0);
        world.tell("absent", () -> World.get(
                world.admin().deleteStreamsGroupOffsets(world.name("absent"), Set.of(partition)).all()));
    }

    static void deleteStreamsGroups(World world) throws Exception {
        world.tell("absent", () -> World.get(world.admin().deleteStreamsGroups(List.of(world.name("absent"))).all()));
    }
}
