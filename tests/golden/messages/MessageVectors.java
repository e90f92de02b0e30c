// Writes the vectors of this folder with Apache Kafka's own serializers. See README.md.

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.zip.GZIPOutputStream;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;

public class MessageVectors {
    static final byte[] RECORDS = "bytes in the place of records".getBytes(StandardCharsets.UTF_8);

    Message root;
    short version;
    int counter;

    public static void main(String[] arguments) throws Exception {
        Map<String, Class<?>> messages = new TreeMap<>();
        try (var jars = Files.newDirectoryStream(Path.of(arguments[0]), "kafka*.jar")) {
            for (Path jar : jars)
                find(jar, messages);
        }
        Path file = Path.of(arguments[1], "messages.jsonl.gz");
        try (var out = new BufferedWriter(new OutputStreamWriter(new GZIPOutputStream(Files.newOutputStream(file)) {{
            def.setLevel(9);
        }}, StandardCharsets.UTF_8))) {
            for (Class<?> message : messages.values())
                write(message, out);
        }
    }

    /** All generated messages: the classes that have a converter to JSON and stand alone. */
    static void find(Path jar, Map<String, Class<?>> messages) throws Exception {
        try (JarFile file = new JarFile(jar.toFile())) {
            for (var entries = file.entries(); entries.hasMoreElements(); ) {
                String name = entries.nextElement().getName();
                if (!name.endsWith("JsonConverter.class") || name.contains("$"))
                    continue;
                Class<?> message = Class.forName(name.replace("JsonConverter.class", "").replace('/', '.'));
                if (Message.class.isAssignableFrom(message))
                    messages.put(message.getSimpleName(), message);
            }
        }
    }

    static void write(Class<?> type, BufferedWriter out) throws Exception {
        Message example = (Message) instance(type);
        Method converter = Class.forName(type.getName() + "JsonConverter").getMethod("write", type, short.class);
        for (short version = example.lowestSupportedVersion(); version <= example.highestSupportedVersion(); version++) {
            Set<String> written = new HashSet<>();
            for (String variant : new String[] {"default", "filled", "null leaves", "nulls", "tagged"}) {
                MessageVectors vectors = new MessageVectors();
                vectors.version = version;
                vectors.root = (Message) instance(type);
                if (!variant.equals("default"))
                    vectors.fill(vectors.root);
                if (variant.equals("null leaves"))
                    vectors.clear(vectors.root, true);
                if (variant.equals("nulls"))
                    vectors.clear(vectors.root, false);
                if (variant.equals("tagged"))
                    vectors.tag(vectors.root);
                byte[] bytes = vectors.bytes();
                if (bytes == null)
                    throw new IllegalStateException(type + " " + version + " " + variant);
                String hex = HexFormat.of().formatHex(bytes);
                if (!written.add(hex))
                    continue;
                JsonNode json = (JsonNode) converter.invoke(null, vectors.root, version);
                out.write("{\"message\": \"" + type.getSimpleName() + "\", \"version\": " + version + ", \"variant\": \""
                    + variant + "\", \"bytes\": \"" + hex + "\", \"fields\": " + json + "}\n");
            }
        }
    }

    static Object instance(Class<?> type) throws Exception {
        Constructor<?> constructor = type.getDeclaredConstructor();
        constructor.setAccessible(true);
        return constructor.newInstance();
    }

    /** The message's bytes, or null if this version cannot carry what is set. */
    byte[] bytes() {
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBufferAccessor accessor = new ByteBufferAccessor(ByteBuffer.allocate(root.size(cache, version)));
            root.write(accessor, cache, version);
            return accessor.buffer().array();
        } catch (RuntimeException exception) {
            return null;
        }
    }

    static List<Field> fields(Class<?> type) {
        List<Field> fields = new ArrayList<>();
        for (Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || Set.of("next", "prev", "_unknownTaggedFields").contains(field.getName()))
                continue;
            field.setAccessible(true);
            fields.add(field);
        }
        return fields;
    }

    /** Set every field that this version carries, each to a value of its own. */
    void fill(Object struct) throws Exception {
        for (Field field : fields(struct.getClass())) {
            Object before = field.get(struct);
            if (isElement(field.getType())) {
                Object inner = instance(field.getType());
                field.set(struct, inner);
                if (bytes() == null)
                    field.set(struct, before);
                else
                    fill(inner);
            } else if (Collection.class.isAssignableFrom(field.getType())) {
                fillCollection(struct, field, before);
            } else {
                field.set(struct, scalar(field.getType(), unsigned(struct.getClass(), field)));
                if (bytes() == null)
                    field.set(struct, before);
            }
        }
    }

    @SuppressWarnings("unchecked")
    void fillCollection(Object struct, Field field, Object before) throws Exception {
        boolean isList = field.getType() == List.class;
        Collection<Object> collection = isList ? new ArrayList<>() : (Collection<Object>) instance(field.getType());
        Type generic = isList ? field.getGenericType() : field.getType().getGenericSuperclass();
        Class<?> element = (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
        field.set(struct, collection);
        for (int i = 0; i < 2; i++) {
            Object item = isElement(element) ? instance(element) : scalar(element, null);
            collection.add(item);
            if (bytes() == null) {
                field.set(struct, before);
                return;
            }
            if (isElement(element))
                fill(item);
        }
    }

    static boolean isElement(Class<?> type) {
        return Message.class.isAssignableFrom(type);
    }

    /** The name of an unsigned type of the schema, whose values have the highest bit set; else null. */
    static String unsigned(Class<?> type, Field field) throws Exception {
        String name = field.getName().replaceAll("([A-Z])", "_$1").toLowerCase();
        for (Schema schema : (Schema[]) type.getField("SCHEMAS").get(null)) {
            if (schema == null)
                continue;
            for (BoundField bound : schema.fields()) {
                if (bound.def.name.equals(name) && bound.def.type.toString().startsWith("UINT"))
                    return bound.def.type.toString();
            }
        }
        return null;
    }

    Object scalar(Class<?> type, String unsigned) {
        int next = ++counter;
        if (type == byte.class || type == Byte.class)
            return (byte) (next % 100 + 1);
        if (type == short.class || type == Short.class)
            return (short) (1000 + next);
        if (type == int.class || type == Integer.class)
            return unsigned == null ? next % 2 == 0 ? -5 - next : 1_000_000_000 + next : 40_000 + next;
        if (type == long.class || type == Long.class)
            return unsigned == null ? (next % 2 == 0 ? -7_000_000_000L - next : (1L << 50) + next) : 3_000_000_000L + next;
        if (type == double.class || type == Double.class)
            return next + 0.25;
        if (type == boolean.class || type == Boolean.class)
            return next % 2 == 0 || true;
        if (type == String.class)
            return "text-" + next + "-é";
        if (type == byte[].class)
            return new byte[] {(byte) next, 0, (byte) 0xff};
        if (type == ByteBuffer.class)
            return ByteBuffer.wrap(new byte[] {(byte) 0xfe, (byte) next});
        if (type == Uuid.class)
            return new Uuid(0x0102030405060708L, next);
        if (BaseRecords.class.isAssignableFrom(type))
            return MemoryRecords.readableRecords(ByteBuffer.wrap(RECORDS));
        throw new IllegalStateException("no value of type " + type);
    }

    /** Set to null what may be null: strings and bytes only, or everything from the top down. */
    void clear(Object struct, boolean leavesOnly) throws Exception {
        for (Field field : fields(struct.getClass())) {
            if (field.getType().isPrimitive())
                continue;
            Object before = field.get(struct);
            boolean isLeaf = !isElement(field.getType()) && !Collection.class.isAssignableFrom(field.getType());
            if (isLeaf || !leavesOnly) {
                field.set(struct, null);
                if (bytes() != null)
                    continue;
                field.set(struct, before);
            }
            if (before instanceof Message)
                clear(before, leavesOnly);
            if (before instanceof Collection<?> items) {
                for (Object item : items) {
                    if (item instanceof Message)
                        clear(item, leavesOnly);
                }
            }
        }
    }

    /** Add a tagged field that nobody knows to every structure of a version that has them (KIP-482). */
    void tag(Object struct) throws Exception {
        List<RawTaggedField> tagged = ((Message) struct).unknownTaggedFields();
        tagged.add(new RawTaggedField(10_000 + ++counter, new byte[] {1, 2, (byte) counter}));
        if (bytes() == null)
            tagged.clear();
        for (Field field : fields(struct.getClass())) {
            Object value = field.get(struct);
            if (value instanceof Message)
                tag(value);
            if (value instanceof Collection<?> items) {
                for (Object item : items) {
                    if (item instanceof Message)
                        tag(item);
                }
            }
        }
    }
}
