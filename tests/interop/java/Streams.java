// Kafka Streams: words are counted (a repartition topic, a store with its changelog), counted by the hour, and joined with a
// table. Runs until its input ends; prints a JSON line when the application changes its state and when it fails.
//
//   Streams.java BOOTSTRAP APPLICATION STATE_DIR [name=value ...]      (topics are named APPLICATION-...)
import java.time.Duration;
import java.util.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;

public class Streams {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", args[1]);
        settings.put("state.dir", args[2]);
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        settings.put("statestore.cache.max.bytes", 0); // every count is written, not the last of an interval
        settings.put("commit.interval.ms", 100);
        settings.put("repartition.purge.interval.ms", 1000);
        for (String setting : Arrays.asList(args).subList(3, args.length)) settings.put(setting.split("=")[0], setting.split("=")[1]);
        try (KafkaStreams streams = new KafkaStreams(topology(args[1]), settings)) {
            streams.setStateListener((now, before) -> say("state", now.name()));
            streams.setUncaughtExceptionHandler(error -> {
                say("failed", error.toString());
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            while (System.in.read() >= 0) { }
            say("closed", "" + streams.close(Duration.ofSeconds(30)));
        }
    }

    static Topology topology(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, String> words = builder.<String, String>stream(name + "-lines")
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()));
        words.count(Materialized.as("counts")).toStream()
            .mapValues(count -> count.toString()).to(name + "-counts");
        words.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1))).count(Materialized.as("hourly"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closed"))
            .toStream((hour, count) -> hour.key() + "@" + hour.window().startTime().toEpochMilli() / 3_600_000)
            .mapValues(count -> count.toString()).to(name + "-hours");
        KTable<String, String> people = builder.table(name + "-people", Materialized.as("people"));
        builder.<String, String>stream(name + "-orders")
            .join(people, (order, person) -> person + " ordered " + order).to(name + "-joined");
        return builder.build();
    }

    static synchronized void say(String what, String value) {
        System.out.println("{\"" + what + "\":\"" + value.replace('\\', '/').replace('"', '\'').replace('\n', ' ') + "\"}");
    }
}
