import java.util.List;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;

/** What a consumer of 4.4 can do that one of 3.9 cannot. */
final class ConsumingSince44 {
    private ConsumingSince44() {
    }

    static void theBrokerMatchesAPattern(World world) throws Exception {
        String ending = world.name("");
        world.fill(world.topic("re2-one", 1), 1, 2);
        world.topic("other", 1);
        KafkaConsumer<String, String> consumer =
                world.consumer("group.id", world.name("re2"), "group.protocol", "consumer", "metadata.max.age.ms", "300");
        consumer.subscribe(new SubscriptionPattern("re2-.*" + ending));
        world.read(consumer, 2);
        world.fill(world.topic("re2-two", 1), 1, 3);
        world.say("from the second: %d", world.read(consumer, 3).size());
        world.say("%s", World.sorted(consumer.assignment()));
        KafkaConsumer<String, String> wrong = world.consumer("group.id", world.name("wrong"), "group.protocol", "consumer");
        wrong.subscribe(new SubscriptionPattern("(["));
        world.tell("one that is none", () -> World.until("a refusal", () -> {
            wrong.poll(World.MOMENT);
            return false;
        }));
    }

    static void aDurationDecidesWhereToBegin(World world, String protocol) throws Exception {
        String topic = world.topic("duration", 1);
        world.fill(topic, 1, 3);
        KafkaConsumer<String, String> consumer = world.consumer("group.id", world.name("duration"), "group.protocol",
                protocol, "auto.offset.reset", "by_duration:PT1H");
        TopicPartition partition = new TopicPartition(topic, 0);
        consumer.assign(List.of(partition));
        world.say("%d", consumer.position(partition));
    }

    static void aMemberMayStayWhenItCloses(World world, String protocol) throws Exception {
        String topic = world.topic("stays", 1);
        String group = world.name("stays");
        KafkaConsumer<String, String> consumer = world.consumer("group.id", group, "group.protocol", protocol);
        consumer.subscribe(List.of(topic));
        World.until("a member", () -> {
            consumer.poll(World.MOMENT);
            return !consumer.assignment().isEmpty();
        });
        consumer.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP));
        world.say("members: %d", World.get(world.admin().describeConsumerGroups(List.of(group)).all()).get(group)
                .members().size());
    }
}
