// Transactions with franz-go: what was aborted is never read; a GroupTransactSession reads and writes in one step; a
// second producer of the same id ends the first. The same checks as in java/Transactions.java.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func transactions(ctx context.Context) {
	visible(ctx)
	exactlyOnce(ctx)
	fenced(ctx)
}

func visible(ctx context.Context) {
	left, right := create(ctx, "visible-left", 1, nil), create(ctx, "visible-right", 1, nil)
	client := open(kgo.TransactionalID(prefix + "-visible"))
	for n := range 6 {
		check(client.BeginTransaction())
		text, end := "kept-", kgo.TryCommit
		if n%2 == 1 {
			text, end = "aborted-", kgo.TryAbort
		}
		value := fmt.Appendf(nil, "%s%d", text, n)
		check(client.ProduceSync(ctx, &kgo.Record{Topic: left, Value: value}, &kgo.Record{Topic: right, Value: value}).FirstErr())
		check(client.EndTransaction(ctx, end))
	}
	client.Close()
	say("visible", map[string]any{
		"left": values(ctx, left, kgo.ReadCommitted()), "right": values(ctx, right, kgo.ReadCommitted()),
		"uncommitted": values(ctx, left, kgo.ReadUncommitted()),
	})
}

// Reads a topic in a group and writes it to another; every other attempt is aborted.
func exactlyOnce(ctx context.Context) {
	from, to, group := create(ctx, "from", 2, nil), create(ctx, "to", 1, nil), prefix+"-group"
	produce(ctx, numbered(from, 30), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	session := must(kgo.NewGroupTransactSession(kgo.SeedBrokers(bootstrap), kgo.TransactionalID(prefix+"-exactly-once"),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())))
	attempts, changed, read := 0, "", int64(0)
	for ; read < 30 && attempts < 20; attempts++ {
		fetches := session.PollRecords(ctx, 9)
		check(fetches.Err())
		check(session.Begin())
		for _, record := range fetches.Records() {
			session.Produce(ctx, &kgo.Record{Topic: to, Value: append(record.Value, '!')}, func(_ *kgo.Record, err error) { check(err) })
		}
		end := kgo.TryCommit
		if attempts%2 == 0 {
			check(session.Client().Flush(ctx))
			end = kgo.TryAbort
		}
		done, err := session.End(ctx, end)
		check(err)
		if done != bool(end) {
			changed += "not as asked"
		}
		if done {
			read += int64(fetches.NumRecords())
		}
		await(ctx, "its offsets", func() bool { return committed(ctx, group) == read }) // markers come later
	}
	session.Close()
	found := values(ctx, to, kgo.ReadCommitted())
	slices.SortFunc(found, func(one, other string) int {
		if len(one) != len(other) {
			return len(one) - len(other)
		}
		return slices.Compare([]byte(one), []byte(other))
	})
	say("exactly-once", map[string]any{"values": found, "after_abort": changed, "several": attempts > 3})
}

func committed(ctx context.Context, group string) int64 {
	total := int64(0)
	for _, offset := range must(admin.FetchOffsets(ctx, group)).Sorted() {
		total += offset.At
	}
	return total
}

func fenced(ctx context.Context) {
	topic := create(ctx, "fenced", 1, nil)
	first, second := open(kgo.TransactionalID(prefix+"-fenced")), open(kgo.TransactionalID(prefix+"-fenced"))
	defer first.Close()
	defer second.Close()
	check(first.BeginTransaction())
	check(first.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("of the first")}).FirstErr())
	check(second.BeginTransaction()) // which aborts what the first has begun
	check(second.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("of the second")}).FirstErr())
	check(second.EndTransaction(ctx, kgo.TryCommit))
	err := first.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("too late")}).FirstErr()
	if err == nil {
		err = first.EndTransaction(ctx, kgo.TryCommit)
	}
	failed := fmt.Sprint(err)
	if errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.ProducerFenced) {
		failed = "Fenced"
	}
	say("fenced", map[string]any{"failed": failed, "values": values(ctx, topic, kgo.ReadCommitted())})
}

// From the beginning to the end of the log.
func values(ctx context.Context, topic string, level kgo.IsolationLevel) []string {
	end, _ := must(admin.ListEndOffsets(ctx, topic)).Lookup(topic, 0)
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	client := open(kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords())
	defer client.Close()
	found := []string{}
	for last := int64(-1); last+1 < end.Offset; {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		for _, record := range fetches.Records() {
			last = record.Offset
			if !record.Attrs.IsControl() {
				found = append(found, string(record.Value))
			}
		}
	}
	return found
}
