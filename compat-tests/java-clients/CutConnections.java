import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.ApiKeys;

/** What clients promise although their connections are cut: every record once and in order. */
final class CutConnections {
    private static final int RECORDS = 6000;
    private static final int TRANSACTIONS = 200;
    private static final int FEWEST_CUTS = 20;

    private CutConnections() {
    }

    /** Settings of a client that comes back at once, with these. */
    private static String[] through(Cutter cutter, String... pairs) {
        List<String> settings = new ArrayList<>(List.of("bootstrap.servers", cutter.address(), "reconnect.backoff.ms", "5",
                "reconnect.backoff.max.ms", "50", "retry.backoff.ms", "5", "retry.backoff.max.ms", "50"));
        settings.addAll(List.of(pairs));
        return settings.toArray(String[]::new);
    }

    static void anIdempotentProducerWritesEachRecordOnceAndInOrder(World world) throws Exception {
        String topic = world.topic("once", 3);
        Cutter cutter = world.keep(new Cutter(world.address, 12, ApiKeys.PRODUCE, ApiKeys.INIT_PRODUCER_ID));
        KafkaProducer<String, String> producer = world.producer(through(cutter, "linger.ms", "0", "batch.size", "200",
                "max.request.size", "300", "max.in.flight.requests.per.connection", "5"));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = 0; number < RECORDS; number++) {
            sent.add(producer.send(new ProducerRecord<>(topic, number % 3, null, String.valueOf(number))));
        }
        for (int number = 0; number < RECORDS; number++) {
            RecordMetadata metadata = World.get(sent.get(number));
            // where only the answer was lost, a broker may not know any more where the record lies
            World.expect(!metadata.hasOffset() || metadata.offset() == number / 3, "record " + number + " at its place");
        }
        World.expect(cutter.cuts() >= FEWEST_CUTS, "only " + cutter.cuts() + " connections were cut");
        expectInOrder(world.values(topic, "read_uncommitted"), RECORDS);
        world.say("%d records, each once and in order", RECORDS);
    }

    /** Partition by partition, the numbers that leave the partition's remainder, each once and in order. */
    private static void expectInOrder(List<String> values, int count) {
        List<String> wanted = new ArrayList<>();
        for (int partition = 0; partition < 3; partition++) {
            for (int number = partition; number < count; number += 3) {
                wanted.add(String.valueOf(number));
            }
        }
        for (int index = 0; index < Math.min(values.size(), count); index++) {
            World.expect(values.get(index).equals(wanted.get(index)),
                    "record " + index + " is " + values.get(index) + ", not " + wanted.get(index));
        }
        World.expect(values.size() == count, values.size() + " records instead of " + count);
    }

    static void aTransactionalProducerCommitsEachTransactionOnce(World world) throws Exception {
        String topic = world.topic("transactions", 3);
        String source = world.topic("source", 1);
        Cutter cutter = world.keep(new Cutter(world.address, 15, ApiKeys.PRODUCE, ApiKeys.INIT_PRODUCER_ID,
                ApiKeys.ADD_PARTITIONS_TO_TXN, ApiKeys.ADD_OFFSETS_TO_TXN, ApiKeys.TXN_OFFSET_COMMIT, ApiKeys.END_TXN));
        KafkaProducer<String, String> producer =
                world.producer(through(cutter, "transactional.id", world.name("cut"), "linger.ms", "0"));
        producer.initTransactions();
        ConsumerGroupMetadata group = new ConsumerGroupMetadata(world.name("group"));
        int committed = 0;
        int begun = 0;
        while (committed < TRANSACTIONS) {
            boolean wanted = begun++ % 5 != 4;
            int first = committed * 9;
            try {
                producer.beginTransaction();
                for (int number = first; number < first + 9; number++) {
                    String value = wanted ? String.valueOf(number) : "unwanted";
                    producer.send(new ProducerRecord<>(topic, number % 3, null, value));
                }
                producer.sendOffsetsToTransaction(
                        Map.of(new TopicPartition(source, 0), new OffsetAndMetadata(committed + 1)), group);
                if (wanted) {
                    producer.commitTransaction();
                    committed++;
                    continue;
                }
            } catch (KafkaException fault) {
                System.err.println("transaction " + committed + " is begun anew: " + World.refusal(fault));
            }
            producer.abortTransaction();
        }
        World.expect(cutter.cuts() >= FEWEST_CUTS, "only " + cutter.cuts() + " connections were cut");
        expectInOrder(world.values(topic, "read_committed"), TRANSACTIONS * 9);
        world.say("%d transactions, each once and in order", TRANSACTIONS);
        world.say("the offset that went with them: %d", World.get(world.admin().listConsumerGroupOffsets(group.groupId())
                .partitionsToOffsetAndMetadata()).get(new TopicPartition(source, 0)).offset());
    }

    static void aConsumerReadsEachRecordOnceAndInOrder(World world, String protocol) throws Exception {
        String topic = world.topic("read", 3);
        KafkaProducer<String, String> producer = world.producer("linger.ms", "0", "batch.size", "300");
        for (int number = 0; number < RECORDS; number++) {
            producer.send(new ProducerRecord<>(topic, number % 3, null, String.valueOf(number)));
        }
        producer.flush();
        Cutter cutter = world.keep(new Cutter(world.address, 8, ApiKeys.FETCH, ApiKeys.LIST_OFFSETS, ApiKeys.OFFSET_FETCH,
                ApiKeys.OFFSET_COMMIT, ApiKeys.HEARTBEAT, ApiKeys.CONSUMER_GROUP_HEARTBEAT));
        KafkaConsumer<String, String> consumer = world.consumer(through(cutter, "group.protocol", protocol, "group.id",
                world.name("group"), "max.partition.fetch.bytes", "400", "max.poll.records", "60"));
        consumer.subscribe(List.of(topic));
        Map<Integer, List<String>> found = new TreeMap<>();
        int[] count = {0};
        World.until("all " + RECORDS + " records", () -> {
            for (ConsumerRecord<String, String> record : consumer.poll(World.MOMENT)) {
                found.computeIfAbsent(record.partition(), any -> new ArrayList<>()).add(record.value());
                count[0]++;
            }
            consumer.commitSync();
            return count[0] >= RECORDS;
        });
        List<String> values = new ArrayList<>();
        found.values().forEach(values::addAll);
        World.expect(cutter.cuts() >= FEWEST_CUTS, "only " + cutter.cuts() + " connections were cut");
        expectInOrder(values, RECORDS);
        world.say("%d records, each once and in order", RECORDS);
        world.say("committed: %s", World.sorted(World.get(world.admin().listConsumerGroupOffsets(world.name("group"))
                .partitionsToOffsetAndMetadata()).values().stream().map(OffsetAndMetadata::offset).toList()));
    }
}
