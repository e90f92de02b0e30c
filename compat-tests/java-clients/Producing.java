import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** What people do with a producer. */
final class Producing {
    private Producing() {
    }

    static void everyCodecIsReadBack(World world) throws Exception {
        String topic = world.topic("codecs", 5);
        int partition = 0;
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            KafkaProducer<String, String> producer = world.producer("compression.type", codec, "linger.ms", "50");
            for (int number = 0; number < 200; number++) {
                ProducerRecord<String, String> record = new ProducerRecord<>(
                        topic, partition, 1_000_000_000_000L + number, number % 3 == 0 ? null : "k" + number,
                        number % 7 == 0 ? null : "value " + number + " ".repeat(number));
                record.headers().add("codec", codec.getBytes(StandardCharsets.UTF_8)).add("empty", new byte[0])
                        .add("null", null);
                producer.send(record);
            }
            producer.flush();
            partition++;
        }
        KafkaConsumer<String, String> consumer = world.consumer();
        consumer.assign(World.partitions(topic, 5));
        int[] hashes = new int[5];
        for (ConsumerRecord<String, String> record : world.read(consumer, 1000)) {
            String text = record.offset() + "|" + record.timestamp() + "|" + record.timestampType() + "|" + record.key()
                    + "|" + record.value() + "|" + new String(record.headers().lastHeader("codec").value())
                    + record.headers().toArray().length + record.headers().lastHeader("null").value();
            hashes[record.partition()] = hashes[record.partition()] * 31 + text.hashCode();
        }
        for (int hash : hashes) {
            world.say("records of the partition: %d", hash);
        }
    }

    static void everyAcknowledgement(World world) throws Exception {
        String topic = world.topic("acks", 1);
        for (String acks : List.of("0", "1", "all")) {
            KafkaProducer<String, String> producer = world.producer("acks", acks, "enable.idempotence", "false");
            for (int number = 0; number < 2; number++) {
                RecordMetadata metadata = world.send(producer, topic, 0, acks + number);
                world.say("acks=%s: hasOffset %s, offset %d, hasTimestamp %s, sizes %d %d", acks, metadata.hasOffset(),
                        metadata.offset(), metadata.hasTimestamp(), metadata.serializedKeySize(),
                        metadata.serializedValueSize());
            }
            producer.close();
        }
        world.say("%s", world.values(topic, "read_uncommitted"));
    }

    static void idempotentRecordsStayInOrder(World world) throws Exception {
        String topic = world.topic("order", 3);
        KafkaProducer<String, String> producer =
                world.producer("linger.ms", "0", "batch.size", "200", "max.in.flight.requests.per.connection", "5");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = 0; number < 6000; number++) {
            sent.add(producer.send(new ProducerRecord<>(topic, number % 3, null, String.valueOf(number))));
        }
        for (int number = 0; number < 6000; number++) {
            World.expect(World.get(sent.get(number)).offset() == number / 3, "record " + number + " at its place");
        }
        KafkaConsumer<String, String> consumer = world.consumer();
        consumer.assign(World.partitions(topic, 3));
        for (ConsumerRecord<String, String> record : world.read(consumer, 6000)) {
            World.expect(Integer.parseInt(record.value()) == record.offset() * 3 + record.partition(), "in order");
        }
        world.say("6000 records in order");
    }

    static void whatIsTooLargeIsRefused(World world) throws Exception {
        String topic = world.topic("large", 1, "max.message.bytes", "2000");
        KafkaProducer<String, String> producer = world.producer();
        world.tell("3000 bytes", () -> world.send(producer, topic, 0, "x".repeat(3000)));
        world.tell("after it", () -> world.send(producer, topic, 0, "small"));
        world.tell("more than max.request.size", () -> world.send(producer, topic, 0, "x".repeat(2_000_000)));
        KafkaProducer<String, String> batching = world.producer("linger.ms", "200", "batch.size", "16000");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = 0; number < 20; number++) {
            sent.add(batching.send(new ProducerRecord<>(topic, 0, null, "x".repeat(400))));
        }
        for (Future<RecordMetadata> future : sent) {
            World.get(future);
        }
        world.say("a batch that is too large is split: %d records", world.values(topic, "read_uncommitted").size());
    }

    static void whatCannotBeWrittenIsRefused(World world) throws Exception {
        KafkaProducer<String, String> producer = world.producer("max.block.ms", "1500");
        world.tell("a name that cannot be", () -> world.send(producer, "no spaces", 0, "x"));
        String topic = world.topic("refused", 1);
        world.tell("a partition that is not there", () -> world.send(producer, topic, 7, "x"));
        String compacted = world.topic("compacted", 1, "cleanup.policy", "compact");
        world.tell("no key in a compacted topic",
                () -> World.get(producer.send(new ProducerRecord<>(compacted, 0, null, "x"))));
        String timed = world.topic("timed", 1, "message.timestamp.before.max.ms", "1000");
        world.tell("a timestamp of long ago",
                () -> World.get(producer.send(new ProducerRecord<>(timed, 0, 1000L, "k", "x"))));
        world.tell("a timestamp far ahead", () -> World.get(
                producer.send(new ProducerRecord<>(topic, 0, System.currentTimeMillis() + 99_999_999L, "k", "x"))));
        world.tell("an internal topic",
                () -> World.get(producer.send(new ProducerRecord<>("__consumer_offsets", 0, "k", "x"))));
        String strict = world.topic("strict", 1, "min.insync.replicas", "2");
        KafkaProducer<String, String> hasty = world.producer("delivery.timeout.ms", "3000", "request.timeout.ms", "1000",
                "linger.ms", "0", "retries", "2", "retry.backoff.ms", "50");
        world.tell("too few replicas", () -> world.send(hasty, strict, 0, "x"));
        KafkaProducer<String, String> careless = world.producer("acks", "1", "enable.idempotence", "false");
        world.tell("too few replicas, and acks=1", () -> world.send(careless, strict, 0, "x"));
        world.tell("after all that", () -> world.send(producer, topic, 0, "x"));
    }

    static void theBrokerSetsTheTime(World world) throws Exception {
        String topic = world.topic("append", 1, "message.timestamp.type", "LogAppendTime");
        KafkaProducer<String, String> producer = world.producer("compression.type", "zstd");
        long before = System.currentTimeMillis();
        RecordMetadata metadata = World.get(producer.send(new ProducerRecord<>(topic, 0, 5L, "k", "v")));
        KafkaConsumer<String, String> consumer = world.consumer();
        consumer.assign(World.partitions(topic, 1));
        ConsumerRecord<String, String> record = world.read(consumer, 1).get(0);
        world.say("%s, told to the producer %s, not the producer's %s", record.timestampType(),
                metadata.timestamp() == record.timestamp(), record.timestamp() >= before);
    }

    static void aTopicIsMadeByItsFirstRecord(World world) throws Exception {
        String topic = world.name("first");
        KafkaProducer<String, String> producer = world.producer();
        world.say("offset %d", world.send(producer, topic, 0, "x").offset());
        world.say("%s", producer.partitionsFor(topic));
        world.say("metrics: %s", !producer.metrics().isEmpty());
    }

    static void telemetryIsOff(World world) throws Exception {
        KafkaProducer<String, String> producer = world.producer();
        world.topic("quiet", 1);
        world.tell("an instance id of a producer", () -> producer.clientInstanceId(Duration.ofSeconds(3)));
        world.tell("an instance id of an admin client", () -> world.admin().clientInstanceId(Duration.ofSeconds(3)));
        KafkaProducer<String, String> without = world.producer("enable.metrics.push", "false");
        world.tell("where it is switched off", () -> without.clientInstanceId(Duration.ofSeconds(3)));
    }

    static void recordsAreFoundAfterTheirTopicIsMadeAnew(World world) throws Exception {
        String topic = world.topic("again", 1);
        KafkaProducer<String, String> producer = world.producer("metadata.max.age.ms", "500");
        world.send(producer, topic, 0, "old");
        World.get(world.admin().deleteTopics(List.of(topic)).all());
        World.until("the topic is gone", () -> {
            try {
                return !World.get(world.admin().listTopics().names()).contains(topic);
            } catch (Exception fault) {
                return false;
            }
        });
        world.topic("again", 1);
        World.until("the producer writes to the new one", () -> {
            try {
                return world.send(producer, topic, 0, "new").offset() >= 0;
            } catch (Exception fault) {
                return false;
            }
        });
        world.say("%s", world.values(topic, "read_uncommitted"));
        world.say("%s", new TopicPartition(topic, 0).partition());
    }
}
