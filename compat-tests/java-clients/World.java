import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What a scenario is given: clients of one broker, names that no other run has, and a place to say what it saw. */
final class World implements AutoCloseable {
    static final Duration PATIENCE = Duration.ofSeconds(40);
    static final Duration MOMENT = Duration.ofMillis(100);

    final String address;
    private final String ending;
    private final List<String> said = Collections.synchronizedList(new ArrayList<>());
    private final List<AutoCloseable> open = new ArrayList<>();
    private Admin admin;

    World(String address, String ending) {
        this.address = address;
        this.ending = ending;
    }

    /** Something that may fail. */
    interface Act {
        void run() throws Exception;
    }

    String name(String what) {
        return what + ending;
    }

    /** A line that is compared with what was said against Apache Kafka. */
    void say(String format, Object... values) {
        String line = values.length == 0 ? format : String.format(format, values);
        for (String part : line.replace(ending, "~").split("\n")) {
            said.add(part);
        }
    }

    List<String> said() {
        return List.copyOf(said);
    }

    /** Say how an act ended: "done", or the names of the exceptions, outermost first. */
    void tell(String what, Act act) {
        say("%s: %s", what, outcome(() -> {
            act.run();
            return "done";
        }));
    }

    /** What a call returned, as text, or the names of the exceptions it threw. */
    String outcome(Callable<?> call) {
        try {
            return String.valueOf(call.call());
        } catch (Throwable fault) {
            return refusal(fault);
        }
    }

    static String refusal(Throwable fault) {
        StringBuilder names = new StringBuilder();
        for (Throwable cause = fault; cause != null; cause = cause.getCause()) {
            boolean wrapper = cause instanceof ExecutionException
                    || cause.getClass() == KafkaException.class && cause.getCause() != null;
            if (!wrapper) { // a producer may wrap what doomed its transaction, or not yet
                names.append(names.length() == 0 ? "" : " < ").append(cause.getClass().getSimpleName());
            }
            if (cause instanceof org.apache.kafka.common.errors.TimeoutException) {
                break; // what was tried last is up to the moment
            }
        }
        return names.toString();
    }

    static <T> T get(Future<T> future) throws Exception {
        return future.get(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
    }

    // --- clients -------------------------------------------------------------------------------

    Map<String, Object> settings(String... pairs) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", address);
        for (int index = 0; index < pairs.length; index += 2) {
            settings.put(pairs[index], pairs[index + 1]);
        }
        return settings;
    }

    synchronized Admin admin() {
        if (admin == null) {
            admin = keep(Admin.create(settings()));
        }
        return admin;
    }

    KafkaProducer<String, String> producer(String... pairs) {
        return keep(new KafkaProducer<>(settings(pairs), new StringSerializer(), new StringSerializer()));
    }

    /** Reads from the beginning and commits only when told, unless the settings say otherwise. */
    KafkaConsumer<String, String> consumer(String... pairs) {
        Map<String, Object> settings = settings("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        settings.putAll(settings(pairs));
        return keep(new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer()));
    }

    synchronized <T extends AutoCloseable> T keep(T client) {
        open.add(client);
        return client;
    }

    @Override
    public synchronized void close() {
        Collections.reverse(open);
        for (AutoCloseable client : open) {
            try {
                if (client instanceof KafkaProducer<?, ?> producer) {
                    producer.close(Duration.ofSeconds(5));
                } else if (client instanceof KafkaConsumer<?, ?> consumer) {
                    consumer.close(Duration.ofSeconds(5));
                } else {
                    client.close();
                }
            } catch (Exception alreadyToldElsewhere) {
                // a client that a scenario has broken
            }
        }
    }

    // --- what most scenarios do ----------------------------------------------------------------

    /** A topic whose partitions have their leader: Apache Kafka answers its maker a moment earlier. */
    String topic(String what, int partitions, String... configs) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (int index = 0; index < configs.length; index += 2) {
            settings.put(configs[index], configs[index + 1]);
        }
        NewTopic topic = new NewTopic(name(what), partitions, (short) 1).configs(settings);
        get(admin().createTopics(List.of(topic)).all());
        get(admin().listOffsets(partitions(topic.name(), partitions).stream()
                .collect(Collectors.toMap(partition -> partition, partition -> OffsetSpec.latest()))).all());
        return topic.name();
    }

    RecordMetadata send(KafkaProducer<String, String> producer, String topic, int partition, String value)
            throws Exception {
        return get(producer.send(new ProducerRecord<>(topic, partition, "k-" + value, value)));
    }

    /** Write records `0` to `count - 1` with keys, spread over the partitions in turn. */
    void fill(String topic, int partitions, int count) {
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings(), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < count; number++) {
                String value = String.valueOf(number);
                producer.send(new ProducerRecord<>(topic, number % partitions, "k" + value, value));
            }
            producer.flush();
        }
    }

    /** Poll until so many records came. */
    List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (found.size() < count) {
            consumer.poll(MOMENT).forEach(found::add);
            if (System.nanoTime() > deadline) {
                throw new AssertionError("only " + found.size() + " of " + count + " records came");
            }
        }
        return found;
    }

    /** Every value of a topic up to its present end, partition by partition. */
    List<String> values(String topic, String isolation) {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings("isolation.level", isolation, "auto.offset.reset", "earliest"),
                new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (PartitionInfo partition : consumer.partitionsFor(topic)) {
                partitions.add(new TopicPartition(topic, partition.partition()));
            }
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            consumer.assign(partitions);
            Map<TopicPartition, List<String>> found = new TreeMap<>((one, other) -> one.partition() - other.partition());
            until("the end of " + topic, () -> {
                for (ConsumerRecord<String, String> record : consumer.poll(MOMENT)) {
                    found.computeIfAbsent(new TopicPartition(topic, record.partition()), any -> new ArrayList<>())
                            .add(record.value());
                }
                return partitions.stream().allMatch(partition -> consumer.position(partition) >= ends.get(partition));
            });
            List<String> values = new ArrayList<>();
            found.values().forEach(values::addAll);
            return values;
        }
    }

    /** Ask until it is so; what is asked waits a little itself, as a poll does. */
    static void until(String what, BooleanSupplier done) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!done.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("did not come in " + PATIENCE.toSeconds() + " s: " + what);
            }
        }
    }

    static List<TopicPartition> partitions(String topic, int count) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (int partition = 0; partition < count; partition++) {
            partitions.add(new TopicPartition(topic, partition));
        }
        return partitions;
    }

    static List<String> sorted(Collection<?> values) {
        return values.stream().map(String::valueOf).sorted().toList();
    }

    static void expect(boolean so, String what) {
        if (!so) {
            throw new AssertionError(what);
        }
    }
}
