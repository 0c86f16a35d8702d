// The topics whose folders go from one broker to another: every codec, idempotent batches, keys, headers, tombstones,
// several segments, a compacted topic, transactions that commit and abort.
//
//   Folders.java BOOTSTRAP write                                     makes and fills them
//   Folders.java BOOTSTRAP append                                    more records, idempotent, to codecs and segments
//   Folders.java BOOTSTRAP read_committed|read_uncommitted TOPIC...  prints each record, then the end offsets, as JSON lines
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

public class Folders {
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    static final long FIRST_MS = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        if (args[1].equals("write")) {
            write(args[0]);
        } else if (args[1].equals("append")) {
            writeCodecs(args[0]);
            writeSegments(args[0]);
        } else {
            for (String topic : List.of(args).subList(2, args.length)) read(args[0], topic, args[1]);
        }
    }

    static void write(String bootstrap) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            Map<String, String> keepAll = Map.of("retention.ms", "-1");
            Map<String, String> manySegments = Map.of("retention.ms", "-1", "segment.bytes", "1048576", "index.interval.bytes", "1000");
            Map<String, String> compacted = Map.of("cleanup.policy", "compact", "segment.bytes", "1048576",
                "min.cleanable.dirty.ratio", "0.01", "max.compaction.lag.ms", "100", "min.compaction.lag.ms", "0", "delete.retention.ms", "0");
            admin.createTopics(List.of(
                new NewTopic("codecs", 2, (short) 1).configs(keepAll),
                new NewTopic("segments", 1, (short) 1).configs(manySegments),
                new NewTopic("transactions", 1, (short) 1).configs(keepAll),
                new NewTopic("compacted", 1, (short) 1).configs(compacted),
                new NewTopic("untouched", 3, (short) 1).configs(keepAll))).all().get();
        }
        writeCodecs(bootstrap);
        writeSegments(bootstrap);
        writeTransactions(bootstrap);
        writeCompacted(bootstrap);
    }

    static void writeCodecs(String bootstrap) {
        int n = 0;
        for (String codec : CODECS) {
            try (Producer<byte[], byte[]> producer = producer(bootstrap, Map.of("compression.type", codec, "linger.ms", "5"))) {
                for (int i = 0; i < 40; i++, n++) {
                    byte[] key = n % 7 == 0 ? null : ("key-" + n % 5).getBytes();
                    byte[] value = n % 11 == 0 ? null : (codec + "-" + n + "-" + "x".repeat(n)).getBytes();
                    ProducerRecord<byte[], byte[]> record = new ProducerRecord<>("codecs", n % 2, FIRST_MS + n * 1000L, key, value);
                    record.headers().add("codec", codec.getBytes()).add("empty", null).add("codec", new byte[] {1, 2});
                    producer.send(record);
                }
            }
        }
    }

    static void writeSegments(String bootstrap) {
        try (Producer<byte[], byte[]> producer = producer(bootstrap, Map.of("batch.size", "20000"))) {
            Random random = new Random(7);
            for (int n = 0; n < 4000; n++) {
                byte[] value = new byte[1000];
                random.nextBytes(value);
                producer.send(new ProducerRecord<>("segments", 0, FIRST_MS + n, null, value));
            }
        }
    }

    static void writeTransactions(String bootstrap) throws Exception {
        try (Producer<byte[], byte[]> plain = producer(bootstrap, Map.of());
             Producer<byte[], byte[]> first = producer(bootstrap, Map.of("transactional.id", "first"));
             Producer<byte[], byte[]> second = producer(bootstrap, Map.of("transactional.id", "second"))) {
            first.initTransactions();
            second.initTransactions();
            for (int round = 0; round < 6; round++) {
                first.beginTransaction();
                second.beginTransaction();
                for (int i = 0; i < 3; i++) {
                    send(first, "first-" + round + "-" + i);
                    send(second, "second-" + round + "-" + i);
                    send(plain, "plain-" + round + "-" + i);
                }
                if (round % 2 == 0) first.commitTransaction(); else first.abortTransaction();
                if (round % 3 == 0) second.abortTransaction(); else second.commitTransaction();
            }
        }
    }

    static void send(Producer<byte[], byte[]> producer, String value) throws Exception {
        producer.send(new ProducerRecord<>("transactions", 0, null, value.getBytes(), value.getBytes())).get();
    }

    static void writeCompacted(String bootstrap) {
        try (Producer<byte[], byte[]> producer = producer(bootstrap, Map.of())) {
            for (int n = 0; n < 6000; n++) {
                byte[] value = n % 50 == 49 ? null : ("value-" + n + "y".repeat(900)).getBytes();
                producer.send(new ProducerRecord<>("compacted", 0, null, ("key-" + n % 60).getBytes(), value));
            }
        }
    }

    static Producer<byte[], byte[]> producer(String bootstrap, Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static void read(String bootstrap, String topic, String isolation) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation, "auto.offset.reset", "earliest");
        try (Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition())).sorted(Comparator.comparing(TopicPartition::partition)).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + 60_000_000_000L;
            StringBuilder out = new StringBuilder();
            while (partitions.stream().anyMatch(tp -> consumer.position(tp) < ends.get(tp))) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("not at the end of " + ends + " after 60 s");
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) out.append(json(record)).append('\n');
            }
            System.out.print(out);
            System.out.println("{\"topic\":\"" + topic + "\",\"ends\":[" + String.join(",", partitions.stream().map(tp -> "" + ends.get(tp)).toList()) + "]}");
        }
    }

    static String json(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder headers = new StringBuilder();
        for (Header header : record.headers())
            headers.append(headers.isEmpty() ? "" : ",").append("[\"").append(header.key()).append("\",").append(hex(header.value())).append("]");
        return "{\"topic\":\"" + record.topic() + "\",\"partition\":" + record.partition() + ",\"offset\":" + record.offset()
            + ",\"timestamp\":" + record.timestamp() + ",\"key\":" + hex(record.key()) + ",\"value\":" + hex(record.value()) + ",\"headers\":[" + headers + "]}";
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "null" : "\"" + HexFormat.of().formatHex(bytes) + "\"";
    }
}
