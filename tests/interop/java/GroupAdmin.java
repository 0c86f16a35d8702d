// What Apache Kafka's own admin client says about groups and transactions, and does to them. Prints one JSON line per
// check; the Python test says what is right.
//
//   GroupAdmin.java BOOTSTRAP PREFIX      (topics, groups and transactional ids are named PREFIX-...)
import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class GroupAdmin {
    static String bootstrap;
    static String prefix;
    static String topic;
    static TopicPartition first;
    static TopicPartition second;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        prefix = args[1];
        topic = prefix + "-topic";
        first = new TopicPartition(topic, 0);
        second = new TopicPartition(topic, 1);
        try (Admin opened = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin = opened;
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get();
            try (Producer<String, String> producer = producer(null)) {
                for (int n = 0; n < 20; n++) producer.send(new ProducerRecord<>(topic, n % 2, null, "" + n));
            }
            group("classic");
            group("consumer");
            offsets();
            removed();
            transactions();
            hanging();
            fenced();
        }
    }

    /** A group with one member: listed, described, not to be deleted; and when it is empty, it is. */
    static void group(String protocol) throws Exception {
        String group = prefix + "-" + protocol;
        try (Consumer<String, String> consumer = consumer(group, Map.of("group.protocol", protocol, "client.id", "me"))) {
            join(consumer, 2);
            consumer.commitSync();
            GroupListing listed = admin.listGroups().all().get().stream().filter(each -> each.groupId().equals(group)).findFirst().get();
            // A member of the new protocol has its partitions before the broker has heard that it has.
            await("a stable group", () -> describe(group).groupState().toString().equals("Stable"));
            ConsumerGroupDescription described = describe(group);
            MemberDescription member = described.members().iterator().next();
            String inUse = failure(() -> admin.deleteConsumerGroups(List.of(group)).all().get());
            say("group-" + protocol, "\"type\":" + quoted(listed.type().get()) + ",\"protocol\":" + quoted(listed.protocol())
                + ",\"state\":" + quoted(described.groupState()) + ",\"assignor\":" + quoted(described.partitionAssignor())
                + ",\"client\":" + quoted(member.clientId()) + ",\"holds\":" + member.assignment().topicPartitions().size()
                + ",\"coordinator\":" + described.coordinator().id() + ",\"delete_in_use\":" + quoted(inUse));
        }
        await("an empty group", () -> describe(group).groupState().toString().equals("Empty"));
        admin.deleteConsumerGroups(List.of(group)).all().get();
        boolean gone = admin.listGroups().all().get().stream().noneMatch(each -> each.groupId().equals(group));
        say("deleted-" + protocol, "\"gone\":" + gone + ",\"describe\":" + quoted(failure(() -> admin.describeConsumerGroups(List.of(group)).all().get())));
    }

    static void offsets() throws Exception {
        String group = prefix + "-offsets";
        admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(3, "three"), second, new OffsetAndMetadata(5))).all().get();
        Map<TopicPartition, OffsetAndMetadata> listed = listed(group);
        String metadata = listed.get(first).metadata();
        admin.deleteConsumerGroupOffsets(group, Set.of(first)).all().get();
        Map<TopicPartition, OffsetAndMetadata> left = listed(group);
        String from;
        String altered;
        String deleted;
        try (Consumer<String, String> consumer = consumer(group, Map.of())) {
            join(consumer, 2);
            from = consumer.position(first) + " " + consumer.position(second);
            altered = failure(() -> admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(0))).all().get());
            deleted = failure(() -> admin.deleteConsumerGroupOffsets(group, Set.of(second)).all().get());
        }
        say("offsets", "\"listed\":[" + listed.get(first).offset() + "," + listed.get(second).offset() + "],\"metadata\":" + quoted(metadata)
            + ",\"left\":" + left.get(first) + ",\"kept\":" + left.get(second).offset() + ",\"from\":" + quoted(from)
            + ",\"alter_in_use\":" + quoted(altered) + ",\"delete_in_use\":" + quoted(deleted));
    }

    static Map<TopicPartition, OffsetAndMetadata> listed(String group) throws Exception {
        ListConsumerGroupOffsetsSpec spec = new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(first, second));
        return admin.listConsumerGroupOffsets(Map.of(group, spec)).partitionsToOffsetAndMetadata(group).get();
    }

    /** A static member that went away is taken out by its name; then everybody who is left is. */
    static void removed() throws Exception {
        String group = prefix + "-removed";
        try (Consumer<String, String> gone = consumer(group, Map.of("group.instance.id", "gone"))) {
            join(gone, 2);
        }
        List<String> before = instances(group);
        admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("gone")))).all().get();
        List<String> after = instances(group);
        String unknown = failure(() -> admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("nobody")))).all().get());
        try (Consumer<String, String> stays = consumer(group, Map.of())) {
            join(stays, 2);
            admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all().get();
            say("removed", "\"before\":" + before + ",\"after\":" + after + ",\"unknown\":" + quoted(unknown) + ",\"all\":" + describe(group).members().size());
        }
    }

    static List<String> instances(String group) throws Exception {
        return describe(group).members().stream().map(member -> quoted(member.groupInstanceId().orElse("none"))).toList();
    }

    static void transactions() throws Exception {
        String id = prefix + "-listed";
        try (Producer<String, String> producer = producer("listed")) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "open")).get();
            TransactionListing listed = admin.listTransactions().all().get().stream().filter(each -> each.transactionalId().equals(id)).findFirst().get();
            Collection<TransactionListing> ongoing = admin.listTransactions(new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING))).all().get();
            TransactionDescription described = admin.describeTransactions(List.of(id)).description(id).get();
            ProducerState state = active(first);
            producer.commitTransaction();
            await("the end of the transaction", () -> quietly(() -> admin.describeTransactions(List.of(id)).description(id).get().state()) == TransactionState.COMPLETE_COMMIT);
            say("transactions", "\"listed\":" + quoted(listed.state()) + ",\"filtered\":" + ongoing.stream().anyMatch(each -> each.transactionalId().equals(id))
                + ",\"described\":" + quoted(described.state()) + ",\"partitions\":" + quoted(described.topicPartitions().toString().replace(prefix, ""))
                + ",\"timeout\":" + described.transactionTimeoutMs() + ",\"same_producer\":" + (state.producerId() == described.producerId())
                + ",\"started\":" + described.transactionStartTimeMs().isPresent() + ",\"open_at\":" + state.currentTransactionStartOffset().isPresent()
                + ",\"sequence\":" + state.lastSequence() + ",\"still_open\":" + (active(first) != null) + ",\"unknown\":" + quoted(failure(() -> admin.describeTransactions(List.of("nobody")).all().get())));
        }
    }

    static ProducerState active(TopicPartition tp) throws Exception {
        return admin.describeProducers(List.of(tp)).partitionResult(tp).get().activeProducers().stream()
            .filter(each -> each.currentTransactionStartOffset().isPresent()).findFirst().orElse(null);
    }

    /** As kafka-transactions ends one in a partition: by its producer, epoch and coordinator's epoch. */
    static void hanging() throws Exception {
        try (Producer<String, String> producer = producer("hanging")) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 1, null, "hangs")).get();
            ProducerState state = active(second);
            AbortTransactionSpec spec = new AbortTransactionSpec(second, state.producerId(), (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0));
            admin.abortTransaction(spec).all().get();
            say("hanging", "\"still_open\":" + (active(second) != null));
            failure(() -> producer.abortTransaction());
        }
    }

    static void fenced() throws Exception {
        try (Producer<String, String> producer = producer("fenced")) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "fenced")).get();
            admin.fenceProducers(List.of(prefix + "-fenced")).all().get();
            await("the end of its transaction", () -> quietly(() -> active(first) == null));
            String failed = failure(() -> {
                producer.send(new ProducerRecord<>(topic, 0, null, "too late")).get();
                producer.commitTransaction();
                return null;
            });
            say("fence-producers", "\"failed\":" + quoted(failed));
        }
    }

    static ConsumerGroupDescription describe(String group) {
        return quietly(() -> admin.describeConsumerGroups(List.of(group)).all().get().get(group));
    }

    static void join(Consumer<String, String> consumer, int partitions) throws Exception {
        consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                consumer.pause(partitions); // it stays where it starts
            }

            @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) { }
        });
        await("its partitions", () -> {
            consumer.poll(Duration.ofMillis(100));
            return consumer.assignment().size() == partitions;
        });
    }

    interface Attempt<T> {
        T get() throws Exception;
    }

    interface Act {
        void run() throws Exception;
    }

    static String failure(Attempt<?> attempt) {
        return failure((Act) attempt::get);
    }

    static String failure(Act attempt) {
        try {
            attempt.run();
            return "none";
        } catch (Exception error) {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            return cause.getClass().getSimpleName();
        }
    }

    static <T> T quietly(Attempt<T> attempt) {
        try {
            return attempt.get();
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    static Producer<String, String> producer(String transactionalId) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap));
        if (transactionalId != null) config.put("transactional.id", prefix + "-" + transactionalId);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    static Consumer<String, String> consumer(String group, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest", "group.id", group, "enable.auto.commit", "false"));
        config.putAll(more);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    static void await(String what, BooleanSupplier condition) throws Exception {
        for (long end = System.nanoTime() + 60_000_000_000L; !condition.getAsBoolean(); Thread.sleep(10))
            if (System.nanoTime() > end) throw new TimeoutException("waited for " + what);
    }

    static String quoted(Object value) {
        return "\"" + value + "\"";
    }

    static void say(String check, String rest) {
        System.out.println("{\"check\":\"" + check + "\"," + rest + "}");
    }
}
