// Round trips with Apache Kafka's own Java client: what every program in this folder's neighbours does, in the same
// words. Prints one JSON line per check; the Python test says what is right.
//
//   Client.java BOOTSTRAP PREFIX      (topics are named PREFIX-...)
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

public class Client {
    static final long FIRST_MS = 1_700_000_000_000L;
    static final int LARGE_BYTES = 5_000_000;
    static String bootstrap;
    static String prefix;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        prefix = args[1];
        try (Admin opened = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin = opened;
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) codec(codec);
            for (String acks : List.of("0", "1", "all")) acks(acks);
            partitions();
            seek();
            ordered();
            large();
            longPolling();
            adminRoundTrip();
        }
    }

    static void codec(String codec) throws Exception {
        String topic = create("codec-" + codec, 1, Map.of());
        try (Producer<byte[], byte[]> producer = producer(Map.of("compression.type", codec, "linger.ms", "20"))) {
            for (ProducerRecord<byte[], byte[]> record : samples(topic)) producer.send(record);
        }
        say("codec-" + codec, "\"records\":[" + String.join(",", read(topic, 4).stream().map(Client::json).toList()) + "]");
    }

    static List<ProducerRecord<byte[], byte[]>> samples(String topic) {
        ProducerRecord<byte[], byte[]> first = new ProducerRecord<>(topic, 0, FIRST_MS, "k0".getBytes(), "v0".getBytes());
        first.headers().add("a", new byte[] {1}).add("b", new byte[0]);
        return List.of(first,
            new ProducerRecord<>(topic, 0, FIRST_MS + 1000, "k1".getBytes(), (byte[]) null),
            new ProducerRecord<>(topic, 0, FIRST_MS + 2000, null, "v2".getBytes()),
            new ProducerRecord<>(topic, 0, FIRST_MS + 3000, "k3".getBytes(), "z".repeat(10_000).getBytes()));
    }

    static void acks(String acks) throws Exception {
        String topic = create("acks-" + acks, 1, Map.of());
        try (Producer<byte[], byte[]> producer = producer(Map.of("acks", acks, "enable.idempotence", "false"))) {
            for (int n = 0; n < 10; n++) producer.send(new ProducerRecord<>(topic, 0, null, ("" + n).getBytes()));
        }
        say("acks-" + acks, "\"count\":" + read(topic, 10).size());
    }

    static void partitions() throws Exception {
        String topic = create("partitions", 6, Map.of());
        StringBuilder found = new StringBuilder();
        try (Producer<byte[], byte[]> producer = producer(Map.of())) {
            for (int n = 0; n < 20; n++) {
                RecordMetadata metadata = producer.send(new ProducerRecord<>(topic, ("key-" + n).getBytes(), new byte[0])).get();
                found.append(n == 0 ? "" : ",").append(metadata.partition());
            }
        }
        say("partitions", "\"of_keys\":[" + found + "]");
    }

    static void seek() {
        TopicPartition tp = new TopicPartition(prefix + "-codec-none", 0);
        try (Consumer<byte[], byte[]> consumer = consumer(tp)) {
            consumer.seek(tp, 2);
            long first = consumer.poll(Duration.ofSeconds(30)).iterator().next().offset();
            OffsetAndTimestamp at = consumer.offsetsForTimes(Map.of(tp, FIRST_MS + 1500)).get(tp);
            boolean beyond = consumer.offsetsForTimes(Map.of(tp, FIRST_MS + 10_000)).get(tp) != null;
            say("seek", "\"first\":" + first + ",\"by_timestamp\":" + at.offset() + ",\"beyond\":" + (beyond ? 0 : "null")
                + ",\"start\":" + consumer.beginningOffsets(List.of(tp)).get(tp) + ",\"end\":" + consumer.endOffsets(List.of(tp)).get(tp));
        }
    }

    static void ordered() throws Exception {
        String topic = create("ordered", 1, Map.of());
        try (Producer<byte[], byte[]> producer = producer(Map.of("batch.size", "500", "max.in.flight.requests.per.connection", "5"))) {
            for (int n = 0; n < 2000; n++) producer.send(new ProducerRecord<>(topic, 0, null, ("" + n).getBytes()));
        }
        boolean ordered = true;
        List<ConsumerRecord<byte[], byte[]>> records = read(topic, 2000);
        for (int n = 0; n < records.size(); n++) ordered &= new String(records.get(n).value()).equals("" + n) && records.get(n).offset() == n;
        say("ordered", "\"count\":" + records.size() + ",\"ordered\":" + ordered);
    }

    static void large() throws Exception {
        String topic = create("large", 1, Map.of("max.message.bytes", "10000000"));
        byte[] value = new byte[LARGE_BYTES];
        new Random(1).nextBytes(value);
        String refused = "none";
        try (Producer<byte[], byte[]> producer = producer(Map.of("max.request.size", "20000000", "buffer.memory", "67108864"))) {
            producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
            try {
                producer.send(new ProducerRecord<>(topic, 0, null, new byte[11_000_000])).get();
            } catch (ExecutionException error) {
                refused = error.getCause().getClass().getSimpleName().replace("Exception", "");
            }
        }
        byte[] found = read(topic, 1).get(0).value();
        say("large", "\"bytes\":" + found.length + ",\"same\":" + Arrays.equals(found, value) + ",\"refused\":\"" + refused + "\"");
    }

    static void longPolling() throws Exception {
        String topic = create("waiting", 1, Map.of());
        TopicPartition tp = new TopicPartition(topic, 0);
        CountDownLatch polling = new CountDownLatch(1);
        Future<String> waiting = ForkJoinPool.commonPool().submit(() -> {
            try (Consumer<byte[], byte[]> consumer = consumer(tp, Map.of("fetch.max.wait.ms", "20000", "request.timeout.ms", "60000"))) {
                consumer.seekToEnd(List.of(tp));
                consumer.position(tp);
                polling.countDown();
                return new String(consumer.poll(Duration.ofSeconds(60)).iterator().next().value());
            }
        });
        polling.await();
        try (Producer<byte[], byte[]> producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(topic, 0, null, "late".getBytes())).get();
        }
        say("waiting", "\"got\":\"" + waiting.get(60, TimeUnit.SECONDS) + "\"");
    }

    static void adminRoundTrip() throws Exception {
        String topic = create("admin", 3, Map.of("retention.ms", "12345000"));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        String before = retention(resource);
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry("retention.ms", "54321000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        String after = retention(resource);
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        boolean listed = admin.listTopics().names().get().contains(topic);
        int brokers = admin.describeCluster().nodes().get().size();
        String again = "none";
        try {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        } catch (ExecutionException error) {
            again = error.getCause().getClass().getSimpleName().replace("Exception", "");
        }
        admin.deleteTopics(List.of(topic)).all().get();
        boolean gone = !admin.listTopics().names().get().contains(topic);
        say("admin", "\"before\":\"" + before + "\",\"after\":\"" + after + "\",\"partitions\":" + partitions + ",\"listed\":" + listed
            + ",\"brokers\":" + brokers + ",\"again\":\"" + again + "\",\"gone\":" + gone);
    }

    static String retention(ConfigResource resource) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value();
    }

    static String create(String name, int partitions, Map<String, String> more) throws Exception {
        String topic = prefix + "-" + name;
        Map<String, String> configs = new HashMap<>(Map.of("retention.ms", "-1"));
        configs.putAll(more);
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get();
        return topic;
    }

    static Producer<byte[], byte[]> producer(Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static Consumer<byte[], byte[]> consumer(TopicPartition tp) {
        return consumer(tp, Map.of());
    }

    static Consumer<byte[], byte[]> consumer(TopicPartition tp, Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", bootstrap);
        Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.assign(List.of(tp));
        return consumer;
    }

    static List<ConsumerRecord<byte[], byte[]>> read(String topic, int count) {
        TopicPartition tp = new TopicPartition(topic, 0);
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        try (Consumer<byte[], byte[]> consumer = consumer(tp)) {
            consumer.seekToBeginning(List.of(tp));
            for (long end = System.nanoTime() + 60_000_000_000L; found.size() < count && System.nanoTime() < end;)
                consumer.poll(Duration.ofSeconds(1)).forEach(found::add);
        }
        return found;
    }

    static String json(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder headers = new StringBuilder();
        for (Header header : record.headers())
            headers.append(headers.isEmpty() ? "" : ",").append("[\"").append(header.key()).append("\",").append(hex(header.value())).append("]");
        return "{\"offset\":" + record.offset() + ",\"timestamp\":" + record.timestamp() + ",\"key\":" + hex(record.key())
            + ",\"value\":" + hex(record.value()) + ",\"headers\":[" + headers + "]}";
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "null" : "\"" + HexFormat.of().formatHex(bytes) + "\"";
    }

    static void say(String check, String rest) {
        System.out.println("{\"check\":\"" + check + "\"," + rest + "}");
    }
}
