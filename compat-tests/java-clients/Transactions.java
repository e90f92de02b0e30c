import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Transactions, as a producer and as a reader of committed records see them. */
final class Transactions {
    private Transactions() {
    }

    private static KafkaProducer<String, String> ready(World world, String id, String... more) {
        List<String> settings = new ArrayList<>(List.of("transactional.id", world.name(id)));
        settings.addAll(List.of(more));
        KafkaProducer<String, String> producer = world.producer(settings.toArray(String[]::new));
        producer.initTransactions();
        return producer;
    }

    static void whatIsCommittedIsReadAndWhatIsAbortedIsNot(World world) throws Exception {
        String topic = world.topic("mixed", 2);
        KafkaProducer<String, String> producer = ready(world, "mixed");
        for (String ending : List.of("commit", "abort", "commit", "abort")) {
            producer.beginTransaction();
            for (int number = 0; number < 4; number++) {
                world.send(producer, topic, number % 2, ending + number);
            }
            if (ending.equals("commit")) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
        world.say("committed: %s", world.values(topic, "read_committed"));
        world.say("everything: %s", world.values(topic, "read_uncommitted"));
        KafkaConsumer<String, String> consumer = world.consumer();
        world.say("ends: %s", World.sorted(consumer.endOffsets(World.partitions(topic, 2)).values()));
    }

    static void whatIsOpenHidesWhatComesAfter(World world) throws Exception {
        String topic = world.topic("open", 1);
        KafkaProducer<String, String> open = ready(world, "open");
        KafkaProducer<String, String> plain = world.producer();
        world.send(plain, topic, 0, "before");
        open.beginTransaction();
        world.send(open, topic, 0, "inside");
        world.send(plain, topic, 0, "after");
        world.say("while open: %s", world.values(topic, "read_committed"));
        world.say("uncommitted: %s", world.values(topic, "read_uncommitted"));
        open.commitTransaction();
        world.say("then: %s", world.values(topic, "read_committed"));
    }

    static void theSecondOfAnIdFencesTheFirst(World world) throws Exception {
        String topic = world.topic("fenced", 1);
        KafkaProducer<String, String> first = ready(world, "fenced");
        first.beginTransaction();
        world.send(first, topic, 0, "lost");
        KafkaProducer<String, String> second = ready(world, "fenced");
        world.tell("the first sends", () -> world.send(first, topic, 0, "no"));
        world.tell("the first commits", first::commitTransaction);
        world.tell("the first aborts", first::abortTransaction);
        second.beginTransaction();
        world.send(second, topic, 0, "kept");
        second.commitTransaction();
        world.say("%s", world.values(topic, "read_committed"));
    }

    static void offsetsGoWithTheRecords(World world, String protocol) throws Exception {
        String source = world.topic("source", 1);
        String target = world.topic("target", 1);
        world.fill(source, 1, 20);
        String group = world.name("mover");
        KafkaConsumer<String, String> consumer =
                world.consumer("group.id", group, "group.protocol", protocol, "max.poll.records", "5");
        consumer.subscribe(List.of(source));
        KafkaProducer<String, String> producer = ready(world, "mover");
        TopicPartition partition = new TopicPartition(source, 0);
        for (boolean commit : new boolean[] {true, false, true}) {
            List<ConsumerRecord<String, String>> records = world.read(consumer, 5);
            producer.beginTransaction();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(new ProducerRecord<>(target, 0, record.key(), record.value()));
            }
            long next = records.get(records.size() - 1).offset() + 1;
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(next)), consumer.groupMetadata());
            if (commit) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
                consumer.seek(partition, consumer.committed(Set.of(partition)).get(partition).offset());
            }
            world.say("committed offset: %d", consumer.committed(Set.of(partition)).get(partition).offset());
        }
        world.say("%s", world.values(target, "read_committed"));
        ConsumerGroupMetadata stale = consumer.groupMetadata();
        consumer.close();
        producer.beginTransaction();
        world.tell("offsets of a member that has left", () -> {
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(99)), stale);
            producer.commitTransaction();
        });
        world.tell("then", producer::abortTransaction);
        producer.beginTransaction();
        world.tell("offsets of a group without members", () -> {
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(17)),
                    new ConsumerGroupMetadata(group));
            producer.commitTransaction();
        });
    }

    static void pendingOffsetsAreUnstable(World world) throws Exception {
        String topic = world.topic("pending", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        String group = world.name("pending");
        KafkaProducer<String, String> producer = ready(world, "pending");
        producer.beginTransaction();
        producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(3)), new ConsumerGroupMetadata(group));
        KafkaConsumer<String, String> consumer = world.consumer("group.id", group, "default.api.timeout.ms", "1500");
        world.tell("while it is open", () -> world.say("%s", consumer.committed(Set.of(partition))));
        producer.commitTransaction();
        World.until("the offset", () -> consumer.committed(Set.of(partition)).get(partition) != null);
        world.say("%d", consumer.committed(Set.of(partition)).get(partition).offset());
    }

    static void oneThatTakesTooLongIsAborted(World world) throws Exception {
        String topic = world.topic("slow", 1);
        KafkaProducer<String, String> producer = ready(world, "slow", "transaction.timeout.ms", "1000");
        producer.beginTransaction();
        world.send(producer, topic, 0, "late");
        // The end of the records that can be read as committed passes the record when the broker has aborted it.
        KafkaConsumer<String, String> consumer = world.consumer("isolation.level", "read_committed");
        TopicPartition partition = new TopicPartition(topic, 0);
        World.until("it is aborted", () -> {
            consumer.assign(List.of(partition));
            consumer.poll(World.MOMENT);
            return consumer.endOffsets(List.of(partition)).get(partition) == 2;
        });
        world.tell("it commits", producer::commitTransaction);
        world.tell("it aborts", producer::abortTransaction);
        world.say("%s", world.values(topic, "read_committed"));
        world.tell("a time that is longer than the broker allows", () -> ready(world, "long", "transaction.timeout.ms", "900001"));
    }

    static void emptyTransactions(World world) throws Exception {
        String topic = world.topic("empty", 1);
        KafkaProducer<String, String> producer = ready(world, "empty");
        for (int turn = 0; turn < 3; turn++) {
            producer.beginTransaction();
            world.tell("an empty commit", producer::commitTransaction);
            producer.beginTransaction();
            world.tell("an empty abort", producer::abortTransaction);
        }
        producer.beginTransaction();
        world.send(producer, topic, 0, "full");
        world.tell("a full one", producer::commitTransaction);
        world.say("%s", world.values(topic, "read_committed"));
    }

    static void wrongOrders(World world) throws Exception {
        String topic = world.topic("wrong", 1);
        world.tell("begin before init", world.producer("transactional.id", world.name("early"))::beginTransaction);
        KafkaProducer<String, String> outside = ready(world, "outside");
        world.tell("send outside", () -> world.send(outside, topic, 0, "x"));
        KafkaProducer<String, String> twice = ready(world, "twice");
        twice.beginTransaction();
        world.tell("begin twice", twice::beginTransaction);
        world.tell("commit of nothing", ready(world, "nothing")::commitTransaction);
        world.say("%s", world.values(topic, "read_uncommitted"));
    }

    static void aRefusedRecordDoomsTheTransaction(World world) throws Exception {
        String topic = world.topic("doomed", 1, "max.message.bytes", "1000");
        KafkaProducer<String, String> producer = ready(world, "doomed");
        producer.beginTransaction();
        world.send(producer, topic, 0, "small");
        world.tell("a record that is too large", () -> world.send(producer, topic, 0, "x".repeat(2000)));
        world.tell("commit", producer::commitTransaction);
        world.tell("abort", producer::abortTransaction);
        producer.beginTransaction();
        world.send(producer, topic, 0, "good");
        world.tell("commit of the next", producer::commitTransaction);
        world.say("%s", world.values(topic, "read_committed"));
    }

    static void fiveHundredOverTenPartitions(World world) throws Exception {
        String topic = world.topic("many", 10);
        KafkaProducer<String, String> producer = ready(world, "many", "linger.ms", "0");
        for (int number = 0; number < 500; number++) {
            producer.beginTransaction();
            for (int partition = 0; partition < 10; partition++) {
                producer.send(new ProducerRecord<>(topic, partition, null, number + "." + partition));
            }
            if (number % 5 == 4) {
                producer.flush();
                producer.abortTransaction();
            } else {
                producer.commitTransaction();
            }
        }
        List<String> committed = world.values(topic, "read_committed");
        world.say("committed %d, different %d", committed.size(), new TreeSet<>(committed).size());
        world.say("everything %d", world.values(topic, "read_uncommitted").size());
        KafkaConsumer<String, String> consumer = world.consumer();
        world.say("ends: %s", World.sorted(consumer.endOffsets(World.partitions(topic, 10)).values()));
    }

    static void twentyProducersAtOnce(World world) throws Exception {
        String topic = world.topic("crowd", 4);
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 20; number++) {
            KafkaProducer<String, String> producer = ready(world, "crowd-" + number);
            String own = String.valueOf(number);
            threads.add(new Thread(() -> {
                for (int turn = 0; turn < 10; turn++) {
                    producer.beginTransaction();
                    for (int record = 0; record < 4; record++) {
                        producer.send(new ProducerRecord<>(topic, record, own, own + "." + turn));
                    }
                    if (turn % 3 == 2) {
                        producer.abortTransaction();
                    } else {
                        producer.commitTransaction();
                    }
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        List<String> committed = world.values(topic, "read_committed");
        world.say("committed %d, different %d", committed.size(), new TreeSet<>(committed).size());
    }
}
