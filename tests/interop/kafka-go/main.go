// Round trips and groups with kafka-go, which has requests of its own for a connection (older versions) and for a client
// (newer ones). The same checks as in the neighbouring folders. Prints one JSON line per check; the Python test says what
// is right.
//
//	client BOOTSTRAP PREFIX [groups]      (topics and groups are named PREFIX-...)
package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	firstMs    = int64(1_700_000_000_000)
	largeBytes = 5_000_000
)

var (
	bootstrap = os.Args[1]
	prefix    = os.Args[2]
	client    = &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: 30 * time.Second, Transport: transport()}
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	if len(os.Args) > 3 {
		groups(ctx)
	} else {
		records(ctx)
	}
}

func records(ctx context.Context) {
	codecs := map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := create(ctx, "codec-"+name, 1)
		produce(ctx, samples(), &kafka.Writer{Topic: topic, Compression: codecs[name]})
		say("codec-"+name, map[string]any{"records": shown(read(ctx, topic, 0, 4))})
	}
	for name, acks := range map[string]kafka.RequiredAcks{"0": kafka.RequireNone, "1": kafka.RequireOne, "all": kafka.RequireAll} {
		topic := create(ctx, "acks-"+name, 1)
		writer := opened(&kafka.Writer{Topic: topic})
		writer.RequiredAcks = acks
		check(writer.WriteMessages(ctx, numbered(10)...))
		check(writer.Close())
		say("acks-"+name, map[string]any{"count": len(read(ctx, topic, 0, 10))})
	}
	partitions(ctx)
	seek(ctx)
	say("ordered", map[string]any{"left_out": "its producer is not idempotent"})
	large(ctx)
	waiting(ctx)
	adminRoundTrip(ctx)
}

func samples() []kafka.Message {
	at := func(n int64) time.Time { return time.UnixMilli(firstMs + 1000*n) }
	return []kafka.Message{
		{Time: at(0), Key: []byte("k0"), Value: []byte("v0"), Headers: []kafka.Header{{Key: "a", Value: []byte{1}}, {Key: "b", Value: []byte{}}}},
		{Time: at(1), Key: []byte("k1")},
		{Time: at(2), Value: []byte("v2")},
		{Time: at(3), Key: []byte("k3"), Value: bytes.Repeat([]byte("z"), 10_000)},
	}
}

func partitions(ctx context.Context) {
	topic := create(ctx, "partitions", 6)
	messages, found := []kafka.Message{}, make([]int, 20)
	for n := range 20 {
		messages = append(messages, kafka.Message{Key: fmt.Appendf(nil, "key-%d", n), Value: []byte(strconv.Itoa(n))})
	}
	produce(ctx, messages, &kafka.Writer{Topic: topic, Balancer: kafka.Murmur2Balancer{}})
	for partition := range 6 {
		end := must(leader(ctx, topic, partition).ReadLastOffset())
		if end == 0 {
			continue
		}
		for _, message := range readFrom(ctx, topic, partition, 0, int(end)) {
			found[must(strconv.Atoi(string(message.Value)))] = partition
		}
	}
	say("partitions", map[string]any{"of_keys": found})
}

func seek(ctx context.Context) {
	topic := prefix + "-codec-none"
	first := readFrom(ctx, topic, 0, 2, 1)[0].Offset
	conn := leader(ctx, topic, 0)
	defer conn.Close()
	start, end, err := conn.ReadOffsets()
	check(err)
	byTimestamp := must(conn.ReadOffset(time.UnixMilli(firstMs + 1500)))
	var none any
	if beyond := must(conn.ReadOffset(time.UnixMilli(firstMs + 10_000))); beyond != -1 {
		none = beyond
	}
	say("seek", map[string]any{"first": first, "by_timestamp": byTimestamp, "beyond": none, "start": start, "end": end})
}

func large(ctx context.Context) {
	topic := create(ctx, "large", 1, kafka.ConfigEntry{ConfigName: "max.message.bytes", ConfigValue: "10000000"})
	value := make([]byte, largeBytes)
	rand.New(rand.NewSource(1)).Read(value)
	produce(ctx, []kafka.Message{{Value: value}}, &kafka.Writer{Topic: topic, BatchBytes: 20_000_000})
	writer := opened(&kafka.Writer{Topic: topic, BatchBytes: 20_000_000, MaxAttempts: 1})
	defer writer.Close()
	refused := "none"
	if err := writer.WriteMessages(ctx, kafka.Message{Value: make([]byte, 11_000_000)}); err != nil {
		refused = err.Error()
		var each kafka.WriteErrors
		if errors.Is(err, kafka.MessageSizeTooLarge) || errors.As(err, &each) && errors.Is(each[0], kafka.MessageSizeTooLarge) {
			refused = "RecordTooLarge"
		}
	}
	found := read(ctx, topic, 0, 1)[0].Value
	say("large", map[string]any{"bytes": len(found), "same": bytes.Equal(found, value), "refused": refused})
}

func waiting(ctx context.Context) {
	topic := create(ctx, "waiting", 1)
	got := make(chan string)
	go func() { got <- string(read(ctx, topic, 0, 1)[0].Value) }()
	produce(ctx, []kafka.Message{{Value: []byte("late")}}, &kafka.Writer{Topic: topic})
	say("waiting", map[string]any{"got": <-got})
}

func adminRoundTrip(ctx context.Context) {
	topic := create(ctx, "admin", 3, kafka.ConfigEntry{ConfigName: "retention.ms", ConfigValue: "12345000"})
	before := configured(ctx, topic)
	altered := must(client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "retention.ms", Value: "54321000", ConfigOperation: kafka.ConfigOperationSet}},
	}}}))
	check(altered.Resources[0].Error)
	after := configured(ctx, topic)
	grown := must(client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 5}}}))
	check(grown.Errors[topic])
	conn := must(kafka.DialContext(ctx, "tcp", bootstrap))
	defer conn.Close()
	count, listed := len(must(conn.ReadPartitions(topic))), has(conn, topic)
	brokers := len(must(conn.Brokers()))
	again := "none"
	if errors.Is(must(client.CreateTopics(ctx, creation(topic, 1))).Errors[topic], kafka.TopicAlreadyExists) {
		again = "TopicExists"
	}
	check(conn.DeleteTopics(topic))
	say("admin", map[string]any{"before": before, "after": after, "partitions": count, "listed": listed, "brokers": brokers, "again": again, "gone": !has(conn, topic)})
}

func has(conn *kafka.Conn, topic string) bool {
	for _, partition := range must(conn.ReadPartitions()) {
		if partition.Topic == topic {
			return true
		}
	}
	return false
}

func configured(ctx context.Context, topic string) string {
	described := must(client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"},
	}}}))
	check(described.Resources[0].Error)
	return described.Resources[0].ConfigEntries[0].ConfigValue
}

func create(ctx context.Context, name string, partitions int, more ...kafka.ConfigEntry) string {
	topic := prefix + "-" + name
	if len(more) == 0 {
		more = []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}}
	}
	check(must(client.CreateTopics(ctx, creation(topic, partitions, more...))).Errors[topic])
	return topic
}

func creation(topic string, partitions int, configs ...kafka.ConfigEntry) *kafka.CreateTopicsRequest {
	return &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: configs}}}
}

func numbered(count int) []kafka.Message {
	messages := []kafka.Message{}
	for n := range count {
		messages = append(messages, kafka.Message{Value: []byte(strconv.Itoa(n))})
	}
	return messages
}

// Without a time of its own a transport asks for the metadata every six seconds, and a new topic is unknown until then.
func transport() *kafka.Transport {
	return &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
}

func opened(writer *kafka.Writer) *kafka.Writer {
	writer.Addr, writer.Transport, writer.BatchTimeout = kafka.TCP(bootstrap), transport(), 20*time.Millisecond
	writer.RequiredAcks = kafka.RequireAll // where nobody says, it waits for no answer
	return writer
}

func produce(ctx context.Context, messages []kafka.Message, writer *kafka.Writer) {
	opened(writer)
	check(writer.WriteMessages(ctx, messages...))
	check(writer.Close())
}

func leader(ctx context.Context, topic string, partition int) *kafka.Conn {
	return must(kafka.DialLeader(ctx, "tcp", bootstrap, topic, partition))
}

func read(ctx context.Context, topic string, partition, count int) []kafka.Message {
	return readFrom(ctx, topic, partition, kafka.FirstOffset, count)
}

func readFrom(ctx context.Context, topic string, partition int, offset int64, count int) []kafka.Message {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, Partition: partition, MaxBytes: 20_000_000, MaxWait: 200 * time.Millisecond})
	defer reader.Close()
	check(reader.SetOffset(offset))
	found := []kafka.Message{}
	for len(found) < count {
		found = append(found, must(reader.ReadMessage(ctx)))
	}
	return found
}

func shown(messages []kafka.Message) []any {
	found := []any{}
	for _, message := range messages {
		headers := [][]any{}
		for _, header := range message.Headers {
			headers = append(headers, []any{header.Key, hex.EncodeToString(header.Value)})
		}
		found = append(found, map[string]any{
			"offset": message.Offset, "timestamp": message.Time.UnixMilli(), "key": inHex(message.Key),
			"value": inHex(message.Value), "headers": headers,
		})
	}
	return found
}

func inHex(data []byte) any {
	if data == nil {
		return nil
	}
	return hex.EncodeToString(data)
}

func say(name string, fields map[string]any) {
	fields["check"] = name
	fmt.Println(string(must(json.Marshal(fields))))
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
