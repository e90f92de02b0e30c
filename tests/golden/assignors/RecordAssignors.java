import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

/**
 * Has Apache Kafka's own assignors assign, and prints what they were given and what they gave, one round a line.
 *
 *     java -cp 'KAFKA/libs/*' RecordAssignors.java > kafka-4.4.0.jsonl
 *
 * Members come in the order of their ids and topics in the order of theirs, so that nothing depends on hash maps.
 */
public class RecordAssignors {
    static final Random RANDOM = new Random(848);

    static Uuid topic(int number) {
        return new Uuid(0L, number);
    }

    record Member(String id, String instance, Set<Integer> topics) { }

    public static void main(String[] arguments) {
        for (int story = 0; story < 120; story++) {
            boolean equal = RANDOM.nextBoolean();
            ConsumerGroupPartitionAssignor assignor = RANDOM.nextInt(4) == 0 ? new RangeAssignor() : new UniformAssignor();
            TreeMap<Integer, Integer> topics = new TreeMap<>();
            for (int number = 2; number < 3 + RANDOM.nextInt(5); number++) topics.put(number, 1 + RANDOM.nextInt(16));
            TreeMap<String, Member> members = new TreeMap<>();
            Map<String, Map<Uuid, Set<Integer>>> given = new HashMap<>();
            for (int round = 0; round < 5; round++) {
                change(members, topics, equal);
                given.keySet().retainAll(members.keySet());
                given = play(assignor, equal, topics, members, given);
            }
        }
    }

    static void change(TreeMap<String, Member> members, TreeMap<Integer, Integer> topics, boolean equal) {
        for (int step = 0; step <= RANDOM.nextInt(4); step++) {
            String id = "m" + RANDOM.nextInt(9);
            if (members.size() > 1 && RANDOM.nextInt(3) == 0) members.remove(members.firstKey());
            else if (members.size() > 1 && RANDOM.nextInt(3) == 0) members.remove(id);
            else members.put(id, new Member(id, RANDOM.nextInt(5) == 0 ? "i" + id : null, wanted(topics, equal)));
        }
        if (members.isEmpty()) members.put("m0", new Member("m0", null, wanted(topics, equal)));
        if (RANDOM.nextInt(3) == 0) topics.merge(topics.lastKey(), 1 + RANDOM.nextInt(3), (a, b) -> Math.min(a + b, 16));
    }

    static Set<Integer> wanted(TreeMap<Integer, Integer> topics, boolean equal) {
        Set<Integer> wanted = new TreeSet<>(topics.keySet());
        if (!equal) wanted.removeIf(number -> RANDOM.nextInt(3) == 0);
        return wanted;
    }

    static Map<String, Map<Uuid, Set<Integer>>> play(
        PartitionAssignor assignor,
        boolean equal,
        TreeMap<Integer, Integer> topics,
        TreeMap<String, Member> members,
        Map<String, Map<Uuid, Set<Integer>>> given
    ) {
        Map<String, MemberSubscriptionAndAssignmentImpl> specification = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (Member member : members.values()) {
            Map<Uuid, Set<Integer>> assigned = given.getOrDefault(member.id(), Map.of());
            assigned.forEach((topic, partitions) -> partitions.forEach(partition ->
                owners.computeIfAbsent(topic, key -> new HashMap<>()).put(partition, member.id())));
            Set<Uuid> wanted = new LinkedHashSet<>();
            member.topics().forEach(number -> wanted.add(topic(number)));
            specification.put(member.id(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(member.instance()), wanted,
                new Assignment(Collections.unmodifiableMap(assigned))));
        }
        SubscriptionType type = equal ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        GroupAssignment result = assignor.assign(
            new GroupSpecImpl(specification, type, owners),
            new SubscribedTopicDescriber() {
                public int numPartitions(Uuid id) {
                    return topics.getOrDefault((int) id.getLeastSignificantBits(), -1);
                }
                public Set<String> racksForPartition(Uuid id, int partition) {
                    return Set.of();
                }
            });
        Map<String, Map<Uuid, Set<Integer>>> next = new HashMap<>();
        result.members().forEach((id, assignment) -> {
            Map<Uuid, Set<Integer>> copy = new HashMap<>();
            assignment.partitions().forEach((topic, partitions) -> {
                if (!partitions.isEmpty()) copy.put(topic, new HashSet<>(partitions));
            });
            next.put(id, copy);
        });
        print(assignor, equal, topics, members, given, next);
        return next;
    }

    static void print(
        PartitionAssignor assignor,
        boolean equal,
        TreeMap<Integer, Integer> topics,
        TreeMap<String, Member> members,
        Map<String, Map<Uuid, Set<Integer>>> before,
        Map<String, Map<Uuid, Set<Integer>>> after
    ) {
        StringJoiner counts = new StringJoiner(",", "{", "}");
        topics.forEach((number, count) -> counts.add("\"" + number + "\":" + count));
        StringJoiner shown = new StringJoiner(",", "{", "}");
        for (Member member : members.values()) {
            String instance = member.instance() == null ? "null" : "\"" + member.instance() + "\"";
            shown.add("\"" + member.id() + "\":{\"instance\":" + instance + ",\"topics\":" + member.topics()
                + ",\"before\":" + text(before.get(member.id())) + ",\"after\":" + text(after.get(member.id())) + "}");
        }
        System.out.println("{\"assignor\":\"" + assignor.name() + "\",\"equal\":" + equal
            + ",\"partitions\":" + counts + ",\"members\":" + shown + "}");
    }

    static String text(Map<Uuid, Set<Integer>> partitions) {
        StringJoiner shown = new StringJoiner(",", "{", "}");
        TreeMap<Long, Set<Integer>> ordered = new TreeMap<>();
        if (partitions != null) partitions.forEach((id, each) -> ordered.put(id.getLeastSignificantBits(), new TreeSet<>(each)));
        ordered.forEach((number, each) -> shown.add("\"" + number + "\":" + each));
        return shown.toString();
    }
}
