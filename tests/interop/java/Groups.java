// Consumer groups with Apache Kafka's own Java client, in each of its protocols: partitions are shared and handed over,
// commits outlive the consumer, static members come back. Prints one JSON line per check; the Python test says what is
// right.
//
//   Groups.java BOOTSTRAP PREFIX      (topics and groups are named PREFIX-...)
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class Groups {
    static final int PARTITIONS = 4;
    static final Map<String, Map<String, Object>> PROTOCOLS = new LinkedHashMap<>();
    static String bootstrap;
    static String prefix;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        prefix = args[1];
        PROTOCOLS.put("eager", Map.of("partition.assignment.strategy", RangeAssignor.class.getName()));
        PROTOCOLS.put("cooperative", Map.of("partition.assignment.strategy", CooperativeStickyAssignor.class.getName()));
        PROTOCOLS.put("consumer", Map.of("group.protocol", "consumer"));
        for (String protocol : PROTOCOLS.keySet()) {
            String topic = create(protocol);
            rebalance(topic, protocol);
            commits(topic, protocol);
            staticMember(topic, protocol);
        }
    }

    static void rebalance(String topic, String protocol) throws Exception {
        Map<String, Object> config = new HashMap<>(PROTOCOLS.get(protocol));
        config.put("group.id", topic + "-rebalance");
        try (Member first = new Member(topic, config)) {
            first.waitFor(PARTITIONS);
            try (Member second = new Member(topic, config)) {
                await("both to have two", () -> first.held.size() == 2 && second.held.size() == 2);
                boolean apart = Collections.disjoint(first.held, second.held);
                say("rebalance-" + protocol, "\"shared\":true,\"apart\":" + apart + ",\"revoked\":" + first.revoked);
            }
            first.waitFor(PARTITIONS); // the other one has left
        }
    }

    static void commits(String topic, String protocol) throws Exception {
        try (Producer<String, String> producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < 40; n++) producer.send(new ProducerRecord<>(topic, n % PARTITIONS, null, "" + n));
        }
        Map<String, Object> config = new HashMap<>(PROTOCOLS.get(protocol));
        config.putAll(Map.of("group.id", topic + "-commits", "auto.offset.reset", "earliest", "max.poll.records", "7", "enable.auto.commit", "false"));
        List<String> found = new ArrayList<>();
        int lives = 0;
        while (found.size() < 40 && lives < 10) { // each life reads a little, and commits what it has read
            lives++;
            try (Consumer<String, String> consumer = consumer(config)) {
                consumer.subscribe(List.of(topic));
                int wanted = Math.min(40, found.size() + 8);
                await("records", () -> {
                    consumer.poll(Duration.ofMillis(200)).forEach(record -> found.add(record.value()));
                    return found.size() >= wanted;
                });
                consumer.commitSync();
            }
        }
        boolean once = new HashSet<>(found).size() == found.size();
        try (Consumer<String, String> consumer = consumer(config)) {
            Set<TopicPartition> all = new HashSet<>();
            for (int n = 0; n < PARTITIONS; n++) all.add(new TopicPartition(topic, n));
            long sum = consumer.committed(all).values().stream().mapToLong(OffsetAndMetadata::offset).sum();
            say("commits-" + protocol, "\"count\":" + found.size() + ",\"once\":" + once + ",\"lives\":" + (lives > 2) + ",\"committed\":" + sum);
        }
    }

    static void staticMember(String topic, String protocol) throws Exception {
        Map<String, Object> config = new HashMap<>(PROTOCOLS.get(protocol));
        config.put("group.id", topic + "-static");
        Map<String, Object> one = new HashMap<>(config), two = new HashMap<>(config);
        one.put("group.instance.id", "one");
        two.put("group.instance.id", "two");
        try (Member stays = new Member(topic, two)) {
            Set<TopicPartition> before;
            int generation;
            try (Member leaves = new Member(topic, one)) {
                // The one that stays may hear of the last generation a little later than it has its partitions.
                await("both to have two", () -> leaves.held.size() == 2 && stays.held.size() == 2 && leaves.generation == stays.generation);
                before = leaves.held;
                generation = stays.generation;
            }
            int revoked = stays.revoked;
            Member again = new Member(topic, one);
            await("it to have two again", () -> again.held.size() == 2);
            boolean same = again.held.equals(before) && stays.revoked == revoked && stays.held.size() == 2;
            boolean undisturbed = stays.generation == generation;
            // In the classic protocol a third one of that name takes the place of the second; in the new one it has to wait.
            String failed;
            try (Member rival = new Member(topic, one)) {
                await("one of the two to fail", () -> again.failure != null || rival.failure != null);
                failed = again.failure != null ? "older " + again.failure : "newer " + rival.failure;
            }
            again.close();
            say("static-" + protocol, "\"same\":" + same + ",\"undisturbed\":" + undisturbed + ",\"failed\":\"" + failed + "\"");
        }
    }

    /** A consumer that polls in a thread of its own until it is closed. */
    static class Member implements AutoCloseable, ConsumerRebalanceListener {
        final Consumer<String, String> consumer;
        final Thread thread = new Thread(this::run);
        volatile Set<TopicPartition> held = Set.of();
        volatile int revoked = 0;
        volatile int generation = -1;
        volatile String failure;
        volatile boolean isClosing;

        Member(String topic, Map<String, Object> config) {
            consumer = consumer(config);
            consumer.subscribe(List.of(topic), this);
            thread.start();
        }

        void run() {
            try {
                while (!isClosing) {
                    consumer.poll(Duration.ofMillis(100));
                    generation = consumer.groupMetadata().generationId();
                    held = Set.copyOf(consumer.assignment());
                }
            } catch (Exception error) {
                failure = error.getClass().getSimpleName();
            } finally {
                consumer.close();
            }
        }

        void waitFor(int count) throws Exception {
            await(count + " partitions", () -> held.size() == count);
        }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (!isClosing) revoked += partitions.size();
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) { }

        @Override public void close() throws Exception {
            isClosing = true;
            thread.join(30_000);
        }
    }

    static Consumer<String, String> consumer(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", bootstrap);
        if (!"consumer".equals(config.get("group.protocol"))) config.put("heartbeat.interval.ms", "300"); // rebalances are noticed by it
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    static String create(String name) throws Exception {
        String topic = prefix + "-" + name;
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
        }
        return topic;
    }

    static void await(String what, BooleanSupplier condition) throws Exception {
        for (long end = System.nanoTime() + 60_000_000_000L; !condition.getAsBoolean(); Thread.sleep(10))
            if (System.nanoTime() > end) throw new TimeoutException("waited for " + what);
    }

    static void say(String check, String rest) {
        System.out.println("{\"check\":\"" + check + "\"," + rest + "}");
    }
}
