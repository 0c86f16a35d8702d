// Round trips with franz-go: what every program in this folder's neighbours does, in the same words. Prints one JSON
// line per check; the Python test says what is right.
//
//	client BOOTSTRAP PREFIX [groups|transactions]      (topics are named PREFIX-...)
package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	firstMs    = int64(1_700_000_000_000)
	largeBytes = 5_000_000
)

var (
	bootstrap = os.Args[1]
	prefix    = os.Args[2]
	admin     *kadm.Client
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Second)
	defer cancel()
	client := open()
	defer client.Close()
	admin = kadm.NewClient(client)
	switch {
	case len(os.Args) == 3:
		records(ctx)
	case os.Args[3] == "groups":
		groups(ctx)
	case os.Args[3] == "transactions":
		transactions(ctx)
	}
}

func records(ctx context.Context) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		codec(ctx, name, codecs[name])
	}
	acks(ctx, "0", kgo.NoAck())
	acks(ctx, "1", kgo.LeaderAck())
	acks(ctx, "all", kgo.AllISRAcks())
	partitions(ctx)
	seek(ctx)
	ordered(ctx)
	large(ctx)
	waiting(ctx)
	adminRoundTrip(ctx)
}

func codec(ctx context.Context, name string, codec kgo.CompressionCodec) {
	topic := create(ctx, "codec-"+name, 1, nil)
	produce(ctx, samples(topic), kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond))
	say("codec-"+name, map[string]any{"records": shown(read(ctx, topic, 4))})
}

func samples(topic string) []*kgo.Record {
	at := func(n int64) time.Time { return time.UnixMilli(firstMs + 1000*n) }
	return []*kgo.Record{
		{Topic: topic, Timestamp: at(0), Key: []byte("k0"), Value: []byte("v0"), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte{1}}, {Key: "b", Value: []byte{}}}},
		{Topic: topic, Timestamp: at(1), Key: []byte("k1")},
		{Topic: topic, Timestamp: at(2), Value: []byte("v2")},
		{Topic: topic, Timestamp: at(3), Key: []byte("k3"), Value: bytes.Repeat([]byte("z"), 10_000)},
	}
}

func acks(ctx context.Context, name string, wanted kgo.Acks) {
	topic := create(ctx, "acks-"+name, 1, nil)
	produce(ctx, numbered(topic, 10), kgo.RequiredAcks(wanted), kgo.DisableIdempotentWrite())
	say("acks-"+name, map[string]any{"count": len(read(ctx, topic, 10))})
}

func partitions(ctx context.Context) {
	topic := create(ctx, "partitions", 6, nil)
	records := []*kgo.Record{}
	for n := range 20 {
		records = append(records, &kgo.Record{Topic: topic, Key: []byte(fmt.Sprintf("key-%d", n)), Value: []byte{}})
	}
	produce(ctx, records)
	found := []int32{}
	for _, record := range records {
		found = append(found, record.Partition)
	}
	say("partitions", map[string]any{"of_keys": found})
}

func seek(ctx context.Context) {
	topic := prefix + "-codec-none"
	first := readFrom(ctx, topic, 1, kgo.NewOffset().At(2))[0].Offset
	start := must(admin.ListStartOffsets(ctx, topic))
	end := must(admin.ListEndOffsets(ctx, topic))
	byTimestamp := must(admin.ListOffsetsAfterMilli(ctx, firstMs+1500, topic))
	beyond := must(admin.ListOffsetsAfterMilli(ctx, firstMs+10_000, topic))
	offset := func(listed kadm.ListedOffsets) int64 { found, _ := listed.Lookup(topic, 0); return found.Offset }
	// Without a record at or after the time, kadm answers with the end of the log.
	var none any
	if offset(beyond) != offset(end) {
		none = offset(beyond)
	}
	say("seek", map[string]any{"first": first, "by_timestamp": offset(byTimestamp), "beyond": none, "start": offset(start), "end": offset(end)})
}

func ordered(ctx context.Context) {
	topic := create(ctx, "ordered", 1, nil)
	produce(ctx, numbered(topic, 2000), kgo.ProducerBatchMaxBytes(1024))
	found := read(ctx, topic, 2000)
	inOrder := true
	for n, record := range found {
		inOrder = inOrder && string(record.Value) == strconv.Itoa(n) && record.Offset == int64(n)
	}
	say("ordered", map[string]any{"count": len(found), "ordered": inOrder})
}

func large(ctx context.Context) {
	limit := "10000000"
	topic := create(ctx, "large", 1, map[string]*string{"max.message.bytes": &limit})
	value := make([]byte, largeBytes)
	rand.New(rand.NewSource(1)).Read(value)
	plain := []kgo.Opt{kgo.ProducerBatchMaxBytes(20_000_000), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DefaultProduceTopic(topic)}
	produce(ctx, []*kgo.Record{{Topic: topic, Value: value}}, plain...)
	client := open(plain...)
	defer client.Close()
	refused := "none"
	if err := client.ProduceSync(ctx, &kgo.Record{Value: make([]byte, 11_000_000)}).FirstErr(); errors.Is(err, kerr.MessageTooLarge) {
		refused = "RecordTooLarge"
	} else if err != nil {
		refused = err.Error()
	}
	found := read(ctx, topic, 1)[0].Value
	say("large", map[string]any{"bytes": len(found), "same": bytes.Equal(found, value), "refused": refused})
}

func waiting(ctx context.Context) {
	topic := create(ctx, "waiting", 1, nil)
	consumer := open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}), kgo.FetchMaxWait(20*time.Second))
	defer consumer.Close()
	got := make(chan string)
	go func() {
		got <- string(consumer.PollFetches(ctx).Records()[0].Value)
	}()
	produce(ctx, []*kgo.Record{{Topic: topic, Value: []byte("late")}})
	say("waiting", map[string]any{"got": <-got})
}

func adminRoundTrip(ctx context.Context) {
	retention, more := "12345000", "54321000"
	topic := create(ctx, "admin", 3, map[string]*string{"retention.ms": &retention})
	before := configured(ctx, topic)
	for _, altered := range must(admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &more}}, topic)) {
		check(altered.Err)
	}
	after := configured(ctx, topic)
	for _, updated := range must(admin.UpdatePartitions(ctx, 5, topic)) {
		check(updated.Err)
	}
	count := len(must(admin.ListTopics(ctx, topic))[topic].Partitions)
	brokers := len(must(admin.ListBrokers(ctx)))
	listed := must(admin.ListTopics(ctx)).Has(topic)
	again := "none"
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, topic); errors.Is(err, kerr.TopicAlreadyExists) {
		again = "TopicExists"
	}
	for _, deleted := range must(admin.DeleteTopics(ctx, topic)) {
		check(deleted.Err)
	}
	fresh := open() // the other one answers from its cache
	defer fresh.Close()
	gone := !must(kadm.NewClient(fresh).ListTopics(ctx)).Has(topic)
	say("admin", map[string]any{"before": before, "after": after, "partitions": count, "listed": listed, "brokers": brokers, "again": again, "gone": gone})
}

func configured(ctx context.Context, topic string) string {
	for _, config := range must(admin.DescribeTopicConfigs(ctx, topic))[0].Configs {
		if config.Key == "retention.ms" {
			return config.MaybeValue()
		}
	}
	return ""
}

func create(ctx context.Context, name string, partitions int32, more map[string]*string) string {
	topic, forever := prefix+"-"+name, "-1"
	configs := map[string]*string{"retention.ms": &forever}
	maps.Copy(configs, more)
	created := must(admin.CreateTopic(ctx, partitions, 1, configs, topic))
	check(created.Err)
	return topic
}

func numbered(topic string, count int) []*kgo.Record {
	records := []*kgo.Record{}
	for n := range count {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(n))})
	}
	return records
}

func open(options ...kgo.Opt) *kgo.Client {
	return must(kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap)}, options...)...))
}

func produce(ctx context.Context, records []*kgo.Record, options ...kgo.Opt) {
	client := open(options...)
	defer client.Close()
	check(client.ProduceSync(ctx, records...).FirstErr())
}

func read(ctx context.Context, topic string, count int) []*kgo.Record {
	return readFrom(ctx, topic, count, kgo.NewOffset().AtStart())
}

func readFrom(ctx context.Context, topic string, count int, from kgo.Offset) []*kgo.Record {
	client := open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: from}}))
	defer client.Close()
	found := []*kgo.Record{}
	for len(found) < count {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		found = append(found, fetches.Records()...)
	}
	return found
}

func shown(records []*kgo.Record) []any {
	found := []any{}
	for _, record := range records {
		headers := [][]any{}
		for _, header := range record.Headers {
			headers = append(headers, []any{header.Key, inHex(header.Value)})
		}
		found = append(found, map[string]any{
			"offset": record.Offset, "timestamp": record.Timestamp.UnixMilli(), "key": inHex(record.Key),
			"value": inHex(record.Value), "headers": headers,
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
	fmt.Println(strings.TrimSpace(string(must(json.Marshal(fields)))))
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
