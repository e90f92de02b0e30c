import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members with Apache Kafka's consumer, each in a thread of its own. The lines they speak: README.md. */
final class Member extends Thread implements ConsumerRebalanceListener {
    private static final long COMMIT_INTERVAL_NS = 500_000_000L;
    private static final long TURN_NS = 250_000_000L;
    private static final long LATE_NS = 1_000_000_000L;
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Map<String, String> ASSIGNORS = Map.of("range", "RangeAssignor", "roundrobin",
            "RoundRobinAssignor", "sticky", "StickyAssignor", "cooperative-sticky", "CooperativeStickyAssignor");

    private static String address;
    private static String topic;
    private static String group;
    private static final Map<String, String> OPTIONS = new HashMap<>();

    private final Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
    private final KafkaConsumer<byte[], byte[]> consumer;
    private volatile boolean ending;
    private volatile int generation = -1;
    private long committedAt = System.nanoTime();

    private Member(String name, String instance) {
        super(name);
        consumer = new KafkaConsumer<>(settings(name, instance), new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
    }

    private static Map<String, Object> settings(String name, String instance) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", address, "client.id", name,
                "group.id", group, "group.protocol", OPTIONS.get("protocol"), "auto.offset.reset", "earliest",
                "enable.auto.commit", "false", "metadata.max.age.ms", "1000"));
        if (OPTIONS.get("protocol").equals("consumer")) {
            settings.put("group.remote.assignor", OPTIONS.get("assignor"));
        } else {
            settings.put("partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer." + ASSIGNORS.get(OPTIONS.get("assignor")));
            settings.put("session.timeout.ms", OPTIONS.get("session_ms"));
            settings.put("heartbeat.interval.ms", OPTIONS.get("heartbeat_ms"));
        }
        if (instance != null) {
            settings.put("group.instance.id", instance);
        }
        return settings;
    }

    private void say(String what, Object... words) {
        sayOf(getName(), what, words);
    }

    private static void sayOf(String member, String what, Object... words) {
        StringBuilder line = new StringBuilder(member).append(' ').append(what)
                .append(String.format(Locale.ROOT, " %.6f", System.nanoTime() / 1e9));
        for (Object word : words) {
            line.append(' ').append(word);
        }
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }

    /** Says when this process got no turn for long. */
    private static void watchTurns() {
        while (true) {
            long before = System.nanoTime();
            try {
                Thread.sleep(TURN_NS / 1_000_000);
            } catch (InterruptedException end) {
                return;
            }
            long late = System.nanoTime() - before - TURN_NS;
            if (late > LATE_NS) {
                sayOf("-", "stalled", String.format(Locale.ROOT, "%.3f", late / 1e9));
            }
        }
    }

    private static String listed(Collection<TopicPartition> partitions) {
        return partitions.isEmpty() ? "-" : partitions.stream().map(TopicPartition::partition).sorted()
                .map(String::valueOf).collect(Collectors.joining(","));
    }

    @Override
    public void run() {
        try {
            consumer.subscribe(List.of(topic), this);
            while (!ending) {
                for (TopicPartition partition : handle()) {
                    positions.put(partition, new OffsetAndMetadata(consumer.position(partition)));
                }
                if (System.nanoTime() - committedAt >= COMMIT_INTERVAL_NS) {
                    committedAt = System.nanoTime();
                    commit(List.copyOf(positions.keySet()));
                }
                generation = consumer.groupMetadata().generationId();
            }
            consumer.close();
            say("left");
        } catch (Throwable fault) {
            say("fault", fault.toString().replaceAll("\\s+", " "));
        }
    }

    private Collection<TopicPartition> handle() {
        var polled = consumer.poll(POLL);
        for (TopicPartition partition : polled.partitions()) {
            long first = -1;
            long last = -2;
            for (ConsumerRecord<byte[], byte[]> record : polled.records(partition)) {
                if (record.offset() != last + 1) {
                    if (first >= 0) {
                        say("handled", partition.partition(), first, last);
                    }
                    first = record.offset();
                }
                last = record.offset();
            }
            say("handled", partition.partition(), first, last);
        }
        return polled.partitions();
    }

    /** Commits what was handled of these; whether it could. */
    private boolean commit(Collection<TopicPartition> partitions) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition partition : partitions) {
            OffsetAndMetadata position = positions.remove(partition);
            if (position != null) {
                offsets.put(partition, position);
            }
        }
        try {
            if (!offsets.isEmpty()) {
                consumer.commitSync(offsets);
            }
            return true;
        } catch (RebalanceInProgressException | CommitFailedException fault) {
            offsets.forEach(positions::putIfAbsent); // the listener commits it, or hears that it is lost
            return false;
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        say("assigned", listed(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        say(commit(partitions) ? "revoked" : "lost", listed(partitions));
        positions.keySet().removeAll(partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        positions.keySet().removeAll(partitions);
        say("lost", listed(partitions));
    }

    public static void main(String[] arguments) throws Exception {
        address = arguments[0];
        topic = arguments[1];
        group = arguments[2];
        for (String option : Arrays.asList(arguments).subList(3, arguments.length)) {
            OPTIONS.put(option.split("=", 2)[0], option.split("=", 2)[1]);
        }
        Thread watch = new Thread(Member::watchTurns);
        watch.setDaemon(true);
        watch.start();
        Map<String, Member> members = new ConcurrentHashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = lines.readLine()) != null && !line.equals("stop")) {
            String[] words = line.trim().split(" ");
            switch (words[0]) {
                case "join" -> {
                    Member member = new Member(words[1], words.length > 2 ? words[2] : null);
                    members.put(words[1], member);
                    member.start();
                }
                case "leave" -> members.get(words[1]).ending = true;
                case "epoch" -> members.get(words[1]).say("epoch", members.get(words[1]).generation);
                default -> throw new IllegalArgumentException(line);
            }
        }
        for (Member member : members.values()) {
            member.ending = true;
        }
        for (Member member : new ArrayList<>(members.values())) {
            member.join();
        }
        System.exit(0);
    }
}
