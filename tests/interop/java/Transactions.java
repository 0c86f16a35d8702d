// Transactions with Apache Kafka's own Java client: what was aborted is never read, what is read and written in one
// transaction happens once, a second producer of the same id ends the first. Prints one JSON line per check; the Python
// test says what is right.
//
//   Transactions.java BOOTSTRAP PREFIX      (topics, groups and transactional ids are named PREFIX-...)
import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class Transactions {
    static String bootstrap;
    static String prefix;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        prefix = args[1];
        try (Admin opened = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin = opened;
            version();
            visible();
            exactlyOnce();
            fenced();
            open();
        }
    }

    static void version() throws Exception {
        FinalizedVersionRange found = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version");
        say("version", "\"level\":" + (found == null ? 0 : found.maxVersionLevel()));
    }

    /** Commits and aborts by turns, in two topics at once. */
    static void visible() throws Exception {
        String left = create("visible-left", 1), right = create("visible-right", 1);
        try (Producer<String, String> producer = producer("visible")) {
            producer.initTransactions();
            for (int n = 0; n < 6; n++) {
                producer.beginTransaction();
                for (String topic : List.of(left, right)) producer.send(new ProducerRecord<>(topic, (n % 2 == 0 ? "kept-" : "aborted-") + n));
                producer.flush(); // or an abort would not send them
                if (n % 2 == 0) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
        say("visible", "\"left\":" + json(read(left, "read_committed")) + ",\"right\":" + json(read(right, "read_committed"))
            + ",\"uncommitted\":" + json(read(left, "read_uncommitted")));
    }

    /** Reads a topic in a group and writes it to another, the offsets in the transaction; every other attempt is aborted. */
    static void exactlyOnce() throws Exception {
        String from = create("from", 2), to = create("to", 1), group = prefix + "-group";
        try (Producer<String, String> producer = producer(null)) {
            for (int n = 0; n < 30; n++) producer.send(new ProducerRecord<>(from, n % 2, null, "" + n));
        }
        Set<TopicPartition> all = Set.of(new TopicPartition(from, 0), new TopicPartition(from, 1));
        StringBuilder afterAbort = new StringBuilder();
        int attempts = 0;
        try (Producer<String, String> producer = producer("exactly-once")) {
            producer.initTransactions();
            for (boolean isDone = false; !isDone && attempts < 20; attempts++) {
                try (Consumer<String, String> consumer = consumer(Map.of("group.id", group, "max.poll.records", "9", "enable.auto.commit", "false"))) {
                    consumer.subscribe(List.of(from));
                    ConsumerRecords<String, String> records = poll(consumer);
                    producer.beginTransaction();
                    for (ConsumerRecord<String, String> record : records) producer.send(new ProducerRecord<>(to, record.value() + "!"));
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    for (TopicPartition tp : records.partitions()) offsets.put(tp, new OffsetAndMetadata(consumer.position(tp), "by transaction"));
                    long before = sum(consumer, all); // while offsets are in an open transaction, nobody is told any
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    producer.flush();
                    if (attempts % 2 == 0) {
                        producer.abortTransaction();
                        afterAbort.append(sum(consumer, all) == before ? "" : "changed");
                    } else {
                        producer.commitTransaction();
                        isDone = sum(consumer, all) == 30;
                    }
                }
            }
        }
        List<String> found = read(to, "read_committed");
        found.sort(Comparator.comparingInt(value -> Integer.parseInt(value.replace("!", ""))));
        String metadata = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values().iterator().next().metadata();
        say("exactly-once", "\"values\":" + json(found) + ",\"after_abort\":\"" + afterAbort + "\",\"several\":" + (attempts > 3) + ",\"metadata\":\"" + metadata + "\"");
    }

    static long sum(Consumer<String, String> consumer, Set<TopicPartition> all) {
        return consumer.committed(all).values().stream().filter(Objects::nonNull).mapToLong(OffsetAndMetadata::offset).sum();
    }

    static void fenced() throws Exception {
        String topic = create("fenced", 1);
        String failed = "none";
        try (Producer<String, String> first = producer("fenced"); Producer<String, String> second = producer("fenced")) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>(topic, "of the first")).get();
            second.initTransactions(); // which aborts what the first has begun
            second.beginTransaction();
            second.send(new ProducerRecord<>(topic, "of the second"));
            second.commitTransaction();
            try {
                first.send(new ProducerRecord<>(topic, "too late")).get();
                first.commitTransaction();
            } catch (Exception error) {
                failed = name(error);
            }
        }
        say("fenced", "\"failed\":\"" + failed + "\",\"values\":" + json(read(topic, "read_committed")));
    }

    /** What is written by others behind an open transaction is not read before it ends. */
    static void open() throws Exception {
        String topic = create("open", 1);
        TopicPartition tp = new TopicPartition(topic, 0);
        try (Producer<String, String> holds = producer("open"); Producer<String, String> plain = producer(null)) {
            holds.initTransactions();
            holds.beginTransaction();
            plain.send(new ProducerRecord<>(topic, "before")).get();
            holds.send(new ProducerRecord<>(topic, "inside")).get();
            plain.send(new ProducerRecord<>(topic, "behind")).get();
            long stable = admin.listOffsets(Map.of(tp, OffsetSpec.latest()), new ListOffsetsOptions(org.apache.kafka.common.IsolationLevel.READ_COMMITTED)).partitionResult(tp).get().offset();
            List<String> meanwhile = read(topic, "read_committed");
            holds.commitTransaction();
            say("open", "\"stable\":" + stable + ",\"meanwhile\":" + json(meanwhile) + ",\"values\":" + json(read(topic, "read_committed")));
        }
    }

    static String name(Throwable error) {
        while (error.getCause() != null) error = error.getCause();
        return error.getClass().getSimpleName();
    }

    static String create(String name, int partitions) throws Exception {
        String topic = prefix + "-" + name;
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        return topic;
    }

    static Producer<String, String> producer(String transactionalId) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", "0"));
        if (transactionalId != null) config.put("transactional.id", prefix + "-" + transactionalId);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    static Consumer<String, String> consumer(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest"));
        config.putAll(more);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    static ConsumerRecords<String, String> poll(Consumer<String, String> consumer) throws Exception {
        for (long end = System.nanoTime() + 60_000_000_000L; System.nanoTime() < end;) {
            ConsumerRecords<String, String> found = consumer.poll(Duration.ofSeconds(1));
            if (!found.isEmpty()) return found;
        }
        throw new TimeoutException("no records");
    }

    /** From the beginning to where such a consumer finds the end. */
    static List<String> read(String topic, String isolation) {
        TopicPartition tp = new TopicPartition(topic, 0);
        List<String> found = new ArrayList<>();
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", isolation))) {
            consumer.assign(List.of(tp));
            consumer.seekToBeginning(List.of(tp));
            long end = consumer.endOffsets(List.of(tp)).get(tp);
            for (long deadline = System.nanoTime() + 60_000_000_000L; consumer.position(tp) < end && System.nanoTime() < deadline;)
                consumer.poll(Duration.ofMillis(100)).forEach(record -> found.add(record.value()));
        }
        return found;
    }

    static String json(List<String> texts) {
        return texts.stream().map(text -> "\"" + text + "\"").collect(Collectors.joining(",", "[", "]"));
    }

    static void say(String check, String rest) {
        System.out.println("{\"check\":\"" + check + "\"," + rest + "}");
    }
}
