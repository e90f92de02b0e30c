import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/** What people do with a consumer, by both group protocols. */
final class Consuming {
    private Consuming() {
    }

    /** A member that polls in a thread of its own until told to end. */
    private static final class Member implements AutoCloseable {
        final KafkaConsumer<String, String> consumer;
        final ConcurrentLinkedQueue<String> values = new ConcurrentLinkedQueue<>();
        volatile Set<TopicPartition> assigned = Set.of();
        private final AtomicBoolean ending = new AtomicBoolean();
        private final Thread thread;

        Member(KafkaConsumer<String, String> consumer, Collection<String> topics) {
            this.consumer = consumer;
            consumer.subscribe(topics);
            thread = new Thread(() -> {
                while (!ending.get()) {
                    for (ConsumerRecord<String, String> record : consumer.poll(World.MOMENT)) {
                        values.add(record.value());
                    }
                    assigned = Set.copyOf(consumer.assignment());
                    if (!values.isEmpty()) {
                        consumer.commitAsync();
                    }
                }
                consumer.close();
            });
            thread.start();
        }

        @Override
        public void close() throws Exception {
            ending.set(true);
            thread.join();
        }
    }

    static void aGroupOfThreeSharesTheWork(World world, String protocol) throws Exception {
        String topic = world.topic("shared", 6);
        String[] settings = {"group.id", world.name("three"), "group.protocol", protocol};
        Member one = world.keep(new Member(world.consumer(settings), List.of(topic)));
        World.until("one has all", () -> one.assigned.size() == 6);
        Member two = world.keep(new Member(world.consumer(settings), List.of(topic)));
        Member three = world.keep(new Member(world.consumer(settings), List.of(topic)));
        World.until("each has two",
                () -> one.assigned.size() == 2 && two.assigned.size() == 2 && three.assigned.size() == 2);
        world.fill(topic, 6, 600);
        World.until("all is read",
                () -> one.values.size() + two.values.size() + three.values.size() >= 600);
        TreeSet<String> all = new TreeSet<>(one.values);
        all.addAll(two.values);
        all.addAll(three.values);
        world.say("read %d, different %d, by each %d %d %d", one.values.size() + two.values.size() + three.values.size(),
                all.size(), one.values.size(), two.values.size(), three.values.size());
        two.close();
        World.until("two have all", () -> one.assigned.size() == 3 && three.assigned.size() == 3);
        three.close();
        World.until("one has all again", () -> one.assigned.size() == 6);
        world.say("members left, one had all again");
    }

    static void whatIsCommittedIsWhereTheNextBegins(World world, String protocol) throws Exception {
        String topic = world.topic("committed", 1);
        world.fill(topic, 1, 10);
        TopicPartition partition = new TopicPartition(topic, 0);
        String[] settings = {"group.id", world.name("next"), "group.protocol", protocol, "max.poll.records", "4"};
        KafkaConsumer<String, String> first = world.consumer(settings);
        first.subscribe(List.of(topic));
        world.read(first, 4);
        world.say("nothing committed: %s", first.committed(Set.of(partition)));
        first.commitSync(Map.of(partition, new OffsetAndMetadata(4, "a note")));
        OffsetAndMetadata committed = first.committed(Set.of(partition)).get(partition);
        world.say("committed: %d %s", committed.offset(), committed.metadata());
        world.tell("a note that is too long", () -> first.commitSync(
                Map.of(partition, new OffsetAndMetadata(4, "x".repeat(5000)))));
        world.tell("a topic that is not there", () -> first.commitSync(
                Map.of(new TopicPartition(world.name("absent"), 0), new OffsetAndMetadata(4)), Duration.ofSeconds(2)));
        world.tell("a negative offset", () -> first.commitSync(Map.of(partition, new OffsetAndMetadata(-4))));
        first.close();
        KafkaConsumer<String, String> next = world.consumer(settings);
        next.subscribe(List.of(topic));
        world.say("the next begins at %d", world.read(next, 1).get(0).offset());
        boolean[] called = {false};
        next.commitAsync((offsets, fault) -> {
            world.say("asynchronously: %d, %s", offsets.get(partition).offset(), fault);
            called[0] = true;
        });
        World.until("the answer", () -> {
            next.poll(World.MOMENT);
            return called[0];
        });
    }

    static void autoCommitHappens(World world, String protocol) throws Exception {
        String topic = world.topic("auto", 1);
        world.fill(topic, 1, 5);
        String[] settings = {"group.id", world.name("auto"), "group.protocol", protocol, "enable.auto.commit", "true",
            "auto.commit.interval.ms", "100"};
        KafkaConsumer<String, String> consumer = world.consumer(settings);
        consumer.subscribe(List.of(topic));
        world.read(consumer, 5);
        TopicPartition partition = new TopicPartition(topic, 0);
        World.until("it is committed", () -> {
            consumer.poll(World.MOMENT);
            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
            return committed != null && committed.offset() == 5;
        });
        world.say("committed");
    }

    static void positionsAreSought(World world, String protocol) throws Exception {
        String topic = world.topic("sought", 2);
        world.fill(topic, 2, 20);
        KafkaConsumer<String, String> consumer = world.consumer("group.protocol", protocol, "group.id", world.name("s"));
        List<TopicPartition> partitions = World.partitions(topic, 2);
        consumer.assign(partitions);
        consumer.seekToEnd(partitions);
        world.say("end: %d %d", consumer.position(partitions.get(0)), consumer.position(partitions.get(1)));
        consumer.seekToBeginning(partitions);
        world.say("beginning: %d %d", consumer.position(partitions.get(0)), consumer.position(partitions.get(1)));
        consumer.seek(partitions.get(0), 7);
        consumer.pause(List.of(partitions.get(1)));
        world.say("from 7: %s, paused %d", world.read(consumer, 3).stream().map(ConsumerRecord::value).toList(),
                consumer.paused().size());
        consumer.resume(consumer.paused());
        world.say("resumed: %d", world.read(consumer, 10).size());
        world.say("lag: %s", consumer.currentLag(partitions.get(0)));
        world.say("%s", new TreeMap<>(byNumber(consumer.beginningOffsets(partitions))));
        world.say("%s", new TreeMap<>(byNumber(consumer.endOffsets(partitions))));
        world.say("partitions: %d, topics: %s", consumer.partitionsFor(topic).size(),
                consumer.listTopics().containsKey(topic));
        KafkaConsumer<String, String> careful = world.consumer("group.protocol", protocol, "group.id", world.name("c"),
                "allow.auto.create.topics", "false");
        world.say("partitions of a topic that is not there: %s",
                world.outcome(() -> careful.partitionsFor(world.name("absent"), Duration.ofSeconds(3))));
    }

    private static Map<Integer, Object> byNumber(Map<TopicPartition, ?> values) {
        Map<Integer, Object> found = new TreeMap<>();
        values.forEach((partition, value) -> found.put(partition.partition(), value));
        return found;
    }

    static void timesAreLookedUp(World world, String protocol) throws Exception {
        String topic = world.topic("times", 1);
        KafkaProducer<String, String> producer = world.producer();
        for (int number = 0; number < 10; number++) {
            World.get(producer.send(new ProducerRecord<>(topic, 0, 1_000_000_000_000L + number * 1000, "k", "v" + number)));
        }
        KafkaConsumer<String, String> consumer = world.consumer("group.protocol", protocol, "group.id", world.name("t"));
        TopicPartition partition = new TopicPartition(topic, 0);
        for (long time : new long[] {0, 1_000_000_003_000L, 1_000_000_003_001L, 1_000_000_009_000L, 2_000_000_000_000L}) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
            world.say("from %d: %s", time - 1_000_000_000_000L,
                    found == null ? null : found.offset() + " " + (found.timestamp() - 1_000_000_000_000L));
        }
    }

    static void whereNothingIsCommittedTheSettingDecides(World world, String protocol) throws Exception {
        String topic = world.topic("reset", 1);
        world.fill(topic, 1, 3);
        for (String reset : List.of("earliest", "none")) {
            KafkaConsumer<String, String> consumer = world.consumer("group.id", world.name("reset-" + reset),
                    "group.protocol", protocol, "auto.offset.reset", reset);
            consumer.subscribe(List.of(topic));
            world.say("%s: %s", reset, world.outcome(() -> world.read(consumer, 3).size()));
        }
        KafkaConsumer<String, String> latest = world.consumer("group.id", world.name("reset-latest"),
                "group.protocol", protocol, "auto.offset.reset", "latest");
        TopicPartition partition = new TopicPartition(topic, 0);
        latest.assign(List.of(partition));
        world.say("latest: %d", latest.position(partition));
        KafkaConsumer<String, String> beyond = world.consumer("group.protocol", protocol, "group.id", world.name("b"),
                "auto.offset.reset", "none");
        beyond.assign(List.of(partition));
        beyond.seek(partition, 99);
        world.say("beyond the end: %s", world.outcome(() -> world.read(beyond, 1)));
    }

    static void aPatternFindsTopicsThatComeLater(World world, String protocol) throws Exception {
        world.fill(world.topic("pattern-one", 1), 1, 2);
        KafkaConsumer<String, String> consumer = world.consumer("group.id", world.name("pattern"), "group.protocol",
                protocol, "metadata.max.age.ms", "300");
        String ending = world.name("");
        consumer.subscribe(Pattern.compile("pattern-.*" + ending));
        world.read(consumer, 2);
        consumer.commitSync();
        world.fill(world.topic("pattern-two", 1), 1, 3);
        world.topic("other-three", 1);
        world.say("from the second: %d", world.read(consumer, 3).size());
        world.say("%s", World.sorted(consumer.subscription()));
    }

    static void listenersHearOfEveryChange(World world, String protocol) throws Exception {
        String topic = world.topic("heard", 2);
        KafkaConsumer<String, String> consumer =
                world.consumer("group.id", world.name("heard"), "group.protocol", protocol);
        List<String> heard = new ArrayList<>();
        consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                heard.add("revoked " + partitions.size());
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                heard.add("assigned " + partitions.size());
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                heard.add("lost " + partitions.size());
            }
        });
        World.until("all is assigned", () -> {
            consumer.poll(World.MOMENT);
            return consumer.assignment().size() == 2;
        });
        consumer.unsubscribe();
        heard.remove("assigned 0"); // a member may learn that it is one before it learns of its part
        world.say("%s", heard);
        world.say("generation known: %s, member known: %s", consumer.groupMetadata().generationId() >= 0,
                !consumer.groupMetadata().memberId().isEmpty());
    }

    static void aStaticMemberComesBack(World world, String protocol) throws Exception {
        String topic = world.topic("static", 2);
        world.fill(topic, 2, 4);
        String[] settings = {"group.id", world.name("static"), "group.protocol", protocol, "group.instance.id", "one"};
        KafkaConsumer<String, String> first = world.consumer(settings);
        first.subscribe(List.of(topic));
        world.read(first, 4);
        first.commitSync();
        KafkaConsumer<String, String> second = world.consumer(settings);
        second.subscribe(List.of(topic));
        String newcomer = world.outcome(() -> {
            World.until("the newcomer is assigned", () -> {
                second.poll(World.MOMENT);
                return second.assignment().size() == 2;
            });
            return "assigned";
        });
        world.say("a second of the same name: %s", newcomer);
        world.say("the first: %s", world.outcome(() -> {
            for (int times = 0; times < 40; times++) {
                first.poll(World.MOMENT);
            }
            first.commitSync();
            return "goes on";
        }));
    }

    static void aMemberThatDoesNotPollIsLost(World world, String protocol) throws Exception {
        String topic = world.topic("idle", 2);
        world.fill(topic, 2, 4);
        String[] settings = {"group.id", world.name("idle"), "group.protocol", protocol, "max.poll.interval.ms", "2000"};
        KafkaConsumer<String, String> idle = world.consumer(settings);
        idle.subscribe(List.of(topic));
        world.read(idle, 4);
        Member other = world.keep(new Member(world.consumer(settings), List.of(topic)));
        World.until("the other has all", () -> other.assigned.size() == 2);
        world.say("the other has all; it committed: %s", world.outcome(() -> {
            idle.commitSync();
            return "done";
        }));
    }

    static void aCommitOfALeaverIsRefused(World world, String protocol) throws Exception {
        String topic = world.topic("stale", 1);
        KafkaConsumer<String, String> member =
                world.consumer("group.id", world.name("stale"), "group.protocol", protocol);
        member.subscribe(List.of(topic));
        World.until("it is a member", () -> {
            member.poll(World.MOMENT);
            return !member.assignment().isEmpty();
        });
        KafkaConsumer<String, String> stranger =
                world.consumer("group.id", world.name("stale"), "group.protocol", protocol);
        TopicPartition partition = new TopicPartition(topic, 0);
        stranger.assign(List.of(partition));
        world.tell("who is no member, while there are members",
                () -> stranger.commitSync(Map.of(partition, new OffsetAndMetadata(0))));
        member.close();
        world.tell("when the group is empty", () -> stranger.commitSync(Map.of(partition, new OffsetAndMetadata(0))));
    }

    static void smallFetchesGetThrough(World world, String protocol) throws Exception {
        String topic = world.topic("small", 2);
        KafkaProducer<String, String> producer = world.producer();
        for (int number = 0; number < 6; number++) {
            world.send(producer, topic, number % 2, number + "x".repeat(5000));
        }
        KafkaConsumer<String, String> consumer = world.consumer("group.protocol", protocol, "group.id", world.name("f"),
                "max.partition.fetch.bytes", "100", "fetch.max.bytes", "100", "fetch.min.bytes", "50000",
                "fetch.max.wait.ms", "200");
        consumer.assign(World.partitions(topic, 2));
        world.say("%d", world.read(consumer, 6).size());
    }

    static void aWakeupEndsAPoll(World world, String protocol) throws Exception {
        String topic = world.topic("woken", 1);
        KafkaConsumer<String, String> consumer =
                world.consumer("group.id", world.name("woken"), "group.protocol", protocol);
        consumer.subscribe(List.of(topic));
        consumer.poll(World.MOMENT);
        Thread waker = new Thread(consumer::wakeup);
        waker.start();
        world.tell("woken", () -> consumer.poll(Duration.ofSeconds(20)));
        waker.join();
        consumer.enforceRebalance("a reason");
        World.until("it is assigned", () -> {
            try {
                consumer.poll(World.MOMENT);
            } catch (WakeupException late) {
                return false;
            }
            return !consumer.assignment().isEmpty();
        });
        world.say("goes on");
    }

    static void offsetsOutliveDeletedRecords(World world, String protocol) throws Exception {
        String topic = world.topic("trimmed", 1);
        world.fill(topic, 1, 10);
        TopicPartition partition = new TopicPartition(topic, 0);
        World.get(world.admin().deleteRecords(Map.of(partition,
                org.apache.kafka.clients.admin.RecordsToDelete.beforeOffset(6))).all());
        KafkaConsumer<String, String> consumer = world.consumer("group.protocol", protocol, "group.id", world.name("d"));
        consumer.assign(List.of(partition));
        consumer.seek(partition, 2);
        world.say("from %d", world.read(consumer, 4).get(0).offset());
    }

    static void partitionsThatAreAddedAreRead(World world, String protocol) throws Exception {
        String topic = world.topic("grown", 1);
        KafkaConsumer<String, String> consumer = world.consumer("group.id", world.name("grown"), "group.protocol",
                protocol, "metadata.max.age.ms", "300");
        consumer.subscribe(List.of(topic));
        World.until("one", () -> {
            consumer.poll(World.MOMENT);
            return consumer.assignment().size() == 1;
        });
        World.get(world.admin().createPartitions(
                Map.of(topic, org.apache.kafka.clients.admin.NewPartitions.increaseTo(3))).all());
        World.until("three", () -> {
            consumer.poll(World.MOMENT);
            return consumer.assignment().size() == 3;
        });
        world.fill(topic, 3, 30);
        world.say("%d", world.read(consumer, 30).size());
    }

    static void cooperativeMembersKeepWhatTheyHave(World world) throws Exception {
        String topic = world.topic("kept", 4);
        String[] settings = {"group.id", world.name("kept"), "partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"};
        Member one = world.keep(new Member(world.consumer(settings), List.of(topic)));
        World.until("one has all", () -> one.assigned.size() == 4);
        Set<TopicPartition> before = one.assigned;
        Member two = world.keep(new Member(world.consumer(settings), List.of(topic)));
        World.until("two each", () -> one.assigned.size() == 2 && two.assigned.size() == 2);
        world.say("kept its own: %s", before.containsAll(one.assigned));
    }

    static void everyAssignorWorks(World world) throws Exception {
        for (String assignor : List.of("Range", "RoundRobin", "Sticky", "CooperativeSticky")) {
            String topic = world.topic("by-" + assignor, 2);
            world.fill(topic, 2, 4);
            KafkaConsumer<String, String> consumer = world.consumer("group.id", world.name(assignor),
                    "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor + "Assignor");
            consumer.subscribe(List.of(topic));
            world.say("%s: %d", assignor, world.read(consumer, 4).size());
            consumer.close();
        }
        for (String assignor : List.of("range", "uniform")) {
            String topic = world.topic("of-" + assignor, 2);
            world.fill(topic, 2, 4);
            KafkaConsumer<String, String> consumer = world.consumer("group.id", world.name(assignor),
                    "group.protocol", "consumer", "group.remote.assignor", assignor);
            consumer.subscribe(List.of(topic));
            world.say("%s: %d", assignor, world.read(consumer, 4).size());
            consumer.close();
        }
        KafkaConsumer<String, String> consumer = world.consumer("group.id", world.name("bogus"), "group.protocol",
                "consumer", "group.remote.assignor", "bogus");
        consumer.subscribe(List.of(world.topic("bogus", 1)));
        world.say("bogus: %s", world.outcome(() -> {
            World.until("a refusal", () -> {
                consumer.poll(World.MOMENT);
                return false;
            });
            return "accepted";
        }));
    }

    static void aGroupMovesFromTheClassicProtocolToTheNew(World world) throws Exception {
        String topic = world.topic("moved", 4);
        String group = world.name("moved");
        Member old = world.keep(new Member(world.consumer("group.id", group), List.of(topic)));
        World.until("the classic member has all", () -> old.assigned.size() == 4);
        Member young = world.keep(new Member(
                world.consumer("group.id", group, "group.protocol", "consumer"), List.of(topic)));
        World.until("both have two", () -> old.assigned.size() == 2 && young.assigned.size() == 2);
        world.fill(topic, 4, 40);
        World.until("all is read", () -> old.values.size() + young.values.size() == 40);
        old.close();
        World.until("the new member has all", () -> young.assigned.size() == 4);
        Member again = world.keep(new Member(world.consumer("group.id", group), List.of(topic)));
        World.until("and back", () -> again.assigned.size() == 2 && young.assigned.size() == 2);
        young.close();
        World.until("the classic member has all again", () -> again.assigned.size() == 4);
        world.say("moved and moved back");
    }
}
