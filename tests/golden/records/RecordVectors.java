// Writes the vectors of this folder with Apache Kafka's own classes. See README.md.

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;
import org.apache.kafka.common.utils.internals.ByteUtils;
import org.apache.kafka.common.utils.internals.Crc32C;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

public class RecordVectors {
    static final long NOW = 1_700_000_000_000L;
    static final CompressionType[] CODECS = CompressionType.values();
    static PrintStream out;

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        out = new PrintStream(folder.resolve("batches.jsonl").toFile(), StandardCharsets.UTF_8);
        builtBatches();
        controlBatches();
        legacyBatches();
        out.close();
        out = new PrintStream(folder.resolve("validation.jsonl").toFile(), StandardCharsets.UTF_8);
        validations();
        out.close();
    }

    // --- batches ------------------------------------------------------------------------------

    static byte[] text(String value) {
        return value == null ? null : value.getBytes(StandardCharsets.UTF_8);
    }

    static List<SimpleRecord> records() {
        List<SimpleRecord> records = new ArrayList<>();
        String[] contents = {null, "", "x"};
        long timestamp = NOW;
        for (String key : contents) {
            for (String value : contents) {
                records.add(new SimpleRecord(timestamp, text(key), text(value)));
                timestamp += 40;
            }
        }
        records.add(new SimpleRecord(0L, text("epoch"), text("timestamp zero")));
        records.add(new SimpleRecord(NOW - 100_000, text("old"), text("v".repeat(200)), new Header[] {
            new RecordHeader("empty", new byte[0]), new RecordHeader("null", null),
            new RecordHeader("same", text("1")), new RecordHeader("same", text("2")), new RecordHeader("", text("h")),
            new RecordHeader("ключ", text("value"))}));
        for (int i = 0; i < 12; i++)
            records.add(new SimpleRecord(NOW + i, text("key-" + i), text("value-" + i)));
        return records;
    }

    static Compression codec(CompressionType type) {
        return Compression.of(type).build();
    }

    static void builtBatches() throws IOException {
        for (CompressionType type : CODECS) {
            batch("create time " + type.name, builder(type, TimestampType.CREATE_TIME, 10, -1, (short) -1, -1, false, 3), records());
            batch("log append time " + type.name, builder(type, TimestampType.LOG_APPEND_TIME, 0, -1, (short) -1, -1, false, 3), records());
            batch("idempotent " + type.name, builder(type, TimestampType.CREATE_TIME, 5, 77, (short) 2, 2147483600, false, 0), records());
            batch("transactional " + type.name, builder(type, TimestampType.CREATE_TIME, 5, 4_000_000_000_000L, (short) 32767, 0, true, 9), records());
        }
        batch("no timestamp", builder(CompressionType.NONE, TimestampType.CREATE_TIME, 0, -1, (short) -1, -1, false, 0),
            List.of(new SimpleRecord(-1L, null, text("v"))));
        batch("one record", builder(CompressionType.NONE, TimestampType.CREATE_TIME, 9_000_000_000L, -1, (short) -1, -1, false, 2147483647),
            List.of(new SimpleRecord(NOW, text("k"), text("v"))));
        for (int level : new int[] {1, 9})
            levels("gzip level " + level, Compression.gzip().level(level).build());
        for (int level : new int[] {1, 9, 17})
            levels("lz4 level " + level, Compression.lz4().level(level).build());
        for (int level : new int[] {-5, 1, 22})
            levels("zstd level " + level, Compression.zstd().level(level).build());
        compacted();
    }

    static void levels(String name, Compression compression) throws IOException {
        List<SimpleRecord> many = new ArrayList<>();
        for (int i = 0; i < 60; i++)
            many.add(new SimpleRecord(NOW + i, text("key-" + i), text(("a" + i % 10).repeat(100))));
        batch(name, new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), (byte) 2, compression, TimestampType.CREATE_TIME,
            0, NOW, -1, (short) -1, -1, false, false, 0, Integer.MAX_VALUE), many);
    }

    static MemoryRecordsBuilder builder(CompressionType type, TimestampType timestampType, long baseOffset, long producerId,
                                        short producerEpoch, int baseSequence, boolean transactional, int leaderEpoch) {
        return new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), (byte) 2, codec(type), timestampType, baseOffset,
            NOW + 5, producerId, producerEpoch, baseSequence, transactional, false, leaderEpoch, Integer.MAX_VALUE);
    }

    static void batch(String name, MemoryRecordsBuilder builder, List<SimpleRecord> records) {
        for (SimpleRecord record : records)
            builder.append(record);
        print(name, builder.build());
    }

    static void compacted() {
        for (long horizon : new long[] {-1L, NOW + 1000}) {
            MemoryRecordsBuilder builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), (byte) 2,
                codec(CompressionType.GZIP), TimestampType.CREATE_TIME, 100, NOW, 7, (short) 1, 20, false, false, 4,
                Integer.MAX_VALUE, horizon);
            builder.appendWithOffset(102, NOW, text("a"), text("1"));
            builder.appendWithOffset(107, NOW - 50, text("b"), null);
            builder.overrideLastOffset(110);
            print(horizon < 0 ? "compacted" : "compacted with delete horizon", builder.build());
        }
        ByteBuffer buffer = ByteBuffer.allocate(61);
        DefaultRecordBatch.writeEmptyHeader(buffer, (byte) 2, 7, (short) 1, 20, 100, 110, 4, TimestampType.CREATE_TIME, NOW, true, false);
        buffer.flip();
        print("emptied", MemoryRecords.readableRecords(buffer));
    }

    static void controlBatches() {
        for (ControlRecordType type : new ControlRecordType[] {ControlRecordType.COMMIT, ControlRecordType.ABORT})
            print("marker " + type, MemoryRecords.withEndTransactionMarker(50, NOW, 6, 4711, (short) 3, new EndTransactionMarker(type, 12)));
        LeaderChangeMessage leader = new LeaderChangeMessage().setLeaderId(1)
            .setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1), new LeaderChangeMessage.Voter().setVoterId(2)))
            .setGrantingVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(2)));
        print("leader change", MemoryRecords.withLeaderChangeMessage(0, NOW, 1, ByteBuffer.allocate(512), leader));
        print("snapshot header", MemoryRecords.withSnapshotHeaderRecord(0, NOW, 1, ByteBuffer.allocate(512),
            new SnapshotHeaderRecord().setVersion((short) 0).setLastContainedLogTimestamp(NOW)));
        print("snapshot footer", MemoryRecords.withSnapshotFooterRecord(9, NOW, 1, ByteBuffer.allocate(512),
            new SnapshotFooterRecord().setVersion((short) 0)));
        print("kraft version", MemoryRecords.withKRaftVersionRecord(0, NOW, 1, ByteBuffer.allocate(512),
            new KRaftVersionRecord().setKRaftVersion((short) 1)));
        print("kraft voters", MemoryRecords.withVotersRecord(0, NOW, 1, ByteBuffer.allocate(512),
            new VotersRecord().setVoters(List.of(new VotersRecord.Voter().setVoterId(3)))));
    }

    static void legacyBatches() {
        for (byte magic = 0; magic < 2; magic++) {
            for (CompressionType type : new CompressionType[] {CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4}) {
                MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(4096), magic, codec(type),
                    TimestampType.CREATE_TIME, 20);
                builder.append(magic == 0 ? -1 : NOW, text("a"), text("1"));
                builder.append(magic == 0 ? -1 : NOW + 1, text("b"), (byte[]) null);
                print("magic " + magic + " " + type.name, builder.build());
            }
        }
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null)
            return "null";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return '"' + HexFormat.of().formatHex(bytes) + '"';
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "null" : hex(ByteBuffer.wrap(bytes));
    }

    static void print(String name, MemoryRecords built) {
        StringBuilder line = new StringBuilder("{\"name\": \"" + name + "\", \"bytes\": " + hex(built.buffer()) + ", \"batches\": [");
        String separator = "";
        for (MutableRecordBatch batch : built.batches()) {
            line.append(separator).append("{\"magic\": " + batch.magic() + ", \"base_offset\": " + batch.baseOffset()
                + ", \"last_offset\": " + batch.lastOffset() + ", \"size_bytes\": " + batch.sizeInBytes()
                + ", \"max_timestamp\": " + batch.maxTimestamp() + ", \"compression\": \"" + batch.compressionType().name + "\""
                + ", \"producer_id\": " + batch.producerId() + ", \"producer_epoch\": " + batch.producerEpoch()
                + ", \"base_sequence\": " + batch.baseSequence() + ", \"last_sequence\": " + batch.lastSequence()
                + ", \"partition_leader_epoch\": " + batch.partitionLeaderEpoch()
                + ", \"is_transactional\": " + batch.isTransactional() + ", \"is_control\": " + batch.isControlBatch()
                + ", \"is_log_append_time\": " + (batch.timestampType() == TimestampType.LOG_APPEND_TIME)
                + ", \"delete_horizon_ms\": " + (batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : "null")
                + ", \"record_count\": " + batch.countOrNull() + ", \"records\": [");
            String comma = "";
            for (Record record : batch) {
                line.append(comma + "[" + record.offset() + ", " + record.timestamp() + ", " + hex(record.key()) + ", " + hex(record.value()) + ", [");
                String inner = "";
                for (Header header : record.headers()) {
                    line.append(inner + "[" + hex(text(header.key())) + ", " + hex(header.value()) + "]");
                    inner = ", ";
                }
                line.append("], " + record.sequence() + "]");
                comma = ", ";
            }
            line.append("]}");
            separator = ", ";
        }
        out.println(line.append("]}"));
    }

    // --- validation ---------------------------------------------------------------------------

    record Topic(CompressionType compression, boolean compacted, TimestampType timestampType, long before, long after, int recordMax) {
        static Topic producer() {
            return new Topic(null, false, TimestampType.CREATE_TIME, Long.MAX_VALUE, 3_600_000L, Integer.MAX_VALUE - 8);
        }
        Topic compression(CompressionType value) {
            return new Topic(value, compacted, timestampType, before, after, recordMax);
        }
        Topic compact() {
            return new Topic(compression, true, timestampType, before, after, recordMax);
        }
        Topic appendTime() {
            return new Topic(compression, compacted, TimestampType.LOG_APPEND_TIME, before, after, recordMax);
        }
        Topic within(long value) {
            return new Topic(compression, compacted, timestampType, value, value, recordMax);
        }
        Topic recordMax(int value) {
            return new Topic(compression, compacted, timestampType, before, after, value);
        }
    }

    static class Payload {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        final DataOutputStream stream = new DataOutputStream(bytes);

        Payload varint(int value) throws IOException {
            ByteUtils.writeVarint(value, stream);
            return this;
        }
        Payload varlong(long value) throws IOException {
            ByteUtils.writeVarlong(value, stream);
            return this;
        }
        Payload raw(int... values) throws IOException {
            for (int value : values)
                stream.writeByte(value);
            return this;
        }
        Payload field(byte[] value) throws IOException {
            varint(value == null ? -1 : value.length);
            if (value != null)
                stream.write(value);
            return this;
        }
        Payload record(Payload body, int sizeError) throws IOException {
            varint(body.bytes.size() + sizeError);
            body.bytes.writeTo(stream);
            return this;
        }
        Payload record(int offsetDelta, long timestampDelta, String key, String value) throws IOException {
            return record(new Payload().raw(0).varlong(timestampDelta).varint(offsetDelta).field(text(key)).field(text(value)).varint(0), 0);
        }
    }

    static byte[] compressed(CompressionType type, byte[] payload) throws IOException {
        ByteBufferOutputStream buffer = new ByteBufferOutputStream(1024);
        try (var stream = codec(type).wrapForOutput(buffer, (byte) 2)) {
            stream.write(payload);
        }
        ByteBuffer written = buffer.buffer();
        written.flip();
        byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        return bytes;
    }

    static byte[] raw(int attributes, int count, int lastOffsetDelta, long baseTimestamp, long maxTimestamp, long producerId,
                      int baseSequence, byte[] payload) {
        ByteBuffer buffer = ByteBuffer.allocate(61 + payload.length);
        buffer.putLong(0).putInt(49 + payload.length).putInt(0).put((byte) 2).putInt(0).putShort((short) attributes)
            .putInt(lastOffsetDelta).putLong(baseTimestamp).putLong(maxTimestamp).putLong(producerId)
            .putShort((short) (producerId < 0 ? -1 : 0)).putInt(baseSequence).putInt(count).put(payload);
        buffer.putInt(17, (int) Crc32C.compute(buffer.array(), 21, buffer.capacity() - 21));
        return buffer.array();
    }

    static byte[] raw(CompressionType type, int count, Payload payload) throws IOException {
        return raw(type.id, count, count - 1, NOW, NOW, -1, -1, compressed(type, payload.bytes.toByteArray()));
    }

    static byte[] built(CompressionType type, TimestampType timestampType, List<SimpleRecord> records) {
        MemoryRecordsBuilder builder = builder(type, timestampType, 0, -1, (short) -1, -1, false, 0);
        for (SimpleRecord record : records)
            builder.append(record);
        ByteBuffer buffer = builder.build().buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    static void validations() throws Exception {
        Topic plain = Topic.producer();
        List<SimpleRecord> keyed = List.of(new SimpleRecord(NOW - 10, text("a"), text("1")), new SimpleRecord(NOW + 10, text("b"), text("2")),
            new SimpleRecord(NOW + 10, text("c"), null));
        List<SimpleRecord> keyless = List.of(new SimpleRecord(NOW, text("a"), text("1")), new SimpleRecord(NOW, null, text("2")),
            new SimpleRecord(NOW, null, text("3")), new SimpleRecord(NOW, text(""), text("4")));
        List<SimpleRecord> mixed = List.of(new SimpleRecord(NOW - 5000, text("a"), text("1")), new SimpleRecord(-1L, text("b"), text("2")),
            new SimpleRecord(NOW + 5000, null, text("3")), new SimpleRecord(NOW, null, text("4")), new SimpleRecord(0L, text("e"), text("5")));
        for (CompressionType source : new CompressionType[] {CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD}) {
            byte[] good = built(source, TimestampType.CREATE_TIME, keyed);
            validate("accepted " + source.name, good, plain);
            validate("append time " + source.name, good, plain.appendTime());
            for (CompressionType target : new CompressionType[] {CompressionType.NONE, CompressionType.GZIP, CompressionType.ZSTD})
                validate("recompressed " + source.name + " to " + target.name, good, plain.compression(target));
            validate("recompressed append time " + source.name, good, plain.appendTime().compression(CompressionType.LZ4));
        }
        for (CompressionType source : new CompressionType[] {CompressionType.NONE, CompressionType.GZIP}) {
            String name = " " + source.name;
            validate("keyless on compacted" + name, built(source, TimestampType.CREATE_TIME, keyless), plain.compact());
            validate("keyless on plain" + name, built(source, TimestampType.CREATE_TIME, keyless), plain);
            validate("timestamps out of range" + name, built(source, TimestampType.CREATE_TIME, mixed), plain.within(1000));
            validate("timestamps out of range, keyless" + name, built(source, TimestampType.CREATE_TIME, mixed), plain.within(1000).compact());
            validate("timestamps ignored" + name, built(source, TimestampType.CREATE_TIME, mixed), plain.within(1000).appendTime());
            validate("claims append time" + name, built(source, TimestampType.LOG_APPEND_TIME, keyed), plain);
            validate("claims append time, too old" + name, built(source, TimestampType.LOG_APPEND_TIME, keyed), plain.within(1));
            validate("claims append time on append time" + name, built(source, TimestampType.LOG_APPEND_TIME, keyed), plain.appendTime());
            validate("claims append time, recompressed" + name, built(source, TimestampType.LOG_APPEND_TIME, keyed), plain.compression(CompressionType.SNAPPY));
            validate("claims append time -1" + name, raw(source.id | 8, 2, 1, NOW, -1, -1, -1, compressed(source,
                new Payload().record(0, 0, "a", "1").record(1, 0, null, "2").bytes.toByteArray())), plain.compact());
            Payload two = new Payload().record(0, 0, "a", "1").record(1, 5, "b", "2");
            validate("wrong max timestamp" + name, raw(source.id, 2, 1, NOW, 12345, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("base timestamp not the first" + name, raw(source.id, 2, 1, NOW - 700, 12345, -1, -1,
                compressed(source, new Payload().record(0, 3, "a", "1").record(1, -5, "b", "2").bytes.toByteArray())), plain.compression(CompressionType.ZSTD));
            validate("timestamps below -1" + name, raw(source.id, 2, 1, -700, 12345, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("offsets all zero" + name, raw(source, 2, new Payload().record(0, 0, "a", "1").record(0, 5, "b", "2")), plain);
            validate("offsets all zero, recompressed" + name, raw(source, 2, new Payload().record(0, 0, "a", "1").record(0, 5, "b", "2")), plain.compression(CompressionType.LZ4));
            validate("offsets with gap" + name, raw(source, 2, new Payload().record(0, 0, "a", "1").record(2, 5, "b", "2")), plain);
            validate("negative offset delta" + name, raw(source, 2, new Payload().record(-3, 0, "a", "1").record(1, 5, "b", "2")), plain);
            validate("count too small" + name, raw(source, 1, new Payload().record(0, 0, "a", "1").record(1, 0, "b", "2")), plain);
            validate("count too large" + name, raw(source, 3, new Payload().record(0, 0, "a", "1").record(1, 0, "b", "2")), plain);
            validate("trailing bytes" + name, raw(source, 1, new Payload().record(0, 0, "a", "1").raw(0)), plain);
            validate("no payload" + name, raw(source, 1, new Payload()), plain);
            Payload body = new Payload().raw(0).varlong(0).varint(0).field(text("a")).field(text("1")).varint(0);
            validate("record one byte too short" + name, raw(source, 1, new Payload().record(body, -1)), plain);
            validate("record one byte too long" + name, raw(source, 1, new Payload().record(body, 1)), plain);
            validate("record long with padding" + name, raw(source, 1, new Payload().record(body, 1).raw(0)), plain);
            validate("record length negative" + name, raw(source, 1, new Payload().record(body, -100)), plain);
            validate("record length huge" + name, raw(source, 1, new Payload().record(body, 2_000_000_000)), plain);
            validate("record length of six bytes" + name, raw(source, 1, new Payload().raw(0xff, 0xff, 0xff, 0xff, 0xff, 1)), plain);
            validate("record length overlong" + name, raw(source, 1, new Payload().raw(0x90, 0x80, 0x80, 0x80, 0x00)
                .raw(0, 0, 0, 2, 'a', 2, '1', 0)), plain);
            validate("record length with bits above 32" + name, raw(source, 1, new Payload().raw(0x90, 0x80, 0x80, 0x80, 0x70)
                .raw(0, 0, 0, 2, 'a', 2, '1', 0)), plain);
            validate("timestamp of eleven bytes" + name, raw(source, 1, new Payload().record(new Payload().raw(0)
                .raw(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1).varint(0).field(null).field(null).varint(0), 0)), plain);
            validate("timestamp of ten bytes" + name, raw(source, 1, new Payload().record(new Payload().raw(0)
                .raw(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7e).varint(0).field(null).field(null).varint(0), 0)), plain);
            validate("key length -2" + name, raw(source, 1, new Payload().record(new Payload().raw(0).varlong(0).varint(0).varint(-2).field(text("v")).varint(0), 0)), plain.compact());
            validate("value length -7" + name, raw(source, 1, new Payload().record(new Payload().raw(0).varlong(0).varint(0).field(text("k")).varint(-7).varint(0), 0)), plain);
            validate("value length huge" + name, raw(source, 1, new Payload().record(new Payload().raw(0).varlong(0).varint(0).field(text("k")).varint(1 << 30).varint(0), 0)), plain);
            validate("header count negative" + name, raw(source, 1, new Payload().record(new Payload().raw(0).varlong(0).varint(0).field(null).field(null).varint(-1), 0)), plain);
            validate("header count huge" + name, raw(source, 1, new Payload().record(new Payload().raw(0).varlong(0).varint(0).field(null).field(null).varint(1000), 0)), plain);
            validate("header key null" + name, raw(source, 1, new Payload().record(new Payload().raw(0).varlong(0).varint(0).field(null).field(null).varint(1).varint(-1).varint(-1), 0)), plain);
            validate("header value null" + name, raw(source, 1, new Payload().record(new Payload().raw(0).varlong(0).varint(0).field(null).field(null).varint(1).field(text("h")).varint(-1), 0)), plain);
            validate("header key not utf-8" + name, raw(source, 1, new Payload().record(new Payload().raw(0).varlong(0).varint(0).field(null).field(null).varint(1).field(new byte[] {(byte) 0xff}).varint(-1), 0)), plain);
            validate("record attributes set" + name, raw(source, 1, new Payload().record(new Payload().raw(0x55).varlong(0).varint(0).field(null).field(null).varint(0), 0)), plain);
            validate("unused attribute bits" + name, raw(source.id | 0xff80, 2, 1, NOW, NOW, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("delete horizon bit" + name, raw(source.id | 0x40, 2, 1, NOW, NOW, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("transactional" + name, raw(source.id | 0x10, 2, 1, NOW, NOW, 5, 0, compressed(source, two.bytes.toByteArray())), plain.compression(CompressionType.GZIP));
            validate("control" + name, raw(source.id | 0x20, 2, 1, NOW, NOW, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("last offset delta -1" + name, raw(source.id, 2, -1, NOW, NOW, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("count zero" + name, raw(source.id, 0, 1, NOW, NOW, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("count negative" + name, raw(source.id, -1, 1, NOW, NOW, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("count not that of the offsets" + name, raw(source.id, 2, 4, NOW, NOW, -1, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("producer without sequence" + name, raw(source.id, 2, 1, NOW, NOW, 5, -1, compressed(source, two.bytes.toByteArray())), plain);
            validate("record over the decompressed maximum" + name, raw(source, 1, new Payload().record(0, 0, "k", "v".repeat(100))), plain.recordMax(100));
            validate("record at the decompressed maximum" + name, raw(source, 1, new Payload().record(0, 0, "k", "v".repeat(100))), plain.recordMax(108));
        }
        Payload two = new Payload().record(0, 0, "a", "1").record(1, 5, "b", "2");
        for (CompressionType source : new CompressionType[] {CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD}) {
            byte[] packed = compressed(source, two.bytes.toByteArray());
            validate("not compressed " + source.name, raw(source.id, 2, 1, NOW, NOW, -1, -1, two.bytes.toByteArray()), plain);
            validate("compressed and cut " + source.name, raw(source.id, 2, 1, NOW, NOW, -1, -1, java.util.Arrays.copyOf(packed, packed.length - 3)), plain);
            validate("compressed with trailing bytes " + source.name, raw(source.id, 2, 1, NOW, NOW, -1, -1, java.util.Arrays.copyOf(packed, packed.length + 3)), plain);
            validate("compressed twice over " + source.name, raw(source.id, 4, 3, NOW, NOW, -1, -1, twice(source, two)), plain);
        }
        validate("unknown codec 5", raw(5, 2, 1, NOW, NOW, -1, -1, two.bytes.toByteArray()), plain);
        validate("unknown codec 7", raw(7, 2, 1, NOW, NOW, -1, -1, two.bytes.toByteArray()), plain);
    }

    static byte[] twice(CompressionType source, Payload two) throws IOException {
        ByteArrayOutputStream joined = new ByteArrayOutputStream();
        joined.write(compressed(source, two.bytes.toByteArray()));
        joined.write(compressed(source, new Payload().record(2, 0, "c", "3").record(3, 5, "d", "4").bytes.toByteArray()));
        return joined.toByteArray();
    }

    static Object still(Class<?> type) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (proxy, method, arguments) -> method.getReturnType() == long.class ? (Object) NOW : null);
    }

    static String quoted(String value) {
        return value == null ? "null" : '"' + value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + '"';
    }

    static void validate(String name, byte[] input, Topic topic) {
        String line = "{\"name\": \"" + name + "\", \"input\": " + hex(input) + ", \"compression\": "
            + quoted(topic.compression == null ? null : topic.compression.name) + ", \"is_compacted\": " + topic.compacted
            + ", \"log_append_time\": " + (topic.timestampType == TimestampType.LOG_APPEND_TIME)
            + ", \"timestamp_before_max_ms\": " + topic.before + ", \"timestamp_after_max_ms\": " + topic.after
            + ", \"max_decompressed_message_bytes\": " + topic.recordMax + ", ";
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(input.clone()));
            CompressionType source = records.batches().iterator().next().compressionType();
            Compression target = codec(topic.compression == null ? source : topic.compression);
            LogValidator.ValidationResult result = new LogValidator(records, new TopicPartition("t", 0), (Time) still(Time.class),
                source, target, topic.compacted, (byte) 2, topic.timestampType, topic.before, topic.after, 7, AppendOrigin.CLIENT,
                topic.recordMax).validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(1000),
                (LogValidator.MetricsRecorder) still(LogValidator.MetricsRecorder.class), BufferSupplier.NO_CACHING);
            line += "\"output\": " + hex(result.validatedRecords().buffer()) + ", \"max_timestamp\": " + result.maxTimestampMs();
        } catch (RecordValidationException exception) {
            line += error(exception.invalidException()) + ", \"record_errors\": [";
            String comma = "";
            for (ProduceResponse.RecordError error : exception.recordErrors()) {
                line += comma + "[" + error.batchIndex + ", " + quoted(error.message) + "]";
                comma = ", ";
            }
            line += "]";
        } catch (Exception exception) {
            line += error(exception);
        }
        out.println(line + "}");
    }

    static String error(Exception exception) {
        return "\"error\": \"" + Errors.forException(exception) + "\", \"message\": " + quoted(exception.getMessage())
            + ", \"exception\": \"" + exception.getClass().getSimpleName() + "\"";
    }
}
