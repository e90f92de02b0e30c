import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words exactly once, and looks whether it did.
 *
 * <p>make ADDRESS TOPIC... · fill ADDRESS TOPIC LINES · pour ADDRESS TOPIC PER_SECOND (until its input ends; prints how
 * many lines) · count ADDRESS APPLICATION LINES COUNTS STATE (until it is killed) · totals ADDRESS COUNTS (one line a
 * word; fails where a committed count does not grow)
 */
public final class WordCount {
    private static final int PARTITIONS = 3;

    private WordCount() {
    }

    /** See the class. */
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "make" -> make(args[1], Arrays.asList(args).subList(2, args.length));
            case "fill" -> fill(args[1], args[2], Integer.parseInt(args[3]));
            case "pour" -> pour(args[1], args[2], Integer.parseInt(args[3]));
            case "count" -> count(args);
            case "totals" -> totals(args[1], args[2]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void make(String address, List<String> topics) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            List<NewTopic> wanted = new ArrayList<>();
            for (String topic : topics) {
                wanted.add(new NewTopic(topic, PARTITIONS, (short) 1));
            }
            admin.createTopics(wanted).all().get();
        }
    }

    private static void fill(String address, String topic, int lines) {
        Map<String, Object> settings = Map.of("bootstrap.servers", address);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < lines; number++) {
                producer.send(line(topic, number));
            }
        }
    }

    private static ProducerRecord<String, String> line(String topic, int number) {
        return new ProducerRecord<>(topic, "k" + number, "alpha beta w" + number % 50);
    }

    private static void pour(String address, String topic, int perSecond) throws Exception {
        AtomicBoolean isOver = new AtomicBoolean();
        Thread listening = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Only the end of the input says something.
                }
            } catch (IOException gone) {
                // The end as well.
            }
            isOver.set(true);
        });
        listening.setDaemon(true);
        listening.start();
        AtomicReference<Exception> refused = new AtomicReference<>();
        int number = 0;
        Map<String, Object> settings = Map.of("bootstrap.servers", address, "enable.idempotence", true);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (; !isOver.get(); number++) {
                producer.send(line(topic, number), (metadata, failure) -> refused.compareAndSet(null, failure));
                Thread.sleep(1000 / perSecond);
            }
        }
        if (refused.get() != null) {
            throw refused.get();
        }
        System.out.println(number);
    }

    private static void count(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("application.id", args[2]);
        settings.put("state.dir", args[5]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("auto.offset.reset", "earliest");
        settings.put("num.stream.threads", "2");
        settings.put("session.timeout.ms", "3000");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("producer.transaction.timeout.ms", "4000");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[3], Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count()
            .toStream()
            .mapValues(String::valueOf)
            .to(args[4], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(failure -> {
            failure.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        Thread.sleep(Long.MAX_VALUE);
    }

    private static void totals(String address, String topic) {
        Map<String, Object> settings = Map.of("bootstrap.servers", address, "isolation.level", "read_committed");
        Map<String, Long> counts = new TreeMap<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int index = 0; index < PARTITIONS; index++) {
                partitions.add(new TopicPartition(topic, index));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = new HashMap<>(consumer.endOffsets(partitions));
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    long count = Long.parseLong(record.value());
                    Long before = counts.put(record.key(), count);
                    if (before != null && count <= before) {
                        throw new IllegalStateException(record.key() + " goes from " + before + " to " + count);
                    }
                }
            }
        }
        counts.forEach((word, count) -> System.out.println(word + " " + count));
    }
}
